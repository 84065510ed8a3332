// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The policies of core as blk-mq elevators, named hw-NAME.
 *
 * Nothing is decided here. The block layer's calls become calls of the contract (core/elevator.h):
 *
 *  - One policy queue per disk, whatever the number of hardware queues; one irq-safe lock around every call.
 *  - A request's private area is preallocated per scheduler tag, a task hangs on the io_cq of (process, disk).
 *  - The contract has dispatch asked after every event until it has nothing. blk-mq asks when it runs the hardware queue
 *    and has_work() says yes. So every event ends with hw_settle(), which works out whether the policy is to be asked, or
 *    asks it there and then if it would hold back: a yes of has_work() that comes to nothing makes blk-mq poll every 3 ms.
 *    Insertions are followed by a run of the queue; a completion that makes work marks the queue for one.
 *  - blk-mq pulls one request ahead of the driver: whoever holds the device idle would decide one request early, on what
 *    it cannot know yet. So no more requests are handed out than the device takes at once.
 *  - Waits are an hrtimer. It is armed lazily: one that fires early finds a later time to fire at.
 *
 * Lock order: queue_lock, io_context.lock, hw_disk.lock. Queues are never run under hw_disk.lock, nor from exit_icq (its
 * caller may hold queue_lock, which blk_mq_run_hw_queue() takes).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "iosched.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <trace/events/block.h>

static struct hw_type *hw_types;
static unsigned int hw_nr_types;

/* Per hardware queue: the requests' private areas, by scheduler tag. */
struct hw_areas {
	u32 nr, stride;
	u8 *area;
};

/* ---- lock and clock ---- */

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

