// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The fuzzer's memory, dice and complaints, and what must hold after every call.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/c/fuzz.h"

void fuzz_fail(const struct fuzz *f, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s, seed %llu, step %llu: ", f->policy->name, (unsigned long long)f->seed,
		(unsigned long long)f->step);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

u64 fuzz_draw(struct fuzz *f, u64 bound)
{
	f->rng ^= f->rng << 13;
	f->rng ^= f->rng >> 7;
	f->rng ^= f->rng << 17;
	return (f->rng * 0x2545f4914f6cdd1dull >> 11) % bound;
}

bool fuzz_one_in(struct fuzz *f, u64 n)
{
	return fuzz_draw(f, n) == 0;
}

/* What the policy has answered, for the comparison of two runs. */
void fuzz_note(struct fuzz *f, u64 x)
{
	f->hash = (f->hash ^ x) * 0x100000001b3ull;
}

void *fuzz_memory(u32 bytes)
{
	void *p = calloc(1, bytes);

	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

void fuzz_free_task(struct fuzz *f, struct hw_task *t)
{
	struct block *b;

	list_for_each_entry(b, &f->blocks, all)
		if (b->task == t) {
			list_del(&b->all);
			free(b);
			free(t);
			return;
		}
	fuzz_fail(f, "a task is handed over twice");
}

void fuzz_free_exited(struct fuzz *f)
{
	struct hw_task *t, *next;

	list_for_each_entry_safe(t, next, &f->q->reap, reap)
		fuzz_free_task(f, t);
	INIT_LIST_HEAD(&f->q->reap);
}

void fuzz_free_ended(struct fuzz *f)
{
	struct hw_group *g, *next;

	list_for_each_entry_safe(g, next, &f->q->reap_groups, reap) {
		if (g->refs)
			fuzz_fail(f, "a group is handed over that is referred to");
		f->nr_groups--;
		free(g);
	}
	INIT_LIST_HEAD(&f->q->reap_groups);
}

void fuzz_drop(struct fuzz *f, struct hw_request *rq)
{
	u32 i;

	for (i = 0; i < f->nr_live && f->live[i] != rq; i++)
		;
	if (i == f->nr_live)
		fuzz_fail(f, "invariant 1: a request ends that is not there");
	f->live[i] = f->live[--f->nr_live];
	free(rq);
}

/* What must hold after every call. */
void fuzz_check(struct fuzz *f)
{
	const struct hw_queue *q = f->q;
	u32 queued = 0, in_flight = 0, i;
	u64 ended = 0;

	for (i = 0; i < f->nr_live; i++) {
		queued += f->live[i]->state == HW_QUEUED;
		in_flight += f->live[i]->state == HW_DISPATCHED;
	}
	if (queued != q->nr_queued || in_flight != q->nr_in_flight ||
	    queued + in_flight != f->nr_live)
		fuzz_fail(f, "invariant 1: %u + %u of %u requests", queued, in_flight, f->nr_live);
	for (i = 0; i < ARRAY_SIZE(q->wait.count); i++)
		ended += q->wait.count[i];
	if (q->wait.begun != ended + q->wait.active)
		fuzz_fail(f, "invariant 3: of %llu waits, %llu ended",
			  (unsigned long long)q->wait.begun, (unsigned long long)ended);
	if (q->wait.active && !queued)
		fuzz_fail(f, "invariant 3: a wait with nothing queued");
	if (q->policy->has_work && hw_has_work(q) && (!queued || (q->wait.active && !q->force)))
		fuzz_fail(f, "has_work() with nothing to do");
}
