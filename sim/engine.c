// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The engine: one queue, one policy, one drive, in virtual time.
 *
 * The clock jumps to the earliest of: the drive's next event, the next I/O that is due, the time at
 * which the policy asked to be called again. In one instant: completions, then arrivals, then
 * dispatch for as long as the device takes requests. A row of events at the same time (an I/O that
 * takes no time, a task that does not think) is the same instant.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/internal.h"

int sim_fail(struct hws *s, int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(s->error, sizeof(s->error), format, ap);
	va_end(ap);
	return err;
}

/* --- the beginning --- */

static int start(struct hws *s)
{
	int ret;

	if (!s->drive)
		return sim_fail(s, -EINVAL, "no drive");
	s->depth = s->opt.queue_depth ? s->opt.queue_depth : s->drive->depth;
	hw_drive_describe(s->drive, &s->q->dev);
	s->q->dev.depth = s->depth;
	s->q->dev.nr_requests = s->opt.nr_requests;
	if (s->opt.nr_requests && (s->opt.pull_ahead || s->opt.join_arriving))
		s->tags = sim_tags_new(s, s->opt.nr_requests);
	ret = hw_start(s->q, 0);
	if (ret)
		return sim_fail(s, ret, "%s does not start", s->policy->name);
	s->started = true;
	return 0;
}

/* --- what is due: a binary heap by (time, order) --- */

