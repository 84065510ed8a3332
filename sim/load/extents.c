// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sets of pages on the drive, as extents that do not overlap. */
#include "sim/load/internal.h"

struct sim_extent *sim_extent_at_or_after(const struct sim_extents *x, u64 page)
{
	struct rb_node *n = x->root.rb_node;
	struct sim_extent *best = NULL;

	while (n) {
		struct sim_extent *e = rb_entry(n, struct sim_extent, node);

		if (e->end > page) {
			best = e;
			n = n->rb_left;
		} else {
			n = n->rb_right;
		}
	}
	return best;
}

struct sim_extent *sim_extent_next(struct sim_extent *e)
{
	struct rb_node *n = rb_next(&e->node);

	return n ? rb_entry(n, struct sim_extent, node) : NULL;
}

void sim_extent_remove(struct sim_extents *x, struct sim_extent *e)
{
	rb_erase(&e->node, &x->root);
	e->free_next = x->free;
	x->free = e;
}

struct sim_extent *sim_extent_insert(struct hws *s, struct sim_extents *x, u64 first, u64 end)
{
	struct rb_node **link = &x->root.rb_node, *parent = NULL;
	struct sim_extent *e = x->free;

	if (e)
		x->free = e->free_next;
	else
		e = sim_alloc(s, sizeof(*e));
	e->first = first;
	e->end = end;
	while (*link) {
		parent = *link;
		link = &parent->rb_right;
		if (first < rb_entry(parent, struct sim_extent, node)->first)
			link = &parent->rb_left;
	}
	rb_link_node(&e->node, parent, link);
	rb_insert_color(&e->node, &x->root);
	return e;
}
