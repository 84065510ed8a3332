// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Write-back throttling (block/blk-wbt.c): how many requests of the page cache may be on their way,
 * of jobs (load/writeback.c) or of a trace (throttle.c).
 *
 * The device is taken to hold wbt_depth requests, and a depth of up to DEFAULT_DEPTH is scaled by
 * steps: down when reads took too long in a window of time, up when they did not or there were only
 * writes. fsync may have all of it; the flusher half, and a quarter while others read or where
 * nobody waits for it. Who finds no room waits in line; on a drive with a write-back cache the line
 * moves on only when nothing is on its way any more.
 */
#include <stdlib.h>

#include "sim/internal.h"

#define DEFAULT_DEPTH	      16
/* A read that takes longer takes too long. */
#define ROTATIONAL_LATENCY_NS (75ull * HW_NSEC_PER_MSEC)
#define LATENCY_NS	      (2ull * HW_NSEC_PER_MSEC)
#define WINDOW_NS	      (100ull * HW_NSEC_PER_MSEC)
#define RECENT_NS	      (100ull * HW_NSEC_PER_MSEC) /* since then the device is taken to be read */
#define SLEPT_NS	      HW_NSEC_PER_SEC /* since then writers are taken to be in need */
#define MIN_WRITES	      3		      /* in a window that tells */
#define UNKNOWN_WINDOWS	      5		      /* until the scale goes back to the middle */
#define MAX_SHIFT	      31

enum verdict { TOO_SLOW, FAST_ENOUGH, ONLY_WRITES, UNKNOWN };

struct sim_wbt {
	struct sim_source source;
	struct sim_source *cache; /* is told when some of those who wait may write */
	struct sim_wbt_waiter *first, **tail;
	u64 latency_ns;
	u32 in_flight;
	u64 read_ns;  /* the last read, issued or done; HW_NEVER: none yet */
	u64 slept_ns; /* when a writer last had to wait; HW_NEVER: never */

	int step;
	bool scaled_max;
	u32 depth, normal, background;

	/* The window under way. */
	bool armed;
	u64 window_ns;
	u32 reads, writes, unknown;
	u64 fastest_read_ns;
	const struct sim_request *read; /* the read in the drive that is watched */
	u64 read_issued_ns;
};

static bool recent(const struct hws *s, u64 since_ns, u64 for_ns)
{
	return since_ns != HW_NEVER && s->now < since_ns + for_ns;
}

/* --- the scale --- */

/* Is it the largest that there is? */
static bool calculate_depth(const struct hws *s, struct sim_wbt *w)
{
	u32 most = s->opt.wbt_depth, shift = min((u32)abs(w->step), (u32)MAX_SHIFT);
	u64 depth = min(most, (u32)DEFAULT_DEPTH);
	bool largest = false;

	if (most == 1) {
		w->depth = w->step > 0 ? 1 : 2;
		return w->step <= 0;
	}
	if (w->step > 0) {
		depth = 1 + ((depth - 1) >> shift);
	} else if (w->step < 0) {
		depth = 1 + ((depth - 1) << shift);
		largest = depth > 3 * most / 4;
		if (largest)
			depth = 3 * most / 4;
	}
	w->depth = (u32)depth;
	return largest;
}

static void calculate_limits(const struct hws *s, struct sim_wbt *w)
{
	w->scaled_max = calculate_depth(s, w);
	if (w->depth <= 2) {
		w->normal = w->depth;
		w->background = 1;
	} else {
		w->normal = (w->depth + 1) / 2;
		w->background = (w->depth + 3) / 4;
	}
}

static void wake(struct hws *s, struct sim_wbt *w);

static void scale_up(struct hws *s, struct sim_wbt *w)
{
	if (w->scaled_max)
		return;
	w->step--;
	calculate_limits(s, w);
	w->unknown = 0;
	wake(s, w);
}

static void scale_down(struct hws *s, struct sim_wbt *w, bool hard)
{
	if (w->depth == 1)
		return;
	w->step = w->step < 0 && hard ? 0 : w->step + 1;
	calculate_limits(s, w);
	w->unknown = 0;
}

/* A read that is still in the drive counts, too. */
static enum verdict window_says(const struct hws *s, const struct sim_wbt *w)
{
	u64 waits_ns = w->read ? s->now - w->read_issued_ns : 0;

	if (waits_ns > w->window_ns || (waits_ns > w->latency_ns && !w->reads))
		return TOO_SLOW;
	if (!w->reads || w->writes < MIN_WRITES)
		return w->writes || w->in_flight || recent(s, w->slept_ns, SLEPT_NS) ? ONLY_WRITES :
										       UNKNOWN;
	return w->fastest_read_ns > w->latency_ns ? TOO_SLOW : FAST_ENOUGH;
}

static u32 root(u64 of)
{
	u32 r = 0;

	while ((u64)(r + 1) * (r + 1) <= of)
		r++;
	return r;
}

