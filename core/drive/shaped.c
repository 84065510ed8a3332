// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * shaped: a cloud volume, limits in front of servers.
 *
 * A request passes the gate in order of arrival, when each bucket of tokens has enough for it: one
 * counts I/Os, of at most `unit` sectors, one bytes, and one keeps bursts to a peak rate. What
 * adjoins a request that is still at the gate is merged with it and counts as the same I/O until
 * `unit` is full. Then the first server that is free takes it, for a time drawn from a table of
 * quantiles. Slow spells, in which every draw is so many times as long, make tails come together.
 * Where servers are not alike and hinder each other, as those of a virtual disk do, a table says how
 * many times as long a draw is with so many requests in the volume.
 *
 * A bucket is the time at which it will be full again, exact to the fraction of a nanosecond. Draws
 * are hashes of the seed and of the request's number, so runs repeat. Everything about a request is
 * known when it is submitted.
 */
#include "core/drive/done.h"
#include "core/drive/profile.h"
#include "core/lib/mix.h"

enum {
	HP_SECTORS,
	HP_SERVERS,
	HP_READ,
	HP_WRITE,
	HP_SECTOR_READ,
	HP_SECTOR_WRITE,
	HP_LOAD,
	HP_IOS_RATE,
	HP_IOS_BURST,
	HP_IOS_UNIT,
	HP_IOS_PEAK,
	HP_BYTES_RATE,
	HP_BYTES_BURST,
	HP_BYTES_READ,
	HP_BYTES_WRITE,
	HP_SLOW_SHARE,
	HP_SLOW_FACTOR,
	HP_SLOW_TIME,
	HP_SEED,
	HP_DEPTH,
	HP_NR
};

#define WHOLE	    1000000u /* of a share, and of a factor of 1 */
#define MAX_POINTS  24
#define NS	    1000000000ull
/* No limit asks for more than for so many sectors: costs in tokens fit. */
#define MAX_COUNTED (1u << 24)

static const struct hw_param point_columns[] = {
	HW_NUMBER("share", WHOLE, "", HW_PARAM_REQUIRED, 0, WHOLE,
		  "of the requests that take no longer"),
	HW_NUMBER("ms", 1000000, "ms", HW_PARAM_REQUIRED, 0, 60000000000ll, "time in a server"),
};

static const struct hw_param load_columns[] = {
	HW_NUMBER("at_once", 1, "requests", HW_PARAM_REQUIRED, 1, 1024, "in the volume"),
	HW_NUMBER("times", WHOLE, "", HW_PARAM_REQUIRED, WHOLE, 1000ll * WHOLE, "as long as alone"),
};

#define TABLE(k, c, least, h)                     \
	{ .key = k,                               \
	  .type = HW_PARAM_LIST,                  \
	  .scale = 1,                             \
	  .unit = "",                             \
	  .def = (least) ? HW_PARAM_REQUIRED : 0, \
	  .min = least,                           \
	  .max = MAX_POINTS,                      \
	  .help = h,                              \
	  .columns = c,                           \
	  .nr_columns = 2 }

