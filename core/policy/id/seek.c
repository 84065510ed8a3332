// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * as-seek: shortest positioning time first, which waits for the process served last if that
 * promises to be shorter.
 *
 * Source: Iyer & Druschel, SOSP 2001, seek-optimising policies within the framework of core.c.
 *
 * Caveats: it optimises throughput, and fairness comes from ageing alone (W). It believes what it
 * is told of the drive's positioning times; with a flat table it sees no benefit in waiting for a
 * process with habits.
 *
 * Decides:
 *  - Candidate (`order=sptf`): the least P(distance from the head) - W * age; W = 0 is plain SPTF.
 *    (`order=cscan`): the lowest sector at or above the head, else the lowest of all.
 *  - It waits if the candidate's effort exceeds the expected positioning time of the process served
 *    last by more than what is left of that one's median think time. Under `cscan` not for a
 *    process most of whose requests go backwards.
 */
#include "core/lib/heal.h"
#include "core/policy/id/internal.h"

#define WEIGHT_BITS  20 /* of W, and more */
#define OLDEST_SHIFT 22 /* ns -> 4 ms; what is 208 days old or more is as old as that */
#define TREE_HEIGHT  66 /* of one of 2^32 requests, and one */

enum { ORDER_SPTF, ORDER_CSCAN };
static const char *const order_names[] = { "sptf", "cscan", NULL };

static const struct hw_tunable as_seek_tunables[] = {
	HW_TUNE_ENUM(struct id_device, order, ORDER_SPTF, order_names,
		     "the work-conserving policy: shortest positioning time first, or a one-way "
		     "elevator"),
	HW_TUNE(struct id_device, W, 30, 0, 1000000, "us/ms",
		"sptf: positioning time subtracted for each ms of age; 0: requests far from the "
		"others may starve"),
	HW_TUNE(struct id_device, back_frac, 800, 0, 1001, "permille",
		"cscan: no wait for a process with this fraction of its requests behind the one "
		"before"),
	ID_TUNABLES,
};

/* --- requests by place, each with the age of the oldest one below it --- */

static struct hw_sorted *seek_tree(struct id_device *d, struct id_task *t)
{
	return &d->sort;
}

/* In units that are rounded down: a bound. */
static u32 oldest_below(struct rb_node *n)
{
	return n ? hw_sorted_entry(n)->rq.below : U32_MAX;
}

static void sum_up(struct rb_node *n)
{
	struct hw_sorted_request *s = hw_sorted_entry(n);
	u32 own = (u32)min_t(u64, s->expires >> OLDEST_SHIFT, U32_MAX);

	s->rq.below = min(own, min(oldest_below(n->rb_left), oldest_below(n->rb_right)));
}

static void seek_add(struct id_device *d, struct id_task *t, struct hw_sorted_request *s)
{
	hw_sorted_add(&d->sort, s);
	hw_heal(hw_heal_inserted(&s->node), sum_up);
}

static void seek_del(struct id_device *d, struct id_task *t, struct hw_sorted_request *s)
{
	struct rb_node *lowest = hw_heal_erased(&s->node);

	hw_sorted_del(&d->sort, s);
	hw_heal(lowest, sum_up);
}

static void seek_aged(struct hw_sorted_request *s)
{
	hw_heal(&s->node, sum_up);
}

/* --- the least effort --- */

/* Positioning time that age makes up for. */
static s64 forgiven(const struct id_device *d, u64 age)
{
	u64 most = S64_MAX / 2, us;

	if (likely(age <= S64_MAX >> WEIGHT_BITS) || !d->W)
		return (s64)div_u64(age * (u64)d->W, 1000);
	/*
	 * After hours in the queue the product may not fit; after weeks it is more than any place
	 * can cost.
	 */
	us = div_u64(age, 1000);
	return (s64)(us > div64_u64(most, (u64)d->W) ? most : us * (u64)d->W);
}

static s64 positioning_of(const struct id_device *d, const struct hw_sorted_request *s)
{
	return (s64)id_positioning(d, d->head, s->rq.sector);
}

/* Positioning time less what age makes up for. */
static s64 effort(const struct id_device *d, const struct hw_sorted_request *s, s64 positioning,
		  u64 now)
{
	return positioning - forgiven(d, now - s->expires);
}

/* The best so far; of equals the lowest sector, then the first come. */
struct search {
	const struct id_device *d;
	u64 now;
	struct hw_sorted_request *best;
	s64 least;
};

