// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Write-back of a trace, throttled as that of a page cache is (wbt.c): a write or discard that
 * nobody waits for needs a place before it may ask for a request, unless it joins one that there is.
 * Those of a task stand in line in their order. A place belongs to the request, until it is done or
 * part of another one.
 *
 * A trace does not say what made the flusher write. It is taken to be work in the background.
 */
#include "sim/internal.h"

/* A task that writes back, and what of its has no place yet. */
struct sim_writer {
	struct sim_wbt_waiter wbt;
	struct sim_piece *first, **tail;
	struct sim_writer *next;
};

struct sim_throttle {
	struct sim_source source;
	struct sim_writer *writers;
	bool woken;
};

static struct sim_throttle *throttle_of(struct sim_source *source)
{
	return container_of(source, struct sim_throttle, source);
}

static struct sim_writer *writer_of(struct hws *s, struct sim_task *t)
{
	struct sim_writer *w = t->writer;

	if (w)
		return w;
	w = t->writer = sim_alloc(s, sizeof(*w));
	w->wbt.background = true;
	w->tail = &w->first;
	w->next = s->throttle->writers;
	s->throttle->writers = w;
	return w;
}

/* Has it to wait for a place? Then it stands in line. */
static bool throttled(struct hws *s, struct sim_piece *p)
{
	struct sim_writer *w;

	if (!s->throttle || p->bio.op == HW_READ || p->bio.flags & HW_RQ_SYNC)
		return false;
	w = writer_of(s, &s->tasks[p->io->task]);
	p->throttled = !w->first && sim_wbt_get(s, &w->wbt);
	if (p->throttled)
		return false;
	s->tasks[p->io->task].nr_waiting++;
	*w->tail = p;
	w->tail = &p->next;
	return true;
}

void sim_submit_piece(struct hws *s, struct sim_piece *p)
{
	if (!sim_merge_piece(s, p) && !throttled(s, p))
		sim_request_piece(s, p);
}

/* Whatever has a place now, and whatever needs none any more. */
static void go_on(struct hws *s, struct sim_writer *w)
{
	struct sim_piece *p;

	while ((p = w->first)) {
		w->first = p->next;
		p->next = NULL;
		if (!w->first)
			w->tail = &w->first;
		if (!sim_merge_piece(s, p)) {
			if (!sim_wbt_get(s, &w->wbt)) {
				p->next = w->first;
				if (!w->first)
					w->tail = &p->next;
				w->first = p;
				return;
			}
			p->throttled = true;
			sim_request_piece(s, p);
		}
		sim_waited(s, p->io->task);
	}
	if (w->wbt.may) {
		w->wbt.may = false;
		sim_wbt_put(s);
	}
}

static void throttle_due(struct hws *s, struct sim_source *source, u64 order)
{
	struct sim_throttle *all = throttle_of(source);
	struct sim_writer *w;

	(void)order;
	all->woken = false;
	for (w = all->writers; w; w = w->next)
		if (w->wbt.may)
			go_on(s, w);
}

/* As everything that issues, not before this instant's arrivals. */
static void throttle_woken(struct hws *s, struct sim_source *source)
{
	struct sim_throttle *all = throttle_of(source);

	if (all->woken)
		return;
	all->woken = true;
	sim_schedule(s, s->now, sim_order(s), source);
}

static const struct sim_source_ops throttle_ops = {
	.due = throttle_due,
	.wake = throttle_woken,
};

void sim_throttle_init(struct hws *s)
{
	struct sim_throttle *all;

	if (!s->opt.wbt_depth)
		return;
	all = sim_alloc(s, sizeof(*all));
	all->source.ops = &throttle_ops;
	sim_wbt_init(s, &all->source);
	if (s->wbt)
		s->throttle = all;
}
