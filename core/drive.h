/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract between a drive model and its host.
 *
 * A model is a state machine in virtual time, in integers, without allocation: the host gives it zeroed memory of the size
 * that it asks for, submits I/Os (at most `depth` at once), asks for the time of its next event, and collects completions.
 *
 *  - Times are ns. submit() and poll() are called with `now` never decreasing.
 *  - next() is the earliest time at which poll() might return an I/O; HW_NEVER if nothing is outstanding. Background work
 *    (read-ahead, write-back) that completes nothing need not wake the host: it is caught up with at the next call.
 *  - poll(now) returns completed I/Os (done_ns <= now) one by one in the order of completion, then NULL.
 *  - Same calls, same answers, on every machine.
 *
 * Models are described by profiles (drives/ *.toml): key and value pairs, and lists. Python turns them into the flat form
 * of struct hw_profile; each model's table of parameters says what it takes.
 */
#ifndef HW_DRIVE_H
#define HW_DRIVE_H

#include "elevator.h"

struct hw_io {
	u64 sector;
	u32 sectors;
	u8 op;			/* enum hw_op */
	u8 flags;		/* HW_RQ_SYNC, …; HW_IO_FUA: to the medium before completion */
	u64 submit_ns;
	u64 done_ns;
	u64 fixed_ns;		/* scripted service time for `constant`; 0 = the model's own */
	struct list_head link;	/* the model's, while submitted */
	void *host;
};

/* Where the time of a drive went. A model adds what it knows; idle time is the host's to work out. */
struct hw_drive_stats {
	u64 busy_ns;		/* at least one I/O outstanding */
	u64 seek_ns;
	u64 rotation_ns;
	u64 transfer_ns;
	u64 overhead_ns;
	u64 seeks;		/* accesses that moved the arm */
	u64 seek_cylinders;
	u64 cache_hits;		/* reads served without the medium */
	u64 media_reads, media_writes;
};

struct hw_drive;

struct hw_drive_model {
	const char *name;
	const char *summary;
	void (*submit)(struct hw_drive *d, struct hw_io *io, u64 now);
	struct hw_io *(*poll)(struct hw_drive *d, u64 now);
	u64 (*next)(const struct hw_drive *d);
};

/* First member of every model's own area. */
struct hw_drive {
	const struct hw_drive_model *model;
	u64 sectors;		/* capacity */
	u32 depth;		/* I/Os that it takes at once */
	bool rotational;
	struct hw_drive_stats stats;
};

/* The drive that serves every I/O in exactly fixed time, one at a time, head where the last one ended. */
struct hw_constant_drive {
	struct hw_drive drive;
	u64 service_ns;
	u64 head;
	struct hw_io *current;
	u64 free_ns;
	struct list_head waiting;
};

void hw_constant_init(struct hw_constant_drive *c, u64 sectors, u64 service_ns, u32 depth);

#endif
