// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: one policy for every drive.
 */
#include "core/policy/maitre/internal.h"
#include "core/policy/policies.h"

#define SETTLE_EVERY  16u /* requests of a flow that never runs dry */
#define REQUESTS_MOST (1u << 30)

static const struct hw_tunable maitre_tunables[] = {
	HW_TUNE(struct mt_device, granularity, 48, 1, 500, "permille",
		"part of a disk's time that may go into changing turns: less makes turns, and the longest waits, longer"),
	HW_TUNE(struct mt_device, window, 300, 0, 60000, "ms",
		"how far behind the others in service a flow that begins again may be"),
};

static struct mt_task *mt_task(struct hw_task *task)
{
	return container_of(task, struct mt_task, task);
}

/* --- insertion --- */

static u32 weight_of(const struct hw_task *task, u16 ioprio)
{
	if (task && task->share)
		return task->share * MT_WEIGHT;
	return HW_IOPRIO_CLASS(ioprio) == HW_IOPRIO_NONE ? MT_WEIGHT :
							   (8 - HW_IOPRIO_LEVEL(ioprio)) * 25;
}

/* What the flow lends the pool: its weight, while it has requests there. */
static void lend(struct mt_device *d, struct mt_flow *f, bool active)
{
	u32 weight = active && f->home != &f->e ? f->e.weight : 0;

	f->e.in->pool[f->e.class].weight += weight - f->lent;
	f->lent = weight;
}

static bool active(const struct mt_flow *f)
{
	return f->queued || f->flying;
}

static void put_first(struct mt_device *d, struct mt_request *r)
{
	r->home = NULL;
	RB_CLEAR_NODE(&r->s.node);
	hw_forbid_merge(&d->q, &r->s.rq);
	list_add(&r->s.fifo, &d->first);
}

static void flow_arrives(struct mt_device *d, struct mt_flow *f, const struct hw_request *rq)
{
	u16 ioprio = mt_prio_of(rq->task, rq->ioprio);

	if (f->requests)
		mt_place_seen(&f->e, mt_position(d, hw_apart(rq->sector, f->placed_end)),
			      f->requests == 1);
	f->placed_end = hw_end(rq);
	f->e.commits = rq->op != HW_READ;
	if (f->e.thinking)
		mt_learn(&f->e.habit, d->now - f->e.emptied_ns);
	f->e.thinking = false;
	if (!active(f)) {
		f->e.class = mt_class_of(ioprio);
		f->e.weight = weight_of(f->task, ioprio);
		d->flows++;
		f->e.in->flows++;
	}
	if (!f->requests && f->task)
		mt_inherit(d, f, rq->sector);
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

static struct mt_group *group_of(struct mt_device *d, struct hw_group *group)
{
	return group ? container_of(group, struct mt_group, group) : &d->root;
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
	return f->e.in == g || !active(f) ? f : &g->nobody;
}

/* The task has been moved, or works for somebody else: it has had nothing there yet. */
static void join(struct mt_device *d, struct mt_flow *f, struct mt_group *g)
{
	struct mt_group *old = f->e.in;

	if (d->serving == &f->e) {
		hw_wait_end(&d->q, HW_WAIT_OTHER, d->now);
		mt_serve(d, NULL);
	}
	if (old->starter == &f->e)
		old->starter = NULL;
	f->e.in = g;
	f->e.v = 0;
	if (f->home != &f->e)
		f->home = &g->pool[f->e.class];
	if (g != &d->root)
		hw_group_get(&g->group);
	if (old != &d->root)
		hw_group_put(&d->q, &old->group);
}

static void mt_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct mt_device *d = mt_device(q);
	struct mt_request *r = mt_request(hw_sorted(rq));
	struct mt_group *g = group_of(d, rq->group);
	struct mt_flow *f;

	d->now = now;
	r->flow = NULL;
	if (rq->flags & HW_RQ_AT_HEAD) {
		put_first(d, r);
		return;
	}
	if (!q->dev.rotational) {
		if (hw_is_sync(rq))
			r->flow = flow_of(d, rq->task, &d->root, rq->flags);
		mt_flash_insert(d, r);
		return;
	}
	if (q->nr_in_flight || q->wait.active)
		mt_charge(d);
	INIT_LIST_HEAD(&r->mine);
	if (!waited_for(rq->flags)) {
		mt_enqueue(d, &g->async[mt_class_of(mt_prio_of(rq->task, rq->ioprio))], r);
		return;
	}
	if (rq->op != HW_READ)
		mt_commit(d);
	f = flow_of(d, rq->task, g, rq->flags);
	r->flow = f;
	if (unlikely(f->e.in != g))
		join(d, f, g);
	flow_arrives(d, f, rq);
	if (f->home->kind == MT_POOL && f->home->thinking) {
		mt_learn(&f->home->habit, now - f->home->emptied_ns);
		f->home->thinking = false;
	}
	f->queued++;
	list_add_tail(&r->mine, &f->queue);
	lend(d, f, true);
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
	if (!d->q.wait.active && !d->q.nr_in_flight) {
		hw_wait_begin(&d->q, c->kind == MT_FLOW ? mt_flow_of(c)->task : NULL, d->now);
		d->since_ns = d->now;
		d->held = c;
	}
	return true;
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
	return e;
}

