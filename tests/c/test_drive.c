// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The drive models through their contract: submit, next, poll. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/drive.h"
#include "core/drive/disk/internal.h"

/* A profile in the making: values by key, defaults elsewhere, lists behind. */
struct maker {
	struct hw_profile *p;
	const struct hw_drive_model *model;
	u32 room;
};

static struct maker make(const char *model)
{
	struct maker m = { .room = 4096 };
	u32 index = 0, i;

	m.model = hw_drive_model_find(model, &index);
	m.p = calloc(1, sizeof(*m.p) + m.room * sizeof(s64));
	m.p->magic = HW_PROFILE_MAGIC;
	m.p->model = index;
	m.p->params = m.model->nr_params;
	m.p->words = m.model->nr_params;
	for (i = 0; i < m.model->nr_params; i++) {
		const struct hw_param *param = &m.model->params[i];

		m.p->value[i] = param->def == HW_PARAM_REQUIRED ? 1 : param->def;
		if (param->type == HW_PARAM_LIST || param->type == HW_PARAM_DRIVES)
			m.p->value[i] = m.p->words++; /* no rows */
	}
	return m;
}

static s64 *slot(struct maker *m, const char *key)
{
	u32 i;

	for (i = 0; i < m->model->nr_params; i++) {
		if (!strcmp(m->model->params[i].key, key))
			return &m->p->value[i];
	}
	CHECK(!"no such parameter");
	return &m->p->value[0];
}

static void set(struct maker *m, const char *key, s64 value)
{
	*slot(m, key) = value;
}

static void set_list(struct maker *m, const char *key, s64 rows, const s64 *values, u32 n)
{
	*slot(m, key) = m->p->words;
	m->p->value[m->p->words++] = rows;
	memcpy(&m->p->value[m->p->words], values, n * sizeof(s64));
	m->p->words += n;
}

static size_t bytes(const struct maker *m)
{
	return sizeof(*m->p) + m->p->words * sizeof(s64);
}

/*
 * 6000 rpm: a revolution is 10 ms; 100 sectors a track: a sector is 0.1 ms. Two surfaces, no skew;
 * every move takes 5 ms.
 */
static struct maker small_disk(void)
{
	static const s64 zone[] = { 0, 99, 100, 0, 0, 0, 0, 0 };
	static const s64 seek[] = { 1, 5000000, 99, 5000000 };
	struct maker m = make("disk");

	set(&m, "geometry.surfaces", 2);
	set(&m, "geometry.cylinders", 100);
	set(&m, "mechanics.rpm", 600000);
	set_list(&m, "zones", 1, zone, 8);
	set_list(&m, "mechanics.seek", 2, seek, 4);
	set(&m, "read_ahead.mode", 0);
	return m;
}

static struct hw_drive *drive_of(struct maker *m, u32 depth)
{
	struct hw_profile_error err;
	struct hw_drive *d;
	void *mem;

	CHECK_EQ(hw_profile_check(m->p, bytes(m), &err), 0);
	mem = calloc(1, hw_drive_size(m->p, depth));
	d = hw_drive_create(mem, m->p, depth);
	free(m->p); /* the drive needs it no longer */
	return d;
}

static u64 serve(struct hw_drive *d, struct hw_io *io, u64 now)
{
	d->model->submit(d, io, now);
	while (d->model->next(d) != HW_NEVER) {
		struct hw_io *done = d->model->poll(d, d->model->next(d));

		if (done) {
			CHECK(done == io);
			CHECK(d->model->next(d) == HW_NEVER);
			return done->done_ns;
		}
	}
	CHECK(!"served");
	return 0;
}

