/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's version of the seam: every name that core uses is the kernel's own. */
#ifndef HW_PORT_KERNEL_H
#define HW_PORT_KERNEL_H

#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/string.h>
#include <linux/types.h>

/* Models of schedulers that the kernel has itself. */
#define HW_MODELS(...)

#endif
