/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the simulator share. */
#ifndef HW_SIM_INTERNAL_H
#define HW_SIM_INTERNAL_H

#include <setjmp.h>
#include <stdio.h>

#include "core/drive.h"
#include "core/elevator.h"
#include "core/lib/merge.h"
#include "sim/grow.h"
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
	void *cookie; /* its source's */
	/* free list, or those that are done and not fetched yet */
	struct sim_io *free_next;
};

/* The part of an I/O that went into one request. */
struct sim_piece {
	struct sim_io *io;
	struct sim_piece *next;
	u32 limit;	/* how many requests may be in use if it is to get one */
	bool throttled; /* it has a place of wbt's, and its request will */
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
	u8 reason;	/* enum hw_reason: why the policy gave it */
	bool throttled; /* it has a place of wbt's */
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
	struct sim_flush_wait *flush; /* those that have no tag, in order */
	struct sim_writer *writer;    /* of a trace's write-back; NULL: it has none yet */
	struct sim_source *source;    /* whose I/O this is */
	u64 nr_waiting; /* pieces that wait for a request or a tag: it cannot exit before */
	/* by operation: one more than the number of its tally; 0: none yet */
	u32 tally[HW_OTHER + 1];
	u32 sync_tally;	   /* the same of its calls such as fsync */
	u32 call_tally[2]; /* and of those that read and write through the page cache */
	u32 id;		   /* for the log */
	u32 group;	   /* 0: none, else one more than its number */
	u16 ioprio, share;
	bool exits, exiting;
	bool stalled; /* its source goes on when nothing of its waits */
	u32 core;
};

/* Tasks that share by weight. To a policy without groups they are unknown. */
struct sim_group {
	struct hw_group *group; /* NULL until its first I/O */
	u32 parent;		/* as of tasks */
	u32 weight;
};

/*
 * Something that issues I/O, or has something to do at some time: a trace, a process, the page
 * cache. This table is the only way in which the rest of the simulator calls it; what a source has
 * no use for is NULL.
 */
struct sim_source_ops {
	/*
	 * A source with a list (sim_look_ahead()) takes the next from it, in order of (time, order);
	 * false: that was all. due() follows at its time.
	 */
	bool (*next)(struct hws *s, struct sim_source *source, u64 *time_ns, u64 *order);
	/* It is time for what it had scheduled, or for the next of its list. */
	void (*due)(struct hws *s, struct sim_source *source, u64 order);
	/* An I/O that it issued with this cookie is done. */
	void (*done)(struct hws *s, struct sim_source *source, void *cookie);
	/* It may go on: what it waited for in the block layer is there. */
	void (*wake)(struct hws *s, struct sim_source *source);
	/* The run is over: 0, or an error if the source still has something to do. */
	int (*over)(struct hws *s, struct sim_source *source);
	/*
	 * An I/O is done, and its process will fetch it (sim_io_end()) when it has its core. NULL or
	 * false: it ends now.
	 */
	bool (*keeps)(struct hws *s, struct sim_source *source, struct sim_io *io);
	/*
	 * A row of a trace has had its core (sim_host_line()), and is to be issued; with the core
	 * for itself it would have been ready at that time.
	 */
	void (*through)(struct hws *s, struct sim_source *source, u64 row, u64 since_ns);
};

struct sim_source {
	const struct sim_source_ops *ops;
	u64 expected; /* the order of the event that it sleeps for (sim_sleep()) */
};

/* What is due. Ties go by order: traces in their own, generated load in order of scheduling. */
struct sim_due {
	u64 time_ns;
	u64 order;
	struct sim_source *source;
};

/* A place in the line before a processor. */
struct sim_turn {
	struct sim_turn *next;
	struct sim_source *source; /* who it is; NULL: the one who waits for a tag */
	u64 need_ns;
	u32 core;
	bool computing; /* has processor time to go, or waits for the processor */
	bool queued;
};

