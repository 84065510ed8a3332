// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * queue/iosched/: a file per tunable of the policy's table, per table (tables.c), and two of the
 * glue's own:
 *
 *  - device_depth: how many requests the device is given at once (default: what the driver takes).
 *  - statistics: read-only, a line per figure: A, A_S, A_F (waits that were met or failed; met;
 *    failed), T_ns, T_S_ns, T_F_ns (time spent in them), T_F_per_A_S_ns (once there is one that was
 *    met), A_other and T_other_ns (those that something else ended), and the policy's own.
 *
 * elv_fs_entry's functions are not told which file is meant, so each row of a table has functions
 * of its own.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "iosched/internal.h"

#include <linux/slab.h>
#include <linux/string.h>

#define ROWS 32 /* tunables that a policy may have */

static const char *name_of(const struct elevator_queue *eq)
{
	return eq->type->elevator_name;
}

static const struct hw_tunable *tunable_of(struct elevator_queue *eq, unsigned int row)
{
	struct hwk_sched *sched = eq->elevator_data;

	return &sched->policy->tunables[row];
}

static ssize_t show_choices(const struct hw_tunable *t, s64 value, char *page)
{
	ssize_t len = 0;
	s64 i;

	for (i = 0; t->choices[i]; i++)
		len += sysfs_emit_at(page, len, i == value ? "%s[%s]" : "%s%s", i ? " " : "",
				     t->choices[i]);
	return len + sysfs_emit_at(page, len, "\n");
}

static ssize_t show_tunable(struct elevator_queue *eq, char *page, unsigned int row)
{
	struct hwk_sched *sched = eq->elevator_data;
	const struct hw_tunable *t = tunable_of(eq, row);
	s64 value = hw_tunable_get(sched->q, t);

	if (t->type == HW_ENUM)
		return show_choices(t, value, page);
	return sysfs_emit(page, "%lld\n", value);
}

static int parse(const struct hw_tunable *t, const char *text, s64 *value)
{
	int i;

	for (i = 0; t->type == HW_ENUM && t->choices[i]; i++) {
		if (sysfs_streq(text, t->choices[i])) {
			*value = i;
			return 0;
		}
	}
	return kstrtos64(text, 0, value);
}

/* Say why; returns the error. */
static int refuse(struct elevator_queue *eq, const struct hw_tunable *t, const char *text, int err)
{
	int len = strcspn(text, "\n");

	if (err == -ERANGE)
		pr_notice("%s: %s=%.*s is outside %lld..%lld %s\n", name_of(eq), t->name, len, text,
			  t->min, t->max, t->unit);
	else
		pr_notice("%s: %s: invalid value: %.*s\n", name_of(eq), t->name, len, text);
	return err;
}

static ssize_t store_tunable(struct elevator_queue *eq, const char *text, size_t count,
			     unsigned int row)
{
	struct hwk_sched *sched = eq->elevator_data;
	const struct hw_tunable *t = tunable_of(eq, row);
	unsigned long flags;
	s64 value;
	int ret;

	ret = parse(t, text, &value);
	if (ret)
		return refuse(eq, t, text, ret);
	flags = hwk_lock(sched);
	ret = hw_tunable_set(sched->q, t->name, value);
	if (ret) {
		hwk_unlock(sched, flags);
		return refuse(eq, t, text, ret);
	}
	hw_tuned(sched->q);
	hwk_changed(sched, flags);
	return count;
}

// clang-format off: a table
#define EACH_ROW(do) \
	do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11) do(12) do(13) do(14) do(15) \
	do(16) do(17) do(18) do(19) do(20) do(21) do(22) do(23) do(24) do(25) do(26) do(27) do(28) do(29) do(30) do(31)
// clang-format on

#define FUNCTIONS(n)                                                                        \
	static ssize_t show_##n(struct elevator_queue *eq, char *page)                      \
	{                                                                                   \
		return show_tunable(eq, page, n);                                           \
	}                                                                                   \
	static ssize_t store_##n(struct elevator_queue *eq, const char *text, size_t count) \
	{                                                                                   \
		return store_tunable(eq, text, count, n);                                   \
	}
EACH_ROW(FUNCTIONS)

#define ENTRY(n) { .show = show_##n, .store = store_##n },
static const struct elv_fs_entry entries[ROWS] = { EACH_ROW(ENTRY) };

