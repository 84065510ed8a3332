// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* maitre from inside, on a disk: what internal.h says of its lists, under random flows. */
#include <stdlib.h>

#include "check.h"
#include "core/policy/maitre/internal.h"
#include "core/policy/policies.h"

#define TASKS	16u
#define SECTORS (1ull << 30)
#define STEPS	40000u

static u32 state;

static u32 roll(u32 below)
{
	state = state * 1664525u + 1013904223u;
	return (u32)(((u64)state * below) >> 32);
}

static u32 length(const struct list_head *list)
{
	const struct list_head *at;
	u32 n = 0;

	for (at = list->next; at != list; at = at->next)
		n++;
	return n;
}

/* Every list of an entity by age, and as long as is counted. Returns how many were looked at. */
static u32 check_entity(const struct mt_entity *e)
{
	const struct hw_sorted_request *s;
	u64 last = 0;

	list_for_each_entry(s, &e->fifo, fifo) {
		CHECK(s->expires >= last);
		last = s->expires;
	}
	CHECK_EQ(length(&e->fifo), e->queued);
	return e->queued;
}

/*
 * Tasks read near their last place or far away, with several requests at once and after pauses: so
 * they come into the pool and leave it.
 */
static void lists_are_by_age(u32 seed)
{
	struct mt_device *d = calloc(1, hw_maitre.queue_size);
	struct mt_task *tasks = calloc(TASKS, hw_maitre.task_size);
	u64 place[TASKS], now = 0;
	u32 i, step, pooled = 0, own = 0;
	struct hw_request *flying = NULL;

	state = seed;
	hw_queue_prepare(&d->q, &hw_maitre);
	d->q.dev = (struct hw_device){ .sectors = SECTORS, .depth = 1, .rotational = true };
	CHECK_EQ(hw_start(&d->q, 0), 0);
	for (i = 0; i < TASKS; i++) {
		place[i] = roll(1u << 30);
		hw_task_start(&d->q, &tasks[i].task, 0);
	}
	for (step = 0; step < STEPS; step++) {
		now += roll(2000000);
		if (flying && roll(2)) {
			hw_complete(&d->q, flying, now);
			free(flying);
			flying = NULL;
		}
		i = roll(TASKS);
		if (d->q.nr_queued < 100 && roll(3)) {
			struct hw_request *rq = calloc(1, hw_maitre.request_size);

			/* For a while each is a stream, and then for a while it is not. */
			if ((step / 4000 + i) & 1 || !roll(8))
				place[i] = roll(1u << 30);
			rq->op = HW_READ;
			rq->flags = HW_RQ_SYNC;
			rq->sector = place[i];
			rq->sectors = 8;
			rq->task = &tasks[i].task;
			place[i] = min(place[i] + 8, SECTORS - 8);
			hw_insert(&d->q, rq, now);
		}
		if (!flying)
			flying = hw_dispatch(&d->q, now);
		pooled += check_entity(&d->root.pool[MT_BEST_EFFORT]);
		for (i = 0; i < TASKS; i++)
			own += check_entity(&tasks[i].flow.e);
	}
	CHECK(pooled && own);
	d->q.force = true;
	for (; flying || d->q.nr_queued; flying = hw_dispatch(&d->q, now)) {
		now += HW_NSEC_PER_MSEC;
		if (flying) {
			hw_complete(&d->q, flying, now);
			free(flying);
		}
	}
	free(tasks);
	free(d);
}

int main(void)
{
	u32 seed;

	for (seed = 1; seed <= 5; seed++)
		lists_are_by_age(seed);
	return CHECK_DONE();
}