static void hw_unhash(struct hw_disk *disk, struct request *rq)
{
	if (disk->lone == rq)
		disk->lone = NULL;
	else
		elv_rqhash_del(disk->rq_queue, rq);
	if (disk->rq_queue->last_merge == rq)
		disk->rq_queue->last_merge = NULL;
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

/* ---- tasks ---- */

static struct hw_ktask *hw_ktask(struct hw_task *task)
{
	return container_of((u8 (*)[])task, struct hw_ktask, area);
}

void hw_unlock_and_reap(struct hw_disk *disk, unsigned long flags)
{
	struct hw_task *task, *next;
	LIST_HEAD(reaped);

	list_splice_init(&disk->q->reap, &reaped);
	list_for_each_entry(task, &reaped, reap)
		list_del(&hw_ktask(task)->all);
	spin_unlock_irqrestore(&disk->lock, flags);
	list_for_each_entry_safe(task, next, &reaped, reap)
		kfree(hw_ktask(task));
}

/* Memory for a task; the caller makes it known to the policy. */
static struct hw_ktask *hw_ktask_alloc(const struct hw_policy *policy, gfp_t gfp)
{
	return kzalloc(sizeof(struct hw_ktask) + policy->task_size, gfp);
}

static struct hw_task *hw_ktask_start(struct hw_disk *disk, struct hw_ktask *kt, u32 id, u16 ioprio)
{
	struct hw_task *task = (struct hw_task *)kt->area;

	task->id = id;
	task->ioprio = ioprio;
	list_add_tail(&kt->all, &disk->all_tasks);
	hw_task_start(disk->q, task, disk->now);
	return task;
}

static struct hw_icq *hw_icq(struct io_cq *icq)
{
	return container_of(icq, struct hw_icq, icq);
}

/* io_context.lock held, so no sleep. Without memory the process counts as nobody in particular. */
static void hw_init_icq(struct io_cq *icq)
{
	struct hw_disk *disk = hw_disk_of(icq->q);
	struct hw_ktask *kt = hw_ktask_alloc(disk->policy, GFP_ATOMIC | __GFP_NOWARN);
	unsigned long flags;

	hw_icq(icq)->disk = disk;
	hw_icq(icq)->task = NULL;
	if (!kt)
		return;
	flags = hw_lock(disk);
	hw_icq(icq)->task = hw_ktask_start(disk, kt, current->pid, icq->ioc->ioprio);
	hw_unlock(disk, flags);
}

static void hw_exit_icq(struct io_cq *icq)
{
	struct hw_disk *disk = hw_icq(icq)->disk;
	struct hw_task *task;
	unsigned long flags;

	flags = hw_lock(disk);
	task = hw_icq(icq)->task;
	hw_icq(icq)->task = NULL;
	if (task) {
		hw_task_exit(disk->q, task, disk->now);
		if (!disk->work && hw_settle(disk)) {	/* it ended a wait: the timer runs the queue */
			disk->timer_ns = disk->now;
			hrtimer_start(&disk->timer, ns_to_ktime(disk->now), HRTIMER_MODE_ABS);
		}
	}
	hw_unlock(disk, flags);
}

/* ---- from the block layer's requests to ours ---- */

static struct hw_request *hw_request_of(struct request *rq)
{
	return rq->rq_flags & HW_RQF_PREPARED ? rq->elv.priv[0] : NULL;
}

static u8 hw_op(blk_opf_t opf)
{
	switch (opf & REQ_OP_MASK) {
	case REQ_OP_READ:
		return HW_READ;
	case REQ_OP_WRITE:
		return HW_WRITE;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return HW_DISCARD;
	default:
		return HW_OTHER;
	}
}

static u8 hw_flags(blk_opf_t opf)
{
	return (op_is_sync(opf) ? HW_RQ_SYNC : 0) | (opf & REQ_META ? HW_RQ_META : 0) |
	       (opf & REQ_PRIO ? HW_RQ_PRIO : 0) | (opf & REQ_NOMERGE_FLAGS ? HW_RQ_NOMERGE : 0);
}

static bool hw_mergeable(const struct request *rq)
{
	return hw_op(rq->cmd_flags) <= HW_WRITE && !(rq->cmd_flags & REQ_NOMERGE_FLAGS) &&
	       !(rq->rq_flags & RQF_NOMERGE_FLAGS);
}

static void hw_set_range(struct hw_request *hwrq, const struct request *rq)
{
	hwrq->sector = blk_rq_pos(rq);
	hwrq->sectors = blk_rq_sectors(rq);
}

static struct hw_bio hw_bio_of(struct hw_disk *disk, struct bio *bio)
{
	return (struct hw_bio){
		.sector = bio->bi_iter.bi_sector,
		.sectors = bio_sectors(bio),
		.op = hw_op(bio->bi_opf),
		.flags = hw_flags(bio->bi_opf),
		.ioprio = bio_prio(bio),
		.cpu = raw_smp_processor_id(),
		.task = disk->merging,
	};
}

/*
 * With a reference on its io_context. The hint is the icq that the process used last; its owner being here, and the queue
 * not frozen, it cannot go away.
 */
static struct io_cq *hw_get_icq(struct request_queue *rq_queue)
{
	struct io_context *ioc = current->io_context;
	struct io_cq *icq;

	if (likely(ioc)) {
		rcu_read_lock();
		icq = rcu_dereference(ioc->icq_hint);
		rcu_read_unlock();
		if (likely(icq && icq->q == rq_queue)) {
			atomic_long_inc(&ioc->refcount);
			return icq;
		}
	}
	return ioc_find_get_icq(rq_queue);
}

/* Called with the submitter as `current`. */
static void hw_prepare_request(struct request *rq)
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

/* ---- insertion ---- */

/*
 * Requests that others may merge with are hashed by where they end. The latest one only when there is somebody who might:
 * on a fast device most are gone by then.
 */
static void hw_hash_lone(struct hw_disk *disk)
{
	if (disk->lone)
		elv_rqhash_add(disk->rq_queue, disk->lone);
	disk->lone = NULL;
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

static void hw_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, hw_insert_t how)
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

static bool hw_has_work(struct blk_mq_hw_ctx *hctx)
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

static struct request *hw_dispatch_request(struct blk_mq_hw_ctx *hctx)
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
static enum hrtimer_restart hw_timer(struct hrtimer *timer)
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

static void hw_completed_request(struct request *rq, u64 now)
{
	struct hw_request *hwrq = hw_request_of(rq);

	if (likely(hwrq && hwrq->state == HW_DISPATCHED))
		hw_complete_one(rq, hwrq, now);
}

/* Also for requests that were never inserted, or merged away. */
static void hw_finish_request(struct request *rq)
{
	struct hw_request *hwrq = hw_request_of(rq);

	if (unlikely(hwrq && hwrq->state == HW_DISPATCHED))	/* freed without having been completed */
		hw_complete_one(rq, hwrq, ktime_get_ns());
	if (rq->elv.icq) {
		put_io_context(rq->elv.icq->ioc);
		rq->elv.icq = NULL;
	}
}

/* ---- merging ---- */

static noinline bool hw_try_merge(struct hw_disk *disk, struct bio *bio, unsigned int nr_segs)
{
	struct request *gone = NULL;
	struct io_cq *icq = NULL;
	unsigned long flags;
	bool merged;

	if (disk->tasks)
		icq = hw_get_icq(disk->rq_queue);
	flags = hw_lock(disk);
	disk->merging = icq && hw_icq(icq)->task ? hw_icq(icq)->task : disk->anyone;
	hw_hash_lone(disk);
	merged = blk_mq_sched_try_merge(disk->rq_queue, bio, nr_segs, &gone);
	hw_unlock(disk, flags);
	if (icq)
		put_io_context(icq->ioc);
	if (gone)
		blk_mq_free_request(gone);
	return merged;
}

static bool hw_bio_merge(struct request_queue *rq_queue, struct bio *bio, unsigned int nr_segs)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);

	return READ_ONCE(disk->q->nr_queued) && hw_try_merge(disk, bio, nr_segs);
}

