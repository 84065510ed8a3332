// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bfq from inside: virtual time, slot letters, budgets, the peak rate, tag limits and other worked-
 * out figures.
 */
#include <stdlib.h>

#include "check.h"
#include "core/policy/bfq/internal.h"
#include "core/policy/policies.h"
#include "policy_bench.h"

#define DISK_SECTORS (1ull << 30)

/* A policy started with one tunable set (or none), on a rotating disk or not. */
static struct bfq *begin(bool rotational, const char *tunable, s64 value)
{
	const struct hw_policy *p = hw_policy_find("bfq");
	struct bfq *b = calloc(1, p->queue_size);

	hw_queue_prepare(&b->q, p);
	b->q.dev =
		(struct hw_device){ .sectors = DISK_SECTORS, .depth = 1, .rotational = rotational };
	if (tunable)
		CHECK_EQ(hw_tunable_set(&b->q, tunable, value), 0);
	CHECK_EQ(hw_start(&b->q, 0), 0);
	return b;
}

static void set(struct bfq *b, const char *tunable, s64 value)
{
	CHECK_EQ(hw_tunable_set(&b->q, tunable, value), 0);
	hw_tuned(&b->q);
}

static void virtual_time(void)
{
	CHECK_EQ(bfq_vspan(10922, 40), 1145254707);
	CHECK_EQ(bfq_vspan(8, 40), 838860);
	CHECK_EQ(bfq_vspan(8, 80), 419430);
	CHECK_EQ(bfq_vspan(16384, 100), 687194767);
}

/* Queues that always have requests, by weight and budget; the letters of the slots. */
static void check_slots(const u32 *weight, const s64 *budget, int n, const char *want)
{
	struct bfq *b = begin(true, NULL, 0);
	struct bfq_task task[3];
	struct bfq_queue *bq;
	char got[32];
	size_t k;
	int i;

	memset(task, 0, sizeof(task));
	for (i = 0; i < n; i++) {
		bq = &task[i].own[0];
		bfq_queue_init(b, bq, &task[i], true, HW_IOPRIO(HW_IOPRIO_BE, 8 - weight[i] / 10));
		bq->users = 1;
		bq->budget = budget[i];
		bfq_mark_busy(b, bq);
	}
	for (k = 0; want[k]; k++) {
		bq = bfq_take_next(b);
		got[k] = (char)('A' + (bq == &task[1].own[0]) + 2 * (bq == &task[2].own[0]));
		bfq_serve(b, bq, bq->budget);
		bfq_requeue(b, bq, true);
		b->in_service = NULL;
		bq->service = 0;
	}
	got[k] = 0;
	CHECK_ORDER(got, want);
	free(b);
}

static void slots(void)
{
	check_slots((u32[]){ 40, 80 }, (s64[]){ 8, 8 }, 2, "BABBABBABBAB");
	check_slots((u32[]){ 10, 20, 30 }, (s64[]){ 8, 8, 8 }, 3, "CBACBCBCACBCBCACBC");
	check_slots((u32[]){ 40, 40 }, (s64[]){ 16, 8 }, 2, "BABBABBAB");
	check_slots((u32[]){ 80, 40 }, (s64[]){ 16, 8 }, 2, "ABABABABA");
}

static void budgets(void)
{
	struct bfq *b = begin(true, NULL, 0);
	static const u32 assigned[] = { 32, 60, 84, 105, 123, 139, 153, 165, 176, 186, 194 };
	size_t i;

	CHECK_EQ(b->cap_budget, 16384);
	CHECK_EQ(b->rate.peak, 9333);
	CHECK_EQ(bfq_budget_at_peak(b), 17658); /* 31 ticks of 4 ms */
	for (i = 0; i < ARRAY_SIZE(assigned); i++) {
		CHECK_EQ(bfq_max_budget(b), 16384);
		b->budgets_assigned = BFQ_SAMPLES_STEP(b->budgets_assigned);
		CHECK_EQ(b->budgets_assigned, assigned[i]);
	}
	b->cap_budget = 49999;
	CHECK_EQ(bfq_max_budget(b), 49999);
	b->rate.peak = 22000;
	CHECK_EQ(bfq_budget_at_peak(b), 41625);
	set(b, "max_budget", 992);
	CHECK_EQ(b->cap_budget, 992);
	set(b, "max_budget", 0);
	CHECK_EQ(b->cap_budget, 41625);
	free(b);

	b = begin(true, "tick_us", 1000);
	CHECK_EQ(bfq_budget_at_peak(b), 17801);
	b->rate.peak = 22000;
	CHECK_EQ(bfq_budget_at_peak(b), 41961);
	b->rate.peak = 26214;
	CHECK_EQ(bfq_budget_at_peak(b), 49999);
	free(b);

	/*
	 * A time-out that is written recomputes the max budget, before any rate has been measured.
	 */
	b = begin(true, "timeout_sync", 100000);
	CHECK_EQ(b->timeout_ticks, 25000);
	CHECK_EQ(b->cap_budget, (9333ll * 1000 * 100000) >> 16);
	free(b);
}

