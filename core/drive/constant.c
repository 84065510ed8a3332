// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * constant: every I/O takes the same time, one after another; the head stays where the last I/O ended.
 *
 * For tests: the expected times of a hand-worked scenario can be read off. With a depth above 1 it queues in order of
 * arrival. An I/O may carry its own service time (hw_io.fixed_ns).
 */
#include "../drive.h"

static struct hw_constant_drive *constant(const struct hw_drive *d)
{
	return container_of(d, struct hw_constant_drive, drive);
}

static void constant_start(struct hw_constant_drive *c, struct hw_io *io, u64 now)
{
	u64 ns = io->fixed_ns ? io->fixed_ns : c->service_ns;

	c->current = io;
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
	if (c->current)
		list_add_tail(&io->link, &c->waiting);
	else
		constant_start(c, io, now);
}

static struct hw_io *constant_poll(struct hw_drive *d, u64 now)
{
	struct hw_constant_drive *c = constant(d);
	struct hw_io *io = c->current;

	if (!io || io->done_ns > now)
		return NULL;
	c->current = NULL;
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

	return c->current ? c->current->done_ns : HW_NEVER;
}

static const struct hw_drive_model hw_constant_model = {
	.name = "constant",
	.summary = "serves every request in a fixed time, one at a time",
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
