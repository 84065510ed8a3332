// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cfq-slice: each process gets the whole disk for a slice of time, and the disk waits for it within
 * the slice.
 *
 * Source: Linux 2.6.32 cfq-iosched, which grew out of Axboe's "time sliced CFQ" (December 2004).
 * The first posting's values are the preset cfq-slice-2004.
 *
 * Caveats: a slice is disk time, so a process that seeks gets less data, not less disk. Whoever
 * thinks longer than slice_idle loses the rest of its slice. Latency grows with the number of busy
 * processes times slice_sync.
 *
 * Decides, one request a call:
 *  1. The active queue goes on until its slice is used. The clock starts when its first request
 *     completes, so that the seek to it is free.
 *  2. When the active queue has nothing queued, the disk is held idle for it for at most
 *     slice_idle, if its process is known to think for less (`idle_window`); unless another process
 *     wants sectors nearby (slice_coop.c).
 *  3. Then the first of the service tree: real time before best effort before idle class; within a
 *     class by a key that is the time of joining, later for lower priorities, moved by what was
 *     left of the last slice or overrun.
 *  4. Within a queue the nearest request to the head, short seeks backwards allowed; once a slice,
 *     at its beginning, the oldest request if that has expired.
 *
 * Asynchronous writes of all processes share a queue for each priority. They get slices in time and
 * in number of requests, never beside synchronous requests in flight, and few at once after
 * synchronous requests (low_latency). That is all the throttling that write-back needs: as Linux's
 * CFQ did (4.10), this one does without the block layer's. Nor do they have more than half of the
 * requests, for a reader that finds none left cannot be served first.
 *
 * The active queue is slice_active.c's, the order of queues and of a queue's requests
 * slice_queue.c's, who is worth waiting for slice_habits.c's, cooperation slice_coop.c's. Calls go
 * from this file to the others, and from slice_active.c to slice_queue.c to slice_coop.c.
 *
 * Four decisions of our own, where the published one is silent or would let a queue starve:
 *  - An idle timer that fires with nobody else busy ends the wait, though the queue stays active.
 *    If its next request comes after the slice's end, a new slice begins; if another process's
 *    does, the queue is not charged for an overrun: nobody wanted the disk. (2.6.32 charges it, so
 *    that a pause of an hour puts it an hour behind.)
 *  - A single small request for which the disk is held goes out at once: hosts here do not plug.
 *  - Reads of file system metadata are no part of a queue's seek history, and no cooperation. Two
 *    look-ups far from a file made its reader seem to seek for a dozen requests, in which a slice
 *    was one request; two readers whose files are in one table shared a queue, in which they took
 *    turns. learn_meta brings that back.
 *  - On a non-rotational device it does not idle at all. 2.6.32 did if the device did not queue
 *    commands (wait_nonrot).
 *
 * Invariants:
 *  1. At most one queue is active, and only its requests are dispatched (`first` and forced
 *     dispatch excepted).
 *  2. The idle timer runs only for an active, empty, synchronous queue with nothing in the driver.
 *  3. A queue is in the service tree exactly while it has requests queued.
 */
#include "core/policy/cfq/internal.h"
#include "core/policy/policies.h"

#define CS_SEEKY_IDLE_MS   2	/* idle allowance of a queue that seeks */
#define CS_FRONT_MS	   1000 /* how far before the leftmost a preempting queue is put */
#define CS_IDLE_CLASS_MS   200
#define CS_COOP_TIMEOUT_MS 1000
#define CS_TAG_QUEUE	   5u /* so many in the driver show that the device queues */
#define CS_TAG_SAMPLES	   50u

enum { TAG_AUTO, TAG_OFF, TAG_ON };
static const char *const slice_start_names[] = { "completion", "dispatch", NULL };
static const char *const hw_tag_names[] = { "auto", "off", "on", NULL };

