// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Merging: the block layer looks in its cache and hash, the policy after it. All but
 * hwk_bio_merge() are called under hwk_sched.lock.
 */
#include "iosched/requests.h"

static struct hw_bio bio_of(struct hwk_sched *sched, struct bio *bio)
{
	return (struct hw_bio){
		.sector = bio->bi_iter.bi_sector,
		.sectors = bio_sectors(bio),
		.op = hwk_op(bio->bi_opf),
		.flags = hwk_flags(bio->bi_opf) |
			 (bio->bi_opf & REQ_NOMERGE_FLAGS ? HW_RQ_NOMERGE : 0),
		.ioprio = bio->bi_ioprio,
		.cpu = raw_smp_processor_id(),
		.task = sched->merging,
		.group = hwk_group_of(sched, bio),
	};
}

static noinline bool try_merge(struct hwk_sched *sched, struct bio *bio, unsigned int nr_segs)
{
	struct request *gone = NULL;
	struct io_cq *icq = NULL;
	bool merged;

	if (sched->tasks)
		icq = hwk_get_icq(sched->rq_queue);
	spin_lock_irq(&sched->lock);
	sched->merging = hwk_task_of(sched, icq);
	hwk_hash_lone(sched);
	merged = blk_mq_sched_try_merge(sched->rq_queue, bio, nr_segs, &gone);
	hwk_unlock_irq(sched);
	if (icq)
		hwk_put_icq(icq);
	if (gone)
		blk_mq_free_request(gone);
	return merged;
}

bool hwk_bio_merge(struct request_queue *rq_queue, struct bio *bio, unsigned int nr_segs)
{
	struct hwk_sched *sched = hwk_sched_of(rq_queue);

	return READ_ONCE(sched->q->nr_queued) && try_merge(sched, bio, nr_segs);
}

int hwk_request_merge(struct request_queue *rq_queue, struct request **req, struct bio *bio)
{
	struct hwk_sched *sched = hwk_sched_of(rq_queue);
	enum hw_merge how = HW_NO_MERGE;
	struct hw_bio range = bio_of(sched, bio);
	struct hw_request *hwrq;

	if (range.op > HW_WRITE || bio->bi_opf & REQ_NOMERGE_FLAGS)
		return ELEVATOR_NO_MERGE;
	hwrq = hw_find_merge(sched->q, &range, &how);
	if (!hwrq || !hwk_mergeable(hwrq->host) || !elv_bio_merge_ok(hwrq->host, bio))
		return ELEVATOR_NO_MERGE;
	*req = hwrq->host;
	return how == HW_FRONT_MERGE ? ELEVATOR_FRONT_MERGE :
	       how == HW_BACK_MERGE  ? ELEVATOR_BACK_MERGE :
				       ELEVATOR_NO_MERGE;
}

/*
 * The core joins what is in its hash without asking, when an insertion closes the gap: a request
 * that the policy has put aside must not be found there. It would be taken out of the list in which
 * it lies, or another be put into that.
 */
void hwk_unmergeable(struct hw_queue *q, struct hw_request *hwrq)
{
	struct request *rq = hwrq->host;

	hwk_unhash(hwk_sched_of(rq->q), rq);
}

/* A policy may rule out single requests by their flags, after their insertion too. */
bool hwk_allow_merge(struct request_queue *rq_queue, struct request *rq, struct bio *bio)
{
	struct hwk_sched *sched = hwk_sched_of(rq_queue);
	struct hw_request *hwrq = hwk_request_of(rq);
	struct hw_bio range;

	if (!hwrq || hwrq->flags & HW_RQ_NOMERGE)
		return false;
	if (!sched->policy->allow_merge)
		return true;
	range = bio_of(sched, bio);
	return hw_allow_merge(sched->q, hwrq, &range);
}

static void grown(struct hwk_sched *sched, struct request *rq, enum hw_merge how)
{
	struct hw_request *hwrq = hwk_request_of(rq);

	hwk_set_range(hwrq, rq);
	if (!sched->policy->merged)
		return;
	hwk_set_now(sched, ktime_get_ns());
	hw_merged(sched->q, hwrq, how, sched->now);
}

void hwk_request_merged(struct request_queue *rq_queue, struct request *rq, enum elv_merge type)
{
	grown(hwk_sched_of(rq_queue), rq,
	      type == ELEVATOR_FRONT_MERGE ? HW_FRONT_MERGE : HW_BACK_MERGE);
}

/*
 * @gone's range has been added to @keep already. At insertion, @gone is a request that the policy
 * has not seen yet.
 */
void hwk_requests_merged(struct request_queue *rq_queue, struct request *keep, struct request *gone)
{
	struct hwk_sched *sched = hwk_sched_of(rq_queue);
	struct hw_request *hwgone = hwk_request_of(gone);

	if (!hwgone || hwgone->state != HW_QUEUED) {
		grown(sched, keep, HW_BACK_MERGE);
		return;
	}
	hwk_unhash(sched, gone);
	hw_merge_requests(sched->q, hwk_request_of(keep), hwgone);
	hwk_set_range(hwk_request_of(keep), keep);
}

static struct request *neighbour(const struct hw_request *hwrq, const struct hw_request *other)
{
	return other && !((hwrq->flags | other->flags) & HW_RQ_NOMERGE) ? other->host : NULL;
}

struct request *hwk_former_request(struct request_queue *rq_queue, struct request *rq)
{
	struct hwk_sched *sched = hwk_sched_of(rq_queue);
	struct hw_request *hwrq = hwk_request_of(rq);

	return neighbour(hwrq, hw_former(sched->q, hwrq));
}

struct request *hwk_next_request(struct request_queue *rq_queue, struct request *rq)
{
	struct hwk_sched *sched = hwk_sched_of(rq_queue);
	struct hw_request *hwrq = hwk_request_of(rq);

	return neighbour(hwrq, hw_latter(sched->q, hwrq));
}
