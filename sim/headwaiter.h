/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libheadwaiter: the public interface of the simulator.
 *
 * Caveats first.
 *  - A struct hws is one run of one policy on one drive. It is not thread-safe; different ones are
 *    independent.
 *  - Times are ns of virtual time, places are 512-byte sectors.
 *  - Same input, same seed, same bytes out.
 *  - Functions return 0 or a negative errno; hws_error() then says what was wrong in one line.
 *  - NULL, where it is not said that it may be, is -EINVAL; what returns no errno does nothing, and
 *    says so: 0, an id of -1, no limit.
 *
 * Python reads this very file (cffi): plain declarations only, preprocessor lines are skipped, and
 * what is for C++ alone.
 */
#ifndef HEADWAITER_H
#define HEADWAITER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* --- what numbers mean --- */

/* The last is a trace's alone: no I/O, but a flush of the drive's own cache. */
enum hws_op { HWS_READ, HWS_WRITE, HWS_DISCARD, HWS_OTHER, HWS_FLUSH };

/* Flags of an I/O. HWS_AT_HEAD and HWS_NOMERGE are for a policy by itself alone. */
enum hws_flag {
	HWS_SYNC = 1, /* waited for */
	HWS_META = 2, /* file-system metadata */
	HWS_PRIO = 4,
	HWS_AT_HEAD = 8, /* next, whatever the order */
	HWS_NOMERGE = 16,
	HWS_PACED = 32, /* of a trace: not before its time_ns, whatever it follows */
	HWS_DRIFTS =
		64,	/* of paced rows: as late as its task has ever been, it does not catch up */
	HWS_NEXT = 128, /* of a trace: the next of its task, whichever of the task's completes */
};

/* I/O priorities are class << HWS_IOPRIO_SHIFT | level; 0: none was set. */
enum hws_ioprio_class {
	HWS_IOPRIO_NONE,
	HWS_IOPRIO_RT,
	HWS_IOPRIO_BE,
	HWS_IOPRIO_IDLE,
	HWS_IOPRIO_SHIFT = 13,
};

/* --- what there is --- */

struct hws_policy {
	const char *name;
	const char *summary;
	const char *source;
	uint32_t nr_tunables;
	uint32_t nr_stats;
	uint32_t nr_tables;
	uint32_t model;	      /* 1: of the scheduler of that name in today's kernel */
	uint32_t unthrottled; /* 1: under it the kernel does not throttle write-back */
	uint32_t groups;      /* 1: tasks share by the weights of their groups */
};

enum hws_tunable_type { HWS_INTEGER, HWS_FLAG, HWS_CHOICE };

struct hws_tunable {
	const char *name;
	int32_t type; /* enum hws_tunable_type */
	int64_t def, min, max;
	const char *unit;
	const char *help;
	const char *const *choices; /* HWS_CHOICE: names of 0, 1, …; NULL-terminated; else NULL */
};

struct hws_stat {
	const char *name;
	const char *unit;
	const char *help;
};

/* Rows of whole numbers that a policy can be given, beside single numbers. */
struct hws_table {
	const char *name;
	const char *help;
	uint32_t nr_columns;
	uint32_t min_rows, max_rows;
	uint32_t common; /* 1: every policy has it */
};

struct hws_column {
	const char *name;
	const char *unit;
	const char *help;
	int64_t min, max;
	int32_t order;	  /* from row to row: 0 any, 1 ascending */
	int32_t left_out; /* 0 no; text may do without it: 1 as in the row before, 2 one more */
	const char *const *choices; /* names of 0, 1, …; NULL-terminated; or NULL */
};

/* Settings of a policy that have a name of their own; the policy itself is chosen by its own name. */
struct hws_preset {
	const char *name;
	const char *help;
	const char *settings; /* TUNABLE=VALUE, a blank between two */
};