static const struct hw_tunable cfq_slice_tunables[] = {
	HW_TUNE(struct cs_device, slice_sync, 100, 1, HW_INT_MAX, "ms",
		"slice of a process's synchronous requests at best-effort priority 4"),
	HW_TUNE(struct cs_device, slice_async, 40, 1, HW_INT_MAX, "ms",
		"slice of the asynchronous requests of priority 4"),
	HW_TUNE(struct cs_device, slice_async_rq, 2, 1, HW_INT_MAX, "requests",
		"base of the number of asynchronous requests in a slice (priority 4: 8 times "
		"this)"),
	HW_TUNE(struct cs_device, slice_idle, 8, 0, HW_INT_MAX, "ms",
		"longest idle time to wait for the next request of a process; 0: never wait"),
	HW_TUNE_BOOL(struct cs_device, wait_nonrot, 0,
		     "as in 2.6.32: wait also on non-rotational devices that do not queue commands"),
	HW_TUNE(struct cs_device, quantum, 4, 1, HW_INT_MAX, "requests",
		"maximum requests of a queue in the device at once (4 times that without "
		"competition)"),
	HW_TUNE(struct cs_device, fifo_expire_sync, 125, 1, HW_INT_MAX, "ms",
		"age after which a synchronous request begins its queue's next slice"),
	HW_TUNE(struct cs_device, fifo_expire_async, 250, 1, HW_INT_MAX, "ms",
		"age after which an asynchronous request begins its queue's next slice"),
	HW_TUNE(struct cs_device, back_seek_max, 16384, 0, HW_INT_MAX, "KiB",
		"maximum distance backwards to a request"),
	HW_TUNE(struct cs_device, back_seek_penalty, 2, 1, HW_INT_MAX, "",
		"factor by which a distance backwards counts"),
	HW_TUNE_BOOL(struct cs_device, low_latency, 1,
		     "hold back asynchronous requests after synchronous ones, and idle for "
		     "processes that seek"),
	HW_TUNE_BOOL(
		struct cs_device, learn_meta, 0,
		"as in Linux 2.6: reads of file system metadata count as a process's seeks, and as "
		"its cooperation with another"),
	HW_TUNE_ENUM(
		struct cs_device, slice_start, CS_START_COMPLETION, slice_start_names,
		"event that starts a slice's clock: its first completion, or its first dispatch (2004)"),
	HW_TUNE_ENUM(struct cs_device, hw_tag, TAG_AUTO, hw_tag_names,
		     "whether the device queues commands: observed (no at depth 1), no, yes"),
	HW_TUNE_TICK(struct cs_device, 1000),
};

static const struct hw_preset cfq_slice_presets[] = {
	{ "cfq-slice-2004", "Axboe's first posting (December 2004)",
	  "slice_sync=83 slice_idle=4 slice_start=dispatch" },
};

static struct cs_device *cs_device(const struct hw_queue *q)
{
	return container_of(q, struct cs_device, q);
}

static struct cs_device *enter(struct hw_queue *q, u64 now)
{
	struct cs_device *d = cs_device(q);

	d->now = now;
	d->tick = hw_tick_of(now, d->tick_us);
	return d;
}

/* --- insertion --- */

static u16 prio_of(const struct hw_task *task, u16 rq_ioprio)
{
	u16 p = rq_ioprio || !task ? rq_ioprio : task->ioprio;

	return HW_IOPRIO_CLASS(p) == HW_IOPRIO_NONE ? HW_IOPRIO(HW_IOPRIO_BE, CS_PRIO_DEFAULT) : p;
}

static struct cs_queue *async_queue(struct cs_device *d, u16 ioprio)
{
	switch (HW_IOPRIO_CLASS(ioprio)) {
	case HW_IOPRIO_RT:
		return &d->async_rt[HW_IOPRIO_LEVEL(ioprio)];
	case HW_IOPRIO_IDLE:
		return &d->async_idle;
	default:
		return &d->async_be[HW_IOPRIO_LEVEL(ioprio)];
	}
}

