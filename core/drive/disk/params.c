// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The parameters of `disk`: one row makes the TOML key, its check, `headwaiter drives NAME` and
 * docs/drives.md.
 */
#include "core/drive/disk/internal.h"

#define MS(k, d, lo, hi, h)	HW_NUMBER(k, 1000000, "ms", d, lo, hi, h)
#define OVERHEAD(k, h)		MS(k, 0, 0, 1000000000, h)
#define NUM(k, u, d, lo, hi, h) HW_NUMBER(k, 1, u, d, lo, hi, h)
#define PART(k, d, h)		HW_NUMBER(k, 1000000, "", d, 0, 1000000, h)
#define FLAG(k, d, h) \
	{ .key = k, .type = HW_PARAM_BOOL, .scale = 1, .unit = "", .def = d, .max = 1, .help = h }
#define CHOICE(k, d, c, h)       \
	{ .key = k,              \
	  .type = HW_PARAM_ENUM, \
	  .scale = 1,            \
	  .unit = "",            \
	  .def = d,              \
	  .choices = c,          \
	  .help = h }
#define LIST(k, c, lo, hi, h)                \
	{ .key = k,                          \
	  .type = HW_PARAM_LIST,             \
	  .scale = 1,                        \
	  .unit = "",                        \
	  .def = lo ? HW_PARAM_REQUIRED : 0, \
	  .min = lo,                         \
	  .max = hi,                         \
	  .columns = c,                      \
	  .nr_columns = ARRAY_SIZE(c),       \
	  .help = h }

#define MAX_CYLINDERS 4000000
#define MAX_PLACE     (1ll << 40)

static const char *const mappings[] = { "cylinder", "serpentine",      "serpentine-absolute",
					"band",	    "band-serpentine", NULL };
static const char *const sparings[] = { "none",
					"zone-tracks",
					"cylinder",
					"track",
					"cylinder-push",
					"cylinder-front",
					"cylinder-front-push",
					"disk",
					"range",
					"zone",
					"zone-push",
					NULL };
static const char *const aheads[] = { "none", "track", "cylinder", "free", "whole-track", NULL };
static const char *const overs[] = { "drop", "keep", "overwrite", NULL };
static const char *const write_modes[] = { "through", "immediate", "back", NULL };
static const char *const policies[] = { "fifo", "sptf", NULL };

static const struct hw_param zone_columns[ZC_NR] = {
	NUM("first_cylinder", "cylinders", HW_PARAM_REQUIRED, 0, MAX_CYLINDERS, "first cylinder"),
	NUM("last_cylinder", "cylinders", HW_PARAM_REQUIRED, 0, MAX_CYLINDERS, "last cylinder"),
	NUM("sectors_per_track", "sectors", HW_PARAM_REQUIRED, 1, 16384,
	    "physical sectors per track, including spares"),
	NUM("offset", "sectors", 0, 0, 16384, "angle of the zone's first sector"),
	NUM("reserved", "sectors", 0, 0, 1ll << 32, "usable sectors before the first LBN"),
	NUM("track_skew", "sectors", 0, 0, 16384, "angle added by a head switch"),
	NUM("cylinder_skew", "sectors", 0, 0, 16384, "angle added by a cylinder switch"),
	NUM("spares", "sectors", 0, 0, 1ll << 32,
	    "spares in a period of the sparing scheme; tracks for zone-tracks"),
};

static const struct hw_param slip_columns[] = {
	NUM("zone", "", HW_PARAM_REQUIRED, 0, 65535, "row in zones"),
	NUM("place", "sectors", HW_PARAM_REQUIRED, 0, MAX_PLACE,
	    "physical sector within the zone; track for zone-tracks"),
};

static const struct hw_param defect_columns[] = {
	NUM("zone", "", HW_PARAM_REQUIRED, 0, 65535, "row in zones"),
	NUM("place", "sectors", HW_PARAM_REQUIRED, 0, MAX_PLACE,
	    "bad physical sector within the zone"),
	NUM("replacement", "sectors", HW_PARAM_REQUIRED, 0, MAX_PLACE,
	    "physical sector that replaces it"),
};

