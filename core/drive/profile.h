/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What drive models share in reading profiles. */
#ifndef HW_DRIVE_PROFILE_H
#define HW_DRIVE_PROFILE_H

#include "core/drive.h"
#include "core/lib/names.h"

extern const struct hw_drive_model hw_constant_model, hw_disk_model, hw_ssd_model, hw_array_model,
	hw_shaped_model, hw_smr_model;

/* A number as it is in a profile, and how many of the table's own unit make one of that. */
#define HW_NUMBER(k, s, u, d, lo, hi, h) \
	{ .key = k,                      \
	  .type = HW_PARAM_NUMBER,       \
	  .scale = s,                    \
	  .unit = u,                     \
	  .def = d,                      \
	  .min = lo,                     \
	  .max = hi,                     \
	  .help = h }

/* Fills in *err and returns -EINVAL. */
int hw_profile_bad(struct hw_profile_error *err, const char *key, s64 row, const char *column,
		   const char *what);

/* A list parameter: its rows, and their number in *rows. */
static inline const s64 *hw_profile_list(const struct hw_profile *p, u32 param, u32 *rows)
{
	const s64 *list = &p->value[p->value[param]];

	*rows = (u32)list[0];
	return list + 1;
}

/* The next 16-byte aligned offset. */
static inline size_t hw_align16(size_t n)
{
	return (n + 15) & ~(size_t)15;
}

#endif
