// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A run: one queue, one policy, one drive, in virtual time.
 *
 * The clock jumps to the earliest of: the drive's next event, the next I/O that is due, the time at
 * which the policy asked to be called again. What happens there is an instant (loop.c).
 */
#include <errno.h>

#include "sim/internal.h"
#include "sim/tables.h"

static int start(struct hws *s)
{
	u32 i;
	int ret;

	if (!s->drive)
		return sim_fail(s, -EINVAL, "no drive");
	s->depth = s->opt.queue_depth ? s->opt.queue_depth : s->drive->depth;
	ret = sim_describe_drive(s->q, s->drive);
	if (ret)
		return sim_fail(s, ret, "out of memory");
	s->q->dev.depth = s->depth;
	s->q->dev.settled = s->opt.settled;
	s->q->dev.rotational = sim_is_told_rotational(s);
	s->q->dev.nr_requests = s->opt.nr_requests;
	sim_host_start(s);
	if (sim_has_tags(s)) {
		s->tagged = sim_alloc(s, s->queues * sizeof(*s->tagged));
		for (i = 0; i < s->queues; i++)
			s->tagged[i].tags = sim_tags_new(s, s->opt.nr_requests);
	}
	ret = hw_start(s->q, 0);
	if (ret)
		return sim_fail(s, ret, "%s failed to start", s->policy->name);
	sim_acquaint(s->q, s->drive);
	s->started = true;
	return 0;
}

int sim_run(struct hws *s, u64 events)
{
	int ret;

	if (!s->started) {
		ret = start(s);
		if (ret)
			return ret;
	}
	if (s->failed)
		return s->failed;
	while (events--) {
		u64 t;

		if (s->hungry)
			return HWS_HUNGRY;
		t = sim_next_event(s);
		if (t == HW_NEVER)
			break;
		if (t > SIM_CLOCK_END)
			return sim_fail(s, -EOVERFLOW,
					"time overflow: the clock ends after 292 years, "
					"when %llu of the %llu I/Os issued have completed",
					(unsigned long long)s->completed,
					(unsigned long long)s->issued);
		s->now = max(s->now, t);
		sim_step(s);
		if (s->failed)
			return s->failed;
	}
	ret = sim_log_check(s);
	if (ret)
		return ret;
	if (events == UINT64_MAX)
		return HWS_MORE;
	ret = sim_account(s);
	if (!ret)
		ret = sim_log_close(s);
	return ret ? ret : HWS_OVER;
}
