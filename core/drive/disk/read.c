// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A read: buffer look-up, media access, and the bus laid over it.
 *
 * Let a_k be the instant at which the k-th block is in the buffer. A bus that is held sends block k
 * at out_k = max(out_(k-1), a_k) + bt, so out_n = max(B + n*bt, max_k(a_k + (n-k+1)*bt)): since the
 * a_k of a piece lie on a line, only the ends of pieces count. A bus that is given up whenever the
 * buffer runs dry, or a request that is larger than its segment (the platter must then wait for
 * room, and loses a revolution), is followed block by block instead.
 */
#include "core/drive/disk/internal.h"

/* A data phase. */
struct flow {
	const struct disk *d;
	u64 n, bt;
	u64 mark; /* blocks that must be there before the bus is asked for */
	u64 bus;  /* from when on the bus may be asked for */
	u64 ask;  /* what getting it costs, the first time */
	u64 ask_again;
	u64 release; /* what giving it up costs */
	bool stepwise;
	/* closed form */
	u64 mark_ns, latest;
	/* stepwise */
	bool flowing;
	u64 seen, sent, line_ns, line_from;
};

static u64 flow_mark(const struct disk_cfg *c, u64 n)
{
	u64 of = c->mark_by_request ? min_t(u64, n, c->segment) : c->segment, w;

	if (!c->read_mark)
		return 1;
	w = div_u64(of * c->read_mark + (c->mark_by_request ? 0 : 999999), 1000000);
	return clamp_t(u64, w, 1, n);
}

static struct flow flow_begin(const struct disk *d, u64 n, u64 bus, u64 ask)
{
	const struct disk_overheads *o = &d->o;
	const struct disk_cfg *c = &d->cfg;
	bool hold = c->hold_read || c->never_disc;
	struct flow f = {
		.d = d, .n = n, .bt = c->bus_read, .mark = 1, .bus = bus, .ask = ask, .mark_ns = bus
	};

	f.ask_again = o->reselect + o->prepare;
	f.release = o->read_disc[d->after];
	f.stepwise = n > c->segment || (!hold && (f.ask_again || f.release || flow_mark(c, n) > 1));
	return f;
}

/* Stepwise: when block j (counted from 1) has left the buffer, for blocks sent so far. */
static u64 flow_left(const struct flow *f, u64 j)
{
	return j <= f->line_from ? f->line_ns : f->line_ns + (j - f->line_from) * f->bt;
}

static void flow_step(struct flow *f, u64 a)
{
	u64 out;

	f->seen++;
	if (f->flowing) {
		out = flow_left(f, f->sent);
		if (a <= out) {
			f->sent++;
			return;
		}
		if (f->d->cfg.hold_read || f->d->cfg.never_disc) {
			f->line_ns = a;
			f->line_from = f->sent++;
			return;
		}
		f->flowing = false;
		f->bus = out + f->release;
		f->ask = f->ask_again;
		f->mark = min(flow_mark(&f->d->cfg, f->n), f->n - f->sent);
	}
	if (f->seen - f->sent >= f->mark || f->seen == f->n) {
		f->flowing = true;
		f->line_ns = max(f->bus, a) + f->ask;
		f->line_from = f->sent;
		f->sent = f->seen;
	}
}

/* Blocks first .. first + count - 1 (from 1) become available from a on, one every sector. */
static void flow_piece(struct flow *f, u64 first, u64 count, u64 start, u64 sector_fp)
{
	u64 last = first + count - 1, a1, an;

	if (!count)
		return;
	a1 = start + disk_sectors_ns(sector_fp, 1);
	an = start + disk_sectors_ns(sector_fp, count);
	f->latest = max(f->latest,
			max(a1 + (f->n - first + 1) * f->bt, an + (f->n - last + 1) * f->bt));
	if (f->mark >= first && f->mark <= last)
		f->mark_ns = start + disk_sectors_ns(sector_fp, f->mark - first + 1);
}

static u64 flow_end(const struct flow *f)
{
	if (f->stepwise)
		return flow_left(f, f->n);
	return max(max(f->bus, f->mark_ns) + f->ask + f->n * f->bt, f->latest);
}

/* How far the mode reads ahead of a request lbn..e. */
static u64 mode_limit(struct disk *d, u64 lbn, u64 e, u64 window)
{
	const struct disk_cfg *c = &d->cfg;
	u64 limit, first, end, m = c->ahead_max;
	struct disk_place at;

	if (c->sequential && (d->last_write || lbn != d->last_end))
		return e;
	limit = e + (m ? m : c->segment);
	if (c->over == OVER_KEEP)
		limit = min(limit, lbn + c->segment);
	if (c->ahead == AHEAD_WHOLE_TRACK) {
		if (e >= d->layout.sectors)
			return e;
		disk_locate(&d->layout, e, &at);
		disk_track_limits(&d->layout, e, &at, false, &first, &end);
		if (!m || c->segment < end - first)
			limit = window < first ? end + (end - first) : end;
		limit = max(limit, end);
	} else if (c->ahead != AHEAD_FREE) {
		disk_locate(&d->layout, e - 1, &at);
		disk_track_limits(&d->layout, e - 1, &at, c->ahead == AHEAD_CYLINDER, &first, &end);
		limit = min(limit, end);
	}
	return limit;
}

