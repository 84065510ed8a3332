// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * disk: the drive's own queue, and its life as a state machine.
 *
 * A request that needs the medium is queued; whenever the mechanism may be given away (decide_ns)
 * the next one is chosen, by arrival or by shortest positioning time, and everything about it is
 * worked out at once. With nothing queued the choice falls on the write-back cache. Hits and writes
 * that the cache takes are served beside that, where the drive can do so.
 */
#include "core/drive/disk/internal.h"
#include "core/drive/done.h"

static struct disk *disk_of(const struct hw_drive *d)
{
	return container_of(d, struct disk, drive);
}

/* Served from the buffer while the mechanism does something else. */
static void serve_beside(struct disk *d, struct hw_io *io, u64 t, u32 overhead, u32 block,
			 u32 completion)
{
	u64 out = max(t + d->o.command + overhead, d->side_free) + d->o.prepare +
		  (u64)io->sectors * block;

	d->side_free = out;
	d->drive.stats.transfer_ns += (u64)io->sectors * block;
	d->drive.stats.overhead_ns += d->o.command + overhead + completion;
	io->done_ns = out + completion;
	hw_done_add(&d->done, io);
}

static bool try_hit(struct disk *d, struct hw_io *io, u64 t)
{
	u64 end = io->sector + io->sectors;
	u64 have;
	u32 seg;

	disk_catch_up(d, t);
	if (disk_read_lookup(d, io->sector, end, &seg, &have) == HIT_FULL &&
	    (d->run.write || d->run.seg != seg || t >= d->run.since_ns))
		disk_touch(d, seg);
	else if (!disk_back_holds(d, io->sector, end))
		return false;
	d->drive.stats.cache_hits++;
	serve_beside(d, io, t, d->o.read_hit[d->after], d->cfg.bus_read, d->o.read_done);
	d->after = 0;
	return true;
}

static bool try_accept(struct disk *d, struct hw_io *io, u64 t)
{
	u64 end = io->sector + io->sectors;

	if (!disk_back_accept(d, io->sector, end))
		return false;
	disk_catch_up(d, t);
	disk_forget(d, io->sector, end, d->cfg.segments);
	serve_beside(d, io, t, d->o.write_hit[d->after], d->cfg.bus_write, d->o.write_done);
	d->after = 1;
	return true;
}

/* Requests that wait for the write-back cache: as many as can go on at t. */
static void admit_waiting(struct disk *d, u64 t)
{
	while (!list_empty(&d->waiting)) {
		struct hw_io *io = list_first_entry(&d->waiting, struct hw_io, link);
		bool done;

		list_del(&io->link);
		if (io->op == HW_WRITE) {
			done = try_accept(d, io, t);
		} else {
			done = !d->dirty_sectors;
			if (done)
				serve_beside(d, io, t, d->o.write_hit[d->after], 0,
					     d->o.write_done);
		}
		if (!done) {
			list_add(&io->link, &d->waiting);
			return;
		}
		d->nr_waiting--;
	}
}

/* What a request's waiting time takes off its positioning time, in units. */
static s64 aged(const struct disk *d, u64 waited)
{
	u64 ns = min_t(u64, div_u64(waited, 1000000) * d->cfg.age, 1ull << 39);

	return (s64)(ns * d->mech.ns_units);
}

/*
 * The first of the queue, which is sorted by angle, whose target is not less. It is as good as
 * random: no branch depends on it.
 */
static u32 first_at(const struct disk *d, u64 target)
{
	u32 lo = 0, n = d->nr_queued;

	for (; n > 1; n -= n / 2)
		lo += n / 2 & -(u32)(d->queue[lo + n / 2 - 1].target < target);
	return lo + (n && d->queue[lo].target < target);
}

static u32 index_of(const struct disk *d, const struct hw_io *io)
{
	u32 i = 0;

	while (d->queue[i].io != io)
		i++;
	return i;
}

/*
 * Index of the queued request to be served at t. They are looked at in the order in which they
 * pass under the heads, from now on: no positioning is shorter than that takes, and what the arm
 * cannot reach in time is left for the next revolution. So only the first few count. Of equals the
 * one that came first is taken.
 */
