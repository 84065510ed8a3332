// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What waits come to with a class's own interval and with the usual one. See proof.h. */
#include "core/policy/as/proof.h"

/* Standard errors: for a longer interval to be better, and for a shorter one to be worse. */
#define BETTER 2
#define WORSE  1

#define CLASS_WINDOW 256  /* waits after which a class forgets half of what it has seen */
#define WHOLE_WINDOW 4096 /* the same for all classes together */
#define MOST_US	     (10 * WAS_MAX_WAIT_US) /* that a wait is worth, where hardly any is met */

/* What a wait comes to, us: if met, the time that is lost for one on average; if not, its own. */
static s64 yield_us(const struct was_proof *p, bool declined, u64 interval_us, u64 think_us)
{
	if (declined)
		return 0;
	return think_us <= interval_us ? p->worth_us : -(s64)interval_us;
}

static void count_usual(struct was_proof *p, u64 interval_us, u64 think_us, int n)
{
	p->waits += n;
	if (think_us <= interval_us)
		p->met += n;
	else
		p->lost_us += n * (s64)interval_us;
	if (p->waits >= WHOLE_WINDOW) {
		p->waits /= 2;
		p->met /= 2;
		p->lost_us /= 2;
	}
	p->worth_us = (s64)div64_u64((u64)max_t(s64, 0, p->lost_us), (u64)max_t(s64, 1, p->met));
	p->worth_us = min_t(s64, p->worth_us, MOST_US);
}

void was_weigh(struct was_proof *p, const struct was_question *q, u64 usual_us, u64 own_us,
	       u64 think_us, int n)
{
	struct was_gain *g = &p->gain[q->class - 1];
	s64 more = yield_us(p, q->own_declines, own_us, think_us) -
		   yield_us(p, q->usual_declines, usual_us, think_us);

	g->us += n * more;
	g->squares = max_t(s64, 0, g->squares + n * more * more);
	g->waits = (u32)max_t(s64, 0, (s64)g->waits + n);
	if (g->waits >= CLASS_WINDOW) {
		g->waits /= 2;
		g->us /= 2;
		g->squares /= 2;
	}
	if (!q->usual_declines)
		count_usual(p, usual_us, think_us, n);
}

bool was_holds(const struct was_proof *p, u32 class, u64 usual_us, u64 own_us)
{
	const struct was_gain *g = &p->gain[class - 1];
	s64 square = g->us * g->us;

	if (own_us > usual_us)
		return g->us > 0 && square > BETTER * BETTER * g->squares;
	return g->us >= 0 || square <= WORSE * WORSE * g->squares;
}
