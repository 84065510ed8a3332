// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: those who wait for what they have written, and the time that the device puts off.
 *
 * fsync and O_SYNC end with a flush, which is no request of anybody's: the host sends it past us, and
 * the device does for it what it had put off. So the time in which the device does nothing that it
 * was asked for, while requests wait and nobody is waited for, is the last such writer's.
 */
#include "core/policy/maitre/internal.h"

#define PUT_OFF	    2u /* times quicker than the way */
#define FLUSH_MOST  (100 * MT_MSEC)
#define FLUSH_LEAST MT_MSEC
#define LATE_SHARE  8 /* of their mean, that one read after writes is */

/* @f has had @ns of the device. */
static void pay(struct mt_device *d, struct mt_flow *f, u64 ns)
{
	struct mt_entity *e;
	bool listed;

	for (e = f->home; e; e = mt_above(e)) {
		listed = e->listed;
		mt_unlist(d, e);
		e->v += mt_virtual_ns(d, e, ns);
		if (listed)
			mt_list(d, e);
		mt_raise_floor(e->in);
	}
}

/* A request has come, or the device has done one: it is free, as far as we know. */
void mt_idles(struct mt_device *d)
{
	if (!d->idle_ns && !d->q.nr_in_flight && !d->q.wait.active)
		d->idle_ns = d->now;
}

/* The device has flushed its cache for @ns. */
static void flushed(struct mt_device *d, u64 ns)
{
	if (ns > d->wrote_ns)
		pay(d, d->wrote, ns - d->wrote_ns);
	d->wrote_ns -= min(d->wrote_ns, ns);
}

/* The device asks for a request. */
void mt_asks(struct mt_device *d)
{
	u64 ns = d->idle_ns ? min(d->now - d->idle_ns, FLUSH_MOST) : 0;

	d->idle_ns = 0;
	if (ns && d->wrote)
		flushed(d, ns);
}

/*
 * @r is done. If the device had nothing else of ours, and got @r later than dispatch() was last asked,
 * it was at a flush until then, in the turn of somebody who has no part in it.
 */
void mt_issued(struct mt_device *d, const struct mt_request *r)
{
	u64 ns = r->s.rq.dispatch_ns - min(d->since_ns, r->s.rq.dispatch_ns);
	struct mt_entity *e;

	if (!mt_was_alone(d, r) || !d->wrote || ns < FLUSH_LEAST)
		return;
	d->since_ns += ns;
	for (e = r->home; e && e->in->serving == e; e = mt_above(e))
		e->in->turn_ns += ns;
	flushed(d, min(ns, FLUSH_MOST));
}

/* What the way to @r and its data take. */
static u64 own_ns(const struct mt_device *d, const struct mt_request *r)
{
	return mt_position(d, r->distance) + mt_stream_ns(d, r->s.rq.sectors);
}

/*
 * What the way to @r will cost, if the device puts it off. Of who writes again at once it has many by
 * then, and goes from one to the next: on from the one before for nothing, and else as far as its
 * places are apart. A log has one at a time there.
 */
static u64 owed_ns(const struct mt_device *d, const struct mt_request *r)
{
	const struct mt_entity *e = &r->flow->e;
	u64 way = own_ns(d, r);

	if (!mt_at_once(&e->habit))
		return way;
	return r->onward ? 0 : min(way, mt_near(e));
}

/*
 * No more of @ns than @f may still owe for this turn. Who stays within a little writes the same places
 * again, or others next to them: in the end the device goes over all of it once.
 */
static u64 at_most_once(const struct mt_device *d, struct mt_flow *f, u64 ns)
{
	u64 most = mt_span_ns(d, f), turn_ns = f->e.in->turn_ns;

	if (!most)
		return ns;
	if (f->owes_since_ns != turn_ns) {
		f->owes_since_ns = turn_ns;
		f->owes_ns = 0;
	}
	ns = min(ns, most - min(most, f->owes_ns));
	f->owes_ns += ns;
	return ns;
}

/*
 * @r, a write that is waited for, is done. If that was much quicker than the way to it, the device has
 * put off the way.
 */
void mt_wrote(struct mt_device *d, const struct mt_request *r)
{
	u64 way = owed_ns(d, r);
	u64 took = d->now - max(r->s.rq.dispatch_ns, d->landed_ns);

	d->wrote = r->flow;
	d->wrote_ns = took * PUT_OFF < way ? at_most_once(d, r->flow, way - took) : 0;
	if (d->wrote_ns)
		pay(d, d->wrote, d->wrote_ns);
}

/*
 * @r is done. If it is a read after a write, and had the device to itself, that may first have done
 * what it had put off: that is the writer's time. How long it does so shows in the mean only, for
 * where the platter is chance.
 */
void mt_read_late(struct mt_device *d, const struct mt_request *r)
{
	s64 took = (s64)(d->now - r->s.rq.dispatch_ns), late, ns;

	if (!r->after_write || !mt_was_alone(d, r))
		return;
	late = min_t(s64, took - (s64)own_ns(d, r), (s64)FLUSH_MOST);
	d->late_ns += (late - d->late_ns) / LATE_SHARE;
	ns = min_t(s64, d->late_ns, took);
	if (ns <= 0 || !d->wrote)
		return;
	d->since_ns = min(d->since_ns + (u64)ns, d->now);
	flushed(d, (u64)ns);
}
