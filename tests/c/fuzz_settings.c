// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tunables and tables that change between two calls.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/c/fuzz.h"

/* Back to the default, to one end of the range, or somewhere near the default. */
void fuzz_tune(struct fuzz *f)
{
	const struct hw_tunable *t;
	s64 value;

	if (!f->policy->nr_tunables)
		return;
	t = &f->policy->tunables[fuzz_draw(f, f->policy->nr_tunables)];
	switch (fuzz_draw(f, 5)) {
	case 0:
		value = t->min;
		break;
	case 1:
		value = max_t(s64, t->def, min_t(s64, t->max, 10000));
		break;
	case 2:
		value = t->def + (s64)fuzz_draw(f, 100) - 50;
		break;
	default:
		value = t->def;
	}
	if (hw_tunable_set(f->q, t->name, clamp_t(s64, value, t->min, t->max)))
		fuzz_fail(f, "%s: cannot be set within its range", t->name);
	if (f->policy->tuned)
		hw_tuned(f->q);
	fuzz_check(f);
}

/* Mostly small numbers, the limits now and then, and where it ascends, a little more each row. */
static s64 some_cell(struct fuzz *f, const struct hw_column *c, const s64 *before)
{
	s64 low = before && c->order == HW_ASCENDING ? *before + 1 : c->min;
	s64 span = c->choices ? c->max + 1 : 1ll << fuzz_draw(f, 24);

	if (fuzz_one_in(f, 40))
		return fuzz_one_in(f, 2) ? c->min : c->max;
	return low + (s64)fuzz_draw(f, (u64)span) - (fuzz_one_in(f, 100) ? 1 : 0);
}

/* Rows as the table's columns have them, and some that its check may refuse; or none. */
static u32 some_rows(struct fuzz *f, const struct hw_table *t, s64 *cells)
{
	u32 most = min_t(u32, t->max_rows, 1u << fuzz_draw(f, 8)), n = (u32)fuzz_draw(f, most + 1),
	    i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < t->nr_columns; k++) {
			s64 *cell = &cells[i * t->nr_columns + k];

			*cell = some_cell(f, &t->columns[k], i ? cell - t->nr_columns : NULL);
		}
	return n;
}

/* Tables whose rows depend on each other: random ones would never pass. */
static const struct {
	const char *table, *text;
} samples[] = {
	{ "config", "history 0 5\nclasses 0 20\nspatial 0 70\n9 30\n900 0\ntemporal 0 30\n3000 15\n"
		    "9000 0\ninterval 1 0\n2 1000\n9 6000\n15 12000\n" },
	{ "config", "history 0 17\nclasses 0 512\nspatial 0 1\ntemporal 0 100\n1 0\ninterval 1 9\n"
		    "500 3333\n" },
	{ "config", "history 0 2\nclasses 0 1\nspatial 0 1\ntemporal 0 0\ninterval 1 2500\n" },
};

/* One of the samples for the table with a number or two changed, or nothing. */
static u32 sample_rows(struct fuzz *f, const struct hw_table *t, s64 *cells)
{
	u32 i = (u32)fuzz_draw(f, ARRAY_SIZE(samples)), n, k;
	struct hw_table_error err;

	if (strcmp(samples[i].table, t->name) || fuzz_one_in(f, 5))
		return 0;
	if (hw_table_parse(t, samples[i].text, strlen(samples[i].text), cells, &n, &err))
		fuzz_fail(f, "%s: a sample that is refused: %s", t->name, err.what);
	for (k = (u32)fuzz_draw(f, 3); k; k--) {
		i = (u32)fuzz_draw(f, n * t->nr_columns);
		cells[i] = some_cell(f, &t->columns[i % t->nr_columns], NULL);
	}
	return n;
}

/* A table changes between two calls; the old rows are freed at once. */
void fuzz_give_table(struct fuzz *f)
{
	const struct hw_table *t =
		hw_table_at(f->policy, (u32)fuzz_draw(f, hw_table_count(f->policy)));
	u32 bytes = t->max_rows * t->nr_columns * (u32)sizeof(s64), n;
	s64 *cells = fuzz_memory(bytes);
	struct hw_table_error err;

	n = t->check ? sample_rows(f, t, cells) : some_rows(f, t, cells);
	if (hw_table_check(t, cells, n, t->nr_columns, &err)) {
		free(cells);
		return;
	}
	free((s64 *)hw_table_swap(f->q, t, cells, n));
	f->tables_given++;
	if (f->policy->tuned)
		hw_tuned(f->q);
	fuzz_check(f);
}
