// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Replay: I/Os that follow each other as a forest says. */
#include <errno.h>
#include <stdlib.h>

#include "sim/internal.h"

static int compare_roots(const void *a, const void *b, void *arg)
{
	const int64_t *time_ns = arg;
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	if (time_ns[x] != time_ns[y])
		return time_ns[x] < time_ns[y] ? -1 : 1;
	return x < y ? -1 : 1;
}

static int check_row(struct hws *s, const struct hws_trace *t, u64 i)
{
	if (t->task[i] >= s->nr_tasks)
		return sim_fail(s, -EINVAL, "row %llu: no task %u", (unsigned long long)i,
				t->task[i]);
	if (!t->sectors[i] || t->sector[i] >= s->drive->sectors ||
	    t->sectors[i] > s->drive->sectors - t->sector[i])
		return sim_fail(s, -ERANGE,
				"row %llu: sectors %llu+%u do not fit on a drive of %llu sectors",
				(unsigned long long)i, (unsigned long long)t->sector[i],
				t->sectors[i], (unsigned long long)s->drive->sectors);
	if (t->parent[i] >= (int64_t)t->n || t->parent[i] == (int64_t)i || t->parent[i] < -1)
		return sim_fail(s, -EINVAL, "row %llu: bad parent %lld", (unsigned long long)i,
				(long long)t->parent[i]);
	if (t->after && (t->after[i] < -1 || t->after[i] >= (int64_t)i))
		return sim_fail(s, -EINVAL, "row %llu: bad predecessor %lld", (unsigned long long)i,
				(long long)t->after[i]);
	if ((t->parent[i] < 0 ? t->time_ns[i] : t->delay_ns[i]) < 0)
		return sim_fail(s, -EINVAL, "row %llu: negative time", (unsigned long long)i);
	if (t->op[i] > HW_OTHER)
		return sim_fail(s, -EINVAL, "row %llu: no operation %u", (unsigned long long)i,
				t->op[i]);
	if (t->flags[i] & ~(HW_RQ_SYNC | HW_RQ_META | HW_RQ_PRIO))
		return sim_fail(s, -EINVAL, "row %llu: unknown flags %u", (unsigned long long)i,
				t->flags[i]);
	if (t->service_ns && t->service_ns[i] < 0)
		return sim_fail(s, -EINVAL, "row %llu: negative service time",
				(unsigned long long)i);
	return 0;
}

static u32 *rows_of(struct hws *s, u64 n)
{
	return memset(sim_alloc(s, n * sizeof(u32) + 1), 0xff, n * sizeof(u32));
}

/* Who follows whom, and what comes by itself, as far as the trace has either. */
static int link_rows(struct hws *s, const struct hws_trace *t)
{
	bool in_order = true;
	int64_t before = 0;
	u64 i, roots = 0;

	for (i = 0; i < t->n; i++) {
		if (t->parent[i] >= 0)
			continue;
		in_order = in_order && t->time_ns[i] >= before;
		before = t->time_ns[i];
		roots++;
	}
	if (roots < t->n) {
		s->first_child = rows_of(s, t->n);
		s->next_sibling = rows_of(s, t->n);
	}
	if (t->after) {
		s->follower = rows_of(s, t->n);
		s->row_state = sim_alloc(s, t->n + 1);
	}
	if (roots < t->n || !in_order)
		s->roots = rows_of(s, roots);
	/* Backwards, so that the children of a row stand in the order of the trace. */
	for (i = t->n; i-- > 0;) {
		s->tasks[t->task[i]].remaining++;
		if (t->after && t->after[i] >= 0) {
			if (s->follower[t->after[i]] != NO_ROW)
				return sim_fail(
					s, -EINVAL,
					"row %llu: its predecessor %lld has another follower",
					(unsigned long long)i, (long long)t->after[i]);
			s->follower[t->after[i]] = (u32)i;
		}
		if (t->parent[i] < 0) {
			s->nr_roots++;
			if (s->roots)
				s->roots[roots - s->nr_roots] = (u32)i;
			continue;
		}
		s->next_sibling[i] = s->first_child[t->parent[i]];
		s->first_child[t->parent[i]] = (u32)i;
	}
	if (!in_order)
		qsort_r(s->roots, s->nr_roots, sizeof(*s->roots), compare_roots,
			(void *)t->time_ns);
	return 0;
}

int sim_add_trace(struct hws *s, const struct hws_trace *trace)
{
	const struct hws_trace *t = &s->trace_copy;
	u64 i;
	int ret;

	if (s->started || s->trace || s->jobs)
		return sim_fail(s, -EBUSY, "a run takes one trace, or jobs, before it starts");
	if (!s->drive)
		return sim_fail(s, -EINVAL, "no drive");
	if (trace->n >= NO_ROW)
		return sim_fail(s, -E2BIG, "%llu rows: a trace has fewer than 2^32",
				(unsigned long long)trace->n);
	s->trace_copy = *trace;
	for (i = 0; i < t->n; i++) {
		ret = check_row(s, t, i);
		if (ret)
			return ret;
	}
	ret = link_rows(s, t);
	if (ret)
		return ret;
	s->trace = t;
	if (s->opt.record) {
		u64 room = s->rows.room;

		s->rows.issue_ns = sim_grow(s, s->rows.issue_ns, &room, t->n, sizeof(int64_t));
		room = s->rows.room;
		s->rows.complete_ns =
			sim_grow(s, s->rows.complete_ns, &room, t->n, sizeof(int64_t));
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

	if (s->row_state)
		s->row_state[row] = ROW_ISSUED;
	sim_issue(s, t->task[row], &what, row, t->service_ns ? (u64)t->service_ns[row] : 0, NULL);
}

void sim_trace_issue(struct hws *s, u64 row)
{
	const int64_t *after = s->trace->after;

	if (!after) {
		issue(s, row);
		return;
	}
	s->row_state[row] = ROW_DUE;
	if (after[row] >= 0 && s->row_state[after[row]] != ROW_ISSUED)
		return;
	for (; row != NO_ROW && s->row_state[row] == ROW_DUE; row = s->follower[row])
		issue(s, row);
}

void sim_trace_completed(struct hws *s, u64 row)
{
	struct sim_task *task = &s->tasks[s->trace->task[row]];
	u32 child;

	if (--task->remaining == 0 && task->exits)
		sim_task_exit(s, s->trace->task[row]);
	for (child = s->first_child ? s->first_child[row] : NO_ROW; child != NO_ROW;
	     child = s->next_sibling[child])
		sim_schedule(s, sim_after(s->now, (u64)s->trace->delay_ns[child]), child, NULL);
}
