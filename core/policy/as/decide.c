// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The anticipatory family's decision: what goes out next, and whether the device is to wait for
 * something better. Batches of one class, the age of the oldest, the wait and its end, and how many
 * writes make a batch of the length that was planned. When a wait is to be broken off is the
 * policy's own (struct as_rules).
 */
#include "core/policy/as/internal.h"

#define AS_MAX_DOUBLINGS_MS 20

/* ---- the wait ---- */

/* How long the present wait may last. */
static u64 interval_of(const struct as_queue *aq)
{
	return aq->rules->interval(aq, aq->waited_for);
}

bool as_near_head(const struct as_queue *aq, const struct hw_request *rq, u64 window, u64 grace_ms)
{
	u64 head = aq->last[aq->dir], waited = 0, delay_ms;

	if (aq->status != AS_OFF && aq->waited_for_done)
		waited = as_waited(aq);
	delay_ms = div_u64(waited, HW_NSEC_PER_MSEC);
	if (delay_ms > grace_ms) {
		if (delay_ms > AS_MAX_DOUBLINGS_MS || waited > interval_of(aq))
			return true;
		window <<= delay_ms - grace_ms;
	}
	return head <= rq->sector + window / 2 && rq->sector <= head + window;
}

bool as_waited_out(const struct as_queue *aq)
{
	return aq->waited_for_done && as_waited(aq) >= interval_of(aq);
}

void as_wait_next(struct as_queue *aq)
{
	aq->status = AS_WAIT_NEXT;
	hw_wait_begin(&aq->q, &aq->waited_for->task, aq->exact_now);
}

void as_end_wait(struct as_queue *aq, enum hw_wait_outcome outcome)
{
	if (aq->rules->ended)
		aq->rules->ended(aq, outcome);
	hw_wait_end(&aq->q, outcome, aq->exact_now);
}

void as_time_waits(struct as_queue *aq, bool exact)
{
	if (aq->exact_waits && !exact)
		aq->antic_start = as_tick_floor(aq, aq->antic_start);
	aq->exact_waits = exact;
}

/* The first beginning of a tick at or after @ns. */
static u64 tick_ceil(const struct as_queue *aq, u64 ns)
{
	return as_tick_floor(aq, ns + as_ticks_ns(aq, 1) - 1);
}

/* When the timer of a wait is due. */
static u64 wait_ends(const struct as_queue *aq)
{
	u64 end = aq->antic_start + interval_of(aq);

	return aq->exact_waits ? end : tick_ceil(aq, end);
}

/* ---- batches ---- */

static bool batch_expired(const struct as_queue *aq)
{
	if (aq->changed || aq->new_batch)
		return false;
	return aq->now > aq->batch_expires || (aq->dir == AS_ASYNC && !aq->wleft);
}

/* Is the oldest request of the class overdue? No more than one an interval is found to be. */
static bool fifo_expired(struct as_queue *aq, int class)
{
	const struct hw_sorted_request *oldest = hw_fifo_first(&aq->fifo[class]);

	if (aq->now - aq->last_check[class] < aq->expire[class])
		return false;
	aq->last_check[class] = aq->now;
	return oldest && aq->now > oldest->expires;
}

static bool can_anticipate(struct as_queue *aq, struct hw_sorted_request *s)
{
	if (!aq->waited_for || aq->status == AS_FINISHED)
		return false;
	return !aq->rules->breaks(aq, hw_sorted_rq(s));
}

static struct hw_sorted_request *switch_to_reads(struct as_queue *aq)
{
	if (aq->dir == AS_ASYNC)
		aq->changed = true;
	aq->dir = AS_SYNC;
	aq->last_check[AS_SYNC] = aq->now;
	return hw_fifo_first(&aq->fifo[AS_SYNC]);
}

static struct hw_sorted_request *switch_to_writes(struct as_queue *aq)
{
	if (aq->dir == AS_SYNC) {
		aq->changed = true;
		aq->new_batch = false;
	}
	aq->dir = AS_ASYNC;
	aq->wleft = aq->wcount;
	aq->widled = false;
	return aq->next[AS_ASYNC];
}

