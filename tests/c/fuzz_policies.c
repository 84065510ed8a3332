// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Drives every policy through the contract with random calls, and checks the invariants of
 * core/elevator.h (by number).
 *
 *     fuzz_policies [POLICY|all [SEED [STEPS [SEEDS]]]]
 *
 * Insertions (with merging, on several CPUs, with every priority, with and without a task), joining
 * of requests that touch, whosever they are, completions in any order, requeues, exits of tasks,
 * tunables within their ranges, tables of any rows that pass, depths of 1 to 32, draining. Every request and task is a block of
 * its own and is freed as soon as the contract allows, so a sanitizer sees whatever a policy keeps
 * for too long. A seed is run twice and must give the same answers (invariant 5). Without SEED,
 * several are tried; with SEEDS, so many from SEED on.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lib/merge.h"

#define MAX_DEPTH     32u
#define MAX_TASKS     12u
#define MAX_LIVE      96u /* requests in existence at once */
#define CAPACITY      (1ull << 31)
#define MAX_GROUPS    6u
#define DEFAULT_SEEDS 6u
#define DEFAULT_STEPS 12000u
#define PATIENCE      100000u /* dispatches without progress before a drain counts as stuck */

/* A task's memory, and how to find it at the end, when nobody else may point to it any more. */
struct block {
	struct list_head all;
	struct hw_task *task;
};

struct fuzz {
	struct list_head blocks;
	const struct hw_policy *policy;
	struct hw_queue *q;
	struct hw_merger merger;
	struct hw_task *tasks[MAX_TASKS];    /* NULL: not there now */
	struct hw_group *groups[MAX_GROUPS]; /* the same */
	u32 nr_groups;			     /* with those that are ended, but referred to */
	struct hw_request *live[MAX_LIVE];
	u32 nr_live, nr_tasks_made;
	u64 seed, rng, now, step, hash;
	u64 inserted, completed, merged;
	u64 tables_given;
	u64 load; /* insertions in a hundred steps, for a while */
	bool draining;
};

__attribute__((noreturn, format(printf, 2, 3))) static void fail(const struct fuzz *f,
								 const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s, seed %llu, step %llu: ", f->policy->name, (unsigned long long)f->seed,
		(unsigned long long)f->step);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static u64 draw(struct fuzz *f, u64 bound)
{
	f->rng ^= f->rng << 13;
	f->rng ^= f->rng >> 7;
	f->rng ^= f->rng << 17;
	return (f->rng * 0x2545f4914f6cdd1dull >> 11) % bound;
}

static bool one_in(struct fuzz *f, u64 n)
{
	return draw(f, n) == 0;
}

/* What the policy has answered, for the comparison of two runs. */
static void note(struct fuzz *f, u64 x)
{
	f->hash = (f->hash ^ x) * 0x100000001b3ull;
}

