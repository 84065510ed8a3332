// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * deadline: a one-way elevator in batches, with an age at which the oldest request goes first.
 *
 * Source: Linux 2.6 deadline-iosched (2.6.11 to 2.6.32), as the papers used it.
 *
 * Caveats: the age of a request is looked at only when a batch begins, never inside one; and a
 * batch is always of one direction. It never waits, so two synchronous sequential readers make it
 * seek on every request.
 *
 * Decides, one request a call:
 *  1. Inside a batch: the request that followed the last one in sector order when that was
 *     dispatched (`next`), until fifo_batch requests have gone out. The published scheduler
 *     (`batching=sequential`) lets a batch go on only without a gap in the sectors: a gap counts as
 *     a full batch. From 2.6.25 on (`batching=any`) gaps are allowed.
 *  2. A new batch: reads, unless writes wait and writes_starved read batches have gone before them.
 *  3. It begins at the oldest request of its direction if that has expired or nothing follows in
 *     sector order, else with `next`.
 */
#include "core/lib/direction.h"
#include "core/lib/sorted.h"
#include "core/lib/ticks.h"
#include "core/policy/policies.h"

struct deadline_queue {
	struct hw_queue q;
	struct hw_sorted sort[2]; /* reads; writes, which is anything that is not a read */
	struct list_head fifo[2];
	struct hw_sorted_request *next[2]; /* at most one is set */
	/* already decided: requests that the host or the alias rule put first */
	struct list_head head;
	u64 last;    /* end of the last dispatched request */
	s64 batched; /* requests of the current batch so far */
	s64 starved; /* read batches begun since the last write batch while writes waited */
	u64 expire_ticks[2];

	s64 read_expire, write_expire, writes_starved, fifo_batch, front_merges;
	s64 batching, wrap, tick_us;
};

enum { BATCH_SEQUENTIAL, BATCH_ANY };
enum { WRAP_FIFO, WRAP_LOWEST };
static const char *const batching_names[] = { "sequential", "any", NULL };
static const char *const wrap_names[] = { "fifo", "lowest", NULL };

static const struct hw_tunable deadline_tunables[] = {
	HW_TUNE(struct deadline_queue, read_expire, 500, 0, HW_INT_MAX, "ms",
		"age after which the oldest read begins the next batch of reads"),
	HW_TUNE(struct deadline_queue, write_expire, 5000, 0, HW_INT_MAX, "ms",
		"age after which the oldest write begins the next batch of writes"),
	HW_TUNE(struct deadline_queue, writes_starved, 2, -HW_INT_MAX - 1, HW_INT_MAX, "batches",
		"read batches that may go before waiting writes"),
	HW_TUNE(struct deadline_queue, fifo_batch, 16, 0, HW_INT_MAX, "requests",
		"maximum requests in a batch"),
	HW_TUNE_BOOL(struct deadline_queue, front_merges, 1,
		     "merge a new request in front of a queued one"),
	HW_TUNE_ENUM(
		struct deadline_queue, batching, BATCH_SEQUENTIAL, batching_names,
		"a batch continues only without a gap (2.6.11-2.6.24), or in any ascending order (2.6.25 on)"),
	HW_TUNE_ENUM(
		struct deadline_queue, wrap, WRAP_FIFO, wrap_names,
		"start of a batch when nothing follows: the oldest request, or the lowest sector (2.6.11)"),
	HW_TUNE_TICK(struct deadline_queue, 1000),
};

static struct deadline_queue *deadline_queue(const struct hw_queue *q)
{
	return container_of(q, struct deadline_queue, q);
}

static int direction(const struct hw_request *rq)
{
	return rq->op != HW_READ;
}

static int deadline_init(struct hw_queue *q, u64 now)
{
	struct deadline_queue *dq = deadline_queue(q);

	INIT_LIST_HEAD(&dq->fifo[0]);
	INIT_LIST_HEAD(&dq->fifo[1]);
	INIT_LIST_HEAD(&dq->head);
	return 0;
}

static void deadline_tuned(struct hw_queue *q)
{
	struct deadline_queue *dq = deadline_queue(q);

	dq->expire_ticks[0] = hw_ms_ticks(dq->read_expire, dq->tick_us);
	dq->expire_ticks[1] = hw_ms_ticks(dq->write_expire, dq->tick_us);
}

/*
 * Leave both orders. A `next` that leaves hands its place to its successor; it is not chosen anew.
 */
static void leave(struct deadline_queue *dq, struct hw_sorted_request *s)
{
	int dir = direction(&s->rq);

	if (dq->next[dir] == s)
		dq->next[dir] = hw_sorted_next(s);
	hw_sorted_del(&dq->sort[dir], s);
	list_del_init(&s->fifo);
}

static struct hw_request *take(struct deadline_queue *dq, struct hw_sorted_request *s)
{
	int dir = direction(&s->rq);

	dq->next[!dir] = NULL;
	dq->next[dir] = s;
	dq->last = hw_end(&s->rq);
	leave(dq, s);
	return &s->rq;
}

