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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/c/fuzz.h"

#define CAPACITY      (1ull << 31)
#define DEFAULT_SEEDS 6u
#define DEFAULT_STEPS 12000u
#define PATIENCE      100000u /* dispatches without progress before a drain counts as stuck */

/* As a host does after every event: as much as the device takes. */
static void dispatch(struct fuzz *f)
{
	struct hw_queue *q = f->q;

	while (q->nr_in_flight < q->dev.depth) {
		bool due = q->wake_ns <= f->now || q->wait.active;
		bool work = due || !q->policy->has_work || hw_has_work(q);
		struct hw_request *rq = hw_dispatch(q, f->now);
		u32 i;

		fuzz_note(f, rq ? rq->id : q->wake_ns);
		if (!rq) {
			if (q->nr_queued && !q->nr_in_flight && q->wake_ns == HW_NEVER)
				fuzz_fail(f,
					  "invariant 4: %u queued, none in the device, no wake-up",
					  q->nr_queued);
			if (q->wake_ns <= f->now)
				fuzz_fail(f, "invariant 4: a wake-up that is not in the future");
			if (q->force && q->nr_queued && !q->nr_in_flight)
				fuzz_fail(f, "draining, and it waits");
			fuzz_check(f);
			return;
		}
		for (i = 0; i < f->nr_live && f->live[i] != rq; i++)
			;
		if (i == f->nr_live)
			fuzz_fail(f,
				  "invariant 1: dispatches what was never inserted, or has gone");
		if (q->wait.active)
			fuzz_fail(f, "invariant 2: dispatches during a wait");
		if (!work)
			fuzz_fail(f, "dispatches although has_work() said that there was nothing");
		hw_merge_removed(&f->merger, rq);
		fuzz_check(f);
	}
}

static struct hw_task *some_task(struct fuzz *f)
{
	u32 slot = (u32)fuzz_draw(f, MAX_TASKS);
	struct hw_task *t = f->tasks[slot];

	if (fuzz_one_in(f, 50))
		return NULL;
	if (!t) {
		struct block *b = fuzz_memory(sizeof(*b));

		t = fuzz_memory(f->policy->task_size);
		b->task = t;
		list_add(&b->all, &f->blocks);
		t->id = ++f->nr_tasks_made;
		if (fuzz_one_in(f, 2))
			t->ioprio = HW_IOPRIO(fuzz_draw(f, 4), fuzz_draw(f, 8));
		t->share = (u16)fuzz_draw(f, 4);
		f->tasks[slot] = t;
		hw_task_start(f->q, t, f->now);
	}
	return t;
}

/* One that is there, or a new one in that; often none. */
static struct hw_group *some_group(struct fuzz *f)
{
	struct hw_group **slot = &f->groups[fuzz_draw(f, MAX_GROUPS)];

	if (!f->policy->group_size || (f->seed & 1) || fuzz_one_in(f, 3))
		return NULL;
	if (*slot)
		return *slot;
	*slot = fuzz_memory(f->policy->group_size);
	(*slot)->parent = f->groups[fuzz_draw(f, MAX_GROUPS)];
	if ((*slot)->parent == *slot)
		(*slot)->parent = NULL;
	f->nr_groups++;
	hw_group_start(f->q, *slot,
		       1 + (u32)fuzz_draw(f, fuzz_one_in(f, 2) ? 400 : HW_GROUP_WEIGHT_MOST));
	return *slot;
}

/* It ends, or has another weight. */
static void change_group(struct fuzz *f)
{
	struct hw_group **slot = &f->groups[fuzz_draw(f, MAX_GROUPS)];

	if (!*slot)
		return;
	if (fuzz_one_in(f, 3)) {
		(*slot)->weight = 1 + (u32)fuzz_draw(f, HW_GROUP_WEIGHT_MOST);
		return;
	}
	hw_group_put(f->q, *slot);
	*slot = NULL;
	fuzz_free_ended(f);
	fuzz_check(f);
}

static struct hw_bio some_bio(struct fuzz *f)
{
	u64 kind = fuzz_draw(f, 20);
	struct hw_bio bio = {
		.sectors = fuzz_one_in(f, 4) ? 1 + (u32)fuzz_draw(f, 64) : 8,
		.op = kind < 12 ? HW_READ :
		      kind < 18 ? HW_WRITE :
				  HW_DISCARD + kind % 2,
		.cpu = (u16)fuzz_draw(f, 4),
		.task = some_task(f),
		.group = some_group(f),
	};

	/* Mostly few places, so that requests touch, coincide and overlap. */
	bio.sector = fuzz_draw(f, 3) * 600000000 + fuzz_draw(f, 24) * 8;
	if (fuzz_one_in(f, 8))
		bio.sector = fuzz_draw(f, CAPACITY - 64);
	if (bio.task)
		bio.ioprio = bio.task->ioprio;
	if (fuzz_one_in(f, 10))
		bio.ioprio = HW_IOPRIO(fuzz_draw(f, 4), fuzz_draw(f, 8));
	if (bio.op == HW_READ || fuzz_one_in(f, 3))
		bio.flags |= HW_RQ_SYNC;
	if (fuzz_one_in(f, 16))
		bio.flags |= HW_RQ_META;
	if (fuzz_one_in(f, 16))
		bio.flags |= HW_RQ_PRIO;
	if (fuzz_one_in(f, 64))
		bio.flags |= HW_RQ_AT_HEAD;
	if (fuzz_one_in(f, 32))
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

