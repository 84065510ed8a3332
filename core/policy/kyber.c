// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * kyber: four kinds of requests, each with its own limit of requests in the device, steered by
 * latency targets.
 *
 * Source: Linux 6.1 to 6.18 kyber-iosched.
 *
 * Caveats: it does not sort and does not look at priorities: it is made for devices that take many
 * requests at once. On a device that takes one, all it does is to serve batches of 16 reads and 8
 * writes in turn.
 *
 * Decides:
 *  - Order: domains (reads, writes, discards, the rest) in turn, each for a batch, first come first
 *    served inside one.
 *  - Limit: a request needs a token of its domain from dispatch to completion. Every 100 ms in
 *    which something completed, latencies are looked at. If in any domain the 90th percentile of
 *    the time in the device is over target, the device is congested: every domain whose 99th
 *    percentile of total latency is well below target gives up tokens. A domain whose 99th
 *    percentile is over target gets more, congested or not.
 *
 * The kernel's timer is kept as a time, and its work is done, as of that time, in the first call at
 * or after it. The tokens are counted, where the kernel has a bitmap: that differs only after a
 * limit has fallen below the tokens in use.
 */
#include "core/lib/softq.h"
#include "core/lib/ticks.h"
#include "core/policy/policies.h"

enum { DOMAINS = 4, STEERED = 3, OTHER = HW_OTHER }; /* a domain is its enum hw_op */
enum { TOTAL_LATENCY, IO_LATENCY, LATENCIES };
enum { BUCKETS = 8, GOOD_BUCKETS = 4, BUCKET_SHIFT = 2 };
enum { UNKNOWN = -1 };

#define PERIOD_NS	  (100ull * HW_NSEC_PER_MSEC)
/* A percentile of few samples is taken after this time. */
#define PATIENCE_NS	  (1ull * HW_NSEC_PER_SEC)
#define ENOUGH_SAMPLES	  500u
#define ASYNC_PERCENT	  75u
#define DISCARD_TARGET_NS (5ll * HW_NSEC_PER_SEC)

static const u32 max_depth[DOMAINS] = { 256, 128, 64, 16 };
static const u32 batch_size[DOMAINS] = { 16, 8, 1, 1 };

struct kyber_queue {
	struct hw_queue q;
	struct hw_softq soft[DOMAINS];	   /* mergeable */
	struct list_head waiting[DOMAINS]; /* taken over from soft */
	u32 domain;
	u32 batched;
	u32 depth[DOMAINS]; /* tokens there are */
	u32 used[DOMAINS];  /* tokens held by requests in the device */
	u64 throttled;	    /* times that a domain with requests had no token */

	u32 hist[STEERED][LATENCIES][BUCKETS];
	u64 patience_ns[STEERED]; /* when a few samples will do; 0: clock stopped */
	int last_p99[STEERED];
	u64 timer_ns; /* HW_NEVER: not armed */

	s64 read_lat_nsec, write_lat_nsec, tick_us;
};

static const struct hw_tunable kyber_tunables[] = {
	HW_TUNE(struct kyber_queue, read_lat_nsec, 2000000, 0, S64_MAX, "ns",
		"target latency of reads"),
	HW_TUNE(struct kyber_queue, write_lat_nsec, 10000000, 0, S64_MAX, "ns",
		"target latency of writes"),
	HW_TUNE_TICK(struct kyber_queue, 1),
};

static struct kyber_queue *kyber_queue(const struct hw_queue *q)
{
	return container_of(q, struct kyber_queue, q);
}

static int kyber_init(struct hw_queue *q, u64 now)
{
	struct kyber_queue *kq = kyber_queue(q);
	u32 i;

	for (i = 0; i < DOMAINS; i++) {
		hw_softq_init(&kq->soft[i]);
		INIT_LIST_HEAD(&kq->waiting[i]);
		kq->depth[i] = max_depth[i];
	}
	for (i = 0; i < STEERED; i++)
		kq->last_p99[i] = UNKNOWN;
	kq->timer_ns = HW_NEVER;
	return 0;
}

static s64 target_ns(const struct kyber_queue *kq, u32 domain)
{
	switch (domain) {
	case HW_READ:
		return kq->read_lat_nsec;
	case HW_WRITE:
		return kq->write_lat_nsec;
	default:
		return DISCARD_TARGET_NS;
	}
}

/* Four buckets up to the target and four beyond; the last is open. */
static void add_sample(u32 *hist, s64 target, u64 latency)
{
	u64 width = max_t(u64, (u64)target >> BUCKET_SHIFT, 1);

	hist[latency ? min_t(u64, div64_u64(latency - 1, width), BUCKETS - 1) : 0]++;
}

