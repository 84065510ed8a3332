// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre where nothing moves: first come, first served, until somebody is unfair.
 *
 * There are no turns and no sorted tree. Synchronous requests go out in order of arrival, as long
 * as fewer bytes are in the device than it completes in two milliseconds: below that, this is
 * `none`. Each flow pays for its bytes. One that has had much less than the others lately (the
 * start of a program, an editor), and waits for them, has the device alone for as long as it has
 * requests, and pays for all of that time. One that has had more than the others steps aside.
 * Write-back has a window that shrinks while it makes reads wait.
 */
#include "core/policy/maitre/internal.h"

#define PEAK_NS		(2 * MT_MSEC)
#define RATE_NS		(8 * MT_MSEC) /* over which rates are measured */
#define CAP_LEAST	(512u << 10)
#define COST_SHIFT	10 /* fixed point of ns per sector */
#define AHEAD_NS	(5 * MT_MSEC)
#define BEHIND_NS	(5 * MT_MSEC)
#define WINDOW_NS	(100 * MT_MSEC)
#define FAVOUR_HOLD_NS	(250 * MT_USEC)
#define MEAN_SHIFT	5
#define LONE_NS		(5 * MT_MSEC) /* nobody synchronous for so long */
#define BESIDE_LEAST	(64u << 10)   /* others have so much in the device, or there is no need */
#define BESIDE_PART	5u	      /* of the cap: so much is a crowd, where no read tells */
#define SLOWER		3u	      /* so many times as long as it may be: there is a crowd */
#define LARGE		(64u << 10)   /* such a read alone keeps much of the device busy */
#define READ_SHIFT	3	      /* a read is one in eight of the mean */
#define LEAST_SHIFT	12	      /* in each window, for devices age */
#define READ_MOST_NS	HW_NSEC_PER_SEC
#define ASLEEP_NS	(10 * MT_MSEC)	/* who has not come for so long may be favoured, */
#define AWAKE_NS	(200 * MT_MSEC) /* for so long after */
#define AT_ONCE_NS	MT_MSEC		/* who asks so soon again would be quicker */
#define BURST		4u		/* requests so soon one after another */
#define THINK_MOST	(100 * MT_MSEC)
#define SMALL_PART	16u /* of the cap: a request that adds little to what is in the device */
#define SMALL_OVER	2u  /* times the cap, up to which such go */
#define LINE_NS		(20 * MT_MSEC) /* that they may make others wait */
#define W_APART		4u /* times its own time is between a request and the next, at most */
#define W_LEAST		(16u << 10)
#define W_STEP		(16u << 10)
#define IDLE_QUIET_NS	MT_MSEC
#define IDLE_PATIENT_NS (200 * MT_MSEC)

/* --- the rate of the device --- */

static noinline void new_window(struct mt_solid *x, u64 now)
{
	u64 ns = now - x->window_since;
	u32 i;

	for (i = 0; i < MT_SIZES; i++)
		if (x->least_ns[i] < READ_MOST_NS)
			x->least_ns[i] += x->least_ns[i] >> LEAST_SHIFT;
	if (ns < 2 * RATE_NS)
		x->peak = max(div64_u64(x->bytes * PEAK_NS, ns), x->peak - (x->peak >> 9));
	x->window_since = now;
	x->bytes = 0;
	x->cap = max_t(u64, x->peak, CAP_LEAST);
	x->sector_cost = (u32)div64_u64(PEAK_NS * HW_SECTOR_BYTES << COST_SHIFT, x->cap);
}

/* --- who is favoured --- */

static void favour_end(struct mt_device *d, enum hw_wait_outcome outcome)
{
	hw_wait_end(&d->q, outcome, d->now);
	list_splice_tail_init(&d->x.line, &d->x.favoured);
	list_splice_tail_init(&d->x.favoured, &d->x.line);
	d->serving = NULL;
}

/* The favoured is about to go. */
static void flash_gone(struct mt_device *d, struct mt_flow *f)
{
	if (d->serving == &f->e)
		favour_end(d, HW_WAIT_OTHER);
}

/* Who has the device alone pays for all of the time. */
static noinline void favour_pays(struct mt_device *d)
{
	struct mt_entity *e = d->serving;

	e->v += d->now - d->since_ns;
	d->since_ns = d->now;
	if (e->v + BEHIND_NS >= d->x.mean)
		favour_end(d, HW_WAIT_OTHER);
}

static inline void favour_charge(struct mt_device *d)
{
	if (unlikely(d->serving))
		favour_pays(d);
}

static u32 size_class(const struct hw_request *rq)
{
	return min_t(u32, fls64(rq->sectors), MT_SIZES) - 1;
}

/*
 * Is it worth having the device alone? Large reads keep much of it busy, and are held up by all that
 * is there. Small ones are served beside others, unless they take longer there than they need to; as
 * long as that is not known, unless others have much there.
 */
