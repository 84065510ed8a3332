// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The framework of anticipatory scheduling: as-seek and as-share are policies within it.
 *
 * Source: Iyer & Druschel, SOSP 2001 (from the slides, the abstracts and lecture notes; the paper's
 * text was not at hand, so that details are decisions of ours).
 *
 * Decides, whenever the device is free and something is queued:
 *  1. A work-conserving policy names its candidate, the request that it would serve now.
 *  2. If the candidate belongs to the process served last, or that process has a request queued, or
 *     cannot be waited for (habits unknown or bad), the candidate is served.
 *  3. Else the policy's heuristic weighs it against the request that this process is about to make.
 *     Either the candidate is served, or the device is held idle until the process's 95-percentile
 *     think time after its last completion. Every arrival in between is a new decision, on what
 *     time then remains.
 *
 * Statistics, by process: think times in a decayed frequency table (times of waiting are read off
 * as percentiles), and the expected positioning time, a decayed mean. A positioning time is
 * estimated from the distance alone, through a table that was measured beforehand; and from the end
 * of the process's own last request, for there the head will be if it is waited for. A process of
 * which nothing is known yet is waited for on trial, once: its next request is its first sample.
 *
 * Invariants:
 *  1. A wait follows the completion of a synchronous request, with nothing in the device and
 *     something queued.
 *  2. Waits after one completion end, all together, at the 95-percentile think time of the process
 *     at the latest.
 *  3. With in_device = 1 a decision is made at every completion, as in the published prototype.
 */
#include "core/lib/position.h"
#include "core/policy/id/internal.h"

#define ID_TRIAL_NS (3 * HW_NSEC_PER_MSEC) /* how long a new process is waited for */

static struct id_task *id_task(struct hw_task *task)
{
	return container_of(task, struct id_task, task);
}

static struct id_task *task_of(struct id_device *d, struct hw_task *task)
{
	return task ? id_task(task) : &d->nobody;
}

/* --- positioning --- */

u64 id_positioning(const struct id_device *d, u64 from, u64 sector)
{
	return hw_positioning(&d->q.dev, hw_apart(sector, from));
}

struct hw_sorted_request *id_nearest(const struct id_device *d, const struct hw_sorted *t)
{
	struct hw_sorted_request *above = hw_sorted_at_or_after(t, d->head), *below, *lower;
	struct rb_node *n = t->root.rb_node;
	u64 effort;

	below = above ? hw_sorted_prev(above) : hw_sorted_entry(rb_last(&t->root));
	if (!below)
		return above;
	effort = id_positioning(d, d->head, below->rq.sector);
	if (above && id_positioning(d, d->head, above->rq.sector) < effort)
		return above;
	/*
	 * The lowest that is as near: the further below the head, the longer it takes. Mostly there
	 * is no other.
	 */
	lower = hw_sorted_prev(below);
	if (!lower || id_positioning(d, d->head, lower->rq.sector) > effort)
		return below;
	while (n) {
		struct hw_sorted_request *s = hw_sorted_entry(n);
		bool far = s->rq.sector < d->head &&
			   id_positioning(d, d->head, s->rq.sector) > effort;

		if (!far && s->rq.sector < d->head)
			below = s;
		n = far ? n->rb_right : n->rb_left;
	}
	return below;
}

/* --- habits --- */

void id_learn_think(const struct id_device *d, struct id_task *t, u64 think_ns)
{
	u64 i = div64_u64(think_ns, (u64)d->bucket * HW_NSEC_PER_USEC);
	u32 k;

	for (k = 0; k <= d->buckets; k++)
		t->think[k] = (u32)div_u64((u64)t->think[k] * (u64)d->decay, 1000);
	t->think[min_t(u64, i, (u64)d->buckets)] += ID_ONE;
	t->thought = true;
}

u64 id_think_percentile(const struct id_device *d, const struct id_task *t, u32 percentile)
{
	u64 total = 0, sum = 0;
	u32 k;

	if (!t->thought)
		return percentile == (u32)d->pct_wait ? ID_TRIAL_NS : 0;
	for (k = 0; k <= d->buckets; k++)
		total += t->think[k];
	for (k = 0; k < d->buckets; k++) {
		sum += t->think[k];
		if (sum * 100 >= total * percentile)
			return (u64)(k + 1) * (u64)d->bucket * HW_NSEC_PER_USEC;
	}
	return HW_NEVER;
}

