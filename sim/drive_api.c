// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Drives by themselves: what models and parameters there are, whether a profile is right, and
 * replays of a load against a drive without any scheduler in front of it (validation against
 * measured service times; benchmarks of the model).
 */
#include <errno.h>
#include <stdlib.h>

#include "core/drive.h"
#include "sim/headwaiter.h"

static const struct hw_drive_model *model_at(uint32_t index)
{
	uint32_t i;

	for (i = 0; hw_drive_models[i]; i++) {
		if (i == index)
			return hw_drive_models[i];
	}
	return NULL;
}

int hws_drive_model_at(uint32_t index, struct hws_drive_model *out)
{
	const struct hw_drive_model *m = model_at(index);

	if (!out)
		return -EINVAL;
	if (!m)
		return -ENOENT;
	*out = (struct hws_drive_model){ m->name, m->summary, m->nr_params };
	return 0;
}

static void describe_param(const struct hw_param *p, struct hws_param *out)
{
	*out = (struct hws_param){
		.key = p->key,
		.type = (int32_t)p->type,
		.scale = p->scale ? p->scale : 1,
		.unit = p->unit ? p->unit : "",
		.required = p->def == HW_PARAM_REQUIRED,
		.def = p->def == HW_PARAM_REQUIRED ? 0 : p->def,
		.min = p->min,
		.max = p->max,
		.help = p->help,
		.choices = p->choices,
		.nr_columns = p->nr_columns,
	};
}

int hws_param_at(uint32_t model, uint32_t index, struct hws_param *out)
{
	const struct hw_drive_model *m = model_at(model);

	if (!out)
		return -EINVAL;
	if (!m || index >= m->nr_params)
		return -ENOENT;
	describe_param(&m->params[index], out);
	return 0;
}

int hws_param_column_at(uint32_t model, uint32_t index, uint32_t column, struct hws_param *out)
{
	const struct hw_drive_model *m = model_at(model);

	if (!out)
		return -EINVAL;
	if (!m || index >= m->nr_params || column >= m->params[index].nr_columns)
		return -ENOENT;
	describe_param(&m->params[index].columns[column], out);
	return 0;
}

int hws_profile_check(const void *profile, size_t bytes, struct hws_profile_error *out)
{
	struct hw_profile_error e = { 0 };
	int ret;

	if (!profile || !out)
		return -EINVAL;
	ret = hw_profile_check(profile, bytes, &e);
	if (ret)
		*out = (struct hws_profile_error){
			e.key, e.column, e.what, e.row, e.bound, e.scale
		};
	return ret;
}

/*
 * A drive made from a profile, in memory of its own; NULL if the profile is wrong or memory is out.
 */
static struct hw_drive *make_drive(const void *profile, size_t bytes, uint32_t depth)
{
	struct hw_profile_error e;
	size_t size;
	void *mem;

	if (!profile || hw_profile_check(profile, bytes, &e))
		return NULL;
	size = (hw_drive_size(profile, depth) + 63) & ~(size_t)63;
	mem = aligned_alloc(64, size);
	if (!mem)
		return NULL;
	memset(mem, 0, size);
	return hw_drive_create(mem, profile, depth);
}

int hws_drive_facts(const void *profile, size_t bytes, struct hws_drive_facts *out)
{
	struct hw_drive *d = out ? make_drive(profile, bytes, 0) : NULL;
	s64 positions[HW_POSITION_POINTS][2];
	struct hw_device dev = { 0 };
	uint32_t i;

	if (!d)
		return -EINVAL;
	hw_drive_describe(d, &dev, positions);
	*out = (struct hws_drive_facts){ .sectors = dev.sectors,
					 .depth = dev.depth,
					 .rotational = dev.rotational,
					 .nr_positions = dev.positions.nr };
	_Static_assert(HW_POSITION_POINTS == 32, "hws_drive_facts.position");
	for (i = 0; i < dev.positions.nr; i++)
		out->position[i] = (struct hws_position){ hw_position_sectors(&dev, i),
							  hw_position_ns(&dev, i) };
	free(d);
	return 0;
}

int hws_drive_locate(const void *profile, size_t bytes, uint64_t n, const uint64_t *lbn,
		     struct hws_place *out)
{
	struct hw_drive *d = n && (!lbn || !out) ? NULL : make_drive(profile, bytes, 0);
	struct hw_drive_place p;
	uint64_t i;
	int ret = d ? 0 : -EINVAL;

