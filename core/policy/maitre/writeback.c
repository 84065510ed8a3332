// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: write-back, which nobody waits for: all of it is one entity, in the order of a one-way
 * elevator.
 *
 * A drive with a write cache takes it at once and writes later, in the time of others. So it is
 * charged what its bytes take at the rate at which the drive reads in sequence, if that is more
 * than the time that it was seen to take; and little of it is in the device at once.
 */
#include "core/policy/maitre/internal.h"

#define WINDOW_NS      (16 * MT_MSEC)		  /* over which rates are measured */
#define RATE_SHIFT     10			  /* fixed point of ns per sector */
#define SLOWEST	       ((u64)51200 << RATE_SHIFT) /* 10 MB/s */
#define FORGET_SHIFT   6
#define IN_DEVICE_NS   (30 * MT_MSEC)
#define IN_DEVICE_NEAR 8u
#define IN_DEVICE_FAR  4u
#define NEAR_SECTORS   2048u

/* What @sectors take in sequence, as far as is known, ns. */
u64 mt_stream_ns(const struct mt_device *d, u64 sectors)
{
	return sectors * d->sector_ns >> RATE_SHIFT;
}

/* The device was busy for @ns. */
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

/* May @async's next request go to the device now? One always may. */
bool mt_async_may(const struct mt_device *d, const struct mt_entity *async)
{
	const struct hw_sorted_request *s;
	u32 most = IN_DEVICE_NEAR;

	if (!async->flying)
		return true;
	s = mt_upwards(d, async);
	if (hw_apart(s->rq.sector, async->end) > NEAR_SECTORS)
		most = IN_DEVICE_FAR;
	return async->flying < most && mt_stream_ns(d, d->async_sectors) < IN_DEVICE_NS;
}
