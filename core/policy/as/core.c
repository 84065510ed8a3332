// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The machinery of the anticipatory family: what is learned of tasks, the queues, and a request's
 * way through them; decide.c decides what goes out next. Source: Linux 2.6 as-iosched (2.6.11,
 * 2.6.18, 2.6.32).
 *
 * Caveats. Ending a wait does not mean serving the request that ended it: dispatch then takes what
 * lies best. The timer runs from the completion, not from the decision to wait. Age is looked at
 * once per expiry interval and class, and only while a batch of that class runs. `next` is a guess:
 * only the neighbours of the last dispatched request and newcomers compete for it.
 *
 * Where it differs from the source: requests that are marked as file system metadata, as they were
 * not then, are no part of a task's seek history. Two look-ups far from a file made its reader seem
 * to seek far for dozens of requests, in which nobody waited for it. learn_meta brings that back.
 * On non-rotational devices nobody is waited for; wait_nonrot brings that back, too.
 */
#include "core/policy/as/internal.h"

#define AS_MAX_THINK_MS 20

static const struct hw_reach as_reach = { .back_max = 1024 * 1024, .back_penalty = 2 };

s64 as_stat_exit_prob(const struct hw_queue *q)
{
	return (s64)as_queue(q)->exit_prob;
}
s64 as_stat_new_ttime_mean(const struct hw_queue *q)
{
	return (s64)as_queue(q)->new_ttime_mean;
}
s64 as_stat_new_seek_mean(const struct hw_queue *q)
{
	return (s64)as_queue(q)->new_seek_mean;
}
s64 as_stat_wcount(const struct hw_queue *q)
{
	return as_queue(q)->wcount;
}

static struct as_request *as_request(struct hw_sorted_request *s)
{
	return container_of(s, struct as_request, s);
}

/* ---- time ---- */

static void set_now(struct as_queue *aq, u64 now)
{
	aq->exact_now = now;
	aq->now = as_tick_floor(aq, now);
}

/* A tunable in ms as whole ticks in ns; at least one tick unless it is 0. */
static u64 span(const struct as_queue *aq, s64 ms)
{
	u64 ticks = hw_ms_ticks(ms, aq->tick_us);

	return as_ticks_ns(aq, ms && !ticks ? 1 : ticks);
}

void as_tuned(struct as_queue *aq)
{
	aq->expire[AS_SYNC] = span(aq, aq->read_expire);
	aq->expire[AS_ASYNC] = span(aq, aq->write_expire);
	aq->batch_expire[AS_SYNC] = span(aq, aq->read_batch_expire);
	aq->batch_expire[AS_ASYNC] = span(aq, aq->write_batch_expire);
	aq->antic_expire_ns = hw_may_wait(&aq->q, aq->wait_nonrot) ? span(aq, aq->antic_expire) : 0;
}

void as_init(struct as_queue *aq, u64 now)
{
	as_tuned(aq);
	set_now(aq, now);
	INIT_LIST_HEAD(&aq->fifo[AS_ASYNC]);
	INIT_LIST_HEAD(&aq->fifo[AS_SYNC]);
	INIT_LIST_HEAD(&aq->ready);
	aq->batch_expires = aq->now + aq->batch_expire[AS_SYNC];
	aq->wcount = max_t(s64, 2, (s64)hw_ms_ticks(aq->write_batch_expire, aq->tick_us) / 10);
	aq->exit_prob = (u64)aq->exit_prob_init;
}

/* ---- statistics ---- */

/* Ticks since the latest request of @t completed; 0 if it did not stop to think. */
static u64 think_ticks(const struct as_queue *aq, const struct as_task *t)
{
	u64 max_ticks, ticks;

	if (!t->served || t->nr_queued)
		return 0;
	if (t->last_end_ns >= aq->now) /* in this very tick */
		return 0;
	max_ticks = max_t(u64, 1, hw_ms_ticks(AS_MAX_THINK_MS, aq->tick_us)) - 1;
	ticks = hw_tick_of(aq->now, aq->tick_us) - hw_tick_of(t->last_end_ns, aq->tick_us);
	return min(ticks, max_ticks);
}

/* Where the file system keeps its tables says nothing of where the task will read on. */
static __always_inline bool placed(const struct as_queue *aq, const struct hw_request *rq)
{
	return aq->learn_meta || !(rq->flags & HW_RQ_META);
}

