// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What went wrong, in one line for hws_error().
 */
#include <stdarg.h>
#include <stdio.h>

#include "sim/internal.h"

int sim_fail(struct hws *s, int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(s->error, sizeof(s->error), format, ap);
	va_end(ap);
	return err;
}
