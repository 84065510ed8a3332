// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sum of n^-theta, against adding up all of it; and blocks that stay within their file. */
#include "check.h"
#include "sim/load/skew.c"

static u32 state = 1;

u32 sim_die_roll(struct sim_die *d)
{
	/* The ends as well. */
	state = state * 1664525u + 1013904223u;
	return state >> 28 ? state : (state & 1 ? U32_MAX : 0);
}

static void sums(void)
{
	static const double thetas[] = { -1, 0, 0.2, 0.99, 0.9999999, 1.0000001, 1.2, 2, 7.5, 60 };
	static const u32 ends[] = { 1, 2, 999, 1000, 1001, 4096, 200000 };
	u32 i, k, n;

	for (i = 0; i < sizeof(thetas) / sizeof(*thetas); i++) {
		long double sum = 0, rest = 0;

		for (n = 1, k = 0; k < sizeof(ends) / sizeof(*ends); n++) {
			/* Kahan's: so many roundings would show. */
			long double term = powl(n, -(long double)thetas[i]) - rest,
				    next = sum + term;

			rest = next - sum - term;
			sum = next;
			if (n == ends[k]) {
				CHECK(fabsl(zeta(n, thetas[i]) / sum - 1) < 1e-11L);
				k++;
			}
		}
	}
}

static void within(void)
{
	static const struct {
		u32 skew;
		double by;
	} all[] = { { HWS_ZIPF, 0.5 }, { HWS_ZIPF, 1.2 },    { HWS_ZIPF, 300 },
		    { HWS_ZIPF, -50 }, { HWS_PARETO, 0.01 }, { HWS_PARETO, 0.99 },
		    { HWS_NORMAL, 0 }, { HWS_NORMAL, 5 },    { HWS_NORMAL, 99.9 } };
	u32 i, k;
	u64 blocks;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		for (blocks = 1; blocks < 1ull << 50; blocks = blocks * 3 + 1)
			for (k = 0; k < 200; k++) {
				struct sim_job j = { .opt = { .skew = all[i].skew,
							      .skew_by = all[i].by,
							      .skew_center =
								      k % 3 / 2.0 - (k % 2 ? 0 : 2),
							      .min_bytes = { 512, 512 } } };
				struct sim_file f = { .at = { .size = blocks * 512,
							      .span = blocks * 512 } };

				sim_skew_init(&j, &f);
				CHECK(sim_skew_block(&j, &f) < blocks);
				CHECK(sim_skew_block(&j, &f) < blocks);
			}
}

static void wrong(void)
{
	struct hws_job o = { .skew = HWS_NORMAL + 1 };

	CHECK(sim_skew_wrong(&o));
	o = (struct hws_job){ .skew = HWS_ZIPF, .skew_by = 1 };
	CHECK(sim_skew_wrong(&o));
	o.skew_by = INFINITY;
	CHECK(sim_skew_wrong(&o));
	o.skew_by = 1.5;
	CHECK(!sim_skew_wrong(&o));
	o.skew_center = NAN;
	CHECK(sim_skew_wrong(&o));
	o = (struct hws_job){ .skew = HWS_PARETO, .skew_by = NAN };
	CHECK(sim_skew_wrong(&o));
	o = (struct hws_job){ .skew = HWS_NORMAL, .skew_by = 100 };
	CHECK(sim_skew_wrong(&o));
	o.skew_by = 0;
	CHECK(!sim_skew_wrong(&o));
}

int main(void)
{
	sums();
	within();
	wrong();
	return CHECK_DONE();
}
