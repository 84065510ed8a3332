// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tasks: a policy's task area hangs on the io_cq of (process, disk), and outlives it for as long as
 * the policy likes.
 */
#include "iosched/requests.h"

#include <linux/slab.h>

static struct hw_ktask *hw_ktask(struct hw_task *task)
{
	return container_of((u8(*)[])task, struct hw_ktask, area);
}

static void hw_take_reaped(struct hw_disk *disk, struct list_head *reaped)
{
	struct hw_task *task;

	list_splice_init(&disk->q->reap, reaped);
	list_for_each_entry(task, reaped, reap)
		list_del(&hw_ktask(task)->all);
}

static void hw_free_reaped(struct list_head *reaped)
{
	struct hw_task *task, *next;

	list_for_each_entry_safe(task, next, reaped, reap)
		kfree(hw_ktask(task));
}

void hw_unlock_and_reap(struct hw_disk *disk, unsigned long flags)
{
	LIST_HEAD(reaped);

	hw_take_reaped(disk, &reaped);
	spin_unlock_irqrestore(&disk->lock, flags);
	hw_free_reaped(&reaped);
}

void hw_unlock_irq_and_reap(struct hw_disk *disk)
{
	LIST_HEAD(reaped);

	hw_take_reaped(disk, &reaped);
	spin_unlock_irq(&disk->lock);
	hw_free_reaped(&reaped);
}

/* Memory for a task; the caller makes it known to the policy. */
struct hw_ktask *hw_ktask_alloc(const struct hw_policy *policy, gfp_t gfp)
{
	return kzalloc(sizeof(struct hw_ktask) + policy->task_size, gfp);
}

struct hw_task *hw_ktask_start(struct hw_disk *disk, struct hw_ktask *kt, u32 id, u16 ioprio)
{
	struct hw_task *task = (struct hw_task *)kt->area;

	task->id = id;
	task->ioprio = ioprio;
	list_add_tail(&kt->all, &disk->all_tasks);
	hw_task_start(disk->q, task, disk->now);
	return task;
}

/* io_context.lock held, so no sleep. Without memory the process counts as nobody in particular. */
void hw_init_icq(struct io_cq *icq)
{
	struct hw_disk *disk = hw_disk_of(icq->q);
	struct hw_ktask *kt = hw_ktask_alloc(disk->policy, GFP_ATOMIC | __GFP_NOWARN);
	unsigned long flags;

	hw_icq(icq)->disk = disk;
	hw_icq(icq)->task = NULL;
	if (!kt)
		return;
	flags = hw_lock(disk);
	hw_icq(icq)->task = hw_ktask_start(disk, kt, current->pid, icq->ioc->ioprio);
	hw_unlock(disk, flags);
}

void hw_exit_icq(struct io_cq *icq)
{
	struct hw_disk *disk = hw_icq(icq)->disk;
	struct hw_task *task;
	unsigned long flags;

	flags = hw_lock(disk);
	task = hw_icq(icq)->task;
	hw_icq(icq)->task = NULL;
	if (task) {
		hw_task_exit(disk->q, task, disk->now);
		hw_changed_silently(disk);
	}
	hw_unlock(disk, flags);
}
