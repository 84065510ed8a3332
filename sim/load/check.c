// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whether a job can be run at all: parameters that are missing, or make no sense together. */
#include <errno.h>

#include "sim/load/internal.h"

static bool wrong_shares(const struct hws_job *o, u32 d)
{
	u64 percent = 0;
	u32 i;

	for (i = 0; i < o->nr_splits[d]; i++)
		if (o->splits[d][i].percent > 100 || o->splits[d][i].bytes < o->min_bytes[d] ||
		    o->splits[d][i].bytes > o->max_bytes[d])
			return true;
	for (i = 0; i < o->nr_prio_splits[d]; i++)
		if (o->prio_splits[d][i].percent > 100)
			return true;
	for (i = 0; i < o->nr_zones[d]; i++) {
		percent += o->zones[d][i].percent;
		if (o->zones[d][i].length_percent > 100 || o->zones[d][i].length_bytes >> 62)
			return true;
	}
	return (o->nr_zones[d] && percent != 100) || o->prio_percent[d] > 100;
}

static const char *what_is_wrong(struct hws *s, const struct hws_job *o)
{
	bool writes_buffered = o->buffered && o->directions & HWS_WRITES;
	u32 d;

	if (o->task < s->nr_tasks && s->tasks[o->task].source)
		return "its task already has a job";
	if (writes_buffered &&
	    (o->flusher == o->task ||
	     (o->flusher < s->nr_tasks && s->tasks[o->flusher].source && !s->cache)))
		return "its flusher also has a job";
	if (o->start_min_ns > o->start_max_ns || o->start_max_ns > SIM_CLOCK_END ||
	    o->startup_ns > SIM_CLOCK_END)
		return "invalid start delay";
	if (o->task >= s->nr_tasks || (o->flusher >= s->nr_tasks && writes_buffered))
		return "no such task";
	/* Its clock would stand still. */
	if (o->time_based && o->buffered && !s->opt.copy_ns && !s->opt.copy_page_ns && !o->think_ns)
		return "time_based without copy time would never end";
	if (o->nr_files >> 32)
		return "too many files";
	if (!o->nr_files || !o->depth || !o->loops || !o->size || !o->directions ||
	    o->directions > HWS_READS_AND_WRITES || !o->random_every ||
	    (o->file_service == HWS_FILES_IN_TURN && !o->file_every) ||
	    (o->time_based && !o->runtime_ns) ||
	    ((o->fsync_every || o->end_fsync) && !(o->directions & HWS_WRITES)))
		return "a parameter is missing";
	for (d = 0; d < 2; d++)
		if (!o->min_bytes[d] || o->max_bytes[d] < o->min_bytes[d] || !o->align_bytes[d] ||
		    (!o->buffered && (o->min_bytes[d] | o->align_bytes[d]) % HW_SECTOR_BYTES))
			return "invalid block size";
	for (d = 0; d < 2; d++)
		if (wrong_shares(o, d))
			return "invalid shares of sizes, places or priorities";
	if (sim_skew_wrong(o))
		return "invalid distribution of places";
	return NULL;
}

int sim_job_check(struct hws *s, const struct hws_job *o)
{
	u64 i, nr = s->jobs->nr, drive_bytes = s->drive->sectors * HW_SECTOR_BYTES;
	const char *wrong = what_is_wrong(s, o);

	if (wrong)
		return sim_fail(s, -EINVAL, "job %llu: %s", (unsigned long long)nr, wrong);
	for (i = 0; i < o->nr_files; i++) {
		const struct hws_file *f = &o->files[i];

		if (f->base > drive_bytes || f->size > drive_bytes - f->base ||
		    f->base % HW_SECTOR_BYTES || (!o->buffered && f->offset % HW_SECTOR_BYTES))
			return sim_fail(s, -ERANGE,
					"job %llu: file %llu does not fit on a drive of "
					"%llu sectors",
					(unsigned long long)nr, (unsigned long long)i,
					(unsigned long long)s->drive->sectors);
	}
	return 0;
}
