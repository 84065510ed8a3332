/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Merging as the kernel's block layer does it, for hosts that have no block layer.
 *
 * Look-up order for a new range: the request last merged into (back, then front); the queued
 * request that ends where the range begins (hash); the policy's own look-up (front merges, by
 * sector). A request that has grown is then joined with the neighbour that the policy names, if
 * they now touch.
 */
#ifndef HW_MERGE_H
#define HW_MERGE_H

#include "core/elevator.h"

#define HW_MERGE_OWN_BITS 6u

struct hw_merger {
	struct hw_request *last;
	struct hw_request **bucket; /* 1 << bits lists, the newest request first */
	u32 bits;
	u64 hashed; /* requests in them */
	struct hw_request *own[1u << HW_MERGE_OWN_BITS];
	u32 max_sectors; /* of one request; 0 = merging is off */
};

struct hw_merge_result {
	struct hw_request *into; /* NULL: no merge */
	enum hw_merge how;
	/* a request that was joined to `into` besides: the host frees it */
	struct hw_request *gone;
};

/* @m may not be moved afterwards. */
void hw_merge_init(struct hw_merger *m, u32 max_sectors);
/*
 * Would look-ups be faster with more buckets? Then a host that has memory gives it, by
 * hw_merge_rehash().
 */
bool hw_merge_is_crowded(const struct hw_merger *m);
/*
 * From now on the 1 << @bits buckets at @bucket are used, and the ones before no longer. What is
 * found stays the same.
 */
void hw_merge_rehash(struct hw_merger *m, struct hw_request **bucket, u32 bits);
/* Try to add @bio's range to a queued request. */
struct hw_merge_result hw_merge_try(struct hw_merger *m, struct hw_queue *q,
				    const struct hw_bio *bio, u64 now);
/*
 * Before hw_insert(): what blk-mq does in blk_mq_sched_try_insert_merge(). The queued request that
 * ends where @bio begins takes it, and the policy is not asked: the two may be of different tasks.
 * NULL: none does.
 */
struct hw_request *hw_merge_arriving(struct hw_merger *m, struct hw_queue *q,
				     const struct hw_bio *bio, u64 now);
/*
 * Then again and again: *@rq may go to the one that ends where it begins, which it then is. What to
 * free, or NULL.
 */
struct hw_request *hw_merge_onwards(struct hw_merger *m, struct hw_queue *q,
				    struct hw_request **rq);
/* Call after hw_insert(), and after hw_dispatch() returned @rq. */
void hw_merge_inserted(struct hw_merger *m, struct hw_queue *q, struct hw_request *rq);
void hw_merge_removed(struct hw_merger *m, struct hw_request *rq);

#endif
