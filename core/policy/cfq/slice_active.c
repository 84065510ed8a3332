// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cfq-slice: the active queue. Who it is, how long its slice lasts, whether the disk is held idle
 * for it, how many of its requests may be in the device, and who takes the disk from it.
 *
 * The rules are told in slice.c, which calls this with every request that comes, is asked for or
 * completes.
 */
#include "core/policy/cfq/internal.h"

u32 cs_async_limit(const struct cs_device *d, const struct cs_queue *c)
{
	return (u32)min_t(s64, 2 * d->slice_async_rq * (1 + CS_PRIO_LOWEST - c->prio), U32_MAX);
}

static bool slice_used(const struct cs_queue *c, u64 tick)
{
	return !c->slice_new && tick >= c->slice_end;
}

static void start_clock(struct cs_device *d, struct cs_queue *c)
{
	if (!c->slice_new)
		return;
	c->slice_end = d->tick + cs_prio_slice(d, c->sync, c->prio);
	c->slice_new = false;
}

/* --- the wait and the end --- */

static void stop_idling(struct cs_device *d, enum hw_wait_outcome outcome)
{
	if (!d->timer_on)
		return;
	d->timer_on = false;
	d->active->wait_request = false;
	hw_wait_end(&d->q, outcome, d->now);
}

/*
 * @timed_out: it had its time, or was robbed of it; what is left of the slice then moves its next
 * place.
 */
void cs_expire_slice(struct cs_device *d, bool timed_out, enum hw_wait_outcome outcome,
		     enum hw_reason because)
{
	struct cs_queue *c = d->active;

	if (!c)
		return;
	d->because = (u8)because;
	stop_idling(d, outcome);
	if (timed_out && !c->slice_new)
		c->slice_resid = (s64)(c->slice_end - d->tick);
	if (c->queued)
		cs_tree_add(d, c, false);
	d->active = NULL;
	if (d->active_task)
		hw_task_put(&d->q, d->active_task);
	d->active_task = NULL;
	cs_retire(d, c);
}

static void activate(struct cs_device *d, struct cs_queue *c)
{
	d->active = c;
	if (!c)
		return;
	c->slice_end = 0;
	c->slice_new = true;
	c->slice_dispatched = 0;
	c->fifo_checked = false;
	c->wait_request = false;
	c->must_dispatch = false;
}

void cs_idle_timer_fires(struct cs_device *d)
{
	if (d->busy)
		cs_expire_slice(d, false, HW_WAIT_FAIL, HW_WAIT_OVER);
	else
		stop_idling(d, HW_WAIT_FAIL);
}

static void arm_idle_timer(struct cs_device *d, struct cs_queue *c)
{
	struct hw_task *task = d->active_task;
	u64 idle = d->idle;

	if ((!d->q.dev.rotational && d->has_tags) || !idle || !c->idle_window)
		return;
	if (d->in_driver[0] + d->in_driver[1] || !task || task->exited)
		return;
	/* It would use up more than the rest of its slice with thinking. */
	if (hw_decay_valid(&cs_task(task)->think) &&
	    c->slice_end - d->tick < cs_task(task)->think.mean)
		return;
	if (hw_decay_valid(&c->seek) && cs_seeky(c))
		idle = min(idle, d->idle_seeky);
	c->wait_request = true;
	d->timer_on = true;
	d->timer_ns = hw_tick_ns(d->tick + idle, d->tick_us);
}

/* --- arrival --- */

/* Shall @rq of queue @c end the slice of the active queue? */
static bool preempts(const struct cs_device *d, const struct cs_queue *c,
		     const struct hw_request *rq)
{
	const struct cs_queue *a = d->active;

	if (!a)
		return false;
	if (slice_used(a, d->tick))
		return true;
	if (c->class == HW_IOPRIO_IDLE)
		return false;
	if (a->class == HW_IOPRIO_IDLE)
		return true;
	if (hw_is_sync(rq) && !a->sync)
		return true;
	if ((rq->flags & HW_RQ_META) && !a->meta_queued)
		return true;
	if (c->class == HW_IOPRIO_RT && a->class != HW_IOPRIO_RT)
		return true;
	if (!a->wait_request || !d->active_task)
		return false;
	/* The disk stands idle, and this costs it next to no seek. */
	return cs_is_near(d, a, rq->sector);
}

