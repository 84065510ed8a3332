/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What looks like chance and repeats: a hash instead of a generator's state. */
#ifndef HW_LIB_MIX_H
#define HW_LIB_MIX_H

#include "core/port.h"

#define HW_MIX_STEP 0x9e3779b97f4a7c15ull /* between the states of SplitMix64 */

/* All bits of the result depend on all of x: the finalizer of SplitMix64. */
static inline u64 hw_mix(u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

#endif