static void idle_slices(void)
{
	struct bfq *b = begin(true, "slice_idle_us", 2500);

	CHECK_EQ(b->slice_idle_ns, 2500000);
	CHECK_EQ(b->slice_idle, 2);
	set(b, "slice_idle", 4);
	CHECK_EQ(b->slice_idle_us, 4000);
	set(b, "strict_guarantees", 1);
	CHECK_EQ(b->slice_idle_ns, MS(8));
	set(b, "slice_idle", 0);
	CHECK_EQ(b->slice_idle_ns, 0);
	free(b);
}

/* A queue in service of a policy of its own, with @max_budget and 8 sectors served of it. */
static struct bfq_queue *serve_one(struct bfq *b, struct bfq_task *task, bool sync, s64 max_budget)
{
	struct bfq_queue *bq = &task->own[0];

	bfq_queue_init(b, bq, task, sync, HW_IOPRIO(HW_IOPRIO_BE, 4));
	bq->users = 2;
	bq->max_budget = max_budget;
	bq->budget = max_budget;
	bfq_mark_busy(b, bq);
	CHECK(bfq_take_next(b) == bq);
	b->slot_begin_ns = b->now_ns;
	bfq_serve(b, bq, 8);
	return bq;
}

static s64 next_budget(enum bfq_reason reason, s64 max_budget, u32 dispatched, u32 coeff, bool sync)
{
	struct bfq *b = begin(true, NULL, 0);
	struct bfq_task task = { 0 };
	struct bfq_queue *bq = serve_one(b, &task, sync, max_budget);
	s64 next;

	bq->dispatched = dispatched;
	if (coeff > 1) {
		bq->raise.coeff = coeff;
		b->nr_busy_raised++;
	}
	bfq_expire(b, bq, false, reason);
	next = bq->max_budget;
	free(b);
	return next;
}

/* The feedback: min is 512, max 16384. */
static void feedback(void)
{
	CHECK_EQ(next_budget(BFQ_TOO_IDLE, 10000, 0, 1, true), 10000 - 4 * 512);
	CHECK_EQ(next_budget(BFQ_TOO_IDLE, 2561, 0, 1, true), 513);
	CHECK_EQ(next_budget(BFQ_TOO_IDLE, 2560, 0, 1, true), 512);
	CHECK_EQ(next_budget(BFQ_TOO_IDLE, 5000, 1, 1, true), 10000);
	CHECK_EQ(next_budget(BFQ_TOO_IDLE, 10000, 1, 1, true), 16384);
	CHECK_EQ(next_budget(BFQ_TIMEOUT, 5000, 0, 1, true), 10000);
	CHECK_EQ(next_budget(BFQ_TIMEOUT, 10000, 0, 1, true), 16384);
	CHECK_EQ(next_budget(BFQ_EXHAUSTED, 1000, 0, 1, true), 4000);
	CHECK_EQ(next_budget(BFQ_EXHAUSTED, 10000, 0, 1, true), 16384);
	CHECK_EQ(next_budget(BFQ_NO_MORE_REQUESTS, 10000, 0, 1, true), 512);
	CHECK_EQ(next_budget(BFQ_PREEMPTED, 10000, 0, 1, true), 10000);
	CHECK_EQ(next_budget(BFQ_EXHAUSTED, 10000, 0, 30, true), 1024);
	CHECK_EQ(next_budget(BFQ_PREEMPTED, 10000, 0, 1, false), 16384);
}

