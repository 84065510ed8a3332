/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of generated load share: jobs (job.c), where their I/Os go (place.c), the page
 * cache (readahead.c, writeback.c).
 */
#ifndef HW_SIM_LOAD_INTERNAL_H
#define HW_SIM_LOAD_INTERNAL_H

#include "sim/internal.h"

/*
 * Blocks that this pass has touched: bit b of level 0 is block b, a bit above is a full word
 * below.
 */
#define SIM_MAP_LEVELS 7

struct sim_map {
	u64 blocks, unit;
	u32 nr_levels;
	struct sim_chunk **level[SIM_MAP_LEVELS]; /* NULL: nothing in it is set */
	struct sim_chunk *chunks;
	struct hws *run;
};

/* A piece of the page cache that is on its way from or to the drive. */
struct sim_transfer {
	u64 first, pages; /* of the drive */
	bool write;
	bool in_hand;		 /* the first page of a write that waits for wbt */
	struct sim_job *waiters; /* of a read, in the order in which they came */
	struct sim_transfer *next, **pprev;
};

/* Pages in a row on the drive (extents.c). */
struct sim_extent {
	struct rb_node node;
	u64 first, end;
	u64 since_ns;		 /* dirty: the oldest of them */
	struct list_head age;	 /* here: what came before comes before */
	struct sim_transfer *of; /* coming */
	struct sim_extent *free_next;
};

struct sim_extents {
	struct rb_root root;
	struct sim_extent *free;
};

/* What of the drive is in memory (pages.c). */
struct sim_pages {
	bool found; /* somebody reads through the page cache */
	struct sim_extents here, coming, marks;
	struct list_head by_age; /* of what is here */
	u64 here_pages;
	struct sim_transfer *free;
};

/* Reading ahead in one file, as one reader does it. */
struct sim_stream {
	u64 expected;	  /* page after the last one read */
	u64 start, pages; /* newest window */
	u64 marker;	  /* reading this page asks for the next one */
};

struct sim_die {
	u32 s1, s2, s3;
};

/* Skewed random places in one file (skew.c). */
struct sim_skew {
	struct sim_die die;
	u64 blocks, shift;
	u64 width;		  /* normal */
	double power;		  /* zipf, pareto */
	double zeta, second, eta; /* zipf */
};

struct sim_file {
	struct hws_file at;
	u64 last_pos[2], last_start[2];
	bool done; /* in this pass */
	struct sim_map map;
	struct sim_skew skew;
	struct sim_stream stream;
};

/* Where an I/O goes: bytes of a file. */
struct sim_place {
	struct sim_file *file;
	u64 offset, bytes;
};

enum sim_job_life { JOB_CREATED, JOB_RUNNING, JOB_ENDED };

/* Independent sequences of random numbers, so that one choice does not shift another (dice.c). */
enum sim_dice {
	DICE_PLACE,
	DICE_DIRECTION,
	DICE_BYTES_READ,
	DICE_BYTES_WRITE,
	DICE_MIX_READ,
	DICE_MIX_WRITE,
	DICE_FILE,
	DICE_START,
	DICE_ZONE,
	DICE_PRIO,
	NR_DICE
};

struct sim_set;

struct sim_job {
	struct sim_source source;
	u64 index;
	struct sim_set *section, *group;
	struct sim_job *group_next;
	struct sim_job *waiting_next; /* for a section to end */
	struct rb_node ready;
	struct hws_job opt;
	struct sim_file *files;
	enum sim_job_life life;
	u8 state; /* enum job_state of job.c */
	bool terminate;
	bool synced_last;
	u64 unbalanced_pages; /* made dirty since it was last asked to wait */
	u64 want;	      /* it waits for this many completions; 0: it does not */
	struct sim_die dice[NR_DICE];

	u64 start_ns, epoch_ns, end_ns;
	u64 loops_left;
	u64 issued, completed, reaped, writes;
	u64 issued_bytes, pass_bytes, pass_issued;
	u64 think_mark, think_next;
	u64 bytes[2];
	u32 direction;
	u64 dir_issued[2];
	u32 mix_direction; /* both directions: the one that it is at, until so many were issued */
	u64 mix_until;
	u32 until_random; /* I/Os until the next random place */
	u32 file, file_left;

	struct sim_place op;	    /* buffered: what is being copied */
	u64 cursor, end;	    /* and the pages still to be read */
	struct sim_place sync_what; /* fsync: what must be written; file NULL: all files */
	bool reading;		    /* waits for pages that are coming */
	bool rewinds;		    /* its files begin anew */
	bool made_room; /* has had the processor time that the pages it is to fetch take */
	bool blocked;	/* waits for pages to be written, among others */
	struct sim_job *blocked_next;
	struct sim_turn turn;
	u64 sync_file, sync_at; /* fsync: it has been at the files and pages before */
	struct sim_wbt_waiter wbt;
	struct sim_transfer *in_hand; /* fsync: what it writes next */
	u64 hand_end;		      /* and the page after the last that goes with it */
	bool preparing;		      /* fsync: the request is being made */
	u64 behind;	      /* fsync: a page that is in another's hand, plus one; 0: none */
	bool flushed;	      /* fsync: it has asked for the drive's cache to be flushed */
	u64 sync_ns;	      /* fsync: it began then */
	u64 too_narrow_bytes; /* no size that may be drawn fits there; 0: all is well */
	struct sim_flush_wait flush;
	/* I/Os that are done, and that the process has not fetched yet; fetched so far */
	struct sim_io *unfetched, **unfetched_tail;
	u64 fetched;
	u64 began_ns; /* with the I/O that it issues, or its call through the page cache */
};

