// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What every host would otherwise do for itself around a policy: counts, references, tunables, the
 * clock of waits.
 */
#include "core/elevator.h"
#include "core/lib/names.h"

#define HW_ENOENT 2
#define HW_ERANGE 34

const struct hw_policy *hw_policy_find(const char *name)
{
	const struct hw_policy *const *p;

	for (p = hw_policies; name && *p; p++)
		if (hw_same_name((*p)->name, name))
			return *p;
	return NULL;
}

static s64 *tunable_slot(const struct hw_queue *q, const struct hw_tunable *t)
{
	return (s64 *)((char *)q + t->offset);
}

void hw_queue_prepare(struct hw_queue *q, const struct hw_policy *policy)
{
	u32 i;

	q->policy = policy;
	q->wake_ns = HW_NEVER;
	INIT_LIST_HEAD(&q->reap);
	INIT_LIST_HEAD(&q->reap_groups);
	for (i = 0; i < policy->nr_tunables; i++)
		*tunable_slot(q, &policy->tunables[i]) = policy->tunables[i].def;
}

int hw_start(struct hw_queue *q, u64 now)
{
	int ret = q->policy->init ? q->policy->init(q, now) : 0;

	if (!ret)
		hw_tuned(q);
	return ret;
}

const struct hw_tunable *hw_tunable_find(const struct hw_policy *policy, const char *name)
{
	u32 i;

	for (i = 0; i < policy->nr_tunables; i++)
		if (hw_same_name(policy->tunables[i].name, name))
			return &policy->tunables[i];
	return NULL;
}

int hw_tunable_set(struct hw_queue *q, const char *name, s64 value)
{
	const struct hw_tunable *t = hw_tunable_find(q->policy, name);

	if (!t)
		return -HW_ENOENT;
	if (value < t->min || value > t->max)
		return -HW_ERANGE;
	*tunable_slot(q, t) = value;
	return 0;
}

s64 hw_tunable_get(const struct hw_queue *q, const struct hw_tunable *t)
{
	return *tunable_slot(q, t);
}

int hw_stat_get(const struct hw_queue *q, const char *name, s64 *value)
{
	u32 i;

	for (i = 0; i < q->policy->nr_stats; i++) {
		if (hw_same_name(q->policy->stats[i].name, name)) {
			*value = q->policy->stats[i].get(q);
			return 0;
		}
	}
	return -HW_ENOENT;
}

void hw_task_start(struct hw_queue *q, struct hw_task *task, u64 now)
{
	task->created_ns = now;
	task->exited = false;
	INIT_LIST_HEAD(&task->reap);
	if (q->policy->task_init)
		q->policy->task_init(q, task, now);
}

void hw_task_exit(struct hw_queue *q, struct hw_task *task, u64 now)
{
	/* The reference keeps the task whole while the policy says goodbye. */
	hw_task_get(task);
	task->exited = true;
	if (q->policy->task_exit)
		q->policy->task_exit(q, task, now);
	hw_task_put(q, task);
}

void hw_group_start(struct hw_queue *q, struct hw_group *group, u32 weight)
{
	group->weight = weight;
	group->refs = 1;
	INIT_LIST_HEAD(&group->reap);
	if (group->parent)
		hw_group_get(group->parent);
	q->policy->group_init(q, group);
}

void hw_group_put(struct hw_queue *q, struct hw_group *group)
{
	while (group && --group->refs == 0) {
		q->policy->group_exit(q, group);
		list_add_tail(&group->reap, &q->reap_groups);
		group = group->parent;
	}
}

void hw_requeue(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	q->nr_in_flight--;
	q->nr_queued++;
	rq->state = HW_QUEUED;
	if (q->policy->requeue) {
		q->policy->requeue(q, rq, now);
		return;
	}
	rq->flags |= HW_RQ_AT_HEAD;
	q->policy->insert(q, rq, now);
}

void hw_merge_requests(struct hw_queue *q, struct hw_request *keep, struct hw_request *gone)
{
	q->policy->merged_requests(q, keep, gone);
	gone->state = HW_MERGED;
	q->nr_queued--;
	if (gone->task)
		hw_task_put(q, gone->task);
	if (gone->group)
		hw_group_put(q, gone->group);
}
