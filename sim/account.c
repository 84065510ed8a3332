// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a run came to as a whole: whether anything of it is missing, and totals.
 */
#include <errno.h>

#include "sim/internal.h"

/*
 * The run is over: every I/O that there was to be has been issued, has completed, and is in the
 * rows; nothing is left on its way. Whatever is wrong with a load, a policy or a drive model ends
 * here at the latest.
 */
int sim_account(struct hws *s)
{
	int ret;

	if (s->issued != s->completed)
		return sim_fail(s, -EPROTO, "%s holds %llu I/Os but waits for nothing",
				s->policy->name, (unsigned long long)(s->issued - s->completed));
	ret = s->load ? s->load->ops->over(s, s->load) : 0;
	if (ret)
		return ret;
	if (s->q->nr_queued || s->q->nr_in_flight || s->in_drive || s->in_use)
		return sim_fail(s, -EPROTO,
				"%s still holds %u requests, of which %u are in the drive",
				s->policy->name, s->in_use, s->in_drive);
	if (s->opt.record && s->rows.n != s->completed + s->flushes + s->left_out)
		return sim_fail(s, -EPROTO, "%llu I/Os completed, but %llu have rows",
				(unsigned long long)s->completed, (unsigned long long)s->rows.n);
	if (s->opt.exact && sim_tallied(s) != s->completed)
		return sim_fail(s, -EPROTO, "%llu I/Os completed, but %llu are reported",
				(unsigned long long)s->completed,
				(unsigned long long)sim_tallied(s));
	return 0;
}

void hws_totals(const struct hws *s, struct hws_totals *out)
{
	static const struct hw_drive_stats none;
	const struct hw_drive_stats *d;
	const struct hw_wait *w;

	if (!out)
		return;
	*out = (struct hws_totals){ 0 };
	if (!s)
		return;
	d = s->drive ? &s->drive->stats : &none;
	w = &s->q->wait;
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
		.cores = s->opt.cores,
		.queues = s->queues,
	};
	out->core_busy_ns = sim_host_busy(s, &out->lock_busy_ns);
}
