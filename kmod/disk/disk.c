// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * headwaiter_disk: a disk in memory that takes as long as a disk.
 *
 * Data live in a sparse store (store.c). When a request is done, the drive model of core says; the
 * same model, from the same profile, that the simulator runs.
 *
 * In configfs, under headwaiter_disk/NAME, where NAME becomes the disk's name:
 *  - profile (binary, write): what `headwaiter drives export` writes
 *  - depth: commands that the drive takes at once; 0 = the profile's own
 *  - power: 1 starts the disk, 0 takes it away
 *  - statistics: where its time went
 *
 * A drive whose model reports writes before they are on the medium has a volatile write cache for
 * the kernel too: a flush completes when the model has written what its cache held, a write with
 * FUA when it is on the medium. (Data are in the store at once; there is no power to fail.)
 * Discards give memory back and take what a command without data takes; write-zeroes give memory
 * back and take as long as writes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "api/compat.h"
#include "disk/store.h"

#include <linux/configfs.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "core/drive.h"

#define MAX_PROFILE_BYTES   SZ_1M
#define MAX_SECTORS	    2560 /* of one request, as the kernel allows disks by default */
#define MAX_DISCARD_SECTORS (SZ_256M >> SECTOR_SHIFT) /* so many pages are freed without a pause */
#define PHYSICAL_BYTES	    4096

struct emulated {
	struct config_group group;
	struct mutex setup; /* around everything up to `lock` */
	struct hw_profile *profile;
	size_t profile_bytes;
	u32 depth;
	struct gendisk *disk; /* NULL while it is off */
	struct blk_mq_tag_set tags;
	struct hwk_store store;

	spinlock_t lock; /* around calls of the model */
	struct hw_drive *drive;
	struct hrtimer timer;
	u64 now, timer_ns;
	u64 requests;
};

static struct emulated *emulated(struct config_item *item)
{
	return container_of(to_config_group(item), struct emulated, group);
}

/* ---- serving ---- */

static u64 advance_clock(struct emulated *e)
{
	e->now = max_t(u64, e->now, ktime_get_ns());
	return e->now;
}

static void arm_timer(struct emulated *e)
{
	u64 next = e->drive->model->next(e->drive);

	if (next >= e->timer_ns)
		return;
	e->timer_ns = next;
	hrtimer_start(&e->timer, ns_to_ktime(next), HRTIMER_MODE_ABS);
}

/* Move the data, and say what the model is asked for. */
static blk_status_t transfer(struct emulated *e, struct request *rq, struct hw_io *io)
{
	memset(io, 0, sizeof(*io));
	io->sector = blk_rq_pos(rq);
	io->sectors = blk_rq_sectors(rq);
	io->flags = (op_is_sync(rq->cmd_flags) ? HW_RQ_SYNC : 0) |
		    (rq->cmd_flags & REQ_FUA ? HW_IO_FUA : 0);
	io->host = rq;
	switch (req_op(rq)) {
	case REQ_OP_READ:
		io->op = HW_READ;
		return hwk_store_transfer(&e->store, rq) ? BLK_STS_RESOURCE : BLK_STS_OK;
	case REQ_OP_WRITE:
		io->op = HW_WRITE;
		return hwk_store_transfer(&e->store, rq) ? BLK_STS_RESOURCE : BLK_STS_OK;
	case REQ_OP_WRITE_ZEROES:
		io->op = HW_WRITE;
		hwk_store_clear(&e->store, rq);
		return BLK_STS_OK;
	case REQ_OP_DISCARD:
		io->op = HW_DISCARD;
		hwk_store_clear(&e->store, rq);
		return BLK_STS_OK;
	case REQ_OP_FLUSH:
		io->op = HW_OTHER;
		return BLK_STS_OK;
	default:
		return BLK_STS_NOTSUPP;
	}
}

static blk_status_t queue_request(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	struct emulated *e = hctx->queue->queuedata;
	struct request *rq = bd->rq;
	struct hw_io *io = blk_mq_rq_to_pdu(rq);
	blk_status_t status = transfer(e, rq, io);
	unsigned long flags;

	if (status)
		return status;
	blk_mq_start_request(rq);
	spin_lock_irqsave(&e->lock, flags);
	e->requests++;
	e->drive->model->submit(e->drive, io, advance_clock(e));
	arm_timer(e);
	spin_unlock_irqrestore(&e->lock, flags);
	return BLK_STS_OK;
}