static void set_prio(struct cs_device *d, struct cs_queue *c, u16 ioprio)
{
	u8 class = (u8)HW_IOPRIO_CLASS(ioprio);
	u8 prio = class == HW_IOPRIO_IDLE ? CS_PRIO_LOWEST : (u8)HW_IOPRIO_LEVEL(ioprio);
	bool moved = class != c->class;

	if (!moved && prio == c->prio)
		return;
	if (class == HW_IOPRIO_IDLE)
		c->idle_window = false;
	c->class = class;
	c->prio = prio;
	cs_near_update(d, c);
	if (moved && c->queued)
		cs_tree_add(d, c, false);
}

static void cs_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct cs_device *d = enter(q, now);
	struct hw_sorted_request *s = hw_sorted(rq);
	u16 ioprio = prio_of(rq->task, rq->ioprio);
	struct cs_queue *c;

	/* Nobody else was there when it fired. */
	if (d->timer_on && d->timer_ns < now)
		cs_idle_timer_fires(d);
	cs_request(s)->queue = NULL;
	if (rq->flags & HW_RQ_AT_HEAD) {
		cs_put_first(d, s);
		return;
	}
	if (hw_is_sync(rq)) {
		c = cs_sync_queue(d, rq->task);
		set_prio(d, c, ioprio);
	} else {
		c = async_queue(d, ioprio);
	}
	cs_request(s)->queue = c;
	cs_queue_add(d, c, s);
	cs_learn(d, c, rq);
	cs_arrived(d, c, rq);
}

/* --- dispatch --- */

static struct hw_sorted_request *pick(struct cs_device *d)
{
	struct hw_sorted_request *s = hw_fifo_first(&d->first);

	if (s) {
		list_del_init(&s->fifo);
		hw_because(&d->q, HW_FIRST);
		return s;
	}
	if (!d->busy)
		return NULL;
	if (d->q.force) {
		cs_expire_slice(d, false, HW_WAIT_OTHER, HW_DRAIN);
		s = cs_tree_first(d)->next;
		cs_take(d, s);
		hw_because(&d->q, HW_DRAIN);
		return s;
	}
	return cs_next(d);
}

static struct hw_request *cs_dispatch(struct hw_queue *q, u64 now)
{
	struct cs_device *d = enter(q, now);
	struct hw_sorted_request *s;

	if (d->timer_on && d->timer_ns <= now)
		cs_idle_timer_fires(d);
	s = pick(d);
	if (s) {
		d->in_driver[hw_is_sync(&s->rq)]++;
		return &s->rq;
	}
	/* It is a wait only if the device could serve somebody else meanwhile. */
	if (d->timer_on && q->nr_queued) {
		if (!q->wait.active && !q->nr_in_flight)
			hw_wait_begin(q, d->active_task, now);
		q->wake_ns = d->timer_ns;
	}
	return NULL;
}

/* --- completion --- */

/* Does the device queue commands? Says so after enough completions under enough load. */
static void watch_tags(struct cs_device *d)
{
	u32 in_driver = d->in_driver[0] + d->in_driver[1];

	d->tag_peak = max(d->tag_peak, in_driver);
	if (d->q.nr_queued <= CS_TAG_QUEUE && in_driver <= CS_TAG_QUEUE)
		return;
	if (d->tag_samples++ < CS_TAG_SAMPLES)
		return;
	if (d->hw_tag == TAG_AUTO)
		d->has_tags = d->tag_peak >= CS_TAG_QUEUE;
	d->tag_samples = 0;
	d->tag_peak = 0;
}

static void cs_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct cs_device *d = enter(q, now);
	struct cs_queue *c = cs_request(hw_sorted(rq))->queue;
	bool sync = hw_is_sync(rq);

	watch_tags(d);
	d->in_driver[sync]--;
	if (!c)
		return;
	c->dispatched--;
	if (sync) {
		d->sync_flight--;
		d->last_end_sync = d->tick;
		if (rq->task)
			cs_task(rq->task)->last_end = d->tick;
	}
	if (c == d->active)
		cs_active_completed(d, c, sync);
	else
		cs_retire(d, c);
}