static u64 ahead_limit(struct disk *d, u64 lbn, u64 e, u64 window)
{
	const struct disk_cfg *c = &d->cfg;
	u64 limit, first, end;
	struct disk_place at;

	if (!c->cache || c->ahead == AHEAD_NONE)
		return e;
	limit = mode_limit(d, lbn, e, window);
	if (c->arrival && e - 1 - d->run.first < d->run.track_end - d->run.first) {
		limit = max(limit, d->run.track_end);
	} else if (c->arrival) {
		disk_locate(&d->layout, e - 1, &at);
		disk_track_limits(&d->layout, e - 1, &at, false, &first, &end);
		limit = max(limit, end);
	}
	return max(e, min(limit, d->layout.sectors));
}

/* A block may not be read before there is room for it: wait for its next passage. */
static void wait_for_room(struct disk *d, struct disk_piece *p, u64 skip, u64 room)
{
	const struct disk_zone *z = &d->layout.zones[p->zone];

	p->lbn += skip;
	p->count -= (u32)skip;
	p->angle = (u32)(p->angle + skip);
	if (p->angle >= z->spt)
		p->angle -= z->spt;
	p->depart_ns = room;
	p->arrive_ns = room;
	p->start_ns =
		room + (u64)disk_latency(&d->mech, room,
					 disk_target(&d->layout, &d->mech, p->zone, p->angle));
	d->drive.stats.rotation_ns += p->start_ns - room;
}

static void step_piece(struct disk *d, struct flow *f, struct disk_piece *p, u64 lbn, u64 from,
		       u64 to)
{
	u64 k, j, a, room, seg = d->cfg.segment;

	for (k = from; k < to; k++) {
		j = k - lbn + 1;
		if (j > seg && f->sent >= j - seg) {
			room = flow_left(f, j - seg);
			a = p->start_ns +
			    disk_sectors_ns(p->sector_fp, k - p->lbn + (d->cfg.direct ? 0 : 1));
			if (a < room)
				wait_for_room(d, p, k - p->lbn, room);
		}
		a = p->start_ns + disk_sectors_ns(p->sector_fp, k - p->lbn + 1);
		flow_step(f, a);
	}
}

/*
 * Follow the run through the blocks from..end of a request that starts at lbn; returns when the
 * last is in the buffer. Blocks that the run passes over, in front of a piece or behind the last,
 * are there already.
 */
static u64 follow_run(struct disk *d, struct flow *f, u64 lbn, u64 from, u64 end)
{
	struct disk_piece *p = &d->run.piece;
	u64 to, in, skip;

	for (;;) {
		for (; from < p->lbn && f->stepwise; from++)
			flow_step(f, 0);
		from = max(from, p->lbn);
		to = min(end, disk_run_piece_end(d));
		if (f->stepwise) {
			step_piece(d, f, p, lbn, from, to);
		} else {
			skip = from - p->lbn;
			flow_piece(f, from - lbn + 1, to - from,
				   p->start_ns + ((skip * p->sector_fp) >> DISK_FP), p->sector_fp);
		}
		d->drive.stats.transfer_ns += disk_sectors_ns(p->sector_fp, to - from);
		in = disk_piece_at(p, to);
		from = to;
		if (to >= end || !disk_run_next(d) || p->lbn >= end)
			break;
		d->drive.stats.seek_ns += p->arrive_ns - p->depart_ns;
		d->drive.stats.rotation_ns += p->start_ns - p->arrive_ns;
	}
	for (; from < end && f->stepwise; from++)
		flow_step(f, 0);
	return in;
}

static void start_run(struct disk *d, u32 seg, u64 lbn, u64 t, u64 limit)
{
	struct disk_mech *m = &d->mech;
	struct disk_run *r = &d->run;
	u32 cyl = m->cyl;

	disk_piece_go(d, &r->piece, lbn, t, false, 0);
	disk_count_seek(d, cyl);
	r->active = true;
	r->write = false;
	r->aside = false;
	r->lap = false;
	r->forward = 0;
	r->seg = (u8)seg;
	r->limit = limit;
	r->caught_ns = HW_NEVER;
	disk_segment_state(d, seg, SEG_FILLING);
}

/* All of it is in the buffer. Returns when the last block has left. */
static u64 read_full_hit(struct disk *d, u64 n, u32 seg, u64 limit, u64 bus, u64 t, u64 m0)
{
	u64 have = d->segs[seg].end;
	bool idle = !d->run.active;

	if (d->run.active && !d->run.write && d->run.seg == seg) {
		d->run.limit = max(d->run.limit, limit);
	} else {
		disk_stop_ahead(d, t);
		if (idle && d->cfg.idle_hit && limit > have)
			start_run(d, seg, have, m0, limit);
	}
	d->drive.stats.cache_hits++;
	d->drive.stats.transfer_ns += n * d->cfg.bus_read;
	return bus + d->o.prepare + n * d->cfg.bus_read;
}

