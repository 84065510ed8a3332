/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The block layer's requests as ours: what the files of the glue do with them. */
#ifndef HWK_IOSCHED_REQUESTS_H
#define HWK_IOSCHED_REQUESTS_H

#include "iosched/internal.h"

/* Per hardware queue: the requests' private areas, by scheduler tag. */
struct hwk_areas {
	u32 nr, stride;
	u32 clear; /* bytes of the policy's own after struct hw_request, a multiple of HWK_PIECE */
	u8 *area;
};

/* Areas are cleared in such pieces, in line: cheaper than a call. */
#define HWK_PIECE 32

static __always_inline void hwk_clear(void *area, u32 bytes)
{
	u64 *at = area, *end = area + bytes;

	for (; at != end; at += HWK_PIECE / sizeof(*at)) {
		at[0] = 0;
		at[1] = 0;
		at[2] = 0;
		at[3] = 0;
	}
}

static inline struct hw_request *hwk_request_of(struct request *rq)
{
	return rq->rq_flags & HWK_RQF_PREPARED ? rq->elv.priv[0] : NULL;
}

static inline u8 hwk_op(blk_opf_t opf)
{
	BUILD_BUG_ON((int)HW_READ != (int)REQ_OP_READ || (int)HW_WRITE != (int)REQ_OP_WRITE);
	switch (opf & REQ_OP_MASK) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
		return opf & REQ_OP_MASK;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return HW_DISCARD;
	default:
		return HW_OTHER;
	}
}

static inline u8 hwk_flags(blk_opf_t opf)
{
	return (op_is_sync(opf) ? HW_RQ_SYNC : 0) | (opf & REQ_META ? HW_RQ_META : 0) |
	       (opf & REQ_PRIO ? HW_RQ_PRIO : 0);
}

/* Reads and writes, unless their flags forbid it. */
static inline bool hwk_may_merge(const struct request *rq)
{
	return !(rq->cmd_flags & REQ_NOMERGE_FLAGS) && !(rq->rq_flags & RQF_NOMERGE_FLAGS);
}

static inline bool hwk_mergeable(const struct request *rq)
{
	return hwk_op(rq->cmd_flags) <= HW_WRITE && hwk_may_merge(rq);
}

static inline void hwk_set_range(struct hw_request *hwrq, const struct request *rq)
{
	hwrq->sector = blk_rq_pos(rq);
	hwrq->sectors = blk_rq_sectors(rq);
}

static inline struct hwk_icq *hwk_icq(struct io_cq *icq)
{
	return container_of(icq, struct hwk_icq, icq);
}

/* Whose requests those of a process with @icq are; NULL where it has none. */
static __always_inline struct hw_task *hwk_task_of(struct hwk_sched *sched, struct io_cq *icq)
{
	return likely(icq && hwk_icq(icq)->task) ? hwk_icq(icq)->task : sched->anyone;
}

/*
 * With a reference on its io_context. The hint is the icq that the process used last; its owner
 * being here, and the queue not frozen, it cannot go away.
 */
static inline struct io_cq *hwk_get_icq(struct request_queue *rq_queue)
{
	struct io_context *ioc = current->io_context;
	struct io_cq *icq;

	if (likely(ioc)) {
		rcu_read_lock_sched(); /* in line, unlike rcu_read_lock() */
		icq = rcu_dereference_sched(ioc->icq_hint);
		if (likely(icq && icq->q == rq_queue)) {
			rcu_read_unlock_sched();
			atomic_long_inc(&ioc->refcount);
			return icq;
		}
		rcu_read_unlock_sched();
	}
	return ioc_find_get_icq(rq_queue);
}

/* The last reference is the core's to drop. */
static inline void hwk_put_icq(struct io_cq *icq)
{
	struct io_context *ioc = icq->ioc;

	if (unlikely(!atomic_long_add_unless(&ioc->refcount, -1, 1)))
		put_io_context(ioc);
}

static inline void hwk_unhash(struct hwk_sched *sched, struct request *rq)
{
	if (sched->lone == rq)
		sched->lone = NULL;
	else
		elv_rqhash_del(sched->rq_queue, rq);
	if (sched->rq_queue->last_merge == rq)
		sched->rq_queue->last_merge = NULL;
}

/*
 * Requests that others may merge with are hashed by where they end. The latest one only when there
 * is somebody who might: on a fast device most are gone by then.
 */
static inline void hwk_hash_lone(struct hwk_sched *sched)
{
	if (sched->lone)
		elv_rqhash_add(sched->rq_queue, sched->lone);
	sched->lone = NULL;
}

#endif
