/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maitre: what its files share. The policy is described in maitre.c.
 */
#ifndef HW_POLICY_MAITRE_INTERNAL_H
#define HW_POLICY_MAITRE_INTERNAL_H

#include "core/lib/sorted.h"

#define MT_USEC ((u64)HW_NSEC_PER_USEC)
#define MT_MSEC ((u64)HW_NSEC_PER_MSEC)
#define MT_SEC	((u64)HW_NSEC_PER_SEC)

enum { MT_REALTIME, MT_BEST_EFFORT, MT_IDLE_CLASS, MT_CLASSES };
enum mt_kind { MT_FLOW, MT_POOL, MT_ASYNC, MT_ESTATE, MT_GROUP, MT_BESIDE, MT_COMPANY };

#define MT_WEIGHT 100u /* of best-effort priority 4 */

#define MT_BINS 16u /* of think times; the last is for what is longer than all edges */

/* Think times: how often each was seen, older ones for less. */
struct mt_habit {
	u16 bin[MT_BINS];
	u32 samples; /* so far, up to a few */
};

/*
 * Whoever gets the disk: a task, the pool of those that gain nothing from turns, or write-back; or a
 * group of such.
 */
struct mt_entity {
	struct mt_group *in; /* the group in which it competes */
	struct rb_node node; /* among the busy, while it has requests queued and not the disk */
	bool listed;	     /* it is there */
	u8 kind;
	u8 class;
	u32 weight;
	u64 rank;	/* what it is sorted by: its v, rounded */
	u64 place;	/* and then by: where its next request was when it was put there */
	u64 v;		/* wall time in service, by weight, ns */
	u32 queued;	/* requests */
	u32 flying;	/* dispatched, not completed */
	u64 end;	/* of the request that was dispatched last */
	u64 emptied_ns; /* when the last of them completed, with none queued */
	u64 started_ns; /* of a flow: how long it has been served since it began, up to START_MOST */
	u64 aged_ns;	/* when its oldest went first */
	u32 shallow;	/* of a pool: flows in it that have few requests at once */
	bool thinking;	/* since emptied_ns */
	bool fresh;	/* it had slept, and since has neither waited again nor been alone */
	bool deep;	/* a flow that has many requests at once, in no order */
	bool commits;	/* its last request was a write */
	bool logs;	/* and that of little data, right after the one before */
	bool far;	/* its last was far from the one before */
	struct mt_habit habit;
	u16 strays;   /* share of its requests, lately, that were far from the one before */
	u64 enter_ns; /* what its first request after another's takes beyond its data; 0: not known */
	u64 near;     /* mean positioning from its own last end, ns */
	u64 after[2]; /* the same after a near one, and after a far one; 0: not known */
	struct hw_sorted sort;
	struct list_head fifo; /* by time of insertion */
};

/* The synchronous requests of a task. */
struct mt_flow {
	struct mt_entity e;
	struct mt_entity *home;	 /* where its requests queue: see home.c */
	struct hw_task *task;	 /* NULL: nobody's */
	struct list_head queue;	 /* its own requests */
	u32 requests;		 /* so far, up to a few */
	u32 queued, flying;	 /* its own, wherever they queue */
	bool slept;		 /* for long, before its last request came */
	bool counted;		 /* among the device's streams */
	u32 links;		 /* of the chain of heirs that it is in, up to a few */
	u64 placed_end;		 /* of the request inserted last */
	struct mt_entity *lends; /* its weight to a pool or a company; NULL: to nobody */
	u32 lent;		 /* so much of it */
	bool shallow;		 /* it is one of those there that have few requests at once */
	u32 most;		 /* that it has had at once since it last came */
	u32 joined;		 /* its company's number, when it did */
	u32 away;		 /* requests in a row that were not where its company is */
	u32 heap;   /* most that it has had queued since it last came; flash: asked at once */
	u32 row;    /* requests since it last came, while some were always there */
	bool heaps; /* it came with several the time before */
	/* See beside.c. */
	u64 low, high, moved; /* within which sectors it stays, and how many it has moved there */
	u32 strewn;  /* of its requests there, that did not begin where the one before ended */
	u32 quick;   /* of its last requests in a row */
	u32 misses;  /* times that one beside others was not */
	u64 owes_ns; /* for writes that the drive has put off in its turn */
	u64 owes_since_ns; /* when that turn began */
};

