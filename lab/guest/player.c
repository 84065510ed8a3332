// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes that do to files what a list says, and a compiler that compiles nothing:
 *
 *	player make LIST		the list's files, as they are before
 *	player play LIST		its processes
 *	player compile SOURCE OBJECT US
 *
 * A list names files (F PATH PAGES, M likewise of one that a process makes), then processes (P
 * NAME), each with what it does: r and x FILE PAGE PAGES read and write, f FILE PAGE touches a page
 * of a mapped file, c FILE closes it, t NS thinks, s and w PROCESS start one and wait for it, y
 * waits until all is written, d forgets what was read. Files and processes go by number, from 0.
 *
 * compile reads the source and what it includes ("NAME", as seen from the source's own folder),
 * uses the processor for so long, and writes the object.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE  4096
#define CHUNK 65536

struct file {
	char *path;
	size_t pages;
	int made, fd;
	volatile char *map;
};

struct step {
	char what;
	uint64_t a, b, c;
};

struct process {
	char *name;
	struct step *steps;
	size_t nr_steps;
	pid_t pid;
};

static struct file *files;
static struct process *processes;
static size_t nr_files, nr_processes;
static char buffer[CHUNK];

static void die(const char *what)
{
	fprintf(stderr, "player: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static void *grown(void *array, size_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	array = realloc(array, (n ? 2 * n : 1) * size);
	if (!array)
		die("no memory");
	return array;
}

static void read_list(const char *path)
{
	FILE *list = fopen(path, "r");
	char line[512], word[400];
	struct process *p;
	struct step s;

	if (!list)
		die(path);
	while (fgets(line, sizeof(line), list)) {
		word[0] = 0;
		s = (struct step){ .what = line[0] };
		if (s.what == 'F' || s.what == 'M') {
			if (sscanf(line + 1, "%399s %lu", word, &s.a) != 2)
				die(line);
			files = grown(files, nr_files, sizeof(*files));
			files[nr_files++] =
				(struct file){ strdup(word), s.a, s.what == 'M', -1, NULL };
		} else if (s.what == 'P') {
			if (sscanf(line + 1, "%399s", word) != 1)
				die(line);
			processes = grown(processes, nr_processes, sizeof(*processes));
			processes[nr_processes++] = (struct process){ .name = strdup(word) };
		} else {
			sscanf(line + 1, "%lu %lu %lu", &s.a, &s.b, &s.c);
			p = &processes[nr_processes - 1];
			p->steps = grown(p->steps, p->nr_steps, sizeof(s));
			p->steps[p->nr_steps++] = s;
		}
	}
	fclose(list);
}

static void fill(int fd, size_t bytes, const char *path)
{
	ssize_t n;

	for (; bytes; bytes -= n) {
		n = write(fd, buffer, bytes < CHUNK ? bytes : CHUNK);
		if (n <= 0)
			die(path);
	}
}

static void make_files(void)
{
	char *slash;
	int fd;

	for (size_t i = 0; i < nr_files; i++) {
		for (slash = strchr(files[i].path + 1, '/'); slash;
		     slash = strchr(slash + 1, '/')) {
			*slash = 0;
			if (mkdir(files[i].path, 0777) && errno != EEXIST)
				die(files[i].path);
			*slash = '/';
		}
		if (files[i].made)
			continue;
		fd = open(files[i].path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
		if (fd < 0)
			die(files[i].path);
		fill(fd, files[i].pages * PAGE, files[i].path);
		close(fd);
	}
}

static struct file *opened(uint64_t number)
{
	struct file *f = &files[number];

	if (f->fd < 0)
		f->fd = open(f->path, O_RDWR | (f->made ? O_CREAT : 0), 0666);
	if (f->fd < 0)
		die(f->path);
	return f;
}

/* In pieces, as programs read and write; those that touch a page at a time do. */
static void transfer(const struct step *s)
{
	struct file *f = opened(s->a);
	uint64_t at = s->b * PAGE, left = s->c * PAGE;
	ssize_t n;

	for (; left; left -= n, at += n) {
		n = left < CHUNK ? left : CHUNK;
		n = s->what == 'r' ? pread(f->fd, buffer, n, at) : pwrite(f->fd, buffer, n, at);
		if (n <= 0)
			die(f->path);
	}
}

static void touch(const struct step *s)
{
	struct file *f = opened(s->a);

	if (!f->map)
		f->map = mmap(NULL, f->pages * PAGE, PROT_READ, MAP_SHARED, f->fd, 0);
	if (f->map == MAP_FAILED)
		die(f->path);
	(void)f->map[s->b * PAGE];
}

static void close_file(struct file *f)
{
	if (f->map)
		munmap((void *)f->map, f->pages * PAGE);
	if (f->fd >= 0)
		close(f->fd);
	f->map = NULL;
	f->fd = -1;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static void forget(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	if (fd < 0 || write(fd, "3", 1) != 1)
		die("drop_caches");
	close(fd);
}

/* What a parent has open it does not pass on. */
static struct process *begin(struct process *p)
{
	for (size_t i = 0; i < nr_files; i++) {
		if (files[i].fd >= 0)
			close(files[i].fd);
		files[i].fd = -1;
		files[i].map = NULL;
	}
	prctl(PR_SET_NAME, p->name);
	return p;
}

static void play(struct process *p)
{
	struct process *me = begin(p);
	struct step *s;
	int status;

	for (size_t i = 0; i < me->nr_steps; i++) {
		s = &me->steps[i];
		if (s->what == 'r' || s->what == 'x') {
			transfer(s);
		} else if (s->what == 'f') {
			touch(s);
		} else if (s->what == 'c') {
			close_file(&files[s->a]);
		} else if (s->what == 't') {
			sleep_ns(s->a);
		} else if (s->what == 'y') {
			sync();
		} else if (s->what == 'd') {
			forget();
		} else if (s->what == 'w') {
			if (waitpid(processes[s->a].pid, &status, 0) < 0 || status)
				die(processes[s->a].name);
		} else if (s->what == 's') {
			processes[s->a].pid = fork();
			if (processes[s->a].pid < 0)
				die("fork");
			if (!processes[s->a].pid) {
				me = begin(&processes[s->a]);
				i = -1;
			}
		}
	}
	_exit(0);
}

/* Waits for all of them, also for those whose parents have ended. */
static int play_all(void)
{
	int status, failed = 0;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!fork())
		play(&processes[0]);
	while (wait(&status) > 0)
		failed |= status;
	return failed ? 1 : 0;
}

static void compile(const char *source, const char *object, uint64_t us)
{
	char path[400], *slash, line[400], name[300];
	FILE *in = fopen(source, "r"), *header;
	struct timespec t;
	uint64_t end;
	int fd;

	if (!in || strlen(source) >= sizeof(path))
		die(source);
	strcpy(path, source);
	slash = strrchr(path, '/');
	slash = slash ? slash + 1 : path;
	while (fgets(line, sizeof(line), in)) {
		if (sscanf(line, "#include \"%299[^\"]\"", name) != 1)
			continue;
		snprintf(slash, sizeof(path) - (slash - path), "%s", name);
		header = fopen(path, "r");
		if (!header)
			die(path);
		while (fread(buffer, 1, PAGE, header) > 0)
			;
		fclose(header);
	}
	fclose(in);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	end = t.tv_sec * 1000000ull + t.tv_nsec / 1000 + us;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec * 1000000ull + t.tv_nsec / 1000 < end);
	fd = open(object, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0)
		die(object);
	fill(fd, 5 * PAGE, object);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "compile")) {
		compile(argv[2], argv[3], strtoull(argv[4], NULL, 10));
		return 0;
	}
	if (argc != 3)
		return 2;
	read_list(argv[2]);
	if (!strcmp(argv[1], "make"))
		make_files();
	else
		return play_all();
	return 0;
}
