// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: tasks that die and are followed by others, such as the programs that a shell starts one
 * after another.
 *
 * Who exits leaves a ghost: where it was, what it has had, how it behaved. A new task that begins
 * nearby is its heir in all of that; one that begins at once somewhere else in what it has had
 * only, so that a chain of tasks gets no fresh credit at each link, and goes behind the others when
 * it has become long. While the disk was the dead one's, it is held for the heir, as long as heirs
 * have taken so far.
 */
#include "core/policy/maitre/internal.h"

#define NEAR_SECTORS 8192u
#define NEAR_NS	     MT_SEC
#define SOON_NS	     (12 * MT_MSEC)
#define SCRIPT_LINKS 8u /* so many tasks one after another are no start of a program */

/* The dead's habits must not be learnt from those that nobody follows for as long as this. */
#define NEVER_NS (MT_SEC)

/* @f's task has exited, and has nothing outstanding. */
void mt_bury(struct mt_device *d, struct mt_flow *f)
{
	struct mt_ghost *g = &d->ghost[d->ghosts++ % MT_GHOSTS];

	if (g->waits)
		mt_learn(&d->estate.habit, NEVER_NS);
	g->waits = true;
	g->died_ns = d->now;
	g->end = f->placed_end;
	g->in = f->e.in;
	g->class = f->e.class;
	g->v = f->e.v;
	g->near = f->e.near;
	g->started_ns = f->e.started_ns;
	g->habit = f->e.habit;
	g->links = f->links;
	if (d->serving != &f->e)
		return;
	d->estate.in = f->e.in;
	d->estate.class = f->e.class;
	d->estate.weight = f->e.weight;
	d->estate.v = f->e.v;
	d->estate.emptied_ns = d->now;
	d->last_ghost = g;
	mt_serve(d, &d->estate);
}

static struct mt_ghost *find(struct mt_device *d, const struct mt_group *in, u64 sector)
{
	struct mt_ghost *g, *near = NULL, *soon = NULL;

	for (g = d->ghost; g < d->ghost + MT_GHOSTS; g++) {
		if (!g->waits || g->in != in)
			continue;
		if (hw_apart(g->end, sector) <= NEAR_SECTORS && d->now - g->died_ns <= NEAR_NS &&
		    (!near || g->died_ns > near->died_ns))
			near = g;
		if (d->now - g->died_ns <= SOON_NS && (!soon || g->died_ns > soon->died_ns))
			soon = g;
	}
	return near ? near : soon;
}

/* @f's first request, at @sector: is it somebody's heir? */
void mt_inherit(struct mt_device *d, struct mt_flow *f, u64 sector)
{
	struct mt_ghost *g = find(d, f->e.in, sector);
	u64 apart;

	if (!g || g->class != f->e.class)
		return;
	apart = hw_apart(g->end, sector);
	g->waits = false;
	mt_learn(&d->estate.habit, d->now - g->died_ns);
	mt_average(&d->estate.near, mt_onward(d, g->end, sector), false);
	f->e.v = g->v;
	f->e.started_ns = g->started_ns;
	f->links = min(g->links + 1, SCRIPT_LINKS + 1);
	/* Credit is for a start, not for a script: it gives back what it has had of that. */
	if (f->links == SCRIPT_LINKS)
		f->e.v = max(f->e.v, f->e.in->floor[f->e.class] + mt_turn(d));
	if (apart <= NEAR_SECTORS) {
		f->e.habit = g->habit;
		f->e.near = f->e.after[false] = f->e.after[true] = max(g->near, 1ull);
	}
	if (d->serving == &d->estate && d->last_ghost == g) {
		f->e.v = max(f->e.v, d->estate.v);
		mt_serve(d, &f->e);
		d->held = &f->e;
	}
}
