// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bfq: Budget Fair Queueing, as in Linux 6.12, without cgroups.
 *
 * Source: Valente and Checconi (IEEE Transactions on Computers 59(9), 2010), Valente and Avanzini
 * (MST 2015), and the behaviour of Linux 6.12.
 *
 * Every process has a queue. One queue at a time is in service and may take a budget of sectors;
 * B-WF2Q+ says which is next. If the queue in service runs empty, the disk may wait for it. Queues
 * that look interactive or soft real-time weigh many times their weight for a while.
 *
 *	queue.c		a queue by itself: its beginning, its wakers, its end
 *	idle.c		whether it is worth keeping the disk idle for a queue
 *	wf2q.c		which queue is next: virtual times, weights, classes
 *	order.c		which request of a queue is next; which queues lie close
 *	raise.c		weight raising, bursts
 *	rate.c		the drive's peak rate and whether it queues
 *	inject.c	requests of others while the disk waits
 *	slot.c		one queue's slot: budgets, waiting, time-outs, charges
 *	merge.c		queues and tasks: merging, splitting, the end of a task
 *	arrive.c	what an arrival means for its queue and for the one in service
 *
 * Each calls none but those above it in this list.
 *
 * Left out: cgroups (one group holds all), several actuators, idle nice values (a task without an
 * I/O priority is best-effort, level 4).
 */
#include "core/lib/tags.h"
#include "core/policy/bfq/internal.h"

static struct bfq *bfq_of(struct hw_queue *q)
{
	return container_of(q, struct bfq, q);
}

static const struct bfq *bfq_of_const(const struct hw_queue *q)
{
	return container_of(q, struct bfq, q);
}

static void set_tick(struct bfq *b)
{
	/* Events come far more often than ticks: divide only when one has passed. */
	if (b->now_ns - b->tick_begin_ns < b->tick_ns && b->now_ns >= b->tick_begin_ns)
		return;
	b->tick = (s64)div64_u64(b->now_ns, b->tick_ns);
	b->tick_begin_ns = (u64)b->tick * b->tick_ns;
}

static void set_now(struct bfq *b, u64 now)
{
	b->now_ns = now;
	set_tick(b);
}

/*
 * Time has come to @now. A wait that should have ended before ends as of then; one that ends right
 * now is for dispatch() to end, since a request that arrives now is in time.
 */
static void advance(struct bfq *b, u64 now)
{
	if (b->idle_until_ns < now) {
		set_now(b, b->idle_until_ns);
		bfq_idle_over(b);
		hw_wait_end(&b->q, HW_WAIT_FAIL, b->now_ns);
	}
	set_now(b, now);
}

static void derive_spans(struct bfq *b)
{
	b->tick_ns = (u64)b->tick_us * HW_NSEC_PER_USEC;
	b->hz = (s64)div64_u64(HW_NSEC_PER_SEC, b->tick_ns);
	b->span.burst = bfq_ms_to_ticks(b, 180);
	b->span.idle_interactive = bfq_ms_to_ticks(b, 2000);
	b->span.async_gap = bfq_ms_to_ticks(b, 500);
	b->span.soft_rt = bfq_ms_to_ticks(b, 300);
	b->span.merge = div64_s64(b->hz, 10);
	b->span.stable = bfq_ms_to_ticks(b, 600);
	b->span.idle_class = div64_s64(b->hz, 5);
	b->span.ref_duration = bfq_ms_to_ticks(b, b->q.dev.rotational ? 7000 : 2500);
	b->span.raise_min = bfq_ms_to_ticks(b, 3000);
	b->span.raise_max = bfq_ms_to_ticks(b, 25000);
	b->charge_ms = div64_s64(div64_s64(b->hz, 8) * b->tick_us, 1000);
}

#define DEFAULT_TIMEOUT_MS    125
#define DEFAULT_SLICE_IDLE_MS 8
#define DEFAULT_SLICE_IDLE_US 8000

