// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random places of which some come more often: random_distribution=zipf, pareto and normal, with
 * the numbers of fio 3.33.
 *
 * Each draws a rank, 0 the most frequent (of normal: a block, the middle one the most frequent).
 * A multiplicative hash scatters the ranks over the file, so that those that come often do not lie
 * side by side. Zipf's rank is that of Gray et al., "Quickly generating billion-record synthetic
 * databases" (SIGMOD 1994). Its sum over n^-theta is fio's too, of 10^7 terms at the most, but the
 * Euler-Maclaurin formula replaces all terms behind the first thousand: the remainder is below
 * 1e-12 of the sum, and a file of terabytes costs as much as one of megabytes.
 */
#include <math.h>

#include "sim/load/internal.h"

#define GOLDEN_RATIO  0x61c8864680b583ebull
#define MOST_TERMS    10000000u
#define SUMMED_TERMS  1000u
#define NORMAL_DRAWS  12u
#define NUMBERS_32BIT 4294967296.0

bool sim_skew_wrong(const struct hws_job *o)
{
	/* Written so that a NaN is wrong. */
	if (o->skew && !(o->skew_center <= 1))
		return true;
	switch (o->skew) {
	case HWS_EVEN:
		return false;
	case HWS_ZIPF:
		return !isfinite(o->skew_by) || o->skew_by == 1;
	case HWS_PARETO:
		return !(o->skew_by > 0 && o->skew_by < 1);
	case HWS_NORMAL:
		return !(o->skew_by >= 0 && o->skew_by < 100);
	default:
		return true;
	}
}

/* 1^-theta + 2^-theta + ... + n^-theta. */
static double zeta(u64 n, double theta)
{
	double a = SUMMED_TERMS, b = (double)n, at_a = pow(a, -theta), at_b = pow(b, -theta);
	double sum = 0, power = 1 - theta, third = theta * (theta + 1) * (theta + 2);
	u64 i;

	for (i = 1; i <= n && i < SUMMED_TERMS; i++)
		sum += pow((double)i, -theta);
	if (n < SUMMED_TERMS)
		return sum;
	/* From a to b: the integral, half of both ends, the first and the third derivative. */
	sum += at_a * a * expm1(power * log(b / a)) / power;
	sum += (at_a + at_b) / 2 + theta * (at_a / a - at_b / b) / 12;
	return sum - third * (at_a / (a * a * a) - at_b / (b * b * b)) / 720;
}

/* The whole part of a fraction; what is no number (0/0 with two blocks) counts as 0. */
static u64 whole(double value, u64 most)
{
	if (!(value > 0))
		return 0;
	return value < (double)most ? (u64)value : most;
}

void sim_skew_init(struct sim_job *j, struct sim_file *f)
{
	const struct hws_job *o = &j->opt;
	u64 unit = min(o->min_bytes[0], o->min_bytes[1]);
	struct sim_skew *k = &f->skew;
	double n;

	k->blocks = (min(f->at.size, f->at.span) + unit - 1) / unit;
	n = (double)k->blocks;
	if (o->skew == HWS_NORMAL) {
		k->shift = o->skew_center < 0 ? 0 : (u32)(s64)(n * (o->skew_center - 0.5));
		k->width = min((u64)ceil(n * o->skew_by / 100), k->blocks / 2);
		return;
	}
	k->shift = sim_die_roll(&k->die);
	if (o->skew_center >= 0)
		k->shift = (u64)(n * o->skew_center);
	if (o->skew == HWS_PARETO) {
		k->power = log(o->skew_by) / log(1 - o->skew_by);
		return;
	}
	k->power = 1 / (1 - o->skew_by);
	k->second = 1 + pow(0.5, o->skew_by);
	k->zeta = zeta(min(k->blocks, MOST_TERMS), o->skew_by);
	k->eta = (1 - pow(2 / n, 1 - o->skew_by)) / (1 - k->second / k->zeta);
}

static u64 zipf_rank(struct sim_skew *k)
{
	double at = sim_die_roll(&k->die) / (double)U32_MAX;

	if (at * k->zeta < 1)
		return 0;
	if (at * k->zeta < k->second)
		return 1;
	return whole((double)k->blocks * pow(k->eta * at - k->eta + 1, k->power), k->blocks);
}

static u64 pareto_rank(struct sim_skew *k)
{
	double at = sim_die_roll(&k->die) / (double)U32_MAX;

	return whole((double)(k->blocks - 1) * pow(at, k->power), k->blocks);
}

/* The mean of twelve blocks, and up to half a width to either side, less where the file ends. */
static u64 normal_block(struct sim_skew *k)
{
	u64 sum = 0;
	s64 off;
	u32 i;

	for (i = 0; i < NORMAL_DRAWS; i++)
		sum += sim_die_roll(&k->die) % (k->blocks + 1);
	sum = (sum + NORMAL_DRAWS - 1) / NORMAL_DRAWS;
	if (!k->width)
		return sum;
	off = (s64)((double)k->width * (sim_die_roll(&k->die) / NUMBERS_32BIT));
	off -= (s64)(k->width / 2);
	/* fio never ends at the last block of all with nothing to go back by. */
	while (off && (u64)off + sum >= k->blocks)
		off /= 2;
	return sum + (u64)off;
}

u64 sim_skew_block(struct sim_job *j, struct sim_file *f)
{
	struct sim_skew *k = &f->skew;
	u64 at;

	if (j->opt.skew == HWS_ZIPF)
		at = zipf_rank(k);
	else if (j->opt.skew == HWS_PARETO)
		at = pareto_rank(k);
	else
		at = normal_block(k);
	return (at * GOLDEN_RATIO + k->shift) % k->blocks;
}