/* -ENOENT when there is no such policy, tunable, statistic, preset, table or column. */
int hws_policy_at(uint32_t index, struct hws_policy *out);
int hws_tunable_at(const char *policy, uint32_t index, struct hws_tunable *out);
int hws_stat_at(const char *policy, uint32_t index, struct hws_stat *out);
int hws_preset_at(const char *policy, uint32_t index, struct hws_preset *out);
int hws_table_at(const char *policy, uint32_t index, struct hws_table *out);
int hws_column_at(const char *policy, const char *table, uint32_t index, struct hws_column *out);

/* Why a policy dispatches a request, as the event log gives it. -ENOENT: there are no more. */
struct hws_reason {
	const char *name;
	const char *help;
};

int hws_reason_at(uint32_t index, struct hws_reason *out);

/* Counters in rows and columns that a policy keeps. -ENOENT: it keeps none. */
struct hws_counters {
	const char *name;
	const char *from; /* in the kernel: file for the row with which a read begins */
	const char *help;
	uint32_t rows, columns;
};

int hws_counters_at(const char *policy, struct hws_counters *out);

/* What is wrong with a table. */
struct hws_table_error {
	int64_t row;	    /* from 0; -1: the table as a whole */
	uint32_t line;	    /* of text, from 1; 0: there was no text */
	const char *column; /* NULL: the row as a whole */
	const char *what;   /* "must be at least", … */
	int32_t bounded;    /* 1: the sentence ends with bound */
	int64_t bound;
	char text[256]; /* all of it in one line */
};

/*
 * Rows of @columns cells, one behind the other: 0, or with *err filled in -EINVAL, or -ERANGE where
 * a cell is outside its limits. -ENOENT: no such table.
 */
int hws_table_check(const char *policy, const char *table, const int64_t *cells, uint32_t rows,
		    uint32_t columns, struct hws_table_error *err);
/* Text (a row a line) as rows, into room for max_rows of them, and checked. */
int hws_table_parse(const char *policy, const char *table, const char *text, size_t bytes,
		    int64_t *cells, uint32_t *rows, struct hws_table_error *err);
/*
 * Checked rows as text: at most @room bytes, with a 0 at the end; returns how many there are
 * without it. @brief: cells that may be left out are.
 */
int64_t hws_table_print(const char *policy, const char *table, const int64_t *cells, uint32_t rows,
			int brief, char *text, size_t room);

/* --- a run --- */

struct hws;

