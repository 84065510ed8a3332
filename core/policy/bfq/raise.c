// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Weight raising (low_latency): queues that look interactive or soft real-time get 30 or 3000 times
 * their weight for a while, unless they were created in a large burst, where only the sum of their
 * work matters.
 *
 * Interactive: idle for two seconds and now back; for as long as a large application takes to load
 * on this drive. Soft real-time: a low rate in batches, each after the one before has completed;
 * 300 ms, renewed by each batch.
 */
#include "core/policy/bfq/internal.h"

#define SOFT_RT_COEFF	    (BFQ_INTERACTIVE_COEFF * 100)
#define SOFT_RT_RATE	    7000 /* sectors/s: high-definition video */
#define SOFT_RT_EXTRA_TICKS 4
#define MAX_SERVICE	    120000u /* sectors; no application needs more to start */
#define LARGE_BURST	    8
#define SPLIT_GRACE_MS	    10

/*
 * Ticks for which an interactive queue is raised: as long as the reference application loads at the
 * peak rate.
 */
s64 bfq_raise_duration(const struct bfq *b)
{
	u64 ref_rate = b->q.dev.rotational ? 14000 : 33000;
	s64 ticks = (s64)div64_u64(ref_rate * (u64)b->span.ref_duration, b->rate.peak);

	return clamp_t(s64, ticks, b->span.raise_min, b->span.raise_max);
}

void bfq_end_raising(struct bfq *b, struct bfq_queue *bq)
{
	/*
	 * A soft real-time application that has just been loaded may be recognised as one at once.
	 */
	if (bq->raise.duration != b->span.soft_rt)
		bq->soft_rt_next_start = b->tick;
	if (bq->busy)
		b->nr_busy_raised--;
	bq->raise.coeff = 1;
	bq->raise.duration = 0;
	bq->raise.start = b->tick;
	bq->prio_changed = true;
}

static void end_if_raised(struct bfq *b, struct bfq_queue *bq)
{
	if (bfq_raised(bq))
		bfq_end_raising(b, bq);
}

/* low_latency has been switched off. */
void bfq_end_all_raising(struct bfq *b)
{
	struct bfq_queue *bq;
	struct rb_node *n;
	int i, j;

	list_for_each_entry(bq, &b->active, active_link)
		end_if_raised(b, bq);
	for (i = 0; i < BFQ_NR_CLASSES; i++)
		for (n = rb_first(&b->vtree[i].idle); n; n = rb_next(n))
			end_if_raised(b, rb_entry(n, struct bfq_queue, node));
	for (i = 0; i < 2; i++)
		for (j = 0; j < BFQ_NR_LEVELS; j++)
			if (b->async[i][j].in_use)
				end_if_raised(b, &b->async[i][j]);
	if (b->async_idle.in_use)
		end_if_raised(b, &b->async_idle);
	if (b->in_service)
		end_if_raised(b, b->in_service);
}

void bfq_back_to_interactive(struct bfq *b, struct bfq_queue *bq)
{
	bq->raise.coeff = BFQ_INTERACTIVE_COEFF;
	bq->raise.duration = bfq_raise_duration(b);
	bq->raise.start = bq->raise.interactive_start;
}

/* @bq is about to become busy; what it is like has been found out already. */
void bfq_consider_raising(struct bfq *b, struct bfq_queue *bq, bool deserves, bool interactive,
			  bool in_burst, bool soft_rt)
{
	struct bfq_raise *r = &bq->raise;

	if (!bfq_raised(bq)) {
		if (!deserves)
			return;
		if (interactive) {
			r->service = 0;
			r->coeff = BFQ_INTERACTIVE_COEFF;
			r->duration = bfq_raise_duration(b);
		} else {
			r->interactive_start = BFQ_TICK_NEVER;
			r->coeff = SOFT_RT_COEFF;
			r->duration = b->span.soft_rt;
		}
		bq->budget = min(bq->budget, bfq_max_budget(b) / 32 * 2);
		return;
	}
	if (interactive) {
		r->coeff = BFQ_INTERACTIVE_COEFF;
		r->duration = bfq_raise_duration(b);
	} else if (in_burst) {
		r->coeff = 1;
	} else if (soft_rt) {
		if (r->duration != b->span.soft_rt) {
			r->interactive_start = r->start;
			r->duration = b->span.soft_rt;
			r->coeff = SOFT_RT_COEFF;
		}
		r->start = b->tick;
	}
}

