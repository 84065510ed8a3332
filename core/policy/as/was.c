// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * was: workload-dependent anticipation.
 *
 * Source: Tsakalozos, Stoumpos, Saidis, Delis: Adaptive disk scheduling with workload-dependent
 * anticipation intervals, JSS 2009. It is built on the rules that `as` has with cooperation=1;
 * those of cooperation=0 are there, too.
 *
 * How long a wait is worth its time depends on who is waited for. Here tasks belong to classes
 * (classes.h), by how near to each other their latest reads were in place and in time, and each
 * class has an interval of its own, which takes the place of antic_expire, also in the rule about
 * the mean think time. Whether to wait, and for whom, is left to `as`. Steps, classes and intervals
 * are the table `config`, which `headwaiter was fit` learns from what a machine does. Without one
 * this is `as`, to the last event.
 *
 * The paper's kernel counted in ticks of 1 ms. So do waits here, as long as every interval of the
 * config is a whole number of ticks. Where one is not, waits are timed to the ns.
 *
 * Where the config says `prove`, an interval is in force only while it is worth more than
 * antic_expire (proof.h); else as long as the config is.
 *
 * With `observe` it counts what became of its waits, class by class: how many were met in each
 * bucket of time since the completion, and how many failed. Waits that something else ended count
 * nowhere.
 *
 * Caveats. A class is looked up as its task stands when it is waited for: a single far read costs a
 * task its class for as many reads as a history has. Requests that were merged into others are no
 * reads of a history. A task thinks in ticks, and for its first reads `as` takes it to think up to
 * 4 ticks longer than it does: with intervals below 5 ms these tests may fail where antic_expire
 * passes. A config that is replaced gives each task its new class by what it did before.
 */
#include "core/policy/as/classes.h"
#include "core/policy/as/las.h"
#include "core/policy/as/proof.h"

#define WAS_BUCKETS 64

struct was_task {
	struct as_task as;
	struct was_history history;
	u32 class; /* as the wait for it has it: before the read that has just come */
	struct was_question question;
};

struct was_queue {
	struct las_queue las;
	struct hw_rows config;
	struct was_classes classes;
	s64 min_history, observe, bucket_us;
	bool observing;
	const s64 *observed_config; /* whose classes are counted; just a mark, not read */
	/* Waits by class: the buckets, and the failed ones last. */
	u32 observed[WAS_MAX_CLASSES][WAS_BUCKETS + 1];
	u64 usual_us;		  /* antic_expire */
	const s64 *proven_config; /* whose intervals the proof is about; just a mark, not read */
	struct was_proof proof;
};

static const struct hw_tunable was_tunables[] = {
	LAS_TUNABLES,
	HW_TUNE_BOOL(
		struct was_queue, min_history, 0,
		"a new task's class depends only on the reads it has made; 0: as if it had made more, "
		"all at one place and at once"),
	HW_TUNE_BOOL(
		struct was_queue, observe, 0,
		"count the results of waits by class of the config; from zero with each config"),
	HW_TUNE(struct was_queue, bucket_us, 1000, 1, 1000000, "us",
		"width of the time buckets of observe"),
};

static const struct hw_table was_tables[] = {
	{
		.name = "config",
		.help = "classes of tasks, and the wait for each; no rows: behave as `as`",
		.columns = was_columns,
		.nr_columns = ARRAY_SIZE(was_columns),
		.max_rows = 2 + 2 * WAS_MAX_STEPS + WAS_MAX_CLASSES,
		.offset = offsetof(struct was_queue, config),
		.check = was_check,
	},
};

static const struct hw_counters was_counters = {
	.name = "observed",
	.from = "observed_from",
	.help = "waits by class, from 1: successful ones by time bucket, failed ones in the last column",
	.rows = WAS_MAX_CLASSES,
	.columns = WAS_BUCKETS + 1,
	.offset = offsetof(struct was_queue, observed),
};

static struct was_queue *was_queue(const struct as_queue *aq)
{
	return container_of(las_queue(aq), struct was_queue, las);
}

static struct was_task *was_task(const struct as_task *t)
{
	return container_of(t, struct was_task, as);
}

/* Where it has to prove itself: does it? */
static bool in_force(const struct was_queue *wq, u32 class)
{
	return !wq->classes.prove ||
	       was_holds(&wq->proof, class, wq->usual_us, wq->classes.wait_us[class - 1]);
}

