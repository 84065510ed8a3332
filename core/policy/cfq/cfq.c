// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cfq: a queue for each process, and an equal number of requests from each.
 *
 * Source: complete fair queueing before time slices, in three forms (tunable `variant`):
 *  - rr, as the papers describe it: up to `quantum` requests from one process, then the next. The
 *    default.
 *  - v1, Linux 2.6.9: rounds of one request from each process until at least `quantum` are
 *    together; these go out in ascending order of sector.
 *  - v2, Linux 2.6.10-2.6.12: as v1, but whoever had least service goes first, whoever has nothing
 *    in flight before the others, and expired requests before sorted ones.
 *
 * Caveats: fair by count of requests, not by time (v2 weighs time, but never holds the disk for
 * anybody). It never waits, so a process that has one request outstanding at a time loses the head
 * after each of them.
 *
 * Decides, one request a call: what the host put first; else what has been set out by the last
 * round (`out`); else it sets out a new round. rr keeps no such list: the turn is a count.
 */
#include "core/lib/choose.h"
#include "core/lib/sorted.h"
#include "core/lib/ticks.h"
#include "core/policy/policies.h"

#define CFQ_TAGGED	4u   /* a drive that has held so many at once queues by itself */
#define CFQ_V1_LIMIT	3u   /* v1: requests that everybody may always hold */
#define CFQ_V2_SHARE	16u  /* v2: nobody holds more than this part of all requests */
#define CFQ_PERIOD_MS	1000 /* v2: service older than this fades */
#define CFQ_FADE	8u
#define CFQ_FADE_TAGGED 10u

/* One process's requests and its account. */
struct cfq_proc {
	struct hw_sorted sort;
	struct list_head fifo[2];	/* asynchronous, synchronous */
	struct list_head ring;		/* in cfq_queue.ring while it has requests */
	struct hw_sorted_request *next; /* v2: next to serve */
	u32 queued, in_flight;
	u64 last;	/* rr: end of the last request of this process */
	u64 used;	/* v2: service had: ticks, or requests on a drive that queues */
	u64 used_since; /* tick */
	u64 expired_at; /* tick at which an expired request was last preferred */
};

struct cfq_queue {
	struct hw_queue q;
	struct list_head ring;	/* processes with requests */
	struct list_head first; /* what the host wants first, and what came back unserved */
	struct list_head out;	/* v1, v2: this round's requests as they will go out */
	struct cfq_proc nobody; /* requests that belong to no task */
	u64 head;		/* end of the last dispatched request */
	u32 turn;		/* rr: requests of the first process of the ring in this turn */
	u32 busy;		/* processes on the ring */
	bool tagged;
	struct hw_reach reach;
	u64 expire[2], expire_gap, period; /* ticks */

	s64 variant, quantum, queued, fifo_expire_sync, fifo_expire_async, fifo_batch_expire;
	s64 back_seek_max, back_seek_penalty, find_best, tick_us;
};

struct cfq_task {
	struct hw_task task;
	struct cfq_proc proc;
};

struct cfq_request {
	struct hw_sorted_request s;
	struct cfq_proc *proc;
	bool charged;
	u8 reason; /* v1, v2: enum hw_reason, why it is in this round */
};

enum { CFQ_RR, CFQ_V1, CFQ_V2 };
static const char *const variant_names[] = { "rr", "v1", "v2", NULL };

