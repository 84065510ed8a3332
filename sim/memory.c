// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory of a run: slabs that live as long as the run, free lists on top. Running out of memory ends the program. */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

#define SLAB_BYTES (256u << 10)

struct sim_slab {
	struct sim_slab *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

static void *must(void *p)
{
	if (p)
		return p;
	fputs("headwaiter: out of memory\n", stderr);
	abort();
}

void *sim_alloc(struct hws *s, size_t bytes)
{
	struct sim_slab *slab = s->slabs;
	void *p;

	bytes = (bytes + 15) & ~(size_t)15;
	if (!slab || slab->size - slab->used < bytes) {
		size_t size = bytes > SLAB_BYTES ? bytes : SLAB_BYTES;

		slab = must(calloc(1, sizeof(*slab) + size));
		slab->size = size;
		slab->next = s->slabs;
		s->slabs = slab;
	}
	p = slab->bytes + slab->used;
	slab->used += bytes;
	return p;
}

void sim_free_all(struct hws *s)
{
	while (s->slabs) {
		struct sim_slab *next = s->slabs->next;

		free(s->slabs);
		s->slabs = next;
	}
}

void *sim_grow(void *array, u64 *room, u64 need, size_t element_bytes)
{
	u64 n = *room ? *room : 1024;

	if (need <= *room)
		return array;
	while (n < need)
		n *= 2;
	*room = n;
	return must(realloc(array, n * element_bytes));
}

struct sim_request *sim_request_new(struct hws *s)
{
	struct sim_request *r = s->free_requests;
	size_t bytes = offsetof(struct sim_request, rq) + s->policy->request_size;

	if (r)
		s->free_requests = r->next;
	else
		r = sim_alloc(s, bytes);
	memset(r, 0, bytes);
	r->rq.host = r;
	s->in_use++;
	return r;
}

void sim_request_free(struct hws *s, struct sim_request *r)
{
	if (r->tag >= 0)
		sim_tag_put(s->tags, r->tag);
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