/* slice_idle and slice_idle_us are one value in two units: the one that was written counts. */
static void tune_slice_idle(struct bfq *b)
{
	if (b->slice_idle_us != b->seen.slice_idle_us)
		b->slice_idle_ns = (u64)b->slice_idle_us * HW_NSEC_PER_USEC;
	else if (b->slice_idle != b->seen.slice_idle)
		b->slice_idle_ns = (u64)b->slice_idle * HW_NSEC_PER_MSEC;
	if (b->strict_guarantees && !b->seen.strict_guarantees)
		b->slice_idle_ns = max_t(u64, b->slice_idle_ns, 8 * (u64)HW_NSEC_PER_MSEC);
	b->slice_idle = (s64)div_u64(b->slice_idle_ns, HW_NSEC_PER_MSEC);
	b->slice_idle_us = (s64)div_u64(b->slice_idle_ns, HW_NSEC_PER_USEC);
	b->seen.slice_idle = b->slice_idle;
	b->seen.slice_idle_us = b->slice_idle_us;
	b->seen.strict_guarantees = b->strict_guarantees;
}

static void bfq_tuned(struct hw_queue *q)
{
	struct bfq *b = bfq_of(q);
	s64 timeout_was = b->timeout_ticks;

	derive_spans(b);
	tune_slice_idle(b);
	b->fifo_expire_ns[0] = (u64)b->fifo_expire_async * HW_NSEC_PER_MSEC;
	b->fifo_expire_ns[1] = (u64)b->fifo_expire_sync * HW_NSEC_PER_MSEC;
	b->reach.back_max = (u64)b->back_seek_max * 2;
	b->reach.back_penalty = (u64)b->back_seek_penalty;
	/*
	 * The default is an eighth of a second in whole ticks: 124 ms at 250 ticks a second, as the
	 * kernel's.
	 */
	b->timeout_ticks = b->timeout_sync == DEFAULT_TIMEOUT_MS ?
				   div64_s64(b->hz, 8) :
				   bfq_ms_to_ticks(b, b->timeout_sync);
	if (b->max_budget)
		b->cap_budget = b->max_budget;
	else if (b->timeout_ticks != timeout_was || b->seen.max_budget)
		b->cap_budget = bfq_budget_at_peak(b);
	if (!b->low_latency && b->seen.low_latency)
		bfq_end_all_raising(b);
	b->seen.max_budget = b->max_budget;
	b->seen.low_latency = b->low_latency;
}

static int bfq_init(struct hw_queue *q, u64 now)
{
	struct bfq *b = bfq_of(q);

	INIT_LIST_HEAD(&b->active);
	INIT_LIST_HEAD(&b->head);
	INIT_LIST_HEAD(&b->burst);
	b->positions = RB_ROOT;
	b->idle_until_ns = HW_NEVER;
	bfq_assume_queueing(b);
	b->cap_budget = BFQ_DEFAULT_MAX_BUDGET;
	b->rate.peak = div_u64((q->dev.rotational ? 14000 : 33000) * 2, 3);
	b->last_in_burst = BFQ_TICK_NEVER;
	b->seen.slice_idle = DEFAULT_SLICE_IDLE_MS;
	b->seen.slice_idle_us = DEFAULT_SLICE_IDLE_US;
	b->slice_idle_ns = DEFAULT_SLICE_IDLE_US * (u64)HW_NSEC_PER_USEC;
	derive_spans(b);
	b->timeout_ticks = div64_s64(b->hz, 8);
	set_now(b, now);
	b->idle_class_served = b->tick;
	b->because = HW_TURN; /* nobody was before */
	return 0;
}

/* ---- a request's life ---- */

static void bfq_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct bfq *b = bfq_of(q);
	struct bfq_request *r = bfq_rq(rq);
	struct bfq_queue *bq;

	advance(b, now);
	r->queue = NULL;
	r->queued = false;
	r->late = false;
	bq = bfq_queue_of(b, rq);
	if (rq->flags & HW_RQ_AT_HEAD)
		list_add(&r->s.fifo, &b->head);
	else if (!bq)
		list_add_tail(&r->s.fifo, &b->head);
	else
		bfq_arrive(b, bq, rq);
}

static struct hw_request *take_from(struct bfq *b, struct bfq_queue *bq)
{
	struct hw_request *rq = bq->next;