struct hws_options {
	const char *policy;
	uint64_t seed;
	uint32_t queue_depth; /* requests that the device takes at once; 0: the drive's own */
	uint32_t max_sectors; /* largest request; larger I/Os are split, merging stops there */
	uint32_t merging;     /* 0: requests are never merged */
	/*
	 * 1: as blk-mq, what is inserted joins the request that ends there, whatever the policy
	 * says
	 */
	uint32_t join_arriving;
	uint32_t nr_requests; /* requests that may exist at once; 0: no limit */
	/*
	 * 1: take one request beyond the depth from the policy, hand nr_requests out as tags, as
	 * blk-mq does
	 */
	uint32_t pull_ahead;
	/*
	 * Who gets a tag that comes back: the process whose I/O has just been served and that asks
	 * again, or one that waits, where both need the same time. 0: always the former; else by
	 * chance, with this seed.
	 */
	uint32_t race_seed;
	uint32_t settled; /* 1: the policy has had the device for long (struct hw_device) */
	/* what the kernel takes the drive for: 0: what it is; 1: it rotates; 2: it does not */
	uint32_t told_rotational;
	/*
	 * Processor time, each for a request or I/O and for each of its pages of 4 KiB. Dispatch:
	 * from the decision to the drive, or, of a worker (pull_ahead), from a completion or a
	 * timer to the decision, the pages from there. Turnaround: of a job of direct I/O before
	 * each of its I/Os. Copy: of a job that reads or writes through the page cache.
	 */
	/* the last: for a page of a write in addition */
	uint32_t dispatch_ns, dispatch_page_ns, dispatch_write_page_ns;
	/*
	 * With one_processor, of its time while a request is in the drive: what is left of the call
	 * that sent it, and its interrupt.
	 */
	uint32_t meanwhile_ns, meanwhile_page_ns;
	/*
	 * After a completion, while others wait: more until the next decision is in the drive; or,
	 * with nothing decided, for all.
	 */
	uint32_t restart_ns, pass_ns;
	uint32_t turnaround_ns, turnaround_page_ns;
	uint32_t copy_ns, copy_page_ns;
	uint32_t fetch_page_ns; /* for a page in addition, before it is read into the page cache */
	/*
	 * for a page that is written into the page cache in addition, and again when fsync writes
	 * it back
	 */
	uint32_t dirty_page_ns;
	/* of the page cache, as vm.dirty_bytes and vm.dirty_background_bytes; 0: its default */
	uint64_t dirty_bytes, dirty_background_bytes;
	/*
	 * requests that write-back throttling takes the device to hold (its nr_requests); 0: it
	 * does not throttle
	 */
	uint32_t wbt_depth;
	/*
	 * what a read may take, ns, before it makes write-back wait; 0: 75 ms on a drive that
	 * rotates, else 2 ms
	 */
	uint64_t wbt_lat_ns;
	/* pages of the page cache that one write may take; 0: as many as sectors */
	uint32_t max_segments;
	/*
	 * all have one processor together; else each job its own, but they start one after another
	 */
	uint32_t one_processor;
	uint32_t cpus; /* software queues; tasks are spread over them; 0: one */
	/* keep a row per I/O (struct hws_rows), in memory that grows with the run */
	uint32_t record;
	/* tally I/Os (struct hws_tally), latencies one by one up to so many; 0: no tallies */
	uint32_t exact;
	/*
	 * The host's processors (sim/host.c); 0: each process has one of its own, and only times
	 * above pass. Else each process of a job has one of these, one after another, turnaround is
	 * its time for an I/O, `cpus` is as many, and nr_requests is for each hardware queue.
	 */
	uint32_t cores;
	uint32_t spread; /* a trace's I/Os go round all cores: nobody knows whose they are */
	/*
	 * The scheduler's lock: how long an I/O holds it where the same core had it last, where
	 * another had it or waits for it, and where several wait. By queue: each hardware queue has
	 * its own, else the device has one.
	 */
	uint32_t lock_by_queue;
	uint32_t lock_ns, lock_shared_ns, lock_crowded_ns;
	/* of its core: for a completion */
	uint32_t complete_ns;
	/*
	 * until a process that waited goes on (with one_processor: that waited for another); more
	 * for each time that the processes of a core double beyond 4
	 */
	uint32_t switch_ns, switch_more_ns;
	uint32_t replayed_ns; /* of a trace's think times: what is turnaround anyway */
};

struct hws *hws_new(const struct hws_options *options);
void hws_free(struct hws *s);
const char *hws_error(const struct hws *s);

/* After hws_new() and before the first hws_run(): tunables, then the drive, then tasks and work. */
int hws_set(struct hws *s, const char *tunable, int64_t value);
int64_t hws_get(const struct hws *s, const char *tunable);
/* Rows for a table of the policy, copied. Between two hws_run(), too. */
int hws_set_table(struct hws *s, const char *table, const int64_t *cells, uint32_t rows,
		  uint32_t columns);
int hws_stat_value(const struct hws *s, const char *stat, int64_t *value);
/* All counters, row behind row, into room for rows x columns. -ENOENT: the policy keeps none. */
int hws_counters(const struct hws *s, uint32_t *cells);

int hws_drive_constant(struct hws *s, uint64_t service_ns, uint64_t sectors);
/* A drive profile in the flat form of core/drive.h; it is copied. */
int hws_drive_profile(struct hws *s, const void *profile, size_t bytes);

