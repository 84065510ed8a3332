// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Jobs: what the processes of a fio job file do, step by step as fio's own loop does it.
 *
 * One pass: as long as there is more to do, choose a direction, wait for the rate limit, issue;
 * with as many I/Os in flight as the depth allows, wait for one; after every `think_blocks` I/Os
 * wait for all that are in flight, then think. A pass over, wait for all; then the next pass, or
 * the job ends and its task exits.
 *
 * A job is a state machine: step() goes on until the job has to wait for completions, or for a
 * time. What completes only schedules the job for the same instant, so that it issues after every
 * completion of that instant, as the contract says.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/load/internal.h"

enum job_state {
	JOB_NEXT, /* is there more to do? */
	JOB_RATE, /* not before the rate limit allows it */
	JOB_ISSUE,
	JOB_LOCK,   /* with a host: after its processor time */
	JOB_LOCKED, /* and the lock's */
	JOB_SUBMIT, /* after all that */
	JOB_READ,   /* buffered: wait for the pages */
	JOB_COPY,   /* and copy them, or the data to be written */
	JOB_COPIED,
	JOB_BALANCE, /* too many dirty pages? */
	JOB_SYNC,    /* sync=1: wait until they are written */
	JOB_REAP,    /* a slot is needed */
	JOB_THINK,
	JOB_QUIESCE,
	JOB_FSYNC,
	JOB_DRAIN, /* the pass is over */
	JOB_END_FSYNC,
	JOB_AGAIN,
};

/* --- events --- */

static struct sim_job *job_of(struct sim_source *source)
{
	return container_of(source, struct sim_job, source);
}

static void job_woken(struct hws *s, struct sim_source *source)
{
	sim_job_wake(s, job_of(source));
}

static void job_done(struct hws *s, struct sim_source *source, void *cookie)
{
	struct sim_job *j = job_of(source);
	struct sim_transfer *t = cookie;

	if (t && t->write)
		sim_fsync_done(s, t);
	else if (t)
		sim_read_done(s, t);
	if (t)
		return;
	j->completed++;
	if (!j->want || j->completed < j->want)
		return;
	sim_job_compute(s, j, s->host ? sim_host_switch(s, j->turn.core) : 0);
}

/* Who waits for more of them fetches each at once; who computes, or is woken by it, when it runs. */
static bool job_keeps(struct hws *s, struct sim_source *source, struct sim_io *io)
{
	struct sim_job *j = job_of(source);

	if (io->cookie)
		return false;
	if (j->want && j->completed + 1 < j->want) {
		j->fetched++;
		return false;
	}
	io->free_next = NULL;
	*j->unfetched_tail = io;
	j->unfetched_tail = &io->free_next;
	return true;
}

static void fetch(struct hws *s, struct sim_job *j)
{
	struct sim_io *io;

	while (j->fetched < j->reaped && (io = j->unfetched)) {
		j->unfetched = io->free_next;
		if (!j->unfetched)
			j->unfetched_tail = &j->unfetched;
		j->fetched++;
		sim_io_end(s, io);
	}
}

/* --- decisions --- */

static bool job_over(const struct sim_job *j)
{
	const struct hws_job *o = &j->opt;
	u64 limit = o->io_size ? o->io_size : o->size;

	if (o->time_based)
		return false;
	return j->issued_bytes / o->loops >= limit ||
	       (o->number_ios && j->issued / o->loops >= o->number_ios);
}

static bool pass_over(const struct sim_job *j)
{
	const struct hws_job *o = &j->opt;
	u64 limit = o->size;

	if (!o->queued || o->time_based)
		return false;
	if (o->directions & HWS_WRITES && o->random && !o->random_map)
		limit = max(limit, o->io_size);
	return j->pass_bytes >= limit;
}

static bool out_of_time(struct hws *s, struct sim_job *j)
{
	if (j->opt.runtime_ns && s->now - j->epoch_ns >= j->opt.runtime_ns)
		j->terminate = true;
	return j->terminate;
}

