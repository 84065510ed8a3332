// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which queue is served next: B-WF2Q+, weighted fair queueing over budgets.
 *
 * Source: Valente and Checconi, "High Throughput Disk Scheduling with Fair Bandwidth Distribution",
 * IEEE Transactions on Computers 59(9), 2010, on Bennett and Zhang's WF2Q+, and the behaviour of
 * Linux 6.12.
 *
 * Each class has a virtual time V that advances by service / (sum of weights). A queue that becomes
 * busy gets start = V (or where its last service ended, if that is later) and finish = start +
 * budget / weight. Of the queues with start <= V the one with the smallest finish is next. V jumps
 * ahead when no queue could be chosen otherwise.
 *
 * What surprises:
 *  - The next queue is chosen early and kept (b->cached_next): when a queue is put in service and
 *    whenever a queue enters or moves, not when the slot ends. A queue in service is in no tree.
 *  - A queue that runs empty before V has reached its finish stays in the idle tree, with its
 *    weight in the sum, until V has come by; at most one leaves per service.
 *  - All divisions round down, so V lags the finish of the only queue by a unit, and even a lone
 *    queue passes through the idle tree.
 */
#include "core/lib/heal.h"
#include "core/policy/bfq/internal.h"

#define SERVICE_SHIFT 22

/* Virtual time for @service sectors at @weight. */
u64 bfq_vspan(u64 service, u64 weight)
{
	return div64_u64(service << SERVICE_SHIFT, weight);
}

static bool later(u64 a, u64 b)
{
	return (s64)(a - b) > 0;
}

static struct bfq_vtree *vtree_of(struct bfq *b, const struct bfq_queue *bq)
{
	return &b->vtree[bq->class - 1];
}

static struct bfq_queue *queue_at(struct rb_node *n)
{
	return rb_entry_safe(n, struct bfq_queue, node);
}

static void insert_by_finish(struct rb_root *root, struct bfq_queue *bq)
{
	struct rb_node **link = &root->rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = later(queue_at(parent)->finish, bq->finish) ? &parent->rb_left :
								     &parent->rb_right;
	}
	rb_link_node(&bq->node, parent, link);
	rb_insert_color(&bq->node, root);
}

static void sum_up(struct rb_node *n)
{
	struct bfq_queue *bq = queue_at(n), *child;

	bq->min_start = bq->start;
	child = queue_at(n->rb_left);
	if (child && later(bq->min_start, child->min_start))
		bq->min_start = child->min_start;
	child = queue_at(n->rb_right);
	if (child && later(bq->min_start, child->min_start))
		bq->min_start = child->min_start;
}

static void active_insert(struct bfq *b, struct bfq_vtree *vt, struct bfq_queue *bq)
{
	insert_by_finish(&vt->active, bq);
	hw_heal(hw_heal_inserted(&bq->node), sum_up);
	bq->tree = BFQ_ACTIVE_TREE;
	list_add(&bq->active_link, &b->active);
}

static void active_remove(struct bfq_vtree *vt, struct bfq_queue *bq)
{
	struct rb_node *lowest = hw_heal_erased(&bq->node);

	rb_erase(&bq->node, &vt->active);
	hw_heal(lowest, sum_up);
	bq->tree = BFQ_NO_TREE;
	list_del_init(&bq->active_link);
}

static void idle_insert(struct bfq_vtree *vt, struct bfq_queue *bq)
{
	if (!vt->first_idle || later(vt->first_idle->finish, bq->finish))
		vt->first_idle = bq;
	if (!vt->last_idle || later(bq->finish, vt->last_idle->finish))
		vt->last_idle = bq;
	insert_by_finish(&vt->idle, bq);
	bq->tree = BFQ_IDLE_TREE;
}

static void idle_remove(struct bfq_vtree *vt, struct bfq_queue *bq)
{
	if (vt->first_idle == bq)
		vt->first_idle = queue_at(rb_next(&bq->node));
	if (vt->last_idle == bq)
		vt->last_idle = queue_at(rb_prev(&bq->node));
	rb_erase(&bq->node, &vt->idle);
	bq->tree = BFQ_NO_TREE;
}

static void uncount(struct bfq *b, struct bfq_vtree *vt, struct bfq_queue *bq)
{
	bq->counted = false;
	vt->weight_sum -= bq->weight;
	bfq_drop(b, bq);
}

static void forget_one_idle(struct bfq *b, struct bfq_vtree *vt)
{
	struct bfq_queue *first = vt->first_idle, *last = vt->last_idle;

	if (RB_EMPTY_ROOT(&vt->active) && last && !later(last->finish, vt->vtime))
		vt->vtime = last->finish;
	if (first && !later(first->finish, vt->vtime)) {
		idle_remove(vt, first);
		uncount(b, vt, first);
	}
}