static int hw_request_merge(struct request_queue *rq_queue, struct request **req, struct bio *bio)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);
	enum hw_merge how = HW_NO_MERGE;
	struct hw_bio range = hw_bio_of(disk, bio);
	struct hw_request *hwrq;

	if (range.op > HW_WRITE || range.flags & HW_RQ_NOMERGE)
		return ELEVATOR_NO_MERGE;
	hwrq = disk->policy->find_merge(disk->q, &range, &how);
	if (!hwrq || !hw_mergeable(hwrq->host) || !elv_bio_merge_ok(hwrq->host, bio))
		return ELEVATOR_NO_MERGE;
	*req = hwrq->host;
	return how == HW_FRONT_MERGE ? ELEVATOR_FRONT_MERGE : how == HW_BACK_MERGE ? ELEVATOR_BACK_MERGE :
										   ELEVATOR_NO_MERGE;
}

/* A policy may rule out single requests by their flags, after their insertion too. */
static bool hw_allow_merge(struct request_queue *rq_queue, struct request *rq, struct bio *bio)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);
	struct hw_request *hwrq = hw_request_of(rq);
	struct hw_bio range;

	if (!hwrq || hwrq->flags & HW_RQ_NOMERGE)
		return false;
	if (!disk->policy->allow_merge)
		return true;
	range = hw_bio_of(disk, bio);
	return disk->policy->allow_merge(disk->q, hwrq, &range);
}

static void hw_grown(struct hw_disk *disk, struct request *rq, enum hw_merge how)
{
	struct hw_request *hwrq = hw_request_of(rq);

	hw_set_range(hwrq, rq);
	if (disk->policy->merged)
		disk->policy->merged(disk->q, hwrq, how, disk->now);
}

static void hw_request_merged(struct request_queue *rq_queue, struct request *rq, enum elv_merge type)
{
	hw_grown(hw_disk_of(rq_queue), rq, type == ELEVATOR_FRONT_MERGE ? HW_FRONT_MERGE : HW_BACK_MERGE);
}

