// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads of a disk past the page cache, far apart from each other, so that the drive's own cache
 * holds nothing else afterwards: scatter DISK OFFSET_MIB COUNT. Each is of 64 KiB, the next one 64
 * MiB further on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES  (64 << 10)
#define STRIDE (64ll << 20)

int main(int argc, char **argv)
{
	void *buffer;
	off_t at;
	int fd, n;

	if (argc != 4 || posix_memalign(&buffer, 4096, BYTES))
		return 2;
	fd = open(argv[1], O_RDONLY | O_DIRECT);
	if (fd < 0) {
		perror(argv[1]);
		return 1;
	}
	at = atoll(argv[2]) << 20;
	for (n = atoi(argv[3]); n > 0; n--, at += STRIDE)
		if (pread(fd, buffer, BYTES, at) != BYTES) {
			perror(argv[1]);
			return 1;
		}
	return 0;
}