static void deadline_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct deadline_queue *dq = deadline_queue(q);
	struct hw_sorted_request *s = hw_sorted(rq), *alias;
	int dir = direction(rq);

	if (rq->flags & HW_RQ_AT_HEAD) {
		RB_CLEAR_NODE(&s->node);
		list_add(&s->fifo, &dq->head);
		return;
	}
	/* Two requests cannot share a place in the tree: the older one counts as dispatched. */
	alias = hw_sorted_find(&dq->sort[dir], rq->sector);
	if (alias) {
		take(dq, alias);
		hw_forbid_merge(&dq->q, &alias->rq);
		list_add_tail(&alias->fifo, &dq->head);
	}
	hw_sorted_add(&dq->sort[dir], s);
	hw_fifo_add(&dq->fifo[dir], s, hw_tick_of(now, dq->tick_us) + dq->expire_ticks[dir]);
}

static bool expired(const struct deadline_queue *dq, int dir, u64 now)
{
	const struct hw_sorted_request *oldest = hw_fifo_first(&dq->fifo[dir]);

	return oldest && hw_tick_of(now, dq->tick_us) > oldest->expires;
}

/* Why a batch of direction @dir begins with @s. */
static enum hw_reason why_batch(const struct deadline_queue *dq, int dir,
				const struct hw_sorted_request *s, u64 now)
{
	if (expired(dq, dir, now))
		return HW_EXPIRED;
	if (dir == HW_WRITE && !list_empty(&dq->fifo[HW_READ]))
		return HW_STARVED;
	return s == dq->next[dir] || dq->wrap == WRAP_LOWEST ? HW_SEEK_ORDER : HW_ARRIVAL;
}

static struct hw_request *deadline_dispatch(struct hw_queue *q, u64 now)
{
	struct deadline_queue *dq = deadline_queue(q);
	struct hw_sorted_request *s = hw_fifo_first(&dq->head);
	int dir;

	if (s) {
		list_del_init(&s->fifo);
		hw_because(q, HW_FIRST);
		return &s->rq;
	}

	hw_because(q, HW_BATCH);
	s = dq->next[HW_WRITE] ? dq->next[HW_WRITE] : dq->next[HW_READ];
	if (s && dq->batching == BATCH_SEQUENTIAL && s->rq.sector != dq->last)
		dq->batched += dq->fifo_batch;
	if (!s || dq->batched >= dq->fifo_batch) {
		dir = hw_choose_direction(dq->fifo, &dq->starved, dq->writes_starved);
		if (dir < 0)
			return NULL;
		if (!expired(dq, dir, now) && dq->next[dir])
			s = dq->next[dir];
		else if (!expired(dq, dir, now) && dq->wrap == WRAP_LOWEST)
			s = hw_sorted_first(&dq->sort[dir]);
		else
			s = hw_fifo_first(&dq->fifo[dir]);
		hw_because(q, why_batch(dq, dir, s, now));
		dq->batched = 0;
	}
	dq->batched++;
	return take(dq, s);
}

static bool deadline_has_work(const struct hw_queue *q)
{
	const struct deadline_queue *dq = deadline_queue(q);

	return !list_empty(&dq->fifo[0]) || !list_empty(&dq->fifo[1]) || !list_empty(&dq->head);
}

static struct hw_request *deadline_find_merge(struct hw_queue *q, const struct hw_bio *bio,
					      enum hw_merge *how)
{
	struct deadline_queue *dq = deadline_queue(q);
	struct hw_sorted_request *s;

	if (!dq->front_merges)
		return NULL;
	s = hw_sorted_find(&dq->sort[bio->op != HW_READ], bio->sector + bio->sectors);
	if (!s)
		return NULL;
	*how = HW_FRONT_MERGE;
	return &s->rq;
}

static void deadline_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now)
{
	if (how == HW_FRONT_MERGE)
		hw_sorted_moved(&deadline_queue(q)->sort[direction(rq)], hw_sorted(rq));
}

static void deadline_merged_requests(struct hw_queue *q, struct hw_request *keep,
				     struct hw_request *gone)
{
	hw_fifo_inherit(hw_sorted(keep), hw_sorted(gone));
	leave(deadline_queue(q), hw_sorted(gone));
}

const struct hw_policy hw_deadline = {
	.name = "deadline",
	.summary = "one-way elevator in batches, oldest first once expired",
	.source = "Linux 2.6.11-2.6.32 deadline-iosched",
	.flags = HW_POLICY_HASH,
	.queue_size = sizeof(struct deadline_queue),
	.task_size = sizeof(struct hw_task),
	.request_size = sizeof(struct hw_sorted_request),
	.tunables = deadline_tunables,
	.nr_tunables = ARRAY_SIZE(deadline_tunables),
	.init = deadline_init,
	.tuned = deadline_tuned,
	.insert = deadline_insert,
	.dispatch = deadline_dispatch,
	.has_work = deadline_has_work,
	.find_merge = deadline_find_merge,
	.merged = deadline_merged,
	.merged_requests = deadline_merged_requests,
	.former = hw_sorted_former,
	.latter = hw_sorted_latter,
};
