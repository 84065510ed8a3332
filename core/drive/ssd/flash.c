// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Dies and channels. Pages of the drive are striped over the dies for reading. What is programmed
 * goes, as a log, to the die that has been idle for longest, so no page waits for a busy die while
 * another is idle.
 *
 * Reads of a die are served in order, and before its programs. They suspend a program or a
 * collection of garbage for as long as it takes itself at most, and for a sixth of that as the cost
 * of suspending; after that they wait for its end, so that neither starves the other.
 */
#include "core/drive/ssd/internal.h"

#define LONG_REST_NS (1ull << 46)

/* Reading a page: it is of one of three kinds, as the bits of a cell are. */
static u64 reading(const struct ssd *s, u64 page)
{
	return s->page_read[s->same_reads ? 0 : (u32)((u64)ssd_scramble(page) * 3 >> 32)];
}

/*
 * When a read may begin on a die that is at work then; what that costs the work is added to it.
 *
 * A collection of garbage can be left between two of its steps only.
 */
static u64 get_in(struct ssd *s, struct ssd_die *d, u64 now, u64 start, u64 work)
{
	bool queued = now < d->read_free;

	if (!queued || d->budget < work) {
		if (d->collects) {
			start = max(start, d->gate);
			d->budget = s->step;
		} else if (queued || d->budget < work || d->pauses < s->suspend) {
			return d->busy_until;
		} else {
			d->pauses -= s->suspend;
		}
		if (start + s->suspend >= d->busy_until)
			return d->busy_until;
		start += s->suspend;
		d->busy_until += s->suspend;
	}
	d->budget -= min(d->budget, work);
	d->busy_until += work;
	d->gate = start + work + s->step;
	return start;
}

static u64 read_page(struct ssd *s, u32 i, u64 work, u64 now)
{
	struct ssd_die *d = &s->die[i];
	u64 start = max(now, d->read_free);

	if (start < d->busy_until)
		start = get_in(s, d, now, start, work);
	d->read_free = start + work;
	s->drive.stats.media_reads++;
	return d->read_free;
}

/* Ask the dies for as much of a read as may be on its way at once. */
void ssd_begin_read(struct ssd *s, u32 index, u64 now)
{
	struct ssd_command *c = &s->command[index];
	u32 sectors = c->io->sectors, n;
	u64 more = sectors > SSD_SMALL ? s->read_more : 0;

	while (c->begun < sectors && c->out < SSD_READS_EACH) {
		if (s->nr_reads == s->most_reads) {
			if (!c->out)
				ssd_append(s, &s->starved, index);
			return;
		}
		n = min(sectors - c->begun, s->page - c->within);
		ssd_push(s, read_page(s, c->die, reading(s, c->page) + more, now), index, c->die,
			 ssd_pack(SSD_READ, n));
		c->begun += n;
		c->within = 0;
		c->page++;
		c->out++;
		s->nr_reads++;
		if (++c->die == s->dies)
			c->die = 0;
	}
}

static void channel_ready(struct ssd *s, u32 index)
{
	struct ssd_channel *c = &s->channel[index];

	c->next = SSD_NONE;
	if (ssd_empty(&s->ready))
		s->ready.head = index;
	else
		s->channel[s->ready.tail].next = index;
	s->ready.tail = index;
}

static void die_idle(struct ssd *s, u32 index)
{
	struct ssd_die *d = &s->die[index];
	struct ssd_channel *c = &s->channel[d->channel];
	bool none = c->idle == SSD_NONE;

	d->next = SSD_NONE;
	if (none)
		c->idle = index;
	else
		s->die[c->idle_last].next = index;
	c->idle_last = index;
	if (none && !c->loads)
		channel_ready(s, d->channel);
}

void ssd_all_idle(struct ssd *s)
{
	u32 i;

	for (i = 0; i < s->dies; i++)
		die_idle(s, i);
}

/* What the next page takes, which a smaller pool pays for. */
static u64 programming(struct ssd *s)
{
	u64 work = s->page_program, extra;
	u32 place;

	if (s->slc) {
		s->slc--;
		work = s->slc_program;
	}
	div_u64_rem(s->started, s->nr_buffer, &place);
	extra = s->extra[place];
	if (extra)
		work += div_u64(work * div_u64(extra, s->page), 1000000);
	if (s->pool)
		s->pool--;
	else if (s->quantum)
		s->debt += s->collect_ns;
	else
		work += s->collect_ns;
	return work;
}

/* Pages that are full go to dies that are idle, one at a time over each channel. */
void ssd_program(struct ssd *s, u64 now)
{
	while (s->started < s->filled && !ssd_empty(&s->ready)) {
		struct ssd_channel *c = &s->channel[s->ready.head];
		u32 i = c->idle;
		struct ssd_die *d = &s->die[i];

		s->ready.head = c->next;
		c->idle = d->next;
		c->loads = true;
		d->work = programming(s);
		d->number = s->started++;
		c->free = max(now, c->free) + (u64)s->page * s->transfer;
		ssd_push(s, c->free, SSD_NONE, i, ssd_pack(SSD_LOADED, 1));
		s->drive.stats.media_writes++;
	}
}

static void work_on(struct ssd *s, u32 index, u64 start, u64 work)
{
	struct ssd_die *d = &s->die[index];

	start = max(start, d->read_free);
	d->busy_until = start + work;
	d->gate = start + s->step;
	d->pauses = div_u64(work, 6);
	d->budget = 0;
	if (d->collects)
		d->budget = s->step;
	else if (s->suspends && s->page_read[0] * 2ull <= work)
		d->budget = work;
	ssd_push(s, d->busy_until, SSD_NONE, index, ssd_pack(SSD_ENDED, 1));
}

void ssd_loaded(struct ssd *s, u32 index, u64 now)
{
	struct ssd_channel *c = &s->channel[s->die[index].channel];

	c->loads = false;
	if (c->idle != SSD_NONE)
		channel_ready(s, s->die[index].channel);
	work_on(s, index, now, s->die[index].work);
}

/* Has a page been programmed? Reads may have put off the end, and a collection is none. */
bool ssd_ended(struct ssd *s, u32 index, u64 now)
{
	struct ssd_die *d = &s->die[index];
	bool programmed = !d->collects;

	if (d->busy_until > now) {
		ssd_push(s, d->busy_until, SSD_NONE, index, ssd_pack(SSD_ENDED, 1));
		return false;
	}
	if (programmed && s->quantum && s->debt >= s->quantum) {
		s->debt -= s->quantum;
		d->collects = true;
		work_on(s, index, now, s->quantum);
		return true;
	}
	d->collects = false;
	die_idle(s, index);
	return programmed;
}

/*
 * In the background since the drive fell idle, all dies work on it: fast cells are emptied, then
 * garbage is collected.
 */
void ssd_rested(struct ssd *s, u64 now)
{
	u64 from = max(s->idle_since, s->last_program) + s->gc_idle, work, pages;

	if (s->nr_out || now <= from || s->places > (s->gathered ? 1u : 0u))
		return;
	work = min(now - from, LONG_REST_NS) * s->dies;
	if (s->slc < s->slc_size) {
		pages = s->slc_size - s->slc;
		if (s->fold)
			pages = min(pages, div64_u64(work, s->fold));
		s->slc += pages;
		work -= pages * s->fold;
	}
	if (s->pool < s->pool_size) {
		pages = s->collect_ns ? div64_u64(work, s->collect_ns) : s->pool_size;
		s->pool = min(s->pool_size, s->pool + pages);
		s->debt = 0;
	}
}
