/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads before writes, but not for ever: the rule that deadline and mq-deadline share. */
#ifndef HW_LIB_DIRECTION_H
#define HW_LIB_DIRECTION_H

#include "core/elevator.h"

/*
 * Which way a new batch goes, or -1 if nothing is queued. @fifo: reads, writes. @starved counts the
 * batches of reads begun while writes waited, of which there may be @most.
 */
static inline int hw_choose_direction(const struct list_head *fifo, s64 *starved, s64 most)
{
	bool reads = !list_empty(&fifo[HW_READ]), writes = !list_empty(&fifo[HW_WRITE]);

	if (!reads && !writes)
		return -1;
	/* The count is compared before it is raised: so many batches do go before the writes. */
	if (reads && (!writes || (*starved)++ < most))
		return HW_READ;
	*starved = 0;
	return HW_WRITE;
}

#endif
