// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * array: several drives as one, striped (RAID-0) or one after another (JBOD).
 *
 * A request is cut at chunk boundaries; what falls to one member is one contiguous piece there, so
 * a request makes at most one piece a member. A member that is full keeps further pieces waiting in
 * order. A request is done when its last piece is.
 */
#include "core/drive/done.h"
#include "core/drive/profile.h"

enum { AP_KIND, AP_CHUNK, AP_MEMBERS, AP_DEPTH, AP_NR };
enum { KIND_STRIPED, KIND_JOINED };

#define MAX_MEMBERS 64

static const char *const kinds[] = { "raid0", "jbod", NULL };

static const struct hw_param array_params[AP_NR] = {
	[AP_KIND] = { .key = "array.kind",
		      .type = HW_PARAM_ENUM,
		      .scale = 1,
		      .unit = "",
		      .def = KIND_STRIPED,
		      .choices = kinds,
		      .help = "striped, or one drive after another" },
	[AP_CHUNK] = { .key = "array.chunk",
		       .type = HW_PARAM_NUMBER,
		       .scale = 1,
		       .unit = "sectors",
		       .def = 1024,
		       .min = 1,
		       .max = 1 << 24,
		       .help = "contiguous sectors on one drive before the next" },
	[AP_MEMBERS] = { .key = "array.drives",
			 .type = HW_PARAM_DRIVES,
			 .scale = 1,
			 .unit = "",
			 .def = HW_PARAM_REQUIRED,
			 .min = 1,
			 .max = MAX_MEMBERS,
			 .help = "names or files of the drives" },
	[AP_DEPTH] = { .key = "queue.depth",
		       .type = HW_PARAM_NUMBER,
		       .scale = 1,
		       .unit = "requests",
		       .def = 0,
		       .min = 0,
		       .max = 1024,
		       .help = "requests at once; 0 = the sum of the drives" },
};

struct piece {
	struct hw_io io;
	struct hw_io *whole;
	struct list_head link; /* waiting, or unused */
	u32 member;
};

struct member {
	struct hw_drive *drive;
	u64 start; /* joined: first sector in the array */
	u32 nr_out;
	struct list_head waiting;
};

struct array {
	struct hw_drive drive;
	struct list_head done, unused;
	struct member member[MAX_MEMBERS];
	u32 nr, chunk, nr_out;
	u64 busy_since;
	bool joined;
};

static struct array *array_of(const struct hw_drive *d)
{
	return container_of(d, struct array, drive);
}

static void submit_piece(struct array *a, struct piece *p, u64 now)
{
	struct member *m = &a->member[p->member];

	if (m->nr_out == m->drive->depth) {
		list_add_tail(&p->link, &m->waiting);
		return;
	}
	m->nr_out++;
	m->drive->model->submit(m->drive, &p->io, now);
}

static void add_piece(struct array *a, struct hw_io *io, u32 member, u64 sector, u64 sectors,
		      u64 now)
{
	struct piece *p = list_first_entry(&a->unused, struct piece, link);

	list_del(&p->link);
	p->io = (struct hw_io){
		.sector = sector, .sectors = (u32)sectors, .op = io->op, .flags = io->flags
	};
	p->io.host = p;
	p->whole = io;
	p->member = member;
	io->place++;
	submit_piece(a, p, now);
}

/*
 * The first sector on member i that belongs to sector s of a striped array, or to what follows s.
 */
static u64 striped(const struct array *a, u32 i, u64 s)
{
	u32 within, member;
	u64 row = div_u64_rem(div_u64_rem(s, a->chunk, &within), a->nr, &member);

	if (member == i)
		return row * a->chunk + within;
	return (row + (i < member)) * a->chunk;
}

static void array_submit(struct hw_drive *drive, struct hw_io *io, u64 now)
{
	struct array *a = array_of(drive);
	u64 end = io->sector + io->sectors;
	u32 i;

	io->submit_ns = now;
	io->done_ns = now;
	io->place = 1; /* held until all pieces are made */
	if (!a->nr_out++)
		a->busy_since = now;
	for (i = 0; i < a->nr; i++) {
		const struct member *m = &a->member[i];
		u64 from, to;

		if (!io->sectors) { /* a flush is for all */
			add_piece(a, io, i, 0, 0, now);
			continue;
		}
		if (a->joined) {
			from = max(io->sector, m->start);
			to = min(end, m->start + m->drive->sectors);
			from = from > m->start ? from - m->start : 0;
			to = to > m->start ? to - m->start : 0;
		} else {
			from = striped(a, i, io->sector);
			to = striped(a, i, end);
		}
		if (from < to)
			add_piece(a, io, i, from, to - from, now);
	}
	io->place--;
}

static void sum_up(struct array *a)
{
	struct hw_drive_stats *t = &a->drive.stats;
	u64 busy = t->busy_ns;
	u32 i;

	memset(t, 0, sizeof(*t));
	t->busy_ns = busy;
	for (i = 0; i < a->nr; i++) {
		const struct hw_drive_stats *s = &a->member[i].drive->stats;

		t->seek_ns += s->seek_ns;
		t->rotation_ns += s->rotation_ns;
		t->transfer_ns += s->transfer_ns;
		t->overhead_ns += s->overhead_ns;
		t->seeks += s->seeks;
		t->seek_cylinders += s->seek_cylinders;
		t->cache_hits += s->cache_hits;
		t->media_reads += s->media_reads;
		t->media_writes += s->media_writes;
	}
}

