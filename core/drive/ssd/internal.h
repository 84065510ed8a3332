/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flash in events. A command waits in its submission queue, is fetched, takes its turn in the
 * controller, and then:
 *
 *  - a read asks the die of each page; what a die has read goes over the channel, then the link;
 *  - a write goes over the link into the buffer, piece by piece, where there is a place; what fills
 *    a page goes over a channel to a die and is programmed.
 *
 * Whatever is served in the order in which it is ready keeps only the time at which it is free, and
 * is asked when the data is there, never before. The rest are queues.
 *
 * params.c  the table
 * events.c  what happens when
 * flash.c   dies, channels, programs, garbage
 * host.c    queues, controller, link, completions
 * buffer.c  writes and flushes
 * ssd.c     the model
 */
#ifndef HW_DRIVE_SSD_INTERNAL_H
#define HW_DRIVE_SSD_INTERNAL_H

#include "core/drive/done.h"
#include "core/drive/profile.h"

enum ssd_param {
	SP_SECTORS,
	SP_CHANNELS,
	SP_WAYS,
	SP_PAGE,
	SP_BLOCK,
	SP_READ,
	SP_PROGRAM,
	SP_ERASE,
	SP_TRANSFER,
	SP_SUSPEND,
	SP_SUSPENDS,
	SP_LINK_READ,
	SP_LINK_WRITE,
	SP_O_READ,
	SP_O_WRITE,
	SP_BUFFER,
	SP_POOL,
	SP_VALID,
	SP_GC_IDLE,
	SP_DEPTH,
	SP_READ_MIDDLE,
	SP_READ_SLOW,
	SP_READ_MORE,
	SP_HALF_DUPLEX,
	SP_C_READ,
	SP_C_WRITE,
	SP_SUBMISSIONS,
	SP_FETCH,
	SP_BURST,
	SP_SLC,
	SP_SLC_PROGRAM,
	SP_FOLD,
	SP_GC_QUANTUM,
	SP_SEQUENTIAL,
	SP_RANDOM,
	SP_PROTECTED,
	SP_FLUSH,
	SP_FLUSH_SLOW,
	SP_SLOW_SHARE,
	SP_C_READ_SEQUENTIAL,
	SP_LARGE,
	SP_NR,
};

extern const struct hw_param ssd_params[SP_NR];

#define SSD_NONE       U32_MAX
#define SSD_NO_PAGE    U64_MAX
#define SSD_NO_SHIFT   U32_MAX
/* Pages of reads that are on their way at once, of all commands and of one. */
#define SSD_READS      4096u
#define SSD_READS_EACH 256u
/* What goes on where one of so many ended, reads or writes, is sequential. */
#define SSD_STREAMS    16u
/* A command's own cost is that of so many sectors: write.*_extra hold for requests of 4 KiB. */
#define SSD_SMALL      8u

enum ssd_event_kind {
	SSD_READ,   /* a page is in the die's register */
	SSD_OUT,    /* a page has passed the channel */
	SSD_SENT,   /* … and the link, where that is half duplex */
	SSD_IN,	    /* a piece of a write has passed the link */
	SSD_LOADED, /* a page to be programmed is in the die's register */
	SSD_ENDED,  /* a program or a piece of garbage collection may have ended */
};

struct ssd_event {
	u64 at;
	u32 command; /* of SSD_OUT: the page that was read */
	u16 die;
	u16 kind_sectors; /* kind, and sectors less one below it */
};

#define SSD_KIND_SHIFT 13u

struct ssd_queue {
	u32 head, tail;
};

struct ssd_command {
	struct hw_io *io;
	u32 next;
	u32 left;	 /* sectors that are not at their end yet */
	u32 begun, out;	 /* reads: sectors asked of dies; pages on their way */
	u32 die, within; /* reads: of the next page; sectors before the first in it */
	u64 page;
	u64 until;	 /* writes and flushes that wait for programs: for those before this one */
	u32 waits;	 /* programs since the waiter before that have not ended */
	bool sequential; /* reads */
};

/* Where the latest ended. */
struct ssd_streams {
	u64 end[SSD_STREAMS];
	u32 oldest;
};

struct ssd_channel {
	struct ssd_queue reads; /* that wait for it */
	struct ssd_queue idle;	/* dies whose registers are empty */
	u32 next;
	u32 load;   /* the die whose register is to be filled */
	bool loads; /* there is one */
	bool load_waits, loaded_last, busy;
};

struct ssd_read {
	u32 command, next, work, sectors, die;
};

struct ssd_die {
	struct ssd_queue reads;
	u32 reading;	/* SSD_NONE: none is under way */
	u32 next;	/* of those with empty registers on its channel */
	u64 busy_until; /* while it works: the end, without reads to come */
	u64 rest;	/* of a program or a step of collecting: what is left, or begins */
	u64 budget;	/* for which reads may still hold it up */
	u64 pauses;	/* that suspending it may still cost */
	u64 collects;	/* garbage: time left */
	u64 number;	/* of the page that it programs */
	u64 next_number, next_work; /* of the page that is in its register, or on the way there */
	u32 channel;
	bool works, loaded, foreseen; /* foreseen: there is an event SSD_ENDED */
};

struct ssd_submissions {
	struct ssd_queue commands;
	u32 next;
};

