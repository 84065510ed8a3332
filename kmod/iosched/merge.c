// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Merging: the core looks in its cache and hash, the policy after it. Called by the core under the
 * disk's lock.
 */
#include "iosched/requests.h"

static struct hw_bio hw_bio_of(struct hw_disk *disk, struct bio *bio)
{
	return (struct hw_bio){
		.sector = bio->bi_iter.bi_sector,
		.sectors = bio_sectors(bio),
		.op = hw_op(bio->bi_opf),
		.flags = hw_flags(bio->bi_opf) |
			 (bio->bi_opf & REQ_NOMERGE_FLAGS ? HW_RQ_NOMERGE : 0),
		.ioprio = bio->bi_ioprio,
		.cpu = raw_smp_processor_id(),
		.task = disk->merging,
	};
}

static noinline bool hw_try_merge(struct hw_disk *disk, struct bio *bio, unsigned int nr_segs)
{
	struct request *gone = NULL;
	struct io_cq *icq = NULL;
	bool merged;

	if (disk->tasks)
		icq = hw_get_icq(disk->rq_queue);
	spin_lock_irq(&disk->lock);
	disk->merging = icq && hw_icq(icq)->task ? hw_icq(icq)->task : disk->anyone;
	hw_hash_lone(disk);
	merged = blk_mq_sched_try_merge(disk->rq_queue, bio, nr_segs, &gone);
	hw_unlock_irq(disk);
	if (icq)
		hw_put_icq(icq);
	if (gone)
		blk_mq_free_request(gone);
	return merged;
}

bool hw_bio_merge(struct request_queue *rq_queue, struct bio *bio, unsigned int nr_segs)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);

	return READ_ONCE(disk->q->nr_queued) && hw_try_merge(disk, bio, nr_segs);
}

int hw_request_merge(struct request_queue *rq_queue, struct request **req, struct bio *bio)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);
	enum hw_merge how = HW_NO_MERGE;
	struct hw_bio range = hw_bio_of(disk, bio);
	struct hw_request *hwrq;

	if (range.op > HW_WRITE || bio->bi_opf & REQ_NOMERGE_FLAGS)
		return ELEVATOR_NO_MERGE;
	hwrq = disk->policy->find_merge(disk->q, &range, &how);
	if (!hwrq || !hw_mergeable(hwrq->host) || !elv_bio_merge_ok(hwrq->host, bio))
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
void hw_unmergeable(struct hw_queue *q, struct hw_request *hwrq)
{
	struct request *rq = hwrq->host;

	hw_unhash(hw_disk_of(rq->q), rq);
}

/* A policy may rule out single requests by their flags, after their insertion too. */
bool hw_allow_merge(struct request_queue *rq_queue, struct request *rq, struct bio *bio)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);
	struct hw_request *hwrq = hw_request_of(rq);
	struct hw_bio range;

	if (!hwrq || hwrq->flags & HW_RQ_NOMERGE)
		return false;
	if (!disk->policy->allow_merge)
		return true;
	range = hw_bio_of(disk, bio);
	return disk->policy->allow_merge(disk->q, hwrq, &range);
}

static void hw_grown(struct hw_disk *disk, struct request *rq, enum hw_merge how)
{
	struct hw_request *hwrq = hw_request_of(rq);

	hw_set_range(hwrq, rq);
	if (!disk->policy->merged)
		return;
	hw_set_now(disk, ktime_get_ns());
	disk->policy->merged(disk->q, hwrq, how, disk->now);
}

void hw_request_merged(struct request_queue *rq_queue, struct request *rq, enum elv_merge type)
{
	hw_grown(hw_disk_of(rq_queue), rq,
		 type == ELEVATOR_FRONT_MERGE ? HW_FRONT_MERGE : HW_BACK_MERGE);
}

/*
 * @gone's range has been added to @keep already. At insertion, @gone is a request that the policy
 * has not seen yet.
 */
void hw_requests_merged(struct request_queue *rq_queue, struct request *keep, struct request *gone)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);
	struct hw_request *hwgone = hw_request_of(gone);

	if (!hwgone || hwgone->state != HW_QUEUED) {
		hw_grown(disk, keep, HW_BACK_MERGE);
		return;
	}
	hw_unhash(disk, gone);
	hw_merge_requests(disk->q, hw_request_of(keep), hwgone);
	hw_set_range(hw_request_of(keep), keep);
}

static struct request *hw_neighbour(const struct hw_request *hwrq, const struct hw_request *other)
{
	return other && !((hwrq->flags | other->flags) & HW_RQ_NOMERGE) ? other->host : NULL;
}

struct request *hw_former_request(struct request_queue *rq_queue, struct request *rq)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);
	struct hw_request *hwrq = hw_request_of(rq);

	return hw_neighbour(hwrq, disk->policy->former(disk->q, hwrq));
}

struct request *hw_next_request(struct request_queue *rq_queue, struct request *rq)
{
	struct hw_disk *disk = hw_disk_of(rq_queue);
	struct hw_request *hwrq = hw_request_of(rq);

	return hw_neighbour(hwrq, disk->policy->latter(disk->q, hwrq));
}
