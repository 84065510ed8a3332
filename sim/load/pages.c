// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which pages of the drive are in memory, for those who read through the page cache: what they or
 * others have read, or written, and what is on its way. The machine has 1 GB, as writeback.c has it;
 * what came longest ago makes room.
 */
#include "sim/load/internal.h"

#define MOST  ((900ull << 20) / SIM_PAGE_BYTES)
#define PIECE ((1ull << 20) / SIM_PAGE_BYTES) /* extents grow no larger: each makes room at once */

void sim_pages_init(struct sim_pages *p)
{
	INIT_LIST_HEAD(&p->by_age);
}

static void forget(struct sim_pages *p, struct sim_extent *e)
{
	p->here_pages -= e->end - e->first;
	list_del(&e->age);
	sim_extent_remove(&p->here, e);
}

static void cut(struct hws *s, struct sim_pages *p, u64 first, u64 end)
{
	struct sim_extent *e = sim_extent_at_or_after(&p->here, first), *next, *rest;

	for (; e && e->first < end; e = next) {
		next = sim_extent_next(e);
		if (e->end > end) {
			rest = sim_extent_insert(s, &p->here, end, e->end);
			list_add(&rest->age, &e->age);
			p->here_pages += e->end - end;
		}
		if (e->first >= first) {
			forget(p, e);
		} else {
			p->here_pages -= e->end - first;
			e->end = first;
		}
	}
}

static void unmark(struct sim_pages *p, u64 first, u64 end)
{
	struct sim_extent *e;

	while ((e = sim_extent_at_or_after(&p->marks, first)) && e->first < end)
		sim_extent_remove(&p->marks, e);
}

/* What is coming still comes. */
void sim_pages_drop(struct hws *s, struct sim_pages *p, u64 first, u64 end)
{
	struct sim_extent *e = sim_extent_at_or_after(&p->here, first);

	for (; e && e->first < end; e = sim_extent_next(e))
		unmark(p, max(first, e->first), min(end, e->end));
	cut(s, p, first, end);
}

void sim_pages_add(struct hws *s, struct sim_pages *p, u64 first, u64 end)
{
	struct sim_extent *e;

	cut(s, p, first, end);
	p->here_pages += end - first;
	e = list_empty(&p->by_age) ? NULL : list_last_entry(&p->by_age, struct sim_extent, age);
	if (e && e->end == first && end - e->first <= PIECE) {
		e->end = end;
	} else {
		e = sim_extent_insert(s, &p->here, first, end);
		list_add_tail(&e->age, &p->by_age);
	}
	while (p->here_pages > MOST) {
		e = list_first_entry(&p->by_age, struct sim_extent, age);
		unmark(p, e->first, e->end);
		forget(p, e);
	}
}

static struct sim_extent *holds(const struct sim_extents *x, u64 page)
{
	struct sim_extent *e = sim_extent_at_or_after(x, page);

	return e && e->first <= page ? e : NULL;
}

u64 sim_pages_here(const struct sim_pages *p, u64 page)
{
	struct sim_extent *e;

	while ((e = holds(&p->here, page)))
		page = e->end;
	return page;
}

struct sim_transfer *sim_pages_coming(const struct sim_pages *p, u64 page)
{
	struct sim_extent *e = holds(&p->coming, page);

	return e ? e->of : NULL;
}

u64 sim_pages_missing(const struct sim_pages *p, u64 page)
{
	struct sim_extent *e;

	while ((e = holds(&p->here, page)) || (e = holds(&p->coming, page)))
		page = e->end;
	return page;
}

u64 sim_pages_present(const struct sim_pages *p, u64 page)
{
	const struct sim_extent *here = sim_extent_at_or_after(&p->here, page);
	const struct sim_extent *coming = sim_extent_at_or_after(&p->coming, page);
	u64 next = min(here ? here->first : U64_MAX, coming ? coming->first : U64_MAX);

	return max(next, page);
}

void sim_pages_mark(struct hws *s, struct sim_pages *p, u64 page)
{
	unmark(p, page, page + 1);
	sim_extent_insert(s, &p->marks, page, page + 1);
}

bool sim_pages_marked(const struct sim_pages *p, u64 first, u64 end, u64 *page)
{
	const struct sim_extent *e = sim_extent_at_or_after(&p->marks, first);

	if (!e || e->first >= end)
		return false;
	*page = e->first;
	return true;
}

void sim_pages_unmark(struct sim_pages *p, u64 page)
{
	unmark(p, page, page + 1);
}

struct sim_transfer *sim_pages_ask(struct hws *s, struct sim_pages *p, u64 first, u64 end)
{
	struct sim_transfer *t = p->free;

	if (t)
		p->free = t->next;
	else
		t = sim_alloc(s, sizeof(*t));
	*t = (struct sim_transfer){ .first = first, .pages = end - first };
	sim_extent_insert(s, &p->coming, first, end)->of = t;
	return t;
}

void sim_pages_come(struct hws *s, struct sim_pages *p, struct sim_transfer *t)
{
	struct sim_job *j, *next;

	sim_extent_remove(&p->coming, holds(&p->coming, t->first));
	sim_pages_add(s, p, t->first, t->first + t->pages);
	for (j = t->waiters; j; j = next) {
		next = j->blocked_next;
		j->reading = false;
		sim_job_wake(s, j);
	}
	t->next = p->free;
	p->free = t;
}
