// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: logs beside others. A log writes little at a time, right after what it wrote before, and
 * somebody waits for each write.
 *
 * In turns it would have its share at once, and then wait for as long as the others' turns take. So
 * it has that share bit by bit: it is due when it has had less than each would have had by now, were
 * all served at the same time. Somebody may be there who has had less still, as one of two streams
 * that take turns always has. Write-back that a journal's commit waits for has its share so, too.
 */
#include "core/policy/maitre/internal.h"

#define LATELY MT_SEC

/* @f, which waits for it, has written something. What is nobody's is of a group, that may go away. */
void mt_log_wrote(struct mt_device *d, struct mt_flow *f)
{
	struct mt_flow *log = f->task ? f : NULL;

	if (d->log != log)
		d->log_since_ns = d->now;
	d->log = log;
	d->committed_ns = d->now;
}

/*
 * The log, if for a while it has been the only one who waits for writes; else NULL. A commit of a file
 * system is of several: of who calls fsync, of others who do so meanwhile, and of the journal. What
 * serves each of them sooner makes more commits of one, and all of them wait longer.
 */
static struct mt_entity *lone_log(const struct mt_device *d)
{
	struct mt_flow *f = d->log;

	if (!f || !f->e.logs || d->now - d->log_since_ns < LATELY ||
	    d->now - d->committed_ns >= LATELY)
		return NULL;
	return &f->e;
}

/*
 * @c was served for @ns: each would have had its part of that, and write-back by its weight; 0: no
 * commit waits for it.
 */
void mt_share_on(const struct mt_device *d, const struct mt_entity *c, u64 ns, u32 async_weight)
{
	struct mt_group *g = c->in;
	u64 least = g->floor[MT_BEST_EFFORT];
	u64 weight = (u64)max(g->flows, 1u) * MT_WEIGHT;

	if (c->class != MT_BEST_EFFORT || (!async_weight && !lone_log(d)))
		return;
	ns = div64_u64(ns * MT_WEIGHT, weight + async_weight);
	g->even_v = clamp_t(u64, g->even_v + ns, least, least + d->longest_turn);
}

/*
 * Write-back in @g that a journal's commit waits for, if it has had less than it would have had by now,
 * were all served at once; else NULL. A drive that takes several commands puts writes off, into the
 * time of whoever comes next: the more often it changes between them, the less is done.
 */
struct mt_entity *mt_commits_next(const struct mt_device *d, const struct mt_group *g)
{
	struct mt_entity *e = (struct mt_entity *)&g->async[MT_BEST_EFFORT];

	if (d->q.dev.depth > 1 || !mt_commits(d) || !e->listed || e->v >= g->even_v ||
	    mt_least(g)->class != e->class)
		return NULL;
	return e;
}

/*
 * The log in @g if it may cut in on the stream that is served; else NULL. Not before a higher class, and
 * not where there is write-back: a commit may wait for that, too, and then gains nothing.
 */
struct mt_entity *mt_cuts_in(const struct mt_device *d, const struct mt_group *g)
{
	struct mt_entity *e = lone_log(d);

	if (!e || e->in != g || !e->listed || e->class != MT_BEST_EFFORT || e->v >= g->even_v)
		return NULL;
	if (mt_least(g)->class != e->class)
		return NULL;
	return !g->writes && g->serving && mt_streams(d, g->serving) ? e : NULL;
}
