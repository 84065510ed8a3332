// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where the next I/O of a job goes: file, offset, length, as fio 3.33 chooses them.
 *
 * Sequential I/O goes on from where the last one in the same direction ended. Random I/O draws a
 * block; with a random map (the default) a block that this pass has touched already gives way to
 * the next free one, so that a pass covers every block once. A file is done when its next I/O
 * does not fit; the pass is over when all its files are.
 */
#include "sim/load/internal.h"

#define NO_START    U64_MAX
#define CHUNK_WORDS 511u /* with the link a page */

/* --- the map of blocks: its memory is what has been touched, also of a map of a whole drive --- */

struct sim_chunk {
	struct sim_chunk *next;
	u64 word[CHUNK_WORDS];
};

static void map_init(struct hws *s, struct sim_map *m, u64 bytes, u64 unit)
{
	u64 n;

	m->unit = unit;
	m->blocks = bytes / unit;
	m->run = s;
	n = m->blocks;
	do {
		n = (n + 63) / 64;
		m->level[m->nr_levels++] = sim_alloc(s, (n + CHUNK_WORDS - 1) / CHUNK_WORDS *
								sizeof(struct sim_chunk *));
	} while (n > 1 && m->nr_levels < SIM_MAP_LEVELS);
}

static void map_clear(struct sim_map *m)
{
	struct sim_chunk *c;

	for (c = m->chunks; c; c = c->next)
		memset(c->word, 0, sizeof(c->word));
}

static u64 word_at(const struct sim_map *m, u32 level, u64 i)
{
	const struct sim_chunk *c = m->level[level][i / CHUNK_WORDS];

	return c ? c->word[i % CHUNK_WORDS] : 0;
}

static u64 *word_to_set(struct sim_map *m, u32 level, u64 i)
{
	struct sim_chunk **c = &m->level[level][i / CHUNK_WORDS];

	if (!*c) {
		*c = sim_alloc(m->run, sizeof(**c));
		(*c)->next = m->chunks;
		m->chunks = *c;
	}
	return &(*c)->word[i % CHUNK_WORDS];
}

static bool map_busy(const struct sim_map *m, u64 block)
{
	return word_at(m, 0, block / 64) >> (block % 64) & 1;
}

static void map_set(struct sim_map *m, u64 block)
{
	u32 i;

	for (i = 0; i < m->nr_levels; i++) {
		u64 *word = word_to_set(m, i, block / 64);

		*word |= 1ull << (block % 64);
		if (~*word)
			break;
		block /= 64;
	}
}

/*
 * The first block at or after `from` that is free, or U64_MAX. Bits beyond the last block are
 * always clear.
 */
static u64 map_free_from(const struct sim_map *m, u64 from)
{
	u64 at = from;
	u32 i;

	for (i = 0; i < m->nr_levels && at <= (m->blocks - 1) >> (6 * i); i++) {
		u64 word = ~word_at(m, i, at / 64) >> (at % 64);

		if (word) {
			at += (u64)__builtin_ctzll(word);
			while (i && at <= (m->blocks - 1) >> (6 * i)) {
				i--;
				at = at * 64 + (u64)__builtin_ctzll(~word_at(m, i, at));
			}
			return !i && at < m->blocks ? at : U64_MAX;
		}
		at = at / 64 + 1;
	}
	return U64_MAX;
}

static u64 map_next_free(const struct sim_map *m, u64 from)
{
	u64 block = map_free_from(m, from);

	return block == U64_MAX ? map_free_from(m, 0) : block;
}

/* Marks as many blocks from `offset` on as are free in a row; the bytes that they cover. */
static u64 map_take(struct sim_map *m, u64 offset, u64 bytes)
{
	u64 block = offset / m->unit, end = (offset + bytes + m->unit - 1) / m->unit, taken = 0;

	while (block < end && block < m->blocks && !map_busy(m, block)) {
		map_set(m, block++);
		taken += m->unit;
	}
	return min(taken, bytes);
}

/* --- files --- */

u32 sim_jobs_group_at(const struct hws *s, u64 byte)
{
	const struct sim_jobs *all = s->jobs;
	u64 i, k;

	for (i = 0; i < all->nr; i++) {
		const struct sim_job *j = all->job[i];

		if (!j->opt.buffered || !(j->opt.directions & HWS_WRITES))
			continue;
		for (k = 0; k < j->opt.nr_files; k++)
			if (byte - j->files[k].at.base <
			    j->files[k].at.offset + j->files[k].at.size)
				return s->tasks[j->opt.task].group;
	}
	return 0;
}

static void file_reset(struct sim_job *j, struct sim_file *f)
{
	u32 d;

	for (d = 0; d < 2; d++) {
		f->last_pos[d] = f->at.offset;
		f->last_start[d] = NO_START;
	}
	f->done = false;
}

