/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Linux's anticipatory scheduler, for policies that differ from it in how long they wait. The story
 * is in las.c.
 */
#ifndef HW_POLICY_AS_LAS_H
#define HW_POLICY_AS_LAS_H

#include "core/policy/as/internal.h"

enum las_cooperation {
	LAS_11, /* 2.6.0-2.6.11 */
	LAS_26, /* 2.6.12-2.6.32 */
};

struct las_queue {
	struct as_queue as;
	u64 exit_no_coop; /* chance that no task continues for a dead one; LAS_26 only */
	s64 cooperation, exit_no_coop_init;
};

#define LAS_TUNABLES                                                                               \
	AS_TUNABLES,                                                                               \
		HW_TUNE_BOOL(struct las_queue, cooperation, LAS_11,                                \
			     "use the rules of 2.6.12-2.6.32, which recognise cooperating tasks"), \
		HW_TUNE(struct las_queue, exit_no_coop_init, 0, 0, AS_ONE, "1/256",                \
			"initial probability that no task continues for a dead one")

s64 las_stat_exit_no_coop(const struct hw_queue *q);

#define LAS_STATS                                                                        \
	AS_STATS,                                                                        \
	{                                                                                \
		"exit_no_coop", "1/256", "chance that no task continues for a dead one", \
			las_stat_exit_no_coop                                            \
	}

static inline struct las_queue *las_queue(const struct as_queue *aq)
{
	return container_of(aq, struct las_queue, as);
}

void las_init(struct las_queue *lq, u64 now);
bool las11_breaks(struct as_queue *aq, struct hw_request *rq);
bool las26_breaks(struct as_queue *aq, struct hw_request *rq);
void las11_timed_out(struct as_queue *aq);
void las26_timed_out(struct as_queue *aq);
bool las11_doubts(const struct as_queue *aq, struct as_task *t, const struct hw_request *rq);
bool las26_doubts(const struct as_queue *aq, struct as_task *t, const struct hw_request *rq);
/* Would they if the wait could last @interval? */
bool las11_doubts_for(const struct as_queue *aq, const struct as_task *t,
		      const struct hw_request *rq, u64 interval);
bool las26_doubts_for(const struct as_queue *aq, const struct as_task *t,
		      const struct hw_request *rq, u64 interval);
/* Is a task without a think time of its own not worth waiting for @interval? */
bool las11_doubts_newcomer(const struct as_queue *aq, u64 interval);
bool las26_doubts_newcomer(const struct as_queue *aq, u64 interval);

#endif
