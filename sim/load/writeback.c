// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes through a page cache, as far as a disk sees them.
 *
 * Writes dirty pages and go on. One flusher (a task of its own, its requests not synchronous)
 * writes them back in order of place, going round, in requests as large as the device takes, with
 * FLUSH_DEPTH in flight: while more than dirty_background() is dirty, when a page has been dirty for
 * EXPIRE_NS (looked at every PERIOD_NS), and everything once all jobs have ended, as sync(1) would.
 * Writers wait while dirty and unfinished pages exceed dirty_limit(). fsync writes a file's dirty
 * pages as synchronous requests of the writer, waits for all that are on their way, and has the
 * drive's own cache flushed (flush.c). Where write-back is throttled (wbt.c) all these wait for
 * their turn; fsync with the next page in its hand, which another fsync of the file stops at.
 *
 * The numbers are Linux's defaults (dirty_background_ratio 10, dirty_ratio 20,
 * dirty_expire_centisecs 3000, dirty_writeback_centisecs 500, 128 requests) on a machine with 1 GB
 * of memory.
 */
#include "sim/load/internal.h"

#define DIRTY_BACKGROUND ((u64)100 << 20)
#define DIRTY_LIMIT	 ((u64)200 << 20)
#define EXPIRE_NS	 (30ull * HW_NSEC_PER_SEC)
#define PERIOD_NS	 (5ull * HW_NSEC_PER_SEC)
#define BALANCE_PAGES	 8u
#define FLUSH_DEPTH	 128

/* Pages that may be dirty or on their way before writers wait. */
static u64 dirty_limit(const struct hws *s)
{
	return (s->opt.dirty_bytes ? s->opt.dirty_bytes : DIRTY_LIMIT) / SIM_PAGE_BYTES;
}

/* Dirty pages from which on they are written back; as Linux has it, at most half of the limit. */
static u64 dirty_background(const struct hws *s)
{
	u64 bytes = s->opt.dirty_background_bytes;
	u64 pages = (bytes ? bytes : DIRTY_BACKGROUND) / SIM_PAGE_BYTES;

	return pages < dirty_limit(s) ? pages : dirty_limit(s) / 2;
}

struct sim_cache {
	struct sim_source source;
	u32 task;
	struct sim_extents dirty;
	u64 dirty_pages, under_way_pages;
	u64 cursor; /* where the flusher goes on */
	/* the last fsync writes what has been dirty since before; 0: there was none */
	u64 synced_before_ns;
	u32 in_flight;
	struct sim_wbt_waiter wbt; /* of the flusher */
	u64 tick;		   /* the next look at old pages; 0: none is due */
	bool expired;		   /* the flusher is at pages that were dirty before expired_ns */
	u64 expired_ns;
	struct sim_transfer *under_way, *free_transfers;
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

static struct sim_extent *first_at_or_after(const struct sim_cache *c, u64 page)
{
	return sim_extent_at_or_after(&c->dirty, page);
}

static void insert_extent(struct hws *s, struct sim_cache *c, u64 first, u64 end, u64 since_ns)
{
	sim_extent_insert(s, &c->dirty, first, end)->since_ns = since_ns;
}

/*
 * What was dirty when the last fsync began stays by itself, so that none chases after what comes
 * later.
 */
static bool part_of_fsync(const struct sim_cache *c, const struct sim_extent *e)
{
	return e->since_ns < c->synced_before_ns;
}

/* Joins what it touches of later pages. */
static void dirty_clean(struct hws *s, struct sim_cache *c, u64 first, u64 end)
{
	struct sim_extent *e = first_at_or_after(c, first ? first - 1 : 0);
	u64 since_ns = s->now;

	c->dirty_pages += end - first;
	while (e && e->first <= end) {
		struct sim_extent *next = sim_extent_next(e);

		if (!part_of_fsync(c, e)) {
			if (max(first, e->first) < min(end, e->end))
				c->dirty_pages -= min(end, e->end) - max(first, e->first);
			first = min(first, e->first);
			end = max(end, e->end);
			since_ns = min(since_ns, e->since_ns);
			sim_extent_remove(&c->dirty, e);
		}
		e = next;
	}
	insert_extent(s, c, first, end, since_ns);
}

static void dirty(struct hws *s, struct sim_cache *c, u64 first, u64 end)
{
	while (first < end) {
		struct sim_extent *e = first_at_or_after(c, first);
		u64 stop = end;

		while (e && e->first < end && !part_of_fsync(c, e))
			e = sim_extent_next(e);
		if (e && e->first <= first) {
			first = e->end;
			continue;
		}
		if (e && e->first < end)
			stop = e->first;
		dirty_clean(s, c, first, stop);
		first = stop;
	}
}

/* Pages first … end, all of one extent, are no longer dirty, and on their way. */
static void cut(struct hws *s, struct sim_extent *e, u64 first, u64 end)
{
	u64 e_first = e->first, e_end = e->end, since_ns = e->since_ns;
	struct sim_cache *c = s->cache;

	sim_extent_remove(&c->dirty, e);
	if (e_first < first)
		insert_extent(s, c, e_first, first, since_ns);
	if (end < e_end)
		insert_extent(s, c, end, e_end, since_ns);
	c->dirty_pages -= end - first;
	c->under_way_pages += end - first;
}

static struct sim_transfer *take(struct hws *s, struct sim_extent *e, u64 first, u64 end)
{
	struct sim_cache *c = s->cache;
	struct sim_transfer *t = c->free_transfers;

