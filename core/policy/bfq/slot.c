// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The slot: who is in service, whether to wait for it, when it is over, what it is charged and what
 * budget comes next.
 *
 * A queue is put in service with a budget of sectors. It expires when the next request does not fit
 * the budget, when time is up, when it has run empty and is not worth waiting for, when the wait
 * was in vain, or when a more deserving queue becomes busy. Queues that consume their budget slowly
 * are charged time in place of service. The next budget grows for queues that use theirs up, and
 * shrinks for those that leave the drive idle.
 */
#include "core/policy/bfq/internal.h"

#define SLOW_MIN_US	1000u  /* shorter slots say nothing */
#define SLOW_LONG_US	20000u /* longer ones are judged by their rate */
#define SEEK_CHARGE_MS	8      /* a short slot costs a rotating disk a seek at least */
#define FLASH_CHARGE_MS 2
#define RAISED_WAIT_NS	(20 * (u64)HW_NSEC_PER_MSEC)

static s64 min_budget(const struct bfq *b)
{
	return bfq_max_budget(b) / 32;
}

/* ---- the wait ---- */

static bool must_idle(const struct bfq *b, const struct bfq_queue *bq)
{
	return bfq_empty(bq) && bfq_better_to_idle(b, bq);
}

static void start_waiting(struct bfq *b, struct bfq_queue *bq)
{
	u64 wait = b->slice_idle_ns;

	if (bfq_raised(bq))
		wait = max_t(u64, wait, RAISED_WAIT_NS);
	else if (bfq_seeky(bq) && !bfq_asymmetric(b, bq))
		wait = min_t(u64, wait, BFQ_MIN_THINK_NS);
	bq->wait_request = true;
	b->idling_begin_ns = b->now_ns;
	b->idling_begin = b->tick;
	b->idle_until_ns = b->now_ns + wait;
}

void bfq_stop_waiting(struct bfq *b, struct bfq_queue *bq)
{
	bq->wait_request = false;
	b->idle_until_ns = HW_NEVER;
}

/* ---- the end of a slot ---- */

bool bfq_timed_out(const struct bfq *b, const struct bfq_queue *bq)
{
	return bfq_reached(b, bq->budget_timeout, 0);
}

static bool much_budget_left(const struct bfq_queue *bq)
{
	return bfq_budget_left(bq) >= bq->budget / 3;
}

/* A queue that is being waited for keeps the disk beyond its time, unless it is slow. */
static bool may_time_out(const struct bfq *b, const struct bfq_queue *bq)
{
	return (!bq->wait_request || much_budget_left(bq)) && bfq_timed_out(b, bq);
}

/*
 * Has @bq used its slot slowly? @ms is set to the length to charge; a slot that ended with an idle
 * wait in vain (@compensate) counts up to where the wait began.
 */
static bool is_slow(const struct bfq *b, const struct bfq_queue *bq, bool compensate, s64 *ms)
{
	u64 end = compensate ? b->idling_begin_ns : b->now_ns;
	u32 us;

	*ms = 0;
	if (!bq->sync)
		return false;
	us = (u32)div_u64(end - b->slot_begin_ns, HW_NSEC_PER_USEC);
	if (us < SLOW_MIN_US) {
		*ms = b->q.dev.rotational ? SEEK_CHARGE_MS : FLASH_CHARGE_MS;
		return bfq_seeky(bq);
	}
	*ms = us / 1000;
	if (us > SLOW_LONG_US)
		return bq->service < b->cap_budget / 2;
	return bfq_seeky(bq);
}

static s64 next_max_budget(const struct bfq *b, const struct bfq_queue *bq, enum bfq_reason reason)
{
	s64 budget = bq->max_budget, least = min_budget(b);

	if (!bq->sync)
		return b->cap_budget;
	if (bfq_raised(bq))
		return 2 * least;
	switch (reason) {
	case BFQ_TOO_IDLE:
		/* With requests still in the drive, the pause may be the drive's fault. */
		if (bq->dispatched)
			return min(budget * 2, b->cap_budget);
		return budget > 5 * least ? budget - 4 * least : least;
	case BFQ_TIMEOUT:
		return min(budget * 2, b->cap_budget);
	case BFQ_EXHAUSTED:
		return min(budget * 4, b->cap_budget);
	case BFQ_NO_MORE_REQUESTS:
		return max(bq->service, least);
	case BFQ_PREEMPTED:
		break;
	}
	return budget;
}

static void adjust_budget(struct bfq *b, struct bfq_queue *bq, enum bfq_reason reason)
{
	if (bq->sync && !bfq_raised(bq) && reason == BFQ_PREEMPTED)
		return;
	bq->max_budget = next_max_budget(b, bq, reason);
	if (bfq_budgets_known(b) && !b->max_budget)
		bq->max_budget = min(bq->max_budget, b->cap_budget);
	if (bq->next)
		bq->budget = max(bq->max_budget, bfq_cost(b, bq->next, bq));
}

