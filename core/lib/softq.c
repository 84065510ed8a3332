// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "core/lib/softq.h"

void hw_softq_init(struct hw_softq *s)
{
	u32 i;

	BUILD_BUG_ON(HW_SOFT_CPUS > 64);
	for (i = 0; i < HW_SOFT_CPUS; i++)
		INIT_LIST_HEAD(&s->cpu[i]);
	s->busy = 0;
}

void hw_softq_add(struct hw_softq *s, struct hw_request *rq, bool at_head)
{
	u32 cpu = rq->cpu % HW_SOFT_CPUS;

	if (at_head)
		list_add(&hw_soft(rq)->link, &s->cpu[cpu]);
	else
		list_add_tail(&hw_soft(rq)->link, &s->cpu[cpu]);
	s->busy |= 1ull << cpu;
}

void hw_softq_flush(struct hw_softq *s, struct list_head *to)
{
	u32 i;

	for (i = 0; i < HW_SOFT_CPUS && s->busy >> i; i++)
		list_splice_tail_init(&s->cpu[i], to);
	s->busy = 0;
}

struct hw_request *hw_softq_take_turn(struct hw_softq *s, u32 *cpu)
{
	u32 i, at = *cpu % HW_SOFT_CPUS;
	struct hw_request *rq;

	for (i = 0; i < HW_SOFT_CPUS; i++, at = (at + 1) % HW_SOFT_CPUS) {
		rq = hw_soft_pop(&s->cpu[at]);
		if (!rq)
			continue;
		if (list_empty(&s->cpu[at]))
			s->busy &= ~(1ull << at);
		*cpu = (at + 1) % HW_SOFT_CPUS;
		return rq;
	}
	return NULL;
}

struct hw_request *hw_softq_find_merge(const struct hw_softq *s, const struct hw_bio *bio,
				       enum hw_merge *how)
{
	const struct list_head *list = &s->cpu[bio->cpu % HW_SOFT_CPUS];
	struct hw_soft_request *r;
	u32 left = HW_SOFT_MERGE_SCAN;

	list_for_each_entry_reverse(r, list, link) {
		if (!left--)
			break;
		if (r->rq.op != bio->op || r->rq.ioprio != bio->ioprio ||
		    (r->rq.flags & HW_RQ_NOMERGE))
			continue;
		if (hw_end(&r->rq) == bio->sector)
			*how = HW_BACK_MERGE;
		else if (bio->sector + bio->sectors == r->rq.sector)
			*how = HW_FRONT_MERGE;
		else
			continue;
		return &r->rq;
	}
	return NULL;
}
