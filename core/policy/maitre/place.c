// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: what it costs to get from one place to another.
 *
 * The host's table says it. Where there is none it is learnt from requests that had the drive to
 * themselves: what they took beyond the transfer, by powers of two of the distance. It is no less
 * over a longer way, and those are left out that the drive may have read in advance: its cache must
 * not make far places seem near.
 */
#include "core/lib/position.h"
#include "core/policy/maitre/internal.h"

#define AHEAD_SECTORS  1024u
#define FAR_NS	       (12 * MT_MSEC) /* where nothing is known of the drive */
#define NEAR_BIN       11u /* shorter ways take no longer than the shortest that is known */
#define SAMPLE_SHIFT   4
#define SAMPLES_ENOUGH 8u
#define SAMPLES_MOST   255u
#define RAISE_EVERY    64u
#define KNOWN_BINS     5u

static u32 distance_bin(u64 distance)
{
	return min((u32)fls64(distance), MT_DISTANCES - 1);
}

u64 mt_position(const struct mt_device *d, u64 distance)
{
	if (d->q.dev.positions.nr)
		return hw_positioning(&d->q.dev, distance);
	return d->places.envelope[distance_bin(distance)];
}

/*
 * Bins from @first to @end, exclusive, of which nothing is known: those before take @low_ns, that at
 * @end takes @end_ns. Who does not go on where he was waits for half a turn of the disk in any case,
 * a third of a long way; a little less is taken for true until it is known.
 */
static void between(struct mt_places *p, u32 first, u32 end, u32 low_ns, u32 end_ns)
{
	u32 i, low = max(first, NEAR_BIN + 1) - 1, least = max(low_ns, end_ns / 4);

	for (i = first; i < end; i++)
		p->envelope[i] = i <= low ? low_ns :
					    least + (u32)div_u64((u64)(end_ns - least) * (i - low),
								 end - low);
}

/*
 * No less than over any shorter way. A way between two that are known takes a time between theirs:
 * who stays within some MiB has the disk alone then, and that tells what it takes.
 */
static void raise_envelope(struct mt_places *p)
{
	u32 i, first = 0, least = 0, ns;

	for (i = 0; i < MT_DISTANCES; i++) {
		if (p->samples[i] < SAMPLES_ENOUGH)
			continue;
		ns = max(least, p->mean[i]);
		between(p, first, i, least, ns);
		p->envelope[i] = least = ns;
		first = i + 1;
	}
	ns = max(least, (u32)FAR_NS);
	for (i = first; i < MT_DISTANCES; i++)
		p->envelope[i] = i > NEAR_BIN ? ns : least;
}

void mt_position_derive(struct mt_device *d)
{
	raise_envelope(&d->places);
	d->mean_ns = mt_position(d, div_u64(d->q.dev.sectors, 3));
	d->longest_turn = div_u64(d->mean_ns * 1000, (u32)d->granularity);
}

/*
 * A read that was alone in the drive has taken @ns beyond its data. Who goes on where it
 * was may find in the drive's cache what lies far from the head by now, and of several arms the one that
 * has what follows may be anywhere: these tell nothing of the way.
 */
void mt_position_learn(struct mt_device *d, const struct mt_request *r, u64 ns)
{
	struct mt_places *p = &d->places;
	u32 bin = distance_bin(r->distance), sample;

	if ((r->onward && r->distance > AHEAD_SECTORS) || (!r->distance && d->q.dev.arms > 1))
		return;
	sample = (u32)min_t(u64, ns, 100 * MT_MSEC);
	if (!p->samples[bin])
		p->mean[bin] = sample;
	p->mean[bin] = p->mean[bin] - (p->mean[bin] >> SAMPLE_SHIFT) + (sample >> SAMPLE_SHIFT);
	p->samples[bin] = (u8)min(p->samples[bin] + 1u, SAMPLES_MOST);
	if (++p->learnt % RAISE_EVERY == 0)
		mt_position_derive(d);
}

/*
 * The device has been here for long: what its many requests have told by now. Ways that are short for
 * it are rare among those that lie anywhere, and remain to be learnt.
 */
void mt_position_acquaint(struct hw_queue *q, const struct hw_rows *positions)
{
	struct mt_device *d = mt_device(q);
	struct mt_places *p = &d->places;
	const struct hw_device known = { .positions = *positions };
	u32 bin, last = distance_bin(q->dev.sectors);

	for (bin = last - min(last, KNOWN_BINS - 1); bin <= last; bin++) {
		/* The middle of what is in the bin. */
		p->mean[bin] = (u32)min(hw_positioning(&known, 3ull << bin >> 2), (u64)U32_MAX);
		p->samples[bin] = SAMPLES_ENOUGH;
	}
	mt_position_derive(d);
}

bool mt_ahead(u64 end, u64 sector)
{
	return sector >= end && sector - end <= AHEAD_SECTORS;
}

/*
 * What lies a little ahead passes under the head, or the drive has read it in advance: who reads on
 * there at once, as those do who read one small file after another, waits for no turn of the disk.
 */
u64 mt_onward(const struct mt_device *d, u64 end, u64 sector)
{
	u64 distance = hw_apart(sector, end), ns = mt_position(d, distance);

	if (!mt_ahead(end, sector))
		return ns;
	return min(ns, mt_position(d, 0) + mt_stream_ns(d, distance));
}
