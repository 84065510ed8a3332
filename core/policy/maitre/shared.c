// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: what it does alike where a head moves and where nothing does. Requests that go before all
 * others; tasks that go to another group, or for good.
 */
#include "core/policy/maitre/internal.h"

void mt_put_first(struct mt_device *d, struct mt_request *r)
{
	r->home = NULL;
	RB_CLEAR_NODE(&r->s.node);
	hw_forbid_merge(&d->q, &r->s.rq);
	list_add(&r->s.fifo, &d->first);
}

/* The host's wish, or what came back; NULL: there is none. */
struct mt_request *mt_pop_first(struct mt_device *d)
{
	struct hw_sorted_request *s = hw_fifo_first(&d->first);

	if (!s)
		return NULL;
	hw_wait_end(&d->q, HW_WAIT_OTHER, d->now);
	hw_because(&d->q, HW_FIRST);
	list_del_init(&s->fifo);
	return mt_request(s);
}

/* The task has been moved, or works for somebody else: it has had nothing there yet. */
void mt_join(struct mt_device *d, struct mt_flow *f, struct mt_group *g)
{
	struct mt_group *old = f->e.in;

	if (d->serving == &f->e) {
		hw_wait_end(&d->q, HW_WAIT_OTHER, d->now);
		mt_serve(d, NULL);
	}
	if (old->starter == &f->e)
		old->starter = NULL;
	f->e.in = g;
	f->e.v = 0;
	if (f->home != &f->e)
		f->home = &g->pool[f->e.class];
	if (g != &d->root)
		hw_group_get(&g->group);
	if (old != &d->root)
		hw_group_put(&d->q, &old->group);
}

/* A task's memory may go away with its last request: nobody is served there any longer. */
void mt_retire(struct mt_device *d, struct mt_flow *f)
{
	if (!f->task || !f->task->exited || mt_active(f))
		return;
	if (d->serving == &f->e) {
		hw_wait_end(&d->q, HW_WAIT_OTHER, d->now);
		d->because = HW_QUEUE_EMPTY;
	}
	if (f->e.in->starter == &f->e)
		f->e.in->starter = NULL;
	d->ops->gone(d, f);
	if (f->e.in != &d->root)
		mt_join(d, f, &d->root);
}
