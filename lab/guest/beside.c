// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Readers and writers through the page cache that others run beside:
 *
 *   beside stream FILE...               the files one after another, again and again
 *   beside writer FILE MIB              that much of a file, from its beginning again and again
 *   beside dsync FILE MIB               the same with O_DSYNC
 *   beside lookups FILE                 4 KiB at random places of a file, one after the other
 *   beside sips INTERVAL_MS COUNT FILE...  COUNT files every INTERVAL_MS, each file once
 *   beside commits INTERVAL_MS COUNT FILE  as often, 4 KiB to the end of a file, and fdatasync
 *   beside start COUNT FILE...          maps each file and touches COUNT of its pages, here and there
 *
 * A stream reads 64 KiB at a time and has the page cache forget what it has read; a writer writes
 * as much. At SIGTERM they print their bytes and the ns that they ran for, and writers and lookups the
 * longest ns of a call. Sips and commits print how many there were, the mean and the longest ns of
 * one; a start prints how long it took.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

/* How often something was done, and how long it took. */
struct times {
	uint64_t count, sum_ns, longest_ns;
};

static void took(struct times *t, uint64_t ns)
{
	t->count++;
	t->sum_ns += ns;
	t->longest_ns = ns > t->longest_ns ? ns : t->longest_ns;
}

static void print_times(const struct times *t)
{
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", t->count, t->sum_ns / t->count,
	       t->longest_ns);
}

static void sleep_until(uint64_t ns)
{
	struct timespec until = { ns / 1000000000, ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

/* Reads a file to its end, or until it is time to end. */
static uint64_t read_file(const char *path)
{
	int fd = open_file(path, O_RDONLY);
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
	uint64_t begin, next = now_ns();
	struct times times = { 0 };
	int i, k;

	for (i = 0; i + at_once <= count; i += at_once) {
		begin = now_ns();
		for (k = 0; k < at_once; k++)
			read_file(files[i + k]);
		took(&times, now_ns() - begin);
		next += interval_ns;
		sleep_until(next);
	}
	print_times(&times);
}

static void write_chunk(int fd, size_t bytes)
{
	if (write(fd, buffer, bytes) == (ssize_t)bytes)
		return;
	perror("write");
	exit(1);
}

static void print_rate(uint64_t bytes, uint64_t start, const struct times *t)
{
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", bytes, now_ns() - start, t->longest_ns);
}

static void writer(const char *path, uint64_t size, int flags)
{
	int fd = open_file(path, O_WRONLY | O_CREAT | flags);
	uint64_t start = now_ns(), bytes = 0, begin;
	struct times times = { 0 };

	signal(SIGTERM, end);
	while (!told_to_end) {
		begin = now_ns();
		write_chunk(fd, CHUNK);
		took(&times, now_ns() - begin);
		bytes += CHUNK;
		if (bytes % size == 0)
			lseek(fd, 0, SEEK_SET);
	}
	print_rate(bytes, start, &times);
}

/* Places by Knuth's multiplicative generator, the same in every run. */
static void lookups(const char *path)
{
	int fd = open_file(path, O_RDONLY);
	uint64_t start = now_ns(), begin, seed = 1, bytes = 0;
	struct times times = { 0 };
	struct stat about;

	signal(SIGTERM, end);
	if (fstat(fd, &about) || about.st_size < 4096)
		exit(1);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	while (!told_to_end) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		begin = now_ns();
		if (pread(fd, buffer, 4096, (seed >> 33) % (about.st_size / 4096) * 4096) < 0) {
			perror(path);
			exit(1);
		}
		took(&times, now_ns() - begin);
		bytes += 4096;
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	print_rate(bytes, start, &times);
}

static void commits(uint64_t interval_ns, int count, const char *path)
{
	int fd = open_file(path, O_WRONLY | O_CREAT | O_APPEND);
	struct times times = { 0 };
	uint64_t begin, next = now_ns();

	while (count--) {
		begin = now_ns();
		write_chunk(fd, 4096);
		if (fdatasync(fd)) {
			perror(path);
			exit(1);
		}
		took(&times, now_ns() - begin);
		next += interval_ns;
		sleep_until(next);
	}
	print_times(&times);
}

/* As a program's start does with its libraries: pages at equal distances, in an order that jumps. */
static void touch(const char *path, int count)
{
	int fd = open_file(path, O_RDONLY), step = count / 3 | 1, i;
	const volatile char *map;
	struct stat about;

	while (count % step == 0 && step > 1)
		step += 2;
	if (fstat(fd, &about) || about.st_size < count)
		exit(1);
	map = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	for (i = 0; i < count; i++)
		(void)map[(off_t)((uint64_t)i * step % count) * (about.st_size / count)];
	close(fd);
}

static void start(int count, char **files, int nr)
{
	uint64_t begin = now_ns();
	int i;

	for (i = 0; i < nr; i++)
		touch(files[i], count);
	printf("%" PRIu64 "\n", now_ns() - begin);
}

int main(int argc, char **argv)
{
	int at_once = argc > 4 ? atoi(argv[3]) : 0;

	if (argc > 2 && !strcmp(argv[1], "stream")) {
		stream(argv + 2, argc - 2);
	} else if (at_once > 0 && argc - 4 >= at_once && !strcmp(argv[1], "sips")) {
		sips(strtoull(argv[2], NULL, 0) * 1000000, at_once, argv + 4, argc - 4);
	} else if (argc == 4 && !strcmp(argv[1], "writer") && atoi(argv[3]) > 0) {
		writer(argv[2], (uint64_t)atoi(argv[3]) << 20, 0);
	} else if (argc == 4 && !strcmp(argv[1], "dsync") && atoi(argv[3]) > 0) {
		writer(argv[2], (uint64_t)atoi(argv[3]) << 20, O_DSYNC);
	} else if (argc == 3 && !strcmp(argv[1], "lookups")) {
		lookups(argv[2]);
	} else if (argc == 5 && !strcmp(argv[1], "commits") && atoi(argv[3]) > 0) {
		commits(strtoull(argv[2], NULL, 0) * 1000000, atoi(argv[3]), argv[4]);
	} else if (argc > 3 && !strcmp(argv[1], "start") && atoi(argv[2]) > 0) {
		start(atoi(argv[2]), argv + 3, argc - 3);
	} else {
		fprintf(stderr, "beside stream FILE... | beside writer FILE MIB | "
				"beside sips INTERVAL_MS COUNT FILE... | "
				"beside commits INTERVAL_MS COUNT FILE | "
				"beside start COUNT FILE...\n");
		return 2;
	}
	return 0;
}