#define MT_COMPANIES 4u

/* Flows that are at one place: see company.c. */
struct mt_company {
	struct mt_entity e;
	u64 at;			    /* end of the request that came last */
	const struct mt_flow *last; /* whose that was; not to be followed */
	u32 row;		    /* and so were so many before it */
	u32 founded;		    /* so often: who joined an earlier one is not in it */
};

/*
 * Those that compete with each other: the root's, or a group's. A group competes with its siblings
 * and with the root's own as one of them.
 */
struct mt_group {
	struct hw_group group; /* first, as the contract has it; unused in the root */
	struct mt_entity e;    /* the group itself; unused in the root */

	struct rb_root busy;	   /* by class and v */
	struct mt_entity *serving; /* who has the disk; NULL: nobody of these */
	u64 turn_ns, turn_v;	   /* since when, and its v then */
	u64 floor[MT_CLASSES];	   /* least v of the busy, never falling */
	u64 even_v;		   /* what each would have had by now, served all at once */
	u64 credit;		   /* what newcomers may still be given, ns */
	u32 deep;		   /* flows that are apart from the pool */
	struct mt_entity *starter; /* a program that begins; NULL: none does */
	u64 began_ns;		   /* when the last one came that could have been */
	u64 crowd_until_ns;	   /* several have come together, and none of them is */

	struct mt_entity pool[MT_CLASSES], async[MT_CLASSES];
	struct mt_company company[MT_COMPANIES];
	struct mt_flow nobody;
	u32 flows;		  /* its own, with requests queued or in the device */
	u32 writes;		  /* of write-back, queued */
	struct list_head writing; /* among the groups that have some */
};

/* What a task leaves. */
struct mt_ghost {
	const struct mt_group *in; /* not to be followed */
	bool waits;		   /* for an heir */
	u8 class;
	u32 links;
	u64 died_ns, started_ns;
	u64 end, v, near;
	struct mt_habit habit;
};

#define MT_GHOSTS 8u

#define MT_SIZES 12u /* of requests, by power of two */

#define MT_DISTANCES 48u /* by power of two */

/* Positioning times, where the host has no table: see place.c. */
struct mt_places {
	u32 mean[MT_DISTANCES], envelope[MT_DISTANCES]; /* ns */
	u8 samples[MT_DISTANCES];			/* up to a few */
	u32 learnt;
};

/* Where nothing moves: see flash.c. */
struct mt_solid {
	struct list_head realtime, favoured, small, line, async, idle;
	u64 window_since, bytes; /* completed in this window */
	u64 peak;		 /* most that have been, lately */
	u64 cap;		 /* of synchronous bytes in the device */
	u32 sector_cost;	 /* fixed point */
	u32 window;		 /* of write-back beside others, bytes */
	u64 mean;		 /* v of those that were served lately */
	u64 flying_bytes, async_bytes;
	bool untold;   /* a read of a size whose base is not known has come */
	bool bound;    /* reads are as fast as the device, and writes beside them take of that */
	u32 apart;     /* times its own time is then between a request of write-back and the next */
	u64 async_due; /* not before, beside others */
	u64 idle_ns;   /* when the idle class was last served */
	u32 writes;    /* of write-back, dispatched so far */
	u32 base[MT_SIZES]; /* least latency of reads without writes beside them, ns */
	u32 least_ns[MT_SIZES], beside_ns[MT_SIZES]; /* of reads in the device; the latter a mean */
	struct mt_entity home;			     /* of all requests */
};

struct mt_task {
	struct hw_task task;
	struct mt_flow flow;
};