static enum hrtimer_restart fire(struct hrtimer *timer)
{
	struct emulated *e = container_of(timer, struct emulated, timer);
	struct hw_io *io;
	unsigned long flags;
	LIST_HEAD(done);

	spin_lock_irqsave(&e->lock, flags);
	e->timer_ns = HW_NEVER;
	while ((io = e->drive->model->poll(e->drive, advance_clock(e))))
		list_add_tail(&io->link, &done);
	arm_timer(e);
	spin_unlock_irqrestore(&e->lock, flags);
	while (!list_empty(&done)) {
		io = list_first_entry(&done, struct hw_io, link);
		list_del(&io->link);
		blk_mq_complete_request(io->host);
	}
	return HRTIMER_NORESTART;
}

static void complete_request(struct request *rq)
{
	blk_mq_end_request(rq, BLK_STS_OK);
}

static const struct blk_mq_ops mq_ops = {
	.queue_rq = queue_request,
	.complete = complete_request,
};

static const struct block_device_operations disk_ops = {
	.owner = THIS_MODULE,
};

/* ---- power ---- */

static struct gendisk *alloc_gendisk(struct emulated *e)
{
	struct gendisk *disk;
#ifdef HWK_QUEUE_LIMITS
	struct queue_limits limits = {
		.logical_block_size = 512,
		.physical_block_size = PHYSICAL_BYTES,
		.max_hw_sectors = MAX_SECTORS,
		.max_hw_discard_sectors = MAX_DISCARD_SECTORS,
		.discard_granularity = PHYSICAL_BYTES,
		.max_write_zeroes_sectors = MAX_SECTORS,
#ifdef BLK_FEAT_ROTATIONAL
		.features = (e->drive->rotational ? BLK_FEAT_ROTATIONAL : 0) |
			    (e->drive->write_cache ? BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA : 0),
#endif
	};

	disk = blk_mq_alloc_disk(&e->tags, &limits, e);
	if (IS_ERR(disk))
		return disk;
#else
	disk = blk_mq_alloc_disk(&e->tags, e);
	if (IS_ERR(disk))
		return disk;
	blk_queue_logical_block_size(disk->queue, 512);
	blk_queue_physical_block_size(disk->queue, PHYSICAL_BYTES);
	blk_queue_max_hw_sectors(disk->queue, MAX_SECTORS);
	blk_queue_max_discard_sectors(disk->queue, MAX_DISCARD_SECTORS);
	disk->queue->limits.discard_granularity = PHYSICAL_BYTES;
	blk_queue_max_write_zeroes_sectors(disk->queue, MAX_SECTORS);
#endif
#ifndef BLK_FEAT_ROTATIONAL
	if (!e->drive->rotational)
		blk_queue_flag_set(QUEUE_FLAG_NONROT, disk->queue);
	blk_queue_write_cache(disk->queue, e->drive->write_cache, e->drive->write_cache);
#endif
	return disk;
}

static int profile_check(struct emulated *e)
{
	const char *name = config_item_name(&e->group.cg_item);
	struct hw_profile_error err = { .row = -1 };
	char row[32] = "", bound[48] = "";
	int ret;

	if (!e->profile) {
		pr_err("%s: no profile was written\n", name);
		return -ENODATA;
	}
	ret = hw_profile_check(e->profile, e->profile_bytes, &err);
	if (!ret)
		return 0;
	if (err.row >= 0)
		snprintf(row, sizeof(row), "[%lld]", err.row);
	if (err.scale > 1)
		snprintf(bound, sizeof(bound), " %lld/%u", err.bound, err.scale);
	else if (err.scale)
		snprintf(bound, sizeof(bound), " %lld", err.bound);
	pr_err("%s: profile: %s%s%s%s%s%s%s\n", name, err.key ?: "", row, err.column ? "." : "",
	       err.column ?: "", err.key ? ": " : "", err.what, bound);
	return ret;
}

