// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tables for policies: limits, order and width of rows, text in both directions, and the swap
 * between two calls.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/policy/policies.h"

static const char *const kinds[] = { "step", "wait", NULL };

static const struct hw_column columns[] = {
	{ .name = "kind", .max = 1, .left_out = HW_SAME, .choices = kinds },
	{ .name = "from", .min = -5, .max = 1000000, .order = HW_ASCENDING, .left_out = HW_NEXT },
	{ .name = "value", .min = -100, .max = S64_MAX },
};

/* A rule of the table's own: the first value is the largest. */
static int first_is_largest(const struct hw_table *t, const struct hw_rows *rows,
			    struct hw_table_error *err)
{
	u32 i;

	for (i = 1; i < rows->nr; i++)
		if (rows->cells[3 * i + 2] > rows->cells[2])
			return hw_table_beyond(err, i, &t->columns[2],
					       "must be no more than the first,", rows->cells[2]);
	return 0;
}

#define MAX_ROWS 64
static const struct hw_table table = {
	.name = "example",
	.columns = columns,
	.nr_columns = 3,
	.min_rows = 1,
	.max_rows = MAX_ROWS,
	.check = first_is_largest,
};

static s64 cells[3 * MAX_ROWS];
static u32 nr;

static const char *wrong(int ret, const struct hw_table_error *err)
{
	static char line[128];

	if (!ret)
		return "";
	CHECK(ret == -22 || ret == -34);
	hw_table_explain(&table, err, line, sizeof(line));
	return line;
}

/* What is wrong with a text; "" if nothing. */
static const char *parse(const char *text)
{
	struct hw_table_error err;

	return wrong(hw_table_parse(&table, text, strlen(text), cells, &nr, &err), &err);
}

#define PARSE(text, expected) CHECK(!strcmp(parse(text), expected))

static void test_text(void)
{
	static const s64 expected[] = { 0, 2, 9, 0, 3, -7, 1, 4, 9, 1, 8, 0 };

	PARSE("step 2 9\n-7 # as above, at 3\n\n  wait\t4 9\r\n#\n8 0", "");
	CHECK_EQ(nr, 4);
	CHECK(!memcmp(cells, expected, sizeof(expected)));
	PARSE("step -5 9223372036854775807", "");
	CHECK_EQ(cells[1], -5);
	CHECK_EQ(cells[2], S64_MAX);

	PARSE("", "example: the number of rows must be at least 1");
	PARSE("\n# nothing\n", "example: the number of rows must be at least 1");
	PARSE("5", "example, line 1: the number of columns must be 3");
	PARSE("\n\n1 5", "example, line 3: the number of columns must be 3");
	PARSE("step 1 5\nstep 2 3 4", "example, line 2: the number of columns must be 3");
	PARSE("stem 1 5", "example, line 1, kind: must be one of step, wait");
	PARSE("ste 1 5", "example, line 1, kind: must be one of step, wait");
	PARSE("steps 1 5", "example, line 1, kind: must be one of step, wait");
	PARSE("0 1 5", "example, line 1, kind: must be one of step, wait");
	PARSE("step 1 0x5", "example, line 1, value: must be a whole number of at most 64 bits");
	PARSE("step 1 -", "example, line 1, value: must be a whole number of at most 64 bits");
	PARSE("step 1 9223372036854775808",
	      "example, line 1, value: must be a whole number of at most 64 bits");
	PARSE("step 1 -9223372036854775808", "example, line 1, value: must be at least -100");
	PARSE("step -6 1", "example, line 1, from: must be at least -5");
	PARSE("step 1 1\n\nstep 1000001 1", "example, line 3, from: must be at most 1000000");
	PARSE("step 1 1\nstep 1 1", "example, line 2, from: must be more than the row before's 1");
	PARSE("step 1 1\n#\n#\n1\n2", "example, line 5, value: must be no more than the first, 1");
}

static void test_number_of_rows(void)
{
	char text[8 * (MAX_ROWS + 1) + 16] = "step 0 1\n";
	u32 i;

	for (i = 1; i < MAX_ROWS; i++)
		strcat(text, "1\n");
	PARSE(text, "");
	CHECK_EQ(nr, MAX_ROWS);
	CHECK_EQ(cells[3 * MAX_ROWS - 2], MAX_ROWS - 1);
	strcat(text, "\n1\n");
	PARSE(text, "example, line 66: the number of rows must be at most 64");
}

