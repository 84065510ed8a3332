/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fuzzer of policies: fuzz_policies.c says what it does.
 */
#ifndef HW_TESTS_FUZZ_H
#define HW_TESTS_FUZZ_H

#include "core/lib/merge.h"

#define MAX_DEPTH  32u
#define MAX_TASKS  12u
#define MAX_LIVE   96u /* requests in existence at once */
#define MAX_GROUPS 6u

/* A task's memory, and how to find it at the end, when nobody else may point to it any more. */
struct block {
	struct list_head all;
	struct hw_task *task;
};

struct fuzz {
	struct list_head blocks;
	const struct hw_policy *policy;
	struct hw_queue *q;
	struct hw_merger merger;
	struct hw_task *tasks[MAX_TASKS];    /* NULL: not there now */
	struct hw_group *groups[MAX_GROUPS]; /* the same */
	u32 nr_groups;			     /* with those that are ended, but referred to */
	struct hw_request *live[MAX_LIVE];
	u32 nr_live, nr_tasks_made;
	u64 seed, rng, now, step, hash;
	u64 inserted, completed, merged;
	u64 tables_given;
	u64 load; /* insertions in a hundred steps, for a while */
	bool draining;
};

/* Ends the program. */
__attribute__((noreturn, format(printf, 2, 3))) void fuzz_fail(const struct fuzz *f,
							       const char *format, ...);

/* A number below @bound. */
u64 fuzz_draw(struct fuzz *f, u64 bound);
bool fuzz_one_in(struct fuzz *f, u64 n);

/* What the policy has answered, for the comparison of two runs. */
void fuzz_note(struct fuzz *f, u64 x);

void *fuzz_memory(u32 bytes);
void fuzz_free_task(struct fuzz *f, struct hw_task *t);

/* Tasks that have exited, groups that have ended, and a request that has: the policy has handed them over. */
void fuzz_free_exited(struct fuzz *f);
void fuzz_free_ended(struct fuzz *f);
void fuzz_drop(struct fuzz *f, struct hw_request *rq);

/* What must hold after every call. */
void fuzz_check(struct fuzz *f);

/* A tunable, or a table, has another value. */
void fuzz_tune(struct fuzz *f);
void fuzz_give_table(struct fuzz *f);

#endif
