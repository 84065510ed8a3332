// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: whose turn it is. Virtual time, the place of newcomers, and when a turn ends.
 *
 * Entities compete in groups, and groups in the groups around them: each level has a tree, a floor
 * and a turn of its own, and the one that is served is charged at every level, by its weight there.
 * Without control groups there is the root only.
 *
 * Invariants:
 *  1. An entity is in its group's tree of the busy exactly while it has requests queued, or those in
 *     it have, and it is not the one being served in that group. What goes beside others is in none.
 *  2. The v of an entity in a tree does not change while it is there.
 *  3. In a group that is not being served, nobody is.
 */
#include "core/policy/maitre/internal.h"

#define CYCLE	     (2500 * MT_MSEC) /* turns become shorter rather than let all take longer */
#define LEAST_TURN   8u		      /* of mean positionings */
#define SEEKS_TURN   2u		      /* times shorter where all seek for each of their requests */
#define GROUP_TURN   4u		      /* the same between groups, whose requests lie anywhere */
#define COMMIT_PART  2u /* so many times shorter than by their number, of who waits for writes */
#define SLACK_SHIFT  3	/* of a turn: those who differ by less are even */
#define LOG_TIMES    4u /* times its weight, of a log among those who seek */
#define CREDIT_MOST  (3 * MT_SEC)
#define ASYNC_WEIGHT 15u
#define FREE_PART    4u
#define ASYNC_PART   40u    /* write-back's weight is at least this part of that of all flows */
#define AWAITED_PART 3u	    /* the same while somebody may wait for it */
#define PUT_OFF_PART 2u	    /* and where the drive puts off what it is given */
#define CUT_IN_WAYS  4u	    /* to a log, that a stream has had the disk for when that cuts in */
#define OWES_MOST    MT_SEC /* of the disk's time, that write-back may be ahead by */

void mt_entity_init(struct mt_entity *e, struct mt_group *in, enum mt_kind kind, u8 class,
		    u32 weight)
{
	e->in = in;
	e->kind = (u8)kind;
	e->class = class;
	e->weight = weight;
	INIT_LIST_HEAD(&e->fifo);
}

void mt_flow_init(struct mt_flow *f, struct mt_group *in, struct hw_task *task)
{
	mt_entity_init(&f->e, in, MT_FLOW, MT_BEST_EFFORT, MT_WEIGHT);
	f->task = task;
	f->home = task ? &f->e : &in->pool[MT_BEST_EFFORT];
	INIT_LIST_HEAD(&f->queue);
}

void mt_group_setup(struct mt_group *g, struct mt_group *parent)
{
	u8 i;

	mt_entity_init(&g->e, parent, MT_GROUP, MT_BEST_EFFORT, 0);
	for (i = 0; i < MT_CLASSES; i++) {
		mt_entity_init(&g->pool[i], g, MT_POOL, i, 0);
		mt_entity_init(&g->async[i], g, MT_ASYNC, i, ASYNC_WEIGHT);
	}
	for (i = 0; i < MT_COMPANIES; i++)
		mt_entity_init(&g->company[i].e, g, MT_COMPANY, MT_BEST_EFFORT, 0);
	mt_flow_init(&g->nobody, g, NULL);
	INIT_LIST_HEAD(&g->writing);
	g->credit = CREDIT_MOST;
}

/* The group that @e competes in, as a competitor of its own; NULL: the root. */
struct mt_entity *mt_above(const struct mt_entity *e)
{
	return e->in->e.in ? &e->in->e : NULL;
}

/* --- the trees of the busy --- */

