// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * maitre: the think times of a flow, and for how long they make it worth to wait.
 *
 * Optimal stopping: the think times of the past say with which probability the next request comes
 * by when. To give up after T costs T and the way to the other request; to be met earlier costs the
 * wait so far and the short way. The T with the least expected cost is waited for, but never more
 * than the way to the other costs: then no sequence of think times, however hostile, makes it more
 * than twice as dear as knowing the future would (ski rental).
 */
#include "core/policy/maitre/internal.h"

#define SAMPLES_MOST 64u
#define HABIT_SHIFT  4 /* each sample weighs 1/16 */
#define RUNS_ON_NS   (1500 * MT_USEC)
#define SLACK_SHIFT  5

/* Upper edges of the bins. */
static const u32 edge_us[MT_BINS - 1] = { 32,	64,   128,  256,  512,	 1000,	1500, 2000,
					  3000, 4000, 6000, 8000, 12000, 16000, 24000 };

void mt_learn(struct mt_habit *h, u64 think_ns)
{
	u32 i, at = MT_BINS - 1;

	for (i = 0; i < MT_BINS - 1 && at == MT_BINS - 1; i++)
		if (think_ns <= edge_us[i] * MT_USEC)
			at = i;
	for (i = 0; i < MT_BINS; i++)
		mt_share_seen(&h->bin[i], i == at, HABIT_SHIFT);
	h->samples = min(h->samples + 1, SAMPLES_MOST);
}

/*
 * For how long from now on it is best to wait, when nothing has come for @elapsed: 0 if not at all.
 * @near and @far cost whoever is waited for and the other.
 */
u64 mt_worth_waiting(const struct mt_habit *h, u64 elapsed, u64 near, u64 far)
{
	u64 mass = 0, met = 0, spent = 0, least, best = 0, low, high, cost;
	u32 i, first = MT_BINS;

	for (i = MT_BINS; i-- > 0;) {
		if (i < MT_BINS - 1 && edge_us[i] * MT_USEC <= elapsed)
			break;
		mass += h->bin[i];
		first = i;
	}
	if (!mass || near >= far)
		return 0;
	least = mass * far;
	for (i = first; i < MT_BINS - 1; i++) {
		low = i ? edge_us[i - 1] * MT_USEC : 0;
		low = low > elapsed ? low - elapsed : 0;
		high = edge_us[i] * MT_USEC - elapsed;
		spent += h->bin[i] * ((low + high) / 2 + near);
		met += h->bin[i];
		cost = spent + (mass - met) * (high + far);
		if (cost < least) {
			least = cost;
			best = high;
		}
	}
	/* A little longer than ever before costs little, and may be enough. */
	if (best)
		best = max(best, far >> SLACK_SHIFT);
	return min(best, elapsed < far ? far - elapsed : 0);
}

/* Does it mostly ask again at once? */
bool mt_at_once(const struct mt_habit *h)
{
	u32 i, soon = 0;

	for (i = 0; edge_us[i] * MT_USEC <= RUNS_ON_NS; i++)
		soon += h->bin[i];
	return soon > U16_MAX / 2;
}

/* Will it use a turn, or take one request and be gone? */
bool mt_runs_on(const struct mt_entity *e)
{
	return e->queued > 1 || e->kind != MT_FLOW || mt_at_once(&e->habit);
}
