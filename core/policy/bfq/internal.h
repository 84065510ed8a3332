/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of bfq share. Read bfq.c first: it says what the policy is and which part decides
 * what.
 *
 * Words: a *queue* here is one process's (or several merged processes') requests; the hw_queue of
 * the contract is always `b->q`. A *slot* is the time from when a queue is put in service to when
 * it expires. A tick is a tick of tick_us microseconds, the kernel's jiffy; what the kernel counts
 * in jiffies is counted in ticks, all else in ns.
 */
#ifndef HW_POLICY_BFQ_INTERNAL_H
#define HW_POLICY_BFQ_INTERNAL_H

#include "core/lib/choose.h"
#include "core/lib/decay.h"
#include "core/lib/sorted.h"
#include "core/policy/policies.h"

#define BFQ_NR_CLASSES 3
#define BFQ_NR_LEVELS  8
#define BFQ_TASK_QUEUES \
	3 /* queues that a task can own at a time: its present one and left-overs of merges */
#define BFQ_DEFAULT_WEIGHT 40 /* of class best-effort, level 4; only such queues are raised */

#define BFQ_INTERACTIVE_COEFF  30u
#define BFQ_DEFAULT_MAX_BUDGET 16384 /* sectors */
#define BFQ_SAMPLES_STEP(n)    (((n) * 7 + 256) / 8)
#define BFQ_BUDGETS_KNOWN      194 /* budgets_assigned from the 11th slot on */
#define BFQ_MIN_THINK_NS       (2 * HW_NSEC_PER_MSEC)
#define BFQ_NONROT_LARGE       64u /* sectors: below it a far request of a non-rotating disk is a seek */
#define BFQ_RATE_SHIFT	       16
#define BFQ_TICK_NEVER	       (-((s64)1 << 60)) /* longer ago than anything */

enum bfq_reason { BFQ_TOO_IDLE, BFQ_TIMEOUT, BFQ_EXHAUSTED, BFQ_NO_MORE_REQUESTS, BFQ_PREEMPTED };

enum bfq_tree { BFQ_NO_TREE, BFQ_ACTIVE_TREE, BFQ_IDLE_TREE };

enum bfq_kernel { BFQ_6_1, BFQ_6_12 };

struct bfq_task;

struct bfq_think {
	u64 last_end_ns;	/* when a request last completed */
	struct hw_decay gap_ns; /* from then to the next arrival */
};

/* What decides whether a queue is raised, and what a merged queue gets back when it is split. */
struct bfq_raise {
	u32 coeff; /* 1: not raised */
	/* tick at which raising began; of a queue not raised, its last request or expiry */
	s64 start;
	s64 duration; /* ticks */
	/* `start` of the interactive period that soft real-time raising interrupted */
	s64 interactive_start;
	u64 service; /* sectors served while raised */
};

/*
 * How many requests of others may be in the drive while this queue is in service and empty
 * (inject.c).
 */
struct bfq_inject {
	u32 limit;
	u64 base_ns; /* total service time of a first request with nothing injected; 0: not known */
	s64 lowered; /* tick of the last decrease or reset */
};

struct bfq_queue {
	/* B-WF2Q+ (wf2q.c) */
	struct rb_node node;
	struct list_head active_link; /* b->active, latest first */
	enum bfq_tree tree;
	bool counted;	     /* its weight is in its class's sum */
	u64 start, finish;   /* virtual times */
	u64 min_start;	     /* smallest start in the subtree */
	s64 service, budget; /* sectors */
	u32 weight;	     /* with raising */
	/* without; new_ is what the next insertion into a tree takes over */
	u32 own_weight, new_weight;
	u8 class, new_class; /* enum of the contract: 1 real time, 2 best effort, 3 idle */
	u8 level, new_level;
	bool prio_changed;
	u8 weight_slot; /* b->weights[] that counts this queue; 0: none */

	/* requests (order.c) */
	struct hw_sorted sorted;
	struct list_head fifo;
	struct hw_request *next;
	u32 queued;
	u32 dispatched;		 /* in the drive */
	u32 allocated;		 /* queued or in the drive */
	u32 seek_history;	 /* a bit a request, newest lowest; set: far from the one before */
	u64 last_pos;		 /* sector after the last request that arrived */
	struct rb_node pos_node; /* b->positions: by the sector of `next` */
	bool in_positions;

	/* flags */
	bool in_use, permanent, sync, busy, just_created, wait_request, fifo_checked,
		non_blocking_wait;
	bool short_think, io_bound, in_large_burst, coop, split_coop, softrt_update;

