// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The lock around every call of the policy, taken with the clock, and given back with the memory of
 * the tasks that the policy has let go meanwhile. Calls nothing else of the glue.
 */
#include "iosched/internal.h"

#include <linux/slab.h>

unsigned long hwk_lock(struct hwk_sched *sched)
{
	unsigned long flags;
	u64 now = ktime_get_ns();

	spin_lock_irqsave(&sched->lock, flags);
	hwk_set_now(sched, now);
	return flags;
}

static struct hwk_task_mem *mem_of(struct hw_task *task)
{
	return container_of((u8(*)[])task, struct hwk_task_mem, area);
}

static void take_reaped(struct hwk_sched *sched, struct list_head *reaped)
{
	struct hw_task *task;

	list_splice_init(&sched->q->reap, reaped);
	list_for_each_entry(task, reaped, reap)
		list_del(&mem_of(task)->all);
}

static void free_reaped(struct list_head *reaped)
{
	struct hw_task *task, *next;

	list_for_each_entry_safe(task, next, reaped, reap)
		kfree(mem_of(task));
}

void hwk_unlock_and_reap(struct hwk_sched *sched, unsigned long flags)
{
	LIST_HEAD(reaped);

	take_reaped(sched, &reaped);
	spin_unlock_irqrestore(&sched->lock, flags);
	free_reaped(&reaped);
}

void hwk_unlock_irq_and_reap(struct hwk_sched *sched)
{
	LIST_HEAD(reaped);

	take_reaped(sched, &reaped);
	spin_unlock_irq(&sched->lock);
	free_reaped(&reaped);
}
