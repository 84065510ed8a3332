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
#include "id_core.h"

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

static struct hw_sorted *seek_tree(struct id_device *d, struct id_task *t)
{
	return &d->sort;
}

/* Positioning time less what age makes up for. */
static s64 effort(const struct id_device *d, const struct hw_sorted_request *s, u64 now)
{
	u64 age = now - s->expires;

	return (s64)id_positioning(d, d->head, s->rq.sector) - (s64)div_u64(age * (u64)d->W, 1000);
}

/*
 * The oldest requests first: a younger one can only win while the least distance and its age still
 * could.
 */
static struct hw_sorted_request *least_effort(struct id_device *d, u64 now)
{
	struct hw_sorted_request *best = id_nearest(d, &d->sort), *s;
	s64 nearest = (s64)id_positioning(d, d->head, best->rq.sector),
	    least = effort(d, best, now), e;

	if (!d->W)
		return best;
	list_for_each_entry(s, &d->fifo, fifo) {
		if (nearest - (s64)div_u64((now - s->expires) * (u64)d->W, 1000) > least)
			break;
		e = effort(d, s, now);
		if (e < least || (e == least && s->rq.sector < best->rq.sector)) {
			best = s;
			least = e;
		}
	}
	return best;
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
	.task_init = id_task_init,
	.task_exit = id_task_exit,
};