/*
 * A read that the drive serves before the run, past the policy: it leaves the head where it ends,
 * and the clock at its completion. After the drive was given.
 */
int hws_drive_warm(struct hws *s, uint64_t time_ns, uint64_t sector, uint32_t sectors);

/*
 * Tasks are numbered from 0 as they are added; id is how the event log calls them. exits: the task
 * exits when its last I/O has completed.
 */
int hws_add_task(struct hws *s, uint32_t id, uint16_t ioprio, uint16_t share, int exits);

/*
 * Groups are numbered from 0 as they are added; parent: the one around it, or -1. weight, 1 to
 * 10000: of its share beside its siblings, 100 as a task in no group has. Policies without groups
 * take no notice.
 */
int hws_add_group(struct hws *s, int64_t parent, uint32_t weight);
int hws_join_group(struct hws *s, uint32_t task, uint32_t group);

/*
 * A trace, or any other load that can be written as a forest: I/O i is issued delay_ns[i] after I/O
 * parent[i] completes, or at time_ns[i] if parent[i] is -1, but never before I/O after[i] was
 * issued, nor before time_ns[i] if it is flagged HWS_PACED. Those of a task that are flagged
 * HWS_NEXT come in their order, one for each I/O of the task that completes, whichever that is;
 * they have a parent. A flush has no sectors; on a drive without a cache it takes no time. Columns
 * of n elements; they must stay in place until the run is over.
 */
struct hws_trace {
	uint64_t n;
	const int64_t *time_ns;
	const int64_t *parent;
	const int64_t *delay_ns;
	/* an earlier row, or -1: keeps a stream in order; each row at most once; may be NULL */
	const int64_t *after;
	const uint32_t *task;
	const uint8_t *op;    /* enum hws_op */
	const uint8_t *flags; /* enum hws_flag */
	const uint64_t *sector;
	const uint32_t *sectors;
	const uint16_t *ioprio; /* 0: the task's own; may be NULL */
	/* service time for the constant drive, 0: the drive's; may be NULL */
	const int64_t *service_ns;
	/* a row that is not issued before this time never is; may be NULL */
	const int64_t *until_ns;
	/* its task issues nothing else for so long after a row; may be NULL */
	const int64_t *apart_ns;
};

int hws_add_trace(struct hws *s, const struct hws_trace *trace);

/*
 * A trace in pieces, for one that memory does not hold: every row comes at its time. ios: how many
 * rows of each task there will be. A run with it keeps no row per I/O.
 */
int hws_add_pieces(struct hws *s, const uint64_t *ios);

/*
 * The next piece, when hws_run() returns HWS_HUNGRY: rows by time, all later than those of the piece
 * before, without parent, delay_ns, after, until_ns and apart_ns. Its columns stay in place until the next
 * one. No rows: that was all.
 */
int hws_feed(struct hws *s, const struct hws_trace *piece);

enum hws_directions { HWS_READS = 1, HWS_WRITES = 2, HWS_READS_AND_WRITES = 3 };

/* What ends with a job. */
enum hws_exit { HWS_EXIT_ITSELF, HWS_EXIT_GROUP, HWS_EXIT_RUNNING, HWS_EXIT_ALL };

/* How a job goes through its files: in turn, one to its end and then the next, at random. */
enum hws_file_service { HWS_FILES_IN_TURN, HWS_FILES_ONE_BY_ONE, HWS_FILES_RANDOM };

/* Which random places come more often than others. */
enum hws_skew { HWS_EVEN, HWS_ZIPF, HWS_PARETO, HWS_NORMAL };

/*
 * Generated load: what one process of a fio job does (docs/fio.md). Arrays of two are by operation:
 * HWS_READ, HWS_WRITE; sizes are bytes, times ns. A file lies on the drive from byte `base`; the
 * job uses its bytes offset … offset + span, and I/Os end by `size`.
 */