static struct hw_request *take(struct mt_device *d, struct mt_request *r)
{
	struct mt_entity *home = r->home;
	struct hw_request *rq = &r->s.rq;

	if (home) {
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
		if (home->kind == MT_POOL)
			list_add_tail(&r->fly, &d->flying);
		if (home->kind == MT_POOL)
			mt_average(&home->near, mt_position(d, hw_apart(rq->sector, home->end)),
				   false);
		home->end = hw_end(rq);
	} else {
		list_del_init(&r->s.fifo);
	}
	r->alone = !d->q.nr_in_flight;
	r->distance = hw_apart(rq->sector, d->head);
	d->head = hw_end(rq);
	return rq;
}

static struct hw_request *mt_dispatch(struct hw_queue *q, u64 now)
{
	struct mt_device *d = mt_device(q);
	struct hw_sorted_request *s = hw_fifo_first(&d->first);
	struct mt_entity *e;

	d->now = now;
	if (q->dev.rotational) {
		if (q->nr_in_flight || q->wait.active)
			mt_charge(d);
		d->since_ns = now;
	}
	if (s) {
		hw_wait_end(q, HW_WAIT_OTHER, now);
		hw_because(q, HW_FIRST);
		return take(d, mt_request(s));
	}
	if (!q->dev.rotational)
		return mt_flash_dispatch(d);
	e = choose(d);
	if (!e || (e->kind == MT_ASYNC && !mt_async_may(d, e)))
		return NULL;
	if (e->kind == MT_POOL && !mt_pool_may(d, e))
		return NULL;
	hw_because_wait(q, e == d->held, q->force ? HW_DRAIN : d->because);
	d->because = HW_SLICE;
	return take(d, mt_request(mt_next(d, e)));
}

static bool mt_has_work(const struct hw_queue *q)
{
	return q->nr_queued && !q->wait.active;
}

/* --- completion --- */

/* A task's memory may go away with its last request: nobody is served there any longer. */
static void retire(struct mt_device *d, struct mt_flow *f)
{
	bool serving = d->serving == &f->e;

	if (!f->task || !f->task->exited || active(f))
		return;
	if (serving) {
		hw_wait_end(&d->q, HW_WAIT_OTHER, d->now);
		d->because = HW_QUEUE_EMPTY;
	}
	if (f->e.in->starter == &f->e)
		f->e.in->starter = NULL;
	if (!d->q.dev.rotational) {
		if (serving)
			mt_flash_unfavour(d);
	} else if (f->requests) {
		mt_bury(d, f);
	} else if (serving) {
		mt_serve(d, NULL);
	}
	if (f->e.in != &d->root)
		join(d, f, &d->root);
}

/* @f has a request less, queued or in the device. */
static void flow_less(struct mt_device *d, struct mt_flow *f)
{
	if (active(f))
		return;
	d->flows--;
	f->e.in->flows--;
	lend(d, f, false);
}

static void emptied(struct mt_device *d, struct mt_entity *e)
{
	e->thinking = true;
	e->emptied_ns = d->now;
}

static void mt_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct mt_device *d = mt_device(q);
	struct mt_request *r = mt_request(hw_sorted(rq));
	struct mt_entity *home = r->home;
	struct mt_flow *f = r->flow;

	d->now = now;
	if (!q->dev.rotational) {
		if (home)
			mt_flash_complete(d, r);
		if (f)
			retire(d, f);
		return;
	}
	mt_charge(d);
	if (!home)
		return;
	if (r->alone && !q->nr_in_flight && rq->op == HW_READ && !q->dev.positions.nr)
		mt_position_learn(d, r->distance, now - rq->dispatch_ns,
				  mt_stream_ns(d, rq->sectors));
	home->flying--;
	list_del_init(&r->fly);
	if (home->kind == MT_ASYNC)
		d->async_sectors -= rq->sectors;
	if (rq->op == HW_READ)
		d->rate_sectors += rq->sectors;
	if (home->kind != MT_FLOW && !home->queued && !home->flying)
		emptied(d, home);
	if (!f)
		return;
	f->flying--;
	if (!active(f))
		emptied(d, &f->e);
	flow_less(d, f);
	retire(d, f);
}

