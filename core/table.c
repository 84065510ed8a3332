// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tables of rows for policies: looked up, checked, read from text and written as text, for every
 * host alike.
 */
#include "core/elevator.h"
#include "core/lib/names.h"

#define HW_EINVAL 22
#define HW_ERANGE 34

/* Products of a policy's interpolation stay within 64 bits up to these. */
#define MAX_DISTANCE	(S64_MAX >> 8) /* in bytes it is a u64 */
#define MAX_POSITIONING ((s64)U32_MAX)

static const struct hw_column position_columns[] = {
	{ .name = "sectors",
	  .unit = "sectors",
	  .help = "distance that the head moves",
	  .max = MAX_DISTANCE,
	  .order = HW_ASCENDING },
	{ .name = "ns", .unit = "ns", .help = "time for that distance", .max = MAX_POSITIONING },
};

static const struct hw_table positions = {
	.name = "positions",
	.help = "positioning time by distance: linear between rows, constant beyond the last",
	.columns = position_columns,
	.nr_columns = ARRAY_SIZE(position_columns),
	.max_rows = HW_POSITION_POINTS,
	.offset = offsetof(struct hw_queue, dev.positions),
};

static const struct hw_table *const common[] = { &positions };

const struct hw_table *hw_table_at(const struct hw_policy *policy, u32 index)
{
	if (index < ARRAY_SIZE(common))
		return common[index];
	index -= ARRAY_SIZE(common);
	return index < policy->nr_tables ? &policy->tables[index] : NULL;
}

u32 hw_table_count(const struct hw_policy *policy)
{
	return ARRAY_SIZE(common) + policy->nr_tables;
}

const struct hw_table *hw_table_find(const struct hw_policy *policy, const char *name)
{
	const struct hw_table *t;
	u32 i;

	for (i = 0; (t = hw_table_at(policy, i)); i++)
		if (hw_same_name(t->name, name))
			return t;
	return NULL;
}

static struct hw_rows *rows_of(const struct hw_queue *q, const struct hw_table *t)
{
	return (struct hw_rows *)((char *)q + t->offset);
}

const struct hw_rows *hw_table_rows(const struct hw_queue *q, const struct hw_table *t)
{
	return rows_of(q, t);
}

const s64 *hw_table_swap(struct hw_queue *q, const struct hw_table *t, const s64 *cells,
			 u32 nr_rows)
{
	struct hw_rows *rows = rows_of(q, t);
	const s64 *old = rows->cells;

	rows->cells = cells;
	rows->nr = nr_rows;
	return old;
}

/* ---- checks ---- */

static const char wrong_width[] = "the number of columns must be";
static const char too_many[] = "the number of rows must be at most";
static const char no_choice[] = "must be one of";

int hw_table_bad(struct hw_table_error *err, s64 row, const struct hw_column *column,
		 const char *what)
{
	*err = (struct hw_table_error){ .row = row, .column = column, .what = what };
	return -HW_EINVAL;
}

int hw_table_beyond(struct hw_table_error *err, s64 row, const struct hw_column *column,
		    const char *what, s64 bound)
{
	hw_table_bad(err, row, column, what);
	err->bounded = true;
	err->bound = bound;
	return -HW_EINVAL;
}

static int check_row(const struct hw_table *t, const s64 *cells, u32 row,
		     struct hw_table_error *err)
{
	const s64 *cell = cells + (size_t)row * t->nr_columns;
	u32 i;

	for (i = 0; i < t->nr_columns; i++) {
		const struct hw_column *c = &t->columns[i];
		s64 before;

		if (cell[i] < c->min)
			hw_table_beyond(err, row, c, "must be at least", c->min);
		else if (cell[i] > c->max)
			hw_table_beyond(err, row, c, "must be at most", c->max);
		if (err->what)
			return -HW_ERANGE;
		if (!row || c->order == HW_UNORDERED)
			continue;
		before = cell[(s64)i - t->nr_columns];
		if (cell[i] <= before)
			return hw_table_beyond(err, row, c, "must be more than the row before's",
					       before);
	}
	return 0;
}

