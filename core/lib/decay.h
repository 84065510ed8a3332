/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decayed means of think times and seek distances, as Linux 2.6's anticipatory scheduler and CFQ
 * keep them.
 *
 * Each new sample weighs 1/8 and older ones 7/8 of what they did; 256 stands for one. The number of
 * samples decays in the same way (0, 32, 60, 84, 105, … 249), so that the first samples are not
 * drowned in the initial zero. The rounding is the kernel's to the last bit: the constant 128 in
 * the mean of think times makes the first means too large.
 */
#ifndef HW_LIB_DECAY_H
#define HW_LIB_DECAY_H

#include "core/port.h"

struct hw_decay {
	u64 samples;
	u64 total;
	u64 mean;
};

static inline u64 hw_decay_step(u64 old, u64 sample)
{
	return (7 * old + 256 * sample) / 8;
}

static inline void hw_decay_weigh(struct hw_decay *d, u64 x)
{
	d->samples = hw_decay_step(d->samples, 1);
	d->total = hw_decay_step(d->total, x);
}

/* Think time @x in ticks. */
static inline void hw_decay_think(struct hw_decay *d, u64 x)
{
	hw_decay_weigh(d, x);
	d->mean = div64_u64(d->total + 128, d->samples);
}

/*
 * A single far seek shall not dominate: at most 4 means and 1 GiB while there is little history, 64
 * MiB later.
 */
static inline u64 hw_seek_clamp(const struct hw_decay *d, u64 distance)
{
	return min_t(u64, distance, 4 * d->mean + 2 * 1024 * (d->samples <= 60 ? 1024 : 64));
}

/* Seek distance @x in sectors, clamped by the caller where that is wanted. */
static inline void hw_decay_seek(struct hw_decay *d, u64 x)
{
	hw_decay_weigh(d, x);
	d->mean = div64_u64(d->total + d->samples / 2, d->samples);
}

/* A mean says something from the third sample on (2.6.32's rule for CFQ). */
static inline bool hw_decay_valid(const struct hw_decay *d)
{
	return d->samples > 80;
}

#endif
