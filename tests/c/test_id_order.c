// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * as-seek and as-share under random calls: what their trees find is what looking at every request
 * and every process finds, with positioning times that rise, that are flat, and that are both.
 */
#include <stdlib.h>

#include "check.h"
#include "core/lib/merge.h"
#include "core/policy/id/internal.h"

#define MS	 HW_NSEC_PER_MSEC
#define TASKS	 12
#define REQUESTS 400
#define STEPS	 4000

static struct id_device dev;
static struct id_task tasks[TASKS];
static struct id_request requests[REQUESTS];
static struct hw_merger merger;
static s64 positions[6]; /* rows of distance and time; the first stays 0 0 */
static u64 state;

static u64 roll(u64 n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % n;
}

static u64 cost(const struct hw_request *rq)
{
	return id_positioning(&dev, dev.head, rq->sector);
}

static s64 effort(const struct id_request *r, u64 now)
{
	return (s64)cost(&r->s.rq) - (s64)((now - r->s.expires) * (u64)dev.W / 1000);
}

static bool queued(const struct id_request *r)
{
	return r->s.rq.state == HW_QUEUED;
}

static void check_seek(u64 now)
{
	struct id_request *found = id_request(dev.rules->candidate(&dev, now)), *best = NULL;
	u32 i;

	for (i = 0; i < REQUESTS; i++) {
		struct id_request *r = &requests[i];

		if (!queued(r))
			continue;
		if (!best || effort(r, now) < effort(best, now) ||
		    (effort(r, now) == effort(best, now) && r->s.rq.sector < best->s.rq.sector))
			best = r;
	}
	CHECK(queued(found));
	CHECK_EQ(effort(found, now), effort(best, now));
	CHECK_EQ(found->s.rq.sector, best->s.rq.sector);
}

static bool counted(const struct id_task *t)
{
	return t->queued + t->in_flight || (id_anticipates(&dev) && t == dev.last);
}

static u64 share(const struct id_task *t)
{
	return t->task.share ? t->task.share : 4;
}

static void check_share(u64 now)
{
	struct id_request *found = id_request(dev.rules->candidate(&dev, now)), *best = NULL;
	u64 least = HW_NEVER, slowest = HW_NEVER, all = 0, n = 0, limit, i;

	for (i = 0; i < TASKS; i++)
		if (counted(&tasks[i])) {
			least = min(least, tasks[i].clock);
			all += share(&tasks[i]);
			n++;
		}
	for (i = 0; i < TASKS; i++)
		if (tasks[i].queued)
			slowest = min(slowest, tasks[i].clock);
	limit = least;
	if (dev.tau >= 0)
		limit += (u64)dev.tau * MS;
	else if (positions[1] != positions[2 * dev.q.dev.positions.nr - 1])
		limit += 100 * MS * n / all;
	limit = max(limit, slowest);
	for (i = 0; i < REQUESTS; i++) {
		struct id_request *r = &requests[i];

		if (!queued(r) || r->owner->clock > limit)
			continue;
		if (!best || cost(&r->s.rq) < cost(&best->s.rq) ||
		    (cost(&r->s.rq) == cost(&best->s.rq) && r->s.rq.sector < best->s.rq.sector))
			best = r;
	}
	CHECK(queued(found) && found->owner->clock <= limit);
	CHECK_EQ(dev.minclock, least);
	CHECK_EQ(cost(&found->s.rq), cost(&best->s.rq));
	CHECK_EQ(found->s.rq.sector, best->s.rq.sector);
}

static void insert(struct id_request *r, u64 span, u64 now)
{
	struct hw_task *task = &tasks[roll(TASKS)].task;
	struct hw_bio bio = { .sector = roll(span) * 8,
			      .sectors = 8,
			      .flags = roll(4) ? HW_RQ_SYNC : 0,
			      .task = task };
	struct hw_merge_result m = hw_merge_try(&merger, &dev.q, &bio, now);

	if (m.gone)
		m.gone->state = HW_IDLE;
	if (m.into)
		return;
	memset(r, 0, sizeof(*r));
	r->s.rq.sector = bio.sector;
	r->s.rq.sectors = bio.sectors;
	r->s.rq.flags = bio.flags;
	r->s.rq.task = task;
	hw_insert(&dev.q, &r->s.rq, now);
	hw_merge_inserted(&merger, &dev.q, &r->s.rq);
}