static const struct hw_tunable cfq_tunables[] = {
	HW_TUNE_ENUM(struct cfq_queue, variant, CFQ_RR, variant_names,
		     "rr: turns of a quantum each (as in the papers); v1: 2.6.9; v2: 2.6.10-2.6.12"),
	HW_TUNE(struct cfq_queue, quantum, 4, 1, HW_INT_MAX, "requests",
		"rr: requests in a turn; v1, v2: minimum requests in a round, all processes "
		"together"),
	HW_TUNE(struct cfq_queue, queued, 8, 1, HW_INT_MAX, "requests",
		"v1: requests set aside in computing the limit per process; v2: requests that each "
		"process may always hold"),
	HW_TUNE(struct cfq_queue, fifo_expire_sync, 500, 0, HW_INT_MAX, "ms",
		"v2: age after which a synchronous request is preferred"),
	HW_TUNE(struct cfq_queue, fifo_expire_async, 5000, 0, HW_INT_MAX, "ms",
		"v2: age after which an asynchronous request is preferred"),
	HW_TUNE(struct cfq_queue, fifo_batch_expire, 125, 0, HW_INT_MAX, "ms",
		"v2: minimum time between two such preferences in one process"),
	HW_TUNE(struct cfq_queue, back_seek_max, 16384, 0, HW_INT_MAX, "KiB",
		"v2: maximum distance backwards to a request"),
	HW_TUNE(struct cfq_queue, back_seek_penalty, 2, 1, HW_INT_MAX, "",
		"v2: factor by which a distance backwards counts"),
	HW_TUNE_BOOL(
		struct cfq_queue, find_best, 1,
		"v2: within a process, serve the request nearest to the head, not the lowest sector"),
	HW_TUNE_TICK(struct cfq_queue, 1000),
};

static struct cfq_queue *cfq_queue(const struct hw_queue *q)
{
	return container_of(q, struct cfq_queue, q);
}

static struct cfq_request *cfq_request(struct hw_sorted_request *s)
{
	return container_of(s, struct cfq_request, s);
}

static struct cfq_proc *proc_of(struct cfq_queue *cq, struct hw_task *task)
{
	return task ? &container_of(task, struct cfq_task, task)->proc : &cq->nobody;
}

static void proc_init(struct cfq_proc *p, u64 tick)
{
	INIT_LIST_HEAD(&p->fifo[0]);
	INIT_LIST_HEAD(&p->fifo[1]);
	INIT_LIST_HEAD(&p->ring);
	p->used_since = tick;
}

static int cfq_init(struct hw_queue *q, u64 now)
{
	struct cfq_queue *cq = cfq_queue(q);

	INIT_LIST_HEAD(&cq->ring);
	INIT_LIST_HEAD(&cq->first);
	INIT_LIST_HEAD(&cq->out);
	proc_init(&cq->nobody, hw_tick_of(now, cq->tick_us));
	return 0;
}

static void cfq_tuned(struct hw_queue *q)
{
	struct cfq_queue *cq = cfq_queue(q);

	cq->reach.back_max = (u64)cq->back_seek_max * 2;
	cq->reach.back_penalty = (u64)cq->back_seek_penalty;
	cq->expire[false] = hw_ms_ticks(cq->fifo_expire_async, cq->tick_us);
	cq->expire[true] = hw_ms_ticks(cq->fifo_expire_sync, cq->tick_us);
	cq->expire_gap = hw_ms_ticks(cq->fifo_batch_expire, cq->tick_us);
	cq->period = hw_ms_ticks(CFQ_PERIOD_MS, cq->tick_us);
}

static void cfq_task_init(struct hw_queue *q, struct hw_task *task, u64 now)
{
	struct cfq_queue *cq = cfq_queue(q);

	proc_init(proc_of(cq, task), hw_tick_of(now, cq->tick_us));
}

/* --- the ring --- */

/*
 * v2: least service first; of those that had the same, fewest in flight first; then in order of
 * arrival.
 */
static void ring_sort(struct cfq_queue *cq, struct cfq_proc *p)
{
	struct cfq_proc *other;

	list_del_init(&p->ring);
	list_for_each_entry_reverse(other, &cq->ring, ring)
		if (other->used < p->used ||
		    (other->used == p->used && other->in_flight <= p->in_flight))
			break;
	list_add(&p->ring, &other->ring);
}

/* v2: service of more than a period ago counts for a fraction. */
static void fade(struct cfq_queue *cq, struct cfq_proc *p, u32 divisor, u64 tick)
{
	if (tick <= p->used_since + cq->period)
		return;
	p->used_since = tick;
	p->used = div_u64(p->used, divisor);
}

