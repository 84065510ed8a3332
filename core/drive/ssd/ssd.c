// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ssd: flash behind a write buffer.
 *
 * A program takes a page from the pool of erased ones. While the pool lasts a write costs its
 * program, less while fast cells are left; when it is empty every page must first be won by
 * collecting garbage: copying the valid part of a block and erasing it. Idle time fills both again.
 *
 * Same calls, same answers: what looks like chance is a hash of the page or of the flush's number.
 */
#include "core/drive/ssd/internal.h"

static struct ssd *ssd_of(const struct hw_drive *d)
{
	return container_of(d, struct ssd, drive);
}

/* A command leaves the controller: what it asks for begins, and its slot is free unless it writes. */
static void begin(struct ssd *s, u32 index, u64 now)
{
	struct ssd_command *c = &s->command[index];
	const struct hw_io *io = c->io;

	if (io->op == HW_WRITE && io->sectors) {
		ssd_append(s, &s->writes, index);
		ssd_accept(s, now);
		return;
	}
	if (s->nr_fetch)
		s->nr_fetched--;
	if (io->op == HW_READ && io->sectors) {
		if (s->page_shift != SSD_NO_SHIFT) {
			c->page = io->sector >> s->page_shift;
			c->within = (u32)io->sector & (s->page - 1);
		} else {
			c->page = div_u64_rem(io->sector, s->page, &c->within);
		}
		div_u64_rem(c->page, s->dies, &c->die);
		ssd_begin_read(s, index, now);
	} else if (io->op == HW_OTHER) {
		ssd_flush(s, index, now);
		ssd_program(s, now);
	} else {
		if (io->op == HW_DISCARD)
			s->pool = min(s->pool_size, s->pool + div_u64(io->sectors, s->page));
		ssd_complete(s, index, now);
	}
}

static void enter(struct ssd *s, u32 c, u64 now)
{
	const struct hw_io *io = s->command[c].io;
	bool write = io->op != HW_READ;

	if (!s->control[0] && !s->control[1] && !s->control_sequential) {
		begin(s, c, now);
		return;
	}
	s->command[c].sequential = !write && s->control_sequential != s->control[0] &&
				   ssd_goes_on(&s->streams[0], io);
	ssd_append(s, &s->controller[write], c);
	ssd_control(s, now);
}

static void fetch(struct ssd *s, u64 now)
{
	u32 c;

	while ((c = ssd_fetch(s)) != SSD_NONE)
		enter(s, c, now);
}

/* A page of a read has made room: for who waits for any, then for what is left of its own. */
static void go_on(struct ssd *s, u32 c, u64 now)
{
	if (!ssd_empty(&s->starved))
		ssd_begin_read(s, ssd_take(s, &s->starved), now);
	if (s->command[c].begun < s->command[c].io->sectors)
		ssd_begin_read(s, c, now);
}

static void out(struct ssd *s, u32 c, u32 sectors, u64 now)
{
	ssd_send(s, c, sectors, now);
	go_on(s, c, now);
}

static void happen(struct ssd *s, const struct ssd_event *e)
{
	u32 sectors = (e->kind_sectors & ((1u << SSD_KIND_SHIFT) - 1)) + 1;
	u64 now = e->at;

	switch (e->kind_sectors >> SSD_KIND_SHIFT) {
	case SSD_READ:
		ssd_has_read(s, e->die, now);
		break;
	case SSD_OUT:
		out(s, ssd_is_out(s, e->command, now), sectors, now);
		break;
	case SSD_SENT:
		s->link_busy = false;
		ssd_delivered(s, e->command, sectors, now);
		go_on(s, e->command, now);
		ssd_use_link(s, now);
		break;
	case SSD_IN:
		s->link_busy = false;
		ssd_arrived(s, sectors, now);
		ssd_program(s, now);
		ssd_accept(s, now);
		ssd_use_link(s, now);
		break;
	case SSD_LOADED:
		ssd_loaded(s, e->die, now);
		ssd_program(s, now);
		break;
	case SSD_ENDED:
		ssd_programmed(s, ssd_ended(s, e->die, now), now);
		ssd_program(s, now);
		ssd_accept(s, now);
		break;
	}
}

/* The controller has done its part for a command. */
static void controlled(struct ssd *s, u64 now)
{
	s->controlled_at = HW_NEVER;
	begin(s, s->controlled, now);
	ssd_control(s, now);
	fetch(s, now);
}

static u64 next_event(const struct ssd *s)
{
	return s->nr_events ? s->event[0].at : HW_NEVER;
}

static void run(struct ssd *s, u64 now)
{
	for (;;) {
		u64 at = next_event(s);

		if (min(at, s->controlled_at) > now)
			return;
		if (s->controlled_at <= at) {
			controlled(s, s->controlled_at);
		} else {
			struct ssd_event e = ssd_open(s);

			happen(s, &e);
			fetch(s, e.at);
			ssd_close(s);
		}
	}
}