	if (bq == b->in_service) {
		hw_because(&b->q, bfq_rq(rq)->late ? HW_EXPIRED : (enum hw_reason)b->because);
		b->because = HW_SLICE;
	} else {
		hw_because(&b->q, HW_INJECTED);
	}
	bfq_serve(b, bq, bfq_cost(b, rq, bq));
	if (bq == b->in_service && b->wait_dispatch) {
		b->wait_dispatch = false;
		b->waited_rq = rq;
	}
	bq->dispatched++;
	bfq_rate_dispatched(b, rq);
	bfq_dequeue(b, rq);
	if (bq != b->in_service)
		return rq;
	bfq_review_raising(b, bq);
	/* The idle class gives way after every request. */
	if (bfq_nr_busy(b) > 1 && bfq_idle_class(bq))
		bfq_expire(b, bq, false, BFQ_EXHAUSTED);
	return rq;
}

static struct hw_request *next_request(struct bfq *b)
{
	struct hw_sorted_request *first = hw_fifo_first(&b->head);
	struct bfq_queue *bq;

	if (first) {
		list_del_init(&first->fifo);
		hw_because(&b->q, HW_FIRST);
		bq = bfq_rq(&first->rq)->queue;
		if (bq) {
			bq->dispatched++;
			b->in_driver++;
		}
		return &first->rq;
	}
	if (!bfq_nr_busy(b) || (b->strict_guarantees && b->in_driver))
		return NULL;
	bq = bfq_select(b);
	if (!bq)
		return NULL;
	b->in_driver++;
	return take_from(b, bq);
}

/* Count as a wait what keeps an idle drive from a request that is there. */
static void count_wait(struct bfq *b, const struct hw_request *rq)
{
	struct hw_queue *q = &b->q;
	const struct bfq_queue *bq = b->in_service;
	struct hw_task *waited_for;

	if (rq) {
		bool met = q->wait.task && q->wait.task == rq->task;

		if (met)
			hw_because(q, HW_ANTICIPATED);
		hw_wait_end(q, met ? HW_WAIT_SUCCESS : HW_WAIT_OTHER, b->now_ns);
		return;
	}
	if (q->wait.active || !q->nr_queued || b->in_driver || !bq || !bq->wait_request)
		return;
	waited_for = bq->owner ? &bq->owner->task : NULL;
	hw_wait_begin(q, waited_for, b->now_ns);
}

static struct hw_request *bfq_dispatch(struct hw_queue *q, u64 now)
{
	struct bfq *b = bfq_of(q);
	struct hw_request *rq;

	advance(b, now);
	if (b->idle_until_ns == now || (q->force && b->idle_until_ns != HW_NEVER)) {
		bfq_idle_over(b);
		hw_wait_end(q, q->force ? HW_WAIT_OTHER : HW_WAIT_FAIL, now);
	}
	rq = next_request(b);
	count_wait(b, rq);
	if (!rq)
		q->wake_ns = b->idle_until_ns;
	return rq;
}

/* @rq leaves the drive, served or not. */
static void leave_drive(struct bfq *b, struct hw_request *rq)
{
	struct bfq_queue *bq = bfq_rq(rq)->queue;

	if (!bq)
		return;
	if (rq == b->waited_rq)
		bfq_inject_measured(b, bq);
	bfq_detect_queueing(b);
	b->in_driver--;
	bq->dispatched--;
	if (!bq->dispatched && !bq->busy) {
		bq->budget_timeout = b->tick;
		bfq_weight_uncount(b, bq);
	}
	bq->think.last_end_ns = b->now_ns;
	bfq_rate_completed(b);
	/* Shared queues complete so often that they would pass for wakers of anybody. */
	b->last_completed = bq->coop ? NULL : bq;
	if (bq->softrt_update && !bq->dispatched && bfq_empty(bq) &&
	    bq->raise.coeff != BFQ_INTERACTIVE_COEFF)
		bq->soft_rt_next_start = bfq_soft_rt_next_start(b, bq);
	if (bq == b->in_service)
		bfq_slot_completed(b, bq);
	bq->allocated--;
	bfq_task(rq->task)->requests--;
	bfq_rq(rq)->queue = NULL;
	bfq_drop(b, bq);
}

static void bfq_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	advance(bfq_of(q), now);
	leave_drive(bfq_of(q), rq);
}

/* As the kernel does: for its queue it is as if served, then it comes back at the head. */
static void bfq_requeued(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct bfq *b = bfq_of(q);

	advance(b, now);
	leave_drive(b, rq);
	bfq_queue_of(b, rq);
	list_add(&hw_sorted(rq)->fifo, &b->head);
}

