/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the schedulers of the anticipatory family share: two classes of requests (sync, async) each
 * in a sorted queue and a queue by age, batches of one class, think-time and seek statistics of
 * every task, and the wait after a sync request. When to wait, for whom and for how long is each
 * policy's own: struct as_rules.
 *
 * Times are in ns, rounded down to the beginning of the tick in which they fall. So spans are whole
 * ticks, as they are in the source, and tick_us may change at any moment.
 */
#ifndef HW_POLICY_AS_INTERNAL_H
#define HW_POLICY_AS_INTERNAL_H

#include "core/lib/choose.h"
#include "core/lib/decay.h"
#include "core/lib/sorted.h"
#include "core/lib/ticks.h"
#include "core/policy/policies.h"

enum { AS_ASYNC, AS_SYNC };

enum as_status {
	AS_OFF,
	AS_WAIT_REQ,  /* will wait when the task's request has completed: no timer yet */
	AS_WAIT_NEXT, /* waits for the task's next request */
	AS_FINISHED,  /* has waited: the next dispatch must not begin to wait again */
};

/* Learned probabilities are in 1/256. */
#define AS_ONE	256
#define AS_HALF 128

struct as_task {
	struct hw_task task;
	bool started;	       /* has queued a sync request */
	bool served;	       /* has had a sync request completed */
	bool placed;	       /* last_pos is known */
	u32 nr_queued;	       /* its requests that the device has not taken yet */
	u64 last_end_ns;       /* when its latest sync request completed; not rounded */
	u64 last_pos;	       /* where its latest one to count for its seeks, as queued, ended */
	struct hw_decay think; /* ticks from a completion to the next request */
	struct hw_decay seek;  /* sectors */
};

struct as_request {
	struct hw_sorted_request s;
	struct list_head aliases; /* same first sector: go out right after this one */
	u8 class;		  /* when it came: sync_writes may change later */
};

struct as_queue;

struct as_rules {
	/*
	 * The break test: shall the queue stop waiting for aq->waited_for, or not begin to? @rq is
	 * the request that has just come or would go out next; NULL if no sync request is queued.
	 * It learns as it is asked.
	 */
	bool (*breaks)(struct as_queue *aq, struct hw_request *rq);
	/* The last part of that test: does the history of the task speak against waiting for it? */
	bool (*doubts)(const struct as_queue *aq, struct as_task *t, const struct hw_request *rq);
	/* The longest wait for this task, ns; in whole ticks but with exact_waits. */
	u64 (*interval)(const struct as_queue *aq, const struct as_task *t);
	/* A wait has run its full time in vain. */
	void (*timed_out)(struct as_queue *aq);
	/*
	 * A wait for aq->waited_for has ended, as_waited() after its beginning.
	 * Optional.
	 */
	void (*ended)(struct as_queue *aq, enum hw_wait_outcome outcome);
	/* A request has completed and is in the statistics. Optional. */
	void (*completed)(struct as_queue *aq, const struct hw_request *rq);
	/* A sync request of @t has come and is not in its statistics yet. Optional. */
	void (*arrived)(struct as_queue *aq, struct as_task *t, const struct hw_request *rq);
	/*
	 * Requests with one and the same first sector: chain the later to the first, or dispatch
	 * the first at once?
	 */
	bool chain_aliases;
};

struct as_queue {
	struct hw_queue q;
	const struct as_rules *rules;
	u64 exact_now, now; /* of this call; the same rounded down to a tick */

	struct hw_sorted sort[2];
	struct list_head fifo[2];
	struct hw_sorted_request *next[2]; /* likely the best request to go out next */
	u64 last[2];		/* where the last dispatched request of the class ended */
	u64 last_check[2];	/* when the age of the class was last looked at */
	struct list_head ready; /* decided: the device takes these first, in this order */

	int dir;	/* class of the running batch */
	bool changed;	/* the class has; the old batch is in the device yet */
	bool new_batch; /* of sync requests; none of it has completed yet */
	u64 batch_expires;
	s64 wcount;  /* how many writes a batch may hold: learned */
	s64 wleft;   /* how many this one may still hold */
	bool widled; /* it lacked writes or competition: not to be timed */