/*
 * After a pass: another one? fio counts `loops` down first, and then goes on until io_size is
 * reached.
 */
static bool again(struct sim_job *j)
{
	const struct hws_job *o = &j->opt;
	u64 limit = o->io_size ? o->io_size : o->size;
	u64 largest = max(o->directions & HWS_READS ? o->max_bytes[HWS_READ] : 0,
			  o->directions & HWS_WRITES ? o->max_bytes[HWS_WRITE] : 0);

	/* A pass in which nothing fitted would only come again. */
	if (j->terminate || !j->pass_issued)
		return false;
	if (o->time_based)
		return true;
	if (j->loops_left) {
		j->loops_left--;
		return true;
	}
	if (o->number_ios && j->issued / o->loops >= o->number_ios)
		return false;
	return j->issued_bytes < limit && limit - j->issued_bytes >= largest && o->io_size;
}

static u32 pick_direction(struct sim_job *j)
{
	if (j->opt.directions != HWS_READS_AND_WRITES)
		return j->opt.directions == HWS_WRITES ? HWS_WRITE : HWS_READ;
	/* As fio does: after a change, this direction first gets its share. */
	if (j->dir_issued[j->mix_direction] >= j->mix_until) {
		u32 d = 1 + sim_roll_below(j, DICE_DIRECTION, 100) > j->opt.read_percent;
		u32 other_percent = j->mix_direction ? j->opt.read_percent :
						       100 - j->opt.read_percent;

		if (d != j->mix_direction)
			j->mix_until = j->dir_issued[j->mix_direction] * other_percent / 100;
		j->mix_direction = d;
	}
	return j->mix_direction;
}

/*
 * fio asks a job that also reads after every I/O: after the Nth write, and again after each read
 * until the next one.
 */
static bool fsync_due(const struct sim_job *j)
{
	return j->opt.fsync_every && j->writes && !j->synced_last &&
	       j->writes % j->opt.fsync_every == 0;
}

/* When the next I/O in a direction may go. */
static u64 rate_ns(const struct sim_job *j, u32 d)
{
	u64 rate = j->opt.rate_bytes[d];

	if (!rate)
		return 0;
	/* 64 bits of bytes at a byte a second last longer than the clock. */
	if (j->bytes[d] / rate >= SIM_CLOCK_END / HW_NSEC_PER_SEC)
		return SIM_CLOCK_END + 1;
	return sim_after(j->epoch_ns, mul_u64_u64_div_u64(j->bytes[d], HW_NSEC_PER_SEC, rate));
}

/*
 * The time until which the job has to sleep; 0: it may go on. With both directions it takes the
 * one that may go first.
 */
static u64 rate_wait(struct hws *s, struct sim_job *j)
{
	u64 own = rate_ns(j, j->direction), other;

	if (own <= s->now)
		return 0;
	if (j->opt.directions == HWS_READS_AND_WRITES) {
		other = rate_ns(j, !j->direction);
		if (other < own)
			j->direction = !j->direction;
		own = min(own, other);
	}
	return own <= s->now ? 0 : own;
}

static u64 not_beyond_runtime(const struct sim_job *j, u64 time_ns)
{
	return j->opt.runtime_ns ? min(time_ns, sim_after(j->epoch_ns, j->opt.runtime_ns)) :
				   time_ns;
}

/* --- processor time --- */

static u64 turnaround(const struct hws *s, const struct sim_job *j)
{
	return sim_turnaround(s, (u32)(j->op.bytes / HW_SECTOR_BYTES));
}

/* What it does before an I/O is done: its call for that began so long ago. */
static void computed(const struct hws *s, struct sim_job *j)
{
	j->began_ns = s->now - min(s->now, turnaround(s, j));
}

