// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every function of the public interface with NULL for each of its pointers: an error, or where it
 * frees, nothing. tests/test_library.py sees to it that none is missing here.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "plain_job.h"
#include "sim/headwaiter.h"

#define SECTORS (1ull << 24)

static const char *const policy = "bfq";

static void refused(int ret, const struct hws *s)
{
	CHECK_EQ(ret, -EINVAL);
	CHECK(strstr(hws_error(s), "NULL is given"));
}

static void test_catalogue(void)
{
	struct hws_tunable tunable;
	struct hws_column column;
	struct hws_table table;
	struct hws_stat stat;
	struct hws_preset preset;
	struct hws_counters counters;

	CHECK_EQ(hws_policy_at(0, NULL), -EINVAL);
	CHECK_EQ(hws_tunable_at(NULL, 0, &tunable), -EINVAL);
	CHECK_EQ(hws_tunable_at(policy, 0, NULL), -EINVAL);
	CHECK_EQ(hws_stat_at(NULL, 0, &stat), -EINVAL);
	CHECK_EQ(hws_stat_at(policy, 0, NULL), -EINVAL);
	CHECK_EQ(hws_preset_at(NULL, 0, &preset), -EINVAL);
	CHECK_EQ(hws_preset_at(policy, 0, NULL), -EINVAL);
	CHECK_EQ(hws_table_at(NULL, 0, &table), -EINVAL);
	CHECK_EQ(hws_table_at(policy, 0, NULL), -EINVAL);
	CHECK_EQ(hws_column_at(NULL, "positions", 0, &column), -EINVAL);
	CHECK_EQ(hws_column_at(policy, NULL, 0, &column), -EINVAL);
	CHECK_EQ(hws_column_at(policy, "positions", 0, NULL), -EINVAL);
	CHECK_EQ(hws_reason_at(0, NULL), -EINVAL);
	CHECK_EQ(hws_counters_at(NULL, &counters), -EINVAL);
	CHECK_EQ(hws_counters_at(policy, NULL), -EINVAL);
}

static void test_tables(void)
{
	static const int64_t rows[2][2] = { { 1, 1 }, { 2, 2 } };
	struct hws_table_error err;
	int64_t cells[64 * 2];
	uint32_t n;
	char text[64];

	CHECK_EQ(hws_table_check(policy, "positions", rows[0], 2, 2, &err), 0);
	CHECK_EQ(hws_table_check(NULL, "positions", rows[0], 2, 2, &err), -EINVAL);
	CHECK_EQ(hws_table_check(policy, NULL, rows[0], 2, 2, &err), -EINVAL);
	CHECK_EQ(hws_table_check(policy, "positions", NULL, 2, 2, &err), -EINVAL);
	CHECK_EQ(hws_table_check(policy, "positions", rows[0], 2, 2, NULL), -EINVAL);
	CHECK_EQ(hws_table_parse(NULL, "positions", "1 1", 3, cells, &n, &err), -EINVAL);
	CHECK_EQ(hws_table_parse(policy, NULL, "1 1", 3, cells, &n, &err), -EINVAL);
	CHECK_EQ(hws_table_parse(policy, "positions", NULL, 3, cells, &n, &err), -EINVAL);
	CHECK_EQ(hws_table_parse(policy, "positions", "1 1", 3, NULL, &n, &err), -EINVAL);
	CHECK_EQ(hws_table_parse(policy, "positions", "1 1", 3, cells, NULL, &err), -EINVAL);
	CHECK_EQ(hws_table_parse(policy, "positions", "1 1", 3, cells, &n, NULL), -EINVAL);
	CHECK(hws_table_print(policy, "positions", rows[0], 2, 0, NULL, 0) > 0);
	CHECK_EQ(hws_table_print(NULL, "positions", rows[0], 2, 0, text, 64), -EINVAL);
	CHECK_EQ(hws_table_print(policy, NULL, rows[0], 2, 0, text, 64), -EINVAL);
	CHECK_EQ(hws_table_print(policy, "positions", NULL, 2, 0, text, 64), -EINVAL);
	CHECK_EQ(hws_table_print(policy, "positions", rows[0], 2, 0, NULL, 64), -EINVAL);
}

