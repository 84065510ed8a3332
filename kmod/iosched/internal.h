/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One disk under one of our elevators: what the glue keeps beside the policy's own state. */
#ifndef HW_KMOD_IOSCHED_INTERNAL_H
#define HW_KMOD_IOSCHED_INTERNAL_H

#include "api/compat.h"
#include "core/elevator.h"

/* An elevator as the kernel knows it, and the policy behind it. */
struct hw_type {
	struct elevator_type type;
	const struct hw_policy *policy;
	char name[16];
	struct elv_fs_entry *attributes;
};

/* A task's memory outlives its io_cq for as long as the policy refers to it. */
struct hw_ktask {
	struct list_head all;
	u8 area[] __aligned(8); /* policy->task_size: struct hw_task first */
};

struct hw_icq {
	struct io_cq icq;     /* first */
	struct hw_task *task; /* under the disk's lock; NULL once it has exited */
	struct hw_disk *disk;
};

struct hw_disk {
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
	struct list_head all_tasks;
	struct hw_task *anyone;	 /* whoever cannot be told apart */
	struct hw_task *merging; /* who submits the bio that is being merged */
};

static inline struct hw_disk *hw_disk_of(struct request_queue *rq_queue)
{
	return rq_queue->elevator->elevator_data;
}

/* requests.c */
unsigned long hw_lock(struct hw_disk *disk);
void hw_changed(struct hw_disk *disk, unsigned long flags);
void hw_changed_silently(struct hw_disk *disk);
enum hrtimer_restart hw_timer(struct hrtimer *timer);
void hw_prepare_request(struct request *rq);
void hw_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, hw_insert_t how);
bool hw_has_work(struct blk_mq_hw_ctx *hctx);
struct request *hw_dispatch_request(struct blk_mq_hw_ctx *hctx);
void hw_completed_request(struct request *rq, u64 now);
void hw_finish_request(struct request *rq);

/* merge.c */
bool hw_bio_merge(struct request_queue *rq_queue, struct bio *bio, unsigned int nr_segs);
bool hw_allow_merge(struct request_queue *rq_queue, struct request *rq, struct bio *bio);
void hw_unmergeable(struct hw_queue *q, struct hw_request *hwrq);
int hw_request_merge(struct request_queue *rq_queue, struct request **req, struct bio *bio);
void hw_request_merged(struct request_queue *rq_queue, struct request *rq, enum elv_merge type);
void hw_requests_merged(struct request_queue *rq_queue, struct request *keep, struct request *gone);
struct request *hw_former_request(struct request_queue *rq_queue, struct request *rq);
struct request *hw_next_request(struct request_queue *rq_queue, struct request *rq);

/* tasks.c */
struct hw_ktask *hw_ktask_alloc(const struct hw_policy *policy, gfp_t gfp);
struct hw_task *hw_ktask_start(struct hw_disk *disk, struct hw_ktask *kt, u32 id, u16 ioprio);
void hw_unlock_and_reap(struct hw_disk *disk, unsigned long flags);
void hw_unlock_irq_and_reap(struct hw_disk *disk);
void hw_init_icq(struct io_cq *icq);
void hw_exit_icq(struct io_cq *icq);

static __always_inline void hw_unlock(struct hw_disk *disk, unsigned long flags)
{
	if (likely(list_empty(&disk->q->reap)))
		spin_unlock_irqrestore(&disk->lock, flags);
	else
		hw_unlock_and_reap(disk, flags);
}

/* For process context, where interrupts are on. */
static __always_inline void hw_unlock_irq(struct hw_disk *disk)
{
	if (likely(list_empty(&disk->q->reap)))
		spin_unlock_irq(&disk->lock);
	else
		hw_unlock_irq_and_reap(disk);
}

static __always_inline void hw_set_now(struct hw_disk *disk, u64 now)
{
	disk->now = max(disk->now, now);
}

/* sysfs.c */
int hw_attributes_create(struct hw_type *t);
void hw_attributes_free(struct hw_type *t);

#endif
