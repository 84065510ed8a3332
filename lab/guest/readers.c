// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes that together begin to read a file each, from beginning to end: readers CHUNK_BYTES
 * FILE...
 *
 * Before, each looks up its file's folder, 300 ms after the one before: to bfq, eight processes
 * that turn up within 180 ms of each other on an idle disk are the burst of one program's start,
 * and it does not favour them as it does others.
 *
 * Prints the bytes that all read together, the ns until the last reader's end, the ns of the
 * longest single read(), and the ns until each reader's end.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct reader {
	uint64_t bytes, end_ns, longest_ns;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void read_all(struct reader *r, int fd, char *buffer, size_t chunk)
{
	uint64_t before;
	ssize_t n;

	do {
		before = now_ns();
		n = read(fd, buffer, chunk);
		if (n < 0)
			exit(1);
		r->bytes += n;
		r->end_ns = now_ns();
		if (r->end_ns - before > r->longest_ns)
			r->longest_ns = r->end_ns - before;
	} while (n);
	exit(0);
}

/* A process that is there, says so on @ready, and reads once the other end of @go is closed. */
static void reader(struct reader *r, char *path, size_t chunk, int ready, int go)
{
	char *buffer = malloc(chunk), *name = strrchr(path, '/'), none = 0;
	int fd;

	if (!buffer || !name)
		exit(1);
	*name = '\0';
	if (access(path, R_OK) || write(ready, &none, 1) != 1 || read(go, &none, 1) < 0)
		exit(1);
	*name = '/';
	fd = open(path, O_RDONLY);
	if (fd < 0)
		exit(1);
	read_all(r, fd, buffer, chunk);
}

int main(int argc, char **argv)
{
	const struct timespec apart = { .tv_nsec = 300000000 };
	size_t chunk = argc > 2 ? strtoul(argv[1], NULL, 0) : 0;
	uint64_t start, end = 0, bytes = 0, longest = 0;
	int i, n = argc - 2, status, go[2], ready[2];
	struct reader *r;
	char none;

	if (!chunk)
		return 2;
	r = mmap(NULL, n * sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED || pipe(go) || pipe(ready))
		return 1;
	for (i = 0; i < n; i++) {
		if (!fork()) {
			close(go[1]);
			close(ready[0]);
			reader(&r[i], argv[i + 2], chunk, ready[1], go[0]);
		}
		if (read(ready[0], &none, 1) != 1)
			return 1;
		nanosleep(&apart, NULL);
	}
	start = now_ns();
	close(go[1]);
	while (wait(&status) > 0)
		if (status)
			return 1;
	for (i = 0; i < n; i++) {
		bytes += r[i].bytes;
		end = r[i].end_ns > end ? r[i].end_ns : end;
		longest = r[i].longest_ns > longest ? r[i].longest_ns : longest;
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64, bytes, end - start, longest);
	for (i = 0; i < n; i++)
		printf(" %" PRIu64, r[i].end_ns - start);
	printf("\n");
	return 0;
}
