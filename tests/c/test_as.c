// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The anticipatory family beneath the scenarios: statistics to the last bit, aliases, merges,
 * batches in a deep device.
 */
#include <stdlib.h>

#include "check.h"
#include "core/lib/merge.h"
#include "core/policy/as/internal.h"

#define MS	     HW_NSEC_PER_MSEC
#define MAX_TASKS    8
#define MAX_REQUESTS 512

static struct hw_queue *q;
static struct hw_task *tasks[MAX_TASKS];
static struct hw_request *requests[MAX_REQUESTS];
static int nr_requests;

static void stop(void)
{
	int i;

	for (i = 0; i < nr_requests; i++)
		free(requests[i]);
	for (i = 0; i < MAX_TASKS; i++)
		free(tasks[i]);
	free(q);
	nr_requests = 0;
}

/* @settings: name, value, …, NULL */
static void start(const char *name, const void *const *settings)
{
	const struct hw_policy *policy = hw_policy_find(name);
	int i;

	q = calloc(1, policy->queue_size);
	hw_queue_prepare(q, policy);
	q->dev = (struct hw_device){ .sectors = 1ull << 32, .rotational = true, .depth = 1 };
	for (; settings && *settings; settings += 2)
		CHECK_EQ(hw_tunable_set(q, settings[0], *(const int *)settings[1]), 0);
	CHECK_EQ(hw_start(q, 0), 0);
	for (i = 0; i < MAX_TASKS; i++) {
		tasks[i] = calloc(1, policy->task_size);
		tasks[i]->id = (u32)i;
		hw_task_start(q, tasks[i], 0);
	}
}

#define SET(...) ((const void *const[]){ __VA_ARGS__, NULL })
#define VALUE(x) (&(const int){ x })

static struct hw_request *new_request(int task, u8 op, u8 flags, u64 sector)
{
	struct hw_request *rq = calloc(1, q->policy->request_size);

	requests[nr_requests++] = rq;
	rq->task = tasks[task];
	rq->op = op;
	rq->flags = flags;
	rq->sector = sector;
	rq->sectors = 8;
	return rq;
}

static struct hw_request *add(int task, u8 op, u64 sector, u64 now)
{
	struct hw_request *rq = new_request(task, op, op == HW_READ ? HW_RQ_SYNC : 0, sector);

	hw_insert(q, rq, now);
	return rq;
}

/* One read from its arrival to its completion, all at @now but for the service of @service ns. */
static void serve(int task, u64 sector, u64 now, u64 service)
{
	struct hw_request *rq = add(task, HW_READ, sector, now);

	CHECK(hw_dispatch(q, now) == rq);
	hw_complete(q, rq, now + service);
}

static s64 stat_of(const char *name)
{
	u32 i;

	for (i = 0; i < q->policy->nr_stats; i++) {
		const char *a = q->policy->stats[i].name, *b = name;

		while (*a && *a == *b)
			a++, b++;
		if (*a == *b)
			return q->policy->stats[i].get(q);
	}
	CHECK(!"no such statistic");
	return -1;
}

static struct as_task *as(int task)
{
	return container_of(tasks[task], struct as_task, task);
}

/*
 * L14: means of a constant think time, the number of samples, and probabilities going up and down.
 */
static void test_decay(void)
{
	static const u64 samples[] = { 32, 60, 84, 105, 123, 139, 153, 165, 176, 186, 194 };
	static const u64 think_1[] = { 5, 3, 2, 2, 2, 1 }, think_3[] = { 7, 5, 4, 4, 4, 3 };
	static const u64 up[] = { 32, 60, 84, 105, 123, 139, 153, 165, 176, 186, 194, 201 };
	static const u64 down[] = { 175, 153, 133, 116, 101, 88 };
	u64 prob = 0, now = 0;
	u32 i;

	start("as", NULL);
	for (i = 0; i < ARRAY_SIZE(samples) + 1; i++) {
		if (i) {
			CHECK_EQ(as(0)->think.samples, i > 1 ? samples[i - 2] : 0);
			now += 6 * MS;
		}
		serve(0, i * 8, now, 5 * MS);
		if (i)
			CHECK_EQ(as(0)->think.samples, samples[i - 1]);
		if (i && i <= ARRAY_SIZE(think_1))
			CHECK_EQ(as(0)->think.mean, think_1[i - 1]);
	}
	for (i = 0; i <= ARRAY_SIZE(think_3); i++) {
		serve(1, i * 8, now, 5 * MS);
		now += 8 * MS;
		if (i)
			CHECK_EQ(as(1)->think.mean, think_3[i - 1]);
	}
	for (i = 0; i < ARRAY_SIZE(up); i++) {
		as_more_likely(&prob);
		CHECK_EQ(prob, up[i]);
	}
	for (i = 0; i < ARRAY_SIZE(down); i++) {
		as_less_likely(&prob);
		CHECK_EQ(prob, down[i]);
	}
	stop();
}

