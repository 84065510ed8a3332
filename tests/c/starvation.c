// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Searches for the load under which a request waits longest, for every policy.
 *
 *     starvation [POLICY|all [SECONDS [LOADS [SEED [DEPTH]]]]]
 *
 * A load is up to 30 tasks in a closed loop: readers and writers, sequential, random or near each
 * other, that think, pause, exit and are followed by others, on a disk with a seek curve. Each is
 * played for SECONDS of simulated time. LOADS are tried: drawn afresh, or the worst so far with a
 * change; the same SEED tries the same ones. The longest wait counts from insertion to completion,
 * or to the end for what is still waiting. Nothing merges.
 *
 * Without arguments it is a test: every policy against the longest wait that its page promises.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/elevator.h"

#define MAX_TASKS  30u
#define MAX_SLOTS  4u /* requests that a task keeps going */
#define MS	   ((u64)HW_NSEC_PER_MSEC)
#define SECOND	   ((u64)HW_NSEC_PER_SEC)
#define CAPACITY   (1ull << 28)
#define REVOLUTION (8333 * (u64)HW_NSEC_PER_USEC)
#define SECTOR_NS  8000u /* 64 MB/s */

enum { QUICK_SECONDS = 120, QUICK_LOADS = 24 };

/*
 * What docs/schedulers/ promises: no wait as long as this for such loads, on devices of `depth` (0:
 * of any). Who is not here has no bound, and starves somebody in tests/test_starvation.py.
 */
static const struct {
	const char *policy;
	u32 depth;
	u64 seconds;
} promised[] = {
	{ "noop", 0, 5 },   { "none", 0, 5 }, { "deadline", 0, 30 }, { "mq-deadline", 0, 30 },
	{ "kyber", 0, 15 }, { "cfq", 0, 30 }, { "as-seek", 0, 5 },   { "as", 1, 90 },
	{ "as-95", 1, 90 }, { "cas", 1, 90 },
};

enum place { SEQUENTIAL, SKIPPING, RANDOM, BACKWARDS, PLACES };
enum kind { READS, SYNC_WRITES, ASYNC_WRITES, KINDS };

/* What a task does; times in us. */
struct habit {
	u32 place, kind;
	u32 region; /* where: a 64th of the disk */
	u32 sectors, slots;
	u32 think_us, jitter_us;
	u32 lives;	    /* requests until it exits and another one goes on; 0: for ever */
	u32 work, pause_us; /* requests between pauses; 0: no pauses */
	u32 start_us;
};

struct load {
	u32 nr;
	u32 depth; /* of the device */
	u32 quick; /* sequential requests from the drive's buffer */
	struct habit habit[MAX_TASKS];
};

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
	u64 longest_ns;
	u32 whose; /* the runner that had the longest wait */
	u32 nr_tasks;
};

