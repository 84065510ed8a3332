// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The arm and the platter.
 *
 * Moving to another track takes the longer of the seek and the head switch, plus the settling of a
 * write (which may be negative where a write needs less than the curve's reads). The platter turns
 * without error; its phase is 0 at time 0.
 */
#include "core/drive/disk/internal.h"

#define SLOPE_FP  24
#define RPM_SCALE 100u
#define STEEPEST  (1ll << 40) /* 65 us a cylinder: over any distance within 63 bits */

/* Points that a curve needs: those of the list, (0, 0) in front, none twice. */
u32 disk_curve_points(const struct hw_profile *p, u32 param)
{
	u32 n;

	hw_profile_list(p, param, &n);
	return n + 1;
}

static void curve_create(struct disk_curve *c, const s64 *rows, u32 n)
{
	struct disk_point *pt = c->points;
	u32 i, b, last;

	c->nr = 0;
	pt[c->nr++] = (struct disk_point){ 0, 0, 0 };
	for (i = 0; i < n; i++, rows += 2)
		pt[c->nr++] = (struct disk_point){ (u32)rows[0], (s32)rows[1], 0 };
	for (i = 0; i + 1 < c->nr; i++)
		pt[i].slope = div_s64((s64)(pt[i + 1].ns - pt[i].ns) * (1 << SLOPE_FP),
				      (s32)(pt[i + 1].distance - pt[i].distance));
	if (c->nr > 1)
		pt[c->nr - 1].slope = clamp_t(s64, pt[c->nr - 2].slope, -STEEPEST, STEEPEST);
	last = pt[c->nr - 1].distance;
	c->shift = 0;
	while (last >> c->shift > 255)
		c->shift++;
	for (i = 0, b = 0; b < ARRAY_SIZE(c->bucket); b++) {
		while (i + 1 < c->nr && pt[i + 1].distance <= (u64)b << c->shift)
			i++;
		c->bucket[b] = (u16)i;
	}
}

/* For reads and writes alike: the lower of both curves, less what a write may need less. */
static void set_least(struct disk_mech *m)
{
	const struct disk_curve *r = &m->read, *w = &m->write;
	s64 less = min_t(s64, m->settle, 0), ns = S32_MAX;
	u32 i = r->nr, k = w->nr, b;

	if (r->points[i - 1].slope < 0 || w->points[k - 1].slope < 0 || r->shift != w->shift)
		return; /* all 0: no help, no harm */
	for (b = ARRAY_SIZE(m->least_units); b-- > 0;) {
		for (; i > r->bucket[b]; i--)
			ns = min_t(s64, ns, r->points[i - 1].ns);
		for (; k > w->bucket[b]; k--)
			ns = min_t(s64, ns, w->points[k - 1].ns);
		m->least_units[b] = ns + less > 0 ? (u64)(ns + less) * m->ns_units : 0;
	}
}

static u64 gcd(u64 a, u64 b)
{
	while (b) {
		u64 r;

		div64_u64_rem(a, b, &r);
		a = b;
		b = r;
	}
	return a;
}

void disk_mech_create(struct disk_mech *m, const struct hw_profile *p)
{
	u64 minute = 60ull * HW_NSEC_PER_SEC * RPM_SCALE, rpm = (u64)p->value[DP_RPM],
	    g = gcd(minute, rpm);
	const s64 *rows;
	u32 n;

	m->rev_units = div64_u64(minute, g);
	m->ns_units = div64_u64(rpm, g);
	m->rev_ns = div64_u64(m->rev_units + m->ns_units - 1, m->ns_units);
	m->slack = 2 * m->ns_units;
	m->settle = p->value[DP_WRITE_SETTLE];
	m->head_switch = (u32)p->value[DP_HEAD_SWITCH];
	m->after_write = p->value[DP_SWITCH_WRITTEN] ? m->head_switch : 0;
	rows = hw_profile_list(p, DP_SEEK, &n);
	curve_create(&m->read, rows, n);
	rows = hw_profile_list(p, DP_SEEK_WRITE, &n);
	if (n)
		curve_create(&m->write, rows, n);
	else
		m->write = m->read;
	set_least(m);
}

static u64 mod(u64 a, u64 b)
{
	u64 r;

	div64_u64_rem(a, b, &r);
	return r;
}

/* In units, 0 .. rev_units - 1. Times need not increase, but are cheap only near the last one. */
u64 disk_phase(struct disk_mech *m, u64 t)
{
	u64 u;

	if (t >= m->ref_ns && t - m->ref_ns < HW_NSEC_PER_SEC) {
		u = m->ref_units + (t - m->ref_ns) * m->ns_units;
	} else {
		/*
		 * rev_units ns are whole revolutions; of the rest (< 2^43), the upper half first,
		 * so that nothing overflows
		 */
		u = mod(t, m->rev_units);
		u = mod(mod((u >> 21) * m->ns_units, m->rev_units) << 21, m->rev_units) +
		    (u & ((1u << 21) - 1)) * m->ns_units;
	}
	m->ref_ns = t;
	m->ref_units = mod(u, m->rev_units);
	return m->ref_units;
}

/*
 * How long until `target` passes. Times are rounded to the ns, so a head that is late by less than
 * two is in time: otherwise a sector that follows another without a gap would be lost to rounding.
 * It then has begun just before (-2..0), so that roundings do not add up either.
 */
s64 disk_latency(struct disk_mech *m, u64 t, u64 target)
{
	u64 phase = disk_phase(m, t), slack = m->slack, ahead;

	ahead = target + slack;
	if (ahead < phase)
		ahead += m->rev_units;
	ahead -= phase;
	if (ahead >= m->rev_units)
		ahead -= m->rev_units;
	return (s64)div64_u64(ahead + m->ns_units - 1, m->ns_units) - 2;
}

u64 disk_seek(const struct disk_mech *m, u32 distance, bool write)
{
	const struct disk_curve *c = write ? &m->write : &m->read;
	const struct disk_point *pt;
	u32 lo, hi, b = distance >> c->shift;
	s64 ns;

	if (!distance)
		return 0;
	if (b > 256)
		b = 256;
	lo = c->bucket[b];
	hi = c->bucket[b + 1];
	while (hi - lo > 1) {
		u32 mid = (lo + hi) / 2;

		if (c->points[mid].distance <= distance)
			lo = mid;
		else
			hi = mid;
	}
	/* Mostly nothing but this is left, and is as good as random: no branch. */
	lo += (hi - lo) & (c->points[hi].distance <= distance);
	pt = &c->points[lo];
	ns = pt->ns + (((s64)(distance - pt->distance) * pt->slope) >> SLOPE_FP);
	return ns > 0 ? (u64)ns : 0;
}

u64 disk_move(const struct disk_mech *m, u32 cyl, u32 head, bool write)
{
	u64 ns = disk_seek(m, cyl > m->cyl ? cyl - m->cyl : m->cyl - cyl, write);
	s64 settled;

	if (head != m->head)
		ns = max_t(u64, ns, m->head_switch);
	if (m->wrote && !write)
		ns = max_t(u64, ns, m->after_write);
	if (!write || !ns)
		return ns;
	settled = (s64)ns + m->settle;
	return settled > 0 ? (u64)settled : 0;
}

/* Move to the piece that starts at lbn, from t on, and wait for its first sector. */
void disk_piece_go(struct disk *d, struct disk_piece *piece, u64 lbn, u64 t, bool write,
		   u64 min_move)
{
	struct disk_mech *m = &d->mech;
	struct disk_place at;

	disk_locate(&d->layout, lbn, &at);
	piece->lbn = lbn;
	piece->count = at.run;
	piece->zone = at.zone;
	piece->cyl = at.cyl;
	piece->head = at.head;
	piece->angle = at.angle;
	piece->sector_fp = d->layout.zones[at.zone].sector_fp;
	piece->depart_ns = t;
	piece->arrive_ns = t + max(disk_move(m, at.cyl, at.head, write), min_move);
	piece->start_ns =
		piece->arrive_ns + (u64)disk_latency(m, piece->arrive_ns,
						     disk_target(&d->layout, m, at.zone, at.angle));
	m->cyl = at.cyl;
	m->head = at.head;
	m->wrote = write;
}

/* An access that began with the arm at @from has moved it, unless it stayed there. */
void disk_count_seek(struct disk *d, u32 from)
{
	u32 to = d->mech.cyl;

	if (from == to)
		return;
	d->drive.stats.seeks++;
	d->drive.stats.seek_cylinders += from > to ? from - to : to - from;
}
