// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: write-back, which nobody waits for: all of it is one entity, in the order of a one-way
 * elevator.
 *
 * A drive with a write cache takes it at once and writes later, in the time of others. So it is
 * charged what its bytes take at the rate at which the drive reads in sequence, if that is more
 * than the time that it was seen to take; and little of it is in the device at once.
 *
 * Somebody may wait for it after all. A journal's commit first waits for the data that belong to
 * it, and what the page cache had begun to write is write-back to us: nothing tells the one from
 * the other. So write-back that was there when a write came that is waited for has half of all flows'
 * weight, and a third on a drive of one command, where nothing of what it takes is put off.
 * It may not be there yet: whoever writes back has the blocks of some MiB allocated, and then finds no
 * free request for them. The commit waits for him. So from the end of a program's write to the next
 * one, all write-back has that weight, where that next one has mostly been a journal's. And he waits
 * for a round of turns of all others each time that he has had his share: so on such a drive it goes
 * first at the end of each turn in which it has had less than it would have had by then, were all
 * served at once (logs.c).
 * That there is never much of it is seen to when it asks for a request: little is queued while
 * others are there, so that they find requests, and a commit has little to wait for.
 */
#include "core/policy/maitre/internal.h"

#define IN_DEVICE_NS   (30 * MT_MSEC)
#define IN_DEVICE_NEAR 8u
#define IN_DEVICE_FAR  4u
#define NEAR_SECTORS   2048u
#define BACKLOG_NS     (70 * MT_MSEC) /* of write-back that is queued beside others */
#define COMMIT_NS      (2 * MT_SEC)   /* that a commit may take */
#define JOURNALS_SHIFT 3	      /* how soon it is believed that no journal writes */
#define ASYNC_SHARE    2u	      /* of the requests that there may be, one in so many */
#define BESIDE_SHARE   4u	      /* the same beside others */
#define BACKLOG_SHARE  16u	      /* and where the backlog is there */
#define LEAST_REQUESTS 4u

/* May @async's next request go to the device now? One always may. */
bool mt_async_may(const struct mt_device *d, const struct mt_entity *async)
{
	const struct hw_sorted_request *s;
	u32 most = IN_DEVICE_NEAR;

	if (!async->flying)
		return true;
	s = mt_upwards(d, async);
	if (hw_apart(s->rq.sector, async->end) > NEAR_SECTORS)
		most = IN_DEVICE_FAR;
	return async->flying < most && mt_stream_ns(d, d->async_sectors) < IN_DEVICE_NS;
}

/* @rq has come, a write: if it is waited for, a journal that was at its commit is past the data. */
void mt_sync_asked(struct mt_device *d, const struct hw_request *rq)
{
	if (!(rq->flags & HW_RQ_SYNC))
		return;
	if (d->commit_ns)
		mt_share_seen(&d->journals, rq->flags & HW_RQ_META, JOURNALS_SHIFT);
	d->commit_ns = 0;
}

/*
 * @r is done, a write that is waited for. If it is no journal's, the journal's commit may begin now, and
 * its next write comes when all data are written that belong to the commit.
 */
void mt_sync_wrote(struct mt_device *d, const struct mt_request *r)
{
	if ((r->s.rq.flags & (HW_RQ_SYNC | HW_RQ_META)) == HW_RQ_SYNC)
		d->commit_ns = d->now;
}

/* Is a journal likely to be at its commit? Those who write past the page cache need none. */
bool mt_commits(const struct mt_device *d)
{
	return d->commit_ns && d->now - d->commit_ns < COMMIT_NS && d->journals > U16_MAX / 2;
}

/*
 * Was some of @async there already when a write came that is waited for, or is a journal at its commit?
 * That waits for what has been allocated, also where it is yet to come.
 */
bool mt_awaited(const struct mt_device *d, const struct mt_entity *async)
{
	if (!async->queued)
		return false;
	if (mt_commits(d))
		return true;
	return d->committed_ns && hw_fifo_first(&async->fifo)->expires <= d->committed_ns;
}

/* How many of the requests that there may be may be taken when one like @bio is made. */
u32 mt_limit_depth(struct hw_queue *q, const struct hw_bio *bio)
{
	const struct mt_device *d = mt_device(q);
	u32 all = q->dev.nr_requests, share = ASYNC_SHARE;
	u64 backlog = d->async_mean * d->writes;

	if (bio->op == HW_READ || !all)
		return U32_MAX;
	if (bio->flags & HW_RQ_SYNC)
		return max(all - all / 4, LEAST_REQUESTS);
	if (d->flows)
		share = mt_stream_ns(d, backlog) < BACKLOG_NS ? BESIDE_SHARE : BACKLOG_SHARE;
	return max(all / share, LEAST_REQUESTS);
}