static bool interactive_period_over(const struct bfq *b, const struct bfq_queue *bq)
{
	return bfq_past(b, bq->raise.interactive_start, bfq_raise_duration(b));
}

/* A request of @bq, which is in service, has been dispatched: is raising over? */
void bfq_review_raising(struct bfq *b, struct bfq_queue *bq)
{
	if (bfq_raised(bq)) {
		if (bq->in_large_burst) {
			bfq_end_raising(b, bq);
		} else if (bfq_past(b, bq->raise.start, bq->raise.duration)) {
			if (bq->raise.duration == b->span.soft_rt &&
			    !interactive_period_over(b, bq)) {
				bfq_back_to_interactive(b, bq);
				bq->prio_changed = true;
			} else {
				bfq_end_raising(b, bq);
			}
		}
		if (bfq_raised(bq) && bq->raise.duration != b->span.soft_rt &&
		    bq->raise.service > MAX_SERVICE)
			bfq_end_raising(b, bq);
	}
	if ((bq->weight > bq->own_weight) != bfq_raised(bq))
		bfq_apply_prio(b, bq, false);
}

/* A queue whose requests all lie far from each other is random, not soft real-time. */
void bfq_totally_seeky(struct bfq *b, struct bfq_queue *bq)
{
	if (!bfq_raised(bq) || bq->raise.duration != b->span.soft_rt)
		return;
	if (interactive_period_over(b, bq)) {
		bfq_end_raising(b, bq);
	} else {
		bfq_back_to_interactive(b, bq);
		bq->prio_changed = true;
	}
}

/*
 * Tick from which on @bq's next request would keep its rate below that of soft real-time
 * applications.
 */
s64 bfq_soft_rt_next_start(const struct bfq *b, const struct bfq_queue *bq)
{
	s64 by_rate = bq->backlogged_since +
		      (s64)div64_u64((u64)b->hz * bq->served_backlogged, SOFT_RT_RATE);
	s64 not_greedy =
		b->tick + (s64)div64_u64(b->slice_idle_ns, b->tick_ns) + SOFT_RT_EXTRA_TICKS;

	return max(bq->soft_rt_next_start, max(by_rate, not_greedy));
}

static void clear_burst(struct bfq *b)
{
	while (!list_empty(&b->burst))
		list_del_init(b->burst.next);
}

/*
 * A queue has been created. Queues created shortly after each other are a burst; from the eighth on
 * it is a large one, and all its queues are marked, those that still come too.
 */
void bfq_join_burst(struct bfq *b, struct bfq_queue *bq)
{
	struct bfq_queue *member;

	if (!list_empty(&bq->burst_link) || bq->in_large_burst ||
	    bq->split_time + bfq_ms_to_ticks(b, SPLIT_GRACE_MS) >= b->tick)
		return;
	if (bfq_past(b, b->last_in_burst, b->span.burst)) {
		b->large_burst = false;
		clear_burst(b);
		b->burst_size = 0;
		if (!bfq_nr_busy(b)) {
			list_add(&bq->burst_link, &b->burst);
			b->burst_size = 1;
		}
	} else if (b->large_burst) {
		bq->in_large_burst = true;
	} else if (++b->burst_size == LARGE_BURST) {
		b->large_burst = true;
		list_for_each_entry(member, &b->burst, burst_link)
			member->in_large_burst = true;
		bq->in_large_burst = true;
		clear_burst(b);
	} else {
		list_add(&bq->burst_link, &b->burst);
	}
	b->last_in_burst = b->tick;
}
