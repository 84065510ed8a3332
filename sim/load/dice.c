// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Chance in generated load: the numbers that fio itself draws, so that a job file touches the same
 * places in the same order here, under fio, and in the lab.
 *
 * The generator is L'Ecuyer's taus88 ("Maximally equidistributed combined Tausworthe generators",
 * Mathematics of Computation 65, 1996). Each kind of choice has a sequence of its own, seeded as
 * fio 3.33 seeds it: from the job file's randseed and the job's number, and where randrepeat=1
 * (the default) the sequence of places from the number alone. Run seed 0 is fio's; any other draws
 * other numbers. One difference: fio goes over to 64-bit numbers where a region has more than 2^32
 * blocks; here two 32-bit ones make one.
 */
#include "core/lib/mix.h"
#include "sim/load/internal.h"

#define DEFAULT_PLACE_SEED 0xb1899bedu
#define SEED_FACTOR	   0x9e370001u

u32 sim_die_roll(struct sim_die *d)
{
	d->s1 = (d->s1 & ~1u) << 12 ^ (d->s1 << 13 ^ d->s1) >> 19;
	d->s2 = (d->s2 & ~7u) << 4 ^ (d->s2 << 2 ^ d->s2) >> 25;
	d->s3 = (d->s3 & ~15u) << 17 ^ (d->s3 << 3 ^ d->s3) >> 11;
	return d->s1 ^ d->s2 ^ d->s3;
}

static u32 at_least(u32 value, u32 least)
{
	return value < least ? value + least : value;
}

static void seed_die(struct sim_die *d, u32 seed)
{
	/*
	 * fio writes 2^31 + 2^17 + 2^7, and C takes each ^ for an exclusive or. A compiler that
	 * warns of it takes a hexadecimal number for intent.
	 */
	u32 start = (0x2 ^ 31) + (0x2 ^ 17) + (0x2 ^ 7), i;

	d->s1 = at_least(start * 69069u ^ seed, 1);
	d->s2 = at_least(d->s1 * 69069u ^ seed, 7);
	d->s3 = at_least(d->s2 * 69069u ^ seed, 15);
	for (i = 0; i < 6; i++)
		sim_die_roll(d);
}

void sim_dice_seed(struct sim_job *j, u64 run_seed)
{
	/* The place of each kind in fio's list of seeds. */
	static const u8 nth[NR_DICE] = {
		[DICE_BYTES_READ] = 0, [DICE_BYTES_WRITE] = 1, [DICE_DIRECTION] = 4,
		[DICE_FILE] = 5,       [DICE_PLACE] = 6,       [DICE_MIX_READ] = 10,
		[DICE_MIX_WRITE] = 10, [DICE_START] = 13,      [DICE_ZONE] = 16,
		[DICE_PRIO] = 20,
	};
	u64 own = run_seed ? hw_mix(run_seed) : 0, number = (u64)j->opt.number + 1, factor;
	u32 i, n;

	for (i = 0; i < NR_DICE; i++) {
		factor = j->opt.random_seed;
		for (n = 0; n < 4u + nth[i]; n++)
			factor *= SEED_FACTOR;
		seed_die(&j->dice[i], (u32)((factor * number + nth[i]) ^ own));
	}
	if (j->opt.repeat_random)
		seed_die(&j->dice[DICE_PLACE], (u32)((DEFAULT_PLACE_SEED * number) ^ own));
}

void sim_dice_seed_file(struct sim_job *j, struct sim_file *f, u64 run_seed)
{
	u64 seed = f->at.name_hash * ((u64)j->opt.number + 1);

	if (run_seed)
		seed ^= hw_mix(run_seed);
	if (f->at.name_hash)
		seed_die(&f->skew.die, (u32)seed);
	else
		f->skew.die = j->dice[DICE_PLACE];
}

u64 sim_roll_below(struct sim_job *j, enum sim_dice which, u64 n)
{
	struct sim_die *d = &j->dice[which];
	u64 r = sim_die_roll(d);

	if (n <= 1ull << 32)
		return r * n >> 32;
	r = r << 32 | sim_die_roll(d);
	return (u64)((unsigned __int128)r * n >> 64);
}
