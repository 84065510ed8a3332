// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Injection: what the disk may do for others while the queue in service is empty but worth waiting
 * for.
 *
 * Three kinds of requests harm nobody: async ones of the same process; those of its *waker*, the
 * queue whose completions regularly precede its arrivals (the process waits for them); and those of
 * a queue that it wakes itself. Others are injected up to a limit of requests in the drive, found
 * by trial: the *total service time* of first requests (from arrival to completion) is measured
 * with and without injection, and the limit goes up while injection lengthens it by less than half.
 */
#include "core/policy/bfq/internal.h"

#define WAKER_NEAR_NS (4 * (u64)HW_NSEC_PER_MSEC)
#define WAKER_HITS    3
#define WAKER_WINDOW  128  /* times slice_idle */
#define RESET_MS      1000 /* workloads change: begin again */
#define PAUSE_MS      10   /* between a decrease and the next measurement */

/* A request of @bq arrives: did a completion of another queue bring it about? */
void bfq_check_waker(struct bfq *b, struct bfq_queue *bq)
{
	struct bfq_queue *other = b->last_completed;

	if (!other || other == bq || bq->short_think ||
	    b->now_ns - b->rate.last_completion_ns >= WAKER_NEAR_NS)
		return;
	if (other->id != bq->maybe_waker ||
	    b->now_ns > bq->waker_since_ns + WAKER_WINDOW * b->slice_idle_ns) {
		bq->maybe_waker = other->id;
		bq->waker_hits = 1;
		bq->waker_since_ns = b->now_ns;
		return;
	}
	if (++bq->waker_hits == WAKER_HITS)
		bfq_set_waker(bq, other);
}

void bfq_inject_reset(struct bfq *b, struct bfq_queue *bq)
{
	bq->inject.base_ns = 0;
	b->waited_rq = NULL;
	/*
	 * With a short think time, a request in the drive may delay the next; a long one leaves
	 * room for it.
	 */
	bq->inject.limit = bq->short_think ? 0 : 1;
	bq->inject.lowered = b->tick;
}

/* The only request of its process arrives at @bq: is this an occasion to measure? */
void bfq_inject_arrived(struct bfq *b, struct bfq_queue *bq)
{
	bool base, effect;

	if (bfq_reached(b, bq->inject.lowered, bfq_ms_to_ticks(b, RESET_MS)))
		bfq_inject_reset(b, bq);
	base = !b->in_driver;
	effect = bq->inject.base_ns && b->injected;
	if (bq != b->in_service || !(base || effect) ||
	    !bfq_reached(b, bq->inject.lowered, bfq_ms_to_ticks(b, PAUSE_MS)))
		return;
	b->first_arrival_ns = b->now_ns;
	b->wait_dispatch = true;
	/* What was injected has left the drive, and does not touch this request. */
	if (base)
		b->injected = false;
}

/* The measured request completes; it still counts as being in the drive. */
void bfq_inject_measured(struct bfq *b, struct bfq_queue *bq)
{
	struct bfq_inject *in = &bq->inject;
	u64 total = b->now_ns - b->first_arrival_ns, bearable = in->base_ns * 3 / 2;
	u32 limit = in->limit;
	bool alone = b->in_driver == 1;

	if (in->base_ns && b->injected) {
		if (total >= bearable && limit) {
			in->limit--;
			in->lowered = b->tick;
		} else if (total < bearable && limit <= b->max_in_driver) {
			in->limit++;
		}
	}
	if ((!in->base_ns && alone) || total < in->base_ns) {
		if (!in->base_ns)
			in->limit = max_t(u32, 1, limit);
		in->base_ns = total;
	} else if (!b->injected && alone) {
		in->base_ns = total;
	}
	b->waited_rq = NULL;
	b->injected = false;
}

static bool affordable(struct bfq *b, const struct bfq_queue *bq)
{
	return bq->next && bfq_cost(b, bq->next, bq) <= bfq_budget_left(bq);
}

/* Any active queue, latest first. */
static struct bfq_queue *inject_any(struct bfq *b, const struct bfq_queue *in_service)
{
	u32 limit = in_service->inject.limit;
	bool any = !bfq_raised(in_service) || !in_service->short_think;
	struct bfq_queue *bq;

	/*
	 * The kernel means to allow one request once the wait has lasted slice_idle without a
	 * measurement, but adds nanoseconds to ticks, so that this is true only with slice_idle 0.
	 * So it is here.
	 */
	if (!limit && !in_service->inject.base_ns && in_service->wait_request &&
	    bfq_reached(b, b->idling_begin, (s64)b->slice_idle_ns))
		limit = 1;
	if (b->in_driver >= limit)
		return NULL;
	list_for_each_entry(bq, &b->active, active_link) {
		if (!(any || bfq_raised(bq)) || !affordable(b, bq))
			continue;
		/* A large request keeps a flash drive busy for long: one at a time. */
		if (!b->q.dev.rotational && bq->next->sectors >= BFQ_NONROT_LARGE && b->in_driver)
			continue;
		b->injected = true;
		return bq;
	}
	return NULL;
}

/* @bq is in service and empty. Whose request may go out meanwhile? */
struct bfq_queue *bfq_inject(struct bfq *b, struct bfq_queue *bq)
{
	struct bfq_queue *async = bq->owner ? bq->owner->queue[0] : NULL;
	struct bfq_queue *woken = NULL;

	if (!list_empty(&bq->woken))
		woken = list_first_entry(&bq->woken, struct bfq_queue, woken_link);
	if (async && async->busy && affordable(b, async) && async->next->task == &bq->owner->task)
		return async;
	if (bq->waker && bq->waker->busy && affordable(b, bq->waker))
		return bq->waker;
	if (woken && woken->busy && affordable(b, woken))
		return woken;
	if (!bfq_idling_boosts(b, bq) &&
	    (!bfq_raised(bq) || b->nr_busy_raised > 1 || !bq->short_think))
		return inject_any(b, bq);
	return NULL;
}