static void cs_requeue(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct cs_device *d = enter(q, now);

	d->in_driver[hw_is_sync(rq)]--;
	cs_put_first(d, hw_sorted(rq));
}

/*
 * Linux before blk-mq had one pool of requests for what somebody waits for and one for the rest.
 * Here they share one, of which the rest have half at most.
 */
static u32 cs_limit_depth(struct hw_queue *q, const struct hw_bio *bio)
{
	u32 all = q->dev.nr_requests;

	if (!all || bio->op == HW_READ || bio->flags & HW_RQ_SYNC)
		return U32_MAX;
	return max(all / 2, 1u);
}

static bool cs_has_work(const struct hw_queue *q)
{
	return q->nr_queued && !q->wait.active;
}

/* --- merging --- */

/*
 * A process merges with the requests of its own queue only; a synchronous range never joins an
 * asynchronous request.
 */
static struct cs_queue *queue_for(struct cs_device *d, const struct hw_bio *bio)
{
	if (!(bio->flags & HW_RQ_SYNC))
		return async_queue(d, prio_of(bio->task, bio->ioprio));
	return bio->task ? cs_task(bio->task)->sync : &d->nobody;
}

static struct hw_request *cs_find_merge(struct hw_queue *q, const struct hw_bio *bio,
					enum hw_merge *how)
{
	struct cs_queue *c = queue_for(cs_device(q), bio);

	*how = HW_FRONT_MERGE;
	return c ? hw_sorted_rq(hw_sorted_find(&c->sort, bio->sector + bio->sectors)) : NULL;
}

static bool cs_allow_merge(struct hw_queue *q, const struct hw_request *rq,
			   const struct hw_bio *bio)
{
	const struct hw_sorted_request *s = container_of(rq, const struct hw_sorted_request, rq);

	return container_of(s, const struct cs_request, s)->queue == queue_for(cs_device(q), bio);
}

static void cs_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now)
{
	struct cs_queue *c = cs_request(hw_sorted(rq))->queue;

	if (how != HW_FRONT_MERGE)
		return;
	hw_sorted_moved(&c->sort, hw_sorted(rq));
	cs_near_update(cs_device(q), c);
}

static void cs_merged_requests(struct hw_queue *q, struct hw_request *keep, struct hw_request *gone)
{
	struct hw_sorted_request *k = hw_sorted(keep), *g = hw_sorted(gone);
	struct cs_queue *c = cs_request(g)->queue;

	/* They may be of two queues, each with a list of its own: see hw_merge_requests(). */
	if (cs_request(k)->queue == c && !RB_EMPTY_NODE(&k->node))
		hw_fifo_inherit(k, g);
	cs_queue_del(cs_device(q), c, g);
}

/* --- set-up --- */

static int cs_init(struct hw_queue *q, u64 now)
{
	struct cs_device *d = enter(q, now);
	u8 i;

	INIT_LIST_HEAD(&d->first);
	INIT_LIST_HEAD(&d->spare);
	for (i = 0; i < CS_PRIOS; i++) {
		cs_queue_init(&d->async_rt[i], false, HW_IOPRIO_RT, i);
		cs_queue_init(&d->async_be[i], false, HW_IOPRIO_BE, i);
	}
	cs_queue_init(&d->async_idle, false, HW_IOPRIO_IDLE, CS_PRIO_LOWEST);
	cs_queue_init(&d->nobody, true, HW_IOPRIO_BE, CS_PRIO_DEFAULT);
	d->last_end_sync = d->tick;
	d->has_tags = q->dev.depth > 1;
	d->because = HW_TURN; /* nobody was before */
	return 0;
}

