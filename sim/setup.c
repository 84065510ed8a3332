// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A run from outside: how it is set up, set going, and freed.
 *
 * Whatever may need memory comes in through ENTER(). Where there is none, the code that asked does
 * not go on; the call ends here with -ENOMEM, and so does every later one, for the run may be in
 * the middle of something. All its memory belongs to the run, so that hws_free() loses none.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/internal.h"
#include "sim/tables.h"

#define SIM_DEPTH_MOST 65536u
#define SIM_TASKS_MOST (1u << 30)

static int out_of_memory(struct hws *s)
{
	s->dead = true;
	return sim_fail(s, -ENOMEM, "out of memory, with %llu of the %llu I/Os issued completed",
			(unsigned long long)s->completed, (unsigned long long)s->issued);
}

/* What a caller gives that is NULL, and should not be. */
#define REFUSE(s, is_null)                                                          \
	do {                                                                        \
		if (!(s))                                                           \
			return -EINVAL;                                             \
		if (is_null)                                                        \
			return sim_fail(s, -EINVAL, "%s: NULL is given", __func__); \
	} while (0)

#define ENTER(s)                                 \
	do {                                     \
		if ((s)->dead)                   \
			return -ENOMEM;          \
		if (setjmp((s)->no_memory))      \
			return out_of_memory(s); \
	} while (0)

const char *hws_error(const struct hws *s)
{
	if (!s)
		return "no run";
	return s->error;
}

/* --- set-up --- */

struct hws *hws_new(const struct hws_options *options)
{
	const struct hw_policy *policy = options ? hw_policy_find(options->policy) : NULL;
	struct hws *s = policy ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	if (setjmp(s->no_memory)) {
		hws_free(s);
		return NULL;
	}
	s->opt = *options;
	s->opt.policy = policy->name;
	if (!s->opt.max_sectors)
		s->opt.max_sectors = 2560;
	if (s->opt.cores)
		s->opt.cpus = s->opt.cores;
	if (!s->opt.cpus)
		s->opt.cpus = 1;
	s->queues = 1;
	s->policy = policy;
	s->wake_ns = HW_NEVER;
	s->feed_ns = HW_NEVER;
	s->worker_ns = HW_NEVER;
	s->listed.time_ns = HW_NEVER;
	s->sent_tail = &s->sent;
	s->starved_tail = &s->starved;
	hw_merge_init(&s->merger, s->opt.merging ? s->opt.max_sectors : 0);
	s->q = sim_alloc(s, policy->queue_size);
	hw_queue_prepare(s->q, policy);
	sim_host_init(s);
	return s;
}

void hws_free(struct hws *s)
{
	if (!s)
		return;
	free(s->tasks);
	free(s->groups);
	free(s->heap);
	free(s->buckets);
	sim_tallies_free(s);
	sim_log_close(s);
	sim_rows_free(s);
	sim_pieces_free(s);
	sim_host_free(s);
	sim_jobs_free(s);
	if (s->q)
		sim_tables_free(s->q);
	sim_free_all(s);
	free(s);
}

int hws_set(struct hws *s, const char *tunable, int64_t value)
{
	const struct hw_tunable *t;
	int ret;

	REFUSE(s, !tunable);
	t = hw_tunable_find(s->policy, tunable);
	ret = hw_tunable_set(s->q, tunable, value);
	if (ret == -ENOENT)
		return sim_fail(s, ret, "%s has no tunable '%s'", s->policy->name, tunable);
	if (ret == -ERANGE)
		return sim_fail(s, ret, "%s.%s: %lld is outside %lld..%lld", s->policy->name,
				tunable, (long long)value, (long long)t->min, (long long)t->max);
	if (s->started)
		hw_tuned(s->q);
	return ret;
}

int64_t hws_get(const struct hws *s, const char *tunable)
{
	const struct hw_tunable *t = s && tunable ? hw_tunable_find(s->policy, tunable) : NULL;

	return t ? hw_tunable_get(s->q, t) : 0;
}