/* v2: the account decides the place on the ring. */
static void charge(struct cfq_queue *cq, struct cfq_proc *p, u64 service, u64 tick)
{
	if (cq->variant != CFQ_V2)
		return;
	fade(cq, p, cq->tagged ? CFQ_FADE_TAGGED : CFQ_FADE, tick);
	p->used += service;
	if (!list_empty(&p->ring))
		ring_sort(cq, p);
}

static void ring_enter(struct cfq_queue *cq, struct cfq_proc *p, u64 tick)
{
	cq->busy++;
	switch (cq->variant) {
	case CFQ_RR:
		list_add_tail(&p->ring, &cq->ring);
		break;
	case CFQ_V1:
		list_add(&p->ring, &cq->ring);
		break;
	default:
		fade(cq, p, CFQ_FADE, tick);
		ring_sort(cq, p);
	}
}

static void ring_leave(struct cfq_queue *cq, struct cfq_proc *p)
{
	cq->busy--;
	if (cq->ring.next == &p->ring)
		cq->turn = 0;
	list_del_init(&p->ring);
}

/* --- a process's requests --- */

static void proc_add(struct cfq_queue *cq, struct cfq_proc *p, struct hw_sorted_request *s)
{
	hw_sorted_add(&p->sort, s);
	p->next = hw_choose_sorted(&cq->reach, cq->head, p->next, s);
}

static void proc_del(struct cfq_queue *cq, struct cfq_proc *p, struct hw_sorted_request *s)
{
	if (p->next == s)
		p->next = hw_choose_after(&cq->reach, cq->head, &p->sort, s);
	hw_sorted_del(&p->sort, s);
}

static void proc_drop(struct cfq_queue *cq, struct cfq_proc *p, struct hw_sorted_request *s)
{
	proc_del(cq, p, s);
	list_del_init(&s->fifo);
	p->queued--;
	if (!p->queued)
		ring_leave(cq, p);
}

/* From the process's queue towards the device. */
static void take(struct cfq_queue *cq, struct hw_sorted_request *s)
{
	struct cfq_proc *p = cfq_request(s)->proc;

	p->last = cq->head = hw_end(&s->rq);
	p->next = s;
	p->in_flight++;
	proc_drop(cq, p, s);
	hw_forbid_merge(&cq->q, &s->rq);
}

static void cfq_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct cfq_queue *cq = cfq_queue(q);
	struct hw_sorted_request *s = hw_sorted(rq), *alias;
	struct cfq_proc *p = proc_of(cq, rq->task);
	u64 tick = hw_tick_of(now, cq->tick_us);

	cfq_request(s)->proc = p;
	cfq_request(s)->charged = false;
	if (rq->flags & HW_RQ_AT_HEAD) {
		p->in_flight++;
		list_add(&s->fifo, &cq->first);
		return;
	}
	/* Two requests of one process cannot share a place: the older one counts as dispatched. */
	alias = hw_sorted_find(&p->sort, rq->sector);
	if (alias) {
		take(cq, alias);
		list_add_tail(&alias->fifo, &cq->first);
	}
	if (!p->queued++)
		ring_enter(cq, p, tick);
	proc_add(cq, p, s);
	hw_fifo_add(&p->fifo[hw_is_sync(rq)], s, tick + cq->expire[hw_is_sync(rq)]);
}

/* --- rr --- */

static struct hw_sorted_request *serve_turn(struct cfq_queue *cq)
{
	struct cfq_proc *p = list_first_entry(&cq->ring, struct cfq_proc, ring);
	struct hw_sorted_request *s = hw_sorted_at_or_after(&p->sort, p->last);

	if (!s)
		s = hw_sorted_first(&p->sort);
	hw_because(&cq->q, cq->turn ? HW_BATCH : HW_TURN);
	cq->turn++;
	take(cq, s);
	if (p->queued && cq->turn >= cq->quantum) {
		list_move_tail(&p->ring, &cq->ring);
		cq->turn = 0;
	}
	return s;
}

/* --- v1 and v2 --- */

