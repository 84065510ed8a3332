// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who gets which tag: worked out by hand from lib/sbitmap.c of 6.12. */
#include <stdlib.h>

#include "check.h"
#include "sim/internal.h"
#include "sim/tags.c"

void *sim_alloc(struct hws *s, size_t bytes)
{
	return malloc(bytes);
}

/* 64 tags: four words of 16. */
static void which(void)
{
	struct sim_tags *t = sim_tags_new(NULL, 64);

	CHECK_EQ(sim_tag_get(t, 64), 0);
	CHECK_EQ(sim_tag_get(t, 64), 1);
	sim_tag_put(t, 0);
	/* It stays marked: the word has others left. */
	CHECK_EQ(sim_tag_get(t, 64), 2);
	/* What came back last is in the third word: there the search begins. */
	t->hint = 40;
	CHECK_EQ(sim_tag_get(t, 64), 32);
	/* A limit of 16 is four bits of each word; from the hint's bit on, then from 0. */
	t->hint = 34;
	CHECK_EQ(sim_tag_get(t, 16), 34);
	CHECK_EQ(t->hint, 35);
	CHECK_EQ(sim_tag_get(t, 16), 35);
	CHECK_EQ(sim_tag_get(t, 16), 33);
	/* The third word's four are taken. */
	CHECK_EQ(sim_tag_get(t, 16), 48);
	free(t);
}

/* A limit of one is one bit, the first: whoever has it. */
static void one(void)
{
	struct sim_tags *t = sim_tags_new(NULL, 64);
	int i;

	t->hint = 16;
	for (i = 0; i < 8; i++)
		CHECK_EQ(sim_tag_get(t, 64), 16 + i);
	CHECK_EQ(sim_tag_get(t, 1), 0);
	CHECK_EQ(sim_tag_get(t, 1), -1);
	CHECK_EQ(t->hint, 0);
	sim_tag_put(t, 16);
	CHECK_EQ(sim_tag_get(t, 1), -1);
	sim_tag_put(t, 0);
	CHECK_EQ(sim_tag_get(t, 1), 0);
	/* Three: the remainder goes to the first words, a bit each. */
	sim_tag_put(t, 0);
	t->hint = 0;
	CHECK_EQ(sim_tag_get(t, 3), 0);
	CHECK_EQ(sim_tag_get(t, 3), 16);
	CHECK_EQ(sim_tag_get(t, 3), 32);
	CHECK_EQ(sim_tag_get(t, 3), -1);
	free(t);
}

static void all_of(u32 n)
{
	struct sim_tags *t = sim_tags_new(NULL, n);
	u8 *seen = calloc(n, 1);
	u32 i, round, step = n % 7 ? 7 : 11;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < n; i++) {
			int tag = sim_tag_get(t, n);

			CHECK(tag >= 0 && tag < (int)n && !seen[tag]);
			seen[tag] = 1;
		}
		CHECK_EQ(sim_tag_get(t, n), -1);
		for (i = 0; i < n; i++)
			sim_tag_put(t, (int)((i * step + round) % n));
		for (i = 0; i < n; i++)
			seen[i] = 0;
	}
	free(seen);
	free(t);
}

int main(void)
{
	u32 sizes[] = { 1, 2, 3, 4, 5, 63, 64, 65, 200, 256, 1000 }, i;

	which();
	one();
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		all_of(sizes[i]);
	return CHECK_DONE();
}
