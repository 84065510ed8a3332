// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A server of files, as the Flexible File System Benchmark (FFSB) plays one:
 *
 *	server make FOLDER FILES FOLDERS
 *	server serve FOLDER FILES FOLDERS SEED THREADS OPERATIONS KIND=WEIGHT...
 *
 * `make` makes so many files of 4 to 64 KiB in so many folders. `serve` has each thread do so many
 * operations one after another, each of a kind drawn with its weight (of 100) on a file drawn from
 * all that there are: read and write a whole file, append a block to it, create a file, delete one.
 * Files are read and written by blocks of 4 KiB. The same parameters give the same draws, as far as
 * the threads take turns alike.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK	     4096
#define LEAST_BLOCKS 1
#define MOST_BLOCKS  16

enum kind { READ, WRITE, APPEND, CREATE, DELETE, NR_KINDS };

static const char *const kinds[] = { "read", "write", "append", "create", "delete" };

static const char *folder;
static unsigned int nr_folders, next_name, operations, seed;
static unsigned int weights[NR_KINDS];

/* Names (numbers) of all files that there are, and who may change that. */
static unsigned int *names, nr_names;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *what)
{
	fprintf(stderr, "server: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static void path_of(unsigned int name, char path[static 300])
{
	snprintf(path, 300, "%s/%u/%u", folder, name % nr_folders, name);
}

static void write_blocks(int fd, unsigned int blocks)
{
	static const char block[BLOCK];

	while (blocks--)
		if (write(fd, block, BLOCK) != BLOCK)
			die("write");
}

static void create(unsigned int name, uint64_t *state)
{
	char path[300];
	int fd;

	path_of(name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0)
		die(path);
	write_blocks(fd, LEAST_BLOCKS + draw(state) % (MOST_BLOCKS - LEAST_BLOCKS + 1));
	close(fd);
}

static void make(unsigned int files)
{
	uint64_t state = 0;
	char path[300];

	for (unsigned int i = 0; i < nr_folders; i++) {
		snprintf(path, sizeof(path), "%s/%u", folder, i);
		if (mkdir(path, 0777))
			die(path);
	}
	for (unsigned int i = 0; i < files; i++)
		create(i, &state);
}

/* A file that another thread removes meanwhile is as good as done with. */
static void use(enum kind kind, unsigned int name)
{
	static const int flags[] = { O_RDONLY, O_WRONLY, O_WRONLY | O_APPEND };
	char path[300], block[BLOCK];
	struct stat st;
	int fd;

	path_of(name, path);
	fd = open(path, flags[kind]);
	if (fd < 0 && errno == ENOENT)
		return;
	if (fd < 0 || fstat(fd, &st))
		die(path);
	if (kind == READ)
		while (read(fd, block, BLOCK) > 0)
			;
	else
		write_blocks(fd, kind == WRITE ? st.st_size / BLOCK : 1);
	close(fd);
}

static void operate(uint64_t *state)
{
	unsigned int name = 0, at, what = draw(state) % 100;
	enum kind kind = READ;
	char path[300];

	while (what >= weights[kind])
		what -= weights[kind++];
	pthread_mutex_lock(&lock);
	if (kind == CREATE) {
		name = next_name++;
	} else {
		if (!nr_names)
			die("no file is left");
		at = draw(state) % nr_names;
		name = names[at];
		if (kind == DELETE)
			names[at] = names[--nr_names];
	}
	pthread_mutex_unlock(&lock);
	if (kind == DELETE) {
		path_of(name, path);
		if (unlink(path))
			die(path);
	} else if (kind == CREATE) {
		create(name, state);
		pthread_mutex_lock(&lock);
		names[nr_names++] = name;
		pthread_mutex_unlock(&lock);
	} else {
		use(kind, name);
	}
}

static void *thread(void *number)
{
	uint64_t state = (uint64_t)seed << 40 | (uintptr_t)number << 32;

	for (unsigned int i = 0; i < operations; i++)
		operate(&state);
	return NULL;
}

static void serve(unsigned int files, unsigned int nr_threads)
{
	pthread_t threads[nr_threads];

	names = calloc(files + (size_t)nr_threads * operations, sizeof(*names));
	if (!names)
		die("no memory");
	for (nr_names = 0; nr_names < files; nr_names++)
		names[nr_names] = nr_names;
	next_name = files;
	for (uintptr_t i = 0; i < nr_threads; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)(i + 1)))
			die("no thread");
	for (unsigned int i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
}

/* Weights are of 100. */
static int read_weights(char **words, int n)
{
	unsigned int sum = 0;

	for (int i = 0; i < n; i++) {
		char *equals = strchr(words[i], '=');
		int kind = 0;

		if (!equals)
			return 0;
		*equals = 0;
		while (kind < NR_KINDS && strcmp(words[i], kinds[kind]))
			kind++;
		if (kind == NR_KINDS)
			return 0;
		weights[kind] = strtoul(equals + 1, NULL, 10);
		sum += weights[kind];
	}
	return sum == 100;
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	folder = argv[2];
	nr_folders = strtoul(argv[4], NULL, 10);
	if (!strcmp(argv[1], "make")) {
		make(strtoul(argv[3], NULL, 10));
		return 0;
	}
	if (strcmp(argv[1], "serve") || argc < 9 || !read_weights(argv + 8, argc - 8))
		return 2;
	seed = strtoul(argv[5], NULL, 10);
	operations = strtoul(argv[7], NULL, 10);
	serve(strtoul(argv[3], NULL, 10), strtoul(argv[6], NULL, 10));
	return 0;
}
