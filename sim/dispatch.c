// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * To the drive: what the policy decides on, and flushes past it, for as long as the drive takes any;
 * with the processor time that lies between a decision and the drive.
 */
#include "sim/internal.h"

static void to_drive(struct hws *s, struct sim_request *r, u64 delay_ns)
{
	u64 page_ns = s->opt.dispatch_page_ns +
		      (r->rq.op == HW_WRITE ? s->opt.dispatch_write_page_ns : 0);
	u64 copy_ns = page_ns * SIM_PAGES(r->rq.sectors);
	u64 takes_ns = delay_ns + copy_ns + s->opt.meanwhile_ns +
		       s->opt.meanwhile_page_ns * SIM_PAGES(r->rq.sectors);
	struct hw_request *rq = &r->rq;

	r->io.sector = rq->sector;
	r->io.sectors = rq->sectors;
	r->io.op = rq->op;
	r->io.flags = rq->flags;
	if (unlikely(s->queues > 1))
		r->io.queue = sim_queue_of(s, rq->cpu);
	r->io.fixed_ns = r->pieces->io->fixed_ns;
	r->io.host = r;
	rq->dispatch_ns = s->now;
	s->in_drive++;
	s->requests++;
	sim_wbt_issued(s, r);
	sim_log_dispatch(s, r);
	if (takes_ns)
		sim_interrupt(s, takes_ns);
	if (!delay_ns && !copy_ns) {
		s->drive->model->submit(s->drive, &r->io, s->now);
		return;
	}
	s->sent_ns = sim_after(max(s->sent_ns, sim_after(s->now, delay_ns)), copy_ns);
	r->arrives_ns = s->sent_ns;
	r->next = NULL;
	*s->sent_tail = r;
	s->sent_tail = &r->next;
}

void sim_submit_sent(struct hws *s)
{
	while (s->sent && s->sent->arrives_ns <= s->now) {
		struct sim_request *r = s->sent;

		s->sent = r->next;
		if (!s->sent)
			s->sent_tail = &s->sent;
		s->drive->model->submit(s->drive, &r->io, s->now);
	}
}

static bool flush(struct hws *s)
{
	if (s->in_drive >= s->depth || !sim_flush_wanted(s) || s->flush.after_others)
		return false;
	s->in_drive++;
	sim_flush_submit(s);
	return true;
}

/* Our modules decide when their own requests leave room in the drive; a flush goes past them. */
static bool decides_ahead(const struct hws *s)
{
	if (s->policy->flags & HW_POLICY_MODEL)
		return s->opt.pull_ahead;
	return sim_flush_under_way(s) && s->q->nr_in_flight < s->depth;
}

void sim_dispatch(struct hws *s, u64 delay_ns)
{
	bool held = s->held;

	while (s->in_drive < s->depth || (!held && decides_ahead(s))) {
		struct sim_request *r;
		struct hw_request *rq;

		if (flush(s))
			continue;
		if (s->in_drive < s->depth && s->held) {
			r = s->held;
			s->held = NULL;
			held = false;
			to_drive(s, r, delay_ns);
			continue;
		}
		rq = hw_dispatch(s->q, s->now);
		sim_log_waits(s);
		if (!rq) {
			s->wake_ns = s->q->wake_ns;
			s->flush.after_others = false;
			flush(s);
			return;
		}
		hw_merge_removed(&s->merger, rq);
		r = rq->host;
		r->reason = s->q->reason;
		if (s->in_drive < s->depth) {
			to_drive(s, r, delay_ns);
		} else {
			s->held = r;
			held = true;
		}
	}
	s->flush.after_others = false;
	s->wake_ns = HW_NEVER;
}