/* What a slot of @us is charged that served 8 sectors, or @more. */
static s64 charged(u64 us, s64 more, bool seeky, bool rotational, enum bfq_reason reason)
{
	struct bfq *b = begin(rotational, NULL, 0);
	struct bfq_task task = { 0 };
	struct bfq_queue *bq = serve_one(b, &task, true, 10922);
	s64 service;

	if (more)
		bfq_serve(b, bq, more);
	bq->seek_history = seeky ? U32_MAX : 0;
	b->now_ns = us * HW_NSEC_PER_USEC;
	bfq_expire(b, bq, false, reason);
	service = reason == BFQ_TIMEOUT ? (s64)((bq->finish * 40 + (1 << 21)) >> 22) : bq->service;
	/* Virtual time is charged alike. */
	CHECK((s64)(b->vtree[1].vtime * 40 >> 22) >= service - 1);
	free(b);
	return service;
}

static void time_charges(void)
{
	CHECK_EQ(charged(62000, 0, false, true, BFQ_NO_MORE_REQUESTS), 16384 * 62 / 124);
	CHECK_EQ(charged(500000, 0, false, true, BFQ_NO_MORE_REQUESTS), 16384);
	/* Half of the max budget in more than 20 ms is not slow; in less, only a seeky queue is. */
	CHECK_EQ(charged(62000, 8184, false, true, BFQ_NO_MORE_REQUESTS), 8192);
	CHECK_EQ(charged(62001, 8183, true, true, BFQ_NO_MORE_REQUESTS), 8192);
	CHECK_EQ(charged(20000, 0, false, true, BFQ_NO_MORE_REQUESTS), 8);
	CHECK_EQ(charged(20000, 0, true, true, BFQ_NO_MORE_REQUESTS), 16384 * 20 / 124);
	CHECK_EQ(charged(999, 0, true, true, BFQ_NO_MORE_REQUESTS), 16384 * 8 / 124);
	CHECK_EQ(charged(999, 0, true, false, BFQ_NO_MORE_REQUESTS), 16384 * 2 / 124);
	CHECK_EQ(charged(1000, 0, true, true, BFQ_NO_MORE_REQUESTS), 16384 * 1 / 124);
	/* Out of time with a third of the budget left or more. */
	CHECK_EQ(charged(124000, 8192, false, true, BFQ_TIMEOUT), 8200);
	CHECK_EQ(charged(124000, 7270, false, true, BFQ_TIMEOUT), 16384);
}

/* A queue that runs empty before virtual time reaches its finish keeps its place and its weight. */
static void idle_tree(void)
{
	struct bfq *b = begin(true, NULL, 0);
	struct bfq_task other = { 0 }, task = { 0 };
	struct bfq_queue *bq = &task.own[0], *rival = &other.own[0];
	u64 finish;

	bfq_queue_init(b, rival, &other, true, HW_IOPRIO(HW_IOPRIO_BE, 4));
	rival->users = 2;
	rival->budget = 10922;
	bfq_mark_busy(b, rival);
	bq = serve_one(b, &task, true, 8);
	CHECK_EQ(b->vtree[1].weight_sum, 80);
	bfq_leave_service(b, bq, BFQ_NO_MORE_REQUESTS);
	finish = bfq_vspan(8, 40);
	CHECK_EQ(bq->finish, finish);
	CHECK(bq->tree == BFQ_IDLE_TREE);
	CHECK_EQ(b->vtree[1].weight_sum, 80);
	bfq_mark_busy(b, bq);
	CHECK_EQ(bq->start, finish);
	CHECK_EQ(b->vtree[1].weight_sum, 80);
	free(b);
}

/*
 * Raised 30 times, a queue is first though its budget is ten times the other's; what it gets is 30
 * shares of 31.
 */
static void raised_weight(void)
{
	struct bfq *b = begin(true, NULL, 0);
	struct bfq_task task[2];
	struct bfq_queue *bq;
	int i, raised = 0;

	memset(task, 0, sizeof(task));
	for (i = 0; i < 2; i++) {
		bq = &task[i].own[0];
		bfq_queue_init(b, bq, &task[i], true, HW_IOPRIO(HW_IOPRIO_BE, 4));
		bq->users = 1;
		bq->budget = i ? 80 : 8;
		if (i) {
			bq->raise.coeff = 30;
			bq->raise.duration = 1000;
		}
		bfq_mark_busy(b, bq);
	}
	CHECK_EQ(b->nr_busy_raised, 1);
	CHECK_EQ(bq->weight, 1200);
	CHECK_EQ(bq->finish, bfq_vspan(80, 1200));
	for (i = 0; i < 31; i++) {
		bq = bfq_take_next(b);
		raised += bq == &task[1].own[0];
		CHECK(i || raised);
		bfq_serve(b, bq, 8);
		bfq_requeue(b, bq, true);
		b->in_service = NULL;
		bq->service = 0;
	}
	CHECK_EQ(raised, 30);
	free(b);
}

