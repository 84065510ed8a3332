/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk: a rotating drive, from the sector on the platter to the status on the bus.
 *
 * What it is: the drive of DiskSim's parameters (Bucy, Schindler, Schlosser, Ganger: The DiskSim
 * Simulation Environment 4.0) and of Ruemmler & Wilkes (An Introduction to Disk Drive Modeling,
 * 1994), extended by what later drives do: a command queue served by shortest positioning time, a
 * write-back cache that is destaged in the background, forced unit access.
 *
 * How it works: everything between two decisions of the drive is a closed form. A request walks
 * over *pieces*, runs of sectors that pass under one head without a gap; arrival at a piece and its
 * rotational delay are exact, and the bus is laid over it in max-plus form, so that cost goes with
 * tracks touched and not with sectors. Read-ahead and write-back are not simulated while nobody
 * looks: they are caught up with at the next call.
 *
 * Time is ns. The platter's phase is exact for ever: a revolution has `rev_units` units, a
 * nanosecond `ns_units` of them, both integers, so t * ns_units mod rev_units is the phase without
 * rounding.
 */
#ifndef HW_DRIVE_DISK_INTERNAL_H
#define HW_DRIVE_DISK_INTERNAL_H

#include "core/drive/profile.h"

/* Parameters, in the order of the table in params.c. */
enum disk_param {
	DP_SURFACES,
	DP_CYLINDERS,
	DP_SECTORS,
	DP_MAPPING,
	DP_BAND,
	DP_SPARING,
	DP_SPARE_RANGE,
	DP_ZONES,
	DP_SLIPS,
	DP_DEFECTS,
	DP_RPM,
	DP_HEAD_SWITCH,
	DP_WRITE_SETTLE,
	DP_MIN_SEEK_DELAY,
	DP_SWITCH_WRITTEN,
	DP_SEEK,
	DP_SEEK_WRITE,
	DP_O_COMMAND,
	DP_O_READ_HIT_R,
	DP_O_READ_HIT_W,
	DP_O_READ_MISS_R,
	DP_O_READ_MISS_W,
	DP_O_WRITE_HIT_R,
	DP_O_WRITE_HIT_W,
	DP_O_WRITE_MISS_R,
	DP_O_WRITE_MISS_W,
	DP_O_READ_DONE,
	DP_O_WRITE_DONE,
	DP_O_PREPARE,
	DP_O_RESELECT,
	DP_O_RESELECT_OTHER,
	DP_O_READ_DISC_R,
	DP_O_READ_DISC_W,
	DP_O_WRITE_DISC,
	DP_XD_ENABLE,
	DP_XD_COMMAND,
	DP_XD_DISCONNECT,
	DP_XD_DELAY,
	DP_XD_DISCONNECT2,
	DP_XD_SEEK,
	DP_BUS_READ,
	DP_BUS_WRITE,
	DP_BUS_HOLD_READ,
	DP_BUS_HOLD_WRITE,
	DP_BUS_NEVER_DISC,
	DP_C_ENABLE,
	DP_C_SEGMENTS,
	DP_C_SEGMENT,
	DP_C_SEPARATE,
	DP_C_WRITTEN,
	DP_C_ALMOST,
	DP_C_PARTIAL,
	DP_C_CONCURRENT,
	DP_C_READ_MARK,
	DP_C_READ_MARK_REQ,
	DP_C_WRITE_MARK,
	DP_C_DIRECT,
	DP_RA_MODE,
	DP_RA_MAX,
	DP_RA_MIN,
	DP_RA_OVER,
	DP_RA_IDLE_HIT,
	DP_RA_STOP,
	DP_RA_ARRIVAL,
	DP_RA_SEQUENTIAL,
	DP_W_MODE,
	DP_W_BUFFERED,
	DP_W_ZERO_LATENCY,
	DP_W_COMBINE,
	DP_W_LIMIT,
	DP_W_EXTENTS,
	DP_W_IDLE,
	DP_Q_DEPTH,
	DP_Q_POLICY,
	DP_Q_AGE,
	DP_Q_MAX_WAIT,
	DP_Q_PRESEEK,
	DP_NR
};

extern const struct hw_param disk_params[DP_NR];
int disk_check(const struct hw_profile *p, struct hw_profile_error *err);

