// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * starvation: a load is played. Tasks in a closed loop, a disk with a seek curve, and between them
 * the policy, whose longest wait is what counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/sorted.h"
#include "starvation.h"

#define MS	   ((u64)HW_NSEC_PER_MSEC)
#define CAPACITY   (1ull << 28)
#define REVOLUTION (8333 * (u64)HW_NSEC_PER_USEC)
#define SECTOR_NS  8000u /* 64 MB/s */

/* A request to be, in the device's hands or queued. */
struct slot {
	struct hw_request *rq;
	u64 due_ns; /* of the next one; HW_NEVER while there is one */
};

struct runner {
	const struct habit *h;
	struct hw_task *task;
	struct slot slot[MAX_SLOTS];
	u64 place;
	u32 left, until_pause;
	u64 served;
	u64 commit_ns, commit_id; /* of the commit that is going on: since when; its write */
	bool commits;
};

/* Also those that have exited, until nothing refers to them. */
struct kept {
	struct list_head link;
	struct hw_task task; /* the policy's, as long as it says: must be last */
};

struct world {
	struct list_head tasks;
	const struct hw_policy *policy;
	struct hw_queue *q;
	struct runner runner[MAX_TASKS];
	u32 nr;
	u64 rng, now, head, served;
	struct hw_request *in_device[64]; /* in the order in which they came */
	u32 nr_in_device;
	u64 done_ns; /* when the first of them will be */
	bool quick;
	enum sought sought;
	u64 longest_ns;
	u32 whose; /* the runner that had the longest wait */
	u32 nr_tasks;
	s64 positions[2 * HW_POSITION_POINTS];
};

static void *take_memory(size_t size)
{
	void *p = calloc(1, size);

	if (!p) {
		fprintf(stderr, "starvation: out of memory\n");
		exit(2);
	}
	return p;
}

/* --- the disk --- */

/* 2 ms to 16 ms, about as the square root of the distance. */
static u64 seek_ns(u64 sectors)
{
	u64 share = sectors * 65536 / CAPACITY, root = 0;

	while ((root + 1) * (root + 1) <= share)
		root++;
	return 2 * MS + root * 14 * MS / 256;
}

static u64 service_ns(struct world *w, const struct hw_request *rq)
{
	u64 away = hw_apart(rq->sector, w->head), transfer = rq->sectors * SECTOR_NS;

	if (!away)
		return transfer + (w->quick ? 0 : draw(&w->rng, REVOLUTION / 16));
	return transfer + seek_ns(away) + draw(&w->rng, REVOLUTION);
}

static void serve_next(struct world *w)
{
	if (!w->nr_in_device) {
		w->done_ns = HW_NEVER;
		return;
	}
	w->done_ns = w->now + service_ns(w, w->in_device[0]);
	w->head = hw_end(w->in_device[0]);
}

/* --- tasks --- */

static void begin_task(struct world *w, struct runner *r)
{
	struct kept *kept = take_memory(offsetof(struct kept, task) + w->policy->task_size);

	list_add_tail(&kept->link, &w->tasks);
	r->task = &kept->task;
	r->task->id = ++w->nr_tasks;
	hw_task_start(w->q, r->task, w->now);
	r->left = r->h->lives;
}

static void forget(struct kept *kept)
{
	list_del(&kept->link);
	free(kept);
}

static void reap(struct world *w)
{
	struct hw_task *t, *next;

	list_for_each_entry_safe(t, next, &w->q->reap, reap) {
		list_del(&t->reap);
		forget(container_of(t, struct kept, task));
	}
}

static u64 next_place(struct world *w, struct runner *r)
{
	const struct habit *h = r->h;
	u64 span = CAPACITY / 64, from = h->region * span, at = r->place;

	switch (h->place) {
	case RANDOM:
		return from + draw(&w->rng, span - h->sectors);
	case BACKWARDS:
		r->place = at >= from + 2 * h->sectors ? at - h->sectors : from + span - h->sectors;
		return at;
	case SKIPPING:
		at += 4 * h->sectors;
		break;
	}
	if (at + h->sectors > from + span)
		at = from;
	r->place = at + h->sectors;
	return at;
}

static void issue(struct world *w, struct runner *r, struct slot *s)
{
	const struct habit *h = r->h;
	struct hw_request *rq = take_memory(w->policy->request_size);

	if (!r->task)
		begin_task(w, r);
	rq->sector = next_place(w, r);
	rq->sectors = h->sectors;
	rq->op = h->kind == READS ? HW_READ : HW_WRITE;
	rq->flags = h->kind == ASYNC_WRITES ? 0 : HW_RQ_SYNC;
	rq->task = r->task;
	rq->host = s;
	s->rq = rq;
	s->due_ns = HW_NEVER;
	hw_insert(w->q, rq, w->now);
	if (h->kind == SYNC_WRITES && !r->commits) {
		r->commits = true;
		r->commit_ns = w->now;
		r->commit_id = rq->id;
	}
}

static void note_wait(struct world *w, u32 whose, u64 since_ns)
{
	u64 waited = w->now - since_ns;

	if (waited > w->longest_ns) {
		w->longest_ns = waited;
		w->whose = whose;
	}
}

/* The request of all write-back that has waited longest; @write, if it is there still. */
static u64 oldest_needed(const struct world *w, u64 write)
{
	u64 oldest = HW_NEVER;
	u32 i, k;

	for (i = 0; i < w->nr; i++)
		for (k = 0; k < w->runner[i].h->slots; k++) {
			const struct hw_request *rq = w->runner[i].slot[k].rq;

			if (rq && (rq->id == write || w->runner[i].h->kind == ASYNC_WRITES))
				oldest = min(oldest, rq->id);
		}
	return oldest;
}

