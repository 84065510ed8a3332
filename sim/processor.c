// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processor time. Without one_processor and without a host each process has a processor of its own,
 * and only its time passes.
 *
 * With one_processor there is one for all, first come, first served: a process keeps it until it has
 * to wait for something, as one of the real-time class does. The kernel's own work (interrupts, the
 * worker that runs the queue) does not wait for a processor; what runs meanwhile takes so much
 * longer. Processes that wait for a tag are woken behind those whose I/O is done. An I/O lasts from
 * when its process calls for it until that has the processor again, and looks.
 *
 * A host (host.c) has several of these, and a process that others of its core wait behind keeps it
 * for a slice of time at most.
 *
 * Of a trace it is not known who has computed between two I/Os, and who has slept. Short think times
 * are taken for processor time, which was there when they were recorded: they are not put in line
 * again, but who waits for a tag comes behind them.
 */
#include "core/lib/mix.h"
#include "sim/internal.h"

#define COMPUTING_NS 500000 /* who thinks for longer sleeps */
#define SLICE_NS     (3 * HW_NSEC_PER_MSEC)

/* The one that a turn is for; NULL: it has one of its own. */
static struct sim_processor *processor_of(struct hws *s, const struct sim_turn *t)
{
	if (s->cores)
		return &s->cores[t->core];
	return s->opt.one_processor ? &s->processor : NULL;
}

u64 sim_turnaround(const struct hws *s, u32 sectors)
{
	return s->opt.turnaround_ns + s->opt.turnaround_page_ns * SIM_PAGES(sectors);
}

static void enqueue(struct sim_processor *p, struct sim_turn *t)
{
	if (t->queued)
		return;
	t->queued = true;
	t->next = NULL;
	if (p->first)
		p->last->next = t;
	else
		p->first = t;
	p->last = t;
}

static void run(struct hws *s, struct sim_processor *p, struct sim_turn *t)
{
	if (p->running != t)
		p->since_ns = s->now;
	p->running = t;
	p->stolen_ns = 0;
	p->busy_ns += t->need_ns;
	sim_sleep(s, t->source, sim_after(max(s->now, p->kernel_until_ns), t->need_ns));
}

static void next(struct hws *s, struct sim_processor *p)
{
	struct sim_turn *next;

	p->running = NULL;
	while (!p->running && (next = p->first)) {
		p->first = next->next;
		next->queued = false;
		if (next == &p->feed) {
			s->feed_ns = s->now;
		} else if (next->computing) {
			if (s->opt.one_processor)
				sim_steal(s, p, s->opt.switch_ns);
			run(s, p, next);
		}
	}
}

void sim_compute(struct hws *s, struct sim_turn *t, u64 need_ns)
{
	struct sim_processor *p = processor_of(s, t);

	if (!p) {
		sim_sleep(s, t->source, sim_after(s->now, need_ns));
		return;
	}
	t->computing = true;
	t->need_ns = need_ns;
	if (!p->running || p->running == t) {
		run(s, p, t);
		return;
	}
	/* Nothing but its turn goes on with it. */
	t->source->expected = sim_order(s);
	enqueue(p, t);
}

void sim_compute_in_turn(struct hws *s, struct sim_turn *t, u64 need_ns)
{
	struct sim_processor *p = processor_of(s, t);

	if (s->cores && p->running == t && p->first && s->now - p->since_ns >= SLICE_NS)
		next(s, p);
	sim_compute(s, t, need_ns);
}

bool sim_computed(struct hws *s, struct sim_turn *t)
{
	struct sim_processor *p = processor_of(s, t);
	u64 stolen_ns = p ? p->stolen_ns : 0;

	if (t->computing && stolen_ns && p->running == t) {
		p->stolen_ns = 0;
		sim_sleep(s, t->source, sim_after(s->now, stolen_ns));
		return false;
	}
	t->computing = false;
	return true;
}

bool sim_runs(struct hws *s, const struct sim_turn *t)
{
	struct sim_processor *p = processor_of(s, t);

	return !p || p->running == t;
}

void sim_yield(struct hws *s, struct sim_turn *t)
{
	struct sim_processor *p = processor_of(s, t);

	if (p && p->running == t && !t->computing)
		next(s, p);
}

void sim_think(struct hws *s, u64 think_ns)
{
	struct sim_processor *p = &s->processor;

	if (s->opt.one_processor && think_ns <= COMPUTING_NS && hw_mix(++p->thought) & 1)
		p->busy_until_ns = max(p->busy_until_ns, sim_after(s->now, think_ns));
}

void sim_steal(struct hws *s, struct sim_processor *p, u64 takes_ns)
{
	p->kernel_until_ns = sim_after(max(p->kernel_until_ns, s->now), takes_ns);
	p->busy_ns += takes_ns;
	if (p->running)
		p->stolen_ns += takes_ns;
}

void sim_interrupt(struct hws *s, u64 takes_ns)
{
	sim_steal(s, &s->processor, takes_ns);
}

void sim_wake_waiter(struct hws *s, u32 queue, u32 sectors)
{
	struct sim_tag_queue *q = &s->tagged[queue];
	u64 takes_ns;

	if (!q->waiters)
		return;
	q->woken++;
	if (s->opt.one_processor) {
		s->processor.feed_wanted = true;
		return;
	}
	takes_ns = sim_turnaround(s, sectors);
	if (takes_ns && s->opt.race_seed && hw_mix(((u64)s->opt.race_seed << 32) + ++s->races) & 1)
		takes_ns--;
	s->feed_ns = min(s->feed_ns, sim_after(s->now, takes_ns));
}

void sim_waiter_woken(struct hws *s)
{
	struct sim_processor *p = &s->processor;

	if (!p->feed_wanted)
		return;
	p->feed_wanted = false;
	if (p->running)
		enqueue(p, &p->feed);
	else
		s->feed_ns = max(max(s->now, p->kernel_until_ns), p->busy_until_ns);
}