struct ssd {
	struct hw_drive drive;
	struct list_head done;
	struct ssd_event *event; /* a heap */
	u32 nr_events, nr_reads;
	bool hole;	       /* the first event is happening, and no other has taken its place */
	struct ssd_read *read; /* pages of reads that wait for their dies, or are being read */
	u32 read_unused;

	struct ssd_command *command;
	u32 unused, nr_out;

	/* host */
	struct ssd_submissions *submissions;
	struct ssd_queue waiting; /* submission queues with commands, in turn */
	u32 nr_submissions, nr_fetch, nr_fetched;
	u32 burst, in_burst;
	struct ssd_queue controller[2]; /* reads, others */
	u32 controlled, in_a_row;
	u64 controlled_at; /* when the controller has done its part; HW_NEVER: it is idle */
	u32 overhead[2], link[2], control[2]; /* by direction: read, write */
	u32 least_overhead;
	u32 control_sequential;
	struct ssd_streams streams[2];
	u64 link_free;
	bool half_duplex, link_busy, link_wrote;
	u32 *sent_command, *sent_sectors; /* half duplex: pages that wait for the link, a ring */
	u32 sent_from, nr_sent;

	/* flash */
	u32 channels, dies, page,
		page_shift; /* page_shift: SSD_NO_SHIFT unless a page is a power of two */
	u32 page_read[3], read_more, transfer, suspend;
	u64 page_program, slc_program, fold;
	u64 longest_read;
	bool suspends, same_reads;
	struct ssd_channel *channel;
	struct ssd_die *die;
	struct ssd_queue ready; /* channels that could load a die */
	u64 collect_ns;		/* work for one page that garbage collection wins */
	u64 quantum, step, debt;
	u64 pool, pool_size, slc, slc_size, gc_idle;
	u64 busy_since, idle_since, last_program;
	struct ssd_queue starved; /* reads that wait until fewer pages are on their way */

	/* buffer */
	struct ssd_queue writes;
	u32 nr_buffer, places, gathered, piece;
	u64 filled, started; /* pages: full so far, and sent to dies */
	u64 *extra;	     /* by place: more work for the page, in millionths of a sector's */
	u64 extra_now, more[2], more_large;
	struct ssd_queue flushes;
	u64 nr_flushes, flush_ns[2], slow_share;
	bool is_protected, closes; /* closes: the page at the next piece, full or not */
};

static inline u16 ssd_pack(enum ssd_event_kind kind, u32 sectors)
{
	return (u16)((u32)kind << SSD_KIND_SHIFT | (sectors - 1));
}

static inline bool ssd_empty(const struct ssd_queue *q)
{
	return q->head == SSD_NONE;
}

/* Element @i of @array, whose elements have a `next`, goes to the end of a queue of such. */
#define ssd_link(queue, array, i)                    \
	do {                                         \
		struct ssd_queue *q_ = (queue);      \
		u32 i_ = (i);                        \
                                                     \
		(array)[i_].next = SSD_NONE;         \
		if (ssd_empty(q_))                   \
			q_->head = i_;               \
		else                                 \
			(array)[q_->tail].next = i_; \
		q_->tail = i_;                       \
	} while (0)

static inline void ssd_append(struct ssd *s, struct ssd_queue *q, u32 c)
{
	ssd_link(q, s->command, c);
}

static inline u32 ssd_take(struct ssd *s, struct ssd_queue *q)
{
	u32 c = q->head;

	q->head = s->command[c].next;
	return c;
}

/* What looks like chance: a hash, of 32 bits. */
static inline u32 ssd_scramble(u64 x)
{
	x *= 0x9e3779b97f4a7c15ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return (u32)(x >> 32);
}

/* events.c */
void ssd_push(struct ssd *s, u64 at, u32 command, u32 die, u16 kind_sectors);
struct ssd_event ssd_open(struct ssd *s);
void ssd_close(struct ssd *s);

/* flash.c */
void ssd_begin_read(struct ssd *s, u32 c, u64 now);
void ssd_has_read(struct ssd *s, u32 die, u64 now);
u32 ssd_is_out(struct ssd *s, u32 read, u64 now);
void ssd_program(struct ssd *s, u64 now);
void ssd_loaded(struct ssd *s, u32 die, u64 now);
u64 ssd_ended(struct ssd *s, u32 die, u64 now);
void ssd_all_empty(struct ssd *s);
void ssd_rested(struct ssd *s, u64 now);

/* host.c */
bool ssd_goes_on(struct ssd_streams *s, const struct hw_io *io);
void ssd_complete(struct ssd *s, u32 c, u64 at);
void ssd_delivered(struct ssd *s, u32 c, u32 sectors, u64 at);
void ssd_send(struct ssd *s, u32 c, u32 sectors, u64 now);
void ssd_use_link(struct ssd *s, u64 now);
void ssd_submitted(struct ssd *s, u32 c);
u32 ssd_fetch(struct ssd *s);
void ssd_control(struct ssd *s, u64 now);

/* buffer.c */
void ssd_accept(struct ssd *s, u64 now);
void ssd_arrived(struct ssd *s, u32 sectors, u64 now);
void ssd_flush(struct ssd *s, u32 c, u64 now);
void ssd_programmed(struct ssd *s, u64 number, u64 now);

#endif