static const struct hw_param seek_columns[] = {
	NUM("cylinders", "cylinders", HW_PARAM_REQUIRED, 1, MAX_CYLINDERS, "distance"),
	MS("ms", HW_PARAM_REQUIRED, 0, 1000000000, "time"),
};

const struct hw_param disk_params[DP_NR] = {
	[DP_SURFACES] =
		NUM("geometry.surfaces", "heads", HW_PARAM_REQUIRED, 1, 64, "data surfaces"),
	[DP_CYLINDERS] = NUM("geometry.cylinders", "cylinders", HW_PARAM_REQUIRED, 1, MAX_CYLINDERS,
			     "cylinders"),
	[DP_SECTORS] = NUM("geometry.sectors", "sectors", 0, 0, 1ll << 50,
			   "capacity; 0 = the capacity of the zones"),
	[DP_MAPPING] = CHOICE(
		"geometry.mapping", MAP_CYLINDER, mappings,
		"order of tracks: the heads of a cylinder (serpentine: every second one backwards), or a band of cylinders, head by head"),
	[DP_BAND] = NUM("geometry.band", "cylinders", 64, 1, 65536,
			"cylinders in a band, for the band mappings"),
	[DP_SPARING] = CHOICE(
		"geometry.sparing", SPARE_NONE, sparings,
		"location of spares; -push: slipped sectors push LBNs towards the end of the disk instead of into the spares"),
	[DP_SPARE_RANGE] = NUM("geometry.spare_range", "cylinders", 1, 1, MAX_CYLINDERS,
			       "cylinders that share spares, for sparing \"range\""),
	[DP_ZONES] = LIST("zones", zone_columns, 1, 65535, "zones, outermost first"),
	[DP_SLIPS] = LIST("zones.slips", slip_columns, 0, 1 << 24, "sectors that LBNs skip"),
	[DP_DEFECTS] =
		LIST("zones.defects", defect_columns, 0, 1 << 24, "bad sectors with a replacement"),

	[DP_RPM] = { .key = "mechanics.rpm",
		     .scale = 100,
		     .unit = "rpm",
		     .def = HW_PARAM_REQUIRED,
		     .min = 10000,
		     .max = 5000000,
		     .help = "rotation speed, to a hundredth" },
	[DP_HEAD_SWITCH] = MS("mechanics.head_switch", 0, 0, 1000000000,
			      "head switch time; overlaps with a seek"),
	[DP_WRITE_SETTLE] = MS("mechanics.write_settle", 0, -1000000000, 1000000000,
			       "added to a movement before a write; may be negative"),
	[DP_MIN_SEEK_DELAY] = MS("mechanics.min_write_move", 0, 0, 1000000000,
				 "minimum time to move before a write"),
	[DP_SWITCH_WRITTEN] = FLAG(
		"mechanics.switch_after_write", 1,
		"a read after a write takes at least a head switch, even on the same track: heads read beside the place where they write"),
	[DP_SEEK] = LIST("mechanics.seek", seek_columns, 1, 65000,
			 "seek curve; linear between points, extrapolated beyond"),
	[DP_SEEK_WRITE] = LIST("mechanics.seek_write", seek_columns, 0, 65000,
			       "seek curve of writes, if different"),

	[DP_O_COMMAND] = OVERHEAD("overhead.command", "before the drive processes a command"),
	[DP_O_READ_HIT_R] =
		OVERHEAD("overhead.read_hit_after_read", "read hit, before the first data"),
	[DP_O_READ_HIT_W] = OVERHEAD("overhead.read_hit_after_write",
				     "the same, when the last request was a write"),
	[DP_O_READ_MISS_R] =
		OVERHEAD("overhead.read_miss_after_read", "read miss, before the mechanism starts"),
	[DP_O_READ_MISS_W] = OVERHEAD("overhead.read_miss_after_write",
				      "the same, when the last request was a write"),
	[DP_O_WRITE_HIT_R] =
		OVERHEAD("overhead.write_hit_after_read", "write that is reported from the buffer"),
	[DP_O_WRITE_HIT_W] = OVERHEAD("overhead.write_hit_after_write",
				      "the same, when the last request was a write"),
	[DP_O_WRITE_MISS_R] = OVERHEAD("overhead.write_miss_after_read",
				       "write that is reported from the medium"),
	[DP_O_WRITE_MISS_W] = OVERHEAD("overhead.write_miss_after_write",
				       "the same, when the last request was a write"),
	[DP_O_READ_DONE] =
		OVERHEAD("overhead.read_completion", "after a read's data, before its status"),
	[DP_O_WRITE_DONE] = OVERHEAD("overhead.write_completion", "before a write's status"),
	[DP_O_PREPARE] = OVERHEAD("overhead.data_preparation", "before every data phase"),
	[DP_O_RESELECT] = OVERHEAD("overhead.reselect", "taking the bus again"),
	[DP_O_RESELECT_OTHER] =
		OVERHEAD("overhead.reselect_other", "taking it a second time for one write"),
	[DP_O_READ_DISC_R] =
		OVERHEAD("overhead.read_disconnect_after_read", "giving up the bus in a read"),
	[DP_O_READ_DISC_W] = OVERHEAD("overhead.read_disconnect_after_write",
				      "the same, when the last request was a write"),
	[DP_O_WRITE_DISC] = OVERHEAD("overhead.write_disconnect", "giving up the bus in a write"),
	[DP_XD_ENABLE] = FLAG(
		"extra_disconnect.enabled", 0,
		"gives up the bus once more in a write that does not continue the write just before it"),
	[DP_XD_COMMAND] = OVERHEAD("extra_disconnect.command", "command overhead of such a write"),
	[DP_XD_DISCONNECT] = OVERHEAD("extra_disconnect.disconnect", "its first disconnection"),
	[DP_XD_DELAY] = OVERHEAD("extra_disconnect.delay", "from then to its reselection"),
	[DP_XD_DISCONNECT2] =
		OVERHEAD("extra_disconnect.disconnect_again", "its second disconnection"),
	[DP_XD_SEEK] = OVERHEAD("extra_disconnect.seek_delta", "from its command to its movement"),

	[DP_BUS_READ] = OVERHEAD("bus.block_read", "bus time of a sector read"),
	[DP_BUS_WRITE] = OVERHEAD("bus.block_write", "bus time of a sector written"),
	[DP_BUS_HOLD_READ] =
		FLAG("bus.hold_read", 1, "keeps the bus when a read's buffer runs dry"),
	[DP_BUS_HOLD_WRITE] =
		FLAG("bus.hold_write", 1, "keeps the bus when a write's buffer is full"),
	[DP_BUS_NEVER_DISC] = FLAG("bus.never_disconnect", 0,
				   "keeps the bus from a read's command to its status"),

	[DP_C_ENABLE] = FLAG("cache.enabled", 1, "the buffer keeps its contents after a request"),
	[DP_C_SEGMENTS] = NUM("cache.segments", "segments", 1, 1, 255, "segments of the buffer"),
	[DP_C_SEGMENT] = NUM("cache.segment", "sectors", 128, 1, 1 << 24, "size of a segment"),
	[DP_C_SEPARATE] = FLAG("cache.separate_write_segment", 0,
			       "one segment serves all writes, and only writes"),
	[DP_C_WRITTEN] =
		FLAG("cache.read_hits_on_written", 1, "written data may be read from the buffer"),
	[DP_C_ALMOST] = FLAG("cache.almost_hits", 1,
			     "a read of the very next block in read-ahead counts as a hit"),
	[DP_C_PARTIAL] = FLAG("cache.partial_hits_at_once", 1,
			      "a partial hit's data is sent at once, however little"),
	[DP_C_CONCURRENT] = FLAG("cache.hits_while_busy", 1,
				 "hits are served while the medium works for another request"),
	[DP_C_READ_MARK] = PART(
		"cache.read_watermark", 0,
		"fraction of a read that must be in the buffer before the drive takes the bus again"),
	[DP_C_READ_MARK_REQ] =
		FLAG("cache.watermark_by_request", 1,
		     "the watermark is a fraction of the request, not of the segment"),
	[DP_C_WRITE_MARK] = PART(
		"cache.write_watermark", 0,
		"fraction of a segment to which dirty data must fall before the drive accepts more"),
	[DP_C_DIRECT] =
		FLAG("cache.direct", 1,
		     "a sector needs room in its segment before it begins, not when it ends"),

	[DP_RA_MODE] = CHOICE(
		"read_ahead.mode", AHEAD_FREE, aheads,
		"end of read-ahead: end of track, of cylinder, after read_ahead.sectors, or at the earliest with the next block's track"),
	[DP_RA_MAX] = NUM(
		"read_ahead.sectors", "sectors", 0, 0, 1 << 24,
		"length of read-ahead; 0 = as much as the segment holds, in mode whole-track to the end of the track"),
	[DP_RA_MIN] = NUM("read_ahead.least", "sectors", 0, 0, 1 << 24,
			  "minimum read-ahead before another request may use the mechanism"),
	[DP_RA_OVER] = CHOICE(
		"read_ahead.requested", 2, overs,
		"treatment of the blocks just requested; kept blocks end read-ahead when the segment is full"),
	[DP_RA_IDLE_HIT] = FLAG("read_ahead.on_idle_hit", 1,
				"a full hit continues read-ahead if the mechanism is idle"),
	[DP_RA_STOP] = FLAG("read_ahead.stop_in_sector", 1, "read-ahead can stop within a sector"),
	[DP_RA_ARRIVAL] = FLAG(
		"read_ahead.from_arrival", 0,
		"buffer the whole track from the head's arrival on, and wait for a block that is about to pass"),
	[DP_RA_SEQUENTIAL] = FLAG("read_ahead.sequential", 0,
				  "read ahead only of a read that continues the one before"),

	[DP_W_MODE] = CHOICE(
		"write.mode", WRITE_THROUGH, write_modes,
		"status from the medium; from the buffer, one write at a time; from a write-back cache"),
	[DP_W_BUFFERED] = FLAG(
		"write.buffered_first", 1,
		"a write reported from the medium begins when ten of its blocks (fifteen of 45 or more) are in the buffer"),
	[DP_W_ZERO_LATENCY] = FLAG("write.zero_latency", 0,
				   "a write may begin in the middle of its sectors on a track"),
	[DP_W_COMBINE] =
		FLAG("write.combine", 1, "a write that continues the current one joins it"),
	[DP_W_LIMIT] = NUM("write.limit", "sectors", 4096, 1, 1 << 28,
			   "maximum number of dirty sectors in a write-back cache"),
	[DP_W_EXTENTS] = NUM("write.extents", "extents", 128, 1, 65536,
			     "maximum number of separate dirty ranges in a write-back cache"),
	[DP_W_IDLE] = MS("write.idle", 50000000, 0, 3600000000000ll,
			 "idle time after which a write-back cache is emptied"),

	[DP_Q_DEPTH] = NUM("queue.depth", "requests", 1, 1, 1024,
			   "requests that the drive accepts at once"),
	[DP_Q_POLICY] = CHOICE("queue.policy", QUEUE_SPTF, policies,
			       "order of service: arrival, or shortest positioning time first"),
	[DP_Q_AGE] =
		PART("queue.age_weight", 0,
		     "fraction of its waiting time subtracted from a request's positioning time"),
	[DP_Q_MAX_WAIT] = MS("queue.max_wait", 2000000000, 1, 3600000000000ll,
			     "a request that has waited longer is next"),
	[DP_Q_PRESEEK] = NUM(
		"queue.preseek", "", 2, 0, 2,
		"the next request may move the arm after the last one's: 0 completion, 1 status, 2 media access"),
};

