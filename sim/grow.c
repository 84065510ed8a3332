// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Arrays that grow by doubling. */
#include <stdlib.h>
#include <string.h>

#include "sim/grow.h"

#define FIRST_ROOM 1024

bool sim_columns_grow(u64 *room, u64 need, const struct sim_column *columns, u32 n)
{
	u64 more = *room ? *room : FIRST_ROOM;
	void *array;
	u32 i;

	while (more < need)
		more *= 2;
	for (i = 0; i < n; i++) {
		/* By its bytes: it is a pointer to whatever the column holds. */
		memcpy(&array, columns[i].array, sizeof(array));
		array = realloc(array, more * columns[i].bytes);
		if (!array)
			return false;
		memcpy(columns[i].array, &array, sizeof(array));
	}
	*room = more;
	return true;
}
