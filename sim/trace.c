// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replay: I/Os that follow each other as a forest says. */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

static int compare_roots(const void *a, const void *b, void *arg)
{
	const int64_t *time_ns = arg;
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	if (time_ns[x] != time_ns[y])
		return time_ns[x] < time_ns[y] ? -1 : 1;
	return x < y ? -1 : 1;
}

static int check_row(struct hws *s, const struct hws_trace *t, u64 i)
{
	if (t->task[i] >= s->nr_tasks)
		return sim_fail(s, -EINVAL, "row %llu: no task %u", (unsigned long long)i, t->task[i]);
	if (!t->sectors[i] || t->sector[i] >= s->drive->sectors || t->sectors[i] > s->drive->sectors - t->sector[i])
		return sim_fail(s, -ERANGE, "row %llu: sectors %llu+%u do not fit on a drive of %llu sectors",
				(unsigned long long)i, (unsigned long long)t->sector[i], t->sectors[i],
				(unsigned long long)s->drive->sectors);
	if (t->parent[i] >= (int64_t)t->n || t->parent[i] == (int64_t)i || t->parent[i] < -1)
		return sim_fail(s, -EINVAL, "row %llu: bad parent %lld", (unsigned long long)i,
				(long long)t->parent[i]);
	if (t->after && (t->after[i] < -1 || t->after[i] >= (int64_t)i))
		return sim_fail(s, -EINVAL, "row %llu: bad predecessor %lld", (unsigned long long)i,
				(long long)t->after[i]);
	if ((t->parent[i] < 0 ? t->time_ns[i] : t->delay_ns[i]) < 0)
		return sim_fail(s, -EINVAL, "row %llu: negative time", (unsigned long long)i);
	return 0;
}

int hws_add_trace(struct hws *s, const struct hws_trace *trace)
{
	const struct hws_trace *t = &s->trace_copy;
	u64 i;
	int ret;

	if (s->started || s->trace || s->jobs)
		return sim_fail(s, -EBUSY, "a run takes one trace, or jobs, before it starts");
	if (!s->drive)
		return sim_fail(s, -EINVAL, "no drive");
	s->trace_copy = *trace;
	for (i = 0; i < t->n; i++) {
		ret = check_row(s, t, i);
		if (ret)
			return ret;
	}
	s->trace = t;
	s->first_child = sim_alloc(s, t->n * sizeof(*s->first_child) + 1);
	s->next_sibling = sim_alloc(s, t->n * sizeof(*s->next_sibling) + 1);
	s->roots = sim_alloc(s, t->n * sizeof(*s->roots) + 1);
	s->follower = sim_alloc(s, t->n * sizeof(*s->follower) + 1);
	s->row_state = sim_alloc(s, t->n + 1);
	memset(s->first_child, 0xff, t->n * sizeof(*s->first_child));
	memset(s->follower, 0xff, t->n * sizeof(*s->follower));
	/* Backwards, so that the children of a row stand in the order of the trace. */
	for (i = t->n; i-- > 0;) {
		s->tasks[t->task[i]].remaining++;
		if (t->after && t->after[i] >= 0)
			s->follower[t->after[i]] = (int64_t)i;
		if (t->parent[i] < 0)
			continue;
		s->next_sibling[i] = s->first_child[t->parent[i]];
		s->first_child[t->parent[i]] = (int64_t)i;
	}
	for (i = 0; i < t->n; i++)
		if (t->parent[i] < 0)
			s->roots[s->nr_roots++] = i;
	qsort_r(s->roots, s->nr_roots, sizeof(*s->roots), compare_roots, (void *)t->time_ns);
	if (s->opt.record) {
		u64 room = s->rows.room;

		s->rows.issue_ns = sim_grow(s->rows.issue_ns, &room, t->n, sizeof(int64_t));
		room = s->rows.room;
		s->rows.complete_ns = sim_grow(s->rows.complete_ns, &room, t->n, sizeof(int64_t));
		s->rows.room = room;
		s->rows.n = t->n;
		memset(s->rows.issue_ns, 0xff, t->n * sizeof(int64_t));
		memset(s->rows.complete_ns, 0xff, t->n * sizeof(int64_t));
	}
	return 0;
}

static void issue(struct hws *s, u64 row)
{
	const struct hws_trace *t = s->trace;
	struct sim_task *task = &s->tasks[t->task[row]];
	struct hw_bio what = {
		.sector = t->sector[row],
		.sectors = t->sectors[row],
		.op = t->op[row],
		.flags = t->flags[row] | (t->op[row] == HW_READ ? HW_RQ_SYNC : 0),
		.ioprio = t->ioprio && t->ioprio[row] ? t->ioprio[row] : task->ioprio,
	};

	s->row_state[row] = ROW_ISSUED;
	sim_issue(s, t->task[row], &what, row, t->service_ns ? (u64)t->service_ns[row] : 0, NULL);
}

void sim_trace_issue(struct hws *s, u64 row)
{
	const int64_t *after = s->trace->after;
	int64_t next = (int64_t)row;

	s->row_state[row] = ROW_DUE;
	if (after && after[row] >= 0 && s->row_state[after[row]] != ROW_ISSUED)
		return;
	for (; next >= 0 && s->row_state[next] == ROW_DUE; next = s->follower[next])
		issue(s, (u64)next);
}

void sim_trace_completed(struct hws *s, u64 row)
{
	struct sim_task *task = &s->tasks[s->trace->task[row]];
	int64_t child;

	if (--task->remaining == 0 && task->exits)
		sim_task_exit(s, s->trace->task[row]);
	for (child = s->first_child[row]; child >= 0; child = s->next_sibling[child])
		sim_schedule(s, sim_after(s->now, (u64)s->trace->delay_ns[child]), (u64)child, NULL);
}
