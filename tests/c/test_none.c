// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* none: the order of CPUs, budgets, what goes first, and whom a range may join. */
#include "core/lib/softq.h"
#include "policy_bench.h"

static void insert_on(struct bench *b, char name, u16 cpu)
{
	bench_insert_flags(b, name, HW_READ, 100 * (u64)name, 0, HW_RQ_SYNC, cpu, 0);
}

static void test_order(s64 budget, const char *want) /* N2 */
{
	struct bench b = bench_new("none", 0);

	bench_set(&b, "budget", budget);
	bench_start(&b);
	insert_on(&b, 'a', 0);
	insert_on(&b, 'b', 0);
	insert_on(&b, 'z', 1);
	insert_on(&b, 'c', 0);
	insert_on(&b, 'y', 63);
	CHECK_ORDER(bench_drain(&b, 0), want);
	CHECK(!hw_has_work(b.q));
	/* The turn goes on where it stood: after CPU 0. */
	insert_on(&b, 'd', 0);
	insert_on(&b, 'x', 2);
	CHECK_EQ(bench_dispatch(&b, 0), budget ? 'x' : 'd');
	CHECK(hw_has_work(b.q));
	bench_free(&b);
}

/* Everything is taken over at once: a lower CPU that comes later comes later. */
static void test_taken_over(void)
{
	struct bench b = bench_new("none", 0);

	bench_start(&b);
	insert_on(&b, 'b', 1);
	insert_on(&b, 'c', 1);
	CHECK_EQ(bench_dispatch(&b, 0), 'b');
	insert_on(&b, 'a', 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'c');
	hw_requeue(b.q, b.named['b'], 0);
	bench_insert_flags(&b, 'h', HW_READ, 0, 0, HW_RQ_AT_HEAD, 1, 0);
	CHECK_ORDER(bench_drain(&b, 0), "hba");
	bench_free(&b);
}

/* A device that has given a request back gets one from each CPU in turn, until nothing is left. */
static void test_busy(void)
{
	struct bench b = bench_new("none", 0);

	bench_start(&b);
	insert_on(&b, 'a', 0);
	CHECK_EQ(bench_dispatch(&b, 0), 'a');
	insert_on(&b, 'b', 0);
	insert_on(&b, 'c', 0);
	insert_on(&b, 'z', 1);
	hw_requeue(b.q, b.named['a'], 0);
	CHECK_ORDER(bench_drain(&b, 0), "abzc");
	insert_on(&b, 'd', 0);
	insert_on(&b, 'e', 0);
	insert_on(&b, 'y', 1);
	CHECK_ORDER(bench_drain(&b, 0), "dey");
	bench_free(&b);
}

static struct hw_request *look_up(struct bench *b, const struct hw_bio *bio, enum hw_merge *how)
{
	*how = HW_NO_MERGE;
	return hw_find_merge(b->q, bio, how);
}

static void test_merge_scan(void) /* N3 */
{
	struct bench b = bench_new("none", 0);
	struct hw_bio bio = { .sectors = 8, .op = HW_READ, .flags = HW_RQ_SYNC };
	enum hw_merge how;
	char c;

	bench_start(&b);
	for (c = 'a'; c <= 'i'; c++)
		insert_on(&b, c, 0);
	bio.sector = 100 * 'a' + 8;
	CHECK(!look_up(&b, &bio, &how));
	bio.sector = 100 * 'b' + 8;
	CHECK(look_up(&b, &bio, &how) == b.named['b']);
	CHECK_EQ(how, HW_BACK_MERGE);
	bio.sector = 100 * 'b' - 8;
	CHECK(look_up(&b, &bio, &how) == b.named['b']);
	CHECK_EQ(how, HW_FRONT_MERGE);
	bio.cpu = 1;
	CHECK(!look_up(&b, &bio, &how));
	bio.cpu = 0;
	bio.op = HW_WRITE;
	CHECK(!look_up(&b, &bio, &how));
	bio.op = HW_READ;
	bio.ioprio = HW_IOPRIO(HW_IOPRIO_RT, 0);
	CHECK(!look_up(&b, &bio, &how));
	bio.ioprio = 0;
	/* The newest that fits is taken. */
	bench_insert_flags(&b, 'z', HW_READ, 100 * 'b' - 16, 0, HW_RQ_NOMERGE, 0, 0);
	CHECK(!look_up(&b, &bio, &how));
	bio.sector = 100 * 'i' + 8;
	bench_insert_flags(&b, 'y', HW_READ, 100 * 'i' + 16, 0, HW_RQ_SYNC, 0, 0);
	CHECK(look_up(&b, &bio, &how) == b.named['y']);
	CHECK_EQ(how, HW_FRONT_MERGE);
	/* What was taken over for dispatch is out of reach. */
	CHECK_EQ(bench_dispatch(&b, 0), 'a');
	CHECK(!look_up(&b, &bio, &how));
	bench_free(&b);
}

int main(void)
{
	test_order(0, "abczy");
	test_order(1, "azybc");
	test_taken_over();
	test_busy();
	test_merge_scan();
	return CHECK_DONE();
}
