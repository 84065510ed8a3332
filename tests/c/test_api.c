// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The public interface under bad input: an error each time, with a line that says what, and no harm
 * done.
 */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "plain_job.h"
#include "sim/headwaiter.h"

#define ROWS	4
#define SECTORS (1ull << 24)

static int64_t time_ns[ROWS], parent[ROWS], delay_ns[ROWS], after[ROWS], service_ns[ROWS];
static uint32_t task[ROWS], sectors[ROWS];
static uint8_t op[ROWS], flags[ROWS];
static uint64_t sector[ROWS];

static const struct hws_trace trace = {
	.n = ROWS,
	.time_ns = time_ns,
	.parent = parent,
	.delay_ns = delay_ns,
	.after = after,
	.task = task,
	.op = op,
	.flags = flags,
	.sector = sector,
	.sectors = sectors,
	.service_ns = service_ns,
};

/* Four reads side by side, each by itself. */
static void plain(void)
{
	int i;

	for (i = 0; i < ROWS; i++) {
		time_ns[i] = delay_ns[i] = service_ns[i] = 0;
		parent[i] = after[i] = -1;
		task[i] = 0;
		sectors[i] = 8;
		sector[i] = 8u * (unsigned int)i;
		op[i] = flags[i] = 0;
	}
}

static struct hws *new_run(const char *policy)
{
	struct hws_options options = { .policy = policy, .record = 1, .merging = 1 };
	struct hws *s = hws_new(&options);

	CHECK(s);
	CHECK_EQ(hws_drive_constant(s, 100000, SECTORS), 0);
	CHECK_EQ(hws_add_task(s, 1, 0, 0, 1), 0);
	CHECK_EQ(hws_add_task(s, 2, 0, 0, 1), 0);
	return s;
}

static void refused(int status, struct hws *s, int expected, const char *what)
{
	CHECK_EQ(status, expected);
	if (!strstr(hws_error(s), what)) {
		printf("not a word of '%s': %s\n", what, hws_error(s));
		check_failures++;
	}
	hws_free(s);
}

/* A trace that is refused, under every policy. */
static void bad_trace(int expected, const char *what)
{
	struct hws_policy p;
	uint32_t i;

	for (i = 0; hws_policy_at(i, &p) == 0; i++) {
		struct hws *s = new_run(p.name);

		refused(hws_add_trace(s, &trace), s, expected, what);
	}
	plain();
}

static void test_traces(void)
{
	struct hws *s;

	plain();
	op[2] = HWS_FLUSH + 1;
	bad_trace(-EINVAL, "row 2: no operation 5");
	op[2] = HWS_FLUSH;
	bad_trace(-ERANGE, "row 2: a flush has no sectors");
	op[2] = 255;
	bad_trace(-EINVAL, "no operation");
	flags[1] = 8;
	bad_trace(-EINVAL, "row 1: unknown flags 8");
	service_ns[3] = -1;
	bad_trace(-EINVAL, "row 3: negative service time");
	time_ns[0] = -1;
	bad_trace(-EINVAL, "row 0: negative time");
	task[1] = 2;
	bad_trace(-EINVAL, "row 1: no task 2");
	sector[1] = SECTORS - 7;
	bad_trace(-ERANGE, "row 1");
	sector[1] = UINT64_MAX;
	bad_trace(-ERANGE, "row 1");
	sectors[1] = 0;
	bad_trace(-ERANGE, "row 1");
	parent[1] = 1;
	bad_trace(-EINVAL, "row 1: invalid parent");
	parent[1] = ROWS;
	bad_trace(-EINVAL, "row 1: invalid parent");
	after[2] = after[3] = 1;
	bad_trace(-EINVAL, "row 2: its predecessor 1 already has a follower");

	/* A circle: nothing is wrong with any row. */
	parent[1] = 2;
	parent[2] = 1;
	s = new_run("noop");
	CHECK_EQ(hws_add_trace(s, &trace), 0);
	refused(hws_run(s, UINT64_MAX), s, -EPROTO, "2 of 4 I/Os were never issued");
	plain();
}

static void test_order_of_calls(void)
{
	struct hws_options options = { .policy = "noop" };
	struct hws_totals totals;
	struct hws *s = hws_new(&options);

	plain();
	hws_totals(s, &totals);
	CHECK_EQ(totals.drive_sectors, 0);
	CHECK_EQ(hws_add_task(s, 1, 0, 0, 1), 0);
	CHECK_EQ(hws_add_trace(s, &trace), -EINVAL);
	refused(hws_run(s, 1), s, -EINVAL, "no drive");

	s = new_run("as");
	refused(hws_drive_constant(s, 1, SECTORS), s, -EBUSY, "one drive");
	s = new_run("as");
	CHECK_EQ(hws_add_trace(s, &trace), 0);
	refused(hws_add_task(s, 3, 0, 0, 1), s, -EBUSY, "add tasks before the load");
	s = new_run("as");
	CHECK_EQ(hws_add_trace(s, &trace), 0);
	refused(hws_add_group(s, -1, 100), s, -EBUSY, "add groups before the load");
	s = new_run("maitre");
	refused(hws_add_group(s, 0, 100), s, -ERANGE, "there is none");
	s = new_run("as");
	CHECK_EQ(hws_add_trace(s, &trace), 0);
	CHECK_EQ(hws_run(s, 2), 1);
	CHECK_EQ(hws_drive_constant(s, 1, SECTORS), -EBUSY);
	CHECK_EQ(hws_add_trace(s, &trace), -EBUSY);
	CHECK_EQ(hws_add_task(s, 3, 0, 0, 1), -EBUSY);
	CHECK_EQ(hws_run(s, UINT64_MAX - 1), 0);
	hws_totals(s, &totals);
	CHECK_EQ(totals.completed, ROWS);
	hws_free(s);

	options.policy = NULL;
	CHECK(!hws_new(&options));
}