/* Is the active queue only active because nobody else has come? Then its slice says nothing. */
static bool abandoned(const struct cs_device *d)
{
	return !d->timer_on && !d->active->queued && !d->active->dispatched;
}

/* @rq, of @c, has come. */
void cs_arrived(struct cs_device *d, struct cs_queue *c, const struct hw_request *rq)
{
	if (c == d->active) {
		if (c->wait_request) {
			stop_idling(d, HW_WAIT_SUCCESS);
			c->must_dispatch = true;
		}
	} else if (preempts(d, c, rq)) {
		cs_expire_slice(d, !abandoned(d), HW_WAIT_OTHER, HW_PREEMPTED);
		cs_tree_add(d, c, true);
	}
}

/* --- the choice --- */

/* The queue to serve, or NULL to leave the device to the active one. */
static struct cs_queue *select_queue(struct cs_device *d)
{
	struct cs_queue *c = d->active, *other = NULL;
	enum hw_reason because = HW_SLICE_OVER;

	if (c && (!slice_used(c, d->tick) || c->must_dispatch)) {
		because = HW_QUEUE_EMPTY;
		if (c->queued)
			return c;
		other = cs_close_cooperator(d, c);
		if (other)
			cs_plan_merge(d, c, other);
		else if (d->timer_on || (c->dispatched && c->idle_window))
			return NULL;
	}
	cs_expire_slice(d, false, HW_WAIT_OTHER, because);
	activate(d, other ? other : cs_tree_first(d));
	return d->active;
}

/* How many requests may @c have in the device? */
static bool may_dispatch(const struct cs_device *d, const struct cs_queue *c)
{
	u64 most = (u64)d->quantum;

	if (c->idle_window && d->in_driver[false])
		return false;
	if (!c->sync && d->sync_flight)
		return false;
	if (c->class == HW_IOPRIO_IDLE)
		most = 1;
	if (c->dispatched >= most) {
		if (c->class == HW_IOPRIO_IDLE || d->busy > 1)
			return false;
		most *= 4;
	}
	if (!c->sync && d->low_latency) {
		u64 depth = div64_u64(d->tick - d->last_end_sync, d->slice[true]);

		if (!depth && !c->dispatched)
			depth = 1;
		most = min(most, depth);
	}
	return c->dispatched < most;
}

static struct hw_sorted_request *serve(struct cs_device *d, struct cs_queue *c)
{
	struct hw_sorted_request *s = c->next, *oldest = hw_fifo_first(&c->fifo);

	hw_because(&d->q, c->slice_dispatched ? HW_SLICE : (enum hw_reason)d->because);
	if (c->must_dispatch)
		hw_because(&d->q, HW_ANTICIPATED);
	if (!c->fifo_checked && d->tick >= oldest->expires) {
		s = oldest;
		hw_because(&d->q, HW_EXPIRED);
	}
	c->fifo_checked = true;
	cs_take(d, s);
	c->slice_dispatched++;
	c->must_dispatch = false;
	if (d->slice_start == CS_START_DISPATCH)
		start_clock(d, c);
	if (!d->active_task && s->rq.task) {
		d->active_task = s->rq.task;
		hw_task_get(d->active_task);
	}
	if (d->busy > 1 && ((!c->sync && c->slice_dispatched >= cs_async_limit(d, c)) ||
			    c->class == HW_IOPRIO_IDLE))
		cs_expire_slice(d, false, HW_WAIT_OTHER, HW_BUDGET_OVER);
	return s;
}

/* The next request of the queue whose turn it is; NULL if the disk waits, or it has enough. */
struct hw_sorted_request *cs_next(struct cs_device *d)
{
	struct cs_queue *c = select_queue(d);

	return c && may_dispatch(d, c) ? serve(d, c) : NULL;
}

/* A request of @c, which is active, has completed: it goes on, is waited for, or gives way. */
void cs_active_completed(struct cs_device *d, struct cs_queue *c, bool sync)
{
	start_clock(d, c);
	if (slice_used(c, d->tick) || c->class == HW_IOPRIO_IDLE)
		cs_expire_slice(d, true, HW_WAIT_OTHER, HW_SLICE_OVER);
	else if (sync && !c->queued && !cs_close_cooperator(d, c))
		arm_idle_timer(d, c);
}
