// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Flushes of the drive's own cache, as blk-mq makes them (block/blk-flush.c): past the scheduler,
 * before anything else that waits for the drive (or, with flush_last, behind everything), one at a
 * time; without a scheduler each has a tag. What is asked for while one is under way waits for the
 * next, which serves all that have asked.
 */
#include "job.h"

bool sim_flush_wanted(const struct hws *s)
{
	return s->flush.next && !s->flush.running;
}

void sim_flush_ready(struct hws *s, struct sim_job *j)
{
	j->flush_next = s->flush.next;
	s->flush.next = j;
}

void sim_flush(struct hws *s, struct sim_job *j)
{
	j->flushing = true;
	if (sim_flush_tag(s, j))
		sim_flush_ready(s, j);
}

void sim_flush_submit(struct hws *s)
{
	struct sim_flush *f = &s->flush;

	f->current = f->next;
	f->next = NULL;
	f->running = true;
	f->io = (struct hw_io){ .op = HW_OTHER, .host = f };
	s->drive->model->submit(s->drive, &f->io, s->now);
}

void sim_flush_done(struct hws *s)
{
	struct sim_flush *f = &s->flush;
	struct sim_job *j, *in_order = NULL;

	f->running = false;
	while ((j = f->current)) {
		f->current = j->flush_next;
		j->flush_next = in_order;
		in_order = j;
	}
	for (j = in_order; j; j = j->flush_next) {
		j->flushing = false;
		sim_job_wake(s, j);
		if (j->flush_tag < 0)
			continue;
		sim_tag_put(s->tags, j->flush_tag);
		sim_request_freed(s, 0);
	}
}
