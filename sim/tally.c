// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What I/Os came to, by task and operation, counted as they complete, so that a run needs no more
 * memory the longer it is; and, apart from them, what calls came to, by task: those that read and
 * write through the page cache, and such as fsync.
 *
 * Latencies are kept one by one up to a number that the options give. A longer run counts them in
 * intervals: each ns up to FINE_NS, from there FINE_NS / 2 intervals of equal width between a power
 * of two and the next. An interval stands for its middle, which is off by at most 1 / FINE_NS of
 * the latency. Only intervals that were met take memory, in a hash table.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/internal.h"

#define FINE_NS	      2048u
#define FINE_SHIFT    11
#define INTERVAL_BITS 16
#define FIRST_BITS    12 /* of the hash table's size */

/* @interval with its tally above; count 0: free. */
struct sim_slot {
	u64 what, count;
};

static u64 interval_of(u64 ns)
{
	u32 shift;

	if (ns < FINE_NS)
		return ns;
	shift = 64 - FINE_SHIFT - (u32)__builtin_clzll(ns);
	return shift * (FINE_NS / 2) + (ns >> shift);
}

static u64 middle_of(u64 interval)
{
	u32 shift;

	if (interval < FINE_NS)
		return interval;
	shift = (u32)(interval / (FINE_NS / 2)) - 1;
	return ((interval - shift * (FINE_NS / 2)) << shift) + (1ull << shift) / 2;
}

static struct sim_slot *slot_of(const struct sim_tallies *t, u64 what)
{
	u64 i = what * 0x9e3779b97f4a7c15ull >> (64 - t->slot_bits);

	while (t->slots[i].count && t->slots[i].what != what)
		i = (i + 1) & ((1ull << t->slot_bits) - 1);
	return &t->slots[i];
}

/* At most half of the slots are taken, so that a search is short. */
static void resize(struct hws *s, struct sim_tallies *t, u32 bits)
{
	struct sim_tallies old = *t;
	struct sim_slot *slots = calloc(1ull << bits, sizeof(*slots));
	u64 i;

	if (!slots)
		longjmp(s->no_memory, 1);
	t->slots = slots;
	t->slot_bits = bits;
	for (i = 0; old.slots && i < 1ull << old.slot_bits; i++)
		if (old.slots[i].count)
			*slot_of(t, old.slots[i].what) = old.slots[i];
	free(old.slots);
}

static void count(struct hws *s, struct sim_tallies *t, u32 tally, u64 ns)
{
	u64 what = (u64)tally << INTERVAL_BITS | interval_of(ns);
	struct sim_slot *slot = slot_of(t, what);

	if (!slot->count++) {
		slot->what = what;
		if (++t->slots_used > 1ull << (t->slot_bits - 1))
			resize(s, t, t->slot_bits + 1);
	}
}

/* There are more than are kept one by one. */
static void coarsen(struct hws *s, struct sim_tallies *t)
{
	u64 i;

	resize(s, t, FIRST_BITS);
	for (i = 0; i < t->nr_exact; i++)
		count(s, t, t->exact_tally[i], t->exact_ns[i]);
	free(t->exact_tally);
	free(t->exact_ns);
	t->exact_tally = NULL;
	t->exact_ns = NULL;
	t->nr_exact = t->room_exact = 0;
}

static void keep(struct hws *s, struct sim_tallies *t, u32 tally, u64 ns)
{
	SIM_GROW(s, &t->room_exact, t->nr_exact + 1, SIM_COLUMN(t->exact_tally),
		 SIM_COLUMN(t->exact_ns));
	t->exact_tally[t->nr_exact] = tally;
	t->exact_ns[t->nr_exact++] = ns;
}

/* The tally for a task and operation, of which @number is one more than the number; 0: make it. */
static u32 tally_for(struct hws *s, struct sim_tallies *t, u32 *number, u32 task, u8 op,
		     u64 issue_ns)
{
	if (!*number) {
		SIM_GROW(s, &t->room, t->nr + 1, SIM_COLUMN(t->of));
		t->of[t->nr] =
			(struct hws_tally){ .task = task, .op = op, .first_issue_ns = issue_ns };
		*number = (u32)++t->nr;
	}
	return *number - 1;
}

