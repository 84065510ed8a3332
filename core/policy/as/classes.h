/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Classes of tasks by how promising it is to wait for them.
 *
 * Source: Tsakalozos et al., JSS 2009: equations (1) and (2).
 *
 * A task's history is the distances of its latest reads, each from the one before it: in sectors,
 * and in time of issue. Two step functions, S and T, say how many points a distance is worth, and
 * never more for a longer one. An entry's points S + T weigh half as much as those of the entry
 * after it. The weighted sum, as a share of what it would be if every read repeated the one before
 * it at once, is the class: 1 to N, rounded up, and N is the most promising.
 *
 * Decided where the paper leaves it open: a sum of 0 is class 1. Distances are between first
 * sectors. A history begins with zeros, so that a new task is of class N; with min_history only the
 * entries that there are count (and a task without any is of class N).
 *
 * Whole numbers throughout. The cost of a read depends on the number of steps alone: the sum is
 * kept, and not added up anew.
 */
#ifndef HW_POLICY_AS_CLASSES_H
#define HW_POLICY_AS_CLASSES_H

#include "core/elevator.h"

#define WAS_MAX_CLASSES 512
#define WAS_MAX_STEPS	64
#define WAS_MAX_HISTORY 17 /* reads; one entry less */
#define WAS_ENTRIES	16
#define WAS_MAX_POINTS	100
#define WAS_MAX_WAIT_US 100000

/* The first cell of a row of the table `config`. */
enum was_row {
	WAS_HISTORY,
	WAS_SPATIAL,
	WAS_TEMPORAL,
	WAS_INTERVAL,
	WAS_CLASSES,
	WAS_PROVE,
	WAS_ROW_KINDS
};

/* From `from` on, up to the next step, a distance is worth `points`. */
struct was_step {
	u64 from;
	u32 points;
};

/* What the rows of a table say. */
struct was_classes {
	u32 n;		/* classes; 0: there are none, nothing is classified */
	u32 entries;	/* of a history */
	u32 generation; /* another one each time */
	u32 best;	/* points of a distance of 0 */
	u32 whole;	/* the largest weighted sum */
	u32 nr_spatial, nr_temporal;
	struct was_step spatial[WAS_MAX_STEPS], temporal[WAS_MAX_STEPS];
	u32 wait_us[WAS_MAX_CLASSES]; /* of class 1, 2, … */
	bool prove;		      /* they have to be worth it, here and now (proof.h) */
};

struct was_history {
	bool begun; /* there was a read: last_sector and last_ns hold */
	u8 newest;  /* index of its entry */
	u8 filled;  /* entries that are distances between reads */
	u8 points[WAS_ENTRIES];
	u32 generation; /* of the classes that points and sum are for */
	u32 sum;	/* weighted; the oldest entry that counts weighs 1 */
	u32 class;	/* 0: not classified yet */
	u64 last_sector, last_ns;
	u64 sectors[WAS_ENTRIES], us[WAS_ENTRIES];
};

extern const struct hw_column was_columns[3];
int was_check(const struct hw_table *t, const struct hw_rows *rows, struct hw_table_error *err);

/* Rows that have passed was_check(); no rows: no classes. */
void was_read_rows(struct was_classes *c, const struct hw_rows *rows);
/* The task has issued a read. */
void was_note(const struct was_classes *c, struct was_history *h, bool min_history, u64 sector,
	      u64 now);
/* The task's class, 1 … n. There must be classes. */
u32 was_class(const struct was_classes *c, const struct was_history *h, bool min_history);

#endif
