/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract between a drive model and its host.
 *
 * A model is a state machine in virtual time, in integers, without allocation: the host gives it
 * zeroed memory of the size that it asks for, submits I/Os (at most `depth` at once), asks for the
 * time of its next event, and collects completions.
 *
 *  - Times are ns. submit() and poll() are called with `now` never decreasing.
 *  - next() is the earliest time at which poll() might return an I/O; HW_NEVER if nothing is
 *    outstanding. Background work (read-ahead, write-back) that completes nothing need not wake the
 *    host: it is caught up with at the next call.
 *  - poll(now) returns completed I/Os (done_ns <= now) one by one in the order of completion, then
 *    NULL.
 *  - Same calls, same answers, on every machine.
 *
 * A model is made from a profile: a flat, position-independent blob that Python fills from
 * drives/NAME.toml and that a kernel module can load unchanged. Each model has one table of
 * parameters (struct hw_param) from which the blob's layout, the validation, the TOML keys and the
 * documentation are made.
 *
 * For hosts:
 *	hw_profile_check(p, bytes, &err);
 *	d = hw_drive_create(zalloc(hw_drive_size(p, depth)), p, depth);
 *	hw_drive_describe(d, &queue->dev, positions);
 *	then d->model->submit, next, poll.
 */
#ifndef HW_DRIVE_H
#define HW_DRIVE_H

#include "core/elevator.h"

struct hw_io {
	u64 sector;
	u32 sectors;
	u8 op;	   /* enum hw_op */
	u8 flags;  /* HW_RQ_SYNC, …; HW_IO_FUA: to the medium before completion */
	u32 queue; /* submission queue that it comes by; a drive with fewer takes it modulo */
	u64 submit_ns;
	u64 done_ns;
	u64 fixed_ns;	       /* scripted service time for `constant`; 0 = the model's own */
	struct list_head link; /* the model's, while submitted */
	u64 place;	       /* the model's, while submitted */
	void *host;
};

/*
 * Where the time of a drive went. A model adds what it knows; idle time is the host's to work out.
 */
struct hw_drive_stats {
	u64 busy_ns; /* at least one I/O outstanding */
	u64 seek_ns;
	u64 rotation_ns;
	u64 transfer_ns;
	u64 overhead_ns;
	u64 seeks; /* accesses that moved the arm */
	u64 seek_cylinders;
	u64 cache_hits; /* reads served without the medium */
	u64 media_reads, media_writes;
};

struct hw_drive;
struct hw_drive_place;

/*
 * A parameter of a model. In TOML its value is a number in `unit`; in the blob it is the s64
 * round(value * scale), so that times are ns there and fractions are millionths. A list has
 * columns, each described like a parameter.
 */
enum hw_param_type {
	HW_PARAM_NUMBER,
	HW_PARAM_BOOL,
	HW_PARAM_ENUM,	 /* one of choices, by name in TOML and by index in the blob */
	HW_PARAM_LIST,	 /* rows of columns; min and max bound the number of rows */
	HW_PARAM_DRIVES, /* other profiles, nested in the blob; min and max bound their number */
};

struct hw_param {
	const char *key; /* "section.name"; of a list within the rows of list L: "L.name", column 0
			    the row in L */
	enum hw_param_type type;
	u32 scale;			/* of numbers: blob units per TOML unit */
	const char *unit;		/* "ms", "sectors", …; "" for a plain number */
	s64 def, min, max;		/* in blob units; def = HW_PARAM_REQUIRED: must be given */
	const char *help;		/* one line */
	const char *const *choices;	/* HW_PARAM_ENUM: NULL-terminated */
	const struct hw_param *columns; /* HW_PARAM_LIST */
	u32 nr_columns;
};

#define HW_PARAM_REQUIRED S64_MIN
#define HW_PROFILE_MAGIC  0x31445748u /* "HWD1" */
#define HW_IO_FUA	  0x80u	      /* hw_io.flags: on the medium before completion */

/*
 * The blob, in s64 words of the host's byte order. value[i] belongs to the model's parameter i: the
 * number itself, or for a list the index in `value` at which the number of rows stands, followed by
 * the rows; for drives, at which their number stands, followed by the word index (in `value`) of
 * each nested profile.
 */