void id_learn_positioning(const struct id_device *d, struct id_task *t, u64 positioning_ns)
{
	if (!t->positioned)
		t->positioning_ns = positioning_ns;
	t->positioning_ns = div_u64(t->positioning_ns * (u64)(10000 - d->pos_alpha) +
					    positioning_ns * (u64)d->pos_alpha,
				    10000);
	t->positioned = true;
}

static void learn_arrival(struct id_device *d, struct id_task *t, struct id_request *r, u64 now)
{
	struct hw_request *rq = &r->s.rq;

	if (t->outstanding)
		id_learn_think(d, t, 0);
	else if (t->completed)
		id_learn_think(d, t, now - t->completed_ns);
	r->has_positioning = t->placed;
	if (t->placed) {
		r->positioning_ns = id_positioning(d, t->last_end, rq->sector);
		t->backward = (u32)div_u64((u64)t->backward * (u64)d->decay, 1000);
		if (rq->sector < t->last_end)
			t->backward += ID_ONE / 1000 * (u32)(1000 - d->decay);
	}
	t->placed = true;
	t->last_end = hw_end(rq);
}

/* --- waiting --- */

static void set_last(struct id_device *d, struct id_task *t)
{
	struct id_task *old = d->last;

	if (t)
		hw_task_get(&t->task);
	d->last = t;
	if (old)
		hw_task_put(&d->q, &old->task);
}

bool id_benefit_exceeds_cost(const struct id_device *d, s64 effort_ns, u64 now)
{
	const struct id_task *t = d->last;
	u64 median = id_think_percentile(d, t, (u32)d->pct_cost), elapsed = now - d->done_ns;
	s64 benefit = effort_ns - (s64)(t->thought ? t->positioning_ns : 0);
	s64 cost = median > elapsed ? (s64)min_t(u64, median - elapsed, S64_MAX) : 0;

	return benefit > cost;
}

/* Until when to hold the device for d->last rather than serve @c; @now: not at all. */
static u64 hold_until(struct id_device *d, struct hw_sorted_request *c, u64 now)
{
	struct id_task *t = d->last;
	u64 wait;

	if (!id_anticipates(d) || d->q.force || d->q.nr_in_flight)
		return now;
	if (!t || id_request(c)->owner == t || t->queued)
		return now;
	wait = id_think_percentile(d, t, (u32)d->pct_wait);
	if (wait > (u64)d->max_wait * HW_NSEC_PER_MSEC || d->done_ns + wait <= now)
		return now;
	if (!d->rules->worth_waiting(d, c, now))
		return now;
	return d->done_ns + wait;
}

static u64 timer_at(const struct id_device *d, u64 ns)
{
	u64 step = (u64)d->timer_resolution * HW_NSEC_PER_USEC;

	return step ? div64_u64(ns + step - 1, step) * step : ns;
}

static void end_wait(struct id_device *d, u64 now)
{
	hw_wait_end(&d->q, now >= d->deadline_ns ? HW_WAIT_FAIL : HW_WAIT_OTHER, now);
}

/* --- queues --- */

static void busy_update(struct id_device *d, struct id_task *t)
{
	bool busy = t->queued + t->in_flight;

	if (busy == t->busy)
		return;
	t->busy = busy;
	if (d->rules->busy)
		d->rules->busy(d, t);
}

static void leave(struct id_device *d, struct hw_sorted_request *s)
{
	struct id_task *t = id_request(s)->owner;

	d->rules->del(d, t, s);
	list_del_init(&s->fifo);
	t->queued--;
}

/*
 * How much more positioning costs than it would have, had the head stayed where it last served this
 * process.
 */
static u64 detour(const struct id_device *d, const struct id_task *t, u64 sector)
{
	u64 here = id_positioning(d, d->head, sector),
	    there = id_positioning(d, t->served_end, sector);

	return t->served && here > there ? here - there : 0;
}

static void put_first(struct id_device *d, struct hw_sorted_request *s, u64 now)
{
	list_add(&s->fifo, &d->first);
	hw_wait_end(&d->q, HW_WAIT_OTHER, now);
}

void id_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct id_device *d = id_device(q);
	struct hw_sorted_request *s = hw_sorted(rq);
	struct id_task *t = task_of(d, rq->task);

	id_request(s)->owner = t;
	id_request(s)->has_positioning = false;
	id_request(s)->detour_ns = 0;
	if (hw_is_sync(rq)) {
		learn_arrival(d, t, id_request(s), now);
		t->outstanding++;
	}
	if (rq->flags & HW_RQ_AT_HEAD) {
		t->in_flight++;
		busy_update(d, t);
		put_first(d, s, now);
		return;
	}
	hw_fifo_add(&d->fifo, s, now);
	d->rules->add(d, t, s);
	t->queued++;
	busy_update(d, t);
	if (t == d->last && hw_is_sync(rq))
		hw_wait_end(q, HW_WAIT_SUCCESS, now);
}

