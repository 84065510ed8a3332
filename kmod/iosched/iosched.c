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
 *    poll every 3 ms. So every event ends with settle(), which asks the policy there and then,
 *    as of the event's time, and keeps the answer: has_work() knows. Insertions are followed by a
 *    run of the queue; a completion that makes work marks the queue for one.
 *  - blk-mq pulls one request ahead of the driver: whoever holds the device idle would decide one
 *    request early, on what it cannot know yet. So no more requests are handed out than the device
 *    takes at once.
 *  - Waits are an hrtimer. It is armed lazily: one that fires early finds a later time to fire at.
 *
 * Lock order: queue_lock, io_context.lock, hwk_sched.lock. Queues are never run under
 * hwk_sched.lock, nor from exit_icq (its caller may hold queue_lock, which blk_mq_run_hw_queue()
 * takes).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "iosched/requests.h"

#include <linux/sched/mm.h>
#include <linux/slab.h>

#define HWK_CHUNK_LEAST (16u << 10) /* of an array, bytes */
#define HWK_ARMS_MOST	64u

static struct hwk_type *types;
static unsigned int nr_types;

/* ---- depth ---- */

/* What the policy lets a request take; U32_MAX if that is no matter to it. */
static u32 policy_depth(struct hwk_sched *sched, blk_opf_t opf)
{
	struct io_cq *icq = sched->tasks ? hwk_get_icq(sched->rq_queue) : NULL;
	struct hw_bio what = { .op = hwk_op(opf),
			       .flags = hwk_flags(opf),
			       .cpu = raw_smp_processor_id() };
	u32 limit;

	spin_lock_irq(&sched->lock);
	what.task = hwk_task_of(sched, icq);
	what.ioprio = what.task->ioprio;
	limit = hw_limit_depth(sched->q, &what);
	spin_unlock_irq(&sched->lock);
	if (icq)
		hwk_put_icq(icq);
	return limit ?: U32_MAX;
}

static void limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct hwk_sched *sched = hwk_sched_of(data->q);
	u32 limit = op_is_sync(opf) && !op_is_write(opf) ? U32_MAX : hwk_async_depth(data->q);
	u32 all = sched->q->dev.nr_requests; /* changes only while the queue is frozen */

	if (sched->policy->limit_depth)
		limit = min(limit, policy_depth(sched, opf));
	if (limit < all)
		data->shallow_depth = hwk_shallow_depth(sched->tag_shift, all, limit);
}

/*
 * Called with the queue frozen: at attachment, and when nr_requests has changed. 0 or a negative
 * errno.
 */
static int size_areas(struct hwk_sched *sched, struct blk_mq_hw_ctx *hctx)
{
	struct hwk_areas *areas = hctx->sched_data;
	struct blk_mq_tags *tags = hctx->sched_tags;
	u32 least = sched->policy->limit_depth ? 1 : hwk_async_depth(sched->rq_queue);
	unsigned int noio;
	u8 *area;

	sched->q->dev.nr_requests = tags->bitmap_tags.sb.depth;
	sched->tag_shift = tags->bitmap_tags.sb.shift;
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
static void depth_updated_hctx(struct blk_mq_hw_ctx *hctx)
{
	if (size_areas(hwk_sched_of(hctx->queue), hctx))
		pr_warn("no memory for more requests: some bypass the scheduler\n");
}

#ifdef HWK_DEPTH_UPDATED_QUEUE
static void depth_updated(struct request_queue *rq_queue)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(rq_queue, hctx, i)
		depth_updated_hctx(hctx);
}
#else
static void depth_updated(struct blk_mq_hw_ctx *hctx)
{
	depth_updated_hctx(hctx);
}
#endif

/* ---- attachment ---- */

static int init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct hwk_sched *sched = hwk_sched_of(hctx->queue);
	struct hwk_areas *areas = kzalloc(sizeof(*areas), GFP_KERNEL);
	int ret;

	if (!areas)
		return -ENOMEM;
	areas->clear = ALIGN(sched->policy->request_size - sizeof(struct hw_request), HWK_PIECE);
	areas->stride = sizeof(struct hw_request) + areas->clear;
	hctx->sched_data = areas;
	ret = size_areas(sched, hctx);
	if (ret) {
		kfree(areas);
		hctx->sched_data = NULL;
	}
	return ret;
}

static void exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct hwk_areas *areas = hctx->sched_data;

	hctx->sched_data = NULL;
	kvfree(areas->area);
	kfree(areas);
}