static int check_curve(const struct hw_profile *p, u32 param, struct hw_profile_error *err)
{
	u32 i, n;
	const s64 *pt = hw_profile_list(p, param, &n);

	for (i = 1; i < n; i++) {
		if (pt[2 * i] <= pt[2 * i - 2])
			return hw_profile_bad(err, disk_params[param].key, i, "cylinders",
					      "must increase");
	}
	if (n && !pt[2 * n - 1])
		return hw_profile_bad(err, disk_params[param].key, n - 1, "ms",
				      "must not be 0 at the longest distance");
	return 0;
}

static int check_places(const struct hw_profile *p, u32 param, struct hw_profile_error *err)
{
	u32 i, c, n, zones, cols = disk_params[param].nr_columns;
	const s64 *row = hw_profile_list(p, param, &n);
	const s64 *zone = hw_profile_list(p, DP_ZONES, &zones);

	for (i = 0; i < n; i++, row += cols) {
		const s64 *z = zone + row[0] * ZC_NR;
		u64 places;

		if (row[0] >= zones)
			return hw_profile_bad(err, disk_params[param].key, i, "zone",
					      "no such zone");
		places = (u64)(z[ZC_LAST] - z[ZC_FIRST] + 1) * (u64)p->value[DP_SURFACES];
		if (p->value[DP_SPARING] != SPARE_ZONE_TRACKS)
			places *= (u64)z[ZC_SPT];
		for (c = 1; c < cols; c++) {
			if ((u64)row[c] >= places)
				return hw_profile_bad(err, disk_params[param].key, i,
						      disk_params[param].columns[c].key,
						      "lies beyond the zone");
		}
	}
	return 0;
}