static void done(struct hws *s, struct sim_tallies *t, u32 tally, u32 sectors, u64 ns)
{
	struct hws_tally *of = &t->of[tally];

	of->ios++;
	of->sectors += sectors;
	of->last_done_ns = s->now;
	of->latency_max_ns = max(of->latency_max_ns, ns);
	of->latency_sum_ns += ns;
	of->latency_sum_high += of->latency_sum_ns < ns;
	if (!t->slots && t->nr_exact == s->opt.exact)
		coarsen(s, t);
	if (t->slots)
		count(s, t, tally, ns);
	else
		keep(s, t, tally, ns);
}

void sim_tally_issue(struct hws *s, struct sim_io *io, const struct hw_bio *what, u64 since_ns)
{
	if (!s->opt.exact)
		return;
	io->tally = tally_for(s, &s->tallies, &s->tasks[io->task].tally[what->op], io->task,
			      what->op, since_ns);
	io->sectors = what->sectors;
	io->issue_ns = since_ns;
}

void sim_tally_complete(struct hws *s, const struct sim_io *io)
{
	if (s->opt.exact)
		done(s, &s->tallies, io->tally, io->sectors, s->now - io->issue_ns);
}

/* A call that is no I/O has returned. */
static void returned(struct hws *s, struct sim_tallies *t, u32 *number, u32 task, u8 op,
		     u64 since_ns)
{
	if (s->opt.exact)
		done(s, t, tally_for(s, t, number, task, op, since_ns), 0, s->now - since_ns);
}

void sim_tally_sync(struct hws *s, u32 task, u64 since_ns)
{
	returned(s, &s->syncs, &s->tasks[task].sync_tally, task, HWS_FLUSH, since_ns);
}

void sim_tally_call(struct hws *s, u32 task, u8 op, u64 since_ns)
{
	returned(s, &s->calls, &s->tasks[task].call_tally[op], task, op, since_ns);
}

u64 sim_tallied(const struct hws *s)
{
	const struct sim_tallies *t = &s->tallies;
	u64 i, ios = 0;

	for (i = 0; i < t->nr; i++)
		ios += t->of[i].ios;
	return ios;
}

static void free_columns(struct sim_tallies *t)
{
	free(t->of);
	free(t->exact_tally);
	free(t->exact_ns);
	free(t->slots);
}

void sim_tallies_free(struct hws *s)
{
	free_columns(&s->tallies);
	free_columns(&s->syncs);
	free_columns(&s->calls);
}

static u64 tallies(const struct sim_tallies *t, const struct hws_tally **out)
{
	if (out)
		*out = t ? t->of : NULL;
	return t ? t->nr : 0;
}

uint64_t hws_tallies(const struct hws *s, const struct hws_tally **out)
{
	return tallies(s ? &s->tallies : NULL, out);
}

uint64_t hws_sync_tallies(const struct hws *s, const struct hws_tally **out)
{
	return tallies(s ? &s->syncs : NULL, out);
}

uint64_t hws_call_tallies(const struct hws *s, const struct hws_tally **out)
{
	return tallies(s ? &s->calls : NULL, out);
}

static u64 latencies(const struct sim_tallies *t, struct hws_latencies *out)
{
	u64 room = out->tally && out->ns && out->count ? out->room : 0, i, n = 0;

	out->error_denominator = t->slots ? FINE_NS : 0;
	if (!t->slots) {
		for (; n < t->nr_exact && n < room; n++) {
			out->tally[n] = t->exact_tally[n];
			out->ns[n] = t->exact_ns[n];
			out->count[n] = 1;
		}
		return t->nr_exact;
	}
	for (i = 0; i < 1ull << t->slot_bits && n < room; i++) {
		const struct sim_slot *slot = &t->slots[i];
		u32 tally = (u32)(slot->what >> INTERVAL_BITS);

		if (!slot->count)
			continue;
		out->tally[n] = tally;
		/* The middle of the last one may be longer than the longest. */
		out->ns[n] = min(middle_of(slot->what & ((1u << INTERVAL_BITS) - 1)),
				 t->of[tally].latency_max_ns);
		out->count[n++] = slot->count;
	}
	return t->slots_used;
}

uint64_t hws_latencies(const struct hws *s, struct hws_latencies *out)
{
	return s && out ? latencies(&s->tallies, out) : 0;
}

uint64_t hws_sync_latencies(const struct hws *s, struct hws_latencies *out)
{
	return s && out ? latencies(&s->syncs, out) : 0;
}

uint64_t hws_call_latencies(const struct hws *s, struct hws_latencies *out)
{
	return s && out ? latencies(&s->calls, out) : 0;
}
