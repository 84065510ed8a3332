// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a run leaves behind besides tallies: totals, the event log, and a row per I/O where that was
 * asked for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/internal.h"

void sim_row_issue(struct hws *s, u64 row, u32 task, const struct hw_bio *what)
{
	struct sim_rows *r = &s->rows;

	if (!s->opt.record)
		return;
	if (!s->trace) {
		u64 room;

		if (row >= r->room) {
			room = r->room;
			r->issue_ns =
				sim_grow(s, r->issue_ns, &room, row + 1, sizeof(*r->issue_ns));
			room = r->room;
			r->complete_ns = sim_grow(s, r->complete_ns, &room, row + 1,
						  sizeof(*r->complete_ns));
			room = r->room;
			r->sector = sim_grow(s, r->sector, &room, row + 1, sizeof(*r->sector));
			room = r->room;
			r->sectors = sim_grow(s, r->sectors, &room, row + 1, sizeof(*r->sectors));
			room = r->room;
			r->task = sim_grow(s, r->task, &room, row + 1, sizeof(*r->task));
			room = r->room;
			r->op = sim_grow(s, r->op, &room, row + 1, sizeof(*r->op));
			r->room = room;
		}
		r->sector[row] = what->sector;
		r->sectors[row] = what->sectors;
		r->task[row] = task;
		r->op[row] = what->op;
		r->complete_ns[row] = -1;
		r->n = row + 1;
	}
	r->issue_ns[row] = (int64_t)s->now;
}

void sim_row_complete(struct hws *s, u64 row)
{
	if (s->opt.record)
		s->rows.complete_ns[row] = (int64_t)s->now;
}

void hws_rows(const struct hws *s, struct hws_rows *out)
{
	const struct sim_rows *r = &s->rows;

	*out = (struct hws_rows){ .n = r->n,
				  .issue_ns = r->issue_ns,
				  .complete_ns = r->complete_ns,
				  .sector = r->sector,
				  .sectors = r->sectors,
				  .task = r->task,
				  .op = r->op };
	if (s->trace) {
		out->sector = s->trace->sector;
		out->sectors = s->trace->sectors;
		out->task = s->trace->task;
		out->op = s->trace->op;
	}
}

static const char *const log_names[] = { "insert",   "merge",	   "dispatch",
					 "complete", "wait_begin", "wait_end" };

void sim_log(struct hws *s, enum sim_event_type type, u64 request, u32 task, u8 op, u64 sector,
	     u32 sectors)
{
	int ret;

	if (!s->log)
		return;
	ret = fprintf(s->log, "%llu,%s,%llu,%u,%c,%llu,%u\n", (unsigned long long)s->now,
		      log_names[type], (unsigned long long)request, s->tasks[task].id,
		      "RWDO"[op & 3], (unsigned long long)sector, sectors);
	if (ret < 0 && !s->log_errno)
		s->log_errno = errno;
}

static void log_wait(struct hws *s, enum sim_event_type type)
{
	int ret = fprintf(s->log, "%llu,%s,", (unsigned long long)s->now, log_names[type]);

	if (ret >= 0 && s->wait_task_seen != U32_MAX)
		ret = fprintf(s->log, ",%u,,,\n", s->tasks[s->wait_task_seen].id);
	else if (ret >= 0)
		ret = fputs(",,,,\n", s->log);
	if (ret < 0 && !s->log_errno)
		s->log_errno = errno;
}

/*
 * A policy call may have ended a wait, begun one, or both, in this order; a call that did begin and
 * end one shows both.
 */
void sim_log_waits(struct hws *s)
{
	const struct hw_wait *w = &s->q->wait;
	bool begun = w->begun != s->begun_seen;

	if (!s->log || (!begun && w->active == s->wait_seen))
		return;
	if (s->wait_seen)
		log_wait(s, EV_WAIT_END);
	if (begun) {
		s->wait_task_seen = w->task ? w->task->id : U32_MAX;
		log_wait(s, EV_WAIT_BEGIN);
		if (!w->active)
			log_wait(s, EV_WAIT_END);
	}
	s->wait_seen = w->active;
	s->begun_seen = w->begun;
}

