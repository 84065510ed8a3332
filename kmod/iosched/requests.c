// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The life of a request: prepared, inserted, dispatched, completed. All that runs once a request is
 * in this file, so that the compiler can put it in line.
 */
#include "iosched/requests.h"

#include <trace/events/block.h>

/* ---- asking the policy ---- */

static bool has_room(const struct hwk_sched *sched)
{
	return sched->q->nr_in_flight < sched->depth;
}

static void arm(struct hwk_sched *sched)
{
	u64 wake = sched->q->wake_ns;

	if (wake >= sched->timer_ns)
		return;
	sched->timer_ns = wake;
	hrtimer_start(&sched->timer, ns_to_ktime(wake), HRTIMER_MODE_ABS);
}

/* Ask the policy for a request. NULL is its answer until something happens. */
static __always_inline void ask(struct hwk_sched *sched)
{
	struct hw_queue *q = sched->q;
	struct hw_request *hwrq;

	q->force = sched->rq_queue->mq_freeze_depth > 0;
	hwrq = hw_dispatch(q, sched->now);
	if (unlikely(!hwrq)) {
		arm(sched);
		return;
	}
	sched->picked = hwrq->host;
	WRITE_ONCE(sched->ready, true);
	hwk_unhash(sched, sched->picked);
	if (!q->nr_queued && sched->policy->idle && has_room(sched))
		hw_idle(q);
}

/* Something has happened: is there a request to go out now? */
static __always_inline void settle(struct hwk_sched *sched)
{
	if (sched->q->nr_queued && !sched->ready && has_room(sched))
		ask(sched);
}

/* Something outside has changed: settle, and run the queue. */
void hwk_changed(struct hwk_sched *sched, unsigned long flags)
{
	settle(sched);
	hwk_unlock(sched, flags);
	blk_mq_run_hw_queues(sched->rq_queue, true);
}

/* As hwk_changed(), where the lock stays held and the queue must not be run: the timer runs it. */
void hwk_changed_silently(struct hwk_sched *sched)
{
	if (sched->ready)
		return;
	settle(sched);
	if (!sched->ready)
		return;
	sched->timer_ns = sched->now;
	hrtimer_start(&sched->timer, ns_to_ktime(sched->now), HRTIMER_MODE_ABS);
}

/* ---- insertion ---- */

/* Called with the submitter as `current`. */
void hwk_prepare_request(struct request *rq)
{
	struct hwk_sched *sched = hwk_sched_of(rq->q);
	struct hwk_areas *areas = rq->mq_hctx->sched_data;
	struct hw_request *hwrq = NULL;

	rq->elv.icq = sched->tasks ? hwk_get_icq(rq->q) : NULL;
	if (likely((u32)rq->internal_tag < areas->nr)) {
		hwrq = (struct hw_request *)(areas->area +
					     (size_t)rq->internal_tag * areas->stride);
		hwk_clear(hwrq + 1, areas->clear);
		hwrq->host = rq;
		hwrq->cpu = raw_smp_processor_id();
		hwrq->state = HW_IDLE;
		hwrq->dispatch_ns = 0;
	}
	rq->elv.priv[0] = hwrq;
}

/* The policy's view of a request. What prepare_request() knew already stands there. */
static __always_inline void fill(struct hwk_sched *sched, struct hw_request *hwrq,
				 const struct request *rq, u8 op, u8 flags)
{
	struct io_cq *icq = rq->elv.icq;
	struct hw_task *task = sched->anyone;

	hwk_set_range(hwrq, rq);
	hwrq->op = op;
	hwrq->flags = flags;
	hwrq->ioprio = req_get_ioprio((struct request *)rq);
	if (likely(icq)) {
		task = hwk_task_of(sched, icq);
		task->ioprio = icq->ioc->ioprio;
	}
	hwrq->task = task;
	hwrq->group = hwk_group_of(sched, rq->bio);
}

/* A request that the policy has had before, or never sees. */
static noinline void insert_known(struct hwk_sched *sched, struct request *rq,
				  struct hw_request *hwrq)
{
	if (!hwrq) {
		list_add_tail(&rq->queuelist, &sched->bypass);
		WRITE_ONCE(sched->ready, true);
		return;
	}
	hwk_set_range(hwrq, rq); /* the driver gave it back */
	hw_requeue(sched->q, hwrq, sched->now);
}

/* Has @rq become part of another? */
static noinline bool insert_merged(struct hwk_sched *sched, struct request *rq, bool at_head)
{
	hwk_hash_lone(sched);
	return !at_head && blk_mq_sched_try_insert_merge(sched->rq_queue, rq, &sched->merged);
}

static __always_inline void insert_one(struct hwk_sched *sched, struct request *rq, bool at_head)
{
	struct hw_request *hwrq = hwk_request_of(rq);
	u8 op = hwk_op(rq->cmd_flags),
	   flags = hwk_flags(rq->cmd_flags) | (at_head ? HW_RQ_AT_HEAD : 0);
	bool mergeable = op <= HW_WRITE && hwk_may_merge(rq);
	struct hw_queue *q = sched->q;

	if (unlikely(!hwrq || hwrq->state == HW_DISPATCHED)) {
		insert_known(sched, rq, hwrq);
		return;
	}
	if (unlikely(!mergeable))
		flags |= HW_RQ_NOMERGE;
	else if (unlikely(q->nr_queued) && insert_merged(sched, rq, at_head))
		return;
	trace_block_rq_insert(rq);
	fill(sched, hwrq, rq, op, flags);
	hw_insert(q, hwrq, sched->now);
	if (likely(!(hwrq->flags & (HW_RQ_NOMERGE | HW_RQ_AT_HEAD))) &&
	    sched->policy->flags & HW_POLICY_HASH) {
		sched->lone = rq;
		if (!sched->rq_queue->last_merge)
			sched->rq_queue->last_merge = rq;
	}
}

