/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the simulator share. */
#ifndef HW_SIM_INTERNAL_H
#define HW_SIM_INTERNAL_H

#include <setjmp.h>
#include <stdio.h>

#include "core/drive.h"
#include "core/elevator.h"
#include "core/lib/merge.h"
#include "sim/headwaiter.h"

#define SIM_ERROR_BYTES	   256
#define SIM_PAGE_BYTES	   4096u
#define SIM_PAGE_SECTORS   (SIM_PAGE_BYTES / HW_SECTOR_BYTES)
#define SIM_PAGES(sectors) ((u64)(sectors) / SIM_PAGE_SECTORS + ((sectors) % SIM_PAGE_SECTORS != 0))
#define SIM_CACHE_LINE	   64u

/*
 * Where the clock ends: what the int64_t of a row holds, 292 years. What is due later stays a time,
 * neither HW_NEVER nor a small number, so that the run gets there, and ends with an error.
 */
#define SIM_CLOCK_END ((u64)INT64_MAX)

/* So long after @now, which the clock has shown or will. */
static inline u64 sim_after(u64 now, u64 ns)
{
	return now > SIM_CLOCK_END || ns > SIM_CLOCK_END - now ? SIM_CLOCK_END + 1 : now + ns;
}

/* One I/O as a task sees it; the scheduler may see it as several requests, or as part of one. */
struct sim_io {
	u64 row; /* index in struct hws_rows, or the trace */
	u32 task;
	u32 pieces;	    /* not yet completed */
	u32 tally, sectors; /* tally.c */
	u64 issue_ns;
	u64 fixed_ns;
	void *tag; /* for the source of a generated I/O */
	struct sim_io *free_next;
};

/* The part of an I/O that went into one request. */
struct sim_piece {
	struct sim_io *io;
	struct sim_piece *next;
	u32 limit; /* how many requests may be in use if it is to get one */
	struct hw_bio bio;
};

/* Around every request of the policy's. */
struct sim_request {
	struct hw_io io;
	struct sim_piece *pieces, **pieces_tail;
	/* free list, those pulled ahead, or those on the way to the drive */
	struct sim_request *next;
	u64 arrives_ns; /* at the drive */
	int tag;	/* -1: tags are only counted */
	/*
	 * The policy's, as long as it says: must be last. Where cache lines begin, so that a place
	 * and its node share one.
	 */
	_Alignas(SIM_CACHE_LINE) struct hw_request rq;
};

struct sim_task {
	struct hw_task *task; /* NULL until its first I/O and after it was freed */
	struct sim_piece *waiting, **waiting_tail; /* for a tag */
	struct sim_task *next_waiter;
	struct sim_job *flusher; /* has no tag for its flush */
	struct sim_job *stalled; /* goes on when nothing of its waits */
	u64 nr_waiting;	 /* pieces that wait for a request or a tag: it cannot exit before */
	u64 outstanding; /* I/Os issued, not completed */
	u64 remaining;	 /* I/Os of the trace not completed */
	/* by operation: one more than the number of its tally; 0: none yet */
	u32 tally[HW_OTHER + 1];
	u32 id; /* for the log */
	u16 ioprio, share;
	bool exits, exiting;
	struct sim_source *source; /* told of completions; NULL: the trace */
};

/*
 * Something that generates load: it is called when what it scheduled is due, and when an I/O of its
 * tasks is done.
 */
struct sim_source {
	void (*due)(struct hws *s, struct sim_source *source, u64 order);
	void (*done)(struct hws *s, struct sim_source *source, void *tag);
};

/* What is due. Ties go by order: traces in their own, generated load in order of scheduling. */
struct sim_due {
	u64 time_ns;
	u64 order;
	struct sim_source *source; /* or NULL: `order` is a row of the trace */
};

/* A place in the line before the one processor. */
struct sim_turn {
	struct sim_turn *next;
	struct sim_job *job; /* NULL: who waits for a tag */
	u64 need_ns;
	bool queued;
};

