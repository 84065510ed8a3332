// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queues and tasks: whose requests go to which queue, from a task's first request through merging
 * and splitting to its end.
 *
 * Two processes that read one region by turns (a dump's threads, a virtual machine's I/O threads)
 * are served best from one queue. When a young queue gets a request close to where the disk works,
 * or close to another queue's next one, its process is redirected to that queue; when the shared
 * queue has become seeky, its processes get queues of their own again, with the state they had
 * saved. Queues created one right after the other with equal priority are merged without any
 * closeness (*stable* merge): at once on flash with command queueing, elsewhere after 600 ms,
 * unless idling serves the queue better.
 *
 * Memory: a task has room for three queues. A queue lives in the task for which it was created, and
 * keeps that task's memory for as long as other tasks use it.
 */
#include "core/policy/bfq/internal.h"

#define LATE_MS 600 /* age at which a delayed stable merge is decided */

static u16 sane_ioprio(const struct hw_request *rq, const struct hw_task *task)
{
	u16 p = HW_IOPRIO_CLASS(task->ioprio) ? task->ioprio : rq->ioprio;

	switch (HW_IOPRIO_CLASS(p)) {
	case HW_IOPRIO_RT:
	case HW_IOPRIO_BE:
		return HW_IOPRIO(HW_IOPRIO_CLASS(p), HW_IOPRIO_LEVEL(p));
	case HW_IOPRIO_IDLE:
		return HW_IOPRIO(HW_IOPRIO_IDLE, BFQ_NR_LEVELS - 1);
	default:
		return HW_IOPRIO(HW_IOPRIO_BE, 4);
	}
}

/* ---- the ways of a task ---- */

/* A task, or a promise of one, leaves @bq. */
static void leave(struct bfq *b, struct bfq_queue *bq)
{
	if (bq->busy && bfq_empty(bq) && bq != b->in_service)
		bfq_unmark_busy(b, bq, false);
	if (b->last_created == bq)
		b->last_created = NULL;
	bq->users--;
	bfq_drop(b, bq);
}

static void give_up_stable(struct bfq *b, struct bfq_task *task)
{
	struct bfq_queue *bq = task->stable_merge;

	if (!bq)
		return;
	task->stable_merge = NULL;
	bq->stable_refs--;
	bfq_drop(b, bq);
}

static void redirect(struct bfq *b, struct bfq_task *task, struct bfq_queue *bq, bool sync)
{
	struct bfq_queue *old = task->queue[sync];

	if (old && old->owner == task)
		old->owner = NULL;
	task->queue[sync] = bq;
	/* A queue is not merged with itself after a split. */
	if (bq && task->stable_merge == bq)
		give_up_stable(b, task);
}

/* The queues that @bq was to be merged into expect one task less. */
static void break_promises(struct bfq *b, struct bfq_queue *bq)
{
	struct bfq_queue *into, *next;

	for (into = bq->merge_into; into; into = next) {
		next = into->merge_into;
		into->users--;
		bfq_drop(b, into);
	}
}

void bfq_forget_task(struct bfq *b, struct bfq_task *task)
{
	struct bfq_queue *bq;
	int sync;

	give_up_stable(b, task);
	for (sync = 1; sync >= 0; sync--) {
		bq = task->queue[sync];
		if (!bq)
			continue;
		redirect(b, task, NULL, sync);
		if (bq == b->in_service)
			bfq_leave_service(b, bq, BFQ_NO_MORE_REQUESTS);
		break_promises(b, bq);
		leave(b, bq);
	}
}

/* ---- merging ---- */

/* Agree that @bq's tasks shall go to @into, or to where its own go. NULL if that cannot be. */
static struct bfq_queue *agree(struct bfq_queue *bq, struct bfq_queue *into)
{
	if (!into->users)
		return NULL;
	for (; into->merge_into; into = into->merge_into)
		if (into->merge_into == bq)
			return NULL;
	if (!bq->users || !into->users)
		return NULL;
	bq->merge_into = into;
	into->users += bq->users;
	return into;
}

static void save_state(struct bfq *b, struct bfq_queue *bq)
{
	struct bfq_saved *s;

	if (!bq->owner)
		return;
	s = &bq->owner->saved;
	s->inject = bq->inject;
	s->weight = bq->own_weight;
	s->think = bq->think;
	s->short_think = bq->short_think;
	s->io_bound = bq->io_bound;
	s->io_start_ns = bq->io_start_ns;
	s->idle_total_ns = bq->idle_total_ns;
	s->in_large_burst = bq->in_large_burst;
	s->in_burst_list = !list_empty(&bq->burst_link);
	if (bq->just_created && !bq->in_large_burst && b->low_latency) {
		/* Merged before its first request made it interactive: what it would have got. */
		s->raise.coeff = BFQ_INTERACTIVE_COEFF;
		s->raise.interactive_start = BFQ_TICK_NEVER;
		s->raise.duration = bfq_raise_duration(b);
		s->raise.start = b->tick;
	} else {
		s->raise = bq->raise;
	}
}

