// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: how fast the drive reads in sequence, from those who do so.
 */
#include "core/policy/maitre/internal.h"

#define WINDOW_NS	(16 * MT_MSEC)		   /* over which rates are measured */
#define RATE_SHIFT	10			   /* fixed point of ns per sector */
#define SLOWEST		((u64)51200 << RATE_SHIFT) /* 10 MB/s */
#define UNKNOWN		((u64)5120 << RATE_SHIFT) /* 100 MB/s, until somebody has read in sequence */
#define FORGET_SHIFT	6
#define STREAM_REQUESTS 8u
#define QUICK_SHIFT	3 /* of the mean positioning: what is done within that took no way */

/* What @sectors take in sequence, as far as is known, ns. */
u64 mt_stream_ns(const struct mt_device *d, u64 sectors)
{
	return sectors * (d->sector_ns ? d->sector_ns : UNKNOWN) >> RATE_SHIFT;
}

/*
 * Has @r, which is done, taken no way beyond its data? Those of the @others that are still in the drive
 * have taken their time too.
 */
bool mt_was_quick(const struct mt_device *d, const struct mt_request *r, u32 others)
{
	u64 data = 2 * mt_stream_ns(d, r->s.rq.sectors) * (others + 1);

	return d->now - r->s.rq.dispatch_ns <= (d->mean_ns >> QUICK_SHIFT) + data;
}

/* Does what is done for @e say how fast the drive reads in sequence? Who is new may yet seek. */
bool mt_tells_rate(const struct mt_device *d, const struct mt_entity *e)
{
	return mt_streams(d, e) &&
	       container_of(e, const struct mt_flow, e)->requests >= STREAM_REQUESTS;
}

/* The device was busy for @ns with what tells its rate. */
void mt_rate_time(struct mt_device *d, u64 ns)
{
	u64 now;

	d->rate_ns += ns;
	if (d->rate_ns < WINDOW_NS)
		return;
	if (d->rate_sectors) {
		/* Seeks are no transfer: no drive is as slow as that. */
		now = min(div64_u64(d->rate_ns << RATE_SHIFT, d->rate_sectors), SLOWEST);
		if (!d->sector_ns || now < d->sector_ns)
			d->sector_ns = now;
		else
			d->sector_ns += (min(now, 2 * d->sector_ns) - d->sector_ns) >> FORGET_SHIFT;
	}
	d->rate_ns = 0;
	d->rate_sectors = 0;
}