static u64 next_random(u64 *rng)
{
	u64 z = *rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static u64 draw(u64 *rng, u64 n)
{
	return next_random(rng) % n;
}

#define PICK(rng, ...)   \
	(((const u32[]){ \
		__VA_ARGS__ })[draw(rng, sizeof((const u32[]){ __VA_ARGS__ }) / sizeof(u32))])

static void *take_memory(size_t size)
{
	void *p = calloc(1, size);

	if (!p) {
		fprintf(stderr, "starvation: out of memory\n");
		exit(2);
	}
	return p;
}

/* --- loads --- */

static void draw_habit(u64 *rng, struct habit *h)
{
	*h = (struct habit){
		.place = PICK(rng, SEQUENTIAL, SEQUENTIAL, SEQUENTIAL, SKIPPING, RANDOM, RANDOM,
			      BACKWARDS),
		.kind = PICK(rng, READS, READS, READS, READS, SYNC_WRITES, ASYNC_WRITES),
		.region = (u32)draw(rng, 64),
		.sectors = PICK(rng, 8, 8, 8, 64, 256),
		.slots = 1,
		.think_us =
			PICK(rng, 0, 20, 100, 500, 1000, 3000, 5000, 7000, 10000, 20000, 100000),
		.jitter_us = PICK(rng, 0, 0, 100, 1000, 5000, 20000),
		.lives = PICK(rng, 0, 0, 0, 0, 1, 2, 5, 100),
		.work = PICK(rng, 0, 0, 0, 1, 10, 100, 1000),
		.pause_us = PICK(rng, 10000, 100000, 1000000, 3000000),
		.start_us = PICK(rng, 0, 0, 0, 200000, 1000000, 5000000),
	};
	if (h->kind == ASYNC_WRITES)
		h->slots = PICK(rng, 1, MAX_SLOTS);
}

static void draw_load(u64 *rng, struct load *l)
{
	u32 i, like;

	l->nr = 1 + (u32)draw(rng, PICK(rng, 2, 4, 10, MAX_TASKS));
	l->depth = PICK(rng, 1, 1, 1, 2, 32);
	l->quick = (u32)draw(rng, 2);
	for (i = 0; i < l->nr; i++) {
		draw_habit(rng, &l->habit[i]);
		/* Mostly many of a kind and few others. */
		if (i && draw(rng, 4)) {
			like = (u32)draw(rng, i);
			l->habit[i] = l->habit[like];
			if (draw(rng, 4))
				l->habit[i].region = (u32)draw(rng, 64);
		}
	}
}

static void change_load(u64 *rng, struct load *l)
{
	struct habit drawn, *h;

	switch (draw(rng, 10)) {
	case 0:
		l->depth = PICK(rng, 1, 1, 2, 32);
		return;
	case 1:
		l->quick = !l->quick;
		return;
	case 2:
		if (l->nr > 1) {
			l->nr--;
			l->habit[draw(rng, l->nr + 1)] = l->habit[l->nr];
		}
		return;
	case 3:
	case 4:
		if (l->nr < MAX_TASKS) {
			l->habit[l->nr] = l->habit[draw(rng, l->nr)];
			l->habit[l->nr++].region = (u32)draw(rng, 64);
		}
		return;
	}
	h = &l->habit[draw(rng, l->nr)];
	draw_habit(rng, &drawn);
	switch (draw(rng, 8)) {
	case 0:
		h->place = drawn.place;
		break;
	case 1:
		h->region = drawn.region;
		break;
	case 2:
		h->sectors = drawn.sectors;
		break;
	case 3:
		h->think_us = drawn.think_us;
		break;
	case 4:
		h->jitter_us = drawn.jitter_us;
		break;
	case 5:
		h->lives = drawn.lives;
		break;
	case 6:
		h->work = drawn.work;
		h->pause_us = drawn.pause_us;
		break;
	case 7:
		h->start_us = drawn.start_us;
		break;
	}
	if (!draw(rng, 4))
		*h = drawn;
}

static void describe(const struct load *l, u32 whose)
{
	static const char *const places[] = { "sequential", "skipping", "random", "backwards" };
	static const char *const kinds[] = { "reads", "sync writes", "async writes" };
	u32 i;

	printf("    device depth %u%s\n", l->depth, l->quick ? ", buffered" : "");
	for (i = 0; i < l->nr; i++) {
		const struct habit *h = &l->habit[i];

		printf("    %s%2u: %u x %u sectors, %s %s in %u, think %u+%u us",
		       i == whose ? "*" : " ", i, h->slots, h->sectors, places[h->place],
		       kinds[h->kind], h->region, h->think_us, h->jitter_us);
		if (h->lives)
			printf(", exits after %u", h->lives);
		if (h->work)
			printf(", pauses %u us after %u", h->pause_us, h->work);
		if (h->start_us)
			printf(", from %u us", h->start_us);
		putchar('\n');
	}
}

/* --- the disk --- */

static u64 distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

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
	u64 away = distance(rq->sector, w->head), transfer = rq->sectors * SECTOR_NS;

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
}