/*
 * An array says how much lies on one of its disks (io_min) and on all of them (io_opt). Single
 * disks say neither, or a sector and nonsense.
 */
static u32 count_arms(const struct queue_limits *limits)
{
	u32 arms = limits->io_min >= HWK_CHUNK_LEAST ? limits->io_opt / limits->io_min : 0;

	if (arms > HWK_ARMS_MOST || arms * limits->io_min != limits->io_opt)
		return 0;
	return arms;
}

static void describe_device(struct hwk_sched *sched)
{
	struct request_queue *rq_queue = sched->rq_queue;
	struct blk_mq_tag_set *set = rq_queue->tag_set;
	struct hw_device *dev = &sched->q->dev;

	sched->depth = set->queue_depth;
	if (!(set->flags & BLK_MQ_F_TAG_HCTX_SHARED))
		sched->depth *= rq_queue->nr_hw_queues;
	dev->sectors = rq_queue->disk ? max_t(u64, get_capacity(rq_queue->disk), 1) : 1;
	dev->rotational = hwk_rotational(rq_queue);
	dev->arms = count_arms(&rq_queue->limits);
	dev->depth = sched->depth;
	dev->nr_requests = rq_queue->nr_requests;
}

static void sched_free(struct hwk_sched *sched)
{
	struct hwk_task_mem *mem, *next;

	list_for_each_entry_safe(mem, next, &sched->all_tasks, all)
		kfree(mem);
	if (sched->q)
		hwk_tables_free(sched);
	kvfree(sched->q);
	kfree(sched);
}

static struct hwk_sched *sched_create(struct request_queue *rq_queue,
				      const struct hw_policy *policy)
{
	struct hwk_sched *sched = kzalloc_node(sizeof(*sched), GFP_KERNEL, rq_queue->node);
	struct hwk_task_mem *anyone;
	int ret;

	if (!sched)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&sched->lock);
	INIT_LIST_HEAD(&sched->bypass);
	INIT_LIST_HEAD(&sched->merged);
	INIT_LIST_HEAD(&sched->all_tasks);
	INIT_LIST_HEAD(&sched->all_groups);
	hwk_timer_setup(&sched->timer, hwk_timer);
	sched->timer_ns = HW_NEVER;
	sched->rq_queue = rq_queue;
	sched->policy = policy;
	sched->tasks = policy->task_size > sizeof(struct hw_task);
	sched->now = ktime_get_ns();
	sched->q = kvzalloc_node(policy->queue_size, GFP_KERNEL, rq_queue->node);
	anyone = hwk_task_alloc(policy, GFP_KERNEL);
	ret = -ENOMEM;
	if (!sched->q || !anyone)
		goto fail;
	hw_queue_prepare(sched->q, policy);
	sched->q->unmergeable = hwk_unmergeable;
	describe_device(sched);
	ret = hw_start(sched->q, sched->now);
	if (ret)
		goto fail;
	sched->anyone = hwk_task_add(sched, anyone, 0, 0);
	return sched;
fail:
	kfree(anyone);
	sched_free(sched);
	return ERR_PTR(ret);
}

static bool notes_issues(const struct hwk_sched *sched)
{
	return sched->policy->flags & HW_POLICY_ISSUED && sched->q->dev.rotational;
}

static int attach(struct request_queue *rq_queue, struct elevator_queue *eq)
{
	struct hwk_sched *sched =
		sched_create(rq_queue, container_of(eq->type, struct hwk_type, type)->policy);
	int ret;

	if (IS_ERR(sched))
		return PTR_ERR(sched);
	eq->elevator_data = sched;
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, rq_queue);
	hwk_async_depth_reset(rq_queue);
	rq_queue->elevator = eq;
	ret = hwk_groups_begin(sched);
	if (ret) {
		rq_queue->elevator = NULL;
		sched_free(sched);
		return ret;
	}
	if (sched->policy->flags & HW_POLICY_UNTHROTTLED)
		hwk_wbt(rq_queue, false);
	if (notes_issues(sched))
		hwk_note_issues(rq_queue, true);
	return 0;
}

#ifdef HWK_INIT_GIVEN_QUEUE
static int init_sched(struct request_queue *rq_queue, struct elevator_queue *eq)
{
	return attach(rq_queue, eq);
}
#else
static int init_sched(struct request_queue *rq_queue, struct elevator_type *type)
{
	struct elevator_queue *eq = elevator_alloc(rq_queue, type);
	int ret;

	if (!eq)
		return -ENOMEM;
	ret = attach(rq_queue, eq);
	if (ret)
		kobject_put(&eq->kobj);
	return ret;
}
#endif

