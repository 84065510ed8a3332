// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables that policies are given: what there are, their text, and those of a queue. */
#include <errno.h>
#include <stdlib.h>

#include "sim/headwaiter.h"
#include "sim/tables.h"

static const struct hw_table *find(const char *policy, const char *table)
{
	const struct hw_policy *p = hw_policy_find(policy);

	return p && table ? hw_table_find(p, table) : NULL;
}

int hws_table_at(const char *policy, uint32_t index, struct hws_table *out)
{
	const struct hw_policy *p = hw_policy_find(policy);
	const struct hw_table *t = p ? hw_table_at(p, index) : NULL;

	if (!policy || !out)
		return -EINVAL;
	if (!t)
		return -ENOENT;
	*out = (struct hws_table){
		.name = t->name,
		.help = t->help,
		.nr_columns = t->nr_columns,
		.min_rows = t->min_rows,
		.max_rows = t->max_rows,
		.common = t < p->tables || t >= p->tables + p->nr_tables,
	};
	return 0;
}

int hws_column_at(const char *policy, const char *table, uint32_t index, struct hws_column *out)
{
	const struct hw_table *t = find(policy, table);
	const struct hw_column *c;

	if (!policy || !table || !out)
		return -EINVAL;
	if (!t || index >= t->nr_columns)
		return -ENOENT;
	c = &t->columns[index];
	*out = (struct hws_column){ .name = c->name,
				    .unit = c->unit,
				    .help = c->help,
				    .min = c->min,
				    .max = c->max,
				    .order = c->order,
				    .left_out = c->left_out,
				    .choices = c->choices };
	return 0;
}

static void explain(const struct hw_table *t, const struct hw_table_error *err,
		    struct hws_table_error *out)
{
	*out = (struct hws_table_error){ .row = err->row,
					 .line = err->line,
					 .column = err->column ? err->column->name : NULL,
					 .what = err->what,
					 .bounded = err->bounded,
					 .bound = err->bound };
	hw_table_explain(t, err, out->text, sizeof(out->text));
}

int hws_table_check(const char *policy, const char *table, const int64_t *cells, uint32_t rows,
		    uint32_t columns, struct hws_table_error *err)
{
	const struct hw_table *t = find(policy, table);
	struct hw_table_error found;
	int ret;

	if (!policy || !table || !err || (!cells && rows))
		return -EINVAL;
	if (!t)
		return -ENOENT;
	ret = hw_table_check(t, cells, rows, columns, &found);
	if (ret)
		explain(t, &found, err);
	return ret;
}

int hws_table_parse(const char *policy, const char *table, const char *text, size_t bytes,
		    int64_t *cells, uint32_t *rows, struct hws_table_error *err)
{
	const struct hw_table *t = find(policy, table);
	struct hw_table_error found;
	int ret;

	if (!policy || !table || !err || !cells || !rows || (!text && bytes))
		return -EINVAL;
	if (!t)
		return -ENOENT;
	ret = hw_table_parse(t, text, bytes, cells, rows, &found);
	if (ret)
		explain(t, &found, err);
	return ret;
}

int64_t hws_table_print(const char *policy, const char *table, const int64_t *cells, uint32_t rows,
			int brief, char *text, size_t room)
{
	const struct hw_table *t = find(policy, table);
	const struct hw_rows what = { cells, rows };

	if (!policy || !table || (!cells && rows) || (!text && room))
		return -EINVAL;
	return t ? (int64_t)hw_table_print(t, &what, brief, text, room) : -ENOENT;
}

/* ---- of a queue ---- */

static int set_copy(struct hw_queue *q, const struct hw_table *t, const s64 *cells, u32 rows)
{
	size_t bytes = (size_t)rows * t->nr_columns * sizeof(*cells);
	s64 *copy = malloc(bytes + 1); /* of no rows, too, there is a copy */

	if (!copy)
		return -ENOMEM;
	memcpy(copy, cells, bytes);
	free((s64 *)hw_table_swap(q, t, copy, rows));
	return 0;
}

int sim_table_set(struct hw_queue *q, const char *table, const s64 *cells, u32 rows, u32 columns,
		  struct hw_table_error *err)
{
	const struct hw_table *t = hw_table_find(q->policy, table);
	int ret = t ? hw_table_check(t, cells, rows, columns, err) : -ENOENT;

	return ret ? ret : set_copy(q, t, cells, rows);
}

int sim_describe_drive(struct hw_queue *q, const struct hw_drive *drive)
{
	const struct hw_table *t = hw_table_find(q->policy, "positions");
	struct hw_rows given = *hw_table_rows(q, t), own;
	s64 cells[HW_POSITION_POINTS][2];

	hw_drive_describe(drive, &q->dev, cells);
	own = q->dev.positions;
	q->dev.positions = given;
	return given.cells ? 0 : set_copy(q, t, own.cells, own.nr);
}

void sim_acquaint(struct hw_queue *q, const struct hw_drive *drive)
{
	s64 cells[HW_POSITION_POINTS][2];
	struct hw_device dev = { 0 };

	if (q->dev.positions.nr)
		return;
	hw_drive_describe(drive, &dev, cells);
	if (dev.positions.nr)
		hw_acquaint(q, &dev.positions);
}

void sim_tables_free(struct hw_queue *q)
{
	const struct hw_table *t;
	u32 i;

	for (i = 0; (t = hw_table_at(q->policy, i)); i++)
		free((s64 *)hw_table_swap(q, t, NULL, 0));
}
