// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A policy by itself: the caller is the host, and says what happens and when. Nothing is simulated
 * here. For checks of a policy against what a real kernel was seen to do.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/internal.h"
#include "sim/tables.h"

struct hwd_task {
	struct list_head link;
	struct hw_task task; /* the policy's, as long as it says: must be last */
};

struct hwd_group {
	struct list_head link;
	u32 number;	       /* 0 once it has ended */
	struct hw_group group; /* the policy's, as long as it says: must be last */
};

struct hwd {
	const struct hw_policy *policy;
	struct hw_queue *q;
	struct hw_request **requests; /* by id; NULL once completed or merged away */
	u64 room;
	bool started;
	/* ended ones too, until nothing refers to them */
	struct list_head tasks, groups;
};

struct hwd *hwd_new(const char *policy, uint64_t sectors, int rotational, uint32_t depth,
		    uint32_t nr_requests)
{
	const struct hw_policy *p = hw_policy_find(policy);
	struct hwd *d = p ? calloc(1, sizeof(*d)) : NULL;

	if (!d)
		return NULL;
	d->policy = p;
	d->q = calloc(1, p->queue_size);
	if (!d->q) {
		free(d);
		return NULL;
	}
	INIT_LIST_HEAD(&d->tasks);
	INIT_LIST_HEAD(&d->groups);
	hw_queue_prepare(d->q, p);
	d->q->dev.sectors = sectors;
	d->q->dev.rotational = rotational;
	d->q->dev.depth = depth;
	d->q->dev.nr_requests = nr_requests;
	return d;
}

void hwd_free(struct hwd *d)
{
	struct hwd_task *t, *next;
	struct hwd_group *g, *after;
	u64 i;

	if (!d)
		return;
	list_for_each_entry_safe(t, next, &d->tasks, link)
		free(t);
	list_for_each_entry_safe(g, after, &d->groups, link)
		free(g);
	for (i = 0; i < d->q->nr_inserted; i++)
		free(d->requests[i]);
	free(d->requests);
	sim_tables_free(d->q);
	free(d->q);
	free(d);
}

int hwd_set(struct hwd *d, const char *tunable, int64_t value)
{
	return d && tunable ? hw_tunable_set(d->q, tunable, value) : -EINVAL;
}

int hwd_set_table(struct hwd *d, const char *table, const int64_t *cells, uint32_t rows,
		  uint32_t columns)
{
	struct hw_table_error err;
	int ret;

	if (!d || !table || (!cells && rows))
		return -EINVAL;
	ret = sim_table_set(d->q, table, cells, rows, columns, &err);
	if (!ret && d->started)
		hw_tuned(d->q);
	return ret;
}

int hwd_start(struct hwd *d, uint64_t now)
{
	int ret;

	if (!d || d->started)
		return -EINVAL;
	ret = hw_start(d->q, now);
	d->started = !ret;
	return ret;
}

/* What was asked for is not there, or nothing is. */
static int absent(const struct hwd *d)
{
	return d ? -ENOENT : -EINVAL;
}

static struct hw_task *find_task(struct hwd *d, u32 number)
{
	struct hwd_task *t;

	list_for_each_entry(t, &d->tasks, link)
		if (t->task.id == number && !t->task.exited)
			return &t->task;
	return NULL;
}

static struct hwd_group *find_group(struct hwd *d, u32 number)
{
	struct hwd_group *g;

	list_for_each_entry(g, &d->groups, link)
		if (number && g->number == number)
			return g;
	return NULL;
}

static void reap_groups(struct hwd *d)
{
	while (!list_empty(&d->q->reap_groups)) {
		struct hw_group *group =
			list_first_entry(&d->q->reap_groups, struct hw_group, reap);
		struct hwd_group *g = container_of(group, struct hwd_group, group);

		list_del(&group->reap);
		list_del(&g->link);
		free(g);
	}
}

static void reap(struct hwd *d)
{
	reap_groups(d);
	while (!list_empty(&d->q->reap)) {
		struct hw_task *task = list_first_entry(&d->q->reap, struct hw_task, reap);
		struct hwd_task *t = container_of(task, struct hwd_task, task);

		list_del(&task->reap);
		list_del(&t->link);
		free(t);
	}
}

