// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * smr: a disk of shingled tracks that the drive itself manages.
 *
 * A write goes to a media cache, a log on the outermost tracks of the disk. What is there belongs to
 * bands; a band is cleaned as a whole, which takes the disk for a second or so, in which it serves
 * nothing else. It happens when the cache has no room for the next write, and when the disk has been
 * idle for a while. Reads are served from the band, also of what is still in the cache.
 *
 * The disk itself is another profile (model disk), and everything else about a request is its own.
 */
#include "core/drive/done.h"
#include "core/drive/profile.h"

enum { MP_DISK, MP_CACHE, MP_BAND, MP_LEAST, MP_MOST, MP_IDLE, MP_NR };

static const struct hw_param smr_params[MP_NR] = {
	[MP_DISK] = { .key = "smr.disk",
		      .type = HW_PARAM_DRIVES,
		      .scale = 1,
		      .unit = "",
		      .def = HW_PARAM_REQUIRED,
		      .min = 1,
		      .max = 1,
		      .help = "name or file of the disk that it would be without shingles" },
	[MP_CACHE] = HW_NUMBER("smr.cache", 1, "sectors", HW_PARAM_REQUIRED, 2048, 1ll << 40,
			       "media cache"),
	[MP_BAND] = HW_NUMBER("smr.band", 1, "sectors", 65536, 2048, 1 << 28, "a band"),
	[MP_LEAST] = HW_NUMBER("smr.clean_least", 1000000, "ms", 500000000, 1000000, 100000000000ll,
			       "cleaning a band of which hardly anything was written"),
	[MP_MOST] = HW_NUMBER("smr.clean_most", 1000000, "ms", 2000000000, 1000000, 100000000000ll,
			      "cleaning a band of which all was written"),
	[MP_IDLE] = HW_NUMBER("smr.idle", 1000000, "ms", 1000000000, 0, 1000000000000ll,
			      "idle time before cleaning begins"),
};

struct copy {
	struct hw_io io; /* as the disk sees it; io.host: the copy */
	struct hw_io *whole;
	struct list_head link; /* waiting, or unused */
};

struct smr {
	struct hw_drive drive;
	struct hw_drive *disk;
	struct list_head done, waiting, unused;
	u64 cache, least_ns, most_ns, idle_ns;
	u64 used, head; /* of the cache, in sectors */
	u64 clean_until, idle_since, busy_since;
	u32 *dirty; /* sectors of each band in the cache */
	u32 nr_bands, band, cursor, nr_out, nr_inside;
};

static struct smr *smr_of(const struct hw_drive *d)
{
	return container_of(d, struct smr, drive);
}

/* The next band in turn that has anything in the cache: the disk is busy from t on. */
static void clean(struct smr *m, u64 t)
{
	u64 span = m->most_ns - m->least_ns;
	u32 n;

	while (!m->dirty[m->cursor])
		m->cursor = m->cursor + 1 < m->nr_bands ? m->cursor + 1 : 0;
	n = m->dirty[m->cursor];
	m->dirty[m->cursor] = 0;
	m->used -= n;
	m->clean_until = t + m->least_ns + div64_u64(span * min(n, m->band), m->band);
	m->drive.stats.overhead_ns += m->clean_until - t;
}

static void clean_idle(struct smr *m, u64 now)
{
	u64 t = max(m->idle_since + m->idle_ns, m->clean_until);

	for (; t < now && m->used; t = m->clean_until)
		clean(m, t);
}

static void into_cache(struct smr *m, struct copy *c)
{
	u64 at = c->whole->sector, left = c->whole->sectors;

	if (m->head + left > m->cache)
		m->head = 0;
	c->io.sector = m->head;
	m->head += left;
	m->used += left;
	while (left) {
		u32 within, band = (u32)div_u64_rem(at, m->band, &within);
		u32 n = (u32)min_t(u64, left, m->band - within);

		m->dirty[band] += n;
		at += n;
		left -= n;
	}
}

/* Gives the disk what waits, in order, until a band must be cleaned. */
static void push(struct smr *m, u64 t)
{
	while (!list_empty(&m->waiting) && t >= m->clean_until) {
		struct copy *c = list_first_entry(&m->waiting, struct copy, link);
		bool write = c->io.op == HW_WRITE;

		if (write && m->used && m->used + c->io.sectors > m->cache) {
			if (!m->nr_inside)
				clean(m, t);
			return;
		}
		list_del(&c->link);
		if (write)
			into_cache(m, c);
		m->nr_inside++;
		m->disk->model->submit(m->disk, &c->io, t);
	}
}

static void finish(struct smr *m, struct copy *c)
{
	c->whole->done_ns = c->io.done_ns;
	list_add(&c->link, &m->unused);
	m->nr_inside--;
	hw_done_add(&m->done, c->whole);
}

/* When the disk or the cleaning has something to go on with. */
static u64 event(const struct smr *m)
{
	u64 t = m->disk->model->next(m->disk);

	return list_empty(&m->waiting) || m->nr_inside ? t : min(t, m->clean_until);
}

static void advance(struct smr *m, u64 now)
{
	u64 t;

	for (t = event(m); t <= now; t = event(m)) {
		struct hw_io *io;

		while ((io = m->disk->model->poll(m->disk, t)))
			finish(m, io->host);
		push(m, t);
	}
}

