// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cfq-slice: lengths of slices, keys of the service tree, detection of queueing devices, queues
 * that change hands.
 */
#include "check.h"
#include "core/policy/cfq/internal.h"
#include "core/policy/policies.h"

#define MS	 HW_NSEC_PER_MSEC
#define TASKS	 6
#define REQUESTS 400

static struct cs_device dev;
static struct cs_task tasks[TASKS];
static struct cs_request requests[REQUESTS];
static u32 nr_requests;

static void start(u32 depth)
{
	u32 i;

	memset(&dev, 0, sizeof(dev));
	memset(tasks, 0, sizeof(tasks));
	memset(requests, 0, sizeof(requests));
	nr_requests = 0;
	hw_queue_prepare(&dev.q, &hw_cfq_slice);
	dev.q.dev.depth = depth;
	dev.q.dev.rotational = true;
	CHECK_EQ(hw_start(&dev.q, 0), 0);
	for (i = 0; i < TASKS; i++) {
		tasks[i].task.id = i;
		hw_task_start(&dev.q, &tasks[i].task, 0);
	}
}

static struct hw_request *submit(u32 task, u64 sector, u8 flags, u16 ioprio, u64 now)
{
	struct hw_request *rq = &requests[nr_requests++].s.rq;

	rq->task = &tasks[task].task;
	rq->sector = sector;
	rq->sectors = 8;
	rq->op = flags & HW_RQ_SYNC ? HW_READ : HW_WRITE;
	rq->flags = flags;
	rq->ioprio = ioprio;
	hw_insert(&dev.q, rq, now);
	return rq;
}

static struct hw_request *read_at(u32 task, u64 sector, u64 now)
{
	return submit(task, sector, HW_RQ_SYNC, 0, now);
}

/*
 * Serve one request of @task, inserted at @at, to @end; a wait that is due to end before that is
 * sat out.
 */
static void serve_one(u32 task, u64 sector, u64 at, u64 end)
{
	struct hw_request *rq = read_at(task, sector, at), *got = hw_dispatch(&dev.q, at);

	if (!got && dev.q.wake_ns < end)
		got = hw_dispatch(&dev.q, dev.q.wake_ns);

	CHECK(got == rq);
	if (got)
		hw_complete(&dev.q, got, end);
}

static void test_slices(void)
{
	static const u64 sync[8] = { 180, 160, 140, 120, 100, 80, 60, 40 };
	static const u64 async[8] = { 72, 64, 56, 48, 40, 32, 24, 16 };
	static const u32 limit[8] = { 32, 28, 24, 20, 16, 12, 8, 4 };
	u8 p;

	start(1);
	for (p = 0; p < 8; p++) {
		CHECK_EQ(cs_prio_slice(&dev, true, p), sync[p]);
		CHECK_EQ(cs_prio_slice(&dev, false, p), async[p]);
		CHECK_EQ(cs_async_limit(&dev, &dev.async_be[p]), limit[p]);
	}
	/* The step is a fifth, rounded down before it is multiplied. */
	CHECK_EQ(hw_tunable_set(&dev.q, "slice_sync", 83), 0);
	hw_tuned(&dev.q);
	CHECK_EQ(cs_prio_slice(&dev, true, 0), 83 + 16 * 4);
	CHECK_EQ(cs_prio_slice(&dev, true, 7), 83 - 16 * 3);
	/* Ticks of 250 us: four times as many. */
	CHECK_EQ(hw_tunable_set(&dev.q, "tick_us", 250), 0);
	hw_tuned(&dev.q);
	CHECK_EQ(cs_prio_slice(&dev, true, 4), 332);
}

