// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where a block lies: LBN -> zone -> place -> track and sector -> angle.
 *
 * A zone is a row of physical places in the order in which the heads pass them. Spares take a part
 * of every period (track, cylinder, range of cylinders, zone); what is left are its usable places.
 * Slips skip single places: either they are absorbed by the spares of their own period (`local`),
 * or they push everything behind them on. Whole-track sparing is the same with a track for a place.
 * So all schemes are one arithmetic with different periods; the figures of a scheme are set once in
 * disk_layout_create(). Source: layout g1 of DiskSim 4.0, but for two points where we
 * follow the platter: slips are sorted (a list out of order means the same set of bad places), and
 * a slipped sector passes under the head and so takes its time.
 */
#include "core/drive/disk/internal.h"

static u32 zone_period(const struct hw_profile *p, const s64 *row, u64 *period, u64 *spares)
{
	u64 spt = (u64)row[ZC_SPT], cyl = spt * (u64)p->value[DP_SURFACES];
	u64 cyls = (u64)(row[ZC_LAST] - row[ZC_FIRST] + 1);

	*spares = (u64)row[ZC_SPARES];
	*period = cyl * cyls;
	switch (p->value[DP_SPARING]) {
	case SPARE_ZONE_TRACKS:
		*period = cyls * (u64)p->value[DP_SURFACES];
		return (u32)spt;
	case SPARE_CYLINDER:
	case SPARE_CYLINDER_PUSH:
	case SPARE_CYLINDER_FRONT:
	case SPARE_CYLINDER_FRONT_PUSH:
		*period = cyl;
		break;
	case SPARE_TRACK:
		*period = spt;
		break;
	case SPARE_RANGE:
		*period = cyl * (u64)p->value[DP_SPARE_RANGE];
		break;
	case SPARE_NONE:
	case SPARE_DISK:
		*spares = 0;
		break;
	}
	return 1;
}

/* LBNs that a zone holds; 0 if spares and reserve leave none. */
u64 disk_zone_lbns(const struct hw_profile *p, const s64 *row, u64 slips)
{
	u64 period, spares, total, lost;
	u32 unit = zone_period(p, row, &period, &spares);
	u64 cyls = (u64)(row[ZC_LAST] - row[ZC_FIRST] + 1);

	total = cyls * (u64)p->value[DP_SURFACES] * (u64)row[ZC_SPT];
	if (spares >= period)
		return 0;
	switch (p->value[DP_SPARING]) {
	case SPARE_ZONE_TRACKS:
	case SPARE_ZONE:
	case SPARE_ZONE_PUSH:
		lost = max(spares, p->value[DP_SPARING] == SPARE_ZONE_PUSH ? 0 : slips) * unit;
		break;
	case SPARE_NONE:
		lost = slips;
		break;
	case SPARE_DISK:
		lost = 0;
		break;
	default:
		lost = spares * div64_u64(total, period);
	}
	if (p->value[DP_SPARING] == SPARE_CYLINDER_PUSH ||
	    p->value[DP_SPARING] == SPARE_CYLINDER_FRONT_PUSH ||
	    p->value[DP_SPARING] == SPARE_DISK || p->value[DP_SPARING] == SPARE_ZONE_PUSH)
		lost += slips;
	lost += (u64)row[ZC_FRONT];
	return total > lost ? total - lost : 0;
}

/* A physical place as a usable one; U64_MAX for one among the spares. */
static u64 usable_place(const struct disk_zone *z, u64 place)
{
	u64 off, g = div64_u64_rem(place, z->period, &off);

	if (off < z->lead || off - z->lead >= z->usable)
		return U64_MAX;
	return g * z->usable + off - z->lead;
}

static void sort_u64(u64 *a, u32 n, u32 stride)
{
	u32 i, j, k;

	for (i = 1; i < n; i++) {
		for (j = i; j > 0 && a[j * stride] < a[(j - 1) * stride]; j--) {
			for (k = 0; k < stride; k++)
				swap(a[j * stride + k], a[(j - 1) * stride + k]);
		}
	}
}

