// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads through a page cache, as far as a disk sees them.
 *
 * Sequential reads go through Linux's read-ahead window: a first window of up to four times the
 * request, doubled or quadrupled up to the largest, the next one asked for when the reader comes
 * to a marker page. The reader waits only for the window that holds the page it needs. Random
 * reads ask for what they need. The cache remembers a reader's last SIM_WINDOWS windows and
 * nothing else: what is read again is read from the drive again, and readers do not find pages
 * that were written.
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

static struct sim_transfer *window_of(struct sim_stream *st, u64 page)
{
	u32 i;

	for (i = 0; i < SIM_WINDOWS; i++) {
		u32 slot = (st->next_slot + SIM_WINDOWS - 1 - i) % SIM_WINDOWS;
		struct sim_transfer *w = &st->window[slot];

		if (page >= w->first && page - w->first < w->pages)
			return w;
	}
	return NULL;
}

/* Have pages been made room for? If not they are when the job is called again. */
static bool make_room(struct hws *s, struct sim_job *j, u64 pages)
{
	j->made_room = !j->made_room && s->opt.fetch_page_ns;
	if (!j->made_room)
		return true;
	j->reading = false;
	sim_job_compute(s, j, s->opt.fetch_page_ns * pages);
	return false;
}

/* Asks for pages of a file, as one I/O; false if all slots are under way, or it takes a while. */
static bool fetch(struct hws *s, struct sim_job *j, u64 first, u64 pages)
{
	struct sim_file *f = j->op.file;
	struct sim_stream *st = &f->stream;
	struct sim_transfer *w = &st->window[st->next_slot];
	u64 end_page = (f->at.size + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES;
	u64 sector, end;

	if (first >= end_page)
		return true;
	if (w->pages && !w->done)
		return false;
	pages = min(pages, end_page - first);
	if (!make_room(s, j, pages))
		return false;
	w->first = first;
	w->pages = pages;
	w->done = false;
	st->next_slot = (st->next_slot + 1) % SIM_WINDOWS;
	sector = (f->at.base + first * SIM_PAGE_BYTES) / HW_SECTOR_BYTES;
	end = min(sector + w->pages * SIM_PAGE_SECTORS, s->drive->sectors);
	sim_job_issue(s, j->opt.task, sector, (u32)(end - sector), HW_READ, HW_RQ_SYNC, w);
	return true;
}

static bool fetch_next_window(struct hws *s, struct sim_job *j, u64 largest)
{
	struct sim_stream *st = &j->op.file->stream;
	u64 pages = next_window(st->pages, largest);

	if (!fetch(s, j, st->start + st->pages, pages))
		return false;
	st->start += st->pages;
	st->pages = pages;
	st->marker = st->start;
	return true;
}

/* The page is in no window: begin anew. */
static bool fetch_now(struct hws *s, struct sim_job *j, u64 largest)
{
	struct sim_stream *st = &j->op.file->stream;
	u64 request = j->end - j->cursor, pages;
	bool sequential = j->cursor == 0 || j->cursor == st->expected || request > largest;

	if (!largest || !sequential)
		return fetch(s, j, j->cursor, request);
	pages = first_window(request, largest);
	if (!fetch(s, j, j->cursor, pages))
		return false;
	st->start = j->cursor;
	st->pages = pages;
	/*
	 * Read-ahead begins after what was asked for; a window that is all asked for is followed
	 * at once.
	 */
	st->marker = st->start + (pages > request ? request : 0);
	return true;
}

bool sim_read(struct hws *s, struct sim_job *j)
{
	struct sim_stream *st = &j->op.file->stream;
	u64 largest = j->opt.readahead_bytes / SIM_PAGE_BYTES;

	while (j->cursor < j->end) {
		struct sim_transfer *w = window_of(st, j->cursor);
		u64 end;

		j->reading = true; /* unless this is the last round */
		if (!w) {
			if (!fetch_now(s, j, largest) || sim_task_stalls(s, j->opt.task))
				return false;
			continue;
		}
		end = min(j->end, w->first + w->pages);
		if (st->pages && st->marker >= j->cursor && st->marker < end &&
		    !fetch_next_window(s, j, largest))
			return false;
		if (!w->done)
			return false;
		j->cursor = end;
		st->expected = end;
	}
	j->reading = false;
	return true;
}

void sim_read_done(struct hws *s, struct sim_job *j, struct sim_transfer *t)
{
	t->done = true;
	if (j->reading) {
		j->reading = false;
		sim_job_wake(s, j);
	}
}