static void run(const struct hw_policy *policy, void (*check)(u64 now), u64 seed)
{
	static const u64 spans[] = { 60, 3000, 1000000 };
	struct id_request *served[4] = { NULL };
	u64 now = 0, span;
	u32 i, step;

	state = seed;
	memset(&dev, 0, sizeof(dev));
	memset(tasks, 0, sizeof(tasks));
	memset(requests, 0, sizeof(requests));
	hw_queue_prepare(&dev.q, policy);
	hw_merge_init(&merger, 64);
	span = spans[roll(3)];
	dev.q.dev.depth = 4;
	dev.in_device = 1 + (s64)roll(4);
	dev.anticipate = (s64)roll(2);
	dev.q.dev.rotational = roll(4) != 0;
	dev.W = (s64)roll(3) * 30;
	dev.tau = (s64)roll(3) - 1;
	dev.q.dev.positions = (struct hw_rows){ positions, 3 };
	positions[2] = 1 + (s64)roll(span * 8);
	positions[4] = positions[2] + 1 + (s64)roll(span * 8);
	positions[3] = (s64)roll(3) * MS;
	positions[5] = positions[3] + (s64)roll(3) * 5 * MS;
	CHECK_EQ(hw_start(&dev.q, 0), 0);
	for (i = 0; i < TASKS; i++) {
		tasks[i].task.share = (u16)roll(5);
		hw_task_start(&dev.q, &tasks[i].task, 0);
	}
	for (step = 0; step < STEPS; step++) {
		struct id_request *r = &requests[roll(REQUESTS)];
		u32 slot = (u32)roll(4);

		now += roll(3) ? 0 : roll(4 * MS);
		if (roll(100) < 60 && r->s.rq.state == HW_IDLE) {
			insert(r, span, now);
		} else if (served[slot]) {
			hw_complete(&dev.q, &served[slot]->s.rq, now);
			served[slot] = NULL;
		} else {
			struct hw_request *rq;

			if (dev.q.nr_queued)
				check(now);
			rq = hw_dispatch(&dev.q, now);
			if (!rq)
				continue;
			hw_merge_removed(&merger, rq);
			served[slot] = id_request(hw_sorted(rq));
		}
	}
}

/*
 * A young request takes the age of an old one behind it. It is then the best, behind one that is
 * older and farther away, wherever the two lie in the tree.
 */
static void joined(u32 at)
{
	u32 i;

	memset(&dev, 0, sizeof(dev));
	memset(tasks, 0, sizeof(tasks));
	memset(requests, 0, sizeof(requests));
	hw_queue_prepare(&dev.q, &hw_as_seek);
	hw_merge_init(&merger, 64);
	dev.q.dev.depth = 1;
	dev.in_device = 1;
	dev.W = 30;
	dev.q.dev.positions = (struct hw_rows){ positions, 2 };
	positions[2] = 10000000;
	positions[3] = 20 * MS;
	CHECK_EQ(hw_start(&dev.q, 0), 0);
	hw_task_start(&dev.q, &tasks[0].task, 0);
	for (i = 0; i < 42; i++) {
		/*
		 * The farthest, the old one, and the others, of which the one in front of it is
		 * alike.
		 */
		u32 place = i < 2 ? at : (i * 17 + at) % 41;
		u64 now = i < 2 ? i * 10 * MS : 1000 * MS;
		struct id_request *r = &requests[i];

		if (i > 1 && place == at)
			continue;
		r->s.rq.sector = i ? 1000000 + place * 16 : 9000000;
		r->s.rq.sectors = 8;
		r->s.rq.flags = HW_RQ_SYNC;
		r->s.rq.task = &tasks[0].task;
		hw_insert(&dev.q, &r->s.rq, now);
		hw_merge_inserted(&merger, &dev.q, &r->s.rq);
	}
	if (at) {
		struct hw_bio bio = { .sector = 1000000 + at * 16 - 8,
				      .sectors = 8,
				      .flags = HW_RQ_SYNC,
				      .task = &tasks[0].task };

		CHECK(hw_merge_try(&merger, &dev.q, &bio, 1000 * MS).gone == &requests[1].s.rq);
	}
	check_seek(2000 * MS);
}

int main(void)
{
	u64 seed;
	u32 at;

	for (at = 0; at < 41; at++)
		joined(at);

	for (seed = 0; seed < 60; seed++) {
		run(&hw_as_seek, check_seek, seed);
		run(&hw_as_share, check_share, seed);
	}
	return CHECK_DONE();
}
