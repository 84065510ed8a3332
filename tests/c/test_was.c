// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Classes of tasks: W1 of the spec, equation (2) added up anew for random configs and reads, and
 * what a config may not say.
 */
#include <string.h>

#include "check.h"
#include "core/policy/as/classes.h"
#include "core/policy/policies.h"

#define MS 1000000ull

static const struct hw_table *config;
static s64 cells[3 * 700];
static u32 nr;

static const char *parse(const char *text)
{
	static char line[160];
	struct hw_table_error err;

	if (!hw_table_parse(config, text, strlen(text), cells, &nr, &err))
		return "";
	hw_table_explain(config, &err, line, sizeof(line));
	return line;
}

#define PARSE(text, expected)                             \
	do {                                              \
		const char *got_ = parse(text);           \
		CHECK(!strcmp(got_, expected));           \
		if (strcmp(got_, expected))               \
			printf("  it is \"%s\"\n", got_); \
	} while (0)

static void read_config(struct was_classes *c)
{
	const struct hw_rows rows = { cells, nr };

	was_read_rows(c, &rows);
}

#define PAPER                                                         \
	"spatial 0 70\n41 30\n61 0\ntemporal 0 30\n3000 15\n9000 0\n" \
	"classes 0 100\nhistory 0 5\ninterval 1 1000\n72 4000\n"

/* Reads that leave these distances behind, oldest first; distances are (sectors, ms). */
static u32 class_after(const struct was_classes *c, u32 n, const u64 (*distance)[2])
{
	struct was_history h = { 0 };
	u64 sector = 1 << 30, now = MS;
	u32 i;

	was_note(c, &h, false, sector, now);
	for (i = 0; i < n; i++) {
		sector = i % 2 ? sector - distance[i][0] : sector + distance[i][0];
		now += distance[i][1] * MS;
		was_note(c, &h, false, sector, now);
	}
	return was_class(c, &h, false);
}

static void test_paper(void)
{
	static const u64 mixed[][2] = { { 1000, 20 }, { 50, 5 }, { 8, 1 } };
	static const u64 back[][2] = { { 8, 1 }, { 8, 1 }, { 8, 1 }, { 1000, 20 } };
	static const u64 far[][2] = {
		{ 1000000, 100 }, { 1000000, 100 }, { 1000000, 100 }, { 1000000, 100 }
	};
	struct was_classes c = { 0 };

	PARSE(PAPER, "");
	read_config(&c);
	CHECK_EQ(c.n, 100);
	CHECK_EQ(c.entries, 4);
	CHECK_EQ(c.best, 100);
	CHECK_EQ(class_after(&c, 0, NULL), 100);
	CHECK_EQ(class_after(&c, 3, mixed), 72);
	CHECK_EQ(class_after(&c, 4, back), 47);
	CHECK_EQ(class_after(&c, 4, far), 1);
	CHECK_EQ(c.wait_us[70], 1000);
	CHECK_EQ(c.wait_us[71], 4000);
	CHECK_EQ(c.wait_us[99], 4000);
}

static u64 rng = 2463534242;

