// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: which request of an entity is next. In the pool, where the requests of all flows that gain
 * nothing from having the disk alone are, that goes by place and age.
 */
#include "core/policy/maitre/internal.h"

#define AMONG_LEAST   10u /* requests, that the age of one is divided by */
#define OLD	      4u  /* mean positionings that a request is at most to be in the device */
#define MISSED	      2u  /* and one that was to be in its cache, and was not */
#define AGED_NS	      (2 * MT_SEC)
#define AGED_EVERY_NS (100 * MT_MSEC)
#define OVERDUE_NS    (20 * MT_SEC)
#define LOOK	      4u /* requests to either side of the head */

/* The least positioning less what age makes up for: the more requests, the older all of them are. */
struct search {
	const struct mt_device *d;
	struct hw_sorted_request *best;
	s64 least;
	u32 among; /* requests there, or AMONG_LEAST if they are fewer */
};

static void consider(struct search *f, struct hw_sorted_request *s)
{
	u64 age = min(f->d->now - s->expires, 3600 * MT_SEC);
	s64 effort = (s64)mt_to(f->d, s->rq.sector) - (s64)div_u64(age, f->among);

	if (!f->best || effort < f->least) {
		f->best = s;
		f->least = effort;
	}
}

struct hw_sorted_request *mt_pool_next(const struct mt_device *d, const struct mt_entity *pool)
{
	struct search f = { .d = d, .among = max(pool->queued, AMONG_LEAST) };
	struct hw_sorted_request *above = hw_sorted_at_or_after(&pool->sort, d->head), *below, *s;
	u32 i;

	below = above ? hw_sorted_prev(above) : hw_sorted_entry(rb_last(&pool->sort.root));
	consider(&f, hw_fifo_first(&pool->fifo));
	for (s = above, i = 0; s && i < LOOK; s = hw_sorted_next(s), i++)
		consider(&f, s);
	for (s = below, i = 0; s && i < LOOK; s = hw_sorted_prev(s), i++)
		consider(&f, s);
	return f.best;
}

/*
 * Others go upwards, and come round at the end. Requests that arrive above all the time would keep
 * that end away: now and then the oldest goes first, if it is old. Whoever has few turns has hardly
 * more than that one in each, so if it is overdue, it always does.
 */
struct hw_sorted_request *mt_upwards(const struct mt_device *d, const struct mt_entity *e)
{
	struct hw_sorted_request *s = hw_fifo_first(&e->fifo);
	u64 age = d->now - s->expires;

	if (age >= OVERDUE_NS || (age >= AGED_NS && d->now - e->aged_ns >= AGED_EVERY_NS))
		return s;
	s = hw_sorted_at_or_after(&e->sort, e->end);
	return s ? s : hw_sorted_first(&e->sort);
}

/*
 * Must @e wait for what has been in the device for long? A device with a queue of its own serves what
 * is near first: nothing is put beside a request of the pool then, and nothing at all beside one that
 * was to be in its cache, and was not. A stream could keep the head from it for seconds.
 */
bool mt_stuck(const struct mt_device *d, const struct mt_entity *e)
{
	const struct mt_request *oldest;
	bool missed;

	if (list_empty(&d->flying))
		return false;
	oldest = list_first_entry(&d->flying, struct mt_request, fly);
	missed = oldest->home == &d->beside;
	if (!missed && !mt_scatters(e))
		return false;
	return d->now - oldest->s.rq.dispatch_ns >= (missed ? MISSED : OLD) * d->mean_ns;
}
