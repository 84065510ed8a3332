// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is due, and when: by time, and at one time by order. What sources have scheduled is a binary
 * heap. Beside it stands the next one of a list that a source has, in order already, which takes no
 * place in the heap.
 */
#include "sim/internal.h"

static bool sooner(const struct sim_due *a, const struct sim_due *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

u64 sim_order(struct hws *s)
{
	return s->order++;
}

void sim_schedule(struct hws *s, u64 time_ns, u64 order, struct sim_source *source)
{
	struct sim_due due = { .time_ns = time_ns, .order = order, .source = source };
	u64 i = s->nr_heap++;

	SIM_GROW(s, &s->room_heap, s->nr_heap, SIM_COLUMN(s->heap));
	while (i && sooner(&due, &s->heap[(i - 1) / 2])) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = due;
}

void sim_sleep(struct hws *s, struct sim_source *source, u64 until_ns)
{
	source->expected = sim_order(s);
	sim_schedule(s, until_ns, source->expected, source);
}

static struct sim_due heap_pop(struct hws *s)
{
	struct sim_due top = s->heap[0], last = s->heap[--s->nr_heap];
	u64 i = 0, child;

	while ((child = 2 * i + 1) < s->nr_heap) {
		if (child + 1 < s->nr_heap && sooner(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!sooner(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return top;
}

void sim_look_ahead(struct hws *s, struct sim_source *source)
{
	s->listed.source = source;
	if (!source->ops->next(s, source, &s->listed.time_ns, &s->listed.order))
		s->listed.time_ns = HW_NEVER;
}

u64 sim_due_ns(const struct hws *s)
{
	return s->nr_heap ? min(s->listed.time_ns, s->heap[0].time_ns) : s->listed.time_ns;
}

struct sim_due sim_due_take(struct hws *s)
{
	struct sim_due due = s->listed;

	if (s->nr_heap && sooner(&s->heap[0], &due))
		return heap_pop(s);
	sim_look_ahead(s, due.source);
	return due;
}
