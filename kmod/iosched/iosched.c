// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The policies of core as blk-mq elevators, named hw-NAME.
 *
 * Nothing is decided here. The block layer's calls become calls of the contract (core/elevator.h):
 *
 *  - One policy queue per disk, whatever the number of hardware queues; one irq-safe lock around
 *    every call.
 *  - A request's private area is preallocated per scheduler tag, a task hangs on the io_cq of
 *    (process, disk).
 *  - The contract has dispatch asked after every event while the device takes requests. blk-mq asks
 *    when it runs the hardware queue and has_work() says yes; a yes that comes to nothing makes it
 *    poll every 3 ms. So every event ends with hw_settle(), which asks the policy there and then,
 *    as of the event's time, and keeps the answer: has_work() knows. Insertions are followed by a
 *    run of the queue; a completion that makes work marks the queue for one.
 *  - blk-mq pulls one request ahead of the driver: whoever holds the device idle would decide one
 *    request early, on what it cannot know yet. So no more requests are handed out than the device
 *    takes at once.
 *  - Waits are an hrtimer. It is armed lazily: one that fires early finds a later time to fire at.
 *
 * Lock order: queue_lock, io_context.lock, hw_disk.lock. Queues are never run under hw_disk.lock,
 * nor from exit_icq (its caller may hold queue_lock, which blk_mq_run_hw_queue() takes).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "iosched/requests.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

static struct hw_type *hw_types;
static unsigned int hw_nr_types;

/* ---- depth ---- */

/* What the policy lets a request take; U32_MAX if that is no matter to it. */
static u32 hw_policy_depth(struct hw_disk *disk, blk_opf_t opf)
{
	struct io_cq *icq = disk->tasks ? hw_get_icq(disk->rq_queue) : NULL;
	struct hw_bio what = { .op = hw_op(opf),
			       .flags = hw_flags(opf),
			       .cpu = raw_smp_processor_id() };
	u32 limit;

	spin_lock_irq(&disk->lock);
	what.task = icq && hw_icq(icq)->task ? hw_icq(icq)->task : disk->anyone;
	what.ioprio = what.task->ioprio;
	limit = disk->policy->limit_depth(disk->q, &what);
	spin_unlock_irq(&disk->lock);
	if (icq)
		hw_put_icq(icq);
	return limit ?: U32_MAX;
}

static void hw_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct hw_disk *disk = hw_disk_of(data->q);
	u32 limit = op_is_sync(opf) && !op_is_write(opf) ? U32_MAX : hw_async_depth(data->q);
	u32 all = disk->q->dev.nr_requests; /* changes only while the queue is frozen */

	if (disk->policy->limit_depth)
		limit = min(limit, hw_policy_depth(disk, opf));
	if (limit < all)
		data->shallow_depth = hw_shallow_depth(disk->tag_shift, all, limit);
}

/*
 * Called with the queue frozen: at attachment, and when nr_requests has changed. 0 or a negative
 * errno.
 */
static int hw_size_areas(struct hw_disk *disk, struct blk_mq_hw_ctx *hctx)
{
	struct hw_areas *areas = hctx->sched_data;
	struct blk_mq_tags *tags = hctx->sched_tags;
	u32 least = disk->policy->limit_depth ? 1 : hw_async_depth(disk->rq_queue);
	unsigned int noio;
	u8 *area;

	disk->q->dev.nr_requests = tags->bitmap_tags.sb.depth;
	disk->tag_shift = tags->bitmap_tags.sb.shift;
	if (least < U32_MAX)
		sbitmap_queue_min_shallow_depth(&tags->bitmap_tags, least);
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
	areas->clear = ALIGN(disk->policy->request_size - sizeof(struct hw_request), HW_PIECE);
	areas->stride = sizeof(struct hw_request) + areas->clear;
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
	dev->rotational = hw_rotational(rq_queue);
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

static struct hw_disk *hw_disk_create(struct request_queue *rq_queue,
				      const struct hw_policy *policy)
{
	struct hw_disk *disk = kzalloc_node(sizeof(*disk), GFP_KERNEL, rq_queue->node);
	struct hw_ktask *anyone;
	int ret;

	if (!disk)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&disk->lock);
	INIT_LIST_HEAD(&disk->bypass);
	INIT_LIST_HEAD(&disk->merged);
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
	disk->q->unmergeable = hw_unmergeable;
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

static int hw_attach(struct request_queue *rq_queue, struct elevator_queue *eq)
{
	struct hw_disk *disk =
		hw_disk_create(rq_queue, container_of(eq->type, struct hw_type, type)->policy);

	if (IS_ERR(disk))
		return PTR_ERR(disk);
	eq->elevator_data = disk;
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, rq_queue);
	hw_async_depth_reset(rq_queue);
	rq_queue->elevator = eq;
	return 0;
}

#ifdef HW_INIT_GIVEN_QUEUE
static int hw_init_sched(struct request_queue *rq_queue, struct elevator_queue *eq)
{
	return hw_attach(rq_queue, eq);
}
#else
static int hw_init_sched(struct request_queue *rq_queue, struct elevator_type *type)
{
	struct elevator_queue *eq = elevator_alloc(rq_queue, type);
	int ret;

	if (!eq)
		return -ENOMEM;
	ret = hw_attach(rq_queue, eq);
	if (ret)
		kobject_put(&eq->kobj);
	return ret;
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
	ops->limit_depth = policy->limit_depth || HW_ASYNC_DEPTH ? hw_limit_depth : NULL;
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

static int hw_register(struct hw_type *t, const struct hw_policy *policy)
{
	int ret;

	if (snprintf(t->name, sizeof(t->name), "hw-%s", policy->name) >= sizeof(t->name))
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

static int hw_register_next(const struct hw_policy *policy)
{
	int ret = hw_register(&hw_types[hw_nr_types], policy);

	if (ret)
		pr_err("cannot register hw-%s (%d)\n", policy->name, ret);
	else
		hw_nr_types++;
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
	for (p = hw_policies; *p && !ret; p++)
		if (!((*p)->flags & HW_POLICY_MODEL))
			ret = hw_register_next(*p);
	if (ret)
		hw_unregister_all();
	return ret;
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
MODULE_ALIAS(
	"hw-*-iosched"); /* what the kernel asks for when a scheduler is chosen that is not there */
