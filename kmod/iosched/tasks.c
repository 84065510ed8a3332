// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tasks: a policy's task area hangs on the io_cq of (process, disk), and outlives it for as long as
 * the policy likes.
 */
#include "iosched/requests.h"

#include <linux/slab.h>

/* Memory for a task; the caller makes it known to the policy. */
struct hwk_task_mem *hwk_task_alloc(const struct hw_policy *policy, gfp_t gfp)
{
	return kzalloc(sizeof(struct hwk_task_mem) + policy->task_size, gfp);
}

struct hw_task *hwk_task_add(struct hwk_sched *sched, struct hwk_task_mem *mem, u32 id, u16 ioprio)
{
	struct hw_task *task = (struct hw_task *)mem->area;

	task->id = id;
	task->ioprio = ioprio;
	list_add_tail(&mem->all, &sched->all_tasks);
	hw_task_start(sched->q, task, sched->now);
	return task;
}

/* io_context.lock held, so no sleep. Without memory the process counts as nobody in particular. */
void hwk_init_icq(struct io_cq *icq)
{
	struct hwk_sched *sched = hwk_sched_of(icq->q);
	struct hwk_task_mem *mem = hwk_task_alloc(sched->policy, GFP_ATOMIC | __GFP_NOWARN);
	unsigned long flags;

	hwk_icq(icq)->sched = sched;
	hwk_icq(icq)->task = NULL;
	if (!mem)
		return;
	flags = hwk_lock(sched);
	hwk_icq(icq)->task = hwk_task_add(sched, mem, current->pid, icq->ioc->ioprio);
	hwk_unlock(sched, flags);
}

void hwk_exit_icq(struct io_cq *icq)
{
	struct hwk_sched *sched = hwk_icq(icq)->sched;
	struct hw_task *task;
	unsigned long flags;

	flags = hwk_lock(sched);
	task = hwk_icq(icq)->task;
	hwk_icq(icq)->task = NULL;
	if (task) {
		hw_task_exit(sched->q, task, sched->now);
		hwk_changed_silently(sched);
	}
	hwk_unlock(sched, flags);
}
