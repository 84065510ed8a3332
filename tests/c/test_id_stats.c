// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * as-seek and as-share: tables of think times, expected positioning, and decisions with given
 * habits (I1-I5, I7).
 */
#include "check.h"
#include "core/policy/id/internal.h"

#define MS	 HW_NSEC_PER_MSEC
#define US	 HW_NSEC_PER_USEC
#define TASKS	 4
#define REQUESTS 64

static struct id_device dev;
static struct id_task tasks[TASKS];
static struct id_request requests[REQUESTS];
static u32 nr_requests;

enum { A, B, C };

static const s64 positions[] = { 0, 0, 1000000, 10 * MS, 2000000, 20 * MS };

/* A drive on which 100 000 sectors are 1 ms, and 2 000 000 sectors and more 20 ms. */
static void start(const struct hw_policy *policy)
{
	u32 i;

	memset(&dev, 0, sizeof(dev));
	memset(tasks, 0, sizeof(tasks));
	memset(requests, 0, sizeof(requests));
	nr_requests = 0;
	hw_queue_prepare(&dev.q, policy);
	dev.q.dev.rotational = true;
	dev.q.dev.depth = 1;
	dev.q.dev.positions = (struct hw_rows){ positions, 3 };
	CHECK_EQ(hw_start(&dev.q, 0), 0);
	for (i = 0; i < TASKS; i++) {
		tasks[i].task.id = i;
		hw_task_start(&dev.q, &tasks[i].task, 0);
	}
}

static struct hw_request *read_at(u32 task, u64 sector, u64 now)
{
	struct hw_request *rq = &requests[nr_requests++].s.rq;

	rq->task = &tasks[task].task;
	rq->sector = sector;
	rq->sectors = 8;
	rq->flags = HW_RQ_SYNC;
	hw_insert(&dev.q, rq, now);
	return rq;
}

/*
 * Serve a request of @task that ends at sector 0 + 8, and give it habits: median and 95-percentile
 * think time.
 */
static void served(u32 task, u64 at, u64 end, u64 median_ns, u64 p95_ns, u64 positioning_ns)
{
	struct hw_request *rq = read_at(task, 0, at), *got;
	struct id_task *t = &tasks[task];

	memset(t->think, 0, sizeof(t->think));
	t->think[median_ns / (500 * US) - 1] = 600000;
	t->think[p95_ns / (500 * US) - 1] += 400000;
	t->thought = true;
	t->positioned = true;
	t->positioning_ns = positioning_ns;
	got = hw_dispatch(&dev.q, at);
	CHECK(got == rq);
	if (got) {
		/* Its own positioning time is not a sample here. */
		requests[0].has_positioning = false;
		hw_complete(&dev.q, got, end);
	}
}

/* P(sector) from the head at 8. */
static u64 place(u64 positioning_us)
{
	return 8 + positioning_us * 100;
}

static void test_positioning(void)
{
	start(&hw_as_seek);
	CHECK_EQ(id_positioning(&dev, 500, 500), 0);
	CHECK_EQ(id_positioning(&dev, 0, 100000), 1 * MS);
	CHECK_EQ(id_positioning(&dev, 100000, 0), 1 * MS);
	CHECK_EQ(id_positioning(&dev, 0, 1000000), 10 * MS);
	CHECK_EQ(id_positioning(&dev, 0, 1500000), 15 * MS);
	CHECK_EQ(id_positioning(&dev, 0, 9000000), 20 * MS);
}

/* I4 */
static void test_think_times(void)
{
	struct id_task *t = &tasks[A];
	u32 i;

	start(&hw_as_seek);
	CHECK_EQ(id_think_percentile(&dev, t, 95), 3 * MS);
	CHECK_EQ(id_think_percentile(&dev, t, 50), 0);
	for (i = 0; i < 3; i++)
		id_learn_think(&dev, t, 1 * MS);
	CHECK_EQ(t->think[2], 2710000);
	id_learn_think(&dev, t, 6200 * US);
	CHECK_EQ(t->think[2], 2439000);
	CHECK_EQ(t->think[12], 1000000);
	CHECK_EQ(id_think_percentile(&dev, t, 50), 1500 * US);
	CHECK_EQ(id_think_percentile(&dev, t, 95), 6500 * US);
	/* 30 ms and more are beyond the table. */
	id_learn_think(&dev, t, 29999 * US);
	CHECK_EQ(t->think[59], 1000000);
	id_learn_think(&dev, t, 30 * MS);
	CHECK_EQ(t->think[60], 1000000);
	CHECK_EQ(id_think_percentile(&dev, t, 95), HW_NEVER);
}