static bool crowded(const struct mt_solid *x, const struct hw_request *rq)
{
	u32 size = size_class(rq);

	if (x->flying_bytes <= max_t(u64, x->cap >> 4, BESIDE_LEAST))
		return false;
	if (rq->sectors * HW_SECTOR_BYTES >= LARGE)
		return true;
	if (!x->beside_ns[size])
		return x->flying_bytes * BESIDE_PART > x->cap;
	return x->beside_ns[size] > (u64)x->least_ns[size] * SLOWER;
}

static void flow_arrives(struct mt_device *d, struct mt_flow *f, const struct hw_request *rq)
{
	struct mt_solid *x = &d->x;
	u64 think = d->now - f->e.emptied_ns;
	bool woken = false; /* for more than one request, or it is new */

	if (f->requests)
		mt_average(&f->e.near, min(think, THINK_MOST), false);
	if (!f->requests || think >= ASLEEP_NS) {
		f->placed_end = d->now;
		woken = !f->requests || f->heaps;
		f->heaps = false;
		f->heap = 0;
	}
	if (think < AT_ONCE_NS && ++f->heap >= BURST)
		f->heaps = true;
	f->requests = 1;
	if (f->e.v + WINDOW_NS < x->mean)
		f->e.v = x->mean - WINDOW_NS;
	if (f->e.v + BEHIND_NS < x->mean && !d->serving && f->e.class == MT_BEST_EFFORT &&
	    d->now - f->placed_end < AWAKE_NS && (woken || think < AT_ONCE_NS) && crowded(x, rq)) {
		d->serving = &f->e;
		d->since_ns = d->now;
	}
}

static void flash_insert(struct mt_device *d, struct mt_request *r)
{
	struct mt_solid *x = &d->x;
	struct hw_task *task = r->s.rq.task;
	struct list_head *line = &x->line;
	struct mt_flow *f = NULL;
	bool small;

	if (hw_is_sync(&r->s.rq))
		f = task ? &mt_task(task)->flow : &d->root.nobody;
	r->flow = f;
	favour_charge(d);
	r->home = &x->home;
	if (!f) {
		list_add_tail(&r->s.fifo, &x->async);
		return;
	}
	if (!f->queued && !f->flying) {
		f->e.class = mt_class_of(mt_prio_of(task, r->s.rq.ioprio));
		flow_arrives(d, f, &r->s.rq);
	}
	small = !f->queued && !f->flying && f->e.v <= x->mean &&
		(u64)r->s.rq.sectors * HW_SECTOR_BYTES * SMALL_PART <= x->cap;
	f->queued++;
	if (f->e.class != MT_BEST_EFFORT)
		line = f->e.class == MT_REALTIME ? &x->realtime : &x->idle;
	else if (d->serving == &f->e)
		line = &x->favoured;
	else if (f->e.listed)
		line = &f->e.fifo;
	else if (small && x->flying_bytes >= x->cap)
		line = &x->small;
	list_add_tail(&r->s.fifo, line);
	if (f->e.class != MT_IDLE_CLASS)
		d->sync_ns = d->now;
}

/* --- dispatch --- */

static struct mt_request *pop(struct list_head *line)
{
	struct mt_request *r;

	if (list_empty(line))
		return NULL;
	r = mt_request(list_first_entry(line, struct hw_sorted_request, fifo));
	list_del_init(&r->s.fifo);
	return r;
}

static struct hw_request *start(struct mt_device *d, struct mt_request *r, enum hw_reason why)
{
	struct mt_solid *x = &d->x;
	struct mt_flow *f = r->flow;
	struct hw_request *rq = &r->s.rq;
	u32 bytes = rq->sectors * HW_SECTOR_BYTES;

	if (d->q.wait.active)
		hw_wait_end(&d->q, f && d->held == &f->e ? HW_WAIT_SUCCESS : HW_WAIT_OTHER, d->now);
	if (d->q.wait.ended)
		hw_because_wait(&d->q, f && d->held == &f->e, why);
	else
		hw_because(&d->q, why);
	if (f) {
		f->queued--;
		f->flying++;
		r->alone = !x->flying_bytes && !x->async_bytes;
		x->flying_bytes += bytes;
		r->writes = x->async_bytes ? x->writes - 1 : x->writes;
		if (d->serving != &f->e) {
			f->e.v += (u64)rq->sectors * x->sector_cost >> COST_SHIFT;
			x->mean += (u64)((s64)(f->e.v - x->mean) >> MEAN_SHIFT);
		}
	} else {
		x->async_bytes += bytes;
		x->writes++;
		x->async_due = d->now;
		if (bytes > x->window && x->bound)
			x->async_due +=
				((u64)rq->sectors * x->sector_cost >> COST_SHIFT) * x->apart;
	}
	return rq;
}

