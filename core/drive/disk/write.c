// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A write that goes to the medium at once: write-through, or immediate reporting of a single
 * pending write.
 *
 * Data come over the bus at one block every bt while the arm moves. When the head reaches a sector
 * whose block is not there yet, a revolution is lost. With immediate reporting the status goes out
 * with the last block and the medium is written meanwhile; the next request waits for it, unless it
 * appends to what is being written.
 */
#include "core/drive/disk/internal.h"

struct data { /* the data phase: block k (from 1) is in the buffer at from + k * bt */
	u64 from, bt;
	u64 least; /* the medium is not touched before this */
};

static u64 data_ready(const struct data *in, u64 k)
{
	return max(in->from + k * in->bt, in->least);
}

/*
 * Write what is left of a piece from its sector `skip` on, when the medium and the data allow it.
 */
static void align_piece(struct disk *d, struct disk_piece *p, u64 skip, u64 ready)
{
	u32 spt = d->layout.zones[p->zone].spt;
	s64 wait;

	p->lbn += skip;
	p->count -= (u32)skip;
	p->angle = (u32)(p->angle + skip);
	if (p->angle >= spt)
		p->angle -= spt;
	wait = disk_latency(&d->mech, ready, disk_target(&d->layout, &d->mech, p->zone, p->angle));
	p->start_ns = ready + (u64)wait;
}

/*
 * How many of a piece's blocks, the first of which is number k, can be written before one comes too
 * late.
 */
static u64 in_time(const struct disk_piece *p, const struct data *in, u64 k, u64 count)
{
	u64 lead, gain = in->bt << DISK_FP;
	u64 start = p->start_ns, ready = in->from + k * in->bt;

	if (gain <= p->sector_fp)
		return count;
	lead = start > ready ? start - ready : 0;
	return min(count, div64_u64(lead << DISK_FP, gain - p->sector_fp) + 1);
}

/*
 * A zero-latency drive that comes down in the middle of what it is to write begins there with the
 * next sector and ends, a revolution later, where it began. `end` is when it would be done if it
 * waited for the first sector.
 */
static u64 from_the_middle(const struct disk *d, const struct disk_piece *p, u64 came, u64 count,
			   u64 end)
{
	u64 behind = div64_u64((came + d->mech.rev_ns - p->start_ns) << DISK_FP, p->sector_fp) + 1;

	return behind < count ? p->start_ns + disk_sectors_ns(p->sector_fp, behind) : end;
}

/*
 * Write blocks first..n of a request (from 1) that starts at lbn; the run's piece is where the
 * medium stands: a fresh piece to be aligned if `fresh`, else one that has been written up to lbn.
 * Returns when the last is on the medium.
 */
static u64 put_blocks(struct disk *d, u64 lbn, u64 first, u64 n, const struct data *in, bool fresh)
{
	struct hw_drive_stats *st = &d->drive.stats;
	struct disk_piece *p = &d->run.piece;
	u64 k = first, count, done, ready, passed, arrived, end = disk_piece_end(p);

	for (;;) {
		u64 skip = lbn + k - 1 - p->lbn;

		if (skip >= p->count) {
			disk_piece_go(d, p, lbn + k - 1, end, true, 0);
			fresh = true;
			continue;
		}
		count = min(n - k + 1, p->count - skip);
		if (fresh)
			st->seek_ns += p->arrive_ns - p->depart_ns;
		passed = p->start_ns + ((skip * p->sector_fp) >> DISK_FP);
		ready = data_ready(in, k);
		if (ready > passed) {
			align_piece(d, p, skip, max(ready, p->arrive_ns));
			passed = p->start_ns;
		} else if (skip) {
			align_piece(d, p, skip, passed);
		}
		if (fresh)
			st->rotation_ns += passed - p->arrive_ns;
		arrived = fresh ? max(ready, p->arrive_ns) : 0;
		fresh = false;
		done = in_time(p, in, k, count);
		end = p->start_ns + disk_sectors_ns(p->sector_fp, done);
		if (d->cfg.zero_latency && arrived && done == count)
			end = from_the_middle(d, p, arrived, count, end);
		st->transfer_ns += disk_sectors_ns(p->sector_fp, done);
		k += done;
		if (k > n)
			return end;
	}
}