static void test_keys(void)
{
	start(1);
	serve_one(0, 0, 0, 5 * MS); /* slice ends at 105 */
	read_at(1, 1000000, 6 * MS);
	/* The only busy queue: its key is the time. */
	CHECK_EQ(tasks[1].sync->key, 6);
	read_at(2, 5000000, 7 * MS);
	/* Two busy: one extra difference to the longest slice, 180 - 100. */
	CHECK_EQ(tasks[2].sync->key, 7 + 80);
	submit(3, 7000000, 0, 0, 8 * MS);
	CHECK_EQ(dev.async_be[4].key, 8 + 2 * 140);

	/* An overrun of 2 moves the queue 2 later; unused time would move it forward. */
	start(1);
	serve_one(0, 0, 0, 5 * MS);
	serve_one(0, 8, 6 * MS, 107 * MS);
	CHECK(!dev.active);
	CHECK_EQ(tasks[0].sync->slice_resid, -2);
	read_at(0, 16, 108 * MS);
	CHECK_EQ(tasks[0].sync->key, 108 + 2);
	CHECK_EQ(tasks[0].sync->slice_resid, 0);
}

static void test_preemption_keeps_the_rest(void)
{
	struct hw_request *x;

	start(1);
	serve_one(0, 0, 0, 5 * MS);
	read_at(0, 8, 6 * MS);
	read_at(0, 16, 6 * MS);
	CHECK(hw_dispatch(&dev.q, 6 * MS));
	x = submit(1, 9000000, HW_RQ_SYNC, HW_IOPRIO(HW_IOPRIO_RT, 0), 10 * MS);
	CHECK(!dev.active);
	/* 95 ticks were left, and two queues are busy. */
	CHECK_EQ(tasks[0].sync->key, 10 + 80 - 95);
	CHECK_EQ(tasks[1].sync->key, 10 + 0 - 1000);
	hw_complete(&dev.q, &requests[1].s.rq, 12 * MS);
	CHECK(hw_dispatch(&dev.q, 12 * MS) == x);
}

static void test_idle_class_is_last(void)
{
	start(1);
	read_at(0, 0, 0);
	submit(1, 5000, HW_RQ_SYNC, HW_IOPRIO(HW_IOPRIO_IDLE, 3), 0);
	/* Behind the last key, 0, by 200. The level does not matter. */
	CHECK_EQ(tasks[1].sync->key, 200);
	CHECK_EQ(tasks[1].sync->prio, 7);
	CHECK(!tasks[1].sync->idle_window);
}

static void test_hw_tag(void)
{
	struct hw_request *rq[8];
	u32 i, round;

	start(1);
	CHECK(!dev.has_tags);
	start(32);
	CHECK(dev.has_tags);
	/*
	 * A device that says 32 but is given one at a time, with more than 5 waiting: not a
	 * queueing one.
	 */
	for (i = 0; i < 60; i++)
		read_at(0, 1000 * i, 0);
	CHECK_EQ(hw_tunable_set(&dev.q, "quantum", 1), 0);
	for (i = 0; i < 52; i++) {
		CHECK_EQ(dev.has_tags, i < 51);
		rq[0] = hw_dispatch(&dev.q, i * MS);
		CHECK(rq[0]);
		if (rq[0])
			hw_complete(&dev.q, rq[0], i * MS);
	}
	/* And one that takes 8 at once is. */
	start(32);
	dev.has_tags = false;
	for (i = 0; i < 200; i++)
		read_at(0, 1000 * i, 0);
	for (round = 0; round < 7; round++) {
		for (i = 0; i < 8; i++)
			rq[i] = hw_dispatch(&dev.q, round * MS);
		for (i = 0; i < 8; i++)
			hw_complete(&dev.q, rq[i], round * MS);
		CHECK_EQ(dev.has_tags, round == 6);
	}
}