/* @gone's range has been added to @keep already. At insertion, @gone is a request that the policy has not seen yet. */
static void hw_requests_merged(struct request_queue *rq_queue, struct request *keep, struct request *gone)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);
	struct hw_request *hwgone = hw_request_of(gone);

	if (!hwgone || hwgone->state != HW_QUEUED) {
		hw_grown(disk, keep, HW_BACK_MERGE);
		return;
	}
	hw_unhash(disk, gone);
	hw_merge_requests(disk->q, hw_request_of(keep), hwgone);
	hw_set_range(hw_request_of(keep), keep);
}

static struct request *hw_neighbour(const struct hw_request *hwrq, const struct hw_request *other)
{
	return other && !((hwrq->flags | other->flags) & HW_RQ_NOMERGE) ? other->host : NULL;
}

static struct request *hw_former_request(struct request_queue *rq_queue, struct request *rq)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);
	struct hw_request *hwrq = hw_request_of(rq);

	return hw_neighbour(hwrq, disk->policy->former(disk->q, hwrq));
}

static struct request *hw_next_request(struct request_queue *rq_queue, struct request *rq)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);
	struct hw_request *hwrq = hw_request_of(rq);

	return hw_neighbour(hwrq, disk->policy->latter(disk->q, hwrq));
}

/* ---- depth ---- */

static void hw_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct hw_disk *disk = hw_disk_of(data->q);
	struct io_cq *icq = disk->tasks ? hw_get_icq(data->q) : NULL;
	struct hw_bio what = { .op = hw_op(opf), .flags = hw_flags(opf), .cpu = raw_smp_processor_id() };
	unsigned long flags;
	u32 limit, all;

	flags = hw_lock(disk);
	what.task = icq && hw_icq(icq)->task ? hw_icq(icq)->task : disk->anyone;
	what.ioprio = what.task->ioprio;
	all = disk->q->dev.nr_requests;
	limit = disk->policy->limit_depth(disk->q, &what);
	hw_unlock(disk, flags);
	if (icq)
		put_io_context(icq->ioc);
	if (limit && limit < all)
		data->shallow_depth = hw_shallow_depth(disk->tag_shift, all, limit);
}

/* Called with the queue frozen: at attachment, and when nr_requests has changed. 0 or a negative errno. */
static int hw_size_areas(struct hw_disk *disk, struct blk_mq_hw_ctx *hctx)
{
	struct hw_areas *areas = hctx->sched_data;
	struct blk_mq_tags *tags = hctx->sched_tags;
	unsigned int noio;
	u8 *area;

	disk->q->dev.nr_requests = tags->bitmap_tags.sb.depth;
	disk->tag_shift = tags->bitmap_tags.sb.shift;
	if (disk->policy->limit_depth)
		sbitmap_queue_min_shallow_depth(&tags->bitmap_tags, 1);
	if (areas->nr >= tags->nr_tags)
		return 0;
	noio = memalloc_noio_save();
	area = kvcalloc(tags->nr_tags, areas->stride, GFP_KERNEL);
	memalloc_noio_restore(noio);
	if (!area)
		return -ENOMEM;
	kvfree(areas->area);
	areas->area = area;
	areas->nr = tags->nr_tags;
	return 0;
}

/* Cannot fail: requests beyond the areas that there are go past the policy. */
static void hw_depth_updated_hctx(struct blk_mq_hw_ctx *hctx)
{
	if (hw_size_areas(hw_disk_of(hctx->queue), hctx))
		pr_warn("no memory for more requests: some will not be scheduled\n");
}

#ifdef HW_DEPTH_UPDATED_QUEUE
static void hw_depth_updated(struct request_queue *rq_queue)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(rq_queue, hctx, i)
		hw_depth_updated_hctx(hctx);
}
#else
static void hw_depth_updated(struct blk_mq_hw_ctx *hctx)
{
	hw_depth_updated_hctx(hctx);
}
#endif

/* ---- attachment ---- */

static int hw_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct hw_disk *disk = hw_disk_of(hctx->queue);
	struct hw_areas *areas = kzalloc(sizeof(*areas), GFP_KERNEL);
	int ret;

	if (!areas)
		return -ENOMEM;
	areas->stride = ALIGN(disk->policy->request_size, 8);
	hctx->sched_data = areas;
	ret = hw_size_areas(disk, hctx);
	if (ret) {
		kfree(areas);
		hctx->sched_data = NULL;
	}
	return ret;
}