/* A window shrinks with the root of the steps. */
static void arm(struct hws *s, struct sim_wbt *w)
{
	w->window_ns = WINDOW_NS;
	if (w->step > 0)
		w->window_ns = (WINDOW_NS << 4) / root((u64)(w->step + 1) << 8);
	w->reads = w->writes = 0;
	w->fastest_read_ns = HW_NEVER;
	w->armed = true;
	sim_schedule(s, sim_after(s->now, w->window_ns), sim_order(s), &w->source);
}

static void window_over(struct hws *s, struct sim_source *source, u64 order)
{
	struct sim_wbt *w = container_of(source, struct sim_wbt, source);

	(void)order;
	w->armed = false;
	switch (window_says(s, w)) {
	case TOO_SLOW:
		scale_down(s, w, true);
		break;
	case FAST_ENOUGH:
	case ONLY_WRITES:
		scale_up(s, w);
		break;
	case UNKNOWN:
		if (++w->unknown < UNKNOWN_WINDOWS)
			break;
		if (w->step > 0)
			scale_up(s, w);
		else if (w->step < 0)
			scale_down(s, w, false);
		break;
	}
	/* As a kernel's timer would go on, but not when it is all that goes on. */
	if ((w->step || w->in_flight) && !s->load_ended &&
	    (s->in_use || s->in_drive || sim_due_ns(s) != HW_NEVER))
		arm(s, w);
}

/* --- who may write --- */

static u32 limit(const struct hws *s, const struct sim_wbt *w,
		 const struct sim_wbt_waiter *for_whom)
{
	if (for_whom->sync || recent(s, w->slept_ns, SLEPT_NS))
		return w->depth;
	return for_whom->background || recent(s, w->read_ns, RECENT_NS) ? w->background : w->normal;
}

static void wake(struct hws *s, struct sim_wbt *w)
{
	struct sim_wbt_waiter *first;
	bool any = false;

	while ((first = w->first) && w->in_flight < limit(s, w, first)) {
		w->first = first->next;
		if (!w->first)
			w->tail = &w->first;
		first->waits = false;
		first->may = true;
		w->in_flight++;
		any = true;
	}
	if (any)
		w->cache->ops->wake(s, w->cache);
}

static const struct sim_source_ops wbt_ops = { .due = window_over };

void sim_wbt_init(struct hws *s, struct sim_source *cache)
{
	struct sim_wbt *w;

	if (!s->opt.wbt_depth || s->policy->flags & HW_POLICY_UNTHROTTLED)
		return;
	w = s->wbt = sim_alloc(s, sizeof(*w));
	w->source.ops = &wbt_ops;
	w->cache = cache;
	w->tail = &w->first;
	w->read_ns = w->slept_ns = HW_NEVER;
	w->latency_ns = sim_is_told_rotational(s) ? ROTATIONAL_LATENCY_NS : LATENCY_NS;
	if (s->opt.wbt_lat_ns)
		w->latency_ns = s->opt.wbt_lat_ns;
	calculate_limits(s, w);
	w->scaled_max = false;
}

bool sim_wbt_get(struct hws *s, struct sim_wbt_waiter *who)
{
	struct sim_wbt *w = s->wbt;

	if (!w)
		return true;
	if (who->waits)
		return false;
	if (!who->may && (w->first || w->in_flight >= limit(s, w, who))) {
		who->waits = true;
		who->next = NULL;
		*w->tail = who;
		w->tail = &who->next;
		return false;
	}
	if (!who->may)
		w->in_flight++;
	who->may = false;
	if (!w->armed)
		arm(s, w);
	return true;
}

void sim_wbt_put(struct hws *s)
{
	struct sim_wbt *w = s->wbt;
	u32 most;

	if (!w)
		return;
	w->in_flight--;
	most = s->drive->write_cache && !recent(s, w->slept_ns, SLEPT_NS) ? 0 : w->normal;
	if (!w->in_flight || (w->in_flight < most && most - w->in_flight >= w->background / 2))
		wake(s, w);
}

/* --- what it sees --- */

void sim_wbt_slept(struct hws *s)
{
	if (s->wbt)
		s->wbt->slept_ns = s->now;
}

void sim_wbt_read(struct hws *s)
{
	if (s->wbt)
		s->wbt->read_ns = s->now;
}

void sim_wbt_issued(struct hws *s, const struct sim_request *r)
{
	struct sim_wbt *w = s->wbt;

	if (w && r->rq.op == HW_READ && !w->read) {
		w->read = r;
		w->read_issued_ns = s->now;
	}
}

void sim_wbt_done(struct hws *s, const struct sim_request *r)
{
	struct sim_wbt *w = s->wbt;

	if (!w)
		return;
	if (r->rq.op == HW_WRITE)
		w->writes++;
	if (r->rq.op != HW_READ)
		return;
	w->reads++;
	w->fastest_read_ns = min(w->fastest_read_ns, s->now - r->rq.dispatch_ns);
	w->read_ns = s->now;
	if (w->read == r)
		w->read = NULL;
}
