/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queues sorted by first sector, and queues in order of arrival with an expiry time: what every
 * elevator needs.
 *
 * A policy that uses them makes struct hw_sorted_request the first member of its request. Requests
 * with the same first sector keep their order of arrival. The unit of `expires` is the policy's
 * (ticks or ns).
 */
#ifndef HW_SORTED_H
#define HW_SORTED_H

#include "core/elevator.h"

struct hw_sorted_request {
	struct hw_request rq;
	struct rb_node node;
	struct list_head fifo;
	u64 expires;
};

struct hw_sorted {
	struct rb_root root;
};

static inline struct hw_sorted_request *hw_sorted(struct hw_request *rq)
{
	return container_of(rq, struct hw_sorted_request, rq);
}

static inline struct hw_sorted_request *hw_sorted_entry(struct rb_node *n)
{
	return n ? rb_entry(n, struct hw_sorted_request, node) : NULL;
}

static inline struct hw_request *hw_sorted_rq(struct hw_sorted_request *s)
{
	return s ? &s->rq : NULL;
}

static inline struct hw_sorted_request *hw_sorted_next(struct hw_sorted_request *s)
{
	return hw_sorted_entry(rb_next(&s->node));
}

static inline struct hw_sorted_request *hw_sorted_prev(struct hw_sorted_request *s)
{
	return hw_sorted_entry(rb_prev(&s->node));
}

/* The operations of the contract, for policies in which a request has no neighbours but in its tree. */
struct hw_request *hw_sorted_former(struct hw_queue *q, struct hw_request *rq);
struct hw_request *hw_sorted_latter(struct hw_queue *q, struct hw_request *rq);

static inline struct hw_sorted_request *hw_sorted_first(const struct hw_sorted *t)
{
	return hw_sorted_entry(rb_first(&t->root));
}

/* Sectors from one place to another. */
static inline u64 hw_apart(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

static inline bool hw_sorted_empty(const struct hw_sorted *t)
{
	return RB_EMPTY_ROOT(&t->root);
}

/* Is @s, which is in @t, all that there is? */
static inline bool hw_sorted_alone(const struct hw_sorted *t, const struct hw_sorted_request *s)
{
	return t->root.rb_node == &s->node && !s->node.rb_left && !s->node.rb_right;
}

static inline void hw_sorted_add(struct hw_sorted *t, struct hw_sorted_request *s)
{
	struct rb_node **link = &t->root.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = s->rq.sector < hw_sorted_entry(parent)->rq.sector ? &parent->rb_left :
									   &parent->rb_right;
	}
	rb_link_node(&s->node, parent, link);
	rb_insert_color(&s->node, &t->root);
}

static inline void hw_sorted_del(struct hw_sorted *t, struct hw_sorted_request *s)
{
	rb_erase(&s->node, &t->root);
	RB_CLEAR_NODE(&s->node);
}

/* @s has grown at its front. */
static inline void hw_sorted_moved(struct hw_sorted *t, struct hw_sorted_request *s)
{
	hw_sorted_del(t, s);
	hw_sorted_add(t, s);
}

/* The lowest request that starts at or after @sector, or NULL. */
struct hw_sorted_request *hw_sorted_at_or_after(const struct hw_sorted *t, u64 sector);

/* The first request (in order of arrival) that starts exactly at @sector, or NULL. */
static inline struct hw_sorted_request *hw_sorted_find(const struct hw_sorted *t, u64 sector)
{
	struct hw_sorted_request *s = hw_sorted_empty(t) ? NULL : hw_sorted_at_or_after(t, sector);

	return s && s->rq.sector == sector ? s : NULL;
}

static inline struct hw_sorted_request *hw_fifo_first(const struct list_head *fifo)
{
	return list_empty(fifo) ? NULL : list_first_entry(fifo, struct hw_sorted_request, fifo);
}

static inline void hw_fifo_add(struct list_head *fifo, struct hw_sorted_request *s, u64 expires)
{
	s->expires = expires;
	list_add_tail(&s->fifo, fifo);
}

/*
 * After a merge of two requests: the survivor takes the earlier deadline, and the place that goes
 * with it.
 */
void hw_fifo_inherit(struct hw_sorted_request *keep, struct hw_sorted_request *gone);

#endif