static s64 was_stat_classes(const struct hw_queue *q)
{
	return was_queue(as_queue(q))->classes.n;
}

static s64 was_stat_own(const struct hw_queue *q)
{
	const struct was_queue *wq = was_queue(as_queue(q));
	s64 own = 0;
	u32 c;

	for (c = 1; c <= wq->classes.n; c++)
		own += wq->classes.wait_us[c - 1] != wq->usual_us && in_force(wq, c);
	return own;
}

static const struct hw_stat was_stats[] = {
	LAS_STATS,
	{ "classes", "", "number of classes of the config in force; 0: no config",
	  was_stat_classes },
	{ "own", "", "number of classes whose interval is in force and is not antic_expire",
	  was_stat_own },
};

static u32 class_now(const struct was_queue *wq, const struct as_task *t)
{
	return was_class(&wq->classes, &was_task(t)->history, wq->min_history);
}

static u64 was_interval(const struct as_queue *aq, const struct as_task *t)
{
	const struct was_queue *wq = was_queue(aq);
	u32 class = wq->classes.n ? class_now(wq, t) : 0;

	if (!class || !in_force(wq, class))
		return aq->antic_expire_ns;
	return (u64)wq->classes.wait_us[class - 1] * HW_NSEC_PER_USEC;
}

static bool never(const struct as_queue *aq, const struct as_task *t)
{
	return was_queue(aq)->classes.n && !was_interval(aq, t);
}

/* ---- what an interval is worth ---- */

static bool doubts_for(const struct as_queue *aq, const struct as_task *t,
		       const struct hw_request *rq, u64 interval)
{
	if (las_queue(aq)->cooperation == LAS_26)
		return las26_doubts_for(aq, t, rq, interval);
	return las11_doubts_for(aq, t, rq, interval);
}

/* Nothing but the task's think time decides any more whether to wait for it. */
static void ask(const struct as_queue *aq, struct as_task *as, const struct hw_request *rq)
{
	struct was_queue *wq = was_queue(aq);
	struct was_question *q = &was_task(as)->question;
	u32 own_us;

	if (!wq->classes.prove || q->class)
		return;
	q->class = class_now(wq, as);
	own_us = wq->classes.wait_us[q->class - 1];
	q->usual_declines = doubts_for(aq, as, rq, aq->antic_expire_ns);
	q->own_declines = !own_us || doubts_for(aq, as, rq, (u64)own_us * HW_NSEC_PER_USEC);
	q->failed = false;
}

static void weigh(struct was_queue *wq, const struct was_question *q, u64 think_us, int n)
{
	was_weigh(&wq->proof, q, wq->usual_us, wq->classes.wait_us[q->class - 1], think_us, n);
}

/* The task's next read has come: it thought for so long. */
static void answer(struct was_queue *wq, struct was_task *t, u64 now)
{
	struct was_question *q = &t->question;
	/* With its last read on the way it did not think at all. */
	bool thought = t->as.last_end_ns >= t->history.last_ns;

	if (q->class && t->history.generation == wq->classes.generation) {
		if (q->failed)
			weigh(wq, q, WAS_NEVER_US, -1);
		weigh(wq, q, thought ? div_u64(now - t->as.last_end_ns, HW_NSEC_PER_USEC) : 0, 1);
	}
	q->class = 0;
}

/* A wait has ended: in vain, so far, or for a reason that says nothing about the task. */
static void learn_outcome(struct was_queue *wq, struct was_task *t, enum hw_wait_outcome outcome)
{
	struct was_question *q = &t->question;

	if (outcome == HW_WAIT_OTHER || t->history.generation != wq->classes.generation)
		q->class = 0;
	if (outcome != HW_WAIT_FAIL || !q->class)
		return;
	weigh(wq, q, WAS_NEVER_US, 1);
	q->failed = true;
}

/* ---- the rules ---- */

static bool was_doubts_11(const struct as_queue *aq, struct as_task *t, const struct hw_request *rq)
{
	ask(aq, t, rq);
	return never(aq, t) || las11_doubts(aq, t, rq);
}

static bool was_doubts_26(const struct as_queue *aq, struct as_task *t, const struct hw_request *rq)
{
	ask(aq, t, rq);
	return never(aq, t) || las26_doubts(aq, t, rq);
}

