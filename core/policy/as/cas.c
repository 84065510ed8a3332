// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cas: the cooperative anticipatory scheduler.
 *
 * Source: Seelam, Romero, Teller, Buros: Enhancements to Linux I/O Scheduling, OLS 2005, built on
 * the rules that `as` has with cooperation=0. What the paper leaves open is decided here, and is a
 * tunable where it matters.
 *
 * Under `as` a chain of short-lived tasks, each reading one file and handing over to the next (find
 * -exec cat, make), starves beside a streaming reader: nobody waits for the dead. Here a request
 * near the head is served during a wait whoever made it, whether the awaited task lives or not; and
 * the wait goes on after the death of a task if chains have been seen to be common. For that it
 * learns `coop`, the chance that another task continues where one ended.
 *
 * Queues, batches and statistics are those of the family (core.c, decide.c). This file is the
 * decision whether to wait, in this order; a "no" ends the wait or prevents it:
 *  0. the request is the awaited task's own, or that task has more queued: no
 *  1. the queue has just waited, or an overdue request is to go (decide.c): no
 *  2. the wait has lasted antic_expire: no
 *  3. a read close to the head, or closer than the task's mean seek: no, and coop rises; its maker
 *     is awaited next
 *  4. the task is dead, and new tasks do not mostly exit after their first request: no
 *  5. the task has only just started, such tasks mostly exit, and mostly nobody carries on: no
 *  6. the task thinks for longer than antic_expire: no
 *  7. yes
 *
 * Caveats. With nothing learned yet (exit_prob 0), 4 makes it treat the dead as `as` does: six or
 * so deaths have to be seen before it begins to wait behind them. The paper counts every death of
 * an awaited task for that, and so does this; counting only tasks that made a single request, as
 * `as` does (exit_update=nosample), it would not see chains whose tasks read their files in two
 * requests or more. A write is never close.
 */
#include "core/policy/as/internal.h"

struct cas_queue {
	struct as_queue as;
	u64 coop;
	s64 coop_init, close_delta0, exit_update, serve_breaker;
};

enum { EXIT_NOSAMPLE, EXIT_ALWAYS };
static const char *const exit_update_names[] = { "nosample", "always", NULL };

static const struct hw_tunable cas_tunables[] = {
	AS_TUNABLES,
	HW_TUNE(struct cas_queue, coop_init, AS_ONE, 0, AS_ONE, "1/256",
		"initial probability that another task continues where one ended"),
	HW_TUNE(struct cas_queue, close_delta0, 8192, 0, 1 << 20, "sectors",
		"window after the head in which a read is close; doubles every ms after the first"),
	HW_TUNE_ENUM(
		struct cas_queue, exit_update, EXIT_ALWAYS, exit_update_names,
		"dead tasks that raise the exit probability: those of a single request, or all"),
	HW_TUNE_BOOL(struct cas_queue, serve_breaker, 0,
		     "serve the request that ends a wait, even if another is closer"),
};

static struct cas_queue *cas_queue(const struct as_queue *aq)
{
	return container_of(aq, struct cas_queue, as);
}

static s64 cas_stat_coop(const struct hw_queue *q)
{
	return (s64)cas_queue(as_queue(q))->coop;
}

static const struct hw_stat cas_stats[] = {
	AS_STATS,
	{ "coop", "1/256", "chance that another task continues where one ended", cas_stat_coop },
};

static bool cas_close(const struct as_queue *aq, const struct hw_request *rq)
{
	return as_near_head(aq, rq, (u64)cas_queue(aq)->close_delta0, 1) ||
	       as_distance(aq, rq) < as_seek_mean(aq, aq->waited_for);
}

static bool cas_doubts(const struct as_queue *aq, struct as_task *t, const struct hw_request *rq)
{
	u64 think = t->think.samples ? t->think.mean : aq->new_ttime_mean;

	if (!t->think.samples && aq->exit_prob > AS_HALF && cas_queue(aq)->coop < AS_HALF)
		return true;
	return as_ticks_ns(aq, think) > aq->rules->interval(aq, t);
}

static bool cas_ends_wait(struct as_queue *aq, struct hw_request *rq)
{
	struct cas_queue *cq = cas_queue(aq);
	struct as_task *t = aq->waited_for;

	if ((rq && as_task(rq) == t) || t->nr_queued)
		return true;
	if (as_waited_out(aq))
		return true;
	if (rq && rq->op == HW_READ && cas_close(aq, rq)) {
		as_more_likely(&cq->coop);
		/*
		 * Its own task's history has it since it came. A living task's takes it in as if it
		 * were its own.
		 */
		if (!as_dead(t))
			as_learn(aq, t, rq);
		return true;
	}
	if (as_dead(t)) {
		if (!t->think.samples || cq->exit_update == EXIT_ALWAYS)
			as_more_likely(&aq->exit_prob);
		if (aq->exit_prob < AS_HALF)
			return true;
	}
	return aq->rules->doubts(aq, t, rq);
}

static bool cas_breaks(struct as_queue *aq, struct hw_request *rq)
{
	bool ends = cas_ends_wait(aq, rq);

	if (ends && rq && as_is_candidate(rq) && cas_queue(aq)->serve_breaker)
		aq->next[AS_SYNC] = hw_sorted(rq);
	return ends;
}

static void cas_timed_out(struct as_queue *aq)
{
	if (!aq->waited_for->think.samples)
		as_more_likely(&aq->exit_prob);
	if (as_dead(aq->waited_for))
		as_less_likely(&cas_queue(aq)->coop);
}

static u64 cas_interval(const struct as_queue *aq, const struct as_task *t)
{
	return aq->antic_expire_ns;
}

static const struct as_rules cas_rules = {
	.breaks = cas_breaks,
	.doubts = cas_doubts,
	.interval = cas_interval,
	.timed_out = cas_timed_out,
	.chain_aliases = true,
};

static int cas_init(struct hw_queue *q, u64 now)
{
	struct as_queue *aq = as_queue(q);

	as_init(aq, now);
	aq->rules = &cas_rules;
	cas_queue(aq)->coop = (u64)cas_queue(aq)->coop_init;
	return 0;
}

static void cas_tuned(struct hw_queue *q)
{
	as_tuned(as_queue(q));
}

const struct hw_policy hw_cas = {
	.name = "cas",
	.summary = "cooperative anticipatory: also waits for a task that continues for a dead one",
	.source = "Seelam et al., OLS 2005",
	.flags = HW_POLICY_HASH,
	.queue_size = sizeof(struct cas_queue),
	.task_size = sizeof(struct as_task),
	.request_size = sizeof(struct as_request),
	.tunables = cas_tunables,
	.nr_tunables = ARRAY_SIZE(cas_tunables),
	.stats = cas_stats,
	.nr_stats = ARRAY_SIZE(cas_stats),
	.init = cas_init,
	.tuned = cas_tuned,
	AS_OPERATIONS,
};
