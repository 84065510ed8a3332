// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The event log: a line of CSV for each event, written as the run goes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/internal.h"

/* What goes wrong first is told at the end of the call from outside (sim_log_check()). */
__attribute__((format(printf, 2, 3))) static void print(struct hws *s, const char *format, ...)
{
	va_list ap;
	int ret;

	va_start(ap, format);
	ret = vfprintf(s->log, format, ap);
	va_end(ap);
	if (ret < 0 && !s->log_errno)
		s->log_errno = errno;
}

static const char *const log_names[] = { "insert",   "merge",	   "dispatch",
					 "complete", "wait_begin", "wait_end" };

static void log_event(struct hws *s, enum sim_event_type type, u64 request, u32 task, u8 op,
		      u64 sector, u32 sectors, const char *reason)
{
	print(s, "%llu,%s,%llu,%u,%c,%llu,%u,%s\n", (unsigned long long)s->now, log_names[type],
	      (unsigned long long)request, s->tasks[task].id, "RWDO"[op & 3],
	      (unsigned long long)sector, sectors, reason);
}

void sim_log(struct hws *s, enum sim_event_type type, u64 request, u32 task, u8 op, u64 sector,
	     u32 sectors)
{
	if (s->log)
		log_event(s, type, request, task, op, sector, sectors, "");
}

void sim_log_dispatch(struct hws *s, const struct sim_request *r)
{
	const struct hw_request *rq = &r->rq;

	if (s->log)
		log_event(s, EV_DISPATCH, rq->id, rq->task->id, rq->op, rq->sector, rq->sectors,
			  sim_reasons[r->reason].name);
}

static void log_wait(struct hws *s, enum sim_event_type type)
{
	print(s, "%llu,%s,", (unsigned long long)s->now, log_names[type]);
	if (s->wait_task_seen != U32_MAX)
		print(s, ",%u,,,,\n", s->tasks[s->wait_task_seen].id);
	else
		print(s, ",,,,,\n");
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
	print(s, "time_ns,event,request,task,op,sector,sectors,reason\n");
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