/* I5: within 1% of 0.5. */
static void test_expected_positioning(void)
{
	u32 i;

	start(&hw_as_seek);
	id_learn_positioning(&dev, &tasks[A], 10 * MS);
	CHECK_EQ(tasks[A].positioning_ns, 10 * MS);
	id_learn_positioning(&dev, &tasks[A], 0);
	CHECK_EQ(tasks[A].positioning_ns, 7411 * US);
	for (i = 1; i < 10; i++)
		id_learn_positioning(&dev, &tasks[A], 0);
	CHECK(tasks[A].positioning_ns > 495 * US && tasks[A].positioning_ns < 505 * US);
}

/* Think times as they are sampled: none for the first request, 0 while one is outstanding. */
static void test_samples(void)
{
	struct hw_request *rq;

	start(&hw_as_seek);
	rq = read_at(A, 0, 0);
	CHECK(!tasks[A].thought);
	CHECK(hw_dispatch(&dev.q, 0) == rq);
	read_at(A, 100008, 1 * MS);
	CHECK_EQ(tasks[A].think[0], 1000000);
	hw_complete(&dev.q, rq, 5 * MS);
	CHECK(!tasks[A].positioned);
	rq = hw_dispatch(&dev.q, 5 * MS);
	CHECK(rq);
	hw_complete(&dev.q, rq, 10 * MS);
	/* 100 000 sectors from the end of its last request. */
	CHECK_EQ(tasks[A].positioning_ns, 1 * MS);
	CHECK_EQ(tasks[A].backward, 0);
	read_at(A, 0, 12 * MS);
	CHECK_EQ(tasks[A].think[4], 1000000);
	CHECK_EQ(tasks[A].think[0], 900000);
	CHECK_EQ(tasks[A].backward, 100000);
}

/* I1, W = 0: candidate 8 ms away, expected 1.5, median 1, 95-percentile 3. */
static void test_wait(void)
{
	struct hw_request *b, *other;

	start(&hw_as_seek);
	CHECK_EQ(hw_tunable_set(&dev.q, "W", 0), 0);
	served(A, 95 * MS, 100 * MS, 1 * MS, 3 * MS, 1500 * US);
	b = read_at(B, place(8000), 100 * MS);
	CHECK(!hw_dispatch(&dev.q, 100 * MS));
	CHECK(dev.q.wait.active);
	CHECK_EQ(dev.q.wake_ns, 103 * MS);
	/* (ii) */
	CHECK(!hw_dispatch(&dev.q, 103 * MS - 1));
	CHECK(hw_dispatch(&dev.q, 103 * MS) == b);
	CHECK_EQ(dev.q.wait.count[HW_WAIT_FAIL], 1);
	CHECK_EQ(dev.q.wait.total_ns[HW_WAIT_FAIL], 3 * MS);

	/* (i) */
	start(&hw_as_seek);
	served(A, 95 * MS, 100 * MS, 1 * MS, 3 * MS, 1500 * US);
	read_at(B, place(8000), 100 * MS);
	CHECK(!hw_dispatch(&dev.q, 100 * MS));
	other = read_at(A, place(1500), 101200 * US);
	CHECK_EQ(dev.q.wait.count[HW_WAIT_SUCCESS], 1);
	CHECK(hw_dispatch(&dev.q, 101200 * US) == other);

	/* (iii): 1.2 ms away is less than A's 1.5. */
	start(&hw_as_seek);
	served(A, 95 * MS, 100 * MS, 1 * MS, 3 * MS, 1500 * US);
	read_at(B, place(8000), 100 * MS);
	CHECK(!hw_dispatch(&dev.q, 100 * MS));
	other = read_at(C, place(1200), 102 * MS);
	CHECK(hw_dispatch(&dev.q, 102 * MS) == other);
	CHECK_EQ(dev.q.wait.count[HW_WAIT_OTHER], 1);

	/*
	 * At 102 waiting costs nothing more, so that 0.5 ms of benefit are enough; the wait ends
	 * when it was to end.
	 */
	start(&hw_as_seek);
	served(A, 95 * MS, 100 * MS, 1 * MS, 3 * MS, 1500 * US);
	read_at(B, place(8000), 100 * MS);
	CHECK(!hw_dispatch(&dev.q, 100 * MS));
	other = read_at(C, place(2000), 102 * MS);
	CHECK(!hw_dispatch(&dev.q, 102 * MS));
	CHECK_EQ(dev.q.wake_ns, 103 * MS);
	CHECK(hw_dispatch(&dev.q, 103 * MS) == other);
	CHECK_EQ(dev.q.wait.begun, 1);
}