struct sim_processor {
	struct sim_job *running;
	struct sim_turn *first, *last, feed;
	u64 stolen_ns; /* from the running one, since it began */
	u64 kernel_until_ns;
	bool feed_wanted;
};

/*
 * A flush of the drive's cache, the jobs that wait for it, and those that wait for the one after
 * it; newest first.
 */
struct sim_flush {
	struct hw_io io;
	bool waits;	   /* for the drive */
	bool after_others; /* it goes behind what is being decided */
	struct sim_job *current, *next;
};

enum sim_event_type { EV_INSERT, EV_MERGE, EV_DISPATCH, EV_COMPLETE, EV_WAIT_BEGIN, EV_WAIT_END };

#define NO_ROW U32_MAX

enum sim_row_state { ROW_WAITING, ROW_DUE, ROW_ISSUED };

struct sim_rows {
	u64 n, room;
	int64_t *issue_ns, *complete_ns;
	uint64_t *sector;
	uint32_t *sectors;
	uint32_t *task;
	uint8_t *op;
};

/* tally.c */
struct sim_tallies {
	struct hws_tally *of;
	u64 nr, room;
	u32 *exact_tally;
	u64 *exact_ns;
	u64 nr_exact, room_exact;
	struct sim_slot *slots; /* NULL: latencies are kept one by one */
	u64 slots_used;
	u32 slot_bits;
};

struct hws {
	struct hws_options opt;
	const struct hw_policy *policy;
	struct hw_queue *q;
	struct hw_drive *drive;
	struct hw_merger merger;
	struct hw_request **buckets; /* for it, once its own are too few */
	u64 now;
	u64 wake_ns;
	u64 worker_ns; /* when a worker decides what is next */
	u64 feed_ns;   /* when so many of the waiters look again */
	u32 woken;
	u32 depth;
	u32 in_drive;
	u32 in_use;	       /* requests that exist */
	struct sim_tags *tags; /* NULL: they are only counted */
	bool started;
	bool inserted, done; /* in this instant */

	struct sim_task *tasks;
	u32 nr_tasks, room_tasks;

	const struct hws_trace *trace;
	struct hws_trace trace_copy;
	/* Rows by number, NO_ROW ends; NULL where there are none. */
	u32 *first_child, *next_sibling; /* rows that follow a row */
	u32 *follower;			 /* the row that may not be issued before a row */
	u8 *row_state;			 /* enum sim_row_state, if some rows have followers */
	u32 *roots; /* rows without parent, by time; NULL: all rows, as they stand */
	u64 nr_roots, next_root;

	struct sim_due *heap;
	u64 nr_heap, room_heap;

	struct sim_request *held; /* pulled ahead, waiting for the drive */
	/* decided on, with a place in the drive, on the way there */
	struct sim_request *sent, **sent_tail;
	u64 sent_ns; /* when the last of them arrives */
	struct sim_processor processor;
	struct sim_flush flush;
	/* waiting for a request, where they are counted */
	struct sim_piece *starved, **starved_tail;
	struct sim_task *waiters, *last_waiter; /* waiting for a tag */

	struct sim_request *free_requests;
	struct sim_io *free_ios;
	struct sim_piece *free_pieces;
	struct hw_task *free_tasks;
	struct sim_slab *slabs;
	size_t slab_bytes;

	struct sim_rows rows;
	struct sim_tallies tallies;
	FILE *log; /* NULL: none */
	const char *log_path;
	int log_errno; /* what went wrong first */
	bool wait_seen;
	u64 begun_seen;
	u32 wait_task_seen;

	u64 issued, completed, requests, merges;
	u64 last_done_ns;
	struct sim_jobs *jobs;	 /* job.c; NULL without generated load */
	struct sim_cache *cache; /* writeback.c; NULL without buffered writes */
	struct sim_wbt *wbt;	 /* wbt.c; NULL: it throttles nothing */
	jmp_buf no_memory;
	bool dead; /* it ran out of memory, in the middle of something */
	char error[SIM_ERROR_BYTES];
};

/* engine.c */
int sim_fail(struct hws *s, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));
void sim_issue(struct hws *s, u32 task, const struct hw_bio *what, u64 row, u64 fixed_ns,
	       void *tag);
