/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of a queue, in memory of their own. */
#ifndef HW_SIM_TABLES_H
#define HW_SIM_TABLES_H

#include "core/drive.h"
#include "core/elevator.h"

/* As hws_set_table(), but for the call of tuned(): err is filled in but with -ENOENT and -ENOMEM. */
int sim_table_set(struct hw_queue *q, const char *table, const s64 *cells, u32 rows, u32 columns,
		  struct hw_table_error *err);
/* What policies may know of the drive, where no table says otherwise. 0 or -ENOMEM. */
int sim_describe_drive(struct hw_queue *q, const struct hw_drive *drive);
/* What the policy has found out of the drive by itself, where it has had that for long. */
void sim_acquaint(struct hw_queue *q, const struct hw_drive *drive);
void sim_tables_free(struct hw_queue *q);

#endif