static noinline void unlock_and_free_merged(struct hwk_sched *sched)
{
	struct request *rq, *next;
	LIST_HEAD(merged);

	list_splice_init(&sched->merged, &merged);
	hwk_unlock_irq(sched);
	list_for_each_entry_safe(rq, next, &merged, queuelist) {
		list_del_init(&rq->queuelist);
		blk_mq_free_request(rq);
	}
}

static __always_inline void insert_all(struct hwk_sched *sched, struct list_head *list,
				       bool at_head, u64 now)
{
	struct list_head *at = list->next, *next;

	spin_lock_irq(&sched->lock);
	hwk_set_now(sched, now);
	do {
		next = at->next;
		INIT_LIST_HEAD(at); /* all of them leave the list */
		insert_one(sched, list_entry(at, struct request, queuelist), at_head);
		at = next;
	} while (at != list);
	INIT_LIST_HEAD(list);
	settle(sched);
	if (likely(list_empty(&sched->merged)))
		hwk_unlock_irq(sched);
	else
		unlock_and_free_merged(sched);
}

static noinline void insert_at_head_of_all(struct hwk_sched *sched, struct list_head *list)
{
	insert_all(sched, list, true, ktime_get_ns());
}

/*
 * When the last of them was allocated, a moment ago, is known; when those for the head came back is
 * not.
 */
void hwk_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, blk_insert_t how)
{
	struct hwk_sched *sched = hwk_sched_of(hctx->queue);

	if (unlikely(list_empty(list)))
		return;
	if (likely(!hwk_insert_at_head(how)))
		insert_all(sched, list, false,
			   list_last_entry(list, struct request, queuelist)->start_time_ns);
	else
		insert_at_head_of_all(sched, list);
}

/* ---- dispatch ---- */

bool hwk_has_work(struct blk_mq_hw_ctx *hctx)
{
	return READ_ONCE(hwk_sched_of(hctx->queue)->ready);
}

static __always_inline struct request *take_ready(struct hwk_sched *sched)
{
	struct request *rq = sched->picked;

	sched->picked = NULL;
	if (unlikely(!rq)) {
		rq = list_first_entry(&sched->bypass, struct request, queuelist);
		list_del_init(&rq->queuelist);
	}
	WRITE_ONCE(sched->ready, !list_empty(&sched->bypass));
	return rq;
}

static noinline void ask_for_more(struct hwk_sched *sched)
{
	hwk_set_now(sched, ktime_get_ns());
	settle(sched);
}

struct request *hwk_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct hwk_sched *sched = hwk_sched_of(hctx->queue);
	struct request *rq = NULL;

	spin_lock_irq(&sched->lock);
	if (likely(sched->ready)) {
		rq = take_ready(sched);
		rq->rq_flags |= RQF_STARTED;
		if (unlikely(sched->q->nr_queued))
			ask_for_more(sched);
	}
	hwk_unlock_irq(sched);
	return rq;
}

/*
 * The time to which the policy wanted to wait; or earlier, armed for a wait that has ended; or a
 * task's exit.
 */
enum hrtimer_restart hwk_timer(struct hrtimer *timer)
{
	struct hwk_sched *sched = container_of(timer, struct hwk_sched, timer);
	unsigned long flags;
	bool run;

	flags = hwk_lock(sched);
	sched->timer_ns = HW_NEVER;
	if (sched->q->wake_ns <= sched->now)
		settle(sched);
	run = sched->ready;
	if (!run)
		arm(sched);
	hwk_unlock(sched, flags);
	if (run)
		blk_mq_run_hw_queues(sched->rq_queue, true);
	return HRTIMER_NORESTART;
}

/* ---- completion ---- */

/* Has the completion of a request made that another can go out? */
static noinline bool became_ready(struct hwk_sched *sched)
{
	bool before = sched->ready;

	settle(sched);
	return sched->ready && !before;
}

void hwk_completed_request(struct request *rq, u64 now)
{
	struct hw_request *hwrq = hwk_request_of(rq);
	struct hwk_sched *sched = hwk_sched_of(rq->q);
	bool full, restart;
	unsigned long flags;

	if (unlikely(!hwrq || hwrq->state != HW_DISPATCHED))
		return;
	spin_lock_irqsave(&sched->lock, flags);
	hwk_set_now(sched, now);
	full = !has_room(sched);
	/* The core may have kept it for a while, for want of a tag. */
	if (rq->io_start_time_ns > hwrq->dispatch_ns)
		hwrq->dispatch_ns = min(rq->io_start_time_ns, sched->now);
	hw_complete(sched->q, hwrq, sched->now);
	restart = sched->q->nr_queued ? became_ready(sched) : false;
	if (unlikely(full && !sched->q->nr_queued))
		hw_idle(sched->q);
	hwk_unlock(sched, flags);
	if (likely(!restart))
		return;
	/*
	 * The core runs a marked queue when it has freed the request's driver tag. Others it does
	 * not run by itself.
	 */
	if (rq->q->nr_hw_queues == 1)
		blk_mq_sched_mark_restart_hctx(rq->mq_hctx);
	else
		blk_mq_run_hw_queues(rq->q, true);
}

/* Also for requests that were never inserted, or merged away. */
void hwk_finish_request(struct request *rq)
{
	struct hw_request *hwrq = hwk_request_of(rq);
	struct io_cq *icq = rq->elv.icq;

	if (unlikely(hwrq &&
		     hwrq->state == HW_DISPATCHED)) /* freed without having been completed */
		hwk_completed_request(rq, ktime_get_ns());
	if (icq) {
		rq->elv.icq = NULL;
		hwk_put_icq(icq);
	}
}