static void restore_state(struct bfq *b, struct bfq_queue *bq, struct bfq_task *task, bool existing)
{
	const struct bfq_saved *s = &task->saved;
	u32 was = bq->raise.coeff;

	bq->short_think = s->short_think;
	bq->io_bound = s->io_bound;
	bq->inject = s->inject;
	bq->new_weight = s->weight;
	bq->think = s->think;
	bq->io_start_ns = s->io_start_ns;
	bq->idle_total_ns = s->idle_total_ns;
	bq->raise = s->raise;
	if (!b->low_latency)
		bq->raise.coeff = was;
	if (bfq_raised(bq) &&
	    (bq->in_large_burst || bfq_past(b, bq->raise.start, bq->raise.duration))) {
		if (bq->raise.duration == b->span.soft_rt && !bq->in_large_burst &&
		    !bfq_past(b, bq->raise.interactive_start, bfq_raise_duration(b)))
			bfq_back_to_interactive(b, bq);
		else
			bq->raise.coeff = 1;
	}
	bq->prio_changed = true;
	if (!existing || !bq->busy)
		return;
	if (was == 1 && bfq_raised(bq))
		b->nr_busy_raised++;
	else if (was > 1 && !bfq_raised(bq))
		b->nr_busy_raised--;
}

/* Redirect @task from @from one step along the agreed way. */
static struct bfq_queue *merge_step(struct bfq *b, struct bfq_task *task, struct bfq_queue *from)
{
	struct bfq_queue *into = from->merge_into;

	save_state(b, from);
	save_state(b, into);
	into->io_bound |= from->io_bound;
	from->io_bound = false;
	if (from->waker && !into->waker && from->waker != into)
		bfq_set_waker(into, from->waker);
	if (bfq_raised(from)) {
		if (!bfq_raised(into) && b->low_latency) {
			u64 service = into->raise.service;

			into->raise = from->raise;
			into->raise.service = service;
			if (into->busy)
				b->nr_busy_raised++;
			into->prio_changed = true;
		}
		from->raise.coeff = 1;
		from->prio_changed = true;
		if (from->busy)
			b->nr_busy_raised--;
	}
	redirect(b, task, into, true);
	into->coop = true;
	into->owner = NULL;
	from->owner = NULL;
	if (b->last_created == from)
		b->last_created = into;
	leave(b, from);
	return into;
}

/* Redirect @task from @bq to @into, at the end of the agreed way. */
void bfq_merge_queues(struct bfq *b, struct bfq_task *task, struct bfq_queue *bq,
		      struct bfq_queue *into)
{
	while (bq != into)
		bq = merge_step(b, task, bq);
}

static bool may_cooperate(const struct bfq *b, const struct bfq_queue *bq,
			  const struct bfq_queue *other)
{
	return !bfq_too_late_to_merge(b, other) && bq->class == other->class &&
	       !bfq_idle_class(bq) && !bfq_seeky(bq) && !bfq_seeky(other) && bq->sync &&
	       other->sync;
}

static struct bfq_queue *late_stable_merge(struct bfq *b, struct bfq_queue *bq,
					   struct bfq_task *task)
{
	struct bfq_queue *candidate = task->stable_merge, *into = NULL;

	if (!bfq_idling_boosts(b, bq) && bq->users && candidate->users) {
		into = agree(bq, candidate);
		if (into) {
			task->stably_merged = true;
			if (into->owner)
				into->owner->stably_merged = true;
		}
	}
	give_up_stable(b, task);
	return into;
}

/* The queue that @task's requests shall go to from now on, if not @bq: it has one at @sector. */
struct bfq_queue *bfq_cooperator(struct bfq *b, struct bfq_queue *bq, u64 sector,
				 struct bfq_task *task)
{
	struct bfq_queue *other = bq->merge_into, *serving = b->in_service;
	s64 late = bfq_ms_to_ticks(b, LATE_MS);

	if (other) {
		while (other->merge_into)
			other = other->merge_into;
		return other;
	}
	if (b->nonrot_queueing)
		return NULL;
	if (bq->sync && task->stable_merge && !bq->just_created &&
	    bfq_past(b, bq->split_time, late) && bfq_past(b, bq->created, late))
		return late_stable_merge(b, bq, task);
	if (bfq_too_late_to_merge(b, bq) || bfq_nr_busy(b) == 1)
		return NULL;
	if (serving && serving != bq && bfq_close(sector, b->in_service_last_pos) &&
	    may_cooperate(b, bq, serving)) {
		other = agree(bq, serving);
		if (other)
			return other;
	}
	other = bfq_near(b, sector);
	if (other && other != bq && may_cooperate(b, bq, other))
		return agree(bq, other);
	return NULL;
}

