/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Software queues: one FIFO for each CPU, as blk-mq keeps them in front of a device.
 *
 * A policy that uses them makes struct hw_soft_request the first member of its request. CPU n
 * queues on list n mod HW_SOFT_CPUS, so on larger machines some CPUs share a list.
 */
#ifndef HW_LIB_SOFTQ_H
#define HW_LIB_SOFTQ_H

#include "core/elevator.h"

#define HW_SOFT_CPUS	   64u
#define HW_SOFT_MERGE_SCAN 8u /* a bio is compared with so many of its CPU's newest requests */

struct hw_soft_request {
	struct hw_request rq;
	struct list_head link;
};

struct hw_softq {
	struct list_head cpu[HW_SOFT_CPUS];
	u64 busy; /* bit n: list n is not empty */
};

static inline struct hw_soft_request *hw_soft(struct hw_request *rq)
{
	return container_of(rq, struct hw_soft_request, rq);
}

static inline bool hw_softq_empty(const struct hw_softq *s)
{
	return !s->busy;
}

static inline struct hw_request *hw_soft_pop(struct list_head *list)
{
	struct hw_soft_request *first;

	if (list_empty(list))
		return NULL;
	first = list_first_entry(list, struct hw_soft_request, link);
	list_del_init(&first->link);
	return &first->rq;
}

void hw_softq_init(struct hw_softq *s);
void hw_softq_add(struct hw_softq *s, struct hw_request *rq, bool at_head);
/* Moves everything to the end of @to, lowest CPU first. */
void hw_softq_flush(struct hw_softq *s, struct list_head *to);
/*
 * Takes the oldest request of the first busy CPU at or after *@cpu, going round; *@cpu becomes the
 * one after it.
 */
struct hw_request *hw_softq_take_turn(struct hw_softq *s, u32 *cpu);
/*
 * The newest of the last HW_SOFT_MERGE_SCAN requests of @bio's CPU that @bio touches and may join,
 * or NULL.
 */
struct hw_request *hw_softq_find_merge(const struct hw_softq *s, const struct hw_bio *bio,
				       enum hw_merge *how);

#endif
