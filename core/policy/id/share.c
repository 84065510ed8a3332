// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * as-share: proportional shares of the disk (stride scheduling), with waits that keep a process's
 * share from being lost while it thinks.
 *
 * Source: Iyer & Druschel, SOSP 2001, proportional-share policy within the framework of core.c;
 * stride scheduling is Waldspurger & Weihl's.
 *
 * Caveats: shares are of bytes, as in the paper's figures, or of time in the device (charge=time),
 * as in its text. Equal streams do not get equal bytes out of equal times: zones and lost
 * revolutions differ. Processes that think longer than think_threshold get less than their share,
 * for they are not waited for. Tickets are hw_task.share, or follow from the I/O priority.
 *
 * Decides:
 *  - Each process has a clock, which advances by service / tickets. Bytes count as the time that as
 *    many have taken on the long average. Of time, the seek back from where another process took
 *    the head is not counted, as far as the table of positioning times knows: it is a cost of
 *    sharing, and would leave little else to whoever has few tickets. minclock is
 *    the slowest clock of those that have requests; the process served last counts as one of them
 *    although it may be thinking. (Without anticipation it does not: then two synchronous processes
 *    are served alternately whatever their tickets, which is deceptive idleness.)
 *  - Candidate: the nearest request of all processes whose clock is at most tau ahead of minclock;
 *    if there is none, the nearest of the process with the slowest clock.
 *  - It waits for the process served last if that one has not had more than its share, thinks
 *    quickly, and either the candidate's process is ahead or the seek-optimising rule says so. The
 *    published heuristic has the first two conditions; the third is ours: without it, it would
 *    wait where that neither restores a share nor spares a seek.
 *
 * tau is the relaxation: how unfair to be for how long in exchange for fewer seeks. Its default
 * depends on the device: 0 (strict) where positioning costs the same at all distances, 100 ms over
 * the mean number of tickets elsewhere. Then a process has the disk for a turn of about 200 ms of
 * service; shares are as exact as turns are short against the time over which they are measured.
 */
#include "core/policy/id/internal.h"

#define SHARE_TAU_NS		(100 * (u64)HW_NSEC_PER_MSEC)
#define SHARE_TICKETS_PER_CLASS 8u

/* The average forgets half after so many: it must not follow the turns of single processes. */
#define SHARE_AVERAGE_SECTORS (1u << 22)

enum { CHARGE_BYTES, CHARGE_TIME };
static const char *const charge_names[] = { "bytes", "time", NULL };

static const struct hw_tunable as_share_tunables[] = {
	HW_TUNE_ENUM(struct id_device, charge, CHARGE_BYTES, charge_names,
		     "unit of shares: bytes, or time in the device"),
	HW_TUNE(struct id_device, think_threshold, 3, 0, 1000, "ms",
		"longest median think time of a process to wait for"),
	HW_TUNE(struct id_device, tau, -1, -1, 1000000, "virtual ms",
		"maximum lead of a clock over the slowest; 0: strict; -1: 100 divided by the mean "
		"number of tickets,"
		" or 0 on a device without seeks"),
	ID_TUNABLES,
};

/* Best effort 0..7 has 8..1 tickets, real time 8 more, idle class and priority 7 one. */
static u32 tickets(const struct id_task *t)
{
	u32 level = HW_IOPRIO_LEVEL(t->task.ioprio);

	if (t->task.share)
		return t->task.share;
	switch (HW_IOPRIO_CLASS(t->task.ioprio)) {
	case HW_IOPRIO_RT:
		return 2 * SHARE_TICKETS_PER_CLASS - level;
	case HW_IOPRIO_BE:
		return SHARE_TICKETS_PER_CLASS - level;
	case HW_IOPRIO_IDLE:
		return 1;
	default:
		return SHARE_TICKETS_PER_CLASS / 2;
	}
}

/* --- who is busy, by clock --- */

static struct id_task *clock_entry(struct rb_node *n)
{
	return n ? rb_entry(n, struct id_task, by_clock) : NULL;
}

static bool slower(const struct id_task *a, const struct id_task *b)
{
	return a->clock != b->clock ? a->clock < b->clock : a->turn < b->turn;
}

static void clock_add(struct id_device *d, struct id_task *t)
{
	struct rb_node **link = &d->clocks.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = slower(t, clock_entry(parent)) ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&t->by_clock, parent, link);
	rb_insert_color(&t->by_clock, &d->clocks);
}

static void share_busy(struct id_device *d, struct id_task *t)
{
	if (!t->busy) {
		rb_erase(&t->by_clock, &d->clocks);
		d->processes--;
		d->tickets -= t->tickets;
		return;
	}
	t->turn = d->turns++;
	t->tickets = tickets(t);
	d->processes++;
	d->tickets += t->tickets;
	clock_add(d, t);
}

