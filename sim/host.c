// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The processors of the host, and the lock of its scheduler.
 *
 * A process has its core (processor.c) for what it does before an I/O; then it waits for the lock,
 * first come, first served, spinning on its core. A completion is handled on the core that issued
 * the I/O, at once, and takes its time from what runs there. A process that waited for it goes on
 * when it gets its core; one that runs finds the I/O when it looks.
 *
 * How long the lock is held depends on who had it: what it guards lies in the caches of that core.
 * Where several wait, those who spin disturb the one who has it.
 *
 * Of a trace it is known when its processes issued I/Os, and not what they did before. What an I/O
 * takes of its process is a part of its think time. So rows go through lines, one a core, in which
 * each has the core and the lock for its time; where the cores keep up, rows come as recorded.
 */
#include <stdlib.h>

#include "sim/internal.h"

#define FEW_PROCESSES 4u /* of a core: their state is in its caches */
#define CROWD	      3u /* so many are at a lock already: one has it, one is next, one waits */
#define NO_ROW	      U32_MAX

struct sim_lock {
	u64 free_ns;
	u64 held_ns; /* so far */
	u32 inside;  /* the one who holds it, and those who wait */
	u32 last_core;
};

/* Rows of a trace before a core: the first is being issued. */
struct row_line {
	struct sim_source source;
	struct sim_turn turn;
	u32 first, last;
	bool locked; /* its first row has or waits for the lock */
};

struct sim_host {
	u32 *processes; /* by core */
	struct sim_lock *lock;
	struct row_line *line; /* by core; NULL: no trace */
	u32 *behind;	       /* the row behind a row */
	u32 *sectors;	       /* of a row in line */
	u64 *ready_ns;	       /* when it would have been ready, had it not been in line */
	u64 room;	       /* of these three, of a trace in pieces */
};

void sim_host_init(struct hws *s)
{
	if (!s->opt.cores)
		return;
	s->host = sim_alloc(s, sizeof(*s->host));
	s->cores = sim_alloc(s, s->opt.cores * sizeof(*s->cores));
	s->host->processes = sim_alloc(s, s->opt.cores * sizeof(*s->host->processes));
}

/* A drive that takes many commands has a queue for each core (NVMe), unless it says how many. */
#define MANY_COMMANDS 64u

void sim_host_start(struct hws *s)
{
	u32 queues = s->drive_queues;

	if (!s->host)
		return;
	if (queues <= 1)
		queues = s->drive->rotational || s->drive->depth < MANY_COMMANDS ? 1 : s->opt.cores;
	s->queues = min(queues, s->opt.cores);
	s->host->lock = sim_alloc(s, s->queues * sizeof(*s->host->lock));
}

static struct sim_lock *lock_of(const struct hws *s, u32 core)
{
	return &s->host->lock[s->opt.lock_by_queue ? sim_queue_of(s, core) : 0];
}

static u64 holding(const struct hws *s, const struct sim_lock *l, u32 core)
{
	if (l->inside >= CROWD)
		return s->opt.lock_crowded_ns;
	return l->inside || l->last_core != core ? s->opt.lock_shared_ns : s->opt.lock_ns;
}

/* Takes its place before a lock; how long until it has had it. */
static u64 pass(struct hws *s, struct sim_lock *l, u32 core)
{
	u64 takes_ns = holding(s, l, core);

	l->free_ns = sim_after(max(l->free_ns, s->now), takes_ns);
	l->held_ns += takes_ns;
	l->last_core = core;
	return l->free_ns - s->now;
}

void sim_lock(struct hws *s, struct sim_turn *t)
{
	struct sim_lock *l = lock_of(s, t->core);
	u64 takes_ns = pass(s, l, t->core);

	l->inside++;
	sim_compute(s, t, takes_ns);
}

void sim_unlock(struct hws *s, u32 core)
{
	lock_of(s, core)->inside--;
}

