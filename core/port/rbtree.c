// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Red-black trees after Cormen, Leiserson, Rivest and Stein, with the kernel's interface (hosted
 * builds only).
 *
 * A policy may depend on the order only, not on the shape, with one exception: bfq's search for the
 * next queue walks the tree as the kernel's does, which with four queues or more can miss the best
 * one. That this tree takes the same shapes is what the recorded decisions of real kernels check
 * (docs/conformance.md).
 */
#include "core/port.h"

static inline bool is_red(const struct rb_node *n)
{
	return n && n->rb_red;
}

static void replace_child(struct rb_root *root, struct rb_node *parent, struct rb_node *old,
			  struct rb_node *new)
{
	if (!parent)
		root->rb_node = new;
	else if (parent->rb_left == old)
		parent->rb_left = new;
	else
		parent->rb_right = new;
}

static void rotate_left(struct rb_root *root, struct rb_node *n)
{
	struct rb_node *r = n->rb_right;

	n->rb_right = r->rb_left;
	if (r->rb_left)
		r->rb_left->rb_parent = n;
	r->rb_parent = n->rb_parent;
	replace_child(root, n->rb_parent, n, r);
	r->rb_left = n;
	n->rb_parent = r;
}

static void rotate_right(struct rb_root *root, struct rb_node *n)
{
	struct rb_node *l = n->rb_left;

	n->rb_left = l->rb_right;
	if (l->rb_right)
		l->rb_right->rb_parent = n;
	l->rb_parent = n->rb_parent;
	replace_child(root, n->rb_parent, n, l);
	l->rb_right = n;
	n->rb_parent = l;
}

void rb_insert_color(struct rb_node *n, struct rb_root *root)
{
	struct rb_node *parent, *grand, *uncle;

	while (is_red(n->rb_parent)) {
		parent = n->rb_parent;
		grand = parent->rb_parent;
		uncle = grand->rb_left == parent ? grand->rb_right : grand->rb_left;
		if (is_red(uncle)) {
			parent->rb_red = false;
			uncle->rb_red = false;
			grand->rb_red = true;
			n = grand;
			continue;
		}
		if (grand->rb_left == parent) {
			if (parent->rb_right == n) {
				rotate_left(root, parent);
				parent = n;
			}
			rotate_right(root, grand);
		} else {
			if (parent->rb_left == n) {
				rotate_right(root, parent);
				parent = n;
			}
			rotate_left(root, grand);
		}
		parent->rb_red = false;
		grand->rb_red = true;
		break;
	}
	root->rb_node->rb_red = false;
}

/* A black node is missing on the path through @n (which may be NULL) below @parent. */
static void erase_fixup(struct rb_root *root, struct rb_node *n, struct rb_node *parent)
{
	struct rb_node *sib;

	while (parent && !is_red(n)) {
		bool left = parent->rb_left == n;

		sib = left ? parent->rb_right : parent->rb_left;
		if (is_red(sib)) {
			sib->rb_red = false;
			parent->rb_red = true;
			if (left) {
				rotate_left(root, parent);
				sib = parent->rb_right;
			} else {
				rotate_right(root, parent);
				sib = parent->rb_left;
			}
		}
		if (!is_red(sib->rb_left) && !is_red(sib->rb_right)) {
			sib->rb_red = true;
			n = parent;
			parent = n->rb_parent;
			continue;
		}
		if (left) {
			if (!is_red(sib->rb_right)) {
				sib->rb_left->rb_red = false;
				sib->rb_red = true;
				rotate_right(root, sib);
				sib = parent->rb_right;
			}
			sib->rb_right->rb_red = false;
		} else {
			if (!is_red(sib->rb_left)) {
				sib->rb_right->rb_red = false;
				sib->rb_red = true;
				rotate_left(root, sib);
				sib = parent->rb_left;
			}
			sib->rb_left->rb_red = false;
		}
		sib->rb_red = parent->rb_red;
		parent->rb_red = false;
		if (left)
			rotate_left(root, parent);
		else
			rotate_right(root, parent);
		return;
	}
	if (n)
		n->rb_red = false;
}

void rb_erase(struct rb_node *n, struct rb_root *root)
{
	struct rb_node *child, *parent;
	bool black;

	if (n->rb_left && n->rb_right) {
		struct rb_node *next = n->rb_right;

		while (next->rb_left)
			next = next->rb_left;
		child = next->rb_right;
		parent = next->rb_parent;
		black = !next->rb_red;
		if (parent == n) {
			parent = next;
		} else {
			parent->rb_left = child;
			if (child)
				child->rb_parent = parent;
			next->rb_right = n->rb_right;
			n->rb_right->rb_parent = next;
		}
		next->rb_left = n->rb_left;
		n->rb_left->rb_parent = next;
		next->rb_parent = n->rb_parent;
		next->rb_red = n->rb_red;
		replace_child(root, n->rb_parent, n, next);
	} else {
		child = n->rb_left ? n->rb_left : n->rb_right;
		parent = n->rb_parent;
		black = !n->rb_red;
		if (child)
			child->rb_parent = parent;
		replace_child(root, parent, n, child);
	}
	if (black)
		erase_fixup(root, child, parent);
}

struct rb_node *rb_first(const struct rb_root *root)
{
	struct rb_node *n = root->rb_node;

	while (n && n->rb_left)
		n = n->rb_left;
	return n;
}

struct rb_node *rb_last(const struct rb_root *root)
{
	struct rb_node *n = root->rb_node;

	while (n && n->rb_right)
		n = n->rb_right;
	return n;
}

struct rb_node *rb_next(const struct rb_node *n)
{
	if (RB_EMPTY_NODE(n))
		return NULL;
	if (n->rb_right) {
		n = n->rb_right;
		while (n->rb_left)
			n = n->rb_left;
		return (struct rb_node *)n;
	}
	while (n->rb_parent && n == n->rb_parent->rb_right)
		n = n->rb_parent;
	return n->rb_parent;
}

struct rb_node *rb_prev(const struct rb_node *n)
{
	if (RB_EMPTY_NODE(n))
		return NULL;
	if (n->rb_left) {
		n = n->rb_left;
		while (n->rb_right)
			n = n->rb_right;
		return (struct rb_node *)n;
	}
	while (n->rb_parent && n == n->rb_parent->rb_left)
		n = n->rb_parent;
	return n->rb_parent;
}
