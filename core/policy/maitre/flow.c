// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: whose turn it is. Virtual time, the place of newcomers, and when a turn ends.
 *
 * Invariants:
 *  1. An entity is in the tree of the busy exactly while it has requests queued and is not the one
 *     being served.
 *  2. The v of an entity in the tree does not change.
 */
#include "core/policy/maitre/internal.h"

#define CYCLE	     (2500 * MT_MSEC) /* turns become shorter rather than let all take longer */
#define LEAST_TURN   8u		      /* of mean positionings */
#define COMMIT_PART  2u /* so many times shorter than by their number, of who waits for writes */
#define SLACK_SHIFT  3	/* of a turn: those who differ by less are even */
#define RANK_SHIFT   4	/* of the longest turn: those who differ by less go round */
#define CREDIT_MOST  (3 * MT_SEC)
#define FREE_PART    4u
#define ASYNC_PART   40u    /* write-back's weight is at least this part of that of all flows */
#define AWAITED_PART 2u	    /* the same while somebody may wait for it */
#define OWES_MOST    MT_SEC /* of the disk's time, that write-back may be ahead by */

void mt_entity_init(struct mt_entity *e, enum mt_kind kind, u8 class, u32 weight)
{
	e->kind = (u8)kind;
	e->class = class;
	e->weight = weight;
	INIT_LIST_HEAD(&e->fifo);
}

void mt_flow_init(struct mt_flow *f, struct hw_task *task)
{
	mt_entity_init(&f->e, MT_FLOW, MT_BEST_EFFORT, MT_WEIGHT);
	f->task = task;
	f->home = &f->e;
	INIT_LIST_HEAD(&f->queue);
}

/* --- the tree of the busy --- */

static struct mt_entity *entity_of(struct rb_node *n)
{
	return n ? rb_entry(n, struct mt_entity, node) : NULL;
}