/* The favoured has nothing queued: is it to be waited for? */
static bool favour_holds(struct mt_device *d)
{
	struct mt_flow *f = mt_flow_of(d->serving);
	u64 until = f->e.emptied_ns + FAVOUR_HOLD_NS;

	if (f->flying)
		return true;
	if (until <= d->now) {
		favour_end(d, HW_WAIT_FAIL);
		return false;
	}
	d->q.wake_ns = until;
	if (!d->q.nr_in_flight && !d->q.wait.active && d->q.nr_queued) {
		hw_wait_begin(&d->q, f->task, d->now);
		d->held = &f->e;
	}
	return true;
}

/*
 * May write-back go now? While others are there, as much is in the device as the window says; if
 * that is less than a request, requests keep apart.
 */
static bool async_may(struct mt_device *d)
{
	struct mt_solid *x = &d->x;
	u64 until;

	if (list_empty(&x->async))
		return false;
	if (d->now - d->sync_ns > LONE_NS)
		return x->async_bytes < x->cap;
	if (x->async_bytes >= x->window)
		return false;
	until = min(x->untold ? HW_NEVER : x->async_due, d->sync_ns + LONE_NS + 1);
	if (until <= d->now)
		return true;
	d->q.wake_ns = until;
	return false;
}

static struct hw_request *idle_next(struct mt_device *d)
{
	struct mt_solid *x = &d->x;

	if (list_empty(&x->idle))
		return NULL;
	if (d->now - d->sync_ns < IDLE_QUIET_NS && d->now - x->idle_ns < IDLE_PATIENT_NS) {
		d->q.wake_ns = min(d->q.wake_ns,
				   min(d->sync_ns + IDLE_QUIET_NS, x->idle_ns + IDLE_PATIENT_NS));
		return NULL;
	}
	x->idle_ns = d->now;
	return start(d, pop(&x->idle), HW_TURN);
}

/* Who has stepped aside joins the line again. */
static noinline void come_back(struct mt_device *d, struct mt_entity *e)
{
	mt_unlist(d, e);
	list_splice_tail_init(&e->fifo, &d->x.line);
}

/* Those that have had more than others step aside, until the others have had as much. */
static struct mt_request *line_next(struct mt_device *d)
{
	struct mt_solid *x = &d->x;
	struct mt_request *r;
	struct mt_entity *e;

	if (unlikely(d->root.busy.rb_node)) {
		e = mt_least(&d->root);
		if (e->v <= x->mean)
			come_back(d, e);
	}
	while ((r = pop(&x->line))) {
		e = &r->flow->e;
		if (likely(e->v <= x->mean + AHEAD_NS) || list_empty(&x->line))
			return r;
		if (!e->listed)
			mt_list(d, e);
		list_add_tail(&r->s.fifo, &e->fifo);
	}
	e = mt_least(&d->root);
	if (!e)
		return NULL;
	come_back(d, e);
	return pop(&x->line);
}

/*
 * A small request of a flow that has no other, and has not had more than the rest, does not wait for
 * room among large ones: it adds little to what others wait for. But it makes nobody wait for long.
 */
static struct mt_request *small_next(struct mt_device *d)
{
	struct mt_solid *x = &d->x;
	const struct mt_request *r;

	if (list_empty(&x->small))
		return NULL;
	if (x->flying_bytes >= x->cap && !d->q.force) {
		if (x->flying_bytes >= SMALL_OVER * x->cap)
			return NULL;
		r = list_empty(&x->line) ?
			    NULL :
			    mt_request(list_first_entry(&x->line, struct hw_sorted_request, fifo));
		if (r && d->now - r->s.rq.insert_ns > LINE_NS)
			return NULL;
	}
	return pop(&x->small);
}

static struct hw_request *flash_dispatch(struct mt_device *d)
{
	struct mt_solid *x = &d->x;
	struct mt_request *r = mt_pop_first(d);
	struct hw_request *rq;

	if (r)
		return &r->s.rq;
	favour_charge(d);
	r = pop(&x->realtime);
	if (r)
		return start(d, r, HW_PREEMPTED);
	if (d->serving && !d->q.force) {
		r = pop(&x->favoured);
		if (r)
			return start(d, r, HW_TURN);
		if (favour_holds(d))
			return NULL;
	} else if (d->serving) {
		favour_end(d, HW_WAIT_OTHER);
	}
	if (async_may(d))
		return start(d, pop(&x->async), HW_TURN);
	r = small_next(d);
	if (r)
		return start(d, r, HW_ARRIVAL);
	if (x->flying_bytes < x->cap || d->q.force) {
		r = line_next(d);
		if (r)
			return start(d, r, HW_ARRIVAL);
	}
	rq = idle_next(d);
	if (rq || !d->q.nr_queued)
		return rq;
	if (d->q.force) {
		r = pop(&x->async);
		return start(d, r ? r : pop(&x->idle), HW_DRAIN);
	}
	/* What is there keeps out of others' way. */
	if (!d->q.nr_in_flight && !d->q.wait.active) {
		hw_wait_begin(&d->q, NULL, d->now);
		d->held = NULL;
	}
	return NULL;
}

