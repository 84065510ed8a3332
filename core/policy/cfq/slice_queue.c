// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cfq-slice: the queues that have requests, and the requests of a queue.
 *
 * A queue's key is the time at which it joined. What it left of its last slice moves it forward,
 * what it overran back; and the more queues compete, the further back is one whose slice is short.
 * Whoever may preempt goes before the leftmost.
 */
#include "core/policy/cfq/internal.h"

#define CS_SLICE_SCALE 5 /* a priority step is a fifth of the slice */

/* --- the service tree --- */

/* Slice of the class of request and priority, in ticks. */
u64 cs_prio_slice(const struct cs_device *d, bool sync, u8 prio)
{
	s64 base = (s64)d->slice[sync];

	return (u64)(base + base / CS_SLICE_SCALE * (s64)(CS_PRIO_DEFAULT - (s64)prio));
}

static struct cs_queue *tree_entry(struct rb_node *n)
{
	return n ? rb_entry(n, struct cs_queue, node) : NULL;
}

struct cs_queue *cs_tree_first(const struct cs_device *d)
{
	return tree_entry(rb_first(&d->tree));
}

static bool tree_before(const struct cs_queue *a, const struct cs_queue *b)
{
	return a->class != b->class ? a->class < b->class : a->key < b->key;
}

static s64 tree_key(struct cs_device *d, struct cs_queue *c, bool front)
{
	struct cs_queue *other;
	s64 key;

	if (c->class == HW_IOPRIO_IDLE) {
		other = tree_entry(rb_last(&d->tree));
		return (s64)d->idle_class_delay + (other && other != c ? other->key : (s64)d->tick);
	}
	if (front) {
		other = cs_tree_first(d);
		return (other ? other->key : (s64)d->tick) - (s64)d->front;
	}
	key = (s64)d->tick - c->slice_resid;
	key += (s64)(d->busy - 1) *
	       (s64)(cs_prio_slice(d, true, 0) - cs_prio_slice(d, c->sync, c->prio));
	c->slice_resid = 0;
	return key;
}

/* Put a queue with requests in its place, or in its new place. */
void cs_tree_add(struct cs_device *d, struct cs_queue *c, bool front)
{
	struct rb_node **link = &d->tree.rb_node, *parent = NULL;
	s64 key;

	if (RB_EMPTY_NODE(&c->node))
		d->busy++;
	key = tree_key(d, c, front);
	if (!RB_EMPTY_NODE(&c->node))
		rb_erase(&c->node, &d->tree);
	c->key = key;
	while (*link) {
		parent = *link;
		link = tree_before(c, tree_entry(parent)) ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&c->node, parent, link);
	rb_insert_color(&c->node, &d->tree);
}

static void tree_del(struct cs_device *d, struct cs_queue *c)
{
	rb_erase(&c->node, &d->tree);
	RB_CLEAR_NODE(&c->node);
	d->busy--;
}

/* --- a queue's requests --- */

/* Return the better of two requests of a queue: synchronous, then metadata, then by place. */
static struct hw_sorted_request *better(const struct cs_device *d, struct hw_sorted_request *a,
					struct hw_sorted_request *b)
{
	if (!a || !b)
		return a ? a : b;
	if (hw_is_sync(&a->rq) != hw_is_sync(&b->rq))
		return hw_is_sync(&a->rq) ? a : b;
	if ((a->rq.flags ^ b->rq.flags) & HW_RQ_META)
		return a->rq.flags & HW_RQ_META ? a : b;
	return hw_choose_sorted(&d->reach, d->last_position, a, b);
}

static struct hw_sorted_request *neighbour(const struct cs_device *d, const struct cs_queue *c,
					   struct hw_sorted_request *s)
{
	struct hw_sorted_request *above = hw_sorted_next(s), *below = hw_sorted_prev(s);

	if (!above && below)
		above = hw_sorted_first(&c->sort);
	return better(d, above, below);
}

static void set_next(struct cs_device *d, struct cs_queue *c, struct hw_sorted_request *next)
{
	c->next = next;
	cs_near_update(d, c);
}

void cs_queue_del(struct cs_device *d, struct cs_queue *c, struct hw_sorted_request *s)
{
	struct hw_sorted_request *next = c->next == s ? neighbour(d, c, s) : c->next;

	hw_sorted_del(&c->sort, s);
	list_del_init(&s->fifo);
	if (s->rq.flags & HW_RQ_META)
		c->meta_queued--;
	if (!--c->queued)
		tree_del(d, c);
	set_next(d, c, next);
}

/* Before all queues. If the disk is held idle, there is now something that need not wait. */
void cs_put_first(struct cs_device *d, struct hw_sorted_request *s)
{
	list_add(&s->fifo, &d->first);
	hw_wait_end(&d->q, HW_WAIT_OTHER, d->now);
}

/* From its queue towards the device. */
void cs_take(struct cs_device *d, struct hw_sorted_request *s)
{
	struct cs_queue *c = cs_request(s)->queue;

	d->last_position = hw_end(&s->rq);
	d->last_meta = s->rq.flags & HW_RQ_META;
	c->next = s;
	cs_queue_del(d, c, s);
	c->dispatched++;
	if (c->sync)
		d->sync_flight++;
}

void cs_queue_add(struct cs_device *d, struct cs_queue *c, struct hw_sorted_request *s)
{
	struct hw_sorted_request *alias = hw_sorted_find(&c->sort, s->rq.sector);
	bool sync = hw_is_sync(&s->rq);

	/* Two requests of one queue cannot share a place: the older one counts as dispatched. */
	if (alias) {
		cs_take(d, alias);
		hw_forbid_merge(&d->q, &alias->rq);
		cs_put_first(d, alias);
	}
	hw_sorted_add(&c->sort, s);
	hw_fifo_add(&c->fifo, s, d->tick + d->expire[sync]);
	if (s->rq.flags & HW_RQ_META)
		c->meta_queued++;
	if (!c->queued++)
		cs_tree_add(d, c, false);
	set_next(d, c, better(d, c->next, s));
}
