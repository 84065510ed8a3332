/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time in ticks of tick_us microseconds, for policies whose published form counts in a kernel's
 * ticks.
 */
#ifndef HW_LIB_TICKS_H
#define HW_LIB_TICKS_H

#include "core/elevator.h"

static inline u64 hw_tick_of(u64 now, s64 tick_us)
{
	return div64_u64(now, (u64)tick_us * HW_NSEC_PER_USEC);
}

/* The instant at which @tick begins. */
static inline u64 hw_tick_ns(u64 tick, s64 tick_us)
{
	return tick * (u64)tick_us * HW_NSEC_PER_USEC;
}

/* A span in ms as ticks, rounded down as the kernel's HZ divisions are. */
static inline u64 hw_ms_ticks(s64 ms, s64 tick_us)
{
	return div64_u64((u64)ms * 1000, (u64)tick_us);
}

#endif