int hws_set_table(struct hws *s, const char *table, const int64_t *cells, uint32_t rows,
		  uint32_t columns)
{
	struct hw_table_error err;
	char text[SIM_ERROR_BYTES];
	int ret;

	REFUSE(s, !table || (!cells && rows));
	ret = sim_table_set(s->q, table, cells, rows, columns, &err);
	if (ret == -ENOENT)
		return sim_fail(s, ret, "%s has no table '%s'", s->policy->name, table);
	if (ret == -ENOMEM)
		return sim_fail(s, ret, "out of memory");
	if (ret) {
		hw_table_explain(hw_table_find(s->policy, table), &err, text, sizeof(text));
		return sim_fail(s, ret, "%s: %s", s->policy->name, text);
	}
	if (s->started)
		hw_tuned(s->q);
	return 0;
}

static int may_attach(struct hws *s)
{
	if (s->drive)
		return sim_fail(s, -EBUSY, "a run has one drive");
	if (s->opt.queue_depth > SIM_DEPTH_MOST)
		return sim_fail(s, -ERANGE, "queue depth %u: at most %u", s->opt.queue_depth,
				SIM_DEPTH_MOST);
	return 0;
}

int hws_drive_constant(struct hws *s, uint64_t service_ns, uint64_t sectors)
{
	struct hw_constant_drive *c;
	int ret;

	REFUSE(s, false);
	ENTER(s);
	ret = may_attach(s);
	if (ret)
		return ret;
	if (!sectors || service_ns > SIM_CLOCK_END)
		return sim_fail(s, -ERANGE, "constant drive: %llu sectors, %llu ns: out of range",
				(unsigned long long)sectors, (unsigned long long)service_ns);
	c = sim_alloc(s, sizeof(*c));
	hw_constant_init(c, sectors, service_ns, s->opt.queue_depth ? s->opt.queue_depth : 1);
	s->drive = &c->drive;
	return 0;
}

int hws_drive_profile(struct hws *s, const void *profile, size_t bytes)
{
	struct hw_profile_error err;
	bool known;
	int ret;

	REFUSE(s, !profile);
	ENTER(s);
	ret = may_attach(s);
	if (ret)
		return ret;
	if (hw_profile_check(profile, bytes, &err))
		return sim_fail(s, -EINVAL, "drive profile: %s: %s", err.key ? err.key : "header",
				err.what);
	s->drive = hw_drive_create(sim_alloc(s, hw_drive_size(profile, s->opt.queue_depth)),
				   profile, s->opt.queue_depth);
	s->drive_queues = (u32)hw_profile_get(profile, "queue.submissions", &known);
	return 0;
}

int hws_drive_warm(struct hws *s, uint64_t time_ns, uint64_t sector, uint32_t sectors)
{
	struct hw_io io = { .sector = sector, .sectors = sectors, .op = HW_READ };
	u64 now = time_ns;

	REFUSE(s, false);
	if (s->started || !s->drive)
		return sim_fail(s, -EINVAL, "warm the drive after opening it and before the run");
	if (time_ns > SIM_CLOCK_END)
		return sim_fail(s, -ERANGE, "%llu ns: beyond the end of the clock",
				(unsigned long long)time_ns);
	if (!sectors || sector >= s->drive->sectors || sectors > s->drive->sectors - sector)
		return sim_fail(s, -ERANGE, "sectors %llu+%u do not fit on a drive of %llu sectors",
				(unsigned long long)sector, sectors,
				(unsigned long long)s->drive->sectors);
	s->drive->model->submit(s->drive, &io, now);
	while (!s->drive->model->poll(s->drive, now))
		now = s->drive->model->next(s->drive);
	s->now = now;
	memset(&s->drive->stats, 0, sizeof(s->drive->stats));
	return 0;
}

