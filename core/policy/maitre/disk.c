// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre where a head moves: requests queue with an entity (a flow, a pool, write-back), and one
 * entity at a time has the disk (flow.c). When it has nothing the disk may be held for it (hold.c),
 * and which of its requests is next is a matter of place (pool.c).
 */
#include "core/policy/maitre/internal.h"

#define LITTLE	      8u  /* times less for its data than for the way: a record of a log */
#define SETTLE_EVERY  16u /* requests of a flow that never runs dry */
#define GATHER_MOST   16u /* flows that join another when its turn begins */
#define REQUESTS_MOST (1u << 30)

/* --- insertion --- */

/* Somebody may have been served since. */
static void disk_charge(struct mt_device *d)
{
	if (!mt_empty(d) || d->q.wait.active)
		mt_charge(d);
}

static u32 weight_of(const struct hw_task *task, u16 ioprio)
{
	if (task && task->share)
		return task->share * MT_WEIGHT;
	return HW_IOPRIO_CLASS(ioprio) == HW_IOPRIO_NONE ? MT_WEIGHT :
							   (8 - HW_IOPRIO_LEVEL(ioprio)) * 25;
}

static void count_stream(struct mt_device *d, struct mt_flow *f, bool streams)
{
	d->streams += streams - f->counted;
	f->counted = streams;
}

static void flow_arrives(struct mt_device *d, struct mt_flow *f, const struct mt_request *r)
{
	const struct hw_request *rq = &r->s.rq;
	u16 ioprio = mt_prio_of(rq->task, rq->ioprio);

	if (f->requests)
		mt_place_seen(d, &f->e, mt_onward(d, f->placed_end, rq->sector), r->onward,
			      f->requests == 1);
	mt_span_seen(f, rq);
	f->placed_end = hw_end(rq);
	f->e.commits = rq->op != HW_READ;
	/* Who writes on at once is no log, and needs turns as a stream does. */
	f->e.logs = f->e.commits && r->onward && !mt_at_once(&f->e.habit) &&
		    mt_stream_ns(d, rq->sectors) * LITTLE <= d->mean_ns;
	if (f->e.thinking)
		mt_learn(&f->e.habit, d->now - f->e.emptied_ns);
	f->e.thinking = false;
	if (!mt_active(f)) {
		f->e.class = mt_class_of(ioprio);
		f->e.weight = weight_of(f->task, ioprio);
		d->flows++;
		f->e.in->flows++;
	}
	count_stream(d, f, mt_sequential(d, &f->e));
	f->slept = !mt_active(f) && d->now - f->e.emptied_ns > MT_SLEPT_NS;
	if (!f->requests && f->task)
		mt_inherit(d, f, rq->sector);
	if (!mt_active(f)) {
		f->heaps = f->heap > 1;
		f->heap = 0;
		f->row = 0;
		f->most = 0;
	}
	f->row = min(f->row + 1, REQUESTS_MOST);
	f->heap = max(f->heap, f->queued + 1);
	f->most = max(f->most, f->queued + f->flying + 1);
	f->requests = min(f->requests + 1, REQUESTS_MOST);
	if (!f->queued || f->requests % SETTLE_EVERY == 0)
		mt_settle(d, f);
}

/*
 * Write-back of metadata is waited for as well: while a block of the file system is on its way to
 * the disk, whoever has to change it waits inside a transaction, and every commit for him. It is
 * little, and scattered; so it is in the pool, as nobody's.
 */
static bool waited_for(u8 flags)
{
	return flags & (HW_RQ_SYNC | HW_RQ_META);
}

/*
 * Whose request it is. A task is in one group at a time: what it asks for on another's account while
 * it has requests (a kernel's thread does so, which writes for many) is nobody's there.
 */
static struct mt_flow *flow_of(struct mt_device *d, struct hw_task *task, struct mt_group *g,
			       u8 flags)
{
	struct mt_flow *f;

	if (!task || !(flags & HW_RQ_SYNC))
		return &g->nobody;
	f = &mt_task(task)->flow;
	return f->e.in == g || !mt_active(f) ? f : &g->nobody;
}

