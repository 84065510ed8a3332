/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract between a scheduling policy and its host.
 *
 * Caveats first.
 *  - The host holds one lock per queue around every call below. A policy needs none and takes none.
 *  - A policy never allocates. It says how large its areas per queue, task, group and request are;
 *    the host provides them, with struct hw_queue, hw_task, hw_group and hw_request as their first
 *    members. They come zeroed; of a request, which may have been another one before, what follows
 *    struct hw_request does, and the host fills that.
 *  - A policy has no timer and no clock. Every call carries `now` (ns, never decreasing). To hold
 *    the device idle, dispatch() returns NULL and sets q->wake_ns; the host calls dispatch() again
 *    at that time at the latest.
 *  - The host calls dispatch() after every insertion, completion, requeue, task exit and due
 *    wake-up for as long as the device takes requests. So a policy that ends a wait in insert() has
 *    nothing to announce.
 *  - In one instant the host delivers completions, then arrivals, then asks for dispatch: a request
 *    that arrives at the very moment at which a wait ends has arrived in time.
 *  - Hosts call the hw_* functions at the end, never the operations directly: those keep the counts
 *    that policies read.
 *
 * Invariants (tests refer to them by number).
 *  1. Every inserted request is dispatched exactly once and completed exactly once, or merged away
 *     exactly once.
 *  2. While a wait is on (q->wait.active), dispatch() returns nothing.
 *  3. Waits begin and end in turn, and only with a request queued that could have been dispatched.
 *  4. A policy with requests queued and none in the device returns a request, or sets wake_ns.
 *  5. Same calls, same answers: no state outside the queue.
 */
#ifndef HW_ELEVATOR_H
#define HW_ELEVATOR_H

#include "core/reason.h"
#include "core/table.h"

#define HW_NEVER	 U64_MAX
#define HW_SECTOR_BYTES	 512u
#define HW_NSEC_PER_USEC 1000u
#define HW_NSEC_PER_MSEC 1000000u
#define HW_NSEC_PER_SEC	 1000000000u

struct hw_queue;
struct hw_policy;

enum hw_op { HW_READ, HW_WRITE, HW_DISCARD, HW_OTHER };

/* Request flags. */
#define HW_RQ_SYNC    0x01u /* waited for: reads, and writes asked to be synchronous */
#define HW_RQ_META    0x02u /* file-system metadata */
#define HW_RQ_PRIO    0x04u
#define HW_RQ_AT_HEAD 0x08u /* the host wants it next, whatever the order */
#define HW_RQ_NOMERGE 0x10u /* policies set it by hw_forbid_merge() */

/* I/O priority as the kernel encodes it: class << 13 | level; 0 means that none was set. */
#define HW_IOPRIO_NONE		0u
#define HW_IOPRIO_RT		1u
#define HW_IOPRIO_BE		2u
#define HW_IOPRIO_IDLE		3u
#define HW_IOPRIO(class, level) ((u16)((class) << 13 | (level)))
#define HW_IOPRIO_CLASS(p)	((u32)(p) >> 13)
#define HW_IOPRIO_LEVEL(p)	((u32)(p) & 7u)

/* What a policy may know of whoever issues requests (a process, an io_context, a connection). */
struct hw_task {
	u32 id;
	u16 ioprio; /* the task's own; a request may carry another */
	u16 share;  /* tickets for proportional share; 0 = from ioprio */
	bool exited;
	u32 refs; /* requests and policy pointers that keep this memory; see hw_task_get() */
	struct list_head reap;
	u64 created_ns;
};

/*
 * Tasks that share among siblings by weight (a control group), where the policy has room for groups
 * (group_size). Who is in none is in the root, which is NULL. The host may change a weight between
 * calls.
 */
#define HW_GROUP_WEIGHT	     100u /* unless another one was set */
#define HW_GROUP_WEIGHT_MOST 10000u
struct hw_group {
	struct hw_group *parent; /* NULL: the root */
	u32 weight;		 /* 1 to HW_GROUP_WEIGHT_MOST */
	u32 refs;		 /* the host's own, children, requests and policy pointers */
	struct list_head reap;
};