static u64 copying(const struct hws *s, const struct sim_job *j)
{
	u64 pages = (j->op.bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;

	return s->opt.copy_ns +
	       (s->opt.copy_page_ns + (j->direction == HW_WRITE ? s->opt.dirty_page_ns : 0)) *
		       pages;
}

/* fsync of all the job's files, or of what it has just written, and then @next. */
static void begin_sync(struct hws *s, struct sim_job *j, bool of_all, u8 next)
{
	sim_fsync_begin(s, j, of_all ? NULL : &j->op);
	j->state = next;
}

/* Its read(2) or write(2) through the page cache returns. */
static void call_over(struct hws *s, struct sim_job *j)
{
	j->completed++;
	sim_tally_call(s, j->opt.task, (u8)j->direction, j->began_ns);
	j->state = JOB_REAP;
}

/* --- the loop --- */

static void issue(struct hws *s, struct sim_job *j, const struct sim_place *p)
{
	u32 d = j->direction;
	struct hw_bio what = { .sector = (p->file->at.base + p->offset) / HW_SECTOR_BYTES,
			       .sectors = (u32)(p->bytes / HW_SECTOR_BYTES),
			       .op = (u8)d,
			       .flags = HW_RQ_SYNC,
			       .ioprio = s->tasks[j->opt.task].ioprio,
			       .now_ns = j->began_ns };

	j->issued++;
	j->dir_issued[d]++;
	j->pass_issued++;
	j->issued_bytes += p->bytes;
	j->pass_bytes += p->bytes;
	j->bytes[d] += p->bytes;
	j->writes += d;
	j->synced_last = false;
	if (j->opt.buffered)
		return;
	if (d == HW_WRITE)
		sim_cache_drop(s, p);
	if (d == HW_WRITE && j->opt.sync_writes)
		what.flags |= HW_IO_FUA | HW_RQ_NOMERGE;
	what.ioprio = sim_job_prio(j, d, p->bytes, what.ioprio);
	sim_job_issue_at(s, j->opt.task, &what, NULL);
}

static void next_pass(struct hws *s, struct sim_job *j)
{
	j->pass_bytes = 0;
	j->pass_issued = 0;
	j->mix_until = 0;
	sim_place_reset(j);
	if (j->opt.repeat_random)
		sim_dice_seed(j, s->opt.seed);
}

/* As it begins a file, fio drops what the page cache has of it. */
static void drop_pages(struct hws *s, struct sim_job *j)
{
	u64 i;

	j->rewinds = false;
	if (!j->opt.buffered || j->opt.keep_cache)
		return;
	for (i = 0; i < j->opt.nr_files; i++) {
		struct sim_file *f = &j->files[i];

		sim_cache_drop(s, &(struct sim_place){ .file = f, .bytes = f->at.size });
	}
}

/*
 * Waits until `count` of the job's I/Os have completed, and takes no more of them; true if they
 * have.
 */
static bool wait_for(struct hws *s, struct sim_job *j, u64 count)
{
	if (j->completed >= count) {
		j->reaped = count;
		fetch(s, j);
		return true;
	}
	j->want = count;
	return false;
}

/* One state further; false: the job waits. */
static bool step(struct hws *s, struct sim_job *j)
{
	struct sim_place p;
	u64 until;
	bool more;

	switch (j->state) {
	case JOB_NEXT:
		if (out_of_time(s, j) || job_over(j) || pass_over(j)) {
			j->state = JOB_DRAIN;
		} else if (fsync_due(j)) {
			j->synced_last = true;
			begin_sync(s, j, true, JOB_FSYNC);
			return true;
		} else {
			j->direction = pick_direction(j);
			j->state = JOB_RATE;
		}
		return true;
	case JOB_RATE:
		/* Also after the wait for what is in flight, which may take longer. */
		until = out_of_time(s, j) ? 0 : rate_wait(s, j);
		if (!until) {
			j->state = j->terminate ? JOB_DRAIN : JOB_ISSUE;
			return true;
		}
		if (wait_for(s, j, j->issued))
			sim_job_sleep(s, j, not_beyond_runtime(j, until));
		return false;
	case JOB_ISSUE:
		more = sim_place_next(j, j->direction, &p);
		if (j->too_narrow_bytes) {
			s->failed = sim_fail(s, -EDOM,
					     "job %llu: none of the block sizes that may be drawn "
					     "fits into the last %llu bytes: fio would never end",
					     (unsigned long long)j->index,
					     (unsigned long long)j->too_narrow_bytes);
			return false;
		}
		if (!more) {
			j->state = JOB_DRAIN;
			return true;
		}
		if (j->rewinds)
			drop_pages(s, j);
		j->op = p;
		j->state = JOB_SUBMIT;
		if (j->opt.buffered || !turnaround(s, j))
			return true;
		if (s->host)
			j->state = JOB_LOCK;
		sim_job_compute(s, j, turnaround(s, j));
		return false;
	case JOB_LOCK:
		computed(s, j);
		j->state = JOB_LOCKED;
		j->want = 0;
		sim_lock(s, &j->turn);
		return false;
	case JOB_LOCKED:
		sim_unlock(s, j->turn.core);
		j->state = JOB_SUBMIT;
		return true;
	case JOB_SUBMIT:
		if (j->opt.buffered)
			j->began_ns = s->now;
		else if (s->opt.one_processor)
			computed(s, j);
		issue(s, j, &j->op);
		j->state = JOB_REAP;
		if (j->opt.buffered && j->direction == HW_READ) {
			sim_read_begin(j);
			j->state = JOB_READ;
		} else if (j->opt.buffered) {
			j->state = JOB_COPY;
		}
		return true;
	case JOB_READ:
		if (!sim_read(s, j))
			return false;
		j->state = JOB_COPY;
		return true;
	case JOB_COPY:
		j->state = JOB_COPIED;
		sim_job_compute(s, j, copying(s, j));
		return false;
	case JOB_COPIED:
		if (j->direction == HW_READ) {
			call_over(s, j);
			return true;
		}
		sim_write(s, j);
		j->state = JOB_BALANCE;
		if (j->opt.sync_writes)
			begin_sync(s, j, false, JOB_SYNC);
		return true;
	case JOB_BALANCE:
	case JOB_SYNC:
		if (!(j->state == JOB_SYNC ? sim_fsync(s, j) : sim_write_balance(s, j)))
			return false;
		call_over(s, j);
		return true;
	case JOB_REAP:
		if (j->issued - j->reaped >= j->opt.depth && !wait_for(s, j, j->reaped + 1))
			return false;
		j->state = JOB_THINK;
		return true;
	case JOB_THINK:
		j->state = JOB_NEXT;
		if (j->opt.think_ns) {
			j->think_next = j->opt.think_issued ? j->issued : j->reaped;
			if (j->think_next >= j->think_mark + j->opt.think_blocks)
				j->state = JOB_QUIESCE;
		}
		return true;
	case JOB_QUIESCE:
		if (!wait_for(s, j, j->issued))
			return false;
		j->think_mark = j->think_next;
		j->state = JOB_NEXT;
		if (out_of_time(s, j))
			return true;
		sim_job_sleep(s, j, not_beyond_runtime(j, sim_after(s->now, j->opt.think_ns)));
		return false;
	case JOB_FSYNC:
		if (!sim_fsync(s, j))
			return false;
		sim_tally_sync(s, j->opt.task, j->sync_ns);
		j->state = JOB_NEXT;
		return true;
	case JOB_DRAIN:
		if (!wait_for(s, j, j->issued))
			return false;
		j->state = JOB_AGAIN;
		if (j->opt.end_fsync)
			begin_sync(s, j, true, JOB_END_FSYNC);
		return true;
	case JOB_END_FSYNC:
		if (!sim_fsync(s, j))
			return false;
		j->state = JOB_AGAIN;
		return true;
	default:
		if (!again(j)) {
			sim_job_ended(s, j);
			return false;
		}
		next_pass(s, j);
		j->state = JOB_NEXT;
		return true;
	}
}

static void job_due(struct hws *s, struct sim_source *source, u64 order)
{
	struct sim_job *j = job_of(source);

	if (j->life == JOB_CREATED) {
		sim_start_jobs(s);
	} else if (j->life == JOB_RUNNING && order == source->expected &&
		   sim_computed(s, &j->turn)) {
		while (!sim_task_stalls(s, j->opt.task) && step(s, j))
			;
		sim_yield(s, &j->turn);
	}
}

static const struct sim_source_ops job_ops = {
	.due = job_due,
	.done = job_done,
	.wake = job_woken,
	.keeps = job_keeps,
};

static int jobs_over(struct hws *s, struct sim_source *source)
{
	if (s->jobs->left)
		return sim_fail(s, -EPROTO, "jobs wait for each other and never end");
	/* A job may have slept on after its last I/O, or been woken from its sleep to end. */
	s->now = s->last_done_ns;
	return 0;
}

/* All jobs together are one source. */
static const struct sim_source_ops jobs_ops = { .over = jobs_over };

/* --- set-up --- */

static void *copied(struct hws *s, const void *from, size_t bytes)
{
	return bytes ? memcpy(sim_alloc(s, bytes), from, bytes) : NULL;
}

int sim_add_job(struct hws *s, const struct hws_job *job)
{
	struct sim_job *j;
	u32 d;
	u64 i;
	int ret;

	if (s->started || (s->load && !s->jobs))
		return sim_fail(s, -EBUSY, "a run accepts jobs or a trace only before it starts");
	if (!s->drive)
		return sim_fail(s, -EINVAL, "no drive");
	if (!s->jobs) {
		s->jobs = sim_alloc(s, sizeof(*s->jobs));
		s->jobs->source.ops = &jobs_ops;
		sim_pages_init(&s->jobs->pages);
		s->load = &s->jobs->source;
	}
	ret = sim_job_check(s, job);
	if (ret)
		return ret;
	j = sim_alloc(s, sizeof(*j));
	j->opt = *job;
	j->files = sim_alloc(s, job->nr_files * sizeof(*j->files));
	for (i = 0; i < job->nr_files; i++)
		j->files[i].at = job->files[i];
	j->opt.files = NULL;
	for (d = 0; d < 2; d++) {
		j->opt.splits[d] =
			copied(s, job->splits[d], job->nr_splits[d] * sizeof(*job->splits[d]));
		j->opt.zones[d] =
			copied(s, job->zones[d], job->nr_zones[d] * sizeof(*job->zones[d]));
		j->opt.prio_splits[d] =
			copied(s, job->prio_splits[d],
			       job->nr_prio_splits[d] * sizeof(*job->prio_splits[d]));
	}
	j->loops_left = job->loops - 1;
	j->source.ops = &job_ops;
	j->turn.source = &j->source;
	j->turn.core = s->tasks[job->task].core = (u32)(s->jobs->nr % s->opt.cpus);
	j->unfetched_tail = &j->unfetched;
	sim_host_joined(s, j->turn.core);
	j->flush.task = job->task;
	s->tasks[job->task].source = &j->source;
	sim_dice_seed(j, s->opt.seed);
	sim_place_init(s, j);
	if (job->buffered && job->directions & HWS_WRITES)
		sim_cache_init(s, job->flusher);
	if (job->buffered && job->directions & HWS_READS)
		s->jobs->pages.found = true;
	j->start_ns = job->start_min_ns +
		      sim_roll_below(j, DICE_START, job->start_max_ns - job->start_min_ns + 1);
	sim_start_add(s, j);
	sim_schedule(s, j->start_ns, sim_order(s), &j->source);
	return 0;
}

int hws_job_totals(const struct hws *s, uint64_t number, struct hws_job_totals *out)
{
	const struct sim_job *j;

	if (!s || !out)
		return -EINVAL;
	if (!s->jobs || number >= s->jobs->nr)
		return -ENOENT;
	j = s->jobs->job[number];
	*out = (struct hws_job_totals){ .begin_ns = j->epoch_ns,
					.end_ns = j->end_ns,
					.ios = { j->dir_issued[0], j->dir_issued[1] },
					.bytes = { j->bytes[0], j->bytes[1] } };
	return 0;
}
