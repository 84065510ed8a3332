/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hosted version of the seam: the kernel's names, our own bodies. Semantics are the kernel's,
 * so a policy that works here works there; nothing here may do what its namesake does not.
 */
#ifndef HW_PORT_HOSTED_H
#define HW_PORT_HOSTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define U8_MAX	UINT8_MAX
#define U16_MAX UINT16_MAX
#define U32_MAX UINT32_MAX
#define S32_MAX INT32_MAX
#define U64_MAX UINT64_MAX
#define S64_MAX INT64_MAX
#define S64_MIN INT64_MIN

#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif
#define noinline			__attribute__((__noinline__))
#define likely(x)			__builtin_expect(!!(x), 1)
#define unlikely(x)			__builtin_expect(!!(x), 0)
#define BUILD_BUG_ON(cond)		_Static_assert(!(cond), "BUILD_BUG_ON")
#define ARRAY_SIZE(a)			(sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

#define min(a, b)                       \
	({                              \
		__typeof__(a) a_ = (a); \
		__typeof__(b) b_ = (b); \
		a_ < b_ ? a_ : b_;      \
	})
#define max(a, b)                       \
	({                              \
		__typeof__(a) a_ = (a); \
		__typeof__(b) b_ = (b); \
		a_ > b_ ? a_ : b_;      \
	})
#define min_t(t, a, b)             \
	({                         \
		t a_ = (a);        \
		t b_ = (b);        \
		a_ < b_ ? a_ : b_; \
	})
#define max_t(t, a, b)             \
	({                         \
		t a_ = (a);        \
		t b_ = (b);        \
		a_ > b_ ? a_ : b_; \
	})
#define clamp_t(t, v, lo, hi) min_t(t, max_t(t, v, lo), hi)
#define swap(a, b)                      \
	do {                            \
		__typeof__(a) t_ = (a); \
		(a) = (b);              \
		(b) = t_;               \
	} while (0)

/* The kernel divides 64 bits by function because 32-bit targets have no instruction for it. */
static inline u64 div_u64(u64 a, u32 b)
{
	return a / b;
}
static inline s64 div_s64(s64 a, s32 b)
{
	return a / b;
}
static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}
static inline s64 div64_s64(s64 a, s64 b)
{
	return a / b;
}
static inline u64 div_u64_rem(u64 a, u32 b, u32 *rem)
{
	*rem = (u32)(a % b);
	return a / b;
}
static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rem)
{
	*rem = a % b;
	return a / b;
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	return (u64)((unsigned __int128)a * b / c);
}

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

/* Without a popcount instruction the compiler would call a library for its built-in. */
static inline unsigned int hweight32(u32 x)
{
	x -= x >> 1 & 0x55555555u;
	x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
	return ((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

#include "core/port/list.h"
#include "core/port/rbtree.h"

/* Models of schedulers that a kernel has itself: part of a list, where there is no kernel. */
#define HW_MODELS(...) __VA_ARGS__,

#endif