static void test_a_read_by_hand(void)
{
	struct maker m = small_disk();
	struct hw_drive *d = drive_of(&m, 0);
	struct hw_io io = { .sector = 30, .sectors = 2, .op = HW_READ };

	CHECK_EQ(d->sectors, 20000);
	/* no movement; sector 30 passes at 3 ms, two sectors end at 3.2 */
	CHECK_EQ(serve(d, &io, 0), 3200000);
	/* another cylinder: there at 8.2 ms, sector 0 of it at 10 */
	io = (struct hw_io){ .sector = 600, .sectors = 1, .op = HW_READ };
	CHECK_EQ(serve(d, &io, 3200000), 10100000);
	/* in the buffer */
	io = (struct hw_io){ .sector = 600, .sectors = 1, .op = HW_READ };
	CHECK_EQ(serve(d, &io, 11000000), 11000000);
	CHECK_EQ(d->stats.cache_hits, 1);
	CHECK_EQ(d->stats.seeks, 1);
	CHECK_EQ(d->stats.seek_ns, 5000000);
	CHECK_EQ(d->stats.rotation_ns, 3000000 + 1800000);
	CHECK_EQ(d->stats.transfer_ns, 300000);
	CHECK_EQ(d->stats.busy_ns, 10100000);
	free(d);
}

static void test_phase_does_not_drift(void)
{
	/*
	 * 7201.01 rpm has no whole number of ns a revolution; after years the platter is where it
	 * must be
	 */
	struct maker m = small_disk();
	struct hw_drive *d;
	struct hw_io io = { .sector = 0, .sectors = 1, .op = HW_READ };
	u64 turns = 12000000007ull, start, end;

	set(&m, "mechanics.rpm", 720101);
	set(&m, "cache.enabled", 0);
	d = drive_of(&m, 0);
	/* revolution k begins at k * 60e11 / 720101 ns */
	start = (u64)((unsigned __int128)turns * 6000000000000ull / 720101) + 1;
	end = serve(d, &io, start - 2000);
	CHECK(end >= start + 83321 - 2 && end <= start + 83321 + 4);
	free(d);
}

static void test_shortest_positioning_time_first(void)
{
	struct maker m = small_disk();
	struct hw_drive *d;
	/*
	 * the first has the drive until 3.1 ms; then 90 on this track is nearer (9.0) than 40
	 * (14.0) or another cylinder
	 */
	struct hw_io io[4] = {
		{ .sector = 30, .sectors = 1, .op = HW_READ },
		{ .sector = 5020, .sectors = 1, .op = HW_READ },
		{ .sector = 20, .sectors = 1, .op = HW_READ },
		{ .sector = 90, .sectors = 1, .op = HW_READ },
	};
	static const u32 order[] = { 0, 3, 2, 1 };
	u32 i;

	set(&m, "queue.depth", 4);
	d = drive_of(&m, 0);
	CHECK_EQ(d->depth, 4);
	for (i = 0; i < 4; i++)
		d->model->submit(d, &io[i], 1000 * i);
	for (i = 0; i < 4;) {
		struct hw_io *done = d->model->poll(d, d->model->next(d));

		if (done)
			CHECK(done == &io[order[i++]]);
	}
	CHECK_EQ(io[0].done_ns, 3100000);
	CHECK_EQ(io[3].done_ns, 9100000);
	CHECK_EQ(io[2].done_ns, 12100000);
	/* there at 17.1 ms */
	CHECK_EQ(io[1].done_ns, 22100000);
	CHECK(d->model->next(d) == HW_NEVER);
	CHECK(!d->model->poll(d, U64_MAX / 2));
	CHECK(!d->write_cache);
	free(d);
}

