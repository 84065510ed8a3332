// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads through a page cache, as far as a disk sees them.
 *
 * Sequential reads go through Linux's read-ahead window: a first window of up to four times the
 * request, doubled or quadrupled up to the largest, the next one asked for when a reader comes
 * to its marker page. The reader waits only for the window that holds the page it needs. Random
 * reads ask for what they need. What is in memory (pages.c) nobody asks for again: readers of one
 * file find what the others have read, and go on from the marker that one of them has left.
 */
#include "sim/load/internal.h"

void sim_read_begin(struct sim_job *j)
{
	j->cursor = j->op.offset / SIM_PAGE_BYTES;
	j->end = (j->op.offset + j->op.bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
}

static u64 power_of_two(u64 n)
{
	return n > 1 ? 1ull << fls64(n - 1) : 1;
}

static u64 first_window(u64 request, u64 largest)
{
	u64 n = power_of_two(request);

	if (n <= largest / 32)
		return n * 4;
	return n <= largest / 4 ? n * 2 : largest;
}

static u64 next_window(u64 pages, u64 largest)
{
	if (pages < largest / 16)
		return pages * 4;
	return pages <= largest / 2 ? pages * 2 : largest;
}

/* Have pages been made room for? If not they are when the job is called again. */
static bool make_room(struct hws *s, struct sim_job *j, u64 pages)
{
	j->made_room = !j->made_room && s->opt.fetch_page_ns;
	if (!j->made_room)
		return true;
	sim_job_compute(s, j, s->opt.fetch_page_ns * pages);
	return false;
}

/* Where a file's first page is on the drive. */
static u64 base_of(const struct sim_file *f)
{
	return f->at.base / SIM_PAGE_BYTES;
}

static void ask(struct hws *s, struct sim_job *j, u64 first, u64 end)
{
	struct sim_file *f = j->op.file;
	u64 sector, end_sector;

	sector = (f->at.base + (first - base_of(f)) * SIM_PAGE_BYTES) / HW_SECTOR_BYTES;
	end_sector = min(sector + (end - first) * SIM_PAGE_SECTORS, s->drive->sectors);
	sim_job_issue(s, j->opt.task, sector, (u32)(end_sector - sector), HW_READ, HW_RQ_SYNC,
		      sim_pages_ask(s, &s->jobs->pages, first, end));
}

/* The next pages in a row, from @at on, that are not in memory; false: there are none before @end. */
static bool missing_run(const struct sim_pages *p, u64 *at, u64 *to, u64 end)
{
	*at = sim_pages_missing(p, *at);
	*to = min(sim_pages_present(p, *at), end);
	return *at < end;
}

/*
 * Asks for those of a file's pages that are not in memory, each run of them as one I/O; @marker, if
 * it is among them, asks for the next window. False if it takes a while: then it is called again.
 */
static bool fetch(struct hws *s, struct sim_job *j, u64 first, u64 pages, u64 marker)
{
	struct sim_pages *p = &s->jobs->pages;
	struct sim_file *f = j->op.file;
	u64 end_page = (f->at.size + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
	u64 base = base_of(f), end = base + min(first + pages, end_page), at, to, missing = 0;

	for (at = base + first; missing_run(p, &at, &to, end); at = to)
		missing += to - at;
	if (!missing)
		return true;
	if (!make_room(s, j, missing))
		return false;
	at = base + marker;
	if (at < end && sim_pages_missing(p, at) == at)
		sim_pages_mark(s, p, at);
	for (at = base + first; missing_run(p, &at, &to, end); at = to)
		ask(s, j, at, to);
	return true;
}

static bool fetch_window(struct hws *s, struct sim_job *j, u64 start, u64 pages, u64 marker)
{
	struct sim_stream *st = &j->op.file->stream;

	if (!fetch(s, j, start, pages, marker))
		return false;
	st->start = start;
	st->pages = pages;
	st->marker = marker;
	return true;
}

/*
 * The reader comes to a marker. It is its own; or another reader's, from whose windows on it asks for
 * as much as it has found of them.
 */
static bool fetch_next_window(struct hws *s, struct sim_job *j, u64 marker, u64 largest)
{
	struct sim_stream *st = &j->op.file->stream;
	u64 base = base_of(j->op.file), start = st->start + st->pages, pages = st->pages;

	if (!st->pages || marker != st->marker) {
		start = sim_pages_missing(&s->jobs->pages, base + marker + 1) - base;
		if (start - marker > largest)
			return true;
		pages = start - marker + j->end - marker;
	}
	return fetch_window(s, j, start, next_window(pages, largest), start);
}

/* The page is not in memory: begin anew. */
static bool fetch_now(struct hws *s, struct sim_job *j, u64 largest)
{
	u64 request = j->end - j->cursor, pages;
	bool sequential = j->cursor == 0 || j->cursor == j->op.file->stream.expected ||
			  request > largest;

	if (!largest || !sequential)
		return fetch(s, j, j->cursor, request, U64_MAX);
	pages = first_window(request, largest);
	/*
	 * Read-ahead begins after what was asked for; a window that is all asked for is followed
	 * at once.
	 */
	return fetch_window(s, j, j->cursor, pages, j->cursor + (pages > request ? request : 0));
}

static void wait_for(struct sim_job *j, struct sim_transfer *t)
{
	struct sim_job **last = &t->waiters;

	while (*last)
		last = &(*last)->blocked_next;
	*last = j;
	j->blocked_next = NULL;
	j->reading = true;
}

bool sim_read(struct hws *s, struct sim_job *j)
{
	u64 largest = j->opt.readahead_bytes / SIM_PAGE_BYTES, base = base_of(j->op.file);
	struct sim_pages *p = &s->jobs->pages;

	if (j->reading)
		return false;
	while (j->cursor < j->end) {
		struct sim_transfer *t = sim_pages_coming(p, base + j->cursor);
		u64 end, marker;

		end = t ? t->first + t->pages : sim_pages_here(p, base + j->cursor);
		end = min(end - base, j->end);
		if (end == j->cursor) {
			if (!fetch_now(s, j, largest) || sim_task_stalls(s, j->opt.task))
				return false;
			continue;
		}
		if (largest && sim_pages_marked(p, base + j->cursor, base + end, &marker)) {
			if (!fetch_next_window(s, j, marker - base, largest))
				return false;
			sim_pages_unmark(p, marker);
		}
		if (t) {
			wait_for(j, t);
			return false;
		}
		j->cursor = end;
		j->op.file->stream.expected = end;
	}
	return true;
}

void sim_read_done(struct hws *s, struct sim_transfer *t)
{
	sim_pages_come(s, &s->jobs->pages, t);
}
