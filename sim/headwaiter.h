/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libheadwaiter: the public interface of the simulator.
 *
 * Caveats first.
 *  - A struct hws is one run of one policy on one drive. It is not thread-safe; different ones are independent.
 *  - Times are ns of virtual time, places are 512-byte sectors.
 *  - Same input, same seed, same bytes out.
 *  - Functions return 0 or a negative errno; hws_error() then says what was wrong in one line.
 *
 * Python reads this very file (cffi): plain declarations only, preprocessor lines are skipped.
 */
#ifndef HEADWAITER_H
#define HEADWAITER_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* --- what there is --- */

struct hws_policy {
	const char *name;
	const char *summary;
	const char *source;
	uint32_t nr_tunables;
	uint32_t nr_stats;
};

struct hws_tunable {
	const char *name;
	int32_t type;		/* 0 integer, 1 flag, 2 one of choices */
	int64_t def, min, max;
	const char *unit;
	const char *help;
	const char *const *choices;	/* names of 0, 1, …; NULL-terminated; NULL unless type is 2 */
};

struct hws_stat {
	const char *name;
	const char *unit;
	const char *help;
};

/* -ENOENT when there is no such policy, tunable or statistic. */
int hws_policy_at(uint32_t index, struct hws_policy *out);
int hws_tunable_at(const char *policy, uint32_t index, struct hws_tunable *out);
int hws_stat_at(const char *policy, uint32_t index, struct hws_stat *out);

/* --- a run --- */

struct hws;

struct hws_options {
	const char *policy;
	uint64_t seed;
	uint32_t queue_depth;	/* requests that the device takes at once; 0: the drive's own */
	uint32_t max_sectors;	/* largest request; larger I/Os are split, merging stops there */
	uint32_t merging;	/* 0: requests are never merged */
	uint32_t nr_requests;	/* requests that may exist at once; 0: no limit */
	uint32_t pull_ahead;	/* requests taken from the policy beyond the depth, as blk-mq does: 0 or 1 */
	uint32_t cpus;		/* software queues; tasks are spread over them; 0: one */
	uint32_t record;	/* keep a row per I/O (struct hws_rows) */
	uint32_t log;		/* keep the event log */
};

struct hws *hws_new(const struct hws_options *options);
void hws_free(struct hws *s);
const char *hws_error(const struct hws *s);

/* After hws_new() and before the first hws_run(): tunables, then the drive, then tasks and work. */
int hws_set(struct hws *s, const char *tunable, int64_t value);
int64_t hws_get(const struct hws *s, const char *tunable);
int hws_stat_value(const struct hws *s, const char *stat, int64_t *value);

int hws_drive_constant(struct hws *s, uint64_t service_ns, uint64_t sectors);
/* A drive profile in the flat form of core/drive.h; it is copied. */
int hws_drive_profile(struct hws *s, const void *profile, size_t bytes);

/* Tasks are numbered from 0 as they are added. exits: the task exits when its last I/O has completed. */
int hws_add_task(struct hws *s, uint16_t ioprio, uint16_t share, int exits);

/*
 * A trace, or any other load that can be written as a forest: I/O i is issued delay_ns[i] after I/O parent[i] completes, or
 * at time_ns[i] if parent[i] is -1. Columns of n elements; they must stay in place until the run is over.
 */
struct hws_trace {
	uint64_t n;
	const int64_t *time_ns;
	const int64_t *parent;
	const int64_t *delay_ns;
	const uint32_t *task;
	const uint8_t *op;		/* 0 read, 1 write, 2 discard, 3 other */
	const uint8_t *flags;		/* 1 synchronous, 2 metadata, 4 prio */
	const uint64_t *sector;
	const uint32_t *sectors;
	const uint16_t *ioprio;		/* class << 13 | level, 0: the task's own; may be NULL */
	const int64_t *service_ns;	/* service time for the constant drive, 0: the drive's; may be NULL */
};

int hws_add_trace(struct hws *s, const struct hws_trace *trace);

/* At most `events` instants further. 1: there is more to do; 0: the run is over; negative: error. */
int hws_run(struct hws *s, uint64_t events);

/* --- what came of it --- */

struct hws_totals {
	uint64_t now_ns;	/* the clock: the last completion, once the run is over */
	uint64_t issued, completed;	/* I/Os */
	uint64_t requests;		/* given to the drive */
	uint64_t merges;
	uint64_t busy_ns, seek_ns, rotation_ns, transfer_ns, overhead_ns;
	uint64_t seeks, seek_cylinders, cache_hits, media_reads, media_writes;
	uint64_t a_success, a_fail, a_other;	/* waits by outcome */
	uint64_t t_success_ns, t_fail_ns, t_other_ns;
	uint64_t drive_sectors;
	uint32_t queue_depth;
};

void hws_totals(const struct hws *s, struct hws_totals *out);

/* One row per I/O, in the order of the trace (or of issue, for generated load). Valid until the next hws_run(). */
struct hws_rows {
	uint64_t n;
	const int64_t *issue_ns;	/* -1: never issued */
	const int64_t *complete_ns;	/* -1: never completed */
	const uint64_t *sector;
	const uint32_t *sectors;
	const uint32_t *task;
	const uint8_t *op;
};

void hws_rows(const struct hws *s, struct hws_rows *out);

/* The event log as CSV with a header line. */
int hws_write_log(struct hws *s, const char *path);

#pragma GCC visibility pop

#endif
