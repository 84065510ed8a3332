// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A queue by itself: what it is when it begins, its links to the queues that wake it or are woken
 * by it, and its end, once nothing refers to it any more. Whose requests go to which queue is
 * merge.c's.
 */
#include "core/policy/bfq/internal.h"

void bfq_plan_prio(struct bfq_queue *bq, u16 ioprio)
{
	bq->new_class = (u8)HW_IOPRIO_CLASS(ioprio);
	bq->new_level = (u8)HW_IOPRIO_LEVEL(ioprio);
	bq->new_weight = (BFQ_NR_LEVELS - bq->new_level) * 10;
	bq->prio_changed = true;
}

void bfq_queue_init(struct bfq *b, struct bfq_queue *bq, struct bfq_task *home, bool sync,
		    u16 ioprio)
{
	memset(bq, 0, sizeof(*bq));
	bq->in_use = true;
	bq->id = ++b->nr_created;
	bq->home = home;
	INIT_LIST_HEAD(&bq->active_link);
	INIT_LIST_HEAD(&bq->fifo);
	INIT_LIST_HEAD(&bq->burst_link);
	INIT_LIST_HEAD(&bq->woken);
	INIT_LIST_HEAD(&bq->woken_link);
	bfq_plan_prio(bq, ioprio);
	bq->sync = sync;
	bq->just_created = sync;
	bq->short_think = sync;
	bq->io_bound = true;
	/*
	 * 6.12 reads the clock once for creation and arrival, so that this is in the future then.
	 */
	bq->think.last_end_ns = b->now_ns + (b->kernel == BFQ_6_12);
	bq->io_start_ns = b->now_ns;
	bq->created = b->tick;
	bq->max_budget = 2 * bfq_max_budget(b) / 3;
	bq->budget_timeout = BFQ_TICK_NEVER;
	bq->split_time = BFQ_TICK_NEVER;
	bq->soft_rt_next_start = b->tick;
	bq->raise.coeff = 1;
	bq->raise.start = b->tick;
	bq->raise.interactive_start = BFQ_TICK_NEVER;
	bq->inject.lowered = b->tick;
	bq->seek_history = 1;
	bq->class = bq->new_class;
	bq->level = bq->new_level;
	bq->own_weight = bq->new_weight;
	bq->weight = bq->new_weight;
}

void bfq_set_waker(struct bfq_queue *bq, struct bfq_queue *waker)
{
	list_del_init(&bq->woken_link);
	bq->waker = waker;
	if (waker) {
		bq->maybe_waker = 0;
		list_add(&bq->woken_link, &waker->woken);
	}
}

/* @bq is no more: it wakes nobody and is woken by nobody. */
static void forget_waker(struct bfq *b, struct bfq_queue *bq)
{
	bfq_set_waker(bq, NULL);
	while (!list_empty(&bq->woken))
		bfq_set_waker(list_first_entry(&bq->woken, struct bfq_queue, woken_link), NULL);
	if (b->last_completed == bq)
		b->last_completed = NULL;
}

/* Free @bq if nothing refers to it any more. */
void bfq_drop(struct bfq *b, struct bfq_queue *bq)
{
	if (!bq->in_use || bq->permanent || bq->users || bq->allocated || bq->stable_refs ||
	    bq->counted || bq->weight_slot || bq == b->in_service)
		return;
	if (!list_empty(&bq->burst_link)) {
		list_del_init(&bq->burst_link);
		if (bq->owner && b->burst_size)
			b->burst_size--;
	}
	forget_waker(b, bq);
	bq->in_use = false;
	hw_task_put(&b->q, &bq->home->task);
}