/* I2, I3, and what is just on the other side of the line. */
static void test_no_wait(void)
{
	struct hw_request *b;

	start(&hw_as_seek);
	CHECK_EQ(hw_tunable_set(&dev.q, "W", 0), 0);
	served(A, 95 * MS, 100 * MS, 5 * MS, 12 * MS, 2 * MS);
	b = read_at(B, place(6000), 100 * MS);
	CHECK(hw_dispatch(&dev.q, 100 * MS) == b);

	start(&hw_as_seek);
	served(A, 95 * MS, 100 * MS, 5 * MS, 12 * MS, 2 * MS);
	b = read_at(B, place(7000), 100 * MS);
	CHECK(hw_dispatch(&dev.q, 100 * MS) == b);

	start(&hw_as_seek);
	served(A, 95 * MS, 100 * MS, 5 * MS, 12 * MS, 2 * MS);
	read_at(B, place(7010), 100 * MS);
	CHECK(!hw_dispatch(&dev.q, 100 * MS));
	CHECK_EQ(dev.q.wake_ns, 112 * MS);

	/* Beyond max_wait: not at all. */
	start(&hw_as_seek);
	served(A, 95 * MS, 100 * MS, 1 * MS, 20500 * US, 0);
	b = read_at(B, place(8000), 100 * MS);
	CHECK(hw_dispatch(&dev.q, 100 * MS) == b);
}

/* I7: 250 ms of age forgive 7.5 ms. */
static void test_ageing(void)
{
	struct hw_request *b, *rq;

	start(&hw_as_seek);
	rq = read_at(A, 0, 0);
	CHECK(hw_dispatch(&dev.q, 0) == rq);
	b = read_at(B, place(8000), 100 * MS);
	tasks[A].thought = true;
	tasks[A].think[1] = 600000;
	tasks[A].think[5] = 400000;
	tasks[A].positioning_ns = 1500 * US;
	hw_complete(&dev.q, rq, 350 * MS);
	CHECK(hw_dispatch(&dev.q, 350 * MS) == b);
}

/* A timer of coarse resolution ends the wait late, and it counts as failed all the same. */
static void test_timer_resolution(void)
{
	struct hw_request *b;

	start(&hw_as_seek);
	CHECK_EQ(hw_tunable_set(&dev.q, "timer_resolution", 2000), 0);
	served(A, 95 * MS, 100 * MS, 1 * MS, 3 * MS, 1500 * US);
	b = read_at(B, place(8000), 100 * MS);
	CHECK(!hw_dispatch(&dev.q, 100 * MS));
	CHECK_EQ(dev.q.wake_ns, 104 * MS);
	CHECK(hw_dispatch(&dev.q, 104 * MS) == b);
	CHECK_EQ(dev.q.wait.count[HW_WAIT_FAIL], 1);
}

/* Nobody is left to be waited for. */
static void test_exit_ends_the_wait(void)
{
	struct hw_request *b;

	start(&hw_as_seek);
	served(A, 95 * MS, 100 * MS, 1 * MS, 3 * MS, 1500 * US);
	b = read_at(B, place(8000), 100 * MS);
	CHECK(!hw_dispatch(&dev.q, 100 * MS));
	hw_task_exit(&dev.q, &tasks[A].task, 101 * MS);
	CHECK(!dev.q.wait.active);
	CHECK(!list_empty(&dev.q.reap));
	CHECK(hw_dispatch(&dev.q, 101 * MS) == b);
}

