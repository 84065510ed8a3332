// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A sparse store of pages; see store.h. */
#include "disk/store.h"

#include <linux/blk-mq.h>
#include <linux/highmem.h>
#include <linux/mm.h>

void hwk_store_init(struct hwk_store *store)
{
	xa_init(&store->pages);
	atomic_long_set(&store->nr_pages, 0);
	rwlock_init(&store->lock);
}

void hwk_store_free(struct hwk_store *store)
{
	struct page *page;
	unsigned long i;

	xa_for_each(&store->pages, i, page)
		__free_page(page);
	xa_destroy(&store->pages);
}

static void read_piece(struct hwk_store *store, u64 at, void *to, u32 bytes)
{
	struct page *page = xa_load(&store->pages, at >> PAGE_SHIFT);

	if (page)
		memcpy(to, page_address(page) + offset_in_page(at), bytes);
	else
		memset(to, 0, bytes);
}

static int write_piece(struct hwk_store *store, u64 at, const void *from, u32 bytes)
{
	struct page *page = xa_load(&store->pages, at >> PAGE_SHIFT), *other;

	if (!page) {
		if (!memchr_inv(from, 0, bytes))
			return 0;
		page = alloc_page(GFP_NOWAIT | __GFP_ZERO | __GFP_NOWARN);
		if (!page)
			return -ENOMEM;
		other = xa_cmpxchg(&store->pages, at >> PAGE_SHIFT, NULL, page,
				   GFP_NOWAIT | __GFP_NOWARN);
		if (other) {
			__free_page(page);
			if (xa_is_err(other))
				return -ENOMEM;
			page = other;
		} else {
			atomic_long_inc(&store->nr_pages);
		}
	}
	memcpy(page_address(page) + offset_in_page(at), from, bytes);
	return 0;
}

static int transfer(struct hwk_store *store, struct request *rq)
{
	u64 at = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	struct req_iterator iter;
	struct bio_vec bv;

	rq_for_each_segment(bv, rq, iter) {
		u32 done = 0;

		while (done < bv.bv_len) {
			u32 bytes = min_t(u32, bv.bv_len - done, PAGE_SIZE - offset_in_page(at));
			void *data = kmap_local_page(bv.bv_page) + bv.bv_offset + done;
			int ret = 0;

			if (rq_data_dir(rq) == READ)
				read_piece(store, at, data, bytes);
			else
				ret = write_piece(store, at, data, bytes);
			kunmap_local(data);
			if (ret)
				return ret;
			at += bytes;
			done += bytes;
		}
	}
	return 0;
}

int hwk_store_transfer(struct hwk_store *store, struct request *rq)
{
	int ret;

	read_lock(&store->lock);
	ret = transfer(store, rq);
	read_unlock(&store->lock);
	return ret;
}

/* Within one page. */
static void zero_piece(struct hwk_store *store, u64 from, u64 to)
{
	struct page *page = from < to ? xa_load(&store->pages, from >> PAGE_SHIFT) : NULL;

	if (page)
		memset(page_address(page) + offset_in_page(from), 0, to - from);
}

void hwk_store_clear(struct hwk_store *store, struct request *rq)
{
	u64 from = (u64)blk_rq_pos(rq) << SECTOR_SHIFT, to = from + blk_rq_bytes(rq);
	unsigned long first = DIV_ROUND_UP_ULL(from, PAGE_SIZE), end = to >> PAGE_SHIFT, i;
	struct page *page;

	write_lock(&store->lock);
	if (first > end) {
		zero_piece(store, from, to);
	} else {
		zero_piece(store, from, (u64)first << PAGE_SHIFT);
		zero_piece(store, (u64)end << PAGE_SHIFT, to);
	}
	if (first < end) {
		xa_for_each_range(&store->pages, i, page, first, end - 1) {
			xa_erase(&store->pages, i);
			__free_page(page);
			atomic_long_dec(&store->nr_pages);
		}
	}
	write_unlock(&store->lock);
}