/* The first think time and seek of a task are those of "new tasks"; long ones are cut. */
static void test_new_tasks(void)
{
	start("as", SET("exit_prob_init", VALUE(200)));
	serve(0, 0, 0, 5 * MS);
	CHECK_EQ(stat_of("exit_prob"), 200);
	serve(0, 1008, 9 * MS, 5 * MS); /* thinks 4 ms, seeks 1000 sectors */
	CHECK_EQ(stat_of("exit_prob"), 175);
	CHECK_EQ(stat_of("new_ttime_mean"), 4 / 8);
	CHECK_EQ(stat_of("new_seek_mean"), 1000 / 8);
	CHECK_EQ(as(0)->seek.mean, 1000);
	/* A second counts as 19 ticks, and not among the first think times. */
	serve(0, 2016, 1000 * MS, 5 * MS);
	CHECK_EQ(as(0)->think.total, (7 * (256 * 4 / 8) + 256 * 19) / 8);
	CHECK_EQ(stat_of("new_ttime_mean"), 0);
	/* A seek of 2^30 sectors counts as four means and 1 GiB. */
	serve(0, 1 << 30, 1010 * MS, 5 * MS);
	CHECK_EQ(as(0)->seek.total,
		 (7 * ((7 * 32000 + 256000) / 8) + 256 * (4 * 1000 + 2 * 1024 * 1024)) / 8);
	/* A request while another is queued is no think time. */
	add(1, HW_READ, 0, 2000 * MS);
	add(1, HW_READ, 8, 2003 * MS);
	CHECK_EQ(as(1)->think.total, 0);
	CHECK_EQ(as(1)->think.samples, 32);
	/* Writes teach nothing. */
	add(2, HW_WRITE, 0, 2010 * MS);
	add(2, HW_WRITE, 8, 2020 * MS);
	CHECK(!as(2)->started);
	stop();

	/* Nor is one that comes while the answer to the last completion is queued. */
	start("as", NULL);
	serve(3, 0, 0, 5 * MS);
	add(3, HW_READ, 8, 8 * MS);
	CHECK_EQ(as(3)->think.total, 3 * 256 / 8);
	add(3, HW_READ, 16, 15 * MS);
	CHECK_EQ(as(3)->think.total, 7 * (3 * 256 / 8) / 8);
	stop();
}

/*
 * Two requests for one first sector: the older goes out at once (2.6.18), or they go out together
 * (2.6.11).
 */
static void test_aliases(void)
{
	struct hw_request *rq[4];
	int cooperation, i;

	for (cooperation = 0; cooperation < 2; cooperation++) {
		start("as", SET("cooperation", VALUE(cooperation), "antic_expire", VALUE(0)));
		serve(0, 0, 0, 5 * MS);
		rq[0] = add(0, HW_READ, 5000, 6 * MS);
		rq[1] = add(1, HW_READ, 100, 6 * MS);
		rq[2] = add(2, HW_READ, 5000, 6 * MS);
		rq[3] = add(3, HW_READ, 5000, 6 * MS);
		CHECK_EQ(hw_dispatch(q, 6 * MS)->id, cooperation ? rq[0]->id : rq[1]->id);
		CHECK_EQ(hw_dispatch(q, 6 * MS)->id, cooperation ? rq[2]->id : rq[0]->id);
		CHECK_EQ(hw_dispatch(q, 6 * MS)->id, cooperation ? rq[3]->id : rq[2]->id);
		CHECK_EQ(hw_dispatch(q, 6 * MS)->id, cooperation ? rq[1]->id : rq[3]->id);
		CHECK(!hw_dispatch(q, 6 * MS));
		for (i = 0; i < 4; i++)
			CHECK_EQ(as(i)->nr_queued, 0);
		stop();
	}
}

/* An alias ends a wait even though it is none of the awaited task's doing. */
static void test_alias_ends_wait(void)
{
	struct hw_request *far;

	start("as", SET("cooperation", VALUE(1)));
	serve(0, 0, 0, 5 * MS);
	far = add(1, HW_READ, 1000000, 5 * MS);
	CHECK(!hw_dispatch(q, 5 * MS));
	CHECK(q->wait.active);
	CHECK_EQ(q->wake_ns, 11 * MS);
	add(2, HW_READ, 1000000, 6 * MS);
	CHECK(!q->wait.active);
	CHECK_EQ(q->wait.count[HW_WAIT_OTHER], 1);
	CHECK(hw_dispatch(q, 6 * MS) == far);
	stop();
}

/*
 * Merging: by first sector within a class; a grown request keeps its age, a joined one takes the
 * earlier.
 */
