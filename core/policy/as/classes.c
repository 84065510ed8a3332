// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Classes of tasks: the table that says them, and the class of a history. See classes.h. */
#include "core/lib/sorted.h"
#include "core/policy/as/classes.h"

/* ---- the table ---- */

static const char *const kinds[] = { "history", "spatial", "temporal", "interval",
				     "classes", "prove",   NULL };

const struct hw_column was_columns[3] = {
	{ .name = "what",
	  .unit = "",
	  .help = "kind of row: the number of reads in a history, a step of S or T, the "
		  "interval of classes, their number, or whether intervals have to prove "
		  "themselves",
	  .max = WAS_ROW_KINDS - 1,
	  .left_out = HW_SAME,
	  .choices = kinds },
	{ .name = "from",
	  .unit = "",
	  .help = "start in sectors (spatial) or us (temporal), or first class "
		  "(interval), up to the next row of its kind; else 0",
	  .max = S64_MAX >> 8,
	  .left_out = HW_NEXT },
	{ .name = "value",
	  .unit = "",
	  .help = "reads (2 to 17), points (0 to 100, never rising), us (interval), classes "
		  "(1 to 512), 1 or 0 (prove)",
	  .max = WAS_MAX_WAIT_US },
};

struct kind_limits {
	s64 first, min, max; /* of the first `from`; of every value */
	u32 max_rows;
	bool falls; /* no value is more than the one before */
};

static const struct kind_limits limits[WAS_ROW_KINDS] = {
	[WAS_HISTORY] = { .min = 2, .max = WAS_MAX_HISTORY, .max_rows = 1 },
	[WAS_SPATIAL] = { .max = WAS_MAX_POINTS, .max_rows = WAS_MAX_STEPS, .falls = true },
	[WAS_TEMPORAL] = { .max = WAS_MAX_POINTS, .max_rows = WAS_MAX_STEPS, .falls = true },
	[WAS_INTERVAL] = { .first = 1, .max = WAS_MAX_WAIT_US, .max_rows = WAS_MAX_CLASSES },
	[WAS_CLASSES] = { .min = 1, .max = WAS_MAX_CLASSES, .max_rows = 1 },
	[WAS_PROVE] = { .max = 1, .max_rows = 1 },
};

/* What is said of each kind that there must be. */
static const char *const lacking[] = {
	"lacks a row 'history'", "lacks rows 'spatial'",  "lacks rows 'temporal'",
	"lacks rows 'interval'", "lacks a row 'classes'",
};

struct seen {
	u32 rows;
	s64 row, from, value; /* of the latest */
	s64 first_value;
};

static int check_row(const s64 *cell, s64 row, struct seen *seen, struct hw_table_error *err)
{
	const struct kind_limits *l = &limits[cell[0]];
	struct seen *s = &seen[cell[0]];

	if (s->rows == l->max_rows)
		return hw_table_beyond(err, row, &was_columns[0],
				       "the number of rows of this kind must be at most",
				       l->max_rows);
	if (!s->rows && cell[1] != l->first)
		return hw_table_beyond(err, row, &was_columns[1], "the first of its kind must be",
				       l->first);
	if (s->rows && cell[1] <= s->from)
		return hw_table_beyond(err, row, &was_columns[1],
				       "must be more than in the row of its kind before,", s->from);
	if (cell[2] < l->min)
		return hw_table_beyond(err, row, &was_columns[2], "must be at least", l->min);
	if (cell[2] > l->max)
		return hw_table_beyond(err, row, &was_columns[2], "must be at most", l->max);
	if (s->rows && l->falls && cell[2] > s->value)
		return hw_table_beyond(err, row, &was_columns[2],
				       "must not be more than in the row of its kind before,",
				       s->value);
	if (!s->rows++)
		s->first_value = cell[2];
	s->row = row;
	s->from = cell[1];
	s->value = cell[2];
	return 0;
}

int was_check(const struct hw_table *t, const struct hw_rows *rows, struct hw_table_error *err)
{
	struct seen seen[WAS_ROW_KINDS] = { 0 };
	int ret = 0;
	u32 i;

	for (i = 0; i < rows->nr && !ret; i++)
		ret = check_row(rows->cells + 3ul * i, i, seen, err);
	if (ret || !rows->nr)
		return ret;
	for (i = 0; i < ARRAY_SIZE(lacking); i++)
		if (!seen[i].rows)
			return hw_table_bad(err, -1, NULL, lacking[i]);
	if (seen[WAS_INTERVAL].from > seen[WAS_CLASSES].value)
		return hw_table_beyond(err, seen[WAS_INTERVAL].row, &was_columns[1],
				       "must be at most the number of classes,",
				       seen[WAS_CLASSES].value);
	if (!seen[WAS_SPATIAL].first_value && !seen[WAS_TEMPORAL].first_value)
		return hw_table_bad(err, -1, NULL,
				    "all points are 0: nothing tells classes from each other");
	return 0;
}