static void *take_memory(u32 bytes)
{
	void *p = calloc(1, bytes);

	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

static void free_task(struct fuzz *f, struct hw_task *t)
{
	struct block *b;

	list_for_each_entry(b, &f->blocks, all)
		if (b->task == t) {
			list_del(&b->all);
			free(b);
			free(t);
			return;
		}
	fail(f, "a task is handed over twice");
}

static void free_exited(struct fuzz *f)
{
	struct hw_task *t, *next;

	list_for_each_entry_safe(t, next, &f->q->reap, reap)
		free_task(f, t);
	INIT_LIST_HEAD(&f->q->reap);
}

static void free_ended(struct fuzz *f)
{
	struct hw_group *g, *next;

	list_for_each_entry_safe(g, next, &f->q->reap_groups, reap) {
		if (g->refs)
			fail(f, "a group is handed over that is referred to");
		f->nr_groups--;
		free(g);
	}
	INIT_LIST_HEAD(&f->q->reap_groups);
}

static void drop(struct fuzz *f, struct hw_request *rq)
{
	u32 i;

	for (i = 0; i < f->nr_live && f->live[i] != rq; i++)
		;
	if (i == f->nr_live)
		fail(f, "invariant 1: a request ends that is not there");
	f->live[i] = f->live[--f->nr_live];
	free(rq);
}

/* What must hold after every call. */
static void check(struct fuzz *f)
{
	const struct hw_queue *q = f->q;
	u32 queued = 0, in_flight = 0, i;
	u64 ended = 0;

	for (i = 0; i < f->nr_live; i++) {
		queued += f->live[i]->state == HW_QUEUED;
		in_flight += f->live[i]->state == HW_DISPATCHED;
	}
	if (queued != q->nr_queued || in_flight != q->nr_in_flight ||
	    queued + in_flight != f->nr_live)
		fail(f, "invariant 1: %u + %u of %u requests", queued, in_flight, f->nr_live);
	for (i = 0; i < ARRAY_SIZE(q->wait.count); i++)
		ended += q->wait.count[i];
	if (q->wait.begun != ended + q->wait.active)
		fail(f, "invariant 3: of %llu waits, %llu ended", (unsigned long long)q->wait.begun,
		     (unsigned long long)ended);
	if (q->wait.active && !queued)
		fail(f, "invariant 3: a wait with nothing queued");
	if (q->policy->has_work && hw_has_work(q) && (!queued || (q->wait.active && !q->force)))
		fail(f, "has_work() with nothing to do");
}

/* As a host does after every event: as much as the device takes. */
static void dispatch(struct fuzz *f)
{
	struct hw_queue *q = f->q;

	while (q->nr_in_flight < q->dev.depth) {
		bool due = q->wake_ns <= f->now || q->wait.active;
		bool work = due || !q->policy->has_work || hw_has_work(q);
		struct hw_request *rq = hw_dispatch(q, f->now);
		u32 i;

		note(f, rq ? rq->id : q->wake_ns);
		if (!rq) {
			if (q->nr_queued && !q->nr_in_flight && q->wake_ns == HW_NEVER)
				fail(f, "invariant 4: %u queued, none in the device, no wake-up",
				     q->nr_queued);
			if (q->wake_ns <= f->now)
				fail(f, "invariant 4: a wake-up that is not in the future");
			if (q->force && q->nr_queued && !q->nr_in_flight)
				fail(f, "draining, and it waits");
			check(f);
			return;
		}
		for (i = 0; i < f->nr_live && f->live[i] != rq; i++)
			;
		if (i == f->nr_live)
			fail(f, "invariant 1: dispatches what was never inserted, or has gone");
		if (q->wait.active)
			fail(f, "invariant 2: dispatches during a wait");
		if (!work)
			fail(f, "dispatches although has_work() said that there was nothing");
		hw_merge_removed(&f->merger, rq);
		check(f);
	}
}

static struct hw_task *some_task(struct fuzz *f)
{
	u32 slot = (u32)draw(f, MAX_TASKS);
	struct hw_task *t = f->tasks[slot];

	if (one_in(f, 50))
		return NULL;
	if (!t) {
		struct block *b = take_memory(sizeof(*b));

		t = take_memory(f->policy->task_size);
		b->task = t;
		list_add(&b->all, &f->blocks);
		t->id = ++f->nr_tasks_made;
		if (one_in(f, 2))
			t->ioprio = HW_IOPRIO(draw(f, 4), draw(f, 8));
		t->share = (u16)draw(f, 4);
		f->tasks[slot] = t;
		hw_task_start(f->q, t, f->now);
	}
	return t;
}

/* One that is there, or a new one in that; often none. */
static struct hw_group *some_group(struct fuzz *f)
{
	struct hw_group **slot = &f->groups[draw(f, MAX_GROUPS)];

	if (!f->policy->group_size || (f->seed & 1) || one_in(f, 3))
		return NULL;
	if (*slot)
		return *slot;
	*slot = take_memory(f->policy->group_size);
	(*slot)->parent = f->groups[draw(f, MAX_GROUPS)];
	if ((*slot)->parent == *slot)
		(*slot)->parent = NULL;
	f->nr_groups++;
	hw_group_start(f->q, *slot, 1 + (u32)draw(f, one_in(f, 2) ? 400 : HW_GROUP_WEIGHT_MOST));
	return *slot;
}

/* It ends, or has another weight. */
static void change_group(struct fuzz *f)
{
	struct hw_group **slot = &f->groups[draw(f, MAX_GROUPS)];

	if (!*slot)
		return;
	if (one_in(f, 3)) {
		(*slot)->weight = 1 + (u32)draw(f, HW_GROUP_WEIGHT_MOST);
		return;
	}
	hw_group_put(f->q, *slot);
	*slot = NULL;
	free_ended(f);
	check(f);
}

static struct hw_bio some_bio(struct fuzz *f)
{
	u64 kind = draw(f, 20);
	struct hw_bio bio = {
		.sectors = one_in(f, 4) ? 1 + (u32)draw(f, 64) : 8,
		.op = kind < 12 ? HW_READ :
		      kind < 18 ? HW_WRITE :
				  HW_DISCARD + kind % 2,
		.cpu = (u16)draw(f, 4),
		.task = some_task(f),
		.group = some_group(f),
	};

	/* Mostly few places, so that requests touch, coincide and overlap. */
	bio.sector = draw(f, 3) * 600000000 + draw(f, 24) * 8;
	if (one_in(f, 8))
		bio.sector = draw(f, CAPACITY - 64);
	if (bio.task)
		bio.ioprio = bio.task->ioprio;
	if (one_in(f, 10))
		bio.ioprio = HW_IOPRIO(draw(f, 4), draw(f, 8));
	if (bio.op == HW_READ || one_in(f, 3))
		bio.flags |= HW_RQ_SYNC;
	if (one_in(f, 16))
		bio.flags |= HW_RQ_META;
	if (one_in(f, 16))
		bio.flags |= HW_RQ_PRIO;
	if (one_in(f, 64))
		bio.flags |= HW_RQ_AT_HEAD;
	if (one_in(f, 32))
		bio.flags |= HW_RQ_NOMERGE;
	return bio;
}

static void insert(struct fuzz *f)
{
	struct hw_bio bio = some_bio(f);
	struct hw_merge_result m;
	struct hw_request *rq;

	if (f->policy->limit_depth) {
		u32 limit = hw_limit_depth(f->q, &bio);

		note(f, limit);
		if (!limit)
			fail(f, "limit_depth() lets no request exist");
	}
	m = hw_merge_try(&f->merger, f->q, &bio, f->now);
	note(f, m.into ? m.into->id : HW_NEVER);
	if (m.into) {
		if (m.into->state != HW_QUEUED)
			fail(f, "invariant 1: merges into a request that is not queued");
		if (m.gone) {
			hw_merge_removed(&f->merger, m.gone);
			drop(f, m.gone);
			f->merged++;
		}
		check(f);
		return;
	}
	rq = take_memory(f->policy->request_size);
	rq->sector = bio.sector;
	rq->sectors = bio.sectors;
	rq->op = bio.op;
	rq->flags = bio.flags;
	rq->ioprio = bio.ioprio;
	rq->cpu = bio.cpu;
	rq->task = bio.task;
	rq->group = bio.group;
	rq->host = f;
	f->live[f->nr_live++] = rq;
	f->inserted++;
	hw_insert(f->q, rq, f->now);
	if (!(rq->flags & (HW_RQ_NOMERGE | HW_RQ_AT_HEAD)))
		hw_merge_inserted(&f->merger, f->q, rq);
	check(f);
}

/* The policy rules out that @rq merges: it leaves the host's hash. */
static void unmergeable(struct hw_queue *q, struct hw_request *rq)
{
	struct fuzz *f = rq->host;

	hw_merge_removed(&f->merger, rq);
}

/*
 * May @gone be joined to @keep? The host looks at what is in its hash, and at the requests alone:
 * not at whose they are, nor at the policy's flags.
 */
static bool joinable(const struct fuzz *f, const struct hw_request *keep,
		     const struct hw_request *gone)
{
	return keep->hash_pprev && gone->hash_pprev && hw_end(keep) == gone->sector &&
	       keep->op == gone->op && keep->op <= HW_WRITE && keep->ioprio == gone->ioprio &&
	       keep->sectors + gone->sectors <= f->merger.max_sectors;
}

/*
 * Joins two queued requests that touch, without asking the policy, as blk-mq does after an
 * insertion.
 */
static void join(struct fuzz *f)
{
	u32 i, j, from;

	if (!(f->policy->flags & HW_POLICY_HASH) || !f->nr_live)
		return;
	from = (u32)draw(f, f->nr_live);
	for (i = 0; i < f->nr_live; i++) {
		struct hw_request *keep = f->live[(from + i) % f->nr_live];

		for (j = 0; j < f->nr_live; j++) {
			struct hw_request *gone = f->live[j];

			if (!joinable(f, keep, gone))
				continue;
			hw_merge_removed(&f->merger, keep);
			hw_merge_removed(&f->merger, gone);
			hw_merge_requests(f->q, keep, gone);
			keep->sectors += gone->sectors;
			hw_merge_inserted(&f->merger, f->q, keep);
			drop(f, gone);
			f->merged++;
			check(f);
			return;
		}
	}
}

static struct hw_request *some_in_flight(struct fuzz *f)
{
	u64 k;
	u32 i;

	if (!f->q->nr_in_flight)
		return NULL;
	k = draw(f, f->q->nr_in_flight);
	for (i = 0;; i++)
		if (f->live[i]->state == HW_DISPATCHED && k-- == 0)
			return f->live[i];
}

static void complete(struct fuzz *f)
{
	struct hw_request *rq = some_in_flight(f);

	if (!rq)
		return;
	hw_complete(f->q, rq, f->now);
	drop(f, rq);
	f->completed++;
	free_exited(f);
	check(f);
}

static void requeue(struct fuzz *f)
{
	struct hw_request *rq = some_in_flight(f);

	if (!rq)
		return;
	hw_requeue(f->q, rq, f->now);
	check(f);
}

static void task_exit(struct fuzz *f)
{
	u32 slot = (u32)draw(f, MAX_TASKS);
	struct hw_task *t = f->tasks[slot];

	if (!t)
		return;
	f->tasks[slot] = NULL;
	hw_task_exit(f->q, t, f->now);
	free_exited(f);
	check(f);
}

/* Back to the default, to one end of the range, or somewhere near the default. */
static void tune(struct fuzz *f)
{
	const struct hw_tunable *t;
	s64 value;

	if (!f->policy->nr_tunables)
		return;
	t = &f->policy->tunables[draw(f, f->policy->nr_tunables)];
	switch (draw(f, 5)) {
	case 0:
		value = t->min;
		break;
	case 1:
		value = max_t(s64, t->def, min_t(s64, t->max, 10000));
		break;
	case 2:
		value = t->def + (s64)draw(f, 100) - 50;
		break;
	default:
		value = t->def;
	}
	if (hw_tunable_set(f->q, t->name, clamp_t(s64, value, t->min, t->max)))
		fail(f, "%s: cannot be set within its range", t->name);
	if (f->policy->tuned)
		hw_tuned(f->q);
	check(f);
}

/* Mostly small numbers, the limits now and then, and where it ascends, a little more each row. */
static s64 some_cell(struct fuzz *f, const struct hw_column *c, const s64 *before)
{
	s64 low = before && c->order == HW_ASCENDING ? *before + 1 : c->min;
	s64 span = c->choices ? c->max + 1 : 1ll << draw(f, 24);

	if (one_in(f, 40))
		return one_in(f, 2) ? c->min : c->max;
	return low + (s64)draw(f, (u64)span) - (one_in(f, 100) ? 1 : 0);
}

/* Rows as the table's columns have them, and some that its check may refuse; or none. */
static u32 some_rows(struct fuzz *f, const struct hw_table *t, s64 *cells)
{
	u32 most = min_t(u32, t->max_rows, 1u << draw(f, 8)), n = (u32)draw(f, most + 1), i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < t->nr_columns; k++) {
			s64 *cell = &cells[i * t->nr_columns + k];

			*cell = some_cell(f, &t->columns[k], i ? cell - t->nr_columns : NULL);
		}
	return n;
}

