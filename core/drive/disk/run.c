// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the medium reads, in which order: a request's blocks and what is read ahead.
 *
 * A run is a row of pieces up to its limit. A drive that buffers tracks from the head's arrival on
 * begins with whatever passes first and stays until the whole track has passed, unless requests go
 * on beyond its end. The blocks then come in up to three stretches: from where the head arrived to
 * the end of the track, if that lies behind the request; from there, or from the track's beginning,
 * on; and what is missing in front of that. The first and the last of them are a window of their
 * own beside the segment's (`aside`) until both meet.
 */
#include "core/drive/disk/internal.h"

/* The run has read up to `end`. */
void disk_run_progress(struct disk *d, u64 end)
{
	if (d->run.aside)
		d->segs[d->run.seg].aside_end = end;
	else
		disk_window(d, d->run.seg, end);
}

void disk_run_end(struct disk *d, bool written)
{
	bool lost = !d->cfg.cache || (written && !d->cfg.written_hits);

	d->run.active = false;
	disk_segment_state(d, d->run.seg, lost ? SEG_EMPTY : SEG_CLEAN);
}

/* Where the stretch that the run is in ends. */
static u64 stretch_end(const struct disk *d)
{
	const struct disk_run *r = &d->run;
	const struct disk_segment *s = &d->segs[r->seg];

	if (r->aside)
		return s->aside < s->start ? s->start : r->track_end;
	if (s->aside_end > s->aside && s->aside >= r->piece.lbn)
		return s->aside;
	return r->lap ? min(r->limit, r->track_end) : r->limit;
}

/* Where what is read of the run's piece ends. */
u64 disk_run_piece_end(const struct disk *d)
{
	const struct disk_piece *p = &d->run.piece;

	return min(p->lbn + p->count, stretch_end(d));
}

/* The run's piece has been read: go on with the next. False if there is none: the run ends. */
bool disk_run_next(struct disk *d)
{
	struct disk_run *r = &d->run;
	struct disk_segment *s = &d->segs[r->seg];
	u64 at = disk_run_piece_end(d), next = at;

	r->caught_ns = HW_NEVER;
	disk_run_progress(d, at);
	if (at == stretch_end(d)) {
		if (r->aside && s->aside < s->start) { /* the rest of the track */
			disk_window_from(d, s, s->aside);
			s->aside_end = s->aside;
			next = s->end;
			r->aside = false;
		} else if (r->aside) { /* up to the track's end */
			next = s->end;
			r->aside = false;
		} else if (s->aside_end > s->aside && s->aside == at) {
			s->end = s->aside_end;
			s->aside_end = s->aside;
			next = s->end;
		}
		if (!r->aside && r->lap && next == r->track_end) {
			r->lap = false;
			if (s->start > r->first) {
				s->aside = r->first;
				s->aside_end = r->first;
				next = r->first;
				r->aside = true;
			}
		}
		if (!r->aside && next >= r->limit) {
			disk_run_end(d, false);
			return false;
		}
	}
	disk_piece_go(d, &r->piece, next, disk_piece_at(&r->piece, at), false, 0);
	return true;
}

/*
 * The first sector that begins when the head is there, or within what roundings need (see
 * disk_latency()), as an angle.
 */
static u32 angle_at(struct disk *d, const struct disk_piece *p)
{
	struct disk_mech *m = &d->mech;
	u64 phase = disk_phase(m, p->arrive_ns), slack = m->slack;
	u32 spt = d->layout.zones[p->zone].spt;
	u32 angle = (u32)div64_u64((phase > slack ? phase - slack : 0) * spt, m->rev_units);

	if (disk_target(&d->layout, m, p->zone, angle) + slack < phase)
		angle++;
	return angle < spt ? angle : 0;
}