/* b->weights[] tells whether the scenario is symmetric. Raised queues are not in it. */
static void weight_count(struct bfq *b, struct bfq_queue *bq)
{
	if (bq->weight_slot)
		return;
	bq->weight_slot = (u8)min_t(u32, bq->weight / 10, BFQ_NR_LEVELS);
	b->weights[bq->weight_slot]++;
}

void bfq_weight_uncount(struct bfq *b, struct bfq_queue *bq)
{
	if (!bq->weight_slot)
		return;
	b->weights[bq->weight_slot]--;
	bq->weight_slot = 0;
	bfq_drop(b, bq);
}

/*
 * A change of weight, class or raising takes effect here. The class stays while the queue may be in
 * a tree.
 */
void bfq_apply_prio(struct bfq *b, struct bfq_queue *bq, bool class_too)
{
	struct bfq_vtree *old = vtree_of(b, bq), *vt;
	u32 weight;

	if (!bq->prio_changed)
		return;
	old->weight_sum -= bq->weight;
	if (bq->new_weight != bq->own_weight) {
		bq->own_weight = bq->new_weight;
		bq->level = (u8)(BFQ_NR_LEVELS - bq->own_weight / 10);
	}
	if (class_too)
		bq->class = bq->new_class;
	if (bq->class == bq->new_class)
		bq->prio_changed = false;
	vt = vtree_of(b, bq);
	weight = bq->own_weight * bq->raise.coeff;
	if (weight != bq->weight) {
		bfq_weight_uncount(b, bq);
		bq->weight = weight;
		if (!bfq_raised(bq))
			weight_count(b, bq);
	}
	vt->weight_sum += bq->weight;
	if (vt != old)
		bq->start = vt->vtime;
}

void bfq_serve(struct bfq *b, struct bfq_queue *bq, s64 sectors)
{
	struct bfq_vtree *vt = vtree_of(b, bq);

	if (!bq->served_backlogged)
		bq->first_io = b->tick;
	if (bfq_raised(bq))
		bq->raise.service += (u64)sectors;
	bq->served_backlogged += (u64)sectors;
	bq->service += sectors;
	vt->vtime += bfq_vspan((u64)sectors, vt->weight_sum);
	forget_one_idle(b, vt);
}

/*
 * A slot of @ms is charged as if it had been served at the device's peak rate, a whole max budget
 * for the default timeout (the constant, not the tunable).
 */
void bfq_charge_time(struct bfq *b, struct bfq_queue *bq, s64 ms)
{
	s64 for_time =
		(s64)div64_u64((u64)(b->cap_budget * min(ms, b->charge_ms)), (u64)b->charge_ms);
	s64 total = max(for_time, bq->service);

	bq->budget = max(bq->budget, total);
	bfq_serve(b, bq, total - bq->service);
}

/*
 * The eligible queue with the smallest finish, as the kernel searches for it: down to the left
 * while something is eligible there, to the right only if nothing has been met on the way. So if
 * the only eligible queues on the left lie to the right of one that is not, an ancestor with a
 * larger finish is taken. That needs four queues in the tree, and happens with random readers.
 */
static struct bfq_queue *first_eligible(struct bfq_vtree *vt, u64 vtime)
{
	struct rb_node *n = vt->active.rb_node;
	struct bfq_queue *met = NULL, *left;

	while (n) {
		if (!later(queue_at(n)->start, vtime))
			met = queue_at(n);
		left = queue_at(n->rb_left);
		if (left && !later(left->min_start, vtime))
			n = n->rb_left;
		else if (met)
			break;
		else
			n = n->rb_right;
	}
	return met;
}

static struct bfq_queue *look_up(struct bfq *b, bool expiring)
{
	bool serving = b->in_service && !expiring;
	struct bfq_vtree *vt;
	struct bfq_queue *bq;
	int class = 0;
	u64 vtime;

	/* The idle class is not starved for ever. */
	if (bfq_past(b, b->idle_class_served, b->span.idle_class)) {
		if (!RB_EMPTY_ROOT(&b->vtree[BFQ_NR_CLASSES - 1].active))
			class = BFQ_NR_CLASSES - 1;
		b->idle_class_served = b->tick;
	}
	for (; class < BFQ_NR_CLASSES; class ++) {
		vt = &b->vtree[class];
		if (RB_EMPTY_ROOT(&vt->active))
			continue;
		vtime = queue_at(vt->active.rb_node)->min_start;
		if (!later(vtime, vt->vtime)) {
			vtime = vt->vtime;
		} else if (!serving) {
			/* While a queue is in service it is the eligible one, and V stays. */
			vt->vtime = vtime;
			forget_one_idle(b, vt);
		}
		bq = first_eligible(vt, vtime);
		if (bq)
			return bq;
	}
	return NULL;
}