static void finish_piece(struct array *a, struct piece *p)
{
	struct member *m = &a->member[p->member];
	struct hw_io *io = p->whole;
	u64 now = p->io.done_ns;

	io->done_ns = max(io->done_ns, now);
	list_add(&p->link, &a->unused);
	m->nr_out--;
	if (!list_empty(&m->waiting)) {
		struct piece *next = list_first_entry(&m->waiting, struct piece, link);

		list_del(&next->link);
		submit_piece(a, next, now);
	}
	if (!--io->place)
		hw_done_add(&a->done, io);
}

static u32 first_member(const struct array *a, u64 *when)
{
	u32 i, best = 0;

	*when = HW_NEVER;
	for (i = 0; i < a->nr; i++) {
		u64 t = a->member[i].drive->model->next(a->member[i].drive);

		if (t < *when) {
			*when = t;
			best = i;
		}
	}
	return best;
}

static struct hw_io *array_poll(struct hw_drive *drive, u64 now)
{
	struct array *a = array_of(drive);
	struct hw_io *io;
	u64 when;
	u32 i;

	for (i = first_member(a, &when); when <= now; i = first_member(a, &when)) {
		struct hw_drive *d = a->member[i].drive;

		while ((io = d->model->poll(d, when)))
			finish_piece(a, io->host);
	}
	io = hw_done_take(&a->done, now);
	if (!io)
		return NULL;
	if (!--a->nr_out)
		drive->stats.busy_ns += io->done_ns - a->busy_since;
	sum_up(a);
	return io;
}

static u64 array_next(const struct hw_drive *drive)
{
	const struct array *a = array_of(drive);
	u64 when;

	first_member(a, &when);
	return min(when, hw_done_next(&a->done));
}

static const struct hw_profile *nested(const struct hw_profile *p, u32 i)
{
	const s64 *list = &p->value[p->value[AP_MEMBERS]];

	return (const struct hw_profile *)&p->value[list[1 + i]];
}

static u32 nr_members(const struct hw_profile *p)
{
	return (u32)p->value[p->value[AP_MEMBERS]];
}

/*
 * Enough whatever the members' own depths are: pieces are few, and a member's depth is bounded by
 * its table.
 */
#define MAX_DEPTH 1024u

static u32 nr_pieces(const struct hw_profile *p, u32 depth)
{
	u32 n = depth ? depth : (u32)p->value[AP_DEPTH];

	return (n ? n : MAX_DEPTH) * nr_members(p);
}

static size_t array_bytes(const struct hw_profile *p, u32 depth)
{
	size_t at = hw_align16(sizeof(struct array));
	u32 i;

	at = hw_align16(at + nr_pieces(p, depth) * sizeof(struct piece));
	for (i = 0; i < nr_members(p); i++)
		at = hw_align16(at + hw_drive_size(nested(p, i), 0));
	return at;
}

static void array_create(void *mem, const struct hw_profile *p, u32 depth)
{
	struct array *a = mem;
	size_t at = hw_align16(sizeof(*a));
	struct piece *pieces = mem + at;
	u64 least = U64_MAX, sum = 0, depths = 0;
	u32 i;

	a->nr = nr_members(p);
	a->chunk = (u32)p->value[AP_CHUNK];
	a->joined = p->value[AP_KIND] == KIND_JOINED;
	INIT_LIST_HEAD(&a->done);
	INIT_LIST_HEAD(&a->unused);
	for (i = 0; i < nr_pieces(p, depth); i++)
		list_add_tail(&pieces[i].link, &a->unused);
	at = hw_align16(at + nr_pieces(p, depth) * sizeof(struct piece));
	for (i = 0; i < a->nr; i++) {
		struct member *m = &a->member[i];

		m->drive = hw_drive_create(mem + at, nested(p, i), 0);
		at = hw_align16(at + hw_drive_size(nested(p, i), 0));
		INIT_LIST_HEAD(&m->waiting);
		m->start = sum;
		sum += m->drive->sectors;
		least = min(least, m->drive->sectors);
		depths += m->drive->depth;
		a->drive.rotational |= m->drive->rotational;
		a->drive.arms += max(m->drive->arms, 1u);
		a->drive.write_cache |= m->drive->write_cache;
	}
	a->drive.sectors = a->joined ? sum : div_u64(least, a->chunk) * a->chunk * a->nr;
	a->drive.depth = depth ? depth : (u32)p->value[AP_DEPTH];
	if (!a->drive.depth)
		a->drive.depth = (u32)min_t(u64, depths, MAX_DEPTH);
}

static int array_check(const struct hw_profile *p, struct hw_profile_error *err)
{
	u32 i;

	for (i = 0; i < nr_members(p); i++) {
		const struct hw_profile *m = nested(p, i);
		bool found;
		s64 sectors = hw_profile_get(m, "geometry.sectors", &found);

		if (p->value[AP_KIND] == KIND_STRIPED && found && sectors &&
		    sectors < p->value[AP_CHUNK])
			return hw_profile_bad(err, array_params[AP_CHUNK].key, -1, NULL,
					      "is larger than a drive");
	}
	return 0;
}

/* As a member's, at distances that are as much longer as the array is wider. */
static u32 array_positions(const struct hw_drive *drive, s64 (*row)[2])
{
	const struct array *a = array_of(drive);
	const struct hw_drive *first = a->member[0].drive;
	u32 n = first->model->positions ? first->model->positions(first, row) : 0, i;

	for (i = 0; !a->joined && i < n; i++)
		row[i][0] *= a->nr;
	return n;
}

const struct hw_drive_model hw_array_model = {
	.name = "array",
	.summary = "several drives as one: RAID-0 or JBOD",
	.params = array_params,
	.nr_params = AP_NR,
	.check = array_check,
	.size = array_bytes,
	.create = array_create,
	.positions = array_positions,
	.submit = array_submit,
	.poll = array_poll,
	.next = array_next,
};