/* C-SCAN does not wait for a process that mostly goes backwards. */
static void test_backward(void)
{
	struct hw_request *b;

	start(&hw_as_seek);
	CHECK_EQ(hw_tunable_set(&dev.q, "order", 1), 0);
	served(A, 95 * MS, 100 * MS, 1 * MS, 3 * MS, 1500 * US);
	tasks[A].backward = 799999;
	b = read_at(B, place(8000), 100 * MS);
	CHECK(!hw_dispatch(&dev.q, 100 * MS));
	tasks[A].backward = 800000;
	CHECK(hw_dispatch(&dev.q, 100 * MS) == b);
}

/* The default relaxation: 100 ms over the mean number of tickets, 1.5, on this drive with seeks. */
static void test_relaxation(void)
{
	struct hw_request *a, *b;

	start(&hw_as_share);
	CHECK_EQ(hw_tunable_set(&dev.q, "charge", 1), 0);
	tasks[A].task.share = 1;
	tasks[B].task.share = 2;
	a = read_at(A, 0, 0);
	b = read_at(B, 1000000, 0);
	CHECK(hw_dispatch(&dev.q, 0) == a);
	hw_complete(&dev.q, a, 5 * MS);
	CHECK_EQ(tasks[A].clock, 5 * MS);
	tasks[A].clock = 100 * MS * 2 / 3;
	/* At the limit A is not yet ahead, and is waited for on trial. */
	CHECK(!hw_dispatch(&dev.q, 5 * MS));
	tasks[A].clock++;
	CHECK(hw_dispatch(&dev.q, 5 * MS) == b);
	hw_complete(&dev.q, b, 11 * MS);
	CHECK_EQ(tasks[B].clock, 3 * MS);
}

/* The way back to a process's own place is not charged to it. */
static void test_detour(void)
{
	struct hw_request *a, *b;

	start(&hw_as_share);
	CHECK_EQ(hw_tunable_set(&dev.q, "charge", 1), 0);
	CHECK_EQ(hw_tunable_set(&dev.q, "tau", 0), 0);
	CHECK_EQ(hw_tunable_set(&dev.q, "anticipate", 0), 0);
	tasks[A].task.share = 2;
	tasks[B].task.share = 2;
	a = read_at(A, 0, 0);
	CHECK(hw_dispatch(&dev.q, 0) == a);
	hw_complete(&dev.q, a, 1 * MS);
	b = read_at(B, 500008, 1 * MS);
	CHECK(hw_dispatch(&dev.q, 1 * MS) == b);
	hw_complete(&dev.q, b, 8 * MS);
	/* Its first request: nobody has taken the head away from it. */
	CHECK_EQ(tasks[B].clock, 7 * MS / 2);
	a = read_at(A, 100008, 9 * MS);
	CHECK(hw_dispatch(&dev.q, 9 * MS) == a);
	hw_complete(&dev.q, a, 15 * MS);
	/*
	 * 6 ms of service after the 1 ms of its first, of which 4 ms of positioning where its own
	 * last request would have left it 1 ms.
	 */
	CHECK_EQ(tasks[A].clock, 500 * US + (6 * MS - (4 * MS + 80 - 1 * MS)) / 2);
}

/* As many bytes cost the same whoever reads them: what requests so far took on average. */
static void test_charge(void)
{
	struct hw_request *a, *b;

	start(&hw_as_share);
	tasks[A].task.share = 1;
	tasks[B].task.share = 2;
	a = read_at(A, 0, 0);
	CHECK(hw_dispatch(&dev.q, 0) == a);
	hw_complete(&dev.q, a, 5 * MS);
	CHECK_EQ(tasks[A].clock, 5 * MS);
	tasks[A].clock = 0;
	b = read_at(B, 1000000, 20 * MS);
	CHECK(hw_dispatch(&dev.q, 20 * MS) == b);
	hw_complete(&dev.q, b, 27 * MS);
	CHECK_EQ(tasks[B].clock, (5 + 7) * MS / 2 / 2);
}

int main(void)
{
	test_positioning();
	test_think_times();
	test_expected_positioning();
	test_samples();
	test_wait();
	test_no_wait();
	test_ageing();
	test_timer_resolution();
	test_exit_ends_the_wait();
	test_backward();
	test_relaxation();
	test_detour();
	test_charge();
	return CHECK_DONE();
}