static ssize_t show_depth(struct elevator_queue *eq, char *page)
{
	struct hwk_sched *sched = eq->elevator_data;

	return sysfs_emit(page, "%u\n", sched->depth);
}

static ssize_t store_depth(struct elevator_queue *eq, const char *text, size_t count)
{
	struct hwk_sched *sched = eq->elevator_data;
	unsigned long flags;
	u32 depth;
	int ret;

	ret = kstrtou32(text, 0, &depth);
	if (!ret && !depth)
		ret = -ERANGE;
	if (ret) {
		pr_notice("%s: device_depth: not a number from 1 to 2^32 - 1: %.*s\n", name_of(eq),
			  (int)strcspn(text, "\n"), text);
		return ret;
	}
	flags = hwk_lock(sched);
	WRITE_ONCE(sched->depth, depth);
	sched->q->dev.depth = depth;
	hwk_changed(sched, flags);
	return count;
}

static ssize_t show_statistics(struct elevator_queue *eq, char *page)
{
	struct hwk_sched *sched = eq->elevator_data;
	const struct hw_policy *policy = sched->policy;
	unsigned long flags;
	u64 met, failed, other, met_ns, failed_ns;
	struct hw_wait wait;
	ssize_t len = 0;
	u32 i;

	flags = hwk_lock(sched);
	wait = sched->q->wait;
	hwk_unlock(sched, flags);
	met = wait.count[HW_WAIT_SUCCESS];
	failed = wait.count[HW_WAIT_FAIL];
	other = wait.count[HW_WAIT_OTHER];
	met_ns = wait.total_ns[HW_WAIT_SUCCESS];
	failed_ns = wait.total_ns[HW_WAIT_FAIL];
	len += sysfs_emit_at(page, len, "A %llu\nA_S %llu\nA_F %llu\nA_other %llu\n", met + failed,
			     met, failed, other);
	len += sysfs_emit_at(page, len, "T_ns %llu\nT_S_ns %llu\nT_F_ns %llu\nT_other_ns %llu\n",
			     met_ns + failed_ns, met_ns, failed_ns, wait.total_ns[HW_WAIT_OTHER]);
	if (met)
		len += sysfs_emit_at(page, len, "T_F_per_A_S_ns %llu\n", div64_u64(failed_ns, met));
	for (i = 0; i < policy->nr_stats; i++) {
		s64 value;

		flags = hwk_lock(sched);
		value = policy->stats[i].get(sched->q);
		hwk_unlock(sched, flags);
		len += sysfs_emit_at(page, len, "%s %lld %s\n", policy->stats[i].name, value,
				     policy->stats[i].unit);
	}
	return len;
}

int hwk_attributes_create(struct hwk_type *t)
{
	const struct hw_policy *policy = t->policy;
	struct elv_fs_entry *entry;
	u32 tables = hw_table_count(policy), i;
	int ret;

	if (policy->nr_tunables > ROWS)
		return -E2BIG;
	t->attributes =
		kcalloc(policy->nr_tunables + tables + 5, sizeof(*t->attributes), GFP_KERNEL);
	if (!t->attributes)
		return -ENOMEM;
	for (i = 0; i < policy->nr_tunables; i++) {
		t->attributes[i] = entries[i];
		t->attributes[i].attr.name = policy->tunables[i].name;
		t->attributes[i].attr.mode = 0644;
		/* lockdep wants a key for what is not static */
		sysfs_attr_init(&t->attributes[i].attr);
	}
	ret = hwk_table_attributes(policy, &t->attributes[i]);
	if (ret) {
		kfree(t->attributes);
		return ret;
	}
	entry = &t->attributes[i + tables];
	entry[0] = (struct elv_fs_entry)__ATTR(device_depth, 0644, show_depth, store_depth);
	entry[1] = (struct elv_fs_entry)__ATTR(statistics, 0444, show_statistics, NULL);
	sysfs_attr_init(&entry[0].attr);
	sysfs_attr_init(&entry[1].attr);
	if (policy->counters)
		hwk_counters_attributes(policy, &entry[2]);
	return 0;
}

void hwk_attributes_free(struct hwk_type *t)
{
	kfree(t->attributes);
}