struct hw_request {
	u8 op;	  /* enum hw_op */
	u8 flags; /* HW_RQ_* */
	u16 ioprio;
	u16 cpu;  /* software queue it came in on */
	u8 state; /* enum hw_state, kept by elevator.c */
	struct hw_task *task;
	struct hw_group *group; /* on whose account it goes */
	u64 id;			/* insertions counted from 0 */
	u64 insert_ns;		/* when it was inserted */
	u64 dispatch_ns;	/* when it was given to the device: see complete() */
	struct hw_request *hash_next, **hash_pprev; /* merge.c */
	void *host;
	/*
	 * Last, next to the node of a tree that a policy puts behind: searches in long queues read
	 * both.
	 */
	u64 sector; /* first sector, 512 bytes each */
	u32 sectors;
	u32 below; /* the policy's: what such a search has to know of all requests below the node */
};

/* A range that looks for a request to join. */
struct hw_bio {
	u64 sector;
	u32 sectors;
	u8 op;
	u8 flags;
	u16 ioprio;
	u16 cpu;
	struct hw_task *task;
	struct hw_group *group;
	u64 now_ns; /* when it looks; 0: at the time of the last call */
};

enum hw_merge { HW_NO_MERGE, HW_BACK_MERGE, HW_FRONT_MERGE };
enum hw_state { HW_IDLE, HW_QUEUED, HW_DISPATCHED, HW_MERGED };

static inline u64 hw_end(const struct hw_request *rq)
{
	return rq->sector + rq->sectors;
}
static inline bool hw_is_sync(const struct hw_request *rq)
{
	return rq->flags & HW_RQ_SYNC;
}

/*
 * What the host knows of the device; written before init(), constant afterwards but for depth and
 * positions, which may change between calls.
 */
#define HW_POSITION_POINTS 32 /* most rows of positions */
struct hw_device {
	u64 sectors; /* capacity */
	bool rotational;
	u32 arms;	 /* of an array: how many move by themselves; 0: one, as far as is known */
	u32 depth;	 /* requests that the device takes at once */
	u32 nr_requests; /* requests that the host lets exist at once; 0 = no limit */
	/*
	 * The policy is to be as it is when it has had the device for long: it has found out
	 * whether that takes several requests at once. See also acquaint().
	 */
	bool settled;
	/*
	 * The table `positions`, which every policy has: positioning time by distance, as an
	 * off-line measurement would give it, in rows (sectors, ns). Seek and half a revolution;
	 * row 0 is the contiguous case.
	 */
	struct hw_rows positions;
};

static inline u64 hw_position_sectors(const struct hw_device *dev, u32 row)
{
	return (u64)dev->positions.cells[2 * row];
}
static inline u64 hw_position_ns(const struct hw_device *dev, u32 row)
{
	return (u64)dev->positions.cells[2 * row + 1];
}

/* Deliberate idleness, counted as the papers count it. */
enum hw_wait_outcome { HW_WAIT_SUCCESS, HW_WAIT_FAIL, HW_WAIT_OTHER };

struct hw_wait {
	bool active;
	struct hw_task *task; /* who is waited for; NULL if nobody in particular */
	u64 begin_ns;
	u8 ended; /* how the last one has, since the last dispatch: outcome + 1; 0: none has */
	/* waits begun so far: hosts see begin and end by watching this and active */
	u64 begun;
	u64 count[3], total_ns[3]; /* by outcome: A_S, A_F, other; T_S, T_F, other */
};

enum hw_tunable_type { HW_INT, HW_BOOL, HW_ENUM };

/*
 * A tunable: one row makes the sysfs file, `--set`, the documentation and `headwaiter schedulers`.
 * Its value is the s64 at `offset` of the policy's queue area, in `unit`.
 */
struct hw_tunable {
	const char *name;
	enum hw_tunable_type type;
	u32 offset;
	s64 def, min, max;
	const char *unit;	    /* "ms", "sectors", "requests", …; "" for a plain number */
	const char *help;	    /* one line */
	const char *const *choices; /* HW_ENUM: names of 0, 1, …, NULL-terminated */
};

/* A figure that a policy keeps and lets be read, such as the exit probability. */
struct hw_stat {
	const char *name;
	const char *unit;
	const char *help;
	s64 (*get)(const struct hw_queue *q);
};

/* Counters in rows and columns that a policy keeps and lets be read: u32, row behind row. */
struct hw_counters {
	const char *name;
	const char *from; /* where not all rows can be read at once: with which to begin, from 1 */
	const char *help; /* one line */
	u32 rows, columns;
	u32 offset; /* of the policy's queue area */
};