static bool bfq_has_work(const struct hw_queue *q)
{
	return q->nr_queued && !q->wait.active;
}

/* ---- merging ---- */

static struct bfq_queue *queue_of_bio(const struct hw_bio *bio)
{
	bool sync = bio->flags & HW_RQ_SYNC;

	return bio->task ? bfq_task(bio->task)->queue[sync] : NULL;
}

static struct hw_request *bfq_find_merge(struct hw_queue *q, const struct hw_bio *bio,
					 enum hw_merge *how)
{
	struct bfq_queue *bq = queue_of_bio(bio);

	*how = HW_FRONT_MERGE;
	return bq ? hw_sorted_rq(hw_sorted_find(&bq->sorted, bio->sector + bio->sectors)) : NULL;
}

/* Only within one queue. This is also where cooperating processes are noticed early. */
static bool bfq_allow_merge(struct hw_queue *q, const struct hw_request *rq,
			    const struct hw_bio *bio)
{
	struct bfq *b = bfq_of(q);
	struct bfq_queue *bq = queue_of_bio(bio), *into;

	if (!bq || ((bio->flags & HW_RQ_SYNC) && !hw_is_sync(rq)))
		return false;
	if (bio->now_ns > b->now_ns)
		set_now(b, bio->now_ns);
	into = bfq_cooperator(b, bq, bio->sector, bfq_task(bio->task));
	if (into) {
		bfq_merge_queues(b, bfq_task(bio->task), bq, into);
		bq = into;
	}
	return container_of(rq, struct bfq_request, s.rq)->queue == bq;
}

static void bfq_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now)
{
	struct bfq *b = bfq_of(q);

	advance(b, now);
	if (how == HW_FRONT_MERGE && bfq_rq(rq)->queued)
		bfq_moved_front(b, rq);
}

static void bfq_merged_requests(struct hw_queue *q, struct hw_request *keep,
				struct hw_request *gone)
{
	struct bfq *b = bfq_of(q);
	struct bfq_request *k = bfq_rq(keep), *g = bfq_rq(gone);
	struct bfq_queue *bq = g->queue;

	if (!g->queued) {
		list_del_init(&g->s.fifo);
	} else {
		if (k->queue == bq && k->queued) {
			hw_fifo_inherit(&k->s, &g->s);
			if (bq->next == gone)
				bq->next = keep;
		}
		bfq_dequeue(b, gone);
	}
	g->queue = NULL;
	if (!bq)
		return;
	bq->allocated--;
	bfq_task(gone->task)->requests--;
	bfq_drop(b, bq);
}

/* ---- how many requests may be allocated ---- */

/*
 * A queue with its weight's share of @limit already allocated gets one more at most, so that heavy
 * users do not keep others from the pool. Higher classes count eightfold for each step.
 */
static bool over_share(const struct bfq *b, const struct bfq_queue *bq, u64 limit)
{
	u64 sum = 0;
	u32 i;

	if (!bq->counted)
		return false;
	for (i = 0; i < bq->class; i++)
		sum = sum * BFQ_NR_LEVELS + b->vtree[i].weight_sum;
	if (!sum)
		return false;
	return bq->allocated >= div64_u64(limit * bq->weight + sum / 2, sum);
}

static u32 bfq_limit_depth(struct hw_queue *q, const struct hw_bio *bio)
{
	/* Sixteenths of the pool: async, sync writes; if a raised queue is busy, less. */
	static const u8 share[2][2] = { { 8, 12 }, { 3, 6 } };
	const struct bfq *b = bfq_of(q);
	bool sync = bio->flags & HW_RQ_SYNC;
	struct bfq_queue *bq = queue_of_bio(bio);
	u32 all = q->dev.nr_requests, depth = all;

	if (!all)
		return U32_MAX;
	if (!sync || bio->op != HW_READ)
		depth = max_t(u32, all * share[b->nr_busy_raised > 0][sync] / 16, 1);
	if (!bq || !over_share(b, bq, depth))
		return depth;
	return b->kernel == BFQ_6_1 ? hw_limit_by_word(all, 1) : 1;
}

/* ---- tasks ---- */

