// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * was-online: workload-dependent anticipation that learns its intervals by itself.
 *
 * Source: ours, on the classes of Tsakalozos et al. (JSS 2009; classes.h) and the rules of `as`.
 *
 * Nothing is calibrated. The classes are built in, and few, so that each soon has seen enough. Of
 * each class it keeps
 *  - how long its tasks think: from the completion of a read to the task's next one, whether it was
 *    waited for or not, in buckets a quarter of an octave wide; a task that exits is one that
 *    thinks for ever;
 *  - what a read costs that follows the task's own, in the device; beside it, for all classes,
 *    what one costs that follows another task's. The difference is what a wait that is met saves.
 *
 * The interval is the one with the largest expected gain. Of n thinks, to wait up to u meets those
 * that are no longer than u; each of them costs its own length and saves a positioning, and all
 * others cost u:
 *
 *	gain(u) = met(u) * saving - sum of those met - (n - met(u)) * u
 *
 * No gain anywhere: the class is not waited for. This is optimal stopping for the distribution that
 * was seen. The paper's heuristic, the least penalty per success, does not ask what a success is
 * worth: it waits for random readers, and where no head moves. To wait for as long as a seek
 * takes, as one rents skis for what they cost, never loses more than half; but here the
 * distribution is known, and it is thrown away.
 *
 * What was seen is halved each time a class has seen `window` thinks, so that it forgets. Intervals
 * are computed anew after every 16 thinks of a class, at a cost of 34 steps. A class that has seen
 * fewer than 8 is treated as `as` treats everyone. Waits are timed to the ns, not in ticks.
 *
 * Caveats. Reads that are issued while others of the task are on their way are no thinks. Savings
 * are told from service times, so they are too small where the device has several requests at
 * once. A task that never comes back, and never exits, teaches nothing by that.
 */
#include "core/policy/as/classes.h"
#include "core/policy/as/las.h"

#define ONLINE_CLASSES 16
#define ONLINE_BUCKETS 33 /* up to 64 us, then quarters of octaves up to 16 ms */
#define ONLINE_PACE    16
#define ONLINE_LEAST   8

struct online_class {
	u16 thinks[ONLINE_BUCKETS + 1]; /* the last: longer ones, and tasks that have exited */
	u32 total, since;		/* all of them; those since the interval was computed */
	u32 interval_us;
	u64 own_ns; /* mean cost of a read after the task's own; 0: none yet */
};

struct online_task {
	struct as_task as;
	struct was_history history;
	u64 issued, done; /* its latest reads that have come, and that have completed, by id */
};

struct online_request {
	struct as_request as;
	u32 class; /* the task's before this read; 0: it does not count */
};

struct online_queue {
	struct las_queue las;
	struct was_classes classes;
	struct online_class class[ONLINE_CLASSES];
	u64 other_ns;	/* mean cost of a read after another task's, or the first */
	u64 done_ns;	/* when the latest request completed */
	u32 last_task;	/* whose read that was */
	bool last_read; /* it was one */
	s64 window;
};

static const struct hw_tunable online_tunables[] = {
	LAS_TUNABLES,
	HW_TUNE(struct online_queue, window, 256, 2 * ONLINE_PACE, 65535, "reads",
		"think times that a class sees before it forgets half of them"),
};

static struct online_queue *online_queue(const struct as_queue *aq)
{
	return container_of(las_queue(aq), struct online_queue, las);
}

static struct online_task *online_task(const struct as_task *t)
{
	return container_of(t, struct online_task, as);
}

static s64 online_stat_longest(const struct hw_queue *q)
{
	const struct online_queue *oq = online_queue(as_queue(q));
	u32 i, longest = 0;

	for (i = 0; i < ONLINE_CLASSES; i++)
		if (oq->class[i].total >= ONLINE_LEAST)
			longest = max(longest, oq->class[i].interval_us);
	return longest;
}

static s64 online_stat_learned(const struct hw_queue *q)
{
	const struct online_queue *oq = online_queue(as_queue(q));
	u32 i, n = 0;

	for (i = 0; i < ONLINE_CLASSES; i++)
		n += oq->class[i].total >= ONLINE_LEAST;
	return n;
}

