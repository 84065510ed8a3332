// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * starvation: loads. Up to 30 tasks, each with habits of its own, mostly many of a kind and few
 * others.
 */
#include <stdio.h>

#include "starvation.h"

static u64 next_random(u64 *rng)
{
	u64 z = *rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

u64 draw(u64 *rng, u64 n)
{
	return next_random(rng) % n;
}

#define PICK(rng, ...)   \
	(((const u32[]){ \
		__VA_ARGS__ })[draw(rng, sizeof((const u32[]){ __VA_ARGS__ }) / sizeof(u32))])

/* --- loads --- */

static void draw_habit(u64 *rng, struct habit *h)
{
	*h = (struct habit){
		.place = PICK(rng, SEQUENTIAL, SEQUENTIAL, SEQUENTIAL, SKIPPING, RANDOM, RANDOM,
			      BACKWARDS),
		.kind = PICK(rng, READS, READS, READS, READS, SYNC_WRITES, ASYNC_WRITES),
		.region = (u32)draw(rng, 64),
		.sectors = PICK(rng, 8, 8, 8, 64, 256),
		.slots = 1,
		.think_us =
			PICK(rng, 0, 20, 100, 500, 1000, 3000, 5000, 7000, 10000, 20000, 100000),
		.jitter_us = PICK(rng, 0, 0, 100, 1000, 5000, 20000),
		.lives = PICK(rng, 0, 0, 0, 0, 1, 2, 5, 100),
		.work = PICK(rng, 0, 0, 0, 1, 10, 100, 1000),
		.pause_us = PICK(rng, 10000, 100000, 1000000, 3000000),
		.start_us = PICK(rng, 0, 0, 0, 200000, 1000000, 5000000),
	};
	if (h->kind == ASYNC_WRITES)
		h->slots = PICK(rng, 1, MAX_SLOTS);
}

void draw_load(u64 *rng, struct load *l)
{
	u32 i, like;

	l->nr = 1 + (u32)draw(rng, PICK(rng, 2, 4, 10, MAX_TASKS));
	l->depth = PICK(rng, 1, 1, 1, 2, 32);
	l->quick = (u32)draw(rng, 2);
	for (i = 0; i < l->nr; i++) {
		draw_habit(rng, &l->habit[i]);
		/* Mostly many of a kind and few others. */
		if (i && draw(rng, 4)) {
			like = (u32)draw(rng, i);
			l->habit[i] = l->habit[like];
			if (draw(rng, 4))
				l->habit[i].region = (u32)draw(rng, 64);
		}
	}
}

void change_load(u64 *rng, struct load *l)
{
	struct habit drawn, *h;

	switch (draw(rng, 10)) {
	case 0:
		l->depth = PICK(rng, 1, 1, 2, 32);
		return;
	case 1:
		l->quick = !l->quick;
		return;
	case 2:
		if (l->nr > 1) {
			l->nr--;
			l->habit[draw(rng, l->nr + 1)] = l->habit[l->nr];
		}
		return;
	case 3:
	case 4:
		if (l->nr < MAX_TASKS) {
			l->habit[l->nr] = l->habit[draw(rng, l->nr)];
			l->habit[l->nr++].region = (u32)draw(rng, 64);
		}
		return;
	}
	h = &l->habit[draw(rng, l->nr)];
	draw_habit(rng, &drawn);
	switch (draw(rng, 8)) {
	case 0:
		h->place = drawn.place;
		break;
	case 1:
		h->region = drawn.region;
		break;
	case 2:
		h->sectors = drawn.sectors;
		break;
	case 3:
		h->think_us = drawn.think_us;
		break;
	case 4:
		h->jitter_us = drawn.jitter_us;
		break;
	case 5:
		h->lives = drawn.lives;
		break;
	case 6:
		h->work = drawn.work;
		h->pause_us = drawn.pause_us;
		break;
	case 7:
		h->start_us = drawn.start_us;
		break;
	}
	if (!draw(rng, 4))
		*h = drawn;
}

void describe(const struct load *l, u32 whose)
{
	static const char *const places[] = { "sequential", "skipping", "random", "backwards" };
	static const char *const kinds[] = { "reads", "sync writes", "async writes" };
	u32 i;

	printf("    device depth %u%s\n", l->depth, l->quick ? ", buffered" : "");
	for (i = 0; i < l->nr; i++) {
		const struct habit *h = &l->habit[i];

		printf("    %s%2u: %u x %u sectors, %s %s in %u, think %u+%u us",
		       i == whose ? "*" : " ", i, h->slots, h->sectors, places[h->place],
		       kinds[h->kind], h->region, h->think_us, h->jitter_us);
		if (h->lives)
			printf(", exits after %u", h->lives);
		if (h->work)
			printf(", pauses %u us after %u", h->pause_us, h->work);
		if (h->start_us)
			printf(", from %u us", h->start_us);
		putchar('\n');
	}
}