static void test_write_back(void)
{
	struct maker m = small_disk();
	struct hw_drive *d;
	struct hw_io io, flush = { .op = HW_OTHER };
	u64 t = 0;
	u32 i;

	set(&m, "write.mode", 2);
	set(&m, "write.limit", 16);
	set(&m, "write.extents", 4);
	set(&m, "write.idle", 1000000000000);
	d = drive_of(&m, 0);
	CHECK(d->write_cache);
	for (i = 0; i < 2; i++) {
		io = (struct hw_io){ .sector = 1000 * (i + 1), .sectors = 6, .op = HW_WRITE };
		t = serve(d, &io, t);
		CHECK_EQ(t, 0);
	}
	/* dirty data are read from the cache, also where writes joined; a read of more is not */
	io = (struct hw_io){ .sector = 1002, .sectors = 3, .op = HW_READ };
	CHECK_EQ(serve(d, &io, 0), 0);
	io = (struct hw_io){ .sector = 1004, .sectors = 4, .op = HW_READ };
	t = serve(d, &io, 0);
	CHECK(t > 5000000);
	/* 12 of 16 are dirty: 6 more have to wait until there is room */
	io = (struct hw_io){ .sector = 3000, .sectors = 6, .op = HW_WRITE };
	t = serve(d, &io, t);
	CHECK(t > 10000000);
	CHECK(d->stats.media_writes >= 1);
	/* a flush ends when nothing is dirty */
	t = serve(d, &flush, t);
	CHECK_EQ(d->stats.media_writes, 3);
	/*
	 * forced unit access waits for the medium, and leaves nothing of the old data to be written
	 */
	io = (struct hw_io){ .sector = 4000, .sectors = 4, .op = HW_WRITE };
	t = serve(d, &io, t);
	io = (struct hw_io){ .sector = 4000, .sectors = 4, .op = HW_WRITE, .flags = HW_IO_FUA };
	CHECK(serve(d, &io, t) > t + 400000);
	t = io.done_ns;
	flush = (struct hw_io){ .op = HW_OTHER };
	CHECK_EQ(serve(d, &flush, t), t);
	free(d);
}

static void test_idle_drive_empties_its_cache(void)
{
	struct maker m = small_disk();
	struct hw_drive *d;
	struct hw_io io = { .sector = 1000, .sectors = 6, .op = HW_WRITE },
		     flush = { .op = HW_OTHER };

	set(&m, "write.mode", 2);
	set(&m, "write.idle", 50000000);
	d = drive_of(&m, 0);
	serve(d, &io, 0);
	CHECK_EQ(d->stats.media_writes, 0);
	CHECK_EQ(serve(d, &flush, 200000000), 200000000);
	CHECK_EQ(d->stats.media_writes, 1);
	/* a flush that comes while the cache is written waits for the end of that */
	io = (struct hw_io){ .sector = 5000, .sectors = 6, .op = HW_WRITE };
	serve(d, &io, 300000000);
	flush = (struct hw_io){ .op = HW_OTHER };
	CHECK(serve(d, &flush, 350000001) > 350500000);
	CHECK_EQ(d->stats.media_writes, 2);
	free(d);
}

static void test_reading_ahead(void)
{
	struct maker m = small_disk();
	struct hw_drive *d;
	struct hw_io io = { .sector = 0, .sectors = 10, .op = HW_READ };
	u64 t;

	set(&m, "read_ahead.mode", 3);
	set(&m, "read_ahead.sectors", 50);
	set(&m, "cache.segment", 100);
	d = drive_of(&m, 0);
	t = serve(d, &io, 0);
	CHECK_EQ(t, 1000000);
	/* still coming in: block 19 is there at 2.0 ms */
	io = (struct hw_io){ .sector = 10, .sectors = 10, .op = HW_READ };
	CHECK_EQ(serve(d, &io, 1550000), 2000000);
	/* long there; beyond the limit it is not */
	io = (struct hw_io){ .sector = 40, .sectors = 10, .op = HW_READ };
	CHECK_EQ(serve(d, &io, 9000000), 9000000);
	io = (struct hw_io){ .sector = 180, .sectors = 1, .op = HW_READ };
	CHECK(serve(d, &io, 50000000) > 50000000);
	/* a write to what is in the buffer makes it stale */
	io = (struct hw_io){ .sector = 45, .sectors = 1, .op = HW_WRITE };
	t = serve(d, &io, 70000000);
	io = (struct hw_io){ .sector = 40, .sectors = 3, .op = HW_READ };
	CHECK(serve(d, &io, t) > t);
	free(d);
}