static void bfq_task_exit(struct hw_queue *q, struct hw_task *task, u64 now)
{
	struct bfq *b = bfq_of(q);

	advance(b, now);
	bfq_forget_task(b, bfq_task(task));
	/* Nobody is left to wait for. */
	if (b->idle_until_ns == HW_NEVER)
		hw_wait_end(q, HW_WAIT_OTHER, now);
}

/* ---- tables ---- */

static const char *const kernel_names[] = { "6.1", "6.12", NULL };

#define TUNE(...) HW_TUNE(struct bfq, __VA_ARGS__)

static const struct hw_tunable tunables[] = {
	TUNE(fifo_expire_sync, 125, 1, HW_INT_MAX, "ms",
	     "age at which a synchronous request goes first in its queue"),
	TUNE(fifo_expire_async, 250, 1, HW_INT_MAX, "ms",
	     "age at which an asynchronous request goes first in its queue"),
	TUNE(back_seek_max, 16384, 0, HW_INT_MAX, "KiB", "maximum distance backwards to a request"),
	TUNE(back_seek_penalty, 2, 1, HW_INT_MAX, "",
	     "cost of a sector backwards, in sectors forwards"),
	TUNE(slice_idle, DEFAULT_SLICE_IDLE_MS, 0, HW_INT_MAX, "ms",
	     "longest wait for a queue's next request; 0: never wait"),
	TUNE(slice_idle_us, DEFAULT_SLICE_IDLE_US, 0, U32_MAX, "us",
	     "slice_idle in microseconds; the last one written applies"),
	TUNE(max_budget, 0, 0, HW_INT_MAX, "sectors",
	     "maximum service of a queue in a slot; 0: derived from the drive's peak rate"),
	TUNE(timeout_sync, DEFAULT_TIMEOUT_MS, 1, HW_INT_MAX, "ms", "longest slot"),
	HW_TUNE_BOOL(struct bfq, strict_guarantees, 0,
		     "one request in the drive at a time, and always wait"),
	HW_TUNE_BOOL(struct bfq, low_latency, 1,
		     "raise the weight of interactive and soft real-time queues"),
	HW_TUNE_ENUM(struct bfq, kernel, BFQ_6_12, kernel_names,
		     "kernel version to follow in the first think time of a queue"),
	HW_TUNE_TICK(struct bfq, 4000),
};

static s64 stat_peak_rate(const struct hw_queue *q)
{
	return (s64)((bfq_of_const(q)->rate.peak * 1000000) >> BFQ_RATE_SHIFT);
}

static s64 stat_max_budget(const struct hw_queue *q)
{
	return bfq_of_const(q)->cap_budget;
}

static s64 stat_raised(const struct hw_queue *q)
{
	return bfq_of_const(q)->nr_busy_raised;
}

static const struct hw_stat stats[] = {
	{ "peak_rate", "sectors/s", "estimated peak rate of the drive", stat_peak_rate },
	{ "device_max_budget", "sectors", "largest budget at that rate", stat_max_budget },
	{ "raised_queues", "queues", "busy queues whose weight is raised", stat_raised },
};

const struct hw_policy hw_bfq = {
	.name = "bfq",
	.summary =
		"budget fair queueing: weighted shares of sectors, waiting, low latency for new work",
	.source = "Linux 6.12 bfq; Valente and Checconi, IEEE ToC 59(9), 2010",
	.flags = HW_POLICY_HASH | HW_POLICY_UNTHROTTLED | HW_POLICY_MODEL,
	.queue_size = sizeof(struct bfq),
	.task_size = sizeof(struct bfq_task),
	.request_size = sizeof(struct bfq_request),
	.tunables = tunables,
	.nr_tunables = ARRAY_SIZE(tunables),
	.stats = stats,
	.nr_stats = ARRAY_SIZE(stats),
	.init = bfq_init,
	.tuned = bfq_tuned,
	.insert = bfq_insert,
	.dispatch = bfq_dispatch,
	.complete = bfq_complete,
	.requeue = bfq_requeued,
	.has_work = bfq_has_work,
	.find_merge = bfq_find_merge,
	.allow_merge = bfq_allow_merge,
	.merged = bfq_merged,
	.merged_requests = bfq_merged_requests,
	.former = bfq_former,
	.latter = bfq_latter,
	.limit_depth = bfq_limit_depth,
	.task_exit = bfq_task_exit,
};