void sim_host_submitted(struct hws *s, u32 core, u32 sectors)
{
	if (s->host)
		sim_steal(s, &s->cores[core],
			  sim_turnaround(s, sectors) + pass(s, lock_of(s, core), core));
}

void sim_host_interrupt(struct hws *s, u32 core)
{
	sim_steal(s, &s->cores[core], s->opt.complete_ns);
}

u64 sim_host_switch(const struct hws *s, u32 core)
{
	u32 processes = s->host->processes[core];
	u64 takes_ns = s->opt.switch_ns;

	for (; processes > FEW_PROCESSES; processes = (processes + 1) / 2)
		takes_ns += s->opt.switch_more_ns;
	return takes_ns;
}

void sim_host_joined(struct hws *s, u32 core)
{
	if (s->host)
		s->host->processes[core]++;
}

u64 sim_host_busy(const struct hws *s, u64 *lock_ns)
{
	u64 busy_ns = 0;
	u32 i;

	*lock_ns = 0;
	if (!s->host)
		return 0;
	for (i = 0; i < s->opt.cores; i++)
		busy_ns += s->cores[i].busy_ns;
	for (i = 0; s->host->lock && i < s->queues; i++)
		*lock_ns = max(*lock_ns, s->host->lock[i].held_ns);
	return busy_ns;
}

/* --- a trace --- */

static void begin_row(struct hws *s, struct row_line *l)
{
	l->locked = false;
	sim_compute(s, &l->turn, sim_turnaround(s, s->host->sectors[l->first]));
}

static void line_due(struct hws *s, struct sim_source *source, u64 order)
{
	struct row_line *l = container_of(source, struct row_line, source);
	u32 row = l->first;

	if (order != source->expected || !sim_computed(s, &l->turn))
		return;
	if (!l->locked) {
		l->locked = true;
		sim_lock(s, &l->turn);
		return;
	}
	sim_unlock(s, l->turn.core);
	l->first = s->host->behind[row];
	if (l->first != NO_ROW)
		begin_row(s, l);
	else
		sim_yield(s, &l->turn);
	s->load->ops->through(s, s->load, row, min(s->now, s->host->ready_ns[row]));
}

static const struct sim_source_ops line_ops = { .due = line_due };

void sim_host_trace(struct hws *s, u64 rows)
{
	struct sim_host *h = s->host;
	u32 i;

	if (!h)
		return;
	h->line = sim_alloc(s, s->opt.cores * sizeof(*h->line));
	if (rows) {
		h->behind = sim_alloc(s, rows * sizeof(*h->behind) + 1);
		h->sectors = sim_alloc(s, rows * sizeof(*h->sectors) + 1);
		h->ready_ns = sim_alloc(s, rows * sizeof(*h->ready_ns) + 1);
	}
	for (i = 0; i < s->opt.cores; i++) {
		h->line[i].source.ops = &line_ops;
		h->line[i].turn.source = &h->line[i].source;
		h->line[i].turn.core = i;
		h->line[i].first = NO_ROW;
	}
}

void sim_host_room(struct hws *s, u64 rows)
{
	struct sim_host *h = s->host;

	SIM_GROW(s, &h->room, rows, SIM_COLUMN(h->behind), SIM_COLUMN(h->sectors),
		 SIM_COLUMN(h->ready_ns));
}

void sim_host_free(struct hws *s)
{
	struct sim_host *h = s->host;

	if (!h || !h->room)
		return;
	free(h->behind);
	free(h->sectors);
	free(h->ready_ns);
}

void sim_host_line(struct hws *s, u32 row, u32 core, u32 sectors)
{
	struct sim_host *h = s->host;
	struct row_line *l = &h->line[core];

	h->behind[row] = NO_ROW;
	h->sectors[row] = sectors;
	h->ready_ns[row] = sim_after(s->now, sim_turnaround(s, sectors));
	if (l->first != NO_ROW) {
		h->behind[l->last] = row;
		l->last = row;
		return;
	}
	l->first = l->last = row;
	begin_row(s, l);
}
