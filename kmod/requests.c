// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The life of a request: prepared, inserted, dispatched, completed. All that runs once a request is in this file, so that
 * the compiler can put it in line.
 */
#include "requests.h"

#include <trace/events/block.h>

/* ---- lock ---- */

/* Lock for an event that happens now, or at a time that is known: reading the clock costs. */
static unsigned long hw_lock_at(struct hw_disk *disk, u64 now)
{
	unsigned long flags;

	spin_lock_irqsave(&disk->lock, flags);
	disk->now = max(disk->now, now);
	disk->fresh = true;
	return flags;
}

unsigned long hw_lock(struct hw_disk *disk)
{
	return hw_lock_at(disk, ktime_get_ns());
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

/*
 * NULL is the policy's answer until something happens. The first question after an event is answered as of the event's
 * time.
 */
static struct request *hw_ask(struct hw_disk *disk)
{
	struct hw_request *hwrq;

	if (!disk->fresh)
		disk->now = max_t(u64, disk->now, ktime_get_ns());
	disk->fresh = false;
	disk->q->force = disk->rq_queue->mq_freeze_depth > 0;
	hwrq = hw_dispatch(disk->q, disk->now);
	if (unlikely(!hwrq)) {
		hw_arm(disk);
		return NULL;
	}
	hw_unhash(disk, hwrq->host);
	return hwrq->host;
}

/* Something has happened: is the policy to be asked? False if nobody needs to. */
static __always_inline bool hw_settle(struct hw_disk *disk)
{
	struct hw_queue *q = disk->q;
	bool work = disk->ready;

	if (!q->nr_queued) {
		if (disk->policy->idle)
			disk->policy->idle(q);
	} else if (!work && hw_room(disk)) {
		work = disk->policy->has_work(q);
		if (unlikely(!work)) {
			disk->picked = hw_ask(disk);
			disk->ready += disk->picked != NULL;
			work = disk->picked;
		}
	}
	WRITE_ONCE(disk->work, work);
	return work;
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
	if (disk->work || !hw_settle(disk))
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
		hwrq = (struct hw_request *)(areas->area + (size_t)rq->internal_tag * areas->stride);
		memset(hwrq, 0, disk->policy->request_size);
		hwrq->host = rq;
		hwrq->cpu = raw_smp_processor_id();
	}
	rq->elv.priv[0] = hwrq;
}

static void hw_fill(struct hw_disk *disk, struct hw_request *hwrq, const struct request *rq, bool at_head)
{
	struct io_cq *icq = rq->elv.icq;

	hw_set_range(hwrq, rq);
	hwrq->op = hw_op(rq->cmd_flags);
	hwrq->flags = hw_flags(rq->cmd_flags) | (at_head ? HW_RQ_AT_HEAD : 0);
	hwrq->ioprio = req_get_ioprio((struct request *)rq);
	hwrq->task = icq && hw_icq(icq)->task ? hw_icq(icq)->task : disk->anyone;
	if (icq)
		hwrq->task->ioprio = icq->ioc->ioprio;
}

static void hw_insert_one(struct hw_disk *disk, struct request *rq, bool at_head, struct list_head *merged)
{
	struct request_queue *rq_queue = disk->rq_queue;
	struct hw_request *hwrq = hw_request_of(rq);
	bool mergeable;

	if (unlikely(!hwrq)) {
		list_add_tail(&rq->queuelist, &disk->bypass);
		disk->ready++;
		return;
	}
	if (unlikely(hwrq->state == HW_DISPATCHED)) {	/* the driver gave it back */
		hw_set_range(hwrq, rq);
		hw_requeue(disk->q, hwrq, disk->now);
		return;
	}
	mergeable = hw_mergeable(rq);
	if (mergeable && disk->q->nr_queued) {
		hw_hash_lone(disk);
		if (!at_head && blk_mq_sched_try_insert_merge(rq_queue, rq, merged))
			return;
	}
	trace_block_rq_insert(rq);
	hw_fill(disk, hwrq, rq, at_head);
	if (!mergeable)
		hwrq->flags |= HW_RQ_NOMERGE;
	hw_insert(disk->q, hwrq, disk->now);
	if (mergeable && disk->policy->flags & HW_POLICY_HASH) {
		disk->lone = rq;
		if (!rq_queue->last_merge)
			rq_queue->last_merge = rq;
	}
}

