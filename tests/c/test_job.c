// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random jobs through the public interface: everything issued completes, in its file; bad jobs
 * are refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "plain_job.h"
#include "sim/headwaiter.h"

#define SECTORS (1ull << 24)

static uint64_t state;

static uint64_t roll(uint64_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % n;
}

static struct hws *new_run(uint32_t record, uint32_t exact)
{
	struct hws_options options = { .policy = "noop",
				       .seed = state,
				       .record = record,
				       .copy_page_ns = 2048,
				       .exact = exact };
	struct hws *s = hws_new(&options);

	hws_drive_constant(s, 100000, SECTORS);
	return s;
}

static void random_job(struct hws_job *j)
{
	uint32_t block = 512u << roll(6);

	j->size = block * (4 + roll(200));
	j->directions = 1 + (uint32_t)roll(3);
	j->random = (uint32_t)roll(2);
	j->random_map = (uint32_t)roll(2);
	j->repeat_random = (uint32_t)roll(2);
	j->random_percent[0] = j->random_percent[1] = roll(3) ? 100 : 40;
	j->read_percent = (uint32_t)roll(101);
	j->min_bytes[0] = j->min_bytes[1] = j->align_bytes[0] = j->align_bytes[1] = block;
	j->max_bytes[0] = j->max_bytes[1] = block * (1 + roll(4));
	j->random_every = 1 + (uint32_t)roll(3);
	j->identical = (uint32_t)roll(2);
	j->hole_bytes = roll(4) ? 0 : (int64_t)block * (int64_t)(roll(5) - 2);
	j->file_service = (uint32_t)roll(3);
	j->file_every = 1 + (uint32_t)roll(2);
	j->loops = 1 + roll(3);
	j->io_size = roll(3) ? 0 : j->size * 2 + 1;
	j->depth = 1 + (uint32_t)roll(5);
	j->queued = j->depth > 1;
	j->buffered = (uint32_t)roll(2);
	if (j->buffered) {
		j->depth = 1;
		j->readahead_bytes = roll(2) * 131072;
		j->keep_cache = (uint32_t)roll(2);
		j->fsync_every = j->directions & 2 ? (uint32_t)roll(4) : 0;
		j->end_fsync = j->directions & 2 ? (uint32_t)roll(2) : 0;
	}
	j->sync_writes = roll(4) == 0;
	j->think_ns = roll(2) * 50000;
	j->think_blocks = 1 + roll(3);
	j->rate_bytes[0] = roll(4) ? 0 : 50ull << 20;
	if (roll(4) == 0) {
		j->time_based = 1;
		j->runtime_ns = 1 + roll(20000000);
	}
	j->start_max_ns = roll(1000000);
	j->stonewall = roll(4) == 0;
	j->exit_what = roll(8) ? 0 : 1 + (uint32_t)roll(3);
	j->skew = roll(3) ? 0 : 1 + (uint32_t)roll(3);
	j->skew_by = j->skew == HWS_NORMAL ? 20 : 0.4;
	j->skew_center = roll(2) ? -1 : 0.5;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Store one tally's latencies in ascending order; return how many there are. */
static uint64_t latencies_of(uint32_t tally, const struct hws_latencies *all, uint64_t n,
			     uint64_t *out)
{
	uint64_t i, k, found = 0;

	for (i = 0; i < n; i++)
		for (k = 0; all->tally[i] == tally && k < all->count[i]; k++)
			out[found++] = all->ns[i];
	qsort(out, found, sizeof(*out), compare_u64);
	return found;
}

/* Tallies say what rows say, but for latencies as near as they promise. */
static void check_tallies(const struct hws *s, const struct hws_rows *rows, uint64_t exact)
{
	const struct hws_tally *tally;
	uint64_t nr = hws_tallies(s, &tally), room = rows->n + 1, total = 0, n, i, k;
	uint64_t *ours = calloc(3 * room, 8), *theirs = ours + room, *ns = theirs + room,
		 *count = calloc(room, 8);
	uint32_t *number = calloc(room, 4);
	struct hws_latencies l = { .room = room, .tally = number, .ns = ns, .count = count };

	if (!ours || !count || !number)
		abort();
	n = hws_latencies(s, &l);
	CHECK(n <= rows->n);
	CHECK_EQ(l.error_denominator, exact < rows->n ? 2048 : 0);
	for (k = 0; k < nr; k++) {
		const struct hws_tally *t = &tally[k];
		uint64_t sectors = 0, sum = 0, first = UINT64_MAX, last = 0, of = 0;

		for (i = 0; i < rows->n; i++) {
			if (rows->task[i] != t->task || rows->op[i] != t->op)
				continue;
			sectors += rows->sectors[i];
			first = (uint64_t)rows->issue_ns[i] < first ? (uint64_t)rows->issue_ns[i] :
								      first;
			last = (uint64_t)rows->complete_ns[i] > last ?
				       (uint64_t)rows->complete_ns[i] :
				       last;
			theirs[of] = (uint64_t)(rows->complete_ns[i] - rows->issue_ns[i]);
			sum += theirs[of++];
		}
		qsort(theirs, of, sizeof(*theirs), compare_u64);
		CHECK(of > 0);
		CHECK_EQ(t->ios, of);
		CHECK_EQ(t->sectors, sectors);
		CHECK_EQ(t->first_issue_ns, first);
		CHECK_EQ(t->last_done_ns, last);
		CHECK_EQ(t->latency_sum_ns, sum);
		CHECK_EQ(t->latency_sum_high, 0);
		CHECK_EQ(t->latency_max_ns, theirs[of - 1]);
		CHECK_EQ(latencies_of((uint32_t)k, &l, n, ours), of);
		for (i = 0; i < of; i++) {
			uint64_t off = ours[i] > theirs[i] ? ours[i] - theirs[i] :
							     theirs[i] - ours[i];

			CHECK(l.error_denominator ? off <= theirs[i] / l.error_denominator : !off);
			CHECK(ours[i] <= t->latency_max_ns);
		}
		total += of;
	}
	CHECK_EQ(total, rows->n);
	l.room = 0;
	CHECK_EQ(hws_latencies(s, &l), n);
	free(ours);
	free(count);
	free(number);
}

static void random_run(void)
{
	uint32_t nr = 1 + (uint32_t)roll(4), i;
	uint32_t exact = 1 + (uint32_t)roll(1000);
	struct hws *s = new_run(1, exact);
	struct hws_totals t;
	struct hws_rows rows;
	struct hws_file files[4][2];
	int ret;

	for (i = 0; i <= nr; i++)
		hws_add_task(s, i, 0, 0, i < nr);
	for (i = 0; i < nr; i++) {
		struct hws_job j = plain_job(files[i]);
		uint32_t k;

		random_job(&j);
		j.task = i;
		j.flusher = nr;
		j.section = j.group = i;
		j.wait_for = i && roll(4) == 0 ? (int32_t)roll(i) : -1;
		j.nr_files = 1 + roll(2);
		for (k = 0; k < 2; k++) {
			uint64_t offset = 512 * roll(100);

			files[i][k] = (struct hws_file){
				.base = (2ull * i + k) << 28,
				.offset = offset,
				.span = j.size,
				.size = j.size + offset,
			};
		}
		CHECK_EQ(hws_add_job(s, &j), 0);
	}
	do {
		ret = hws_run(s, 1000);
	} while (ret > 0);
	CHECK_EQ(ret, 0);
	hws_totals(s, &t);
	hws_rows(s, &rows);
	CHECK_EQ(t.issued, t.completed);
	CHECK_EQ(t.issued, rows.n);
	for (i = 0; i < rows.n; i++) {
		uint64_t at = rows.sector[i] * 512, end = at + rows.sectors[i] * 512ull;
		const struct hws_file *f = &files[(at >> 28) / 2][(at >> 28) % 2];

		CHECK(rows.complete_ns[i] > rows.issue_ns[i]);
		CHECK(at + 4095 >= f->base + f->offset);
		CHECK(end <= f->base + f->size + 4095);
	}
	check_tallies(s, &rows, exact);
	hws_free(s);
}

static void refused(struct hws_job j, int err, const char *what)
{
	struct hws *s = new_run(0, 0);

	hws_add_task(s, 0, 0, 0, 1);
	CHECK_EQ(hws_add_job(s, &j), err);
	if (!strstr(hws_error(s), what))
		printf("'%s' does not say '%s'\n", hws_error(s), what);
	CHECK(strstr(hws_error(s), what));
	hws_free(s);
}

/*
 * Times up to the end of their type: what would go on after the clock's end is an error, what only
 * may does no harm.
 */
static void longest_times(const struct hws_file *file)
{
	struct hws_totals t;
	struct hws_job j = plain_job(file);
	struct hws *s = new_run(0, 0);

	j.think_ns = UINT64_MAX;
	hws_add_task(s, 0, 0, 0, 1);
	CHECK_EQ(hws_add_job(s, &j), 0);
	while (hws_run(s, 1u << 20) == 1)
		;
	CHECK(strstr(hws_error(s), "clock ends"));
	hws_free(s);

	s = new_run(0, 0);
	j.think_ns = 1000;
	j.start_min_ns = j.start_max_ns = 5000000;
	j.runtime_ns = UINT64_MAX;
	hws_add_task(s, 0, 0, 0, 1);
	CHECK_EQ(hws_add_job(s, &j), 0);
	while (hws_run(s, 1u << 20) == 1)
		;
	hws_totals(s, &t);
	CHECK_EQ(t.completed, 16);
	hws_free(s);
}

int main(void)
{
	struct hws_file file = { .span = 65536, .size = 65536 };
	struct hws_file outside = { .base = SECTORS * 512, .size = 1 };
	struct hws_job j = plain_job(&file);
	int i;

	for (i = 0; i < 400; i++) {
		state = (uint64_t)i;
		random_run();
	}

	longest_times(&file);
	refused(plain_job(&outside), -ERANGE, "does not fit on a drive of 16777216 sectors");
	j.task = 1;
	refused(j, -EINVAL, "no such task");
	j = plain_job(&file);
	j.directions = 0;
	refused(j, -EINVAL, "a parameter is missing");
	j = plain_job(&file);
	j.time_based = 1;
	refused(j, -EINVAL, "a parameter is missing");
	j = plain_job(&file);
	j.end_fsync = 1;
	refused(j, -EINVAL, "a parameter is missing");
	j = plain_job(&file);
	j.min_bytes[1] = 100;
	refused(j, -EINVAL, "invalid block size");
	return CHECK_DONE();
}