static void test_no_run(void)
{
	struct hws_totals totals = { .now_ns = 1 };
	const struct hws_tally *tallies = (const struct hws_tally *)&totals;
	struct hws_latencies latencies = { 0 };
	struct hws_rows rows = { .n = 1 };
	struct hws_job_totals job;
	struct hws_trace trace = { 0 };
	struct hws_job what = { 0 };
	struct hws_options none = { 0 };
	int64_t value = 0;
	uint64_t ios = 0;
	uint32_t cells[1];

	CHECK(!hws_new(NULL));
	CHECK(!hws_new(&none));
	hws_free(NULL);
	CHECK(hws_error(NULL)[0]);
	CHECK_EQ(hws_set(NULL, "x", 1), -EINVAL);
	CHECK_EQ(hws_get(NULL, "x"), 0);
	CHECK_EQ(hws_set_table(NULL, "x", &value, 1, 1), -EINVAL);
	CHECK_EQ(hws_stat_value(NULL, "x", &value), -EINVAL);
	CHECK_EQ(hws_counters(NULL, cells), -EINVAL);
	CHECK_EQ(hws_drive_constant(NULL, 1, SECTORS), -EINVAL);
	CHECK_EQ(hws_drive_profile(NULL, "x", 1), -EINVAL);
	CHECK_EQ(hws_drive_warm(NULL, 0, 0, 8), -EINVAL);
	CHECK_EQ(hws_add_task(NULL, 1, 0, 0, 1), -EINVAL);
	CHECK_EQ(hws_add_group(NULL, -1, 100), -EINVAL);
	CHECK_EQ(hws_join_group(NULL, 0, 0), -EINVAL);
	CHECK_EQ(hws_add_trace(NULL, &trace), -EINVAL);
	CHECK_EQ(hws_add_pieces(NULL, &ios), -EINVAL);
	CHECK_EQ(hws_feed(NULL, &trace), -EINVAL);
	CHECK_EQ(hws_add_job(NULL, &what), -EINVAL);
	CHECK_EQ(hws_log(NULL, "/dev/null"), -EINVAL);
	CHECK_EQ(hws_run(NULL, 1), -EINVAL);
	hws_totals(NULL, &totals);
	CHECK_EQ(totals.now_ns, 0);
	CHECK_EQ(hws_tallies(NULL, &tallies), 0);
	CHECK(!tallies);
	tallies = (const struct hws_tally *)&totals;
	CHECK_EQ(hws_sync_tallies(NULL, &tallies), 0);
	CHECK(!tallies);
	tallies = (const struct hws_tally *)&totals;
	CHECK_EQ(hws_call_tallies(NULL, &tallies), 0);
	CHECK(!tallies);
	CHECK_EQ(hws_latencies(NULL, &latencies), 0);
	CHECK_EQ(hws_sync_latencies(NULL, &latencies), 0);
	CHECK_EQ(hws_call_latencies(NULL, &latencies), 0);
	hws_rows(NULL, &rows);
	CHECK_EQ(rows.n, 0);
	CHECK_EQ(hws_job_totals(NULL, 0, &job), -EINVAL);
}

/* Each of a trace's columns that it cannot do without. */
static void test_columns(struct hws *s)
{
	static const int64_t zero, none = -1;
	static const uint32_t task, sectors = 8;
	static const uint64_t sector;
	static const uint8_t byte;
	const struct hws_trace good = { .n = 1,
					.time_ns = &zero,
					.parent = &none,
					.delay_ns = &zero,
					.task = &task,
					.op = &byte,
					.flags = &byte,
					.sector = &sector,
					.sectors = &sectors };
	struct hws_trace t;

#define WITHOUT(column)                           \
	do {                                      \
		t = good;                         \
		t.column = NULL;                  \
		refused(hws_add_trace(s, &t), s); \
	} while (0)
	WITHOUT(time_ns);
	WITHOUT(parent);
	WITHOUT(delay_ns);
	WITHOUT(task);
	WITHOUT(op);
	WITHOUT(flags);
	WITHOUT(sector);
	WITHOUT(sectors);
#undef WITHOUT
	refused(hws_add_trace(s, NULL), s);
	CHECK_EQ(hws_add_trace(s, &good), 0);
}

