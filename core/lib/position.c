// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "core/lib/position.h"

u64 hw_positioning(const struct hw_device *dev, u64 distance)
{
	u32 lo = 0, n = dev->positions.nr, shift;
	u64 step, into;

	if (!n)
		return 0;
	/*
	 * The last point at or below the distance. It is as good as random: no branch depends on
	 * it.
	 */
	for (; n > 1; n -= n / 2)
		lo += hw_position_sectors(dev, lo + n / 2) <= distance ? n / 2 : 0;
	if (lo + 1 == dev->positions.nr || distance <= hw_position_sectors(dev, lo))
		return hw_position_ns(dev, lo);
	step = hw_position_sectors(dev, lo + 1) - hw_position_sectors(dev, lo);
	into = distance - hw_position_sectors(dev, lo);
	/* 32 bits of distance and 32 of time: products fit. */
	shift = (u32)max(fls64(step) - 32, 0);
	return div64_u64(hw_position_ns(dev, lo) * ((step - into) >> shift) +
				 hw_position_ns(dev, lo + 1) * (into >> shift),
			 step >> shift);
}
