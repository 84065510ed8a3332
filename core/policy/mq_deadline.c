// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * mq-deadline: a one-way elevator in batches, with deadlines, in three priority classes.
 *
 * Source: Linux 6.12.117 mq-deadline (`kernel`=6.12), and what 6.1 did otherwise (`kernel`=6.1).
 *
 * Caveats
 *  - Deadlines are looked at only when a batch begins. From there the sweep goes up; it comes round
 *    to the oldest request, not to the lowest.
 *  - Direction, batch length and starvation count belong to the whole device, not to a class. A
 *    class that is looked at and then refused has already changed them.
 *  - One request of a class in the device holds back all lower classes, for up to
 *    prio_aging_expire.
 *  - The first decision of all goes to a write if one waits.
 *
 * Decides, one request a call:
 *  1. Requests that the host put first.
 *  2. If at least two classes have unfinished requests: best-effort, then idle, but only what has
 *     queued for prio_aging_expire.
 *  3. Real-time, best-effort, idle: the first class that has a request, and none beneath a class
 *     with unfinished ones.
 *  Inside a class: the next request upwards until fifo_batch have gone out; then reads, unless
 *  writes wait and writes_starved read batches have gone before them, from the oldest request if it
 *  has expired or nothing lies upwards.
 */
#include "core/lib/direction.h"
#include "core/lib/sorted.h"
#include "core/lib/tags.h"
#include "core/lib/ticks.h"
#include "core/policy/policies.h"

enum { REALTIME, BEST_EFFORT, IDLE, CLASSES };
enum { KERNEL_6_1, KERNEL_6_12 };
static const char *const kernel_names[] = { "6.1", "6.12", NULL };

/*
 * The block core asks again after 3 ms if a scheduler with requests gave it none. Its timers round
 * that up to a tick, and add one.
 */
#define POLL_MS 3

struct mq_class {
	struct hw_sorted sort[2]; /* reads; writes, which is anything that is not a read */
	struct list_head fifo[2];
	struct list_head head;		   /* put first by the host (6.1) */
	u64 pos[2];			   /* first sector of the last request: the sweep (6.12) */
	struct hw_sorted_request *next[2]; /* what followed the last request (6.1) */
	u32 unfinished;			   /* inserted, neither completed nor merged away */
};

struct mq_queue {
	struct hw_queue q;
	struct mq_class class[CLASSES];
	struct list_head head; /* put first by the host (6.12) */
	int last_dir;
	s64 batched; /* requests of the current batch so far */
	s64 starved; /* read batches begun while writes waited */
	s64 expire_ticks[2], aging_ticks;

	s64 read_expire, write_expire, writes_starved, fifo_batch, front_merges;
	s64 prio_aging_expire, async_depth;
	s64 kernel, tick_us;
};

static const struct hw_tunable mq_tunables[] = {
	HW_TUNE(struct mq_queue, read_expire, 500, 0, HW_INT_MAX, "ms",
		"age after which the oldest read begins the next batch of reads"),
	HW_TUNE(struct mq_queue, write_expire, 5000, 0, HW_INT_MAX, "ms",
		"age after which the oldest write begins the next batch of writes"),
	HW_TUNE(struct mq_queue, writes_starved, 2, -HW_INT_MAX - 1, HW_INT_MAX, "batches",
		"read batches that may go before waiting writes"),
	HW_TUNE(struct mq_queue, fifo_batch, 16, 0, HW_INT_MAX, "requests",
		"maximum requests in a batch"),
	HW_TUNE_BOOL(struct mq_queue, front_merges, 1,
		     "merge a new request in front of a queued one"),
	HW_TUNE(struct mq_queue, prio_aging_expire, 10000, 0, HW_INT_MAX, "ms",
		"time in the queue after which a request goes before higher classes"),
	HW_TUNE(struct mq_queue, async_depth, 0, 0, HW_INT_MAX, "requests",
		"tags for requests other than synchronous reads; 0: the kernel's choice"),
	HW_TUNE_ENUM(struct mq_queue, kernel, KERNEL_6_12, kernel_names,
		     "kernel version to follow: start of a sweep, first decision, limit of tags"),
	HW_TUNE_TICK(struct mq_queue, 1),
};