/*
 * Choose anew; @changed, if any, has just entered or moved, which often settles it without a look-
 * up.
 */
static void update_next(struct bfq *b, struct bfq_queue *changed, bool expiring)
{
	struct bfq_queue *next = b->cached_next;

	if (changed && changed != next &&
	    (!next || (changed->class == next->class &&
		       !later(changed->start, vtree_of(b, changed)->vtime) &&
		       later(next->finish, changed->finish))))
		b->cached_next = changed;
	else
		b->cached_next = look_up(b, expiring);
}

static void enqueue(struct bfq *b, struct bfq_queue *bq, bool backshifted)
{
	struct bfq_vtree *vt;
	u64 lag;

	bfq_apply_prio(b, bq, true);
	vt = vtree_of(b, bq);
	bq->finish = bq->start + bfq_vspan((u64)bq->budget, bq->weight);
	/* Not so far back that such queues would shut out all others for long. */
	if (backshifted && later(vt->vtime, bq->finish)) {
		lag = div_u64(vt->vtime - bq->finish, bq->raise.coeff);
		bq->start += lag;
		bq->finish += lag;
	}
	active_insert(b, vt, bq);
}

/*
 * A queue that was not active gets requests. One that was waited for goes on where its service
 * ended.
 */
static void activate(struct bfq *b, struct bfq_queue *bq)
{
	struct bfq_vtree *vt = vtree_of(b, bq);
	bool backshifted = bq->non_blocking_wait && later(vt->vtime, bq->finish);
	u64 from = backshifted ? bq->finish : vt->vtime;

	if (bq->tree == BFQ_IDLE_TREE) {
		idle_remove(vt, bq);
		bq->start = later(from, bq->finish) ? from : bq->finish;
	} else {
		bq->start = from;
		vt->weight_sum += bq->weight;
		bq->counted = true;
	}
	enqueue(b, bq, backshifted);
}

/* The slot is over and requests are left, or the budget of a waiting queue has changed. */
void bfq_requeue(struct bfq *b, struct bfq_queue *bq, bool expiring)
{
	if (bq == b->in_service) {
		bq->finish = bq->start + bfq_vspan((u64)bq->service, bq->weight);
		bq->start = bq->finish;
	} else {
		active_remove(vtree_of(b, bq), bq);
	}
	enqueue(b, bq, false);
	update_next(b, bq, expiring);
}

static void deactivate(struct bfq *b, struct bfq_queue *bq, bool expiring)
{
	struct bfq_vtree *vt = vtree_of(b, bq);

	if (!bq->counted)
		return;
	bq->finish = bq->start + bfq_vspan((u64)bq->service, bq->weight);
	if (bq != b->in_service)
		bq->service = 0;
	if (bq->tree == BFQ_ACTIVE_TREE)
		active_remove(vt, bq);
	else if (bq->tree == BFQ_IDLE_TREE)
		idle_remove(vt, bq);
	if (later(bq->finish, vt->vtime))
		idle_insert(vt, bq);
	else
		uncount(b, vt, bq);
	if (b->cached_next == bq)
		update_next(b, NULL, expiring);
}

void bfq_mark_busy(struct bfq *b, struct bfq_queue *bq)
{
	activate(b, bq);
	update_next(b, bq, false);
	bq->non_blocking_wait = false;
	bq->busy = true;
	b->nr_busy[bq->class - 1]++;
	if (!bq->dispatched && !bfq_raised(bq))
		weight_count(b, bq);
	if (bfq_raised(bq))
		b->nr_busy_raised++;
	/* A waker's queues are tried from the latest busy one on. */
	if (bq->waker)
		list_move(&bq->woken_link, &bq->waker->woken);
}

void bfq_unmark_busy(struct bfq *b, struct bfq_queue *bq, bool expiring)
{
	bq->busy = false;
	b->nr_busy[bq->class - 1]--;
	if (bfq_raised(bq))
		b->nr_busy_raised--;
	deactivate(b, bq, expiring);
	if (!bq->dispatched)
		bfq_weight_uncount(b, bq);
}

/* The cached next queue leaves its tree to be put in service. */
struct bfq_queue *bfq_take_next(struct bfq *b)
{
	struct bfq_queue *bq = b->cached_next;

	if (!bfq_nr_busy(b))
		return NULL;
	b->in_service = bq;
	active_remove(vtree_of(b, bq), bq);
	update_next(b, NULL, false);
	return bq;
}
