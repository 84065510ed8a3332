/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one-way elevator with short seeks backwards that the anticipatory scheduler and CFQ share. */
#ifndef HW_LIB_CHOOSE_H
#define HW_LIB_CHOOSE_H

#include "core/lib/sorted.h"

struct hw_reach {
	u64 back_max;	  /* sectors that the head may go back */
	u64 back_penalty; /* a sector backwards costs as much as so many forwards */
};

/*
 * What @sector costs from @head; HW_NEVER if it lies too far back, and the elevator must come round
 * to it.
 */
static inline u64 hw_reach_cost(const struct hw_reach *reach, u64 head, u64 sector)
{
	if (sector >= head)
		return sector - head;
	if (sector + reach->back_max >= head)
		return (head - sector) * reach->back_penalty;
	return HW_NEVER;
}

/*
 * Which of two requests does a head at @head take first? Either may be NULL. At equal cost the
 * higher sector wins; if both must wait for the elevator to come round, the lower.
 */
static inline struct hw_request *hw_choose(const struct hw_reach *reach, u64 head,
					   struct hw_request *a, struct hw_request *b)
{
	u64 cost_a, cost_b;

	if (!a)
		return b;
	if (!b)
		return a;
	cost_a = hw_reach_cost(reach, head, a->sector);
	cost_b = hw_reach_cost(reach, head, b->sector);
	if (cost_a != cost_b)
		return cost_a < cost_b ? a : b;
	if (cost_a == HW_NEVER)
		return a->sector <= b->sector ? a : b;
	return a->sector >= b->sector ? a : b;
}

static inline struct hw_sorted_request *hw_choose_sorted(const struct hw_reach *reach, u64 head,
							 struct hw_sorted_request *a,
							 struct hw_sorted_request *b)
{
	struct hw_request *best = hw_choose(reach, head, hw_sorted_rq(a), hw_sorted_rq(b));

	return best ? hw_sorted(best) : NULL;
}

/*
 * @s is about to leave @t: which of its neighbours comes next? The one after the highest is the
 * lowest.
 */
static inline struct hw_sorted_request *hw_choose_after(const struct hw_reach *reach, u64 head,
							const struct hw_sorted *t,
							struct hw_sorted_request *s)
{
	struct hw_sorted_request *above = hw_sorted_next(s), *below = hw_sorted_prev(s);

	if (!above && below)
		above = hw_sorted_first(t);
	return hw_choose_sorted(reach, head, above, below);
}

#endif
