// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ssd: flash behind a write buffer.
 *
 * Dies (channels x ways) read and program a page at a time; dies of a channel share its transfer
 * path, and all share the link to the host. Pages of the drive are striped over the dies for
 * reading; writes go into the buffer, are gathered into whole pages and programmed on the next die
 * in turn, as a log is. A program takes a page from the pool of erased ones. While the pool lasts a
 * write costs its program; when it is empty every page must first be won by collecting garbage:
 * copying the valid part of a block and erasing it. Idle time fills the pool again. Reads may
 * suspend a program.
 *
 * Everything about a request is known when it is submitted, so requests are not reordered: dies
 * serve in order of arrival.
 */
#include "core/drive/profile.h"

enum {
	SP_SECTORS,
	SP_CHANNELS,
	SP_WAYS,
	SP_PAGE,
	SP_BLOCK,
	SP_READ,
	SP_PROGRAM,
	SP_ERASE,
	SP_TRANSFER,
	SP_SUSPEND,
	SP_SUSPENDS,
	SP_LINK_READ,
	SP_LINK_WRITE,
	SP_O_READ,
	SP_O_WRITE,
	SP_BUFFER,
	SP_POOL,
	SP_VALID,
	SP_GC_IDLE,
	SP_DEPTH,
	SP_READ_MIDDLE,
	SP_READ_SLOW,
	SP_READ_MORE,
	SP_HALF_DUPLEX,
	SP_C_READ,
	SP_C_WRITE,
	SP_SUBMISSIONS,
	SP_FETCH,
	SP_SLC,
	SP_SLC_PROGRAM,
	SP_FOLD,
	SP_GC_QUANTUM,
	SP_SEQUENTIAL,
	SP_RANDOM,
	SP_PROTECTED,
	SP_FLUSH,
	SP_FLUSH_SLOW,
	SP_SLOW_SHARE,
	SP_NR
};

#define MS(k, d, h)                \
	{ .key = k,                \
	  .type = HW_PARAM_NUMBER, \
	  .scale = 1000000,        \
	  .unit = "ms",            \
	  .def = d,                \
	  .min = 0,                \
	  .max = 1000000000,       \
	  .help = h }
#define NUM(k, u, d, lo, hi, h)    \
	{ .key = k,                \
	  .type = HW_PARAM_NUMBER, \
	  .scale = 1,              \
	  .unit = u,               \
	  .def = d,                \
	  .min = lo,               \
	  .max = hi,               \
	  .help = h }
#define YES(k, h) { .key = k, .type = HW_PARAM_BOOL, .scale = 1, .unit = "", .max = 1, .help = h }
#define SHARE(k, hi, h)            \
	{ .key = k,                \
	  .type = HW_PARAM_NUMBER, \
	  .scale = 1000000,        \
	  .unit = "",              \
	  .max = (hi) * 1000000ll, \
	  .help = h }