static bool before(const struct hw_sorted_request *a, const struct hw_sorted_request *b)
{
	return a->rq.sector != b->rq.sector ? a->rq.sector < b->rq.sector : a->rq.id < b->rq.id;
}

/* Returns the positioning time. */
static s64 consider(struct search *f, struct hw_sorted_request *s)
{
	s64 positioning = positioning_of(f->d, s), e = effort(f->d, s, positioning, f->now);

	if (e < f->least || (e == f->least && before(s, f->best))) {
		f->best = s;
		f->least = e;
	}
	return positioning;
}

/* A branch of the tree that is yet to be looked at. */
struct branch {
	struct rb_node *n;
	/* no positioning in it is shorter: that of the request between it and the head */
	s64 least;
	bool below; /* the head */
};

/*
 * Might something in the branch be better? It would at best take as long as the least and be the
 * oldest.
 */
static bool promising(const struct search *f, const struct branch *b)
{
	struct rb_node *n = b->n;
	s64 bound = b->least - forgiven(f->d, f->now - ((u64)oldest_below(n) << OLDEST_SHIFT));

	if (bound != f->least)
		return bound < f->least;
	while (n->rb_left)
		n = n->rb_left;
	return before(hw_sorted_entry(n), f->best);
}

/*
 * From the head outwards, leaving out every branch of the tree in which nothing can be better than
 * the best so far. To begin with that is the oldest.
 */
static struct hw_sorted_request *least_effort(struct id_device *d, u64 now)
{
	struct search f = { .d = d, .now = now, .best = hw_fifo_first(&d->fifo) };
	struct branch todo[TREE_HEIGHT], at; /* one on each level of the tree */
	struct rb_node *n = d->sort.root.rb_node;
	u32 left = 0;

	if (!d->W)
		return id_nearest(d, &d->sort);
	f.least = effort(d, f.best, positioning_of(d, f.best), now);
	while (n) {
		struct hw_sorted_request *s = hw_sorted_entry(n);

		at.below = s->rq.sector < d->head;
		at.least = consider(&f, s);
		at.n = at.below ? n->rb_left : n->rb_right;
		if (at.n)
			todo[left++] = at;
		n = at.below ? n->rb_right : n->rb_left;
	}
	while (left) {
		struct rb_node *near, *far;
		s64 positioning;

		at = todo[--left];
		if (!promising(&f, &at))
			continue;
		positioning = consider(&f, hw_sorted_entry(at.n));
		near = at.below ? at.n->rb_right : at.n->rb_left;
		far = at.below ? at.n->rb_left : at.n->rb_right;
		if (far)
			todo[left++] = (struct branch){ far, positioning, at.below };
		if (near)
			todo[left++] = (struct branch){ near, at.least, at.below };
	}
	return f.best;
}

static struct hw_sorted_request *seek_candidate(struct id_device *d, u64 now)
{
	struct hw_sorted_request *s;

	if (d->order == ORDER_SPTF)
		return least_effort(d, now);
	s = hw_sorted_at_or_after(&d->sort, d->head);
	return s ? s : hw_sorted_first(&d->sort);
}

static bool seek_worth_waiting(struct id_device *d, struct hw_sorted_request *c, u64 now)
{
	if (d->order == ORDER_SPTF)
		return id_benefit_exceeds_cost(d, effort(d, c, positioning_of(d, c), now), now);
	if (d->last->backward >= ID_ONE / 1000 * (u64)d->back_frac)
		return false;
	return id_benefit_exceeds_cost(d, positioning_of(d, c), now);
}

static const struct id_rules seek_rules = {
	.tree = seek_tree,
	.because = HW_SEEK_ORDER,
	.add = seek_add,
	.del = seek_del,
	.aged = seek_aged,
	.candidate = seek_candidate,
	.worth_waiting = seek_worth_waiting,
};

static int as_seek_init(struct hw_queue *q, u64 now)
{
	return id_init(q, &seek_rules);
}

const struct hw_policy hw_as_seek = {
	.name = "as-seek",
	.summary = "shortest positioning time first, including expected requests",
	.tunables = as_seek_tunables,
	.nr_tunables = ARRAY_SIZE(as_seek_tunables),
	.init = as_seek_init,
	.insert = id_insert,
	.complete = id_complete,
	ID_POLICY,
};
