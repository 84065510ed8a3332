// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The parameters of flash drives. */
#include "core/drive/ssd/internal.h"

#define MS(k, d, h)		HW_NUMBER(k, 1000000, "ms", d, 0, 1000000000, h)
#define NUM(k, u, d, lo, hi, h) HW_NUMBER(k, 1, u, d, lo, hi, h)
#define YES(k, h)		{ .key = k, .type = HW_PARAM_BOOL, .scale = 1, .unit = "", .max = 1, .help = h }
#define SHARE(k, d, hi, h)	HW_NUMBER(k, 1000000, "", d, 0, hi, h)

const struct hw_param ssd_params[SP_NR] = {
	[SP_SECTORS] =
		NUM("geometry.sectors", "sectors", HW_PARAM_REQUIRED, 2048, 1ll << 50, "capacity"),
	[SP_CHANNELS] = NUM("geometry.channels", "channels", HW_PARAM_REQUIRED, 1, 256, "channels"),
	[SP_WAYS] = NUM("geometry.ways", "dies", HW_PARAM_REQUIRED, 1, 256,
			"dies (independent planes) per channel"),
	[SP_PAGE] = NUM("geometry.page", "sectors", 32, 1, 4096, "page"),
	[SP_BLOCK] = NUM("geometry.block", "pages", 256, 1, 1 << 20, "pages per erase block"),
	[SP_READ] = MS("timing.page_read", HW_PARAM_REQUIRED, "from the cells to the register"),
	[SP_PROGRAM] =
		MS("timing.page_program", HW_PARAM_REQUIRED, "from the register to the cells"),
	[SP_ERASE] = MS("timing.block_erase", HW_PARAM_REQUIRED, "erasing a block"),
	[SP_TRANSFER] = MS("timing.transfer", 0, "a sector between register and controller"),
	[SP_SUSPEND] = MS("timing.suspend", 0, "time for a read to suspend a program"),
	[SP_SUSPENDS] = YES("timing.suspends",
			    "reads suspend programs and erasures instead of waiting for them"),
	[SP_LINK_READ] = MS("link.sector_read", 0, "a sector from the drive to the host"),
	[SP_LINK_WRITE] = MS("link.sector_write", 0, "a sector from the host to the drive"),
	[SP_O_READ] = MS("overhead.read", 0, "command and completion of a read"),
	[SP_O_WRITE] = MS("overhead.write", 0, "command and completion of a write"),
	[SP_BUFFER] = NUM("write.buffer", "pages", 64, 1, 65536, "write buffer"),
	[SP_POOL] = NUM("write.pool", "pages", 65536, 1, 1ll << 40, "erased pages after idle time"),
	[SP_VALID] = SHARE("write.valid", 600000, 990000,
			   "fraction of a block that is still valid at garbage collection"),
	[SP_GC_IDLE] =
		MS("write.gc_idle", 100000000, "idle time before background garbage collection"),
	[SP_DEPTH] = NUM("queue.depth", "requests", 32, 1, 1024,
			 "requests that the drive accepts at once"),
	[SP_READ_MIDDLE] =
		MS("timing.page_read_middle", 0, "a page of the middle kind; 0 = as page_read"),
	[SP_READ_SLOW] =
		MS("timing.page_read_slow", 0, "a page of the slowest kind; 0 = as page_read"),
	[SP_READ_MORE] = MS("timing.read_more", 0, "more for each page of a read above 4 KiB"),
	[SP_HALF_DUPLEX] = YES("link.half_duplex", "the link carries one direction at a time"),
	[SP_C_READ] = MS("controller.read", 0, "the controller's work for a read, one at a time"),
	[SP_C_WRITE] =
		MS("controller.write", 0, "the controller's work for a write, one at a time"),
	[SP_SUBMISSIONS] = NUM("queue.submissions", "queues", 1, 1, 1024,
			       "submission queues, fetched from in turn"),
	[SP_FETCH] = NUM("queue.fetch", "commands", 0, 0, 65536,
			 "commands fetched at once; a write is one until the buffer has a place; "
			 "0 = all"),
	[SP_BURST] = NUM("queue.burst", "commands", 1, 1, 256,
			 "commands fetched from a submission queue in its turn"),
	[SP_SLC] = NUM("write.slc", "pages", 0, 0, 1ll << 40, "pages of fast cells when rested"),
	[SP_SLC_PROGRAM] =
		MS("write.slc_program", 0, "from the register to fast cells; 0 = as page_program"),
	[SP_FOLD] = MS("write.fold", 0, "a page from fast cells to others, in idle time"),
	[SP_GC_QUANTUM] = MS("write.gc_quantum", 0,
			     "garbage collection on one die at a stretch; 0 = a little with "
			     "every page"),
	[SP_SEQUENTIAL] = SHARE("write.sequential_extra", 0, 1000000000,
				"more work for a page that sequential writes of 4 KiB filled"),
	[SP_RANDOM] = SHARE("write.random_extra", 0, 1000000000,
			    "more work for a page that random writes of 4 KiB filled"),
	[SP_PROTECTED] = YES("flush.protected", "what is in the buffer survives a loss of power"),
	[SP_FLUSH] = MS(
		"flush.time", 0,
		"a flush, once full pages are programmed; 0 = what fills none is programmed, too"),
	[SP_FLUSH_SLOW] = MS("flush.time_slow", 0, "the same for a slow flush"),
	[SP_SLOW_SHARE] = SHARE("flush.slow_share", 0, 1000000, "share of flushes that are slow"),
	[SP_C_READ_SEQUENTIAL] =
		MS("controller.read_sequential", 0,
		   "its work for a read that goes on where one ended; 0 = as controller.read"),
	[SP_LARGE] = SHARE("write.large_extra", 0, 1000000000,
			   "more work for a page of a write above 4 KiB"),
};
