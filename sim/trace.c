// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Replay: a source whose I/Os follow each other as a forest says. The roots, which come by
 * themselves, are its list; each other row is scheduled when its parent has completed.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/internal.h"

#define NO_ROW U32_MAX

enum row_state { ROW_WAITING, ROW_DUE, ROW_ISSUED };

struct sim_trace {
	struct sim_source source;
	struct hws_trace given;
	/* Rows by number, NO_ROW ends; NULL where there are none. */
	u32 *first_child, *next_sibling; /* rows that follow a row */
	u32 *follower;			 /* the row that may not be issued before a row */
	u8 *state;			 /* enum row_state, if some rows have followers */
	u32 *roots; /* rows without parent, by time; NULL: all rows, as they stand */
	u64 nr_roots, next_root;
	u64 *remaining; /* by task: I/Os not completed */
};

static struct sim_trace *trace_of(struct sim_source *source)
{
	return container_of(source, struct sim_trace, source);
}

/* --- the run --- */

static bool next_root(struct hws *s, struct sim_source *source, u64 *time_ns, u64 *row)
{
	struct sim_trace *t = trace_of(source);

	if (t->next_root == t->nr_roots)
		return false;
	*row = t->roots ? t->roots[t->next_root] : t->next_root;
	*time_ns = (u64)t->given.time_ns[*row];
	t->next_root++;
	return true;
}

static void issue(struct hws *s, struct sim_trace *t, u64 row)
{
	const struct hws_trace *g = &t->given;
	struct hw_bio what = {
		.sector = g->sector[row],
		.sectors = g->sectors[row],
		.op = g->op[row],
		.flags = g->flags[row] | (g->op[row] == HW_READ ? HW_RQ_SYNC : 0),
		.ioprio = g->ioprio && g->ioprio[row] ? g->ioprio[row] :
							s->tasks[g->task[row]].ioprio,
	};

	if (t->state)
		t->state[row] = ROW_ISSUED;
	sim_issue(s, g->task[row], &what, row, g->service_ns ? (u64)g->service_ns[row] : 0,
		  (void *)(uintptr_t)row);
}

static void row_due(struct hws *s, struct sim_source *source, u64 row)
{
	struct sim_trace *t = trace_of(source);
	const int64_t *after = t->given.after;

	if (t->given.until_ns && (int64_t)s->now >= t->given.until_ns[row])
		return;
	if (!after) {
		issue(s, t, row);
		return;
	}
	t->state[row] = ROW_DUE;
	if (after[row] >= 0 && t->state[after[row]] != ROW_ISSUED)
		return;
	for (; row != NO_ROW && t->state[row] == ROW_DUE; row = t->follower[row])
		issue(s, t, row);
}

static void row_done(struct hws *s, struct sim_source *source, void *cookie)
{
	struct sim_trace *t = trace_of(source);
	u64 row = (uintptr_t)cookie;
	u32 task = t->given.task[row], child;

	if (--t->remaining[task] == 0 && s->tasks[task].exits)
		sim_task_exit(s, task);
	for (child = t->first_child ? t->first_child[row] : NO_ROW; child != NO_ROW;
	     child = t->next_sibling[child])
		sim_schedule(s, sim_after(s->now, (u64)t->given.delay_ns[child]), child, source);
}

static int trace_over(struct hws *s, struct sim_source *source)
{
	const struct hws_trace *given = &trace_of(source)->given;
	u64 wanted = given->n;

	if (given->until_ns)
		s->left_out = wanted - s->issued;
	if (s->issued + s->left_out == wanted)
		return 0;
	return sim_fail(s, -EPROTO, "%llu of %llu I/Os were never issued: they wait for each other",
			(unsigned long long)(wanted - s->issued), (unsigned long long)wanted);
}

static const struct sim_source_ops trace_ops = {
	.next = next_root,
	.due = row_due,
	.done = row_done,
	.over = trace_over,
};

/* --- set-up --- */

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
		return sim_fail(s, -EINVAL, "row %llu: invalid parent %lld", (unsigned long long)i,
				(long long)t->parent[i]);
	if (t->after && (t->after[i] < -1 || t->after[i] >= (int64_t)i))
		return sim_fail(s, -EINVAL, "row %llu: invalid predecessor %lld",
				(unsigned long long)i, (long long)t->after[i]);
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
static int link_rows(struct hws *s, struct sim_trace *trace)
{
	const struct hws_trace *t = &trace->given;
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
		trace->first_child = rows_of(s, t->n);
		trace->next_sibling = rows_of(s, t->n);
	}
	if (t->after) {
		trace->follower = rows_of(s, t->n);
		trace->state = sim_alloc(s, t->n + 1);
	}
	if (roots < t->n || !in_order)
		trace->roots = rows_of(s, roots);
	trace->remaining = sim_alloc(s, s->nr_tasks * sizeof(*trace->remaining));
	/* Backwards, so that the children of a row stand in the order of the trace. */
	for (i = t->n; i-- > 0;) {
		trace->remaining[t->task[i]]++;
		if (t->after && t->after[i] >= 0) {
			if (trace->follower[t->after[i]] != NO_ROW)
				return sim_fail(
					s, -EINVAL,
					"row %llu: its predecessor %lld already has a follower",
					(unsigned long long)i, (long long)t->after[i]);
			trace->follower[t->after[i]] = (u32)i;
		}
		if (t->parent[i] < 0) {
			trace->nr_roots++;
			if (trace->roots)
				trace->roots[roots - trace->nr_roots] = (u32)i;
			continue;
		}
		trace->next_sibling[i] = trace->first_child[t->parent[i]];
		trace->first_child[t->parent[i]] = (u32)i;
	}
	if (!in_order)
		qsort_r(trace->roots, trace->nr_roots, sizeof(*trace->roots), compare_roots,
			(void *)t->time_ns);
	return 0;
}

int sim_add_trace(struct hws *s, const struct hws_trace *trace)
{
	struct sim_trace *t;
	u64 i;
	u32 task;
	int ret;

	if (s->started || s->load)
		return sim_fail(s, -EBUSY,
				"a run accepts one trace or jobs, only before it starts");
	if (!s->drive)
		return sim_fail(s, -EINVAL, "no drive");
	if (trace->n >= NO_ROW)
		return sim_fail(s, -E2BIG, "%llu rows: a trace has fewer than 2^32",
				(unsigned long long)trace->n);
	for (i = 0; i < trace->n; i++) {
		ret = check_row(s, trace, i);
		if (ret)
			return ret;
	}
	t = sim_alloc(s, sizeof(*t));
	t->given = *trace;
	ret = link_rows(s, t);
	if (ret)
		return ret;
	t->source.ops = &trace_ops;
	for (task = 0; task < s->nr_tasks; task++)
		s->tasks[task].source = &t->source;
	sim_rows_of_trace(s, &t->given);
	sim_look_ahead(s, &t->source);
	s->load = &t->source;
	return 0;
}
