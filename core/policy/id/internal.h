/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The framework of Iyer & Druschel, "Anticipatory scheduling" (SOSP 2001), as the slides and
 * abstracts describe it: what as-seek and as-share have in common. See core.c.
 */
#ifndef HW_POLICY_ID_INTERNAL_H
#define HW_POLICY_ID_INTERNAL_H

#include "core/lib/sorted.h"
#include "core/policy/policies.h"

#define ID_MAX_BUCKETS 240u
#define ID_ONE	       1000000u /* one sample in a decayed frequency table, and the fraction 1 */

struct id_device;

/* A process: its requests, its habits, its account. */
struct id_task {
	struct hw_task task;
	struct hw_sorted sort; /* as-share: its queued requests */
	u32 queued, in_flight;
	bool busy; /* it has requests */

	/* Think times: a decayed table, the last element for times beyond it. */
	u32 think[ID_MAX_BUCKETS + 1];
	bool thought;	 /* there is at least one sample */
	u32 outstanding; /* synchronous requests */
	bool completed;	 /* a synchronous request has */
	u64 completed_ns;

	/* Places. */
	bool placed;	    /* last_end is valid */
	u64 last_end;	    /* of its last synchronous request */
	bool positioned;    /* there is a sample of positioning time */
	u64 positioning_ns; /* expected, if the head stays where it left it */
	u32 backward;	    /* decayed fraction of moves back, of ID_ONE */

	/* as-share. */
	bool served;		 /* served_end is valid */
	u64 served_end;		 /* end of its last dispatched request */
	u64 clock;		 /* service received over tickets, ns */
	struct rb_node by_clock; /* in id_device.clocks while it is busy */
	u64 turn;		 /* who became busy first goes first at equal clocks */
	u32 tickets;		 /* as counted when it became busy */
};

struct id_request {
	struct hw_sorted_request s; /* `expires` is the time of insertion */
	struct id_task *owner;
	bool has_positioning;
	u64 positioning_ns;
	u64 detour_ns;	    /* positioning for which others are to blame */
	u64 place;	    /* as-share: its sector, next to the node that is sorted by it */
	struct rb_node any; /* as-share: in id_device.all */
};

/* What makes a policy of the framework. */
struct id_rules {
	struct hw_sorted *(*tree)(struct id_device *d, struct id_task *t);
	enum hw_reason because; /* what its choice of a candidate goes by */
	/* Into that tree and out of it, with what the policy keeps beside. */
	void (*add)(struct id_device *d, struct id_task *t, struct hw_sorted_request *s);
	void (*del)(struct id_device *d, struct id_task *t, struct hw_sorted_request *s);
	/* @s has become older, by joining with another. Optional. */
	void (*aged)(struct hw_sorted_request *s);
	/* t->busy has changed. Optional. */
	void (*busy)(struct id_device *d, struct id_task *t);
	/* Whom a work-conserving policy would serve now. Something is queued. */
	struct hw_sorted_request *(*candidate)(struct id_device *d, u64 now);
	/*
	 * Is it better to wait for d->last than to serve @c? Asked only when d->last may be waited
	 * for at all.
	 */
	bool (*worth_waiting)(struct id_device *d, struct hw_sorted_request *c, u64 now);
};

struct id_device {
	struct hw_queue q;
	const struct id_rules *rules;
	struct hw_sorted sort;	/* as-seek: all requests of all processes */
	struct list_head fifo;	/* all requests in order of insertion */
	struct list_head first; /* at the host's wish, or returned */
	struct id_task nobody;	/* requests without a task */
	u64 head;		/* end of the last dispatched request */

	struct id_task *last; /* whose completed last; NULL: asynchronous */
	u64 done_ns;	      /* when the last request completed */
	u64 deadline_ns;      /* of the current wait */

	/* as-share. */
	struct rb_root clocks;	       /* busy processes by clock */
	struct rb_root all;	       /* requests of all processes by place */
	u64 turns, processes, tickets; /* so far; busy, and what they hold together */
	u64 minclock;
	u64 service_ns, service_sectors; /* sums for the average */

	s64 anticipate, wait_nonrot, pct_wait, pct_cost, bucket, buckets, decay, pos_alpha,
		max_wait, timer_resolution, in_device;
	s64 order, W, back_frac;	  /* as-seek */
	s64 think_threshold, tau, charge; /* as-share */
};

