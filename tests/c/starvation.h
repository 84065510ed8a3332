/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * starvation: a load, which starvation_load.c draws, changes and describes, and starvation_play.c
 * plays against a policy.
 */
#ifndef HW_TESTS_STARVATION_H
#define HW_TESTS_STARVATION_H

#include "core/elevator.h"

#define MAX_TASKS 30u
#define MAX_SLOTS 4u /* requests that a task keeps going */
#define SECOND	  ((u64)HW_NSEC_PER_SEC)

enum place { SEQUENTIAL, SKIPPING, RANDOM, BACKWARDS, PLACES };
enum kind { READS, SYNC_WRITES, ASYNC_WRITES, KINDS };

/* What a task does; times in us. */
struct habit {
	u32 place, kind;
	u32 region; /* where: a 64th of the disk */
	u32 sectors, slots;
	u32 think_us, jitter_us;
	u32 lives;	    /* requests until it exits and another one goes on; 0: for ever */
	u32 work, pause_us; /* requests between pauses; 0: no pauses */
	u32 start_us;
};

struct load {
	u32 nr;
	u32 depth; /* of the device */
	u32 quick; /* sequential requests from the drive's buffer */
	struct habit habit[MAX_TASKS];
};

/* A number below @n. The same @rng draws the same ones. */
u64 draw(u64 *rng, u64 n);
void draw_load(u64 *rng, struct load *l);
void change_load(u64 *rng, struct load *l);
/* Print it; the task @whose has a star. */
void describe(const struct load *l, u32 whose);

/* What is looked for: the longest wait of a request, or of a commit. */
enum sought { REQUEST, COMMIT };

/*
 * The longest wait, ns; *@whose had it, and *@served requests were completed. A commit is a
 * synchronous write, and is done when that is and all write-back that was queued before it.
 */
u64 play(const struct hw_policy *policy, const struct load *l, u64 until_ns, enum sought sought,
	 u32 *whose, u64 *served);

#endif
