// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Preloaded into fio: notes when each of its processes asks for its first I/O, as lines "PID
 * NANOSECONDS" (CLOCK_MONOTONIC) appended to the file named by FIRST_IO. Afterwards each call costs
 * a few instructions; tracing would cost each I/O a microsecond, and say nothing of buffered
 * writes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static ssize_t (*next_pread)(int, void *, size_t, off64_t);
static ssize_t (*next_pwrite)(int, const void *, size_t, off64_t);
static int (*next_submit)(void *, long, void **);
static int notes = -1, noted_by;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FIRST_IO");

	next_pread = dlsym(RTLD_NEXT, "pread64");
	next_pwrite = dlsym(RTLD_NEXT, "pwrite64");
	next_submit = dlsym(RTLD_NEXT, "io_submit");
	if (path)
		notes = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
}

/* fio's processes are forked, and know by their number that nothing is noted of them yet. */
static void note(void)
{
	struct timespec now;
	char line[64];
	int n;

	if (noted_by)
		return;
	noted_by = getpid();
	clock_gettime(CLOCK_MONOTONIC, &now);
	n = snprintf(line, sizeof(line), "%d %lld\n", noted_by,
		     now.tv_sec * 1000000000ll + now.tv_nsec);
	if (write(notes, line, (size_t)n) != n)
		abort();
}

ssize_t pread64(int fd, void *data, size_t bytes, off64_t at)
{
	note();
	return next_pread(fd, data, bytes, at);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at)
{
	note();
	return next_pwrite(fd, data, bytes, at);
}

int io_submit(void *context, long count, void **ios)
{
	note();
	return next_submit(context, count, ios);
}