static void hw_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct hw_areas *areas = hctx->sched_data;

	hctx->sched_data = NULL;
	kvfree(areas->area);
	kfree(areas);
}

static void hw_describe(struct hw_disk *disk)
{
	struct request_queue *rq_queue = disk->rq_queue;
	struct blk_mq_tag_set *set = rq_queue->tag_set;
	struct hw_device *dev = &disk->q->dev;

	disk->depth = set->queue_depth;
	if (!(set->flags & BLK_MQ_F_TAG_HCTX_SHARED))
		disk->depth *= rq_queue->nr_hw_queues;
	dev->sectors = rq_queue->disk ? max_t(u64, get_capacity(rq_queue->disk), 1) : 1;
	dev->rotational = !blk_queue_nonrot(rq_queue);
	dev->depth = disk->depth;
	dev->nr_requests = rq_queue->nr_requests;
}

static void hw_disk_free(struct hw_disk *disk)
{
	struct hw_ktask *kt, *next;

	list_for_each_entry_safe(kt, next, &disk->all_tasks, all)
		kfree(kt);
	kvfree(disk->q);
	kfree(disk);
}

static struct hw_disk *hw_disk_create(struct request_queue *rq_queue, const struct hw_policy *policy)
{
	struct hw_disk *disk = kzalloc_node(sizeof(*disk), GFP_KERNEL, rq_queue->node);
	struct hw_ktask *anyone;
	int ret;

	if (!disk)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&disk->lock);
	INIT_LIST_HEAD(&disk->bypass);
	INIT_LIST_HEAD(&disk->all_tasks);
	hw_timer_setup(&disk->timer, hw_timer);
	disk->timer_ns = HW_NEVER;
	disk->rq_queue = rq_queue;
	disk->policy = policy;
	disk->tasks = policy->task_size > sizeof(struct hw_task);
	disk->now = ktime_get_ns();
	disk->q = kvzalloc_node(policy->queue_size, GFP_KERNEL, rq_queue->node);
	anyone = hw_ktask_alloc(policy, GFP_KERNEL);
	ret = -ENOMEM;
	if (!disk->q || !anyone)
		goto fail;
	hw_queue_prepare(disk->q, policy);
	hw_describe(disk);
	ret = hw_start(disk->q, disk->now);
	if (ret)
		goto fail;
	disk->anyone = hw_ktask_start(disk, anyone, 0, 0);
	return disk;
fail:
	kfree(anyone);
	hw_disk_free(disk);
	return ERR_PTR(ret);
}

#ifdef HW_INIT_GIVEN_QUEUE
static int hw_init_sched(struct request_queue *rq_queue, struct elevator_queue *eq)
{
	struct hw_disk *disk = hw_disk_create(rq_queue, container_of(eq->type, struct hw_type, type)->policy);

	if (IS_ERR(disk))
		return PTR_ERR(disk);
	eq->elevator_data = disk;
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, rq_queue);
	rq_queue->elevator = eq;
	return 0;
}
#else
static int hw_init_sched(struct request_queue *rq_queue, struct elevator_type *type)
{
	struct elevator_queue *eq = elevator_alloc(rq_queue, type);
	struct hw_disk *disk;

	if (!eq)
		return -ENOMEM;
	disk = hw_disk_create(rq_queue, container_of(type, struct hw_type, type)->policy);
	if (IS_ERR(disk)) {
		kobject_put(&eq->kobj);
		return PTR_ERR(disk);
	}
	eq->elevator_data = disk;
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, rq_queue);
	rq_queue->elevator = eq;
	return 0;
}
#endif

static void hw_exit_sched(struct elevator_queue *eq)
{
	struct hw_disk *disk = eq->elevator_data;

	hrtimer_cancel(&disk->timer);
	WARN_ON_ONCE(disk->q->nr_queued || disk->q->nr_in_flight);
	hw_disk_free(disk);
}

