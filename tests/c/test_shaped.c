// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Cloud volumes: limits are kept, bursts are exact, and the same calls have the same answers. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/drive.h"

#define DEPTH 1024
#define MS    1000000ull

static struct hw_profile *profile(void)
{
	u32 index = 0, i;
	const struct hw_drive_model *model = hw_drive_model_find("shaped", &index);
	struct hw_profile *p = calloc(1, sizeof(*p) + 256 * sizeof(s64));

	p->magic = HW_PROFILE_MAGIC;
	p->model = index;
	p->params = model->nr_params;
	p->words = model->nr_params;
	for (i = 0; i < model->nr_params; i++) {
		if (model->params[i].type == HW_PARAM_LIST) {
			const s64 rows[] = { 2, 0, (s64)MS, 1000000, (s64)(3 * MS) };
			u32 words = model->params[i].def == HW_PARAM_REQUIRED ? 5 : 1;

			p->value[i] = p->words;
			if (words > 1)
				memcpy(&p->value[p->words], rows, sizeof(rows));
			p->words += words; /* the others are empty: 0 rows */
		} else {
			p->value[i] = model->params[i].def == HW_PARAM_REQUIRED ?
					      1 << 24 :
					      model->params[i].def;
		}
	}
	return p;
}

static s64 *value(struct hw_profile *p, const char *key)
{
	const struct hw_drive_model *model = hw_drive_models[p->model];
	u32 i;

	for (i = 0; strcmp(model->params[i].key, key); i++)
		;
	return &p->value[i];
}

/* The caller frees it: a drive is the beginning of its memory. */
static struct hw_drive *drive(const struct hw_profile *p)
{
	struct hw_profile_error err;
	size_t bytes = sizeof(*p) + p->words * sizeof(s64);

	CHECK_EQ(hw_profile_check(p, bytes, &err), 0);
	return hw_drive_create(calloc(1, hw_drive_size(p, DEPTH)), p, DEPTH);
}

/* Keeps `at_once` requests outstanding until `end`: how many were done, and their sum of times. */
static u64 closed(const struct hw_profile *p, u32 at_once, u32 sectors, u64 end, u64 *sum)
{
	struct hw_drive *d = drive(p);
	struct hw_io *ios = calloc(at_once, sizeof(*ios));
	u64 now = 0, n = 0, place = 0;
	u32 i;

	for (i = 0; i < at_once; i++) {
		ios[i].sectors = sectors;
		ios[i].sector = (place += 2 * sectors);
		d->model->submit(d, &ios[i], 0);
	}
	while ((now = d->model->next(d)) <= end) {
		struct hw_io *io;

		while ((io = d->model->poll(d, now))) {
			CHECK(io->done_ns <= now);
			n++;
			*sum += io->done_ns - io->submit_ns;
			io->sector = (place = (place + 2 * sectors) % (1 << 20));
			d->model->submit(d, io, now);
		}
	}
	free(ios);
	free(d);
	return n;
}

/* 64 requests of 4 KiB at a time: that many are done, but for what is outstanding at the end. */
static void check_done(const struct hw_profile *p, u64 end, u64 most)
{
	u64 sum = 0, n = closed(p, 64, 8, end, &sum);

	CHECK(n <= most);
	CHECK(n >= most - 64);
}

static void test_limits(void)
{
	struct hw_profile *p = profile();

	*value(p, "servers") = 256;
	*value(p, "ios.rate") = 3000;
	*value(p, "ios.burst") = 500;
	check_done(p, 10000 * MS, 30500);
	*value(p, "bytes.rate") = 10000000; /* 10 MB/s: 2441 requests of 4 KiB a second */
	*value(p, "bytes.burst") = 4096;
	check_done(p, 10000 * MS, 24415);
	*value(p, "bytes.rate") = 0;
	*value(p, "ios.peak") = 3100; /* a burst of 500 at 100 a second above the rate: 5 s */
	check_done(p, 4000 * MS, 12401);
	free(p);
}

/* So many pass at once, and the next one as late as the rate says. */
static void test_burst(void)
{
	struct hw_profile *p = profile();
	struct hw_drive *d;
	struct hw_io io[12] = { 0 };
	s64 *ms = &p->value[*value(p, "latency.read") + 1];
	u32 i;

	*value(p, "ios.rate") = 700;
	*value(p, "ios.burst") = 10;
	ms[3] = ms[1];
	d = drive(p);
	for (i = 0; i < 12; i++) {
		io[i].sector = 100 * i;
		io[i].sectors = 8;
		d->model->submit(d, &io[i], 5);
		CHECK_EQ(io[i].done_ns,
			 i < 10 ? 5 + MS : 5 + MS + (i - 9) * 1000000000ull / 700 + 1);
	}
	free(d);
	free(p);
}

