// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cfq: how many requests a process may hold, and what a requeued one costs. */
#include "check.h"
#include "core/elevator.h"
#include "core/lib/sorted.h"

#define TASKS	 3
#define REQUESTS 40
#define MS	 HW_NSEC_PER_MSEC

enum { RR, V1, V2 };

/* Larger than what any policy here asks for. */
static u64 queue_room[512], task_room[TASKS][128], request_room[REQUESTS][64];
static u32 nr_requests;

static struct hw_queue *start(s64 variant, u32 limit)
{
	struct hw_queue *q = (struct hw_queue *)queue_room;
	const struct hw_policy *policy = hw_policy_find("cfq");
	u32 i;

	CHECK(policy->queue_size <= sizeof(queue_room));
	CHECK(policy->task_size <= sizeof(task_room[0]));
	CHECK(policy->request_size <= sizeof(request_room[0]));
	memset(queue_room, 0, sizeof(queue_room));
	memset(task_room, 0, sizeof(task_room));
	memset(request_room, 0, sizeof(request_room));
	nr_requests = 0;
	hw_queue_prepare(q, policy);
	q->dev.nr_requests = limit;
	CHECK_EQ(hw_tunable_set(q, "variant", variant), 0);
	CHECK_EQ(hw_start(q, 0), 0);
	for (i = 0; i < TASKS; i++)
		hw_task_start(q, (struct hw_task *)task_room[i], 0);
	return q;
}

static struct hw_request *submit(struct hw_queue *q, u32 task, u64 sector)
{
	struct hw_request *rq = (struct hw_request *)request_room[nr_requests++];

	rq->task = (struct hw_task *)task_room[task];
	rq->sector = sector;
	rq->sectors = 8;
	rq->flags = HW_RQ_SYNC;
	hw_insert(q, rq, 0);
	return rq;
}

static u32 limit_for(struct hw_queue *q, u32 task)
{
	struct hw_bio bio = { .sectors = 8, .task = (struct hw_task *)task_room[task] };

	return hw_limit_depth(q, &bio);
}

static void test_limits(void)
{
	struct hw_queue *q = start(V1, 24);
	u32 i;

	/* Two busy processes: (24 - 8) / 2 = 8 each. */
	submit(q, 1, 100000);
	for (i = 0; i < 7; i++)
		submit(q, 0, 1000 * i);
	CHECK_EQ(limit_for(q, 0), 24);
	submit(q, 0, 9000);
	/* At its limit: it waits until one of the 9 has gone. */
	CHECK_EQ(limit_for(q, 0), 9);
	submit(q, 0, 10000);
	CHECK_EQ(limit_for(q, 0), 9);
	CHECK_EQ(limit_for(q, 1), 24);

	/* v2: at least `queued`, and no more than a sixteenth. */
	q = start(V2, 256);
	for (i = 0; i < 15; i++)
		submit(q, 0, 1000 * i);
	CHECK_EQ(limit_for(q, 0), 256);
	submit(q, 0, 20000);
	CHECK_EQ(limit_for(q, 0), 16);
	q = start(V2, 64);
	for (i = 0; i < 8; i++)
		submit(q, 0, 1000 * i);
	CHECK_EQ(limit_for(q, 0), 8);

	/* The papers know no limit. */
	q = start(RR, 4);
	for (i = 0; i < 8; i++)
		submit(q, 0, 1000 * i);
	CHECK_EQ(limit_for(q, 0), 4);
}

/* What comes back goes out first, and counts once. */
static void test_requeue(void)
{
	struct hw_queue *q = start(V2, 0);
	struct hw_request *a = submit(q, 0, 5000), *b;

	CHECK(hw_dispatch(q, 0) == a);
	b = submit(q, 1, 100);
	hw_requeue(q, a, 1 * MS);
	CHECK(hw_dispatch(q, 1 * MS) == a);
	hw_complete(q, a, 2 * MS);
	CHECK(hw_dispatch(q, 2 * MS) == b);
	hw_complete(q, b, 3 * MS);
	CHECK(!hw_dispatch(q, 3 * MS));
	CHECK(!hw_has_work(q));
}

int main(void)
{
	test_limits();
	test_requeue();
	return CHECK_DONE();
}
