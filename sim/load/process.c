// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What all parts of a job do as a process: sleep, wake, compute, issue I/O. */
#include "sim/load/internal.h"

void sim_job_sleep(struct hws *s, struct sim_job *j, u64 until_ns)
{
	j->want = 0;
	sim_sleep(s, &j->source, until_ns);
}

void sim_job_wake(struct hws *s, struct sim_job *j)
{
	sim_job_sleep(s, j, s->now);
}

void sim_job_compute(struct hws *s, struct sim_job *j, u64 need_ns)
{
	j->want = 0;
	sim_compute_in_turn(s, &j->turn, need_ns);
}

void sim_job_issue(struct hws *s, u32 task, u64 sector, u32 sectors, u8 op, u8 flags, void *cookie)
{
	struct hw_bio what = { .sector = sector,
			       .sectors = sectors,
			       .op = op,
			       .flags = flags,
			       .ioprio = s->tasks[task].ioprio };

	sim_job_issue_at(s, task, &what, cookie);
}

void sim_job_issue_at(struct hws *s, u32 task, const struct hw_bio *what, void *cookie)
{
	if (cookie)
		sim_host_submitted(s, s->tasks[task].core, what->sectors);
	sim_issue(s, task, what, s->issued, 0, cookie);
}
