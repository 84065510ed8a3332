// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * queue/iosched/: a file per table of the policy (core/table.h).
 *
 * A write replaces all rows, or, where core refuses them, none: the log then says in one line what
 * is wrong. sysfs takes and gives a page at a time. A table whose text is longer is written, and
 * read, without the cells that may be left out; one that is longer even so is refused.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "iosched/internal.h"

#include <linux/mm.h>
#include <linux/slab.h>

static const struct hw_table *table_of(struct hwk_sched *sched, unsigned int n)
{
	return hw_table_at(sched->policy, n);
}

static ssize_t show_table(struct elevator_queue *eq, char *page, unsigned int n)
{
	struct hwk_sched *sched = eq->elevator_data;
	const struct hw_table *t = table_of(sched, n);
	const struct hw_rows *rows = hw_table_rows(sched->q, t);
	unsigned long flags;
	size_t length;

	flags = hwk_lock(sched);
	length = hw_table_print(t, rows, false, page, PAGE_SIZE);
	if (length >= PAGE_SIZE)
		length = hw_table_print(t, rows, true, page, PAGE_SIZE);
	hwk_unlock(sched, flags);
	return length;
}

/* Says why not; returns the error. */
static int refuse_table(struct elevator_queue *eq, const struct hw_table *t,
			const struct hw_table_error *err, int ret)
{
	char line[160];

	hw_table_explain(t, err, line, sizeof(line));
	pr_notice("%s: %s\n", eq->type->elevator_name, line);
	return ret;
}

static int read_table(struct elevator_queue *eq, const struct hw_table *t, const char *text,
		      size_t count, s64 *cells, u32 *nr_rows)
{
	struct hw_table_error err;
	struct hw_rows rows;
	int ret;

	if (count >= PAGE_SIZE) { /* what is longer arrives in pieces */
		hw_table_bad(&err, -1, NULL, "longer than a page");
		return refuse_table(eq, t, &err, -EINVAL);
	}
	ret = hw_table_parse(t, text, count, cells, nr_rows, &err);
	if (ret)
		return refuse_table(eq, t, &err, ret);
	rows = (struct hw_rows){ cells, *nr_rows };
	if (hw_table_print(t, &rows, true, NULL, 0) < PAGE_SIZE)
		return 0;
	hw_table_bad(&err, -1, NULL, "it could not be read back: longer than a page");
	return refuse_table(eq, t, &err, -EINVAL);
}

static ssize_t store_table(struct elevator_queue *eq, const char *text, size_t count,
			   unsigned int n)
{
	struct hwk_sched *sched = eq->elevator_data;
	const struct hw_table *t = table_of(sched, n);
	s64 *cells =
		kvmalloc_array((size_t)t->max_rows * t->nr_columns, sizeof(*cells), GFP_KERNEL);
	unsigned long flags;
	const s64 *old;
	u32 nr_rows;
	int ret;

	if (!cells)
		return -ENOMEM;
	ret = read_table(eq, t, text, count, cells, &nr_rows);
	if (ret) {
		kvfree(cells);
		return ret;
	}
	flags = hwk_lock(sched);
	old = hw_table_swap(sched->q, t, cells, nr_rows);
	hw_tuned(sched->q);
	hwk_changed(sched, flags);
	kvfree(old);
	return count;
}

void hwk_tables_free(struct hwk_sched *sched)
{
	const struct hw_table *t;
	u32 i;

	for (i = 0; (t = hw_table_at(sched->policy, i)); i++)
		kvfree(hw_table_swap(sched->q, t, NULL, 0));
}

/* ---- the files ---- */

/* elv_fs_entry's functions are not told which file is meant. */
// clang-format off: a table
#define EACH_TABLE(do) do(0) do(1) do(2) do(3)
// clang-format on

#define FUNCTIONS(n)                                                                              \
	static ssize_t show_table_##n(struct elevator_queue *eq, char *page)                      \
	{                                                                                         \
		return show_table(eq, page, n);                                                   \
	}                                                                                         \
	static ssize_t store_table_##n(struct elevator_queue *eq, const char *text, size_t count) \
	{                                                                                         \
		return store_table(eq, text, count, n);                                           \
	}
EACH_TABLE(FUNCTIONS)

#define ENTRY(n) { .show = show_table_##n, .store = store_table_##n },
static const struct elv_fs_entry entries[] = { EACH_TABLE(ENTRY) };

int hwk_table_attributes(const struct hw_policy *policy, struct elv_fs_entry *entry)
{
	const struct hw_table *t;
	u32 i;

	for (i = 0; (t = hw_table_at(policy, i)); i++) {
		if (i == ARRAY_SIZE(entries))
			return -E2BIG;
		entry[i] = entries[i];
		entry[i].attr.name = t->name;
		entry[i].attr.mode = 0644;
		sysfs_attr_init(&entry[i].attr);
	}
	return 0;
}
