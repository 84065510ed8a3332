// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bfq under random load: the contract's invariants and those of its own that hold whatever happens.
 * Tasks of all classes come and go, read close to each other and far away, merge, split, requeue
 * and exit with requests in the drive.
 */
#include <stdlib.h>

#include "check.h"
#include "core/lib/merge.h"
#include "core/policy/bfq/internal.h"

#define TASKS	 24
#define ROUNDS	 40000
#define IN_DRIVE 32

struct world {
	struct hw_queue *q;
	struct hw_merger merger;
	struct hw_task *task[TASKS];
	u64 place[TASKS];
	struct hw_request *drive[IN_DRIVE];
	u32 depth, in_drive;
	u64 now;
	u32 live; /* tasks that the host has not got back */
	u64 inserted, dispatched, completed, requeued, merged;
	u64 rand;
};

static u32 roll(struct world *w, u32 n)
{
	w->rand = w->rand * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(w->rand >> 33) % n;
}

static struct bfq *bfq_of(struct world *w)
{
	return container_of(w->q, struct bfq, q);
}

static void reap(struct world *w)
{
	while (!list_empty(&w->q->reap)) {
		struct hw_task *t = list_first_entry(&w->q->reap, struct hw_task, reap);

		list_del(&t->reap);
		free(t);
		w->live--;
	}
}

static void start_task(struct world *w, int i)
{
	static const u16 prios[] = { 0,
				     HW_IOPRIO(1, 3),
				     HW_IOPRIO(2, 0),
				     HW_IOPRIO(2, 4),
				     HW_IOPRIO(2, 4),
				     HW_IOPRIO(2, 7),
				     HW_IOPRIO(3, 0) };

	w->task[i] = calloc(1, w->q->policy->task_size);
	w->live++;
	w->task[i]->id = (u32)i;
	w->task[i]->ioprio = prios[roll(w, ARRAY_SIZE(prios))];
	w->place[i] = (u64)roll(w, 6) * 1000000;
	hw_task_start(w->q, w->task[i], w->now);
}

static void arrive(struct world *w)
{
	int i = (int)roll(w, TASKS);
	bool write = !roll(w, 4), sync = !write || !roll(w, 3);
	struct hw_request *rq;
	struct hw_bio bio = { 0 };
	struct hw_merge_result joined;

	if (!w->task[i])
		start_task(w, i);
	if (!roll(w, 8))
		w->place[i] = (u64)roll(w, 1000) * 5000;
	bio.sector = w->place[i];
	bio.sectors = 8u << roll(w, 6);
	bio.op = write ? HW_WRITE : HW_READ;
	bio.flags = (u8)((sync ? HW_RQ_SYNC : 0) | (roll(w, 10) ? 0 : HW_RQ_META));
	bio.task = w->task[i];
	bio.ioprio = w->task[i]->ioprio;
	w->place[i] += bio.sectors;
	w->inserted++;
	joined = hw_merge_try(&w->merger, w->q, &bio, w->now);
	if (joined.into) {
		w->merged++;
		if (joined.gone) {
			w->merged++;
			free(joined.gone);
		}
		reap(w);
		return;
	}
	rq = calloc(1, w->q->policy->request_size);
	rq->sector = bio.sector;
	rq->sectors = bio.sectors;
	rq->op = bio.op;
	rq->flags = bio.flags;
	rq->ioprio = bio.ioprio;
	rq->task = roll(w, 200) ? bio.task : NULL;
	hw_insert(w->q, rq, w->now);
	hw_merge_inserted(&w->merger, w->q, rq);
}

/* At most one queue in service, weights add up, and every count is what it counts. */
static void check_state(struct world *w)
{
	struct bfq *b = bfq_of(w);
	u64 weights[BFQ_NR_CLASSES] = { 0 };
	u32 queued = 0, busy = 0, raised = 0;
	int i, k;
	struct bfq_queue *bq;
	struct rb_node *n;

	for (i = 0; i < BFQ_NR_CLASSES; i++) {
		for (n = rb_first(&b->vtree[i].active); n; n = rb_next(n)) {
			bq = rb_entry(n, struct bfq_queue, node);
			CHECK(bq->tree == BFQ_ACTIVE_TREE && bq->busy && bq->counted);
			CHECK_EQ(bq->class, i + 1);
			weights[i] += bq->weight;
			busy++;
			raised += bfq_raised(bq);
			queued += bq->queued;
		}
		for (n = rb_first(&b->vtree[i].idle); n; n = rb_next(n)) {
			bq = rb_entry(n, struct bfq_queue, node);
			CHECK(bq->tree == BFQ_IDLE_TREE && !bq->busy && bfq_empty(bq));
			weights[i] += bq->weight;
		}
	}
	bq = b->in_service;
	if (bq) {
		CHECK(bq->busy && bq->tree == BFQ_NO_TREE);
		weights[bq->class - 1] += bq->weight;
		busy++;
		raised += bfq_raised(bq);
		queued += bq->queued;
	}
	CHECK((b->idle_until_ns != HW_NEVER) == (bq && bq->wait_request));
	for (i = 0; i < BFQ_NR_CLASSES; i++)
		CHECK_EQ(b->vtree[i].weight_sum, weights[i]);
	CHECK_EQ(bfq_nr_busy(b), busy);
	CHECK_EQ(b->nr_busy_raised, raised);
	if (!b->low_latency)
		CHECK_EQ(raised, 0);
	CHECK(queued <= w->q->nr_queued);
	CHECK(b->in_driver <= w->in_drive);
	for (i = 0; i < TASKS; i++)
		for (k = 0; w->task[i] && k < 2; k++)
			CHECK(!bfq_task(w->task[i])->queue[k] ||
			      bfq_task(w->task[i])->queue[k]->users);
}