static void disk_insert(struct mt_device *d, struct mt_request *r)
{
	struct hw_request *rq = &r->s.rq;
	struct mt_group *g = mt_group_of(d, rq->group);
	struct mt_flow *f;

	/* Where flushes are, whose time that of a lone request is shows when it is done: mt_issued(). */
	if (d->q.nr_in_flight != 1 || !d->wrote)
		disk_charge(d);
	mt_idles(d);
	INIT_LIST_HEAD(&r->mine);
	r->onward = false;
	r->s.expires = rq->insert_ns;
	if (!waited_for(rq->flags)) {
		mt_enqueue(d, &g->async[mt_class_of(mt_prio_of(rq->task, rq->ioprio))], r);
		return;
	}
	f = flow_of(d, rq->task, g, rq->flags);
	if (rq->op != HW_READ) {
		mt_log_wrote(d, f);
		mt_sync_asked(d, rq);
	}
	r->flow = f;
	if (unlikely(f->e.in != g))
		mt_join(d, f, g);
	r->onward = f->requests && mt_ahead(f->placed_end, rq->sector);
	flow_arrives(d, f, r);
	if (f->home->kind != MT_FLOW && f->home->thinking) {
		mt_learn(&f->home->habit, d->now - f->home->emptied_ns);
		f->home->thinking = false;
	}
	f->queued++;
	list_add_tail(&r->mine, &f->queue);
	mt_company_seen(f);
	mt_lend(f, true);
	mt_enqueue(d, f->home, r);
}

/* --- dispatch --- */

static bool hold(struct mt_device *d, struct mt_entity *c, const struct mt_entity *e)
{
	u64 until = d->hold_until;

	/* Decided once, unless another has come to the front of those that wait. */
	if (d->hold_since != c->emptied_ns || d->hold_from != e) {
		d->hold_since = c->emptied_ns;
		d->hold_from = e;
		until = d->hold_until = mt_hold_until(d, c, e);
	}
	if (until <= d->now)
		return false;
	d->q.wake_ns = until;
	if (!d->q.wait.active && mt_empty(d)) {
		hw_wait_begin(&d->q, c->kind == MT_FLOW ? mt_flow_of(c)->task : NULL, d->now);
		d->since_ns = d->now;
		d->held = c;
	}
	return true;
}

/* @c has the disk no longer. Its requests may go beside the others'. */
static void turn_over(struct mt_device *d, struct mt_entity *c)
{
	if (c->kind == MT_FLOW && mt_flow_of(c)->home == c && mt_beside(d, mt_flow_of(c)))
		mt_settle(d, mt_flow_of(c));
}

/* A turn begins: those who are next, and at its place, have it together. */
static void gather(struct mt_device *d)
{
	struct mt_entity *e;
	u32 i;

	for (i = 0; i < GATHER_MOST; i++) {
		e = mt_least(d->serving->in);
		if (!e || e->kind != MT_FLOW || !mt_meets(d, mt_flow_of(e)))
			return;
		mt_settle(d, mt_flow_of(e));
		if (mt_flow_of(e)->home == e)
			return;
	}
}

/* Who is to be served now, or NULL: nobody yet. */
static struct mt_entity *choose(struct mt_device *d)
{
	struct mt_entity *c = d->serving, *e = c && !d->q.force ? mt_winner(d) : NULL;
	enum hw_wait_outcome outcome = HW_WAIT_SUCCESS;

	if (!c || d->q.force) {
		if (c && c->queued)
			return c;
		e = c ? mt_other(d) : mt_first(d);
		d->because = HW_TURN;
	} else if (e) {
		d->because = HW_PREEMPTED;
		outcome = HW_WAIT_OTHER;
	} else if (c->queued) {
		e = c;
	} else {
		e = mt_other(d);
		if (!e || (c->flying && c->kind != MT_ASYNC))
			return NULL;
		if (c->kind != MT_ASYNC && hold(d, c, e))
			return NULL;
		d->because = HW_QUEUE_EMPTY;
		outcome = HW_WAIT_FAIL;
	}
	if (!e || (c && e != c && !d->q.force && mt_drains(d, e)))
		return NULL;
	hw_wait_end(&d->q, outcome, d->now);
	mt_serve(d, e);
	if (c && c != e)
		turn_over(d, c);
	if (c != e)
		gather(d);
	return d->serving;
}

