// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Readers through the page cache that others run beside:
 *
 *   beside stream FILE...               the files one after another, again and again
 *   beside sips INTERVAL_MS COUNT FILE...  COUNT files every INTERVAL_MS, each file once
 *
 * A stream reads 64 KiB at a time and has the page cache forget what it has read. At SIGTERM it
 * prints its bytes and the ns that it ran for. Sips print how often they read, the mean and the
 * longest ns of a time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (64 << 10)

static char buffer[CHUNK];
static volatile sig_atomic_t told_to_end;

static void end(int signal)
{
	(void)signal;
	told_to_end = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

/* Reads a file to its end, or until it is time to end. */
static uint64_t read_file(const char *path)
{
	int fd = open_file(path);
	uint64_t bytes = 0;
	ssize_t n = 1;

	while (n > 0 && !told_to_end) {
		n = read(fd, buffer, CHUNK);
		if (n < 0) {
			perror(path);
			exit(1);
		}
		bytes += n;
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	return bytes;
}

static void stream(char **files, int count)
{
	uint64_t start = now_ns(), bytes = 0;
	int i;

	signal(SIGTERM, end);
	for (i = 0; !told_to_end; i = (i + 1) % count)
		bytes += read_file(files[i]);
	printf("%" PRIu64 " %" PRIu64 "\n", bytes, now_ns() - start);
}

static void sips(uint64_t interval_ns, int at_once, char **files, int count)
{
	uint64_t sum = 0, longest = 0, begin, took, next = now_ns();
	struct timespec until;
	int i, k, times = 0;

	for (i = 0; i + at_once <= count; i += at_once, times++) {
		begin = now_ns();
		for (k = 0; k < at_once; k++)
			read_file(files[i + k]);
		took = now_ns() - begin;
		sum += took;
		longest = took > longest ? took : longest;
		next += interval_ns;
		until = (struct timespec){ next / 1000000000, next % 1000000000 };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	printf("%d %" PRIu64 " %" PRIu64 "\n", times, sum / times, longest);
}

int main(int argc, char **argv)
{
	int at_once = argc > 4 ? atoi(argv[3]) : 0;

	if (argc > 2 && !strcmp(argv[1], "stream")) {
		stream(argv + 2, argc - 2);
	} else if (at_once > 0 && argc - 4 >= at_once && !strcmp(argv[1], "sips")) {
		sips(strtoull(argv[2], NULL, 0) * 1000000, at_once, argv + 4, argc - 4);
	} else {
		fprintf(stderr, "beside stream FILE... | beside sips INTERVAL_MS COUNT FILE...\n");
		return 2;
	}
	return 0;
}
