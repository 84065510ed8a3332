// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes through a page cache, as far as a disk sees them.
 *
 * Writes dirty pages and go on. One flusher (a task of its own, its requests not synchronous)
 * writes them back in order of place, going round, in requests as large as the device takes, with
 * FLUSH_DEPTH in flight: while more than DIRTY_BACKGROUND is dirty, when a page has been dirty
 * for EXPIRE_NS (looked at every PERIOD_NS), and everything once all jobs have ended, as sync(1)
 * would; fsync's with as many as sync_limit says. Writers wait while dirty and unfinished pages
 * exceed DIRTY_LIMIT. fsync writes a file's dirty pages as synchronous requests of the writer, waits
 * for all that are on their way, and has the drive's own cache flushed (flush.c).
 *
 * The numbers are Linux's defaults (dirty_background_ratio 10, dirty_ratio 20,
 * dirty_expire_centisecs 3000, dirty_writeback_centisecs 500, 128 requests) on a machine with 1
 * GB of memory.
 */
#include "job.h"

#define DIRTY_BACKGROUND ((u64)100 << 20)
#define DIRTY_LIMIT ((u64)200 << 20)
#define EXPIRE_NS (30ull * HW_NSEC_PER_SEC)
#define PERIOD_NS (5ull * HW_NSEC_PER_SEC)
#define FLUSH_DEPTH 128

/* Dirty pages in a row on the drive. */
struct extent {
	struct rb_node node;
	u64 first, end;
	u64 since_ns;		/* the oldest of them */
	struct extent *free_next;
};

struct sim_cache {
	struct sim_source source;
	u32 task;
	struct rb_root dirty;
	u64 dirty_pages, under_way_pages;
	u64 cursor;		/* where the flusher goes on */
	u32 in_flight;
	u32 syncing;		/* requests of fsync on their way */
	u64 tick;		/* the next look at old pages; 0: none is due */
	bool expired;		/* the flusher is at pages that were dirty before expired_ns */
	u64 expired_ns;
	struct sim_transfer *under_way, *free_transfers;
	struct extent *free_extents;
	struct sim_job *blocked;
};

/* --- who waits --- */

static bool block(struct sim_cache *c, struct sim_job *j)
{
	if (j->blocked)
		return false;
	j->blocked = true;
	j->blocked_next = c->blocked;
	c->blocked = j;
	return false;
}

/* All may look again whether they can go on, in the order in which they came. */
static void unblock_all(struct hws *s, struct sim_cache *c)
{
	struct sim_job *j = c->blocked, *in_order = NULL;

	c->blocked = NULL;
	while (j) {
		struct sim_job *next = j->blocked_next;

		j->blocked_next = in_order;
		in_order = j;
		j = next;
	}
	for (j = in_order; j; j = j->blocked_next) {
		j->blocked = false;
		sim_job_wake(s, j);
	}
}

/* --- dirty pages --- */

static struct extent *first_at_or_after(const struct sim_cache *c, u64 page)
{
	struct rb_node *n = c->dirty.rb_node;
	struct extent *best = NULL;

	while (n) {
		struct extent *e = rb_entry(n, struct extent, node);

		if (e->end > page) {
			best = e;
			n = n->rb_left;
		} else {
			n = n->rb_right;
		}
	}
	return best;
}

static struct extent *next_extent(struct extent *e)
{
	struct rb_node *n = rb_next(&e->node);

	return n ? rb_entry(n, struct extent, node) : NULL;
}

static void remove_extent(struct sim_cache *c, struct extent *e)
{
	rb_erase(&e->node, &c->dirty);
	e->free_next = c->free_extents;
	c->free_extents = e;
}

static void insert_extent(struct hws *s, struct sim_cache *c, u64 first, u64 end, u64 since_ns)
{
	struct rb_node **link = &c->dirty.rb_node, *parent = NULL;
	struct extent *e = c->free_extents;

	if (e)
		c->free_extents = e->free_next;
	else
		e = sim_alloc(s, sizeof(*e));
	e->first = first;
	e->end = end;
	e->since_ns = since_ns;
	while (*link) {
		parent = *link;
		link = &parent->rb_right;
		if (first < rb_entry(parent, struct extent, node)->first)
			link = &parent->rb_left;
	}
	rb_link_node(&e->node, parent, link);
	rb_insert_color(&e->node, &c->dirty);
}