/* Who goes on by @r, a flow's: itself, or those whom it keeps company. */
static struct mt_entity *going(const struct mt_request *r)
{
	return r->home && r->home->kind == MT_COMPANY ? r->home : &r->flow->e;
}

static struct hw_request *sent(struct mt_device *d, struct mt_request *r)
{
	struct hw_request *rq = &r->s.rq;
	const struct mt_entity *who;

	r->alone = mt_empty(d);
	r->distance = hw_apart(rq->sector, d->head);
	r->after_write = d->wrote_last && rq->op == HW_READ;
	d->wrote_last = r->flow && rq->op != HW_READ;
	d->head = hw_end(rq);
	who = r->flow ? going(r) : NULL;
	r->enters = who && d->last != who;
	d->last = who;
	return rq;
}

static void take(struct mt_device *d, struct mt_request *r)
{
	struct mt_entity *home = r->home;
	struct hw_request *rq = &r->s.rq;

	if (&r->s == hw_fifo_first(&home->fifo))
		home->aged_ns = d->now;
	mt_dequeue(d, r);
	home->flying++;
	if (r->flow)
		r->flow->flying++;
	if (home->kind == MT_ASYNC) {
		d->async_sectors += rq->sectors;
		mt_average(&d->async_mean, rq->sectors, !d->async_mean);
		d->async_owed += mt_stream_ns(d, rq->sectors);
	}
	INIT_LIST_HEAD(&r->fly);
	if (mt_scatters(home) || home == &d->beside) {
		list_add_tail(&r->fly, &d->flying);
		if (home->kind == MT_POOL)
			mt_average(&home->near, mt_position(d, hw_apart(rq->sector, home->end)),
				   false);
	}
	home->end = hw_end(rq);
}

/* @r goes beside others. It does not tell where the head is, nor for whom the device works. */
static struct hw_request *beside(struct mt_device *d, struct mt_request *r)
{
	hw_wait_end(&d->q, HW_WAIT_OTHER, d->now);
	hw_because(&d->q, HW_INJECTED);
	take(d, r);
	return &r->s.rq;
}

static struct hw_request *disk_dispatch(struct mt_device *d)
{
	struct hw_queue *q = &d->q;
	struct mt_request *r;
	struct mt_entity *e;

	disk_charge(d);
	mt_asks(d);
	d->since_ns = d->now;
	r = mt_pop_first(d);
	if (r)
		return sent(d, r);
	r = mt_beside_next(d);
	if (r && !mt_empty(d))
		return beside(d, r);
	e = choose(d);
	if (!e && r && mt_beside_may(d))
		return beside(d, r);
	if (!e || (e->kind == MT_ASYNC && !mt_async_may(d, e)))
		return NULL;
	if (mt_stuck(d, e))
		return NULL;
	hw_because_wait(q, e == d->held, q->force ? HW_DRAIN : d->because);
	d->because = HW_SLICE;
	r = mt_request(mt_next(d, e));
	take(d, r);
	return sent(d, r);
}

/* --- completion --- */

/* @f has a request less, queued or in the device. */
static void flow_less(struct mt_device *d, struct mt_flow *f)
{
	if (mt_active(f))
		return;
	d->flows--;
	f->e.in->flows--;
	count_stream(d, f, false);
	mt_apart(f, false);
	mt_lend(f, false);
}

static void emptied(struct mt_device *d, struct mt_entity *e)
{
	e->thinking = true;
	e->emptied_ns = d->now;
}

/* @r is in the device no longer. */
static void landed(struct mt_device *d, struct mt_request *r)
{
	r->home->flying--;
	list_del_init(&r->fly);
	if (r->home->kind == MT_ASYNC)
		d->async_sectors -= r->s.rq.sectors;
	if (r->flow)
		r->flow->flying--;
}

/*
 * @r is done, and had the device to itself: what it took beyond its data tells what it costs to change
 * to its flow; and of the way, if it was a read.
 */
static void learn(struct mt_device *d, const struct mt_request *r)
{
	u64 took = d->now - r->s.rq.dispatch_ns;
	u64 ns = took - min(took, mt_stream_ns(d, r->s.rq.sectors));

	if (!d->q.dev.positions.nr && r->s.rq.op == HW_READ)
		mt_position_learn(d, r, ns);
	if (r->enters)
		mt_entered(d, going(r), ns);
}