	enum as_status status;
	struct as_task *waited_for; /* made the last dispatched request; NULL if async */
	bool waited_for_done;	    /* that request has completed, at antic_start */
	u64 antic_start;
	bool exact_waits; /* the clock of waits does not tick: they end in time, not with a tick */

	u64 exit_prob;			     /* chance that a task makes no second sync request */
	u64 new_ttime_total, new_ttime_mean; /* first think times of tasks, ticks */
	u64 new_seek_total, new_seek_mean;   /* first seeks of tasks, sectors */

	/* From the tunables, in whole ticks. */
	u64 expire[2], batch_expire[2], antic_expire_ns;
	s64 read_expire, write_expire, read_batch_expire, write_batch_expire, antic_expire;
	s64 wait_nonrot, wb_start_bug, sync_writes, exit_prob_init, learn_meta, tick_us;
};

// clang-format off: a table
#define AS_TUNABLES                                                                            \
	HW_TUNE(struct as_queue, read_expire, 125, 0, HW_INT_MAX, "ms",                        \
		"age that makes a sync request overdue, and interval between two overdue ones"), \
	HW_TUNE(struct as_queue, write_expire, 250, 0, HW_INT_MAX, "ms",                       \
		"the same for async requests"),                                                \
	HW_TUNE(struct as_queue, read_batch_expire, 500, 0, HW_INT_MAX, "ms",                  \
		"length of a batch of sync requests while async ones are queued"),             \
	HW_TUNE(struct as_queue, write_batch_expire, 125, 0, HW_INT_MAX, "ms",                 \
		"target length of batches of async requests"),                       \
	HW_TUNE(struct as_queue, antic_expire, 6, 0, HW_INT_MAX, "ms",                         \
		"longest wait for a task's next sync request; 0 = never wait"),                \
	HW_TUNE_WAIT_NONROT(struct as_queue),                                                  \
	HW_TUNE_BOOL(struct as_queue, wb_start_bug, 0,                                         \
		     "as before 2.6.32: a batch that waits for its turn keeps the old end time"), \
	HW_TUNE_BOOL(struct as_queue, sync_writes, 1,                                          \
		     "as since December 2004: a write that a task waits for is synchronous"),  \
	HW_TUNE(struct as_queue, exit_prob_init, 0, 0, AS_ONE, "1/256",                        \
		"initial exit probability"),                                             \
	HW_TUNE_BOOL(struct as_queue, learn_meta, 0,                                           \
		     "as in Linux 2.6: a task's reads of file system metadata count as its seeks"), \
	HW_TUNE_TICK(struct as_queue, 1000)
// clang-format on

s64 as_stat_exit_prob(const struct hw_queue *q);
s64 as_stat_new_ttime_mean(const struct hw_queue *q);
s64 as_stat_new_seek_mean(const struct hw_queue *q);
s64 as_stat_wcount(const struct hw_queue *q);

#define AS_STATS                                                                                   \
	{ "exit_prob", "1/256", "chance that a task makes no second request", as_stat_exit_prob }, \
		{ "new_ttime_mean", "ticks", "mean first think time of tasks",                     \
		  as_stat_new_ttime_mean },                                                        \
		{ "new_seek_mean", "sectors", "mean first seek of tasks", as_stat_new_seek_mean }, \
	{                                                                                          \
		"wcount", "requests", "current maximum of requests in an async batch",             \
			as_stat_wcount                                                             \
	}

/* Called by the policy's own init() and tuned(), which choose the rules. */
void as_init(struct as_queue *aq, u64 now);
void as_tuned(struct as_queue *aq);

void as_insert(struct hw_queue *q, struct hw_request *rq, u64 now);
struct hw_request *as_dispatch(struct hw_queue *q, u64 now);
void as_complete(struct hw_queue *q, struct hw_request *rq, u64 now);
void as_requeue(struct hw_queue *q, struct hw_request *rq, u64 now);
void as_idle(struct hw_queue *q);
bool as_has_work(const struct hw_queue *q);
struct hw_request *as_find_merge(struct hw_queue *q, const struct hw_bio *bio, enum hw_merge *how);
void as_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now);
void as_merged_requests(struct hw_queue *q, struct hw_request *keep, struct hw_request *gone);