static struct mq_queue *mq_queue(const struct hw_queue *q)
{
	return container_of(q, struct mq_queue, q);
}

static int direction(u8 op)
{
	return op != HW_READ;
}

static struct mq_class *class_of(struct mq_queue *mq, u16 ioprio)
{
	switch (HW_IOPRIO_CLASS(ioprio)) {
	case HW_IOPRIO_RT:
		return &mq->class[REALTIME];
	case HW_IOPRIO_IDLE:
		return &mq->class[IDLE];
	default:
		return &mq->class[BEST_EFFORT];
	}
}

static s64 ticks_of(const struct mq_queue *mq, u64 now)
{
	return (s64)hw_tick_of(now, mq->tick_us);
}

/* Rounded up, as the kernel does where it takes milliseconds from its user. */
static s64 ms_to_ticks(const struct mq_queue *mq, s64 ms)
{
	return (s64)div64_u64((u64)(ms * 1000 + mq->tick_us - 1), (u64)mq->tick_us);
}

static int mq_init(struct hw_queue *q, u64 now)
{
	struct mq_queue *mq = mq_queue(q);
	u32 i;

	INIT_LIST_HEAD(&mq->head);
	for (i = 0; i < CLASSES; i++) {
		INIT_LIST_HEAD(&mq->class[i].fifo[0]);
		INIT_LIST_HEAD(&mq->class[i].fifo[1]);
		INIT_LIST_HEAD(&mq->class[i].head);
	}
	mq->last_dir = HW_WRITE;
	return 0;
}

static void mq_tuned(struct hw_queue *q)
{
	struct mq_queue *mq = mq_queue(q);

	mq->expire_ticks[0] = ms_to_ticks(mq, mq->read_expire);
	mq->expire_ticks[1] = ms_to_ticks(mq, mq->write_expire);
	mq->aging_ticks = ms_to_ticks(mq, mq->prio_aging_expire);
}

static void put_first(struct mq_queue *mq, struct hw_request *rq, u64 now)
{
	struct hw_sorted_request *s = hw_sorted(rq);

	RB_CLEAR_NODE(&s->node);
	s->expires = (u64)ticks_of(mq, now);
	list_add(&s->fifo, mq->kernel == KERNEL_6_1 ? &class_of(mq, rq->ioprio)->head : &mq->head);
}

static void mq_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct mq_queue *mq = mq_queue(q);
	struct mq_class *c = class_of(mq, rq->ioprio);
	int dir = direction(rq->op);

	c->unfinished++;
	if (rq->flags & HW_RQ_AT_HEAD) {
		put_first(mq, rq, now);
		return;
	}
	hw_sorted_add(&c->sort[dir], hw_sorted(rq));
	hw_fifo_add(&c->fifo[dir], hw_sorted(rq), (u64)(ticks_of(mq, now) + mq->expire_ticks[dir]));
}

static void mq_requeue(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	put_first(mq_queue(q), rq, now);
}

/* Leave both orders. A `next` that leaves hands its place on; it is not chosen anew. */
static void leave(struct mq_class *c, struct hw_sorted_request *s)
{
	int dir = direction(s->rq.op);

	if (c->next[dir] == s)
		c->next[dir] = hw_sorted_next(s);
	hw_sorted_del(&c->sort[dir], s);
	list_del_init(&s->fifo);
}

static struct hw_request *start(struct mq_queue *mq, struct hw_sorted_request *s)
{
	class_of(mq, s->rq.ioprio)->pos[direction(s->rq.op)] = s->rq.sector;
	return &s->rq;
}

static struct hw_request *start_first(struct mq_queue *mq, struct hw_sorted_request *s)
{
	list_del_init(&s->fifo);
	hw_because(&mq->q, HW_FIRST);
	return start(mq, s);
}

static struct hw_sorted_request *upwards(const struct mq_queue *mq, const struct mq_class *c,
					 int dir)
{
	if (mq->kernel == KERNEL_6_1)
		return c->next[dir];
	return hw_sorted_at_or_after(&c->sort[dir], c->pos[dir]);
}