/* ---- registration ---- */

static bool hw_is_the_kernels_own(const struct hw_policy *policy)
{
	static const char *const models[] = { "none", "mq-deadline", "kyber", "bfq" };

	return match_string(models, ARRAY_SIZE(models), policy->name) >= 0;
}

/* Operations that the policy has no use for are left out: the core then does without the call. */
static void hw_fill_type(struct hw_type *t, const struct hw_policy *policy)
{
	struct elevator_mq_ops *ops = &t->type.ops;

	ops->init_sched = hw_init_sched;
	ops->exit_sched = hw_exit_sched;
	ops->init_hctx = hw_init_hctx;
	ops->exit_hctx = hw_exit_hctx;
	ops->depth_updated = hw_depth_updated;
	ops->allow_merge = hw_allow_merge;
	ops->bio_merge = hw_bio_merge;
	ops->request_merge = policy->find_merge ? hw_request_merge : NULL;
	ops->request_merged = hw_request_merged;
	ops->requests_merged = hw_requests_merged;
	ops->limit_depth = policy->limit_depth ? hw_limit_depth : NULL;
	ops->prepare_request = hw_prepare_request;
	ops->finish_request = hw_finish_request;
	ops->insert_requests = hw_insert_requests;
	ops->dispatch_request = hw_dispatch_request;
	ops->has_work = hw_has_work;
	ops->completed_request = hw_completed_request;
	if (policy->former && policy->latter && policy->merged_requests) {
		ops->former_request = hw_former_request;
		ops->next_request = hw_next_request;
	}
	if (policy->task_size > sizeof(struct hw_task)) {
		ops->init_icq = hw_init_icq;
		ops->exit_icq = hw_exit_icq;
		t->type.icq_size = sizeof(struct hw_icq);
		t->type.icq_align = __alignof__(struct hw_icq);
	}
	t->policy = policy;
	t->type.elevator_attrs = t->attributes;
	t->type.elevator_name = t->name;
	t->type.elevator_owner = THIS_MODULE;
}

static int hw_register(struct hw_type *t, const struct hw_policy *policy, const char *name)
{
	int ret;

	if (snprintf(t->name, sizeof(t->name), "hw-%s", name) >= sizeof(t->name))
		return -ENAMETOOLONG;
	t->policy = policy;
	ret = hw_attributes_create(t);
	if (ret)
		return ret;
	hw_fill_type(t, policy);
	ret = elv_register(&t->type);
	if (ret)
		hw_attributes_free(t);
	return ret;
}

static void hw_unregister_all(void)
{
	while (hw_nr_types--) {
		elv_unregister(&hw_types[hw_nr_types].type);
		hw_attributes_free(&hw_types[hw_nr_types]);
	}
	kfree(hw_types);
}

static int __init hw_iosched_init(void)
{
	const struct hw_policy *const *p;
	unsigned int n = 0;
	int ret = hw_check_release();

	if (ret)
		return ret;
	for (p = hw_policies; *p; p++)
		n++;
	hw_types = kcalloc(n, sizeof(*hw_types), GFP_KERNEL);
	if (!hw_types)
		return -ENOMEM;
	for (p = hw_policies; *p; p++) {
		if (hw_is_the_kernels_own(*p))
			continue;
		ret = hw_register(&hw_types[hw_nr_types], *p, (*p)->name);
		if (ret) {
			pr_err("cannot register hw-%s (%d)\n", (*p)->name, ret);
			hw_unregister_all();
			return ret;
		}
		hw_nr_types++;
	}
	return 0;
}

static void __exit hw_iosched_exit(void)
{
	hw_unregister_all();
}

module_init(hw_iosched_init);
module_exit(hw_iosched_exit);

MODULE_DESCRIPTION("headwaiter's I/O schedulers");
MODULE_AUTHOR("The headwaiter authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS("hw-*-iosched");	/* what the kernel asks for when a scheduler is chosen that is not there */
