/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Balanced trees under the kernel's names (hosted builds only; bodies in rbtree.c). */
#ifndef HW_PORT_RBTREE_H
#define HW_PORT_RBTREE_H

struct rb_node {
	struct rb_node *rb_parent;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
	bool rb_red;
};

struct rb_root {
	struct rb_node *rb_node;
};

#define RB_ROOT			    ((struct rb_root){ NULL })
#define rb_entry(ptr, type, member) container_of(ptr, type, member)
#define rb_entry_safe(ptr, type, member)                \
	({                                              \
		__typeof__(ptr) p_ = (ptr);             \
		p_ ? rb_entry(p_, type, member) : NULL; \
	})
#define rb_parent(n)	    ((n)->rb_parent)
#define RB_EMPTY_ROOT(root) ((root)->rb_node == NULL)
/* As in the kernel, a node that is in no tree is its own parent. */
#define RB_EMPTY_NODE(n)    ((n)->rb_parent == (n))
#define RB_CLEAR_NODE(n)    ((n)->rb_parent = (n))

static inline void rb_link_node(struct rb_node *n, struct rb_node *parent, struct rb_node **link)
{
	n->rb_parent = parent;
	n->rb_left = NULL;
	n->rb_right = NULL;
	n->rb_red = true;
	*link = n;
}

void rb_insert_color(struct rb_node *n, struct rb_root *root);
void rb_erase(struct rb_node *n, struct rb_root *root);
struct rb_node *rb_next(const struct rb_node *n);
struct rb_node *rb_prev(const struct rb_node *n);
struct rb_node *rb_first(const struct rb_root *root);
struct rb_node *rb_last(const struct rb_root *root);

#endif