void hw_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, hw_insert_t how)
{
	struct hw_disk *disk = hw_disk_of(hctx->queue);
	bool at_head = hw_insert_at_head(how);
	struct request *rq, *next;
	unsigned long flags;
	LIST_HEAD(merged);

	/* When the last of them was allocated, a moment ago, is known; when those at the head came back is not. */
	flags = hw_lock_at(disk, at_head ? ktime_get_ns() : list_last_entry(list, struct request, queuelist)->start_time_ns);
	list_for_each_entry_safe(rq, next, list, queuelist) {
		list_del_init(&rq->queuelist);
		hw_insert_one(disk, rq, at_head, &merged);
	}
	hw_settle(disk);
	hw_unlock(disk, flags);
	list_for_each_entry_safe(rq, next, &merged, queuelist) {
		list_del_init(&rq->queuelist);
		blk_mq_free_request(rq);
	}
}

/* ---- dispatch ---- */

bool hw_has_work(struct blk_mq_hw_ctx *hctx)
{
	return READ_ONCE(hw_disk_of(hctx->queue)->work);
}

/* What is ready to go without a question to the policy. */
static struct request *hw_take_ready(struct hw_disk *disk)
{
	struct request *rq = disk->picked;

	disk->ready--;
	disk->picked = NULL;
	if (!rq) {
		rq = list_first_entry(&disk->bypass, struct request, queuelist);
		list_del_init(&rq->queuelist);
	}
	return rq;
}

struct request *hw_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct hw_disk *disk = hw_disk_of(hctx->queue);
	struct request *rq = NULL;
	unsigned long flags;

	spin_lock_irqsave(&disk->lock, flags);
	if (unlikely(disk->ready))
		rq = hw_take_ready(disk);
	else if (likely(disk->work && hw_room(disk)))
		rq = hw_ask(disk);
	if (likely(rq)) {
		rq->rq_flags |= RQF_STARTED;
		hw_settle(disk);
	} else {
		WRITE_ONCE(disk->work, false);
	}
	hw_unlock(disk, flags);
	return rq;
}

/* The time to which the policy wanted to wait; or earlier, armed for a wait that has ended; or a task's exit. */
enum hrtimer_restart hw_timer(struct hrtimer *timer)
{
	struct hw_disk *disk = container_of(timer, struct hw_disk, timer);
	unsigned long flags;
	bool run;

	flags = hw_lock(disk);
	disk->timer_ns = HW_NEVER;
	run = disk->work || (disk->q->wake_ns <= disk->now && hw_settle(disk));
	if (!run)
		hw_arm(disk);
	hw_unlock(disk, flags);
	if (run)
		blk_mq_run_hw_queues(disk->rq_queue, true);
	return HRTIMER_NORESTART;
}

/* ---- completion ---- */

static void hw_complete_one(struct request *rq, struct hw_request *hwrq, u64 now)
{
	struct hw_disk *disk = hw_disk_of(rq->q);
	unsigned long flags;
	bool restart;

	flags = hw_lock_at(disk, now);
	hw_complete(disk->q, hwrq, disk->now);
	restart = !disk->work && hw_settle(disk);
	hw_unlock(disk, flags);
	if (!restart)
		return;
	/* The core runs a marked queue when it has freed the request's driver tag. Others it does not run by itself. */
	if (rq->q->nr_hw_queues == 1)
		blk_mq_sched_mark_restart_hctx(rq->mq_hctx);
	else
		blk_mq_run_hw_queues(rq->q, true);
}

void hw_completed_request(struct request *rq, u64 now)
{
	struct hw_request *hwrq = hw_request_of(rq);

	if (likely(hwrq && hwrq->state == HW_DISPATCHED))
		hw_complete_one(rq, hwrq, now);
}

/* Also for requests that were never inserted, or merged away. */
void hw_finish_request(struct request *rq)
{
	struct hw_request *hwrq = hw_request_of(rq);

	if (unlikely(hwrq && hwrq->state == HW_DISPATCHED))	/* freed without having been completed */
		hw_complete_one(rq, hwrq, ktime_get_ns());
	if (rq->elv.icq) {
		put_io_context(rq->elv.icq->ioc);
		rq->elv.icq = NULL;
	}
}