enum disk_mapping {
	MAP_CYLINDER,
	MAP_SERPENTINE,
	MAP_SERPENTINE_ABSOLUTE,
	MAP_BAND,
	MAP_BAND_SERPENTINE
};
enum disk_sparing {
	SPARE_NONE,
	SPARE_ZONE_TRACKS,
	SPARE_CYLINDER,
	SPARE_TRACK,
	SPARE_CYLINDER_PUSH,
	SPARE_CYLINDER_FRONT,
	SPARE_CYLINDER_FRONT_PUSH,
	SPARE_DISK,
	SPARE_RANGE,
	SPARE_ZONE,
	SPARE_ZONE_PUSH
};
enum disk_ahead { AHEAD_NONE, AHEAD_TRACK, AHEAD_CYLINDER, AHEAD_FREE, AHEAD_WHOLE_TRACK };
enum disk_over { OVER_DROP, OVER_KEEP, OVER_OVERWRITE };
enum disk_write_mode { WRITE_THROUGH, WRITE_IMMEDIATE, WRITE_BACK };
enum disk_queue_policy { QUEUE_FIFO, QUEUE_SPTF };

/* Columns of the list of zones. */
enum {
	ZC_FIRST,
	ZC_LAST,
	ZC_SPT,
	ZC_OFFSET,
	ZC_FRONT,
	ZC_TRACK_SKEW,
	ZC_CYL_SKEW,
	ZC_SPARES,
	ZC_NR
};

#define DISK_FP 20 /* fraction bits of a sector's time in ns */

struct disk_zone {
	u64 lbn, lbns; /* first LBN, how many */
	u64 front;     /* usable places in front of the first LBN */
	u64 places;    /* physical places (units of `unit` sectors) */
	u64 period,
		usable; /* places in a spare area's period, and those of them that LBNs may take */
	u64 sector_fp;	/* ns of a sector, with DISK_FP fraction bits, rounded up */
	u32 lead;	/* spare places at the front of a period */
	u32 unit;	/* sectors in a place: 1, or a track's where whole tracks are slipped */
	u32 cyl, cyls, spt;
	u32 offset, track_skew, cyl_skew;
	u32 slip, slips;     /* in disk->slips */
	u32 defect, defects; /* in disk->defects */
	bool local;	     /* slips are absorbed by the spares of their own period */
	bool shifting;	     /* slips of earlier periods shift the angle */
};

/* Where an LBN lies. */
struct disk_place {
	u32 zone, cyl, head;
	u32 sector; /* physical, on the track */
	u32 angle;  /* in sectors of the zone */
	u32 run;    /* LBNs from here on without a gap on this track */
	u64 track;  /* within the zone */
};

#define DISK_PARTS 512u /* many more than most drives have zones */

struct disk_layout {
	struct disk_zone *zones;
	u64 *slips;   /* sorted within a zone; places, or usable places where they push on */
	u64 *defects; /* pairs bad place, replacement; sorted by bad place */
	u64 sectors;
	u32 nr_zones, surfaces, band;
	u32 part_shift;
	u16 part[DISK_PARTS + 1]; /* by LBN >> part_shift: the zone in which the part begins */
	u64 known_lbn;		  /* a place that is asked for again before long; U64_MAX: none */
	struct disk_place known;
	u8 mapping;
};

/*
 * A seek curve: points in increasing distance, (0, 0) first; slope in ns a cylinder with 24
 * fraction bits.
 */
struct disk_curve {
	struct disk_point {
		u32 distance;
		s32 ns;
		s64 slope;
	} *points;
	u32 nr;
	u32 shift;
	u16 bucket[258]; /* by distance >> shift: last point at or before the bucket's start */
};

struct disk_mech {
	struct disk_curve read, write;
	u64 least_units[258]; /* by bucket of `read`: no distance from its start on takes less */
	u64 rev_units, ns_units, rev_ns, slack; /* slack in units: see disk_latency() */
	u64 ref_ns, ref_units;			/* a known phase, not long ago */
	s64 settle;
	u32 head_switch;
	u32 after_write; /* least time to move in front of a read after a write */
	u32 cyl, head;
	bool wrote; /* the last access of the medium was a write */
};

/* Sectors that pass under a head without a gap. */
struct disk_piece {
	u64 lbn;
	u64 depart_ns, arrive_ns, start_ns; /* the move to its track, first sector under the head */
	u64 sector_fp;
	u32 count;
	u32 zone, cyl, head, angle;
};

/* What the medium is doing: a read with its read-ahead, or a write. */
struct disk_run {
	bool active, write;
	bool aside; /* what is read belongs to the segment's second window */
	bool lap;   /* stays on the track first..track_end until all of it has passed */
	u8 seg;
	u8 forward; /* requests in succession that went forward in what is read ahead */
	struct disk_piece piece;
	u64 limit; /* exclusive */
	u64 first, track_end;
	u64 caught_ns; /* what is in the buffer is up to then; HW_NEVER: unknown */
	u64 since_ns;  /* when the last block was in the buffer that a request waited for */
	u64 end_ns;    /* of a write */
};

