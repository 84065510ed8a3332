// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Dies and channels. Pages of the drive are striped over the dies for reading. What is programmed
 * goes, as a log, to the die whose register has been empty for longest: that is filled while the die
 * programs the page before.
 *
 * A die reads in order, and reads before it programs: a read suspends a program where the drive can
 * do that. Reads hold up a program for as long as it takes itself at most, and suspending it may
 * cost a sixth of that; after that they wait for its end, so that neither starves the other.
 * Garbage is collected in steps, between which reads get in.
 */
#include "core/drive/ssd/internal.h"

/* Steps of collecting garbage wait for reads so many times as long as they take. */
#define READS_BEFORE_GARBAGE 8u
#define LONG_REST_NS	     (1ull << 46)

/* Reading a page: it is of one of three kinds, as the bits of a cell are. */
static u64 reading(const struct ssd *s, u64 page)
{
	return s->page_read[s->same_reads ? 0 : (u32)((u64)ssd_scramble(page) * 3 >> 32)];
}

static void read_on(struct ssd *s, u32 index, u64 at)
{
	struct ssd_die *d = &s->die[index];
	const struct ssd_read *r;

	d->reading = d->reads.head;
	r = &s->read[d->reading];
	d->reads.head = r->next;
	d->budget -= min_t(u64, d->budget, r->work);
	ssd_push(s, at + r->work, r->command, index, ssd_pack(SSD_READ, r->sectors));
	s->drive.stats.media_reads++;
}

/* A program that was suspended or has just been loaded, or a step of collecting garbage, goes on. */
static void work_on(struct ssd *s, u32 index, u64 now)
{
	struct ssd_die *d = &s->die[index];

	d->works = true;
	d->busy_until = now + d->rest;
	if (!d->foreseen)
		ssd_push(s, d->busy_until, SSD_NONE, index, ssd_pack(SSD_ENDED, 1));
	d->foreseen = true;
}

/* A die has nothing under way: what comes next? */
static void choose(struct ssd *s, u32 index, u64 now)
{
	struct ssd_die *d = &s->die[index];

	if (!ssd_empty(&d->reads) && (!d->rest || d->budget >= s->read[d->reads.head].work))
		read_on(s, index, now);
	else if (d->rest)
		work_on(s, index, now);
}

static bool may_suspend(const struct ssd *s, const struct ssd_die *d, u64 work, u64 now)
{
	return s->suspends && !d->collects && d->budget >= work && d->pauses >= s->suspend &&
	       d->busy_until > now + s->suspend;
}

static void queue_read(struct ssd *s, u32 index, u32 command, u32 sectors, u64 work, u64 now)
{
	struct ssd_die *d = &s->die[index];
	u32 i = s->read_unused;

	s->read_unused = s->read[i].next;
	s->read[i] = (struct ssd_read){ command, SSD_NONE, (u32)work, sectors, index };
	ssd_link(&d->reads, s->read, i);
	if (d->reading != SSD_NONE)
		return;
	if (!d->works) {
		choose(s, index, now);
	} else if (may_suspend(s, d, work, now)) {
		d->works = false;
		d->rest = d->busy_until - now;
		d->pauses -= s->suspend;
		read_on(s, index, now + s->suspend);
	}
}

/* The next transfer over a channel that carries none: what was read and what is to be programmed take turns. */
static void transfer(struct ssd *s, u32 index, u64 now)
{
	struct ssd_channel *c = &s->channel[index];

	if (c->load_waits && (!c->loaded_last || ssd_empty(&c->reads))) {
		c->busy = c->loaded_last = true;
		c->load_waits = false;
		ssd_push(s, now + (u64)s->page * s->transfer, SSD_NONE, c->load,
			 ssd_pack(SSD_LOADED, 1));
	} else if (!ssd_empty(&c->reads)) {
		u32 i = c->reads.head;

		c->busy = true;
		c->loaded_last = false;
		c->reads.head = s->read[i].next;
		ssd_push(s, now + (u64)s->read[i].sectors * s->transfer, i, s->read[i].die,
			 ssd_pack(SSD_OUT, s->read[i].sectors));
	}
}

/* A page is in the die's register, and goes over the channel. */
void ssd_has_read(struct ssd *s, u32 index, u64 now)
{
	struct ssd_die *d = &s->die[index];
	struct ssd_channel *c = &s->channel[d->channel];
	u32 i = d->reading;

	ssd_link(&c->reads, s->read, i);
	if (!c->busy)
		transfer(s, d->channel, now);
	d->reading = SSD_NONE;
	choose(s, index, now);
}