static void ssd_submit(struct hw_drive *drive, struct hw_io *io, u64 now)
{
	struct ssd *s = ssd_of(drive);
	struct ssd_command *c;
	u32 index, write = io->op != HW_READ;

	run(s, now);
	ssd_rested(s, now);
	if (!s->nr_out++)
		s->busy_since = now;
	io->submit_ns = now;
	index = s->unused;
	c = &s->command[index];
	s->unused = c->next;
	c->io = io;
	c->left = io->sectors;
	c->begun = 0;
	c->out = 0;
	drive->stats.overhead_ns += s->overhead[write];
	drive->stats.transfer_ns += (u64)io->sectors * s->link[write];
	if (!s->nr_fetch) {
		enter(s, index, now);
		return;
	}
	ssd_submitted(s, index);
	fetch(s, now);
}

static struct hw_io *ssd_poll(struct hw_drive *drive, u64 now)
{
	struct ssd *s = ssd_of(drive);
	struct hw_io *io;

	run(s, now);
	io = hw_done_take(&s->done, now);
	if (!io)
		return NULL;
	s->idle_since = io->done_ns;
	if (!--s->nr_out)
		drive->stats.busy_ns += io->done_ns - s->busy_since;
	return io;
}

/* What is to happen yet completes nothing before its own overhead has passed. */
static u64 ssd_next(const struct hw_drive *drive)
{
	const struct ssd *s = ssd_of(drive);
	u64 done = hw_done_next(&s->done), at;

	at = min(next_event(s), s->controlled_at);
	if (!s->nr_out || at == HW_NEVER)
		return done;
	return min(done, at + s->least_overhead);
}

struct parts {
	size_t channels, dies, extra, events, reads, commands, submissions, sent, end;
	u32 nr_channels, nr_dies, nr_buffer, nr_commands;
	u32 nr_submissions, nr_sent;
};

static struct parts parts_of(const struct hw_profile *p, u32 depth)
{
	const s64 *v = p->value;
	struct parts x = {
		.nr_channels = (u32)v[SP_CHANNELS],
		.nr_dies = (u32)(v[SP_CHANNELS] * v[SP_WAYS]),
		.nr_buffer = (u32)v[SP_BUFFER],
		.nr_commands = depth ? depth : (u32)v[SP_DEPTH],
		.nr_submissions = (u32)v[SP_SUBMISSIONS],
		.nr_sent = v[SP_HALF_DUPLEX] ? SSD_READS : 0,
	};

	x.channels = hw_align16(sizeof(struct ssd));
	x.dies = hw_align16(x.channels + x.nr_channels * sizeof(struct ssd_channel));
	x.extra = hw_align16(x.dies + x.nr_dies * sizeof(struct ssd_die));
	x.events = hw_align16(x.extra + x.nr_buffer * sizeof(u64));
	/* a read and a program of each die; both ways of the link; channels */
	x.reads = hw_align16(x.events +
			     ((size_t)SSD_READS + 2 * x.nr_dies + 3) * sizeof(struct ssd_event));
	x.commands = hw_align16(x.reads + SSD_READS * sizeof(struct ssd_read));
	x.submissions = hw_align16(x.commands + x.nr_commands * sizeof(struct ssd_command));
	x.sent = hw_align16(x.submissions + x.nr_submissions * sizeof(struct ssd_submissions));
	x.end = hw_align16(x.sent + 2 * x.nr_sent * sizeof(u32));
	return x;
}

static size_t ssd_size(const struct hw_profile *p, u32 depth)
{
	return parts_of(p, depth).end;
}

static void empty(struct ssd_queue *q)
{
	q->head = SSD_NONE;
}

static u32 or_else(s64 value, s64 other)
{
	return (u32)(value ? value : other);
}

static void lay_out(struct ssd *s, const struct parts *x)
{
	void *mem = s;
	u32 i;

	s->channel = mem + x->channels;
	s->die = mem + x->dies;
	s->extra = mem + x->extra;
	s->event = mem + x->events;
	s->read = mem + x->reads;
	s->command = mem + x->commands;
	s->submissions = mem + x->submissions;
	s->sent_command = mem + x->sent;
	s->sent_sectors = s->sent_command + x->nr_sent;
	s->channels = x->nr_channels;
	s->dies = x->nr_dies;
	s->nr_buffer = x->nr_buffer;
	s->nr_submissions = x->nr_submissions;
	for (i = 0; i < SSD_READS; i++)
		s->read[i].next = i + 1;
	for (i = 0; i < x->nr_commands; i++)
		s->command[i].next = i + 1;
	for (i = 0; i < s->nr_submissions; i++)
		empty(&s->submissions[i].commands);
	for (i = 0; i < SSD_STREAMS; i++)
		s->streams[0].end[i] = s->streams[1].end[i] = U64_MAX;
	for (i = 0; i < s->channels; i++) {
		empty(&s->channel[i].idle);
		empty(&s->channel[i].reads);
	}
	for (i = 0; i < s->dies; i++) {
		div_u64_rem(i, s->channels, &s->die[i].channel);
		empty(&s->die[i].reads);
		s->die[i].reading = SSD_NONE;
	}
	empty(&s->waiting);
	empty(&s->controller[0]);
	empty(&s->controller[1]);
	empty(&s->ready);
	empty(&s->starved);
	empty(&s->writes);
	empty(&s->flushes);
	ssd_all_empty(s);
}

