// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A row per I/O, where that was asked for: of a trace its own rows, of generated load in order of
 * issue.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/internal.h"

void sim_rows_of_trace(struct hws *s, const struct hws_trace *trace)
{
	struct sim_rows *r = &s->rows;

	r->trace = trace;
	if (!s->opt.record)
		return;
	SIM_GROW(s, &r->room, trace->n, SIM_COLUMN(r->issue_ns), SIM_COLUMN(r->complete_ns));
	r->n = trace->n;
	memset(r->issue_ns, 0xff, r->n * sizeof(*r->issue_ns));
	memset(r->complete_ns, 0xff, r->n * sizeof(*r->complete_ns));
}

void sim_row_issue(struct hws *s, u64 row, u32 task, const struct hw_bio *what, u64 since_ns)
{
	struct sim_rows *r = &s->rows;

	if (!s->opt.record)
		return;
	if (!r->trace) {
		SIM_GROW(s, &r->room, row + 1, SIM_COLUMN(r->issue_ns), SIM_COLUMN(r->complete_ns),
			 SIM_COLUMN(r->sector), SIM_COLUMN(r->sectors), SIM_COLUMN(r->task),
			 SIM_COLUMN(r->op));
		r->sector[row] = what->sector;
		r->sectors[row] = what->sectors;
		r->task[row] = task;
		r->op[row] = what->op;
		r->complete_ns[row] = -1;
		r->n = row + 1;
	}
	r->issue_ns[row] = (int64_t)since_ns;
}

void sim_row_complete(struct hws *s, u64 row)
{
	if (s->opt.record)
		s->rows.complete_ns[row] = (int64_t)s->now;
}

void hws_rows(const struct hws *s, struct hws_rows *out)
{
	const struct sim_rows *r = s ? &s->rows : NULL;

	if (!out)
		return;
	*out = (struct hws_rows){ 0 };
	if (!r)
		return;
	*out = (struct hws_rows){ .n = r->n,
				  .issue_ns = r->issue_ns,
				  .complete_ns = r->complete_ns,
				  .sector = r->sector,
				  .sectors = r->sectors,
				  .task = r->task,
				  .op = r->op };
	if (r->trace) {
		out->sector = r->trace->sector;
		out->sectors = r->trace->sectors;
		out->task = r->trace->task;
		out->op = r->trace->op;
	}
}

void sim_rows_free(struct hws *s)
{
	struct sim_rows *r = &s->rows;

	free(r->issue_ns);
	free(r->complete_ns);
	free(r->sector);
	free(r->sectors);
	free(r->task);
	free(r->op);
}