struct hw_profile {
	u32 magic;  /* HW_PROFILE_MAGIC */
	u32 model;  /* index into hw_drive_models */
	u32 words;  /* number of values, lists and nested profiles included */
	u32 params; /* number of parameters: guards against another version's table */
	s64 value[];
};

struct hw_profile_error {
	const char *key;    /* parameter, or NULL if the blob itself is malformed */
	s64 row;	    /* of a list, counted from 0; -1 if not in a list */
	const char *column; /* NULL if not in one */
	const char *what;   /* "must be at least", "overlaps the zone before", … */
	s64 bound;	    /* the bound in blob units for "must be at least"/"at most"; else 0 */
	u32 scale;	    /* of bound */
};

struct hw_drive_model {
	const char *name;
	const char *summary;
	const struct hw_param *params;
	u32 nr_params;
	/* Beyond the table's ranges: 0, or -EINVAL (22) and err filled in. Optional. */
	int (*check)(const struct hw_profile *p, struct hw_profile_error *err);
	size_t (*size)(const struct hw_profile *p, u32 depth);
	void (*create)(void *mem, const struct hw_profile *p, u32 depth);
	/* Rows of the table `positions`, into room for HW_POSITION_POINTS: how many. Optional. */
	u32 (*positions)(const struct hw_drive *d, s64 (*row)[2]);
	bool (*locate)(const struct hw_drive *d, u64 lbn,
		       struct hw_drive_place *out); /* optional */
	void (*submit)(struct hw_drive *d, struct hw_io *io, u64 now);
	struct hw_io *(*poll)(struct hw_drive *d, u64 now);
	u64 (*next)(const struct hw_drive *d);
};

/* First member of every model's own area. */
struct hw_drive {
	const struct hw_drive_model *model;
	u64 sectors; /* capacity */
	u32 depth;   /* I/Os that it takes at once */
	bool rotational;
	u32 arms; /* that move by themselves; 0: one */
	/*
	 * Writes are reported before they are on the medium. An I/O of no sectors (op HW_OTHER) is
	 * a flush: it completes when they are.
	 */
	bool write_cache;
	struct hw_drive_stats stats;
};

/* Every model, NULL-terminated; hw_profile.model is the index. */
extern const struct hw_drive_model *const hw_drive_models[];
const struct hw_drive_model *hw_drive_model_find(const char *name, u32 *index);

/*
 * 0, or -EINVAL (22) with err filled in. Everything below may only be given a profile that has
 * passed.
 */
int hw_profile_check(const struct hw_profile *p, size_t bytes, struct hw_profile_error *err);
/*
 * Bytes of zeroed memory, aligned to 16, that the drive needs. depth 0 = the profile's own. The
 * profile may be freed later.
 */
size_t hw_drive_size(const struct hw_profile *p, u32 depth);
struct hw_drive *hw_drive_create(void *mem, const struct hw_profile *p, u32 depth);
/*
 * What policies may know: capacity, depth, rotational, positioning times, which go into the rows at
 * @cells, with room for HW_POSITION_POINTS of them. nr_requests is left as it is.
 */
void hw_drive_describe(const struct hw_drive *d, struct hw_device *dev, s64 (*cells)[2]);

/* Where a block lies, on a drive that has such places. */
struct hw_drive_place {
	u32 zone, cylinder, head, sector;
	u32 angle; /* of the sector's beginning, in sectors of the zone */
	u32 sectors_per_track;
	u32 run; /* blocks from here on that pass under the head without a gap */
};

bool hw_drive_locate(const struct hw_drive *d, u64 lbn, struct hw_drive_place *out);

/* The value of a profile's parameter by key, for hosts; 0 and *found false if there is none. */
s64 hw_profile_get(const struct hw_profile *p, const char *key, bool *found);

/*
 * The drive that serves every I/O in exactly fixed time, one at a time, head where the last one
 * ended.
 */
struct hw_constant_drive {
	struct hw_drive drive;
	u64 service_ns;
	u64 head;
	struct hw_io *serving;
	u64 free_ns;
	struct list_head waiting;
};

void hw_constant_init(struct hw_constant_drive *c, u64 sectors, u64 service_ns, u32 depth);

#endif
