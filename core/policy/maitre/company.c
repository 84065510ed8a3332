// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: flows that read or write at one place together, as several do that work on one file: the
 * threads of a server, or programs that each read it for themselves.
 *
 * In turns of their own each would go the whole way, and they would lose each other: what the first
 * brought into the drive's cache is gone when the next has its turn. As company they are one entity,
 * whose requests go in their order of arrival: so nobody gets ahead of the others. It has the weight of
 * its members, and is held for whichever of them comes next. bfq merges the queues of such processes, and
 * cfq serves them together; here a flow is in company as long as it is where the others are.
 *
 * Who comes to a place where somebody is being served joins them. So does, when a turn begins, who waits
 * there to be served next. Who goes elsewhere leaves, and so does who has fallen so far behind that the
 * drive's cache does not have his data any longer.
 */
#include "core/policy/maitre/internal.h"

#define CLOSE_SECTORS 1024u /* so far apart they are at one place */
#define AWAY_MOST     4u    /* requests elsewhere, as at the end of a file that is read again */
#define ALONE	      64u   /* requests in a row of the only one that is left */

static bool is_company(const struct mt_entity *e)
{
	return e->kind == MT_COMPANY;
}

static struct mt_company *company(struct mt_entity *e)
{
	return container_of(e, struct mt_company, e);
}

/* May @f keep company? Who seeks is at no place. */
static bool may(const struct mt_device *d, const struct mt_flow *f)
{
	return f->task && f->e.class == MT_BEST_EFFORT && mt_streams(d, &f->e);
}

static bool close_by(u64 a, u64 b)
{
	return hw_apart(a, b) <= CLOSE_SECTORS;
}

static void join(struct mt_flow *f, const struct mt_company *c)
{
	f->away = 0;
	f->joined = c->founded;
}

/* @f, which has the turn, goes on with it as the first of @c. */
static void found(struct mt_device *d, struct mt_company *c, struct mt_flow *f)
{
	struct mt_group *g = f->e.in;
	u64 turn_ns = g->turn_ns, turn_v = g->turn_v;

	c->e.v = f->e.v;
	c->e.habit = f->e.habit;
	c->e.enter_ns = f->e.enter_ns;
	c->e.end = f->e.end;
	c->e.emptied_ns = f->e.emptied_ns;
	c->e.thinking = false;
	c->e.started_ns = f->e.started_ns;
	c->at = f->placed_end;
	c->last = f;
	c->row = 0;
	c->founded++;
	join(f, c);
	mt_move(d, f, &c->e);
	c->e.fresh = f->e.fresh;
	mt_serve(d, &c->e);
	g->turn_ns = turn_ns;
	g->turn_v = turn_v;
	if (d->held == &f->e)
		d->held = &c->e;
}

/* One that nobody is in, of those of @g; NULL: there is none. */
static struct mt_company *vacant(const struct mt_device *d, struct mt_group *g)
{
	struct mt_company *c;

	for (c = g->company; c < g->company + MT_COMPANIES; c++)
		if (!c->e.weight && !c->e.flying && d->serving != &c->e)
			return c;
	return NULL;
}

/* Is @f, which competes there, where d->serving is? */
bool mt_meets(const struct mt_device *d, const struct mt_flow *f)
{
	struct mt_entity *s = d->serving;
	const struct mt_flow *other;

	if (!s || s == &f->e || s->in != f->e.in || s->class != f->e.class || !may(d, f))
		return false;
	if (is_company(s))
		return close_by(company(s)->at, f->placed_end);
	if (s->kind != MT_FLOW)
		return false;
	other = mt_flow_of(s);
	return other->home == s && may(d, other) && close_by(other->placed_end, f->placed_end);
}

/* Whom @f joins in the turn of d->serving; NULL: nobody. */
static struct mt_company *met(struct mt_device *d, const struct mt_flow *f)
{
	struct mt_entity *s = d->serving;
	struct mt_company *c;

	if (!mt_meets(d, f))
		return NULL;
	if (is_company(s))
		return company(s);
	c = vacant(d, s->in);
	if (c)
		found(d, c, mt_flow_of(s));
	return c;
}

/* Does @f, of which a request has come, stay in @c? It may be another one by now than @f has joined. */
static bool stays(const struct mt_device *d, struct mt_flow *f, const struct mt_company *c)
{
	if (f->joined != c->founded || !may(d, f) || (c->last == f && c->row >= ALONE))
		return false;
	if (!close_by(c->at, f->placed_end))
		f->away++;
	return f->away < AWAY_MOST;
}

/* The company that @f is in from now on; NULL: none. */
struct mt_entity *mt_company_of(struct mt_device *d, struct mt_flow *f)
{
	struct mt_company *c;

	if (is_company(f->home))
		return stays(d, f, company(f->home)) ? f->home : NULL;
	c = met(d, f);
	if (!c)
		return NULL;
	/* Who has had more than they have pays for it with them. */
	if (f->e.v > c->e.v)
		c->e.v += div_u64((f->e.v - c->e.v) * f->e.weight, c->e.weight + f->e.weight);
	join(f, c);
	return &c->e;
}

/* A request of @f has come, which keeps company. */
void mt_company_seen(struct mt_flow *f)
{
	struct mt_company *c;

	if (!is_company(f->home))
		return;
	c = company(f->home);
	c->row = c->last == f ? c->row + 1 : 0;
	c->last = f;
	if (!f->away)
		c->at = f->placed_end;
}

/* @r of a flow that keeps company is done. Were its data in the cache, or under the head? */
void mt_company_learn(const struct mt_device *d, const struct mt_request *r)
{
	if (mt_was_quick(d, r, r->home->flying))
		r->flow->away = 0;
	else
		r->flow->away++;
}