static void test_limits(void)
{
	struct hws_options options = { .policy = "kyber",
				       .queue_depth = UINT32_MAX,
				       .max_sectors = UINT32_MAX,
				       .merging = 1,
				       .nr_requests = UINT32_MAX,
				       .cpus = UINT32_MAX,
				       .record = 1,
				       .dispatch_ns = UINT32_MAX,
				       .turnaround_ns = UINT32_MAX };
	struct hws *s = hws_new(&options);

	refused(hws_drive_constant(s, 1, SECTORS), s, -ERANGE, "queue depth");
	options.queue_depth = 0;
	s = hws_new(&options);
	refused(hws_drive_constant(s, UINT64_MAX, SECTORS), s, -ERANGE, "ns");
	s = hws_new(&options);
	refused(hws_drive_constant(s, 1, 0), s, -ERANGE, "0 sectors");
	/* At their ends, and all is well. */
	plain();
	s = hws_new(&options);
	CHECK_EQ(hws_drive_constant(s, 1, SECTORS), 0);
	CHECK_EQ(hws_add_task(s, UINT32_MAX, UINT16_MAX, UINT16_MAX, 1), 0);
	CHECK_EQ(hws_add_trace(s, &trace), 0);
	CHECK_EQ(hws_run(s, UINT64_MAX), 0);
	hws_free(s);
}

static void test_jobs(void)
{
	const struct hws_file file = { .span = 65536, .size = 65536 };
	const struct hws_job good = plain_job(&file);
	struct hws_job j = good;
	struct hws *s = new_run("noop");

	CHECK_EQ(hws_add_job(s, &j), 0);
	refused(hws_add_job(s, &j), s, -EINVAL, "job 1: its task already has a job");

	s = new_run("noop");
	j.start_min_ns = 2;
	j.start_max_ns = 1;
	refused(hws_add_job(s, &j), s, -EINVAL, "invalid start delay");
	s = new_run("noop");
	j = good;
	j.nr_files = 1ull << 60;
	refused(hws_add_job(s, &j), s, -EINVAL, "too many files");

	s = new_run("noop");
	j = good;
	j.time_based = j.buffered = 1;
	j.runtime_ns = 1000000;
	refused(hws_add_job(s, &j), s, -EINVAL, "never end");

	/* Two that wait for each other. */
	s = new_run("noop");
	j = good;
	j.wait_for = 1;
	CHECK_EQ(hws_add_job(s, &j), 0);
	j.task = 1;
	j.section = 1;
	j.wait_for = 0;
	CHECK_EQ(hws_add_job(s, &j), 0);
	refused(hws_run(s, UINT64_MAX), s, -EPROTO, "jobs wait for each other");
}

/* A policy by itself: out of turn, and with requests that cannot be. */
static void test_policy(const char *name)
{
	struct hwd *d = hwd_new(name, SECTORS, 1, 1, 64);
	struct hwd_request r = { .sector = 8, .sectors = 8, .task = 1 };
	int64_t value = 0;
	int front;

	CHECK(d);
	CHECK_EQ(hwd_dispatch(d, 0), -1);
	CHECK_EQ(hwd_has_work(d), 0);
	CHECK_EQ(hwd_find_merge(d, &r, &front), -1);
	CHECK_EQ(hwd_limit_depth(d, &r), UINT32_MAX);
	CHECK_EQ(hwd_stat(d, "x", &value), -EINVAL);
	CHECK_EQ(hwd_task_start(d, 1, 0, 0, 0), -EINVAL);
	CHECK_EQ(hwd_insert(d, &r, 0), -ENOENT);
	CHECK_EQ(hwd_start(d, 0), 0);
	CHECK_EQ(hwd_start(d, 0), -EINVAL);
	CHECK_EQ(hwd_task_start(d, 1, 0, 0, 0), 0);
	r.sectors = 0;
	CHECK_EQ(hwd_insert(d, &r, 0), -EINVAL);
	r.op = HWS_FLUSH;
	CHECK_EQ(hwd_insert(d, &r, 0), -EINVAL);
	r.op = HWS_OTHER;
	CHECK_EQ(hwd_insert(d, &r, 0), 0);
	r.op = HWS_READ;
	r.sectors = 8;
	r.sector = UINT64_MAX - 7;
	CHECK_EQ(hwd_insert(d, &r, 0), -EINVAL);
	r.sector--;
	CHECK_EQ(hwd_insert(d, &r, 0), 1);
	CHECK_EQ(hwd_grow(d, 1, 0, 1, 0), -EINVAL);
	CHECK_EQ(hwd_grow(d, 1, 1, UINT32_MAX - 7, 0), -EINVAL);
	CHECK_EQ(hwd_grow(d, 1, 1, UINT32_MAX - 8, 0), 0);
	hwd_free(d);
}

int main(void)
{
	struct hws_policy policy;
	uint32_t i;

	test_traces();
	test_order_of_calls();
	test_limits();
	test_jobs();
	for (i = 0; !hws_policy_at(i, &policy); i++)
		test_policy(policy.name);
	CHECK(i > 10);
	return CHECK_DONE();
}