static u64 draw(u64 n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

static u32 add(s64 what, s64 from, s64 value, u32 row)
{
	cells[3 * row] = what;
	cells[3 * row + 1] = from;
	cells[3 * row + 2] = value;
	return row + 1;
}

static u32 add_steps(s64 what, u32 row)
{
	s64 from = 0, value = 1 + (s64)draw(100);
	u32 n = 1 + (u32)draw(5);

	while (n--) {
		row = add(what, from, value, row);
		from += 1 + (s64)draw(3000);
		value = (s64)draw((u64)value + 1);
	}
	return row;
}

static void random_config(void)
{
	struct hw_table_error err;

	nr = add(WAS_HISTORY, 0, 2 + (s64)draw(16), 0);
	nr = add(WAS_CLASSES, 0, 1 + (s64)draw(512), nr);
	nr = add(WAS_INTERVAL, 1, (s64)draw(100001), nr);
	nr = add_steps(WAS_TEMPORAL, nr);
	nr = add_steps(WAS_SPATIAL, nr);
	CHECK_EQ(hw_table_check(config, cells, nr, 3, &err), 0);
}

/* The points of a distance, straight from the rows. */
static u64 points(s64 what, u64 distance)
{
	u64 found = 0;
	u32 i;

	for (i = 0; i < nr; i++)
		if (cells[3 * i] == what && (u64)cells[3 * i + 1] <= distance)
			found = (u64)cells[3 * i + 2];
	return found;
}

#define READS 40

/* Equation (2) as it stands in the paper, with whole weights. */
static u64 class_by_definition(const u64 *sector, const u64 *ns, u32 n, bool min_history)
{
	u64 entries = (u64)cells[2] - 1, classes = (u64)cells[5], sum = 0, whole = 0, j;
	u64 best = points(WAS_SPATIAL, 0) + points(WAS_TEMPORAL, 0), class;

	for (j = 0; j < entries; j++) {
		u64 weight = 1ull << (entries - 1 - j);
		bool there = n >= j + 2;
		u32 i = there ? n - 1 - (u32)j : 0;
		u64 far = there ? (sector[i] > sector[i - 1] ? sector[i] - sector[i - 1] :
							       sector[i - 1] - sector[i]) :
				  0;

		if (!there && min_history && n > 1)
			continue;
		sum += weight * (there ? points(WAS_SPATIAL, far) +
						 points(WAS_TEMPORAL, (ns[i] - ns[i - 1]) / 1000) :
					 best);
		whole += weight * best;
	}
	class = (classes * sum + whole - 1) / whole;
	return class ? class : 1;
}

static void test_definition(void)
{
	struct was_classes c = { 0 };
	u32 round, i, other = 0;

	for (round = 0; round < 2000; round++) {
		bool min_history = round % 2;
		u64 sector[READS], ns[READS];
		struct was_history h = { 0 };

		random_config();
		read_config(&c);
		for (i = 0; i < READS; i++) {
			sector[i] = (i && draw(2) ? sector[i - 1] : 100000) + draw(4000);
			ns[i] = (i ? ns[i - 1] : 0) + draw(4000000);
			was_note(&c, &h, min_history, sector[i], ns[i]);
			CHECK_EQ(was_class(&c, &h, min_history),
				 class_by_definition(sector, ns, i + 1, min_history));
			if (draw(60))
				continue;
			/* Another config in the middle: the history is seen by its steps at once. */
			random_config();
			read_config(&c);
			other++;
			CHECK_EQ(was_class(&c, &h, min_history),
				 class_by_definition(sector, ns, i + 1, min_history));
		}
	}
	CHECK(other > 1000);
}

/* A read that is nearer, in place or in time, never makes the class worse. */
static void test_nearer_is_no_worse(void)
{
	struct was_classes c = { 0 };
	u32 round, i;

	for (round = 0; round < 2000; round++) {
		u64 near[16][2], far[16][2];

		random_config();
		read_config(&c);
		for (i = 0; i < 16; i++) {
			far[i][0] = near[i][0] = draw(6000);
			far[i][1] = near[i][1] = draw(10);
		}
		i = (u32)draw(16);
		near[i][0] -= draw(near[i][0] + 1);
		near[i][1] -= draw(near[i][1] + 1);
		CHECK(class_after(&c, 16, near) >= class_after(&c, 16, far));
		CHECK(class_after(&c, 16, near) <= c.n);
	}
}

static void test_refused(void)
{
	PARSE("", "");
	PARSE("history 0 1", "config, line 1, value: must be at least 2");
	PARSE("history 0 18", "config, line 1, value: must be at most 17");
	PARSE("history 1 5", "config, line 1, from: the first of its kind must be 0");
	PARSE("history 0 5\nhistory 1 6",
	      "config, line 2, what: the number of rows of this kind must be at most 1");
	PARSE("classes 0 513", "config, line 1, value: must be at most 512");
	PARSE("classes 0 0", "config, line 1, value: must be at least 1");
	PARSE("interval 0 5", "config, line 1, from: the first of its kind must be 1");
	PARSE("interval 1 -5", "config, line 1, value: must be at least 0");
	PARSE("interval 1 100001", "config, line 1, value: must be at most 100000");
	PARSE("spatial 0 101", "config, line 1, value: must be at most 100");
	PARSE("spatial 5 10", "config, line 1, from: the first of its kind must be 0");
	PARSE("spatial 0 5\ntemporal 0 7\nspatial 9 6",
	      "config, line 3, value: must not be more than in the row of its kind before, 5");
	PARSE("spatial 0 5\ntemporal 0 7\nspatial 0 5",
	      "config, line 3, from: must be more than in the row of its kind before, 0");
	PARSE("temporal 0 5\n-1 5", "config, line 2, from: must be at least 0");
	PARSE("history 0 5\nclasses 0 9\nspatial 0 5\ntemporal 0 5",
	      "config: lacks rows 'interval'");
	PARSE("classes 0 9\nspatial 0 5\ntemporal 0 5\ninterval 1 5",
	      "config: lacks a row 'history'");
	PARSE("history 0 5\nclasses 0 9\nspatial 0 5\ntemporal 0 5\ninterval 1 5\n10 5",
	      "config, line 6, from: must be at most the number of classes, 9");
	PARSE("history 0 5\nclasses 0 9\nspatial 0 0\ntemporal 0 0\ninterval 1 5",
	      "config: all points are 0: nothing tells classes from each other");
	PARSE("history 0 5\nclasses 0 9\nspatial 0 0\ntemporal 0 1\ninterval 1 5\n9 5", "");
}

/* The largest config that anybody would have goes through a page of sysfs. */
static void test_fits_a_page(void)
{
	struct hw_table_error err;
	struct hw_rows rows;
	u32 i;

	nr = add(WAS_HISTORY, 0, 17, 0);
	nr = add(WAS_CLASSES, 0, 512, nr);
	for (i = 0; i < 20; i++)
		nr = add(WAS_SPATIAL, i * 100000000000ll, 100 - i, nr);
	for (i = 0; i < 20; i++)
		nr = add(WAS_TEMPORAL, i * 10000000ll, 100 - i, nr);
	for (i = 0; i < 512; i++)
		nr = add(WAS_INTERVAL, i + 1, 10000 + i, nr);
	CHECK_EQ(hw_table_check(config, cells, nr, 3, &err), 0);
	rows = (struct hw_rows){ cells, nr };
	CHECK(hw_table_print(config, &rows, false, NULL, 0) > 4096);
	CHECK(hw_table_print(config, &rows, true, NULL, 0) < 4096);
}

int main(void)
{
	config = hw_table_find(&hw_was, "config");
	test_paper();
	test_definition();
	test_nearer_is_no_worse();
	test_refused();
	test_fits_a_page();
	return CHECK_DONE();
}