int sim_log_open(struct hws *s, const char *path)
{
	size_t bytes = strlen(path) + 1;

	if (s->started || s->log)
		return sim_fail(s, -EBUSY, "a run has one log, from its beginning");
	s->log_path = memcpy(sim_alloc(s, bytes), path, bytes);
	s->log = fopen(path, "w");
	if (!s->log)
		return sim_fail(s, -errno, "%s: %s", path, strerror(errno));
	fputs("time_ns,event,request,task,op,sector,sectors\n", s->log);
	return 0;
}

int sim_log_check(struct hws *s)
{
	if (!s->log_errno)
		return 0;
	return sim_fail(s, -s->log_errno, "%s: %s", s->log_path, strerror(s->log_errno));
}

int sim_log_close(struct hws *s)
{
	FILE *log = s->log;

	s->log = NULL;
	if (log && fclose(log) && !s->log_errno)
		s->log_errno = errno;
	return sim_log_check(s);
}

/*
 * The run is over: every I/O that there was to be has been issued, has completed, and is in the
 * rows; nothing is left on its way. Whatever is wrong with a load, a policy or a drive model ends
 * here at the latest.
 */
int sim_account(struct hws *s)
{
	u64 wanted = s->trace ? s->trace->n : s->issued;

	if (s->issued != s->completed)
		return sim_fail(s, -EPROTO, "%s holds %llu I/Os and has nothing to wait for",
				s->policy->name, (unsigned long long)(s->issued - s->completed));
	if (s->issued != wanted)
		return sim_fail(s, -EPROTO,
				"%llu of %llu I/Os were never issued: they wait for each other",
				(unsigned long long)(wanted - s->issued),
				(unsigned long long)wanted);
	if (s->jobs && !sim_jobs_over(s))
		return sim_fail(s, -EPROTO, "jobs wait for each other, and never end");
	if (s->q->nr_queued || s->q->nr_in_flight || s->in_drive || s->in_use)
		return sim_fail(s, -EPROTO,
				"%s still holds %u requests, of which %u are in the drive",
				s->policy->name, s->in_use, s->in_drive);
	if (s->opt.record && s->rows.n != s->completed)
		return sim_fail(s, -EPROTO, "%llu I/Os completed, and %llu have rows",
				(unsigned long long)s->completed, (unsigned long long)s->rows.n);
	if (s->opt.exact && sim_tallied(s) != s->completed)
		return sim_fail(s, -EPROTO, "%llu I/Os completed, and %llu are reported",
				(unsigned long long)s->completed,
				(unsigned long long)sim_tallied(s));
	return 0;
}

void hws_totals(const struct hws *s, struct hws_totals *out)
{
	static const struct hw_drive_stats none;
	const struct hw_drive_stats *d = s->drive ? &s->drive->stats : &none;
	const struct hw_wait *w = &s->q->wait;

	*out = (struct hws_totals){
		.now_ns = s->now,
		.issued = s->issued,
		.completed = s->completed,
		.requests = s->requests,
		.merges = s->merges,
		.busy_ns = d->busy_ns,
		.seek_ns = d->seek_ns,
		.rotation_ns = d->rotation_ns,
		.transfer_ns = d->transfer_ns,
		.overhead_ns = d->overhead_ns,
		.seeks = d->seeks,
		.seek_cylinders = d->seek_cylinders,
		.cache_hits = d->cache_hits,
		.media_reads = d->media_reads,
		.media_writes = d->media_writes,
		.a_success = w->count[HW_WAIT_SUCCESS],
		.a_fail = w->count[HW_WAIT_FAIL],
		.a_other = w->count[HW_WAIT_OTHER],
		.t_success_ns = w->total_ns[HW_WAIT_SUCCESS],
		.t_fail_ns = w->total_ns[HW_WAIT_FAIL],
		.t_other_ns = w->total_ns[HW_WAIT_OTHER],
		.drive_sectors = s->drive ? s->drive->sectors : 0,
		.queue_depth = s->depth,
	};
}
