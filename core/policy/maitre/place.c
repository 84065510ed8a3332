// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: what it costs to get from one place to another.
 */
#include "core/lib/position.h"
#include "core/policy/maitre/internal.h"

#define FAR_NS	    (12 * MT_MSEC) /* where nothing is known of the drive */
#define FAR_SECTORS 1024u

u64 mt_position(const struct mt_device *d, u64 distance)
{
	if (d->q.dev.positions.nr)
		return hw_positioning(&d->q.dev, distance);
	return distance > FAR_SECTORS ? FAR_NS : 0;
}
