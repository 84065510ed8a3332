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
 * A task that keeps several I/Os under way (libaio, io_uring) submits its next one when any of them
 * completes. Which one that is differs from run to run, so these rows stand in line by task.
 *
 * A trace may come in pieces, of which one is there at a time. Then rows do not follow each other,
 * and what is needed of a row after it was issued is kept: its task as the cookie of its I/O, and
 * all of it while it waits for a core.
 */
#include <errno.h>

#include "sim/trace.h"

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
			 .flags = (g->flags[at] & ~(HWS_PACED | HWS_DRIFTS | HWS_NEXT)) |
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

/* What it follows is done: it is due when its task has thought. */
static void follow(struct hws *s, struct sim_trace *t, u32 row)
{
	u64 delay_ns = (u64)t->given.delay_ns[row], due_ns;

	sim_think(s, delay_ns);
	if (unlikely(s->host))
		delay_ns -= min(delay_ns, (u64)s->opt.replayed_ns);
	due_ns = sim_after(s->now, delay_ns);
	if (t->given.flags[row] & HWS_PACED)
		due_ns = max(due_ns, date_ns(t, row));
	sim_schedule(s, due_ns, row, &t->source);
}

static void row_done(struct hws *s, struct sim_source *source, void *cookie)
{
	struct sim_trace *t = trace_of(source);
	u64 row = (uintptr_t)cookie;
	u32 task = t->in_pieces ? (u32)row : t->given.task[row], child;

	if (--t->remaining[task] == 0 && s->tasks[task].exits)
		sim_task_exit(s, task);
	for (child = t->first_child ? t->first_child[row] : NO_ROW; child != NO_ROW;
	     child = t->next_sibling[child])
		follow(s, t, child);
	child = t->next_row[task];
	if (child != NO_ROW) {
		t->next_row[task] = t->next_sibling[child];
		follow(s, t, child);
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

const struct sim_source_ops sim_trace_ops = {
	.next = next_root,
	.due = row_due,
	.done = row_done,
	.wake = woken,
	.over = trace_over,
	.through = row_through,
};
