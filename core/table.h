/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables that a policy can be given: rows of whole numbers, where a tunable is a single one.
 *
 * A policy names its tables (struct hw_table); sysfs files, `--set NAME=FILE`, the documentation
 * and `headwaiter schedulers` are made from that. A host reads rows from text or takes them as they
 * are, has them checked, and swaps them in between two calls of the policy. Until then, and when
 * they are refused, the old ones stay in force.
 *
 * Memory is the host's: the policy reads the rows where they lie, for as long as they are in force.
 *
 * Text is a row a line, cells between blanks, and comments from # to the end of the line. A cell is
 * a decimal number, or the name of a choice. Where the columns allow it (enum hw_left_out), cells
 * on the left may be left out.
 */
#ifndef HW_TABLE_H
#define HW_TABLE_H

#include "core/port.h"

struct hw_queue;
struct hw_policy;

enum hw_order {
	HW_UNORDERED,
	HW_ASCENDING, /* each row has more than the one before */
};

/* May the cell be left out, if all to its left are, too? From the second row on. */
enum hw_left_out {
	HW_NEEDED, /* no */
	HW_SAME,   /* it is as in the row before */
	HW_NEXT,   /* it is one more than in the row before */
};

struct hw_column {
	const char *name;
	const char *unit; /* "ms", "sectors", …; "" for a plain number */
	const char *help;
	s64 min, max;
	enum hw_order order;
	enum hw_left_out left_out;
	const char *const *choices; /* names of 0, 1, … max, NULL-terminated; or NULL */
};

/* The cells of a row lie side by side, and row lies behind row. */
struct hw_rows {
	const s64 *cells;
	u32 nr;
};

struct hw_table_error {
	s64 row;			/* from 0; -1: the table as a whole */
	u32 line;			/* of text, from 1; 0: there was no text */
	const struct hw_column *column; /* NULL: the row as a whole */
	const char *what;		/* "must be at least", … */
	bool bounded;
	s64 bound; /* what the sentence ends with, if bounded */
};

struct hw_table {
	const char *name;
	const char *help; /* one line */
	const struct hw_column *columns;
	u32 nr_columns;
	u32 min_rows, max_rows;
	u32 offset; /* of the struct hw_rows in the policy's queue area */
	/*
	 * What lies beyond the columns' limits and order: 0, or hw_table_bad(). Nothing else may
	 * be read than @rows. Optional.
	 */
	int (*check)(const struct hw_table *t, const struct hw_rows *rows,
		     struct hw_table_error *err);
};

/* Those that every policy has come first, then the policy's own. NULL at the end. */
const struct hw_table *hw_table_at(const struct hw_policy *policy, u32 index);
u32 hw_table_count(const struct hw_policy *policy);
const struct hw_table *hw_table_find(const struct hw_policy *policy, const char *name);

/* 0, or with err filled in -EINVAL (22), or -ERANGE (34) where a cell is outside its limits. */
int hw_table_check(const struct hw_table *t, const s64 *cells, u32 nr_rows, u32 nr_columns,
		   struct hw_table_error *err);
/*
 * The rows that @length bytes of text say, into @cells with room for max_rows, and checked: 0, or
 * as above.
 */
int hw_table_parse(const struct hw_table *t, const char *text, size_t length, s64 *cells,
		   u32 *nr_rows, struct hw_table_error *err);
/*
 * Write a table as such text, with a 0 at the end: as much as @room bytes hold. Returns how many
 * the whole text has, without the 0. @brief: without the cells that may be left out.
 */
size_t hw_table_print(const struct hw_table *t, const struct hw_rows *rows, bool brief, char *text,
		      size_t room);
/* The error in a line of text, as far as there is room, with a 0 at the end. */
void hw_table_explain(const struct hw_table *t, const struct hw_table_error *err, char *text,
		      size_t room);

/*
 * From now on the rows at @cells, which have been checked, are in force; they must stay in place.
 * Returns those that were: the host's to free. The host calls tuned() afterwards, under the same
 * lock.
 */
const s64 *hw_table_swap(struct hw_queue *q, const struct hw_table *t, const s64 *cells,
			 u32 nr_rows);
const struct hw_rows *hw_table_rows(const struct hw_queue *q, const struct hw_table *t);

/* For checks: fills in err, and returns -EINVAL. */
int hw_table_bad(struct hw_table_error *err, s64 row, const struct hw_column *column,
		 const char *what);
/* Explain an error, with a number at the end of the sentence. */
int hw_table_beyond(struct hw_table_error *err, s64 row, const struct hw_column *column,
		    const char *what, s64 bound);

#endif
