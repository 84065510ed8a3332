// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Replay: a source whose I/Os follow each other as a forest says. The roots, which come by
 * themselves, are its list; each other row is scheduled when its parent has completed. A row may be
 * a flush of the drive's own cache.
 *
 * A task whose I/O waits for a tag is in the kernel. What else of its is due stands in line, and
 * follows when the I/O has a tag, after the time that was between the two. Writes that nobody waits
 * for are written back in batches, and may all wait at once.
 *
 * A trace may come in pieces, of which one is there at a time. Then rows do not follow each other,
 * and what is needed of a row after it was issued is kept: its task as the cookie of its I/O, and
 * all of it while it waits for a core.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/internal.h"

#define NO_ROW U32_MAX

enum row_state { ROW_WAITING, ROW_DUE, ROW_ISSUED };

/* A flush that is under way, or free. */
struct row_flush {
	struct sim_flush_wait wait;
	u64 row, issue_ns;
	struct row_flush *next;
};

/* Rows of a task that are due while it waits in the kernel. */
struct line {
	u32 first, last;
	u64 due_ns;    /* when the row was due that went before them */
	bool released; /* the first is scheduled: its turn has come */
	bool listed;   /* among the tasks with lines, of which ... */
	u32 next;      /* ... this is the next */
};

/* What a row asks for. */
struct row_io {
	struct hw_bio bio;
	u64 fixed_ns;
	u32 task;
	u32 next_free; /* among those that are kept */
};

struct sim_trace {
	struct sim_source source;
	struct hws_trace given; /* or the piece that is there */
	/* Rows by number, NO_ROW ends; NULL where there are none. */
	u32 *first_child, *next_sibling; /* rows that follow a row */
	u32 *follower;			 /* the row that may not be issued before a row */
	u8 *state;			 /* enum row_state, if some rows have followers */
	u32 *roots; /* rows without parent, by time; NULL: all rows, as they stand */
	u64 nr_roots, next_root;
	u64 *remaining; /* by task: I/Os not completed */
	u64 *late_ns;	/* by task: behind the dates of rows that drift */
	u64 *free_ns;	/* by task: it has no processor time for another row before */
	u8 *has_slot;	/* by row: it is due when its task has time for it; NULL: all have */
	struct row_flush *flushes, *free_flushes;
	struct line *lines; /* by task; NULL: tags do not matter, or rows do not follow each other */
	u32 first_line;
	u32 *behind; /* the row that stands in line behind a row */
	u64 *due_ns; /* of rows in line */

	bool in_pieces, ended;
	u64 first;	     /* the number of the first row of the piece */
	int64_t last_ns;     /* of the piece before; -1: there was none */
	struct row_io *kept; /* rows before their cores, by the number that stands for them there */
	u64 nr_kept, room_kept;
	u32 free_kept;
};

static struct sim_trace *trace_of(struct sim_source *source)
{
	return container_of(source, struct sim_trace, source);
}

/* --- the run --- */

static bool next_root(struct hws *s, struct sim_source *source, u64 *time_ns, u64 *row)
{
	struct sim_trace *t = trace_of(source);

	if (t->next_root == t->nr_roots) {
		s->hungry = t->in_pieces && !t->ended;
		return false;
	}
	*row = t->roots ? t->roots[t->next_root] : t->next_root;
	*time_ns = (u64)t->given.time_ns[*row];
	*row += t->first;
	t->next_root++;
	return true;
}

static void row_done(struct hws *s, struct sim_source *source, void *cookie);

/* What tells a row when it is done. */
static void *cookie_of(const struct sim_trace *t, u64 row, u32 task)
{
	return (void *)(uintptr_t)(t->in_pieces ? task : row);
}

static void flush_done(struct hws *s, struct sim_trace *t, u64 row, u32 task, u64 issue_ns)
{
	s->last_done_ns = s->now;
	sim_row_complete(s, row);
	sim_tally_sync(s, task, issue_ns);
	row_done(s, &t->source, cookie_of(t, row, task));
}

static void issue_flush(struct hws *s, struct sim_trace *t, u64 row)
{
	struct row_flush *f = t->free_flushes;
	u32 task = t->given.task[row - t->first];

	s->flushes++;
	sim_row_issue(s, row, task, NULL, s->now);
	if (!s->drive->write_cache) {
		flush_done(s, t, row, task, s->now);
		return;
	}
	if (f)
		t->free_flushes = f->next;
	else
		f = sim_alloc(s, sizeof(*f));
	*f = (struct row_flush){
		.wait.task = task, .row = row, .issue_ns = s->now, .next = t->flushes
	};
	t->flushes = f;
	sim_flush(s, &f->wait);
}

/* Flushes that have been made. */
static void end_flushes(struct hws *s, struct sim_trace *t)
{
	struct row_flush **at = &t->flushes, *f;

	while ((f = *at)) {
		if (f->wait.waits) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		f->next = t->free_flushes;
		t->free_flushes = f;
		flush_done(s, t, f->row, f->wait.task, f->issue_ns);
	}
}