void sim_schedule(struct hws *s, u64 time_ns, u64 order, struct sim_source *source);
void sim_task_exit(struct hws *s, u32 task);
void sim_insert_piece(struct hws *s, struct sim_piece *p, int tag);
/* Does it become part of a request that there is? */
bool sim_merge_piece(struct hws *s, struct sim_piece *p);

/* processor.c */
u64 sim_turnaround(const struct hws *s, u32 sectors);
void sim_interrupt(struct hws *s, u64 takes_ns);
/*
 * A tag has come back, of a request of so many sectors: one of those who wait looks when it gets
 * the processor.
 */
void sim_wake_waiter(struct hws *s, u32 sectors);
/* After the processes whose I/O is done. */
void sim_waiter_woken(struct hws *s);

/* allocate.c */
void sim_submit_piece(struct hws *s, struct sim_piece *p);
/* @sectors: of what has been done */
void sim_request_freed(struct hws *s, u32 sectors);
void sim_feed_woken(struct hws *s);
/* Has the job what its flush needs? If not, it will be woken when it has. */
bool sim_flush_tag(struct hws *s, struct sim_job *j);

/* flush.c */
bool sim_flush_wanted(const struct hws *s);
void sim_flush_submit(struct hws *s);
void sim_flush_done(struct hws *s);

/* wbt.c: a read begins; a request goes to the drive; it is done */
void sim_wbt_read(struct hws *s);
void sim_wbt_issued(struct hws *s, const struct sim_request *r);
void sim_wbt_done(struct hws *s, const struct sim_request *r);

/* tags.c: the number of a tag, or -1; @limit as in limit_depth() */
struct sim_tags *sim_tags_new(struct hws *s, u32 all);
int sim_tag_get(struct sim_tags *t, u32 limit);
void sim_tag_put(struct sim_tags *t, int tag);

/*
 * memory.c: everything is freed at once, with the run. Where there is none left these do not
 * return: the call from outside ends with an error (setup.c).
 */
void *sim_alloc(struct hws *s, size_t bytes);
void sim_free_all(struct hws *s);
void *sim_grow(struct hws *s, void *array, u64 *room, u64 need, size_t element_bytes);
struct sim_request *sim_request_new(struct hws *s);
void sim_request_free(struct hws *s, struct sim_request *r);
struct sim_io *sim_io_new(struct hws *s);
void sim_io_free(struct hws *s, struct sim_io *io);
struct sim_piece *sim_piece_new(struct hws *s);
void sim_piece_free(struct hws *s, struct sim_piece *p);
struct hw_task *sim_hw_task_new(struct hws *s);
void sim_hw_task_free(struct hws *s, struct hw_task *t);

/* What the calls from outside do, once memory may run out. */
int sim_run(struct hws *s, u64 events);
int sim_add_trace(struct hws *s, const struct hws_trace *trace);
int sim_add_job(struct hws *s, const struct hws_job *job);

/* trace.c */
void sim_trace_issue(struct hws *s, u64 row);
void sim_trace_completed(struct hws *s, u64 row);

/* job.c */
void sim_jobs_free(struct hws *s);
bool sim_jobs_over(const struct hws *s);

/* tally.c */
void sim_tally_issue(struct hws *s, struct sim_io *io, const struct hw_bio *what);
void sim_tally_complete(struct hws *s, const struct sim_io *io);
/* I/Os in tallies. */
u64 sim_tallied(const struct hws *s);
void sim_tallies_free(struct hws *s);

/* record.c */
int sim_account(struct hws *s);
void sim_row_issue(struct hws *s, u64 row, u32 task, const struct hw_bio *what);
void sim_row_complete(struct hws *s, u64 row);
int sim_log_open(struct hws *s, const char *path);
int sim_log_check(struct hws *s);
int sim_log_close(struct hws *s);
void sim_log(struct hws *s, enum sim_event_type type, u64 request, u32 task, u8 op, u64 sector,
	     u32 sectors);
void sim_log_waits(struct hws *s);

#endif
