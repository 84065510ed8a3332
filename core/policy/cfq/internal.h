/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cfq-slice: what its files share. The policy is described in slice.c, the active queue in
 * slice_active.c, the order of queues in slice_queue.c, what is learnt in slice_habits.c,
 * cooperation in slice_coop.c.
 */
#ifndef HW_POLICY_CFQ_INTERNAL_H
#define HW_POLICY_CFQ_INTERNAL_H

#include "core/lib/choose.h"
#include "core/lib/decay.h"
#include "core/lib/sorted.h"
#include "core/lib/ticks.h"

/* slice_start */
enum { CS_START_COMPLETION, CS_START_DISPATCH };

#define CS_PRIOS	8u
#define CS_PRIO_DEFAULT 4u
#define CS_PRIO_LOWEST	7u
#define CS_NEAR_SECTORS 8192u /* near, while the mean seek is not known; above it seeky */

/*
 * Requests of one process (or of several that cooperate), or the asynchronous ones of one priority.
 */
struct cs_queue {
	struct hw_sorted sort;
	struct list_head fifo;
	struct hw_sorted_request *next;
	u32 queued;
	u32 dispatched; /* and not completed */
	u32 meta_queued;

	bool sync;
	u8 class, prio;		   /* HW_IOPRIO_RT, _BE, _IDLE; 0 (best) to 7 */
	struct rb_node node;	   /* in the service tree while anything is queued */
	s64 key;		   /* tick */
	struct rb_root *near_root; /* which tree of places it is in, or NULL */
	struct rb_node near;

	/* The slice; ticks. */
	bool slice_new; /* no request completed yet: the clock stands */
	u64 slice_end;
	s64 slice_resid; /* left over from the last slice, negative if overrun */
	u32 slice_dispatched;
	bool fifo_checked, wait_request, must_dispatch;
	bool idle_window; /* worth waiting for */

	struct hw_decay seek;
	u64 last_pos; /* end of the last request that was inserted */

	/* Whose: see slice_coop.c. */
	struct hw_task *owner;	     /* in whose memory it lies; NULL: the device's own */
	bool in_use;		     /* and then it keeps a reference to its owner */
	u32 users;		     /* processes whose synchronous requests come here */
	u32 joining;		     /* queues whose merge_into is this */
	struct cs_queue *merge_into; /* where its processes shall go with their next request */
	bool coop;		     /* processes have been redirected to it */
	u64 seeky_since;	     /* tick; 0: it is not seeky */
	struct list_head spare;
};

struct cs_task {
	struct hw_task task;
	struct hw_decay think;
	u64 last_end;	       /* tick of the last synchronous completion, or creation */
	struct cs_queue *sync; /* NULL before the first synchronous request */
	struct cs_queue slot;  /* room for one queue, not always its own */
};

struct cs_request {
	struct hw_sorted_request s;
	struct cs_queue *queue; /* NULL: the host wanted it first, whatever its process */
};

struct cs_device {
	struct hw_queue q;
	u64 now, tick; /* of the call */

	struct rb_root tree; /* busy queues by class and key */
	u32 busy;
	struct rb_root near[CS_PRIOS]; /* … of a priority by the sector of their next request */
	struct list_head first;	       /* the host's wish, returned, or displaced by an alias */
	struct list_head spare;	       /* queues that nobody uses, in the memory of living tasks */
	struct cs_queue async_rt[CS_PRIOS], async_be[CS_PRIOS], async_idle;
	struct cs_queue nobody; /* synchronous, without a task or with no queue to spare */

	struct cs_queue *active;
	struct hw_task *active_task; /* who was first to be served in this slice */
	u8 because;		     /* enum hw_reason: why the slice before has ended */
	u64 last_position;
	bool last_meta;	  /* there lay metadata */
	u32 in_driver[2]; /* asynchronous, synchronous */
	u32 sync_flight;  /* synchronous: dispatched, in the driver or on its way */
	u64 last_end_sync;
	bool timer_on;
	u64 timer_ns;

	bool has_tags; /* the device seems to queue commands */
	u32 tag_samples, tag_peak;
	u64 merges, splits;

	/* Tunables in the policy's own units. */
	struct hw_reach reach;
	u64 slice[2], expire[2], idle, idle_seeky, coop_timeout, front, idle_class_delay;

	s64 slice_sync, slice_async, slice_async_rq, slice_idle, wait_nonrot, quantum,
		fifo_expire_sync, fifo_expire_async;
	s64 back_seek_max, back_seek_penalty, low_latency, learn_meta, slice_start, hw_tag, tick_us;
};

static inline struct cs_task *cs_task(struct hw_task *task)
{
	return container_of(task, struct cs_task, task);
}

static inline struct cs_request *cs_request(struct hw_sorted_request *s)
{
	return container_of(s, struct cs_request, s);
}

static inline bool cs_seeky(const struct cs_queue *c)
{
	return c->seek.mean > CS_NEAR_SECTORS;
}

/* Is @sector so near to the head that @c's processes might as well have asked for it? */
static inline bool cs_is_near(const struct cs_device *d, const struct cs_queue *c, u64 sector)
{
	u64 distance = hw_apart(sector, d->last_position);

	return distance <= (hw_decay_valid(&c->seek) ? c->seek.mean : CS_NEAR_SECTORS);
}

/* slice_active.c */
u32 cs_async_limit(const struct cs_device *d, const struct cs_queue *c);
void cs_expire_slice(struct cs_device *d, bool timed_out, enum hw_wait_outcome outcome,
		     enum hw_reason because);
void cs_idle_timer_fires(struct cs_device *d);
void cs_arrived(struct cs_device *d, struct cs_queue *c, const struct hw_request *rq);
struct hw_sorted_request *cs_next(struct cs_device *d);
void cs_active_completed(struct cs_device *d, struct cs_queue *c, bool sync);

/* slice_queue.c */
u64 cs_prio_slice(const struct cs_device *d, bool sync, u8 prio);
struct cs_queue *cs_tree_first(const struct cs_device *d);
void cs_tree_add(struct cs_device *d, struct cs_queue *c, bool front);
void cs_queue_add(struct cs_device *d, struct cs_queue *c, struct hw_sorted_request *s);
void cs_queue_del(struct cs_device *d, struct cs_queue *c, struct hw_sorted_request *s);
void cs_take(struct cs_device *d, struct hw_sorted_request *s);
void cs_put_first(struct cs_device *d, struct hw_sorted_request *s);

/* slice_habits.c */
void cs_learn(struct cs_device *d, struct cs_queue *c, const struct hw_request *rq);

/* slice_coop.c */
void cs_queue_init(struct cs_queue *c, bool sync, u8 class, u8 prio);
void cs_near_update(struct cs_device *d, struct cs_queue *c);
struct cs_queue *cs_close_cooperator(struct cs_device *d, struct cs_queue *c);
void cs_plan_merge(struct cs_device *d, struct cs_queue *c, struct cs_queue *other);
struct cs_queue *cs_sync_queue(struct cs_device *d, struct hw_task *task);
void cs_retire(struct cs_device *d, struct cs_queue *c);
void cs_task_add(struct cs_device *d, struct cs_task *t);
void cs_task_del(struct cs_device *d, struct cs_task *t);

#endif
