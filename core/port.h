/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The seam between core and its hosts.
 *
 * Core is written in the kernel's idiom and uses a handful of the kernel's names: fixed-width
 * types, list_head, rb_node, 64-bit division, min/max. In a kernel they come from the kernel's own
 * headers; everywhere else from port/hosted.h. This is the only conditional in core.
 */
#ifndef HW_PORT_H
#define HW_PORT_H

#ifdef __KERNEL__
#include "core/port/kernel.h"
#else
#include "core/port/hosted.h"
#endif

#endif