static const struct hw_param ssd_params[SP_NR] = {
	[SP_SECTORS] =
		NUM("geometry.sectors", "sectors", HW_PARAM_REQUIRED, 2048, 1ll << 50, "capacity"),
	[SP_CHANNELS] = NUM("geometry.channels", "channels", HW_PARAM_REQUIRED, 1, 256, "channels"),
	[SP_WAYS] = NUM("geometry.ways", "dies", HW_PARAM_REQUIRED, 1, 256,
			"dies (independent planes) per channel"),
	[SP_PAGE] = NUM("geometry.page", "sectors", 32, 1, 4096, "page"),
	[SP_BLOCK] = NUM("geometry.block", "pages", 256, 1, 1 << 20, "pages per erase block"),
	[SP_READ] = MS("timing.page_read", HW_PARAM_REQUIRED, "from the cells to the register"),
	[SP_PROGRAM] =
		MS("timing.page_program", HW_PARAM_REQUIRED, "from the register to the cells"),
	[SP_ERASE] = MS("timing.block_erase", HW_PARAM_REQUIRED, "erasing a block"),
	[SP_TRANSFER] = MS("timing.transfer", 0, "a sector between register and controller"),
	[SP_SUSPEND] = MS("timing.suspend", 0, "time for a read to suspend a program"),
	[SP_SUSPENDS] = YES("timing.suspends",
			    "reads suspend programs and erasures instead of waiting for them"),
	[SP_LINK_READ] = MS("link.sector_read", 0, "a sector from the drive to the host"),
	[SP_LINK_WRITE] = MS("link.sector_write", 0, "a sector from the host to the drive"),
	[SP_O_READ] = MS("overhead.read", 0, "command and completion of a read"),
	[SP_O_WRITE] = MS("overhead.write", 0, "command and completion of a write"),
	[SP_BUFFER] = NUM("write.buffer", "pages", 64, 1, 65536, "write buffer"),
	[SP_POOL] = NUM("write.pool", "pages", 65536, 1, 1ll << 40, "erased pages after idle time"),
	[SP_VALID] = { .key = "write.valid",
		       .type = HW_PARAM_NUMBER,
		       .scale = 1000000,
		       .unit = "",
		       .def = 600000,
		       .min = 0,
		       .max = 990000,
		       .help = "fraction of a block that is still valid at garbage collection" },
	[SP_GC_IDLE] =
		MS("write.gc_idle", 100000000, "idle time before background garbage collection"),
	[SP_DEPTH] = NUM("queue.depth", "requests", 32, 1, 1024,
			 "requests that the drive accepts at once"),
	[SP_READ_MIDDLE] =
		MS("timing.page_read_middle", 0, "a page of the middle kind; 0 = as page_read"),
	[SP_READ_SLOW] =
		MS("timing.page_read_slow", 0, "a page of the slowest kind; 0 = as page_read"),
	[SP_READ_MORE] = MS("timing.read_more", 0, "more for each page of a read above 4 KiB"),
	[SP_HALF_DUPLEX] = YES("link.half_duplex", "the link carries one direction at a time"),
	[SP_C_READ] = MS("controller.read", 0, "the controller's work for a read, one at a time"),
	[SP_C_WRITE] =
		MS("controller.write", 0, "the controller's work for a write, one at a time"),
	[SP_SUBMISSIONS] = NUM("queue.submissions", "queues", 1, 1, 1024,
			       "submission queues, fetched from in turn"),
	[SP_FETCH] = NUM("queue.fetch", "commands", 0, 0, 65536,
			 "commands fetched at once; a write is one until the buffer has a place; "
			 "0 = all"),
	[SP_SLC] = NUM("write.slc", "pages", 0, 0, 1ll << 40, "pages of fast cells when rested"),
	[SP_SLC_PROGRAM] =
		MS("write.slc_program", 0, "from the register to fast cells; 0 = as page_program"),
	[SP_FOLD] = MS("write.fold", 0, "a page from fast cells to others, in idle time"),
	[SP_GC_QUANTUM] = MS("write.gc_quantum", 0,
			     "garbage collection on one die at a stretch; 0 = a little with "
			     "every page"),
	[SP_SEQUENTIAL] = SHARE("write.sequential_extra", 1000,
				"more work for a page that sequential writes of 4 KiB filled"),
	[SP_RANDOM] = SHARE("write.random_extra", 1000,
			    "more work for a page that random writes of 4 KiB filled"),
	[SP_PROTECTED] = YES("flush.protected", "what is in the buffer survives a loss of power"),
	[SP_FLUSH] = MS("flush.time", 0, "a flush, once the buffer is empty"),
	[SP_FLUSH_SLOW] = MS("flush.time_slow", 0, "the same for a slow flush"),
	[SP_SLOW_SHARE] = SHARE("flush.slow_share", 1, "share of flushes that are slow"),
};

struct ssd_die {
	u64 free_ns;	  /* programs and erasures */
	u64 read_free_ns; /* reads, where they suspend those */
};

struct ssd {
	struct hw_drive drive;
	struct list_head done;
	u32 nr_out, channels, dies, page, nr_buffer;
	u32 overhead[2], link[2]; /* by direction: read, write */
	u32 page_read, page_program, transfer, suspend;
	bool suspends;
	u64 busy_since, idle_since, link_free[2];
	u64 collect_ns; /* work for one page that garbage collection wins */
	u64 gc_idle, pool, pool_size;
	u64 gathered;	/* sectors in the buffer that do not fill a page yet */
	u64 programmed; /* pages so far */
	u64 last_program_ns;
	u64 *channel_free;
	struct ssd_die *die;
	u64 *buffer; /* when the page in each place of the buffer has been programmed */
};

static struct ssd *ssd_of(const struct hw_drive *d)
{
	return container_of(d, struct ssd, drive);
}