/* The limits of every row, then the number of rows, then the policy's own rules. */
int hw_table_check(const struct hw_table *t, const s64 *cells, u32 nr_rows, u32 nr_columns,
		   struct hw_table_error *err)
{
	const struct hw_rows rows = { cells, nr_rows };
	u32 i;
	int ret;

	*err = (struct hw_table_error){ .row = -1 };
	if (nr_columns != t->nr_columns)
		return hw_table_beyond(err, -1, NULL, wrong_width, t->nr_columns);
	if (nr_rows > t->max_rows)
		return hw_table_beyond(err, -1, NULL, too_many, t->max_rows);
	if (nr_rows < t->min_rows)
		return hw_table_beyond(err, -1, NULL, "the number of rows must be at least",
				       t->min_rows);
	for (i = 0; i < nr_rows; i++) {
		ret = check_row(t, cells, i, err);
		if (ret)
			return ret;
	}
	return t->check ? t->check(t, &rows, err) : 0;
}

/* ---- from text ---- */

struct reader {
	const char *at, *end;
	u32 line;
};

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; false at the line's end. */
static bool next_word(struct reader *r, const char **word, size_t *length)
{
	const char *begin;

	while (r->at < r->end && blank(*r->at))
		r->at++;
	if (r->at < r->end && *r->at == '#')
		while (r->at < r->end && *r->at != '\n')
			r->at++;
	begin = r->at;
	while (r->at < r->end && !blank(*r->at) && *r->at != '\n' && *r->at != '#')
		r->at++;
	*word = begin;
	*length = (size_t)(r->at - begin);
	return r->at > begin;
}

static bool parse_number(const char *word, size_t length, s64 *value)
{
	bool negative = word[0] == '-';
	u64 most = (u64)S64_MAX + negative, n = 0;
	size_t i = negative;

	if (i == length)
		return false;
	for (; i < length; i++) {
		u64 digit = (u64)(word[i] - '0');

		if (word[i] < '0' || word[i] > '9' || n > div_u64(most - digit, 10))
			return false;
		n = n * 10 + digit;
	}
	*value = negative ? (s64)(0 - n) : (s64)n;
	return true;
}

static bool parse_choice(const struct hw_column *c, const char *word, size_t length, s64 *value)
{
	size_t k;
	s64 i;

	for (i = 0; c->choices[i]; i++) {
		const char *name = c->choices[i];

		for (k = 0; k < length && name[k] == word[k]; k++)
			;
		if (k == length && !name[k]) {
			*value = i;
			return true;
		}
	}
	return false;
}

static int parse_cell(const struct hw_column *c, const char *word, size_t length, s64 row,
		      s64 *value, struct hw_table_error *err)
{
	if (c->choices)
		return parse_choice(c, word, length, value) ? 0 :
							      hw_table_bad(err, row, c, no_choice);
	return parse_number(word, length, value) ?
		       0 :
		       hw_table_bad(err, row, c, "must be a whole number of at most 64 bits");
}

/* A line of so many words as the cells of a row. */
static int parse_row(const struct hw_table *t, struct reader r, u32 given, s64 *cell, u32 row,
		     struct hw_table_error *err)
{
	u32 missing = t->nr_columns - given, i;
	const char *word;
	size_t length;
	int ret = 0;

	for (i = 0; i < t->nr_columns && !ret; i++) {
		const struct hw_column *c = &t->columns[i];

		if (given > t->nr_columns || (i < missing && (!row || !c->left_out)))
			return hw_table_beyond(err, row, NULL, wrong_width, t->nr_columns);
		if (i < missing) {
			cell[i] = cell[(s64)i - t->nr_columns] + (c->left_out == HW_NEXT);
			continue;
		}
		next_word(&r, &word, &length);
		ret = parse_cell(c, word, length, row, &cell[i], err);
	}
	return ret;
}

/* Goes on to the beginning of the next line that has words, of which it says how many. */
static u32 next_line(struct reader *r)
{
	for (; r->at < r->end; r->at++, r->line++) {
		struct reader words = *r;
		const char *word;
		size_t length;
		u32 n = 0;

		while (next_word(&words, &word, &length))
			n++;
		if (n)
			return n;
		r->at = words.at;
	}
	return 0;
}