/* Take @bq out of service; back into the tree, or out of it. */
void bfq_leave_service(struct bfq *b, struct bfq_queue *bq, enum bfq_reason reason)
{
	static const u8 because[] = {
		[BFQ_TOO_IDLE] = HW_WAIT_OVER,	  [BFQ_TIMEOUT] = HW_SLICE_OVER,
		[BFQ_EXHAUSTED] = HW_BUDGET_OVER, [BFQ_NO_MORE_REQUESTS] = HW_QUEUE_EMPTY,
		[BFQ_PREEMPTED] = HW_PREEMPTED,
	};

	b->because = because[reason];
	if (bq->coop && bfq_seeky(bq))
		bq->split_coop = true;
	/* An empty queue that others must not overtake stays in the tree when it is preempted. */
	if (bfq_empty(bq) && !(reason == BFQ_PREEMPTED && bfq_idling_guarantees(b, bq))) {
		if (!bq->dispatched)
			bq->budget_timeout = b->tick;
		bfq_unmark_busy(b, bq, true);
	} else {
		bfq_requeue(b, bq, true);
		if (!bfq_empty(bq))
			bfq_place(b, bq);
	}
	bfq_stop_waiting(b, bq);
	b->in_service = NULL;
}

void bfq_expire(struct bfq *b, struct bfq_queue *bq, bool compensate, enum bfq_reason reason)
{
	s64 ms;
	bool slow = is_slow(b, bq, compensate, &ms);

	if (!bfq_raised(bq) && (slow || (reason == BFQ_TIMEOUT && much_budget_left(bq))))
		bfq_charge_time(b, bq, ms);
	if (b->low_latency) {
		if (!bfq_raised(bq))
			bq->raise.start = b->tick;
		if (bfq_empty(bq)) {
			/* Isochronous, if nothing more comes until all requests are complete. */
			if (bq->dispatched)
				bq->softrt_update = true;
			else
				bq->soft_rt_next_start = bfq_soft_rt_next_start(b, bq);
		}
	}
	b->injected = false;
	b->wait_dispatch = false;
	b->waited_rq = NULL;
	adjust_budget(b, bq, reason);
	bfq_leave_service(b, bq, reason);
	/*
	 * A queue that ran empty may come back in time and go on with what is left of its budget,
	 * so it keeps its service. All others start anew.
	 */
	if (!bq->busy && reason != BFQ_TIMEOUT && reason != BFQ_EXHAUSTED)
		bq->non_blocking_wait = true;
	else
		bq->service = 0;
	bfq_drop(b, bq);
}

/* ---- the choice ---- */

static void begin_slot(struct bfq *b, struct bfq_queue *bq)
{
	s64 times = 1;

	bq->fifo_checked = false;
	b->budgets_assigned = BFQ_SAMPLES_STEP(b->budgets_assigned);
	if (bfq_raised(bq) && bq->raise.duration == b->span.soft_rt &&
	    bfq_past(b, bq->raise.start, 0) && bfq_past(b, bq->budget_timeout, 0)) {
		/*
		 * The short raising of a soft real-time queue does not run while it waits for
		 * service.
		 */
		if (bq->budget_timeout > bq->raise.start)
			bq->raise.start += b->tick - bq->budget_timeout;
		else
			bq->raise.start = b->tick;
	}
	if (bq->raise.duration != b->span.soft_rt)
		times = bq->weight / bq->own_weight;
	b->slot_begin_ns = b->now_ns;
	bq->budget_timeout = b->tick + b->timeout_ticks * times;
	b->in_service_last_pos = 0;
}

/*
 * The queue to take a request from: the one in service, another one injected while that one is
 * empty, or none while the disk waits.
 */
struct bfq_queue *bfq_select(struct bfq *b)
{
	struct bfq_queue *bq = b->in_service;

	if (bq && may_time_out(b, bq) && !must_idle(b, bq)) {
		bfq_expire(b, bq, false, BFQ_TIMEOUT);
		bq = NULL;
	}
	for (;;) {
		if (!bq) {
			bq = bfq_take_next(b);
			if (!bq)
				return NULL;
			begin_slot(b, bq);
		}
		if (bq->next) {
			if (bfq_cost(b, bq->next, bq) <= bfq_budget_left(bq)) {
				/* A small first request had been let wait for company. */
				if (bq->wait_request)
					bfq_stop_waiting(b, bq);
				return bq;
			}
			bfq_expire(b, bq, false, BFQ_EXHAUSTED);
		} else {
			if (bq->wait_request || (bq->dispatched && bfq_better_to_idle(b, bq)))
				return bfq_inject(b, bq);
			bfq_expire(b, bq, false, BFQ_NO_MORE_REQUESTS);
		}
		bq = NULL;
	}
}

/* A request of @bq, which is in service, has completed: wait, go on or expire. */
void bfq_slot_completed(struct bfq *b, struct bfq_queue *bq)
{
	if (must_idle(b, bq)) {
		if (!bq->dispatched)
			start_waiting(b, bq);
	} else if (may_time_out(b, bq)) {
		bfq_expire(b, bq, false, BFQ_TIMEOUT);
	} else if (bfq_empty(bq) && (!bq->dispatched || !bfq_better_to_idle(b, bq))) {
		bfq_expire(b, bq, false, BFQ_NO_MORE_REQUESTS);
	}
}

/* The idle timer has run out. */
void bfq_idle_over(struct bfq *b)
{
	struct bfq_queue *bq = b->in_service;

	bfq_stop_waiting(b, bq);
	if (bfq_timed_out(b, bq))
		bfq_expire(b, bq, true, BFQ_TIMEOUT);
	else if (!bq->queued)
		bfq_expire(b, bq, true, BFQ_TOO_IDLE);
}
