// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * noop: first come, first served.
 *
 * Source: Linux 2.6 noop-iosched. Decides: the oldest request is next, whatever its place. Merging
 * is the block layer's alone: a range joins the request that ends where it begins, or the request
 * that was merged into last. A grown request is joined with its neighbour in order of arrival, not
 * of sector.
 */
#include "core/policy/policies.h"

struct noop_queue {
	struct hw_queue q;
	struct list_head fifo;
};

struct noop_request {
	struct hw_request rq;
	struct list_head link;
};

static struct noop_queue *noop_queue(const struct hw_queue *q)
{
	return container_of(q, struct noop_queue, q);
}

static struct noop_request *noop_request(struct hw_request *rq)
{
	return container_of(rq, struct noop_request, rq);
}

static int noop_init(struct hw_queue *q, u64 now)
{
	INIT_LIST_HEAD(&noop_queue(q)->fifo);
	return 0;
}

static void noop_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct list_head *link = &noop_request(rq)->link;

	if (rq->flags & HW_RQ_AT_HEAD)
		list_add(link, &noop_queue(q)->fifo);
	else
		list_add_tail(link, &noop_queue(q)->fifo);
}

static struct hw_request *noop_dispatch(struct hw_queue *q, u64 now)
{
	struct noop_queue *nq = noop_queue(q);
	struct noop_request *first;

	if (list_empty(&nq->fifo))
		return NULL;
	first = list_first_entry(&nq->fifo, struct noop_request, link);
	list_del_init(&first->link);
	hw_because(q, first->rq.flags & HW_RQ_AT_HEAD ? HW_FIRST : HW_ARRIVAL);
	return &first->rq;
}

static bool noop_has_work(const struct hw_queue *q)
{
	return !list_empty(&noop_queue(q)->fifo);
}

static void noop_merged_requests(struct hw_queue *q, struct hw_request *keep,
				 struct hw_request *gone)
{
	list_del_init(&noop_request(gone)->link);
}

static struct hw_request *noop_former(struct hw_queue *q, struct hw_request *rq)
{
	struct noop_request *n = noop_request(rq);

	if (n->link.prev == &noop_queue(q)->fifo)
		return NULL;
	return &list_prev_entry(n, link)->rq;
}

static struct hw_request *noop_latter(struct hw_queue *q, struct hw_request *rq)
{
	struct noop_request *n = noop_request(rq);

	if (list_is_last(&n->link, &noop_queue(q)->fifo))
		return NULL;
	return &list_next_entry(n, link)->rq;
}

const struct hw_policy hw_noop = {
	.name = "noop",
	.summary = "first come, first served; merges only",
	.source = "Linux 2.6 noop-iosched",
	.flags = HW_POLICY_HASH,
	.queue_size = sizeof(struct noop_queue),
	.task_size = sizeof(struct hw_task),
	.request_size = sizeof(struct noop_request),
	.init = noop_init,
	.insert = noop_insert,
	.dispatch = noop_dispatch,
	.has_work = noop_has_work,
	.merged_requests = noop_merged_requests,
	.former = noop_former,
	.latter = noop_latter,
};