struct sim_jobs {
	struct sim_source source; /* of all of them: only for the end of the run */
	struct sim_job **job;
	u64 nr, room;
	u64 running;	   /* started, not ended */
	u64 left;	   /* not ended */
	u64 started, told; /* so far, and when running ones were last told to end */
	bool told_all;
	struct sim_pages pages;
	struct rb_root sections, groups; /* by number */
	u64 *by_start, nr_due;		 /* jobs by start delay, and how many of these are over */
	struct rb_root ready;		 /* due, not started; in order of the job file */
};

/* check.c: before it is added */
int sim_job_check(struct hws *s, const struct hws_job *o);

/* dice.c */
void sim_dice_seed(struct sim_job *j, u64 run_seed);
/* A file's own sequence, for skewed places; before the job's are used. */
void sim_dice_seed_file(struct sim_job *j, struct sim_file *f, u64 run_seed);
u32 sim_die_roll(struct sim_die *d);
/* From 0 to n - 1. */
u64 sim_roll_below(struct sim_job *j, enum sim_dice which, u64 n);

/* start.c */
void sim_start_add(struct hws *s, struct sim_job *j);
/* Whoever may start now does. */
void sim_start_jobs(struct hws *s);
void sim_job_ended(struct hws *s, struct sim_job *j);

/* process.c: a job goes on later; now; when it has had so much processor time */
void sim_job_sleep(struct hws *s, struct sim_job *j, u64 until_ns);
void sim_job_wake(struct hws *s, struct sim_job *j);
void sim_job_compute(struct hws *s, struct sim_job *j, u64 need_ns);
/* @cookie: a transfer of the page cache, or NULL for an I/O of the job's own. */
void sim_job_issue(struct hws *s, u32 task, u64 sector, u32 sectors, u8 op, u8 flags, void *cookie);
/* Issue an I/O with a priority of its own. */
void sim_job_issue_at(struct hws *s, u32 task, const struct hw_bio *what, void *cookie);

/* place.c */
void sim_place_init(struct hws *s, struct sim_job *j);
/* The control group of the job whose page cache has that place, if it writes; 0: none. */
u32 sim_jobs_group_at(const struct hws *s, u64 byte);
/* A new pass over the files begins. */
void sim_place_reset(struct sim_job *j);
/*
 * The next I/O in this direction; false: the pass is over, or the job cannot go on
 * (too_narrow_bytes).
 */
bool sim_place_next(struct sim_job *j, u32 direction, struct sim_place *place);

/* prio.c: of an I/O of so many bytes */
u16 sim_job_prio(struct sim_job *j, u32 direction, u64 bytes, u16 usual);

/* skew.c */
bool sim_skew_wrong(const struct hws_job *o);
void sim_skew_init(struct sim_job *j, struct sim_file *f);
/* Draw one of the file's blocks, as often as the distribution says. */
u64 sim_skew_block(struct sim_job *j, struct sim_file *f);

/* extents.c: the one that holds a page, or else the next; NULL: none */
struct sim_extent *sim_extent_at_or_after(const struct sim_extents *x, u64 page);
struct sim_extent *sim_extent_next(struct sim_extent *e);
void sim_extent_remove(struct sim_extents *x, struct sim_extent *e);
struct sim_extent *sim_extent_insert(struct hws *s, struct sim_extents *x, u64 first, u64 end);

/* pages.c */
void sim_pages_init(struct sim_pages *p);
void sim_pages_add(struct hws *s, struct sim_pages *p, u64 first, u64 end);
void sim_pages_drop(struct hws *s, struct sim_pages *p, u64 first, u64 end);
/* Pages up to this one are here; with those that are coming; from this one on there are some again. */
u64 sim_pages_here(const struct sim_pages *p, u64 page);
u64 sim_pages_missing(const struct sim_pages *p, u64 page);
u64 sim_pages_present(const struct sim_pages *p, u64 page);
/* With which read a page comes; NULL: it does not. */
struct sim_transfer *sim_pages_coming(const struct sim_pages *p, u64 page);
/* Whoever reads a marked page asks for what comes after it. */
void sim_pages_mark(struct hws *s, struct sim_pages *p, u64 page);
bool sim_pages_marked(const struct sim_pages *p, u64 first, u64 end, u64 *page);
void sim_pages_unmark(struct sim_pages *p, u64 page);
/* Pages none of which are here or coming are asked for; they come. */
struct sim_transfer *sim_pages_ask(struct hws *s, struct sim_pages *p, u64 first, u64 end);
void sim_pages_come(struct hws *s, struct sim_pages *p, struct sim_transfer *t);

/*
 * readahead.c and writeback.c. What returns bool is called again, after sim_job_wake(), until it
 * returns true.
 */
void sim_read_begin(struct sim_job *j);
bool sim_read(struct hws *s, struct sim_job *j);
void sim_read_done(struct hws *s, struct sim_transfer *t);

void sim_cache_init(struct hws *s, u32 flusher);
void sim_cache_flush(struct hws *s);
/* What is clean is no longer in memory. */
void sim_cache_drop(struct hws *s, const struct sim_place *what);
void sim_write(struct hws *s, struct sim_job *j);
bool sim_write_balance(struct hws *s, struct sim_job *j);
/* what NULL: all files of the job. */
void sim_fsync_begin(struct hws *s, struct sim_job *j, const struct sim_place *what);
bool sim_fsync(struct hws *s, struct sim_job *j);
void sim_fsync_done(struct hws *s, struct sim_transfer *t);

#endif