static const struct hw_param shaped_params[HP_NR] = {
	[HP_SECTORS] = HW_NUMBER("geometry.sectors", 1, "sectors", HW_PARAM_REQUIRED, 2048,
				 1ll << 50, "capacity"),
	[HP_SERVERS] = HW_NUMBER("servers", 1, "requests", 64, 1, 1024, "requests served at once"),
	[HP_READ] =
		TABLE("latency.read", point_columns, 2, "quantiles of a read's time in a server"),
	[HP_WRITE] =
		TABLE("latency.write", point_columns, 2, "quantiles of a write's time in a server"),
	[HP_SECTOR_READ] = HW_NUMBER("latency.sector_read", 1000000, "ms", 0, 0, 1000000000,
				     "more for a sector"),
	[HP_SECTOR_WRITE] = HW_NUMBER("latency.sector_write", 1000000, "ms", 0, 0, 1000000000,
				      "more for a sector"),
	[HP_LOAD] = TABLE("latency.load", load_columns, 0,
			  "by how much longer a request takes beside others"),
	[HP_IOS_RATE] = HW_NUMBER("ios.rate", 1, "I/Os a second", 0, 0, NS, "limit; 0 = none"),
	[HP_IOS_BURST] = HW_NUMBER("ios.burst", 1, "I/Os", 1, 1, 1ll << 33, "saved up at most"),
	[HP_IOS_UNIT] =
		HW_NUMBER("ios.unit", 1, "sectors", 512, 1, 1 << 20, "that count as one I/O"),
	[HP_IOS_PEAK] =
		HW_NUMBER("ios.peak", 1, "I/Os a second", 0, 0, NS, "limit in a burst; 0 = none"),
	[HP_BYTES_RATE] =
		HW_NUMBER("bytes.rate", 1000000, "MB/s", 0, 0, 1000000000000ll, "limit; 0 = none"),
	[HP_BYTES_BURST] = HW_NUMBER("bytes.burst", 1000000, "MB", 1000000, 512, 1000000000000000ll,
				     "saved up at most"),
	[HP_BYTES_READ] = HW_NUMBER("bytes.read_rate", 1000000, "MB/s", 0, 0, 1000000000000ll,
				    "limit of reads alone; 0 = none"),
	[HP_BYTES_WRITE] = HW_NUMBER("bytes.write_rate", 1000000, "MB/s", 0, 0, 1000000000000ll,
				     "limit of writes alone; 0 = none"),
	[HP_SLOW_SHARE] =
		HW_NUMBER("slow.share", WHOLE, "", 0, 0, WHOLE, "of the time that is slow"),
	[HP_SLOW_FACTOR] = HW_NUMBER("slow.factor", WHOLE, "", WHOLE, WHOLE, 1000 * WHOLE,
				     "times as long then"),
	[HP_SLOW_TIME] = HW_NUMBER("slow.time", 1000000, "ms", 1000000000, 1000000, 3600000000000ll,
				   "length of a slow spell"),
	[HP_SEED] = HW_NUMBER("seed", 1, "", 1, 0, 1ll << 53, "of the draws"),
	[HP_DEPTH] = HW_NUMBER("queue.depth", 1, "requests", 128, 1, 1024,
			       "requests that the volume accepts at once"),
};

struct bucket {
	u64 rate;	   /* 0: no limit */
	u64 token_ns;	   /* a token's ns times the rate */
	u64 burst_ns;	   /* to fill it */
	u64 full_ns, rest; /* when it will be full: rest / rate of a ns later */
};

/* Points of a line that never falls: a draw's time by its share, or how many times as long by load. */
struct table {
	u64 at[MAX_POINTS], value[MAX_POINTS];
	u32 nr;
};

struct shaped {
	struct hw_drive drive;
	struct list_head done;
	struct bucket ios, peak, bytes, way[2];
	struct table table[2], load;
	u64 sector_ns[2];
	u64 slow_share, slow_factor, slow_time, seed, number;
	u64 gate_ns;	  /* when the latest request has passed */
	u64 run, run_end; /* sectors merged so far, and where they end */
	u64 busy_since;
	u64 *free; /* when servers will be, as a heap */
	u32 nr_out, servers, unit;
	u8 run_op;
};

static struct shaped *shaped_of(const struct hw_drive *d)
{
	return container_of(d, struct shaped, drive);
}

static u64 mixed(u64 x)
{
	return hw_mix(x + HW_MIX_STEP);
}

static void bucket_init(struct bucket *b, u64 rate, u64 burst, u64 token_ns)
{
	u64 whole;

	b->rate = rate;
	b->token_ns = token_ns;
	if (!rate)
		return;
	whole = div64_u64(burst, rate);
	b->burst_ns = whole * NS + div64_u64((burst - whole * rate) * NS, rate);
}

/* When so many tokens are there, not before t. What is more than a burst waits for a full bucket. */
static u64 bucket_ready(const struct bucket *b, u64 tokens, u64 t)
{
	u64 saved;

	if (!b->rate)
		return t;
	saved = b->burst_ns - min(b->burst_ns, div64_u64(tokens * b->token_ns, b->rate));
	/* a fraction of a nanosecond too early would be above the limit */
	return max(t, b->full_ns + !!b->rest - min(b->full_ns + !!b->rest, saved));
}

static void bucket_take(struct bucket *b, u64 tokens, u64 t)
{
	u64 num, whole;

	if (!b->rate)
		return;
	if (t > b->full_ns) {
		b->full_ns = t;
		b->rest = 0;
	}
	num = tokens * b->token_ns + b->rest;
	whole = div64_u64(num, b->rate);
	b->full_ns += whole;
	b->rest = num - whole * b->rate;
}

/* I/Os that a request adds to what is merged at the gate. */
static u64 counted(struct shaped *s, const struct hw_io *io, u32 sectors, u64 now)
{
	bool joins = s->gate_ns >= now && s->run && s->run_op == io->op && s->run_end == io->sector;
	u64 before = joins ? s->run : 0;

	s->run = before + sectors;
	s->run_op = io->op;
	s->run_end = io->sector + io->sectors;
	return div_u64(s->run + s->unit - 1, s->unit) - div_u64(before + s->unit - 1, s->unit);
}