		fuzz_note(f, limit);
		if (!limit)
			fuzz_fail(f, "limit_depth() lets no request exist");
	}
	m = hw_merge_try(&f->merger, f->q, &bio, f->now);
	fuzz_note(f, m.into ? m.into->id : HW_NEVER);
	if (m.into) {
		if (m.into->state != HW_QUEUED)
			fuzz_fail(f, "invariant 1: merges into a request that is not queued");
		if (m.gone) {
			hw_merge_removed(&f->merger, m.gone);
			fuzz_drop(f, m.gone);
			f->merged++;
		}
		fuzz_check(f);
		return;
	}
	rq = fuzz_memory(f->policy->request_size);
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
	fuzz_check(f);
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
	from = (u32)fuzz_draw(f, f->nr_live);
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
			fuzz_drop(f, gone);
			f->merged++;
			fuzz_check(f);
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
	k = fuzz_draw(f, f->q->nr_in_flight);
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
	fuzz_drop(f, rq);
	f->completed++;
	fuzz_free_exited(f);
	fuzz_check(f);
}

static void requeue(struct fuzz *f)
{
	struct hw_request *rq = some_in_flight(f);

	if (!rq)
		return;
	hw_requeue(f->q, rq, f->now);
	fuzz_check(f);
}

static void task_exit(struct fuzz *f)
{
	u32 slot = (u32)fuzz_draw(f, MAX_TASKS);
	struct hw_task *t = f->tasks[slot];

	if (!t)
		return;
	f->tasks[slot] = NULL;
	hw_task_exit(f->q, t, f->now);
	fuzz_free_exited(f);
	fuzz_check(f);
}

static void pass_time(struct fuzz *f)
{
	u64 wake = f->q->wake_ns;

	switch (fuzz_draw(f, 6)) {
	case 0:
		f->now += fuzz_draw(f, 1000);
		break;
	case 1:
		f->now += fuzz_draw(f, 300) * HW_NSEC_PER_MSEC;
		break;
	case 2:
		/* Not at the very end of the wait, so that exactly then and later are both seen. */
		if (wake != HW_NEVER && wake > f->now)
			f->now = wake;
		break;
	default:
		f->now += fuzz_draw(f, 8) * HW_NSEC_PER_MSEC;
	}
}

static void read_stats(struct fuzz *f)
{
	u32 i;

	for (i = 0; i < f->policy->nr_stats; i++)
		fuzz_note(f, (u64)f->policy->stats[i].get(f->q));
	for (i = 0; f->policy->counters && i < f->policy->counters->rows; i++)
		fuzz_note(f, hw_counters_row(f->q, i)[fuzz_draw(f, f->policy->counters->columns)]);
	for (i = 0; i < 3; i++)
		fuzz_note(f, f->q->wait.total_ns[i]);
}

static void step(struct fuzz *f)
{
	u64 what = fuzz_draw(f, 100);

	if (fuzz_one_in(f, 2))
		pass_time(f);
	if (fuzz_one_in(f, 300))
		f->load = 20 + fuzz_draw(f, 60);
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
	else if (what < 96 && fuzz_one_in(f, 2))
		fuzz_give_table(f);
	else if (what < 96)
		fuzz_tune(f);
	else if (what < 97)
		f->q->dev.depth = 1 + (u32)fuzz_draw(f, fuzz_one_in(f, 2) ? 2 : MAX_DEPTH);
	else if (what < 98)
		read_stats(f);
	else if (what < 99)
		join(f);
	else if (fuzz_one_in(f, 10))
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
			f->now += fuzz_draw(f, 10) * HW_NSEC_PER_MSEC;
			complete(f);
		} else if (f->nr_live) {
			f->now = max(f->now, f->q->wake_ns);
		}
		idle = f->nr_live < before ? 0 : idle + 1;
		if (idle > PATIENCE)
			fuzz_fail(f, "%u requests never get out", f->nr_live);
	}
	for (i = 0; i < MAX_TASKS; i++)
		if (f->tasks[i])
			hw_task_exit(f->q, f->tasks[i], f->now);
	for (i = 0; i < MAX_GROUPS; i++)
		if (f->groups[i])
			hw_group_put(f->q, f->groups[i]);
	read_stats(f);
	if (f->inserted != f->completed + f->merged)
		fuzz_fail(f, "invariant 1: %llu inserted, %llu completed, %llu merged",
			  (unsigned long long)f->inserted, (unsigned long long)f->completed,
			  (unsigned long long)f->merged);
	fuzz_free_exited(f);
	fuzz_free_ended(f);
	if (f->nr_groups)
		fuzz_fail(f, "%u groups are referred to for ever", f->nr_groups);
}

static u64 run(const struct hw_policy *policy, u64 seed, u64 steps)
{
	struct fuzz f = { .policy = policy,
			  .seed = seed,
			  .hash = seed,
			  .load = 45,
			  .rng = seed * 0x9e3779b97f4a7c15ull + 1 };
	static const s64 positions[] = { 0, 100000, 1000, 5000000, CAPACITY, 15000000 };
	s64 *cells = fuzz_memory(sizeof(positions));
	struct block *b, *next;
	u32 i;

	INIT_LIST_HEAD(&f.blocks);
	f.q = fuzz_memory(policy->queue_size);
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
		fuzz_fail(&f, "does not start");
	hw_merge_init(&f.merger, seed % 5 ? 256 : 0);
	for (f.step = 0; f.step < steps; f.step++)
		step(&f);
	finish(&f);
	list_for_each_entry_safe(b, next, &f.blocks, all)
		fuzz_free_task(&f, b->task);
	if (steps >= DEFAULT_STEPS && !f.tables_given)
		fuzz_fail(&f, "no table was ever given");
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
