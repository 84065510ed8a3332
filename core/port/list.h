/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Circular doubly linked lists under the kernel's names (hosted builds only). */
#ifndef HW_PORT_LIST_H
#define HW_PORT_LIST_H

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *h)
{
	h->next = h;
	h->prev = h;
}

static inline void hw_list_link(struct list_head *n, struct list_head *prev, struct list_head *next)
{
	next->prev = n;
	n->next = next;
	n->prev = prev;
	prev->next = n;
}

static inline void list_add(struct list_head *n, struct list_head *h)
{
	hw_list_link(n, h, h->next);
}
static inline void list_add_tail(struct list_head *n, struct list_head *h)
{
	hw_list_link(n, h->prev, h);
}

static inline void list_del(struct list_head *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	n->next = NULL;
	n->prev = NULL;
}

static inline void list_del_init(struct list_head *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	INIT_LIST_HEAD(n);
}

static inline void list_move(struct list_head *n, struct list_head *h)
{
	list_del(n);
	list_add(n, h);
}

static inline void list_move_tail(struct list_head *n, struct list_head *h)
{
	list_del(n);
	list_add_tail(n, h);
}

static inline bool list_empty(const struct list_head *h)
{
	return h->next == h;
}
static inline bool list_is_last(const struct list_head *n, const struct list_head *h)
{
	return n->next == h;
}
static inline bool list_is_singular(const struct list_head *h)
{
	return !list_empty(h) && h->next == h->prev;
}

static inline void list_splice_tail_init(struct list_head *from, struct list_head *h)
{
	if (list_empty(from))
		return;
	from->next->prev = h->prev;
	h->prev->next = from->next;
	from->prev->next = h;
	h->prev = from->prev;
	INIT_LIST_HEAD(from);
}

#define list_entry(ptr, type, member)	  container_of(ptr, type, member)
#define list_first_entry(h, type, member) list_entry((h)->next, type, member)
#define list_last_entry(h, type, member)  list_entry((h)->prev, type, member)
#define list_next_entry(pos, member)	  list_entry((pos)->member.next, __typeof__(*(pos)), member)
#define list_prev_entry(pos, member)	  list_entry((pos)->member.prev, __typeof__(*(pos)), member)
#define list_for_each_entry(pos, h, member)                                            \
	for (pos = list_first_entry(h, __typeof__(*pos), member); &pos->member != (h); \
	     pos = list_next_entry(pos, member))
#define list_for_each_entry_reverse(pos, h, member)                                   \
	for (pos = list_last_entry(h, __typeof__(*pos), member); &pos->member != (h); \
	     pos = list_prev_entry(pos, member))
#define list_for_each_entry_safe(pos, n, h, member)               \
	for (pos = list_first_entry(h, __typeof__(*pos), member), \
	    n = list_next_entry(pos, member);                     \
	     &pos->member != (h); pos = n, n = list_next_entry(n, member))

#endif
