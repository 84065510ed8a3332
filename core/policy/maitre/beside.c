// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: flows whose data lie in the drive's cache. A drive that takes several commands serves them
 * while its head is busy for others, so they go beside the turns of others, and end nobody's.
 *
 * The cache does not tell what it holds. It is taken to hold a flow's data if they lie within some MiB,
 * and if the flow's requests have lately been done much sooner than a head could have been there. What goes
 * on where the one before ended is soon done anyway, so of that only those count that come after the flow has
 * moved all its data several times. The first request that takes longer ends it, and each time twice as
 * many quick ones are asked for before the next. Writes leave the drive ways to go, but no more than over
 * those MiB.
 *
 * A flow that has a turn keeps it to its end: there it brings its data into the cache.
 */
#include "core/policy/maitre/internal.h"

#define SPAN_MOST   (32u * 2048) /* sectors of one flow that a cache may hold */
#define SPAN_TIMES  2u		 /* who has moved them so often has come back to them */
#define STREWN	    32u		 /* requests here and there in it: their next is one of them */
#define QUICK_ROW   16u		 /* quick requests in a row */
#define MISSES_MOST 3u		 /* each doubles the row */
#define SHARE	    4u		 /* of the drive's commands, one in so many */

static u64 span(const struct mt_flow *f)
{
	return f->high - f->low;
}

/*
 * Who waits before it writes on waits for a flush, which leaves nothing in the cache. Who always has a
 * request under way waits for none.
 */
static bool leaves_nothing(const struct mt_flow *f)
{
	return f->e.commits && !mt_at_once(&f->e.habit) && f->row < MT_STEADY;
}

/*
 * What it takes to bring all data of @f into the drive's cache, if it has stayed within so little that it
 * comes back to them; else 0. Turns of that length let it do so, whatever the ways: cut short, it would have
 * to begin anew each time, for the others' data take their place meanwhile. A program that begins may stay
 * within little, but reads each place once; and of an array's arms another is free for it.
 */
u64 mt_span_ns(const struct mt_device *d, const struct mt_flow *f)
{
	u64 sectors = span(f);

	if (d->q.dev.depth < SHARE || d->q.dev.arms > 1 || sectors > SPAN_MOST ||
	    leaves_nothing(f) || mt_starts(d, &f->e))
		return 0;
	if (f->moved <= sectors + sectors / 8 && f->strewn < STREWN)
		return 0;
	return mt_stream_ns(d, sectors + sectors / 4) + d->mean_ns;
}

/* @rq of @f has come. */
void mt_span_seen(struct mt_flow *f, const struct hw_request *rq)
{
	f->low = min(f->low, rq->sector);
	f->high = max(f->high, hw_end(rq));
	if (!f->requests || span(f) > SPAN_MOST) {
		f->low = rq->sector;
		f->high = hw_end(rq);
		f->moved = 0;
		f->strewn = 0;
		f->quick = 0;
	}
	f->moved += rq->sectors;
	if (rq->sector != f->placed_end)
		f->strewn++;
}

/* Do @f's requests go beside those of others? Groups have their shares by turns. */
bool mt_beside(const struct mt_device *d, const struct mt_flow *f)
{
	if (d->q.dev.depth < SHARE || f->quick < QUICK_ROW << f->misses || d->serving == &f->e ||
	    (d->serving == f->home && f->home->kind == MT_COMPANY))
		return false;
	if (leaves_nothing(f))
		return false;
	return f->task && f->e.in == &d->root && f->e.class == MT_BEST_EFFORT;
}

/* The next of those that go beside others, if one more may be in the drive; else NULL. */
struct mt_request *mt_beside_next(const struct mt_device *d)
{
	const struct mt_entity *b = &d->beside;

	if (!b->queued || b->flying >= d->q.dev.depth / SHARE)
		return NULL;
	return mt_request(hw_fifo_first(&b->fifo));
}

/*
 * Nothing else goes to the drive now. A read that reaches an idle drive may end its reading ahead, so
 * where it is held for who reads in sequence it has to wait.
 */
bool mt_beside_may(const struct mt_device *d)
{
	return d->q.wake_ns == HW_NEVER || !mt_sequential(d, d->serving);
}

/* @r of a flow is done. Was it in the cache? */
void mt_beside_learn(const struct mt_device *d, const struct mt_request *r)
{
	struct mt_flow *f = r->flow;
	bool beside = r->home == &d->beside;

	if (!mt_was_quick(d, r, beside ? d->beside.flying : f->flying)) {
		/* Those that were in the drive with it are late for the same reason. */
		if (beside && f->quick)
			f->misses = min(f->misses + 1, MISSES_MOST);
		f->quick = 0;
	} else if (!r->onward || f->moved > SPAN_TIMES * span(f)) {
		f->quick = min(f->quick + 1, QUICK_ROW << MISSES_MOST);
	}
}