/* A piece is refused likewise; it has no rows that follow others. */
static void test_pieces(void)
{
	static const int64_t times[] = { 5, 5, 6 };
	static const uint32_t tasks[3], sectors[] = { 8, 8, 8 };
	static const uint64_t sector[3], ios = 3;
	static const uint8_t bytes[3];
	const struct hws_options options = { .policy = policy, .exact = 10 };
	const struct hws_trace good = { .n = 2,
					.time_ns = times,
					.task = tasks,
					.op = bytes,
					.flags = bytes,
					.sector = sector,
					.sectors = sectors };
	const struct hws_trace end = { 0 };
	struct hws *s = hws_new(&options);
	struct hws_trace t = good;

	CHECK(s);
	CHECK_EQ(hws_add_pieces(s, &ios), -EINVAL); /* no drive */
	CHECK_EQ(hws_drive_constant(s, 1000, SECTORS), 0);
	CHECK_EQ(hws_add_task(s, 1, 0, 0, 1), 0);
	refused(hws_add_pieces(s, NULL), s);
	CHECK_EQ(hws_feed(s, &good), -EBUSY);
	CHECK_EQ(hws_add_pieces(s, &ios), 0);
	CHECK_EQ(hws_add_pieces(s, &ios), -EBUSY);
	CHECK_EQ(hws_run(s, UINT64_MAX), HWS_HUNGRY);
	refused(hws_feed(s, NULL), s);
	t.time_ns = NULL;
	refused(hws_feed(s, &t), s);
	t = good;
	t.parent = times;
	CHECK_EQ(hws_feed(s, &t), -EINVAL);
	CHECK_EQ(hws_feed(s, &good), 0);
	CHECK_EQ(hws_feed(s, &good), -EBUSY);
	CHECK_EQ(hws_run(s, UINT64_MAX), HWS_HUNGRY);
	CHECK_EQ(hws_feed(s, &good), -EINVAL); /* not later */
	t = good;
	t.n = 1;
	t.time_ns = times + 2;
	CHECK_EQ(hws_feed(s, &t), 0);
	CHECK_EQ(hws_run(s, UINT64_MAX), HWS_HUNGRY);
	CHECK_EQ(hws_feed(s, &end), 0);
	CHECK_EQ(hws_run(s, UINT64_MAX), HWS_OVER);
	CHECK_EQ(hws_feed(s, &end), -EBUSY);
	hws_free(s);
}

static void test_job(struct hws *s)
{
	static const struct hws_file file = { .span = 1 << 20, .size = 1 << 20 };
	const struct hws_job good = plain_job(&file);
	struct hws_job j = good;
	int d;

	refused(hws_add_job(s, NULL), s);
	j.files = NULL;
	refused(hws_add_job(s, &j), s);
	for (d = 0; d < 2; d++) {
		j = good;
		j.nr_splits[d] = 1;
		refused(hws_add_job(s, &j), s);
		j = good;
		j.nr_zones[d] = 1;
		refused(hws_add_job(s, &j), s);
		j = good;
		j.nr_prio_splits[d] = 1;
		refused(hws_add_job(s, &j), s);
	}
	CHECK_EQ(hws_add_job(s, &good), 0);
}

static void test_run(bool of_jobs)
{
	const struct hws_options options = { .policy = policy, .record = 1, .exact = 10 };
	struct hws *s = hws_new(&options);
	struct hws_latencies latencies = { .room = 10 };
	int64_t value = 0;

	CHECK(s);
	refused(hws_set(s, NULL, 1), s);
	CHECK_EQ(hws_get(s, NULL), 0);
	refused(hws_set_table(s, NULL, &value, 1, 1), s);
	refused(hws_set_table(s, "positions", NULL, 1, 2), s);
	refused(hws_drive_profile(s, NULL, 64), s);
	refused(hws_log(s, NULL), s);
	CHECK_EQ(hws_drive_constant(s, 1000, SECTORS), 0);
	CHECK_EQ(hws_add_task(s, 1, 0, 0, 1), 0);
	if (of_jobs)
		test_job(s);
	else
		test_columns(s);
	CHECK_EQ(hws_run(s, UINT64_MAX), HWS_OVER);
	CHECK_EQ(hws_stat_value(s, NULL, &value), -EINVAL);
	CHECK_EQ(hws_stat_value(s, "x", NULL), -EINVAL);
	CHECK_EQ(hws_counters(s, NULL), -EINVAL);
	hws_totals(s, NULL);
	CHECK_EQ(hws_tallies(s, NULL), 1);
	CHECK_EQ(hws_sync_tallies(s, NULL), 0);
	CHECK_EQ(hws_call_tallies(s, NULL), 0);
	CHECK_EQ(hws_latencies(s, NULL), 0);
	CHECK_EQ(hws_latencies(s, &latencies), 1);
	CHECK_EQ(hws_sync_latencies(s, NULL), 0);
	CHECK_EQ(hws_call_latencies(s, NULL), 0);
	hws_rows(s, NULL);
	CHECK_EQ(hws_job_totals(s, 0, NULL), -EINVAL);
	hws_free(s);
}