static bool before(const struct mt_entity *a, const struct mt_entity *b)
{
	if (a->class != b->class)
		return a->class < b->class;
	return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

static void tree_add(struct mt_device *d, struct mt_entity *e)
{
	struct rb_node **link = &e->in->busy.rb_node, *parent = NULL;

	/*
	 * Those that are about even go round: nobody is first in one round and last in the next.
	 * Flows do so upwards, for a short way from each to the next.
	 */
	e->rank = div64_u64(e->v, max(mt_even_ns(d), 1ull));
	e->place = e->queued && mt_goes_on(e) ? mt_upwards(d, e)->rq.sector : 0;
	while (*link) {
		parent = *link;
		link = before(e, mt_entity_of(parent)) ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&e->node, parent, link);
	rb_insert_color(&e->node, &e->in->busy);
	e->listed = true;
}

static void tree_del(struct mt_entity *e)
{
	rb_erase(&e->node, &e->in->busy);
	e->listed = false;
}

/* A group is of the class of the first of those in it; and so those above. */
static void reclass(struct mt_device *d, struct mt_group *g)
{
	const struct mt_entity *first;
	bool listed;
	u8 class;

	for (; g->e.in; g = g->e.in) {
		first = mt_least(g);
		class = g->serving ? g->serving->class : MT_IDLE_CLASS;
		if (first)
			class = min(class, first->class);
		if ((!first && !g->serving) || class == g->e.class)
			return;
		listed = g->e.listed;
		if (listed)
			tree_del(&g->e);
		g->e.class = class;
		g->e.v = max(g->e.v, mt_earliest(d, &g->e));
		if (listed)
			tree_add(d, &g->e);
	}
}

void mt_list(struct mt_device *d, struct mt_entity *e)
{
	tree_add(d, e);
	reclass(d, e->in);
}

void mt_unlist(struct mt_device *d, struct mt_entity *e)
{
	if (!e->listed)
		return;
	tree_del(e);
	reclass(d, e->in);
}

/*
 * Who goes next of those that wait in @g: a log that may cut in, what a commit waits for, or the first
 * of them; but a program that begins after each turn of another, as long as it is no further ahead than
 * by a turn.
 */
static struct mt_entity *next_of(const struct mt_device *d, const struct mt_group *g)
{
	struct mt_entity *e = mt_least(g), *s = g->starter, *due = mt_cuts_in(d, g);

	if (!due)
		due = mt_commits_next(d, g);
	if (due)
		return due;
	if (s && s->listed && s->class == e->class && mt_starts(d, s) &&
	    s->v <= g->floor[s->class] + mt_turn(d))
		return s;
	return e;
}

/* Who is meant by @e, which waits: the next of the next group in it, and so on. */
static struct mt_entity *leaf_of(const struct mt_device *d, struct mt_entity *e)
{
	while (e && e->kind == MT_GROUP)
		e = next_of(d, mt_group(e));
	return e;
}

/* Who is next of all. */
struct mt_entity *mt_first(const struct mt_device *d)
{
	return leaf_of(d, next_of(d, &d->root));
}

/* --- virtual time --- */

/*
 * Who writes little at a time, and waits for each, has more than his share where others seek for every
 * request anyway, but no more than they have together. Streams would pay for it with their rate.
 */
u32 mt_times(const struct mt_device *d, const struct mt_entity *e)
{
	if (e->kind != MT_FLOW || !e->logs ||
	    d->streams > container_of(e, const struct mt_flow, e)->counted)
		return 1;
	return clamp_t(u32, e->in->flows, 2, LOG_TIMES + 1) - 1;
}

/* A drive that takes several commands puts writes off: what they take there does not show at once. */
static u32 async_part(const struct mt_device *d, const struct mt_entity *async)
{
	if (!mt_awaited(d, async))
		return ASYNC_PART;
	return d->q.dev.depth > 1 ? PUT_OFF_PART : AWAITED_PART;
}

/*
 * A pool has that of its members, but at least one flow's. Write-back is all of it one entity, and
 * would wait the longer for its turn the more flows there are.
 */
u32 mt_weight(const struct mt_device *d, const struct mt_entity *e)
{
	if (mt_starts(d, e) && e->v >= e->in->floor[e->class])
		return max(e->in->flows * MT_WEIGHT, e->weight);
	switch (e->kind) {
	case MT_GROUP:
		return mt_group(e)->group.weight;
	case MT_POOL:
	case MT_COMPANY:
		return max(e->weight, MT_WEIGHT);
	case MT_ASYNC:
		return max(e->weight, e->in->flows * MT_WEIGHT / async_part(d, e));
	default:
		return e->weight * mt_times(d, e);
	}
}

u64 mt_virtual_ns(const struct mt_device *d, const struct mt_entity *e, u64 ns)
{
	return div_u64(ns * MT_WEIGHT, mt_weight(d, e));
}

/* Least v of the busy, never falling. */
void mt_raise_floor(struct mt_group *g)
{
	const struct mt_entity *c = g->serving, *e = mt_least(g);

	if (e && c && e->class == c->class)
		g->floor[e->class] = max(g->floor[e->class], min(e->v, c->v));
	else if (c && (!e || e->class > c->class))
		g->floor[c->class] = max(g->floor[c->class], c->v);
	else if (e)
		g->floor[e->class] = max(g->floor[e->class], e->v);
}

/*
 * @c was served for @ns. Whoever runs below the floor is a newcomer on credit; when that is used up
 * newcomers go behind the others. For each ns that others are served, newcomers together may have
 * three: no more than three quarters.
 */
static void charge(struct mt_device *d, struct mt_entity *c, u64 ns, bool async)
{
	struct mt_group *g = c->in;
	bool newcomer;

	if (!mt_least(g))
		c->fresh = false;
	c->started_ns = min(c->started_ns + ns, MT_START_MOST);
	newcomer = mt_is_newcomer(d, c) && !async && (c->kind != MT_GROUP || c->fresh);
	if (newcomer || mt_starts(d, c)) {
		if (g->credit <= ns)
			c->v = mt_last_place(c);
		g->credit -= min(g->credit, ns);
	} else if (!c->fresh) {
		g->credit = min(g->credit + ns, CREDIT_MOST);
	}
	c->v += mt_virtual_ns(d, c, ns);
	mt_raise_floor(g);
	mt_share_on(d, c, ns, mt_commits(d) ? mt_weight(d, &g->async[MT_BEST_EFFORT]) : 0);
}

/* Up to now the device was in the service of d->serving, or was held for it. */
void mt_charge(struct mt_device *d)
{
	struct mt_entity *c = d->serving, *e;
	u64 ns = d->now - d->since_ns;

	d->since_ns = d->now;
	if (!c || !ns)
		return;
	if (!d->q.wait.active && mt_tells_rate(d, c))
		mt_rate_time(d, ns);
	if (c->kind == MT_ASYNC)
		d->async_owed -= min(d->async_owed, ns);
	for (e = c; e; e = mt_above(e))
		charge(d, e, ns, c->kind == MT_ASYNC);
}

/*
 * Write-back is charged what it will still cost. That is a guess, of any size where the disk was
 * idle but for it, and it pays while others read, who may do so for ever: so it owes a little only.
 */
static void async_pays(struct mt_device *d, struct mt_entity *e)
{
	u64 most;

	for (; e; e = mt_above(e)) {
		most = e->in->floor[e->class] + mt_virtual_ns(d, e, OWES_MOST);
		e->v = min(e->v + mt_virtual_ns(d, e, d->async_owed), most);
	}
	d->async_owed = 0;
}

/* What was served in @g waits for another turn; and so what was served in that. */
static void leave(struct mt_device *d, struct mt_group *g)
{
	struct mt_entity *c = g->serving;

	if (!c)
		return;
	if (c->kind == MT_GROUP)
		leave(d, mt_group(c));
	g->serving = NULL;
	if (c->queued) {
		c->fresh = false;
		mt_list(d, c);
	}
}

/* The turn is @e's, which is no group; what was served before waits for another. */
void mt_serve(struct mt_device *d, struct mt_entity *e)
{
	struct mt_entity *c = d->serving, *x;

	if (c == e)
		return;
	if (c && c->kind == MT_ASYNC)
		async_pays(d, c);
	d->serving = e;
	if (!e) {
		leave(d, &d->root);
		return;
	}
	for (x = e; x; x = mt_above(x)) {
		struct mt_group *g = x->in;

		if (g->serving == x)
			break;
		leave(d, g);
		if (x->listed)
			tree_del(x);
		g->serving = x;
		g->turn_ns = d->now;
		g->turn_v = x->v;
		reclass(d, g);
		mt_raise_floor(g);
	}
}

/*
 * How long a turn is to last. In a round of turns, those who read in sequence cost the head a way each;
 * the others go it for each of their requests, and lose nothing by shorter turns.
 */
u64 mt_turn(const struct mt_device *d)
{
	u64 turn = div_u64(CYCLE, max(d->flows, 1u));

	if (d->streams)
		turn = min(turn, div_u64(d->longest_turn * max(d->streams, d->flows / 2),
					 max(d->flows, 1u)));

	return min(d->longest_turn, max(turn, LEAST_TURN * d->mean_ns));
}

/*
 * How long @c's is to last. Where all seek, shorter ones make each wait for half as long. Whoever
 * waits for writes, such as a log, moves little data in a turn, and rather has many short ones than to
 * wait for a long one. Whoever writes on at once has a whole turn, as a reader has.
 */
static u64 turn_of(const struct mt_device *d, const struct mt_entity *c)
{
	u64 turn = mt_turn(d);

	if (!d->streams)
		turn = min(turn, d->longest_turn / SEEKS_TURN);
	if (c->kind != MT_FLOW || !c->commits || mt_at_once(&c->habit) ||
	    container_of(c, const struct mt_flow, e)->heaps)
		return turn;
	return max(div_u64(turn, COMMIT_PART * max(d->flows, 1u)), d->mean_ns);
}

/*
 * Does it cost little to interrupt @served, who has to go far for his next, for @leaf? Who reads runs
 * has ended one. Of who is new it is not known yet whether he stays in a place of his own, where he
 * goes less far than others. Write-back and logs have short turns, and on an array it is another arm
 * that goes.
 */
static bool gives_way(const struct mt_device *d, const struct mt_entity *served,
		      const struct mt_entity *leaf)
{
	return mt_reads_runs(d, served) || mt_is_new(served) || leaf->kind == MT_ASYNC ||
	       leaf->logs || d->q.dev.arms > 1;
}

/*
 * Has the head to go about as far for @served itself as to @leaf? Where a flow will go is known as soon
 * as it asks: until then, and if it goes on a little ahead, only one that is as far away is sure to.
 */
static bool goes_anyway(const struct mt_device *d, const struct mt_entity *served,
			const struct mt_entity *leaf)
{
	struct hw_sorted_request *own = mt_next(d, served);
	u64 near = own ? mt_onward(d, d->head, own->rq.sector) : mt_near(served);
	bool sure = own ? !mt_request(own)->onward : !mt_goes_on(served);

	/* What lies far for the head may be in the cache. */
	if (served->kind == MT_FLOW && mt_span_ns(d, container_of(served, const struct mt_flow, e)))
		return false;
	return near * (sure && gives_way(d, served, leaf) ? FREE_PART : 1) >=
	       mt_to(d, mt_next(d, leaf)->rq.sector);
}

/* Who has many requests in the device loses them when it is emptied, and has a turn for that. */
static bool deep_turn(const struct mt_device *d, const struct mt_entity *served)
{
	return served->deep && d->now - served->in->turn_ns < LEAST_TURN * d->mean_ns;
}

/* Who brings its data into the drive's cache does so to the end, or it would have to begin anew. */
static bool span_turn(const struct mt_device *d, const struct mt_entity *served)
{
	u64 ns;

	if (served->kind != MT_FLOW)
		return false;
	ns = mt_span_ns(d, container_of(served, const struct mt_flow, e));
	return d->now - served->in->turn_ns < min(ns, d->longest_turn);
}

/*
 * Does @e, the first of those that wait in @g, end the turn of @c, who is served in it? It must be
 * behind, and @c have had its turn; or @e be behind by one. To be behind is enough if the head has
 * to move anyway. Of groups, @leaf and d->serving are those who are meant.
 */
static bool takes_over(const struct mt_device *d, const struct mt_entity *e,
		       const struct mt_entity *leaf)
{
	const struct mt_entity *served = d->serving, *c = e->in->serving;
	u64 turn, slack, over;

	if (e->class != c->class)
		return e->class < c->class;
	if (e == mt_cuts_in(d, e->in))
		return d->now - e->in->turn_ns >= CUT_IN_WAYS * mt_to(d, mt_next(d, e)->rq.sector);
	if (e == mt_commits_next(d, e->in))
		return d->now - e->in->turn_ns >= turn_of(d, served);
	if (span_turn(d, served))
		return false;
	/* Write-back of two groups has turns beside each other. */
	if ((served->kind == MT_ASYNC && !mt_awaited(d, served) && leaf->kind != MT_ASYNC) ||
	    e->v >= c->v)
		return e->v < c->v;
	/* Between groups the way is long, and the device must be emptied: that is worth it now and then. */
	if (leaf->in != served->in && d->now - e->in->turn_ns < GROUP_TURN * d->mean_ns &&
	    e->v + ((u64)d->window * MT_MSEC >> 1) > c->v)
		return false;
	turn = turn_of(d, served);
	if (mt_starts(d, c))
		return d->now - e->in->turn_ns >= turn;
	if (!deep_turn(d, served) && goes_anyway(d, served, leaf))
		return true;
	/*
	 * Who began behind it, or even, need not get ahead by more than its turn, less what it has
	 * had too much in those before.
	 */
	slack = turn >> SLACK_SHIFT;
	over = turn ? e->in->turn_v - div64_u64(e->in->turn_v, turn) * turn : 0;
	if (leaf->kind != MT_ASYNC && e->v + slack >= e->in->turn_v &&
	    d->now - e->in->turn_ns + (over <= slack ? over : 0) >= turn)
		return true;
	return e->v + mt_virtual_ns(d, c, turn) < c->v;
}

/* Who ends the turn of d->serving, from the root down to where that competes; NULL: nobody. */
struct mt_entity *mt_winner(struct mt_device *d)
{
	struct mt_group *g = &d->root;

	for (;;) {
		struct mt_entity *e = next_of(d, g), *leaf = leaf_of(d, e);

		if (e && takes_over(d, e, leaf))
			return leaf;
		if (g->serving == d->serving)
			return NULL;
		g = mt_group(g->serving);
	}
}

/* Who is next if d->serving has nothing: of its own group, or the one around that; NULL: nobody. */
struct mt_entity *mt_other(const struct mt_device *d)
{
	const struct mt_entity *c;
	struct mt_entity *e = NULL;

	for (c = d->serving; c && !e; c = mt_above(c))
		e = next_of(d, c->in);
	return leaf_of(d, e);
}

/* Where @e, which waits, and d->serving compete: the one who is meant by @e there. */
static const struct mt_entity *rival(const struct mt_entity *e)
{
	while (!e->in->serving)
		e = mt_above(e);
	return e;
}

/* Has d->serving had less than @e, which waits: themselves, or the groups that they are in? */
bool mt_behind(const struct mt_entity *e)
{
	e = rival(e);
	return e->in->serving->v < e->v;
}

/*
 * A device that takes several requests at once does not tell for whom it has worked: what is in it
 * is of one group. So it must be empty before @e, of another one than d->serving, begins; and what a
 * flow that has many at once leaves there is not to be at the expense of the next.
 */
bool mt_drains(const struct mt_device *d, const struct mt_entity *e)
{
	if (d->serving->deep && d->serving->flying && e->class == d->serving->class)
		return true;
	return !mt_empty(d) && e->in != d->serving->in && e->class == d->serving->class;
}

/* --- requests --- */

static void count_writes(struct mt_device *d, struct mt_group *g, int more)
{
	d->writes += more;
	g->writes += more;
	if (!g->writes)
		list_del_init(&g->writing);
	else if (list_empty(&g->writing))
		list_add_tail(&g->writing, &d->writing);
}

/* By age: what comes from another home may be older than what is here. */
static void fifo_add(struct mt_entity *home, struct mt_request *r)
{
	struct list_head *at = home->fifo.prev;

	while (at != &home->fifo &&
	       list_entry(at, struct hw_sorted_request, fifo)->expires > r->s.expires)
		at = at->prev;
	list_add(&r->s.fifo, at);
}

void mt_enqueue(struct mt_device *d, struct mt_entity *home, struct mt_request *r)
{
	struct mt_entity *e;

	r->home = home;
	hw_sorted_add(&home->sort, &r->s);
	fifo_add(home, r);
	if (home->kind == MT_ASYNC)
		count_writes(d, home->in, 1);
	for (e = home; e; e = mt_above(e)) {
		if (e->queued++ || e == e->in->serving || e == &d->beside)
			continue;
		mt_take_place(d, e, home->kind == MT_ASYNC);
		mt_list(d, e);
	}
}

/* @r queues with its home no longer. */
void mt_withdraw(struct mt_device *d, struct mt_request *r)
{
	struct mt_entity *home = r->home, *e;

	hw_sorted_del(&home->sort, &r->s);
	list_del_init(&r->s.fifo);
	if (home->kind == MT_ASYNC)
		count_writes(d, home->in, -1);
	for (e = home; e; e = mt_above(e)) {
		if (--e->queued)
			continue;
		mt_unlist(d, e);
		if (e->kind == MT_GROUP)
			e->emptied_ns = d->now;
	}
}

void mt_dequeue(struct mt_device *d, struct mt_request *r)
{
	mt_withdraw(d, r);
	if (r->flow) {
		list_del_init(&r->mine);
		r->flow->queued--;
	}
}

struct hw_sorted_request *mt_next(const struct mt_device *d, const struct mt_entity *e)
{
	if (!e->queued)
		return NULL;
	if (mt_scatters(e))
		return mt_pool_next(d, e);
	if (e->kind == MT_COMPANY)
		return hw_fifo_first(&e->fifo);
	return mt_upwards(d, e);
}
