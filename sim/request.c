// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From a piece of an I/O to a request: it joins one that there is, or the policy gets a new one. */
#include <stdlib.h>

#include "sim/internal.h"

static void merge_inserted(struct hws *s, struct hw_request *rq)
{
	struct hw_request **buckets = NULL;
	u32 bits = s->merger.bits + 2;

	hw_merge_inserted(&s->merger, s->q, rq);
	if (!hw_merge_is_crowded(&s->merger))
		return;
	SIM_GROW(s, &(u64){ 0 }, 1ull << bits, SIM_COLUMN(buckets));
	hw_merge_rehash(&s->merger, buckets, bits);
	free(s->buckets);
	s->buckets = buckets;
}

static void append_pieces(struct sim_request *r, struct sim_piece *more, struct sim_piece **tail)
{
	*r->pieces_tail = more;
	r->pieces_tail = tail;
}

/* @p has become part of @into, and needs no place of its own in write-back. */
static void piece_joined(struct hws *s, struct hw_request *into, struct sim_piece *p)
{
	append_pieces(into->host, p, &p->next);
	if (p->throttled)
		sim_wbt_put(s);
	s->merges++;
	sim_log(s, EV_MERGE, into->id, p->io->task, p->bio.op, p->bio.sector, p->bio.sectors);
}

/* @gone has become part of @into. */
static void joined(struct hws *s, struct hw_request *into, struct hw_request *gone)
{
	struct sim_request *r = gone->host;

	append_pieces(into->host, r->pieces, r->pieces_tail);
	if (r->throttled)
		sim_wbt_put(s);
	s->merges++;
	sim_log(s, EV_MERGE, into->id, gone->task->id, gone->op, gone->sector, gone->sectors);
	sim_request_free(s, r);
}

/* The block layer's own merging at insertion. */
static bool merge_arriving(struct hws *s, struct sim_piece *p)
{
	struct hw_request *into, *gone;

	if (!s->opt.join_arriving)
		return false;
	into = hw_merge_arriving(&s->merger, s->q, &p->bio, s->now);
	if (!into)
		return false;
	piece_joined(s, into, p);
	while ((gone = hw_merge_onwards(&s->merger, s->q, &into)))
		joined(s, into, gone);
	sim_log_waits(s);
	return true;
}

bool sim_insert_piece(struct hws *s, struct sim_piece *p, int tag)
{
	struct sim_request *r;
	struct hw_request *rq;

	if (merge_arriving(s, p))
		return false;
	s->inserted = true;
	r = sim_request_new(s);
	rq = &r->rq;
	r->tag = tag;
	r->throttled = p->throttled;
	r->pieces = p;
	r->pieces_tail = &p->next;
	rq->sector = p->bio.sector;
	rq->sectors = p->bio.sectors;
	rq->op = p->bio.op;
	rq->flags = p->bio.flags;
	rq->ioprio = p->bio.ioprio;
	rq->cpu = p->bio.cpu;
	rq->task = p->bio.task;
	rq->group = p->bio.group;
	hw_insert(s->q, rq, s->now);
	merge_inserted(s, rq);
	sim_log(s, EV_INSERT, rq->id, p->io->task, rq->op, rq->sector, rq->sectors);
	sim_log_waits(s);
	return true;
}

bool sim_merge_piece(struct hws *s, struct sim_piece *p)
{
	struct hw_merge_result m;

	p->bio.now_ns = s->now;
	m = hw_merge_try(&s->merger, s->q, &p->bio, s->now);

	if (!m.into)
		return false;
	piece_joined(s, m.into, p);
	if (m.gone)
		joined(s, m.into, m.gone);
	sim_log_waits(s);
	return true;
}