static bool sooner(const struct sim_due *a, const struct sim_due *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

void sim_schedule(struct hws *s, u64 time_ns, u64 order, struct sim_source *source)
{
	struct sim_due due = { .time_ns = time_ns, .order = order, .source = source };
	u64 i = s->nr_heap++;

	s->heap = sim_grow(s, s->heap, &s->room_heap, s->nr_heap, sizeof(*s->heap));
	while (i && sooner(&due, &s->heap[(i - 1) / 2])) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = due;
}

static struct sim_due heap_pop(struct hws *s)
{
	struct sim_due top = s->heap[0], last = s->heap[--s->nr_heap];
	u64 i = 0, child;

	while ((child = 2 * i + 1) < s->nr_heap) {
		if (child + 1 < s->nr_heap && sooner(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!sooner(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return top;
}

/* The earlier of the heap's top and the next root of the trace; false if there is neither. */
static bool next_due(const struct hws *s, struct sim_due *due, bool *is_root)
{
	struct sim_due root;

	*is_root = false;
	if (s->next_root < s->nr_roots) {
		root.order = s->roots ? s->roots[s->next_root] : s->next_root;
		root.time_ns = (u64)s->trace->time_ns[root.order];
		root.source = NULL;
		*is_root = !s->nr_heap || sooner(&root, &s->heap[0]);
	} else if (!s->nr_heap) {
		return false;
	}
	*due = *is_root ? root : s->heap[0];
	return true;
}

/* --- tasks --- */

static struct hw_task *task_of(struct hws *s, u32 index)
{
	struct sim_task *t = &s->tasks[index];

	if (!t->task) {
		t->task = sim_hw_task_new(s);
		t->task->id = index;
		t->task->ioprio = t->ioprio;
		t->task->share = t->share;
		hw_task_start(s->q, t->task, s->now);
	}
	return t->task;
}

static void reap(struct hws *s)
{
	while (!list_empty(&s->q->reap)) {
		struct hw_task *t = list_first_entry(&s->q->reap, struct hw_task, reap);

		list_del(&t->reap);
		if (s->tasks[t->id].task == t)
			s->tasks[t->id].task = NULL;
		sim_hw_task_free(s, t);
	}
}

void sim_task_exit(struct hws *s, u32 index)
{
	struct sim_task *t = &s->tasks[index];
	struct hw_task *task = t->task;

	if (!task)
		return;
	/* Who waits for a request is in the kernel, and exits when it has come out. */
	t->exiting = t->nr_waiting;
	if (t->exiting)
		return;
	/* Should the task come back, the policy meets a new one. */
	t->task = NULL;
	hw_task_exit(s->q, task, s->now);
	sim_log_waits(s);
}

/* --- from I/O to request --- */

static void merge_inserted(struct hws *s, struct hw_request *rq)
{
	struct hw_request **old = s->buckets;
	u32 bits = s->merger.bits + 2;

	hw_merge_inserted(&s->merger, s->q, rq);
	if (!hw_merge_is_crowded(&s->merger))
		return;
	s->buckets = sim_grow(s, NULL, &(u64){ 0 }, 1ull << bits, sizeof(*old));
	hw_merge_rehash(&s->merger, s->buckets, bits);
	free(old);
}

static void append_pieces(struct sim_request *r, struct sim_piece *more, struct sim_piece **tail)
{
	*r->pieces_tail = more;
	r->pieces_tail = tail;
}

/* @gone has become part of @into. */
static void joined(struct hws *s, struct hw_request *into, struct hw_request *gone)
{
	struct sim_request *r = gone->host;

	append_pieces(into->host, r->pieces, r->pieces_tail);
	s->merges++;
	sim_log(s, EV_MERGE, into->id, gone->task->id, gone->op, gone->sector, gone->sectors);
	sim_request_free(s, r);
}

/* The block layer's own merging at insertion. */
static bool merge_arriving(struct hws *s, struct sim_piece *p)
{
	struct hw_request *into, *gone;

	if (!s->opt.join_arriving)
		return false;
	into = hw_merge_arriving(&s->merger, s->q, &p->bio, s->now);
	if (!into)
		return false;
	append_pieces(into->host, p, &p->next);
	s->merges++;
	sim_log(s, EV_MERGE, into->id, p->io->task, p->bio.op, p->bio.sector, p->bio.sectors);
	while ((gone = hw_merge_onwards(&s->merger, s->q, &into)))
		joined(s, into, gone);
	sim_log_waits(s);
	return true;
}

void sim_insert_piece(struct hws *s, struct sim_piece *p, int tag)
{
	struct sim_request *r;
	struct hw_request *rq;

	if (merge_arriving(s, p)) {
		if (tag >= 0) {
			sim_tag_put(s->tags, tag);
			sim_request_freed(s, p->bio.sectors);
		}
		return;
	}
	s->inserted = true;
	r = sim_request_new(s);
	rq = &r->rq;
	r->tag = tag;
	r->pieces = p;
	r->pieces_tail = &p->next;
	rq->sector = p->bio.sector;
	rq->sectors = p->bio.sectors;
	rq->op = p->bio.op;
	rq->flags = p->bio.flags;
	rq->ioprio = p->bio.ioprio;
	rq->cpu = p->bio.cpu;
	rq->task = p->bio.task;
	hw_insert(s->q, rq, s->now);
	merge_inserted(s, rq);
	sim_log(s, EV_INSERT, rq->id, p->io->task, rq->op, rq->sector, rq->sectors);
	sim_log_waits(s);
}

bool sim_merge_piece(struct hws *s, struct sim_piece *p)
{
	struct hw_merge_result m;

	p->bio.now_ns = s->now;
	m = hw_merge_try(&s->merger, s->q, &p->bio, s->now);

	if (!m.into)
		return false;
	append_pieces(m.into->host, p, &p->next);
	s->merges++;
	sim_log(s, EV_MERGE, m.into->id, p->io->task, p->bio.op, p->bio.sector, p->bio.sectors);
	if (m.gone)
		joined(s, m.into, m.gone);
	sim_log_waits(s);
	return true;
}

void sim_issue(struct hws *s, u32 task, const struct hw_bio *what, u64 row, u64 fixed_ns, void *tag)
{
	struct sim_io *io = sim_io_new(s);
	u64 sector = what->sector;
	u32 left = what->sectors;

	io->row = row;
	io->task = task;
	io->fixed_ns = fixed_ns;
	io->tag = tag;
	io->pieces = (u32)(((u64)left + s->opt.max_sectors - 1) / s->opt.max_sectors);
	s->issued++;
	s->tasks[task].outstanding++;
	if (what->op == HW_READ)
		sim_wbt_read(s);
	sim_row_issue(s, row, task, what);
	sim_tally_issue(s, io, what);
	while (left) {
		struct sim_piece *p = sim_piece_new(s);

		p->io = io;
		p->bio = *what;
		p->bio.sector = sector;
		p->bio.sectors = min(left, s->opt.max_sectors);
		p->bio.task = task_of(s, task);
		p->bio.cpu = (u16)(task % s->opt.cpus);
		sector += p->bio.sectors;
		left -= p->bio.sectors;
		sim_submit_piece(s, p);
	}
}

static void io_done(struct hws *s, struct sim_io *io)
{
	struct sim_source *source = s->tasks[io->task].source;
	u64 row = io->row;
	u32 task = io->task;
	void *tag = io->tag;

	s->completed++;
	s->last_done_ns = s->now;
	s->tasks[task].outstanding--;
	sim_row_complete(s, row);
	sim_tally_complete(s, io);
	sim_io_free(s, io);
	if (source)
		source->done(s, source, tag);
	else
		sim_trace_completed(s, row);
}

static void request_done(struct hws *s, struct sim_request *r)
{
	struct sim_piece *p = r->pieces;
	struct hw_request *rq = &r->rq;
	u32 sectors = rq->sectors;

	sim_log(s, EV_COMPLETE, rq->id, rq->task->id, rq->op, rq->sector, rq->sectors);
	hw_complete(s->q, rq, s->now);
	sim_log_waits(s);
	sim_wbt_done(s, r);
	sim_request_free(s, r);
	while (p) {
		struct sim_piece *next = p->next;
		struct sim_io *io = p->io;

		sim_piece_free(s, p);
		if (--io->pieces == 0)
			io_done(s, io);
		p = next;
	}
	reap(s);
	sim_request_freed(s, sectors);
}

/*
 * blk-mq has a worker ask its own schedulers after insertions and timers, some time later; and
 * after completions where the device was full (blk_mq_sched_restart()), or is empty. Ours decide at
 * once, in the interrupt, and the time passes on the way to the drive.
 */
static bool worker_decides(const struct hws *s)
{
	return s->opt.dispatch_ns && s->opt.pull_ahead;
}

static bool worker_wanted(const struct hws *s)
{
	if (!worker_decides(s))
		return false;
	return s->held ||
	       (s->q->nr_queued && (!s->in_drive || s->policy->flags & HW_POLICY_TOKENS));
}

/* --- the drive --- */

static void to_drive(struct hws *s, struct sim_request *r, u64 delay_ns)
{
	u64 page_ns = s->opt.dispatch_page_ns +
		      (r->rq.op == HW_WRITE ? s->opt.dispatch_write_page_ns : 0);
	u64 copy_ns = page_ns * SIM_PAGES(r->rq.sectors);
	struct hw_request *rq = &r->rq;

	r->io.sector = rq->sector;
	r->io.sectors = rq->sectors;
	r->io.op = rq->op;
	r->io.flags = rq->flags;
	r->io.fixed_ns = r->pieces->io->fixed_ns;
	r->io.host = r;
	rq->dispatch_ns = s->now;
	s->in_drive++;
	s->requests++;
	sim_wbt_issued(s, r);
	sim_log(s, EV_DISPATCH, rq->id, rq->task->id, rq->op, rq->sector, rq->sectors);
	if (!delay_ns && !copy_ns) {
		s->drive->model->submit(s->drive, &r->io, s->now);
		return;
	}
	sim_interrupt(s, delay_ns + copy_ns);
	s->sent_ns = sim_after(max(s->sent_ns, sim_after(s->now, delay_ns)), copy_ns);
	r->arrives_ns = s->sent_ns;
	r->next = NULL;
	*s->sent_tail = r;
	s->sent_tail = &r->next;
}

static void submit_sent(struct hws *s)
{
	while (s->sent && s->sent->arrives_ns <= s->now) {
		struct sim_request *r = s->sent;

		s->sent = r->next;
		if (!s->sent)
			s->sent_tail = &s->sent;
		s->drive->model->submit(s->drive, &r->io, s->now);
	}
}

static bool flush(struct hws *s)
{
	if (s->in_drive >= s->depth || !sim_flush_wanted(s) || s->flush.after_others)
		return false;
	s->in_drive++;
	sim_flush_submit(s);
	return true;
}

static void dispatch(struct hws *s, u64 delay_ns)
{
	u32 held = s->held != NULL;

	while (s->in_drive < s->depth || held < s->opt.pull_ahead) {
		struct sim_request *r;
		struct hw_request *rq;

		if (flush(s))
			continue;
		if (s->in_drive < s->depth && s->held) {
			r = s->held;
			s->held = NULL;
			held = 0;
			to_drive(s, r, delay_ns);
			continue;
		}
		rq = hw_dispatch(s->q, s->now);
		sim_log_waits(s);
		if (!rq) {
			s->wake_ns = s->q->wake_ns;
			s->flush.after_others = false;
			flush(s);
			return;
		}
		hw_merge_removed(&s->merger, rq);
		r = rq->host;
		if (s->in_drive < s->depth) {
			to_drive(s, r, delay_ns);
		} else {
			s->held = r;
			held = 1;
		}
	}
	s->flush.after_others = false;
	s->wake_ns = HW_NEVER;
}

static bool complete(struct hws *s)
{
	struct hw_io *io;
	bool any = false;

	while ((io = s->drive->model->poll(s->drive, s->now))) {
		s->in_drive--;
		if (io->host == &s->flush)
			sim_flush_done(s);
		else
			request_done(s, io->host);
		any = true;
	}
	return any;
}

static void arrive(struct hws *s)
{
	struct sim_due due;
	bool is_root;

	while (next_due(s, &due, &is_root) && due.time_ns <= s->now) {
		if (is_root)
			s->next_root++;
		else
			heap_pop(s);
		if (due.source)
			due.source->due(s, due.source, due.order);
		else
			sim_trace_issue(s, due.order);
	}
}

static u64 next_event(const struct hws *s)
{
	u64 t = min(min(s->drive->model->next(s->drive), s->wake_ns),
		    min(s->feed_ns, s->worker_ns));
	struct sim_due due;
	bool is_root;

	if (next_due(s, &due, &is_root))
		t = min(t, due.time_ns);
	return s->sent ? min(t, s->sent->arrives_ns) : t;
}

/*
 * Ours are asked, and others' where something has come; after a completion the queue has to be run
 * again for that.
 */
static void decide(struct hws *s)
{
	bool again = s->done && !s->inserted && !worker_decides(s);
	u64 before = s->requests;

	dispatch(s, s->opt.dispatch_ns + (again ? s->opt.restart_ns : 0));
	if (again && s->requests == before && s->q->nr_queued)
		sim_interrupt(s, s->opt.pass_ns);
}

/*
 * What happens now, in the order of a completion, what its process does next, and who waits for the
 * tag.
 */
static void step(struct hws *s)
{
	bool woken = s->wake_ns <= s->now;

	s->done = complete(s);
	submit_sent(s);
	woken = woken && worker_decides(s);
	if (woken)
		s->wake_ns = HW_NEVER;
	if (s->worker_ns == HW_NEVER && (woken || (s->done && worker_wanted(s)))) {
		u64 takes_ns = s->opt.dispatch_ns + (s->done ? s->opt.restart_ns : 0);

		s->worker_ns = sim_after(s->now, takes_ns);
		sim_interrupt(s, takes_ns);
	}
	if (s->worker_ns <= s->now) {
		s->worker_ns = HW_NEVER;
		dispatch(s, 0);
	}
	if (s->done && s->waiters)
		sim_interrupt(s, s->opt.pass_ns);
	s->inserted = false;
	arrive(s);
	if (s->inserted || (sim_flush_wanted(s) && s->worker_ns == HW_NEVER) || !worker_decides(s))
		decide(s);
	sim_waiter_woken(s);
	if (s->feed_ns <= s->now) {
		sim_feed_woken(s);
		dispatch(s, s->opt.dispatch_ns);
	}
}

int sim_run(struct hws *s, u64 events)
{
	int ret;

	if (!s->started) {
		ret = start(s);
		if (ret)
			return ret;
	}
	while (events--) {
		u64 t = next_event(s);

		if (t == HW_NEVER)
			break;
		if (t > SIM_CLOCK_END)
			return sim_fail(s, -EOVERFLOW,
					"time runs out: the clock ends after 292 years, "
					"when %llu of the %llu I/Os issued have completed",
					(unsigned long long)s->completed,
					(unsigned long long)s->issued);
		s->now = max(s->now, t);
		step(s);
	}
	ret = sim_log_check(s);
	if (ret)
		return ret;
	if (events == UINT64_MAX)
		return 1;
	ret = sim_account(s);
	if (!ret)
		ret = sim_log_close(s);
	if (ret)
		return ret;
	/* A job may have slept on after its last I/O, or been woken from its sleep to end. */
	if (s->jobs)
		s->now = s->last_done_ns;
	return 0;
}