/* Tables whose rows depend on each other: random ones would never pass. */
static const struct {
	const char *table, *text;
} samples[] = {
	{ "config", "history 0 5\nclasses 0 20\nspatial 0 70\n9 30\n900 0\ntemporal 0 30\n3000 15\n"
		    "9000 0\ninterval 1 0\n2 1000\n9 6000\n15 12000\n" },
	{ "config", "history 0 17\nclasses 0 512\nspatial 0 1\ntemporal 0 100\n1 0\ninterval 1 9\n"
		    "500 3333\n" },
	{ "config", "history 0 2\nclasses 0 1\nspatial 0 1\ntemporal 0 0\ninterval 1 2500\n" },
};

/* One of the samples for the table with a number or two changed, or nothing. */
static u32 sample_rows(struct fuzz *f, const struct hw_table *t, s64 *cells)
{
	u32 i = (u32)draw(f, ARRAY_SIZE(samples)), n, k;
	struct hw_table_error err;

	if (strcmp(samples[i].table, t->name) || one_in(f, 5))
		return 0;
	if (hw_table_parse(t, samples[i].text, strlen(samples[i].text), cells, &n, &err))
		fail(f, "%s: a sample that is refused: %s", t->name, err.what);
	for (k = (u32)draw(f, 3); k; k--) {
		i = (u32)draw(f, n * t->nr_columns);
		cells[i] = some_cell(f, &t->columns[i % t->nr_columns], NULL);
	}
	return n;
}