static s64 online_stat_other(const struct hw_queue *q)
{
	return (s64)online_queue(as_queue(q))->other_ns;
}

static const struct hw_stat online_stats[] = {
	LAS_STATS,
	{ "learned", "classes", "classes that have an interval of their own", online_stat_learned },
	{ "longest_wait", "us", "the longest of these intervals", online_stat_longest },
	{ "other_read", "ns", "mean cost of a read that follows another task's",
	  online_stat_other },
};

/*
 * Steps for today's disks and readahead: within a few requests, on the same tracks, nearby, on the
 * same part of the disk; and in time, from a stream to whoever comes by now and then.
 */
static const s64 online_rows[] = {
	WAS_HISTORY,  0,	5,  WAS_CLASSES,  0,	   ONLINE_CLASSES,
	WAS_SPATIAL,  0,	70, WAS_SPATIAL,  4096,	   50,
	WAS_SPATIAL,  65536,	30, WAS_SPATIAL,  1048576, 10,
	WAS_SPATIAL,  16777216, 0,  WAS_TEMPORAL, 0,	   30,
	WAS_TEMPORAL, 10000,	20, WAS_TEMPORAL, 30000,   10,
	WAS_TEMPORAL, 100000,	0,
};

/* ---- thinks ---- */

static u32 bucket_of(u64 us)
{
	int octave = us > 64 ? fls64(us - 1) - 1 : 0;

	if (us <= 64)
		return 0;
	return (u32)min_t(u64, ONLINE_BUCKETS,
			  1 + 4 * ((u64)octave - 6) + (((us - 1) >> (octave - 2)) & 3));
}

/* The longest think of a bucket, us. */
static u32 bucket_end(u32 bucket)
{
	return bucket ? (16u << (bucket - 1) / 4) * (5 + (bucket - 1) % 4) : 64;
}

static void find_interval(const struct online_queue *oq, struct online_class *c)
{
	s64 saving = div_s64((s64)(oq->other_ns - c->own_ns), HW_NSEC_PER_USEC);
	s64 best = 0, spent = 0, met = 0, from = 0;
	u32 i;

	c->since = 0;
	c->interval_us = 0;
	for (i = 0; i < ONLINE_BUCKETS; i++) {
		s64 end = bucket_end(i), gain;

		met += c->thinks[i];
		spent += c->thinks[i] * (from + end) / 2;
		gain = met * saving - spent - (c->total - met) * end;
		if (gain > best) {
			best = gain;
			c->interval_us = (u32)end;
		}
		from = end;
	}
}

static void forget_half(struct online_class *c)
{
	u32 i;

	c->total = 0;
	for (i = 0; i <= ONLINE_BUCKETS; i++) {
		c->thinks[i] /= 2;
		c->total += c->thinks[i];
	}
}

static void learn_think(struct online_queue *oq, u32 class, u32 bucket)
{
	struct online_class *c = &oq->class[class - 1];

	if (c->total >= (u64)oq->window)
		forget_half(c);
	c->thinks[bucket]++;
	c->total++;
	if (++c->since >= ONLINE_PACE || c->total == ONLINE_LEAST)
		find_interval(oq, c);
}

/* Is its latest read done, and has nothing of it come since? */
static bool thinks(const struct online_task *t)
{
	return t->as.served && !t->as.nr_queued && t->history.begun && t->done == t->issued;
}

static void online_arrived(struct as_queue *aq, struct as_task *as, const struct hw_request *rq)
{
	struct online_queue *oq = online_queue(aq);
	struct online_task *t = online_task(as);
	struct online_request *r = container_of(rq, struct online_request, as.s.rq);
	u64 think = aq->exact_now - as->last_end_ns;

	if (rq->op != HW_READ)
		return;
	r->class = was_class(&oq->classes, &t->history, false);
	if (thinks(t))
		learn_think(oq, r->class, bucket_of(div_u64(think, HW_NSEC_PER_USEC)));
	was_note(&oq->classes, &t->history, false, rq->sector, aq->exact_now);
	t->issued = rq->id;
}