/* What adjoins at the gate counts once a unit; what comes later counts again. */
static void test_merging(void)
{
	struct hw_profile *p = profile();
	struct hw_drive *d;
	struct hw_io io[5] = { 0 };
	s64 *ms = &p->value[*value(p, "latency.read") + 1];
	u32 i;

	*value(p, "ios.rate") = 1000;
	*value(p, "ios.unit") = 16;
	ms[3] = ms[1];
	d = drive(p);
	for (i = 0; i < 5; i++) {
		io[i].sector = 8 * i;
		io[i].sectors = 8;
		d->model->submit(d, &io[i], 0);
		CHECK_EQ(io[i].done_ns, (1 + i / 2) * MS);
	}
	free(d);
	free(p);
}

static void test_monotone(void)
{
	struct hw_profile *p = profile();
	u64 last = 0, sum, n, again;
	u32 at_once;

	*value(p, "servers") = 16;
	*value(p, "slow.share") = 100000;
	*value(p, "slow.factor") = 5000000;
	for (at_once = 1; at_once <= 64; at_once *= 2) {
		sum = 0;
		n = closed(p, at_once, 8, 20000 * MS, &sum);
		CHECK(n >= last - last / 20);
		last = n;
		again = 0;
		CHECK_EQ(closed(p, at_once, 8, 20000 * MS, &again), n);
		CHECK_EQ(again, sum);
	}
	free(p);
}

/* Gives the profile this table of load, with so many rows. */
static void set_load(struct hw_profile *p, const s64 *rows, u32 nr)
{
	*value(p, "latency.load") = p->words;
	p->value[p->words] = nr;
	memcpy(&p->value[p->words + 1], rows, 2 * nr * sizeof(*rows));
	p->words += 2 * nr + 1;
}

/* Requests hinder each other as the table says, on lines between its rows and in proportion beyond. */
static void test_load(void)
{
	static const s64 rows[] = { 1, 1000000, 4, 2000000, 16, 6000000 };
	static const struct {
		u32 at_once;
		u64 times_by_30;
	} found[] = { { 1, 30 }, { 2, 40 }, { 4, 60 }, { 10, 120 }, { 16, 180 }, { 64, 720 } };
	struct hw_profile *p = profile();
	u64 alone = 0, sum, n = closed(p, 1, 8, 20000 * MS, &alone), mean;
	u32 i;

	alone /= n;
	*value(p, "servers") = 256;
	set_load(p, rows, 3);
	for (i = 0; i < ARRAY_SIZE(found); i++) {
		sum = 0;
		n = closed(p, found[i].at_once, 8, 20000 * MS, &sum);
		mean = alone * found[i].times_by_30 / 30;
		CHECK(sum / n >= mean - mean / 20);
		CHECK(sum / n <= mean + mean / 20);
	}
	free(p);
}

/* Limits of one direction; the sum of both is limited, too. */
static void test_directions(void)
{
	struct hw_profile *p = profile();
	u64 sum = 0;

	*value(p, "servers") = 256;
	*value(p, "bytes.burst") = 4096;
	*value(p, "bytes.write_rate") = 4096000;
	CHECK(closed(p, 64, 8, 10000 * MS, &sum) > 300000); /* reads have no limit */
	*value(p, "bytes.read_rate") = 8192000;
	check_done(p, 10000 * MS, 20001);
	*value(p, "bytes.rate") = 4096000;
	check_done(p, 10000 * MS, 10001);
	free(p);
}

static void test_bad_load(void)
{
	static const struct {
		s64 rows[6];
		const char *what;
	} bad[] = {
		{ { 1, 1000000, 4, 5000000 }, "rises faster than at_once" },
		{ { 1, 1000000, 1, 1000000 }, "must rise from row to row" },
		{ { 2, 1000000, 4, 2000000 }, "must be 1 at once, 1 times, in the first row" },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct hw_profile *p = profile();
		struct hw_profile_error err;

		set_load(p, bad[i].rows, 2);
		CHECK_EQ(hw_profile_check(p, sizeof(*p) + p->words * sizeof(s64), &err), -22);
		CHECK(!strcmp(err.what, bad[i].what));
		free(p);
	}
}

static void test_bad_tables(void)
{
	struct hw_profile *p = profile();
	struct hw_profile_error err;
	s64 *row = &p->value[*value(p, "latency.write") + 1];

	row[3] = 1;
	CHECK_EQ(hw_profile_check(p, sizeof(*p) + p->words * sizeof(s64), &err), -22);
	CHECK(!strcmp(err.what, "falls below the row before"));
	row[2] = 999999;
	CHECK_EQ(hw_profile_check(p, sizeof(*p) + p->words * sizeof(s64), &err), -22);
	CHECK(!strcmp(err.what, "must be 1 in the last row"));
	free(p);
}

int main(void)
{
	test_limits();
	test_burst();
	test_merging();
	test_monotone();
	test_load();
	test_directions();
	test_bad_tables();
	test_bad_load();
	return CHECK_DONE();
}