	if (t)
		c->free_transfers = t->next;
	else
		t = sim_alloc(s, sizeof(*t));
	*t = (struct sim_transfer){ .first = first,
				    .pages = end - first,
				    .write = true,
				    .next = c->under_way,
				    .pprev = &c->under_way };
	if (t->next)
		t->next->pprev = &t->next;
	c->under_way = t;
	cut(s, e, first, end);
	return t;
}

/* And what is dirty behind it, up to end. */
static void take_on(struct hws *s, struct sim_transfer *t, u64 end, bool of_fsync)
{
	struct sim_cache *c = s->cache;
	struct sim_extent *e;
	u64 next;

	while ((next = t->first + t->pages) < end && (e = first_at_or_after(c, next)) &&
	       e->first <= next && (!of_fsync || part_of_fsync(c, e))) {
		u64 stop = min(e->end, end);

		cut(s, e, next, stop);
		t->pages += stop - next;
	}
}

/* It is no longer on its way. */
static void leave(struct sim_cache *c, struct sim_transfer *t)
{
	*t->pprev = t->next;
	if (t->next)
		t->next->pprev = t->pprev;
	t->next = c->free_transfers;
	c->free_transfers = t;
}

/* The group whose file a page is of: that of the job that writes there; 0: none. */
static u32 group_of(const struct hws *s, u64 page)
{
	return s->nr_groups ? sim_jobs_group_at(s, page * SIM_PAGE_BYTES) : 0;
}

static void write_back(struct hws *s, struct sim_transfer *t, u32 task, u8 flags)
{
	u64 sector = t->first * SIM_PAGE_SECTORS;
	u64 end_sector = min((t->first + t->pages) * SIM_PAGE_SECTORS, s->drive->sectors);
	struct hw_bio what = { .sector = sector,
			       .sectors = (u32)(end_sector - sector),
			       .op = HW_WRITE,
			       .flags = flags,
			       .ioprio = s->tasks[task].ioprio,
			       .group = sim_group_of(s, group_of(s, t->first)) };

	sim_job_issue_at(s, task, &what, t);
}

static u64 pages_at_once(const struct hws *s)
{
	u64 most = max(s->opt.max_sectors / SIM_PAGE_SECTORS, 1u);

	return s->opt.max_segments ? min(most, (u64)s->opt.max_segments) : most;
}

/* Everything that is dirty is to be written, not only what is old. */
static bool flush_all(struct hws *s, const struct sim_cache *c)
{
	return s->load_ended || c->dirty_pages > dirty_background(s);
}

static bool may_flush(struct hws *s, const struct sim_cache *c)
{
	return c->dirty_pages && c->in_flight < FLUSH_DEPTH && (c->expired || flush_all(s, c));
}

/* The next extent to write, going round; NULL ends a round over old pages. */
static struct sim_extent *next_to_flush(struct hws *s, struct sim_cache *c)
{
	struct sim_extent *e = first_at_or_after(c, c->cursor), *begin;
	bool all = flush_all(s, c);

