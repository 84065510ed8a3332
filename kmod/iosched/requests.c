// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The life of a request: prepared, inserted, dispatched, completed. All that runs once a request is
 * in this file, so that the compiler can put it in line.
 */
#include "iosched/requests.h"

#include <trace/events/block.h>

/* ---- lock and clock ---- */

unsigned long hw_lock(struct hw_disk *disk)
{
	unsigned long flags;
	u64 now = ktime_get_ns();

	spin_lock_irqsave(&disk->lock, flags);
	hw_set_now(disk, now);
	return flags;
}

/* ---- asking the policy ---- */

static bool hw_room(const struct hw_disk *disk)
{
	return disk->q->nr_in_flight < disk->depth;
}

static void hw_arm(struct hw_disk *disk)
{
	u64 wake = disk->q->wake_ns;

	if (wake >= disk->timer_ns)
		return;
	disk->timer_ns = wake;
	hrtimer_start(&disk->timer, ns_to_ktime(wake), HRTIMER_MODE_ABS);
}

/* Ask the policy for a request. NULL is its answer until something happens. */
static __always_inline void hw_ask(struct hw_disk *disk)
{
	struct hw_queue *q = disk->q;
	struct hw_request *hwrq;

	q->force = disk->rq_queue->mq_freeze_depth > 0;
	hwrq = hw_dispatch(q, disk->now);
	if (unlikely(!hwrq)) {
		hw_arm(disk);
		return;
	}
	disk->picked = hwrq->host;
	WRITE_ONCE(disk->ready, true);
	hw_unhash(disk, disk->picked);
	if (!q->nr_queued && disk->policy->idle && hw_room(disk))
		disk->policy->idle(q);
}

/* Something has happened: is there a request to go out now? */
static __always_inline void hw_settle(struct hw_disk *disk)
{
	if (disk->q->nr_queued && !disk->ready && hw_room(disk))
		hw_ask(disk);
}

/* The same for changes from outside; and the queue is run. */
void hw_changed(struct hw_disk *disk, unsigned long flags)
{
	hw_settle(disk);
	hw_unlock(disk, flags);
	blk_mq_run_hw_queues(disk->rq_queue, true);
}

/* The same where the queue must not be run, under the lock that stays held: the timer runs it. */
void hw_changed_silently(struct hw_disk *disk)
{
	if (disk->ready)
		return;
	hw_settle(disk);
	if (!disk->ready)
		return;
	disk->timer_ns = disk->now;
	hrtimer_start(&disk->timer, ns_to_ktime(disk->now), HRTIMER_MODE_ABS);
}

/* ---- insertion ---- */

/* Called with the submitter as `current`. */
void hw_prepare_request(struct request *rq)
{
	struct hw_disk *disk = hw_disk_of(rq->q);
	struct hw_areas *areas = rq->mq_hctx->sched_data;
	struct hw_request *hwrq = NULL;

	rq->elv.icq = disk->tasks ? hw_get_icq(rq->q) : NULL;
	if (likely((u32)rq->internal_tag < areas->nr)) {
		hwrq = (struct hw_request *)(areas->area +
					     (size_t)rq->internal_tag * areas->stride);
		hw_clear(hwrq + 1, areas->clear);
		hwrq->host = rq;
		hwrq->cpu = raw_smp_processor_id();
		hwrq->state = HW_IDLE;
		hwrq->dispatch_ns = 0;
	}
	rq->elv.priv[0] = hwrq;
}

/* The policy's view of a request. What prepare_request() knew already stands there. */
static __always_inline void hw_fill(struct hw_disk *disk, struct hw_request *hwrq,
				    const struct request *rq, u8 op, u8 flags)
{
	struct io_cq *icq = rq->elv.icq;
	struct hw_task *task = disk->anyone;

	hw_set_range(hwrq, rq);
	hwrq->op = op;
	hwrq->flags = flags;
	hwrq->ioprio = req_get_ioprio((struct request *)rq);
	if (likely(icq)) {
		if (likely(hw_icq(icq)->task))
			task = hw_icq(icq)->task;
		task->ioprio = icq->ioc->ioprio;
	}
	hwrq->task = task;
}

/* A request that the policy has had before, or never sees. */
static noinline void hw_insert_known(struct hw_disk *disk, struct request *rq,
				     struct hw_request *hwrq)
{
	if (!hwrq) {
		list_add_tail(&rq->queuelist, &disk->bypass);
		WRITE_ONCE(disk->ready, true);
		return;
	}
	hw_set_range(hwrq, rq); /* the driver gave it back */
	hw_requeue(disk->q, hwrq, disk->now);
}

/* Has @rq become part of another? */
static noinline bool hw_insert_merged(struct hw_disk *disk, struct request *rq, bool at_head)
{
	hw_hash_lone(disk);
	return !at_head && blk_mq_sched_try_insert_merge(disk->rq_queue, rq, &disk->merged);
}

static __always_inline void hw_insert_one(struct hw_disk *disk, struct request *rq, bool at_head)
{
	struct hw_request *hwrq = hw_request_of(rq);
	u8 op = hw_op(rq->cmd_flags),
	   flags = hw_flags(rq->cmd_flags) | (at_head ? HW_RQ_AT_HEAD : 0);
	bool mergeable = op <= HW_WRITE && hw_may_merge(rq);
	struct hw_queue *q = disk->q;

	if (unlikely(!hwrq || hwrq->state == HW_DISPATCHED)) {
		hw_insert_known(disk, rq, hwrq);
		return;
	}
	if (unlikely(!mergeable))
		flags |= HW_RQ_NOMERGE;
	else if (unlikely(q->nr_queued) && hw_insert_merged(disk, rq, at_head))
		return;
	trace_block_rq_insert(rq);
	hw_fill(disk, hwrq, rq, op, flags);
	hw_insert(q, hwrq, disk->now);
	if (likely(!(hwrq->flags & (HW_RQ_NOMERGE | HW_RQ_AT_HEAD))) &&
	    disk->policy->flags & HW_POLICY_HASH) {
		disk->lone = rq;
		if (!disk->rq_queue->last_merge)
			disk->rq_queue->last_merge = rq;
	}
}

