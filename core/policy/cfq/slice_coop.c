// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cfq-slice: processes that read side by side share a queue.
 *
 * A process that has nothing to send need not be waited for if another of the same priority wants
 * the very sectors under the head. Such a close cooperator is served at once, and the two queues
 * are marked for merging: with its next request, each process of the one that has fewer goes over
 * to the other. When a shared queue has been seeky for more than a second, the cooperation is over,
 * and its processes leave it one by one.
 *
 * Queues lie in the memory of tasks, one slot each, because a policy does not allocate. Which task
 * lends the slot does not matter: a process that leaves a shared queue may find its own slot still
 * used by those who remain. There are as many slots as tasks; in the rare case that all are taken
 * (by queues left by their processes, but not yet drained) a process shares the device's own queue
 * until one is free. A queue in use keeps the lender's memory.
 */
#include "core/policy/cfq/internal.h"

void cs_queue_init(struct cs_queue *c, bool sync, u8 class, u8 prio)
{
	struct hw_task *owner = c->owner;

	memset(c, 0, sizeof(*c));
	INIT_LIST_HEAD(&c->fifo);
	INIT_LIST_HEAD(&c->spare);
	RB_CLEAR_NODE(&c->node);
	c->owner = owner;
	c->sync = sync;
	c->class = class;
	c->prio = prio;
	c->idle_window = sync && class != HW_IOPRIO_IDLE;
}

/* --- who is near --- */

static struct cs_queue *near_entry(struct rb_node *n)
{
	return n ? rb_entry(n, struct cs_queue, near) : NULL;
}

/* The next request of @c, or its place, has changed. */
void cs_near_update(struct cs_device *d, struct cs_queue *c)
{
	struct rb_node **link, *parent = NULL;

	if (c->near_root)
		rb_erase(&c->near, c->near_root);
	c->near_root = NULL;
	if (!c->next || c->class == HW_IOPRIO_IDLE)
		return;
	c->near_root = &d->near[c->prio];
	link = &c->near_root->rb_node;
	while (*link) {
		parent = *link;
		link = c->next->rq.sector < near_entry(parent)->next->rq.sector ? &parent->rb_left :
										  &parent->rb_right;
	}
	rb_link_node(&c->near, parent, link);
	rb_insert_color(&c->near, c->near_root);
}

/*
 * The queue of priority @prio whose next request lies at the head, or else nearest below, or else
 * nearest above it.
 */
static struct cs_queue *nearest(struct cs_device *d, struct cs_queue *c)
{
	struct cs_queue *below = NULL, *above = NULL;
	struct rb_node *n = d->near[c->prio].rb_node;

	while (n) {
		struct cs_queue *at = near_entry(n);

		if (at->next->rq.sector < d->last_position) {
			below = at;
			n = n->rb_right;
		} else {
			above = at;
			n = n->rb_left;
		}
	}
	if (above && above->next->rq.sector == d->last_position)
		return above;
	if (below && cs_is_near(d, c, below->next->rq.sector))
		return below;
	if (above && cs_is_near(d, c, above->next->rq.sector))
		return above;
	return NULL;
}

struct cs_queue *cs_close_cooperator(struct cs_device *d, struct cs_queue *c)
{
	struct cs_queue *other;

	if (!c->sync || cs_seeky(c))
		return NULL;
	other = nearest(d, c);
	return other && other->sync && !cs_seeky(other) ? other : NULL;
}

/* --- merging and splitting --- */

/*
 * The processes of one queue shall go over to the other: fewer to more. Chains end at the queue
 * that is going nowhere.
 */
void cs_plan_merge(struct cs_device *d, struct cs_queue *c, struct cs_queue *other)
{
	struct cs_queue *from = c, *to;

	if (c->merge_into)
		return;
	/* Two that look up their files in the same table have only that in common. */
	if (!d->learn_meta && (d->last_meta || (other->next->rq.flags & HW_RQ_META)))
		return;
	while (other->merge_into)
		other = other->merge_into;
	if (other == c || !c->owner || !other->owner || !(c->users + c->joining))
		return;
	to = other;
	if (other->users + other->joining < c->users + c->joining) {
		from = other;
		to = c;
	}
	from->merge_into = to;
	to->joining++;
}

/* Back among the spare queues, once nobody has use for it any more and it has drained. */
void cs_retire(struct cs_device *d, struct cs_queue *c)
{
	if (!c->in_use || c->users || c->joining || c->queued || c->dispatched || c == d->active)
		return;
	c->in_use = false;
	if (!c->owner->exited)
		list_add_tail(&c->spare, &d->spare);
	hw_task_put(&d->q, c->owner);
}

/* A process has left @c. If it was the last, nobody will follow c's redirection any more. */
static void leave_queue(struct cs_device *d, struct cs_queue *c)
{
	c->users--;
	while (c && !c->users && !c->joining) {
		struct cs_queue *to = c->merge_into;

		c->merge_into = NULL;
		cs_retire(d, c);
		if (to)
			to->joining--;
		c = to;
	}
}

/* A queue of @t's own: in its own slot if that is free, or in another's. NULL: there is none. */
static struct cs_queue *claim(struct cs_device *d, struct cs_task *t)
{
	struct cs_queue *c = &t->slot;

	if (c->in_use) {
		if (list_empty(&d->spare))
			return NULL;
		c = list_first_entry(&d->spare, struct cs_queue, spare);
	}
	list_del_init(&c->spare);
	cs_queue_init(c, true, HW_IOPRIO_BE, CS_PRIO_DEFAULT);
	c->in_use = true;
	c->users = 1;
	hw_task_get(c->owner);
	return c;
}

static struct cs_queue *split(struct cs_device *d, struct cs_task *t)
{
	struct cs_queue *shared = t->sync, *own;

	if (shared->users == 1) {
		shared->coop = false;
		shared->seeky_since = 0;
		return shared;
	}
	own = claim(d, t);
	if (!own)
		return shared;
	t->sync = own;
	leave_queue(d, shared);
	d->splits++;
	return own;
}

/* Where the next synchronous request of @task goes. */
struct cs_queue *cs_sync_queue(struct cs_device *d, struct hw_task *task)
{
	struct cs_task *t = cs_task(task);
	struct cs_queue *c, *into;

	if (!task)
		return &d->nobody;
	if (!t->sync) {
		t->sync = claim(d, t);
		return t->sync ? t->sync : &d->nobody;
	}
	c = t->sync;
	if (c->coop && c->seeky_since && d->tick > c->seeky_since + d->coop_timeout)
		c = split(d, t);
	while ((into = c->merge_into)) {
		into->users++;
		into->coop = true;
		t->sync = into;
		leave_queue(d, c);
		d->merges++;
		c = into;
	}
	return c;
}

void cs_task_add(struct cs_device *d, struct cs_task *t)
{
	t->slot.owner = &t->task;
	cs_queue_init(&t->slot, true, HW_IOPRIO_BE, CS_PRIO_DEFAULT);
	list_add_tail(&t->slot.spare, &d->spare);
}

void cs_task_del(struct cs_device *d, struct cs_task *t)
{
	if (t->sync)
		leave_queue(d, t->sync);
	t->sync = NULL;
	if (!t->slot.in_use)
		list_del_init(&t->slot.spare);
}