struct mt_request {
	struct hw_sorted_request s; /* `expires` is the time of insertion */
	struct mt_flow *flow;	    /* whose; NULL: write-back */
	struct mt_entity *home;	    /* with whom it queues, or was dispatched; NULL: first */
	struct list_head mine;	    /* among the flow's queued */
	bool onward;		    /* a little ahead of its flow's last one */
	bool alone;		    /* in the drive when it was dispatched */
	bool enters;		    /* the one before was of another flow, or of none */
	bool after_write;	    /* a read, dispatched right after a write that is waited for */
	u64 distance;		    /* that the head had to go to it */
	struct list_head fly;	    /* in the order of dispatch */
	u32 writes;		    /* flash: write-back dispatched before it */
};

struct mt_device;

/* What depends on whether a head moves. */
struct mt_operations {
	void (*insert)(struct mt_device *d, struct mt_request *r);
	struct hw_request *(*dispatch)(struct mt_device *d);
	void (*complete)(struct mt_device *d, struct mt_request *r);
	/* @r comes back, and goes first from now on. */
	void (*requeue)(struct mt_device *d, struct mt_request *r);
	/* @gone has become part of @keep. */
	void (*forget)(struct mt_device *d, struct mt_request *keep, struct mt_request *gone);
	void (*task_exit)(struct mt_device *d, struct mt_flow *f);
	/* @f has no requests, and its task has exited. */
	void (*gone)(struct mt_device *d, struct mt_flow *f);
	/* NULL: nothing is found, and nothing to be done. */
	struct hw_request *(*find_merge)(struct mt_device *d, const struct hw_bio *bio,
					 enum hw_merge *how);
	void (*merged)(struct mt_device *d, struct mt_request *r, enum hw_merge how);
	struct hw_request *(*former)(struct hw_queue *q, struct hw_request *rq);
	struct hw_request *(*latter)(struct hw_queue *q, struct hw_request *rq);
};

struct mt_device {
	struct hw_queue q;
	const struct mt_operations *ops;
	u64 now;
	u64 head; /* end of the request that was dispatched last */

	struct mt_group root;
	struct mt_entity *serving; /* who has the disk, no group; NULL: nobody */
	u64 since_ns;		   /* up to where it has been charged */
	u64 idle_ns;		   /* since when it could have worked, and does not; 0: it does */
	struct mt_flow *wrote; /* whose write that is waited for was done last; NULL: it is gone */
	u64 wrote_ns;	       /* of the device's time, that it has paid ahead */
	u64 landed_ns;	       /* when a request completed last */
	bool wrote_last;       /* a write that is waited for was dispatched last */
	s64 late_ns;	       /* by so much longer a read takes after a write, in the mean */
	const struct mt_entity *last; /* whose request was dispatched last; not to be followed */
	struct list_head first;	      /* the host's wish, or returned */
	struct list_head flying;      /* of pools and beside, in order of dispatch */
	struct list_head writing;     /* groups with write-back */
	u32 flows;		      /* with requests queued or in the device */
	u32 streams;		      /* of those, that read or write in sequence */
	u32 writes;		      /* of write-back, queued */

	struct mt_entity
		beside; /* of requests that go beside those of who has the disk; in no tree */
	struct mt_entity estate; /* has the disk between a task's exit and its heir's request */
	struct mt_ghost ghost[MT_GHOSTS], *last_ghost;
	u32 ghosts; /* so far */
	/* The hold that was decided last: since when, from whom (not to be followed), until when. */
	u64 hold_since, hold_until;
	const struct mt_entity *hold_from;
	struct mt_entity *held; /* for whom the disk was held last; not to be followed */
	u8 because;		/* enum hw_reason: why the one before has lost the disk */

	/* of the drive */
	u64 longest_turn;
	u64 mean_ns;	/* S: positioning over a third of it */
	u64 async_owed; /* time that write-back has cost, or will, beyond its turns, ns */
	u64 sector_ns;	/* in sequence, fixed point (rate.c); 0: not known */
	u64 rate_ns, rate_sectors; /* of the window in which that is measured */
	u64 async_sectors;	   /* of write-back in the device */
	u64 async_mean;		   /* sectors of a request of write-back, lately */
	u64 committed_ns;	   /* when a write that is waited for last came; 0: none has */
	struct mt_flow *log;	   /* whose that was; NULL: nobody's, or it is gone */
	u64 log_since_ns;	   /* since when all of them were its */
	u64 commit_ns;		   /* since when a journal may be at its commit; 0: it is not */
	u16 journals;		   /* share of those times, lately, that ended with its write */
	u64 sync_ns;		   /* when somebody synchronous was last there, if nothing moves */

