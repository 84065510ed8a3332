// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sorted.h"

void hw_sorted_add(struct hw_sorted *t, struct hw_sorted_request *s)
{
	struct rb_node **link = &t->root.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = s->rq.sector < hw_sorted_entry(parent)->rq.sector ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&s->node, parent, link);
	rb_insert_color(&s->node, &t->root);
}

void hw_sorted_del(struct hw_sorted *t, struct hw_sorted_request *s)
{
	rb_erase(&s->node, &t->root);
	RB_CLEAR_NODE(&s->node);
}

struct hw_sorted_request *hw_sorted_at_or_after(const struct hw_sorted *t, u64 sector)
{
	struct rb_node *n = t->root.rb_node;
	struct hw_sorted_request *best = NULL;

	while (n) {
		struct hw_sorted_request *s = hw_sorted_entry(n);

		if (s->rq.sector >= sector) {
			best = s;
			n = n->rb_left;
		} else {
			n = n->rb_right;
		}
	}
	return best;
}

struct hw_sorted_request *hw_sorted_find(const struct hw_sorted *t, u64 sector)
{
	struct hw_sorted_request *s = hw_sorted_at_or_after(t, sector);

	return s && s->rq.sector == sector ? s : NULL;
}

void hw_fifo_inherit(struct hw_sorted_request *keep, struct hw_sorted_request *gone)
{
	if (gone->expires >= keep->expires)
		return;
	keep->expires = gone->expires;
	list_move(&keep->fifo, &gone->fifo);
}