struct sim_processor {
	struct sim_turn *running;
	struct sim_turn *first, *last, feed;
	u64 stolen_ns; /* from the running one, since it began */
	u64 kernel_until_ns;
	u64 busy_until_ns; /* with processes of a trace */
	u64 thought;
	u64 since_ns; /* the running one has had it since then */
	u64 busy_ns;  /* so far */
	bool feed_wanted;
};

/* A hardware queue's tags; without a host there is one queue. */
struct sim_tag_queue {
	struct sim_tags *tags;
	struct sim_task *waiters, *last_waiter; /* waiting for a tag */
	u32 woken;
};

/* A task that waits for a flush of the drive's cache. */
struct sim_flush_wait {
	struct sim_flush_wait *next;
	u32 task;
	int tag;    /* -1: it needs none */
	bool waits; /* until it has been flushed */
};

/* A flush, those who wait for it, and those who wait for the one after it; newest first. */
struct sim_flush {
	struct hw_io io;
	bool waits;	   /* for the drive */
	bool after_others; /* it goes behind what is being decided */
	struct sim_flush_wait *current, *next;
};

/* Somebody who writes back dirty pages. */
struct sim_wbt_waiter {
	struct sim_wbt_waiter *next;
	bool sync, background;
	bool waits, may;
};

enum sim_event_type { EV_INSERT, EV_MERGE, EV_DISPATCH, EV_COMPLETE, EV_WAIT_BEGIN, EV_WAIT_END };

struct sim_rows {
	const struct hws_trace *trace; /* whose columns the others are; NULL: their own */
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
	u64 races;     /* for tags, so far */
	u32 depth;
	u32 in_drive;
	u32 in_use;		      /* requests that exist */
	struct sim_tag_queue *tagged; /* by hardware queue; NULL: they are only counted */
	u32 queues;		      /* hardware queues */
	u32 drive_queues;	      /* as many has the drive; 0: it does not say */
	u32 waiting_tasks;	      /* for a tag */
	bool started;
	bool inserted, done; /* in this instant */

	struct sim_task *tasks;
	u32 nr_tasks;
	struct sim_group *groups;
	u32 nr_groups;
	u64 room_groups;
	u64 room_tasks;

	struct sim_source *load;  /* all of it: a trace, or all jobs */
	struct sim_trace *pieces; /* the load, if it is a trace in pieces */
	bool hungry;		  /* nothing may happen before its next piece is there */
	bool load_ended;	  /* every job: what is left is to be written back */

	struct sim_due *heap;
	u64 nr_heap, room_heap;
	struct sim_due listed; /* the next of a source's list; HW_NEVER: there is none */
	u64 order;	       /* of what is scheduled next */

	struct sim_request *held; /* pulled ahead, waiting for the drive */
	/* decided on, with a place in the drive, on the way there */
	struct sim_request *sent, **sent_tail;
	u64 sent_ns; /* when the last of them arrives */
	struct sim_processor processor;
	struct sim_processor *cores; /* the host's; NULL without one */
	struct sim_host *host;	     /* host.c; NULL: each process has a core of its own */
	struct sim_flush flush;
	/* waiting for a request, where they are counted */
	struct sim_piece *starved, **starved_tail;

	struct sim_request *free_requests;
	struct sim_io *free_ios;
	struct sim_piece *free_pieces;
	struct hw_task *free_tasks;
	struct sim_slab *slabs;
	size_t slab_bytes;

	struct sim_rows rows;
	struct sim_tallies tallies;
	struct sim_tallies syncs; /* of calls such as fsync, which are no I/O */
	struct sim_tallies calls; /* of those that read and write through the page cache */
	FILE *log;		  /* NULL: none */
	const char *log_path;
	int log_errno; /* what went wrong first */
	bool wait_seen;
	u64 begun_seen;
	u32 wait_task_seen;

