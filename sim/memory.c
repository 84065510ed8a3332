// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory of a run: slabs that live as long as the run. */
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/internal.h"

#define SLAB_BYTES (256u << 10)
#define HUGE_BYTES \
	(2u        \
	 << 20) /* from here on slabs ask for huge pages: long queues are walked in random order */
#define SLAB_MOST_BYTES (64u << 20)

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