static struct row_io row_of(struct hws *s, const struct sim_trace *t, u64 row)
{
	const struct hws_trace *g = &t->given;
	u64 at = row - t->first;

	return (struct row_io){
		.task = g->task[at],
		.fixed_ns = g->service_ns ? (u64)g->service_ns[at] : 0,
		.bio = { .sector = g->sector[at],
			 .sectors = g->sectors[at],
			 .op = g->op[at],
			 .flags = (g->flags[at] & ~(HWS_PACED | HWS_DRIFTS)) |
				  (g->op[at] == HW_READ ? HW_RQ_SYNC : 0),
			 .ioprio = g->ioprio && g->ioprio[at] ? g->ioprio[at] :
								s->tasks[g->task[at]].ioprio },
	};
}

static void issue_io(struct hws *s, struct sim_trace *t, struct row_io *io, u64 row, u64 since_ns)
{
	io->bio.now_ns = since_ns;
	sim_issue(s, io->task, &io->bio, row, io->fixed_ns, cookie_of(t, row, io->task));
}

/* Keeps a row of a piece; the number that stands for it. */
static u32 keep_row(struct hws *s, struct sim_trace *t, u64 row)
{
	u32 number = t->free_kept;

	if (number != NO_ROW) {
		t->free_kept = t->kept[number].next_free;
	} else {
		SIM_GROW(s, &t->room_kept, t->nr_kept + 1, SIM_COLUMN(t->kept));
		number = (u32)t->nr_kept++;
		sim_host_room(s, t->nr_kept);
	}
	t->kept[number] = row_of(s, t, row);
	return number;
}

static void row_through(struct hws *s, struct sim_source *source, u64 row, u64 since_ns)
{
	struct sim_trace *t = trace_of(source);
	struct row_io io;

	if (!t->in_pieces) {
		io = row_of(s, t, row);
	} else {
		io = t->kept[row];
		t->kept[row].next_free = t->free_kept;
		t->free_kept = (u32)row;
	}
	issue_io(s, t, &io, row, since_ns);
}

/*
 * The date of a row that keeps a pace. A task that computes on what it reads has lost the time for
 * which it had to wait; one that sleeps until a date has not.
 */
static u64 date_ns(const struct sim_trace *t, u64 row)
{
	u64 late_ns = t->given.flags[row] & HWS_DRIFTS ? t->late_ns[t->given.task[row]] : 0;

	return sim_after((u64)t->given.time_ns[row], late_ns);
}

static void issue(struct hws *s, struct sim_trace *t, u64 row)
{
	u64 at = row - t->first;
	struct row_io io;
	u32 core;

	if (t->given.flags[at] & HWS_DRIFTS && s->now > date_ns(t, at))
		t->late_ns[t->given.task[at]] += s->now - date_ns(t, at);
	if (t->state)
		t->state[row] = ROW_ISSUED;
	if (t->given.op[at] == HWS_FLUSH) {
		issue_flush(s, t, row);
		return;
	}
	if (!s->host) {
		io = row_of(s, t, row);
		issue_io(s, t, &io, row, s->now);
		return;
	}
	core = sim_core_of(s, t->given.task[at], row);
	sim_host_line(s, t->in_pieces ? keep_row(s, t, row) : (u32)row, core, t->given.sectors[at]);
}

/* Has the turn of a row come that stood in line? It leaves it. */
static bool has_turn(struct sim_trace *t, u64 row)
{
	struct line *l = t->lines ? &t->lines[t->given.task[row]] : NULL;

	if (!l || !l->released || l->first != row)
		return false;
	l->released = false;
	l->first = t->behind[row];
	l->due_ns = t->due_ns[row];
	return true;
}

/* Is its task in the kernel? It gets in line. */
static bool gets_in_line(struct hws *s, struct sim_trace *t, u64 row)
{
	struct line *l;
	u32 task;

	if (!t->lines)
		return false;
	task = t->given.task[row];
	l = &t->lines[task];
	if (t->given.op[row] == HW_WRITE && !(t->given.flags[row] & HW_RQ_SYNC))
		return false;
	if (l->first == NO_ROW && !sim_task_stalls(s, task)) {
		l->due_ns = s->now;
		return false;
	}
	t->behind[row] = NO_ROW;
	t->due_ns[row] = s->now;
	if (l->first != NO_ROW)
		t->behind[l->last] = (u32)row;
	else
		l->first = (u32)row;
	l->last = (u32)row;
	if (!l->listed) {
		l->listed = true;
		l->next = t->first_line;
		t->first_line = task;
	}
	return true;
}