static int power_on(struct emulated *e)
{
	struct gendisk *disk;
	int ret = profile_check(e);

	if (ret)
		return ret;
	e->drive = kvzalloc(hw_drive_size(e->profile, e->depth), GFP_KERNEL);
	if (!e->drive)
		return -ENOMEM;
	e->drive = hw_drive_create(e->drive, e->profile, e->depth);
	e->timer_ns = HW_NEVER;
	e->requests = 0;
	hwk_store_init(&e->store);

	memset(&e->tags, 0, sizeof(e->tags));
	e->tags.ops = &mq_ops;
	e->tags.nr_hw_queues = 1;
	e->tags.queue_depth = e->drive->depth;
	e->tags.numa_node = NUMA_NO_NODE;
	e->tags.cmd_size = sizeof(struct hw_io);
#ifdef HWK_SHOULD_MERGE
	e->tags.flags = BLK_MQ_F_SHOULD_MERGE;
#endif
	ret = blk_mq_alloc_tag_set(&e->tags);
	if (ret)
		goto free_drive;
	disk = alloc_gendisk(e);
	if (IS_ERR(disk)) {
		ret = PTR_ERR(disk);
		goto free_tags;
	}
	disk->fops = &disk_ops;
	disk->private_data = e;
	strscpy(disk->disk_name, config_item_name(&e->group.cg_item), sizeof(disk->disk_name));
	set_capacity(disk, e->drive->sectors);
	ret = add_disk(disk);
	if (ret)
		goto put;
	e->disk = disk;
	return 0;
put:
	put_disk(disk);
free_tags:
	blk_mq_free_tag_set(&e->tags);
free_drive:
	hwk_store_free(&e->store);
	kvfree(e->drive);
	e->drive = NULL;
	return ret;
}

static void power_off(struct emulated *e)
{
	if (!e->disk)
		return;
	del_gendisk(e->disk);
	put_disk(e->disk);
	e->disk = NULL;
	hrtimer_cancel(&e->timer);
	blk_mq_free_tag_set(&e->tags);
	hwk_store_free(&e->store);
	kvfree(e->drive);
	e->drive = NULL;
}

/* ---- configfs ---- */

static ssize_t drive_depth_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n", emulated(item)->depth);
}

static ssize_t drive_depth_store(struct config_item *item, const char *text, size_t count)
{
	struct emulated *e = emulated(item);
	ssize_t ret;
	u32 depth;

	ret = kstrtou32(text, 0, &depth);
	if (!ret && depth > BLK_MQ_MAX_DEPTH)
		ret = -ERANGE;
	if (ret) {
		pr_err("%s: depth: not a number from 0 to %d: %.*s\n", config_item_name(item),
		       BLK_MQ_MAX_DEPTH, (int)strcspn(text, "\n"), text);
		return ret;
	}
	mutex_lock(&e->setup);
	if (e->disk)
		ret = -EBUSY;
	else
		e->depth = depth;
	mutex_unlock(&e->setup);
	return ret ?: count;
}
CONFIGFS_ATTR(drive_, depth);

static ssize_t drive_power_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!emulated(item)->disk);
}

static ssize_t drive_power_store(struct config_item *item, const char *text, size_t count)
{
	struct emulated *e = emulated(item);
	ssize_t ret;
	bool on;

	ret = kstrtobool(text, &on);
	if (ret) {
		pr_err("%s: power: neither 0 nor 1: %.*s\n", config_item_name(item),
		       (int)strcspn(text, "\n"), text);
		return ret;
	}
	mutex_lock(&e->setup);
	if (!on)
		power_off(e);
	else if (!e->disk)
		ret = power_on(e);
	mutex_unlock(&e->setup);
	return ret ?: count;
}
CONFIGFS_ATTR(drive_, power);

/* A drive's figures have the same names in its statistics. */
#define FIGURE(name) { #name, offsetof(struct hw_drive_stats, name) }
static const struct {
	const char *name;
	size_t offset;
} figures[] = {
	FIGURE(busy_ns),     FIGURE(seek_ns),	   FIGURE(rotation_ns),	   FIGURE(transfer_ns),
	FIGURE(overhead_ns), FIGURE(seeks),	   FIGURE(seek_cylinders), FIGURE(cache_hits),
	FIGURE(media_reads), FIGURE(media_writes),
};