static void note_wait(struct world *w, u32 whose, const struct hw_request *rq)
{
	u64 waited = w->now - rq->insert_ns;

	if (waited > w->longest_ns) {
		w->longest_ns = waited;
		w->whose = whose;
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
	note_wait(w, whose, rq);
	hw_complete(w->q, rq, w->now);
	free(rq);
	s->rq = NULL;
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

static void begin(struct world *w, const struct hw_policy *policy, const struct load *l)
{
	u32 i, k;

	*w = (struct world){
		.policy = policy, .nr = l->nr, .rng = 1, .done_ns = HW_NEVER, .quick = l->quick
	};
	INIT_LIST_HEAD(&w->tasks);
	w->q = take_memory(policy->queue_size);
	hw_queue_prepare(w->q, policy);
	w->q->dev = (struct hw_device){
		.sectors = CAPACITY,
		.rotational = true,
		.depth = l->depth,
		.nr_positions = 6,
		.position = { { 0, 0 },
			      { 1, seek_ns(1) + REVOLUTION / 2 },
			      { CAPACITY / 256, seek_ns(CAPACITY / 256) + REVOLUTION / 2 },
			      { CAPACITY / 16, seek_ns(CAPACITY / 16) + REVOLUTION / 2 },
			      { CAPACITY / 4, seek_ns(CAPACITY / 4) + REVOLUTION / 2 },
			      { CAPACITY, seek_ns(CAPACITY) + REVOLUTION / 2 } },
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
			if (w->runner[i].slot[k].rq)
				note_wait(w, i, w->runner[i].slot[k].rq);
	for (i = 0; i < w->nr; i++)
		for (k = 0; k < w->runner[i].h->slots; k++)
			free(w->runner[i].slot[k].rq);
	list_for_each_entry_safe(kept, next, &w->tasks, link)
		forget(kept);
	free(w->q);
}

/* The longest wait, ns; *@whose had it. */
static u64 play(const struct hw_policy *policy, const struct load *l, u64 until_ns, u32 *whose,
		u64 *served)
{
	struct world w;

	begin(&w, policy, l);
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

/* --- the search --- */

/* Leave out whoever is not needed for nine tenths of the wait. */
static u64 reduce(const struct hw_policy *policy, struct load *l, u64 until_ns, u32 *whose,
		  u64 longest)
{
	struct load less;
	u64 waited, served;
	u32 i = 0, who;

	while (i < l->nr && l->nr > 1) {
		less = *l;
		less.nr--;
		memmove(less.habit + i, less.habit + i + 1, (less.nr - i) * sizeof(less.habit[0]));
		waited = play(policy, &less, until_ns, &who, &served);
		if (waited * 10 < longest * 9) {
			i++;
			continue;
		}
		*l = less;
		*whose = who;
	}
	return play(policy, l, until_ns, whose, &served);
}

static u64 search(const struct hw_policy *policy, u64 seconds, u64 loads, u64 seed, u32 depth,
		  bool show)
{
	struct load best = { 0 }, l;
	u64 rng = seed, longest = 0, i, waited, served, all = 0;
	u32 whose, best_whose = 0;

	for (i = 0; i < loads; i++) {
		if (i < loads / 3 || !draw(&rng, 4)) {
			draw_load(&rng, &l);
		} else {
			l = best;
			change_load(&rng, &l);
			while (!draw(&rng, 3))
				change_load(&rng, &l);
		}
		if (depth)
			l.depth = depth;
		waited = play(policy, &l, seconds * SECOND, &whose, &served);
		all += served;
		if (waited <= longest)
			continue;
		longest = waited;
		best = l;
		best_whose = whose;
	}
	if (show) {
		printf("%s: %.1f s in %llu loads of %llu s, %llu requests\n", policy->name,
		       (double)longest / 1e9, (unsigned long long)loads,
		       (unsigned long long)seconds, (unsigned long long)all);
		waited = reduce(policy, &best, seconds * SECOND, &best_whose, longest);
		printf("  %.1f s of it with these alone:\n", (double)waited / 1e9);
		describe(&best, best_whose);
		fflush(stdout);
	}
	return longest;
}

static int test(void)
{
	int broken = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(promised); i++) {
		const struct hw_policy *policy = hw_policy_find(promised[i].policy);
		u64 longest =
			search(policy, QUICK_SECONDS, QUICK_LOADS, 1, promised[i].depth, false);

		if (longest < promised[i].seconds * SECOND)
			continue;
		search(policy, QUICK_SECONDS, QUICK_LOADS, 1, promised[i].depth, true);
		printf("  that is more than %llu s\n", (unsigned long long)promised[i].seconds);
		broken = 1;
	}
	return broken;
}

int main(int argc, char **argv)
{
	u64 seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : QUICK_SECONDS;
	u64 loads = argc > 3 ? strtoull(argv[3], NULL, 10) : QUICK_LOADS;
	u64 seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
	u32 depth = argc > 5 ? (u32)strtoul(argv[5], NULL, 10) : 0;
	const struct hw_policy *const *p;
	bool found = false;

	if (argc <= 1)
		return test();
	for (p = hw_policies; *p; p++)
		if (!strcmp(argv[1], "all") || !strcmp(argv[1], (*p)->name)) {
			search(*p, seconds, loads, seed, depth, true);
			found = true;
		}
	if (!found)
		fprintf(stderr, "starvation: no policy %s\n", argv[1]);
	return found ? 0 : 2;
}