static u32 choose(struct disk *d, u64 t)
{
	const struct hw_io *oldest = list_first_entry(&d->queued, struct hw_io, link);
	struct disk_mech *m = &d->mech;
	const struct disk_slot *s, *end = d->queue + d->nr_queued, *best = end;
	u64 phase, ahead, from, slack = m->slack;
	s64 bound = 0, latest = S64_MAX, off = 0, most = 0, cost; /* with the slack */

	if (d->nr_queued == 1)
		return 0;
	if (d->cfg.policy == QUEUE_FIFO || t > oldest->submit_ns + d->cfg.max_wait)
		return index_of(d, oldest);
	phase = disk_phase(m, t);
	if (d->cfg.age)
		most = aged(d, t - oldest->submit_ns);
	from = slack - phase;
	for (s = d->queue + first_at(d, phase > slack ? phase - slack : 0);; s++) {
		if (s == end) {
			s = d->queue;
			from += m->rev_units;
		}
		ahead = s->target + from;
		if ((s64)ahead > latest)
			return (u32)(best - d->queue);
		if (disk_least_move(m, s->cyl) > ahead)
			continue;
		if (d->cfg.age)
			off = aged(d, t - s->io->submit_ns);
		cost = (s64)(slack + disk_positioning(m, phase, s->cyl, s->head, s->target,
						      s->io->op == HW_WRITE)) -
		       off;
		if (best == end || cost < bound ||
		    (cost == bound && (s32)(s->number - best->number) < 0)) {
			bound = cost;
			latest = bound + most;
			best = s;
		}
	}
}

static void serve(struct disk *d, u64 t)
{
	u32 i = choose(d, t);
	struct hw_io *io = d->queue[i].io;

	list_del(&io->link);
	d->layout.known_lbn = io->sector;
	d->layout.known = d->places[io->place];
	d->nr_queued--;
	d->unplaced[d->cfg.depth - 1 - d->nr_queued] = (u32)io->place;
	if (i < d->nr_queued)
		memmove(&d->queue[i], &d->queue[i + 1], (d->nr_queued - i) * sizeof(d->queue[0]));
	if (io->op == HW_READ) {
		disk_read(d, io, t);
	} else {
		disk_back_drop(d, io->sector, io->sector + io->sectors);
		disk_write(d, io, t);
	}
	d->head_lbn = io->sector + io->sectors;
	d->destage_ns = io->done_ns + d->cfg.back_idle;
	hw_done_add(&d->done, io);
}

/*
 * The write-back cache presses when it is three quarters full or somebody waits for it, until it is
 * half empty, or quite empty if nobody wants the mechanism (a stream of writes then flows at the
 * medium's rate). Time t is when that may have begun.
 */
static bool pressing(struct disk *d, u64 t)
{
	u64 limit = d->cfg.back_limit;

	if (d->nr_waiting || d->dirty_sectors > limit / 4 * 3 || list_empty(&d->unused))
		d->press_ns = min(d->press_ns, t);
	else if (!d->dirty_sectors || (d->nr_queued && d->dirty_sectors < limit / 2 &&
				       d->nr_extents < d->max_extents / 2))
		d->press_ns = HW_NEVER;
	return d->press_ns != HW_NEVER;
}

/*
 * Whose turn is it at t, a request's or the write-back cache's? One that presses gets every second
 * turn, as long as two revolutions, so that ranges that lie close together go out together.
 */
static bool destage_now(struct disk *d, u64 t)
{
	if (!d->dirty_sectors || !pressing(d, t))
		return false;
	if (d->turn_ends == HW_NEVER)
		d->turn_ends = t + 2 * d->mech.rev_ns;
	return t < d->turn_ends;
}

static noinline void decide(struct disk *d, u64 now)
{
	while (d->decide_ns <= now) {
		u64 t = d->decide_ns;

		if (d->nr_waiting)
			admit_waiting(
				d,
				max(t,
				    list_first_entry(&d->waiting, struct hw_io, link)->submit_ns));
		if (d->nr_queued) {
			t = max(t, list_first_entry(&d->queued, struct hw_io, link)->submit_ns);
			if (!destage_now(d, t)) {
				d->turn_ends = HW_NEVER;
				serve(d, t);
				continue;
			}
		} else {
			if (!d->dirty_sectors) {
				d->press_ns = HW_NEVER;
				return;
			}
			t = max(t, pressing(d, d->asked_ns) ? d->press_ns : d->destage_ns);
			if (t > now)
				return;
		}
		d->destaged_ns = disk_back_destage(d, t);
		d->decide_ns = d->destaged_ns;
	}
}

/* Everything that the drive decides up to and including `now`. */
static inline void advance(struct disk *d, u64 now)
{
	if (d->decide_ns <= now)
		decide(d, now);
}