	if (!e)
		e = first_at_or_after(c, 0);
	begin = e;
	while (e && !all && e->since_ns > c->expired_ns) {
		e = sim_extent_next(e);
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
	u64 most = pages_at_once(s);

	while (may_flush(s, c)) {
		struct sim_extent *e = next_to_flush(s, c);
		struct sim_transfer *t;
		u64 first;

		if (!e) {
			c->expired = false;
			continue;
		}
		c->wbt.background = !s->load_ended;
		if (!sim_wbt_get(s, &c->wbt))
			return;
		first = c->cursor > e->first && c->cursor < e->end ? c->cursor : e->first;
		t = take(s, e, first, first + 1);
		take_on(s, t, first + most, false);
		c->cursor = first + t->pages;
		c->in_flight++;
		write_back(s, t, c->task, 0);
	}
	if (c->wbt.may) {
		c->wbt.may = false;
		sim_wbt_put(s);
	}
}

static void look_again(struct hws *s, struct sim_cache *c)
{
	c->tick = 0;
	if (!c->dirty_pages || s->load_ended)
		return;
	c->tick = sim_order(s);
	sim_schedule(s, sim_after(s->now, PERIOD_NS), c->tick, &c->source);
}

static struct sim_cache *cache_of(struct sim_source *source)
{
	return container_of(source, struct sim_cache, source);
}

static void cache_due(struct hws *s, struct sim_source *source, u64 order)
{
	struct sim_cache *c = cache_of(source);

	if (order == c->tick && s->now >= EXPIRE_NS) {
		c->expired = true;
		c->expired_ns = s->now - EXPIRE_NS;
	}
	sim_cache_flush(s);
	if (order == c->tick)
		look_again(s, c);
}

/* Some of those who wait for wbt may write. */
static void cache_woken(struct hws *s, struct sim_source *source)
{
	struct sim_cache *c = cache_of(source);

	unblock_all(s, c);
	if (c->wbt.may)
		sim_schedule(s, s->now, sim_order(s), source);
}

static void written(struct hws *s, struct sim_cache *c, struct sim_transfer *t)
{
	sim_wbt_put(s);
	c->under_way_pages -= t->pages;
	leave(c, t);
	unblock_all(s, c);
}

/*
 * Flushing goes on when what is under way has made room; as everything that issues, not before
 * this instant's arrivals.
 */
static void cache_done(struct hws *s, struct sim_source *source, void *cookie)
{
	struct sim_cache *c = cache_of(source);

	c->in_flight--;
	written(s, c, cookie);
	if (may_flush(s, c))
		sim_schedule(s, s->now, sim_order(s), &c->source);
}

static const struct sim_source_ops cache_ops = {
	.due = cache_due,
	.done = cache_done,
	.wake = cache_woken,
};

/* --- what jobs call --- */

void sim_cache_init(struct hws *s, u32 flusher)
{
	if (s->cache)
		return;
	s->cache = sim_alloc(s, sizeof(*s->cache));
	s->cache->task = flusher;
	s->cache->source.ops = &cache_ops;
	s->tasks[flusher].source = &s->cache->source;
	sim_wbt_init(s, &s->cache->source);
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
	j->unbalanced_pages = min(j->unbalanced_pages + (end - first), (u64)BALANCE_PAGES);
	dirty(s, c, first, end);
	if (s->jobs->pages.found)
		sim_pages_add(s, &s->jobs->pages, first, end);
	sim_cache_flush(s);
	if (!c->tick)
		look_again(s, c);
}

/* Those that are dirty, or on their way, stay. */
void sim_cache_drop(struct hws *s, const struct sim_place *what)
{
	struct sim_pages *p = &s->jobs->pages;
	const struct sim_transfer *t;
	struct sim_extent *e;
	u64 first, end;

	if (!p->found)
		return;
	pages_of(what, &first, &end);
	sim_pages_drop(s, p, first, end);
	if (!s->cache)
		return;
	for (e = first_at_or_after(s->cache, first); e && e->first < end; e = sim_extent_next(e))
		sim_pages_add(s, p, max(first, e->first), min(end, e->end));
	for (t = s->cache->under_way; t; t = t->next)
		if (t->first < end && first < t->first + t->pages)
			sim_pages_add(s, p, max(first, t->first), min(end, t->first + t->pages));
}

/*
 * Linux asks a process for patience once in so many pages that it has made dirty
 * (balance_dirty_pages_ratelimited(), where there are too many of them): a log of a page at a time
 * comes eight times before it waits for what others have written.
 */
bool sim_write_balance(struct hws *s, struct sim_job *j)
{
	struct sim_cache *c = s->cache;

	if (j->unbalanced_pages < BALANCE_PAGES)
		return true;
	if (c->dirty_pages + c->under_way_pages <= dirty_limit(s)) {
		j->unbalanced_pages = 0;
		return true;
	}
	sim_wbt_slept(s);
	return block(c, j);
}

static bool in_a_hand(const struct sim_cache *c, u64 page)
{
	const struct sim_transfer *t;

	for (t = c->under_way; t; t = t->next)
		if (t->in_hand && t->first == page)
			return true;
	return false;
}

/*
 * The first page of pages first … end that fsync has to write, from now on in hand; NULL: there is
 * none. A later fsync's are among them: pages bear one mark for all, and are visited in order of
 * place.
 */
static struct sim_transfer *take_first(struct hws *s, u64 first, u64 end)
{
	struct sim_transfer *t;
	struct sim_extent *e;

