// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * as: Linux 2.6's anticipatory scheduler (LAS).
 *
 * Source: as-iosched of Linux 2.6.11 (cooperation=0, the default: the one that Seelam et al.
 * measured) and of 2.6.18 to 2.6.32 (cooperation=1: the one that WAS builds on).
 *
 * After a sync request (mostly a read) it holds the device idle for up to antic_expire, although
 * other requests are queued: whoever made that request will likely make another one right beside
 * it. It learns of every task how long it thinks and how far it seeks, and of tasks at large how
 * often the first request is the last.
 *
 * Queues, batches and statistics are those of the family (core.c, decide.c). This file is the
 * decision whether to wait, in this order; a "no" ends the wait or prevents it:
 *
 *   2.6.0-2.6.11                                   2.6.12-2.6.32
 *   1. the request is the task's own: no           the same
 *   2. the wait has lasted antic_expire: no        the same
 *   3. the task is dead: no                        -
 *   4. the task has more requests queued: no       the same
 *   5. a sync request close to the head: no        the same in a wider window, or closer than the
 *                                                  task's mean seek; it counts as the task's own
 *   6. -                                           the task is dead, and nobody tends to carry on
 *                                                  for the dead: no
 *   7. the task has only just started, and such    the same, but it counts besides whether somebody
 *      think too long or mostly exit at once: no   tends to carry on
 *   8. it thinks longer than antic_expire: no      the same
 *   9. a request, even a write, is closer than     -
 *      the task's mean seek: no
 *  10. yes                                         yes
 *
 * Caveats. Under the rules of 2.6.11 a chain of short-lived tasks (find -exec cat) is never waited
 * for and starves beside a streaming reader. Both sets of rules may idle with only writes queued.
 */
#include "core/policy/as/las.h"

#define LAS_11_WINDOW 64 /* sectors */
#define LAS_26_WINDOW 8192

s64 las_stat_exit_no_coop(const struct hw_queue *q)
{
	return (s64)las_queue(as_queue(q))->exit_no_coop;
}

/* ---- 2.6.0 to 2.6.11 ---- */

bool las11_doubts_newcomer(const struct as_queue *aq, u64 interval)
{
	return as_ticks_ns(aq, aq->new_ttime_mean) > interval || aq->exit_prob > AS_HALF;
}

bool las11_doubts_for(const struct as_queue *aq, const struct as_task *t,
		      const struct hw_request *rq, u64 interval)
{
	if (!t->think.samples && las11_doubts_newcomer(aq, interval))
		return true;
	if (as_ticks_ns(aq, t->think.mean) > interval)
		return true;
	return rq && as_distance(aq, rq) < as_seek_mean(aq, t);
}

bool las11_doubts(const struct as_queue *aq, struct as_task *t, const struct hw_request *rq)
{
	return las11_doubts_for(aq, t, rq, aq->rules->interval(aq, t));
}

bool las11_breaks(struct as_queue *aq, struct hw_request *rq)
{
	struct as_task *t = aq->waited_for;

	if (rq && as_task(rq) == t)
		return true;
	if (as_waited_out(aq))
		return true;
	if (as_dead(t)) {
		if (!t->think.samples)
			as_more_likely(&aq->exit_prob);
		return true;
	}
	if (t->nr_queued)
		return true;
	if (rq && as_class(rq) == AS_SYNC && as_near_head(aq, rq, LAS_11_WINDOW, 1)) {
		/* Some other task's request came in its stead: it begins to think anew. */
		t->last_end_ns = aq->exact_now;
		return true;
	}
	return aq->rules->doubts(aq, t, rq);
}

void las11_timed_out(struct as_queue *aq)
{
	if (!aq->waited_for->think.samples)
		as_more_likely(&aq->exit_prob);
}

/* ---- 2.6.12 to 2.6.32 ---- */