static u64 pass_gate(struct shaped *s, const struct hw_io *io, u64 now)
{
	u32 sectors = min_t(u32, io->sectors, MAX_COUNTED);
	struct bucket *way = &s->way[io->op != HW_READ];
	u64 ios = counted(s, io, sectors, now), t = max(now, s->gate_ns);

	t = bucket_ready(&s->ios, ios, t);
	t = bucket_ready(&s->peak, ios, t);
	t = bucket_ready(&s->bytes, sectors, t);
	t = bucket_ready(way, sectors, t);
	bucket_take(&s->ios, ios, t);
	bucket_take(&s->peak, ios, t);
	bucket_take(&s->bytes, sectors, t);
	bucket_take(way, sectors, t);
	s->gate_ns = t;
	return t;
}

static u64 drawn(const struct table *t, u32 u)
{
	u32 i = 1;

	while (i < t->nr - 1 && t->at[i] <= u)
		i++;
	return t->value[i - 1] + div64_u64((t->value[i] - t->value[i - 1]) * (u - t->at[i - 1]),
					   t->at[i] - t->at[i - 1]);
}

/* @ns with as many requests as there are; beyond the table they get no more done. */
static u64 loaded(const struct shaped *s, u64 ns)
{
	const struct table *t = &s->load;
	u32 n = s->nr_out, last = t->nr - 1, rest;
	u64 times, whole;

	if (!t->nr || n <= 1)
		return ns;
	times = n > t->at[last] ? div64_u64(t->value[last] * n, t->at[last]) : drawn(t, n);
	whole = div_u64_rem(ns, WHOLE, &rest);
	return whole * times + div_u64(rest * times, WHOLE);
}

static u64 service(struct shaped *s, const struct hw_io *io, u64 now)
{
	bool write = io->op != HW_READ;
	u32 u;
	u64 ns;

	div_u64_rem(mixed(s->seed ^ mixed(s->number++)), WHOLE, &u);
	ns = drawn(&s->table[write], u);
	div_u64_rem(mixed(~s->seed ^ mixed(div64_u64(now, s->slow_time))), WHOLE, &u);
	if (u < s->slow_share)
		ns = div_u64(ns * (s->slow_factor >> 4), WHOLE >> 4);
	if (io->op == HW_READ || io->op == HW_WRITE)
		ns += io->sectors * s->sector_ns[write];
	return loaded(s, ns);
}

/* The first server that is free works until `until`. */
static void occupy(struct shaped *s, u64 until)
{
	u32 at = 0, child;

	while ((child = 2 * at + 1) < s->servers) {
		if (child + 1 < s->servers && s->free[child + 1] < s->free[child])
			child++;
		if (s->free[child] >= until)
			break;
		s->free[at] = s->free[child];
		at = child;
	}
	s->free[at] = until;
}

static void shaped_submit(struct hw_drive *drive, struct hw_io *io, u64 now)
{
	struct shaped *s = shaped_of(drive);
	u64 t = now, ns = 0;

	if (!s->nr_out++)
		s->busy_since = now;
	io->submit_ns = now;
	if (io->op == HW_READ || io->op == HW_WRITE)
		t = pass_gate(s, io, now);
	if (io->sectors) { /* a flush has nothing to wait for: what is written is safe */
		t = max(t, s->free[0]);
		ns = service(s, io, t);
		occupy(s, t + ns);
	}
	io->done_ns = t + ns;
	drive->stats.overhead_ns += ns;
	drive->stats.media_reads += io->op == HW_READ;
	drive->stats.media_writes += io->op == HW_WRITE;
	hw_done_add(&s->done, io);
}

static struct hw_io *shaped_poll(struct hw_drive *drive, u64 now)
{
	struct shaped *s = shaped_of(drive);
	struct hw_io *io = hw_done_take(&s->done, now);

	if (io && !--s->nr_out)
		drive->stats.busy_ns += io->done_ns - s->busy_since;
	return io;
}

static u64 shaped_next(const struct hw_drive *drive)
{
	return hw_done_next(&shaped_of(drive)->done);
}

/* The first column rises, and the second does not fall. */
static int check_rows(const struct hw_profile *p, u32 param, struct hw_profile_error *err)
{
	const struct hw_param *list = &shaped_params[param];
	u32 rows, r;
	const s64 *row = hw_profile_list(p, param, &rows);

	for (r = 1; r < rows; r++) {
		if (row[2 * r] <= row[2 * r - 2])
			return hw_profile_bad(err, list->key, r, list->columns[0].key,
					      "must rise from row to row");
		if (row[2 * r + 1] < row[2 * r - 1])
			return hw_profile_bad(err, list->key, r, list->columns[1].key,
					      "falls below the row before");
	}
	return 0;
}