/* A table changes between two calls; the old rows are freed at once. */
static void give_table(struct fuzz *f)
{
	const struct hw_table *t = hw_table_at(f->policy, (u32)draw(f, hw_table_count(f->policy)));
	u32 bytes = t->max_rows * t->nr_columns * (u32)sizeof(s64), n;
	s64 *cells = take_memory(bytes);
	struct hw_table_error err;

	n = t->check ? sample_rows(f, t, cells) : some_rows(f, t, cells);
	if (hw_table_check(t, cells, n, t->nr_columns, &err)) {
		free(cells);
		return;
	}
	free((s64 *)hw_table_swap(f->q, t, cells, n));
	f->tables_given++;
	if (f->policy->tuned)
		hw_tuned(f->q);
	check(f);
}

static void pass_time(struct fuzz *f)
{
	u64 wake = f->q->wake_ns;

	switch (draw(f, 6)) {
	case 0:
		f->now += draw(f, 1000);
		break;
	case 1:
		f->now += draw(f, 300) * HW_NSEC_PER_MSEC;
		break;
	case 2:
		/* Not at the very end of the wait, so that exactly then and later are both seen. */
		if (wake != HW_NEVER && wake > f->now)
			f->now = wake;
		break;
	default:
		f->now += draw(f, 8) * HW_NSEC_PER_MSEC;
	}
}

