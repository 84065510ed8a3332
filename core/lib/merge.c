// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "core/lib/merge.h"

/*
 * Requests that may merge have these in common. Consecutive ones differ in the bits above 8
 * sectors: those are spread.
 */
static struct hw_request **bucket_of(const struct hw_merger *m, u64 end, u8 op, u16 ioprio)
{
	u64 key = (end >> 3) + ((u64)op << 60) + ((u64)ioprio << 44);

	return &m->bucket[key * 0x9e3779b97f4a7c15ull >> (64 - m->bits)];
}

static void hash_add(struct hw_merger *m, struct hw_request *rq)
{
	struct hw_request **head = bucket_of(m, hw_end(rq), rq->op, rq->ioprio);

	rq->hash_next = *head;
	if (*head)
		(*head)->hash_pprev = &rq->hash_next;
	rq->hash_pprev = head;
	*head = rq;
	m->hashed++;
}

static void hash_del(struct hw_merger *m, struct hw_request *rq)
{
	if (!rq->hash_pprev)
		return;
	*rq->hash_pprev = rq->hash_next;
	if (rq->hash_next)
		rq->hash_next->hash_pprev = rq->hash_pprev;
	rq->hash_pprev = NULL;
	m->hashed--;
}

void hw_merge_init(struct hw_merger *m, u32 max_sectors)
{
	memset(m, 0, sizeof(*m));
	m->max_sectors = max_sectors;
	m->bucket = m->own;
	m->bits = HW_MERGE_OWN_BITS;
}

bool hw_merge_is_crowded(const struct hw_merger *m)
{
	return m->hashed >> m->bits && m->bits < 32;
}

void hw_merge_rehash(struct hw_merger *m, struct hw_request **bucket, u32 bits)
{
	struct hw_request **old = m->bucket, *rq, *oldest_first;
	u64 i, n = 1ull << m->bits;

	memset(bucket, 0, sizeof(*bucket) << bits);
	m->bucket = bucket;
	m->bits = bits;
	m->hashed = 0;
	for (i = 0; i < n; i++) {
		/* The newest of equal ends is found first, so the oldest goes in first. */
		for (oldest_first = NULL; (rq = old[i]); oldest_first = rq) {
			old[i] = rq->hash_next;
			rq->hash_next = oldest_first;
		}
		while ((rq = oldest_first)) {
			oldest_first = rq->hash_next;
			hash_add(m, rq);
		}
	}
}

/* Only the requests of policies that ask for it are hashed. */
static void grow(struct hw_merger *m, struct hw_queue *q, struct hw_request *rq,
		 const struct hw_bio *bio, enum hw_merge how, u64 now)
{
	hash_del(m, rq);
	rq->sectors += bio->sectors;
	if (how == HW_FRONT_MERGE)
		rq->sector = bio->sector;
	if (q->policy->flags & HW_POLICY_HASH)
		hash_add(m, rq);
	hw_merged(q, rq, how, now);
}

/* As far as the block layer is concerned. */
static bool fits(const struct hw_merger *m, const struct hw_request *rq, const struct hw_bio *bio)
{
	if (rq->state != HW_QUEUED || rq->op != bio->op || rq->op > HW_WRITE ||
	    rq->ioprio != bio->ioprio || rq->group != bio->group)
		return false;
	if ((rq->flags | bio->flags) & (HW_RQ_NOMERGE | HW_RQ_AT_HEAD))
		return false;
	return bio->sectors <= m->max_sectors && rq->sectors <= m->max_sectors - bio->sectors;
}

static bool may_merge(const struct hw_merger *m, struct hw_queue *q, struct hw_request *rq,
		      const struct hw_bio *bio)
{
	return fits(m, rq, bio) && hw_allow_merge(q, rq, bio);
}

static enum hw_merge touches(const struct hw_request *rq, const struct hw_bio *bio)
{
	if (hw_end(rq) == bio->sector)
		return HW_BACK_MERGE;
	if (bio->sector + bio->sectors == rq->sector)
		return HW_FRONT_MERGE;
	return HW_NO_MERGE;
}

static struct hw_request *find(struct hw_merger *m, struct hw_queue *q, const struct hw_bio *bio,
			       enum hw_merge *how)
{
	struct hw_request *rq;

	if (q->policy->flags & HW_POLICY_HASH) {
		/* The policy is asked even if they do not touch; bfq merges queues on it. */
		if (m->last && may_merge(m, q, m->last, bio)) {
			*how = touches(m->last, bio);
			if (*how)
				return m->last;
		}
		for (rq = *bucket_of(m, bio->sector, bio->op, bio->ioprio); rq; rq = rq->hash_next)
			if (hw_end(rq) == bio->sector && may_merge(m, q, rq, bio)) {
				*how = HW_BACK_MERGE;
				return rq;
			}
	}
	rq = hw_find_merge(q, bio, how);
	return rq && may_merge(m, q, rq, bio) ? rq : NULL;
}

