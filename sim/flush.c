// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Flushes of the drive's own cache, as blk-mq makes them (block/blk-flush.c): past the scheduler,
 * before anything else that waits for the drive, one at a time; without a scheduler each has a tag.
 * What is asked for while one is under way waits for the next, which serves all that have asked. A
 * worker sends flushes on: what is decided on when a request is done, or a flush, comes before
 * those that are asked for then.
 */
#include "sim/internal.h"

bool sim_flush_wanted(const struct hws *s)
{
	return s->flush.waits;
}

bool sim_flush_under_way(const struct hws *s)
{
	return s->flush.current && !s->flush.waits;
}

/* The request for it is made at once; who asks from now on is of the next. */
static void begin(struct sim_flush *f, struct sim_flush_wait *newest, bool after_others)
{
	f->current = newest;
	f->waits = true;
	f->after_others = after_others;
}

void sim_flush_ready(struct hws *s, struct sim_flush_wait *w)
{
	struct sim_flush *f = &s->flush;

	if (f->current) {
		w->next = f->next;
		f->next = w;
		return;
	}
	w->next = NULL;
	begin(f, w, s->done || s->worker_ns != HW_NEVER);
}

void sim_flush_submit(struct hws *s)
{
	struct sim_flush *f = &s->flush;

	f->waits = false;
	f->io = (struct hw_io){ .op = HW_OTHER, .host = f };
	s->drive->model->submit(s->drive, &f->io, s->now);
}

void sim_flush_done(struct hws *s)
{
	struct sim_flush *f = &s->flush;
	struct sim_flush_wait *w, *in_order = NULL;
	struct sim_source *source;
	u32 queue;

	while ((w = f->current)) {
		f->current = w->next;
		w->next = in_order;
		in_order = w;
	}
	if (f->next)
		begin(f, f->next, true);
	f->next = NULL;
	for (w = in_order; w; w = w->next) {
		source = s->tasks[w->task].source;
		w->waits = false;
		source->ops->wake(s, source);
		if (w->tag < 0)
			continue;
		queue = sim_queue_of(s, s->tasks[w->task].core);
		sim_tag_put(s->tagged[queue].tags, w->tag);
		sim_wake_waiter(s, queue, 0);
	}
}