static void mt_requeue(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct mt_device *d = mt_device(q);
	struct mt_request *r = mt_request(hw_sorted(rq));

	d->now = now;
	if (r->home && !q->dev.rotational) {
		mt_flash_complete(d, r);
		if (r->flow)
			retire(d, r->flow);
	} else if (r->home) {
		r->home->flying--;
		list_del_init(&r->fly);
		if (r->home->kind == MT_ASYNC)
			d->async_sectors -= rq->sectors;
		if (r->flow) {
			r->flow->flying--;
			flow_less(d, r->flow);
			retire(d, r->flow);
		}
	}
	put_first(d, r);
}

/* --- merging --- */

static struct hw_request *mt_find_merge(struct hw_queue *q, const struct hw_bio *bio,
					enum hw_merge *how)
{
	struct mt_device *d = mt_device(q);
	u16 ioprio = mt_prio_of(bio->task, bio->ioprio);
	struct mt_group *g = group_of(d, bio->group);
	struct mt_entity *home = waited_for(bio->flags) ?
					 flow_of(d, bio->task, g, bio->flags)->home :
					 &g->async[mt_class_of(ioprio)];

	if (!q->dev.rotational)
		return NULL;
	*how = HW_FRONT_MERGE;
	return hw_sorted_rq(hw_sorted_find(&home->sort, bio->sector + bio->sectors));
}

static bool mt_allow_merge(struct hw_queue *q, const struct hw_request *rq,
			   const struct hw_bio *bio)
{
	return rq->group == bio->group && hw_is_sync(rq) == !!(bio->flags & HW_RQ_SYNC) &&
	       (!hw_is_sync(rq) || rq->task == bio->task);
}

static void mt_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now)
{
	struct mt_request *r = mt_request(hw_sorted(rq));

	if (!q->dev.rotational)
		return;
	if (how == HW_FRONT_MERGE)
		hw_sorted_moved(&r->home->sort, &r->s);
	else if (r->flow)
		r->flow->placed_end = max(r->flow->placed_end, hw_end(rq));
}

static void mt_merged_requests(struct hw_queue *q, struct hw_request *keep, struct hw_request *gone)
{
	struct mt_device *d = mt_device(q);
	struct mt_request *k = mt_request(hw_sorted(keep)), *g = mt_request(hw_sorted(gone));
	struct mt_entity *home = g->home;

	if (!q->dev.rotational) {
		mt_flash_forget(d, g);
		if (g->flow)
			retire(d, g->flow);
		return;
	}
	if (k->home == home)
		hw_fifo_inherit(&k->s, &g->s);
	mt_dequeue(d, g);
	if (!g->flow)
		return;
	flow_less(d, g->flow);
	retire(d, g->flow);
}

/* Where nothing moves requests lie in no tree. */
static struct hw_request *mt_former(struct hw_queue *q, struct hw_request *rq)
{
	return q->dev.rotational ? hw_sorted_former(q, rq) : NULL;
}

static struct hw_request *mt_latter(struct hw_queue *q, struct hw_request *rq)
{
	return q->dev.rotational ? hw_sorted_latter(q, rq) : NULL;
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
	d->now = now;
	d->since_ns = now;
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
	if (q->dev.rotational && (q->nr_in_flight || q->wait.active))
		mt_charge(d);
	retire(d, &mt_task(task)->flow);
}

static void mt_group_init(struct hw_queue *q, struct hw_group *group)
{
	struct mt_device *d = mt_device(q);

	mt_group_setup(group_of(d, group), group_of(d, group->parent));
}

/* Nobody of it has requests any more; but it may have been served last, or have left ghosts. */
static void mt_group_exit(struct hw_queue *q, struct hw_group *group)
{
	struct mt_device *d = mt_device(q);
	struct mt_group *g = group_of(d, group);
	struct mt_ghost *ghost;

	if (d->serving && d->serving->in == g) {
		hw_wait_end(q, HW_WAIT_OTHER, d->now);
		mt_serve(d, NULL);
	}
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
	{ "turn", "us", "how long a turn is to last, with as many flows as now", stat_turn },
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
	.flags = HW_POLICY_HASH | HW_POLICY_UNTHROTTLED,
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
