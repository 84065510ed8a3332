// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: one policy for every drive. Source: headwaiter; docs/schedulers/maitre.md has the reasons,
 * what each part is worth, and whose ideas they are.
 *
 * It decides in this order.
 *  1. What the host wants first, and what the device has given back, goes first.
 *  2. Classes of I/O priority: real time before best effort before idle.
 *  3. Whose turn it is. Requests that a program waits for belong to its flow; all write-back of a
 *     control group is one competitor, and so are all flows that gain nothing from having the disk
 *     to themselves (a pool). Each pays for the time in which it is served, by its weight; who has
 *     paid least is next, and has a turn. A newcomer may be a little behind, and is served at once.
 *  4. Whether to wait. When the one that is served has nothing queued, the disk is held for it as
 *     long as that costs less, by its think times so far, than going to another and coming back.
 *  5. Which of its requests: upwards from where the head is; in a pool by place and age.
 *
 * Flows that read or write at one place have turns together (company.c).
 * Who reads and writes only what a drive of several commands has in its cache does so beside all that.
 *
 * Where nothing moves 3 to 5 make no sense: there requests go out as they come, until somebody is
 * unfair. So there are two tables of operations, and a device has one of them: disk.c (with flow.c,
 * newcomer.c, hold.c, home.c, pool.c, company.c, place.c, rate.c, heirs.c, writeback.c, commit.c, logs.c,
 * beside.c) and flash.c. Both use shared.c.
 */
#include "core/policy/maitre/internal.h"
#include "core/policy/policies.h"

static const struct hw_tunable maitre_tunables[] = {
	HW_TUNE(struct mt_device, granularity, 48, 1, 500, "permille",
		"part of a disk's time that may go into changing turns: less makes turns, and the longest waits, longer"),
	HW_TUNE(struct mt_device, window, 300, 0, 60000, "ms",
		"how far behind the others in service a flow that begins again may be"),
};

/* --- requests --- */

static void mt_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct mt_device *d = mt_device(q);
	struct mt_request *r = mt_request(hw_sorted(rq));

	d->now = now;
	r->flow = NULL;
	if (rq->flags & HW_RQ_AT_HEAD)
		mt_put_first(d, r);
	else
		d->ops->insert(d, r);
}

static struct hw_request *mt_dispatch(struct hw_queue *q, u64 now)
{
	struct mt_device *d = mt_device(q);

	d->now = now;
	return d->ops->dispatch(d);
}

static bool mt_has_work(const struct hw_queue *q)
{
	return q->nr_queued && !q->wait.active;
}

static void mt_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct mt_device *d = mt_device(q);

	d->now = now;
	d->ops->complete(d, mt_request(hw_sorted(rq)));
}

static void mt_requeue(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct mt_device *d = mt_device(q);
	struct mt_request *r = mt_request(hw_sorted(rq));

	d->now = now;
	if (r->home)
		d->ops->requeue(d, r);
	mt_put_first(d, r);
}

/* --- merging: where nothing moves requests lie in no tree --- */

static struct hw_request *mt_find_merge(struct hw_queue *q, const struct hw_bio *bio,
					enum hw_merge *how)
{
	struct mt_device *d = mt_device(q);

	return d->ops->find_merge ? d->ops->find_merge(d, bio, how) : NULL;
}

static bool mt_allow_merge(struct hw_queue *q, const struct hw_request *rq,
			   const struct hw_bio *bio)
{
	return rq->group == bio->group && hw_is_sync(rq) == !!(bio->flags & HW_RQ_SYNC) &&
	       (!hw_is_sync(rq) || rq->task == bio->task);
}

static void mt_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now)
{
	struct mt_device *d = mt_device(q);

	if (d->ops->merged)
		d->ops->merged(d, mt_request(hw_sorted(rq)), how);
}

static void mt_merged_requests(struct hw_queue *q, struct hw_request *keep, struct hw_request *gone)
{
	struct mt_device *d = mt_device(q);

	d->ops->forget(d, mt_request(hw_sorted(keep)), mt_request(hw_sorted(gone)));
}

static struct hw_request *mt_former(struct hw_queue *q, struct hw_request *rq)
{
	struct mt_device *d = mt_device(q);

	return d->ops->former ? d->ops->former(q, rq) : NULL;
}

static struct hw_request *mt_latter(struct hw_queue *q, struct hw_request *rq)
{
	struct mt_device *d = mt_device(q);

	return d->ops->latter ? d->ops->latter(q, rq) : NULL;
}

/* --- set-up --- */