	struct mt_places places;
	struct mt_solid x;

	s64 granularity, window;
};

static inline u8 mt_class_of(u16 ioprio)
{
	switch (HW_IOPRIO_CLASS(ioprio)) {
	case HW_IOPRIO_RT:
		return MT_REALTIME;
	case HW_IOPRIO_IDLE:
		return MT_IDLE_CLASS;
	default:
		return MT_BEST_EFFORT;
	}
}

static inline u16 mt_prio_of(const struct hw_task *task, u16 ioprio)
{
	return ioprio || !task ? ioprio : task->ioprio;
}

/*
 * One more case of a @share of U16_MAX is known: it @counts, or does not. The last one weighs 1 in
 * 2^@shift.
 */
static inline void mt_share_seen(u16 *share, bool counts, u32 shift)
{
	*share -= *share >> shift;
	if (counts)
		*share += U16_MAX >> shift;
}

static inline bool mt_active(const struct mt_flow *f)
{
	return f->queued || f->flying;
}

static inline struct mt_task *mt_task(struct hw_task *task)
{
	return container_of(task, struct mt_task, task);
}

static inline struct mt_entity *mt_entity_of(struct rb_node *n)
{
	return n ? rb_entry(n, struct mt_entity, node) : NULL;
}

/* The first of those that wait in @g; it may be a group. */
static inline struct mt_entity *mt_least(const struct mt_group *g)
{
	return mt_entity_of(rb_first(&g->busy));
}

static inline struct mt_group *mt_group_of(struct mt_device *d, struct hw_group *group)
{
	return group ? container_of(group, struct mt_group, group) : &d->root;
}

/* shared.c */
void mt_put_first(struct mt_device *d, struct mt_request *r);
struct mt_request *mt_pop_first(struct mt_device *d);
void mt_join(struct mt_device *d, struct mt_flow *f, struct mt_group *g);
void mt_retire(struct mt_device *d, struct mt_flow *f);

/* disk.c */
extern const struct mt_operations mt_disk;

/* place.c */
void mt_position_derive(struct mt_device *d);
void mt_position_acquaint(struct hw_queue *q, const struct hw_rows *positions);
void mt_position_learn(struct mt_device *d, const struct mt_request *r, u64 ns);
/* Positioning time over @distance sectors. */
u64 mt_position(const struct mt_device *d, u64 distance);

static inline u64 mt_to(const struct mt_device *d, u64 sector)
{
	return mt_position(d, hw_apart(d->head, sector));
}

/* Does @sector lie so little ahead of @end that the drive may have read it in advance? */
bool mt_ahead(u64 end, u64 sector);
/* From @end on to @sector, right after: see place.c. */
u64 mt_onward(const struct mt_device *d, u64 end, u64 sector);

/*
 * How far its next request is to be expected. A run begins with a long way and goes on nearby, so
 * what follows a long way is learnt apart from what follows a short one.
 */
static inline u64 mt_near(const struct mt_entity *e)
{
	return e->kind == MT_FLOW && e->after[e->far] ? e->after[e->far] : e->near;
}

/* Is its next request to be expected where the last one was? */
static inline bool mt_goes_on(const struct mt_entity *e)
{
	return e->kind == MT_FLOW || e->kind == MT_COMPANY;
}

/* Does it have many requests, of which the next is a matter of place and age? */
static inline bool mt_scatters(const struct mt_entity *e)
{
	return e->kind == MT_POOL || e->deep;
}

#define MT_RANK_SHIFT	4  /* of the longest turn: those who differ by less go round */
#define MT_SEEKS_PART	4u /* of the mean positioning: who needs more seeks for each request */
#define MT_STREAM_SHIFT 4  /* of the mean positioning: who needs less reads in sequence */

/* Those whose v differ by less are even. */
static inline u64 mt_even_ns(const struct mt_device *d)
{
	return d->longest_turn >> MT_RANK_SHIFT;
}

