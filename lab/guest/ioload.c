// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ioload DISK JOB... : processes that issue I/O to a disk, all started at once; ends when all have.
 * ioload --dump FROM TO: copy what a trace_pipe_raw holds, without waiting for more.
 *
 * A JOB is a process, written as words joined by commas:
 *   read|write         what it does; first word
 *   rand               places drawn at random in its region, in multiples of bs; else in order
 *   buffered           through the page cache, else O_DIRECT
 *   start=S span=S     its region, in sectors
 *   bs=S               block size, in sectors
 *   n=N                I/Os
 *   qd=N               so many at once (O_DIRECT only)
 *   think=US           pause after each completion; rthink=US: up to so much, at random
 *   prio=C.L           I/O priority class 1..3 and level 0..7
 *   delay=MS           comes so much later
 *   cpu=N              stays on CPU N modulo the number of CPUs
 *   seed=N
 * Static, no threads, no clock in any decision: in virtual time the same jobs issue the same I/O.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECTOR		   512ull
#define MAX_DEPTH	   256
#define IOPRIO_WHO_PROCESS 1

struct job {
	int write, random, buffered;
	uint64_t start, span, sectors, count, depth, think_us, rthink_us, delay_ms, seed, cpu;
	unsigned int class, level;
};

static void die(const char *what)
{
	fprintf(stderr, "ioload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t draw(struct job *j)
{
	j->seed ^= j->seed << 13;
	j->seed ^= j->seed >> 7;
	j->seed ^= j->seed << 17;
	return j->seed;
}

static void pause_us(uint64_t us)
{
	struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	if (us)
		nanosleep(&t, NULL);
}

static void parse(struct job *j, char *text)
{
	static const struct {
		const char *name;
		size_t at;
	} number[] = {
		{ "start", offsetof(struct job, start) },
		{ "span", offsetof(struct job, span) },
		{ "bs", offsetof(struct job, sectors) },
		{ "n", offsetof(struct job, count) },
		{ "qd", offsetof(struct job, depth) },
		{ "think", offsetof(struct job, think_us) },
		{ "rthink", offsetof(struct job, rthink_us) },
		{ "delay", offsetof(struct job, delay_ms) },
		{ "seed", offsetof(struct job, seed) },
		{ "cpu", offsetof(struct job, cpu) },
	};
	enum { NUMBERS = sizeof(number) / sizeof(*number) };
	char *word, *value;
	size_t i;

	*j = (struct job){
		.span = 1 << 20, .sectors = 8, .count = 100, .depth = 1, .seed = 1, .cpu = UINT64_MAX
	};
	while ((word = strsep(&text, ","))) {
		value = strchr(word, '=');
		if (value)
			*value++ = 0;
		if (!strcmp(word, "read") || !strcmp(word, "write")) {
			j->write = *word == 'w';
		} else if (!strcmp(word, "rand")) {
			j->random = 1;
		} else if (!strcmp(word, "buffered")) {
			j->buffered = 1;
		} else if (!strcmp(word, "prio") && value &&
			   sscanf(value, "%u.%u", &j->class, &j->level) == 2) {
			;
		} else {
			for (i = 0; i < NUMBERS && strcmp(word, number[i].name); i++)
				;
			if (i == NUMBERS || !value) {
				errno = EINVAL;
				die(word);
			}
			*(uint64_t *)((char *)j + number[i].at) = strtoull(value, NULL, 0);
		}
	}
	j->seed = j->seed * 0x9e3779b97f4a7c15ull + 1;
	if (!j->depth || j->depth > MAX_DEPTH || !j->sectors || j->span < j->sectors) {
		errno = EINVAL;
		die("job");
	}
}

static uint64_t place(struct job *j, uint64_t i)
{
	uint64_t blocks = j->span / j->sectors;

	return (j->start + (j->random ? draw(j) : i) % blocks * j->sectors) * SECTOR;
}

static void think(struct job *j)
{
	pause_us(j->think_us + (j->rthink_us ? draw(j) % j->rthink_us : 0));
}

static void run_buffered(struct job *j, int fd, char *buffer)
{
	size_t bytes = j->sectors * SECTOR;
	uint64_t i;

	for (i = 0; i < j->count; i++) {
		off_t at = (off_t)place(j, i);
		ssize_t n = j->write ? pwrite(fd, buffer, bytes, at) : pread(fd, buffer, bytes, at);

		if (n != (ssize_t)bytes)
			die("I/O");
		think(j);
	}
	if (j->write && fdatasync(fd))
		die("fdatasync");
}

static void submit(struct job *j, aio_context_t context, struct iocb *io, int fd, char *buffer,
		   uint64_t i)
{
	*io = (struct iocb){ .aio_fildes = (uint32_t)fd,
			     .aio_lio_opcode = j->write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
			     .aio_buf = (uint64_t)(uintptr_t)buffer,
			     .aio_nbytes = j->sectors * SECTOR,
			     .aio_offset = (int64_t)place(j, i) };
	if (syscall(SYS_io_submit, context, 1, &io) != 1)
		die("io_submit");
}

static void run_direct(struct job *j, int fd, char *buffer)
{
	struct iocb io[MAX_DEPTH];
	struct io_event event;
	aio_context_t context = 0;
	uint64_t i, done;

	if (syscall(SYS_io_setup, MAX_DEPTH, &context))
		die("io_setup");
	for (i = 0; i < j->depth && i < j->count; i++)
		submit(j, context, &io[i], fd, buffer, i);
	for (done = 0; done < j->count; done++) {
		if (syscall(SYS_io_getevents, context, 1, 1, &event, NULL) != 1 ||
		    event.res != (int64_t)(j->sectors * SECTOR))
			die("io_getevents");
		think(j);
		if (i < j->count)
			submit(j, context, (struct iocb *)(uintptr_t)event.obj, fd, buffer, i++);
	}
}

static void run(struct job *j, const char *disk)
{
	int fd = open(disk, O_RDWR | (j->buffered ? 0 : O_DIRECT));
	char *buffer = mmap(NULL, j->sectors * SECTOR, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	if (j->cpu < CPU_SETSIZE) {
		CPU_SET(j->cpu % (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), &cpus);
		if (sched_setaffinity(0, sizeof(cpus), &cpus))
			die("sched_setaffinity");
	}
	if (fd < 0 || buffer == MAP_FAILED)
		die(disk);
	if (j->class && syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, j->class << 13 | j->level))
		die("ioprio_set");
	pause_us(j->delay_ms * 1000);
	if (j->buffered)
		run_buffered(j, fd, buffer);
	else
		run_direct(j, fd, buffer);
	exit(0);
}

static int dump(const char *from, const char *to)
{
	static char page[65536];
	int in = open(from, O_RDONLY | O_NONBLOCK),
	    out = open(to, O_WRONLY | O_CREAT | O_APPEND, 0644);
	ssize_t n;

	if (in < 0 || out < 0)
		die(in < 0 ? from : to);
	while ((n = read(in, page, sizeof(page))) > 0)
		if (write(out, page, (size_t)n) != n)
			die(to);
	return n < 0 && errno != EAGAIN ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct job jobs[64];
	int i, status, failed = 0, gate[2];
	char go;

	if (argc == 4 && !strcmp(argv[1], "--dump"))
		return dump(argv[2], argv[3]);
	if (argc < 3 || argc > 66 || pipe(gate)) {
		fputs("usage: ioload DISK JOB... | ioload --dump FROM TO\n", stderr);
		return 2;
	}
	for (i = 2; i < argc; i++) {
		parse(&jobs[i - 2], argv[i]);
		switch (fork()) {
		case -1:
			die("fork");
			break;
		case 0:
			close(gate[1]);
			if (read(gate[0], &go, 1) != 0) /* opens when the parent closes it */
				die("gate");
			run(&jobs[i - 2], argv[1]);
		}
	}
	close(gate[1]);
	while (wait(&status) > 0)
		failed |= status;
	return failed ? 1 : 0;
}
