/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two pools of requests of Linux before blk-mq: one of what somebody waits for, one of the
 * rest. A host has one pool, which write-back could fill; then a reader waits for a request, and a
 * scheduler that would serve it first does not know of it.
 */
#ifndef HW_LIB_POOLS_H
#define HW_LIB_POOLS_H

#include "core/elevator.h"

/* As limit_depth: what nobody waits for has half of the requests. */
static inline u32 hw_pools_limit_depth(struct hw_queue *q, const struct hw_bio *bio)
{
	u32 all = q->dev.nr_requests;

	if (!all || bio->op == HW_READ || bio->flags & HW_RQ_SYNC)
		return U32_MAX;
	return max(all / 2, 1u);
}

#endif