static void read_stats(struct fuzz *f)
{
	u32 i;

	for (i = 0; i < f->policy->nr_stats; i++)
		note(f, (u64)f->policy->stats[i].get(f->q));
	for (i = 0; f->policy->counters && i < f->policy->counters->rows; i++)
		note(f, hw_counters_row(f->q, i)[draw(f, f->policy->counters->columns)]);
	for (i = 0; i < 3; i++)
		note(f, f->q->wait.total_ns[i]);
}

static void step(struct fuzz *f)
{
	u64 what = draw(f, 100);

	if (one_in(f, 2))
		pass_time(f);
	if (one_in(f, 300))
		f->load = 20 + draw(f, 60);
	if (what < f->load && f->nr_live < MAX_LIVE && !f->draining)
		insert(f);
	else if (what < 90)
		complete(f);
	else if (what < 92)
		requeue(f);
	else if (what < 94)
		task_exit(f);
	else if (what < 95)
		change_group(f);
	else if (what < 96 && one_in(f, 2))
		give_table(f);
	else if (what < 96)
		tune(f);
	else if (what < 97)
		f->q->dev.depth = 1 + (u32)draw(f, one_in(f, 2) ? 2 : MAX_DEPTH);
	else if (what < 98)
		read_stats(f);
	else if (what < 99)
		join(f);
	else if (one_in(f, 10))
		f->q->force = f->draining = true;
	if (f->draining && !f->nr_live)
		f->q->force = f->draining = false;
	dispatch(f);
}

