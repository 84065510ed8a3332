// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which request of a queue is served next, and which queues lie close to each other.
 *
 * A one-way elevator with short seeks backwards, kept one step ahead: `next` is compared with every
 * request that arrives (from the drive's position), and found anew when it is taken (from where it
 * began). Once a slot the oldest request is looked at, and goes first if its time has come.
 */
#include "core/policy/bfq/internal.h"

#define SEEK_SECTORS  800u
#define CLOSE_SECTORS 8192u
#define ASYNC_CHARGE  3

bool bfq_is_seek(const struct bfq *b, u64 last_pos, const struct hw_request *rq)
{
	return last_pos && hw_apart(last_pos, rq->sector) > SEEK_SECTORS &&
	       (b->q.dev.rotational || rq->sectors < BFQ_NONROT_LARGE);
}

/* What a request takes of its queue's budget. Async ones pay for the latency they cost readers. */
s64 bfq_cost(struct bfq *b, const struct hw_request *rq, const struct bfq_queue *bq)
{
	if (bq->sync || bfq_raised(bq) || bfq_asymmetric(b, bq))
		return rq->sectors;
	return (s64)rq->sectors * ASYNC_CHARGE;
}

/* Sync before async, metadata before data, then the elevator. */
static struct hw_request *choose(struct bfq *b, struct hw_request *one, struct hw_request *two,
				 u64 position)
{
	u8 only_one, only_two;

	if (!one || !two || one == two)
		return one ? one : two;
	only_one = one->flags & ~two->flags;
	only_two = two->flags & ~one->flags;
	if ((only_one | only_two) & HW_RQ_SYNC)
		return only_one & HW_RQ_SYNC ? one : two;
	if ((only_one | only_two) & HW_RQ_META)
		return only_one & HW_RQ_META ? one : two;
	return hw_choose(&b->reach, position, one, two);
}

/* Is @rq a better next than the present one? True if `next` has changed. */
bool bfq_offer_next(struct bfq *b, struct bfq_queue *bq, struct hw_request *rq)
{
	struct hw_request *was = bq->next;

	bq->next = choose(b, bq->next, rq, b->last_position);
	return bq->next != was;
}

void bfq_enqueue(struct bfq *b, struct bfq_queue *bq, struct hw_request *rq)
{
	hw_sorted_add(&bq->sorted, hw_sorted(rq));
	hw_fifo_add(&bq->fifo, hw_sorted(rq), b->now_ns + b->fifo_expire_ns[hw_is_sync(rq)]);
	bfq_rq(rq)->queued = true;
	bq->queued++;
}

static struct hw_request *overdue(struct bfq *b, struct bfq_queue *bq, struct hw_request *last)
{
	struct hw_sorted_request *oldest;

	if (bq->fifo_checked)
		return NULL;
	bq->fifo_checked = true;
	oldest = hw_fifo_first(&bq->fifo);
	if (&oldest->rq == last || b->now_ns < oldest->expires)
		return NULL;
	bfq_rq(&oldest->rq)->late = true;
	return &oldest->rq;
}

static struct hw_request *find_next(struct bfq *b, struct bfq_queue *bq, struct hw_request *last)
{
	struct hw_sorted_request *s = hw_sorted(last), *after;
	struct hw_request *late = overdue(b, bq, last);

	if (late)
		return late;
	after = hw_sorted_next(s);
	if (!after && hw_sorted_first(&bq->sorted) != s)
		after = hw_sorted_first(&bq->sorted);
	return choose(b, hw_sorted_rq(after), hw_sorted_rq(hw_sorted_prev(s)), last->sector);
}

/*
 * A waiting queue's budget always fits its next request, else it would need two slots to get it
 * served.
 */
void bfq_budget_for_next(struct bfq *b, struct bfq_queue *bq)
{
	s64 budget;

	if (!bq->next || bq == b->in_service)
		return;
	budget = max(max(bq->max_budget, bfq_cost(b, bq->next, bq)), bq->service);
	if (budget != bq->budget) {
		bq->budget = budget;
		bfq_requeue(b, bq, false);
	}
}