static inline bool mt_streams(const struct mt_device *d, const struct mt_entity *e)
{
	return e->kind == MT_FLOW && e->near <= d->mean_ns >> MT_STREAM_SHIFT;
}

/* Has it been near of late? One seek, as at the end of a file, does not change that. */
static inline bool mt_sequential(const struct mt_device *d, const struct mt_entity *e)
{
	return mt_near(e) * MT_SEEKS_PART <= d->mean_ns;
}

/* Does it go far now and then, and from there on nearby, as who reads one file after another? */
static inline bool mt_reads_runs(const struct mt_device *d, const struct mt_entity *e)
{
	return e->strays && e->after[true] * MT_SEEKS_PART <= d->mean_ns;
}

#define MT_NEW_REQUESTS 8u

/* A flow of which too little has been seen. */
static inline bool mt_is_new(const struct mt_entity *e)
{
	return e->kind == MT_FLOW &&
	       container_of(e, const struct mt_flow, e)->requests <= MT_NEW_REQUESTS;
}

/* flow.c */
void mt_entity_init(struct mt_entity *e, struct mt_group *in, enum mt_kind kind, u8 class,
		    u32 weight);
void mt_flow_init(struct mt_flow *f, struct mt_group *in, struct hw_task *task);
void mt_group_setup(struct mt_group *g, struct mt_group *parent);
void mt_charge(struct mt_device *d);
void mt_list(struct mt_device *d, struct mt_entity *e);
void mt_unlist(struct mt_device *d, struct mt_entity *e);
struct mt_entity *mt_first(const struct mt_device *d);
struct mt_entity *mt_other(const struct mt_device *d);
void mt_serve(struct mt_device *d, struct mt_entity *e);
struct mt_entity *mt_winner(struct mt_device *d);
bool mt_behind(const struct mt_entity *e);
bool mt_drains(const struct mt_device *d, const struct mt_entity *e);
u64 mt_turn(const struct mt_device *d);
void mt_enqueue(struct mt_device *d, struct mt_entity *home, struct mt_request *r);
void mt_withdraw(struct mt_device *d, struct mt_request *r);
void mt_dequeue(struct mt_device *d, struct mt_request *r);
struct hw_sorted_request *mt_next(const struct mt_device *d, const struct mt_entity *e);

struct mt_entity *mt_above(const struct mt_entity *e);
u32 mt_times(const struct mt_device *d, const struct mt_entity *e);
u32 mt_weight(const struct mt_device *d, const struct mt_entity *e);
u64 mt_virtual_ns(const struct mt_device *d, const struct mt_entity *e, u64 ns);
void mt_raise_floor(struct mt_group *g);

/* newcomer.c */
#define MT_START_MOST (2500 * MT_MSEC) /* of service that a program takes to begin */
#define MT_SLEPT_NS   (100 * MT_MSEC)  /* who has had no request for so long is not there */

u64 mt_earliest(const struct mt_device *d, const struct mt_entity *e);
u64 mt_last_place(const struct mt_entity *e);
bool mt_is_newcomer(const struct mt_device *d, const struct mt_entity *e);
bool mt_starts(const struct mt_device *d, const struct mt_entity *e);
void mt_take_place(struct mt_device *d, struct mt_entity *e, bool async);

/* commit.c */
void mt_idles(struct mt_device *d);
void mt_wrote(struct mt_device *d, const struct mt_request *r);
void mt_read_late(struct mt_device *d, const struct mt_request *r);
void mt_asks(struct mt_device *d);
void mt_issued(struct mt_device *d, const struct mt_request *r);

/* logs.c */
void mt_log_wrote(struct mt_device *d, struct mt_flow *f);
void mt_share_on(const struct mt_device *d, const struct mt_entity *c, u64 ns, u32 async_weight);
struct mt_entity *mt_commits_next(const struct mt_device *d, const struct mt_group *g);
struct mt_entity *mt_cuts_in(const struct mt_device *d, const struct mt_group *g);