static void test_merging(void)
{
	struct hw_bio read = { .sector = 92, .sectors = 8, .op = HW_READ, .flags = HW_RQ_SYNC };
	struct hw_bio write = { .sector = 92, .sectors = 8, .op = HW_WRITE };
	struct hw_request *a, *b, *c, *gone;
	struct hw_merger m;
	enum hw_merge how;

	start("as", SET("antic_expire", VALUE(0)));
	hw_merge_init(&m, 256);
	a = add(0, HW_READ, 100, 0);
	CHECK(hw_find_merge(q, &read, &how) == a);
	CHECK_EQ(how, HW_FRONT_MERGE);
	CHECK(!hw_find_merge(q, &write, &how));
	c = add(2, HW_READ, 116, 1 * MS);
	b = add(1, HW_READ, 5000, 2 * MS);
	hw_merge_inserted(&m, q, a);
	hw_merge_inserted(&m, q, c);
	hw_merge_inserted(&m, q, b);
	/* 108..116 closes the gap: a grows at its back and swallows c. */
	read.sector = 108;
	gone = hw_merge_try(&m, q, &read, 3 * MS).gone;
	CHECK(gone == c);
	CHECK_EQ(a->sectors, 24);
	CHECK_EQ(as(2)->nr_queued, 0);
	CHECK_EQ(hw_sorted(a)->expires, 125 * MS);
	/* b joins what lies before it, which takes over its age. */
	c = add(2, HW_READ, 4984, 4 * MS);
	hw_sorted(b)->expires = 1;
	read.sector = 4992;
	hw_merge_inserted(&m, q, c);
	CHECK(hw_merge_try(&m, q, &read, 5 * MS).gone == b);
	CHECK_EQ(hw_sorted(c)->expires, 1);
	CHECK(hw_dispatch(q, 6 * MS) == a);
	CHECK(hw_dispatch(q, 6 * MS) == c);
	CHECK_EQ(q->nr_queued, 0);
	stop();
}

/*
 * More than one request in the device: the change from reads to writes has to await the reads
 * there. With wb_start_bug the batch of writes then still has the end time of the batch of reads,
 * which has passed: the next read takes over at once.
 */
static void test_batch_change(void)
{
	struct hw_request *r1, *r2, *w1, *w2;
	int bug;

	for (bug = 0; bug < 2; bug++) {
		start("as", SET("wb_start_bug", VALUE(bug), "antic_expire", VALUE(0)));
		serve(0, 0, 0, 5 * MS); /* the batch of reads ends at 505 */
		r1 = add(0, HW_READ, 8, 500 * MS);
		w1 = add(1, HW_WRITE, 1000, 500 * MS);
		w2 = add(1, HW_WRITE, 1008, 500 * MS);
		CHECK(hw_dispatch(q, 500 * MS) == r1);
		r2 = add(0, HW_READ, 16, 506 * MS);
		/* Writes are due, but r1 is in the device. */
		CHECK(!hw_dispatch(q, 506 * MS));
		CHECK_EQ(q->wake_ns, HW_NEVER);
		hw_complete(q, r1, 510 * MS);
		CHECK(hw_dispatch(q, 510 * MS) == (bug ? r2 : w1));
		hw_complete(q, bug ? r2 : w1, 515 * MS);
		CHECK(hw_dispatch(q, 515 * MS) == (bug ? w1 : w2));
		stop();
	}
}

/* A write that its task waits for: synchronous or not as sync_writes was when it came. */
static void test_sync_writes(void)
{
	struct hw_request *mine, *far, *late;
	int sync;

	for (sync = 0; sync < 2; sync++) {
		start("as", SET("sync_writes", VALUE(sync)));
		mine = new_request(0, HW_WRITE, HW_RQ_SYNC, 0);
		hw_insert(q, mine, 0);
		CHECK(hw_dispatch(q, 0) == mine);
		far = add(1, HW_READ, 1000000, 1 * MS);
		hw_complete(q, mine, 2 * MS);
		/* It waits for the writer's next one, or nobody. */
		CHECK(hw_dispatch(q, 2 * MS) == (sync ? NULL : far));
		CHECK(q->wait.active == (bool)sync);
		stop();
	}
	/* One that is queued stays in the class in which it came. */
	start("as", SET("antic_expire", VALUE(0)));
	mine = new_request(0, HW_WRITE, HW_RQ_SYNC, 0);
	hw_insert(q, mine, 0);
	CHECK_EQ(hw_tunable_set(q, "sync_writes", 0), 0);
	late = new_request(0, HW_WRITE, HW_RQ_SYNC, 8);
	hw_insert(q, late, 0);
	CHECK(hw_dispatch(q, 0) == mine);
	CHECK(!hw_dispatch(q, 0)); /* the batch changes when it has completed */
	hw_complete(q, mine, 5 * MS);
	CHECK(hw_dispatch(q, 5 * MS) == late);
	hw_complete(q, late, 6 * MS);
	CHECK_EQ(q->nr_queued, 0);
	stop();
}