static bool queued_after(const struct mq_queue *mq, const struct hw_sorted_request *s, s64 latest)
{
	return (s64)s->expires - mq->expire_ticks[direction(s->rq.op)] > latest;
}

/* Why a batch of direction @dir begins: at @s, or if that is NULL, or @late, at the oldest. */
static enum hw_reason why_batch(const struct mq_class *c, int dir, bool late,
				const struct hw_sorted_request *s)
{
	if (late)
		return HW_EXPIRED;
	if (dir == HW_WRITE && !list_empty(&c->fifo[HW_READ]))
		return HW_STARVED;
	return s ? HW_SEEK_ORDER : HW_ARRIVAL;
}

/*
 * The request of class @c that is next, if it was queued at tick @latest or before. A refusal comes
 * too late to leave the batch and the starvation count as they were: that is the kernel's way.
 */
static struct hw_request *choose(struct mq_queue *mq, struct mq_class *c, s64 now, s64 latest)
{
	struct hw_sorted_request *s, *oldest;
	bool late;
	int dir;

	s = hw_fifo_first(&c->head);
	if (s)
		return queued_after(mq, s, latest) ? NULL : start_first(mq, s);

	dir = mq->last_dir;
	s = mq->batched < mq->fifo_batch ? upwards(mq, c, dir) : NULL;
	hw_because(&mq->q, HW_BATCH);
	if (!s) {
		dir = hw_choose_direction(c->fifo, &mq->starved, mq->writes_starved);
		if (dir < 0)
			return NULL;
		s = upwards(mq, c, dir);
		oldest = hw_fifo_first(&c->fifo[dir]);
		late = now >= (s64)oldest->expires;
		hw_because(&mq->q, why_batch(c, dir, late, s));
		if (!s || late)
			s = oldest;
		mq->last_dir = dir;
		mq->batched = 0;
	}
	if (queued_after(mq, s, latest))
		return NULL;
	mq->batched++;
	c->next[dir] = mq->kernel == KERNEL_6_1 ? s : NULL;
	leave(c, s);
	return start(mq, s);
}

/* What has waited so long that the classes above it no longer count. */
static struct hw_request *choose_aged(struct mq_queue *mq, s64 now)
{
	struct hw_request *rq;
	u32 i, classes = 0;

	for (i = 0; i < CLASSES; i++)
		classes += mq->class[i].unfinished > 0;
	if (classes < 2)
		return NULL;
	for (i = BEST_EFFORT; i < CLASSES; i++) {
		rq = choose(mq, &mq->class[i], now, now - mq->aging_ticks);
		if (rq) {
			hw_because(&mq->q, HW_AGED);
			return rq;
		}
	}
	return NULL;
}

static bool mq_has_work(const struct hw_queue *q)
{
	return q->nr_queued > 0;
}

static struct hw_request *mq_dispatch(struct hw_queue *q, u64 now_ns)
{
	struct mq_queue *mq = mq_queue(q);
	struct hw_sorted_request *first = hw_fifo_first(&mq->head);
	s64 now = ticks_of(mq, now_ns);
	struct hw_request *rq;
	u32 i;

	if (first)
		return start_first(mq, first);
	rq = choose_aged(mq, now);
	for (i = 0; !rq && i < CLASSES; i++) {
		/*
		 * The kernel asks here, too, whether the request has come by now. It has; but after
		 * a change of the tunables it may seem not to, and would be held back for no
		 * reason.
		 */
		rq = choose(mq, &mq->class[i], now, S64_MAX);
		if (mq->class[i].unfinished)
			break;
	}
	if (!rq && mq_has_work(q))
		q->wake_ns = hw_tick_ns((u64)(now + ms_to_ticks(mq, POLL_MS) + 1), mq->tick_us);
	return rq;
}

static void mq_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	class_of(mq_queue(q), rq->ioprio)->unfinished--;
}

static struct hw_request *mq_find_merge(struct hw_queue *q, const struct hw_bio *bio,
					enum hw_merge *how)
{
	struct mq_queue *mq = mq_queue(q);
	struct hw_sorted_request *s;

