// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * mq-deadline where the moment of a decision matters, or the kernel's version. D and Q numbers are
 * those of its spec.
 */
#include "policy_bench.h"

#define RT	   HW_IOPRIO(HW_IOPRIO_RT, 4)
#define BE	   HW_IOPRIO(HW_IOPRIO_BE, 4)
#define IDLE_CLASS HW_IOPRIO(HW_IOPRIO_IDLE, 0)

enum { KERNEL_6_1, KERNEL_6_12 };

static void class_read(struct bench *b, char name, u64 sector, u16 ioprio, u64 now)
{
	bench_insert_flags(b, name, HW_READ, sector, ioprio, HW_RQ_SYNC, 0, now);
}

/* D2: a request below the sweep waits for it to come round; that is to the oldest request. */
static void test_sweep(void)
{
	struct bench b = bench_new("mq-deadline", 0);

	bench_start(&b);
	bench_insert(&b, 'a', HW_READ, 500, 0);
	bench_insert(&b, 'b', HW_READ, 100, 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'b');
	bench_insert(&b, 'c', HW_READ, 50, 0);
	bench_insert(&b, 'd', HW_READ, 300, 0);
	CHECK_ORDER(bench_drain(&b, 0), "dac");
	bench_free(&b);
}

/* D5, and the instants around the deadline: expired means now >= deadline. */
static void test_expiry(u64 later, const char *want)
{
	struct bench b = bench_new("mq-deadline", 0);
	int i;

	bench_set(&b, "fifo_batch", 3);
	bench_start(&b);
	/* One whole batch brings the sweep of reads to 1000. */
	for (i = 0; i < 3; i++)
		bench_insert(&b, (char)('x' + i), HW_READ, 980 + 10 * (u64)i, 0);
	CHECK_ORDER(bench_drain(&b, 0), "xyz");
	bench_insert(&b, 'o', HW_READ, 10, 0);
	for (i = 0; i < 6; i++)
		bench_insert(&b, (char)('0' + i), HW_READ, 1000 + 10 * (u64)i, 0);
	CHECK_EQ(bench_dispatch(&b, 0), '0');
	CHECK_EQ(bench_dispatch(&b, 0), '1');
	CHECK_ORDER(bench_drain(&b, later), want);
	bench_free(&b);
}

/* D6, and with polls: a class is held back by what the class above has in the device. */
static void test_classes(void)
{
	struct bench b = bench_new("mq-deadline", 0);

	bench_start(&b);
	class_read(&b, 'i', 50, IDLE_CLASS, 0);
	class_read(&b, 'b', 100, BE, 0);
	class_read(&b, 'r', 500, RT, 0);
	CHECK_EQ(bench_stat(&b, "unfinished_rt"), 1);
	CHECK_EQ(bench_dispatch(&b, 0), 'r');
	CHECK_EQ(bench_dispatch(&b, 0), '-');
	/*
	 * A scheduler that has requests and gives none is asked again 3 ms later, rounded up to a
	 * tick and one more.
	 */
	CHECK_EQ(b.q->wake_ns, MS(3) + HW_NSEC_PER_USEC);
	CHECK(hw_has_work(b.q));
	bench_complete(&b, 'r', MS(9));
	CHECK_EQ(bench_dispatch(&b, MS(9)), 'b');
	CHECK_EQ(bench_dispatch(&b, MS(9)), '-');
	bench_complete(&b, 'b', MS(20));
	CHECK_EQ(bench_dispatch(&b, MS(20)), 'i');
	CHECK_EQ(bench_dispatch(&b, MS(20)), '-');
	CHECK_EQ(b.q->wake_ns, HW_NEVER);
	CHECK(!hw_has_work(b.q));
	bench_free(&b);
}