static u32 collect_slips(struct disk_layout *l, struct disk_zone *z, const s64 *rows, u32 n,
			 u32 zone, u32 at)
{
	u32 i, first = at;

	for (i = 0; i < n; i++, rows += 2) {
		u64 place = (u64)rows[1];

		if ((u32)rows[0] != zone)
			continue;
		if (!z->local)
			place = usable_place(z, place);
		if (place != U64_MAX)
			l->slips[at++] = place;
	}
	sort_u64(l->slips + first, at - first, 1);
	z->slip = first;
	z->slips = at - first;
	return at;
}

static u32 collect_defects(struct disk_layout *l, struct disk_zone *z, const s64 *rows, u32 n,
			   u32 zone, u32 at)
{
	u32 i, first = at;

	for (i = 0; i < n; i++, rows += 3) {
		if ((u32)rows[0] != zone)
			continue;
		l->defects[2 * at] = (u64)rows[1];
		l->defects[2 * at + 1] = (u64)rows[2];
		at++;
	}
	sort_u64(l->defects + 2 * first, at - first, 2);
	z->defect = first;
	z->defects = at - first;
	return at;
}

static u64 zone_slips(const s64 *slips, u32 n, u32 zone)
{
	u64 count = 0;
	u32 i;

	for (i = 0; i < n; i++)
		count += (u32)slips[2 * i] == zone;
	return count;
}

/* zones, slips and defects point to memory that is large enough. */
void disk_layout_create(struct disk_layout *l, const struct hw_profile *p)
{
	u32 i, zone, nr_zones, nr_slips, nr_defects, slip = 0, defect = 0;
	const s64 *rows = hw_profile_list(p, DP_ZONES, &nr_zones);
	const s64 *slips = hw_profile_list(p, DP_SLIPS, &nr_slips);
	const s64 *defects = hw_profile_list(p, DP_DEFECTS, &nr_defects);
	s64 sparing = p->value[DP_SPARING];
	u64 lbn = 0, spares;

	l->nr_zones = nr_zones;
	l->surfaces = (u32)p->value[DP_SURFACES];
	l->band = (u32)p->value[DP_BAND];
	l->mapping = (u8)p->value[DP_MAPPING];
	for (i = 0; i < nr_zones; i++, rows += ZC_NR) {
		struct disk_zone *z = &l->zones[i];

		z->unit = zone_period(p, rows, &z->period, &spares);
		z->usable = z->period - spares;
		z->lead = sparing == SPARE_CYLINDER_FRONT || sparing == SPARE_CYLINDER_FRONT_PUSH ?
				  (u32)spares :
				  0;
		z->local = sparing == SPARE_CYLINDER || sparing == SPARE_CYLINDER_FRONT ||
			   sparing == SPARE_TRACK || sparing == SPARE_RANGE;
		z->shifting = sparing >= SPARE_CYLINDER && sparing <= SPARE_CYLINDER_FRONT_PUSH;
		if (sparing == SPARE_ZONE || sparing == SPARE_ZONE_PUSH ||
		    sparing == SPARE_ZONE_TRACKS)
			z->usable = z->period; /* at the zone's end: slips run into them */
		z->cyl = (u32)rows[ZC_FIRST];
		z->cyls = (u32)(rows[ZC_LAST] - rows[ZC_FIRST] + 1);
		z->spt = (u32)rows[ZC_SPT];
		z->places = (u64)z->cyls * l->surfaces * (z->unit > 1 ? 1 : z->spt);
		z->offset = (u32)rows[ZC_OFFSET];
		z->track_skew = (u32)rows[ZC_TRACK_SKEW];
		z->cyl_skew = (u32)rows[ZC_CYL_SKEW];
		z->front = (u64)rows[ZC_FRONT];
		z->lbn = lbn;
		z->lbns = disk_zone_lbns(p, rows, zone_slips(slips, nr_slips, i));
		slip = collect_slips(l, z, slips, nr_slips, i, slip);
		defect = collect_defects(l, z, defects, nr_defects, i, defect);
		lbn += z->lbns;
	}
	l->sectors = lbn;
	while (lbn >> l->part_shift >= DISK_PARTS)
		l->part_shift++;
	for (i = 0, zone = 0; i <= DISK_PARTS; i++) {
		while (zone + 1 < nr_zones && l->zones[zone + 1].lbn <= (u64)i << l->part_shift)
			zone++;
		l->part[i] = (u16)zone;
	}
	l->known_lbn = U64_MAX;
}

