// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: where the requests of a flow queue. That is the flow itself, or its home for a time: a pool,
 * its company, or what goes beside others (hold.c decides). A home of several has the weight of those in it.
 */
#include "core/policy/maitre/internal.h"

/* What the flow lends the pool, or those whom it keeps company: its weight, while it has requests there. */
void mt_lend(struct mt_flow *f, bool active)
{
	bool lends = active && (f->home->kind == MT_POOL || f->home->kind == MT_COMPANY);

	if (f->lends) {
		f->lends->weight -= f->lent;
		f->lends->shallow -= f->shallow;
	}
	f->lends = lends ? f->home : NULL;
	f->lent = lends ? f->e.weight : 0;
	f->shallow = lends && f->most < MT_DEEP;
	if (lends) {
		f->lends->weight += f->lent;
		f->lends->shallow += f->shallow;
	}
}

/* The flow's requests, which queue elsewhere, go to @home. */
void mt_move(struct mt_device *d, struct mt_flow *f, struct mt_entity *home)
{
	struct mt_request *r, *next;

	/* What it has had with others it has had. */
	if (f->home->kind == MT_COMPANY)
		f->e.v = max(f->e.v, f->home->v);
	f->home = home;
	mt_lend(f, mt_active(f));
	list_for_each_entry_safe(r, next, &f->queue, mine) {
		mt_withdraw(d, r);
		mt_enqueue(d, home, r);
	}
}
