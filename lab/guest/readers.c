// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes that start together and each read a file from beginning to end: readers CHUNK_BYTES FILE...
 *
 * Prints the bytes that all read together, the ns until the last reader's end, the ns of the longest single read(), and the
 * ns until each reader's end.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

static void read_all(struct reader *r, const char *path, char *buffer, size_t chunk)
{
	int fd = open(path, O_RDONLY);
	uint64_t before;
	ssize_t n;

	if (fd < 0)
		exit(1);
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

int main(int argc, char **argv)
{
	size_t chunk = argc > 2 ? strtoul(argv[1], NULL, 0) : 0;
	uint64_t start, end = 0, bytes = 0, longest = 0;
	int i, n = argc - 2, status, go[2];
	struct reader *r;
	char *buffer;

	if (!chunk)
		return 2;
	r = mmap(NULL, n * sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	buffer = malloc(chunk);
	if (r == MAP_FAILED || !buffer || pipe(go))
		return 1;
	for (i = 0; i < n; i++) {
		if (fork())
			continue;
		close(go[1]);
		if (read(go[0], buffer, 1) < 0)		/* until the parent closes its end */
			exit(1);
		read_all(&r[i], argv[i + 2], buffer, chunk);
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