/* Joins what it touches: extents never overlap or adjoin. */
static void dirty(struct hws *s, struct sim_cache *c, u64 first, u64 end)
{
	struct extent *e = first_at_or_after(c, first ? first - 1 : 0);
	u64 since_ns = s->now;

	c->dirty_pages += end - first;
	while (e && e->first <= end) {
		struct extent *next = next_extent(e);

		if (max(first, e->first) < min(end, e->end))
			c->dirty_pages -= min(end, e->end) - max(first, e->first);
		first = min(first, e->first);
		end = max(end, e->end);
		since_ns = min(since_ns, e->since_ns);
		remove_extent(c, e);
		e = next;
	}
	insert_extent(s, c, first, end, since_ns);
}

/* Takes pages first … end, all of one extent, out of the dirty ones and writes them. */
static void write_back(struct hws *s, struct extent *e, u64 first, u64 end, u32 task, u8 flags)
{
	struct sim_cache *c = s->cache;
	struct sim_transfer *t = c->free_transfers;
	u64 e_first = e->first, e_end = e->end, since_ns = e->since_ns;
	u64 sector = first * SIM_PAGE_SECTORS;
	u64 end_sector = min(end * SIM_PAGE_SECTORS, s->drive->sectors);

	if (t)
		c->free_transfers = t->next;
	else
		t = sim_alloc(s, sizeof(*t));
	*t = (struct sim_transfer){ .first = first, .pages = end - first, .write = true,
				    .next = c->under_way, .pprev = &c->under_way };
	if (t->next)
		t->next->pprev = &t->next;
	c->under_way = t;
	remove_extent(c, e);
	if (e_first < first)
		insert_extent(s, c, e_first, first, since_ns);
	if (end < e_end)
		insert_extent(s, c, end, e_end, since_ns);
	c->dirty_pages -= end - first;
	c->under_way_pages += end - first;
	sim_job_issue(s, task, sector, (u32)(end_sector - sector), HW_WRITE, flags, t);
}

/* Everything that is dirty is to be written, not only what is old. */
static bool flush_all(struct hws *s, const struct sim_cache *c)
{
	return sim_jobs_over(s) || c->dirty_pages > DIRTY_BACKGROUND / SIM_PAGE_BYTES;
}

static bool may_flush(struct hws *s, const struct sim_cache *c)
{
	return c->dirty_pages && c->in_flight < FLUSH_DEPTH && (c->expired || flush_all(s, c));
}

/* The next extent to write, going round; NULL ends a round over old pages. */
static struct extent *next_to_flush(struct hws *s, struct sim_cache *c)
{
	struct extent *e = first_at_or_after(c, c->cursor), *begin;
	bool all = flush_all(s, c);

	if (!e)
		e = first_at_or_after(c, 0);
	begin = e;
	while (e && !all && e->since_ns > c->expired_ns) {
		e = next_extent(e);
		if (!e)
			e = first_at_or_after(c, 0);
		if (e == begin)
			return NULL;
	}
	return e;
}

void sim_cache_flush(struct hws *s)
{
	struct sim_cache *c = s->cache;
	u64 most = max(s->opt.max_sectors / SIM_PAGE_SECTORS, 1u);

	while (may_flush(s, c)) {
		struct extent *e = next_to_flush(s, c);
		u64 first, end;

		if (!e) {
			c->expired = false;
			continue;
		}
		first = c->cursor > e->first && c->cursor < e->end ? c->cursor : e->first;
		end = min(e->end, first + most);
		c->cursor = end;
		c->in_flight++;
		write_back(s, e, first, end, c->task, 0);
	}
}

static void look_again(struct hws *s, struct sim_cache *c)
{
	c->tick = 0;
	if (!c->dirty_pages || sim_jobs_over(s))
		return;
	c->tick = sim_order(s);
	sim_schedule(s, sim_after(s->now, PERIOD_NS), c->tick, &c->source);
}

static void cache_due(struct hws *s, struct sim_source *source, u64 order)
{
	struct sim_cache *c = container_of(source, struct sim_cache, source);

	if (order == c->tick && s->now >= EXPIRE_NS) {
		c->expired = true;
		c->expired_ns = s->now - EXPIRE_NS;
	}
	sim_cache_flush(s);
	if (order == c->tick)
		look_again(s, c);
}

static void written(struct hws *s, struct sim_cache *c, struct sim_transfer *t)
{
	c->under_way_pages -= t->pages;
	*t->pprev = t->next;
	if (t->next)
		t->next->pprev = t->pprev;
	t->next = c->free_transfers;
	c->free_transfers = t;
	unblock_all(s, c);
}