/* Whoever is out of the kernel goes on. */
static void move_lines(struct hws *s, struct sim_trace *t)
{
	u32 *at = &t->first_line;

	while (*at != NO_ROW) {
		struct line *l = &t->lines[*at];
		u64 row = l->first, pause_ns;

		if (row == NO_ROW) {
			l->listed = false;
			*at = l->next;
			continue;
		}
		if (!l->released && !sim_task_stalls(s, *at)) {
			pause_ns = min(t->due_ns[row] - l->due_ns, (u64)t->given.delay_ns[row]);
			l->released = true;
			sim_schedule(s, sim_after(s->now, pause_ns), row, &t->source);
		}
		at = &l->next;
	}
}

/* Its task is busy with another row: it is due again when the task has time for it. */
static bool is_too_soon(struct hws *s, struct sim_trace *t, u64 row)
{
	u64 *free_ns, now = s->now;
	bool waits;

	/* A piece has none, nor a row of that number. */
	if (!t->has_slot || t->has_slot[row])
		return false;
	free_ns = &t->free_ns[t->given.task[row]];
	waits = *free_ns > now;
	t->has_slot[row] = 1;
	if (waits)
		sim_schedule(s, *free_ns, row, &t->source);
	*free_ns = sim_after(max(*free_ns, now), (u64)t->given.apart_ns[row]);
	return waits;
}

/* A row, and those that had to wait for it. */
static void issue_in_order(struct hws *s, struct sim_trace *t, u64 row, bool turn)
{
	const int64_t *after = t->given.after;

	if (after && !turn) {
		t->state[row] = ROW_DUE;
		if (after[row] >= 0 && t->state[after[row]] != ROW_ISSUED)
			return;
	}
	while (turn || (!is_too_soon(s, t, row) && !gets_in_line(s, t, row))) {
		turn = false;
		issue(s, t, row);
		if (!after)
			return;
		row = t->follower[row];
		if (row == NO_ROW || t->state[row] != ROW_DUE)
			return;
	}
}

static void row_due(struct hws *s, struct sim_source *source, u64 row)
{
	struct sim_trace *t = trace_of(source);
	bool turn = has_turn(t, row);

	if (!t->given.until_ns || (int64_t)s->now < t->given.until_ns[row])
		issue_in_order(s, t, row, turn);
	if (turn)
		move_lines(s, t);
}

static void row_done(struct hws *s, struct sim_source *source, void *cookie)
{
	struct sim_trace *t = trace_of(source);
	u64 row = (uintptr_t)cookie;
	u32 task = t->in_pieces ? (u32)row : t->given.task[row], child;

	if (--t->remaining[task] == 0 && s->tasks[task].exits)
		sim_task_exit(s, task);
	for (child = t->first_child ? t->first_child[row] : NO_ROW; child != NO_ROW;
	     child = t->next_sibling[child]) {
		u64 delay_ns = (u64)t->given.delay_ns[child], due_ns;

		sim_think(s, delay_ns);
		if (unlikely(s->host))
			delay_ns -= min(delay_ns, (u64)s->opt.replayed_ns);
		due_ns = sim_after(s->now, delay_ns);
		if (t->given.flags[child] & HWS_PACED)
			due_ns = max(due_ns, date_ns(t, child));
		sim_schedule(s, due_ns, child, source);
	}
}

static void woken(struct hws *s, struct sim_source *source)
{
	end_flushes(s, trace_of(source));
	if (trace_of(source)->lines)
		move_lines(s, trace_of(source));
}

static int trace_over(struct hws *s, struct sim_source *source)
{
	const struct sim_trace *t = trace_of(source);
	u64 wanted = t->first + t->given.n, issued = s->issued + s->flushes;

	if (t->given.until_ns)
		s->left_out = wanted - issued;
	if (issued + s->left_out == wanted) {
		/* wbt may have had a look after that. */
		s->now = s->wbt ? s->last_done_ns : s->now;
		return 0;
	}
	return sim_fail(s, -EPROTO, "%llu of %llu I/Os were never issued: they wait for each other",
			(unsigned long long)(wanted - issued), (unsigned long long)wanted);
}

static const struct sim_source_ops trace_ops = {
	.next = next_root,
	.due = row_due,
	.done = row_done,
	.wake = woken,
	.over = trace_over,
	.through = row_through,
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
	if (t->flags[i] & ~(HW_RQ_SYNC | HW_RQ_META | HW_RQ_PRIO | HWS_PACED | HWS_DRIFTS))
		return sim_fail(s, -EINVAL, "row %llu: unknown flags %u", (unsigned long long)i,
				t->flags[i]);
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
		trace->next_sibling[i] = trace->first_child[t->parent[i]];
		trace->first_child[t->parent[i]] = (u32)i;
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

	t->source.ops = &trace_ops;
	t->first_line = NO_ROW;
	t->free_kept = NO_ROW;
	t->last_ns = -1;
	t->remaining = sim_alloc(s, s->nr_tasks * sizeof(*t->remaining));
	t->late_ns = sim_alloc(s, s->nr_tasks * sizeof(*t->late_ns));
	t->free_ns = sim_alloc(s, s->nr_tasks * sizeof(*t->free_ns));
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