/* The tunables of both. */
// clang-format off: a table
#define ID_TUNABLES                                                                               \
	HW_TUNE_BOOL(struct id_device, anticipate, 1,                                             \
		     "wait for the process that was served last"),                                \
	HW_TUNE_WAIT_NONROT(struct id_device),                                                    \
	HW_TUNE(struct id_device, pct_wait, 95, 1, 100, "percentile",                             \
		"percentile of a process's think times that sets the wait"),                         \
	HW_TUNE(struct id_device, pct_cost, 50, 1, 100, "percentile",                             \
		"percentile of a process's think times that sets the cost of a wait"),              \
	HW_TUNE(struct id_device, bucket, 500, 1, 1000000, "us",                                  \
		"width of a think-time bucket"),                                                  \
	HW_TUNE(struct id_device, buckets, 60, 1, ID_MAX_BUCKETS, "buckets",                      \
		"length of the think-time table; longer think times cause no wait"),             \
	HW_TUNE(struct id_device, decay, 900, 0, 999, "permille",                                 \
		"part of the think-time table, and of backward moves, kept at each sample"),   \
	HW_TUNE(struct id_device, pos_alpha, 2589, 1, 10000, "1/10000",                           \
		"weight of the newest positioning time in the expected one"),                     \
	HW_TUNE(struct id_device, max_wait, 20, 0, 1000, "ms",                                    \
		"longest wait; no wait for a process that would need more"),                        \
	HW_TUNE(struct id_device, timer_resolution, 0, 0, 1000000, "us",                          \
		"a wait ends at a multiple of this; 0: exactly"),                                 \
	HW_TUNE(struct id_device, in_device, 1, 1, 1024, "requests",                              \
		"requests in the device at once; waits begin only while it has none")
// clang-format on

static inline struct id_device *id_device(const struct hw_queue *q)
{
	return container_of(q, struct id_device, q);
}

/* Does it hold the device for anybody at all? */
static inline bool id_anticipates(const struct id_device *d)
{
	return d->anticipate && hw_may_wait(&d->q, d->wait_nonrot);
}

static inline struct id_request *id_request(struct hw_sorted_request *s)
{
	return container_of(s, struct id_request, s);
}

/* Positioning time for @sector from where the head is, by the table that the host has measured. */
u64 id_positioning(const struct id_device *d, u64 from, u64 sector);
/*
 * The request in @t with the least positioning time; of equals the lowest sector, then the first
 * come.
 */
struct hw_sorted_request *id_nearest(const struct id_device *d, const struct hw_sorted *t);

void id_learn_think(const struct id_device *d, struct id_task *t, u64 think_ns);
void id_learn_positioning(const struct id_device *d, struct id_task *t, u64 positioning_ns);
/* HW_NEVER: longer than the table knows. Without samples: what is presumed of a new process. */
u64 id_think_percentile(const struct id_device *d, const struct id_task *t, u32 percentile);
/*
 * The seek-optimising rule: is @effort_ns for the candidate more than d->last's expected effort and
 * wait?
 */
bool id_benefit_exceeds_cost(const struct id_device *d, s64 effort_ns, u64 now);

int id_init(struct hw_queue *q, const struct id_rules *rules);
void id_task_exit(struct hw_queue *q, struct hw_task *task, u64 now);
void id_insert(struct hw_queue *q, struct hw_request *rq, u64 now);
struct hw_request *id_dispatch(struct hw_queue *q, u64 now);
void id_complete(struct hw_queue *q, struct hw_request *rq, u64 now);
void id_requeue(struct hw_queue *q, struct hw_request *rq, u64 now);
bool id_has_work(const struct hw_queue *q);
struct hw_request *id_find_merge(struct hw_queue *q, const struct hw_bio *bio, enum hw_merge *how);
bool id_allow_merge(struct hw_queue *q, const struct hw_request *rq, const struct hw_bio *bio);
void id_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now);
void id_merged_requests(struct hw_queue *q, struct hw_request *keep, struct hw_request *gone);

/* What the tables of both have alike. */
#define ID_POLICY                                                                                  \
	.source = "Iyer & Druschel, Anticipatory scheduling, SOSP 2001", .flags = HW_POLICY_HASH,  \
	.queue_size = sizeof(struct id_device), .task_size = sizeof(struct id_task),               \
	.request_size = sizeof(struct id_request), .dispatch = id_dispatch, .requeue = id_requeue, \
	.has_work = id_has_work, .find_merge = id_find_merge, .allow_merge = id_allow_merge,       \
	.merged = id_merged, .merged_requests = id_merged_requests, .former = hw_sorted_former,    \
	.latter = hw_sorted_latter, .task_exit = id_task_exit

#endif
