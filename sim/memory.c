// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory of a run: slabs that live as long as the run, free lists on top. */
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/internal.h"

#define SLAB_BYTES (256u << 10)
#define HUGE_BYTES \
	(2u        \
	 << 20) /* from here on slabs ask for huge pages: long queues are walked in random order */
#define SLAB_MOST_BYTES	 (64u << 20)
#define REQUESTS_AT_ONCE 64u

struct sim_slab {
	struct sim_slab *next;
	size_t used, size;
	_Alignas(SIM_CACHE_LINE) char bytes[];
};

/* Zeroed memory, of which only what is touched counts. */
static struct sim_slab *slab_new(size_t bytes)
{
	struct sim_slab *slab =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (slab == MAP_FAILED)
		return NULL;
	if (bytes >= HUGE_BYTES)
		madvise(slab, bytes, MADV_HUGEPAGE);
	slab->size = bytes - sizeof(*slab);
	return slab;
}

/*
 * Each slab is as large as all before it together, within limits; what does not fit has one of its
 * own.
 */
static struct sim_slab *more(struct hws *s, size_t bytes)
{
	size_t size = max_t(size_t, SLAB_BYTES, min_t(size_t, s->slab_bytes, SLAB_MOST_BYTES));
	struct sim_slab *slab = slab_new(max(size, bytes + sizeof(*slab)));

	if (!slab)
		longjmp(s->no_memory, 1);
	s->slab_bytes += slab->size;
	slab->next = s->slabs;
	s->slabs = slab;
	return slab;
}

void *sim_alloc(struct hws *s, size_t bytes)
{
	struct sim_slab *slab = s->slabs;
	void *p;

	bytes = (bytes + 15) & ~(size_t)15;
	if (!slab || slab->size - slab->used < bytes)
		slab = more(s, bytes);
	p = slab->bytes + slab->used;
	slab->used += bytes;
	return p;
}

void sim_free_all(struct hws *s)
{
	while (s->slabs) {
		struct sim_slab *next = s->slabs->next;

		munmap(s->slabs, s->slabs->size + sizeof(*next));
		s->slabs = next;
	}
}

void *sim_grow(struct hws *s, void *array, u64 *room, u64 need, size_t element_bytes)
{
	u64 n = *room ? *room : 1024;
	void *more;

	if (need <= *room)
		return array;
	while (n < need)
		n *= 2;
	more = realloc(array, n * element_bytes);
	if (!more)
		longjmp(s->no_memory, 1);
	*room = n;
	return more;
}

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