static void test_policy(void)
{
	struct hwd_request r = { .sector = 8, .sectors = 8, .task = 1 };
	struct hwd *d = hwd_new(policy, SECTORS, 1, 1, 64);
	int64_t value = 0;
	int front;

	CHECK(d && !hwd_new(NULL, SECTORS, 1, 1, 64));
	hwd_free(NULL);
	CHECK_EQ(hwd_set(NULL, "x", 1), -EINVAL);
	CHECK_EQ(hwd_set(d, NULL, 1), -EINVAL);
	CHECK_EQ(hwd_set_table(NULL, "positions", &value, 1, 1), -EINVAL);
	CHECK_EQ(hwd_set_table(d, NULL, &value, 1, 1), -EINVAL);
	CHECK_EQ(hwd_set_table(d, "positions", NULL, 1, 2), -EINVAL);
	CHECK_EQ(hwd_start(NULL, 0), -EINVAL);
	CHECK_EQ(hwd_start(d, 0), 0);
	CHECK_EQ(hwd_task_start(NULL, 1, 0, 0, 0), -EINVAL);
	CHECK_EQ(hwd_task_start(d, 1, 0, 0, 0), 0);
	CHECK_EQ(hwd_task_exit(NULL, 1, 0), -EINVAL);
	CHECK_EQ(hwd_group_start(NULL, 1, 0, 100), -EINVAL);
	CHECK_EQ(hwd_group_weight(NULL, 1, 100), -EINVAL);
	CHECK_EQ(hwd_group_end(NULL, 1), -EINVAL);
	CHECK_EQ(hwd_insert(NULL, &r, 0), -EINVAL);
	CHECK_EQ(hwd_insert(d, NULL, 0), -EINVAL);
	CHECK_EQ(hwd_insert(d, &r, 0), 0);
	CHECK_EQ(hwd_dispatch(NULL, 0), -1);
	CHECK_EQ(hwd_wake_ns(NULL), UINT64_MAX);
	CHECK_EQ(hwd_has_work(NULL), 0);
	CHECK_EQ(hwd_issue(NULL, 0, 0), -EINVAL);
	CHECK_EQ(hwd_complete(NULL, 0, 0), -EINVAL);
	CHECK_EQ(hwd_requeue(NULL, 0, 0), -EINVAL);
	CHECK_EQ(hwd_grow(NULL, 0, 0, 8, 0), -EINVAL);
	CHECK_EQ(hwd_join(NULL, 0, 1), -EINVAL);
	CHECK_EQ(hwd_find_merge(NULL, &r, &front), -EINVAL);
	CHECK_EQ(hwd_find_merge(d, NULL, &front), -EINVAL);
	CHECK_EQ(hwd_find_merge(d, &r, NULL), -EINVAL);
	CHECK_EQ(hwd_allow_merge(NULL, 0, &r, 0), -EINVAL);
	CHECK_EQ(hwd_allow_merge(d, 0, NULL, 0), -EINVAL);
	CHECK_EQ(hwd_limit_depth(NULL, &r), UINT32_MAX);
	CHECK_EQ(hwd_limit_depth(d, NULL), UINT32_MAX);
	CHECK_EQ(hwd_stat(NULL, "x", &value), -EINVAL);
	CHECK_EQ(hwd_stat(d, NULL, &value), -EINVAL);
	CHECK_EQ(hwd_stat(d, "x", NULL), -EINVAL);
	hwd_free(d);
}

static void test_drives(void)
{
	static const uint64_t words[8];
	struct hws_profile_error err;
	struct hws_drive_facts facts;
	struct hws_param param;
	struct hws_replay load = { 0 };
	struct hws_place place;

	CHECK_EQ(hws_drive_model_at(0, NULL), -EINVAL);
	CHECK_EQ(hws_param_at(0, 0, NULL), -EINVAL);
	CHECK_EQ(hws_param_column_at(0, 0, 0, NULL), -EINVAL);
	CHECK_EQ(hws_param_at(0, 0, &param), 0);
	CHECK_EQ(hws_profile_check(NULL, 64, &err), -EINVAL);
	CHECK_EQ(hws_profile_check(words, 64, NULL), -EINVAL);
	CHECK_EQ(hws_drive_facts(NULL, 64, &facts), -EINVAL);
	CHECK_EQ(hws_drive_facts(words, 64, NULL), -EINVAL);
	CHECK_EQ(hws_drive_locate(NULL, 64, 1, words, &place), -EINVAL);
	CHECK_EQ(hws_drive_locate(words, 64, 1, NULL, &place), -EINVAL);
	CHECK_EQ(hws_drive_locate(words, 64, 1, words, NULL), -EINVAL);
	CHECK_EQ(hws_drive_replay(NULL, 64, 1, &load), -EINVAL);
	CHECK_EQ(hws_drive_replay(words, 64, 1, NULL), -EINVAL);
	CHECK_EQ(hws_drive_replay(words, 64, 1, &load), -EINVAL);
}

int main(void)
{
	test_catalogue();
	test_tables();
	test_no_run();
	test_run(false);
	test_run(true);
	test_pieces();
	test_policy();
	test_drives();
	return CHECK_DONE();
}