/* D7: what has queued for prio_aging_expire goes before higher classes. */
static void test_ageing(void)
{
	struct bench b = bench_new("mq-deadline", 0);

	bench_start(&b);
	class_read(&b, 'b', 100, 0, 0);
	class_read(&b, 'r', 500, RT, MS(9999));
	class_read(&b, 's', 600, RT, MS(9999));
	CHECK_EQ(bench_dispatch(&b, MS(9999)), 'r');
	CHECK_EQ(bench_dispatch(&b, MS(10000)), 'b');
	CHECK_EQ(bench_dispatch(&b, MS(10000)), 's');
	bench_free(&b);

	/* Not a tick earlier. */
	b = bench_new("mq-deadline", 0);
	bench_start(&b);
	class_read(&b, 'b', 100, 0, 0);
	class_read(&b, 'r', 500, RT, MS(9999));
	CHECK_EQ(bench_dispatch(&b, MS(9999)), 'r');
	CHECK_EQ(bench_dispatch(&b, MS(10000) - HW_NSEC_PER_USEC), '-');
	CHECK_EQ(bench_dispatch(&b, MS(10000)), 'b');
	bench_free(&b);
}

/* Ageing looks at best-effort before idle, and needs two classes with unfinished requests. */
static void test_ageing_order(void)
{
	struct bench b = bench_new("mq-deadline", 0);

	bench_start(&b);
	class_read(&b, 'i', 100, IDLE_CLASS, 0);
	class_read(&b, 'j', 900, IDLE_CLASS, MS(5));
	class_read(&b, 'b', 500, BE, MS(5));
	class_read(&b, 'r', 700, RT, MS(10002));
	CHECK_EQ(bench_dispatch(&b, MS(10002)), 'i');
	CHECK_EQ(bench_dispatch(&b, MS(10002)), 'r');
	CHECK_EQ(bench_dispatch(&b, MS(10004)), '-');
	CHECK_EQ(bench_dispatch(&b, MS(10005)), 'b');
	CHECK_EQ(bench_dispatch(&b, MS(10005)), 'j');
	bench_free(&b);
}

/* Q2: a class that is looked at for its age and refused has moved the starvation count. */
static void test_refusals_count(int refusals, char want)
{
	struct bench b = bench_new("mq-deadline", 0);

	bench_start(&b);
	/* Nothing lies upwards in the class, so that every look at it begins a batch. */
	bench_insert(&b, 'x', HW_READ, 1000, 0);
	CHECK_ORDER(bench_drain(&b, 0), "x");
	class_read(&b, 'r', 500, RT, 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'r');
	bench_insert(&b, 'a', HW_READ, 100, 0);
	bench_insert(&b, 'w', HW_WRITE, 200, 0);
	while (refusals--)
		CHECK_EQ(bench_dispatch(&b, 0), '-');
	bench_complete(&b, 'r', 0);
	/* Only one class is left: no ageing pass. */
	CHECK_EQ(bench_dispatch(&b, 0), want);
	bench_free(&b);
}

/* Q1, Q3 and Q4. */
static void test_corners(void)
{
	struct bench b = bench_new("mq-deadline", 0);

	bench_start(&b);
	bench_insert(&b, 'r', HW_READ, 100, 0);
	bench_insert(&b, 'w', HW_WRITE, 200, 0);
	CHECK_ORDER(bench_drain(&b, 0), "wr");
	bench_free(&b);

	b = bench_new("mq-deadline", 0);
	bench_set(&b, "fifo_batch", 0);
	bench_start(&b);
	bench_insert(&b, 'w', HW_WRITE, 200, 0);
	bench_insert(&b, 'q', HW_READ, 100, 0);
	bench_insert(&b, 'r', HW_READ, 110, 0);
	bench_insert(&b, 's', HW_READ, 120, 0);
	bench_insert(&b, 'v', HW_WRITE, 210, 0);
	CHECK_ORDER(bench_drain(&b, 0), "qrwsv");
	bench_free(&b);

	b = bench_new("mq-deadline", 0);
	bench_set(&b, "fifo_batch", 1);
	bench_set(&b, "writes_starved", 0);
	bench_start(&b);
	bench_insert(&b, 'q', HW_READ, 100, 0);
	bench_insert(&b, 'r', HW_READ, 110, 0);
	bench_insert(&b, 'v', HW_WRITE, 200, 0);
	bench_insert(&b, 'w', HW_WRITE, 210, 0);
	CHECK_ORDER(bench_drain(&b, 0), "vwqr");
	bench_free(&b);
}