static void test_profile_blob(void)
{
	struct maker m = small_disk();
	struct hw_profile_error err;
	size_t n = bytes(&m), k;
	bool found;

	CHECK_EQ(hw_profile_get(m.p, "mechanics.rpm", &found), 600000);
	CHECK(found);
	hw_profile_get(m.p, "mechanics.rmp", &found);
	CHECK(!found);
	for (k = 0; k < n; k += 8) /* every truncation is noticed, and nothing beyond is read */
		CHECK_EQ(hw_profile_check(m.p, k, &err), -22);
	*slot(&m, "zones") = m.p->words;
	CHECK_EQ(hw_profile_check(m.p, n, &err), -22);
	CHECK(!strcmp(err.key, "zones"));
	*slot(&m, "zones") = -1;
	CHECK_EQ(hw_profile_check(m.p, n, &err), -22);
	m.p->model = 99;
	CHECK_EQ(hw_profile_check(m.p, n, &err), -22);
	CHECK(!err.key);
	m.p->magic++;
	CHECK_EQ(hw_profile_check(m.p, n, &err), -22);
	free(m.p);
}

static void test_positions_for_policies(void)
{
	struct maker m = small_disk();
	struct hw_drive *d = drive_of(&m, 8);
	s64 row[HW_POSITION_POINTS][2];
	struct hw_device dev = { 0 };
	u32 i;

	hw_drive_describe(d, &dev, row);
	CHECK_EQ(dev.sectors, 20000);
	CHECK_EQ(dev.depth, 8);
	CHECK(dev.rotational);
	CHECK(dev.positions.nr > 3 && dev.positions.nr <= HW_POSITION_POINTS);
	CHECK_EQ(row[0][1], 0);
	CHECK_EQ(row[1][1], 5000000); /* half a revolution */
	CHECK_EQ(row[dev.positions.nr - 1][1], 10000000);
	for (i = 1; i < dev.positions.nr; i++)
		CHECK(row[i][0] > row[i - 1][0]);
	free(d);
}

static u64 state = 88172645463325252ull;

static u32 any(u32 n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (u32)(state >> 33) % n;
}

/* 40 I/Os, up to three at once: all come back, none before its time, none late by a loop. */
static void load_any(struct hw_drive *d)
{
	struct hw_io io[3];
	bool out[3] = { false };
	u32 i, left = 40, nr_out = 0, idle = 0;
	u64 now = 0;

	while (left || nr_out) {
		struct hw_io *done;

		for (i = 0; i < 3 && left; i++) {
			u64 sector = (u64)any(1u << 31) % d->sectors;

			if (out[i] || nr_out == d->depth)
				continue;
			io[i] = (struct hw_io){ .sector = sector,
						.sectors = 1 + any(700),
						.op = any(4) };
			io[i].sectors = (u32)min_t(u64, io[i].sectors, d->sectors - sector);
			io[i].flags = any(8) ? 0 : HW_IO_FUA;
			if (io[i].op >= HW_DISCARD)
				io[i].sectors = 0;
			out[i] = true;
			nr_out++;
			left--;
			d->model->submit(d, &io[i], now);
		}
		now = max(now, d->model->next(d));
		idle++;
		while ((done = d->model->poll(d, now))) {
			CHECK(done->done_ns <= now && done->done_ns >= done->submit_ns);
			out[done - io] = false;
			nr_out--;
			idle = 0;
		}
		if (idle > 1000000) {
			CHECK(!"served at last");
			return;
		}
	}
}

static struct maker small_ssd(void)
{
	struct maker m = make("ssd");

	set(&m, "geometry.sectors", 100000);
	set(&m, "geometry.channels", 2);
	set(&m, "geometry.ways", 2);
	set(&m, "timing.page_read", 50000);
	set(&m, "timing.page_program", 500000);
	set(&m, "timing.block_erase", 3000000);
	set(&m, "timing.transfer", 500);
	set(&m, "write.buffer", 4);
	set(&m, "write.pool", 8);
	set(&m, "queue.fetch", 2);
	set(&m, "queue.submissions", 2);
	set(&m, "controller.write", 1000);
	return m;
}

