// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bench POLICY seq|random REQUESTS [PROFILE]: one run through libheadwaiter, and the processor time
 * it took. bench alone:N seq|random REQUESTS PROFILE: the drive alone, in a closed loop of N at once.
 *
 * 32 tasks, each with one request outstanding and no think time: sequential ones far apart, or
 * random 4 KiB reads. On the `constant` drive the time is the engine's and the policy's; with a
 * drive profile (a blob) it is the drive model's too. `was` has a configuration, of as many classes
 * as the paper's: without one it is `as`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/headwaiter.h"

enum { TASKS = 32 };

static uint64_t rng = 88172645463325252ull;

static uint64_t next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static void *column(uint64_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		perror("bench");
		exit(2);
	}
	return p;
}

static char blob[1 << 24];

static size_t read_profile(const char *path)
{
	FILE *f = fopen(path, "rb");
	size_t bytes;

	if (!f) {
		perror(path);
		exit(2);
	}
	bytes = fread(blob, 1, sizeof(blob), f);
	fclose(f);
	return bytes;
}

static void give_profile(struct hws *s, const char *path)
{
	if (hws_drive_profile(s, blob, read_profile(path))) {
		fprintf(stderr, "%s: %s\n", path, hws_error(s));
		exit(2);
	}
}

/*
 * The paper's 100 classes by five reads, in eight steps each, with intervals of 1 to 10 ms
 * that have to prove themselves.
 */
static void classify(struct hws *s)
{
	enum { ROWS = 200 };
	struct hws_table_error err;
	int64_t cells[ROWS * 3];
	char text[4096];
	uint32_t rows;
	size_t length = 0;
	int i, failed;

	length += (size_t)sprintf(text, "history 0 5\nclasses 0 100\nprove 0 1\n");
	for (i = 0; i < 8; i++)
		length += (size_t)sprintf(text + length, "spatial %d %d\n", i ? 8 << 2 * i : 0,
					  70 - 10 * i);
	for (i = 0; i < 8; i++)
		length += (size_t)sprintf(text + length, "temporal %d %d\n", 3000 * i, 30 - 4 * i);
	for (i = 1; i <= 100; i++)
		length +=
			(size_t)sprintf(text + length, "interval %d %d\n", i, 1000 * (1 + i % 10));
	failed = hws_table_parse("was", "config", text, length, cells, &rows, &err);
	if (failed || hws_set_table(s, "config", cells, rows, 3)) {
		fprintf(stderr, "bench: %s\n", failed ? err.text : hws_error(s));
		exit(2);
	}
}

/* Reads of 4 KiB, and nothing but the drive. */
static int alone(uint32_t at_once, int sequential, uint64_t n, const char *path)
{
	struct hws_replay_totals totals;
	struct hws_replay load = { .n = n, .totals = &totals };
	struct hws_drive_facts facts;
	uint64_t *sector = column(n, sizeof(*sector)), i, room;
	uint32_t *sectors = column(n, sizeof(*sectors));
	size_t bytes = read_profile(path);
	clock_t begin;
	int failed;

	if (hws_drive_facts(blob, bytes, &facts)) {
		fprintf(stderr, "bench: %s is not a profile\n", path);
		return 2;
	}
	room = facts.sectors / 8 - 1;
	for (i = 0; i < n; i++) {
		sectors[i] = 8;
		sector[i] = (sequential ? i : next_random()) % room * 8;
	}
	load.op = column(n, 1);
	load.sector = sector;
	load.sectors = sectors;
	load.service_ns = column(n, sizeof(*load.service_ns));
	begin = clock();
	failed = hws_drive_replay(blob, bytes, at_once, &load);
	printf("%.6f\n", (double)(clock() - begin) / CLOCKS_PER_SEC);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct hws_options options = { .policy = argc > 1 ? argv[1] : "", .merging = 1 };
	int sequential = argc > 2 && !strcmp(argv[2], "seq");
	uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	int64_t *time_ns, *parent, *delay_ns;
	struct hws_totals totals;
	struct hws_trace t;
	uint64_t *sector, i, span;
	uint32_t *task, *sectors;
	uint8_t *op, *flags;
	struct hws *s;
	clock_t begin;
	int more;

	if (!n) {
		fprintf(stderr, "usage: bench POLICY|alone:N seq|random REQUESTS [PROFILE]\n");
		return 2;
	}
	if (!strncmp(argv[1], "alone:", 6) && argc > 4)
		return alone((uint32_t)strtoul(argv[1] + 6, NULL, 10), sequential, n, argv[4]);
	s = hws_new(&options);
	if (!s) {
		fprintf(stderr, "bench: no policy '%s'\n", argv[1]);
		return 2;
	}
	if (!strcmp(argv[1], "was"))
		classify(s);
	if (argc > 4)
		give_profile(s, argv[4]);
	else
		hws_drive_constant(s, 100000, 1ull << 32);
	hws_totals(s, &totals);
	span = totals.drive_sectors / TASKS;
	time_ns = column(n, sizeof(*time_ns));
	parent = column(n, sizeof(*parent));
	delay_ns = column(n, sizeof(*delay_ns));
	sector = column(n, sizeof(*sector));
	task = column(n, sizeof(*task));
	sectors = column(n, sizeof(*sectors));
	op = column(n, 1);
	flags = column(n, 1);
	for (i = 0; i < TASKS; i++)
		hws_add_task(s, (uint32_t)i, 0, 0, 1);
	for (i = 0; i < n; i++) {
		task[i] = i % TASKS;
		parent[i] = i < TASKS ? -1 : (int64_t)(i - TASKS);
		sectors[i] = 8;
		sector[i] = sequential ? task[i] * span + i / TASKS * 8 % (span - 8) :
					 next_random() % (totals.drive_sectors - 8) / 8 * 8;
	}
	t = (struct hws_trace){ .n = n,
				.time_ns = time_ns,
				.parent = parent,
				.delay_ns = delay_ns,
				.task = task,
				.op = op,
				.flags = flags,
				.sector = sector,
				.sectors = sectors };
	if (hws_add_trace(s, &t)) {
		fprintf(stderr, "bench: %s\n", hws_error(s));
		return 2;
	}
	begin = clock();
	do
		more = hws_run(s, 1u << 20);
	while (more == 1);
	if (more < 0) {
		fprintf(stderr, "bench: %s\n", hws_error(s));
		return 1;
	}
	printf("%.6f\n", (double)(clock() - begin) / CLOCKS_PER_SEC);
	return 0;
}