static void online_exit(struct hw_queue *q, struct hw_task *task, u64 now)
{
	struct online_queue *oq = online_queue(as_queue(q));
	struct online_task *t = container_of(task, struct online_task, as.task);

	if (thinks(t))
		learn_think(oq, was_class(&oq->classes, &t->history, false), ONLINE_BUCKETS);
}

/* ---- costs ---- */

static void learn_cost(u64 *mean, u64 cost)
{
	*mean = *mean ? max_t(u64, 1, (7 * *mean + cost) / 8) : max_t(u64, 1, cost);
}

static void online_completed(struct as_queue *aq, const struct hw_request *rq)
{
	struct online_queue *oq = online_queue(aq);
	const struct online_request *r = container_of(rq, struct online_request, as.s.rq);
	u64 cost = aq->exact_now - max(rq->dispatch_ns, oq->done_ns);

	if (r->class && oq->last_read && oq->last_task == rq->task->id)
		learn_cost(&oq->class[r->class - 1].own_ns, cost);
	else if (r->class)
		learn_cost(&oq->other_ns, cost);
	if (r->class)
		online_task(as_task(rq))->done = rq->id;
	oq->done_ns = aq->exact_now;
	oq->last_read = r->class;
	oq->last_task = r->class ? rq->task->id : 0;
}

/* ---- waits ---- */

/* NULL: it has not seen enough. */
static const struct online_class *learned(const struct as_queue *aq, const struct as_task *t)
{
	const struct online_queue *oq = online_queue(aq);
	u32 class = was_class(&oq->classes, &online_task(t)->history, false);
	const struct online_class *c = &oq->class[class - 1];

	return c->total >= ONLINE_LEAST ? c : NULL;
}

static u64 online_interval(const struct as_queue *aq, const struct as_task *t)
{
	const struct online_class *c = learned(aq, t);

	return c ? (u64)c->interval_us * HW_NSEC_PER_USEC : aq->antic_expire_ns;
}

static bool online_doubts_11(const struct as_queue *aq, struct as_task *t,
			     const struct hw_request *rq)
{
	const struct online_class *c = learned(aq, t);

	return c ? !c->interval_us : las11_doubts(aq, t, rq);
}

static bool online_doubts_26(const struct as_queue *aq, struct as_task *t,
			     const struct hw_request *rq)
{
	const struct online_class *c = learned(aq, t);

	return c ? !c->interval_us : las26_doubts(aq, t, rq);
}

static const struct as_rules online_rules[] = {
	[LAS_11] = {
		.breaks = las11_breaks,
		.doubts = online_doubts_11,
		.interval = online_interval,
		.timed_out = las11_timed_out,
		.arrived = online_arrived,
		.completed = online_completed,
		.chain_aliases = true,
	},
	[LAS_26] = {
		.breaks = las26_breaks,
		.doubts = online_doubts_26,
		.interval = online_interval,
		.timed_out = las26_timed_out,
		.arrived = online_arrived,
		.completed = online_completed,
	},
};

static int online_init(struct hw_queue *q, u64 now)
{
	struct online_queue *oq = online_queue(as_queue(q));
	const struct hw_rows rows = { online_rows, ARRAY_SIZE(online_rows) / 3 };

	las_init(&oq->las, now);
	was_read_rows(&oq->classes, &rows);
	return 0;
}

static void online_tuned(struct hw_queue *q)
{
	struct as_queue *aq = as_queue(q);

	aq->rules = &online_rules[las_queue(aq)->cooperation];
	as_tuned(aq);
	as_time_waits(aq, true);
}

const struct hw_policy hw_was_online = {
	.name = "was-online",
	.summary = "anticipatory, with a wait for each class of tasks, learnt while it runs",
	.source = "ours, after Tsakalozos et al., JSS 2009",
	.flags = HW_POLICY_HASH,
	.queue_size = sizeof(struct online_queue),
	.task_size = sizeof(struct online_task),
	.request_size = sizeof(struct online_request),
	.tunables = online_tunables,
	.nr_tunables = ARRAY_SIZE(online_tunables),
	.stats = online_stats,
	.nr_stats = ARRAY_SIZE(online_stats),
	.init = online_init,
	.tuned = online_tuned,
	.task_exit = online_exit,
	AS_OPERATIONS,
};