/* A profile with random words is refused, or makes a drive that serves. */
static void mutate(struct maker m, u32 least, u32 most)
{
	size_t n = bytes(&m);
	struct hw_profile_error err;
	u32 round, accepted = 0, i;

	for (round = 0; round < 4000; round++) {
		struct hw_profile *p = malloc(n);

		memcpy(p, m.p, n);
		for (i = 0; i <= any(3); i++) {
			s64 *v = &p->value[any(any(2) ? p->words : p->params)];
			const s64 to[] = { any(2000), -*v, (s64)any(1u << 31) << any(33), *v + 1,
					   0 };

			*v = to[any(ARRAY_SIZE(to))];
		}
		if (!hw_profile_check(p, n, &err) && hw_drive_size(p, 3) < 1u << 24) {
			void *mem = calloc(1, hw_drive_size(p, 3));

			load_any(hw_drive_create(mem, p, 3));
			free(mem);
			accepted++;
		}
		free(p);
	}
	CHECK(accepted > least && accepted < most);
	free(m.p);
}

static void test_mutated_profiles(void)
{
	mutate(small_disk(), 500, 3500);
	mutate(small_ssd(), 500, 3900);
}

/* A page is 32 sectors, which take 16 us over the channel and 500 into the cells. */
static void test_a_flush_of_flash(void)
{
	struct maker m = small_ssd();
	struct hw_drive *d;
	struct hw_io io = { .sector = 0, .sectors = 16, .op = HW_WRITE },
		     flush = { .op = HW_OTHER };
	u64 t = 10000000;

	set(&m, "controller.write", 0);
	d = drive_of(&m, 0);
	/* a page that is not full is programmed for it; then nothing is left */
	CHECK_EQ(serve(d, &io, 0), 0);
	CHECK_EQ(serve(d, &flush, 1000), 1000 + 16000 + 500000);
	CHECK_EQ(d->stats.media_writes, 1);
	flush = (struct hw_io){ .op = HW_OTHER };
	CHECK_EQ(serve(d, &flush, t), t);
	/* on the medium before completion */
	io = (struct hw_io){ .sectors = 16, .op = HW_WRITE, .flags = HW_IO_FUA };
	CHECK_EQ(serve(d, &io, 2 * t), 2 * t + 16000 + 500000);
	free(d);

	m = small_ssd();
	set(&m, "controller.write", 0);
	set(&m, "flush.time", 2000000);
	d = drive_of(&m, 0);
	/* half a page is kept in the time that is given, a full one is programmed before */
	io = (struct hw_io){ .sectors = 16, .op = HW_WRITE };
	CHECK_EQ(serve(d, &io, 0), 0);
	flush = (struct hw_io){ .op = HW_OTHER };
	CHECK_EQ(serve(d, &flush, 0), 2000000);
	CHECK_EQ(d->stats.media_writes, 0);
	io = (struct hw_io){ .sectors = 16, .op = HW_WRITE };
	CHECK_EQ(serve(d, &io, t), t);
	flush = (struct hw_io){ .op = HW_OTHER };
	CHECK_EQ(serve(d, &flush, t), t + 16000 + 500000 + 2000000);
	CHECK_EQ(d->stats.media_writes, 1);
	free(d);

	m = small_ssd();
	set(&m, "flush.protected", 1);
	set(&m, "overhead.write", 10000);
	d = drive_of(&m, 0);
	io = (struct hw_io){ .sectors = 16, .op = HW_WRITE, .flags = HW_IO_FUA };
	CHECK_EQ(serve(d, &io, 0), 11000);
	flush = (struct hw_io){ .op = HW_OTHER };
	CHECK_EQ(serve(d, &flush, t), t + 11000);
	CHECK_EQ(d->stats.media_writes, 0);
	free(d);
}

static void test_some_flushes_are_slow(void)
{
	struct maker m = small_ssd();
	struct hw_drive *d;
	u32 i, slow = 0;
	u64 t = 0;

	set(&m, "flush.time", 1000000);
	set(&m, "flush.time_slow", 2000000);
	set(&m, "flush.slow_share", 250000);
	d = drive_of(&m, 0);
	for (i = 0; i < 1000; i++) {
		struct hw_io flush = { .op = HW_OTHER };
		u64 end = serve(d, &flush, t);

		slow += end - t > 1500000;
		t = end;
	}
	CHECK(slow > 220 && slow < 280);
	free(d);
}