static void enqueue(struct disk *d, struct hw_io *io)
{
	u32 place = d->unplaced[d->cfg.depth - 1 - d->nr_queued];
	struct disk_place *at = &d->places[place];
	struct disk_slot *s;
	u64 target;
	u32 i;

	disk_locate(&d->layout, io->sector, at);
	target = disk_target(&d->layout, &d->mech, at->zone, at->angle);
	i = first_at(d, target);
	s = &d->queue[i];
	memmove(s + 1, s, (d->nr_queued++ - i) * sizeof(*s));
	*s = (struct disk_slot){ io, target, at->cyl, at->head, d->arrivals++ };
	io->place = place;
	list_add_tail(&io->link, &d->queued);
}

static void disk_submit(struct hw_drive *drive, struct hw_io *io, u64 now)
{
	struct disk *d = disk_of(drive);
	bool back = d->cfg.write_mode == WRITE_BACK, busy;

	advance(d, now);
	io->submit_ns = now;
	d->asked_ns = now;
	d->destage_ns = now + d->cfg.back_idle;
	if (!d->nr_out++)
		d->busy_since = now;
	busy = d->decide_ns > now || d->nr_queued;
	if (io->op == HW_READ && io->sectors) {
		if (((busy && d->cfg.concurrent) || d->dirty_sectors) && try_hit(d, io, now))
			return;
		enqueue(d, io);
	} else if (io->op == HW_WRITE && io->sectors) {
		if (!back || io->flags & HW_IO_FUA || io->sectors > d->cfg.back_limit) {
			enqueue(d, io);
		} else if (d->nr_waiting || !try_accept(d, io, now)) {
			list_add_tail(&io->link, &d->waiting);
			d->nr_waiting++;
		}
	} else if (back && d->dirty_sectors && io->op == HW_OTHER) {
		list_add_tail(&io->link, &d->waiting);
		d->nr_waiting++;
	} else {
		u64 t = d->run.active && d->run.write ? max(now, d->run.end_ns) : now;

		if (io->op == HW_OTHER) /* the last of the cache may be on its way */
			t = max(t, d->destaged_ns);
		serve_beside(d, io, t, d->o.write_hit[d->after], 0, d->o.write_done);
	}
	advance(d, now);
}

static struct hw_io *disk_poll(struct hw_drive *drive, u64 now)
{
	struct disk *d = disk_of(drive);
	struct hw_io *io;

	advance(d, now);
	io = hw_done_take(&d->done, now);
	if (io && !--d->nr_out)
		drive->stats.busy_ns += io->done_ns - d->busy_since;
	return io;
}

static u64 disk_next(const struct hw_drive *drive)
{
	const struct disk *d = disk_of(drive);
	u64 next = hw_done_next(&d->done);

	if (d->nr_queued || d->nr_waiting)
		next = min(next, d->decide_ns);
	return next;
}

/* Memory: the drive, then its lists, each aligned. */
struct parts {
	size_t zones, slips, defects, seek, seek_write, segs, queue, places, unplaced, extents, end;
};

static size_t take(size_t *at, u64 n, size_t each)
{
	size_t here = *at;

	*at = hw_align16(here + (size_t)n * each);
	return here;
}

static u32 rows(const struct hw_profile *p, u32 param)
{
	u32 n;

	hw_profile_list(p, param, &n);
	return n;
}

static u32 depth_of(const struct hw_profile *p, u32 depth)
{
	return depth ? depth : (u32)p->value[DP_Q_DEPTH];
}

static struct parts parts_of(const struct hw_profile *p, u32 depth)
{
	size_t at = hw_align16(sizeof(struct disk));
	struct parts x;

	x.zones = take(&at, rows(p, DP_ZONES), sizeof(struct disk_zone));
	x.slips = take(&at, rows(p, DP_SLIPS), sizeof(u64));
	x.defects = take(&at, rows(p, DP_DEFECTS), 2 * sizeof(u64));
	x.seek = take(&at, disk_curve_points(p, DP_SEEK), sizeof(struct disk_point));
	x.seek_write = take(&at, disk_curve_points(p, DP_SEEK_WRITE), sizeof(struct disk_point));
	x.segs = take(&at, (u64)p->value[DP_C_SEGMENTS], sizeof(struct disk_segment));
	x.queue = take(&at, depth_of(p, depth), sizeof(struct disk_slot));
	x.places = take(&at, depth_of(p, depth), sizeof(struct disk_place));
	x.unplaced = take(&at, depth_of(p, depth), sizeof(u32));
	x.extents = take(&at, p->value[DP_W_MODE] == WRITE_BACK ? (u64)p->value[DP_W_EXTENTS] : 0,
			 sizeof(struct disk_extent));
	x.end = at;
	return x;
}