struct hws_file {
	uint64_t base, offset, span, size;
	uint32_t name_hash; /* skewed places are seeded from it; 0: as other places are */
};

/* A size, and the percentage of I/Os that have it. */
struct hws_split {
	uint64_t bytes;
	uint32_t percent;
};

/* Which percentage of the I/Os of a size has a priority. */
struct hws_prio_split {
	uint64_t bytes;
	uint32_t percent;
	uint16_t prio;
};

/* A zone of a file: its part of the random places, and how long it is, in percent or in bytes. */
struct hws_zone {
	uint32_t percent;
	uint32_t length_percent; /* 0: length_bytes */
	uint64_t length_bytes;
};

struct hws_job {
	uint32_t task;
	uint32_t flusher;   /* task that writes dirty pages back, for buffered writes */
	uint32_t section;   /* jobs of one section of the job file share this number */
	uint32_t group;	    /* what HWS_EXIT_GROUP ends */
	int32_t wait_for;   /* section that must have ended first, or -1 */
	uint32_t stonewall; /* starts when whatever was started before has ended */
	uint32_t exit_what; /* enum hws_exit */
	uint64_t start_min_ns, start_max_ns;
	uint64_t startup_ns; /* processor time before its first I/O, where all have one processor */
	uint64_t runtime_ns; /* 0: no limit */
	uint32_t time_based;
	uint64_t size, io_size, loops, number_ios; /* io_size, number_ios: 0 if not given */
	uint32_t directions;			   /* enum hws_directions */
	uint32_t read_percent;
	uint32_t random;
	uint32_t random_percent[2];
	uint32_t random_map;	/* every block once before any comes again */
	uint32_t repeat_random; /* passes over the files repeat the same random numbers */
	uint64_t random_seed;	/* fio's randseed, and the process's number among all, from 0 */
	uint32_t number;
	uint64_t min_bytes[2], max_bytes[2], align_bytes[2];
	uint32_t nr_splits[2];		   /* 0: sizes from min_bytes to max_bytes, all alike */
	const struct hws_split *splits[2]; /* copied */
	uint32_t nr_zones[2];		   /* 0: all places alike; percentages add up to 100 */
	const struct hws_zone *zones[2];   /* one behind the other; copied */
	uint32_t skew;			   /* enum hws_skew; not HWS_EVEN: neither map nor zones */
	double skew_by;	    /* zipf's theta, pareto's h, normal's deviation in percent */
	double skew_center; /* 0 to 1: where the most frequent place is; below 0: fio's choice */
	uint32_t nr_prio_splits[2];		     /* 0: prio_percent counts */
	const struct hws_prio_split *prio_splits[2]; /* copied */
	uint32_t prio_percent[2]; /* I/Os that have the priority prio, not the task's */
	uint16_t prio;
	int64_t hole_bytes;    /* rw=read:N: added after each sequential I/O */
	uint32_t random_every; /* rw=randread:N: a new place every N I/Os */
	uint32_t identical;    /* and between them the same place again */
	uint32_t file_service; /* enum hws_file_service */
	uint32_t file_every;   /* HWS_FILES_IN_TURN: I/Os to a file before the next */
	uint32_t depth;	       /* I/Os in flight */
	uint32_t queued;       /* the engine queues: a pass ends after `size` bytes */
	uint32_t buffered;
	uint32_t keep_cache; /* what is in memory of a file stays when it begins anew */
	uint32_t sync_writes;
	uint32_t fsync_every; /* writes between fsyncs; 0: none */
	uint32_t end_fsync;
	uint64_t think_ns;
	uint64_t think_blocks;
	uint32_t think_issued;	  /* blocks count when issued, not when reaped */
	uint64_t rate_bytes[2];	  /* a second; 0: no limit */
	uint64_t readahead_bytes; /* largest window of buffered sequential reads; 0: none */
	uint64_t nr_files;
	const struct hws_file *files; /* copied */
};

