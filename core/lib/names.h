/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names are compared without a library's help. */
#ifndef HW_LIB_NAMES_H
#define HW_LIB_NAMES_H

#include "core/port.h"

static inline bool hw_same_name(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

#endif