	if (!mq->front_merges)
		return NULL;
	s = hw_sorted_find(&class_of(mq, bio->ioprio)->sort[direction(bio->op)],
			   bio->sector + bio->sectors);
	if (!s)
		return NULL;
	*how = HW_FRONT_MERGE;
	return &s->rq;
}

static void mq_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now)
{
	struct mq_class *c = class_of(mq_queue(q), rq->ioprio);

	if (how == HW_FRONT_MERGE)
		hw_sorted_moved(&c->sort[direction(rq->op)], hw_sorted(rq));
}

static void mq_merged_requests(struct hw_queue *q, struct hw_request *keep, struct hw_request *gone)
{
	struct mq_class *c = class_of(mq_queue(q), gone->ioprio);

	hw_fifo_inherit(hw_sorted(keep), hw_sorted(gone));
	leave(c, hw_sorted(gone));
	c->unfinished--;
}

static u32 async_tags(const struct mq_queue *mq)
{
	u32 tags = mq->q.dev.nr_requests, set = (u32)mq->async_depth;

	if (!tags)
		return U32_MAX;
	if (mq->kernel == KERNEL_6_1)
		return hw_limit_by_word(tags, set ? set : max(1u, 3 * tags / 4));
	return set ? min(tags, set) : tags;
}

static u32 mq_limit_depth(struct hw_queue *q, const struct hw_bio *bio)
{
	if (bio->op == HW_READ && (bio->flags & HW_RQ_SYNC))
		return q->dev.nr_requests ? q->dev.nr_requests : U32_MAX;
	return async_tags(mq_queue(q));
}

static s64 get_batching(const struct hw_queue *q)
{
	return mq_queue(q)->batched;
}
static s64 get_starved(const struct hw_queue *q)
{
	return mq_queue(q)->starved;
}
static s64 get_async_tags(const struct hw_queue *q)
{
	return q->dev.nr_requests ? async_tags(mq_queue(q)) : 0;
}
static s64 get_rt(const struct hw_queue *q)
{
	return mq_queue(q)->class[REALTIME].unfinished;
}
static s64 get_be(const struct hw_queue *q)
{
	return mq_queue(q)->class[BEST_EFFORT].unfinished;
}
static s64 get_idle(const struct hw_queue *q)
{
	return mq_queue(q)->class[IDLE].unfinished;
}

static const struct hw_stat mq_stats[] = {
	{ "batching", "requests", "length of the current batch so far", get_batching },
	{ "starved", "batches", "read batches since the last write batch while writes waited",
	  get_starved },
	{ "async_tags", "requests", "tags for requests other than synchronous reads; 0: no limit",
	  get_async_tags },
	{ "unfinished_rt", "requests", "real-time requests queued or in the device", get_rt },
	{ "unfinished_be", "requests", "best-effort requests queued or in the device", get_be },
	{ "unfinished_idle", "requests", "idle-class requests queued or in the device", get_idle },
};

const struct hw_policy hw_mq_deadline = {
	.name = "mq-deadline",
	.summary = "one-way elevator in batches, with deadlines and three priority classes",
	.source = "Linux 6.1-6.12 mq-deadline",
	.flags = HW_POLICY_HASH | HW_POLICY_MODEL,
	.queue_size = sizeof(struct mq_queue),
	.task_size = sizeof(struct hw_task),
	.request_size = sizeof(struct hw_sorted_request),
	.tunables = mq_tunables,
	.nr_tunables = ARRAY_SIZE(mq_tunables),
	.stats = mq_stats,
	.nr_stats = ARRAY_SIZE(mq_stats),
	.init = mq_init,
	.tuned = mq_tuned,
	.insert = mq_insert,
	.requeue = mq_requeue,
	.dispatch = mq_dispatch,
	.complete = mq_complete,
	.has_work = mq_has_work,
	.find_merge = mq_find_merge,
	.merged = mq_merged,
	.merged_requests = mq_merged_requests,
	.former = hw_sorted_former,
	.latter = hw_sorted_latter,
	.limit_depth = mq_limit_depth,
};
