// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The priority of a single I/O of a job: cmdprio_percentage and cmdprio_bssplit, as fio 3.33. */
#include "sim/load/internal.h"

u16 sim_job_prio(struct sim_job *j, u32 d, u64 bytes, u16 usual)
{
	const struct hws_prio_split *split = j->opt.prio_splits[d];
	u32 i, percent = 0, roll;

	if (!j->opt.nr_prio_splits[d]) {
		if (j->opt.prio_percent[d] &&
		    sim_roll_below(j, DICE_PRIO, 100) < j->opt.prio_percent[d])
			return j->opt.prio;
		return usual;
	}
	roll = (u32)sim_roll_below(j, DICE_PRIO, 100);
	for (i = 0; i < j->opt.nr_prio_splits[d]; i++) {
		if (split[i].bytes != bytes)
			continue;
		percent += split[i].percent;
		if (roll < percent)
			return split[i].prio;
	}
	return usual;
}
