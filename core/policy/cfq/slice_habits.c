// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cfq-slice: what is known of processes and queues, and whether they are worth waiting for.
 *
 * Of a process: how long it thinks between the completion of a request and its next. Of a queue:
 * how far apart its requests lie. Both are means in which the last eight count most.
 */
#include "core/policy/cfq/internal.h"

static void learn_think(struct cs_device *d, struct cs_task *t)
{
	hw_decay_think(&t->think, min(d->tick - t->last_end, 2 * d->idle));
}

static void learn_seek(struct cs_device *d, struct cs_queue *c, const struct hw_request *rq)
{
	u64 distance;

	/* Where the file system keeps its tables says nothing of where the process will read on. */
	if ((rq->flags & HW_RQ_META) && !d->learn_meta)
		return;
	distance = c->last_pos ? hw_apart(rq->sector, c->last_pos) : 0;
	hw_decay_seek(&c->seek, hw_seek_clamp(&c->seek, distance));
	c->last_pos = hw_end(rq);
	if (!cs_seeky(c))
		c->seeky_since = 0;
	else if (c->coop && !c->seeky_since)
		c->seeky_since = d->tick;
}

static void update_idle_window(struct cs_device *d, struct cs_queue *c, const struct hw_task *task)
{
	const struct cs_task *t = task ? container_of(task, const struct cs_task, task) : NULL;
	u64 idle = d->idle;

	if (!c->sync || c->class == HW_IOPRIO_IDLE)
		return;
	if ((task && task->exited) || !idle || (!d->low_latency && d->has_tags && cs_seeky(c))) {
		c->idle_window = false;
		return;
	}
	if (!t || !hw_decay_valid(&t->think))
		return;
	if (hw_decay_valid(&c->seek) && cs_seeky(c))
		idle = d->idle_seeky;
	c->idle_window = t->think.mean <= idle;
}

/* @rq has come to @c. */
void cs_learn(struct cs_device *d, struct cs_queue *c, const struct hw_request *rq)
{
	if (rq->task)
		learn_think(d, cs_task(rq->task));
	learn_seek(d, c, rq);
	update_idle_window(d, c, rq->task);
}