int hws_add_task(struct hws *s, uint32_t id, uint16_t ioprio, uint16_t share, int exits)
{
	REFUSE(s, false);
	ENTER(s);
	if (s->started || s->load)
		return sim_fail(s, -EBUSY, "add tasks before the load");
	if (s->nr_tasks == SIM_TASKS_MOST)
		return sim_fail(s, -E2BIG, "at most %u tasks", SIM_TASKS_MOST);
	SIM_GROW(s, &s->room_tasks, s->nr_tasks + 1ull, SIM_COLUMN(s->tasks));
	s->tasks[s->nr_tasks] = (struct sim_task){ .id = id,
						   .ioprio = ioprio,
						   .share = share,
						   .exits = exits,
						   .core = s->nr_tasks % s->opt.cpus };
	s->nr_tasks++;
	return 0;
}

int hws_add_group(struct hws *s, int64_t parent, uint32_t weight)
{
	REFUSE(s, parent < -1);
	ENTER(s);
	if (s->started || s->load)
		return sim_fail(s, -EBUSY, "add groups before the load");
	if (parent >= (int64_t)s->nr_groups)
		return sim_fail(s, -ERANGE, "group %lld: there is none", (long long)parent);
	if (!weight || weight > HW_GROUP_WEIGHT_MOST)
		return sim_fail(s, -ERANGE, "weight %u: must be from 1 to %u", weight,
				HW_GROUP_WEIGHT_MOST);
	if (s->nr_groups == SIM_TASKS_MOST)
		return sim_fail(s, -E2BIG, "at most %u groups", SIM_TASKS_MOST);
	SIM_GROW(s, &s->room_groups, s->nr_groups + 1ull, SIM_COLUMN(s->groups));
	s->groups[s->nr_groups++] =
		(struct sim_group){ .parent = (u32)(parent + 1), .weight = weight };
	return 0;
}

int hws_join_group(struct hws *s, uint32_t task, uint32_t group)
{
	REFUSE(s, false);
	if (s->started || s->load)
		return sim_fail(s, -EBUSY, "tasks join groups before the load");
	if (task >= s->nr_tasks || group >= s->nr_groups)
		return sim_fail(s, -ERANGE, "task %u or group %u: there is none", task, group);
	s->tasks[task].group = group + 1;
	return 0;
}

int hws_log(struct hws *s, const char *path)
{
	REFUSE(s, !path);
	ENTER(s);
	return sim_log_open(s, path);
}

static bool columns_missing(const struct hws_trace *t)
{
	return !t->time_ns || !t->parent || !t->delay_ns || !t->task || !t->op || !t->flags ||
	       !t->sector || !t->sectors;
}

int hws_add_trace(struct hws *s, const struct hws_trace *trace)
{
	REFUSE(s, !trace || (trace->n && columns_missing(trace)));
	ENTER(s);
	return sim_add_trace(s, trace);
}

int hws_add_pieces(struct hws *s, const uint64_t *ios)
{
	REFUSE(s, !ios);
	ENTER(s);
	return sim_add_pieces(s, ios);
}

static bool piece_missing(const struct hws_trace *t)
{
	return !t->time_ns || !t->task || !t->op || !t->flags || !t->sector || !t->sectors;
}

int hws_feed(struct hws *s, const struct hws_trace *piece)
{
	REFUSE(s, !piece || (piece->n && piece_missing(piece)));
	ENTER(s);
	return sim_feed(s, piece);
}

static bool arrays_missing(const struct hws_job *j)
{
	int d;

	for (d = 0; d < 2; d++)
		if ((j->nr_splits[d] && !j->splits[d]) || (j->nr_zones[d] && !j->zones[d]) ||
		    (j->nr_prio_splits[d] && !j->prio_splits[d]))
			return true;
	return j->nr_files && !j->files;
}

int hws_add_job(struct hws *s, const struct hws_job *job)
{
	REFUSE(s, !job || arrays_missing(job));
	ENTER(s);
	return sim_add_job(s, job);
}

int hws_run(struct hws *s, uint64_t events)
{
	REFUSE(s, false);
	ENTER(s);
	return sim_run(s, events);
}
