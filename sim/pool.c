// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What comes and goes during a run, in memory that it keeps: lists of free ones, of each kind. */
#include "sim/internal.h"

#define REQUESTS_AT_ONCE 64u

static size_t request_bytes(const struct hws *s)
{
	return offsetof(struct sim_request, rq) + s->policy->request_size;
}

static void more_requests(struct hws *s)
{
	size_t bytes = (request_bytes(s) + SIM_CACHE_LINE - 1) & ~(size_t)(SIM_CACHE_LINE - 1);
	char *p = sim_alloc(s, REQUESTS_AT_ONCE * bytes + SIM_CACHE_LINE);
	u32 i;

	p += -(uintptr_t)p & (SIM_CACHE_LINE - 1);
	for (i = REQUESTS_AT_ONCE; i-- > 0;) {
		struct sim_request *r = (struct sim_request *)(p + i * bytes);

		r->next = s->free_requests;
		s->free_requests = r;
	}
}

struct sim_request *sim_request_new(struct hws *s)
{
	struct sim_request *r;

	if (!s->free_requests)
		more_requests(s);
	r = s->free_requests;
	s->free_requests = r->next;
	memset(r, 0, request_bytes(s));
	r->rq.host = r;
	s->in_use++;
	return r;
}

void sim_request_free(struct hws *s, struct sim_request *r)
{
	if (r->tag >= 0)
		sim_tag_put(s->tagged[sim_queue_of(s, r->rq.cpu)].tags, r->tag);
	r->next = s->free_requests;
	s->free_requests = r;
	s->in_use--;
}

struct sim_io *sim_io_new(struct hws *s)
{
	struct sim_io *io = s->free_ios;

	if (io)
		s->free_ios = io->free_next;
	else
		io = sim_alloc(s, sizeof(*io));
	return io;
}

void sim_io_free(struct hws *s, struct sim_io *io)
{
	io->free_next = s->free_ios;
	s->free_ios = io;
}

struct sim_piece *sim_piece_new(struct hws *s)
{
	struct sim_piece *p = s->free_pieces;

	if (p)
		s->free_pieces = p->next;
	else
		p = sim_alloc(s, sizeof(*p));
	p->next = NULL;
	return p;
}

void sim_piece_free(struct hws *s, struct sim_piece *p)
{
	p->next = s->free_pieces;
	s->free_pieces = p;
}

struct hw_task *sim_hw_task_new(struct hws *s)
{
	struct hw_task *t = s->free_tasks;

	if (t)
		s->free_tasks = *(struct hw_task **)t;
	else
		t = sim_alloc(s, s->policy->task_size);
	memset(t, 0, s->policy->task_size);
	return t;
}

void sim_hw_task_free(struct hws *s, struct hw_task *t)
{
	*(struct hw_task **)t = s->free_tasks;
	s->free_tasks = t;
}
