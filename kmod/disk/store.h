/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an emulated disk holds: pages by number; a page that was never written, or only with zeros,
 * costs nothing.
 */
#ifndef HWK_DISK_STORE_H
#define HWK_DISK_STORE_H

#include <linux/atomic.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct request;

struct hwk_store {
	struct xarray pages;
	atomic_long_t nr_pages;
	rwlock_t lock; /* for reading: pages stay while their data are moved */
};

void hwk_store_init(struct hwk_store *store);
void hwk_store_free(struct hwk_store *store);
/*
 * Move a read's or write's data; does not sleep. 0, or -ENOMEM with a write done in part, which may
 * be repeated.
 */
int hwk_store_transfer(struct hwk_store *store, struct request *rq);
/*
 * A request's range reads as zeros from now on, and the pages within it are given back; does not
 * sleep.
 */
void hwk_store_clear(struct hwk_store *store, struct request *rq);

#endif
