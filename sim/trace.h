/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A trace that is replayed: its run (trace.c) and its set-up (trace_setup.c). */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "sim/internal.h"

#define NO_ROW U32_MAX

enum row_state { ROW_WAITING, ROW_DUE, ROW_ISSUED };

/* A flush that is under way, or free. */
struct row_flush {
	struct sim_flush_wait wait;
	u64 row, issue_ns;
	struct row_flush *next;
};

/* Rows of a task that are due while it waits in the kernel. */
struct line {
	u32 first, last;
	u64 due_ns;    /* when the row was due that went before them */
	bool released; /* the first is scheduled: its turn has come */
	bool listed;   /* among the tasks with lines, of which ... */
	u32 next;      /* ... this is the next */
};

/* What a row asks for. */
struct row_io {
	struct hw_bio bio;
	u64 fixed_ns;
	u32 task;
	u32 next_free; /* among those that are kept */
};

struct sim_trace {
	struct sim_source source;
	struct hws_trace given; /* or the piece that is there */
	/* Rows by number, NO_ROW ends; NULL where there are none. */
	u32 *first_child, *next_sibling; /* rows that follow a row */
	/* By task: the row that its next completion lets it submit, and behind it its siblings. */
	u32 *next_row;
	u32 *follower; /* the row that may not be issued before a row */
	u8 *state;     /* enum row_state, if some rows have followers */
	u32 *roots;    /* rows without parent, by time; NULL: all rows, as they stand */
	u64 nr_roots, next_root;
	u64 *remaining; /* by task: I/Os not completed */
	u64 *late_ns;	/* by task: behind the dates of rows that drift */
	u64 *free_ns;	/* by task: it has no processor time for another row before */
	u8 *has_slot;	/* by row: it is due when its task has time for it; NULL: all have */
	struct row_flush *flushes, *free_flushes;
	struct line *lines; /* by task; NULL: tags do not matter, or rows do not follow each other */
	u32 first_line;
	u32 *behind; /* the row that stands in line behind a row */
	u64 *due_ns; /* of rows in line */

	bool in_pieces, ended;
	u64 first;	     /* the number of the first row of the piece */
	int64_t last_ns;     /* of the piece before; -1: there was none */
	struct row_io *kept; /* rows before their cores, by the number that stands for them there */
	u64 nr_kept, room_kept;
	u32 free_kept;
};

extern const struct sim_source_ops sim_trace_ops;

#endif
