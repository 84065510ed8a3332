/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Trees in which every node sums up what hangs below it (the least start, the oldest request), on
 * plain red-black trees: after a change the sums are restored from the lowest node that it can have
 * touched up to the root, siblings included, for a rotation moves them as well.
 */
#ifndef HW_LIB_HEAL_H
#define HW_LIB_HEAL_H

#include "core/port.h"

/*
 * @sum_up sets a node's sum from its own value and its children's sums. @n may be NULL: nothing is
 * left.
 */
static __always_inline void hw_heal(struct rb_node *n, void (*sum_up)(struct rb_node *n))
{
	struct rb_node *parent, *sibling;

	for (; n; n = parent) {
		sum_up(n);
		parent = rb_parent(n);
		if (!parent)
			return;
		sibling = parent->rb_left == n ? parent->rb_right : parent->rb_left;
		if (sibling)
			sum_up(sibling);
	}
}

/* Where to begin once @n has been put in. */
static inline struct rb_node *hw_heal_inserted(struct rb_node *n)
{
	if (n->rb_left)
		return n->rb_left;
	return n->rb_right ? n->rb_right : n;
}

/* Where to begin once @n has been taken out; to be asked before. */
static inline struct rb_node *hw_heal_erased(struct rb_node *n)
{
	struct rb_node *heir;

	if (!n->rb_left && !n->rb_right)
		return rb_parent(n);
	if (!n->rb_right)
		return n->rb_left;
	if (!n->rb_left)
		return n->rb_right;
	heir = rb_next(n);
	if (heir->rb_right)
		return heir->rb_right;
	return rb_parent(heir) == n ? heir : rb_parent(heir);
}

#endif