/* Background garbage collection since the drive fell idle: every die works on it. */
static void collect(struct ssd *s, u64 now)
{
	u64 from = max(s->idle_since, s->last_program_ns) + s->gc_idle, won;

	if (s->nr_out || now <= from || s->pool >= s->pool_size)
		return;
	won = s->collect_ns ? div64_u64((now - from) * s->dies, s->collect_ns) : s->pool_size;
	s->pool = min(s->pool_size, s->pool + won);
}

static u64 read_page(struct ssd *s, u64 page, u32 sectors, u64 t)
{
	u32 i, c;
	struct ssd_die *die;
	u64 start, out;

	div_u64_rem(page, s->dies, &i);
	die = &s->die[i];
	c = i % s->channels;
	start = max(t, die->read_free_ns);
	if (die->free_ns > start)
		start = s->suspends ? start + s->suspend : die->free_ns;
	out = max(start + s->page_read, s->channel_free[c]) + (u64)sectors * s->transfer;
	s->channel_free[c] = out;
	/*
	 * What was suspended ends later, by what the read itself takes: a wait for the channel, which
	 * programs may have taken far ahead, would push them farther ahead each time.
	 */
	if (die->free_ns > start)
		die->free_ns += s->page_read + (u64)sectors * s->transfer;
	die->read_free_ns = out;
	s->drive.stats.media_reads++;
	return out;
}

/* Program a whole page on the next die, not before t. Returns when it is in the cells. */
static u64 program_page(struct ssd *s, u64 t)
{
	u32 i, c;
	struct ssd_die *die;
	u64 in, work = s->page_program;

	div_u64_rem(s->programmed++, s->dies, &i);
	die = &s->die[i];
	c = i % s->channels;
	if (s->pool)
		s->pool--;
	else
		work += s->collect_ns;
	in = max(t, s->channel_free[c]) + (u64)s->page * s->transfer;
	s->channel_free[c] = in;
	die->free_ns = max(max(in, die->free_ns), die->read_free_ns) + work;
	s->drive.stats.media_writes++;
	return die->free_ns;
}

static u64 ssd_read(struct ssd *s, const struct hw_io *io, u64 now)
{
	u64 t = now + s->overhead[0], at = io->sector, end = at + io->sectors, out = t;

	while (at < end) {
		u32 within, n;
		u64 page = div_u64_rem(at, s->page, &within), ready;

		n = (u32)min_t(u64, end - at, s->page - within);
		ready = read_page(s, page, n, t);
		out = max(max(ready, s->link_free[0]) + (u64)n * s->link[0], out);
		s->link_free[0] = out;
		at += n;
	}
	return out;
}

static u64 ssd_write(struct ssd *s, const struct hw_io *io, u64 now)
{
	u64 in = max(now + s->overhead[1], s->link_free[1]), safe = 0, *place;
	u32 left = io->sectors, n, rest;

	while (left) {
		div_u64_rem(s->programmed, s->nr_buffer, &rest);
		place = &s->buffer[rest];
		n = min_t(u32, left, s->page - (u32)s->gathered);
		in = max(in, *place) + (u64)n * s->link[1];
		left -= n;
		s->gathered += n;
		if (s->gathered == s->page) {
			s->gathered = 0;
			*place = safe = program_page(s, in);
			s->last_program_ns = max(s->last_program_ns, safe);
		}
	}
	s->link_free[1] = in;
	if (!(io->flags & HW_IO_FUA))
		return in;
	if (s->gathered) { /* the rest must not wait for more */
		s->gathered = 0;
		safe = program_page(s, in);
		s->last_program_ns = max(s->last_program_ns, safe);
	}
	return max(in, safe);
}

static void ssd_submit(struct hw_drive *drive, struct hw_io *io, u64 now)
{
	struct ssd *s = ssd_of(drive);
	struct list_head *at;

	collect(s, now);
	if (!s->nr_out++)
		s->busy_since = now;
	io->submit_ns = now;
	if (io->op == HW_READ) {
		io->done_ns = ssd_read(s, io, now);
	} else if (io->op == HW_WRITE) {
		io->done_ns = ssd_write(s, io, now);
	} else if (io->op == HW_OTHER) {
		if (s->gathered) {
			s->gathered = 0;
			s->last_program_ns = max(s->last_program_ns, program_page(s, now));
		}
		io->done_ns = max(now, s->last_program_ns) + s->overhead[1];
	} else {
		s->pool = min(s->pool_size, s->pool + div_u64(io->sectors, s->page));
		io->done_ns = now + s->overhead[1];
	}
	drive->stats.overhead_ns += s->overhead[io->op != HW_READ];
	drive->stats.transfer_ns += (u64)io->sectors * s->link[io->op != HW_READ];
	at = s->done.prev;
	while (at != &s->done && list_entry(at, struct hw_io, link)->done_ns > io->done_ns)
		at = at->prev;
	list_add(&io->link, at);
}