static size_t disk_size(const struct hw_profile *p, u32 depth)
{
	return parts_of(p, depth).end;
}

static void read_overheads(struct disk_overheads *o, const s64 *v)
{
	o->command = (u32)v[DP_O_COMMAND];
	o->read_hit[0] = (u32)v[DP_O_READ_HIT_R];
	o->read_hit[1] = (u32)v[DP_O_READ_HIT_W];
	o->read_miss[0] = (u32)v[DP_O_READ_MISS_R];
	o->read_miss[1] = (u32)v[DP_O_READ_MISS_W];
	o->write_hit[0] = (u32)v[DP_O_WRITE_HIT_R];
	o->write_hit[1] = (u32)v[DP_O_WRITE_HIT_W];
	o->write_miss[0] = (u32)v[DP_O_WRITE_MISS_R];
	o->write_miss[1] = (u32)v[DP_O_WRITE_MISS_W];
	o->read_done = (u32)v[DP_O_READ_DONE];
	o->write_done = (u32)v[DP_O_WRITE_DONE];
	o->prepare = (u32)v[DP_O_PREPARE];
	o->reselect = (u32)v[DP_O_RESELECT];
	o->reselect_other = (u32)v[DP_O_RESELECT_OTHER];
	o->read_disc[0] = (u32)v[DP_O_READ_DISC_R];
	o->read_disc[1] = (u32)v[DP_O_READ_DISC_W];
	o->write_disc = (u32)v[DP_O_WRITE_DISC];
	o->extra_disc = v[DP_XD_ENABLE];
	o->xd_command = (u32)v[DP_XD_COMMAND];
	o->xd_disc = (u32)v[DP_XD_DISCONNECT];
	o->xd_delay = (u32)v[DP_XD_DELAY];
	o->xd_disc2 = (u32)v[DP_XD_DISCONNECT2];
	o->xd_seek = (u32)v[DP_XD_SEEK];
}

static void read_config(struct disk_cfg *c, const s64 *v)
{
	c->bus_read = (u32)v[DP_BUS_READ];
	c->bus_write = (u32)v[DP_BUS_WRITE];
	c->min_seek_delay = (u32)v[DP_MIN_SEEK_DELAY];
	c->segment = (u32)v[DP_C_SEGMENT];
	c->ahead_max = (u32)v[DP_RA_MAX];
	c->ahead_min = (u32)v[DP_RA_MIN];
	c->read_mark = (u32)v[DP_C_READ_MARK];
	c->write_mark = (u32)v[DP_C_WRITE_MARK];
	c->back_limit = (u64)v[DP_W_LIMIT];
	c->back_idle = (u64)v[DP_W_IDLE];
	c->max_wait = (u64)v[DP_Q_MAX_WAIT];
	c->age = (u32)v[DP_Q_AGE];
	c->segments = (u8)v[DP_C_SEGMENTS];
	c->separate = (u8)v[DP_C_SEPARATE];
	c->ahead = (u8)v[DP_RA_MODE];
	c->over = (u8)v[DP_RA_OVER];
	c->write_mode = (u8)v[DP_W_MODE];
	c->policy = (u8)v[DP_Q_POLICY];
	c->preseek = (u8)v[DP_Q_PRESEEK];
	c->cache = v[DP_C_ENABLE];
	c->written_hits = v[DP_C_WRITTEN];
	c->almost = v[DP_C_ALMOST];
	c->partial = v[DP_C_PARTIAL];
	c->concurrent = v[DP_C_CONCURRENT];
	c->mark_by_request = v[DP_C_READ_MARK_REQ];
	c->direct = v[DP_C_DIRECT];
	c->hold_read = v[DP_BUS_HOLD_READ];
	c->hold_write = v[DP_BUS_HOLD_WRITE];
	c->never_disc = v[DP_BUS_NEVER_DISC];
	c->idle_hit = v[DP_RA_IDLE_HIT];
	c->stop_in_sector = v[DP_RA_STOP];
	c->arrival = v[DP_RA_ARRIVAL];
	c->sequential = v[DP_RA_SEQUENTIAL];
	c->combine = v[DP_W_COMBINE];
	c->buffered = v[DP_W_BUFFERED];
	c->zero_latency = v[DP_W_ZERO_LATENCY];
}

