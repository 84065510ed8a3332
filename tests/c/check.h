/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The least that a C unit test needs: a check that says where and what, and goes on. */
#ifndef HW_TEST_CHECK_H
#define HW_TEST_CHECK_H

#include <stdio.h>

static int check_failures;

#define CHECK(cond)                                                               \
	do {                                                                      \
		if (!(cond)) {                                                    \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			check_failures++;                                         \
		}                                                                 \
	} while (0)

#define CHECK_EQ(a, b)                                                                           \
	do {                                                                                     \
		long long a_ = (long long)(a), b_ = (long long)(b);                              \
		if (a_ != b_) {                                                                  \
			printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a, a_, b_); \
			check_failures++;                                                        \
		}                                                                                \
	} while (0)

#define CHECK_DONE() (check_failures ? 1 : 0)

#endif
