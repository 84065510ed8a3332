// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * constant: every I/O takes the same time, one after another; the head stays where the last I/O
 * ended.
 *
 * For tests: the expected times of a hand-worked scenario can be read off. With a depth above 1 it
 * queues in order of arrival. An I/O may carry its own service time (hw_io.fixed_ns).
 */
#include "core/drive/profile.h"

static struct hw_constant_drive *constant(const struct hw_drive *d)
{
	return container_of(d, struct hw_constant_drive, drive);
}

static void constant_start(struct hw_constant_drive *c, struct hw_io *io, u64 now)
{
	u64 ns = io->fixed_ns ? io->fixed_ns : c->service_ns;

	c->serving = io;
	io->done_ns = now + ns;
	c->drive.stats.busy_ns += ns;
	c->drive.stats.transfer_ns += ns;
	if (io->sector != c->head)
		c->drive.stats.seeks++;
	c->head = io->sector + io->sectors;
}

static void constant_submit(struct hw_drive *d, struct hw_io *io, u64 now)
{
	struct hw_constant_drive *c = constant(d);

	io->submit_ns = now;
	if (c->serving)
		list_add_tail(&io->link, &c->waiting);
	else
		constant_start(c, io, now);
}

static struct hw_io *constant_poll(struct hw_drive *d, u64 now)
{
	struct hw_constant_drive *c = constant(d);
	struct hw_io *io = c->serving;

	if (!io || io->done_ns > now)
		return NULL;
	c->serving = NULL;
	if (!list_empty(&c->waiting)) {
		struct hw_io *next = list_first_entry(&c->waiting, struct hw_io, link);

		list_del(&next->link);
		constant_start(c, next, io->done_ns);
	}
	return io;
}

static u64 constant_next(const struct hw_drive *d)
{
	const struct hw_constant_drive *c = constant(d);

	return c->serving ? c->serving->done_ns : HW_NEVER;
}

enum { PARAM_SERVICE, PARAM_SECTORS, PARAM_DEPTH, NR_PARAMS };

static const struct hw_param constant_params[NR_PARAMS] = {
	[PARAM_SERVICE] = { .key = "service_ms",
			    .scale = 1000000,
			    .unit = "ms",
			    .def = HW_PARAM_REQUIRED,
			    .min = 1,
			    .max = 1000000000000ll,
			    .help = "service time of every request" },
	[PARAM_SECTORS] = { .key = "sectors",
			    .scale = 1,
			    .unit = "sectors",
			    .def = 1ll << 31,
			    .min = 1,
			    .max = 1ll << 50,
			    .help = "capacity" },
	[PARAM_DEPTH] = { .key = "queue.depth",
			  .scale = 1,
			  .unit = "requests",
			  .def = 1,
			  .min = 1,
			  .max = 65536,
			  .help = "requests that it accepts at once" },
};

static size_t constant_size(const struct hw_profile *p, u32 depth)
{
	(void)p;
	(void)depth;
	return sizeof(struct hw_constant_drive);
}

static void constant_create(void *mem, const struct hw_profile *p, u32 depth)
{
	hw_constant_init(mem, (u64)p->value[PARAM_SECTORS], (u64)p->value[PARAM_SERVICE],
			 depth ? depth : (u32)p->value[PARAM_DEPTH]);
}

static u32 constant_positions(const struct hw_drive *d, s64 (*row)[2])
{
	row[0][0] = 0;
	row[0][1] = (s64)constant(d)->service_ns;
	return 1;
}

const struct hw_drive_model hw_constant_model = {
	.name = "constant",
	.summary = "serves every request in a fixed time, one at a time",
	.params = constant_params,
	.nr_params = NR_PARAMS,
	.size = constant_size,
	.create = constant_create,
	.positions = constant_positions,
	.submit = constant_submit,
	.poll = constant_poll,
	.next = constant_next,
};

void hw_constant_init(struct hw_constant_drive *c, u64 sectors, u64 service_ns, u32 depth)
{
	c->drive.model = &hw_constant_model;
	c->drive.sectors = sectors;
	c->drive.depth = depth;
	c->drive.rotational = true;
	c->service_ns = service_ns;
	INIT_LIST_HEAD(&c->waiting);
}
