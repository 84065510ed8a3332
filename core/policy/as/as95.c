// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * as-95: the anticipatory scheduler with a wait of each task's own length.
 *
 * Source: the heuristic that Tsakalozos et al. (JSS 2009) compare WAS with, on the rules of `as`.
 *
 * The wait is as long as would have met 95% of the task's requests so far: the 95th percentile
 * (nearest rank) of the times from the completion of a request to the task's next one, rounded up
 * to a tick. A task whose percentile exceeds `cap` is not waited for. One that has not been seen to
 * think yet is treated as `as` treats it. Seek distance does not count.
 *
 * The decision is that of las.c, but for the interval and for its last steps: the percentile takes
 * the place of the mean think time, and the rule about the mean seek (step 9) is left out.
 *
 * Caveats. Requests that come while others of the task are queued are no think times. The
 * percentiles are exact, from a histogram of one bin a tick, so `cap` must not be longer than the
 * histogram: with a tick_us too short for it, times beyond the histogram count as beyond the cap.
 */
#include "core/policy/as/las.h"

#define AS95_BINS	256 /* ticks; the last bin holds all longer times */
#define AS95_WINDOW_MAX 256

struct as95_task {
	struct as_task as;
	u32 thoughts;		    /* think times so far */
	u32 wait_ticks;		    /* their percentile */
	u32 bin[AS95_BINS];	    /* how many of each length, rounded up to a tick */
	u8 latest[AS95_WINDOW_MAX]; /* the lengths of the latest of them, in a ring */
};

struct as95_queue {
	struct las_queue las;
	s64 window, cap;
};

static const struct hw_tunable as95_tunables[] = {
	LAS_TUNABLES,
	HW_TUNE(struct as95_queue, window, 0, 0, AS95_WINDOW_MAX, "requests",
		"number of a task's latest think times that count; 0 = all"),
	HW_TUNE(struct as95_queue, cap, 20, 1, 1000, "ms",
		"longest wait; no wait for a task that would need more"),
};

static const struct hw_stat as95_stats[] = { LAS_STATS };

static struct as95_queue *as95_queue(const struct as_queue *aq)
{
	return container_of(las_queue(aq), struct as95_queue, las);
}

static struct as95_task *as95_task(const struct as_task *t)
{
	return container_of(t, struct as95_task, as);
}

/* The smallest length that at least 95% of @n think times do not exceed. */
static u32 percentile_95(const u32 *bin, u32 n)
{
	u64 rank = div_u64((u64)n * 95 + 99, 100), seen = 0;
	u32 i;

	for (i = 0; i < AS95_BINS - 1; i++) {
		seen += bin[i];
		if (seen >= rank)
			break;
	}
	return i;
}

static u32 percentile_95_of_latest(const struct as95_task *t, u32 n)
{
	u32 bin[AS95_BINS] = { 0 }, i;

	for (i = 1; i <= n; i++)
		bin[t->latest[(t->thoughts - i) % AS95_WINDOW_MAX]]++;
	return percentile_95(bin, n);
}

static void as95_arrived(struct as_queue *aq, struct as_task *as, const struct hw_request *rq)
{
	struct as95_task *t = as95_task(as);
	u32 window = (u32)as95_queue(aq)->window;
	u64 ticks;

	if (!as->served || as->nr_queued)
		return;
	/*
	 * As the timer counts: from the tick of the completion to the end of the tick of the
	 * arrival.
	 */
	ticks = hw_tick_of(aq->exact_now + as_ticks_ns(aq, 1) - 1, aq->tick_us) -
		hw_tick_of(as->last_end_ns, aq->tick_us);
	ticks = min_t(u64, ticks, AS95_BINS - 1);
	t->latest[t->thoughts % AS95_WINDOW_MAX] = (u8)ticks;
	t->bin[ticks]++;
	t->thoughts++;
	if (window && window < t->thoughts)
		t->wait_ticks = percentile_95_of_latest(t, window);
	else
		t->wait_ticks = percentile_95(t->bin, t->thoughts);
}

/* 0 if the task is not worth a wait. */
static u64 as95_interval(const struct as_queue *aq, const struct as_task *as)
{
	const struct as95_task *t = as95_task(as);
	u64 ticks = max_t(u64, 1, t->wait_ticks);

	if (!t->thoughts)
		return aq->antic_expire_ns;
	if (ticks == AS95_BINS - 1 || ticks > hw_ms_ticks(as95_queue(aq)->cap, aq->tick_us))
		return 0;
	return as_ticks_ns(aq, ticks);
}

static bool as95_doubts_11(const struct as_queue *aq, struct as_task *t,
			   const struct hw_request *rq)
{
	u64 interval = as95_interval(aq, t);

	return as95_task(t)->thoughts ? !interval : las11_doubts_newcomer(aq, interval);
}

static bool as95_doubts_26(const struct as_queue *aq, struct as_task *t,
			   const struct hw_request *rq)
{
	u64 interval = as95_interval(aq, t);

	return as95_task(t)->thoughts ? !interval : las26_doubts_newcomer(aq, interval);
}

static const struct as_rules as95_rules[] = {
	[LAS_11] = {
		.breaks = las11_breaks,
		.doubts = as95_doubts_11,
		.interval = as95_interval,
		.timed_out = las11_timed_out,
		.arrived = as95_arrived,
		.chain_aliases = true,
	},
	[LAS_26] = {
		.breaks = las26_breaks,
		.doubts = as95_doubts_26,
		.interval = as95_interval,
		.timed_out = las26_timed_out,
		.arrived = as95_arrived,
	},
};

static int as95_init(struct hw_queue *q, u64 now)
{
	las_init(las_queue(as_queue(q)), now);
	return 0;
}

static void as95_tuned(struct hw_queue *q)
{
	struct as_queue *aq = as_queue(q);

	aq->rules = &as95_rules[las_queue(aq)->cooperation];
	as_tuned(aq);
}

const struct hw_policy hw_as_95 = {
	.name = "as-95",
	.summary = "anticipatory, with a wait that would have met 95% of the task's requests",
	.source = "Tsakalozos et al., JSS 2009 (95% heuristic)",
	.flags = HW_POLICY_HASH,
	.queue_size = sizeof(struct as95_queue),
	.task_size = sizeof(struct as95_task),
	.request_size = sizeof(struct as_request),
	.tunables = as95_tunables,
	.nr_tunables = ARRAY_SIZE(as95_tunables),
	.stats = as95_stats,
	.nr_stats = ARRAY_SIZE(as95_stats),
	.init = as95_init,
	.tuned = as95_tuned,
	AS_OPERATIONS,
};