static int check_table(const struct hw_profile *p, u32 param, struct hw_profile_error *err)
{
	u32 rows;
	const s64 *row = hw_profile_list(p, param, &rows);
	const char *key = shaped_params[param].key;

	if (row[0])
		return hw_profile_bad(err, key, 0, "share", "must be 0 in the first row");
	if (row[2 * (rows - 1)] != WHOLE)
		return hw_profile_bad(err, key, rows - 1, "share", "must be 1 in the last row");
	return check_rows(p, param, err);
}

/* More requests take longer, each; but together no longer for as much. */
static int check_load(const struct hw_profile *p, struct hw_profile_error *err)
{
	u32 rows, r;
	const s64 *row = hw_profile_list(p, HP_LOAD, &rows);
	const char *key = shaped_params[HP_LOAD].key;

	if (rows && (row[0] != 1 || row[1] != WHOLE))
		return hw_profile_bad(err, key, 0, "times",
				      "must be 1 at once, 1 times, in the first row");
	for (r = 1; r < rows; r++)
		if (row[2 * r + 1] * row[2 * r - 2] > row[2 * r - 1] * row[2 * r])
			return hw_profile_bad(err, key, r, "times", "rises faster than at_once");
	return check_rows(p, HP_LOAD, err);
}

static int shaped_check(const struct hw_profile *p, struct hw_profile_error *err)
{
	int ret = check_table(p, HP_READ, err);

	if (!ret)
		ret = check_table(p, HP_WRITE, err);
	return ret ? ret : check_load(p, err);
}

static size_t shaped_size(const struct hw_profile *p, u32 depth)
{
	(void)depth;
	return hw_align16(sizeof(struct shaped)) + (size_t)p->value[HP_SERVERS] * sizeof(u64);
}

static void table_init(struct table *t, const struct hw_profile *p, u32 param)
{
	const s64 *row = hw_profile_list(p, param, &t->nr);
	u32 r;

	for (r = 0; r < t->nr; r++) {
		t->at[r] = (u64)row[2 * r];
		t->value[r] = (u64)row[2 * r + 1];
	}
}

static void shaped_create(void *mem, const struct hw_profile *p, u32 depth)
{
	const s64 *v = p->value;
	struct shaped *s = mem;

	s->free = mem + hw_align16(sizeof(*s));
	s->servers = (u32)v[HP_SERVERS];
	s->unit = (u32)v[HP_IOS_UNIT];
	s->sector_ns[0] = (u64)v[HP_SECTOR_READ];
	s->sector_ns[1] = (u64)v[HP_SECTOR_WRITE];
	s->slow_share = (u64)v[HP_SLOW_SHARE];
	s->slow_factor = (u64)v[HP_SLOW_FACTOR];
	s->slow_time = (u64)v[HP_SLOW_TIME];
	s->seed = (u64)v[HP_SEED];
	table_init(&s->table[0], p, HP_READ);
	table_init(&s->table[1], p, HP_WRITE);
	table_init(&s->load, p, HP_LOAD);
	bucket_init(&s->ios, (u64)v[HP_IOS_RATE], (u64)v[HP_IOS_BURST], NS);
	bucket_init(&s->peak, (u64)v[HP_IOS_PEAK], 1, NS);
	bucket_init(&s->bytes, (u64)v[HP_BYTES_RATE], (u64)v[HP_BYTES_BURST], 512 * NS);
	bucket_init(&s->way[0], (u64)v[HP_BYTES_READ], (u64)v[HP_BYTES_BURST], 512 * NS);
	bucket_init(&s->way[1], (u64)v[HP_BYTES_WRITE], (u64)v[HP_BYTES_BURST], 512 * NS);
	INIT_LIST_HEAD(&s->done);
	s->drive.sectors = (u64)v[HP_SECTORS];
	s->drive.depth = depth ? depth : (u32)v[HP_DEPTH];
}

static u32 shaped_positions(const struct hw_drive *drive, s64 (*row)[2])
{
	row[0][0] = 0;
	row[0][1] = (s64)drawn(&shaped_of(drive)->table[0], WHOLE / 2);
	return 1;
}

const struct hw_drive_model hw_shaped_model = {
	.name = "shaped",
	.summary = "cloud volume: limits on I/Os and bytes, servers, a table of latencies",
	.params = shaped_params,
	.nr_params = HP_NR,
	.check = shaped_check,
	.size = shaped_size,
	.create = shaped_create,
	.positions = shaped_positions,
	.submit = shaped_submit,
	.poll = shaped_poll,
	.next = shaped_next,
};
