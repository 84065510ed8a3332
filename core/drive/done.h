/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What drive models share in completing requests: a list in order of the time of completion. */
#ifndef HW_DRIVE_DONE_H
#define HW_DRIVE_DONE_H

#include "core/drive.h"

/* @io completes at its done_ns, behind those of the same time. */
static inline void hw_done_add(struct list_head *done, struct hw_io *io)
{
	struct list_head *at = done->prev;

	while (at != done && list_entry(at, struct hw_io, link)->done_ns > io->done_ns)
		at = at->prev;
	list_add(&io->link, at);
}

/* When the first of them completes. */
static inline u64 hw_done_next(const struct list_head *done)
{
	return list_empty(done) ? HW_NEVER : list_first_entry(done, struct hw_io, link)->done_ns;
}

/* The first that has completed by now, taken from the list; NULL: none has. */
static inline struct hw_io *hw_done_take(struct list_head *done, u64 now)
{
	struct hw_io *io;

	if (hw_done_next(done) > now)
		return NULL;
	io = list_first_entry(done, struct hw_io, link);
	list_del(&io->link);
	return io;
}

#endif