/* The first of n sorted slips that is above x when the ones before it have pushed x on. */
static u32 slips_before(const u64 *slips, u32 n, u64 x)
{
	u32 lo = 0, hi = n;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (slips[mid] - mid <= x)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* How many of n sorted values lie below v. */
static u32 count_below(const u64 *a, u32 n, u32 stride, u64 v)
{
	u32 lo = 0, hi = n;

	while (lo < hi) {
		u32 mid = (lo + hi) / 2;

		if (a[mid * stride] < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Usable index x of a zone -> physical place; *run = places from there on that follow each other.
 */
static u64 place_of(const struct disk_layout *l, const struct disk_zone *z, u64 x, u64 *run)
{
	const u64 *slips = l->slips + z->slip;
	u64 g, y, base;
	u32 k, n, first;

	if (!z->local) {
		n = z->slips;
		k = n ? slips_before(slips, n, x) : 0;
		y = x + k;
		*run = k < n ? slips[k] - y : U64_MAX;
		if (z->usable == z->places)
			return y;
		g = div64_u64_rem(y, z->usable, &y);
		*run = min(*run, z->usable - y);
		return g * z->period + z->lead + y;
	}
	g = div64_u64_rem(x, z->usable, &y);
	base = g * z->period;
	*run = z->usable - y;
	first = count_below(slips, z->slips, 1, base);
	n = count_below(slips, z->slips, 1, base + z->period) - first;
	slips += first;
	y += z->lead > n ? z->lead - n : 0; /* spares in front are taken from their end on */
	for (k = 0; k < n && slips[k] <= base + y + k; k++)
		;
	if (k < n)
		*run = min(*run, slips[k] - base - y - k);
	return base + y + k;
}

/* Usable places in front of a physical one. */
static u64 index_of(const struct disk_layout *l, const struct disk_zone *z, u64 place)
{
	const u64 *slips = l->slips + z->slip;
	u64 off, g, y, base;
	u32 before, n;

	if (z->usable == z->places && !z->local)
		return place - count_below(slips, z->slips, 1, place);
	g = div64_u64_rem(place, z->period, &off);
	if (!z->local) {
		y = off > z->lead ? off - z->lead : 0;
		y = g * z->usable + min(y, z->usable);
		return y - count_below(slips, z->slips, 1, y);
	}
	base = g * z->period;
	before = count_below(slips, z->slips, 1, base);
	n = count_below(slips, z->slips, 1, base + z->period) - before;
	y = off - (count_below(slips, z->slips, 1, place) - before);
	off = z->lead > n ? z->lead - n : 0;
	y = y > off ? y - off : 0;
	return g * z->usable + min(y, z->usable);
}

static u32 find_zone(const struct disk_layout *l, u64 lbn)
{
	u32 part = (u32)min_t(u64, lbn >> l->part_shift, DISK_PARTS - 1);
	u32 lo = l->part[part], hi = l->part[part + 1];

	while (lo < hi) {
		u32 mid = (lo + hi + 1) / 2;

		if (l->zones[mid].lbn <= lbn)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

/*
 * A track's cylinder and head; how many head changes (not cylinder changes) lie in front of it in
 * its zone.
 */
static u64 track_place(const struct disk_layout *l, const struct disk_zone *z, u64 track, u32 *cyl,
		       u32 *head)
{
	u32 in, h, c;

	if (l->mapping >= MAP_BAND) {
		bool back;

		u32 band = (u32)div_u64_rem(track, l->surfaces * l->band, &in);
		u32 width = min(l->band, z->cyls - band * l->band);

		h = in / width;
		c = in % width;
		*cyl = z->cyl + band * l->band + (h & 1 ? width - 1 - c : c);
		back = l->mapping == MAP_BAND_SERPENTINE && band & 1;
		*head = back ? l->surfaces - 1 - h : h;
		return (u64)band * (l->surfaces - (l->mapping == MAP_BAND_SERPENTINE)) + h;
	}
	c = (u32)div_u64_rem(track, l->surfaces, &h);
	*cyl = z->cyl + c;
	*head = h;
	if ((l->mapping == MAP_SERPENTINE && c & 1) ||
	    (l->mapping == MAP_SERPENTINE_ABSOLUTE && *cyl & 1))
		*head = l->surfaces - 1 - h;
	return (u64)(l->surfaces - 1) * c + h;
}

void disk_locate(const struct disk_layout *l, u64 lbn, struct disk_place *at)
{
	const struct disk_zone *z;
	u64 x, run, p, heads, n;
	u32 within = 0;

	if (lbn == l->known_lbn) {
		*at = l->known;
		return;
	}
	at->zone = find_zone(l, lbn);
	z = &l->zones[at->zone];
	x = lbn - z->lbn + z->front;
	if (z->unit > 1)
		x = div_u64_rem(x, z->unit, &within);
	p = place_of(l, z, x, &run);
	if (p >= z->places) { /* more slips in a period than it has spares */
		p = z->places - 1;
		run = 1;
	}
	if (z->defects) {
		const u64 *bad = l->defects + 2 * z->defect;
		u32 i = count_below(bad, z->defects, 2, p);

		if (i < z->defects && bad[2 * i] == p) {
			p = bad[2 * i + 1];
			run = 1;
		} else if (i < z->defects) {
			run = min(run, bad[2 * i] - p);
		}
	}
	if (z->unit > 1) {
		at->track = p;
		at->sector = within;
		run = z->unit - within;
	} else {
		at->track = div_u64_rem(p, z->spt, &at->sector);
		run = min_t(u64, run, z->spt - at->sector);
	}
	if (lbn - z->lbn < z->lbns) /* beyond the end of the drive there is no harm in going on */
		run = min(run, z->lbns - (lbn - z->lbn));
	at->run = (u32)run;
	heads = track_place(l, z, at->track, &at->cyl, &at->head);
	n = z->offset + z->track_skew * heads + z->cyl_skew * (at->track - heads) + at->sector;
	if (z->shifting && z->slips) {
		u64 start = div64_u64(p, z->period) * z->period;

		if (!z->local)
			start = div64_u64(start, z->period) * z->usable;
		n += count_below(l->slips + z->slip, z->slips, 1, start);
	}
	div_u64_rem(n, z->spt, &at->angle);
}

/* The LBN of a zone's usable sector, or the first behind it; not outside the zone. */
static u64 lbn_of(const struct disk_zone *z, u64 usable)
{
	usable = usable > z->front ? usable - z->front : 0;
	return z->lbn + min(usable, z->lbns);
}

/* The first LBN that lies on the track or behind it, from a physical sector of the track on. */
static u64 first_from(const struct disk_layout *l, const struct disk_zone *z, u64 track, u32 sector)
{
	if (z->unit > 1)
		return lbn_of(z, index_of(l, z, track) * z->unit + sector);
	return lbn_of(z, index_of(l, z, track * z->spt + sector));
}

void disk_track_limits(const struct disk_layout *l, u64 lbn, const struct disk_place *at,
		       bool cylinder, u64 *first, u64 *end)
{
	const struct disk_zone *z = &l->zones[at->zone];
	u64 from = at->track;

	if (cylinder)
		from = div_u64(from, l->surfaces) * l->surfaces;
	*first = first_from(l, z, from, 0);
	*end = first_from(l, z, from + (cylinder ? l->surfaces : 1), 0);
	/* its own sector is bad, and the one it lies on a spare */
	if (lbn < *first || lbn >= *end) {
		*first = lbn;
		*end = lbn + 1;
	}
}

/*
 * The first LBN of a place's track from a physical sector of it on; the track's end if there is
 * none.
 */
u64 disk_first_from(const struct disk_layout *l, const struct disk_place *at, u32 sector)
{
	return first_from(l, &l->zones[at->zone], at->track, sector);
}

/* No sector of a place's track lies elsewhere. */
bool disk_track_intact(const struct disk_layout *l, const struct disk_place *at)
{
	const struct disk_zone *z = &l->zones[at->zone];
	u64 each = z->unit > 1 ? 1 : z->spt, from = at->track * each;
	const u64 *bad = l->defects + 2 * z->defect;

	return count_below(bad, z->defects, 2, from) ==
	       count_below(bad, z->defects, 2, from + each);
}