	while ((e = first_at_or_after(s->cache, first)) && e->first < end) {
		first = max(first, e->first);
		if (part_of_fsync(s->cache, e)) {
			t = take(s, e, first, first + 1);
			t->in_hand = true;
			return t;
		}
		first = e->end;
	}
	return NULL;
}

/* What is in hand is to go with the pages behind it; the next one is free to be taken. */
static void gather(struct hws *s, struct sim_job *j)
{
	struct sim_transfer *t = j->in_hand;
	struct sim_cache *c = s->cache;

	take_on(s, t, min(j->hand_end, t->first + pages_at_once(s)), true);
	j->sync_at = t->first + t->pages;
	t->in_hand = false;
	/*
	 * Without it nobody ever waits with a page in hand, and there may be thousands of requests
	 * to look through.
	 */
	if (!s->wbt)
		return;
	j->behind = in_a_hand(c, j->sync_at) ? j->sync_at + 1 : 0;
	unblock_all(s, c);
}

/* Writes of a file what fsync has still to write, as far as it may; is anything left? */
static bool sync_file(struct hws *s, struct sim_job *j, struct sim_place p)
{
	u64 first, end;

	pages_of(&p, &first, &end);
	for (;;) {
		if (!j->in_hand) {
			if (j->behind && in_a_hand(s->cache, j->behind - 1))
				return true;
			j->behind = 0;
			j->in_hand = take_first(s, max(first, j->sync_at), end);
			j->hand_end = end;
			if (!j->in_hand)
				return false;
		}
		if (!j->preparing) {
			if (!sim_wbt_get(s, &j->wbt))
				return true;
			gather(s, j);
			j->preparing = s->opt.dirty_page_ns;
			if (j->preparing) {
				sim_job_compute(s, j, s->opt.dirty_page_ns * j->in_hand->pages);
				return true;
			}
		}
		j->preparing = false;
		write_back(s, j->in_hand, j->opt.task, HW_RQ_SYNC);
		j->in_hand = NULL;
	}
}

/* One file after another. */
static bool sync_more(struct hws *s, struct sim_job *j)
{
	if (j->sync_what.file)
		return sync_file(s, j, j->sync_what);
	for (; j->sync_file < j->opt.nr_files; j->sync_file++, j->sync_at = 0) {
		struct sim_file *f = &j->files[j->sync_file];

		if (sync_file(s, j, (struct sim_place){ .file = f, .bytes = f->at.size }))
			return true;
	}
	return false;
}

void sim_fsync_begin(struct hws *s, struct sim_job *j, const struct sim_place *what)
{
	j->sync_what = what ? *what : (struct sim_place){ 0 };
	j->sync_at = j->sync_file = 0;
	j->sync_ns = s->now;
	if (s->cache)
		s->cache->synced_before_ns = s->now + 1;
	j->flushed = false;
	j->wbt.sync = true;
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
	if (j->flush.waits)
		return false;
	/* What others have sent meanwhile it does not wait for. */
	if (j->flushed)
		return true;
	if (s->cache && (sync_more(s, j) || any_under_way(s->cache, j)))
		return j->preparing ? false : block(s->cache, j);
	if (!s->drive->write_cache)
		return true;
	/* Its writes are done, and it is woken: it asks for the flush when it runs. */
	if (!sim_runs(s, &j->turn)) {
		sim_job_compute(s, j, 0);
		return false;
	}
	j->flushed = true;
	sim_flush(s, &j->flush);
	return false;
}

void sim_fsync_done(struct hws *s, struct sim_transfer *t)
{
	written(s, s->cache, t);
}