static void was_arrived(struct as_queue *aq, struct as_task *as, const struct hw_request *rq)
{
	struct was_queue *wq = was_queue(aq);
	struct was_task *t = was_task(as);

	if (wq->observing)
		t->class = class_now(wq, as);
	if (rq->op != HW_READ)
		return;
	answer(wq, t, aq->exact_now);
	was_note(&wq->classes, &t->history, wq->min_history, rq->sector, aq->exact_now);
}

static void was_ended(struct as_queue *aq, enum hw_wait_outcome outcome)
{
	struct was_queue *wq = was_queue(aq);
	const struct as_task *t = aq->waited_for;
	u64 bucket;

	if (wq->classes.prove)
		learn_outcome(wq, was_task(t), outcome);
	if (!wq->observing || outcome == HW_WAIT_OTHER)
		return;
	if (outcome == HW_WAIT_FAIL) {
		wq->observed[class_now(wq, t) - 1][WAS_BUCKETS]++;
		return;
	}
	bucket = div64_u64(max_t(u64, as_waited(aq), 1) - 1, (u64)wq->bucket_us * HW_NSEC_PER_USEC);
	wq->observed[was_task(t)->class - 1][min_t(u64, bucket, WAS_BUCKETS - 1)]++;
}

static const struct as_rules was_rules[] = {
	[LAS_11] = {
		.breaks = las11_breaks,
		.doubts = was_doubts_11,
		.interval = was_interval,
		.timed_out = las11_timed_out,
		.arrived = was_arrived,
		.ended = was_ended,
		.chain_aliases = true,
	},
	[LAS_26] = {
		.breaks = las26_breaks,
		.doubts = was_doubts_26,
		.interval = was_interval,
		.timed_out = las26_timed_out,
		.arrived = was_arrived,
		.ended = was_ended,
	},
};

static int was_init(struct hw_queue *q, u64 now)
{
	las_init(las_queue(as_queue(q)), now);
	return 0;
}

/* Is an interval of the config no whole number of ticks? */
static bool finer_than_ticks(const struct was_queue *wq, s64 tick_us)
{
	u32 i, rest;

	for (i = 0; i < wq->classes.n; i++) {
		div_u64_rem(wq->classes.wait_us[i], (u32)tick_us, &rest);
		if (rest)
			return true;
	}
	return false;
}

/* Once observe is set and there are classes; and anew with other classes. */
static bool begin_to_observe(struct was_queue *wq)
{
	if (!wq->observe || !wq->classes.n)
		return false;
	memset(wq->observed, 0, sizeof(wq->observed));
	wq->observed_config = wq->config.cells;
	return true;
}

static void was_tuned(struct hw_queue *q)
{
	struct as_queue *aq = as_queue(q);
	struct was_queue *wq = was_queue(aq);

	aq->rules = &was_rules[wq->las.cooperation];
	as_tuned(aq);
	was_read_rows(&wq->classes, &wq->config);
	as_time_waits(aq, finer_than_ticks(wq, aq->tick_us));
	wq->usual_us = div_u64(aq->antic_expire_ns, HW_NSEC_PER_USEC);
	if (wq->proven_config != wq->config.cells)
		memset(&wq->proof, 0, sizeof(wq->proof));
	wq->proven_config = wq->config.cells;
	if (wq->observing && wq->observe && wq->observed_config == wq->config.cells)
		return;
	wq->observing = begin_to_observe(wq);
}

const struct hw_policy hw_was = {
	.name = "was",
	.summary = "anticipatory, with a wait for each class of tasks, learnt from a recording",
	.source = "Tsakalozos et al., JSS 2009",
	.flags = HW_POLICY_HASH,
	.queue_size = sizeof(struct was_queue),
	.task_size = sizeof(struct was_task),
	.request_size = sizeof(struct as_request),
	.tunables = was_tunables,
	.nr_tunables = ARRAY_SIZE(was_tunables),
	.tables = was_tables,
	.nr_tables = ARRAY_SIZE(was_tables),
	.stats = was_stats,
	.nr_stats = ARRAY_SIZE(was_stats),
	.counters = &was_counters,
	.init = was_init,
	.tuned = was_tuned,
	AS_OPERATIONS,
};