/* Settings of a policy under a name of their own, such as those of a published version. */
struct hw_preset {
	const char *name;
	const char *help;     /* one line */
	const char *settings; /* TUNABLE=VALUE, a blank between two */
};

struct hw_queue {
	const struct hw_policy *policy;
	struct hw_device dev;
	/* set by dispatch() when it returns NULL; HW_NEVER if only an event can help */
	u64 wake_ns;
	bool force;	  /* the host is draining: serve what there is, do not idle */
	u8 reason;	  /* enum hw_reason: why dispatch() chose what it has just returned */
	u32 nr_queued;	  /* inserted, neither dispatched nor merged away */
	u32 nr_in_flight; /* dispatched, not completed */
	u64 nr_inserted;
	struct hw_wait wait;
	/* exited tasks, and groups, that nothing refers to any more: the host's to free */
	struct list_head reap, reap_groups;
	/*
	 * The host's, or NULL: a policy has ruled out that @rq, which is queued, merges with
	 * anything.
	 */
	void (*unmergeable)(struct hw_queue *q, struct hw_request *rq);
};

#define HW_POLICY_HASH \
	1u /* the host merges through its one-entry cache and end-sector hash, as blk-mq does */
#define HW_POLICY_TOKENS \
	2u /* a completion frees what it waits for: it is asked again, even if the device was not full */
#define HW_POLICY_DIRECT \
	4u /* there is no scheduler: requests, flushes too, have the device's own tags */
#define HW_POLICY_UNTHROTTLED \
	8u /* the host is not to throttle write-back: the policy sees to that */
#define HW_POLICY_MODEL \
	16u /* of the scheduler of that name in today's kernel: no module offers it there */
#define HW_POLICY_ISSUED \
	32u /* where a head moves, the host is to tell when the device got a request */

struct hw_policy {
	const char *name;
	const char *summary; /* one line */
	const char *source;  /* document or kernel that it follows */
	u32 flags;
	u32 queue_size, task_size, request_size;
	u32 group_size; /* 0: all tasks are equal, whatever their groups */
	const struct hw_tunable *tunables;
	u32 nr_tunables;
	const struct hw_table *tables;
	u32 nr_tables;
	const struct hw_stat *stats;
	u32 nr_stats;
	const struct hw_counters *counters; /* NULL: none */
	const struct hw_preset *presets;
	u32 nr_presets;

	/* Tunables hold their values already. 0 or a negative errno. */
	int (*init)(struct hw_queue *q, u64 now);
	/* Tunables or tables have changed (also called once after init). */
	void (*tuned)(struct hw_queue *q);
	/*
	 * Right after hw_start(), of a simulation: with dev.settled the policy has found out the
	 * drive's positioning times by itself, if it does so, and they are these. Optional.
	 */
	void (*acquaint)(struct hw_queue *q, const struct hw_rows *positions);

	void (*insert)(struct hw_queue *q, struct hw_request *rq, u64 now);
	struct hw_request *(*dispatch)(struct hw_queue *q, u64 now);
	/*
	 * dispatch_ns is when dispatch() returned @rq, or when the device got it, if the host knows
	 * and that was later: it may keep a request until the device has room, as during a flush.
	 */
	void (*complete)(struct hw_queue *q, struct hw_request *rq, u64 now);
	/*
	 * A dispatched request comes back unserved; it is to be dispatched again, before others.
	 * Optional.
	 */
	void (*requeue)(struct hw_queue *q, struct hw_request *rq, u64 now);
	/*
	 * Nothing is queued. For policies whose dispatch() takes note of that, and hosts that do
	 * not ask it then. Optional.
	 */
	void (*idle)(struct hw_queue *q);
	/* Would dispatch() now perhaps return a request? Cheap; false during a wait. */
	bool (*has_work)(const struct hw_queue *q);