/* ---- creation ---- */

/* A stable merge: at once, or noted for later. */
static struct bfq_queue *consider_stable(struct bfq *b, struct bfq_queue *bq, struct bfq_task *task)
{
	struct bfq_queue *last = b->last_created, *into;

	if (!last || last->created + b->span.stable < bq->created || last->class != bq->class ||
	    last->level != bq->level) {
		b->last_created = bq;
		return bq;
	}
	if (last->created + b->span.burst < bq->created)
		return bq;
	if (!b->nonrot_queueing) {
		last->stable_refs++;
		task->stable_merge = last;
		return bq;
	}
	into = agree(bq, last);
	if (!into)
		return bq;
	if (into->owner)
		into->owner->stably_merged = true;
	task->stably_merged = true;
	bq->owner = task;
	bfq_merge_queues(b, task, bq, into);
	return into;
}

static struct bfq_queue *free_queue(struct bfq_task *task)
{
	int i;

	for (i = 0; i < BFQ_TASK_QUEUES; i++)
		if (!task->own[i].in_use)
			return &task->own[i];
	return NULL;
}

static struct bfq_queue *sync_queue(struct bfq *b, struct bfq_task *task, bool split)
{
	struct bfq_queue *bq = free_queue(task);

	bfq_queue_init(b, bq, task, true, task->ioprio);
	hw_task_get(&task->task);
	bq->users = 1;
	return split ? bq : consider_stable(b, bq, task);
}

static struct bfq_queue *async_queue(struct bfq *b, u16 ioprio)
{
	u32 class = HW_IOPRIO_CLASS(ioprio);
	struct bfq_queue *bq = class == HW_IOPRIO_IDLE ?
				       &b->async_idle :
				       &b->async[class - HW_IOPRIO_RT][HW_IOPRIO_LEVEL(ioprio)];

	if (!bq->in_use) {
		bfq_queue_init(b, bq, NULL, false, ioprio);
		bq->permanent = true;
		bq->users = 1;
	}
	bq->users++;
	return bq;
}

static void follow_ioprio(struct bfq *b, struct bfq_task *task, u16 ioprio)
{
	struct bfq_queue *old = task->queue[0];

	if (task->ioprio == ioprio)
		return;
	task->ioprio = ioprio;
	if (old) {
		redirect(b, task, async_queue(b, ioprio), false);
		leave(b, old);
	}
	if (task->queue[1])
		bfq_plan_prio(task->queue[1], ioprio);
}

/*
 * A shared queue has become seeky: give @task one of its own again. NULL if it has no room left for
 * one.
 */
static struct bfq_queue *split(struct bfq *b, struct bfq_task *task, struct bfq_queue *shared)
{
	struct bfq_queue *bq, *waker = shared->waker;

	if (shared->in_large_burst)
		task->saved.in_large_burst = true;
	if (shared->users == 1) {
		shared->coop = false;
		shared->split_coop = false;
		return shared;
	}
	if (!free_queue(task))
		return NULL;
	redirect(b, task, NULL, true);
	break_promises(b, shared);
	leave(b, shared);
	bq = sync_queue(b, task, true);
	redirect(b, task, bq, true);
	if (task->saved.in_large_burst || (task->saved.in_burst_list && b->large_burst))
		bq->in_large_burst = true;
	else if (task->saved.in_burst_list)
		list_add(&bq->burst_link, &b->burst);
	bq->split_time = b->tick;
	bfq_set_waker(bq, waker);
	return bq;
}

/*
 * The queue that @rq, which has just arrived, belongs to; counted there. NULL: none, for its task
 * is not known, or has exited (a requeued request comes late).
 */
struct bfq_queue *bfq_queue_of(struct bfq *b, struct hw_request *rq)
{
	bool sync = hw_is_sync(rq), was_split = false, existing = false;
	struct bfq_queue *bq, *own;
	struct bfq_task *task;

	if (!rq->task || rq->task->exited)
		return NULL;
	task = bfq_task(rq->task);
	follow_ioprio(b, task, sane_ioprio(rq, rq->task));
	bq = task->queue[sync];
	if (!bq) {
		bq = sync ? sync_queue(b, task, false) : async_queue(b, task->ioprio);
		redirect(b, task, bq, sync);
	} else if (bq->coop && bq->split_coop && !task->stably_merged) {
		own = split(b, task, bq);
		if (own) {
			was_split = true;
			existing = own == bq;
			bq = own;
		}
	}
	bq->allocated++;
	task->requests++;
	bfq_rq(rq)->queue = bq;
	if (bq->users == 1) {
		bq->owner = task;
		if (was_split)
			restore_state(b, bq, task, existing);
	}
	if (bq->just_created && (b->burst_size || !bfq_nr_busy(b)))
		bfq_join_burst(b, bq);
	return bq;
}
