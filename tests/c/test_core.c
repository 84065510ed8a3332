// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The hosted tree against a plain sorted array; ties; fifo inheritance; tunables; merging with more
 * buckets.
 */
#include <stdlib.h>

#include "check.h"
#include "core/lib/merge.h"
#include "core/lib/sorted.h"
#include "core/policy/policies.h"

static u64 rng = 1;

static u64 next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* Returns the black height, or -1 if a rule of red-black trees is broken. */
static int black_height(const struct rb_node *n, const struct rb_node *parent)
{
	int l, r;

	if (!n)
		return 0;
	if (n->rb_parent != parent || (n->rb_red && parent && parent->rb_red))
		return -1;
	l = black_height(n->rb_left, n);
	r = black_height(n->rb_right, n);
	return l < 0 || l != r ? -1 : l + !n->rb_red;
}

static void test_tree(void)
{
	enum { N = 300 };
	static struct hw_sorted_request pool[N];
	bool in[N] = { false };
	struct hw_sorted t = { RB_ROOT };
	int round, i, count = 0;

	for (round = 0; round < 20000; round++) {
		struct hw_sorted_request *s, *prev = NULL;
		int k = (int)(next_random() % N), seen = 0;

		if (in[k]) {
			hw_sorted_del(&t, &pool[k]);
			count--;
		} else {
			pool[k].rq.sector = next_random() % 100;
			pool[k].rq.id = (u64)round;
			hw_sorted_add(&t, &pool[k]);
			count++;
		}
		in[k] = !in[k];
		if (round % 64)
			continue;
		CHECK(black_height(t.root.rb_node, NULL) >= 0);
		for (s = hw_sorted_first(&t); s; prev = s, s = hw_sorted_next(s), seen++) {
			CHECK(!prev || prev->rq.sector <= s->rq.sector);
			CHECK(!prev || prev->rq.sector < s->rq.sector || prev->rq.id < s->rq.id);
			CHECK(hw_sorted_prev(s) == prev);
		}
		CHECK_EQ(seen, count);
		for (i = 0; i < 100; i++) {
			struct hw_sorted_request *want = NULL;

			for (s = hw_sorted_first(&t); s && !want; s = hw_sorted_next(s))
				if (s->rq.sector >= (u64)i)
					want = s;
			CHECK(hw_sorted_at_or_after(&t, (u64)i) == want);
		}
	}
}

static void test_fifo(void)
{
	struct hw_sorted_request r[3] = { 0 };
	struct list_head fifo;
	int i;

	INIT_LIST_HEAD(&fifo);
	for (i = 0; i < 3; i++)
		hw_fifo_add(&fifo, &r[i], (u64)i);
	/* The younger survivor takes the older one's place and deadline … */
	hw_fifo_inherit(&r[2], &r[0]);
	list_del_init(&r[0].fifo);
	CHECK_EQ(r[2].expires, 0);
	CHECK(hw_fifo_first(&fifo) == &r[2]);
	/* … and an older survivor keeps its own. */
	hw_fifo_inherit(&r[2], &r[1]);
	CHECK_EQ(r[2].expires, 0);
	CHECK(hw_fifo_first(&fifo) == &r[2]);
}

static void test_tunables(void)
{
	const struct hw_policy *const *p;

	for (p = hw_policies; *p; p++) {
		struct hw_queue *q = calloc(1, (*p)->queue_size);
		u32 i;

		hw_queue_prepare(q, *p);
		CHECK(hw_policy_find((*p)->name) == *p);
		CHECK_EQ(hw_tunable_set(q, "no_such_tunable", 1), -2);
		for (i = 0; i < (*p)->nr_tunables; i++) {
			const struct hw_tunable *t = &(*p)->tunables[i];

			CHECK(t->min <= t->def && t->def <= t->max);
			CHECK(t->offset >= sizeof(struct hw_queue) &&
			      t->offset + sizeof(s64) <= (*p)->queue_size);
			CHECK_EQ(hw_tunable_get(q, t), t->def);
			CHECK_EQ(hw_tunable_set(q, t->name, t->min), 0);
			CHECK_EQ(hw_tunable_get(q, t), t->min);
			if (t->max < S64_MAX)
				CHECK_EQ(hw_tunable_set(q, t->name, t->max + 1), -34);
			if (t->min > S64_MIN)
				CHECK_EQ(hw_tunable_set(q, t->name, t->min - 1), -34);
			CHECK_EQ(hw_tunable_get(q, t), t->min);
		}
		free(q);
	}
}

struct noop_like {
	struct hw_request rq;
	struct list_head link;
};

/*
 * The newest of the requests that end at one place takes what follows, however many buckets there
 * are.
 */
static void test_rehash(void)
{
	static struct noop_like requests[100];
	static struct hw_request *buckets[1u << 8];
	struct hw_queue *q = calloc(1, hw_noop.queue_size);
	struct hw_merger m;
	struct hw_bio bio = { .sector = 108, .sectors = 8, .op = HW_WRITE };
	u32 i;

	CHECK(hw_noop.request_size <= sizeof(requests[0]));
	hw_queue_prepare(q, &hw_noop);
	hw_merge_init(&m, 256);
	CHECK_EQ(hw_start(q, 0), 0);
	for (i = 0; i < ARRAY_SIZE(requests); i++) {
		struct hw_request *rq = &requests[i].rq;

		rq->op = HW_WRITE;
		rq->sector = i % 50 ? 10000 + 100 * i : 100;
		rq->sectors = 8;
		hw_insert(q, rq, 0);
		hw_merge_inserted(&m, q, rq);
	}
	CHECK(hw_merge_is_crowded(&m));
	hw_merge_rehash(&m, buckets, 8);
	CHECK(!hw_merge_is_crowded(&m));
	CHECK(hw_merge_arriving(&m, q, &bio, 0) == &requests[50].rq);
	free(q);
}

int main(void)
{
	test_rehash();
	test_tree();
	test_fifo();
	test_tunables();
	return CHECK_DONE();
}