#define AS_OPERATIONS                                                                            \
	.insert = as_insert, .dispatch = as_dispatch, .complete = as_complete,                   \
	.requeue = as_requeue, .idle = as_idle, .has_work = as_has_work,                         \
	.find_merge = as_find_merge, .merged = as_merged, .merged_requests = as_merged_requests, \
	.former = hw_sorted_former, .latter = hw_sorted_latter

/* For rules. */

static inline struct as_queue *as_queue(const struct hw_queue *q)
{
	return container_of(q, struct as_queue, q);
}

static inline struct as_task *as_task(const struct hw_request *rq)
{
	return rq->task ? container_of(rq->task, struct as_task, task) : NULL;
}

/* What the class of a request that comes now is. */
static inline int as_class_now(const struct as_queue *aq, u8 op, u8 flags)
{
	return op == HW_READ || (flags & HW_RQ_SYNC && aq->sync_writes) ? AS_SYNC : AS_ASYNC;
}

/* The class of a request that has been inserted. */
static inline int as_class(const struct hw_request *rq)
{
	return container_of(rq, const struct as_request, s.rq)->class;
}

/* Can it be next[AS_SYNC]? Not if it is chained to another with the same first sector. */
static inline bool as_is_candidate(struct hw_request *rq)
{
	return as_class(rq) == AS_SYNC && !RB_EMPTY_NODE(&hw_sorted(rq)->node);
}

static inline bool as_dead(const struct as_task *t)
{
	return t->task.exited;
}

static inline void as_more_likely(u64 *prob)
{
	*prob = hw_decay_step(*prob, 1);
}
static inline void as_less_likely(u64 *prob)
{
	*prob = hw_decay_step(*prob, 0);
}

/* @ticks as ns. */
static inline u64 as_ticks_ns(const struct as_queue *aq, u64 ticks)
{
	return hw_tick_ns(ticks, aq->tick_us);
}

/* @ns rounded down to the beginning of a tick. */
static inline u64 as_tick_floor(const struct as_queue *aq, u64 ns)
{
	return as_ticks_ns(aq, hw_tick_of(ns, aq->tick_us));
}

static inline bool as_waiting(const struct as_queue *aq)
{
	return aq->status == AS_WAIT_REQ || aq->status == AS_WAIT_NEXT;
}

/* Since the request of the task that is waited for has completed. */
static inline u64 as_waited(const struct as_queue *aq)
{
	return (aq->exact_waits ? aq->exact_now : aq->now) - aq->antic_start;
}

/* decide.c */
void as_end_wait(struct as_queue *aq, enum hw_wait_outcome outcome);

static __always_inline void as_stop_waiting(struct as_queue *aq, enum hw_wait_outcome outcome,
					    enum as_status status)
{
	if (aq->q.wait.active)
		as_end_wait(aq, outcome);
	aq->status = status;
}

/* A batch of reads is timed only while writes compete with it. */
static __always_inline void as_restart_clock(struct as_queue *aq)
{
	aq->batch_expires = aq->now + aq->batch_expire[AS_SYNC];
}

/* decide.c */

/* From now on waits are exact, or no longer; one may be on. */
void as_time_waits(struct as_queue *aq, bool exact);
/* The timer begins to run for the task that is waited for. */
void as_wait_next(struct as_queue *aq);
/* The general case of a decision: the end of a wait, and what then. NULL: nothing goes out now. */
struct hw_sorted_request *as_weigh(struct as_queue *aq);
/* The first read after a batch of writes has completed: let the next batch be nearer to plan. */
void as_adapt_write_batch(struct as_queue *aq);
/* Has the wait, begun or not, lasted as long as it may? */
bool as_waited_out(const struct as_queue *aq);
/*
 * Does @rq lie within @window sectors after the head, or half as many before it? The window doubles
 * with every ms of waiting after the first @grace_ms; beyond 20 ms, or once the wait is over,
 * everything is near.
 */
bool as_near_head(const struct as_queue *aq, const struct hw_request *rq, u64 window, u64 grace_ms);

/* core.c */

/* How far the head has to go for @rq. */
u64 as_distance(const struct as_queue *aq, const struct hw_request *rq);
/* The mean seek of @t, or that of new tasks if it has made none. */
u64 as_seek_mean(const struct as_queue *aq, const struct as_task *t);
/* Take the sync request @rq into the think-time and seek statistics of @t. */
void as_learn(struct as_queue *aq, struct as_task *t, const struct hw_request *rq);

#endif