static __always_inline void learn_seek(struct as_queue *aq, struct as_task *t, u64 seek)
{
	if (!t->seek.samples) {
		aq->new_seek_total = hw_decay_step(aq->new_seek_total, seek);
		aq->new_seek_mean = aq->new_seek_total / AS_ONE;
	}
	hw_decay_seek(&t->seek, hw_seek_clamp(&t->seek, seek));
}

static __always_inline void learn(struct as_queue *aq, struct as_task *t,
				  const struct hw_request *rq)
{
	u64 think;

	if (t->started || t->served) {
		think = think_ticks(aq, t);
		if (!t->think.samples) {
			aq->new_ttime_total = hw_decay_step(aq->new_ttime_total, think);
			aq->new_ttime_mean = aq->new_ttime_total / AS_ONE;
			as_less_likely(&aq->exit_prob);
		}
		hw_decay_think(&t->think, think);
	}
	if (placed(aq, rq)) {
		if (t->placed)
			learn_seek(aq, t, hw_apart(rq->sector, t->last_pos));
		t->last_pos = hw_end(rq);
		t->placed = true;
	}
	t->started = true;
}

void as_learn(struct as_queue *aq, struct as_task *t, const struct hw_request *rq)
{
	learn(aq, t, rq);
}

u64 as_seek_mean(const struct as_queue *aq, const struct as_task *t)
{
	return t->seek.samples ? t->seek.mean : aq->new_seek_mean;
}

u64 as_distance(const struct as_queue *aq, const struct hw_request *rq)
{
	return hw_apart(rq->sector, aq->last[aq->dir]);
}

/* ---- the sorted queues ---- */

/* What should go out after @s, which is about to leave its queue. */
static noinline struct hw_sorted_request *neighbour(const struct as_queue *aq, int class,
						    struct hw_sorted_request *s)
{
	return hw_choose_after(&as_reach, aq->last[class], &aq->sort[class], s);
}

static __always_inline struct hw_sorted_request *follower(const struct as_queue *aq, int class,
							  struct hw_sorted_request *s)
{
	return hw_sorted_alone(&aq->sort[class], s) ? NULL : neighbour(aq, class, s);
}

static noinline struct hw_sorted_request *better(const struct as_queue *aq, int class,
						 struct hw_sorted_request *s)
{
	return hw_choose_sorted(&as_reach, aq->last[class], s, aq->next[class]);
}

static __always_inline void offer_next(struct as_queue *aq, int class, struct hw_sorted_request *s)
{
	aq->next[class] = aq->next[class] ? better(aq, class, s) : s;
}

static __always_inline void leave(struct as_queue *aq, int class, struct hw_sorted_request *s)
{
	hw_sorted_del(&aq->sort[class], s);
	list_del_init(&s->fifo);
}

/* ---- who is waited for ---- */

static noinline void wait_for_another(struct as_queue *aq, struct as_task *t)
{
	struct as_task *old = aq->waited_for;

	if (t)
		hw_task_get(&t->task);
	aq->waited_for = t;
	if (old)
		hw_task_put(&aq->q, &old->task);
}

static __always_inline void wait_for(struct as_queue *aq, struct as_task *t)
{
	aq->waited_for_done = false;
	if (t != aq->waited_for)
		wait_for_another(aq, t);
}

/* ---- from the queues to the device ---- */

/* @s is decided upon, and leaves its queue. */
static __always_inline void decided_upon(struct as_queue *aq, struct hw_sorted_request *s)
{
	int class = as_class(&s->rq);

	as_stop_waiting(aq, HW_WAIT_OTHER, AS_OFF);
	aq->last[class] = hw_end(&s->rq);
	if (class == AS_SYNC) {
		wait_for(aq, as_task(&s->rq));
	} else {
		wait_for(aq, NULL);
		if (aq->wleft)
			aq->wleft--;
	}
	aq->next[class] = follower(aq, class, s);
	leave(aq, class, s);
}

/* Right after @s go the requests chained to it. */
static void ready_chain(struct as_queue *aq, struct hw_sorted_request *s)
{
	list_splice_tail_init(&as_request(s)->aliases, &aq->ready);
}

static struct hw_request *taken(struct hw_sorted_request *s)
{
	struct as_task *t = as_task(&s->rq);