	u64 issued, completed, requests, merges;
	u64 left_out; /* rows of a trace that would have come after its end */
	u64 flushes;  /* rows of a trace that were, and are no I/O */
	u64 last_done_ns;
	struct sim_jobs *jobs;	       /* job.c; NULL without generated load */
	struct sim_cache *cache;       /* writeback.c; NULL without buffered writes */
	struct sim_wbt *wbt;	       /* wbt.c; NULL: it throttles nothing */
	struct sim_throttle *throttle; /* throttle.c; NULL: no trace is throttled */
	jmp_buf no_memory;
	int failed; /* why the load cannot go on, which hws_error() says; 0: it can */
	bool dead;  /* it ran out of memory, in the middle of something */
	char error[SIM_ERROR_BYTES];
};

/* error.c: @err, for the caller to return */
int sim_fail(struct hws *s, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* run.c */
int sim_run(struct hws *s, u64 events);

/* loop.c: when something happens next; it happens */
u64 sim_next_event(const struct hws *s);
void sim_step(struct hws *s);

/* due.c: @order breaks ties, and is given back to due() */
u64 sim_order(struct hws *s);
void sim_schedule(struct hws *s, u64 time_ns, u64 order, struct sim_source *source);
/* Once at a time: it is due then, and no event of an earlier sleep is the expected one. */
void sim_sleep(struct hws *s, struct sim_source *source, u64 until_ns);
/* The source has a list, as no other of the run has; its next is peeked at. */
void sim_look_ahead(struct hws *s, struct sim_source *source);
/* When something is due next, HW_NEVER if nothing is; what it is, which then is no longer there. */
u64 sim_due_ns(const struct hws *s);
struct sim_due sim_due_take(struct hws *s);

/* dispatch.c: @delay_ns from a decision until it is on its way */
void sim_dispatch(struct hws *s, u64 delay_ns);
void sim_submit_sent(struct hws *s);

/* io.c: @what->now_ns: when its process began with it; 0: now */
void sim_issue(struct hws *s, u32 task, const struct hw_bio *what, u64 row, u64 fixed_ns,
	       void *cookie);
void sim_request_done(struct hws *s, struct sim_request *r);
/* Whoever kept it (struct sim_source_ops) has it now. */
void sim_io_end(struct hws *s, struct sim_io *io);

/* task.c */
struct hw_task *sim_task_of(struct hws *s, u32 task);
void sim_task_exit(struct hws *s, u32 task);
/* As struct sim_task says it; NULL: the root's, or the policy has no groups. */
struct hw_group *sim_group_of(struct hws *s, u32 group);
/* Those that nothing refers to any more are freed. */
void sim_task_reap(struct hws *s);

/* request.c: false: it has joined another request, and needs no tag */
bool sim_insert_piece(struct hws *s, struct sim_piece *p, int tag);
/* Does it become part of a request that there is? */
bool sim_merge_piece(struct hws *s, struct sim_piece *p);

/* allocate.c */
/* It joins no request, and needs one. */
void sim_request_piece(struct hws *s, struct sim_piece *p);
/* A piece of the task's has waited long enough. */
void sim_waited(struct hws *s, u32 task);
/* Does the task wait for a request? Then its source is woken when it has one. */
bool sim_task_stalls(struct hws *s, u32 task);
/* @sectors: of what has been done, which came from @core */
void sim_request_freed(struct hws *s, u32 core, u32 sectors);
void sim_feed_woken(struct hws *s);
/* The task's source is woken when the drive's cache has been written. */
void sim_flush(struct hws *s, struct sim_flush_wait *w);

/* flush.c */
bool sim_flush_wanted(const struct hws *s);
bool sim_flush_under_way(const struct hws *s);
/* It has a tag, where it needs one. */
void sim_flush_ready(struct hws *s, struct sim_flush_wait *w);
void sim_flush_submit(struct hws *s);
void sim_flush_done(struct hws *s);

/* processor.c */
u64 sim_turnaround(const struct hws *s, u32 sectors);
/* The source is due when it has had so much processor time. */
void sim_compute(struct hws *s, struct sim_turn *t, u64 need_ns);
/* Compute behind others who wait for the processor, if the source has had it for long. */
void sim_compute_in_turn(struct hws *s, struct sim_turn *t, u64 need_ns);
/* It is due: has it had all? If not, it will be due again. */
bool sim_computed(struct hws *s, struct sim_turn *t);
/* Has it the processor? Always, where each has one of its own. */
bool sim_runs(struct hws *s, const struct sim_turn *t);
/* It has nothing more to do now. */
void sim_yield(struct hws *s, struct sim_turn *t);
/* A process of a trace begins to think. */
void sim_think(struct hws *s, u64 think_ns);
/* The kernel takes so much of a processor, at once; sim_interrupt() of the one processor. */
void sim_steal(struct hws *s, struct sim_processor *p, u64 takes_ns);
void sim_interrupt(struct hws *s, u64 takes_ns);
/*
 * A tag of a queue has come back, of a request of so many sectors: one of those who wait looks when
 * it gets the processor.
 */
void sim_wake_waiter(struct hws *s, u32 queue, u32 sectors);
/* After the processes whose I/O is done. */
void sim_waiter_woken(struct hws *s);

/* host.c: nothing happens without a host */
void sim_host_init(struct hws *s);
void sim_host_start(struct hws *s);
/* Which core an I/O of a task is issued on; @row: of a trace. */
static inline u32 sim_core_of(const struct hws *s, u32 task, u64 row)
{
	if (likely(s->opt.cpus == 1))
		return 0;
	if (!s->host)
		return task % s->opt.cpus;
	return s->opt.spread ? (u32)(row % s->opt.cores) : s->tasks[task].core;
}

/* The hardware queue of what comes from a core. */
static inline u32 sim_queue_of(const struct hws *s, u32 core)
{
	return likely(s->queues == 1) ? 0 : core % s->queues;
}

/* A process of so many sectors' I/O gets them ready: its core, and then the lock. */
void sim_lock(struct hws *s, struct sim_turn *t);
void sim_unlock(struct hws *s, u32 core);
/* An I/O of the kernel's own, which nobody waits for: only the time passes. */
void sim_host_submitted(struct hws *s, u32 core, u32 sectors);
/* A request is done, on the core that issued it. */
void sim_host_interrupt(struct hws *s, u32 core);

static inline void sim_host_completed(struct hws *s, u32 core)
{
	if (unlikely(s->host))
		sim_host_interrupt(s, core);
}

/* Until a process that is woken now goes on, on its core. */
u64 sim_host_switch(const struct hws *s, u32 core);
/* One more process on a core. */
void sim_host_joined(struct hws *s, u32 core);
u64 sim_host_busy(const struct hws *s, u64 *lock_ns);
/* Rows of a trace in line before their cores; only with a host. */
void sim_host_trace(struct hws *s, u64 rows);
/* How many rows of a trace in pieces may stand in line. */
void sim_host_room(struct hws *s, u64 rows);
void sim_host_line(struct hws *s, u32 row, u32 core, u32 sectors);
void sim_host_free(struct hws *s);

/* wbt.c: @cache is woken when some of those who wait may write */
void sim_wbt_init(struct hws *s, struct sim_source *cache);
/*
 * May one more request be made? If not, it will be in its turn, and must then be asked for again.
 */
bool sim_wbt_get(struct hws *s, struct sim_wbt_waiter *who);
void sim_wbt_put(struct hws *s);
/* A writer has to wait for the cache to become cleaner. */
void sim_wbt_slept(struct hws *s);
/* A read begins; a request goes to the drive; it is done. */
void sim_wbt_read(struct hws *s);
void sim_wbt_issued(struct hws *s, const struct sim_request *r);
void sim_wbt_done(struct hws *s, const struct sim_request *r);

/* Does the kernel take the drive for one that rotates? */
static inline bool sim_is_told_rotational(const struct hws *s)
{
	return s->opt.told_rotational ? s->opt.told_rotational == 1 : s->drive->rotational;
}

/* throttle.c: write-back of a trace is throttled, if any is */
void sim_throttle_init(struct hws *s);
void sim_submit_piece(struct hws *s, struct sim_piece *p);

/* tags.c: the number of a tag, or -1; @limit as in limit_depth() */
/* Are requests tags? Where the host is blk-mq; else they are counted, if at all. */
bool sim_has_tags(const struct hws *s);
struct sim_tags *sim_tags_new(struct hws *s, u32 all);
int sim_tag_get(struct sim_tags *t, u32 limit);
void sim_tag_put(struct sim_tags *t, int tag);

/*
 * memory.c: zeroed; everything is freed at once, with the run. Where there is none left these do not
 * return: the call from outside ends with an error (setup.c).
 */
void *sim_alloc(struct hws *s, size_t bytes);
void sim_free_all(struct hws *s);
/* Columns of a table (grow.h), which are not: whoever has them frees them. */
#define SIM_GROW(s, room, need, ...)                        \
	do {                                                \
		if (!SIM_TRY_GROW(room, need, __VA_ARGS__)) \
			longjmp((s)->no_memory, 1);         \
	} while (0)

/* pool.c */
struct sim_request *sim_request_new(struct hws *s);
void sim_request_free(struct hws *s, struct sim_request *r);
struct sim_io *sim_io_new(struct hws *s);
void sim_io_free(struct hws *s, struct sim_io *io);
struct sim_piece *sim_piece_new(struct hws *s);
void sim_piece_free(struct hws *s, struct sim_piece *p);
struct hw_task *sim_hw_task_new(struct hws *s);
void sim_hw_task_free(struct hws *s, struct hw_task *t);

/* trace.c */
int sim_add_trace(struct hws *s, const struct hws_trace *trace);
int sim_add_pieces(struct hws *s, const uint64_t *ios);
int sim_feed(struct hws *s, const struct hws_trace *piece);
void sim_pieces_free(struct hws *s);

/* load/job.c, load/start.c */
int sim_add_job(struct hws *s, const struct hws_job *job);
void sim_jobs_free(struct hws *s);

/* tally.c */
void sim_tally_issue(struct hws *s, struct sim_io *io, const struct hw_bio *what, u64 since_ns);
void sim_tally_complete(struct hws *s, const struct sim_io *io);
/* A task has waited since then for what it had written to be on the medium. */
void sim_tally_sync(struct hws *s, u32 task, u64 since_ns);
/* A task's call through the page cache, which began then, is over. */
void sim_tally_call(struct hws *s, u32 task, u8 op, u64 since_ns);
/* I/Os in tallies. */
u64 sim_tallied(const struct hws *s);
void sim_tallies_free(struct hws *s);

/* rows.c */
void sim_rows_of_trace(struct hws *s, const struct hws_trace *trace);
/* @since_ns: when its process began with it */
void sim_row_issue(struct hws *s, u64 row, u32 task, const struct hw_bio *what, u64 since_ns);
void sim_row_complete(struct hws *s, u64 row);
void sim_rows_free(struct hws *s);

/* log.c */
extern const struct hws_reason sim_reasons[]; /* by enum hw_reason; catalogue.c */
int sim_log_open(struct hws *s, const char *path);
int sim_log_check(struct hws *s);
int sim_log_close(struct hws *s);
void sim_log(struct hws *s, enum sim_event_type type, u64 request, u32 task, u8 op, u64 sector,
	     u32 sectors);
void sim_log_dispatch(struct hws *s, const struct sim_request *r);
void sim_log_waits(struct hws *s);

/* account.c */
int sim_account(struct hws *s);

#endif
