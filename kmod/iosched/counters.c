// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * queue/iosched/: two files for the counters of a policy that keeps some (struct hw_counters).
 *
 * In the first there is a line per row that has counted something: the row, from 1, then
 * COLUMN:COUNT, columns from 0, where the count is not 0. A page may not hold all of them. Then the
 * last line is "next ROW"; ROW written to the second file makes the next read begin there. A reader
 * begins by writing 1.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "iosched/internal.h"

#include <linux/string.h>

#define CELL_LENGTH 22 /* of " COLUMN:COUNT" with 32 bits each */
#define NEXT_LENGTH 17 /* of "next ROW\n" */

/* A row as text: its length, 0 if it is all 0, or -ENOSPC. */
static int show_row(struct hwk_sched *sched, u32 row, char *text, size_t room)
{
	u32 columns = sched->policy->counters->columns, i;
	const u32 *cell = hw_counters_row(sched->q, row);
	int length = 0;

	for (i = 0; i < columns; i++) {
		u32 count = READ_ONCE(cell[i]);

		if (!count)
			continue;
		if (!length)
			length = scnprintf(text, room, "%u", row + 1);
		if (length + CELL_LENGTH >= room)
			return -ENOSPC;
		length += scnprintf(text + length, room - length, " %u:%u", i, count);
	}
	if (length)
		length += scnprintf(text + length, room - length, "\n");
	return length;
}

static ssize_t show_counters(struct elevator_queue *eq, char *page)
{
	struct hwk_sched *sched = eq->elevator_data;
	u32 row = sched->counters_from;
	ssize_t length = 0;

	for (; row < sched->policy->counters->rows; row++) {
		int ret = show_row(sched, row, page + length, PAGE_SIZE - NEXT_LENGTH - length);

		if (ret < 0)
			return length +
			       scnprintf(page + length, PAGE_SIZE - length, "next %u\n", row + 1);
		length += ret;
	}
	return length;
}

static ssize_t show_from(struct elevator_queue *eq, char *page)
{
	struct hwk_sched *sched = eq->elevator_data;

	return sysfs_emit(page, "%u\n", sched->counters_from + 1);
}

static ssize_t store_from(struct elevator_queue *eq, const char *text, size_t count)
{
	struct hwk_sched *sched = eq->elevator_data;
	u32 rows = sched->policy->counters->rows, row;
	int ret;

	ret = kstrtou32(text, 10, &row);
	if (!ret && (!row || row > rows))
		ret = -ERANGE;
	if (ret) {
		pr_notice("%s: %s: not a row from 1 to %u: %.*s\n", eq->type->elevator_name,
			  sched->policy->counters->from, rows, (int)strcspn(text, "\n"), text);
		return ret;
	}
	sched->counters_from = row - 1;
	return count;
}

void hwk_counters_attributes(const struct hw_policy *policy, struct elv_fs_entry *entry)
{
	entry[0] = (struct elv_fs_entry)__ATTR(counters, 0444, show_counters, NULL);
	entry[0].attr.name = policy->counters->name;
	entry[1] = (struct elv_fs_entry)__ATTR(from, 0644, show_from, store_from);
	entry[1].attr.name = policy->counters->from;
	sysfs_attr_init(&entry[0].attr);
	sysfs_attr_init(&entry[1].attr);
}
