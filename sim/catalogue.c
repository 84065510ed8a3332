// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What policies, tunables and statistics there are: core's tables, seen through the public
 * interface.
 */
#include <errno.h>

#include "sim/internal.h"

int hws_policy_at(uint32_t index, struct hws_policy *out)
{
	const struct hw_policy *const *p = hw_policies;

	while (*p && index--)
		p++;
	if (!*p)
		return -ENOENT;
	*out = (struct hws_policy){ .name = (*p)->name,
				    .summary = (*p)->summary,
				    .source = (*p)->source,
				    .nr_tunables = (*p)->nr_tunables,
				    .nr_stats = (*p)->nr_stats,
				    .model = !!((*p)->flags & HW_POLICY_MODEL) };
	return 0;
}

int hws_tunable_at(const char *policy, uint32_t index, struct hws_tunable *out)
{
	const struct hw_policy *p = hw_policy_find(policy);
	const struct hw_tunable *t;

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

	if (!p || index >= p->nr_stats)
		return -ENOENT;
	*out = (struct hws_stat){ .name = p->stats[index].name,
				  .unit = p->stats[index].unit,
				  .help = p->stats[index].help };
	return 0;
}

int hws_stat_value(const struct hws *s, const char *stat, int64_t *value)
{
	u32 i;

	for (i = 0; i < s->policy->nr_stats; i++)
		if (!strcmp(s->policy->stats[i].name, stat)) {
			*value = s->policy->stats[i].get(s->q);
			return 0;
		}
	return -ENOENT;
}