enum disk_seg_state { SEG_EMPTY, SEG_CLEAN, SEG_FILLING, SEG_WRITING };

struct disk_segment {
	u64 start, end;	       /* the window; of one being filled, as of the last catch-up */
	u64 from;	       /* blocks before it have been dropped */
	u64 aside, aside_end;  /* blocks of the same track that are there, too, but apart */
	struct list_head link; /* in disk->recent; not that of a separate write segment */
	u32 touched;	       /* disk->touches when it was used last */
	u8 state;
};

/* Dirty extents of a write-back cache, in a tree by LBN. */
struct disk_extent {
	struct rb_node node;
	u64 lbn, end;
	u64 target; /* as in struct disk_slot, of its first sector */
	u32 cyl, head;
	struct list_head link; /* unused */
};

struct disk_slot {
	struct hw_io *io; /* io->place: of disk->places */
	u64 target;	  /* angle of the first sector, in units */
	u32 cyl, head;
	u32 number; /* by arrival */
};

struct disk_overheads { /* ns; [0] after a read, [1] after a write */
	u32 command, read_hit[2], read_miss[2], write_hit[2], write_miss[2];
	u32 read_done, write_done, prepare, reselect, reselect_other, read_disc[2], write_disc;
	u32 xd_command, xd_disc, xd_delay, xd_disc2, xd_seek;
	bool extra_disc;
};

struct disk_cfg {
	u32 bus_read, bus_write; /* ns a block */
	u32 min_seek_delay;
	u32 segment, ahead_max, ahead_min;
	u32 read_mark, write_mark; /* millionths */
	u64 back_limit, back_idle, max_wait;
	u32 depth, age; /* millionths of waiting time taken off the positioning time */
	u8 segments, separate, ahead, over, write_mode, policy, preseek;
	bool cache, written_hits, almost, partial, concurrent, mark_by_request, direct;
	bool hold_read, hold_write, never_disc, idle_hit, stop_in_sector, combine, zero_latency,
		buffered, arrival, sequential;
};

/*
 * Where the windows of segments begin: how many in each stretch of the disk that is as long as a
 * segment or longer, by the lowest bits of its number. A read that hits nothing is so told from one
 * that might.
 */
#define DISK_STRETCHES 1024u

struct disk {
	struct hw_drive drive;
	struct disk_layout layout;
	struct disk_mech mech;
	struct disk_overheads o;
	struct disk_cfg cfg;
	struct disk_run run;
	struct disk_segment *segs;
	struct list_head recent; /* segments, the least recently used first */
	u32 nr_empty;		 /* of them */
	u32 touches;		 /* of any segment, so far */
	u32 stretch_shift;
	u8 begun[DISK_STRETCHES];
	u64 bus_free;
	u64 side_free; /* the same, for what is served beside the medium's work */
	u64 decide_ns; /* when the mechanism may be given to the next request */
	u64 busy_since;
	u32 nr_out;  /* submitted, not yet polled */
	u8 after;    /* the last completed request was a write */
	u8 last_seg; /* of the previous request */
	bool last_write;
	u64 last_end;
	struct list_head done;	   /* by done_ns */
	struct list_head queued;   /* what wants the mechanism, in order of arrival */
	struct disk_slot *queue;   /* the same by angle */
	struct disk_place *places; /* of what is queued */
	u32 *unplaced;		   /* those that are free: the first depth - nr_queued */
	u32 nr_queued, nr_waiting, arrivals;
	struct list_head waiting; /* writes that wait for room, flushes; in order of arrival */
	/* write-back */
	struct rb_root dirty;
	struct list_head unused;
	u64 dirty_sectors;
	u64 destage_ns;	 /* when destaging may begin if nothing else is to do */
	u64 destaged_ns; /* when the latest write from the cache is on the medium */
	u64 asked_ns;	 /* of the last request submitted */
	u64 head_lbn;	 /* where the last access ended */
	u64 press_ns;	 /* since when it presses; HW_NEVER if it does not */
	u32 nr_extents, max_extents;
	u64 turn_ends; /* of the write-back cache's turn; HW_NEVER while it has none */
};

/* layout.c */
u64 disk_zone_lbns(const struct hw_profile *p, const s64 *row, u64 slips);
void disk_layout_create(struct disk_layout *l, const struct hw_profile *p);
void disk_locate(const struct disk_layout *l, u64 lbn, struct disk_place *at);
/* LBNs first..end (exclusive) that lie on lbn's track, or cylinder, of which `at` is the place. */
void disk_track_limits(const struct disk_layout *l, u64 lbn, const struct disk_place *at,
		       bool cylinder, u64 *first, u64 *end);