/* Is it counted although it has no requests? */
static bool only_awaited(const struct id_device *d, const struct id_task *t)
{
	return id_anticipates(d) && t && t == d->last && !t->busy;
}

static void update_minclock(struct id_device *d)
{
	struct id_task *t = clock_entry(rb_first(&d->clocks));
	u64 least = t ? t->clock : HW_NEVER;

	if (only_awaited(d, d->last))
		least = min(least, d->last->clock);
	if (least != HW_NEVER)
		d->minclock = least;
}

static u64 relaxation(const struct id_device *d)
{
	const struct hw_device *dev = &d->q.dev;
	u64 all = d->tickets, processes = d->processes;

	if (d->tau >= 0)
		return (u64)d->tau * HW_NSEC_PER_MSEC;
	if (!dev->positions.nr ||
	    hw_position_ns(dev, 0) == hw_position_ns(dev, dev->positions.nr - 1))
		return 0;
	if (only_awaited(d, d->last)) {
		all += tickets(d->last);
		processes++;
	}
	return all ? div64_u64(SHARE_TAU_NS * processes, all) : 0;
}

static bool ahead(const struct id_device *d, const struct id_task *t)
{
	return t->clock > d->minclock + relaxation(d);
}

/* --- requests by place: each process's, and everybody's --- */

static struct hw_sorted *share_tree(struct id_device *d, struct id_task *t)
{
	return &t->sort;
}

static struct hw_sorted_request *any_entry(struct rb_node *n)
{
	return n ? &rb_entry(n, struct id_request, any)->s : NULL;
}

static struct rb_node *any_node(struct hw_sorted_request *s)
{
	return &id_request(s)->any;
}

/* Lower, or the same and earlier. */
static bool lower(const struct hw_sorted_request *a, const struct hw_sorted_request *b)
{
	return a->rq.sector != b->rq.sector ? a->rq.sector < b->rq.sector : a->rq.id < b->rq.id;
}

static u64 place_of(struct rb_node *n)
{
	return rb_entry(n, struct id_request, any)->place;
}

/* As lower(), which need not be asked as long as the places beside the nodes differ. */
static bool goes_left(const struct hw_sorted_request *s, struct rb_node *of)
{
	u64 place = place_of(of);

	return s->rq.sector != place ? s->rq.sector < place : lower(s, any_entry(of));
}