static void cs_tuned(struct hw_queue *q)
{
	struct cs_device *d = cs_device(q);

	d->slice[false] = max_t(u64, hw_ms_ticks(d->slice_async, d->tick_us), 1);
	d->slice[true] = max_t(u64, hw_ms_ticks(d->slice_sync, d->tick_us), 1);
	d->expire[false] = hw_ms_ticks(d->fifo_expire_async, d->tick_us);
	d->expire[true] = hw_ms_ticks(d->fifo_expire_sync, d->tick_us);
	d->idle = d->slice_idle ? max_t(u64, hw_ms_ticks(d->slice_idle, d->tick_us), 1) : 0;
	if (!hw_may_wait(&d->q, d->wait_nonrot))
		d->idle = 0;
	d->idle_seeky = max_t(u64, hw_ms_ticks(CS_SEEKY_IDLE_MS, d->tick_us), 1);
	d->front = hw_ms_ticks(CS_FRONT_MS, d->tick_us);
	d->idle_class_delay = hw_ms_ticks(CS_IDLE_CLASS_MS, d->tick_us);
	d->coop_timeout = hw_ms_ticks(CS_COOP_TIMEOUT_MS, d->tick_us);
	d->reach.back_max = (u64)d->back_seek_max * 2;
	d->reach.back_penalty = (u64)d->back_seek_penalty;
	if (d->hw_tag != TAG_AUTO)
		d->has_tags = d->hw_tag == TAG_ON;
}

static void cs_task_init(struct hw_queue *q, struct hw_task *task, u64 now)
{
	struct cs_device *d = enter(q, now);

	cs_task(task)->last_end = d->tick;
	cs_task_add(d, cs_task(task));
}

static void cs_task_exit(struct hw_queue *q, struct hw_task *task, u64 now)
{
	struct cs_device *d = enter(q, now);

	if (d->active && d->active == cs_task(task)->sync)
		cs_expire_slice(d, false, HW_WAIT_OTHER, HW_QUEUE_EMPTY);
	cs_task_del(d, cs_task(task));
}

static s64 stat_hw_tag(const struct hw_queue *q)
{
	return cs_device(q)->has_tags;
}
static s64 stat_merges(const struct hw_queue *q)
{
	return (s64)cs_device(q)->merges;
}
static s64 stat_splits(const struct hw_queue *q)
{
	return (s64)cs_device(q)->splits;
}

static const struct hw_stat cfq_slice_stats[] = {
	{ "hw_tag", "", "1 if the device is assumed to queue commands", stat_hw_tag },
	{ "queue_merges", "processes", "processes redirected to the queue of a cooperator",
	  stat_merges },
	{ "queue_splits", "processes", "processes that left a shared queue again", stat_splits },
};

const struct hw_policy hw_cfq_slice = {
	.name = "cfq-slice",
	.summary =
		"a slice of disk time for each process, with short waits for its requests inside the slice",
	.source = "Linux 2.6.32 cfq-iosched; Axboe, time sliced CFQ (2004)",
	.flags = HW_POLICY_HASH | HW_POLICY_UNTHROTTLED,
	.queue_size = sizeof(struct cs_device),
	.task_size = sizeof(struct cs_task),
	.request_size = sizeof(struct cs_request),
	.tunables = cfq_slice_tunables,
	.nr_tunables = ARRAY_SIZE(cfq_slice_tunables),
	.stats = cfq_slice_stats,
	.nr_stats = ARRAY_SIZE(cfq_slice_stats),
	.presets = cfq_slice_presets,
	.nr_presets = ARRAY_SIZE(cfq_slice_presets),
	.init = cs_init,
	.tuned = cs_tuned,
	.insert = cs_insert,
	.dispatch = cs_dispatch,
	.complete = cs_complete,
	.requeue = cs_requeue,
	.has_work = cs_has_work,
	.find_merge = cs_find_merge,
	.allow_merge = cs_allow_merge,
	.merged = cs_merged,
	.merged_requests = cs_merged_requests,
	.former = hw_sorted_former,
	.latter = hw_sorted_latter,
	.limit_depth = cs_limit_depth,
	.task_init = cs_task_init,
	.task_exit = cs_task_exit,
};