/* Commits that are done, or all of them as far as they have come. */
static void note_commits(struct world *w, bool all)
{
	u32 i;

	for (i = 0; i < w->nr && w->sought == COMMIT; i++) {
		struct runner *r = &w->runner[i];

		if (!r->commits || (!all && oldest_needed(w, r->commit_id) <= r->commit_id))
			continue;
		r->commits = false;
		note_wait(w, i, r->commit_ns);
	}
}

static void completed(struct world *w)
{
	struct hw_request *rq = w->in_device[0];
	struct slot *s = rq->host;
	u32 whose = (u32)(((char *)s - (char *)w->runner) / sizeof(w->runner[0]));
	struct runner *r = &w->runner[whose];
	const struct habit *h = r->h;

	w->nr_in_device--;
	memmove(w->in_device, w->in_device + 1, w->nr_in_device * sizeof(w->in_device[0]));
	if (w->sought == REQUEST)
		note_wait(w, whose, rq->insert_ns);
	hw_complete(w->q, rq, w->now);
	free(rq);
	s->rq = NULL;
	note_commits(w, false);
	s->due_ns = w->now + h->think_us * 1000ull +
		    (h->jitter_us ? draw(&w->rng, h->jitter_us * 1000ull) : 0);
	if (h->work && !--r->until_pause) {
		r->until_pause = h->work;
		s->due_ns += h->pause_us * 1000ull;
	}
	if (r->left && !--r->left) {
		hw_task_exit(w->q, r->task, w->now);
		r->task = NULL;
	}
	reap(w);
	w->served++;
	r->served++;
	serve_next(w);
}

static void dispatch(struct world *w)
{
	struct hw_queue *q = w->q;

	while (q->nr_in_flight < q->dev.depth) {
		struct hw_request *rq = hw_dispatch(q, w->now);

		if (!rq)
			return;
		w->in_device[w->nr_in_device++] = rq;
		if (w->nr_in_device == 1)
			serve_next(w);
	}
}

/* --- a run --- */

static u64 next_due(const struct world *w)
{
	u64 due = HW_NEVER;
	u32 i, k;

	for (i = 0; i < w->nr; i++)
		for (k = 0; k < w->runner[i].h->slots; k++)
			due = min(due, w->runner[i].slot[k].due_ns);
	return due;
}

static void arrive(struct world *w)
{
	u32 i, k;

	for (i = 0; i < w->nr; i++)
		for (k = 0; k < w->runner[i].h->slots; k++)
			if (w->runner[i].slot[k].due_ns <= w->now)
				issue(w, &w->runner[i], &w->runner[i].slot[k]);
}

static void begin(struct world *w, const struct hw_policy *policy, const struct load *l,
		  enum sought sought)
{
	static const u64 far[] = { 1, CAPACITY / 256, CAPACITY / 16, CAPACITY / 4, CAPACITY };
	u32 i, k;

	*w = (struct world){
		.policy = policy,
		.nr = l->nr,
		.rng = 1,
		.done_ns = HW_NEVER,
		.quick = l->quick,
		.sought = sought,
	};
	INIT_LIST_HEAD(&w->tasks);
	for (i = 0; i < ARRAY_SIZE(far); i++) {
		w->positions[2 * i + 2] = (s64)far[i];
		w->positions[2 * i + 3] = (s64)(seek_ns(far[i]) + REVOLUTION / 2);
	}
	w->q = take_memory(policy->queue_size);
	hw_queue_prepare(w->q, policy);
	w->q->dev = (struct hw_device){
		.sectors = CAPACITY,
		.rotational = true,
		.depth = l->depth,
		.positions = { w->positions, 1 + ARRAY_SIZE(far) },
	};
	hw_start(w->q, 0);
	for (i = 0; i < l->nr; i++) {
		struct runner *r = &w->runner[i];

		r->h = &l->habit[i];
		r->until_pause = r->h->work;
		r->place = r->h->region * (CAPACITY / 64);
		for (k = 0; k < r->h->slots; k++)
			r->slot[k].due_ns = r->h->start_us * 1000ull;
	}
}

static void end(struct world *w)
{
	struct kept *kept, *next;
	u32 i, k;

	for (i = 0; i < w->nr; i++)
		for (k = 0; k < w->runner[i].h->slots; k++)
			if (w->runner[i].slot[k].rq && w->sought == REQUEST)
				note_wait(w, i, w->runner[i].slot[k].rq->insert_ns);
	note_commits(w, true);
	for (i = 0; i < w->nr; i++)
		for (k = 0; k < w->runner[i].h->slots; k++)
			free(w->runner[i].slot[k].rq);
	list_for_each_entry_safe(kept, next, &w->tasks, link)
		forget(kept);
	free(w->q);
}

u64 play(const struct hw_policy *policy, const struct load *l, u64 until_ns, enum sought sought,
	 u32 *whose, u64 *served)
{
	struct world w;

	begin(&w, policy, l, sought);
	for (;;) {
		u64 next = min(next_due(&w), w.done_ns);

		if (w.q->nr_queued && w.q->nr_in_flight < w.q->dev.depth)
			next = min(next, w.q->wake_ns);
		if (next > until_ns)
			break;
		w.now = next;
		if (w.done_ns == w.now)
			completed(&w);
		arrive(&w);
		dispatch(&w);
	}
	w.now = until_ns;
	end(&w);
	*whose = w.whose;
	*served = w.served;
	return w.longest_ns;
}