struct hw_request *id_dispatch(struct hw_queue *q, u64 now)
{
	struct id_device *d = id_device(q);
	struct hw_sorted_request *s = hw_fifo_first(&d->first);
	struct id_task *t;
	u64 until;

	if (s) {
		list_del_init(&s->fifo);
		d->head = hw_end(&s->rq);
		hw_because(q, HW_FIRST);
		return &s->rq;
	}
	if (list_empty(&d->fifo) || (q->nr_in_flight >= d->in_device && !q->force))
		return NULL;
	s = d->rules->candidate(d, now);
	until = hold_until(d, s, now);
	if (until > now) {
		if (!q->wait.active)
			hw_wait_begin(q, &d->last->task, now);
		d->deadline_ns = until;
		q->wake_ns = timer_at(d, until);
		return NULL;
	}
	end_wait(d, now);
	leave(d, s);
	t = id_request(s)->owner;
	hw_because_wait(q, t == d->last, d->rules->because);
	t->in_flight++;
	id_request(s)->detour_ns = detour(d, t, s->rq.sector);
	t->served = true;
	t->served_end = d->head = hw_end(&s->rq);
	return &s->rq;
}

void id_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct id_device *d = id_device(q);
	struct id_request *r = id_request(hw_sorted(rq));
	struct id_task *t = r->owner;

	t->in_flight--;
	busy_update(d, t);
	d->done_ns = now;
	if (!hw_is_sync(rq)) {
		set_last(d, NULL);
		return;
	}
	t->outstanding--;
	t->completed = true;
	t->completed_ns = now;
	if (r->has_positioning)
		id_learn_positioning(d, t, r->positioning_ns);
	set_last(d, rq->task && !rq->task->exited ? t : NULL);
}

void id_requeue(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	put_first(id_device(q), hw_sorted(rq), now);
}

bool id_has_work(const struct hw_queue *q)
{
	return q->nr_queued && !q->wait.active;
}

/* --- merging: within a process, since habits are a process's --- */

struct hw_request *id_find_merge(struct hw_queue *q, const struct hw_bio *bio, enum hw_merge *how)
{
	struct id_device *d = id_device(q);
	const struct hw_sorted *t = d->rules->tree(d, task_of(d, bio->task));

	*how = HW_FRONT_MERGE;
	return hw_sorted_rq(hw_sorted_find(t, bio->sector + bio->sectors));
}

bool id_allow_merge(struct hw_queue *q, const struct hw_request *rq, const struct hw_bio *bio)
{
	return rq->task == bio->task && !((rq->flags ^ bio->flags) & HW_RQ_SYNC);
}

void id_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now)
{
	struct id_device *d = id_device(q);
	struct id_task *t = id_request(hw_sorted(rq))->owner;

	if (how != HW_FRONT_MERGE)
		return;
	d->rules->del(d, t, hw_sorted(rq));
	d->rules->add(d, t, hw_sorted(rq));
}

void id_merged_requests(struct hw_queue *q, struct hw_request *keep, struct hw_request *gone)
{
	struct id_device *d = id_device(q);
	struct hw_sorted_request *g = hw_sorted(gone);
	struct id_task *t = id_request(g)->owner;

	hw_fifo_inherit(hw_sorted(keep), g);
	if (d->rules->aged)
		d->rules->aged(hw_sorted(keep));
	leave(d, g);
	busy_update(d, t); /* the request that stays may be another's */
	if (hw_is_sync(gone))
		t->outstanding--;
}

/* --- set-up --- */

int id_init(struct hw_queue *q, const struct id_rules *rules)
{
	struct id_device *d = id_device(q);

	d->rules = rules;
	INIT_LIST_HEAD(&d->fifo);
	INIT_LIST_HEAD(&d->first);
	return 0;
}

void id_task_exit(struct hw_queue *q, struct hw_task *task, u64 now)
{
	struct id_device *d = id_device(q);

	if (d->last != id_task(task))
		return;
	hw_wait_end(q, HW_WAIT_OTHER, now);
	set_last(d, NULL);
}
