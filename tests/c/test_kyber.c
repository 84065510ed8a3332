// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * kyber: its arithmetic (K1 to K7 of its spec), by its own functions, and its steering through the
 * contract. Quirks are called by the numbers of the spec's section 3.4.
 */
#include "policy_bench.h"

#include "core/policy/kyber.c"

static u32 bucket_of(s64 target, u64 latency)
{
	u32 hist[BUCKETS] = { 0 }, i;

	add_sample(hist, target, latency);
	for (i = 0; i < BUCKETS && !hist[i]; i++)
		;
	return i;
}

static void test_buckets(void) /* K1 */
{
	static const struct {
		u64 latency;
		u32 bucket;
	} row[] = {
		{ 0, 0 },	{ 1, 0 },	{ 500000, 0 },	{ 500001, 1 },	{ 1000000, 1 },
		{ 1500001, 3 }, { 2000000, 3 }, { 2000001, 4 }, { 2500000, 4 }, { 2500001, 5 },
		{ 3500000, 6 }, { 3500001, 7 }, { 9000000, 7 }, { U64_MAX, 7 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(row); i++)
		CHECK_EQ(bucket_of(2000000, row[i].latency), row[i].bucket);
	/* A target of less than 4 ns leaves buckets of 1 ns. */
	CHECK_EQ(bucket_of(0, 0), 0);
	CHECK_EQ(bucket_of(0, 1), 0);
	CHECK_EQ(bucket_of(3, 2), 1);
	CHECK_EQ(bucket_of(3, 100), 7);
}

static int percentile_of(const u32 *hist, u32 percent)
{
	static struct kyber_queue kq;

	memset(&kq, 0, sizeof(kq));
	memcpy(kq.hist[HW_READ][IO_LATENCY], hist, sizeof(kq.hist[0][0]));
	return percentile(&kq, HW_READ, IO_LATENCY, percent, 0);
}

static void test_percentiles(void) /* K2, K3 */
{
	CHECK_EQ(percentile_of((u32[BUCKETS]){ 400, 50, 20, 20, 5, 3, 1, 1 }, 90), 1);
	CHECK_EQ(percentile_of((u32[BUCKETS]){ 400, 50, 20, 20, 5, 3, 1, 1 }, 99), 4);
	CHECK_EQ(percentile_of((u32[BUCKETS]){ 0, 0, 0, 0, 449, 1, 50, 0 }, 90), 5);
	CHECK_EQ(percentile_of((u32[BUCKETS]){ 450, 0, 0, 0, 0, 0, 0, 50 }, 90), 0);
	CHECK_EQ(percentile_of((u32[BUCKETS]){ 449, 0, 0, 0, 0, 0, 0, 51 }, 90), 7);
	CHECK_EQ(percentile_of((u32[BUCKETS]){ 499 }, 90), UNKNOWN);
	CHECK_EQ(percentile_of((u32[BUCKETS]){ 500 }, 90), 0);
	CHECK_EQ(percentile_of((u32[BUCKETS]){ 0 }, 90), UNKNOWN);
}

/*
 * Few samples count after one second; the clock belongs to the domain, and whoever is evaluated
 * first stops it.
 */
static void test_patience(void)
{
	static struct kyber_queue kq;
	u64 start = 5;

	kq.hist[HW_WRITE][IO_LATENCY][2] = 1;
	kq.hist[HW_WRITE][TOTAL_LATENCY][3] = 1;
	CHECK_EQ(percentile(&kq, HW_WRITE, IO_LATENCY, 90, start), UNKNOWN);
	CHECK_EQ(percentile(&kq, HW_WRITE, IO_LATENCY, 90, start + PATIENCE_NS - 1), UNKNOWN);
	CHECK_EQ(percentile(&kq, HW_WRITE, IO_LATENCY, 90, start + PATIENCE_NS), 2);
	CHECK_EQ(kq.hist[HW_WRITE][IO_LATENCY][2], 0);
	/* Quirk K1: the total kind has lost its second. */
	CHECK_EQ(percentile(&kq, HW_WRITE, TOTAL_LATENCY, 99, start + PATIENCE_NS), UNKNOWN);
	CHECK_EQ(percentile(&kq, HW_WRITE, TOTAL_LATENCY, 99, start + 2 * PATIENCE_NS), 3);
	CHECK_EQ(percentile(&kq, HW_WRITE, TOTAL_LATENCY, 99, start + 9 * PATIENCE_NS), UNKNOWN);
}

static u32 resized(u32 domain, u32 depth, int p99)
{
	static struct kyber_queue kq;

	kq.depth[domain] = depth;
	resize(&kq, domain, p99);
	return kq.depth[domain];
}

static void test_resizing(void) /* K4 to K7 */
{
	static const u32 shrink[] = { 64, 32, 16, 8, 4, 2, 1, 1 },
			 grow[] = { 2, 4, 8, 16, 32, 64, 128, 128 };
	u32 i, depth;

	for (i = 0; i < 4; i++) {
		CHECK_EQ(resized(HW_READ, 256, (int)i), 64 * (i + 1));
		CHECK_EQ(resized(HW_WRITE, 128, (int)i + 4), 128);
	}
	CHECK_EQ(resized(HW_DISCARD, 64, 5), 64);
	CHECK_EQ(resized(HW_READ, 64, 5), 96);
	for (i = 0, depth = 128; i < ARRAY_SIZE(shrink); i++) {
		depth = resized(HW_WRITE, depth, 1);
		CHECK_EQ(depth, shrink[i]);
	}
	for (i = 0, depth = 1; i < ARRAY_SIZE(grow); i++) {
		depth = resized(HW_WRITE, depth, 7);
		CHECK_EQ(depth, grow[i]);
	}
	CHECK_EQ(resized(HW_READ, 1, 0), 1);
	CHECK_EQ(resized(HW_READ, 1, 4), 1);
	CHECK_EQ(resized(HW_READ, 1, 6), 1);
	CHECK_EQ(resized(HW_READ, 2, 4), 2);
	CHECK_EQ(resized(HW_READ, 3, 4), 3);
	CHECK_EQ(resized(HW_READ, 4, 4), 5);
	CHECK_EQ(resized(HW_READ, 2, 5), 3);
}

/* @n requests of @op, each @latency in the device and no time in the queue, all completed at @at.
 */
static void serve(struct bench *b, u8 op, u32 n, u64 latency, u64 at)
{
	while (n--) {
		bench_insert(b, 'S', op, 8 * n, at - latency);
		CHECK_EQ(bench_dispatch(b, at - latency), 'S');
		bench_complete(b, 'S', at);
	}
}

/*
 * Congestion of reads shrinks the writes, which are well below target; the depth of the reads grows
 * to no more than 256.
 */
static void test_steering(void)
{
	struct bench b = bench_new("kyber", 0);
	u64 t = MS(1000);

	bench_start(&b);
	serve(&b, HW_READ, 500, MS(3), t);
	serve(&b, HW_WRITE, 500, MS(4), t);
	CHECK_EQ(bench_stat(&b, "depth_write"), 128);
	/* The timer runs 100 ms after the first completion, in whatever call comes then. */
	CHECK_EQ(bench_dispatch(&b, t + MS(100) - 1), '-');
	CHECK_EQ(bench_stat(&b, "depth_write"), 128);
	CHECK_EQ(bench_dispatch(&b, t + MS(100)), '-');
	CHECK_EQ(bench_stat(&b, "depth_write"), 64);
	CHECK_EQ(bench_stat(&b, "depth_read"), 256);
	/* Once more; too few writes this time, and what is remembered of them is used once. */
	t += MS(500);
	serve(&b, HW_READ, 500, MS(3), t);
	bench_insert(&b, 'x', HW_READ, 0, t + MS(100));
	CHECK_EQ(bench_stat(&b, "depth_write"), 64);
	CHECK_EQ(bench_stat(&b, "depth_discard"), 64);
	CHECK_EQ(bench_stat(&b, "depth_other"), 16);
	bench_free(&b);
}

/*
 * A percentile that is known while nobody is congested is kept for the first congestion, and
 * forgotten after it.
 */
static void test_memory(void)
{
	struct bench b = bench_new("kyber", 0);

	bench_start(&b);
	serve(&b, HW_WRITE, 500, MS(4), MS(1000));
	CHECK_EQ(bench_dispatch(&b, MS(1100)), '-');
	CHECK_EQ(bench_stat(&b, "depth_write"), 128);
	serve(&b, HW_READ, 500, MS(3), MS(1200));
	CHECK_EQ(bench_dispatch(&b, MS(1300)), '-');
	CHECK_EQ(bench_stat(&b, "depth_write"), 64);
	serve(&b, HW_READ, 500, MS(3), MS(1400));
	CHECK_EQ(bench_dispatch(&b, MS(1500)), '-');
	CHECK_EQ(bench_stat(&b, "depth_write"), 64);
	bench_free(&b);
}

/*
 * Total latency over target gives tokens back though nobody is congested; on target it changes
 * nothing.
 */
static void test_growth(void)
{
	struct bench b = bench_new("kyber", 0);
	struct kyber_queue *kq = kyber_queue(b.q);
	int i;

	bench_start(&b);
	kq->depth[HW_WRITE] = 10;
	for (i = 0; i < 500; i++) {
		bench_insert(&b, 'S', HW_WRITE, 0, MS(1000));
		CHECK_EQ(bench_dispatch(&b, MS(1013)), 'S');
		bench_complete(&b, 'S', MS(1014));
	}
	CHECK_EQ(bench_dispatch(&b, MS(1114)), '-');
	CHECK_EQ(bench_stat(&b, "depth_write"), 15);
	serve(&b, HW_WRITE, 500, MS(10), MS(1200));
	CHECK_EQ(bench_dispatch(&b, MS(1300)), '-');
	CHECK_EQ(bench_stat(&b, "depth_write"), 15);
	bench_free(&b);
}

static void test_tokens(void)
{
	struct bench b = bench_new("kyber", 0);
	struct kyber_queue *kq = kyber_queue(b.q);
	struct hw_bio bio = { .sector = 208, .sectors = 8, .op = HW_READ };
	enum hw_merge how;

	bench_start(&b);
	kq->depth[HW_READ] = 2;
	bench_insert(&b, 'a', HW_READ, 0, 0);
	bench_insert(&b, 'b', HW_READ, 100, 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'a');
	CHECK_EQ(bench_dispatch(&b, 0), 'b');
	bench_insert(&b, 'c', HW_READ, 200, 0);
	bench_insert(&b, 'w', HW_WRITE, 300, 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'w');
	CHECK_EQ(bench_dispatch(&b, 0), '-');
	CHECK_EQ(b.q->wake_ns, HW_NEVER);
	CHECK(hw_has_work(b.q));
	CHECK(bench_stat(&b, "throttled") > 0);
	/* Without a token it has not left its CPU's list. */
	CHECK(hw_find_merge(b.q, &bio, &how) == b.named['c']);
	CHECK_EQ(how, HW_BACK_MERGE);
	bench_complete(&b, 'w', MS(7));
	CHECK_EQ(bench_dispatch(&b, MS(7)), '-');
	CHECK_EQ(b.q->wake_ns, MS(107));
	/* A requeued request gives its token back and is first of its CPU again. */
	hw_requeue(b.q, b.named['b'], MS(8));
	CHECK_EQ(bench_stat(&b, "used_read"), 1);
	CHECK_EQ(bench_dispatch(&b, MS(8)), 'b');
	bench_complete(&b, 'a', MS(9));
	CHECK_EQ(bench_dispatch(&b, MS(9)), 'c');
	CHECK(!hw_find_merge(b.q, &bio, &how));
	bench_complete(&b, 'b', MS(9));
	bench_complete(&b, 'c', MS(9));
	CHECK_EQ(bench_stat(&b, "used_read"), 0);
	CHECK_EQ(bench_dispatch(&b, MS(9)), '-');
	CHECK_EQ(b.q->wake_ns, HW_NEVER);
	bench_free(&b);
}

/*
 * Reads 16, writes 8, discards and others 1 at a time, and round; batches are not cut by what
 * arrives.
 */
static void test_domains(void)
{
	struct bench b = bench_new("kyber", 0);

	bench_start(&b);
	bench_insert(&b, 'd', HW_DISCARD, 0, 0);
	bench_insert(&b, 'e', HW_DISCARD, 8, 0);
	bench_insert(&b, 'o', HW_OTHER, 0, 0);
	bench_insert(&b, 'p', HW_OTHER, 8, 0);
	bench_insert(&b, 'w', HW_WRITE, 0, 0);
	bench_insert(&b, 'x', HW_WRITE, 8, 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'w');
	bench_insert(&b, 'r', HW_READ, 0, 0);
	CHECK_ORDER(bench_drain(&b, 0), "xdorep");
	bench_free(&b);
}

/* A host that asks although nothing is queued does not end a batch. */
static void test_idle_question(void)
{
	struct bench b = bench_new("kyber", 0);

	bench_start(&b);
	bench_insert(&b, 'r', HW_READ, 0, 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'r');
	CHECK_EQ(bench_dispatch(&b, 0), '-');
	CHECK_EQ(bench_stat(&b, "batching"), 1);
	bench_free(&b);
}

/* A domain takes all CPUs' lists over at once, lowest CPU first. At head means first of its CPU. */
static void test_cpus(void)
{
	struct bench b = bench_new("kyber", 0);

	bench_start(&b);
	bench_insert_flags(&b, 'a', HW_READ, 0, 0, HW_RQ_SYNC, 3, 0);
	bench_insert_flags(&b, 'b', HW_READ, 8, 0, HW_RQ_SYNC, 1, 0);
	bench_insert_flags(&b, 'c', HW_READ, 16, 0, HW_RQ_SYNC | HW_RQ_AT_HEAD, 3, 0);
	bench_insert_flags(&b, 'd', HW_READ, 24, 0, HW_RQ_SYNC, 63, 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'b');
	bench_insert_flags(&b, 'e', HW_READ, 32, 0, HW_RQ_SYNC, 0, 0);
	CHECK_ORDER(bench_drain(&b, 0), "cade");
	bench_free(&b);
}

static void test_async_depth(void)
{
	struct hw_bio sync = { .op = HW_WRITE, .flags = HW_RQ_SYNC }, async = { .op = HW_WRITE };
	struct bench b = bench_new("kyber", 256);

	bench_start(&b);
	CHECK_EQ(hw_limit_depth(b.q, &sync), 256);
	CHECK_EQ(hw_limit_depth(b.q, &async), 192);
	b.q->dev.nr_requests = 1;
	CHECK_EQ(hw_limit_depth(b.q, &async), 1);
	b.q->dev.nr_requests = 0;
	CHECK_EQ(hw_limit_depth(b.q, &async), U32_MAX);
	CHECK_EQ(hw_limit_depth(b.q, &sync), U32_MAX);
	bench_free(&b);
}

int main(void)
{
	test_buckets();
	test_percentiles();
	test_patience();
	test_resizing();
	test_steering();
	test_memory();
	test_growth();
	test_tokens();
	test_domains();
	test_idle_question();
	test_cpus();
	test_async_depth();
	return CHECK_DONE();
}
