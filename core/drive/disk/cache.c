// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The buffer: segments, each one contiguous window of LBNs, and the read-ahead that fills one of
 * them.
 *
 * A window slides: when it outgrows its segment the oldest blocks drop out. Read-ahead goes on
 * after a request without a gap, up to a limit, until something else needs the mechanism. Nobody
 * steps it: disk_catch_up() works out how far it has come.
 */
#include "core/drive/disk/internal.h"

void disk_touch(struct disk *d, u32 seg)
{
	if (seg >= d->cfg.separate)
		list_move_tail(&d->segs[seg].link, &d->recent);
	d->segs[seg].touched = ++d->touches;
}

void disk_segment_state(struct disk *d, u32 seg, enum disk_seg_state state)
{
	struct disk_segment *s = &d->segs[seg];

	if (seg >= d->cfg.separate) {
		d->nr_empty -= s->state == SEG_EMPTY;
		d->nr_empty += state == SEG_EMPTY;
	}
	s->state = state;
}

static u32 stretch_of(const struct disk *d, u64 lbn)
{
	return (u32)(lbn >> d->stretch_shift) % DISK_STRETCHES;
}

/* Let the window of a segment begin at `start`. */
void disk_window_from(struct disk *d, struct disk_segment *s, u64 start)
{
	d->begun[stretch_of(d, s->start)]--;
	d->begun[stretch_of(d, start)]++;
	s->start = start;
}

/* Give a segment to the blocks from lbn on. */
void disk_segment_start(struct disk *d, u32 seg, u64 lbn)
{
	struct disk_segment *s = &d->segs[seg];

	disk_window_from(d, s, lbn);
	s->end = lbn;
	s->from = 0;
	s->aside = 0;
	s->aside_end = 0;
}

/* Let the window of a segment reach up to `end`. */
void disk_window(struct disk *d, u32 seg, u64 end)
{
	struct disk_segment *s = &d->segs[seg];

	s->end = end;
	if (s->end - s->start + (s->aside_end - s->aside) > d->cfg.segment)
		s->aside_end = s->aside;
	if (s->end - s->start > d->cfg.segment)
		disk_window_from(d, s, s->end - d->cfg.segment);
}

/* Bring the medium's doings, and with them the windows, up to time t. */
void disk_catch_up(struct disk *d, u64 t)
{
	struct disk_run *r = &d->run;
	const struct disk_piece *p = &r->piece;
	u64 wanted, done = 0;

	if (!r->active || t == r->caught_ns)
		return;
	if (r->write) {
		if (r->end_ns <= t)
			disk_run_end(d, true);
		return;
	}
	for (;;) {
		wanted = disk_run_piece_end(d) - p->lbn;
		if (t < p->start_ns + disk_sectors_ns(p->sector_fp, wanted))
			break;
		if (!disk_run_next(d))
			return;
	}
	if (t > p->start_ns)
		done = min(div64_u64((t - p->start_ns) << DISK_FP, p->sector_fp), wanted);
	disk_run_progress(d, p->lbn + done);
	r->caught_ns = t;
}

/*
 * Something else needs the mechanism at t: end the read-ahead. Returns how long the mechanism still
 * needs for the step it is in. A moving arm finishes its move. A drive that cannot stop within a
 * sector finishes the sector too or, if it has just changed tracks, waits for the first one to come
 * round.
 */
u64 disk_stop_ahead(struct disk *d, u64 t)
{
	struct disk_run *r = &d->run;
	const struct disk_piece *p = &r->piece;
	u64 wait = 0, done, until;

	disk_catch_up(d, t);
	if (!r->active || r->write)
		return 0;
	if (t < p->arrive_ns) {
		wait = p->arrive_ns - t;
	} else if (!d->cfg.stop_in_sector) {
		if (t < p->start_ns) {
			wait = p->start_ns - t;
		} else {
			done = (r->aside ? d->segs[r->seg].aside_end : d->segs[r->seg].end) -
			       p->lbn + 1;
			until = p->start_ns + disk_sectors_ns(p->sector_fp, done);
			wait = until > t ? until - t : 0;
			disk_run_progress(d, p->lbn + done);
		}
	}
	disk_run_end(d, false);
	return wait;
}

/* False: no window begins so near to lbn that the block could be in it, or in the one aside. */
static bool might_hit(const struct disk *d, u64 lbn)
{
	u32 i = stretch_of(d, lbn);

	return d->begun[i] + d->begun[(i + 1) % DISK_STRETCHES] +
	       d->begun[(i - 1) % DISK_STRETCHES];
}