/* Tasks 0 and 1 read side by side, and share the queue of task 1 from 16 ms on. */
static void cooperate(void)
{
	struct hw_request *a, *b;

	start(1);
	a = read_at(0, 0, 0);
	CHECK(hw_dispatch(&dev.q, 0) == a);
	b = read_at(1, 8, 1 * MS);
	hw_complete(&dev.q, a, 5 * MS);
	CHECK(hw_dispatch(&dev.q, 5 * MS) == b);
	CHECK(tasks[0].sync->merge_into == tasks[1].sync);
	hw_complete(&dev.q, b, 10 * MS);
	serve_one(0, 16, 11 * MS, 16 * MS);
	CHECK(tasks[0].sync == &tasks[1].slot);
	CHECK(tasks[1].sync == &tasks[1].slot);
	CHECK(!tasks[0].slot.in_use);
	CHECK_EQ(dev.merges, 1);
}

/*
 * The queue of a task that has exited goes on for those who share it; memory is kept, then
 * released.
 */
static void test_shared_queue_outlives_its_lender(void)
{
	u32 i;

	cooperate();
	hw_task_exit(&dev.q, &tasks[1].task, 17 * MS);
	CHECK(list_empty(&dev.q.reap));
	for (i = 0; i < 3; i++)
		serve_one(0, 24 + 8 * i, (20 + i) * MS, (21 + i) * MS);
	hw_task_exit(&dev.q, &tasks[0].task, 30 * MS);
	/* Both may go now. */
	CHECK(dev.q.reap.next != dev.q.reap.prev);
}

/* Not before it has drained may a queue that nobody uses any more serve somebody else. */
static void test_queue_is_kept_until_it_has_drained(void)
{
	struct cs_queue *c;

	start(1);
	serve_one(0, 0, 0, 5 * MS);
	c = tasks[0].sync;
	CHECK(c->in_use);
	dev.active = NULL;
	c->users = 0;
	c->dispatched = 1;
	cs_retire(&dev, c);
	CHECK(c->in_use);
	c->dispatched = 0;
	c->queued = 1;
	cs_retire(&dev, c);
	CHECK(c->in_use);
	c->queued = 0;
	cs_retire(&dev, c);
	CHECK(!c->in_use);
}

/* Cooperators that have parted get queues of their own again, whosever memory they are in. */
static void test_split(void)
{
	u64 t;
	u32 i;

	cooperate();
	for (t = 20, i = 0; t < 1200; t += 10, i++)
		serve_one(i % 2, i % 2 ? 50000000 + 8 * i : 8 * i + 100, t * MS, (t + 9) * MS);
	CHECK(tasks[0].sync != tasks[1].sync);
	CHECK_EQ(dev.splits, 1);
	CHECK(tasks[0].sync->in_use && tasks[1].sync->in_use);
	CHECK_EQ(tasks[0].sync->users + tasks[1].sync->users, 2);
}

/*
 * blk-mq joins requests of two processes when a third closes the gap between them. What is left of
 * them stays in its own queue's list, whichever was the older.
 */
static void test_requests_of_two_queues_are_joined(void)
{
	struct hw_request *keep, *gone, *rq;
	u32 older;

	for (older = 0; older < 2; older++) {
		start(1);
		if (older) {
			keep = read_at(1, 1000, 0);
			gone = read_at(0, 1008, 1);
		} else {
			gone = read_at(0, 1008, 0);
			keep = read_at(1, 1000, 4000000);
		}
		hw_merge_requests(&dev.q, keep, gone);
		keep->sectors += 8;
		CHECK_EQ(tasks[0].sync->queued, 0);
		CHECK(list_empty(&tasks[0].sync->fifo));
		CHECK_EQ(tasks[1].sync->queued, 1);
		CHECK(hw_fifo_first(&tasks[1].sync->fifo) == hw_sorted(keep));
		rq = hw_dispatch(&dev.q, 8000000);
		CHECK(rq == keep);
		CHECK(list_empty(&tasks[1].sync->fifo));
	}
}

int main(void)
{
	test_requests_of_two_queues_are_joined();
	test_slices();
	test_keys();
	test_preemption_keeps_the_rest();
	test_idle_class_is_last();
	test_hw_tag();
	test_shared_queue_outlives_its_lender();
	test_queue_is_kept_until_it_has_drained();
	test_split();
	return CHECK_DONE();
}