static void add_step(struct was_step *steps, u32 *nr, const s64 *cell)
{
	steps[(*nr)++] = (struct was_step){ (u64)cell[1], (u32)cell[2] };
}

void was_read_rows(struct was_classes *c, const struct hw_rows *rows)
{
	u32 i, done = 0, wait_us = 0;

	c->generation++;
	c->n = c->nr_spatial = c->nr_temporal = 0;
	c->prove = false;
	for (i = 0; i < rows->nr; i++) {
		const s64 *cell = rows->cells + 3ul * i;

		switch ((enum was_row)cell[0]) {
		case WAS_HISTORY:
			c->entries = (u32)cell[2] - 1;
			break;
		case WAS_SPATIAL:
			add_step(c->spatial, &c->nr_spatial, cell);
			break;
		case WAS_TEMPORAL:
			add_step(c->temporal, &c->nr_temporal, cell);
			break;
		case WAS_INTERVAL:
			while (done + 1 < (u32)cell[1])
				c->wait_us[done++] = wait_us;
			wait_us = (u32)cell[2];
			break;
		case WAS_PROVE:
			c->prove = cell[2];
			break;
		default:
			c->n = (u32)cell[2];
		}
	}
	while (done < WAS_MAX_CLASSES)
		c->wait_us[done++] = wait_us;
	c->best = c->n ? c->spatial[0].points + c->temporal[0].points : 0;
	c->whole = c->best * ((1u << c->entries) - 1);
}

/* ---- a task's class ---- */

static u32 points_of(const struct was_step *steps, u32 nr, u64 distance)
{
	u32 i = 0;

	while (i + 1 < nr && distance >= steps[i + 1].from)
		i++;
	return steps[i].points;
}

static u32 points(const struct was_classes *c, u64 sectors, u64 us)
{
	return points_of(c->spatial, c->nr_spatial, sectors) +
	       points_of(c->temporal, c->nr_temporal, us);
}

/* The entry that is so much older than the newest. */
static u32 entry(const struct was_history *h, u32 age)
{
	return (h->newest - age) % WAS_ENTRIES;
}

/* Weighted sum of the entries that count. */
static u32 sum_of(const struct was_classes *c, const struct was_history *h)
{
	u32 sum = 0, age, i;

	for (age = 0; age < c->entries; age++) {
		i = entry(h, age);
		sum = 2 * sum + points(c, h->sectors[i], h->us[i]);
	}
	return sum;
}

static u32 class_of(const struct was_classes *c, const struct was_history *h, u32 sum,
		    bool min_history)
{
	u32 whole = c->whole, missing = c->entries - min(c->entries, (u32)h->filled);

	if (min_history && h->filled) {
		u32 presumed = c->best * ((1u << missing) - 1);

		sum -= presumed;
		whole -= presumed;
	}
	return max(1u, (u32)div_u64((u64)c->n * sum + whole - 1, whole));
}

/* The points of all entries, for classes that are new to this history. */
static void take_over(const struct was_classes *c, struct was_history *h)
{
	u32 i;

	for (i = 0; i < WAS_ENTRIES; i++)
		h->points[i] = (u8)points(c, h->sectors[i], h->us[i]);
	h->sum = sum_of(c, h);
	h->generation = c->generation;
}

static void add_entry(const struct was_classes *c, struct was_history *h, u64 sectors, u64 us)
{
	u32 i = entry(h, c->n ? c->entries - 1 : 0), oldest = h->points[i];

	h->newest = (u8)((h->newest + 1) % WAS_ENTRIES);
	h->filled = min_t(u8, h->filled + 1, WAS_ENTRIES);
	h->sectors[h->newest] = sectors;
	h->us[h->newest] = us;
	if (!c->n)
		return;
	h->points[h->newest] = (u8)points(c, sectors, us);
	h->sum = (h->sum - oldest) / 2 + ((u32)h->points[h->newest] << (c->entries - 1));
}

void was_note(const struct was_classes *c, struct was_history *h, bool min_history, u64 sector,
	      u64 now)
{
	u64 sectors = hw_apart(sector, h->last_sector);

	if (c->n && h->generation != c->generation)
		take_over(c, h);
	if (h->begun)
		add_entry(c, h, sectors, div_u64(now - h->last_ns, HW_NSEC_PER_USEC));
	if (c->n)
		h->class = class_of(c, h, h->sum, min_history);
	h->begun = true;
	h->last_sector = sector;
	h->last_ns = now;
}

u32 was_class(const struct was_classes *c, const struct was_history *h, bool min_history)
{
	if (h->class && h->generation == c->generation)
		return h->class;
	return class_of(c, h, sum_of(c, h), min_history);
}