void bfq_dequeue(struct bfq *b, struct hw_request *rq)
{
	struct bfq_queue *bq = bfq_rq(rq)->queue;

	if (bq->next == rq) {
		bq->next = find_next(b, bq, rq);
		bfq_budget_for_next(b, bq);
	}
	list_del_init(&hw_sorted(rq)->fifo);
	hw_sorted_del(&bq->sorted, hw_sorted(rq));
	bfq_rq(rq)->queued = false;
	bq->queued--;
	if (!bfq_empty(bq)) {
		bfq_place(b, bq);
		return;
	}
	bq->next = NULL;
	bfq_unplace(b, bq);
	if (bq->busy && bq != b->in_service) {
		/* Emptied by injection or merging: what it was served is not that of a slot. */
		bfq_unmark_busy(b, bq, false);
		bq->budget = 0;
		bq->service = 0;
	}
}

struct hw_request *bfq_former(struct hw_queue *q, struct hw_request *rq)
{
	return bfq_rq(rq)->queued ? hw_sorted_rq(hw_sorted_prev(hw_sorted(rq))) : NULL;
}

struct hw_request *bfq_latter(struct hw_queue *q, struct hw_request *rq)
{
	return bfq_rq(rq)->queued ? hw_sorted_rq(hw_sorted_next(hw_sorted(rq))) : NULL;
}

/* @rq has grown at its front; only if that carries it past its neighbour does the order change. */
void bfq_moved_front(struct bfq *b, struct hw_request *rq)
{
	struct hw_sorted_request *before = hw_sorted_prev(hw_sorted(rq));
	struct bfq_queue *bq = bfq_rq(rq)->queue;

	if (!before || rq->sector >= before->rq.sector)
		return;
	hw_sorted_moved(&bq->sorted, hw_sorted(rq));
	if (bfq_offer_next(b, bq, rq)) {
		bfq_budget_for_next(b, bq);
		bfq_place(b, bq);
	}
}

/* ---- the position tree: queues by where their next request begins; one a sector is enough ---- */

static struct bfq_queue *queue_at(struct rb_node *n)
{
	return rb_entry_safe(n, struct bfq_queue, pos_node);
}

/* A queue that has been served for long is near another's next by chance. */
bool bfq_too_late_to_merge(const struct bfq *b, const struct bfq_queue *bq)
{
	return bq->served_backlogged && bfq_past(b, bq->first_io, b->span.merge);
}

void bfq_unplace(struct bfq *b, struct bfq_queue *bq)
{
	if (bq->in_positions) {
		rb_erase(&bq->pos_node, &b->positions);
		bq->in_positions = false;
	}
}

void bfq_place(struct bfq *b, struct bfq_queue *bq)
{
	struct rb_node **link = &b->positions.rb_node, *parent = NULL;
	u64 at;

	if (b->nonrot_queueing)
		return;
	bfq_unplace(b, bq);
	if (!bq->next || bfq_idle_class(bq) || bfq_too_late_to_merge(b, bq))
		return;
	while (*link) {
		parent = *link;
		at = queue_at(parent)->next->sector;
		if (at == bq->next->sector)
			return;
		link = bq->next->sector > at ? &parent->rb_right : &parent->rb_left;
	}
	rb_link_node(&bq->pos_node, parent, link);
	rb_insert_color(&bq->pos_node, &b->positions);
	bq->in_positions = true;
}

bool bfq_close(u64 a, u64 b)
{
	return hw_apart(a, b) <= CLOSE_SECTORS;
}

/* The queue whose next request lies at @sector, or close to it. */
struct bfq_queue *bfq_near(struct bfq *b, u64 sector)
{
	struct rb_node *n = b->positions.rb_node, *last = NULL;
	u64 at = 0;

	while (n) {
		last = n;
		at = queue_at(n)->next->sector;
		if (at == sector)
			return queue_at(n);
		n = sector > at ? n->rb_right : n->rb_left;
	}
	if (!last)
		return NULL;
	if (bfq_close(at, sector))
		return queue_at(last);
	last = at < sector ? rb_next(last) : rb_prev(last);
	return last && bfq_close(queue_at(last)->next->sector, sector) ? queue_at(last) : NULL;
}