/* The idle class is served once it has waited for more than 200 ms. */
static void idle_class(void)
{
	struct bfq *b = begin(true, NULL, 0);
	static const u8 classes[] = { HW_IOPRIO_IDLE, HW_IOPRIO_RT };
	struct bfq_task task[2];
	struct bfq_queue *bq;
	int i;

	memset(task, 0, sizeof(task));
	for (i = 0; i < 2; i++) {
		bq = &task[i].own[0];
		bfq_queue_init(b, bq, &task[i], true, HW_IOPRIO(classes[i], 7));
		bq->users = 1;
		bq->budget = 8;
		bfq_mark_busy(b, bq);
	}
	for (i = 49; i <= 53; i++) {
		bq = bfq_take_next(b);
		CHECK(bq == &task[i != 52].own[0]);
		/* Seen when the slot ends; a look-up in its midst would be forgotten then. */
		b->tick = i;
		bfq_serve(b, bq, 8);
		bfq_requeue(b, bq, true);
		b->in_service = NULL;
		bq->service = 0;
	}
	free(b);
}

/*
 * A queue that runs empty and is back in time goes on with what it had left; later, with a whole
 * budget.
 */
static void back_in_time(bool late)
{
	struct bench t = bench_new("bfq", 0);
	struct bfq *b = container_of(t.q, struct bfq, q);
	struct hw_task *other = calloc(1, t.q->policy->task_size);
	struct bfq_queue *bq;
	struct hw_request *rq;
	u64 finish;
	int i;

	bench_set(&t, "low_latency", 0);
	bench_set(&t, "slice_idle", 0);
	bench_start(&t);
	hw_task_start(t.q, other, 0);
	for (i = 0; i < 42; i++) {
		rq = bench_insert_flags(&t, 'a', HW_READ, 256 * (u64)i, 0, HW_RQ_SYNC, 0, 0);
		rq->sectors = 256;
		bq = bfq_task(t.task)->queue[1];
		if (i < 41)
			bq->max_budget = 10922;
		CHECK_EQ(bench_dispatch(&t, 0), 'a');
		b->in_service->budget = 10922;
		b->in_service->service = 10752 - 256 * (41 - i);
		hw_complete(t.q, rq, 0);
		free(rq);
	}
	t.named['a'] = NULL;
	CHECK(bq->non_blocking_wait);
	CHECK_EQ(bfq_budget_left(bq), 170);
	/* Virtual time passes it by. */
	finish = bq->finish;
	b->vtree[1].vtime = finish + 1000;
	bench_insert(&t, 'b', HW_READ, 100000, late ? MS(1) : 0);
	CHECK_EQ(bq->budget, late ? bq->max_budget : 170);
	if (late)
		CHECK_EQ(bq->start, finish + 1000);
	else
		CHECK_EQ(bq->start, finish);
	CHECK(!bq->non_blocking_wait);
	CHECK_EQ(bq->service, 0);
	free(other);
	bench_free(&t);
}

static void observed(struct bfq *b, u32 samples, u32 sequential, u64 sectors, u64 ms)
{
	struct bfq_request r = { .s.rq.sectors = 8 };

	/* One short of the observation; the dispatch that closes it is sequential. */
	b->rate.first_dispatch_ns = 1;
	b->rate.last_dispatch_ns = MS(ms);
	b->rate.samples = samples - 1;
	b->rate.sequential = sequential - 1;
	b->rate.sectors = sectors - 8;
	b->now_ns = MS(ms) + 1;
	b->in_driver = 1;
	r.s.rq.sector = b->last_position;
	bfq_rate_dispatched(b, &r.s.rq);
}

