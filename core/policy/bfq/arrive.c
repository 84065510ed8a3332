// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A request arrives: what it tells of its process (think time, seeks, how greedy it is), and
 * whether its queue, if it was idle, is raised and takes the disk from the queue in service.
 */
#include "core/policy/bfq/internal.h"

#define SMALL_SECTORS	 32u
#define IO_WINDOW_NS	 (200 * (u64)HW_NSEC_PER_MSEC)
#define BURST_OVER_MS	 10000
#define INJECT_SETTLE_MS 100
#define IN_TIME		 3 /* times slice_idle after the last completion */

static void update_think_time(struct bfq *b, struct bfq_queue *bq)
{
	/*
	 * A new queue's last completion lies in the future; the difference wraps, and counts as
	 * long.
	 */
	u64 gap = min_t(u64, b->now_ns - bq->think.last_end_ns, 2 * b->slice_idle_ns);

	if (!bq->dispatched && !bq->busy)
		hw_decay_think(&bq->think.gap_ns, gap);
}

static void judge_think_time(struct bfq *b, struct bfq_queue *bq)
{
	bool brief, changed;

	if (!bq->sync || bfq_idle_class(bq) || !b->slice_idle_ns ||
	    bq->split_time + b->span.idle_interactive >= b->tick)
		return;
	brief = !hw_decay_valid(&bq->think.gap_ns) || bq->think.gap_ns.mean <= b->slice_idle_ns / 2;
	changed = brief != bq->short_think;
	bq->short_think = brief;
	/*
	 * Not at once when it becomes short: it may be short because injection serves what the
	 * process waits for, and would be long again without.
	 */
	if (changed && !bq->inject.base_ns &&
	    (!brief || bfq_reached(b, bq->inject.lowered, bfq_ms_to_ticks(b, INJECT_SETTLE_MS))))
		bfq_inject_reset(b, bq);
}

static void update_seeks(struct bfq *b, struct bfq_queue *bq, const struct hw_request *rq)
{
	bq->seek_history = bq->seek_history << 1 | bfq_is_seek(b, bq->last_pos, rq);
	if (bq->seek_history == U32_MAX)
		bfq_totally_seeky(b, bq);
}

/* I/O-bound: without requests for less than a fifth of the time. Sums wrap as the kernel's do. */
static void update_intensity(struct bfq *b, struct bfq_queue *bq)
{
	u64 span = b->now_ns - bq->io_start_ns;

	if (bfq_empty(bq) && !bq->dispatched)
		bq->idle_total_ns += b->now_ns - bq->think.last_end_ns;
	if (bq->just_created)
		return;
	bq->io_bound = bq->idle_total_ns * 5 <= span;
	if (span > IO_WINDOW_NS) {
		bq->io_start_ns = b->now_ns - span / 2;
		bq->idle_total_ns /= 2;
	}
}

/*
 * Budget for the slot to come. True if the queue was waited for, is in time and may go on with what
 * it had left.
 */
static bool renew_budget(struct bfq *b, struct bfq_queue *bq, bool in_time)
{
	s64 left = bfq_budget_left(bq);

	if (bq->non_blocking_wait && in_time && left > 0) {
		bq->budget = min(left, bq->max_budget);
		bq->service = 0;
		return true;
	}
	bq->service = 0;
	bq->budget = max(bq->max_budget, bfq_cost(b, bq->next, bq));
	bq->non_blocking_wait = false;
	return false;
}

/*
 * Not only more urgent, but also the next to be served; otherwise expiring the present one gains
 * nothing.
 */
static bool preempts(struct bfq *b, const struct bfq_queue *bq, bool recovers)
{
	const struct bfq_queue *serving = b->in_service;

	if (!serving || !bfq_other_is_next(b))
		return false;
	return (recovers && bq->raise.coeff >= serving->raise.coeff) ||
	       bq->class < serving->class || bq->weight > serving->weight ||
	       !bfq_better_to_idle(b, serving);
}