static void skip_line(struct reader *r)
{
	while (r->at < r->end && *r->at != '\n')
		r->at++;
	r->at += r->at < r->end;
	r->line++;
}

static u32 line_of(const char *text, size_t length, s64 row)
{
	struct reader r = { text, text + length, 1 };

	while (next_line(&r) && row--)
		skip_line(&r);
	return r.line;
}

int hw_table_parse(const struct hw_table *t, const char *text, size_t length, s64 *cells,
		   u32 *nr_rows, struct hw_table_error *err)
{
	struct reader r = { text, text + length, 1 };
	u32 n = 0, words;
	int ret = 0;

	*err = (struct hw_table_error){ .row = -1 };
	for (; (words = next_line(&r)) && !ret; n++, skip_line(&r)) {
		if (n == t->max_rows)
			ret = hw_table_beyond(err, n, NULL, too_many, t->max_rows);
		else
			ret = parse_row(t, r, words, cells + (size_t)n * t->nr_columns, n, err);
	}
	if (!ret)
		ret = hw_table_check(t, cells, n, t->nr_columns, err);
	if (ret && err->row >= 0)
		err->line = line_of(text, length, err->row);
	*nr_rows = n;
	return ret;
}

/* ---- to text ---- */

struct writer {
	char *text;
	size_t room, length;
};

static void put(struct writer *w, const char *s)
{
	for (; *s; s++, w->length++)
		if (w->length + 1 < w->room)
			w->text[w->length] = *s;
	if (w->room)
		w->text[min(w->length, w->room - 1)] = '\0';
}

static void put_number(struct writer *w, s64 value)
{
	u64 n = value < 0 ? 0 - (u64)value : (u64)value;
	char digits[21];
	u32 i = sizeof(digits) - 1;

	digits[i] = '\0';
	do {
		u64 rest;

		n = div64_u64_rem(n, 10, &rest);
		digits[--i] = (char)('0' + rest);
	} while (n);
	if (value < 0)
		digits[--i] = '-';
	put(w, &digits[i]);
}

/* How many cells at the left of a row need not be said. */
static u32 understood(const struct hw_table *t, const s64 *cell, u32 row)
{
	u32 i;

	for (i = 0; row && i + 1 < t->nr_columns; i++) {
		const struct hw_column *c = &t->columns[i];

		if (!c->left_out ||
		    cell[i] != cell[(s64)i - t->nr_columns] + (c->left_out == HW_NEXT))
			return i;
	}
	return i;
}

size_t hw_table_print(const struct hw_table *t, const struct hw_rows *rows, bool brief, char *text,
		      size_t room)
{
	struct writer w = { text, room, 0 };
	u32 row, i;

	put(&w, "");
	for (row = 0; row < rows->nr; row++) {
		const s64 *cell = rows->cells + (size_t)row * t->nr_columns;

		for (i = brief ? understood(t, cell, row) : 0; i < t->nr_columns; i++) {
			if (t->columns[i].choices)
				put(&w, t->columns[i].choices[cell[i]]);
			else
				put_number(&w, cell[i]);
			put(&w, i + 1 < t->nr_columns ? " " : "\n");
		}
	}
	return w.length;
}

void hw_table_explain(const struct hw_table *t, const struct hw_table_error *err, char *text,
		      size_t room)
{
	struct writer w = { text, room, 0 };
	const char *const *name;

	put(&w, t->name);
	if (err->line || err->row >= 0) {
		put(&w, err->line ? ", line " : ", row ");
		put_number(&w, err->line ? err->line : err->row + 1);
	}
	if (err->column) {
		put(&w, ", ");
		put(&w, err->column->name);
	}
	put(&w, ": ");
	put(&w, err->what);
	if (err->bounded) {
		put(&w, " ");
		put_number(&w, err->bound);
	}
	if (err->what != no_choice)
		return;
	for (name = err->column->choices; *name; name++) {
		put(&w, name == err->column->choices ? " " : ", ");
		put(&w, *name);
	}
}
