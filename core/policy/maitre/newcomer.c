// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: the place of those who come, or come again, among those who are there.
 *
 * Whoever has slept has had less than the others, and goes before them by as much as the window says.
 * Newcomers all together have no more than three quarters of the disk: what they may still have is
 * the credit of their group (flow.c charges it). A program that begins needs more than a lead.
 */
#include "core/policy/maitre/internal.h"

#define GROUP_WINDOW 4u		     /* a group's lead is that part of a flow's */
#define GROUP_GONE   (100 * MT_MSEC) /* after such a pause it is a newcomer */
#define CROWD_NS     (300 * MT_MSEC) /* who come so soon after each other come at once */
#define LITTLE_PART  4u		     /* of the window: little time */

/* As far behind the others of its class as it may be. */
u64 mt_earliest(const struct mt_device *d, const struct mt_entity *e)
{
	u64 floor = e->in->floor[e->class], window = (u64)d->window * MT_MSEC;

	/* All weights have the same, lest a light group gets more by coming and going. */
	if (e->kind == MT_GROUP)
		window /= GROUP_WINDOW;
	return floor - min(floor, window);
}

/* Behind all that are busy in @e's class. */
u64 mt_last_place(const struct mt_entity *e)
{
	const struct mt_group *g = e->in;
	const struct mt_entity *last = mt_entity_of(rb_last(&g->busy));
	u64 v = max(g->floor[e->class], e->v);

	if (last && last->class == e->class)
		v = max(v, last->v);
	if (g->serving && g->serving->class == e->class)
		v = max(v, g->serving->v);
	return v;
}

/*
 * Is @e so far behind that it is being let in before others? Those who take turns are behind by a
 * little now and then.
 */
bool mt_is_newcomer(const struct mt_device *d, const struct mt_entity *e)
{
	return e->v + mt_even_ns(d) < e->in->floor[e->class];
}

/* --- a program that begins --- */

/*
 * It reads here and there, for a second or two, and somebody waits for the whole of it. Of a group
 * one at a time, when it has used up its lead, has as much of the disk as all other flows together,
 * until it has had that, or the newcomers' credit is used up.
 */
bool mt_starts(const struct mt_device *d, const struct mt_entity *e)
{
	return e == e->in->starter && e->started_ns < MT_START_MOST && e->in->credit &&
	       !mt_streams(d, e);
}

/* Has @e requests, or had some a moment ago? */
static bool is_there(const struct mt_device *d, const struct mt_entity *e)
{
	return e->queued || e->flying || d->now - e->emptied_ns <= MT_SLEPT_NS;
}

/*
 * Has @e come together with the one that begins? Of several that come at once, and read at the same
 * time, none is a program that begins: as one they would keep the others waiting for seconds.
 */
static bool crowds(struct mt_device *d, const struct mt_entity *e)
{
	struct mt_group *g = e->in;
	const struct mt_entity *other = g->starter;

	if (other && other != e && d->now - g->began_ns < CROWD_NS &&
	    other->started_ns < (u64)d->window * MT_MSEC && (other->queued || other->flying)) {
		g->starter = NULL;
		g->crowd_until_ns = d->now + CROWD_NS;
	} else if (d->now < g->crowd_until_ns) {
		g->crowd_until_ns = d->now + CROWD_NS;
	}
	g->began_ns = d->now;
	return d->now < g->crowd_until_ns;
}

/* @e, which has come or slept for long, is far behind others that have turns. */
static void begins(struct mt_device *d, struct mt_entity *e)
{
	const struct mt_entity *other = e->in->starter;

	e->started_ns = 0;
	if (e->commits && other == e)
		e->in->starter = NULL;
	/* Who waits for what it writes does more than to read itself into memory. */
	if (e->commits || crowds(d, e))
		return;
	if (!other || other->started_ns >= MT_START_MOST || mt_streams(d, other) ||
	    !is_there(d, other))
		e->in->starter = e;
}

/* Is a stream being served, for which others wait as long as a turn lasts? */
static bool stream_served(const struct mt_device *d)
{
	const struct mt_entity *c = d->serving;

	return c && mt_goes_on(c) && mt_sequential(d, c);
}

/* What others must have been served before one who comes begins beside them. */
static u64 little(const struct mt_device *d)
{
	return (u64)d->window * MT_MSEC / LITTLE_PART;
}

/*
 * May @e be a program that begins? It has slept, is far behind, and who has the disk has been served
 * for a while: those who all come at once do not begin beside each other. Beside those who seek an
 * array serves it anyway.
 */
static bool may_begin(const struct mt_device *d, struct mt_entity *e)
{
	const struct mt_entity *c = d->serving;

	if (e->kind != MT_FLOW || e->class != MT_BEST_EFFORT || !mt_flow_of(e)->slept ||
	    e->v > mt_earliest(d, e) || !c || c->started_ns < little(d) || !is_there(d, c))
		return false;
	return d->q.dev.arms <= 1 || stream_served(d);
}

/* @e becomes busy: it may be behind the others by the window, and no more. */
void mt_take_place(struct mt_device *d, struct mt_entity *e, bool async)
{
	u64 floor = e->in->floor[e->class], least = mt_earliest(d, e);

	/* A group that lost its turn while all in it were thinking is still owed its share. */
	if (e->kind == MT_GROUP && d->now - e->emptied_ns < GROUP_GONE) {
		e->fresh = false;
		return;
	}
	if (may_begin(d, e)) {
		begins(d, e);
		/* It will have half of the disk. Where nobody has long turns it needs no more. */
		if (!stream_served(d))
			least = max(least, floor - min(floor, little(d)));
	}
	if (async)
		e->v = max(e->v, floor);
	else if (!d->window || e->in->credit || !mt_is_newcomer(d, e))
		e->v = max(e->v, least);
	else
		e->v = mt_last_place(e);
	e->fresh = e->kind != MT_FLOW || mt_flow_of(e)->slept;
}