/* It has: the command that it is for. */
u32 ssd_is_out(struct ssd *s, u32 i, u64 now)
{
	struct ssd_read *r = &s->read[i];
	u32 channel = s->die[r->die].channel;

	s->channel[channel].busy = false;
	transfer(s, channel, now);
	r->next = s->read_unused;
	s->read_unused = i;
	return r->command;
}

/* Ask the dies for as much of a read as may be on its way at once. */
void ssd_begin_read(struct ssd *s, u32 index, u64 now)
{
	struct ssd_command *c = &s->command[index];
	u32 sectors = c->io->sectors, n;
	u64 more = sectors > SSD_SMALL ? s->read_more : 0;

	while (c->begun < sectors && c->out < SSD_READS_EACH) {
		if (s->nr_reads == SSD_READS) {
			if (!c->out)
				ssd_append(s, &s->starved, index);
			return;
		}
		n = min(sectors - c->begun, s->page - c->within);
		queue_read(s, c->die, index, n, reading(s, c->page) + more, now);
		c->begun += n;
		c->within = 0;
		c->page++;
		c->out++;
		s->nr_reads++;
		if (++c->die == s->dies)
			c->die = 0;
	}
}

static void die_takes(struct ssd *s, u32 index)
{
	struct ssd_die *d = &s->die[index];
	struct ssd_channel *c = &s->channel[d->channel];
	bool none = ssd_empty(&c->idle);

	ssd_link(&c->idle, s->die, index);
	if (none && !c->loads)
		ssd_link(&s->ready, s->channel, d->channel);
}

void ssd_all_empty(struct ssd *s)
{
	u32 i;

	for (i = 0; i < s->dies; i++)
		die_takes(s, i);
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
		u32 i = c->idle.head;
		struct ssd_die *d = &s->die[i];

		s->ready.head = c->next;
		c->idle.head = d->next;
		c->loads = true;
		d->next_work = programming(s);
		d->next_number = s->started++;
		c->load = i;
		c->load_waits = true;
		s->drive.stats.media_writes++;
		if (!c->busy)
			transfer(s, (u32)(c - s->channel), now);
	}
}

/* Work that reads may hold up, and suspend if it is a program. */
static void set_work(struct ssd *s, struct ssd_die *d, u64 work)
{
	d->rest = max(work, 1ull); /* 0 is none */
	/* one read at least gets in before each program */
	d->budget = max(d->collects ? work * READS_BEFORE_GARBAGE : work, s->longest_read);
	d->pauses = s->page_read[0] * 2ull <= work ? div_u64(work, 6) : 0;
}

/* What is in the register is to go into the cells. */
static void program_loaded(struct ssd *s, u32 index)
{
	struct ssd_die *d = &s->die[index];

	d->loaded = false;
	d->number = d->next_number;
	set_work(s, d, d->next_work);
	die_takes(s, index);
}

void ssd_loaded(struct ssd *s, u32 index, u64 now)
{
	struct ssd_die *d = &s->die[index];
	struct ssd_channel *c = &s->channel[d->channel];

	c->loads = c->busy = false;
	transfer(s, d->channel, now);
	if (!ssd_empty(&c->idle))
		ssd_link(&s->ready, s->channel, d->channel);
	d->loaded = true;
	if (d->rest)
		return;
	program_loaded(s, index);
	if (d->reading == SSD_NONE)
		choose(s, index, now);
}

/* The page that has been programmed; SSD_NO_PAGE if none has. */
u64 ssd_ended(struct ssd *s, u32 index, u64 now)
{
	struct ssd_die *d = &s->die[index];
	u64 number = d->collects ? SSD_NO_PAGE : d->number;

	d->foreseen = false;
	if (!d->works) /* suspended */
		return SSD_NO_PAGE;
	if (d->busy_until > now) { /* it was */
		d->rest = d->busy_until - now;
		work_on(s, index, now);
		return SSD_NO_PAGE;
	}
	d->works = false;
	d->rest = 0;
	if (!d->collects && s->quantum && s->debt >= s->quantum) {
		s->debt -= s->quantum;
		d->collects = s->quantum;
	} else if (d->collects) {
		d->collects -= min(d->collects, s->step);
	}
	if (d->collects)
		set_work(s, d, min(d->collects, s->step));
	else if (d->loaded)
		program_loaded(s, index);
	choose(s, index, now);
	return number;
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