/*
 * The bucket of the given percentile, or UNKNOWN while there are too few samples; a histogram that
 * was evaluated starts anew. The clock of few samples is the domain's, not the histogram's: whoever
 * is evaluated first stops it for both.
 */
static int percentile(struct kyber_queue *kq, u32 domain, u32 kind, u32 percent, u64 now)
{
	u32 *hist = kq->hist[domain][kind];
	u32 i, need, samples = 0;

	for (i = 0; i < BUCKETS; i++)
		samples += hist[i];
	if (!samples)
		return UNKNOWN;
	if (!kq->patience_ns[domain])
		kq->patience_ns[domain] = now + PATIENCE_NS;
	if (samples < ENOUGH_SAMPLES && now < kq->patience_ns[domain])
		return UNKNOWN;
	kq->patience_ns[domain] = 0;

	need = (u32)div_u64((u64)samples * percent + 99, 100);
	for (i = 0; i < BUCKETS - 1 && hist[i] < need; i++)
		need -= hist[i];
	memset(hist, 0, sizeof(kq->hist[domain][kind]));
	return (int)i;
}

static void resize(struct kyber_queue *kq, u32 domain, int p99)
{
	u32 depth = (kq->depth[domain] * (u32)(p99 + 1)) >> BUCKET_SHIFT;

	kq->depth[domain] = clamp_t(u32, depth, 1, max_depth[domain]);
}

/* A timer set now goes off at the end of the tick in which the period is over. */
static u64 period_end(const struct kyber_queue *kq, u64 now)
{
	u64 tick_ns = hw_tick_ns(1, kq->tick_us);

	return div64_u64(now + PERIOD_NS + tick_ns - 1, tick_ns) * tick_ns;
}

/* Steers the depths if the timer is due. Every call that carries a time begins with this. */
static void catch_up(struct kyber_queue *kq, u64 now)
{
	u64 due = kq->timer_ns;
	bool congested = false;
	u32 domain;
	int p99;

	if (now < due)
		return;
	kq->timer_ns = HW_NEVER;
	for (domain = 0; domain < STEERED; domain++)
		if (percentile(kq, domain, IO_LATENCY, 90, due) >= GOOD_BUCKETS)
			congested = true;
	for (domain = 0; domain < STEERED; domain++) {
		p99 = percentile(kq, domain, TOTAL_LATENCY, 99, due);
		if (congested) {
			if (p99 == UNKNOWN)
				p99 = kq->last_p99[domain];
			kq->last_p99[domain] = UNKNOWN;
		} else if (p99 != UNKNOWN) {
			kq->last_p99[domain] = p99;
		}
		if (p99 != UNKNOWN && (congested || p99 >= GOOD_BUCKETS))
			resize(kq, domain, p99);
	}
}

static void kyber_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct kyber_queue *kq = kyber_queue(q);

	catch_up(kq, now);
	hw_softq_add(&kq->soft[rq->op], rq, rq->flags & HW_RQ_AT_HEAD);
}

static struct hw_request *take(struct kyber_queue *kq)
{
	u32 domain = kq->domain;

	if (list_empty(&kq->waiting[domain]) && hw_softq_empty(&kq->soft[domain]))
		return NULL;
	/* The token comes first: requests that get none can still be merged with. */
	if (kq->used[domain] >= kq->depth[domain]) {
		kq->throttled++;
		return NULL;
	}
	if (list_empty(&kq->waiting[domain]))
		hw_softq_flush(&kq->soft[domain], &kq->waiting[domain]);
	kq->used[domain]++;
	kq->batched++;
	return hw_soft_pop(&kq->waiting[domain]);
}

static bool kyber_has_work(const struct hw_queue *q)
{
	const struct kyber_queue *kq = kyber_queue(q);
	u32 i;

	for (i = 0; i < DOMAINS; i++)
		if (!list_empty(&kq->waiting[i]) || !hw_softq_empty(&kq->soft[i]))
			return true;
	return false;
}

static struct hw_request *kyber_dispatch(struct hw_queue *q, u64 now)
{
	struct kyber_queue *kq = kyber_queue(q);
	struct hw_request *rq;
	u32 step;

	catch_up(kq, now);
	/* blk-mq does not ask a scheduler without work; a batch must not end because a host did. */
	if (!kyber_has_work(q))
		return NULL;
	hw_because(q, HW_BATCH);
	if (kq->batched < batch_size[kq->domain]) {
		rq = take(kq);
		if (rq)
			return rq;
	}
	kq->batched = 0;
	hw_because(q, HW_TURN);
	for (step = 0; step < DOMAINS; step++) {
		kq->domain = (kq->domain + 1) % DOMAINS;
		rq = take(kq);
		if (rq)
			return rq;
	}
	/* Whatever waits, waits for a token: one that comes back, or one that the timer adds. */
	q->wake_ns = kq->timer_ns;
	return NULL;
}