static void peak_rate(void)
{
	static const u64 steps[] = { 17773, 21993, 24103, 25158, 25686, 25950, 26082, 26148 };
	struct bfq *b = begin(true, NULL, 0);
	size_t i;

	observed(b, 100, 99, 400000, 1000);
	CHECK_EQ(b->rate.peak, 17773);
	CHECK_EQ(b->cap_budget, bfq_budget_at_peak(b));
	CHECK_EQ(b->rate.samples, 1);
	b->rate.peak = 9333;
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		observed(b, 1000, 999, 400000, 1000);
		CHECK_EQ(b->rate.peak, steps[i]);
	}
	b->rate.peak = 9333;
	observed(b, 100, 60, 200000, 1000);
	CHECK_EQ(b->rate.peak, 10087);
	b->rate.peak = 22000;
	observed(b, 1000, 999, 1000000, 1000);
	CHECK_EQ(b->rate.peak, 43768);
	/*
	 * Too few samples, too high a rate, or not sequential and no faster than known: nothing
	 * changes.
	 */
	observed(b, 31, 31, 1000000, 1000);
	observed(b, 100, 99, 21000000, 1000);
	observed(b, 100, 60, 200000, 1000);
	CHECK_EQ(b->rate.peak, 43768);
	free(b);

	/*
	 * An observation of half a second counts half; a pause of more than 100 ms with an idle
	 * drive closes it.
	 */
	b = begin(true, NULL, 0);
	observed(b, 100, 50, 400000, 500);
	CHECK_EQ(b->rate.samples, 100);
	CHECK_EQ(b->rate.peak, 9333);
	b->now_ns = MS(601) + 1;
	b->in_driver = 0;
	bfq_rate_dispatched(b, &(struct bfq_request){ .s.rq.sectors = 8 }.s.rq);
	CHECK_EQ(b->rate.peak, 14719);
	CHECK_EQ(b->rate.samples, 1);
	free(b);
}

static void raising(void)
{
	struct bfq *b = begin(true, NULL, 0);
	struct bfq_queue bq = { .served_backlogged = 2800 };

	CHECK_EQ(bfq_raise_duration(b), 2625); /* 10.5 s in ticks of 4 ms */
	b->rate.peak = 1000;
	CHECK_EQ(bfq_raise_duration(b), 6250);
	b->rate.peak = 1000000;
	CHECK_EQ(bfq_raise_duration(b), 750);
	/* 2800 sectors at 7000 a second: 0.4 s, or 8 ms and 4 ticks from now. */
	CHECK_EQ(bfq_soft_rt_next_start(b, &bq), 100);
	b->tick = 99;
	CHECK_EQ(bfq_soft_rt_next_start(b, &bq), 105);
	bq.soft_rt_next_start = 200;
	CHECK_EQ(bfq_soft_rt_next_start(b, &bq), 200);
	free(b);

	b = begin(false, NULL, 0);
	CHECK_EQ(b->rate.peak, 22000);
	CHECK_EQ(bfq_raise_duration(b), 937); /* 3.75 s */
	free(b);
}

static void bursts(void)
{
	struct bfq *b = begin(true, NULL, 0);
	struct bfq_queue queue[10];
	int i, large;

	/*
	 * Eight queues within 180 ms of each other are a large burst, and so is what follows
	 * closely.
	 */
	b->tick = 1000;
	for (i = 0; i < 9; i++) {
		bfq_queue_init(b, &queue[i], NULL, true, HW_IOPRIO(HW_IOPRIO_BE, 4));
		bfq_join_burst(b, &queue[i]);
		for (large = 0; large <= i && queue[large].in_large_burst; large++)
			;
		CHECK_EQ(large, i < 7 ? 0 : i + 1);
		b->tick += 45;
	}
	b->tick++;
	bfq_queue_init(b, &queue[9], NULL, true, HW_IOPRIO(HW_IOPRIO_BE, 4));
	bfq_join_burst(b, &queue[9]);
	CHECK(!queue[9].in_large_burst);
	CHECK(!b->large_burst);
	free(b);
}

/*
 * Arrivals 20 ms apart, after the wait is over: long from the third on, in which the limit of
 * injection is 1.
 */