/*
 * v2: the oldest request of a process if it is too old, synchronous ones first, but not too often.
 */
static struct hw_sorted_request *expired(struct cfq_queue *cq, struct cfq_proc *p, u64 tick)
{
	int sync;

	if (tick < p->expired_at + cq->expire_gap)
		return NULL;
	for (sync = 1; sync >= 0; sync--) {
		struct hw_sorted_request *s = hw_fifo_first(&p->fifo[sync]);

		if (s && tick > s->expires) {
			p->expired_at = tick;
			return s;
		}
	}
	return NULL;
}

static struct hw_sorted_request *choose(struct cfq_queue *cq, struct cfq_proc *p, u64 tick)
{
	struct hw_sorted_request *s;

	s = cq->variant == CFQ_V1 ? NULL : expired(cq, p, tick);
	if (s) {
		cfq_request(s)->reason = HW_EXPIRED;
		return s;
	}
	s = cq->variant == CFQ_V2 && cq->find_best ? p->next : hw_sorted_first(&p->sort);
	cfq_request(s)->reason = HW_TURN;
	return s;
}

/* Ascending from @boundary upwards, then what lies below it. With boundary 0: ascending. */
static void set_out(struct cfq_queue *cq, struct hw_sorted_request *s, u64 boundary)
{
	struct hw_sorted_request *other;
	bool wrapped = s->rq.sector < boundary;

	list_for_each_entry_reverse(other, &cq->out, fifo) {
		bool other_wrapped = other->rq.sector < boundary;

		if (other_wrapped < wrapped ||
		    (other_wrapped == wrapped && other->rq.sector <= s->rq.sector))
			break;
	}
	list_add(&s->fifo, &other->fifo);
}

/* One request from every process, or from every one that has none in flight. Returns how many. */
static u32 pass(struct cfq_queue *cq, bool only_idle, u64 boundary, u64 tick)
{
	struct cfq_proc *p, *n;
	u32 taken = 0;

	list_for_each_entry_safe(p, n, &cq->ring, ring) {
		struct hw_sorted_request *s;

		if (only_idle && p->in_flight)
			continue;
		s = choose(cq, p, tick);
		take(cq, s);
		set_out(cq, s, boundary);
		taken++;
	}
	return taken;
}

/* The quantum is looked at between passes only: with many processes a round is longer than it. */
static void fill_round(struct cfq_queue *cq, u64 tick)
{
	u64 boundary = cq->variant == CFQ_V2 ? cq->head : 0;
	u32 taken = 0;

	if (cq->variant == CFQ_V2)
		taken = pass(cq, true, boundary, tick);
	while (taken < cq->quantum && !list_empty(&cq->ring))
		taken += pass(cq, false, boundary, tick);
}

/* --- operations --- */

static struct hw_request *hand_out(struct cfq_queue *cq, struct hw_sorted_request *s, u64 tick)
{
	struct cfq_request *r = cfq_request(s);

	cq->head = hw_end(&s->rq);
	if (cq->q.nr_in_flight + 1 >= CFQ_TAGGED)
		cq->tagged = true;
	if (cq->tagged && !r->charged)
		charge(cq, r->proc, 1, tick);
	r->charged = true;
	return &s->rq;
}

static struct hw_request *cfq_dispatch(struct hw_queue *q, u64 now)
{
	struct cfq_queue *cq = cfq_queue(q);
	u64 tick = hw_tick_of(now, cq->tick_us);
	struct list_head *from = &cq->first;
	struct hw_sorted_request *s;

	if (list_empty(from)) {
		if (cq->variant == CFQ_RR && list_empty(&cq->out))
			return list_empty(&cq->ring) ? NULL : hand_out(cq, serve_turn(cq), tick);
		if (list_empty(&cq->out))
			fill_round(cq, tick);
		from = &cq->out;
	}
	s = hw_fifo_first(from);
	if (!s)
		return NULL;
	hw_because(q, from == &cq->first ? HW_FIRST : (enum hw_reason)cfq_request(s)->reason);
	list_del_init(&s->fifo);
	return hand_out(cq, s, tick);
}

