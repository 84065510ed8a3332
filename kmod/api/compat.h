/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What differs between kernels from 6.1 on; which variant holds is found by kmod/build, never by
 * version number.
 */
#ifndef HWK_API_COMPAT_H
#define HWK_API_COMPAT_H

#include <linux/blk-cgroup.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hrtimer.h>
#include <linux/iocontext.h>
#include <linux/module.h>
#include <linux/sbitmap.h>
#include <linux/utsname.h>

#include "api/private.h"

/* insert_requests: does its last argument, one flag or several, say the head of the queue? */
static inline bool hwk_insert_at_head(blk_insert_t how)
{
	return (__force u32)how & 1;
}

/*
 * The flag of requests that went through prepare_request (6.1: also without elv.priv, for flushes).
 */
#ifdef HWK_RQF_ELVPRIV
#define HWK_RQF_PREPARED RQF_ELVPRIV
#else
#define HWK_RQF_PREPARED RQF_USE_SCHED
#endif

static inline bool hwk_rotational(struct request_queue *rq_queue)
{
#ifdef blk_queue_rot /* 7.0; it had the opposite before */
	return blk_queue_rot(rq_queue);
#else
	return !blk_queue_nonrot(rq_queue);
#endif
}

static inline void hwk_timer_setup(struct hrtimer *timer,
				   enum hrtimer_restart (*fire)(struct hrtimer *))
{
#ifdef HWK_HRTIMER_SETUP
	hrtimer_setup(timer, fire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	timer->function = fire;
#endif
}

/*
 * queue/async_depth, from 7.0 on: how many scheduler tags requests other than synchronous reads may
 * take. The core leaves it to elevators to see to it, and to say what it is at first: no limit.
 */
#ifdef HWK_ASYNC_DEPTH
static inline u32 hwk_async_depth(const struct request_queue *rq_queue)
{
	return rq_queue->async_depth;
}

static inline void hwk_async_depth_reset(struct request_queue *rq_queue)
{
	rq_queue->async_depth = rq_queue->nr_requests;
}
#else
#define HWK_ASYNC_DEPTH 0
static inline u32 hwk_async_depth(const struct request_queue *rq_queue)
{
	return U32_MAX;
}

static inline void hwk_async_depth_reset(struct request_queue *rq_queue)
{
}
#endif

/*
 * Write-back throttling, where the kernel has it: off, unless it was set by hand, and on again. It
 * counts the writes of fsync together with the write-back that a policy holds back, so that fsync
 * waits for what is meant to wait.
 */
static inline void hwk_wbt(struct request_queue *rq_queue, bool on)
{
#ifdef HWK_WBT
#ifdef HWK_WBT_GIVEN_QUEUE /* 6.1 */
	struct request_queue *what = rq_queue;
#else
	struct gendisk *what = rq_queue->disk;
#endif

	if (!rq_queue->disk)
		return;
	if (on)
		wbt_enable_default(what);
	else
		wbt_disable_default(what);
#endif
}

/* The kernel notes of each request when the driver got it, or no longer does. */
static inline void hwk_note_issues(struct request_queue *rq_queue, bool on)
{
#ifdef HWK_STAT
	if (on)
		blk_stat_enable_accounting(rq_queue);
	else
		blk_stat_disable_accounting(rq_queue);
#endif
}

#ifdef HWK_GROUPS
static inline int hwk_groups_activate(struct request_queue *rq_queue,
				      const struct blkcg_policy *policy)
{
#ifdef HWK_GROUPS_GIVEN_QUEUE /* 6.1 */
	return blkcg_activate_policy(rq_queue, policy);
#else
	return blkcg_activate_policy(rq_queue->disk, policy);
#endif
}

static inline void hwk_groups_deactivate(struct request_queue *rq_queue,
					 const struct blkcg_policy *policy)
{
#ifdef HWK_GROUPS_GIVEN_QUEUE
	blkcg_deactivate_policy(rq_queue, policy);
#else
	blkcg_deactivate_policy(rq_queue->disk, policy);
#endif
}
#endif

/*
 * How far an allocation may look for one of @all tags: over the whole map, or in each word of 1 <<
 * @shift of it.
 */
static inline unsigned int hwk_shallow_depth(unsigned int shift, unsigned int all,
					     unsigned int depth)
{
#ifdef HWK_SHALLOW_PER_WORD
	return max_t(unsigned int, DIV_ROUND_UP(depth << shift, all), 1);
#else
	return depth;
#endif
}

/*
 * Symbol versions do not cover private structures, so a module built for another kernel would load
 * and crash. The release that the layouts were checked against must be the one that runs.
 */
static inline int hwk_check_release(void)
{
	if (!strcmp(init_utsname()->release, HWK_KERNEL_RELEASE))
		return 0;
	pr_err("built for kernel %s, this is %s\n", HWK_KERNEL_RELEASE, init_utsname()->release);
	return -ENOEXEC;
}

#endif
