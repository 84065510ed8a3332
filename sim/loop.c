// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One instant: completions, then arrivals, then dispatch for as long as the device takes requests. A
 * row of events at the same time (an I/O that takes no time, a task that does not think) is the same
 * instant.
 */
#include "sim/internal.h"

/*
 * blk-mq has a worker ask its own schedulers after insertions and timers, some time later; and
 * after completions where the device was full (blk_mq_sched_restart()), or is empty. Ours decide at
 * once, in the interrupt, and the time passes on the way to the drive.
 */
static bool worker_decides(const struct hws *s)
{
	return s->opt.dispatch_ns && s->opt.pull_ahead;
}

static bool worker_wanted(const struct hws *s)
{
	if (!worker_decides(s))
		return false;
	return s->held ||
	       (s->q->nr_queued && (!s->in_drive || s->policy->flags & HW_POLICY_TOKENS));
}

static bool complete(struct hws *s)
{
	struct hw_io *io;
	bool any = false;

	while ((io = s->drive->model->poll(s->drive, s->now))) {
		s->in_drive--;
		if (io->host == &s->flush)
			sim_flush_done(s);
		else
			sim_request_done(s, io->host);
		any = true;
	}
	return any;
}

static void arrive(struct hws *s)
{
	while (sim_due_ns(s) <= s->now) {
		struct sim_due due = sim_due_take(s);

		due.source->ops->due(s, due.source, due.order);
	}
}

u64 sim_next_event(const struct hws *s)
{
	u64 t = min(min(s->drive->model->next(s->drive), s->wake_ns),
		    min(s->feed_ns, s->worker_ns));

	t = min(t, sim_due_ns(s));
	return s->sent ? min(t, s->sent->arrives_ns) : t;
}

/*
 * Ours are asked, and others' where something has come; after a completion the queue has to be run
 * again for that.
 */
static void decide(struct hws *s)
{
	bool again = s->done && !s->inserted && !worker_decides(s);
	/* With a host the process that issued it has had that time. */
	u64 before = s->requests, takes_ns = s->host && s->inserted ? 0 : s->opt.dispatch_ns;

	sim_dispatch(s, takes_ns + (again ? s->opt.restart_ns : 0));
	if (again && s->requests == before && s->q->nr_queued)
		sim_interrupt(s, s->opt.pass_ns);
}

/*
 * What happens now, in the order of a completion, what its process does next, and who waits for the
 * tag.
 */
void sim_step(struct hws *s)
{
	bool woken = s->wake_ns <= s->now;

	s->done = complete(s);
	sim_submit_sent(s);
	woken = woken && worker_decides(s);
	if (woken)
		s->wake_ns = HW_NEVER;
	if (s->worker_ns == HW_NEVER && (woken || (s->done && worker_wanted(s)))) {
		u64 takes_ns = s->opt.dispatch_ns + (s->done ? s->opt.restart_ns : 0);

		s->worker_ns = sim_after(s->now, takes_ns);
		sim_interrupt(s, takes_ns);
	}
	if (s->worker_ns <= s->now) {
		s->worker_ns = HW_NEVER;
		sim_dispatch(s, 0);
	}
	if (s->done && s->waiting_tasks)
		sim_interrupt(s, s->opt.pass_ns);
	s->inserted = false;
	arrive(s);
	if (s->inserted || (sim_flush_wanted(s) && s->worker_ns == HW_NEVER) || !worker_decides(s))
		decide(s);
	sim_waiter_woken(s);
	if (s->feed_ns <= s->now) {
		sim_feed_woken(s);
		sim_dispatch(s, s->opt.dispatch_ns);
	}
}
