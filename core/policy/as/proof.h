/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is a class's interval worth it, here and now? Ours; the paper leaves that to the calibration.
 *
 * A config is learnt from one load and meets others. Its shorter intervals have lost little in
 * trials, and longer ones a lot: so a shorter interval than antic_expire is in force until it is
 * seen to be worse, and a longer one only once it is seen to be better. Meanwhile the class is
 * waited for as everybody is under `as`.
 *
 * What is seen: of each wait, and of each that only the task's long thinking prevented, what it
 * came to with the class's own interval and what with antic_expire. Both follow from how long the
 * task then thought. A wait that fails costs its time. One that is met is worth what the disk loses
 * in failed waits for each that is met: then the sum falls below 0 exactly if the interval makes
 * the lost time per success, T_F/A_S, worse for the disk as a whole. Few waits say little: a sum
 * counts if it is several times its own standard error.
 */
#ifndef HW_POLICY_AS_PROOF_H
#define HW_POLICY_AS_PROOF_H

#include "core/policy/as/classes.h"

#define WAS_NEVER_US (~0ull)

/* What a class's own interval has come to, beyond antic_expire, and the squares of that. */
struct was_gain {
	s64 us, squares;
	u32 waits;
};

struct was_proof {
	/* All classes together with antic_expire: waits, those met, and the time of the others. */
	s64 waits, met, lost_us;
	s64 worth_us; /* lost_us per met */
	struct was_gain gain[WAS_MAX_CLASSES];
};

/* Whether to wait for a task, which its next read answers. */
struct was_question {
	u32 class; /* 0: none is open */
	bool usual_declines, own_declines;
	bool failed; /* it is counted as one that is never met */
};

/* What @q came to, if the task thought so long, is taken into account, or (@n = -1) out of it. */
void was_weigh(struct was_proof *p, const struct was_question *q, u64 usual_us, u64 own_us,
	       u64 think_us, int n);
/* Is the interval of @class in force? */
bool was_holds(const struct was_proof *p, u32 class, u64 usual_us, u64 own_us);

#endif