/* A requeued request and one that the host wants first go before all others, and end a wait. */
static void test_put_first(void)
{
	struct hw_request *a, *b, *urgent;

	start("as", NULL);
	serve(0, 0, 0, 5 * MS);
	a = add(1, HW_READ, 1000000, 5 * MS);
	CHECK(!hw_dispatch(q, 5 * MS));
	CHECK(q->wait.active);
	urgent = calloc(1, q->policy->request_size);
	requests[nr_requests++] = urgent;
	urgent->flags = HW_RQ_AT_HEAD;
	urgent->op = HW_OTHER;
	hw_insert(q, urgent, 6 * MS);
	CHECK(!q->wait.active);
	CHECK(hw_dispatch(q, 6 * MS) == urgent);
	hw_complete(q, urgent, 7 * MS);
	CHECK(hw_dispatch(q, 7 * MS) == a);
	b = add(0, HW_READ, 8, 8 * MS);
	hw_requeue(q, a, 8 * MS);
	CHECK(hw_dispatch(q, 8 * MS) == a);
	hw_complete(q, a, 9 * MS);
	CHECK(!hw_dispatch(q, 9 * MS)); /* waits for task 1 now */
	CHECK(q->wait.active && q->wait.task == tasks[1]);
	q->force = true;
	CHECK(hw_dispatch(q, 9 * MS) == b);
	stop();
}

/* How waits are counted: by what ended them. */
static void test_outcomes(void)
{
	static const struct {
		int task;
		u8 op;
		u64 sector;
		enum hw_wait_outcome outcome;
	} cases[] = {
		{ 0, HW_READ, 5000000, HW_WAIT_SUCCESS }, /* its own read, wherever that is */
		{ 0, HW_WRITE, 8, HW_WAIT_OTHER },	  /* its own write */
		{ 2, HW_READ, 16, HW_WAIT_OTHER },	  /* a close one of another task */
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		start("as", NULL);
		serve(0, 0, 0, 5 * MS);
		add(1, HW_READ, 1000000, 5 * MS);
		CHECK(!hw_dispatch(q, 5 * MS));
		add(cases[i].task, cases[i].op, cases[i].sector, 7 * MS);
		for (k = 0; k < ARRAY_SIZE(q->wait.count); k++) {
			CHECK_EQ(q->wait.count[k], k == cases[i].outcome);
			CHECK_EQ(q->wait.total_ns[k], k == cases[i].outcome ? 2 * MS : 0);
		}
		stop();
	}
}

/* A tick of 100 us: the wait runs from the beginning of the tick of the completion. */
static void test_ticks(void)
{
	start("as", SET("tick_us", VALUE(100), "antic_expire", VALUE(2)));
	serve(0, 0, 0, 5 * MS + 170000);
	add(1, HW_READ, 1000000, 5 * MS + 180000);
	CHECK(!hw_dispatch(q, 5 * MS + 180000));
	CHECK_EQ(q->wake_ns, 7 * MS + 100000);
	CHECK(!hw_dispatch(q, 7 * MS + 99999));
	/*
	 * The tick is made coarser in the wait: it ends with the first new tick that is late
	 * enough.
	 */
	CHECK_EQ(hw_tunable_set(q, "tick_us", 1000), 0);
	hw_tuned(q);
	CHECK(!hw_dispatch(q, 7 * MS + 100000));
	CHECK_EQ(q->wake_ns, 8 * MS);
	CHECK(hw_dispatch(q, 8 * MS));
	CHECK_EQ(q->wait.total_ns[HW_WAIT_FAIL], 3 * MS - 180000);
	stop();
}

/* serve_breaker: the request that ends the wait goes out, although another lies closer (L4). */
static void test_serve_breaker(void)
{
	struct hw_request *near, *far;
	int literal;

	for (literal = 0; literal < 2; literal++) {
		start("cas", SET("serve_breaker", VALUE(literal), "close_delta0", VALUE(16384)));
		serve(0, 0, 0, 5 * MS);
		near = add(1, HW_READ, 20000, 5 * MS);
		CHECK(!hw_dispatch(q, 5 * MS));
		CHECK(q->wait.active);
		far = add(2, HW_READ, 30000, 7 * MS);
		CHECK(!q->wait.active);
		CHECK(hw_dispatch(q, 7 * MS) == (literal ? far : near));
		stop();
	}
}

int main(void)
{
	test_decay();
	test_new_tasks();
	test_aliases();
	test_alias_ends_wait();
	test_merging();
	test_batch_change();
	test_sync_writes();
	test_put_first();
	test_outcomes();
	test_ticks();
	test_serve_breaker();
	return CHECK_DONE();
}