static void think_times(void)
{
	struct bench t = bench_new("bfq", 0);
	struct bfq *b = container_of(t.q, struct bfq, q);
	struct bfq_queue *bq;
	u64 at;
	int i;

	bench_set(&t, "low_latency", 0);
	bench_start(&t);
	for (i = 0; i < 4; i++) {
		at = MS(20 * i);
		bench_insert(&t, 'a', HW_READ, 1000 + 8 * (u64)i, at);
		bq = bfq_task(t.task)->queue[1];
		CHECK_EQ(bq->short_think, i < 2);
		CHECK_EQ(bq->inject.limit, i >= 2);
		CHECK_EQ(bench_dispatch(&t, at), 'a');
		bench_complete(&t, 'a', at + MS(1));
		CHECK_EQ(bench_dispatch(&t, at + MS(1)), '-');
		/*
		 * The only busy queue is waited for, though nobody else has requests: that is no
		 * wait to count.
		 */
		CHECK_EQ(t.q->wake_ns, at + MS(9));
		CHECK(!t.q->wait.begun);
		CHECK_EQ(bench_dispatch(&t, at + MS(9)), '-');
		CHECK_EQ(t.q->wake_ns, HW_NEVER);
		CHECK(!b->in_service);
	}
	bench_free(&t);
}

static u32 tags(struct bench *t, u8 op, bool sync)
{
	struct hw_bio bio = {
		.sectors = 8, .op = op, .flags = sync ? HW_RQ_SYNC : 0, .task = t->task
	};

	return hw_limit_depth(t->q, &bio);
}

static void tag_limits(void)
{
	struct bench t = bench_new("bfq", 128);
	struct bfq *b = container_of(t.q, struct bfq, q);
	int i;

	bench_set(&t, "low_latency", 0);
	bench_start(&t);
	CHECK_EQ(tags(&t, HW_READ, true), 128);
	CHECK_EQ(tags(&t, HW_WRITE, true), 96);
	CHECK_EQ(tags(&t, HW_WRITE, false), 64);
	b->nr_busy_raised = 1;
	CHECK_EQ(tags(&t, HW_READ, true), 128);
	CHECK_EQ(tags(&t, HW_WRITE, true), 48);
	CHECK_EQ(tags(&t, HW_WRITE, false), 24);
	b->nr_busy_raised = 0;
	t.q->dev.nr_requests = 2;
	CHECK_EQ(tags(&t, HW_WRITE, false), 1);
	t.q->dev.nr_requests = 4;
	for (i = 0; i < 4; i++) {
		CHECK_EQ(tags(&t, HW_READ, true), 4);
		bench_insert(&t, (char)('a' + i), HW_READ, 100 * (u64)i, 0);
	}
	/* Its whole share is in use. */
	CHECK_EQ(tags(&t, HW_READ, true), 1);
	/* 6.1 means one of each word: here all four. */
	b->kernel = BFQ_6_1;
	CHECK_EQ(tags(&t, HW_READ, true), 4);
	b->kernel = BFQ_6_12;
	CHECK_ORDER(bench_drain(&t, MS(1)), "abcd");
	t.q->dev.nr_requests = 0;
	CHECK_EQ(tags(&t, HW_WRITE, false), U32_MAX);
	bench_free(&t);
}

/* In force for long, or just chosen: what is known of how the device queues. */
static void settled_queueing(void)
{
	static const struct {
		u32 depth;
		bool rotational, settled;
		s32 known;
		bool nonrot;
	} cases[] = {
		{ 1, true, false, -1, false }, { 32, false, false, -1, true },
		{ 1, true, true, 0, false },   { 3, true, true, 0, false },
		{ 4, true, true, 1, false },   { 1, false, true, 0, false },
		{ 32, false, true, 1, true },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct bfq *b = calloc(1, hw_bfq.queue_size);

		hw_queue_prepare(&b->q, &hw_bfq);
		b->q.dev = (struct hw_device){ .sectors = DISK_SECTORS,
					       .depth = cases[i].depth,
					       .rotational = cases[i].rotational,
					       .settled = cases[i].settled };
		CHECK_EQ(hw_start(&b->q, 0), 0);
		CHECK_EQ(b->hw_queueing, cases[i].known);
		CHECK_EQ(b->nonrot_queueing, cases[i].nonrot);
		free(b);
	}
}

int main(void)
{
	virtual_time();
	slots();
	budgets();
	idle_slices();
	feedback();
	time_charges();
	idle_tree();
	raised_weight();
	idle_class();
	back_in_time(false);
	back_in_time(true);
	peak_rate();
	raising();
	bursts();
	think_times();
	tag_limits();
	settled_queueing();
	return CHECK_DONE();
}
