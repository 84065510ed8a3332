// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * as-seek: shortest positioning time first, which waits for the process served last if that
 * promises to be shorter.
 *
 * Source: Iyer & Druschel, SOSP 2001, seek-optimising policies within the framework of id_core.c.
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
#include "../lib/heal.h"
#include "id_core.h"

#define WEIGHT_BITS 20		/* of W, and more */
#define TREE_HEIGHT 66		/* of one of 2^32 requests, and one */

enum { ORDER_SPTF, ORDER_CSCAN };
static const char *const order_names[] = { "sptf", "cscan", NULL };

static const struct hw_tunable as_seek_tunables[] = {
	HW_TUNE_ENUM(struct id_device, order, ORDER_SPTF, order_names,
		     "the work-conserving policy: shortest positioning time first, or a one-way "
		     "elevator"),
	HW_TUNE(struct id_device, W, 30, 0, 1000000, "us/ms",
		"sptf: positioning time forgiven for each ms of age; 0: starves whoever is far "
		"from the others"),
	HW_TUNE(struct id_device, back_frac, 800, 0, 1001, "permille",
		"cscan: no wait for a process with this part of its requests behind the one "
		"before"),
	ID_TUNABLES,
};

/* --- requests by place, each with the age of the oldest one below it --- */

static struct hw_sorted *seek_tree(struct id_device *d, struct id_task *t)
{
	return &d->sort;
}

static u64 oldest_below(struct rb_node *n)
{
	return n ? id_request(hw_sorted_entry(n))->oldest : HW_NEVER;
}

static void sum_up(struct rb_node *n)
{
	struct hw_sorted_request *s = hw_sorted_entry(n);

	id_request(s)->oldest = min(s->expires, min(oldest_below(n->rb_left), oldest_below(n->rb_right)));
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

	if (likely(age <= S64_MAX >> WEIGHT_BITS))
		return (s64)div_u64(age * (u64)d->W, 1000);
	/* After hours in the queue the product may not fit; after weeks it is more than any place can cost. */
	us = div_u64(age, 1000);
	return (s64)(us > div64_u64(most, (u64)d->W) ? most : us * (u64)d->W);
}

/* Positioning time less what age makes up for. */
static s64 effort(const struct id_device *d, const struct hw_sorted_request *s, u64 now)
{
	return (s64)id_positioning(d, d->head, s->rq.sector) - forgiven(d, now - s->expires);
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

static void consider(struct search *f, struct hw_sorted_request *s)
{
	s64 e = effort(f->d, s, f->now);

	if (e > f->least || (e == f->least && !before(s, f->best)))
		return;
	f->best = s;
	f->least = e;
}

/*
 * Might something at or below @n in the tree, all of it at least as far from the head as @edge, be better? It would at best
 * lie there and be the oldest.
 */
static bool promising(const struct search *f, struct rb_node *n, u64 edge)
{
	s64 bound = (s64)id_positioning(f->d, f->d->head, edge) -
		    forgiven(f->d, f->now - oldest_below(n));

	if (bound != f->least)
		return bound < f->least;
	while (n->rb_left)
		n = n->rb_left;
	return before(hw_sorted_entry(n), f->best);
}

/*
 * From the head outwards, leaving out every branch of the tree in which nothing can be better than the best so far. To begin
 * with that is the nearest or the oldest.
 */
static struct hw_sorted_request *least_effort(struct id_device *d, u64 now)
{
	struct search f = { .d = d, .now = now, .best = id_nearest(d, &d->sort) };
	/* On each level of the tree there is one branch yet to be looked at. */
	struct { struct rb_node *n; u64 edge; } todo[TREE_HEIGHT], at;
	struct rb_node *n = d->sort.root.rb_node;
	u32 left = 0;

	if (!d->W)
		return f.best;
	f.least = effort(d, f.best, now);
	consider(&f, hw_fifo_first(&d->fifo));
	while (n) {
		struct hw_sorted_request *s = hw_sorted_entry(n);
		bool below = s->rq.sector < d->head;

		consider(&f, s);
		at.n = below ? n->rb_left : n->rb_right;
		at.edge = s->rq.sector;
		if (at.n)
			todo[left++] = at;
		n = below ? n->rb_right : n->rb_left;
	}
	while (left) {
		struct rb_node *near, *far;
		bool below;

		at = todo[--left];
		if (!promising(&f, at.n, at.edge))
			continue;
		consider(&f, hw_sorted_entry(at.n));
		below = at.edge < d->head;
		near = below ? at.n->rb_right : at.n->rb_left;
		far = below ? at.n->rb_left : at.n->rb_right;
		if (far) {
			todo[left].n = far;
			todo[left++].edge = hw_sorted_entry(at.n)->rq.sector;
		}
		if (near) {
			todo[left].n = near;
			todo[left++].edge = at.edge;
		}
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
		return id_benefit_exceeds_cost(d, effort(d, c, now), now);
	if (d->last->backward >= ID_ONE / 1000 * (u64)d->back_frac)
		return false;
	return id_benefit_exceeds_cost(d, (s64)id_positioning(d, d->head, c->rq.sector), now);
}

static const struct id_rules seek_rules = {
	.tree = seek_tree,
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
	.summary = "shortest positioning time first, waiting where that is shorter still",
	.source = "Iyer & Druschel, Anticipatory scheduling, SOSP 2001",
	.flags = HW_POLICY_HASH,
	.queue_size = sizeof(struct id_device),
	.task_size = sizeof(struct id_task),
	.request_size = sizeof(struct id_request),
	.tunables = as_seek_tunables,
	.nr_tunables = ARRAY_SIZE(as_seek_tunables),
	.init = as_seek_init,
	.insert = id_insert,
	.dispatch = id_dispatch,
	.complete = id_complete,
	.requeue = id_requeue,
	.has_work = id_has_work,
	.find_merge = id_find_merge,
	.allow_merge = id_allow_merge,
	.merged = id_merged,
	.merged_requests = id_merged_requests,
	.former = id_former,
	.latter = id_latter,
	.task_exit = id_task_exit,
};
