// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What policies, tunables, statistics and presets there are: core's tables, seen through the public
 * interface.
 */
#include <errno.h>

#include "sim/internal.h"

/* The public interface numbers things as core does; where the two meet, no number is translated. */
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a " is not " #b)
SAME(HWS_READ, HW_READ);
SAME(HWS_WRITE, HW_WRITE);
SAME(HWS_DISCARD, HW_DISCARD);
SAME(HWS_OTHER, HW_OTHER);
SAME(HWS_SYNC, HW_RQ_SYNC);
SAME(HWS_META, HW_RQ_META);
SAME(HWS_PRIO, HW_RQ_PRIO);
SAME(HWS_AT_HEAD, HW_RQ_AT_HEAD);
SAME(HWS_NOMERGE, HW_RQ_NOMERGE);
SAME(HWS_IOPRIO_NONE, HW_IOPRIO_NONE);
SAME(HWS_IOPRIO_RT, HW_IOPRIO_RT);
SAME(HWS_IOPRIO_BE, HW_IOPRIO_BE);
SAME(HWS_IOPRIO_IDLE, HW_IOPRIO_IDLE);
SAME(1 << HWS_IOPRIO_SHIFT, HW_IOPRIO(1, 0));
SAME(HWS_INTEGER, HW_INT);
SAME(HWS_FLAG, HW_BOOL);
SAME(HWS_CHOICE, HW_ENUM);
SAME(HWS_PARAM_NUMBER, HW_PARAM_NUMBER);
SAME(HWS_PARAM_FLAG, HW_PARAM_BOOL);
SAME(HWS_PARAM_CHOICE, HW_PARAM_ENUM);
SAME(HWS_PARAM_LIST, HW_PARAM_LIST);
SAME(HWS_PARAM_DRIVES, HW_PARAM_DRIVES);
#undef SAME

int hws_policy_at(uint32_t index, struct hws_policy *out)
{
	const struct hw_policy *const *p = hw_policies;

	while (*p && index--)
		p++;
	if (!out)
		return -EINVAL;
	if (!*p)
		return -ENOENT;
	*out = (struct hws_policy){ .name = (*p)->name,
				    .summary = (*p)->summary,
				    .source = (*p)->source,
				    .nr_tunables = (*p)->nr_tunables,
				    .nr_stats = (*p)->nr_stats,
				    .nr_tables = hw_table_count(*p),
				    .model = !!((*p)->flags & HW_POLICY_MODEL),
				    .unthrottled = !!((*p)->flags & HW_POLICY_UNTHROTTLED),
				    .groups = !!(*p)->group_size };
	return 0;
}

int hws_tunable_at(const char *policy, uint32_t index, struct hws_tunable *out)
{
	const struct hw_policy *p = hw_policy_find(policy);
	const struct hw_tunable *t;

	if (!policy || !out)
		return -EINVAL;
	if (!p || index >= p->nr_tunables)
		return -ENOENT;
	t = &p->tunables[index];
	*out = (struct hws_tunable){ .name = t->name,
				     .type = t->type,
				     .def = t->def,
				     .min = t->min,
				     .max = t->max,
				     .unit = t->unit,
				     .help = t->help,
				     .choices = t->choices };
	return 0;
}

int hws_stat_at(const char *policy, uint32_t index, struct hws_stat *out)
{
	const struct hw_policy *p = hw_policy_find(policy);

	if (!policy || !out)
		return -EINVAL;
	if (!p || index >= p->nr_stats)
		return -ENOENT;
	*out = (struct hws_stat){ .name = p->stats[index].name,
				  .unit = p->stats[index].unit,
				  .help = p->stats[index].help };
	return 0;
}

int hws_preset_at(const char *policy, uint32_t index, struct hws_preset *out)
{
	const struct hw_policy *p = hw_policy_find(policy);

	if (!policy || !out)
		return -EINVAL;
	if (!p || index >= p->nr_presets)
		return -ENOENT;
	*out = (struct hws_preset){ .name = p->presets[index].name,
				    .help = p->presets[index].help,
				    .settings = p->presets[index].settings };
	return 0;
}

int hws_stat_value(const struct hws *s, const char *stat, int64_t *value)
{
	return s && stat && value ? hw_stat_get(s->q, stat, value) : -EINVAL;
}

#define ROW(reason, name, help) { name, help },
const struct hws_reason sim_reasons[] = { HW_REASONS(ROW) };
#undef ROW

int hws_reason_at(uint32_t index, struct hws_reason *out)
{
	if (!out)
		return -EINVAL;
	if (index >= ARRAY_SIZE(sim_reasons))
		return -ENOENT;
	*out = sim_reasons[index];
	return 0;
}

int hws_counters_at(const char *policy, struct hws_counters *out)
{
	const struct hw_policy *p = hw_policy_find(policy);
	const struct hw_counters *c = p ? p->counters : NULL;

	if (!policy || !out)
		return -EINVAL;
	if (!c)
		return -ENOENT;
	*out = (struct hws_counters){ .name = c->name,
				      .from = c->from,
				      .help = c->help,
				      .rows = c->rows,
				      .columns = c->columns };
	return 0;
}

int hws_counters(const struct hws *s, uint32_t *cells)
{
	const struct hw_counters *c = s ? s->policy->counters : NULL;

	if (!s || !cells)
		return -EINVAL;
	if (!c)
		return -ENOENT;
	memcpy(cells, hw_counters_row(s->q, 0), sizeof(*cells) * c->rows * c->columns);
	return 0;
}