static void cfq_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct cfq_queue *cq = cfq_queue(q);
	struct cfq_proc *p = cfq_request(hw_sorted(rq))->proc;
	u64 tick = hw_tick_of(now, cq->tick_us);

	p->in_flight--;
	if (!cq->tagged)
		charge(cq, p, tick - hw_tick_of(rq->dispatch_ns, cq->tick_us), tick);
}

static void cfq_requeue(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	list_add(&hw_sorted(rq)->fifo, &cfq_queue(q)->first);
}

static bool cfq_has_work(const struct hw_queue *q)
{
	return q->nr_queued;
}

static struct hw_request *cfq_find_merge(struct hw_queue *q, const struct hw_bio *bio,
					 enum hw_merge *how)
{
	struct cfq_proc *p = proc_of(cfq_queue(q), bio->task);
	struct hw_sorted_request *s = hw_sorted_find(&p->sort, bio->sector + bio->sectors);

	*how = HW_FRONT_MERGE;
	return hw_sorted_rq(s);
}

static void cfq_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now)
{
	if (how == HW_FRONT_MERGE)
		hw_sorted_moved(&cfq_request(hw_sorted(rq))->proc->sort, hw_sorted(rq));
}

static void cfq_merged_requests(struct hw_queue *q, struct hw_request *keep,
				struct hw_request *gone)
{
	struct hw_sorted_request *k = hw_sorted(keep), *g = hw_sorted(gone);
	struct cfq_proc *p = cfq_request(g)->proc;

	/* Each process and class has a list of its own. */
	if (cfq_request(k)->proc == p && hw_is_sync(keep) == hw_is_sync(gone))
		hw_fifo_inherit(k, g);
	proc_drop(cfq_queue(q), p, g);
}

/*
 * Nobody may hold more than an equal part of all requests. The host compares what is in use with
 * the answer; so a process that is over its part is told a number that keeps it waiting until that
 * many have completed.
 */
static u32 cfq_limit_depth(struct hw_queue *q, const struct hw_bio *bio)
{
	struct cfq_queue *cq = cfq_queue(q);
	struct cfq_proc *p = proc_of(cq, bio->task);
	u32 all = q->dev.nr_requests, in_use = q->nr_queued + q->nr_in_flight,
	    held = p->queued + p->in_flight;
	u32 busy = max_t(u32, cq->busy, 1), limit;

	if (!all || cq->variant == CFQ_RR)
		return all;
	if (cq->variant == CFQ_V1)
		limit = (u32)clamp_t(s64, (all - min_t(s64, cq->queued, all)) / busy, CFQ_V1_LIMIT,
				     all);
	else
		limit = (u32)max_t(s64, min_t(u32, all / busy, all / CFQ_V2_SHARE), cq->queued);
	if (held < limit)
		return all;
	return max_t(u32, in_use - min_t(u32, held - limit, in_use), 1);
}

const struct hw_policy hw_cfq = {
	.name = "cfq",
	.summary = "a queue for each process, the same number of requests from each",
	.source = "Linux 2.6.9-2.6.12 cfq-iosched, before time slices",
	.flags = HW_POLICY_HASH,
	.queue_size = sizeof(struct cfq_queue),
	.task_size = sizeof(struct cfq_task),
	.request_size = sizeof(struct cfq_request),
	.tunables = cfq_tunables,
	.nr_tunables = ARRAY_SIZE(cfq_tunables),
	.init = cfq_init,
	.tuned = cfq_tuned,
	.insert = cfq_insert,
	.dispatch = cfq_dispatch,
	.complete = cfq_complete,
	.requeue = cfq_requeue,
	.has_work = cfq_has_work,
	.find_merge = cfq_find_merge,
	.merged = cfq_merged,
	.merged_requests = cfq_merged_requests,
	.former = hw_sorted_former,
	.latter = hw_sorted_latter,
	.limit_depth = cfq_limit_depth,
	.task_init = cfq_task_init,
};
