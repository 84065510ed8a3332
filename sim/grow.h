/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Arrays that grow by doubling; those of one table, its columns, together. */
#ifndef HW_SIM_GROW_H
#define HW_SIM_GROW_H

#include <stddef.h>

#include "core/port.h"

/* Where the pointer to an array is kept, and how large its elements are. */
struct sim_column {
	void *array;
	size_t bytes;
};

#define SIM_COLUMN(array)                  \
	(struct sim_column)                \
	{                                  \
		&(array), sizeof(*(array)) \
	}

/*
 * Room for @need elements in each of @n columns, of which *@room have room; what is new is not
 * zeroed. False: there is no memory, and *@room is as before.
 */
bool sim_columns_grow(u64 *room, u64 need, const struct sim_column *columns, u32 n);

#define SIM_TRY_GROW(room, need, ...)                                             \
	((need) <= *(room) ||                                                     \
	 sim_columns_grow(room, need, (const struct sim_column[]){ __VA_ARGS__ }, \
			  sizeof((const struct sim_column[]){ __VA_ARGS__ }) /    \
				  sizeof(struct sim_column)))

#endif