	/* budgets and times (slot.c) */
	s64 max_budget;
	/* tick at which the slot is over; of a queue without requests, when it became so */
	s64 budget_timeout;
	u64 served_backlogged;	/* sectors since it last became busy */
	s64 backlogged_since;	/* tick */
	s64 first_io;		/* tick of the first service since it became busy */
	s64 created;		/* tick */
	s64 split_time;		/* tick */
	s64 soft_rt_next_start; /* tick before which a request is too soon for soft real time */
	struct bfq_think think;
	u64 io_start_ns, idle_total_ns;
	struct bfq_raise raise;
	struct bfq_inject inject;

	/* company (merge.c, inject.c) */
	u64 id;			/* counted from 1 */
	struct bfq_task *home;	/* whose memory this is; NULL: the policy's own */
	struct bfq_task *owner; /* the only task that uses it; NULL if shared or async */
	u32 users;	 /* tasks whose requests go here, or will by a merge already agreed on */
	u32 stable_refs; /* tasks that may yet be merged into this one */
	struct bfq_queue *merge_into;
	struct list_head burst_link;
	struct bfq_queue *waker;
	u64 maybe_waker; /* by id, for it may be gone by now */
	u32 waker_hits;
	u64 waker_since_ns;
	struct list_head woken, woken_link;
};

/* State of a task's queue from when it is merged to when it is split off again. */
struct bfq_saved {
	struct bfq_raise raise;
	struct bfq_inject inject;
	struct bfq_think think;
	u32 weight;
	u64 io_start_ns, idle_total_ns;
	bool short_think, io_bound, in_large_burst, in_burst_list;
};

struct bfq_task {
	struct hw_task task;
	struct bfq_queue *queue[2]; /* async, sync */
	u16 ioprio;
	u32 requests;
	struct bfq_queue *stable_merge; /* candidate for a delayed stable merge */
	bool stably_merged;
	struct bfq_saved saved;
	struct bfq_queue own[BFQ_TASK_QUEUES];
};

struct bfq_request {
	struct hw_sorted_request s; /* its fifo link: in the queue's FIFO, or in b->head */
	struct bfq_queue *queue;
	bool queued; /* in the queue's order and FIFO */
	bool late;   /* it has been chosen for its age */
};

struct bfq_vtree {
	struct rb_root active, idle; /* both by finish */
	struct bfq_queue *first_idle, *last_idle;
	u64 vtime;
	u64 weight_sum;
};

/* The rate observation under way (rate.c). */
struct bfq_rate {
	u64 first_dispatch_ns, last_dispatch_ns, last_completion_ns;
	u64 span_ns; /* first dispatch to the latest */
	u32 samples, sequential;
	u64 sectors;
	u32 max_sectors; /* largest of the latest requests */
	u64 peak;	 /* sectors/us << BFQ_RATE_SHIFT */
};

struct bfq {
	struct hw_queue q;

	/* tunables */
	s64 fifo_expire_sync, fifo_expire_async;
	s64 back_seek_max, back_seek_penalty;
	s64 slice_idle, slice_idle_us;
	s64 max_budget;
	s64 timeout_sync;
	s64 strict_guarantees;
	s64 low_latency;
	s64 kernel;
	s64 tick_us;
	/* the values that tuned() last saw, to tell which one was written */
	struct {
		s64 slice_idle, slice_idle_us, max_budget, strict_guarantees, low_latency;
	} seen;

	/* derived from them */
	u64 fifo_expire_ns[2];
	struct hw_reach reach;
	u64 slice_idle_ns;
	s64 cap_budget; /* sectors: the device's max budget */
	s64 hz;		/* ticks a second */
	s64 timeout_ticks;
	s64 charge_ms; /* the slot length that a time charge of one whole max budget stands for */
	struct {
		s64 burst, idle_interactive, async_gap, soft_rt, merge, stable, idle_class,
			ref_duration;
		s64 raise_min, raise_max;
	} span; /* in ticks */

	/* now */
	u64 now_ns;
	s64 tick;
	u64 tick_ns, tick_begin_ns;

	/* B-WF2Q+ */
	struct bfq_vtree vtree[BFQ_NR_CLASSES];
	struct bfq_queue *in_service, *cached_next;
	struct list_head active;
	u32 nr_busy[BFQ_NR_CLASSES], nr_busy_raised;
	/* queues with requests, by weight / 10; raised ones left out */
	u32 weights[BFQ_NR_LEVELS + 1];
	s64 idle_class_served; /* tick */
	u32 budgets_assigned;

