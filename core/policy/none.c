// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * none: no scheduler; what blk-mq does by itself.
 *
 * Source: Linux 6.1 to 6.18 without an elevator (none).
 *
 * Caveats: there is one order for each CPU, and none between CPUs. Requests that wait because the
 * device is full wait for a tag before they exist in the kernel; here they wait in these lists,
 * which serve them in the same order.
 *
 * Decides: requests that the device gave back go first. Then all lists, lowest CPU first, are taken
 * over at once and served in that order. A device that is busy, having given a request back, gets
 * one request from each CPU's list in turn until the lists are empty; devices that hand out budgets
 * (SCSI: `budget`) always do. A range joins one of the last eight requests of its CPU.
 */
#include "core/lib/softq.h"
#include "core/policy/policies.h"

struct none_queue {
	struct hw_queue q;
	struct hw_softq soft;
	struct list_head leftover; /* decided, but not taken by the device yet: always first */
	u32 turn;		   /* CPU whose list is looked at first */
	bool busy;		   /* refused one, and lists not empty since */
	s64 budget;
};

static const struct hw_tunable none_tunables[] = {
	HW_TUNE_BOOL(struct none_queue, budget, 0,
		     "the device hands out budgets, as SCSI does: CPUs are served in turn"),
};

static struct none_queue *none_queue(const struct hw_queue *q)
{
	return container_of(q, struct none_queue, q);
}

static int none_init(struct hw_queue *q, u64 now)
{
	struct none_queue *nq = none_queue(q);

	hw_softq_init(&nq->soft);
	INIT_LIST_HEAD(&nq->leftover);
	return 0;
}

static void none_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct none_queue *nq = none_queue(q);

	if (rq->flags & HW_RQ_AT_HEAD)
		list_add(&hw_soft(rq)->link, &nq->leftover);
	else
		hw_softq_add(&nq->soft, rq, false);
}

static void none_requeue(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct none_queue *nq = none_queue(q);

	list_add(&hw_soft(rq)->link, &nq->leftover);
	nq->busy = true;
}

static struct hw_request *none_dispatch(struct hw_queue *q, u64 now)
{
	struct none_queue *nq = none_queue(q);
	struct hw_request *rq = hw_soft_pop(&nq->leftover);

	hw_because(q, HW_ARRIVAL);
	if (rq) {
		if (rq->flags & HW_RQ_AT_HEAD)
			hw_because(q, HW_FIRST);
		return rq;
	}
	if (nq->budget || nq->busy) {
		hw_because(q, HW_TURN);
		rq = hw_softq_take_turn(&nq->soft, &nq->turn);
		if (hw_softq_empty(&nq->soft))
			nq->busy = false;
		return rq;
	}
	hw_softq_flush(&nq->soft, &nq->leftover);
	return hw_soft_pop(&nq->leftover);
}

static bool none_has_work(const struct hw_queue *q)
{
	const struct none_queue *nq = none_queue(q);

	return !list_empty(&nq->leftover) || !hw_softq_empty(&nq->soft);
}

static struct hw_request *none_find_merge(struct hw_queue *q, const struct hw_bio *bio,
					  enum hw_merge *how)
{
	return hw_softq_find_merge(&none_queue(q)->soft, bio, how);
}

const struct hw_policy hw_none = {
	.name = "none",
	.summary = "first come, first served on each CPU",
	.source = "Linux 6.1-6.18 blk-mq without an elevator",
	.flags = HW_POLICY_DIRECT | HW_POLICY_MODEL,
	.queue_size = sizeof(struct none_queue),
	.task_size = sizeof(struct hw_task),
	.request_size = sizeof(struct hw_soft_request),
	.tunables = none_tunables,
	.nr_tunables = ARRAY_SIZE(none_tunables),
	.init = none_init,
	.insert = none_insert,
	.requeue = none_requeue,
	.dispatch = none_dispatch,
	.has_work = none_has_work,
	.find_merge = none_find_merge,
};
