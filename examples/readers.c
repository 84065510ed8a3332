// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * readers PROFILE POLICY...: libheadwaiter from C. Two programs each read a file, 64 KiB at a time,
 * and think for 0.2 ms in between; what becomes of them under each policy.
 *
 *     headwaiter drives export barracuda-80g -o disk.blob
 *     cc readers.c $(pkg-config --cflags --libs libheadwaiter) -o readers
 *     ./readers disk.blob noop as bfq
 *
 * It is C++ as well. docs/library.md explains the steps.
 */
#include <headwaiter.h>
#include <stdio.h>
#include <string.h>

enum { READERS = 2, READS = 400, SECTORS = 128, GAP = 40000000 };

static unsigned char profile[1 << 20];
static size_t profile_bytes;

static int read_profile(const char *path)
{
	FILE *f = fopen(path, "rb");

	if (!f) {
		perror(path);
		return -1;
	}
	profile_bytes = fread(profile, 1, sizeof(profile), f);
	fclose(f);
	return 0;
}

/* One reader after the other in the columns; each read follows the one before it. */
static int add_readers(struct hws *run)
{
	enum { N = READERS * READS };
	static int64_t time_ns[N], parent[N], delay_ns[N];
	static uint32_t task[N], sectors[N];
	static uint8_t op[N], flags[N];
	static uint64_t sector[N];
	struct hws_trace trace;
	int i;

	for (i = 0; i < N; i++) {
		task[i] = (uint32_t)(i / READS);
		parent[i] = i % READS ? i - 1 : -1;
		delay_ns[i] = 200000;
		op[i] = HWS_READ;
		flags[i] = HWS_SYNC;
		sector[i] = (uint64_t)task[i] * GAP + (uint64_t)(i % READS) * SECTORS;
		sectors[i] = SECTORS;
	}
	for (i = 0; i < READERS; i++)
		if (hws_add_task(run, (uint32_t)i, 0, 0, 1) < 0)
			return -1;
	memset(&trace, 0, sizeof(trace));
	trace.n = N;
	trace.time_ns = time_ns;
	trace.parent = parent;
	trace.delay_ns = delay_ns;
	trace.task = task;
	trace.op = op;
	trace.flags = flags;
	trace.sector = sector;
	trace.sectors = sectors;
	return hws_add_trace(run, &trace);
}

static int show(const char *policy)
{
	struct hws_options options;
	struct hws_totals totals;
	struct hws *run;
	int ret;

	memset(&options, 0, sizeof(options));
	options.policy = policy;
	options.merging = 1;
	run = hws_new(&options);
	if (!run) {
		fprintf(stderr, "readers: no policy '%s'\n", policy);
		return -1;
	}
	ret = hws_drive_profile(run, profile, profile_bytes);
	if (!ret)
		ret = add_readers(run);
	if (!ret)
		do
			ret = hws_run(run, 1 << 20);
		while (ret == HWS_MORE);
	if (ret < 0) {
		fprintf(stderr, "readers: %s\n", hws_error(run));
	} else {
		hws_totals(run, &totals);
		printf("%-12s %6.2f s %6llu seeks %6llu waits\n", policy,
		       (double)totals.now_ns / 1e9, (unsigned long long)totals.seeks,
		       (unsigned long long)(totals.a_success + totals.a_fail + totals.a_other));
	}
	hws_free(run);
	return ret;
}

int main(int argc, char **argv)
{
	int i;

	if (argc < 3) {
		fprintf(stderr, "usage: readers PROFILE POLICY...\n");
		return 2;
	}
	if (read_profile(argv[1]))
		return 2;
	for (i = 2; i < argc; i++)
		if (show(argv[i]))
			return 2;
	return 0;
}