u64 disk_first_from(const struct disk_layout *l, const struct disk_place *at, u32 sector);
bool disk_track_intact(const struct disk_layout *l, const struct disk_place *at);

/* mech.c */
void disk_mech_create(struct disk_mech *m, const struct hw_profile *p);
u32 disk_curve_points(const struct hw_profile *p, u32 param);
u64 disk_phase(struct disk_mech *m, u64 t);
s64 disk_latency(struct disk_mech *m, u64 t, u64 target);
u64 disk_seek(const struct disk_mech *m, u32 distance, bool write);
u64 disk_move(const struct disk_mech *m, u32 cyl, u32 head, bool write);
void disk_piece_go(struct disk *d, struct disk_piece *piece, u64 lbn, u64 t, bool write,
		   u64 min_move);
void disk_count_seek(struct disk *d, u32 from);

static inline u64 disk_target(const struct disk_layout *l, const struct disk_mech *m, u32 zone,
			      u32 angle)
{
	return div_u64(angle * m->rev_units, l->zones[zone].spt);
}

static inline u64 disk_sectors_ns(u64 sector_fp, u64 n)
{
	return (n * sector_fp + (1u << DISK_FP) - 1) >> DISK_FP;
}

/* When a block of the piece, or its end, begins to pass. */
static inline u64 disk_piece_at(const struct disk_piece *p, u64 lbn)
{
	return p->start_ns + disk_sectors_ns(p->sector_fp, lbn - p->lbn);
}

static inline u64 disk_piece_end(const struct disk_piece *p)
{
	return disk_piece_at(p, p->lbn + p->count);
}

/* Move and latency from now on, in units; the phase is that of now. */
static inline u64 disk_positioning(const struct disk_mech *m, u64 phase, u32 cyl, u32 head,
				   u64 target, bool write)
{
	u64 move = disk_move(m, cyl, head, write) * m->ns_units, slack = m->slack, arrival, ahead;

	arrival = phase + move;
	if (arrival >= 2 * m->rev_units)
		div64_u64_rem(arrival, m->rev_units, &arrival);
	else if (arrival >= m->rev_units)
		arrival -= m->rev_units;
	ahead = target + slack;
	if (ahead < arrival)
		ahead += m->rev_units;
	ahead -= arrival;
	return move + (ahead > slack ? ahead - slack : 0);
}

/* disk_positioning() is not less than this, which costs a look-up only. */
static inline u64 disk_least_move(const struct disk_mech *m, u32 cyl)
{
	u32 b = (cyl > m->cyl ? cyl - m->cyl : m->cyl - cyl) >> m->read.shift;

	return m->least_units[min(b, 257u)];
}

/* run.c */
void disk_run_progress(struct disk *d, u64 end);
u64 disk_run_piece_end(const struct disk *d);
bool disk_run_next(struct disk *d);
void disk_run_end(struct disk *d, bool written);
void disk_run_from_arrival(struct disk *d);
bool disk_run_reaches(struct disk *d, u64 lbn, u64 t);
void disk_run_follows(struct disk *d, u64 lbn);

/* cache.c */
enum disk_hit { HIT_NONE, HIT_PARTIAL, HIT_FULL };
void disk_catch_up(struct disk *d, u64 t);
u64 disk_stop_ahead(struct disk *d, u64 t);
enum disk_hit disk_read_lookup(const struct disk *d, u64 lbn, u64 end, u32 *seg, u64 *have);
void disk_segment_start(struct disk *d, u32 seg, u64 lbn);
void disk_window_from(struct disk *d, struct disk_segment *s, u64 start);
u32 disk_read_segment(struct disk *d);
u32 disk_write_segment(struct disk *d, u64 lbn, u64 end, bool *append);
void disk_window(struct disk *d, u32 seg, u64 end);
void disk_forget(struct disk *d, u64 lbn, u64 end, u32 except);
void disk_touch(struct disk *d, u32 seg);
void disk_segment_state(struct disk *d, u32 seg, enum disk_seg_state state);

/*
 * read.c, write.c: serve a request that arrived at io->submit_ns and has the drive from
 * `t` on
 */
void disk_read(struct disk *d, struct hw_io *io, u64 t);
void disk_write(struct disk *d, struct hw_io *io, u64 t);

/* back.c */
bool disk_back_accept(struct disk *d, u64 lbn, u64 end);
bool disk_back_holds(const struct disk *d, u64 lbn, u64 end);
void disk_back_drop(struct disk *d, u64 lbn, u64 end);
u64 disk_back_destage(struct disk *d, u64 t);

#endif