/* Jobs start in the order in which they are added. Before hws_run(), instead of a trace. */
int hws_add_job(struct hws *s, const struct hws_job *job);

/*
 * The event log as CSV with a header line, written into the file as the run goes and closed when it
 * is over. Before the first hws_run(); from then on that fails with the cause when the file cannot
 * be written.
 */
int hws_log(struct hws *s, const char *path);

enum hws_progress { HWS_OVER, HWS_MORE, HWS_HUNGRY };

/* At most `events` instants further: enum hws_progress, or an error. */
int hws_run(struct hws *s, uint64_t events);

/* --- what came of it --- */

struct hws_totals {
	uint64_t now_ns;	    /* the clock: the last completion, once the run is over */
	uint64_t issued, completed; /* I/Os */
	uint64_t requests;	    /* given to the drive */
	uint64_t merges;
	uint64_t busy_ns, seek_ns, rotation_ns, transfer_ns, overhead_ns;
	uint64_t seeks, seek_cylinders, cache_hits, media_reads, media_writes;
	uint64_t a_success, a_fail, a_other; /* waits by outcome */
	uint64_t t_success_ns, t_fail_ns, t_other_ns;
	uint64_t drive_sectors;
	uint32_t queue_depth;
	uint32_t cores, queues; /* of the host, and its hardware queues */
	uint64_t core_busy_ns;	/* of all cores together */
	uint64_t lock_busy_ns;	/* of the lock that was held longest */
};

void hws_totals(const struct hws *s, struct hws_totals *out);

/* What the I/Os of one task and operation came to. */
struct hws_tally {
	uint32_t task; /* by the order in which they were added */
	uint8_t op;    /* enum hws_op */
	uint64_t ios, sectors;
	uint64_t first_issue_ns, last_done_ns;
	uint64_t latency_max_ns;
	uint64_t latency_sum_ns, latency_sum_high; /* the latter in 2^64 ns */
};

/* How many there are, in the order of their first I/Os. Valid until the next hws_run(). */
uint64_t hws_tallies(const struct hws *s, const struct hws_tally **out);

/*
 * Latencies with how many I/Os each had, in no particular order. One by one as long as there were
 * at most `exact` I/Os; else each is within 1 / error_denominator of what it was.
 */
struct hws_latencies {
	uint64_t room;		    /* elements of the columns */
	uint32_t *tally;	    /* out: index of hws_tallies() */
	uint64_t *ns;		    /* out */
	uint64_t *count;	    /* out */
	uint32_t error_denominator; /* out: 0 for none */
};

/* How many there are; as many are filled in as there is room for. */
uint64_t hws_latencies(const struct hws *s, struct hws_latencies *out);

/*
 * Calls that a task waits in until what it has written is on the medium: a job's fsync after so
 * many writes, and a trace's flushes. By task; the operation is HWS_FLUSH, sectors are 0.
 */
uint64_t hws_sync_tallies(const struct hws *s, const struct hws_tally **out);
uint64_t hws_sync_latencies(const struct hws *s, struct hws_latencies *out);

/*
 * Calls of jobs that read and write through the page cache. By task and operation; sectors are 0.
 */
uint64_t hws_call_tallies(const struct hws *s, const struct hws_tally **out);
uint64_t hws_call_latencies(const struct hws *s, struct hws_latencies *out);

/*
 * One row per I/O, in the order of the trace (or of issue, for generated load). Valid until the
 * next hws_run().
 */
struct hws_rows {
	uint64_t n;
	const int64_t *issue_ns;    /* -1: never issued */
	const int64_t *complete_ns; /* -1: never completed */
	const uint64_t *sector;
	const uint32_t *sectors;
	const uint32_t *task;
	const uint8_t *op; /* enum hws_op */
};

void hws_rows(const struct hws *s, struct hws_rows *out);

/*
 * What a job did, by its number (hws_add_job()); I/Os and bytes as it counts them, not as the drive
 * sees them.
 */