/*
 * What the host puts first comes last in, first out; a requeued request too. It belongs to no
 * batch.
 */
static void test_at_head(void)
{
	struct bench b = bench_new("mq-deadline", 0);

	bench_start(&b);
	bench_insert(&b, 'a', HW_READ, 100, 0);
	bench_insert(&b, 'b', HW_READ, 200, 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'a');
	bench_insert_flags(&b, 'h', HW_WRITE, 50, IDLE_CLASS, HW_RQ_AT_HEAD, 0, 0);
	bench_insert_flags(&b, 'i', HW_READ, 60, RT, HW_RQ_AT_HEAD, 0, 0);
	hw_requeue(b.q, b.named['a'], 0);
	CHECK_EQ(bench_stat(&b, "unfinished_be"), 2);
	CHECK_EQ(bench_dispatch(&b, 0), 'a');
	CHECK_EQ(bench_dispatch(&b, 0), 'i');
	CHECK_EQ(bench_dispatch(&b, 0), 'h');
	CHECK_EQ(bench_stat(&b, "batching"), 1);
	bench_complete(&b, 'i', 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'b');
	bench_free(&b);

	/* 6.1 keeps such requests by class. */
	b = bench_new("mq-deadline", 0);
	bench_set(&b, "kernel", KERNEL_6_1);
	bench_start(&b);
	bench_insert_flags(&b, 'r', HW_READ, 60, RT, 0, 0, 0);
	bench_insert_flags(&b, 'h', HW_WRITE, 50, IDLE_CLASS, HW_RQ_AT_HEAD, 0, 0);
	bench_insert_flags(&b, 's', HW_READ, 40, RT, HW_RQ_AT_HEAD, 0, 0);
	CHECK_ORDER(bench_drain(&b, 0), "srh");
	bench_free(&b);
}

/*
 * 6.12 looks upwards from where it stands; 6.1 remembers which request followed, whatever came in
 * between.
 */
static void test_newcomer(s64 kernel, const char *want)
{
	struct bench b = bench_new("mq-deadline", 0);

	bench_set(&b, "kernel", kernel);
	bench_start(&b);
	bench_insert(&b, 'a', HW_READ, 100, 0);
	bench_insert(&b, 'c', HW_READ, 300, 0);
	bench_insert(&b, 'd', HW_READ, 400, 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'a');
	bench_insert(&b, 'b', HW_READ, 200, 0);
	CHECK_ORDER(bench_drain(&b, 0), want);
	bench_free(&b);
}

/* In 6.1 a remembered request that is merged away hands its place on. */
static void test_successor_of_merged(void)
{
	struct bench b = bench_new("mq-deadline", 0);

	bench_set(&b, "kernel", KERNEL_6_1);
	bench_start(&b);
	bench_insert(&b, 'o', HW_READ, 50, 0);
	bench_insert(&b, 'a', HW_READ, 100, 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'o');
	bench_insert(&b, 'x', HW_READ, 20, 0);
	bench_insert(&b, 'k', HW_READ, 92, 0);
	bench_insert(&b, 'z', HW_READ, 300, 0);
	b.named['k']->sectors += 8;
	hw_merge_requests(b.q, b.named['k'], b.named['a']);
	CHECK_EQ(bench_stat(&b, "unfinished_be"), 4);
	bench_complete(&b, 'o', 0);
	CHECK_ORDER(bench_drain(&b, 0), "zxk");
	bench_free(&b);
}

/*
 * The survivor of a merge takes the earlier deadline and its place; a front merge moves the request
 * in the sweep.
 */