	if (t)
		t->nr_queued--;
	return &s->rq;
}

static noinline void make_ready(struct as_queue *aq, struct hw_sorted_request *s)
{
	hw_forbid_merge(&aq->q, &s->rq);
	decided_upon(aq, s);
	list_add_tail(&s->fifo, &aq->ready);
	ready_chain(aq, s);
}

static noinline struct hw_request *take_ready(struct as_queue *aq)
{
	struct hw_sorted_request *s = hw_fifo_first(&aq->ready);

	list_del_init(&s->fifo);
	hw_because(&aq->q, HW_FIRST);
	return taken(s);
}

/* @s goes to the head of all, past every rule: requeued, or because the host says so. */
static void put_first(struct as_queue *aq, struct hw_sorted_request *s)
{
	struct as_task *t = as_task(&s->rq);

	if (as_waiting(aq))
		as_stop_waiting(aq, HW_WAIT_OTHER, AS_FINISHED);
	if (t)
		t->nr_queued++;
	hw_forbid_merge(&aq->q, &s->rq);
	list_add(&s->fifo, &aq->ready);
}

/* ---- arrival ---- */

static noinline void chain(struct as_queue *aq, struct hw_sorted_request *first,
			   struct hw_sorted_request *s)
{
	hw_forbid_merge(&aq->q, &s->rq);
	list_move_tail(&s->fifo, &as_request(first)->aliases);
	list_splice_tail_init(&as_request(s)->aliases, &as_request(first)->aliases);
}

/*
 * Into the sorted queue, where no two requests may begin at one sector. False: chained to the one
 * that was there.
 */
static __always_inline bool add_sorted(struct as_queue *aq, int class, struct hw_sorted_request *s)
{
	struct hw_sorted_request *alias = hw_sorted_find(&aq->sort[class], s->rq.sector);

	if (alias && aq->rules->chain_aliases) {
		chain(aq, alias, s);
		return false;
	}
	if (alias)
		make_ready(aq, alias);
	hw_sorted_add(&aq->sort[class], s);
	return true;
}

static noinline void arrived_in_wait(struct as_queue *aq, struct hw_request *rq)
{
	enum hw_wait_outcome outcome = HW_WAIT_OTHER;
	struct as_task *t = as_task(rq);
	int class = as_class(rq);

	if (t == aq->waited_for && class == AS_SYNC)
		outcome = HW_WAIT_SUCCESS;
	else if (as_waited_out(aq))
		outcome = HW_WAIT_FAIL;
	if (aq->rules->breaks(aq, rq))
		as_stop_waiting(aq, outcome, AS_FINISHED);
}

void as_insert(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct as_queue *aq = as_queue(q);
	struct hw_sorted_request *s = hw_sorted(rq);
	struct as_task *t = as_task(rq);
	int class = as_class_now(aq, rq->op, rq->flags);

	set_now(aq, now);
	as_request(s)->class = class;
	INIT_LIST_HEAD(&as_request(s)->aliases);
	INIT_LIST_HEAD(&s->fifo);
	RB_CLEAR_NODE(&s->node);
	if (rq->flags & HW_RQ_AT_HEAD) {
		put_first(aq, s);
		return;
	}
	if (t) {
		if (class == AS_SYNC) {
			if (aq->rules->arrived)
				aq->rules->arrived(aq, t, rq);
			learn(aq, t, rq);
		}
		t->nr_queued++;
	}
	if (add_sorted(aq, class, s)) {
		hw_fifo_add(&aq->fifo[class], s, aq->now + aq->expire[class]);
		offer_next(aq, class, s);
	}
	if (as_waiting(aq))
		arrived_in_wait(aq, rq);
}

/* ---- departure ---- */

/*
 * Reads alone, the next of them from the task that was served last, and it is not time yet to look
 * at their age: it goes out. The general rules come to the same; on a fast device this is what
 * nearly always happens.
 */
static __always_inline struct hw_sorted_request *decide_at_once(struct as_queue *aq)
{
	struct hw_sorted_request *s = aq->next[AS_SYNC];

	if (!s || as_task(&s->rq) != aq->waited_for || aq->dir != AS_SYNC || aq->changed ||
	    as_waiting(aq) || !list_empty(&aq->fifo[AS_ASYNC]) ||
	    aq->now - aq->last_check[AS_SYNC] >= aq->expire[AS_SYNC])
		return NULL;
	as_restart_clock(aq);
	hw_because_wait(&aq->q, true, HW_SEEK_ORDER);
	return s;
}