struct hws_job_totals {
	uint64_t begin_ns, end_ns;
	uint64_t ios[2], bytes[2]; /* HWS_READ, HWS_WRITE */
};

/* -ENOENT: no such job. */
int hws_job_totals(const struct hws *s, uint64_t number, struct hws_job_totals *out);

/* --- a policy by itself --- */

/*
 * For checks of a policy's decisions: the caller is the host and says what happens and when, with
 * `now` never decreasing. The caller keeps to the contract (core/elevator.h): completions, then
 * arrivals, then dispatches of one instant. -ENOENT: no such task, tunable, statistic, or no
 * request with this id in that state. -ENOMEM: no memory. -EINVAL: not started, or started twice; a
 * request that is empty and no flush, or ends beyond what numbers can say. Nothing has happened then.
 */
struct hwd;

struct hwd_request {
	uint64_t sector;
	uint32_t sectors;
	uint32_t task;
	uint8_t op;    /* enum hws_op */
	uint8_t flags; /* enum hws_flag */
	uint16_t ioprio;
	uint16_t cpu;
	uint32_t group; /* by number; 0: none */
};

/*
 * NULL: no such policy, or no memory. Tunables are set before hwd_start() (and may be later, where
 * the policy reads them anew).
 */
struct hwd *hwd_new(const char *policy, uint64_t sectors, int rotational, uint32_t depth,
		    uint32_t nr_requests);
void hwd_free(struct hwd *d);
int hwd_set(struct hwd *d, const char *tunable, int64_t value); /* -ERANGE outside min..max */
/* As hws_set_table(); at any time. */
int hwd_set_table(struct hwd *d, const char *table, const int64_t *cells, uint32_t rows,
		  uint32_t columns);
int hwd_start(struct hwd *d, uint64_t now);
/* Tasks are numbered by the caller; a number may be used again after the task's exit. */
int hwd_task_start(struct hwd *d, uint32_t number, uint16_t ioprio, uint16_t share, uint64_t now);
int hwd_task_exit(struct hwd *d, uint32_t number, uint64_t now);
/*
 * Groups are numbered by the caller, from 1 on. parent 0: none is around it. -ENOTSUP: the policy has
 * no groups. The number may be used again after the end; what has requests stays as long as they do.
 */
int hwd_group_start(struct hwd *d, uint32_t number, uint32_t parent, uint32_t weight);
int hwd_group_weight(struct hwd *d, uint32_t number, uint32_t weight);
int hwd_group_end(struct hwd *d, uint32_t number);
/* The request's id: insertions counted from 0. */
int64_t hwd_insert(struct hwd *d, const struct hwd_request *what, uint64_t now);
/*
 * The id of the request that the policy decides for, or -1; then hwd_wake_ns() is when to ask
 * again.
 */
int64_t hwd_dispatch(struct hwd *d, uint64_t now);
uint64_t hwd_wake_ns(const struct hwd *d);
int hwd_has_work(const struct hwd *d);
/* A request that the host had pulled ahead goes to the device only now: its time there begins. */
int hwd_issue(struct hwd *d, uint64_t id, uint64_t now);
int hwd_complete(struct hwd *d, uint64_t id, uint64_t now);
int hwd_requeue(struct hwd *d, uint64_t id, uint64_t now);
/* The host has merged so many sectors into a queued request, before it or after it. */
int hwd_grow(struct hwd *d, uint64_t id, int front, uint32_t sectors, uint64_t now);
/* The host has joined two queued requests that touch; @gone lies behind @keep. */
int hwd_join(struct hwd *d, uint64_t keep, uint64_t gone);
/* The policy's own look-up: the id of the request that the range would join, or -1. */
int64_t hwd_find_merge(struct hwd *d, const struct hwd_request *what, int *front);
/* 1 if the policy would let the range join the queued request. */
int hwd_allow_merge(struct hwd *d, uint64_t id, const struct hwd_request *what, uint64_t now);
uint32_t hwd_limit_depth(struct hwd *d, const struct hwd_request *what);
int hwd_stat(const struct hwd *d, const char *stat, int64_t *value);