	/* The policy's own look-up, after the host's cache and hash. Optional. */
	struct hw_request *(*find_merge)(struct hw_queue *q, const struct hw_bio *bio,
					 enum hw_merge *how);
	/* Veto. Optional. */
	bool (*allow_merge)(struct hw_queue *q, const struct hw_request *rq,
			    const struct hw_bio *bio);
	/* rq has grown at its back or front. Optional (front merges change the sort key). */
	void (*merged)(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now);
	/*
	 * gone's range has become part of keep: take over its deadline and place, forget gone.
	 * Needed with former/latter.
	 */
	void (*merged_requests)(struct hw_queue *q, struct hw_request *keep,
				struct hw_request *gone);
	struct hw_request *(*former)(struct hw_queue *q, struct hw_request *rq);
	struct hw_request *(*latter)(struct hw_queue *q, struct hw_request *rq);
	/*
	 * How many of dev.nr_requests a request of this kind may see in use when it is allocated.
	 * Optional.
	 */
	u32 (*limit_depth)(struct hw_queue *q, const struct hw_bio *bio);

	void (*task_init)(struct hw_queue *q, struct hw_task *task, u64 now);
	void (*task_exit)(struct hw_queue *q, struct hw_task *task, u64 now);
	/* The second when nothing refers to the group any more. Needed with group_size. */
	void (*group_init)(struct hw_queue *q, struct hw_group *group);
	void (*group_exit)(struct hw_queue *q, struct hw_group *group);
};

/* Every policy there is, NULL-terminated. */
extern const struct hw_policy *const hw_policies[];
const struct hw_policy *hw_policy_find(const char *name);

/*
 * For hosts. The area at q has policy->queue_size zeroed bytes; q->dev is filled in after this and
 * before hw_start().
 */
void hw_queue_prepare(struct hw_queue *q, const struct hw_policy *policy);
int hw_start(struct hw_queue *q, u64 now);
/* 0, -ENOENT (2) for an unknown name, -ERANGE (34) outside min..max. */
const struct hw_tunable *hw_tunable_find(const struct hw_policy *policy, const char *name);
int hw_tunable_set(struct hw_queue *q, const char *name, s64 value);
s64 hw_tunable_get(const struct hw_queue *q, const struct hw_tunable *t);
/* 0, or -ENOENT for an unknown name. */
int hw_stat_get(const struct hw_queue *q, const char *name, s64 *value);

/* The counters of a row; the policy must have some. */
static inline const u32 *hw_counters_row(const struct hw_queue *q, u32 row)
{
	const struct hw_counters *c = q->policy->counters;

	return (const u32 *)((const char *)q + c->offset) + (size_t)row * c->columns;
}

void hw_task_start(struct hw_queue *q, struct hw_task *task, u64 now);
void hw_task_exit(struct hw_queue *q, struct hw_task *task, u64 now);
/* @group->parent is set already, and a group of the same queue. */
void hw_group_start(struct hw_queue *q, struct hw_group *group, u32 weight);
/* The host's reference, or a policy's, is given up. */
void hw_group_put(struct hw_queue *q, struct hw_group *group);
void hw_requeue(struct hw_queue *q, struct hw_request *rq, u64 now);
/*
 * The request that @gone's range joined is @keep; the host frees gone afterwards. Where an
 * insertion has closed the gap the host does not ask first: the two may belong to different tasks,
 * and lie in different lists of the policy's. For neither has the policy called hw_forbid_merge().
 */
void hw_merge_requests(struct hw_queue *q, struct hw_request *keep, struct hw_request *gone);

/* For policies: @rq has left the places where it can be joined with others, but is still queued. */
static inline void hw_forbid_merge(struct hw_queue *q, struct hw_request *rq)
{
	rq->flags |= HW_RQ_NOMERGE;
	if (q->unmergeable)
		q->unmergeable(q, rq);
}

/*
 * For policies: keep a pointer to a task beyond its exit. A task's memory stays while refs is not 0
 * or it has not exited; requests hold one reference each from insertion to completion.
 */
static inline void hw_task_get(struct hw_task *task)
{
	task->refs++;
}

static inline void hw_task_put(struct hw_queue *q, struct hw_task *task)
{
	if (--task->refs == 0 && task->exited)
		list_add_tail(&task->reap, &q->reap);
}

/* For policies: keep a pointer to a group. */
static inline void hw_group_get(struct hw_group *group)
{
	group->refs++;
}

/* For policies: the device is now held idle on purpose; it no longer is. */
static inline void hw_wait_begin(struct hw_queue *q, struct hw_task *task, u64 now)
{
	q->wait.active = true;
	q->wait.begin_ns = now;
	q->wait.task = task;
	q->wait.begun++;
}

