// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Who may have a request, and who waits for one, if only so many may exist at once.
 *
 * Requests are counted, and whoever finds none waits in one line; or, where the host is blk-mq
 * (pull_ahead), they are tags (tags.c). Then each task waits for itself, with the limit that it was
 * told at first, and what else it issues comes behind. A tag that comes back wakes one task. The
 * task whose I/O it was has been woken before, and may have the tag again first; who is woken in
 * vain goes to the end of the line, and nobody is woken instead.
 *
 * A process whose I/O waits here is in the kernel, and goes no further.
 */
#include "sim/internal.h"

/* How many requests may be in use if one like this is to be allocated? 0: any number. */
static u32 limit_of(struct hws *s, const struct hw_bio *bio)
{
	u32 all = s->opt.nr_requests * (s->tagged ? 1 : s->queues), own = 0;

	if (all)
		own = hw_limit_depth(s->q, bio);
	return own ? min(own, all) : all;
}

static bool may_count(struct hws *s, const struct sim_piece *p)
{
	u32 limit = limit_of(s, &p->bio);

	return !limit || s->in_use < limit;
}

void sim_waited(struct hws *s, u32 task)
{
	struct sim_task *t = &s->tasks[task];

	if (--t->nr_waiting)
		return;
	if (t->exiting)
		sim_task_exit(s, task);
	if (t->stalled) {
		t->stalled = false;
		t->source->ops->wake(s, t->source);
	}
}

bool sim_task_stalls(struct hws *s, u32 task)
{
	struct sim_task *t = &s->tasks[task];

	if (t->nr_waiting)
		t->stalled = true;
	return t->nr_waiting;
}

static void feed_counted(struct hws *s)
{
	while (s->starved && may_count(s, s->starved)) {
		struct sim_piece *p = s->starved;
		u32 task;

		s->starved = p->next;
		if (!s->starved)
			s->starved_tail = &s->starved;
		p->next = NULL;
		task = p->io->task;
		if (!sim_merge_piece(s, p))
			sim_insert_piece(s, p, -1);
		sim_waited(s, task);
	}
}

static u32 queue_of(const struct hws *s, const struct sim_piece *p)
{
	return sim_queue_of(s, p->bio.cpu);
}

/* A task stands in line at the queue of what it issued first. */
static void wait_for_tag(struct hws *s, struct sim_task *t)
{
	struct sim_tag_queue *q =
		&s->tagged[t->waiting ? queue_of(s, t->waiting) : sim_queue_of(s, t->core)];

	t->next_waiter = NULL;
	if (q->waiters)
		q->last_waiter->next_waiter = t;
	else
		q->waiters = t;
	q->last_waiter = t;
	s->waiting_tasks++;
}

static bool insert_with_tag(struct hws *s, struct sim_piece *p)
{
	u32 queue = queue_of(s, p);
	int tag = sim_tag_get(s->tagged[queue].tags, p->limit);

	if (tag < 0)
		return false;
	p->next = NULL;
	if (!sim_insert_piece(s, p, tag)) {
		sim_tag_put(s->tagged[queue].tags, tag);
		sim_wake_waiter(s, queue, p->bio.sectors);
	}
	return true;
}

void sim_request_piece(struct hws *s, struct sim_piece *p)
{
	struct sim_task *t = &s->tasks[p->io->task];

	if (!s->tagged) {
		if (!s->starved && may_count(s, p)) {
			sim_insert_piece(s, p, -1);
			return;
		}
		t->nr_waiting++;
		*s->starved_tail = p;
		s->starved_tail = &p->next;
		return;
	}
	if (t->waiting) {
		t->nr_waiting++;
		*t->waiting_tail = p;
		t->waiting_tail = &p->next;
		return;
	}
	p->limit = limit_of(s, &p->bio);
	if (insert_with_tag(s, p))
		return;
	t->nr_waiting++;
	t->waiting = p;
	t->waiting_tail = &p->next;
	if (!t->flush)
		wait_for_tag(s, t);
}

/* Is there another piece behind that cannot join a request? */
static bool next_needs_tag(struct hws *s, struct sim_task *t)
{
	struct sim_piece *p, *behind;

	while ((p = t->waiting)) {
		behind = p->next;
		p->next = NULL;
		t->waiting = behind;
		if (sim_merge_piece(s, p)) {
			sim_waited(s, (u32)(t - s->tasks));
			continue;
		}
		p->next = behind;
		p->limit = limit_of(s, &p->bio);
		t->waiting = p;
		if (!behind)
			t->waiting_tail = &p->next;
		return true;
	}
	return false;
}

void sim_request_freed(struct hws *s, u32 core, u32 sectors)
{
	if (s->tagged)
		sim_wake_waiter(s, sim_queue_of(s, core), sectors);
	else
		feed_counted(s);
}

static bool flush_has_tag(struct hws *s, struct sim_flush_wait *w)
{
	u32 queue = sim_queue_of(s, s->tasks[w->task].core);

	w->tag = sim_tag_get(s->tagged[queue].tags, s->opt.nr_requests);
	return w->tag >= 0;
}

void sim_flush(struct hws *s, struct sim_flush_wait *w)
{
	struct sim_task *t = &s->tasks[w->task];
	struct sim_flush_wait **at;

	w->waits = true;
	w->tag = -1;
	if (!s->tagged || !(s->policy->flags & HW_POLICY_DIRECT) || flush_has_tag(s, w)) {
		sim_flush_ready(s, w);
		return;
	}
	w->next = NULL;
	for (at = &t->flush; *at; at = &(*at)->next)
		;
	*at = w;
	if (!t->waiting && w == t->flush)
		wait_for_tag(s, t);
}

/* The task looks for tags, for its requests and then for its flushes; false: it waits on. */
static bool feed_task(struct hws *s, struct sim_task *t)
{
	struct sim_flush_wait *w;

	while (t->waiting) {
		struct sim_piece *p = t->waiting, *behind = p->next;

		if (!insert_with_tag(s, p))
			return false;
		t->waiting = behind;
		sim_waited(s, (u32)(t - s->tasks));
		if (!next_needs_tag(s, t))
			break;
	}
	while ((w = t->flush)) {
		if (!flush_has_tag(s, w))
			return false;
		t->flush = w->next;
		sim_flush_ready(s, w);
	}
	return true;
}

static void feed_queue(struct hws *s, struct sim_tag_queue *q)
{
	u32 n = q->woken;

	q->woken = 0;
	while (n-- && q->waiters) {
		struct sim_task *t = q->waiters;

		q->waiters = t->next_waiter;
		s->waiting_tasks--;
		if (!feed_task(s, t))
			wait_for_tag(s, t);
	}
}

void sim_feed_woken(struct hws *s)
{
	u32 i;

	s->feed_ns = HW_NEVER;
	for (i = 0; i < s->queues; i++)
		feed_queue(s, &s->tagged[i]);
}