bool las26_doubts_newcomer(const struct as_queue *aq, u64 interval)
{
	return as_ticks_ns(aq, aq->new_ttime_mean) > interval ||
	       aq->exit_prob * las_queue(aq)->exit_no_coop > AS_HALF * AS_ONE;
}

bool las26_doubts_for(const struct as_queue *aq, const struct as_task *t,
		      const struct hw_request *rq, u64 interval)
{
	if (!t->think.samples)
		return las26_doubts_newcomer(aq, interval);
	return as_ticks_ns(aq, t->think.mean) > interval;
}

bool las26_doubts(const struct as_queue *aq, struct as_task *t, const struct hw_request *rq)
{
	return las26_doubts_for(aq, t, rq, aq->rules->interval(aq, t));
}

static bool las26_close(const struct as_queue *aq, const struct hw_request *rq)
{
	return as_near_head(aq, rq, LAS_26_WINDOW, 0) ||
	       as_distance(aq, rq) < as_seek_mean(aq, aq->waited_for);
}

bool las26_breaks(struct as_queue *aq, struct hw_request *rq)
{
	struct las_queue *lq = las_queue(aq);
	struct as_task *t = aq->waited_for;

	if (rq && as_task(rq) == t)
		return true;
	if (as_waited_out(aq))
		return true;
	if (t->nr_queued)
		return true;
	if (rq && as_class(rq) == AS_SYNC && las26_close(aq, rq)) {
		if (as_dead(t)) {
			if (!t->think.samples)
				as_more_likely(&aq->exit_prob);
			as_less_likely(&lq->exit_no_coop);
		}
		as_learn(aq, t, rq);
		return true;
	}
	if (as_dead(t)) {
		if (!t->think.samples)
			as_more_likely(&aq->exit_prob);
		if (lq->exit_no_coop > AS_HALF)
			return true;
	}
	return aq->rules->doubts(aq, t, rq);
}

void las26_timed_out(struct as_queue *aq)
{
	las11_timed_out(aq);
	if (as_dead(aq->waited_for))
		as_more_likely(&las_queue(aq)->exit_no_coop);
}

/* ---- the policy ---- */

static u64 las_interval(const struct as_queue *aq, const struct as_task *t)
{
	return aq->antic_expire_ns;
}

static const struct as_rules las_rules[] = {
	[LAS_11] = {
		.breaks = las11_breaks,
		.doubts = las11_doubts,
		.interval = las_interval,
		.timed_out = las11_timed_out,
		.chain_aliases = true,
	},
	[LAS_26] = {
		.breaks = las26_breaks,
		.doubts = las26_doubts,
		.interval = las_interval,
		.timed_out = las26_timed_out,
	},
};

static const struct hw_tunable as_tunables[] = { LAS_TUNABLES };
static const struct hw_stat as_stats[] = { LAS_STATS };

void las_init(struct las_queue *lq, u64 now)
{
	as_init(&lq->as, now);
	lq->exit_no_coop = (u64)lq->exit_no_coop_init;
}

static int as_policy_init(struct hw_queue *q, u64 now)
{
	las_init(las_queue(as_queue(q)), now);
	return 0;
}

static void as_policy_tuned(struct hw_queue *q)
{
	struct as_queue *aq = as_queue(q);

	aq->rules = &las_rules[las_queue(aq)->cooperation];
	as_tuned(aq);
}

const struct hw_policy hw_as = {
	.name = "as",
	.summary = "anticipatory: after a read, waits up to 6 ms for the same task's next one",
	.source = "Linux 2.6.0-2.6.32 as-iosched",
	.flags = HW_POLICY_HASH,
	.queue_size = sizeof(struct las_queue),
	.task_size = sizeof(struct as_task),
	.request_size = sizeof(struct as_request),
	.tunables = as_tunables,
	.nr_tunables = ARRAY_SIZE(as_tunables),
	.stats = as_stats,
	.nr_stats = ARRAY_SIZE(as_stats),
	.init = as_policy_init,
	.tuned = as_policy_tuned,
	AS_OPERATIONS,
};