int hwd_task_start(struct hwd *d, uint32_t number, uint16_t ioprio, uint16_t share, uint64_t now)
{
	struct hwd_task *t;

	if (!d || !d->started)
		return -EINVAL;
	if (find_task(d, number))
		return -EEXIST;
	t = calloc(1, offsetof(struct hwd_task, task) + d->policy->task_size);
	if (!t)
		return -ENOMEM;
	t->task.id = number;
	t->task.ioprio = ioprio;
	t->task.share = share;
	list_add_tail(&t->link, &d->tasks);
	hw_task_start(d->q, &t->task, now);
	return 0;
}

int hwd_task_exit(struct hwd *d, uint32_t number, uint64_t now)
{
	struct hw_task *task = d ? find_task(d, number) : NULL;

	if (!task)
		return absent(d);
	hw_task_exit(d->q, task, now);
	reap(d);
	return 0;
}

int hwd_group_start(struct hwd *d, uint32_t number, uint32_t parent, uint32_t weight)
{
	struct hwd_group *g, *around;

	if (!d || !d->started || !number || !weight || weight > HW_GROUP_WEIGHT_MOST)
		return -EINVAL;
	if (!d->policy->group_size)
		return -ENOTSUP;
	if (find_group(d, number))
		return -EEXIST;
	around = find_group(d, parent);
	if (parent && !around)
		return -ENOENT;
	g = calloc(1, offsetof(struct hwd_group, group) + d->policy->group_size);
	if (!g)
		return -ENOMEM;
	g->number = number;
	g->group.parent = around ? &around->group : NULL;
	list_add_tail(&g->link, &d->groups);
	hw_group_start(d->q, &g->group, weight);
	return 0;
}

int hwd_group_weight(struct hwd *d, uint32_t number, uint32_t weight)
{
	struct hwd_group *g = d ? find_group(d, number) : NULL;

	if (!g)
		return absent(d);
	if (!weight || weight > HW_GROUP_WEIGHT_MOST)
		return -EINVAL;
	g->group.weight = weight;
	return 0;
}

int hwd_group_end(struct hwd *d, uint32_t number)
{
	struct hwd_group *g = d ? find_group(d, number) : NULL;

	if (!g)
		return absent(d);
	g->number = 0;
	hw_group_put(d->q, &g->group);
	reap(d);
	return 0;
}

static struct hw_request *request(const struct hwd *d, uint64_t id, enum hw_state state)
{
	struct hw_request *rq = d && id < d->q->nr_inserted ? d->requests[id] : NULL;

	return rq && rq->state == state ? rq : NULL;
}

/* Requests begin and end on the disk, and none but a flush is empty. */
static bool fits(uint64_t sector, uint64_t sectors, uint8_t op)
{
	return sectors <= U32_MAX && sector <= U64_MAX - sectors && (sectors || op == HW_OTHER);
}

static void forget(struct hwd *d, struct hw_request *rq)
{
	d->requests[rq->id] = NULL;
	free(rq);
	reap(d);
}

int64_t hwd_insert(struct hwd *d, const struct hwd_request *what, uint64_t now)
{
	struct hw_task *task = d && what ? find_task(d, what->task) : NULL;
	struct hwd_group *group = task ? find_group(d, what->group) : NULL;
	struct hw_request *rq;

	if (!d || !what)
		return -EINVAL;
	if (!task || (what->group && !group))
		return -ENOENT;
	if (what->op > HW_OTHER || !fits(what->sector, what->sectors, what->op))
		return -EINVAL;
	if (!SIM_TRY_GROW(&d->room, d->q->nr_inserted + 1, SIM_COLUMN(d->requests)))
		return -ENOMEM;
	rq = calloc(1, d->policy->request_size);
	if (!rq)
		return -ENOMEM;
	rq->sector = what->sector;
	rq->sectors = what->sectors;
	rq->op = what->op;
	rq->flags = what->flags;
	rq->ioprio = what->ioprio;
	rq->cpu = what->cpu;
	rq->task = task;
	rq->group = group ? &group->group : NULL;
	d->requests[d->q->nr_inserted] = rq;
	hw_insert(d->q, rq, now);
	return (int64_t)rq->id;
}

