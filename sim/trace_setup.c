// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Set-up of a trace, or of one that comes in pieces: its rows are checked, and told who follows whom. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/trace.h"

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
	if (t->op[i] == HWS_FLUSH) {
		if (t->sector[i] || t->sectors[i])
			return sim_fail(s, -ERANGE, "row %llu: a flush has no sectors",
					(unsigned long long)i);
	} else if (!t->sectors[i] || t->sector[i] >= s->drive->sectors ||
		   t->sectors[i] > s->drive->sectors - t->sector[i]) {
		return sim_fail(s, -ERANGE,
				"row %llu: sectors %llu+%u do not fit on a drive of %llu sectors",
				(unsigned long long)i, (unsigned long long)t->sector[i],
				t->sectors[i], (unsigned long long)s->drive->sectors);
	}
	if (t->parent &&
	    (t->parent[i] >= (int64_t)t->n || t->parent[i] == (int64_t)i || t->parent[i] < -1))
		return sim_fail(s, -EINVAL, "row %llu: invalid parent %lld", (unsigned long long)i,
				(long long)t->parent[i]);
	if (t->after && (t->after[i] < -1 || t->after[i] >= (int64_t)i))
		return sim_fail(s, -EINVAL, "row %llu: invalid predecessor %lld",
				(unsigned long long)i, (long long)t->after[i]);
	if ((!t->parent || t->parent[i] < 0 ? t->time_ns[i] : t->delay_ns[i]) < 0 ||
	    (t->flags[i] & HWS_PACED && t->time_ns[i] < 0))
		return sim_fail(s, -EINVAL, "row %llu: negative time", (unsigned long long)i);
	if (t->op[i] > HWS_FLUSH)
		return sim_fail(s, -EINVAL, "row %llu: no operation %u", (unsigned long long)i,
				t->op[i]);
	if (t->flags[i] &
	    ~(HW_RQ_SYNC | HW_RQ_META | HW_RQ_PRIO | HWS_PACED | HWS_DRIFTS | HWS_NEXT))
		return sim_fail(s, -EINVAL, "row %llu: unknown flags %u", (unsigned long long)i,
				t->flags[i]);
	if (t->flags[i] & HWS_NEXT && (!t->parent || t->parent[i] < 0))
		return sim_fail(s, -EINVAL, "row %llu: nothing goes before it",
				(unsigned long long)i);
	if (t->apart_ns && t->apart_ns[i] < 0)
		return sim_fail(s, -EINVAL, "row %llu: negative time", (unsigned long long)i);
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
	u32 *first;

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
	if (roots < t->n && sim_has_tags(s)) {
		trace->lines = sim_alloc(s, s->nr_tasks * sizeof(*trace->lines));
		for (i = 0; i < s->nr_tasks; i++)
			trace->lines[i].first = NO_ROW;
		trace->behind = rows_of(s, t->n);
		trace->due_ns = sim_alloc(s, t->n * sizeof(*trace->due_ns));
	}
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
		first = t->flags[i] & HWS_NEXT ? &trace->next_row[t->task[i]] :
						 &trace->first_child[t->parent[i]];
		trace->next_sibling[i] = *first;
		*first = (u32)i;
	}
	if (!in_order)
		qsort_r(trace->roots, trace->nr_roots, sizeof(*trace->roots), compare_roots,
			(void *)t->time_ns);
	return 0;
}

static int no_load_yet(struct hws *s)
{
	if (s->started || s->load)
		return sim_fail(s, -EBUSY,
				"a run accepts one trace or jobs, only before it starts");
	return s->drive ? 0 : sim_fail(s, -EINVAL, "no drive");
}

static struct sim_trace *trace_new(struct hws *s)
{
	struct sim_trace *t = sim_alloc(s, sizeof(*t));
	u32 task;

	t->source.ops = &sim_trace_ops;
	t->first_line = NO_ROW;
	t->free_kept = NO_ROW;
	t->last_ns = -1;
	t->remaining = sim_alloc(s, s->nr_tasks * sizeof(*t->remaining));
	t->late_ns = sim_alloc(s, s->nr_tasks * sizeof(*t->late_ns));
	t->free_ns = sim_alloc(s, s->nr_tasks * sizeof(*t->free_ns));
	t->next_row = rows_of(s, s->nr_tasks);
	for (task = 0; task < s->nr_tasks; task++)
		s->tasks[task].source = &t->source;
	return t;
}

int sim_add_trace(struct hws *s, const struct hws_trace *trace)
{
	struct sim_trace *t;
	u64 i;
	int ret = no_load_yet(s);

	if (ret)
		return ret;
	if (trace->n >= NO_ROW)
		return sim_fail(s, -E2BIG, "%llu rows: a trace has fewer than 2^32",
				(unsigned long long)trace->n);
	for (i = 0; i < trace->n; i++) {
		ret = check_row(s, trace, i);
		if (ret)
			return ret;
	}
	t = trace_new(s);
	t->given = *trace;
	if (trace->apart_ns)
		t->has_slot = sim_alloc(s, trace->n + 1);
	ret = link_rows(s, t);
	if (ret)
		return ret;
	sim_rows_of_trace(s, &t->given);
	sim_look_ahead(s, &t->source);
	s->load = &t->source;
	sim_host_trace(s, t->given.n);
	sim_throttle_init(s);
	return 0;
}

int sim_add_pieces(struct hws *s, const uint64_t *ios)
{
	struct sim_trace *t;
	int ret = no_load_yet(s);

	if (ret)
		return ret;
	if (s->opt.record)
		return sim_fail(s, -EINVAL, "a trace in pieces keeps no row per I/O");
	t = trace_new(s);
	t->in_pieces = true;
	if (s->nr_tasks)
		memcpy(t->remaining, ios, s->nr_tasks * sizeof(*ios));
	sim_look_ahead(s, &t->source);
	s->load = &t->source;
	s->pieces = t;
	sim_host_trace(s, 0);
	sim_throttle_init(s);
	return 0;
}

int sim_feed(struct hws *s, const struct hws_trace *piece)
{
	struct sim_trace *t = s->pieces;
	int64_t before;
	u64 i;
	int ret;

	if (!t || !s->hungry)
		return sim_fail(s, -EBUSY, "the run wants no piece of a trace now");
	if (piece->parent || piece->delay_ns || piece->after || piece->until_ns || piece->apart_ns)
		return sim_fail(s, -EINVAL, "rows of a piece do not follow each other");
	before = t->last_ns;
	for (i = 0; i < piece->n; i++) {
		ret = check_row(s, piece, i);
		if (ret)
			return ret;
		if (piece->time_ns[i] < before || (!i && piece->time_ns[i] == before))
			return sim_fail(s, -EINVAL, "row %llu: comes before another piece's",
					(unsigned long long)i);
		before = piece->time_ns[i];
	}
	t->first += t->given.n;
	t->given = *piece;
	t->next_root = 0;
	t->nr_roots = piece->n;
	t->last_ns = before;
	t->ended = !piece->n;
	s->hungry = false;
	sim_look_ahead(s, &t->source);
	return 0;
}

void sim_pieces_free(struct hws *s)
{
	if (s->pieces)
		free(s->pieces->kept);
}