static struct hw_io *ssd_poll(struct hw_drive *drive, u64 now)
{
	struct ssd *s = ssd_of(drive);
	struct hw_io *io;

	if (list_empty(&s->done))
		return NULL;
	io = list_first_entry(&s->done, struct hw_io, link);
	if (io->done_ns > now)
		return NULL;
	list_del(&io->link);
	s->idle_since = io->done_ns;
	if (!--s->nr_out)
		drive->stats.busy_ns += io->done_ns - s->busy_since;
	return io;
}

static u64 ssd_next(const struct hw_drive *drive)
{
	const struct ssd *s = ssd_of(drive);

	return list_empty(&s->done) ? HW_NEVER :
				      list_first_entry(&s->done, struct hw_io, link)->done_ns;
}

struct parts {
	size_t channels, dies, buffer, end;
};

static struct parts parts_of(const struct hw_profile *p)
{
	u64 dies = (u64)p->value[SP_CHANNELS] * (u64)p->value[SP_WAYS];
	struct parts x;

	x.channels = hw_align16(sizeof(struct ssd));
	x.dies = hw_align16(x.channels + (size_t)p->value[SP_CHANNELS] * sizeof(u64));
	x.buffer = hw_align16(x.dies + (size_t)dies * sizeof(struct ssd_die));
	x.end = hw_align16(x.buffer + (size_t)p->value[SP_BUFFER] * sizeof(u64));
	return x;
}

static size_t ssd_size(const struct hw_profile *p, u32 depth)
{
	(void)depth;
	return parts_of(p).end;
}

static void ssd_create(void *mem, const struct hw_profile *p, u32 depth)
{
	const s64 *v = p->value;
	struct parts x = parts_of(p);
	struct ssd *s = mem;
	u64 copy, valid = (u64)v[SP_VALID];

	s->channel_free = mem + x.channels;
	s->die = mem + x.dies;
	s->buffer = mem + x.buffer;
	s->channels = (u32)v[SP_CHANNELS];
	s->dies = s->channels * (u32)v[SP_WAYS];
	s->page = (u32)v[SP_PAGE];
	s->nr_buffer = (u32)v[SP_BUFFER];
	s->overhead[0] = (u32)v[SP_O_READ];
	s->overhead[1] = (u32)v[SP_O_WRITE];
	s->link[0] = (u32)v[SP_LINK_READ];
	s->link[1] = (u32)v[SP_LINK_WRITE];
	s->page_read = (u32)v[SP_READ];
	s->page_program = (u32)v[SP_PROGRAM];
	s->transfer = (u32)v[SP_TRANSFER];
	s->suspend = (u32)v[SP_SUSPEND];
	s->suspends = v[SP_SUSPENDS];
	s->gc_idle = (u64)v[SP_GC_IDLE];
	s->pool_size = (u64)v[SP_POOL];
	s->pool = s->pool_size;
	/* a block gives 1 - valid of its pages, for an erasure and the copying of the others */
	copy = div_u64((s->page_read + s->page_program) * valid, 1000000);
	s->collect_ns = div64_u64((copy + div_u64((u64)v[SP_ERASE], (u32)v[SP_BLOCK])) * 1000000,
				  1000000 - valid);
	INIT_LIST_HEAD(&s->done);
	s->drive.sectors = (u64)v[SP_SECTORS];
	s->drive.write_cache = true;
	s->drive.depth = depth ? depth : (u32)v[SP_DEPTH];
}

static u32 ssd_positions(const struct hw_drive *drive, s64 (*row)[2])
{
	const struct ssd *s = ssd_of(drive);

	row[0][0] = 0;
	row[0][1] = (s64)(s->overhead[0] + s->page_read);
	return 1;
}

const struct hw_drive_model hw_ssd_model = {
	.name = "ssd",
	.summary = "flash: channels, dies, write buffer, garbage collection",
	.params = ssd_params,
	.nr_params = SP_NR,
	.size = ssd_size,
	.create = ssd_create,
	.positions = ssd_positions,
	.submit = ssd_submit,
	.poll = ssd_poll,
	.next = ssd_next,
};