static int check_zones(const struct hw_profile *p, struct hw_profile_error *err)
{
	u32 i, n, slips, k;
	const s64 *z = hw_profile_list(p, DP_ZONES, &n),
		  *slip = hw_profile_list(p, DP_SLIPS, &slips);
	const char *key = disk_params[DP_ZONES].key;
	u64 sectors = 0, lbns;

	for (i = 0; i < n; i++, z += ZC_NR) {
		u64 mine = 0;

		if (z[ZC_LAST] < z[ZC_FIRST])
			return hw_profile_bad(err, key, i, "last_cylinder",
					      "lies before first_cylinder");
		if (z[ZC_LAST] >= p->value[DP_CYLINDERS])
			return hw_profile_bad(err, key, i, "last_cylinder",
					      "lies beyond geometry.cylinders");
		if (i && z[ZC_FIRST] <= z[ZC_LAST - ZC_NR])
			return hw_profile_bad(err, key, i, "first_cylinder",
					      "overlaps the zone before it");
		for (k = 0; k < slips; k++)
			mine += slip[2 * k] == (s64)i;
		lbns = disk_zone_lbns(p, z, mine);
		if (!lbns)
			return hw_profile_bad(err, key, i, NULL,
					      "reserved sectors and spares leave no room for data");
		sectors += lbns;
	}
	if ((u64)p->value[DP_SECTORS] > sectors)
		return hw_profile_bad(err, disk_params[DP_SECTORS].key, -1, NULL,
				      "is more than the zones hold");
	return 0;
}

int disk_check(const struct hw_profile *p, struct hw_profile_error *err)
{
	int ret = check_zones(p, err);

	if (!ret)
		ret = check_places(p, DP_SLIPS, err);
	if (!ret)
		ret = check_places(p, DP_DEFECTS, err);
	if (!ret)
		ret = check_curve(p, DP_SEEK, err);
	if (!ret)
		ret = check_curve(p, DP_SEEK_WRITE, err);
	if (!ret && p->value[DP_C_SEPARATE] && p->value[DP_C_SEGMENTS] < 2)
		ret = hw_profile_bad(err, "cache.separate_write_segment", -1, NULL,
				     "needs cache.segments of at least 2");
	return ret;
}