static noinline void hw_unlock_and_free_merged(struct hw_disk *disk)
{
	struct request *rq, *next;
	LIST_HEAD(merged);

	list_splice_init(&disk->merged, &merged);
	hw_unlock_irq(disk);
	list_for_each_entry_safe(rq, next, &merged, queuelist) {
		list_del_init(&rq->queuelist);
		blk_mq_free_request(rq);
	}
}

static __always_inline void hw_insert_all(struct hw_disk *disk, struct list_head *list,
					  bool at_head, u64 now)
{
	struct list_head *at = list->next, *next;

	spin_lock_irq(&disk->lock);
	hw_set_now(disk, now);
	do {
		next = at->next;
		INIT_LIST_HEAD(at); /* all of them leave the list */
		hw_insert_one(disk, list_entry(at, struct request, queuelist), at_head);
		at = next;
	} while (at != list);
	INIT_LIST_HEAD(list);
	hw_settle(disk);
	if (likely(list_empty(&disk->merged)))
		hw_unlock_irq(disk);
	else
		hw_unlock_and_free_merged(disk);
}

static noinline void hw_insert_at_head_of_all(struct hw_disk *disk, struct list_head *list)
{
	hw_insert_all(disk, list, true, ktime_get_ns());
}

/*
 * When the last of them was allocated, a moment ago, is known; when those for the head came back is
 * not.
 */
void hw_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, hw_insert_t how)
{
	struct hw_disk *disk = hw_disk_of(hctx->queue);

	if (unlikely(list_empty(list)))
		return;
	if (likely(!hw_insert_at_head(how)))
		hw_insert_all(disk, list, false,
			      list_last_entry(list, struct request, queuelist)->start_time_ns);
	else
		hw_insert_at_head_of_all(disk, list);
}

/* ---- dispatch ---- */

bool hw_has_work(struct blk_mq_hw_ctx *hctx)
{
	return READ_ONCE(hw_disk_of(hctx->queue)->ready);
}

static __always_inline struct request *hw_take_ready(struct hw_disk *disk)
{
	struct request *rq = disk->picked;

	disk->picked = NULL;
	if (unlikely(!rq)) {
		rq = list_first_entry(&disk->bypass, struct request, queuelist);
		list_del_init(&rq->queuelist);
	}
	WRITE_ONCE(disk->ready, !list_empty(&disk->bypass));
	return rq;
}

static noinline void hw_ask_for_more(struct hw_disk *disk)
{
	hw_set_now(disk, ktime_get_ns());
	hw_settle(disk);
}

struct request *hw_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct hw_disk *disk = hw_disk_of(hctx->queue);
	struct request *rq = NULL;

	spin_lock_irq(&disk->lock);
	if (likely(disk->ready)) {
		rq = hw_take_ready(disk);
		rq->rq_flags |= RQF_STARTED;
		if (unlikely(disk->q->nr_queued))
			hw_ask_for_more(disk);
	}
	hw_unlock_irq(disk);
	return rq;
}

/*
 * The time to which the policy wanted to wait; or earlier, armed for a wait that has ended; or a
 * task's exit.
 */
enum hrtimer_restart hw_timer(struct hrtimer *timer)
{
	struct hw_disk *disk = container_of(timer, struct hw_disk, timer);
	unsigned long flags;
	bool run;

	flags = hw_lock(disk);
	disk->timer_ns = HW_NEVER;
	if (disk->q->wake_ns <= disk->now)
		hw_settle(disk);
	run = disk->ready;
	if (!run)
		hw_arm(disk);
	hw_unlock(disk, flags);
	if (run)
		blk_mq_run_hw_queues(disk->rq_queue, true);
	return HRTIMER_NORESTART;
}

/* ---- completion ---- */

/* Has the completion of a request made that another can go out? */
static noinline bool hw_restart(struct hw_disk *disk)
{
	bool before = disk->ready;

	hw_settle(disk);
	return disk->ready && !before;
}

void hw_completed_request(struct request *rq, u64 now)
{
	struct hw_request *hwrq = hw_request_of(rq);
	struct hw_disk *disk = hw_disk_of(rq->q);
	bool full, restart;
	unsigned long flags;

	if (unlikely(!hwrq || hwrq->state != HW_DISPATCHED))
		return;
	spin_lock_irqsave(&disk->lock, flags);
	hw_set_now(disk, now);
	full = !hw_room(disk);
	hw_complete(disk->q, hwrq, disk->now);
	restart = disk->q->nr_queued ? hw_restart(disk) : false;
	if (unlikely(full && !disk->q->nr_queued) && disk->policy->idle)
		disk->policy->idle(disk->q);
	hw_unlock(disk, flags);
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
void hw_finish_request(struct request *rq)
{
	struct hw_request *hwrq = hw_request_of(rq);
	struct io_cq *icq = rq->elv.icq;

	if (unlikely(hwrq &&
		     hwrq->state == HW_DISPATCHED)) /* freed without having been completed */
		hw_completed_request(rq, ktime_get_ns());
	if (icq) {
		rq->elv.icq = NULL;
		hw_put_icq(icq);
	}
}
