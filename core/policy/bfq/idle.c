// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Is it worth keeping the disk idle for a queue?
 *
 * For one of two reasons: more is served in all if the disk waits for the request next to the last
 * one, or other queues would else take what is this queue's due. The latter needs no wait in a
 * symmetric scenario, where all queues are to get the same. These are questions only: nothing here
 * changes a queue, and the slot (slot.c) acts on the answers.
 */
#include "core/policy/bfq/internal.h"

#define CROWD 4u /* requests of others in the drive that threaten a raised queue */

/* Must some queue get more than another? False also if @bq is among those that must get least. */
bool bfq_asymmetric(const struct bfq *b, const struct bfq_queue *bq)
{
	u32 i, kinds = 0, lowest = 0;

	if (!!b->nr_busy[0] + !!b->nr_busy[1] + !!b->nr_busy[2] > 1)
		return true;
	for (i = BFQ_NR_LEVELS; i > 0; i--) {
		if (b->weights[i]) {
			lowest = i;
			kinds++;
		}
	}
	return kinds > 1 && !(bq && bq->weight_slot == lowest);
}

/* Does the disk do more work if it waits? Not at the expense of raised queues. */
bool bfq_idling_boosts(const struct bfq *b, const struct bfq_queue *bq)
{
	bool rotational = b->q.dev.rotational;
	bool greedy = !bfq_seeky(bq) && bq->io_bound && bq->short_think;

	if (!bq->users || b->nr_busy_raised)
		return false;
	if (rotational && !b->hw_queueing)
		return true;
	return (rotational || !b->hw_queueing) && greedy;
}

bool bfq_idling_guarantees(const struct bfq *b, const struct bfq_queue *bq)
{
	u32 busy = bfq_nr_busy(b);

	if (!bq->users)
		return false;
	return (bfq_raised(bq) &&
		(b->nr_busy_raised < busy || b->in_driver >= bq->dispatched + CROWD)) ||
	       bfq_asymmetric(b, bq) || busy == 1;
}

bool bfq_better_to_idle(const struct bfq *b, const struct bfq_queue *bq)
{
	if (!bq->users || b->q.force)
		return false;
	if (b->strict_guarantees)
		return true;
	if (!b->slice_idle_ns || !bq->sync || bfq_idle_class(bq))
		return false;
	return bfq_idling_boosts(b, bq) || bfq_idling_guarantees(b, bq);
}
