/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A job that is accepted: what a test changes of it is what it is about. */
#ifndef HW_TEST_PLAIN_JOB_H
#define HW_TEST_PLAIN_JOB_H

#include "sim/headwaiter.h"

static struct hws_job plain_job(const struct hws_file *file)
{
	return (struct hws_job){
		.wait_for = -1,
		.size = 65536,
		.loops = 1,
		.directions = 1,
		.random_percent = { 100, 100 },
		.min_bytes = { 4096, 4096 },
		.max_bytes = { 4096, 4096 },
		.align_bytes = { 4096, 4096 },
		.random_every = 1,
		.file_every = 1,
		.depth = 1,
		.think_blocks = 1,
		.nr_files = 1,
		.files = file,
	};
}

#endif