static void ssd_create(void *mem, const struct hw_profile *p, u32 depth)
{
	const s64 *v = p->value;
	struct parts x = parts_of(p, depth);
	struct ssd *s = mem;
	u64 copy, valid = (u64)v[SP_VALID];
	u32 shift;

	lay_out(s, &x);
	INIT_LIST_HEAD(&s->done);
	s->controlled_at = HW_NEVER;
	s->page = (u32)v[SP_PAGE];
	s->page_shift = SSD_NO_SHIFT;
	for (shift = 0; shift < 32; shift++) {
		if (s->page == 1u << shift)
			s->page_shift = shift;
	}
	s->overhead[0] = (u32)v[SP_O_READ];
	s->overhead[1] = (u32)v[SP_O_WRITE];
	s->least_overhead = min(s->overhead[0], s->overhead[1]);
	s->link[0] = (u32)v[SP_LINK_READ];
	s->link[1] = (u32)v[SP_LINK_WRITE];
	s->control[0] = (u32)v[SP_C_READ];
	s->control[1] = (u32)v[SP_C_WRITE];
	s->control_sequential = or_else(v[SP_C_READ_SEQUENTIAL], v[SP_C_READ]);
	s->nr_fetch = (u32)v[SP_FETCH];
	s->burst = (u32)v[SP_BURST];
	s->half_duplex = v[SP_HALF_DUPLEX];
	s->page_read[0] = (u32)v[SP_READ];
	s->page_read[1] = or_else(v[SP_READ_MIDDLE], v[SP_READ]);
	s->page_read[2] = or_else(v[SP_READ_SLOW], v[SP_READ]);
	s->same_reads = s->page_read[0] == s->page_read[1] && s->page_read[0] == s->page_read[2];
	s->read_more = (u32)v[SP_READ_MORE];
	s->longest_read =
		max(max(s->page_read[0], s->page_read[1]), s->page_read[2]) + s->read_more;
	s->page_program = (u32)v[SP_PROGRAM];
	s->slc_program = or_else(v[SP_SLC_PROGRAM], v[SP_PROGRAM]);
	s->slc_size = s->slc = (u64)v[SP_SLC];
	s->fold = (u64)v[SP_FOLD];
	s->transfer = (u32)v[SP_TRANSFER];
	s->suspend = (u32)v[SP_SUSPEND];
	s->suspends = v[SP_SUSPENDS];
	s->gc_idle = (u64)v[SP_GC_IDLE];
	s->step = s->page_read[0] + s->page_program + (s->suspends ? 0 : (u64)v[SP_ERASE]);
	s->pool_size = s->pool = (u64)v[SP_POOL];
	s->more[0] = (u64)v[SP_SEQUENTIAL];
	s->more[1] = (u64)v[SP_RANDOM];
	s->more_large = (u64)v[SP_LARGE];
	s->is_protected = v[SP_PROTECTED];
	s->flush_ns[0] = (u64)v[SP_FLUSH];
	s->flush_ns[1] = or_else(v[SP_FLUSH_SLOW], v[SP_FLUSH]);
	s->slow_share = (u64)v[SP_SLOW_SHARE];
	/* a block gives 1 - valid of its pages, for an erasure and the copying of the others */
	copy = div_u64((s->page_read[0] + s->page_program) * valid, 1000000);
	s->collect_ns = div64_u64((copy + div_u64((u64)v[SP_ERASE], (u32)v[SP_BLOCK])) * 1000000,
				  1000000 - valid);
	/* a stretch wins a page at least, and is no great number of steps */
	if (v[SP_GC_QUANTUM])
		s->quantum = max(max((u64)v[SP_GC_QUANTUM], s->collect_ns), s->step);
	s->step = max(s->step, s->quantum / 64);
	s->drive.sectors = (u64)v[SP_SECTORS];
	s->drive.write_cache = true;
	s->drive.depth = x.nr_commands;
}

static u32 ssd_positions(const struct hw_drive *drive, s64 (*row)[2])
{
	const struct ssd *s = ssd_of(drive);
	u64 kinds = (u64)s->page_read[0] + s->page_read[1] + s->page_read[2];

	row[0][0] = 0;
	row[0][1] = (s64)(s->overhead[0] + s->control[0] + div_u64(kinds, 3));
	return 1;
}

const struct hw_drive_model hw_ssd_model = {
	.name = "ssd",
	.summary = "flash: controller, channels, dies, write buffer, garbage collection",
	.params = ssd_params,
	.nr_params = SP_NR,
	.size = ssd_size,
	.create = ssd_create,
	.positions = ssd_positions,
	.submit = ssd_submit,
	.poll = ssd_poll,
	.next = ssd_next,
};