int64_t hwd_dispatch(struct hwd *d, uint64_t now)
{
	struct hw_request *rq = d && d->started ? hw_dispatch(d->q, now) : NULL;

	return rq ? (int64_t)rq->id : -1;
}

uint64_t hwd_wake_ns(const struct hwd *d)
{
	return d ? d->q->wake_ns : HW_NEVER;
}

int hwd_has_work(const struct hwd *d)
{
	return d && d->started && hw_has_work(d->q);
}

int hwd_issue(struct hwd *d, uint64_t id, uint64_t now)
{
	struct hw_request *rq = request(d, id, HW_DISPATCHED);

	if (!rq)
		return absent(d);
	rq->dispatch_ns = now;
	return 0;
}

int hwd_complete(struct hwd *d, uint64_t id, uint64_t now)
{
	struct hw_request *rq = request(d, id, HW_DISPATCHED);

	if (!rq)
		return absent(d);
	hw_complete(d->q, rq, now);
	forget(d, rq);
	return 0;
}

int hwd_requeue(struct hwd *d, uint64_t id, uint64_t now)
{
	struct hw_request *rq = request(d, id, HW_DISPATCHED);

	if (!rq)
		return absent(d);
	hw_requeue(d->q, rq, now);
	return 0;
}

int hwd_grow(struct hwd *d, uint64_t id, int front, uint32_t sectors, uint64_t now)
{
	struct hw_request *rq = request(d, id, HW_QUEUED);

	if (!rq)
		return absent(d);
	if ((front && rq->sector < sectors) ||
	    !fits(rq->sector - (front ? sectors : 0), (u64)rq->sectors + sectors, rq->op))
		return -EINVAL;
	rq->sectors += sectors;
	if (front)
		rq->sector -= sectors;
	hw_merged(d->q, rq, front ? HW_FRONT_MERGE : HW_BACK_MERGE, now);
	return 0;
}

int hwd_join(struct hwd *d, uint64_t keep, uint64_t gone)
{
	struct hw_request *k = request(d, keep, HW_QUEUED), *g = request(d, gone, HW_QUEUED);

	if (!k || !g)
		return absent(d);
	if (!d->policy->merged_requests || k == g || hw_end(k) != g->sector ||
	    !fits(k->sector, (u64)k->sectors + g->sectors, k->op))
		return -EINVAL;
	k->sectors += g->sectors;
	hw_merge_requests(d->q, k, g);
	forget(d, g);
	return 0;
}

static struct hw_bio bio_of(struct hwd *d, const struct hwd_request *what, uint64_t now)
{
	struct hwd_group *group = find_group(d, what->group);

	return (struct hw_bio){ .sector = what->sector,
				.sectors = what->sectors,
				.op = what->op,
				.flags = what->flags,
				.ioprio = what->ioprio,
				.cpu = what->cpu,
				.task = find_task(d, what->task),
				.group = group ? &group->group : NULL,
				.now_ns = now };
}

int64_t hwd_find_merge(struct hwd *d, const struct hwd_request *what, int *front)
{
	enum hw_merge how = HW_NO_MERGE;
	struct hw_request *rq;
	struct hw_bio bio;

	if (!d || !what || !front)
		return -EINVAL;
	bio = bio_of(d, what, 0);
	rq = d->started ? hw_find_merge(d->q, &bio, &how) : NULL;
	*front = how == HW_FRONT_MERGE;
	return rq ? (int64_t)rq->id : -1;
}

int hwd_allow_merge(struct hwd *d, uint64_t id, const struct hwd_request *what, uint64_t now)
{
	struct hw_request *rq = request(d, id, HW_QUEUED);
	struct hw_bio bio;

	if (!d || !what)
		return -EINVAL;
	bio = bio_of(d, what, now);
	if (!rq || !bio.task)
		return -ENOENT;
	return hw_allow_merge(d->q, rq, &bio);
}

uint32_t hwd_limit_depth(struct hwd *d, const struct hwd_request *what)
{
	struct hw_bio bio;

	if (!d || !what)
		return U32_MAX;
	bio = bio_of(d, what, 0);
	return d->started ? hw_limit_depth(d->q, &bio) : U32_MAX;
}

int hwd_stat(const struct hwd *d, const char *stat, int64_t *value)
{
	return d && d->started && stat && value ? hw_stat_get(d->q, stat, value) : -EINVAL;
}