/* No more arrivals: everything must get out by completions and wake-ups alone. */
static void finish(struct fuzz *f)
{
	u32 idle = 0, i;

	f->q->force = false;
	while (f->nr_live) {
		u32 before = f->nr_live;

		dispatch(f);
		if (f->q->nr_in_flight) {
			f->now += draw(f, 10) * HW_NSEC_PER_MSEC;
			complete(f);
		} else if (f->nr_live) {
			f->now = max(f->now, f->q->wake_ns);
		}
		idle = f->nr_live < before ? 0 : idle + 1;
		if (idle > PATIENCE)
			fail(f, "%u requests never get out", f->nr_live);
	}
	for (i = 0; i < MAX_TASKS; i++)
		if (f->tasks[i])
			hw_task_exit(f->q, f->tasks[i], f->now);
	for (i = 0; i < MAX_GROUPS; i++)
		if (f->groups[i])
			hw_group_put(f->q, f->groups[i]);
	read_stats(f);
	if (f->inserted != f->completed + f->merged)
		fail(f, "invariant 1: %llu inserted, %llu completed, %llu merged",
		     (unsigned long long)f->inserted, (unsigned long long)f->completed,
		     (unsigned long long)f->merged);
	free_exited(f);
	free_ended(f);
	if (f->nr_groups)
		fail(f, "%u groups are referred to for ever", f->nr_groups);
}

static u64 run(const struct hw_policy *policy, u64 seed, u64 steps)
{
	struct fuzz f = { .policy = policy,
			  .seed = seed,
			  .hash = seed,
			  .load = 45,
			  .rng = seed * 0x9e3779b97f4a7c15ull + 1 };
	static const s64 positions[] = { 0, 100000, 1000, 5000000, CAPACITY, 15000000 };
	s64 *cells = take_memory(sizeof(positions));
	struct block *b, *next;
	u32 i;

	INIT_LIST_HEAD(&f.blocks);
	f.q = take_memory(policy->queue_size);
	hw_queue_prepare(f.q, policy);
	f.q->unmergeable = unmergeable;
	f.q->dev = (struct hw_device){
		.sectors = CAPACITY,
		.rotational = seed % 4 != 0,
		.nr_requests = MAX_LIVE,
		.depth = seed % 3 ? 1 : MAX_DEPTH,
	};
	memcpy(cells, positions, sizeof(positions));
	hw_table_swap(f.q, hw_table_find(policy, "positions"), cells, 3);
	if (hw_start(f.q, 0))
		fail(&f, "does not start");
	hw_merge_init(&f.merger, seed % 5 ? 256 : 0);
	for (f.step = 0; f.step < steps; f.step++)
		step(&f);
	finish(&f);
	list_for_each_entry_safe(b, next, &f.blocks, all)
		free_task(&f, b->task);
	if (steps >= DEFAULT_STEPS && !f.tables_given)
		fail(&f, "no table was ever given");
	for (i = 0; i < hw_table_count(policy); i++)
		free((s64 *)hw_table_swap(f.q, hw_table_at(policy, i), NULL, 0));
	free(f.q);
	return f.hash;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "all";
	u64 first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, seed;
	u64 steps = argc > 3 ? strtoull(argv[3], NULL, 10) : DEFAULT_STEPS;
	u64 seeds = argc > 4 ? strtoull(argv[4], NULL, 10) : argc > 2 ? 1 : DEFAULT_SEEDS;
	const struct hw_policy *const *p;
	bool found = false;

	for (p = hw_policies; *p; p++) {
		if (strcmp(name, "all") && strcmp(name, (*p)->name))
			continue;
		found = true;
		for (seed = first; seed < first + seeds; seed++)
			if (run(*p, seed, steps) != run(*p, seed, steps)) {
				fprintf(stderr, "%s, seed %llu: invariant 5: two runs differ\n",
					(*p)->name, (unsigned long long)seed);
				return 1;
			}
	}
	if (!found) {
		fprintf(stderr, "fuzz_policies: no policy %s\n", name);
		return 2;
	}
	return 0;
}
