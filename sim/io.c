// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An I/O of a source: at its issue it is cut into pieces that a request can hold, and when the last
 * of them has been served its source is told.
 */
#include "sim/internal.h"

void sim_issue(struct hws *s, u32 task, const struct hw_bio *what, u64 row, u64 fixed_ns,
	       void *cookie)
{
	struct sim_io *io = sim_io_new(s);
	u64 sector = what->sector;
	u64 since_ns = what->now_ns ? what->now_ns : s->now;
	u32 left = what->sectors;

	io->row = row;
	io->task = task;
	io->fixed_ns = fixed_ns;
	io->cookie = cookie;
	io->pieces = (u32)(((u64)left + s->opt.max_sectors - 1) / s->opt.max_sectors);
	s->issued++;
	if (what->op == HW_READ)
		sim_wbt_read(s);
	sim_row_issue(s, row, task, what, since_ns);
	sim_tally_issue(s, io, what, since_ns);
	while (left) {
		struct sim_piece *p = sim_piece_new(s);

		p->io = io;
		p->throttled = false;
		p->bio = *what;
		p->bio.sector = sector;
		p->bio.sectors = min(left, s->opt.max_sectors);
		p->bio.task = sim_task_of(s, task);
		if (!p->bio.group)
			p->bio.group = sim_group_of(s, s->tasks[task].group);
		p->bio.cpu = (u16)sim_core_of(s, task, row);
		sector += p->bio.sectors;
		left -= p->bio.sectors;
		sim_submit_piece(s, p);
	}
}

void sim_io_end(struct hws *s, struct sim_io *io)
{
	s->completed++;
	s->last_done_ns = s->now;
	sim_row_complete(s, io->row);
	sim_tally_complete(s, io);
	sim_io_free(s, io);
}

static void io_done(struct hws *s, struct sim_io *io)
{
	struct sim_source *source = s->tasks[io->task].source;
	void *cookie = io->cookie;

	bool at_once = likely(!s->host && !s->opt.one_processor) || !source->ops->keeps;

	if (at_once || !source->ops->keeps(s, source, io))
		sim_io_end(s, io);
	source->ops->done(s, source, cookie);
}

void sim_request_done(struct hws *s, struct sim_request *r)
{
	struct sim_piece *p = r->pieces;
	struct hw_request *rq = &r->rq;
	u32 sectors = rq->sectors, core = rq->cpu;

	sim_host_completed(s, core);
	sim_log(s, EV_COMPLETE, rq->id, rq->task->id, rq->op, rq->sector, rq->sectors);
	hw_complete(s->q, rq, s->now);
	sim_log_waits(s);
	sim_wbt_done(s, r);
	if (r->throttled)
		sim_wbt_put(s);
	sim_request_free(s, r);
	while (p) {
		struct sim_piece *next = p->next;
		struct sim_io *io = p->io;

		sim_piece_free(s, p);
		if (--io->pieces == 0)
			io_done(s, io);
		p = next;
	}
	sim_task_reap(s);
	sim_request_freed(s, core, sectors);
}