/* What is not in the buffer: up to `have` it is, if it is a hit. Returns when the last block is. */
static u64 read_medium(struct disk *d, struct flow *f, u64 lbn, u64 have, u64 end, u32 seg,
		       bool hit, u64 t, u64 m0)
{
	struct disk_run *r = &d->run;

	if (hit && r->active && r->seg == seg &&
	    (!d->cfg.arrival || disk_run_reaches(d, have, m0))) {
		r->limit = max(r->limit, end);
	} else {
		start_run(d, seg, have, m0 + disk_stop_ahead(d, t), end);
		d->drive.stats.seek_ns += r->piece.arrive_ns - r->piece.depart_ns;
		d->drive.stats.rotation_ns += r->piece.start_ns - r->piece.arrive_ns;
		if (!hit) {
			disk_segment_start(d, seg, lbn);
			if (d->cfg.arrival)
				disk_run_from_arrival(d);
		}
	}
	if (end > r->track_end)
		r->lap = false;
	r->limit = max(r->limit, ahead_limit(d, lbn, end, d->segs[seg].start));
	r->since_ns = follow_run(d, f, lbn, have, end);
	d->drive.stats.media_reads++;
	return r->since_ns;
}

/* How long reading on takes that no other request may interrupt. */
static u64 least_ahead(const struct disk *d, u64 end)
{
	const struct disk_piece *p = &d->run.piece;
	u64 n = min_t(u64, d->cfg.ahead_min, d->run.limit - end);
	u32 rest, revs;

	if (!n)
		return 0;
	revs = (u32)div_u64_rem(n, d->layout.zones[p->zone].spt, &rest);
	return revs * d->mech.rev_ns + disk_sectors_ns(p->sector_fp, rest);
}

void disk_read(struct disk *d, struct hw_io *io, u64 t)
{
	const struct disk_overheads *o = &d->o;
	const struct disk_cfg *c = &d->cfg;
	u64 lbn = io->sector, n = io->sectors, end = lbn + n, have = lbn, written = 0, media = t,
	    out, bus, m0, k;
	u64 base = (c->preseek > 1 ? io->submit_ns : t) + o->command;
	u32 seg = 0, a = d->after;
	enum disk_hit hit;
	struct flow f;

	disk_catch_up(d, t);
	hit = disk_read_lookup(d, lbn, end, &seg, &have);
	if (hit == HIT_PARTIAL && !c->partial && have - lbn < flow_mark(c, n))
		hit = HIT_NONE;
	m0 = max(base + o->read_miss[a], t);
	if (c->arrival) {
		disk_run_follows(d, lbn);
		if (!hit && disk_run_reaches(d, lbn, m0)) {
			hit = HIT_PARTIAL;
			seg = d->run.seg;
			have = lbn;
		}
	}
	if (!hit)
		have = lbn;
	bus = base + (hit ? o->read_hit[a] : o->read_miss[a]);
	if (d->run.active && d->run.write) { /* give up the bus until the medium has been written */
		written = d->run.end_ns;
		bus = max(base + o->read_miss[a] + o->read_disc[a], written) + o->reselect;
		disk_catch_up(d, written);
	}
	bus = max(bus, d->bus_free);
	m0 = max(m0, written);

	if (hit == HIT_FULL) {
		out = read_full_hit(d, n, seg, ahead_limit(d, lbn, end, d->segs[seg].start), bus, t,
				    m0);
	} else {
		if (hit) {
			f = flow_begin(d, n, bus, o->prepare);
		} else if (c->never_disc) {
			f = flow_begin(d, n, bus + o->prepare, 0);
			seg = disk_read_segment(d);
		} else {
			f = flow_begin(d, n, bus + o->read_disc[a], o->reselect + o->prepare);
			f.mark = flow_mark(c, n);
			seg = disk_read_segment(d);
		}
		for (k = lbn; k < have && f.stepwise; k++)
			flow_step(&f, t);
		media = read_medium(d, &f, lbn, have, end, seg, hit, t, m0);
		out = flow_end(&f);
	}
	disk_touch(d, seg);
	if (c->over == OVER_DROP)
		d->segs[seg].from = end;
	d->bus_free = out;
	d->drive.stats.overhead_ns += (hit ? o->read_hit[a] : o->read_miss[a]) + o->read_done;
	io->done_ns = out + o->read_done;
	d->decide_ns = io->done_ns;
	if (c->preseek > 1)
		d->decide_ns = hit == HIT_FULL ? t : media + least_ahead(d, end);
	d->after = 0;
	d->last_seg = (u8)seg;
	d->last_write = false;
	d->last_end = end;
}
