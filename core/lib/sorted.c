// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "core/lib/sorted.h"

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

struct hw_request *hw_sorted_former(struct hw_queue *q, struct hw_request *rq)
{
	return hw_sorted_rq(hw_sorted_prev(hw_sorted(rq)));
}

struct hw_request *hw_sorted_latter(struct hw_queue *q, struct hw_request *rq)
{
	return hw_sorted_rq(hw_sorted_next(hw_sorted(rq)));
}

void hw_fifo_inherit(struct hw_sorted_request *keep, struct hw_sorted_request *gone)
{
	if (gone->expires >= keep->expires)
		return;
	keep->expires = gone->expires;
	list_move(&keep->fifo, &gone->fifo);
}