/* Commands wait in their own queues: with one slot, each queue's turn comes round. */
static void test_submission_queues_take_turns(void)
{
	struct maker m = small_ssd();
	struct hw_drive *d;
	struct hw_io io[12];
	u32 i;

	set(&m, "controller.read", 1000);
	set(&m, "queue.fetch", 1);
	d = drive_of(&m, 12);
	for (i = 0; i < 12; i++) {
		/* ten by queue 0, then two by queue 3, which is the second of two */
		io[i] = (struct hw_io){
			.sector = 128 * i, .sectors = 1, .op = HW_READ, .queue = i < 10 ? 0 : 3
		};
		d->model->submit(d, &io[i], 0);
	}
	for (i = 0; i < 12;)
		i += !!d->model->poll(d, d->model->next(d));
	CHECK(io[10].done_ns < io[2].done_ns);
	CHECK(io[11].done_ns < io[3].done_ns);
	CHECK(io[11].done_ns > io[1].done_ns);
	free(d);
}

/* Also where several points of the curve lie close together. */
static void test_a_seek_takes_what_the_curve_says(void)
{
	static const s64 zone[] = { 0, 1999, 100, 0, 0, 0, 0, 0 };
	static const s64 seek[] = { 1,	 1000000, 100, 2000000, 101,  5000000,
				    103, 5100000, 110, 6500000, 1999, 9000000 };
	struct maker m = small_disk();
	struct hw_drive *drive;
	struct disk *d;
	u32 i;

	set(&m, "geometry.cylinders", 2000);
	set_list(&m, "zones", 1, zone, 8);
	set_list(&m, "mechanics.seek", 6, seek, 12);
	drive = drive_of(&m, 0);
	d = container_of(drive, struct disk, drive);
	for (i = 0; i < 12; i += 2)
		CHECK_EQ(disk_seek(&d->mech, (u32)seek[i], false), seek[i + 1]);
	CHECK_EQ(disk_seek(&d->mech, 102, false), 5050000);
	CHECK_EQ(disk_seek(&d->mech, 105, false), 5500000);
	free(drive);
}

/* Wherever on the disk a window lies, its blocks are found, those aside too, and no others. */
static void test_the_buffer_is_found_wherever_it_lies(void)
{
	struct maker m = small_disk();
	struct hw_drive *drive;
	struct disk_segment *s;
	struct disk *d;
	u64 start, lbn, have;
	u32 seg;

	set(&m, "cache.segments", 4);
	set(&m, "cache.segment", 100);
	drive = drive_of(&m, 0);
	d = container_of(drive, struct disk, drive);
	s = &d->segs[2];
	disk_segment_state(d, 2, SEG_CLEAN);
	for (start = 300; start < 700; start++) {
		disk_segment_start(d, 2, start);
		disk_window(d, 2, start + 20);
		s->aside = start - 80;
		s->aside_end = start - 60;
		for (lbn = start - 200; lbn < start + 200; lbn++) {
			bool there = (lbn >= start && lbn < start + 20) ||
				     (lbn >= start - 80 && lbn < start - 60);
			enum disk_hit hit = disk_read_lookup(d, lbn, lbn + 1, &seg, &have);

			CHECK_EQ(hit, there ? HIT_FULL : HIT_NONE);
			if (hit)
				CHECK_EQ(seg, 2);
		}
	}
	free(drive);
}

int main(void)
{
	test_a_read_by_hand();
	test_phase_does_not_drift();
	test_shortest_positioning_time_first();
	test_write_back();
	test_idle_drive_empties_its_cache();
	test_reading_ahead();
	test_a_seek_takes_what_the_curve_says();
	test_the_buffer_is_found_wherever_it_lies();
	test_profile_blob();
	test_positions_for_policies();
	test_mutated_profiles();
	test_a_flush_of_flash();
	test_some_flushes_are_slow();
	test_submission_queues_take_turns();
	return CHECK_DONE();
}