/*
 * Flushing goes on when what is under way has made room; as everything that issues, not before
 * this instant's arrivals.
 */
static void cache_done(struct hws *s, struct sim_source *source, void *tag)
{
	struct sim_cache *c = container_of(source, struct sim_cache, source);

	c->in_flight--;
	written(s, c, tag);
	if (may_flush(s, c))
		sim_schedule(s, s->now, sim_order(s), &c->source);
}

/* --- what jobs call --- */

void sim_cache_init(struct hws *s, u32 flusher)
{
	if (s->cache)
		return;
	s->cache = sim_alloc(s, sizeof(*s->cache));
	s->cache->task = flusher;
	s->cache->source.due = cache_due;
	s->cache->source.done = cache_done;
	s->tasks[flusher].source = &s->cache->source;
}

static void pages_of(const struct sim_place *p, u64 *first, u64 *end)
{
	*first = (p->file->at.base + p->offset) / SIM_PAGE_BYTES;
	*end = (p->file->at.base + p->offset + p->bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
}

void sim_write(struct hws *s, struct sim_job *j)
{
	struct sim_cache *c = s->cache;
	u64 first, end;

	pages_of(&j->op, &first, &end);
	dirty(s, c, first, end);
	sim_cache_flush(s);
	if (!c->tick)
		look_again(s, c);
}

bool sim_write_balance(struct hws *s, struct sim_job *j)
{
	struct sim_cache *c = s->cache;

	if (c->dirty_pages + c->under_way_pages <= DIRTY_LIMIT / SIM_PAGE_BYTES)
		return true;
	return block(c, j);
}

u64 sim_dirty_pages(const struct hws *s)
{
	return s->cache ? s->cache->dirty_pages : 0;
}

/* Writes of a file what fsync has still to write, as far as it may; is anything left? */
static bool sync_file(struct hws *s, struct sim_job *j, struct sim_place p)
{
	u64 most = max(s->opt.max_sectors / SIM_PAGE_SECTORS, 1u), first, end;
	struct sim_cache *c = s->cache;
	struct extent *e;

	pages_of(&p, &first, &end);
	while ((e = first_at_or_after(c, first)) && e->first < end) {
		first = max(first, e->first);
		if (e->since_ns > j->sync_ns) {
			first = e->end;
			continue;
		}
		if (s->opt.sync_limit && c->syncing >= s->opt.sync_limit)
			return true;
		c->syncing++;
		write_back(s, e, first, min(min(e->end, end), first + most), j->opt.task, HW_RQ_SYNC);
	}
	return false;
}

static bool sync_more(struct hws *s, struct sim_job *j)
{
	bool left = false;
	u64 i;

	if (j->sync_what.file)
		return sync_file(s, j, j->sync_what);
	for (i = 0; i < j->opt.nr_files; i++) {
		struct sim_place p = { .file = &j->files[i], .bytes = j->files[i].at.size };

		left |= sync_file(s, j, p);
	}
	return left;
}

void sim_fsync_begin(struct hws *s, struct sim_job *j, const struct sim_place *what)
{
	j->sync_what = what ? *what : (struct sim_place){ 0 };
	j->sync_ns = s->now;
	j->unflushed = s->drive->write_cache;
	if (s->cache)
		sync_more(s, j);
}

static bool under_way(const struct sim_cache *c, const struct sim_place *p)
{
	const struct sim_transfer *t;
	u64 first, end;

	pages_of(p, &first, &end);
	for (t = c->under_way; t; t = t->next)
		if (t->first < end && first < t->first + t->pages)
			return true;
	return false;
}

static bool any_under_way(const struct sim_cache *c, const struct sim_job *j)
{
	u64 i;

	if (j->sync_what.file)
		return under_way(c, &j->sync_what);
	for (i = 0; i < j->opt.nr_files; i++) {
		struct sim_place p = { .file = &j->files[i], .bytes = j->files[i].at.size };

		if (under_way(c, &p))
			return true;
	}
	return false;
}

bool sim_fsync(struct hws *s, struct sim_job *j)
{
	if (j->flushing)
		return false;
	if (s->cache && (sync_more(s, j) || any_under_way(s->cache, j)))
		return block(s->cache, j);
	if (!j->unflushed)
		return true;
	j->unflushed = false;
	sim_flush(s, j);
	return false;
}

void sim_fsync_done(struct hws *s, struct sim_transfer *t)
{
	s->cache->syncing--;
	written(s, s->cache, t);
}