/* --- drives by themselves --- */

struct hws_drive_model {
	const char *name;
	const char *summary;
	uint32_t nr_params;
};

enum hws_param_type {
	HWS_PARAM_NUMBER,
	HWS_PARAM_FLAG,
	HWS_PARAM_CHOICE,
	HWS_PARAM_LIST,	  /* of rows */
	HWS_PARAM_DRIVES, /* a list of drives */
};

/*
 * A parameter of a drive model, or a column of one that is a list. Values here are in blob units:
 * TOML value * scale.
 */
struct hws_param {
	const char *key;
	int32_t type; /* enum hws_param_type */
	uint32_t scale;
	const char *unit;
	int32_t required;
	int64_t def, min, max;
	const char *help;
	const char *const *choices; /* HWS_PARAM_CHOICE: NULL-terminated; else NULL */
	uint32_t nr_columns;
};

int hws_drive_model_at(uint32_t index, struct hws_drive_model *out);
int hws_param_at(uint32_t model, uint32_t index, struct hws_param *out);
int hws_param_column_at(uint32_t model, uint32_t index, uint32_t column, struct hws_param *out);

struct hws_profile_error {
	const char *key;    /* NULL: the profile as a whole */
	const char *column; /* NULL: not in a list's column */
	const char *what;
	int64_t row;	/* -1: not in a list */
	int64_t bound;	/* for "must be at least", "must be at most" */
	uint32_t scale; /* of bound; 0: none */
};

/* 0, or -EINVAL with *out filled in. */
int hws_profile_check(const void *profile, size_t bytes, struct hws_profile_error *out);

struct hws_position {
	uint64_t sectors; /* distance */
	uint64_t ns;
};

struct hws_drive_facts {
	uint64_t sectors;
	uint32_t depth;
	int32_t rotational;
	uint32_t nr_positions;
	struct hws_position position[32]; /* what policies are told of positioning times */
};

int hws_drive_facts(const void *profile, size_t bytes, struct hws_drive_facts *out);

/*
 * Where a block lies; angle is that of the sector's beginning in sectors of its zone, run the
 * blocks that follow without a gap.
 */
struct hws_place {
	uint32_t zone, cylinder, head, sector, angle, sectors_per_track, run;
};

/* -ERANGE: a block lies beyond the drive, or the drive has no such places. */
int hws_drive_locate(const void *profile, size_t bytes, uint64_t n, const uint64_t *lbn,
		     struct hws_place *out);

struct hws_replay_totals {
	uint64_t now_ns, seek_ns, rotation_ns, transfer_ns, cache_hits;
};

/* Columns of n elements; op is HWS_READ, HWS_WRITE or, for a flush, HWS_OTHER. */
struct hws_replay {
	uint64_t n;
	const uint8_t *op;
	const uint64_t *sector;
	const uint32_t *sectors;
	/* from this request's completion to the next issue in its place; NULL: none */
	const int64_t *think_ns;
	/*
	 * Submission queue of each place; NULL: 0. With it a place has its own requests: place p of
	 * P the requests p, p + P, …; the loop ends where one has no more, and service_ns of what
	 * has not been served stays as it was.
	 */
	const uint32_t *queue;
	int64_t *service_ns;		  /* out: from issue to completion */
	struct hws_replay_totals *totals; /* out */
};

/*
 * A closed loop on the bare drive, without scheduler: requests are issued in order, so many at
 * once, the first at time 0, and each further one when one completes and its think time is over.
 * -ERANGE: a request lies beyond the drive.
 */
int hws_drive_replay(const void *profile, size_t bytes, uint32_t outstanding,
		     const struct hws_replay *load);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