struct hw_request *as_dispatch(struct hw_queue *q, u64 now)
{
	struct as_queue *aq = as_queue(q);
	struct hw_sorted_request *s;

	set_now(aq, now);
	if (unlikely(!list_empty(&aq->ready)))
		return take_ready(aq);
	s = unlikely(q->force) ? NULL : decide_at_once(aq);
	if (!s)
		s = as_weigh(aq);
	if (!s)
		return NULL;
	decided_upon(aq, s);
	ready_chain(aq, s);
	return taken(s);
}

void as_idle(struct hw_queue *q)
{
	struct as_queue *aq = as_queue(q);

	if (aq->dir == AS_ASYNC)
		aq->widled = true;
}

bool as_has_work(const struct hw_queue *q)
{
	const struct as_queue *aq = as_queue(q);

	return q->nr_queued && (q->force || !as_waiting(aq));
}

/* ---- completion ---- */

void as_complete(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct as_queue *aq = as_queue(q);
	struct as_task *t = as_task(rq);
	int class = as_class(rq);

	set_now(aq, now);
	if (aq->changed && !q->nr_in_flight && list_empty(&aq->ready)) {
		aq->changed = false;
		aq->new_batch = aq->dir == AS_SYNC;
		if (!aq->wb_start_bug)
			aq->batch_expires = aq->now + aq->batch_expire[aq->dir];
	}
	if (aq->new_batch && class == aq->dir) {
		as_adapt_write_batch(aq);
		aq->batch_expires = aq->now + aq->batch_expire[AS_SYNC];
		aq->new_batch = false;
	}
	if (t && t == aq->waited_for) {
		aq->antic_start = aq->exact_waits ? now : aq->now;
		aq->waited_for_done = true;
		if (aq->status == AS_WAIT_REQ)
			as_wait_next(aq);
	}
	if (t && class == AS_SYNC) {
		t->served = true;
		t->last_end_ns = now;
	}
	if (aq->rules->completed)
		aq->rules->completed(aq, rq);
}

void as_requeue(struct hw_queue *q, struct hw_request *rq, u64 now)
{
	struct as_queue *aq = as_queue(q);

	set_now(aq, now);
	put_first(aq, hw_sorted(rq));
}

/* ---- merging ---- */

struct hw_request *as_find_merge(struct hw_queue *q, const struct hw_bio *bio, enum hw_merge *how)
{
	int class = as_class_now(as_queue(q), bio->op, bio->flags);
	const struct hw_sorted *sort = &as_queue(q)->sort[class];
	struct hw_sorted_request *s = hw_sorted_find(sort, bio->sector + bio->sectors);

	*how = s ? HW_FRONT_MERGE : HW_NO_MERGE;
	return hw_sorted_rq(s);
}

void as_merged(struct hw_queue *q, struct hw_request *rq, enum hw_merge how, u64 now)
{
	struct as_queue *aq = as_queue(q);
	struct hw_sorted_request *s = hw_sorted(rq), *successor;
	int class = as_class(rq);

	if (how != HW_FRONT_MERGE)
		return;
	set_now(aq, now);
	successor = aq->next[class] == s ? follower(aq, class, s) : aq->next[class];
	hw_sorted_del(&aq->sort[class], s);
	if (!add_sorted(aq, class, s))
		aq->next[class] = successor;
	else if (!aq->next[class])
		aq->next[class] = s;
}

void as_merged_requests(struct hw_queue *q, struct hw_request *keep, struct hw_request *gone)
{
	struct hw_sorted_request *k = hw_sorted(keep), *g = hw_sorted(gone);
	struct as_queue *aq = as_queue(q);
	struct as_task *t = as_task(gone);
	int class = as_class(gone);

	/* Writes of both classes join, if one that comes fills the gap between them. */
	if (as_class(keep) == class)
		hw_fifo_inherit(k, g);
	list_splice_tail_init(&as_request(g)->aliases, &as_request(k)->aliases);
	if (aq->next[class] == g)
		aq->next[class] = follower(aq, class, g);
	leave(aq, class, g);
	if (t)
		t->nr_queued--;
}
