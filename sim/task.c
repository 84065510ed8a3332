// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tasks as the policy knows them: there from their first I/O until their exit, and as long as
 * anything refers to them.
 */
#include "sim/internal.h"

struct hw_task *sim_task_of(struct hws *s, u32 index)
{
	struct sim_task *t = &s->tasks[index];

	if (!t->task) {
		t->task = sim_hw_task_new(s);
		t->task->id = index;
		t->task->ioprio = t->ioprio;
		t->task->share = t->share;
		hw_task_start(s->q, t->task, s->now);
	}
	return t->task;
}

struct hw_group *sim_group_of(struct hws *s, u32 group)
{
	struct sim_group *g;

	if (likely(!group || !s->policy->group_size))
		return NULL;
	g = &s->groups[group - 1];
	if (!g->group) {
		g->group = sim_alloc(s, s->policy->group_size);
		g->group->parent = sim_group_of(s, g->parent);
		hw_group_start(s->q, g->group, g->weight);
	}
	return g->group;
}

void sim_task_reap(struct hws *s)
{
	while (!list_empty(&s->q->reap)) {
		struct hw_task *t = list_first_entry(&s->q->reap, struct hw_task, reap);

		list_del(&t->reap);
		if (s->tasks[t->id].task == t)
			s->tasks[t->id].task = NULL;
		sim_hw_task_free(s, t);
	}
}

void sim_task_exit(struct hws *s, u32 index)
{
	struct sim_task *t = &s->tasks[index];
	struct hw_task *task = t->task;

	if (!task)
		return;
	/* Who waits for a request is in the kernel, and exits when it has come out. */
	t->exiting = t->nr_waiting;
	if (t->exiting)
		return;
	/* Should the task come back, the policy meets a new one. */
	t->task = NULL;
	hw_task_exit(s->q, task, s->now);
	sim_log_waits(s);
}