/* The batch has changed class: it may begin only when the device has finished the old one. */
static bool begin_batch(struct as_queue *aq)
{
	if (aq->q.nr_in_flight)
		return false;
	if (aq->dir == AS_ASYNC)
		aq->batch_expires = aq->now + aq->batch_expire[AS_ASYNC];
	else
		aq->new_batch = true;
	aq->changed = false;
	return true;
}

/*
 * How long did the batch of writes take, up to the first completion of a read after it? Let the
 * next be nearer to plan.
 */
void as_adapt_write_batch(struct as_queue *aq)
{
	u64 plan = aq->batch_expire[AS_ASYNC];
	u64 took = aq->now + plan > aq->batch_expires ? aq->now + plan - aq->batch_expires : 0;

	if (took > plan && !aq->widled)
		aq->wcount = took > 3 * plan ? aq->wcount / 2 : aq->wcount - 1;
	else if (took < plan && !aq->wleft)
		aq->wcount = plan > 3 * took ? aq->wcount * 2 : aq->wcount + 1;
	aq->wcount = clamp_t(s64, aq->wcount, 1, HW_INT_MAX);
}

/* ---- the decision ---- */

/* What goes out now, or NULL: nothing queued, a wait, or the old batch has to drain. */
static noinline struct hw_sorted_request *decide(struct as_queue *aq)
{
	bool reads = !list_empty(&aq->fifo[AS_SYNC]), writes = !list_empty(&aq->fifo[AS_ASYNC]);
	struct hw_sorted_request *s = NULL;
	bool overdue = false, looked = false;
	int dir = aq->dir;

	if (aq->dir == AS_ASYNC && !reads && (!aq->wleft || !writes))
		aq->widled = true;
	if (!(reads || writes) || as_waiting(aq) || aq->changed)
		return NULL;

	if (!(reads && writes && batch_expired(aq))) {
		s = aq->next[aq->dir];
		if (aq->dir == AS_SYNC && aq->antic_expire_ns) {
			overdue = fifo_expired(aq, AS_SYNC);
			looked = true;
			if (!overdue && can_anticipate(aq, s)) {
				if (aq->waited_for_done)
					as_wait_next(aq);
				else
					aq->status = AS_WAIT_REQ;
				return NULL;
			}
		}
		if (s && !overdue && reads && !writes)
			as_restart_clock(aq);
	}
	if (!s && reads && !(writes && aq->dir == AS_SYNC))
		s = switch_to_reads(aq);
	else if (!s)
		s = switch_to_writes(aq);
	if (dir != aq->dir)
		hw_because(&aq->q, HW_TURN);
	else
		hw_because_wait(&aq->q, s && as_task(&s->rq) == aq->waited_for, HW_SEEK_ORDER);
	if (overdue || (!(looked && aq->dir == AS_SYNC) && fifo_expired(aq, aq->dir))) {
		s = hw_fifo_first(&aq->fifo[aq->dir]);
		hw_because(&aq->q, HW_EXPIRED);
	}
	return aq->changed && !begin_batch(aq) ? NULL : s;
}

/* The host drains: sync requests in order, then async ones, without a wait. */
static noinline struct hw_sorted_request *drain(struct as_queue *aq)
{
	aq->dir = AS_SYNC;
	aq->changed = false;
	aq->new_batch = false;
	aq->last_check[AS_SYNC] = aq->now;
	aq->last_check[AS_ASYNC] = aq->now;
	hw_because(&aq->q, HW_DRAIN);
	return aq->next[AS_SYNC] ? aq->next[AS_SYNC] : aq->next[AS_ASYNC];
}

/* The general case: the end of a wait, and what then. */
struct hw_sorted_request *as_weigh(struct as_queue *aq)
{
	struct hw_sorted_request *s;

	if (aq->status == AS_WAIT_NEXT && as_waited_out(aq)) {
		as_stop_waiting(aq, HW_WAIT_FAIL, AS_FINISHED);
		aq->rules->timed_out(aq);
	}
	s = aq->q.force ? drain(aq) : decide(aq);
	if (!s && aq->status == AS_WAIT_NEXT)
		aq->q.wake_ns = wait_ends(aq);
	return s;
}