static struct hw_bio range_of(const struct hw_request *rq)
{
	return (struct hw_bio){ .sector = rq->sector,
				.sectors = rq->sectors,
				.op = rq->op,
				.flags = rq->flags,
				.ioprio = rq->ioprio,
				.cpu = rq->cpu,
				.task = rq->task,
				.group = rq->group };
}

static void join(struct hw_merger *m, struct hw_queue *q, struct hw_request *keep,
		 struct hw_request *gone)
{
	hash_del(m, keep);
	hash_del(m, gone);
	hw_merge_requests(q, keep, gone);
	keep->sectors += gone->sectors;
	hash_add(m, keep);
	if (m->last == gone)
		m->last = keep;
}

/*
 * @rq has grown @how: does it now touch its neighbour? Returns the neighbour that was swallowed, or
 * NULL.
 */
static struct hw_request *join_neighbour(struct hw_merger *m, struct hw_queue *q,
					 struct hw_request **rqp, enum hw_merge how)
{
	struct hw_request *keep, *gone, *rq = *rqp;
	struct hw_bio bio;

	if (how == HW_BACK_MERGE) {
		keep = rq;
		gone = hw_latter(q, rq);
	} else {
		keep = hw_former(q, rq);
		gone = rq;
	}
	if (!keep || !gone || !q->policy->merged_requests || hw_end(keep) != gone->sector)
		return NULL;
	bio = range_of(gone);
	if (gone->state != HW_QUEUED || !may_merge(m, q, keep, &bio))
		return NULL;
	join(m, q, keep, gone);
	*rqp = keep;
	return gone;
}

/* The queued request that ends where @bio begins and could take it; the policy is not asked. */
static struct hw_request *ends_at(struct hw_merger *m, const struct hw_bio *bio)
{
	struct hw_request *rq;

	for (rq = *bucket_of(m, bio->sector, bio->op, bio->ioprio); rq; rq = rq->hash_next)
		if (hw_end(rq) == bio->sector && fits(m, rq, bio))
			return rq;
	return NULL;
}

static bool merges_unasked(const struct hw_merger *m, const struct hw_queue *q)
{
	return m->max_sectors && q->policy->flags & HW_POLICY_HASH && q->policy->merged_requests;
}

struct hw_request *hw_merge_arriving(struct hw_merger *m, struct hw_queue *q,
				     const struct hw_bio *bio, u64 now)
{
	struct hw_request *rq;

	if (!merges_unasked(m, q))
		return NULL;
	rq = ends_at(m, bio);
	if (!rq)
		return NULL;
	grow(m, q, rq, bio, HW_BACK_MERGE, now);
	return rq;
}

struct hw_request *hw_merge_onwards(struct hw_merger *m, struct hw_queue *q,
				    struct hw_request **rqp)
{
	struct hw_request *gone = *rqp, *keep;
	struct hw_bio bio = range_of(gone);

	keep = merges_unasked(m, q) && gone->state == HW_QUEUED ? ends_at(m, &bio) : NULL;
	if (!keep || keep == gone)
		return NULL;
	join(m, q, keep, gone);
	*rqp = keep;
	return gone;
}

struct hw_merge_result hw_merge_try(struct hw_merger *m, struct hw_queue *q,
				    const struct hw_bio *bio, u64 now)
{
	struct hw_merge_result r = { NULL, HW_NO_MERGE, NULL };
	struct hw_request *rq;

	if (!m->max_sectors || (bio->flags & (HW_RQ_NOMERGE | HW_RQ_AT_HEAD)) || bio->op > HW_WRITE)
		return r;
	rq = find(m, q, bio, &r.how);
	if (!rq)
		return r;
	grow(m, q, rq, bio, r.how, now);
	r.into = rq;
	r.gone = join_neighbour(m, q, &r.into, r.how);
	m->last = r.into;
	return r;
}

void hw_merge_inserted(struct hw_merger *m, struct hw_queue *q, struct hw_request *rq)
{
	if (!m->max_sectors || !(q->policy->flags & HW_POLICY_HASH) || rq->state != HW_QUEUED)
		return;
	if (!(rq->flags & (HW_RQ_NOMERGE | HW_RQ_AT_HEAD)))
		hash_add(m, rq);
	if (!m->last)
		m->last = rq;
}

void hw_merge_removed(struct hw_merger *m, struct hw_request *rq)
{
	hash_del(m, rq);
	if (m->last == rq)
		m->last = NULL;
}