/* @r of a flow is in the device no longer, and done. */
static void flow_done(struct mt_device *d, struct mt_request *r)
{
	struct mt_flow *f = r->flow;

	if (r->home->kind == MT_COMPANY)
		mt_company_learn(d, r);
	if (f->task)
		mt_beside_learn(d, r);
	if (!mt_active(f))
		emptied(d, &f->e);
	flow_less(d, f);
	mt_retire(d, f);
}

static void disk_complete(struct mt_device *d, struct mt_request *r)
{
	struct hw_queue *q = &d->q;
	struct hw_request *rq = &r->s.rq;
	struct mt_entity *home = r->home;
	struct mt_flow *f = r->flow;

	if (home == &d->beside) {
		landed(d, r);
		disk_charge(d);
		flow_done(d, r);
		return;
	}
	if (home) {
		mt_issued(d, r);
		mt_read_late(d, r);
	}
	mt_charge(d);
	if (!home)
		return;
	if (mt_was_alone(d, r))
		learn(d, r);
	if (f && rq->op != HW_READ) {
		mt_wrote(d, r);
		mt_sync_wrote(d, r);
	}
	d->landed_ns = d->now;
	landed(d, r);
	if (rq->op == HW_READ && mt_tells_rate(d, home))
		d->rate_sectors += rq->sectors;
	if (home->kind != MT_FLOW && !home->queued && !home->flying)
		emptied(d, home);
	if (q->nr_queued)
		mt_idles(d);
	if (f)
		flow_done(d, r);
}

static void disk_requeue(struct mt_device *d, struct mt_request *r)
{
	landed(d, r);
	if (!r->flow)
		return;
	flow_less(d, r->flow);
	mt_retire(d, r->flow);
}

static void disk_task_exit(struct mt_device *d, struct mt_flow *f)
{
	disk_charge(d);
	mt_retire(d, f);
}

/* @f's task has gone, and with it whoever comes in its place may be found. */
static void disk_gone(struct mt_device *d, struct mt_flow *f)
{
	if (d->wrote == f)
		d->wrote = NULL;
	if (d->log == f)
		d->log = NULL;
	if (f->requests)
		mt_bury(d, f);
	else if (d->serving == &f->e)
		mt_serve(d, NULL);
}

/* --- merging --- */

static struct hw_request *disk_find_merge(struct mt_device *d, const struct hw_bio *bio,
					  enum hw_merge *how)
{
	u16 ioprio = mt_prio_of(bio->task, bio->ioprio);
	struct mt_group *g = mt_group_of(d, bio->group);
	struct mt_entity *home = waited_for(bio->flags) ?
					 flow_of(d, bio->task, g, bio->flags)->home :
					 &g->async[mt_class_of(ioprio)];

	*how = HW_FRONT_MERGE;
	return hw_sorted_rq(hw_sorted_find(&home->sort, bio->sector + bio->sectors));
}

static void disk_merged(struct mt_device *d, struct mt_request *r, enum hw_merge how)
{
	if (how == HW_FRONT_MERGE)
		hw_sorted_moved(&r->home->sort, &r->s);
	else if (r->flow)
		r->flow->placed_end = max(r->flow->placed_end, hw_end(&r->s.rq));
}

static void disk_forget(struct mt_device *d, struct mt_request *keep, struct mt_request *gone)
{
	if (keep->home == gone->home)
		hw_fifo_inherit(&keep->s, &gone->s);
	mt_dequeue(d, gone);
	if (!gone->flow)
		return;
	flow_less(d, gone->flow);
	mt_retire(d, gone->flow);
}

const struct mt_operations mt_disk = {
	.insert = disk_insert,
	.dispatch = disk_dispatch,
	.complete = disk_complete,
	.requeue = disk_requeue,
	.forget = disk_forget,
	.task_exit = disk_task_exit,
	.gone = disk_gone,
	.find_merge = disk_find_merge,
	.merged = disk_merged,
	.former = hw_sorted_former,
	.latter = hw_sorted_latter,
};