static bool before(const struct mt_entity *a, const struct mt_entity *b)
{
	if (a->class != b->class)
		return a->class < b->class;
	return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

void mt_list(struct mt_device *d, struct mt_entity *e)
{
	struct rb_node **link = &d->busy.rb_node, *parent = NULL;

	/*
	 * Those that are about even go round: nobody is first in one round and last in the next.
	 * Streams do so upwards, for a short way from each to the next; others as they come.
	 */
	e->rank = div64_u64(e->v, max(d->longest_turn >> RANK_SHIFT, 1ull));
	e->place = e->queued && mt_streams(d, e) ? mt_upwards(d, e)->rq.sector : 0;
	while (*link) {
		parent = *link;
		link = before(e, entity_of(parent)) ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&e->node, parent, link);
	rb_insert_color(&e->node, &d->busy);
	e->listed = true;
}

void mt_unlist(struct mt_device *d, struct mt_entity *e)
{
	if (!e->listed)
		return;
	rb_erase(&e->node, &d->busy);
	e->listed = false;
}

struct mt_entity *mt_least(const struct mt_device *d)
{
	return entity_of(rb_first(&d->busy));
}

/* --- virtual time --- */

/*
 * A pool has that of its members, but at least one flow's. Write-back is all of it one entity, and
 * would wait the longer for its turn the more flows there are.
 */
static u32 weight(const struct mt_device *d, const struct mt_entity *e)
{
	switch (e->kind) {
	case MT_POOL:
		return max(e->weight, MT_WEIGHT);
	case MT_ASYNC:
		return max(e->weight,
			   d->flows * MT_WEIGHT / (mt_awaited(d, e) ? AWAITED_PART : ASYNC_PART));
	default:
		return e->weight;
	}
}

static u64 virtual_ns(const struct mt_device *d, const struct mt_entity *e, u64 ns)
{
	return div_u64(ns * MT_WEIGHT, weight(d, e));
}

/* Behind all that are busy in @e's class. */
static u64 last_place(const struct mt_device *d, const struct mt_entity *e)
{
	const struct mt_entity *last = entity_of(rb_last(&d->busy));
	u64 v = max(d->floor[e->class], e->v);

	if (last && last->class == e->class)
		v = max(v, last->v);
	if (d->serving && d->serving->class == e->class)
		v = max(v, d->serving->v);
	return v;
}

/* Least v of the busy, never falling. */
static void raise_floor(struct mt_device *d)
{
	const struct mt_entity *c = d->serving, *e = mt_least(d);

	if (e && c && e->class == c->class)
		d->floor[e->class] = max(d->floor[e->class], min(e->v, c->v));
	else if (c && (!e || e->class > c->class))
		d->floor[c->class] = max(d->floor[c->class], c->v);
	else if (e)
		d->floor[e->class] = max(d->floor[e->class], e->v);
}

/*
 * Up to now the device was in the service of d->serving, or was held for it. Whoever runs below the
 * floor is a newcomer on credit; when that is used up newcomers go behind the others. For each ns
 * that others are served, newcomers together may have three: no more than three quarters.
 */
void mt_charge(struct mt_device *d)
{
	struct mt_entity *c = d->serving;
	u64 ns = d->now - d->since_ns;

	d->since_ns = d->now;
	if (!c || !ns)
		return;
	if (!d->q.wait.active)
		mt_rate_time(d, ns);
	if (!mt_least(d))
		c->fresh = false;
	if (c->kind == MT_ASYNC)
		d->async_owed -= min(d->async_owed, ns);
	if (c->v < d->floor[c->class] && c->kind != MT_ASYNC) {
		if (d->credit <= ns)
			c->v = last_place(d, c);
		d->credit -= min(d->credit, ns);
	} else if (!c->fresh) {
		d->credit = min(d->credit + ns, CREDIT_MOST);
	}
	c->v += virtual_ns(d, c, ns);
	raise_floor(d);
}

/* @e becomes busy: it may be behind the others by the window, and no more. */
void mt_place(struct mt_device *d, struct mt_entity *e)
{
	u64 floor = d->floor[e->class], window = e->kind == MT_ASYNC ? 0 : (u64)d->window * MT_MSEC;

	if (!window || d->credit)
		e->v = max(e->v, floor - min(floor, window));
	else
		e->v = last_place(d, e);
	e->fresh = true;
}

/*
 * Write-back is charged what it will still cost. That is a guess, of any size where the disk was
 * idle but for it, and it pays while others read, who may do so for ever: so it owes a little only.
 */
static void async_pays(struct mt_device *d, struct mt_entity *e)
{
	u64 most = d->floor[e->class] + virtual_ns(d, e, OWES_MOST);

	e->v = min(e->v + virtual_ns(d, e, d->async_owed), most);
	d->async_owed = 0;
}

/* The turn is @e's; what was served before waits for another. */
void mt_serve(struct mt_device *d, struct mt_entity *e)
{
	struct mt_entity *c = d->serving;

	if (c == e)
		return;
	if (c) {
		if (c->kind == MT_ASYNC)
			async_pays(d, c);
		if (c->queued) {
			c->fresh = false;
			mt_list(d, c);
		}
	}
	if (e)
		mt_unlist(d, e);
	d->serving = e;
	d->turn_ns = d->now;
	d->turn_v = e ? e->v : 0;
	raise_floor(d);
}

/* How long a turn is to last. */
u64 mt_turn(const struct mt_device *d)
{
	u64 turn = div_u64(CYCLE, max(d->flows, 1u));

	return min(d->longest_turn, max(turn, LEAST_TURN * d->mean_ns));
}

/*
 * How long @c's is to last. Whoever waits for writes, such as a log, moves little data in a turn,
 * and rather has many short ones than to wait for a long one.
 */
static u64 turn_of(const struct mt_device *d, const struct mt_entity *c)
{
	u64 turn = mt_turn(d);

	if (c->kind != MT_FLOW || !c->commits)
		return turn;
	return max(div_u64(turn, COMMIT_PART * max(d->flows, 1u)), d->mean_ns);
}

/*
 * Does @e, the first of those that wait, end the turn of @c? It must be behind, and @c have had its
 * turn; or @e be behind by one. To be behind is enough if the head has to move anyway.
 */
bool mt_takes_over(const struct mt_device *d, const struct mt_entity *e, const struct mt_entity *c)
{
	struct hw_sorted_request *own;
	u64 near, far, turn, slack, over;

	if (e->class != c->class)
		return e->class < c->class;
	if ((c->kind == MT_ASYNC && !mt_awaited(d, c)) || e->v >= c->v)
		return e->v < c->v;
	own = mt_next(d, c);
	near = own ? mt_to(d, own->rq.sector) : mt_near(c);
	far = mt_to(d, mt_next(d, e)->rq.sector);
	/* Who has to go so far himself keeps nothing. */
	if (near * FREE_PART >= far)
		return true;
	turn = turn_of(d, c);
	/*
	 * Who began behind it, or even, need not get ahead by more than its turn, less what it has
	 * had too much in those before.
	 */
	slack = turn >> SLACK_SHIFT;
	over = turn ? d->turn_v - div64_u64(d->turn_v, turn) * turn : 0;
	if (e->kind != MT_ASYNC && e->v + slack >= d->turn_v &&
	    d->now - d->turn_ns + (over <= slack ? over : 0) >= turn)
		return true;
	return e->v + virtual_ns(d, c, turn) < c->v;
}

/* A write has come that is waited for: what write-back has had, and owes, is forgiven. */
void mt_commit(struct mt_device *d)
{
	struct mt_entity *e;

	d->committed_ns = d->now;
	for (e = d->async; e < d->async + MT_CLASSES; e++) {
		bool listed = e->listed;

		if (!e->queued || e->v <= d->floor[e->class])
			continue;
		mt_unlist(d, e);
		e->v = d->floor[e->class];
		if (listed)
			mt_list(d, e);
	}
}

/* --- requests --- */

void mt_enqueue(struct mt_device *d, struct mt_entity *home, struct mt_request *r)
{
	r->home = home;
	hw_sorted_add(&home->sort, &r->s);
	hw_fifo_add(&home->fifo, &r->s, r->s.rq.insert_ns);
	if (home->queued++ || home == d->serving)
		return;
	mt_place(d, home);
	mt_list(d, home);
}

void mt_dequeue(struct mt_device *d, struct mt_request *r)
{
	struct mt_entity *home = r->home;

	hw_sorted_del(&home->sort, &r->s);
	list_del_init(&r->s.fifo);
	if (--home->queued == 0)
		mt_unlist(d, home);
	if (r->flow) {
		list_del_init(&r->mine);
		r->flow->queued--;
	}
}

struct hw_sorted_request *mt_next(const struct mt_device *d, const struct mt_entity *e)
{
	if (!e->queued)
		return NULL;
	if (e->kind == MT_POOL)
		return mt_pool_next(d, e);
	return mt_upwards(d, e);
}
