// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Searches for the load under which a request waits longest, for every policy.
 *
 *     starvation [POLICY|all [SECONDS [LOADS [SEED [DEPTH [commits]]]]]]
 *
 * A load is up to 30 tasks in a closed loop: readers and writers, sequential, random or near each
 * other, that think, pause, exit and are followed by others, on a disk with a seek curve. Each is
 * played for SECONDS of simulated time. LOADS are tried: drawn afresh, or the worst so far with a
 * change; the same SEED tries the same ones. The longest wait counts from insertion to completion,
 * or to the end for what is still waiting; `commits` looks for the longest commit instead. Nothing
 * merges.
 *
 * Without arguments it is a test: every policy against the longest wait that its page promises.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "starvation.h"

enum { QUICK_SECONDS = 120, QUICK_LOADS = 24 };

/*
 * What docs/schedulers/ promises: no wait as long as this for such loads, on devices of `depth` (0:
 * of any). Who is not here has no bound, and starves somebody in tests/test_starvation.py.
 */
static const struct {
	const char *policy;
	u32 depth;
	u64 seconds;
} promised[] = {
	{ "noop", 0, 5 },   { "none", 0, 5 }, { "deadline", 0, 30 }, { "mq-deadline", 0, 30 },
	{ "kyber", 0, 15 }, { "cfq", 0, 30 }, { "as-seek", 0, 5 },   { "as", 1, 90 },
	{ "as-95", 1, 90 }, { "cas", 1, 90 }, { "maitre", 0, 120 },
};

/* Bounds of commits. */
static const struct {
	const char *policy;
	u64 seconds;
} promised_commits[] = { { "maitre", 20 } };

/* Leave out whoever is not needed for nine tenths of the wait. */
static u64 reduce(const struct hw_policy *policy, struct load *l, u64 until_ns, enum sought sought,
		  u32 *whose, u64 longest)
{
	struct load less;
	u64 waited, served;
	u32 i = 0, who;

	while (i < l->nr && l->nr > 1) {
		less = *l;
		less.nr--;
		memmove(less.habit + i, less.habit + i + 1, (less.nr - i) * sizeof(less.habit[0]));
		waited = play(policy, &less, until_ns, sought, &who, &served);
		if (waited * 10 < longest * 9) {
			i++;
			continue;
		}
		*l = less;
		*whose = who;
	}
	return play(policy, l, until_ns, sought, whose, &served);
}

static u64 search(const struct hw_policy *policy, u64 seconds, u64 loads, u64 seed, u32 depth,
		  enum sought sought, bool show)
{
	struct load best = { 0 }, l;
	u64 rng = seed, longest = 0, i, waited, served, all = 0;
	u32 whose, best_whose = 0;

	for (i = 0; i < loads; i++) {
		if (i < loads / 3 || !draw(&rng, 4)) {
			draw_load(&rng, &l);
		} else {
			l = best;
			change_load(&rng, &l);
			while (!draw(&rng, 3))
				change_load(&rng, &l);
		}
		if (depth)
			l.depth = depth;
		waited = play(policy, &l, seconds * SECOND, sought, &whose, &served);
		all += served;
		if (waited <= longest)
			continue;
		longest = waited;
		best = l;
		best_whose = whose;
	}
	if (show) {
		printf("%s: %.1f s in %llu loads of %llu s, %llu requests\n", policy->name,
		       (double)longest / 1e9, (unsigned long long)loads,
		       (unsigned long long)seconds, (unsigned long long)all);
		waited = reduce(policy, &best, seconds * SECOND, sought, &best_whose, longest);
		printf("  %.1f s of it with these alone:\n", (double)waited / 1e9);
		describe(&best, best_whose);
		fflush(stdout);
	}
	return longest;
}

/* Is a promise broken? Then that is shown. */
static bool broken(const struct hw_policy *policy, u64 seconds, u32 depth, enum sought sought)
{
	u64 longest = search(policy, QUICK_SECONDS, QUICK_LOADS, 1, depth, sought, false);

	if (longest < seconds * SECOND)
		return false;
	search(policy, QUICK_SECONDS, QUICK_LOADS, 1, depth, sought, true);
	printf("  that is more than %llu s\n", (unsigned long long)seconds);
	return true;
}

static int test(void)
{
	int failed = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(promised); i++)
		failed |= broken(hw_policy_find(promised[i].policy), promised[i].seconds,
				 promised[i].depth, REQUEST);
	for (i = 0; i < ARRAY_SIZE(promised_commits); i++)
		failed |= broken(hw_policy_find(promised_commits[i].policy),
				 promised_commits[i].seconds, 0, COMMIT);
	return failed;
}

int main(int argc, char **argv)
{
	u64 seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : QUICK_SECONDS;
	u64 loads = argc > 3 ? strtoull(argv[3], NULL, 10) : QUICK_LOADS;
	u64 seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
	u32 depth = argc > 5 ? (u32)strtoul(argv[5], NULL, 10) : 0;
	enum sought sought = argc > 6 && !strcmp(argv[6], "commits") ? COMMIT : REQUEST;
	const struct hw_policy *const *p;
	bool found = false;

	if (argc <= 1)
		return test();
	for (p = hw_policies; *p; p++)
		if (!strcmp(argv[1], "all") || !strcmp(argv[1], (*p)->name)) {
			search(*p, seconds, loads, seed, depth, sought, true);
			found = true;
		}
	if (!found)
		fprintf(stderr, "starvation: no policy %s\n", argv[1]);
	return found ? 0 : 2;
}
