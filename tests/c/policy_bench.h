/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A policy on the bench: the test is the host, names every request by a letter and says when what
 * happens.
 */
#ifndef HW_TEST_POLICY_BENCH_H
#define HW_TEST_POLICY_BENCH_H

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/elevator.h"

#define MS(n) ((u64)(n) * HW_NSEC_PER_MSEC)

struct bench {
	struct hw_queue *q;
	struct hw_task *task;
	struct hw_request *named[128]; /* by letter */
};

static inline struct bench bench_new(const char *policy, u32 nr_requests)
{
	const struct hw_policy *p = hw_policy_find(policy);
	struct bench b = { 0 };

	b.q = calloc(1, p->queue_size);
	b.task = calloc(1, p->task_size);
	hw_queue_prepare(b.q, p);
	b.q->dev =
		(struct hw_device){ .sectors = 1u << 30, .depth = 64, .nr_requests = nr_requests };
	return b;
}

static inline void bench_set(struct bench *b, const char *tunable, s64 value)
{
	CHECK_EQ(hw_tunable_set(b->q, tunable, value), 0);
}

static inline void bench_start(struct bench *b)
{
	CHECK_EQ(hw_start(b->q, 0), 0);
	hw_task_start(b->q, b->task, 0);
}

/* Any request but @name, which the test reads by its letter. */
static inline struct hw_request *bench_insert_flags(struct bench *b, char name, u8 op, u64 sector,
						    u16 ioprio, u8 flags, u16 cpu, u64 now)
{
	struct hw_request *rq = calloc(1, b->q->policy->request_size);

	rq->op = op;
	rq->sector = sector;
	rq->sectors = 8;
	rq->ioprio = ioprio;
	rq->flags = flags;
	rq->cpu = cpu;
	rq->task = b->task;
	b->named[(int)name] = rq;
	hw_insert(b->q, rq, now);
	return rq;
}

static inline struct hw_request *bench_insert(struct bench *b, char name, u8 op, u64 sector,
					      u64 now)
{
	return bench_insert_flags(b, name, op, sector, 0, op == HW_READ ? HW_RQ_SYNC : 0, 0, now);
}

/* The letter of the policy's decision, or '-' for none. */
static inline char bench_dispatch(struct bench *b, u64 now)
{
	struct hw_request *rq = hw_dispatch(b->q, now);
	int i;

	for (i = 0; rq && i < 128; i++)
		if (b->named[i] == rq)
			return (char)i;
	return rq ? '?' : '-';
}

static inline void bench_complete(struct bench *b, char name, u64 now)
{
	hw_complete(b->q, b->named[(int)name], now);
	free(b->named[(int)name]);
	b->named[(int)name] = NULL;
}

/*
 * Dispatches and completes one at a time until nothing is left; the letters, in order. Static
 * buffer.
 */
static inline const char *bench_drain(struct bench *b, u64 now)
{
	static char order[129];
	int n = 0;
	char c;

	while (n < 128 && (c = bench_dispatch(b, now)) != '-') {
		order[n++] = c;
		bench_complete(b, c, now);
	}
	order[n] = 0;
	return order;
}

static inline s64 bench_stat(const struct bench *b, const char *name)
{
	s64 value = -1;

	CHECK_EQ(hw_stat_get(b->q, name, &value), 0);
	return value;
}

static inline void bench_free(struct bench *b)
{
	int i;

	for (i = 0; i < 128; i++)
		free(b->named[i]);
	free(b->task);
	free(b->q);
}

#define CHECK_ORDER(got, want)                                                                    \
	do {                                                                                      \
		const char *got_ = (got);                                                         \
		if (strcmp(got_, (want))) {                                                       \
			printf("%s:%d: order is %s, not %s\n", __FILE__, __LINE__, got_, (want)); \
			check_failures++;                                                         \
		}                                                                                 \
	} while (0)

#endif