static void smr_submit(struct hw_drive *drive, struct hw_io *io, u64 now)
{
	struct smr *m = smr_of(drive);
	struct copy *c;

	advance(m, now);
	if (!m->nr_out++) {
		clean_idle(m, now);
		m->busy_since = now;
	}
	c = list_first_entry(&m->unused, struct copy, link);
	list_del(&c->link);
	io->submit_ns = now;
	c->whole = io;
	c->io = (struct hw_io){ .sector = io->sector + (io->sectors ? m->cache : 0),
				.sectors = io->sectors,
				.op = io->op,
				.flags = io->flags,
				.queue = io->queue,
				.host = c };
	list_add_tail(&c->link, &m->waiting);
	push(m, now);
}

static void take_over(struct smr *m)
{
	struct hw_drive_stats *t = &m->drive.stats, s = m->disk->stats;

	s.busy_ns = t->busy_ns;
	s.overhead_ns = t->overhead_ns;
	*t = s;
}

static struct hw_io *smr_poll(struct hw_drive *drive, u64 now)
{
	struct smr *m = smr_of(drive);
	struct hw_io *io;

	advance(m, now);
	io = hw_done_take(&m->done, now);
	if (!io)
		return NULL;
	m->idle_since = io->done_ns;
	if (!--m->nr_out)
		drive->stats.busy_ns += io->done_ns - m->busy_since;
	take_over(m);
	return io;
}

static u64 smr_next(const struct hw_drive *drive)
{
	const struct smr *m = smr_of(drive);

	return min(event(m), hw_done_next(&m->done));
}

static const struct hw_profile *disk_of(const struct hw_profile *p)
{
	return (const struct hw_profile *)&p->value[p->value[p->value[MP_DISK] + 1]];
}

/* As its profile tells. */
static u64 sectors_of(const struct hw_profile *p)
{
	bool found;

	return (u64)hw_profile_get(disk_of(p), "geometry.sectors", &found);
}

static int smr_check(const struct hw_profile *p, struct hw_profile_error *err)
{
	if (hw_drive_models[disk_of(p)->model] != &hw_disk_model)
		return hw_profile_bad(err, smr_params[MP_DISK].key, 0, NULL,
				      "must be a disk (model disk)");
	if (!sectors_of(p))
		return hw_profile_bad(err, smr_params[MP_DISK].key, 0, NULL,
				      "must tell its geometry.sectors");
	if (sectors_of(p) <= 2 * (u64)p->value[MP_CACHE])
		return hw_profile_bad(err, smr_params[MP_CACHE].key, -1, NULL,
				      "must be less than half of the disk");
	if (div_u64(sectors_of(p), (u32)p->value[MP_BAND]) >= 1u << 24)
		return hw_profile_bad(err, smr_params[MP_BAND].key, -1, NULL,
				      "makes more bands than 16777215");
	if (p->value[MP_MOST] < p->value[MP_LEAST])
		return hw_profile_bad(err, smr_params[MP_MOST].key, -1, NULL,
				      "is less than clean_least");
	return 0;
}

static u32 bands_of(const struct hw_profile *p)
{
	return (u32)div_u64(sectors_of(p), (u32)p->value[MP_BAND]) + 1;
}

static u32 depth_of(const struct hw_profile *p, u32 depth)
{
	bool found;

	return depth ? depth : (u32)hw_profile_get(disk_of(p), "queue.depth", &found);
}

static size_t smr_size(const struct hw_profile *p, u32 depth)
{
	size_t at = hw_align16(sizeof(struct smr));

	at = hw_align16(at + (size_t)bands_of(p) * sizeof(u32));
	at = hw_align16(at + (size_t)depth_of(p, depth) * sizeof(struct copy));
	return at + hw_drive_size(disk_of(p), depth);
}

static void smr_create(void *mem, const struct hw_profile *p, u32 depth)
{
	struct smr *m = mem;
	size_t at = hw_align16(sizeof(*m));
	struct copy *copies;
	u32 i;

	INIT_LIST_HEAD(&m->done);
	INIT_LIST_HEAD(&m->waiting);
	INIT_LIST_HEAD(&m->unused);
	m->nr_bands = bands_of(p);
	m->dirty = mem + at;
	at = hw_align16(at + (size_t)m->nr_bands * sizeof(u32));
	copies = mem + at;
	for (i = 0; i < depth_of(p, depth); i++)
		list_add_tail(&copies[i].link, &m->unused);
	at = hw_align16(at + (size_t)depth_of(p, depth) * sizeof(struct copy));
	m->disk = hw_drive_create(mem + at, disk_of(p), depth);
	m->cache = (u64)p->value[MP_CACHE];
	m->band = (u32)p->value[MP_BAND];
	m->least_ns = (u64)p->value[MP_LEAST];
	m->most_ns = (u64)p->value[MP_MOST];
	m->idle_ns = (u64)p->value[MP_IDLE];
	m->drive.sectors = m->disk->sectors - m->cache;
	m->drive.depth = m->disk->depth;
	m->drive.rotational = true;
	m->drive.write_cache = m->disk->write_cache;
}

static u32 smr_positions(const struct hw_drive *drive, s64 (*row)[2])
{
	const struct hw_drive *disk = smr_of(drive)->disk;

	return disk->model->positions(disk, row);
}

const struct hw_drive_model hw_smr_model = {
	.name = "smr",
	.summary = "disk of shingled tracks, drive-managed: media cache, bands",
	.params = smr_params,
	.nr_params = MP_NR,
	.check = smr_check,
	.size = smr_size,
	.create = smr_create,
	.positions = smr_positions,
	.submit = smr_submit,
	.poll = smr_poll,
	.next = smr_next,
};