static u64 least_blocks(u64 n)
{
	return n >= 45 ? 15 : min_t(u64, n, 10);
}

/*
 * The media part: n blocks of data. If they are more than the segment holds, a bus that is held
 * sends each further block as soon as one has been written, which is in time; one that is given up
 * comes back when the dirty blocks have fallen to the mark, so that data come a segment at a time.
 * *in is that of the last part.
 */
static u64 write_media(struct disk *d, u64 lbn, u64 n, struct data *in, bool append)
{
	const struct disk_cfg *c = &d->cfg;
	u64 room = c->hold_write ? n : c->segment, first = 1, last, dry, end;
	bool fresh = !append;

	for (;;) {
		last = min(n, first + room - 1);
		end = put_blocks(d, lbn, first, last, in, fresh);
		if (last == n)
			return end;
		dry = div_u64(room * c->write_mark, 1000000);
		end -= disk_sectors_ns(d->run.piece.sector_fp, min_t(u64, dry, d->run.piece.count));
		in->from = end + d->o.reselect + d->o.prepare - last * in->bt;
		first = last + 1;
		fresh = false;
	}
}

void disk_write(struct disk *d, struct hw_io *io, u64 t)
{
	const struct disk_overheads *o = &d->o;
	const struct disk_cfg *c = &d->cfg;
	u64 lbn = io->sector, n = io->sectors, end = lbn + n, m0, media, release, wait = 0;
	u64 base = (c->preseek > 1 ? io->submit_ns : t) + o->command;
	bool fast = c->write_mode == WRITE_IMMEDIATE && !(io->flags & HW_IO_FUA), append, extra;
	struct data in = { .bt = c->bus_write };
	u32 seg, a = d->after, overhead = fast ? o->write_hit[a] : o->write_miss[a];

	disk_catch_up(d, t);
	seg = disk_write_segment(d, lbn, end, &append);
	append = append && fast;
	extra = o->extra_disc && d->last_write && seg == d->last_seg && lbn != d->last_end;
	in.from = max(base + overhead, d->bus_free) + o->prepare;
	m0 = max(base + overhead, t);
	if (extra) {
		in.from =
			base + o->xd_command + o->xd_disc + o->xd_delay + o->reselect + o->prepare;
		m0 = base + o->xd_command + o->xd_seek;
	}
	if (d->run.active && d->run.write && !append) {
		u64 written = d->run.end_ns;

		in.from = max(base + overhead + o->write_disc, written) + o->reselect + o->prepare;
		m0 = max(m0, written);
		disk_catch_up(d, written);
		seg = disk_write_segment(d, lbn, end, &append);
		append = false;
	} else if (!append) {
		wait = disk_stop_ahead(d, t);
	}
	disk_forget(d, lbn, end, seg);
	if (o->extra_disc)
		in.least = in.from + least_blocks(n) * in.bt;
	else if (c->buffered && !fast)
		in.least = in.from + least_blocks(n) * in.bt;

	release = in.from + n * in.bt;
	if (!append) {
		u32 cyl = d->mech.cyl;

		disk_piece_go(d, &d->run.piece, lbn, m0 + wait, true, c->min_seek_delay);
		disk_count_seek(d, cyl);
		disk_segment_start(d, seg, lbn);
	}
	media = write_media(d, lbn, n, &in, append);
	release = max(release, in.from + n * in.bt);
	d->run.active = true;
	d->run.write = true;
	d->run.seg = (u8)seg;
	d->run.end_ns = media;
	d->run.caught_ns = HW_NEVER;
	disk_segment_state(d, seg, SEG_WRITING);
	disk_window(d, seg, end);
	disk_touch(d, seg);
	d->drive.stats.media_writes++;
	d->drive.stats.overhead_ns += overhead + o->write_done;

	d->bus_free = release;
	if (fast)
		io->done_ns = release + o->write_done;
	else if (extra)
		io->done_ns = max(media, release + o->xd_disc2) + o->reselect_other + o->write_done;
	else
		io->done_ns = max(media, release + o->write_disc) + o->reselect + o->write_done;
	d->decide_ns = c->preseek > 1 ? max(t, media) : io->done_ns;
	d->after = 1;
	d->last_seg = (u8)seg;
	d->last_write = true;
	d->last_end = end;
}