/* True if the queue is interactive. */
static bool become_busy(struct bfq *b, struct bfq_queue *bq, const struct bfq_task *task)
{
	bool in_time = b->now_ns <= bq->think.last_end_ns + IN_TIME * b->slice_idle_ns;
	bool long_idle = !bq->dispatched &&
			 bfq_past(b, bq->budget_timeout, b->span.idle_interactive);
	bool in_burst = bq->in_large_burst, plain = bq->new_weight == BFQ_DEFAULT_WEIGHT;
	bool alone = bq->owner || task->stably_merged;
	bool soft_rt = bq->seek_history != U32_MAX && !in_burst && !bq->dispatched && plain &&
		       bfq_past(b, bq->soft_rt_next_start, 0);
	bool interactive = !in_burst && long_idle && plain;
	bool deserves = b->low_latency &&
			(bfq_raised(bq) || (bq->sync && alone && (interactive || soft_rt)));
	bool recovers = renew_budget(b, bq, in_time);
	u32 was = bq->raise.coeff;

	if (!bq->just_created && long_idle &&
	    bfq_past(b, bq->budget_timeout, bfq_ms_to_ticks(b, BURST_OVER_MS))) {
		list_del_init(&bq->burst_link);
		bq->in_large_burst = false;
	}
	bq->just_created = false;
	if (b->low_latency && bfq_past(b, bq->split_time, b->span.idle_interactive)) {
		bfq_consider_raising(b, bq, deserves, interactive, in_burst, soft_rt);
		if (bq->raise.coeff != was)
			bq->prio_changed = true;
	}
	bq->backlogged_since = b->tick;
	bq->served_backlogged = 0;
	bq->softrt_update = false;
	bfq_mark_busy(b, bq);
	if (preempts(b, bq, recovers))
		bfq_expire(b, b->in_service, false, BFQ_PREEMPTED);
	return interactive;
}

static void add(struct bfq *b, struct bfq_queue *bq, struct hw_request *rq)
{
	struct bfq_task *task = bfq_task(rq->task);
	bool interactive = false, changed;
	u32 was;

	/* low_latency was switched off while this queue was idle, and out of all trees. */
	if (!b->low_latency && bfq_raised(bq))
		bfq_end_raising(b, bq);
	was = bq->raise.coeff;
	if (bq->sync) {
		if (task->requests <= 1) {
			bfq_check_waker(b, bq);
			bfq_inject_arrived(b, bq);
		}
		update_intensity(b, bq);
	}
	bfq_enqueue(b, bq, rq);
	changed = bfq_offer_next(b, bq, rq);
	if (changed)
		bfq_place(b, bq);
	if (!bq->busy) {
		interactive = become_busy(b, bq, task);
	} else {
		if (b->low_latency && was == 1 && !hw_is_sync(rq) &&
		    bfq_past(b, bq->raise.start, b->span.async_gap)) {
			bq->raise.coeff = BFQ_INTERACTIVE_COEFF;
			bq->raise.duration = bfq_raise_duration(b);
			b->nr_busy_raised++;
			bq->prio_changed = true;
		}
		if (changed)
			bfq_budget_for_next(b, bq);
	}
	/*
	 * The time of its last request, if the queue is not raised; when that began, if it is.
	 */
	if (b->low_latency && (was == 1 || !bfq_raised(bq) || interactive))
		bq->raise.start = b->tick;
}

/* @bq may be what the disk waits for. A small first request does not end the wait: it may grow. */
static void end_wait(struct bfq *b, struct bfq_queue *bq, const struct hw_request *rq)
{
	bool timed_out = bfq_timed_out(b, bq);

	if (bq->queued == 1 && rq->sectors < SMALL_SECTORS && bfq_idling_boosts(b, bq) &&
	    !timed_out)
		return;
	bfq_stop_waiting(b, bq);
	if (timed_out)
		bfq_expire(b, bq, false, BFQ_TIMEOUT);
}

void bfq_arrive(struct bfq *b, struct bfq_queue *bq, struct hw_request *rq)
{
	struct bfq_task *task = bfq_task(rq->task);
	struct bfq_queue *into = bfq_cooperator(b, bq, rq->sector, task);

	if (into) {
		into->allocated++;
		bfq_rq(rq)->queue = into;
		if (task->queue[1] == bq)
			bfq_merge_queues(b, task, bq, into);
		bq->just_created = false;
		bq->allocated--;
		bfq_drop(b, bq);
		bq = into;
	}
	update_think_time(b, bq);
	judge_think_time(b, bq);
	update_seeks(b, bq, rq);
	add(b, bq, rq);
	bq->last_pos = hw_end(rq);
	if (bq == b->in_service && bq->wait_request)
		end_wait(b, bq, rq);
}