static void test_cells(void)
{
	s64 rows[3 * (MAX_ROWS + 1)] = { 0, 1, 5, 1, 2, 5 };
	struct hw_table_error err;

	CHECK_EQ(hw_table_check(&table, rows, 2, 3, &err), 0);
	CHECK_EQ(hw_table_check(&table, rows, 3, 2, &err), -22);
	CHECK_EQ(err.row, -1);
	CHECK_EQ(err.bound, 3);
	CHECK_EQ(hw_table_check(&table, rows, 0, 3, &err), -22);
	CHECK_EQ(hw_table_check(&table, rows, MAX_ROWS + 1, 3, &err), -22);
	CHECK_EQ(err.bound, MAX_ROWS);
	rows[3] = 2; /* no such choice */
	CHECK_EQ(hw_table_check(&table, rows, 2, 3, &err), -34);
	CHECK_EQ(err.row, 1);
	CHECK(err.column == &columns[0]);
	CHECK(!strcmp(wrong(-34, &err), "example, row 2, kind: must be at most 1"));
	rows[3] = 1;
	rows[5] = 6;
	CHECK_EQ(hw_table_check(&table, rows, 2, 3, &err), -22);
	CHECK_EQ(err.row, 1);
}

static u64 rng = 88172645463325252ull;

static u64 draw(u64 n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

/* Whatever passes comes back from its text, brief or not; a short buffer holds its beginning. */
static void test_round_trips(void)
{
	static char text[64 * MAX_ROWS], cut[64 * MAX_ROWS];
	s64 rows[3 * MAX_ROWS];
	u32 round, i, brief, shorter = 0;

	for (round = 0; round < 3000; round++) {
		struct hw_rows all = { rows, 1 + (u32)draw(MAX_ROWS) };
		size_t length[2];

		for (i = 0; i < all.nr; i++) {
			rows[3 * i] = i && draw(4) ? rows[3 * i - 3] : (s64)draw(2);
			rows[3 * i + 1] = i ? rows[3 * i - 2] + 1 + (s64)(draw(3) ? 0 : draw(99)) :
					      (s64)draw(9) - 5;
			rows[3 * i + 2] = i ? (s64)draw(1000) - 100 : S64_MAX - (s64)draw(9);
		}
		for (brief = 0; brief < 2; brief++) {
			size_t room = 1 + draw(200);

			length[brief] = hw_table_print(&table, &all, brief, text, sizeof(text));
			CHECK_EQ(strlen(text), length[brief]);
			PARSE(text, "");
			CHECK_EQ(nr, all.nr);
			CHECK(!memcmp(cells, rows, nr * 3 * sizeof(*rows)));
			cut[room] = '!';
			CHECK_EQ(hw_table_print(&table, &all, brief, cut, room), length[brief]);
			CHECK_EQ(cut[room], '!');
			CHECK_EQ(strlen(cut), min(room - 1, length[brief]));
			CHECK(!strncmp(text, cut, strlen(cut)));
			CHECK_EQ(hw_table_print(&table, &all, brief, NULL, 0), length[brief]);
		}
		CHECK(length[1] <= length[0]);
		shorter += length[1] < length[0];
	}
	CHECK(shorter > 2000);
}

/* Every policy has `positions`, first; the rows that leave come back to the host. */
static void test_swap(void)
{
	static const s64 one[] = { 0, 5, 10, 7 }, other[] = { 0, 1 };
	const struct hw_policy *const *p;

	for (p = hw_policies; *p; p++) {
		const struct hw_table *t = hw_table_find(*p, "positions");
		struct hw_queue *q = calloc(1, (*p)->queue_size);
		u32 i;

		hw_queue_prepare(q, *p);
		CHECK(t && t == hw_table_at(*p, 0));
		CHECK(!hw_table_swap(q, t, one, 2));
		CHECK_EQ(q->dev.positions.nr, 2);
		CHECK_EQ(hw_position_ns(&q->dev, 1), 7);
		CHECK_EQ(hw_position_sectors(&q->dev, 1), 10);
		CHECK(hw_table_swap(q, t, other, 1) == one);
		CHECK(hw_table_rows(q, t)->cells == other);
		for (i = 0; i < hw_table_count(*p); i++)
			CHECK(hw_table_at(*p, i) == hw_table_find(*p, hw_table_at(*p, i)->name));
		CHECK(!hw_table_at(*p, i));
		CHECK(!hw_table_find(*p, "none-such"));
		free(q);
	}
}

static void test_positions(void)
{
	const struct hw_table *t = hw_table_at(&hw_as_seek, 0);
	const s64 most[] = { 0, U32_MAX, S64_MAX >> 8, 0 };
	s64 beyond[] = { (S64_MAX >> 8) + 1, 0 };
	struct hw_table_error err;

	CHECK_EQ(hw_table_check(t, most, 2, 2, &err), 0);
	CHECK_EQ(hw_table_check(t, most, 0, 2, &err), 0);
	CHECK_EQ(hw_table_check(t, beyond, 1, 2, &err), -34);
	beyond[0] = 0;
	beyond[1] = (s64)U32_MAX + 1;
	CHECK_EQ(hw_table_check(t, beyond, 1, 2, &err), -34);
}

int main(void)
{
	test_text();
	test_number_of_rows();
	test_cells();
	test_round_trips();
	test_swap();
	test_positions();
	return CHECK_DONE();
}
