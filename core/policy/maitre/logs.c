// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: logs beside others. A log writes little at a time, right after what it wrote before, and
 * somebody waits for each write.
 *
 * In turns it would have its share at once, and then wait for as long as the others' turns take. So
 * it has that share bit by bit: it is due when it has had less than each would have had by now, were
 * all served at the same time. Somebody may be there who has had less still, as one of two streams
 * that take turns always has.
 */
#include "core/policy/maitre/internal.h"

#define LATELY MT_SEC
#define LOOK   8u /* of those that have had least */

/* Has anybody waited for a write? */
static bool lately(const struct mt_device *d)
{
	return d->committed_ns && d->now - d->committed_ns < LATELY;
}

static bool due(const struct mt_entity *e)
{
	return e->kind == MT_FLOW && e->logs && e->class == MT_BEST_EFFORT && e->v < e->in->even_v;
}

/*
 * The first log in @g that waits and is due, other than @but; NULL: none of those that have had least.
 * It does not go before write-back that has had less: a commit may wait for that, too.
 */
struct mt_entity *mt_due_log(const struct mt_device *d, const struct mt_group *g,
			     const struct mt_entity *but)
{
	struct mt_entity *e = lately(d) ? mt_least(g) : NULL;
	u32 i;

	for (i = 0; e && e->class >= MT_BEST_EFFORT && e->kind != MT_ASYNC && i < LOOK; i++) {
		if (e != but && due(e))
			return e;
		e = mt_entity_of(rb_next(&e->node));
	}
	return NULL;
}

/* @c was served for @ns: each would have had its part of that. */
void mt_share_on(const struct mt_device *d, const struct mt_entity *c, u64 ns)
{
	struct mt_group *g = c->in;
	u64 least = g->floor[MT_BEST_EFFORT];

	if (c->class == MT_BEST_EFFORT && lately(d))
		g->even_v = clamp_t(u64, g->even_v + div_u64(ns, max(g->flows, 1u)), least,
				    least + d->longest_turn);
}

/*
 * Is @e, which waits, a log that may cut in on the stream that is served? Only one may: several would
 * leave it no time between them.
 */
bool mt_log_cuts_in(const struct mt_device *d, const struct mt_entity *e)
{
	const struct mt_entity *c = e->in->serving;

	return mt_streams(d, c) && !c->logs && due(e) && !mt_due_log(d, e->in, e);
}