static ssize_t drive_statistics_show(struct config_item *item, char *page)
{
	struct emulated *e = emulated(item);
	struct hw_drive_stats s = {};
	u64 requests = 0, pages = 0;
	unsigned int i;
	ssize_t len;

	mutex_lock(&e->setup);
	if (e->drive) {
		pages = atomic_long_read(&e->store.nr_pages);
		spin_lock_irq(&e->lock);
		s = e->drive->stats;
		requests = e->requests;
		spin_unlock_irq(&e->lock);
	}
	mutex_unlock(&e->setup);
	len = sysfs_emit(page, "requests %llu\n", requests);
	for (i = 0; i < ARRAY_SIZE(figures); i++)
		len += sysfs_emit_at(page, len, "%s %llu\n", figures[i].name,
				     *(const u64 *)((const u8 *)&s + figures[i].offset));
	return len + sysfs_emit_at(page, len, "memory_bytes %llu\n", pages << PAGE_SHIFT);
}
CONFIGFS_ATTR_RO(drive_, statistics);

/*
 * Called when the writer closes the file, so that an error goes nowhere: the profile is checked at
 * power-on.
 */
static ssize_t drive_profile_write(struct config_item *item, const void *data, size_t bytes)
{
	struct emulated *e = emulated(item);
	struct hw_profile *copy = kvmalloc(bytes, GFP_KERNEL);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, bytes);
	mutex_lock(&e->setup);
	kvfree(e->profile);
	e->profile = copy;
	e->profile_bytes = bytes;
	mutex_unlock(&e->setup);
	return bytes;
}
CONFIGFS_BIN_ATTR_WO(drive_, profile, NULL, MAX_PROFILE_BYTES);

static struct configfs_attribute *attributes[] = {
	&drive_attr_depth,
	&drive_attr_power,
	&drive_attr_statistics,
	NULL,
};

static struct configfs_bin_attribute *bin_attributes[] = {
	&drive_attr_profile,
	NULL,
};

static void release_disk(struct config_item *item)
{
	struct emulated *e = emulated(item);

	kvfree(e->profile);
	kfree(e);
}

static struct configfs_item_operations item_ops = {
	.release = release_disk,
};

static const struct config_item_type item_type = {
	.ct_item_ops = &item_ops,
	.ct_attrs = attributes,
	.ct_bin_attrs = bin_attributes,
	.ct_owner = THIS_MODULE,
};

static struct config_group *make_disk(struct config_group *parent, const char *name)
{
	struct emulated *e;

	if (strlen(name) >= DISK_NAME_LEN)
		return ERR_PTR(-ENAMETOOLONG);
	e = kzalloc(sizeof(*e), GFP_KERNEL);
	if (!e)
		return ERR_PTR(-ENOMEM);
	mutex_init(&e->setup);
	spin_lock_init(&e->lock);
	hwk_timer_setup(&e->timer, fire);
	config_group_init_type_name(&e->group, name, &item_type);
	return &e->group;
}

static void drop_disk(struct config_group *parent, struct config_item *item)
{
	struct emulated *e = emulated(item);

	mutex_lock(&e->setup);
	power_off(e);
	mutex_unlock(&e->setup);
	config_item_put(item);
}

static struct configfs_group_operations group_ops = {
	.make_group = make_disk,
	.drop_item = drop_disk,
};

static const struct config_item_type group_type = {
	.ct_group_ops = &group_ops,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem subsystem = {
	.su_group.cg_item.ci_namebuf = "headwaiter_disk",
	.su_group.cg_item.ci_type = &group_type,
};

static int __init emulated_init(void)
{
	int ret = hwk_check_release();

	if (ret)
		return ret;
	config_group_init(&subsystem.su_group);
	mutex_init(&subsystem.su_mutex);
	return configfs_register_subsystem(&subsystem);
}

static void __exit emulated_exit(void)
{
	configfs_unregister_subsystem(&subsystem);
}

module_init(emulated_init);
module_exit(emulated_exit);

MODULE_DESCRIPTION("A disk in memory with the service times of a real one");
MODULE_AUTHOR("The headwaiter authors");
MODULE_LICENSE("Dual BSD/GPL");