static void dispatch(struct world *w)
{
	struct bfq *b = bfq_of(w);
	struct hw_request *rq;

	while (w->in_drive < w->depth) {
		rq = hw_dispatch(w->q, w->now);
		if (!rq) {
			CHECK(!w->q->nr_queued || w->in_drive || w->q->wake_ns != HW_NEVER);
			CHECK(w->q->wake_ns > w->now);
			if (w->q->wake_ns != HW_NEVER)
				CHECK(w->q->wake_ns - w->now <= 20 * (u64)HW_NSEC_PER_MSEC);
			return;
		}
		CHECK(!w->q->wait.active);
		hw_merge_removed(&w->merger, rq);
		w->dispatched++;
		w->drive[w->in_drive++] = rq;
		if (b->strict_guarantees && rq->task)
			CHECK(b->in_driver <= 1);
	}
}

static void finish(struct world *w)
{
	u32 i;
	struct hw_request *rq;

	if (!w->in_drive)
		return;
	i = roll(w, w->in_drive);
	rq = w->drive[i];
	w->drive[i] = w->drive[--w->in_drive];
	if (!roll(w, 100)) {
		w->requeued++;
		w->dispatched--;
		hw_requeue(w->q, rq, w->now);
		return;
	}
	w->completed++;
	hw_complete(w->q, rq, w->now);
	free(rq);
	reap(w);
}

static void end_task(struct world *w)
{
	int i = (int)roll(w, TASKS);

	if (!w->task[i])
		return;
	hw_task_exit(w->q, w->task[i], w->now);
	w->task[i] = NULL;
	reap(w);
}

static void retune(struct world *w)
{
	static const char *const names[] = { "low_latency", "strict_guarantees", "slice_idle",
					     "max_budget", "timeout_sync" };
	static const s64 values[][2] = { { 0, 1 }, { 0, 1 }, { 0, 8 }, { 0, 1024 }, { 125, 40 } };
	u32 i = roll(w, ARRAY_SIZE(names));

	CHECK_EQ(hw_tunable_set(w->q, names[i], values[i][roll(w, 2)]), 0);
	hw_tuned(w->q);
}

/* Tasks that have exited remain only while virtual time has not passed their queues. */
static void check_empty(struct world *w)
{
	struct bfq *b = bfq_of(w);
	struct bfq_queue *bq;
	struct rb_node *n;
	int i;

	for (i = 0; i < BFQ_NR_CLASSES; i++) {
		CHECK(RB_EMPTY_ROOT(&b->vtree[i].active));
		while ((n = rb_first(&b->vtree[i].idle))) {
			bq = rb_entry(n, struct bfq_queue, node);
			rb_erase(n, &b->vtree[i].idle);
			if (!bq->home)
				continue;
			bq->counted = false;
			bfq_drop(b, bq);
		}
	}
	CHECK(!b->in_service);
	reap(w);
	CHECK_EQ(w->live, 0);
}

static void play(u64 seed, bool rotational, u32 depth)
{
	const struct hw_policy *p = hw_policy_find("bfq");
	struct world w = { .rand = seed, .depth = depth };
	int i, calm = 0;

	w.q = calloc(1, p->queue_size);
	hw_queue_prepare(w.q, p);
	w.q->dev =
		(struct hw_device){ .sectors = 1u << 30, .depth = depth, .rotational = rotational };
	hw_merge_init(&w.merger, 256);
	CHECK_EQ(hw_start(w.q, 0), 0);
	for (i = 0; i < ROUNDS && !check_failures; i++) {
		w.now += roll(&w, 3) ? roll(&w, 100000) : roll(&w, 10000000);
		if (!roll(&w, 5000))
			w.now += 3 * (u64)HW_NSEC_PER_SEC;
		finish(&w);
		if (roll(&w, 3) && w.q->nr_queued < 200)
			arrive(&w);
		if (!roll(&w, 300))
			end_task(&w);
		if (!roll(&w, 2000))
			retune(&w);
		dispatch(&w);
		check_state(&w);
	}
	/* Drained, nothing waits and nothing is left. */
	w.q->force = true;
	while ((w.q->nr_queued || w.in_drive) && ++calm < 100000) {
		w.now += 1000;
		finish(&w);
		dispatch(&w);
	}
	CHECK_EQ(w.q->nr_queued, 0);
	CHECK_EQ(w.inserted, w.completed + w.merged);
	CHECK_EQ(w.dispatched, w.completed);
	CHECK(w.merged && w.requeued);
	for (i = 0; i < TASKS; i++)
		if (w.task[i])
			hw_task_exit(w.q, w.task[i], w.now);
	reap(&w);
	check_empty(&w);
	free(w.q);
}

int main(void)
{
	u64 seed;

	for (seed = 1; seed <= 6; seed++) {
		play(seed, true, 1);
		play(seed, true, IN_DRIVE);
		play(seed, false, 4);
		play(seed, false, IN_DRIVE);
	}
	return CHECK_DONE();
}