void sim_place_init(struct hws *s, struct sim_job *j)
{
	const struct hws_job *o = &j->opt;
	u64 i, unit = o->min_bytes[o->directions == HWS_WRITES ? HWS_WRITE : HWS_READ];

	if (o->directions == HWS_READS_AND_WRITES)
		unit = min(o->min_bytes[0], o->min_bytes[1]);

	for (i = 0; i < o->nr_files; i++) {
		if (o->random && o->skew) {
			sim_dice_seed_file(j, &j->files[i], s->opt.seed);
			sim_skew_init(j, &j->files[i]);
		} else if (o->random && o->random_map) {
			map_init(s, &j->files[i].map, j->files[i].at.span, unit);
		}
		file_reset(j, &j->files[i]);
	}
	j->until_random = 1;
	j->rewinds = true;
	j->file_left = o->file_every;
}

void sim_place_reset(struct sim_job *j)
{
	u64 i;

	for (i = 0; i < j->opt.nr_files; i++) {
		file_reset(j, &j->files[i]);
		map_clear(&j->files[i].map);
	}
	j->rewinds = true;
	j->file = 0;
	j->file_left = j->opt.file_every;
}

static struct sim_file *next_file(struct sim_job *j)
{
	u32 n = (u32)j->opt.nr_files, tried;

	if (j->opt.file_service == HWS_FILES_RANDOM) {
		u32 at = (u32)sim_roll_below(j, DICE_FILE, n);

		for (tried = 0; tried < n; tried++, at = (at + 1) % n)
			if (!j->files[at].done)
				return &j->files[at];
		return NULL;
	}
	for (tried = 0; tried <= n; tried++) {
		struct sim_file *f = &j->files[j->file];

		if (!f->done && (j->opt.file_service == HWS_FILES_ONE_BY_ONE || j->file_left)) {
			j->file_left -= j->opt.file_service == HWS_FILES_IN_TURN;
			return f;
		}
		j->file = (j->file + 1) % n;
		j->file_left = j->opt.file_every;
	}
	return NULL;
}

/* --- offsets, relative to the file's first byte of I/O --- */

/*
 * Draw one of so many blocks, by the zones if there are any. A zone that is shorter than a block is
 * its first. U64_MAX: the zone lies beyond them.
 */
static u64 draw_block(struct sim_job *j, u32 d, u64 blocks)
{
	const struct hws_zone *z = j->opt.zones[d];
	u64 align = j->opt.align_bytes[d], at = 0, percent = 0, begin, end;
	u32 chosen, sum;

	if (!j->opt.nr_zones[d])
		return sim_roll_below(j, DICE_PLACE, blocks);
	chosen = 1 + (u32)sim_roll_below(j, DICE_ZONE, 100);
	for (sum = z->percent; sum < chosen; sum += (++z)->percent) {
		percent += z->length_percent;
		at += z->length_bytes;
	}
	begin = percent * blocks / 100 + at / align;
	end = begin + blocks * z->length_percent / 100 + z->length_bytes / align;
	end = min(end, blocks);
	return begin < blocks ? begin + sim_roll_below(j, DICE_PLACE, max(begin, end) - begin) :
				U64_MAX;
}

static bool random_offset(struct sim_job *j, struct sim_file *f, u32 d, u64 *offset)
{
	const struct hws_job *o = &j->opt;
	u64 span = min(f->at.span, f->at.size), block;

	if (o->skew && f->skew.blocks) {
		*offset = sim_skew_block(j, f) * o->align_bytes[d];
		return true;
	}
	if (o->min_bytes[d] > o->align_bytes[d])
		span -= min(span, o->min_bytes[d] - o->align_bytes[d]);
	if (span < o->align_bytes[d])
		return false;
	block = draw_block(j, d, span / o->align_bytes[d]);
	if (block == U64_MAX)
		return false;
	*offset = block * o->align_bytes[d];
	if (!f->map.blocks || !map_busy(&f->map, *offset / f->map.unit))
		return true;
	block = map_next_free(&f->map, *offset / f->map.unit);
	if (block == U64_MAX) {
		if (!o->time_based)
			return false;
		map_clear(&f->map);
		j->rewinds = true;
		block = draw_block(j, d, span / o->align_bytes[d]);
		*offset = block * o->align_bytes[d];
		return block != U64_MAX;
	}
	*offset = block * f->map.unit;
	return true;
}