static bool within(u64 lbn, u64 start, u64 end)
{
	return lbn - start < end - start;
}

/* How good the best segment is, 0 if there is none; from 8 on all of the read is there. */
static noinline u32 best_segment(const struct disk *d, u64 lbn, u64 end, u32 *seg, u64 *have)
{
	const struct disk_run *r = &d->run;
	const struct disk_segment *s = d->segs + d->cfg.separate, *last = d->segs + d->cfg.segments;
	u64 reach = lbn + d->cfg.segment, span = 2 * (u64)d->cfg.segment, upto;
	u32 best = 0, touched = 0, rank, i;

	for (; s < last; s++) {
		if (reach - s->start >= span) /* neither window is as large */
			continue;
		i = (u32)(s - d->segs);
		if (s->state == SEG_EMPTY || lbn < s->from ||
		    (s->state == SEG_WRITING && !d->cfg.written_hits))
			continue;
		if (within(lbn, s->start, s->end))
			upto = s->end;
		else if (within(lbn, s->aside, s->aside_end) &&
			 (end <= s->aside_end || (r->active && r->aside && r->seg == i)))
			upto = s->aside_end;
		else
			continue;
		rank = s->state + (end <= upto ? 8 : 0);
		if (rank > best || (rank == best && (s32)(s->touched - touched) > 0)) {
			best = rank;
			touched = s->touched;
			*seg = i;
			*have = upto;
		}
	}
	return best;
}

/*
 * The segment that a read hits: one with all of it before one with its beginning, then the more
 * recent kind, then the one used last: which of them it is must not hang on their numbers, that is,
 * on what the drive did long ago. *have: up to where it is there.
 */
enum disk_hit disk_read_lookup(const struct disk *d, u64 lbn, u64 end, u32 *seg, u64 *have)
{
	const struct disk_run *r = &d->run;
	u32 best = might_hit(d, lbn) ? best_segment(d, lbn, end, seg, have) : 0;

	if (!best && d->cfg.almost && r->active && !r->write && lbn == d->segs[r->seg].end) {
		*seg = r->seg;
		*have = lbn;
		return HIT_PARTIAL;
	}
	return best >= 8 ? HIT_FULL : best ? HIT_PARTIAL : HIT_NONE;
}

/*
 * An empty segment, else the least recently used clean one, else the one being filled, else one
 * being written.
 */
static u32 any_segment(const struct disk *d)
{
	enum disk_seg_state least = d->nr_empty ? SEG_EMPTY : SEG_CLEAN;
	const struct disk_segment *s, *best = NULL;

	list_for_each_entry(s, &d->recent, link) {
		if (!best || s->state < best->state)
			best = s;
		if (best->state <= least)
			break;
	}
	return (u32)(best - d->segs);
}

/* For a read that has missed. */
u32 disk_read_segment(struct disk *d)
{
	return any_segment(d);
}

static bool overlaps(const struct disk_segment *s, u64 lbn, u64 end)
{
	return (s->start < end && lbn < s->end) || (s->aside < end && lbn < s->aside_end);
}

/* For a write; *append: it continues what that segment is writing. */
u32 disk_write_segment(struct disk *d, u64 lbn, u64 end, bool *append)
{
	u32 i, first = d->cfg.separate;
	s32 hit = -1;

	*append = false;
	for (i = 0; i < d->cfg.segments; i++) {
		const struct disk_segment *s = &d->segs[i];

		if (d->cfg.combine && s->state == SEG_WRITING && s->end == lbn) {
			*append = true;
			return i;
		}
		if (i >= first && s->state == SEG_CLEAN && overlaps(s, lbn, end) &&
		    (hit < 0 || (s32)(s->touched - d->segs[hit].touched) > 0))
			hit = (s32)i;
	}
	if (d->cfg.separate)
		return 0;
	return hit >= 0 ? (u32)hit : any_segment(d);
}

/* What a write overwrites is no longer valid in other segments. */
void disk_forget(struct disk *d, u64 lbn, u64 end, u32 except)
{
	u32 i;

	for (i = 0; i < d->cfg.segments; i++) {
		if (i != except && d->segs[i].state == SEG_CLEAN && overlaps(&d->segs[i], lbn, end))
			disk_segment_state(d, i, SEG_EMPTY);
	}
}
