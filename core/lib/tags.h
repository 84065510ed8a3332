/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How blk-mq lays out its scheduler tags: for policies that limit them, and hosts that hand them
 * out.
 */
#ifndef HW_LIB_TAGS_H
#define HW_LIB_TAGS_H

#include "core/port.h"

/*
 * blk-mq keeps its tags in words of so many bits, as a shift: small pools are spread over four
 * words (lib/sbitmap.c, on 64 bits).
 */
static inline u32 hw_tag_word_shift(u32 tags)
{
	u32 shift = 6;

	if (tags >= 4)
		while ((4u << shift) > tags)
			shift--;
	return shift;
}

/*
 * How many of @tags tags 6.1 leaves to requests that may take @limit: it applies the limit to every
 * word, so that there is often none in effect.
 */
static inline u32 hw_limit_by_word(u32 tags, u32 limit)
{
	u32 word = 1u << hw_tag_word_shift(tags);

	return tags / word * min(word, limit) + min(tags % word, limit);
}

#endif