	for (i = 0; i < n && !ret; i++) {
		if (hw_drive_locate(d, lbn[i], &p))
			out[i] = (struct hws_place){ p.zone,  p.cylinder,	   p.head, p.sector,
						     p.angle, p.sectors_per_track, p.run };
		else
			ret = -ERANGE;
	}
	free(d);
	return ret;
}

/* Requests that are out, and when the place of those that are not will be taken by the next. */
struct replay {
	struct hw_drive *drive;
	struct hw_io *ios;
	uint64_t *due;
	uint32_t *idle, nr_idle; /* slots that nothing is out in */
	const struct hws_replay *load;
	uint64_t next, done;
	uint32_t slots;
	uint64_t *own; /* each slot's next request, where it has its own */
};

static void issue(struct replay *r, uint32_t slot, uint64_t now)
{
	const struct hws_replay *l = r->load;
	struct hw_io *io = &r->ios[slot];
	uint64_t i = r->next++;

	if (l->queue) {
		i = r->own[slot];
		r->own[slot] += r->slots;
	}
	*io = (struct hw_io){ .sector = l->sector[i], .sectors = l->sectors[i], .op = l->op[i] };
	io->queue = l->queue ? l->queue[slot] : 0;
	io->host = (void *)(uintptr_t)i;
	r->drive->model->submit(r->drive, io, now);
}

static void completed(struct replay *r, struct hw_io *io)
{
	uint64_t i = (uintptr_t)io->host;
	uint32_t slot = (uint32_t)(io - r->ios);

	r->load->service_ns[i] = (int64_t)(io->done_ns - io->submit_ns);
	r->done++;
	r->due[slot] = io->done_ns + (r->load->think_ns ? (uint64_t)r->load->think_ns[i] : 0);
	r->idle[r->nr_idle++] = slot;
}

/* Which of the idle slots is due first, of those due at once the first; and when. */
static uint32_t first_due(const struct replay *r, uint64_t *when)
{
	uint32_t i, best = 0;

	*when = UINT64_MAX;
	if (r->next == r->load->n)
		return 0;
	for (i = 0; i < r->nr_idle; i++) {
		uint64_t due = r->due[r->idle[i]];

		if (due < *when || (due == *when && r->idle[i] < r->idle[best])) {
			*when = due;
			best = i;
		}
	}
	return best;
}

static uint64_t play(struct replay *r)
{
	uint64_t now = 0, when, end;
	uint32_t i, slot;

	for (i = 0; i < r->slots; i++) {
		r->idle[r->nr_idle++] = i;
		r->own[i] = i;
	}

	while (r->done < r->load->n) {
		struct hw_io *io;

		i = first_due(r, &when);
		end = r->drive->model->next(r->drive);
		now = when < end ? when : end;
		while ((io = r->drive->model->poll(r->drive, now)))
			completed(r, io);
		if (when == now) {
			slot = r->idle[i];
			if (r->load->queue && r->own[slot] >= r->load->n)
				break;
			r->idle[i] = r->idle[--r->nr_idle];
			issue(r, slot, now);
		}
	}
	return now;
}

int hws_drive_replay(const void *profile, size_t bytes, uint32_t outstanding,
		     const struct hws_replay *load)
{
	uint32_t slots = outstanding ? outstanding : 1;
	struct replay r = { .load = load, .slots = slots };
	struct hw_drive_stats *s;
	int ret = -ENOMEM;
	uint64_t i;

	if (!profile || !load || !load->totals ||
	    (load->n && (!load->op || !load->sector || !load->sectors || !load->service_ns)))
		return -EINVAL;
	r.drive = make_drive(profile, bytes, slots);
	r.ios = calloc(slots, sizeof(*r.ios));
	r.due = calloc(slots, sizeof(*r.due));
	r.idle = calloc(slots, sizeof(*r.idle));
	r.own = calloc(slots, sizeof(*r.own));
	if (r.drive && r.ios && r.due && r.idle && r.own) {
		ret = 0;
		for (i = 0; i < load->n && !ret; i++) {
			if (load->op[i] == HW_OTHER)
				continue;
			if (!load->sectors[i] || load->sector[i] >= r.drive->sectors ||
			    load->sectors[i] > r.drive->sectors - load->sector[i])
				ret = -ERANGE;
		}
	}
	if (!ret) {
		s = &r.drive->stats;
		load->totals->now_ns = play(&r);
		load->totals->seek_ns = s->seek_ns;
		load->totals->rotation_ns = s->rotation_ns;
		load->totals->transfer_ns = s->transfer_ns;
		load->totals->cache_hits = s->cache_hits;
	}
	free(r.own);
	free(r.idle);
	free(r.due);
	free(r.ios);
	free(r.drive);
	return ret;
}