static void kyber_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct kyber_queue *kq = kyber_queue(q);
	s64 target = target_ns(kq, rq->op);

	catch_up(kq, now);
	kq->used[rq->op]--;
	if (rq->op == OTHER)
		return;
	add_sample(kq->hist[rq->op][TOTAL_LATENCY], target, now - rq->insert_ns);
	add_sample(kq->hist[rq->op][IO_LATENCY], target, now - rq->dispatch_ns);
	kq->timer_ns = min_t(u64, kq->timer_ns, period_end(kq, now));
}

static void kyber_requeue(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct kyber_queue *kq = kyber_queue(q);

	catch_up(kq, now);
	kq->used[rq->op]--;
	hw_softq_add(&kq->soft[rq->op], rq, true);
}

static struct hw_request *kyber_find_merge(struct hw_queue *q, const struct hw_bio *bio,
					   enum hw_merge *how)
{
	return hw_softq_find_merge(&kyber_queue(q)->soft[bio->op], bio, how);
}

static u32 async_depth(const struct hw_queue *q)
{
	u64 limit = (u64)q->dev.nr_requests * ASYNC_PERCENT;

	return q->dev.nr_requests ? max_t(u32, (u32)div_u64(limit, 100), 1) : U32_MAX;
}

static u32 kyber_limit_depth(struct hw_queue *q, const struct hw_bio *bio)
{
	if (bio->flags & HW_RQ_SYNC)
		return q->dev.nr_requests ? q->dev.nr_requests : U32_MAX;
	return async_depth(q);
}

static s64 get_depth_read(const struct hw_queue *q)
{
	return kyber_queue(q)->depth[HW_READ];
}
static s64 get_depth_write(const struct hw_queue *q)
{
	return kyber_queue(q)->depth[HW_WRITE];
}
static s64 get_depth_discard(const struct hw_queue *q)
{
	return kyber_queue(q)->depth[HW_DISCARD];
}
static s64 get_depth_other(const struct hw_queue *q)
{
	return kyber_queue(q)->depth[OTHER];
}
static s64 get_used_read(const struct hw_queue *q)
{
	return kyber_queue(q)->used[HW_READ];
}
static s64 get_used_write(const struct hw_queue *q)
{
	return kyber_queue(q)->used[HW_WRITE];
}
static s64 get_async_depth(const struct hw_queue *q)
{
	return q->dev.nr_requests ? async_depth(q) : 0;
}
static s64 get_domain(const struct hw_queue *q)
{
	return kyber_queue(q)->domain;
}
static s64 get_batched(const struct hw_queue *q)
{
	return kyber_queue(q)->batched;
}
static s64 get_throttled(const struct hw_queue *q)
{
	return (s64)kyber_queue(q)->throttled;
}

static const struct hw_stat kyber_stats[] = {
	{ "depth_read", "requests", "reads that may be in the device", get_depth_read },
	{ "depth_write", "requests", "writes that may be in the device", get_depth_write },
	{ "depth_discard", "requests", "discards that may be in the device", get_depth_discard },
	{ "depth_other", "requests", "other requests that may be in the device", get_depth_other },
	{ "used_read", "requests", "reads in the device", get_used_read },
	{ "used_write", "requests", "writes in the device", get_used_write },
	{ "async_depth", "requests", "tags that asynchronous requests may use; 0: no limit",
	  get_async_depth },
	{ "cur_domain", "", "domain served: 0 reads, 1 writes, 2 discards, 3 others", get_domain },
	{ "batching", "requests", "length of the current batch so far", get_batched },
	{ "throttled", "", "number of times that a domain with requests had no token",
	  get_throttled },
};

const struct hw_policy hw_kyber = {
	.name = "kyber",
	.summary =
		"reads, writes and discards in turn, with limits in the device to meet latency targets",
	.source = "Linux 6.1-6.18 kyber-iosched",
	.flags = HW_POLICY_TOKENS | HW_POLICY_MODEL,
	.queue_size = sizeof(struct kyber_queue),
	.task_size = sizeof(struct hw_task),
	.request_size = sizeof(struct hw_soft_request),
	.tunables = kyber_tunables,
	.nr_tunables = ARRAY_SIZE(kyber_tunables),
	.stats = kyber_stats,
	.nr_stats = ARRAY_SIZE(kyber_stats),
	.init = kyber_init,
	.insert = kyber_insert,
	.requeue = kyber_requeue,
	.dispatch = kyber_dispatch,
	.complete = kyber_complete,
	.has_work = kyber_has_work,
	.find_merge = kyber_find_merge,
	.limit_depth = kyber_limit_depth,
};