static inline void hw_wait_end(struct hw_queue *q, enum hw_wait_outcome outcome, u64 now)
{
	if (!q->wait.active)
		return;
	q->wait.active = false;
	q->wait.task = NULL;
	q->wait.ended = (u8)(outcome + 1);
	q->wait.count[outcome]++;
	q->wait.total_ns[outcome] += now - q->wait.begin_ns;
}

/* For policies, in dispatch(): why what it is about to return goes out now. */
static inline void hw_because(struct hw_queue *q, enum hw_reason reason)
{
	q->reason = (u8)reason;
}

/*
 * Say why, as a policy that waits. Where a wait has ended since the last dispatch, that is why: if it
 * was met, provided that @awaited is true of the request; else @reason holds.
 */
static inline void hw_because_wait(struct hw_queue *q, bool awaited, enum hw_reason reason)
{
	switch (q->wait.ended) {
	case HW_WAIT_SUCCESS + 1:
		reason = awaited ? HW_ANTICIPATED : reason;
		break;
	case HW_WAIT_FAIL + 1:
		reason = HW_WAIT_OVER;
		break;
	case HW_WAIT_OTHER + 1:
		reason = HW_WAIT_BROKEN;
	}
	hw_because(q, reason);
}

/*
 * For hosts: what happens to every request. In line, for a kernel's sake: on a fast device a call
 * costs as much as a decision.
 */
static inline void hw_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	rq->id = q->nr_inserted++;
	rq->state = HW_QUEUED;
	rq->insert_ns = now;
	if (rq->task)
		hw_task_get(rq->task);
	if (unlikely(rq->group))
		hw_group_get(rq->group);
	q->nr_queued++;
	q->policy->insert(q, rq, now);
}

static inline struct hw_request *hw_dispatch(struct hw_queue *q, u64 now)
{
	struct hw_request *rq;

	q->wake_ns = HW_NEVER;
	q->reason = HW_UNTOLD;
	rq = q->policy->dispatch(q, now);
	if (rq) {
		q->wait.ended = 0;
		rq->state = HW_DISPATCHED;
		rq->dispatch_ns = now;
		q->nr_queued--;
		q->nr_in_flight++;
	}
	return rq;
}

/* The host has started the queue of a simulation: the drive's positioning times. */
static inline void hw_acquaint(struct hw_queue *q, const struct hw_rows *positions)
{
	if (q->dev.settled && q->policy->acquaint)
		q->policy->acquaint(q, positions);
}

/* Tunables or tables of a started queue have changed. */
static inline void hw_tuned(struct hw_queue *q)
{
	if (q->policy->tuned)
		q->policy->tuned(q);
}

/* Nothing is queued, and the device could take a request. */
static inline void hw_idle(struct hw_queue *q)
{
	if (q->policy->idle)
		q->policy->idle(q);
}

static inline bool hw_has_work(const struct hw_queue *q)
{
	return q->policy->has_work(q);
}

/* The request that the policy would have @bio join, or NULL. */
static inline struct hw_request *hw_find_merge(struct hw_queue *q, const struct hw_bio *bio,
					       enum hw_merge *how)
{
	return q->policy->find_merge ? q->policy->find_merge(q, bio, how) : NULL;
}

static inline bool hw_allow_merge(struct hw_queue *q, const struct hw_request *rq,
				  const struct hw_bio *bio)
{
	return !q->policy->allow_merge || q->policy->allow_merge(q, rq, bio);
}

/* @rq has its new range already. */
static inline void hw_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now)
{
	if (q->policy->merged)
		q->policy->merged(q, rq, how, now);
}

static inline struct hw_request *hw_former(struct hw_queue *q, struct hw_request *rq)
{
	return q->policy->former ? q->policy->former(q, rq) : NULL;
}

static inline struct hw_request *hw_latter(struct hw_queue *q, struct hw_request *rq)
{
	return q->policy->latter ? q->policy->latter(q, rq) : NULL;
}

/* U32_MAX: all that there are. */
static inline u32 hw_limit_depth(struct hw_queue *q, const struct hw_bio *bio)
{
	return q->policy->limit_depth ? q->policy->limit_depth(q, bio) : U32_MAX;
}

static inline void hw_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	q->nr_in_flight--;
	if (q->policy->complete)
		q->policy->complete(q, rq, now);
	rq->state = HW_IDLE;
	if (rq->task)
		hw_task_put(q, rq->task);
	if (unlikely(rq->group))
		hw_group_put(q, rq->group);
}

#endif