static void exit_sched(struct elevator_queue *eq)
{
	struct hwk_sched *sched = eq->elevator_data;

	hrtimer_cancel(&sched->timer);
	if (sched->policy->flags & HW_POLICY_UNTHROTTLED)
		hwk_wbt(sched->rq_queue, true);
	if (notes_issues(sched))
		hwk_note_issues(sched->rq_queue, false);
	WARN_ON_ONCE(sched->q->nr_queued || sched->q->nr_in_flight);
	hwk_groups_end(sched);
	sched_free(sched);
}

/* ---- registration ---- */

/* Operations that the policy has no use for are left out: the core then does without the call. */
static void fill_type(struct hwk_type *t, const struct hw_policy *policy)
{
	struct elevator_mq_ops *ops = &t->type.ops;

	ops->init_sched = init_sched;
	ops->exit_sched = exit_sched;
	ops->init_hctx = init_hctx;
	ops->exit_hctx = exit_hctx;
	ops->depth_updated = depth_updated;
	ops->allow_merge = hwk_allow_merge;
	ops->bio_merge = hwk_bio_merge;
	ops->request_merge = policy->find_merge ? hwk_request_merge : NULL;
	ops->request_merged = hwk_request_merged;
	ops->requests_merged = hwk_requests_merged;
	ops->limit_depth = policy->limit_depth || HWK_ASYNC_DEPTH ? limit_depth : NULL;
	ops->prepare_request = hwk_prepare_request;
	ops->finish_request = hwk_finish_request;
	ops->insert_requests = hwk_insert_requests;
	ops->dispatch_request = hwk_dispatch_request;
	ops->has_work = hwk_has_work;
	ops->completed_request = hwk_completed_request;
	if (policy->former && policy->latter && policy->merged_requests) {
		ops->former_request = hwk_former_request;
		ops->next_request = hwk_next_request;
	}
	if (policy->task_size > sizeof(struct hw_task)) {
		ops->init_icq = hwk_init_icq;
		ops->exit_icq = hwk_exit_icq;
		t->type.icq_size = sizeof(struct hwk_icq);
		t->type.icq_align = __alignof__(struct hwk_icq);
	}
	t->policy = policy;
	t->type.elevator_attrs = t->attributes;
	t->type.elevator_name = t->name;
	t->type.elevator_owner = THIS_MODULE;
}

static int register_type(struct hwk_type *t, const struct hw_policy *policy)
{
	int ret;

	if (snprintf(t->name, sizeof(t->name), "hw-%s", policy->name) >= sizeof(t->name))
		return -ENAMETOOLONG;
	t->policy = policy;
	ret = hwk_attributes_create(t);
	if (ret)
		return ret;
	fill_type(t, policy);
	ret = elv_register(&t->type);
	if (ret)
		hwk_attributes_free(t);
	return ret;
}

static int register_next(const struct hw_policy *policy)
{
	int ret = register_type(&types[nr_types], policy);

	if (ret)
		pr_err("cannot register hw-%s (%d)\n", policy->name, ret);
	else
		nr_types++;
	return ret;
}

static void unregister_all(void)
{
	while (nr_types--) {
		elv_unregister(&types[nr_types].type);
		hwk_attributes_free(&types[nr_types]);
	}
	kfree(types);
	hwk_groups_unregister();
}

static int __init iosched_init(void)
{
	const struct hw_policy *const *p;
	unsigned int n = 0;
	int ret = hwk_check_release();

	if (ret)
		return ret;
	for (p = hw_policies; *p; p++)
		n++;
	types = kcalloc(n, sizeof(*types), GFP_KERNEL);
	if (!types)
		return -ENOMEM;
	hwk_groups_register();
	for (p = hw_policies; *p && !ret; p++)
		ret = register_next(*p);
	if (ret)
		unregister_all();
	return ret;
}

static void __exit iosched_exit(void)
{
	unregister_all();
}

module_init(iosched_init);
module_exit(iosched_exit);

MODULE_DESCRIPTION("headwaiter's I/O schedulers");
MODULE_AUTHOR("The headwaiter authors");
MODULE_LICENSE("Dual BSD/GPL");
/* What the kernel asks for when a scheduler is chosen that is not there. */
MODULE_ALIAS("hw-*-iosched");