static void test_merges(void)
{
	struct bench b = bench_new("mq-deadline", 0);
	struct hw_bio bio = { .sector = 192, .sectors = 8, .op = HW_READ };
	enum hw_merge how = HW_NO_MERGE;
	struct hw_request *rq;

	bench_set(&b, "fifo_batch", 1);
	bench_start(&b);
	bench_insert(&b, 'o', HW_READ, 308, 0);
	bench_insert(&b, 'm', HW_READ, 10, MS(1));
	bench_insert(&b, 'k', HW_READ, 300, MS(2));
	b.named['k']->sectors += 8;
	CHECK(hw_latter(b.q, b.named['k']) == b.named['o']);
	CHECK(hw_former(b.q, b.named['k']) == b.named['m']);
	hw_merge_requests(b.q, b.named['k'], b.named['o']);
	CHECK_ORDER(bench_drain(&b, MS(500)), "km");

	bench_insert(&b, 'p', HW_READ, 200, MS(500));
	bench_insert(&b, 'n', HW_READ, 196, MS(500));
	rq = hw_find_merge(b.q, &bio, &how);
	CHECK(rq == b.named['p']);
	CHECK_EQ(how, HW_FRONT_MERGE);
	bio.op = HW_WRITE;
	CHECK(!hw_find_merge(b.q, &bio, &how));
	bio = (struct hw_bio){ .sector = 192, .sectors = 8, .op = HW_READ, .ioprio = RT };
	CHECK(!hw_find_merge(b.q, &bio, &how));
	rq->sector = 192;
	rq->sectors = 16;
	hw_merged(b.q, rq, HW_FRONT_MERGE, MS(500));
	CHECK(hw_former(b.q, b.named['n']) == b.named['p']);
	bench_set(&b, "front_merges", 0);
	bio = (struct hw_bio){ .sector = 184, .sectors = 8, .op = HW_READ };
	CHECK(!hw_find_merge(b.q, &bio, &how));
	bench_free(&b);
}

static u32 tags_for(u32 nr_requests, s64 kernel, s64 async_depth, u8 op, u8 flags)
{
	struct bench b = bench_new("mq-deadline", nr_requests);
	struct hw_bio bio = { .op = op, .flags = flags };
	u32 tags;

	bench_set(&b, "kernel", kernel);
	bench_set(&b, "async_depth", async_depth);
	bench_start(&b);
	tags = hw_limit_depth(b.q, &bio);
	bench_free(&b);
	return tags;
}

static void test_tags(void)
{
	CHECK_EQ(tags_for(0, KERNEL_6_12, 10, HW_WRITE, 0), U32_MAX);
	CHECK_EQ(tags_for(256, KERNEL_6_12, 0, HW_WRITE, 0), 256);
	CHECK_EQ(tags_for(256, KERNEL_6_12, 100, HW_WRITE, HW_RQ_SYNC), 100);
	CHECK_EQ(tags_for(256, KERNEL_6_12, 100, HW_READ, HW_RQ_SYNC), 256);
	CHECK_EQ(tags_for(256, KERNEL_6_12, 100, HW_READ, 0), 100);
	CHECK_EQ(tags_for(64, KERNEL_6_12, 100, HW_WRITE, 0), 64);
	/* Three quarters of each word of the bitmap would be 192 of 64: no limit. */
	CHECK_EQ(tags_for(256, KERNEL_6_1, 0, HW_WRITE, 0), 256);
	CHECK_EQ(tags_for(64, KERNEL_6_1, 0, HW_WRITE, 0), 64);
	CHECK_EQ(tags_for(2, KERNEL_6_1, 0, HW_WRITE, 0), 1);
	CHECK_EQ(tags_for(3, KERNEL_6_1, 0, HW_WRITE, 0), 2);
	CHECK_EQ(tags_for(256, KERNEL_6_1, 48, HW_WRITE, 0), 192);
	CHECK_EQ(tags_for(100, KERNEL_6_1, 3, HW_WRITE, 0), 21);
}

int main(void)
{
	test_sweep();
	test_expiry(MS(600), "2o345");
	test_expiry(MS(500), "2o345");
	test_expiry(MS(500) - 1, "2345o");
	test_classes();
	test_ageing();
	test_ageing_order();
	test_refusals_count(0, 'a');
	test_refusals_count(1, 'a');
	test_refusals_count(2, 'w');
	test_refusals_count(3, 'w');
	test_corners();
	test_at_head();
	test_newcomer(KERNEL_6_12, "bcd");
	test_newcomer(KERNEL_6_1, "cdb");
	test_successor_of_merged();
	test_merges();
	test_tags();
	return CHECK_DONE();
}