	/* device */
	struct list_head head; /* requests that go first, or belong to no queue */
	u32 in_driver, max_in_driver, hw_samples;
	s32 hw_queueing; /* -1: not known yet */
	bool nonrot_queueing;
	u64 last_position; /* sector after the last dispatched request */
	u64 in_service_last_pos;
	struct bfq_rate rate;

	/* the slot */
	u8 because; /* enum hw_reason: why the one before has ended; then why this one goes on */
	u64 slot_begin_ns;
	u64 idling_begin_ns;
	s64 idling_begin;  /* tick */
	u64 idle_until_ns; /* HW_NEVER: no wait under way */

	/* injection */
	struct bfq_queue *last_completed;
	bool wait_dispatch, injected;
	struct hw_request *waited_rq;
	u64 first_arrival_ns;

	/* bursts and cooperation */
	struct list_head burst;
	u32 burst_size;
	bool large_burst;
	s64 last_in_burst; /* tick */
	struct bfq_queue *last_created;
	u64 nr_created;
	struct rb_root positions;

	struct bfq_queue async[2][BFQ_NR_LEVELS], async_idle;
};

static inline struct bfq_request *bfq_rq(struct hw_request *rq)
{
	return container_of(rq, struct bfq_request, s.rq);
}

static inline struct bfq_task *bfq_task(struct hw_task *task)
{
	return container_of(task, struct bfq_task, task);
}

static inline bool bfq_empty(const struct bfq_queue *bq)
{
	return hw_sorted_empty(&bq->sorted);
}
static inline bool bfq_raised(const struct bfq_queue *bq)
{
	return bq->raise.coeff > 1;
}
static inline bool bfq_seeky(const struct bfq_queue *bq)
{
	return hweight32(bq->seek_history) > 19;
}
static inline bool bfq_idle_class(const struct bfq_queue *bq)
{
	return bq->class == HW_IOPRIO_IDLE;
}
static inline s64 bfq_budget_left(const struct bfq_queue *bq)
{
	return bq->budget - bq->service;
}
static inline u32 bfq_nr_busy(const struct bfq *b)
{
	return b->nr_busy[0] + b->nr_busy[1] + b->nr_busy[2];
}
/* Has @tick + @span passed? */
static inline bool bfq_past(const struct bfq *b, s64 tick, s64 span)
{
	return tick + span < b->tick;
}
/* Is it @tick + @span at least? */
static inline bool bfq_reached(const struct bfq *b, s64 tick, s64 span)
{
	return tick + span <= b->tick;
}
/* ms in ticks, rounded up as the kernel does. */
static inline s64 bfq_ms_to_ticks(const struct bfq *b, s64 ms)
{
	return (s64)div64_u64((u64)(ms * 1000 + b->tick_us - 1), (u64)b->tick_us);
}
/* Have enough budgets been used to trust the device's max budget? */
static inline bool bfq_budgets_known(const struct bfq *b)
{
	return b->budgets_assigned >= BFQ_BUDGETS_KNOWN;
}
/* The device's max budget, or the default for as long as it is not to be trusted. */
static inline s64 bfq_max_budget(const struct bfq *b)
{
	return bfq_budgets_known(b) ? b->cap_budget : BFQ_DEFAULT_MAX_BUDGET;
}

/* queue.c */
void bfq_queue_init(struct bfq *b, struct bfq_queue *bq, struct bfq_task *home, bool sync,
		    u16 ioprio);
void bfq_plan_prio(struct bfq_queue *bq, u16 ioprio);
void bfq_set_waker(struct bfq_queue *bq, struct bfq_queue *waker);
void bfq_drop(struct bfq *b, struct bfq_queue *bq);

/* idle.c */
bool bfq_asymmetric(const struct bfq *b, const struct bfq_queue *bq);
bool bfq_idling_boosts(const struct bfq *b, const struct bfq_queue *bq);
bool bfq_idling_guarantees(const struct bfq *b, const struct bfq_queue *bq);
bool bfq_better_to_idle(const struct bfq *b, const struct bfq_queue *bq);

