// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Jobs: when each starts, and what the end of one means for others.
 *
 * A job starts when its start delay is over, not before the jobs of the section that it waits for
 * have ended, and behind a stonewall not before everything started earlier has. Of those that may
 * start at one time the order of the job file decides. A job behind a stonewall that is due holds
 * up all that come after it.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/load/internal.h"

/* The jobs of one section, or of one group. */
struct sim_set {
	struct rb_node node;
	u32 number;
	u64 left;		       /* not ended */
	bool ended;		       /* exit_group has ended it */
	struct sim_job *first, **tail; /* a group's */
	struct sim_job *waiting;       /* due, once this section has ended */
};

static struct sim_set *find_set(struct rb_root *root, u32 number, struct rb_node ***link,
				struct rb_node **parent)
{
	*parent = NULL;
	for (*link = &root->rb_node; **link;) {
		struct sim_set *set = rb_entry(**link, struct sim_set, node);

		if (set->number == number)
			return set;
		*parent = **link;
		*link = number < set->number ? &(*parent)->rb_left : &(*parent)->rb_right;
	}
	return NULL;
}

static struct sim_set *join_set(struct hws *s, struct rb_root *root, u32 number)
{
	struct rb_node **link, *parent;
	struct sim_set *set = find_set(root, number, &link, &parent);

	if (!set) {
		set = sim_alloc(s, sizeof(*set));
		set->number = number;
		set->tail = &set->first;
		rb_link_node(&set->node, parent, link);
		rb_insert_color(&set->node, root);
	}
	set->left++;
	return set;
}

static struct sim_job *ready_entry(struct rb_node *n)
{
	return n ? rb_entry(n, struct sim_job, ready) : NULL;
}

static void make_ready(struct sim_jobs *all, struct sim_job *j)
{
	struct rb_node **link = &all->ready.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = j->index < ready_entry(parent)->index ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&j->ready, parent, link);
	rb_insert_color(&j->ready, &all->ready);
}

void sim_start_add(struct hws *s, struct sim_job *j)
{
	struct sim_jobs *all = s->jobs;

	j->section = join_set(s, &all->sections, j->opt.section);
	j->group = join_set(s, &all->groups, j->opt.group);
	*j->group->tail = j;
	j->group->tail = &j->group_next;
	j->index = all->nr;
	SIM_GROW(s, &all->room, all->nr + 1, SIM_COLUMN(all->job));
	all->job[all->nr++] = j;
	all->left++;
}

static int compare_starts(const void *a, const void *b, void *arg)
{
	struct sim_job **job = arg;
	const struct sim_job *x = job[*(const u64 *)a], *y = job[*(const u64 *)b];

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static void order_starts(struct hws *s, struct sim_jobs *all)
{
	u64 i;

	all->by_start = sim_alloc(s, all->nr * sizeof(*all->by_start));
	for (i = 0; i < all->nr; i++)
		all->by_start[i] = i;
	qsort_r(all->by_start, all->nr, sizeof(*all->by_start), compare_starts, all->job);
}

/* The section that @j waits for, if it has not ended. */
static struct sim_set *obstacle(struct sim_jobs *all, const struct sim_job *j)
{
	struct rb_node **link, *parent;
	struct sim_set *section;

	if (j->opt.wait_for < 0)
		return NULL;
	section = find_set(&all->sections, (u32)j->opt.wait_for, &link, &parent);
	return section && section->left ? section : NULL;
}

/* Processes that are started together get the processor one after another. */
/* @before: jobs that have begun at this moment. */
static void begin(struct hws *s, struct sim_job *j, u64 before)
{
	j->epoch_ns = s->now;
	if (!s->opt.one_processor) {
		sim_job_sleep(s, j, sim_after(s->now, before * s->opt.turnaround_ns));
	} else if (j->opt.startup_ns) {
		j->epoch_ns = sim_after(s->now, j->opt.startup_ns);
		sim_job_compute(s, j, j->opt.startup_ns);
	} else {
		sim_job_wake(s, j);
	}
}

void sim_start_jobs(struct hws *s)
{
	struct sim_jobs *all = s->jobs;
	struct sim_job *j, *next;
	u64 started = 0;

	if (!all->by_start)
		order_starts(s, all);
	for (; all->nr_due < all->nr; all->nr_due++) {
		j = all->job[all->by_start[all->nr_due]];
		if (j->start_ns > s->now)
			break;
		if (j->life == JOB_CREATED)
			make_ready(all, j);
	}
	for (j = ready_entry(rb_first(&all->ready)); j; j = next) {
		struct sim_set *section;

		next = ready_entry(rb_next(&j->ready));
		if (j->life == JOB_CREATED && j->opt.stonewall && all->running)
			break;
		rb_erase(&j->ready, &all->ready);
		if (j->life != JOB_CREATED)
			continue;
		section = obstacle(all, j);
		if (section) {
			j->waiting_next = section->waiting;
			section->waiting = j;
			continue;
		}
		j->life = JOB_RUNNING;
		all->running++;
		all->started++;
		begin(s, j, started++);
	}
}

static void ended(struct hws *s, struct sim_job *j)
{
	struct sim_jobs *all = s->jobs;
	struct sim_job *w;

	j->life = JOB_ENDED;
	s->load_ended = !--all->left;
	if (--j->section->left)
		return;
	while ((w = j->section->waiting)) {
		j->section->waiting = w->waiting_next;
		make_ready(all, w);
	}
}

static void terminate(struct hws *s, struct sim_job *j)
{
	if (j->life == JOB_CREATED)
		ended(s, j);
	if (j->life != JOB_RUNNING || j->terminate)
		return;
	j->terminate = true;
	/* Out of its sleep; a job that waits for I/O will see it when that is done. */
	if (!j->want && !j->reading && !j->blocked && !j->flush.waits)
		sim_job_wake(s, j);
}

static void end_group(struct hws *s, struct sim_set *group)
{
	struct sim_job *j;

	if (group->ended)
		return;
	group->ended = true;
	for (j = group->first; j; j = j->group_next)
		terminate(s, j);
}

/* @all_of_them, or those that run; nothing is left to do for who has been told already. */
static void end_jobs(struct hws *s, bool all_of_them)
{
	struct sim_jobs *all = s->jobs;
	u64 i;

	if (all->told_all || (!all_of_them && all->told == all->started))
		return;
	all->told_all = all_of_them;
	all->told = all->started;
	for (i = 0; i < all->nr; i++)
		if (all_of_them || all->job[i]->life == JOB_RUNNING)
			terminate(s, all->job[i]);
}

void sim_job_ended(struct hws *s, struct sim_job *j)
{
	j->end_ns = s->now;
	ended(s, j);
	s->jobs->running--;
	if (s->tasks[j->opt.task].exits)
		sim_task_exit(s, j->opt.task);
	if (j->opt.exit_what == HWS_EXIT_GROUP)
		end_group(s, j->group);
	else if (j->opt.exit_what != HWS_EXIT_ITSELF)
		end_jobs(s, j->opt.exit_what == HWS_EXIT_ALL);
	sim_start_jobs(s);
	if (s->cache && s->load_ended)
		sim_cache_flush(s);
}

void sim_jobs_free(struct hws *s)
{
	if (s->jobs)
		free(s->jobs->job);
}