/* If nothing is skipped between two blocks of a track, the place of one tells that of the other. */
static void know_on_track(struct disk *d, const struct disk_place *at, u64 lbn, u64 other,
			  u32 sector)
{
	struct disk_layout *l = &d->layout;
	u32 spt = l->zones[at->zone].spt;

	if (other - lbn != (u64)sector - at->sector || other >= lbn + at->run)
		return;
	l->known_lbn = other;
	l->known = *at;
	l->known.sector = sector;
	l->known.run = (u32)(lbn + at->run - other);
	div_u64_rem(at->angle + spt + sector - at->sector, spt, &l->known.angle);
}

/*
 * The run has been sent to a request that nothing is there of: let it buffer the request's track
 * from the head's arrival on, and bring it to the request's first block.
 */
void disk_run_from_arrival(struct disk *d)
{
	struct disk_run *r = &d->run;
	struct disk_segment *s = &d->segs[r->seg];
	u64 lbn = r->piece.lbn, from;
	struct disk_place at;
	u32 sector, spt;

	disk_locate(&d->layout, lbn, &at);
	disk_track_limits(&d->layout, lbn, &at, false, &r->first, &r->track_end);
	if (!d->cfg.cache || d->cfg.ahead == AHEAD_NONE ||
	    r->track_end - r->first > d->cfg.segment || !disk_track_intact(&d->layout, &at)) {
		r->track_end = r->first;
		return;
	}
	spt = d->layout.zones[at.zone].spt;
	div_u64_rem((u64)angle_at(d, &r->piece) + 2 * spt + at.sector - at.angle, spt, &sector);
	from = disk_first_from(&d->layout, &at, sector);
	if (from >= r->track_end)
		from = r->first;
	if (from == lbn) {
		r->lap = true;
		return;
	}
	disk_window_from(d, s, min(from, lbn));
	if (from > lbn) {
		disk_window_from(d, s, r->first);
		s->aside = from;
		s->aside_end = from;
		r->aside = true;
	}
	s->end = s->start;
	know_on_track(d, &at, lbn, from, sector);
	disk_piece_go(d, &r->piece, from, r->piece.arrive_ns, false, 0);
	while (r->aside || lbn >= disk_run_piece_end(d))
		disk_run_next(d);
	r->lap = true;
}

static bool run_gets_there(struct disk *d, u64 lbn, u64 t)
{
	const struct disk_run run = d->run;
	struct disk_mech *m = &d->mech;
	const struct disk_segment seg = d->segs[run.seg];
	const struct disk_piece *p = &d->run.piece;
	u32 cyl = m->cyl, head = m->head;
	struct disk_place at;
	u64 sent;

	disk_locate(&d->layout, lbn, &at);
	sent = t + div64_u64(disk_positioning(m, disk_phase(m, t), at.cyl, at.head,
					      disk_target(&d->layout, m, at.zone, at.angle), false),
			     m->ns_units);
	do {
		if (lbn >= p->lbn && lbn < disk_run_piece_end(d)) {
			if (disk_piece_at(p, lbn) <= sent + 2)
				return true;
			break;
		}
	} while (p->start_ns <= sent && disk_run_next(d));
	d->run = run;
	disk_window_from(d, &d->segs[run.seg], seg.start);
	d->segs[run.seg] = seg;
	m->cyl = cyl;
	m->head = head;
	return false;
}

/*
 * Whether a block is going to pass in this run, and no later than if the head were sent for it at
 * t. If so the run is there afterwards.
 */
bool disk_run_reaches(struct disk *d, u64 lbn, u64 t)
{
	const struct disk_run *r = &d->run;

	return r->active && !r->write && lbn < max(r->limit, r->track_end) &&
	       lbn >= min(r->first, r->piece.lbn) && run_gets_there(d, lbn, t);
}

/*
 * A request for lbn has come. Two in succession that go forward make a stream, which wants no lap.
 */
void disk_run_follows(struct disk *d, u64 lbn)
{
	struct disk_run *r = &d->run;

	if (!r->active || r->write || r->seg != d->last_seg || lbn < d->last_end || lbn >= r->limit)
		r->forward = 0;
	else if (r->forward++)
		r->lap = false;
}