/* wf2q.c */
u64 bfq_vspan(u64 service, u64 weight);
void bfq_apply_prio(struct bfq *b, struct bfq_queue *bq, bool class_too);
void bfq_serve(struct bfq *b, struct bfq_queue *bq, s64 sectors);
void bfq_charge_time(struct bfq *b, struct bfq_queue *bq, s64 ms);
void bfq_requeue(struct bfq *b, struct bfq_queue *bq, bool expiring);
void bfq_mark_busy(struct bfq *b, struct bfq_queue *bq);
void bfq_unmark_busy(struct bfq *b, struct bfq_queue *bq, bool expiring);
void bfq_weight_uncount(struct bfq *b, struct bfq_queue *bq);
struct bfq_queue *bfq_take_next(struct bfq *b);
static inline bool bfq_other_is_next(const struct bfq *b)
{
	return b->cached_next != b->in_service;
}

/* order.c */
s64 bfq_cost(struct bfq *b, const struct hw_request *rq, const struct bfq_queue *bq);
bool bfq_is_seek(const struct bfq *b, u64 last_pos, const struct hw_request *rq);
void bfq_enqueue(struct bfq *b, struct bfq_queue *bq, struct hw_request *rq);
bool bfq_offer_next(struct bfq *b, struct bfq_queue *bq, struct hw_request *rq);
void bfq_dequeue(struct bfq *b, struct hw_request *rq);
void bfq_budget_for_next(struct bfq *b, struct bfq_queue *bq);
void bfq_place(struct bfq *b, struct bfq_queue *bq);
void bfq_unplace(struct bfq *b, struct bfq_queue *bq);
struct bfq_queue *bfq_near(struct bfq *b, u64 sector);
bool bfq_close(u64 a, u64 b);
bool bfq_too_late_to_merge(const struct bfq *b, const struct bfq_queue *bq);
struct hw_request *bfq_former(struct hw_queue *q, struct hw_request *rq);
struct hw_request *bfq_latter(struct hw_queue *q, struct hw_request *rq);
void bfq_moved_front(struct bfq *b, struct hw_request *rq);

/* slot.c */
bool bfq_timed_out(const struct bfq *b, const struct bfq_queue *bq);
void bfq_stop_waiting(struct bfq *b, struct bfq_queue *bq);
void bfq_expire(struct bfq *b, struct bfq_queue *bq, bool compensate, enum bfq_reason reason);
void bfq_leave_service(struct bfq *b, struct bfq_queue *bq, enum bfq_reason reason);
struct bfq_queue *bfq_select(struct bfq *b);
void bfq_slot_completed(struct bfq *b, struct bfq_queue *bq);
void bfq_idle_over(struct bfq *b);

/* arrive.c */
void bfq_arrive(struct bfq *b, struct bfq_queue *bq, struct hw_request *rq);

/* rate.c */
void bfq_rate_dispatched(struct bfq *b, const struct hw_request *rq);
void bfq_rate_completed(struct bfq *b);
void bfq_assume_queueing(struct bfq *b);
void bfq_detect_queueing(struct bfq *b);
s64 bfq_budget_at_peak(const struct bfq *b);

/* raise.c */
s64 bfq_raise_duration(const struct bfq *b);
void bfq_end_raising(struct bfq *b, struct bfq_queue *bq);
void bfq_end_all_raising(struct bfq *b);
void bfq_back_to_interactive(struct bfq *b, struct bfq_queue *bq);
void bfq_consider_raising(struct bfq *b, struct bfq_queue *bq, bool deserves, bool interactive,
			  bool in_burst, bool soft_rt);
void bfq_review_raising(struct bfq *b, struct bfq_queue *bq);
void bfq_totally_seeky(struct bfq *b, struct bfq_queue *bq);
s64 bfq_soft_rt_next_start(const struct bfq *b, const struct bfq_queue *bq);
void bfq_join_burst(struct bfq *b, struct bfq_queue *bq);

/* merge.c */
struct bfq_queue *bfq_queue_of(struct bfq *b, struct hw_request *rq);
void bfq_merge_queues(struct bfq *b, struct bfq_task *task, struct bfq_queue *bq,
		      struct bfq_queue *into);
struct bfq_queue *bfq_cooperator(struct bfq *b, struct bfq_queue *bq, u64 sector,
				 struct bfq_task *task);
void bfq_forget_task(struct bfq *b, struct bfq_task *task);

/* inject.c */
void bfq_check_waker(struct bfq *b, struct bfq_queue *bq);
void bfq_inject_reset(struct bfq *b, struct bfq_queue *bq);
void bfq_inject_arrived(struct bfq *b, struct bfq_queue *bq);
void bfq_inject_measured(struct bfq *b, struct bfq_queue *bq);
struct bfq_queue *bfq_inject(struct bfq *b, struct bfq_queue *bq);

#endif
