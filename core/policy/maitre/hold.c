// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: when to hold the disk for whoever was served, and whom it pays to have it alone. Both weigh
 * the way to a flow's own next request, and its think times (habit.c), against the way to others.
 */
#include "core/policy/maitre/internal.h"

#define UNKNOWN_MOST (4 * MT_MSEC)
#define FLOWS_MOST   8u	 /* more of them count for no more */
#define FLOW_PART    24u /* of the pool's way, that turns have to save for each flow */
#define FLOW_DEEP    16u /* the same of a drive that chooses among requests itself */
#define HOME_SHIFT   2 /* of the way to others: by so much less a flow that has turns keeps them */
#define MEAN_SHIFT   3
#define STRAYS_SHIFT 5
#define STAYS	     (U16_MAX / 16) /* no more of them are far: one runs on in its place */

void mt_average(u64 *mean, u64 sample, bool first)
{
	*mean = first ? sample : *mean - (*mean >> MEAN_SHIFT) + (sample >> MEAN_SHIFT);
}

/* A flow's request came at a place that takes @near to reach from the end of the one before. */
void mt_place_seen(const struct mt_device *d, struct mt_entity *e, u64 near, bool onward,
		   bool first)
{
	mt_average(&e->near, near, first);
	e->far = first || e->far;
	mt_average(&e->after[e->far], max(near, 1ull), !e->after[e->far]);
	e->far = !onward && near * MT_SEEKS_PART > d->mean_ns;
	mt_share_seen(&e->strays, e->far && !first, STRAYS_SHIFT);
}

/*
 * @e's first request after another's has taken @ns beyond its data: what changing to it costs, or nothing,
 * if the drive had read in advance. What is long is believed at once, what is short by half.
 */
void mt_entered(const struct mt_device *d, struct mt_entity *e, u64 ns)
{
	u64 before = e->enter_ns ? e->enter_ns : d->mean_ns;

	e->enter_ns = max(ns >= before ? ns : (before + ns) / 2, 1ull);
}

/*
 * @c has the disk and no request, @e is first of those that wait. Until when it is to be held, or a
 * time that has passed.
 */
u64 mt_hold_until(const struct mt_device *d, const struct mt_entity *c, const struct mt_entity *e)
{
	u64 elapsed = d->now - c->emptied_ns, near = mt_near(c), far, longest;

	/* A log that has more than its share is served often: it need not be waited for. */
	if (mt_times(d, c) > 1)
		return d->now;
	/* On an array it is most likely another arm that would move. */
	far = div_u64(mt_to(d, mt_next(d, e)->rq.sector), max(d->q.dev.arms, 1u));
	/* It costs less if the drive has read in advance for both. */
	if (c->enter_ns && e->enter_ns)
		far = min(far, max(c->enter_ns, e->enter_ns));
	/*
	 * It would interrupt again, and the head come back. Groups that had less than their share would
	 * not get it without being waited for.
	 */
	if (mt_starts(d, c)) {
		/* Somebody waits for all that it reads, far as its next may be. */
		far += max(far, near);
		near = 0;
	} else if (mt_behind(e) && (c->in != e->in || mt_runs_on(e))) {
		far += max(far, near);
	}
	if (!c->habit.samples) {
		longest = far > near ? min(far - near, UNKNOWN_MOST) : 0;
		return c->emptied_ns + longest;
	}
	longest = mt_worth_waiting(&c->habit, elapsed, near, far);
	return d->now + longest;
}

/*
 * What who has turns must need less than: the way to the nearest of all who seek, as if they lay
 * anywhere; or the way that the pool's have been from each other, if that is longer, for few that stay
 * in places of their own are far apart. Of that, turns must save the larger part the more flows there
 * are: in the pool the next is nearer then, and in turns each waits longer.
 */
static u64 others_ns(const struct mt_device *d, const struct mt_entity *pool)
{
	bool chooses = d->q.dev.depth > 1;
	u64 all = mt_position(d, div_u64(d->q.dev.sectors, 2 * (d->flows + 2)));
	u64 apart = pool->near * min(d->flows, FLOWS_MOST);

	return max(chooses ? all / 2 : all / 3 * 2,
		   pool->near - div_u64(apart, chooses ? FLOW_DEEP : FLOW_PART));
}

/* Does the flow gain from having the disk alone? */
static bool exclusive(const struct mt_device *d, const struct mt_flow *f)
{
	bool runs = mt_reads_runs(d, &f->e);
	/* Who reads runs goes far after each anyway: what there is to gain lies within them. */
	u64 near = runs ? f->e.after[true] : f->e.near, far;

	if (!f->task)
		return false;
	if (mt_is_new(&f->e) || f->e.class != MT_BEST_EFFORT || mt_starts(d, &f->e))
		return true;
	/* A run that is there as a whole needs no waiting: it has the disk until it is over. */
	if ((f->heaps && mt_streams(d, &f->e)) || f->e.deep)
		return true;
	/* Its data come into the drive's cache in a turn, and are gone again in the pool. */
	if (mt_span_ns(d, f))
		return true;
	far = others_ns(d, &f->e.in->pool[f->e.class]);
	/* Arms serve several who go here and there; who stays in its place keeps one of them busy. */
	if (d->q.dev.arms > 1 && f->e.strays >= STAYS)
		return false;
	/* How far that is in the mean goes up and down with each run. */
	if (f->home == &f->e && runs)
		far += far >> HOME_SHIFT;
	if (!f->e.habit.samples)
		return near < far;
	return mt_worth_waiting(&f->e.habit, 0, near, far) > 0;
}

/*
 * Would the flow keep others of the pool waiting? Those that have one request at a time there would wait
 * for all of its, and it loses little without them. Several that have many share it, if nobody else is
 * there. Not yet if it writes: what an fsync waits for is a lot at once, and then nothing.
 */
static bool deep(const struct mt_device *d, const struct mt_flow *f)
{
	const struct mt_entity *pool = &f->e.in->pool[f->e.class];
	u32 shallow = pool->shallow - (f->lends == pool && f->shallow);
	u32 own = f->queued + f->flying, all = pool->queued + pool->flying;

	if (f->home != pool)
		all += own;
	if (!f->task || own < MT_DEEP || mt_streams(d, &f->e) ||
	    (f->e.commits && f->row < MT_STEADY))
		return false;
	return shallow || (2 * own > all && f->e.in->deep == f->e.deep);
}

/* @f is apart from the pool, or is not. */
void mt_apart(struct mt_flow *f, bool apart)
{
	f->e.in->deep += apart - f->e.deep;
	f->e.deep = apart;
}

/* The flow goes where it belongs by now. */
void mt_settle(struct mt_device *d, struct mt_flow *f)
{
	struct mt_entity *home = mt_beside(d, f) ? &d->beside : mt_company_of(d, f);

	mt_apart(f, !home && deep(d, f));
	if (!home)
		home = exclusive(d, f) ? &f->e : &f->e.in->pool[f->e.class];
	if (home != f->home)
		mt_move(d, f, home);
}