static void share_add(struct id_device *d, struct id_task *t, struct hw_sorted_request *s)
{
	struct rb_node **link = &d->all.rb_node, *parent = NULL;

	hw_sorted_add(&t->sort, s);
	id_request(s)->place = s->rq.sector;
	while (*link) {
		parent = *link;
		link = goes_left(s, parent) ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(any_node(s), parent, link);
	rb_insert_color(any_node(s), &d->all);
}

static void share_del(struct id_device *d, struct id_task *t, struct hw_sorted_request *s)
{
	hw_sorted_del(&t->sort, s);
	rb_erase(any_node(s), &d->all);
}

static u64 positioning(const struct id_device *d, const struct hw_sorted_request *s)
{
	return id_positioning(d, d->head, s->rq.sector);
}

/* Nearer, or as near and lower, or the same and earlier. */
static bool nearer(const struct id_device *d, struct hw_sorted_request *a,
		   struct hw_sorted_request *b)
{
	u64 pa = positioning(d, a), pb = positioning(d, b);

	return pa != pb ? pa < pb : lower(a, b);
}

/* All requests in that order, from the head outwards. */
struct outwards {
	struct hw_sorted_request *above;
	struct hw_sorted_request *below, *lowest, *highest; /* that are as near as each other */
};

static void begin_below(const struct id_device *d, struct outwards *o, struct rb_node *highest)
{
	struct rb_node *n = d->all.rb_node, *lowest = highest, *below;
	u64 ns;

	o->below = o->lowest = o->highest = any_entry(highest);
	if (!highest)
		return;
	ns = id_positioning(d, d->head, place_of(highest));
	below = rb_prev(highest);
	if (!below || id_positioning(d, d->head, place_of(below)) > ns)
		return;
	while (n) {
		bool near = place_of(n) < d->head && id_positioning(d, d->head, place_of(n)) <= ns;

		if (near)
			lowest = n;
		n = near || place_of(n) >= d->head ? n->rb_left : n->rb_right;
	}
	o->below = o->lowest = any_entry(lowest);
}

static void begin_outwards(const struct id_device *d, struct outwards *o)
{
	struct rb_node *n = d->all.rb_node, *above = NULL;

	while (n) {
		bool up = place_of(n) >= d->head;

		if (up)
			above = n;
		n = up ? n->rb_left : n->rb_right;
	}
	o->above = any_entry(above);
	begin_below(d, o, above ? rb_prev(above) : rb_last(&d->all));
}

static struct hw_sorted_request *step_outwards(const struct id_device *d, struct outwards *o)
{
	struct hw_sorted_request *s = o->below;

	if (!s || (o->above && nearer(d, o->above, s))) {
		s = o->above;
		if (s)
			o->above = any_entry(rb_next(any_node(s)));
	} else if (s != o->highest) {
		o->below = any_entry(rb_next(any_node(s)));
	} else {
		begin_below(d, o, rb_prev(any_node(o->lowest)));
	}
	return s;
}

/*
 * The nearest request of a process that is not ahead. Two searches take turns, one through these
 * processes and one through all requests outwards from the head: if the processes are many, the
 * second soon meets one of theirs.
 */
static struct hw_sorted_request *share_candidate(struct id_device *d, u64 now)
{
	struct hw_sorted_request *best = NULL, *s;
	struct id_task *t, *slowest = NULL;
	struct outwards o;
	u64 limit;

	update_minclock(d);
	limit = d->minclock + relaxation(d);
	begin_outwards(d, &o);
	for (t = clock_entry(rb_first(&d->clocks)); t; t = clock_entry(rb_next(&t->by_clock))) {
		if (slowest && t->clock > limit)
			break;
		if (!t->queued)
			continue;
		if (!slowest) {
			slowest = t;
			limit = max(limit, t->clock);
		}
		s = id_nearest(d, &t->sort);
		if (!best || nearer(d, s, best))
			best = s;
		s = step_outwards(d, &o);
		if (s && id_request(s)->owner->clock <= limit)
			return id_nearest(d, &id_request(s)->owner->sort);
	}
	return best;
}

static bool share_worth_waiting(struct id_device *d, struct hw_sorted_request *c, u64 now)
{
	const struct id_task *last = d->last, *other = id_request(c)->owner;

	if (ahead(d, last))
		return false;
	if (id_think_percentile(d, last, (u32)d->pct_cost) >
	    (u64)d->think_threshold * HW_NSEC_PER_MSEC)
		return false;
	if (ahead(d, other) || last->clock + relaxation(d) < other->clock)
		return true;
	return id_benefit_exceeds_cost(d, (s64)id_positioning(d, d->head, c->rq.sector), now);
}

static const struct id_rules share_rules = {
	.tree = share_tree,
	.because = HW_TURN,
	.add = share_add,
	.del = share_del,
	.busy = share_busy,
	.candidate = share_candidate,
	.worth_waiting = share_worth_waiting,
};

static int as_share_init(struct hw_queue *q, u64 now)
{
	return id_init(q, &share_rules);
}

/* Who becomes active has no claim on the time in which it wanted nothing. */
static void as_share_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct id_device *d = id_device(q);
	struct id_task *t = rq->task ? container_of(rq->task, struct id_task, task) : &d->nobody;

	if (!t->busy && !only_awaited(d, t)) {
		update_minclock(d);
		t->clock = max(t->clock, d->minclock);
	}
	id_insert(q, rq, now);
}

/* What the sectors of a request cost on average, now that it has taken @service. */
static u64 average_cost(struct id_device *d, const struct hw_request *rq, u64 service)
{
	d->service_ns += service;
	d->service_sectors += rq->sectors;
	if (d->service_sectors > SHARE_AVERAGE_SECTORS) {
		d->service_ns /= 2;
		d->service_sectors /= 2;
	}
	return div64_u64(rq->sectors * d->service_ns, d->service_sectors);
}

static void as_share_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct id_device *d = id_device(q);
	struct id_request *r = id_request(hw_sorted(rq));
	struct id_task *t = r->owner;
	/*
	 * With several in the device, each is charged only for the time since another one
	 * completed.
	 */
	u64 service = now - max(rq->dispatch_ns, d->done_ns);
	u64 average = average_cost(d, rq, service);

	rb_erase(&t->by_clock, &d->clocks);
	if (d->charge == CHARGE_BYTES) {
		t->clock += div_u64(average, tickets(t));
	} else {
		t->clock += div_u64(service, tickets(t));
		t->clock -= min(t->clock, div_u64(r->detour_ns, tickets(t)));
	}
	clock_add(d, t);
	id_complete(q, rq, now);
	update_minclock(d);
}

const struct hw_policy hw_as_share = {
	.name = "as-share",
	.summary = "shares of the disk in proportion to tickets, with waits that preserve them",
	.tunables = as_share_tunables,
	.nr_tunables = ARRAY_SIZE(as_share_tunables),
	.init = as_share_init,
	.insert = as_share_insert,
	.complete = as_share_complete,
	ID_POLICY,
};
