/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Positioning time by distance, from the table `positions` that the host has measured. */
#ifndef HW_LIB_POSITION_H
#define HW_LIB_POSITION_H

#include "core/elevator.h"

/* ns; 0 where there is no table. */
u64 hw_positioning(const struct hw_device *dev, u64 distance);

#endif
