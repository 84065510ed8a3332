// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The write-back cache: dirty ranges, and their way to the medium.
 *
 * Dirty ranges lie in a tree by LBN; what touches is joined. The drive empties it when it has been
 * idle for a while, when it is nearly full, or when somebody waits for room or for a flush. Each
 * time the range with the shortest positioning time among those next to the arm is written, up to a
 * few hundred KiB of it, so that a read need not wait for long.
 */
#include "core/drive/disk/internal.h"

#define NEAR  8	  /* ranges tried on either side of the arm */
#define CHUNK 512 /* sectors written at a time */

static struct disk_extent *extent(struct rb_node *n)
{
	return n ? container_of(n, struct disk_extent, node) : NULL;
}

/* The first range that ends behind lbn, or touches it if `touching`. */
static struct disk_extent *first_behind(const struct disk *d, u64 lbn, bool touching)
{
	struct rb_node *n = d->dirty.rb_node;
	struct disk_extent *found = NULL;

	while (n) {
		struct disk_extent *e = extent(n);

		if (e->end > lbn || (touching && e->end == lbn)) {
			found = e;
			n = n->rb_left;
		} else {
			n = n->rb_right;
		}
	}
	return found;
}

static void place(struct disk *d, struct disk_extent *e)
{
	struct disk_place at;

	disk_locate(&d->layout, e->lbn, &at);
	e->cyl = at.cyl;
	e->head = at.head;
	e->target = disk_target(&d->layout, &d->mech, at.zone, at.angle);
}

static void add(struct disk *d, struct disk_extent *e)
{
	struct rb_node **link = &d->dirty.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = e->lbn < extent(parent)->lbn ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&e->node, parent, link);
	rb_insert_color(&e->node, &d->dirty);
	d->dirty_sectors += e->end - e->lbn;
	d->nr_extents++;
	place(d, e);
}

static void drop(struct disk *d, struct disk_extent *e)
{
	rb_erase(&e->node, &d->dirty);
	d->dirty_sectors -= e->end - e->lbn;
	d->nr_extents--;
	list_add(&e->link, &d->unused);
}

/* Take a write into the cache if there is room for it. */
bool disk_back_accept(struct disk *d, u64 lbn, u64 end)
{
	struct disk_extent *e = first_behind(d, lbn, true);

	if (d->dirty_sectors + (end - lbn) > d->cfg.back_limit)
		return false;
	if (!(e && e->lbn <= end) && list_empty(&d->unused))
		return false;
	while (e && e->lbn <= end) {
		struct disk_extent *next = extent(rb_next(&e->node));

		lbn = min(lbn, e->lbn);
		end = max(end, e->end);
		drop(d, e);
		e = next;
	}
	e = list_first_entry(&d->unused, struct disk_extent, link);
	list_del(&e->link);
	e->lbn = lbn;
	e->end = end;
	add(d, e);
	return true;
}

bool disk_back_holds(const struct disk *d, u64 lbn, u64 end)
{
	const struct disk_extent *e = first_behind(d, lbn, false);

	return e && e->lbn <= lbn && e->end >= end;
}

/* lbn..end is going to the medium by another way: it is no longer dirty. */
void disk_back_drop(struct disk *d, u64 lbn, u64 end)
{
	struct disk_extent *e = first_behind(d, lbn, false);

	while (e && e->lbn < end) {
		struct disk_extent *next = extent(rb_next(&e->node));
		u64 tail = e->end, head = e->lbn;

		if (head < lbn && tail > end)
			return; /* in the middle: writing it once more does no harm */
		drop(d, e);
		if (head < lbn || tail > end) {
			e = list_first_entry(&d->unused, struct disk_extent, link);
			list_del(&e->link);
			e->lbn = head < lbn ? head : end;
			e->end = head < lbn ? lbn : tail;
			add(d, e);
		}
		e = next;
	}
}

static struct disk_extent *choose(struct disk *d, u64 t)
{
	struct disk_extent *up = first_behind(d, d->head_lbn, false), *down, *best = NULL;
	u64 least = U64_MAX, phase = disk_phase(&d->mech, t);
	u32 i;

	down = up ? extent(rb_prev(&up->node)) : extent(rb_last(&d->dirty));
	for (i = 0; i < 2 * NEAR && (up || down); i++) {
		struct disk_extent *e = (i & 1 && down) || !up ? down : up;
		u64 c = disk_positioning(&d->mech, phase, e->cyl, e->head, e->target, true);

		if (c < least) {
			least = c;
			best = e;
		}
		if (e == up)
			up = extent(rb_next(&up->node));
		else
			down = extent(rb_prev(&down->node));
	}
	return best;
}

/*
 * Write some of the cache, from t on; there is something in it. Returns when the medium is free
 * again.
 */
u64 disk_back_destage(struct disk *d, u64 t)
{
	struct disk_piece *p = &d->run.piece;
	struct disk_extent *e;
	u64 lbn, end, count;
	u32 cyl;

	t += disk_stop_ahead(d, t);
	cyl = d->mech.cyl;
	e = choose(d, t);
	lbn = e->lbn;
	end = min(e->end, lbn + CHUNK);
	disk_piece_go(d, p, lbn, t, true, 0);
	disk_count_seek(d, cyl);
	for (;;) {
		d->drive.stats.seek_ns += p->arrive_ns - p->depart_ns;
		d->drive.stats.rotation_ns += p->start_ns - p->arrive_ns;
		count = min_t(u64, p->count, end - p->lbn);
		t = p->start_ns + disk_sectors_ns(p->sector_fp, count);
		d->drive.stats.transfer_ns += t - p->start_ns;
		if (p->lbn + count >= end)
			break;
		disk_piece_go(d, p, p->lbn + count, t, true, 0);
	}
	d->drive.stats.media_writes++;
	d->dirty_sectors -= end - lbn;
	e->lbn = end; /* keeps its place in the tree */
	if (e->lbn == e->end)
		drop(d, e);
	else
		place(d, e);
	d->head_lbn = end;
	return t;
}
