// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the drive can do: its peak rate and whether it queues requests itself.
 *
 * The peak rate is estimated from what is dispatched in about a second, because nobody can tell
 * from outside when a queueing drive serves which request; over long enough a time as much is
 * served as is dispatched. The estimate sets the device's max budget (what fits into a slot at that
 * rate) and how long interactive queues are raised.
 */
#include "core/policy/bfq/internal.h"

#define MIN_SAMPLES   32
#define MIN_SPAN_NS   (300 * (u64)HW_NSEC_PER_MSEC)
#define REF_SPAN_NS   ((u64)HW_NSEC_PER_SEC)
#define LONG_PAUSE_NS (100 * (u64)HW_NSEC_PER_MSEC)
#define ABSURD_RATE   ((u64)20 << BFQ_RATE_SHIFT)
#define CRAWLING_RATE \
	((u64)1 << (BFQ_RATE_SHIFT - 10)) /* a request at less than 2^-10 sectors/us */
#define QUEUEING_DEPTH	 3
#define QUEUEING_SAMPLES 32

s64 bfq_budget_at_peak(const struct bfq *b)
{
	u64 ms = div_u64((u64)b->timeout_ticks * (u64)b->tick_us, 1000);

	return (s64)((b->rate.peak * 1000 * ms) >> BFQ_RATE_SHIFT);
}

static void start_over(struct bfq *b, const struct hw_request *rq)
{
	struct bfq_rate *r = &b->rate;

	if (!rq) {
		r->samples = 0;
		return;
	}
	r->first_dispatch_ns = b->now_ns;
	r->samples = 1;
	r->sequential = 0;
	r->sectors = rq->sectors;
	r->max_sectors = rq->sectors;
}

/*
 * The observation is over: a low-pass filter, which trusts long and sequential observations more.
 */
static void evaluate(struct bfq *b)
{
	struct bfq_rate *r = &b->rate;
	u64 rate, weight, divisor;

	if (r->samples < MIN_SAMPLES || r->span_ns < MIN_SPAN_NS)
		return;
	if (r->last_completion_ns > r->first_dispatch_ns)
		r->span_ns = max(r->span_ns, r->last_completion_ns - r->first_dispatch_ns);
	rate = div64_u64(r->sectors << BFQ_RATE_SHIFT, div_u64(r->span_ns, HW_NSEC_PER_USEC));
	if ((r->sequential < 3 * r->samples / 4 && rate <= r->peak) || rate > ABSURD_RATE)
		return;
	weight = 9 * r->sequential / r->samples;
	weight = min_t(u64, 8, div_u64(weight * r->span_ns, REF_SPAN_NS));
	divisor = 10 - weight;
	r->peak = div64_u64(r->peak * (divisor - 1), divisor) + div64_u64(rate, divisor);
	r->peak = max_t(u64, r->peak, 1);
	if (!b->max_budget)
		b->cap_budget = bfq_budget_at_peak(b);
}

static void observe(struct bfq *b, const struct hw_request *rq)
{
	struct bfq_rate *r = &b->rate;

	if (!r->samples) {
		start_over(b, rq);
		return;
	}
	if (b->now_ns - r->last_dispatch_ns > LONG_PAUSE_NS && !b->in_driver) {
		evaluate(b);
		start_over(b, rq);
		return;
	}
	r->samples++;
	if ((b->in_driver || b->now_ns - r->last_completion_ns < BFQ_MIN_THINK_NS) &&
	    !bfq_is_seek(b, b->last_position, rq))
		r->sequential++;
	r->sectors += rq->sectors;
	if (r->samples % 32)
		r->max_sectors = max(r->max_sectors, rq->sectors);
	else
		r->max_sectors = rq->sectors;
	r->span_ns = b->now_ns - r->first_dispatch_ns;
	if (r->span_ns >= REF_SPAN_NS) {
		evaluate(b);
		start_over(b, rq);
	}
}

void bfq_rate_dispatched(struct bfq *b, const struct hw_request *rq)
{
	observe(b, rq);
	b->last_position = hw_end(rq);
	if (container_of(rq, struct bfq_request, s.rq)->queue == b->in_service)
		b->in_service_last_pos = b->last_position;
	b->rate.last_dispatch_ns = b->now_ns;
}

/*
 * A completion so late after the one before that the drive cannot have been busy ends the
 * observation.
 */
void bfq_rate_completed(struct bfq *b)
{
	struct bfq_rate *r = &b->rate;
	u64 gap_us = div_u64(b->now_ns - r->last_completion_ns, HW_NSEC_PER_USEC);

	if (gap_us > BFQ_MIN_THINK_NS / HW_NSEC_PER_USEC &&
	    ((u64)r->max_sectors << BFQ_RATE_SHIFT) < CRAWLING_RATE * gap_us) {
		evaluate(b);
		start_over(b, NULL);
	}
	r->last_completion_ns = b->now_ns;
}

/* What is known of it at first. */
void bfq_assume_queueing(struct bfq *b)
{
	const struct hw_device *dev = &b->q.dev;

	b->hw_queueing = dev->settled ? dev->depth > QUEUEING_DEPTH : -1;
	b->nonrot_queueing = !dev->rotational && b->hw_queueing;
}

/* Does the drive take several requests at once? Judged only when there were enough to give it. */
void bfq_detect_queueing(struct bfq *b)
{
	struct bfq_queue *bq = b->in_service;

	b->max_in_driver = max(b->max_in_driver, b->in_driver);
	if (b->hw_queueing == 1 || b->in_driver + b->q.nr_queued <= QUEUEING_DEPTH)
		return;
	if (bq && bq->short_think && bq->dispatched + bq->queued < QUEUEING_DEPTH &&
	    b->in_driver < QUEUEING_DEPTH)
		return;
	if (b->hw_samples++ < QUEUEING_SAMPLES)
		return;
	b->hw_queueing = b->max_in_driver > QUEUEING_DEPTH;
	b->max_in_driver = 0;
	b->hw_samples = 0;
	b->nonrot_queueing = !b->q.dev.rotational && b->hw_queueing;
}