/* --- completion --- */

/* A read tells whether writes beside it cost too much. */
static void tune_window(struct mt_solid *x, const struct mt_request *r, u64 now)
{
	u32 *base = &x->base[size_class(&r->s.rq)];
	u64 latency = now - r->s.rq.insert_ns, think = r->flow->e.near, cost;

	if (r->writes == x->writes) {
		if (!*base || latency < *base)
			*base = (u32)min_t(u64, latency, U32_MAX);
		else
			*base += *base >> 8;
		x->untold = false;
		return;
	}
	if (!*base) {
		x->untold = true;
		return;
	}
	cost = ((u64)r->s.rq.sectors * x->sector_cost >> COST_SHIFT) * (r->flow->flying + 1);
	x->bound = cost * 4 > *base * 3ull;
	/* While it thinks the device is free. */
	x->apart = W_APART - (think * 4 >= *base) - (think * 2 >= *base);
	if ((think + latency) * 2 > (think + *base) * 3)
		x->window = max(x->window - (x->window >> 2), W_LEAST);
	else
		x->window = (u32)min_t(u64, x->window + (x->window >> 5) + W_STEP, x->cap);
}

/* @r is in the device no longer. */
static void landed(struct mt_device *d, const struct mt_request *r)
{
	u32 bytes = r->s.rq.sectors * HW_SECTOR_BYTES;

	favour_charge(d);
	if (r->flow) {
		d->x.flying_bytes -= bytes;
		r->flow->flying--;
	} else {
		d->x.async_bytes -= bytes;
	}
}

/* How long it was in the device: the least, and the mean beside others. */
static void note_read(struct mt_solid *x, const struct mt_request *r, u64 now)
{
	u32 size = size_class(&r->s.rq), *mean = &x->beside_ns[size];
	u32 took = (u32)clamp_t(u64, now - r->s.rq.dispatch_ns, 1, READ_MOST_NS);

	if (!x->least_ns[size] || took < x->least_ns[size])
		x->least_ns[size] = took;
	if (!r->alone)
		*mean = *mean ? *mean + (((s32)took - (s32)*mean) >> READ_SHIFT) : took;
}

static void completed(struct mt_device *d, struct mt_request *r)
{
	struct mt_solid *x = &d->x;

	x->bytes += r->s.rq.sectors * HW_SECTOR_BYTES;
	if (d->now - x->window_since >= RATE_NS)
		new_window(x, d->now);
	landed(d, r);
	if (r->flow && r->s.rq.op == HW_READ) {
		note_read(x, r, d->now);
		tune_window(x, r, d->now);
	}
}

static void flash_complete(struct mt_device *d, struct mt_request *r)
{
	if (r->home)
		completed(d, r);
	if (!r->flow)
		return;
	r->flow->e.emptied_ns = d->now;
	mt_retire(d, r->flow);
}

/* It has been in the device, but nothing was served: neither its rate nor a latency is known by it. */
static void flash_requeue(struct mt_device *d, struct mt_request *r)
{
	landed(d, r);
	if (r->flow)
		mt_retire(d, r->flow);
}

/* @gone has been merged away. */
static void flash_forget(struct mt_device *d, struct mt_request *keep, struct mt_request *gone)
{
	struct mt_flow *f = gone->flow;

	list_del_init(&gone->s.fifo);
	if (!f)
		return;
	f->queued--;
	if (f->e.listed && list_empty(&f->e.fifo))
		mt_unlist(d, &f->e);
	mt_retire(d, f);
}

void mt_flash_init(struct mt_device *d)
{
	struct mt_solid *x = &d->x;

	INIT_LIST_HEAD(&x->realtime);
	INIT_LIST_HEAD(&x->favoured);
	INIT_LIST_HEAD(&x->small);
	INIT_LIST_HEAD(&x->line);
	INIT_LIST_HEAD(&x->async);
	INIT_LIST_HEAD(&x->idle);
	x->window_since = d->now;
	x->window = CAP_LEAST;
	x->apart = W_APART;
	x->cap = CAP_LEAST;
	new_window(x, d->now + RATE_NS);
	x->window_since = d->now;
}

const struct mt_operations mt_flash = {
	.insert = flash_insert,
	.dispatch = flash_dispatch,
	.complete = flash_complete,
	.requeue = flash_requeue,
	.forget = flash_forget,
	.task_exit = mt_retire,
	.gone = flash_gone,
};