static int mt_init(struct hw_queue *q, u64 now)
{
	struct mt_device *d = mt_device(q);

	INIT_LIST_HEAD(&d->first);
	INIT_LIST_HEAD(&d->flying);
	INIT_LIST_HEAD(&d->writing);
	mt_group_setup(&d->root, NULL);
	mt_entity_init(&d->estate, &d->root, MT_ESTATE, MT_BEST_EFFORT, MT_WEIGHT);
	mt_entity_init(&d->beside, &d->root, MT_BESIDE, MT_BEST_EFFORT, MT_WEIGHT);
	d->now = now;
	d->since_ns = now;
	d->journals = U16_MAX;
	d->ops = q->dev.rotational ? &mt_disk : &mt_flash;
	mt_flash_init(d);
	return 0;
}

static void mt_tuned(struct hw_queue *q)
{
	struct mt_device *d = mt_device(q);

	mt_position_derive(d);
}

static void mt_task_init(struct hw_queue *q, struct hw_task *task, u64 now)
{
	mt_flow_init(&mt_task(task)->flow, &mt_device(q)->root, task);
}

static void mt_task_exit(struct hw_queue *q, struct hw_task *task, u64 now)
{
	struct mt_device *d = mt_device(q);

	d->now = now;
	d->ops->task_exit(d, &mt_task(task)->flow);
}

static void mt_group_init(struct hw_queue *q, struct hw_group *group)
{
	struct mt_device *d = mt_device(q);

	mt_group_setup(mt_group_of(d, group), mt_group_of(d, group->parent));
}

/* Nobody of it has requests any more; but it may have been served last, or have left ghosts. */
static void mt_group_exit(struct hw_queue *q, struct hw_group *group)
{
	struct mt_device *d = mt_device(q);
	struct mt_group *g = mt_group_of(d, group);
	struct mt_ghost *ghost;

	if (d->serving && d->serving->in == g) {
		hw_wait_end(q, HW_WAIT_OTHER, d->now);
		mt_serve(d, NULL);
	}
	if (d->wrote && d->wrote->e.in == g)
		d->wrote = NULL;
	if (d->estate.in == g)
		d->estate.in = &d->root;
	for (ghost = d->ghost; ghost < d->ghost + MT_GHOSTS; ghost++)
		if (ghost->in == g)
			ghost->waits = false;
}

static s64 stat_turn(const struct hw_queue *q)
{
	return (s64)div_u64(mt_turn(mt_device(q)), HW_NSEC_PER_USEC);
}

static s64 stat_window(const struct hw_queue *q)
{
	return mt_device(q)->x.window >> 10;
}

static s64 stat_credit(const struct hw_queue *q)
{
	return (s64)div_u64(mt_device(q)->root.credit, HW_NSEC_PER_USEC);
}

static const struct hw_stat maitre_stats[] = {
	{ "turn", "us", "how long a turn is to last at most, with as many flows as now",
	  stat_turn },
	{ "write_window", "KiB",
	  "write-back that may be in the device beside others, if nothing moves", stat_window },
	{ "credit", "us", "time that newcomers may still have before others", stat_credit },
};

const struct hw_policy hw_maitre = {
	.name = "maitre",
	.summary =
		"one policy for every drive: turns of time for those that gain from them, waits by "
		"optimal stopping",
	.source = "headwaiter",
	.flags = HW_POLICY_HASH | HW_POLICY_UNTHROTTLED | HW_POLICY_ISSUED,
	.queue_size = sizeof(struct mt_device),
	.task_size = sizeof(struct mt_task),
	.request_size = sizeof(struct mt_request),
	.group_size = sizeof(struct mt_group),
	.tunables = maitre_tunables,
	.nr_tunables = ARRAY_SIZE(maitre_tunables),
	.stats = maitre_stats,
	.nr_stats = ARRAY_SIZE(maitre_stats),
	.init = mt_init,
	.tuned = mt_tuned,
	.acquaint = mt_position_acquaint,
	.insert = mt_insert,
	.dispatch = mt_dispatch,
	.complete = mt_complete,
	.requeue = mt_requeue,
	.has_work = mt_has_work,
	.find_merge = mt_find_merge,
	.allow_merge = mt_allow_merge,
	.merged = mt_merged,
	.merged_requests = mt_merged_requests,
	.former = mt_former,
	.latter = mt_latter,
	.limit_depth = mt_limit_depth,
	.task_init = mt_task_init,
	.task_exit = mt_task_exit,
	.group_init = mt_group_init,
	.group_exit = mt_group_exit,
};