/* beside.c */
u64 mt_span_ns(const struct mt_device *d, const struct mt_flow *f);
void mt_span_seen(struct mt_flow *f, const struct hw_request *rq);
bool mt_beside(const struct mt_device *d, const struct mt_flow *f);
struct mt_request *mt_beside_next(const struct mt_device *d);
bool mt_beside_may(const struct mt_device *d);
void mt_beside_learn(const struct mt_device *d, const struct mt_request *r);

/* company.c */
struct mt_entity *mt_company_of(struct mt_device *d, struct mt_flow *f);
void mt_company_seen(struct mt_flow *f);
void mt_company_learn(const struct mt_device *d, const struct mt_request *r);
bool mt_meets(const struct mt_device *d, const struct mt_flow *f);

/* habit.c */
void mt_learn(struct mt_habit *h, u64 think_ns);
u64 mt_worth_waiting(const struct mt_habit *h, u64 elapsed, u64 near, u64 far);
bool mt_at_once(const struct mt_habit *h);
bool mt_runs_on(const struct mt_entity *e);

/* home.c */
#define MT_DEEP	  4u  /* requests at once: many */
#define MT_STEADY 64u /* requests while some were always there: no burst of an fsync */

void mt_lend(struct mt_flow *f, bool active);
void mt_move(struct mt_device *d, struct mt_flow *f, struct mt_entity *home);

/* hold.c */
void mt_average(u64 *mean, u64 sample, bool first);
void mt_entered(const struct mt_device *d, struct mt_entity *e, u64 ns);
void mt_place_seen(const struct mt_device *d, struct mt_entity *e, u64 near, bool onward,
		   bool first);
u64 mt_hold_until(const struct mt_device *d, const struct mt_entity *c, const struct mt_entity *e);
void mt_apart(struct mt_flow *f, bool apart);
void mt_settle(struct mt_device *d, struct mt_flow *f);

/* flash.c */
extern const struct mt_operations mt_flash;
void mt_flash_init(struct mt_device *d);

/* heirs.c */
void mt_bury(struct mt_device *d, struct mt_flow *f);
void mt_inherit(struct mt_device *d, struct mt_flow *f, u64 sector);

/* pool.c */
struct hw_sorted_request *mt_upwards(const struct mt_device *d, const struct mt_entity *e);
struct hw_sorted_request *mt_pool_next(const struct mt_device *d, const struct mt_entity *pool);
bool mt_stuck(const struct mt_device *d, const struct mt_entity *e);

/* rate.c */
u64 mt_stream_ns(const struct mt_device *d, u64 sectors);
bool mt_was_quick(const struct mt_device *d, const struct mt_request *r, u32 others);
void mt_rate_time(struct mt_device *d, u64 ns);
bool mt_tells_rate(const struct mt_device *d, const struct mt_entity *e);

/* writeback.c */
void mt_sync_asked(struct mt_device *d, const struct hw_request *rq);
void mt_sync_wrote(struct mt_device *d, const struct mt_request *r);
bool mt_async_may(const struct mt_device *d, const struct mt_entity *async);
bool mt_commits(const struct mt_device *d);
bool mt_awaited(const struct mt_device *d, const struct mt_entity *async);
u32 mt_limit_depth(struct hw_queue *q, const struct hw_bio *bio);

static inline struct mt_device *mt_device(const struct hw_queue *q)
{
	return container_of(q, struct mt_device, q);
}

static inline struct mt_request *mt_request(struct hw_sorted_request *s)
{
	return container_of(s, struct mt_request, s);
}

/* The device has nothing, but for what goes beside others. */
static inline bool mt_empty(const struct mt_device *d)
{
	return d->q.nr_in_flight == d->beside.flying;
}

/* @r is done. Had it the device to itself? */
static inline bool mt_was_alone(const struct mt_device *d, const struct mt_request *r)
{
	return r->alone && mt_empty(d);
}

static inline struct mt_group *mt_group(const struct mt_entity *e)
{
	return container_of(e, struct mt_group, e);
}

static inline struct mt_flow *mt_flow_of(struct mt_entity *e)
{
	return container_of(e, struct mt_flow, e);
}

#endif
