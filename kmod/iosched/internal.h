/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the glue share: a scheduler at work on a disk, its types and its tasks. */
#ifndef HWK_IOSCHED_INTERNAL_H
#define HWK_IOSCHED_INTERNAL_H

#include "api/compat.h"
#include "core/elevator.h"

/* An elevator as the kernel knows it, and the policy behind it. */
struct hwk_type {
	struct elevator_type type;
	const struct hw_policy *policy;
	char name[16];
	struct elv_fs_entry *attributes;
};

/* A task's memory outlives its io_cq for as long as the policy refers to it. */
struct hwk_task_mem {
	struct list_head all;
	u8 area[] __aligned(8); /* policy->task_size: struct hw_task first */
};

/* What the kernel keeps of a process on a disk. */
struct hwk_icq {
	struct io_cq icq;     /* first */
	struct hw_task *task; /* under sched->lock; NULL once it has exited */
	struct hwk_sched *sched;
};

/* A policy at work: one for each disk, from the moment at which it is chosen. */
struct hwk_sched {
	spinlock_t lock; /* around every call of the policy */
	struct request_queue *rq_queue;
	const struct hw_policy *policy;
	struct hw_queue *q;	 /* policy->queue_size bytes */
	u64 now;		 /* the policy's clock: never decreasing */
	u32 depth;		 /* requests that the device may have at once */
	u32 tag_shift;		 /* of the scheduler tags' bitmap: log2 of tags per word */
	bool tasks;		 /* the policy cares who issues requests */
	bool ready;		 /* there is one in `picked` or `bypass`: what has_work() answers */
	struct request *picked;	 /* dispatched by the policy, not yet fetched by the core */
	struct request *lone;	 /* the latest insertion, mergeable but not yet hashed */
	struct list_head bypass; /* requests that the policy never sees */
	struct list_head merged; /* merged away at insertion: to be freed without the lock */
	struct hrtimer timer;
	u64 timer_ns; /* when it fires; HW_NEVER if it is not armed */
	u32 groups;   /* besides the root */
	struct list_head all_tasks, all_groups;
	struct hw_task *anyone;	 /* whoever cannot be told apart */
	struct hw_task *merging; /* who submits the bio that is being merged */
	u32 counters_from;	 /* row that the next read of the counters begins with */
};

static inline struct hwk_sched *hwk_sched_of(struct request_queue *rq_queue)
{
	return rq_queue->elevator->elevator_data;
}

/* lock.c */
unsigned long hwk_lock(struct hwk_sched *sched);
void hwk_unlock_and_reap(struct hwk_sched *sched, unsigned long flags);
void hwk_unlock_irq_and_reap(struct hwk_sched *sched);

static __always_inline void hwk_unlock(struct hwk_sched *sched, unsigned long flags)
{
	if (likely(list_empty(&sched->q->reap)))
		spin_unlock_irqrestore(&sched->lock, flags);
	else
		hwk_unlock_and_reap(sched, flags);
}

/* For process context, where interrupts are on. */
static __always_inline void hwk_unlock_irq(struct hwk_sched *sched)
{
	if (likely(list_empty(&sched->q->reap)))
		spin_unlock_irq(&sched->lock);
	else
		hwk_unlock_irq_and_reap(sched);
}

static __always_inline void hwk_set_now(struct hwk_sched *sched, u64 now)
{
	sched->now = max(sched->now, now);
}

/* requests.c */
void hwk_changed(struct hwk_sched *sched, unsigned long flags);
void hwk_changed_silently(struct hwk_sched *sched);
enum hrtimer_restart hwk_timer(struct hrtimer *timer);
void hwk_prepare_request(struct request *rq);
void hwk_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, blk_insert_t how);
bool hwk_has_work(struct blk_mq_hw_ctx *hctx);
struct request *hwk_dispatch_request(struct blk_mq_hw_ctx *hctx);
void hwk_completed_request(struct request *rq, u64 now);
void hwk_finish_request(struct request *rq);

/* merge.c */
bool hwk_bio_merge(struct request_queue *rq_queue, struct bio *bio, unsigned int nr_segs);
bool hwk_allow_merge(struct request_queue *rq_queue, struct request *rq, struct bio *bio);
void hwk_unmergeable(struct hw_queue *q, struct hw_request *hwrq);
int hwk_request_merge(struct request_queue *rq_queue, struct request **req, struct bio *bio);
void hwk_request_merged(struct request_queue *rq_queue, struct request *rq, enum elv_merge type);
void hwk_requests_merged(struct request_queue *rq_queue, struct request *keep,
			 struct request *gone);
struct request *hwk_former_request(struct request_queue *rq_queue, struct request *rq);
struct request *hwk_next_request(struct request_queue *rq_queue, struct request *rq);

/* tasks.c */
struct hwk_task_mem *hwk_task_alloc(const struct hw_policy *policy, gfp_t gfp);
struct hw_task *hwk_task_add(struct hwk_sched *sched, struct hwk_task_mem *mem, u32 id, u16 ioprio);
void hwk_init_icq(struct io_cq *icq);
void hwk_exit_icq(struct io_cq *icq);

/* groups.c */
#ifdef HWK_GROUPS
struct hw_group *hwk_find_group(const struct bio *bio);
/* The disk's control groups become groups of the policy. 0 or a negative errno. */
int hwk_groups_begin(struct hwk_sched *sched);
void hwk_groups_end(struct hwk_sched *sched);
void hwk_groups_register(void);
void hwk_groups_unregister(void);
#else
static inline struct hw_group *hwk_find_group(const struct bio *bio)
{
	return NULL;
}

static inline int hwk_groups_begin(struct hwk_sched *sched)
{
	return 0;
}

static inline void hwk_groups_end(struct hwk_sched *sched)
{
}

static inline void hwk_groups_register(void)
{
}

static inline void hwk_groups_unregister(void)
{
}
#endif

/* Whose account @bio goes on; NULL: the root's. */
static __always_inline struct hw_group *hwk_group_of(const struct hwk_sched *sched,
						     const struct bio *bio)
{
	return unlikely(sched->groups) ? hwk_find_group(bio) : NULL;
}

/* tables.c */
/* Files for the policy's tables, hw_table_count() of them. */
int hwk_table_attributes(const struct hw_policy *policy, struct elv_fs_entry *entry);
void hwk_tables_free(struct hwk_sched *sched);

/* counters.c */
/* Two files, for a policy that keeps counters. */
void hwk_counters_attributes(const struct hw_policy *policy, struct elv_fs_entry *entry);

/* sysfs.c */
int hwk_attributes_create(struct hwk_type *t);
void hwk_attributes_free(struct hwk_type *t);

#endif