static void disk_create(void *mem, const struct hw_profile *p, u32 depth)
{
	struct parts x = parts_of(p, depth);
	struct disk *d = mem;
	u32 i;

	d->layout.zones = mem + x.zones;
	d->layout.slips = mem + x.slips;
	d->layout.defects = mem + x.defects;
	d->mech.read.points = mem + x.seek;
	d->mech.write.points = mem + x.seek_write;
	d->segs = mem + x.segs;
	d->queue = mem + x.queue;
	d->places = mem + x.places;
	d->unplaced = mem + x.unplaced;
	disk_layout_create(&d->layout, p);
	disk_mech_create(&d->mech, p);
	for (i = 0; i < d->layout.nr_zones; i++) {
		struct disk_zone *z = &d->layout.zones[i];
		u64 per = d->mech.ns_units * z->spt;

		z->sector_fp = div64_u64((d->mech.rev_units << DISK_FP) + per - 1, per);
	}
	read_overheads(&d->o, p->value);
	read_config(&d->cfg, p->value);
	d->cfg.depth = depth_of(p, depth);
	for (i = 0; i < d->cfg.depth; i++)
		d->unplaced[i] = i;
	INIT_LIST_HEAD(&d->done);
	INIT_LIST_HEAD(&d->recent);
	for (i = d->cfg.separate; i < d->cfg.segments; i++)
		list_add_tail(&d->segs[i].link, &d->recent);
	d->nr_empty = d->cfg.segments - d->cfg.separate;
	while (d->cfg.segment > 1u << d->stretch_shift)
		d->stretch_shift++;
	d->begun[0] = d->cfg.segments; /* nothing is in them yet */
	INIT_LIST_HEAD(&d->queued);
	INIT_LIST_HEAD(&d->waiting);
	INIT_LIST_HEAD(&d->unused);
	d->turn_ends = HW_NEVER;
	d->press_ns = HW_NEVER;
	d->dirty = RB_ROOT;
	if (d->cfg.write_mode == WRITE_BACK) {
		struct disk_extent *e = mem + x.extents;

		d->max_extents = (u32)p->value[DP_W_EXTENTS];
		for (i = 0; i < d->max_extents; i++)
			list_add_tail(&e[i].link, &d->unused);
	}
	d->drive.rotational = true;
	d->drive.write_cache = d->cfg.write_mode != WRITE_THROUGH;
	d->drive.depth = d->cfg.depth;
	d->drive.sectors = p->value[DP_SECTORS] ? (u64)p->value[DP_SECTORS] : d->layout.sectors;
	d->layout.sectors = d->drive.sectors;
}

static bool disk_where(const struct hw_drive *drive, u64 lbn, struct hw_drive_place *out)
{
	const struct disk *d = disk_of(drive);
	struct disk_place at;

	disk_locate(&d->layout, lbn, &at);
	*out = (struct hw_drive_place){ at.zone,   at.cyl,   at.head,
					at.sector, at.angle, d->layout.zones[at.zone].spt,
					at.run };
	return true;
}

/* Distances in cylinders grow by a constant factor; a sector on the way costs half a revolution. */
static u32 disk_positions(const struct hw_drive *drive, s64 (*row)[2])
{
	const struct disk *d = disk_of(drive);
	const struct disk_zone *last = &d->layout.zones[d->layout.nr_zones - 1];
	u32 cyls = last->cyl + last->cyls, i, n = 2;
	u64 each = div_u64(d->layout.sectors + cyls - 1, cyls), distance = 1;

	row[0][0] = 0;
	row[0][1] = 0;
	row[1][0] = 1;
	row[1][1] = (s64)d->mech.rev_ns / 2;
	for (i = 2; i < HW_POSITION_POINTS && distance < cyls; i++) {
		/* On a drive with hardly a sector a cylinder, too, they increase. */
		row[i][0] = max((s64)(distance * each), row[i - 1][0] + 1);
		row[i][1] = (s64)(disk_seek(&d->mech, (u32)distance, false) + d->mech.rev_ns / 2);
		distance = max(distance + 1, div_u64(distance * 17, 10));
		n = i + 1;
	}
	return n;
}

const struct hw_drive_model hw_disk_model = {
	.name = "disk",
	.summary =
		"a rotating drive: zones, seek curve, rotational position, buffer, command queue",
	.params = disk_params,
	.nr_params = DP_NR,
	.check = disk_check,
	.size = disk_size,
	.create = disk_create,
	.positions = disk_positions,
	.locate = disk_where,
	.submit = disk_submit,
	.poll = disk_poll,
	.next = disk_next,
};