static bool sequential_offset(struct sim_job *j, struct sim_file *f, u32 d, u64 *offset)
{
	const struct hws_job *o = &j->opt;
	u64 end = min(f->at.size, f->at.span), pos;

	if (o->time_based && o->nr_files == 1 && f->last_pos[d] >= f->at.span + f->at.offset) {
		f->last_pos[d] = f->at.offset;
		j->rewinds = true;
	}
	if (f->last_pos[d] >= f->at.size)
		return false;
	if (f->last_pos[d] == f->at.offset && f->at.offset && o->hole_bytes < 0)
		f->last_pos[d] = end;
	pos = f->last_pos[d] - f->at.offset;
	if (pos && o->hole_bytes) {
		pos += (u64)o->hole_bytes;
		if (pos >= f->at.size)
			pos = o->hole_bytes > 0 ? f->at.offset : end + (u64)o->hole_bytes;
	}
	*offset = pos;
	return true;
}

/* rw=randread:N: the places between the random ones. */
static bool between_offset(struct sim_job *j, struct sim_file *f, u32 d, u64 *offset)
{
	if (!j->opt.identical)
		return sequential_offset(j, f, d, offset) || random_offset(j, f, d, offset);
	*offset = f->last_start[d] == NO_START ? 0 : f->last_start[d] - f->at.offset;
	return true;
}

/* A size by the shares: of those that fit, the one that a random number falls to; else the last. */
static u64 split_length(struct sim_job *j, u32 d, u64 room)
{
	const struct hws_split *split = j->opt.splits[d];
	u64 roll = sim_roll_below(j, DICE_BYTES_READ + d, 1ull << 32), percent = 0;
	u64 bytes = j->opt.min_bytes[d];
	u32 i;

	for (i = 0; i < j->opt.nr_splits[d]; i++) {
		if (!split[i].percent)
			continue;
		bytes = split[i].bytes;
		percent += split[i].percent;
		if (roll * 100 <= U32_MAX * percent && bytes <= room)
			break;
	}
	return bytes;
}

/* The smallest size that may be drawn; @nr_splits of 0%, which none is, may be smaller. */
static u64 smallest(const struct sim_job *j, u32 d)
{
	const struct hws_split *split = j->opt.splits[d];
	u64 lo = j->opt.min_bytes[d], least = U64_MAX;
	u32 i;

	for (i = 0; i < j->opt.nr_splits[d]; i++)
		if (split[i].percent)
			least = min(least, split[i].bytes - split[i].bytes % lo);
	return least == U64_MAX ? lo : least;
}

/* 0: there is no room for one. Where none that may be drawn fits, fio draws for ever. */
static u64 length(struct sim_job *j, const struct sim_file *f, u32 d, u64 offset)
{
	u64 lo = j->opt.min_bytes[d], hi = j->opt.max_bytes[d], room, bytes;

	if (lo == hi)
		return lo;
	room = f->at.offset + f->at.span - offset;
	if (room < lo)
		return 0;
	if (room < smallest(j, d)) {
		j->too_narrow_bytes = room;
		return 0;
	}
	do {
		bytes = j->opt.nr_splits[d] ? split_length(j, d, room) :
					      lo + sim_roll_below(j, DICE_BYTES_READ + d, hi);
		bytes = min(bytes - bytes % lo, hi);
	} while (bytes > room);
	return bytes;
}

static bool place_in_file(struct sim_job *j, struct sim_file *f, u32 d, struct sim_place *p)
{
	const struct hws_job *o = &j->opt;
	bool hit = --j->until_random == 0, mapped = f->map.blocks && hit, ok;
	u64 offset;

	if (hit)
		j->until_random = o->random_every;
	if (!o->random) {
		ok = sequential_offset(j, f, d, &offset);
	} else if (!hit) {
		ok = between_offset(j, f, d, &offset);
	} else if (o->random_percent[d] == 100 ||
		   sim_roll_below(j, DICE_MIX_READ + d, 100) < o->random_percent[d]) {
		ok = random_offset(j, f, d, &offset);
	} else {
		mapped = false;
		ok = sequential_offset(j, f, d, &offset) || random_offset(j, f, d, &offset);
	}
	if (!ok || offset >= f->at.span || offset + f->at.offset >= f->at.size)
		return false;
	p->file = f;
	p->offset = offset + f->at.offset;
	p->bytes = length(j, f, d, p->offset);
	if (p->bytes && mapped)
		p->bytes = map_take(&f->map, offset, p->bytes);
	if (!p->bytes || p->offset + p->bytes > f->at.size)
		return false;
	f->last_start[d] = p->offset;
	f->last_pos[d] = p->offset + p->bytes;
	return true;
}

bool sim_place_next(struct sim_job *j, u32 direction, struct sim_place *place)
{
	struct sim_file *f;

	while ((f = next_file(j))) {
		if (place_in_file(j, f, direction, place))
			return true;
		f->done = true;
	}
	return false;
}
