// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * blk-mq's map of tags (lib/sbitmap.c of 6.12), on one CPU: who may have a tag, and which.
 *
 * Which one matters, for a limit is not a number of tags in use: it says how much of the map an
 * allocation may look at, spread over its words. A request that may look at one bit waits if that
 * bit is taken, by whomever, and else does not.
 *
 * A search begins where the last one ended, or at the tag that came back last. Tags that came back
 * stay marked until a word has no others left; then all of the word's are cleared at once.
 */
#include <string.h>

#include "core/lib/tags.h"
#include "sim/internal.h"

struct tag_word {
	u64 marked; /* taken, or come back */
	u64 back;   /* come back */
	u32 bits;
};

struct sim_tags {
	u32 all, shift, nr_words;
	u32 hint;
	struct tag_word word[];
};

bool sim_has_tags(const struct hws *s)
{
	return s->opt.nr_requests && (s->opt.pull_ahead || s->opt.join_arriving);
}

struct sim_tags *sim_tags_new(struct hws *s, u32 all)
{
	u32 shift = hw_tag_word_shift(all), nr = (u32)(((u64)all + (1u << shift) - 1) >> shift), i;
	size_t bytes = sizeof(struct sim_tags) + nr * sizeof(struct tag_word);
	struct sim_tags *t = memset(sim_alloc(s, bytes), 0, bytes);

	t->all = all;
	t->shift = shift;
	t->nr_words = nr;
	for (i = 0; i < nr; i++)
		t->word[i].bits = min(all - (i << shift), 1u << shift);
	return t;
}

/* The first bit from @from on that is not marked; those before it come last. */
static int find(const struct tag_word *w, u32 bits, u32 from)
{
	u64 seen = bits < 64 ? (1ull << bits) - 1 : U64_MAX, free = ~w->marked & seen;
	u64 ahead = from < bits ? free & U64_MAX << from : free;

	return free ? __builtin_ctzll(ahead ? ahead : free) : -1;
}

static int take(struct tag_word *w, u32 bits, u32 from)
{
	int bit = find(w, bits, from);

	if (bit < 0 && w->back) {
		w->marked &= ~w->back;
		w->back = 0;
		bit = find(w, bits, from);
	}
	if (bit >= 0)
		w->marked |= 1ull << bit;
	return bit;
}

/* How much of a word a request may look at that may look at @limit tags in all. */
static u32 visible(const struct sim_tags *t, u32 at, u32 limit)
{
	u64 bits = t->word[at].bits, share = bits * limit;

	if (limit >= t->all)
		return (u32)bits;
	return (u32)(share / t->all) + (share % t->all >= (at + 1) * bits);
}

int sim_tag_get(struct sim_tags *t, u32 limit)
{
	u32 hint = t->hint, index = hint >> t->shift, i;
	u32 from = limit < t->all ? hint & ((1u << t->shift) - 1) : 0;

	for (i = 0; i < t->nr_words; i++, from = 0) {
		u32 at = (index + i) % t->nr_words;
		int bit = take(&t->word[at], visible(t, at, limit), from);

		if (bit >= 0) {
			u32 tag = (at << t->shift) + (u32)bit;

			if (tag == hint)
				t->hint = hint + 2 >= t->all ? 0 : hint + 1;
			return (int)tag;
		}
	}
	t->hint = 0;
	return -1;
}

void sim_tag_put(struct sim_tags *t, int tag)
{
	t->word[tag >> t->shift].back |= 1ull << (tag & ((1 << t->shift) - 1));
	t->hint = (u32)tag;
}
