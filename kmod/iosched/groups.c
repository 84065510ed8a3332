// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Control groups, for policies that share by weight: each blkg of a disk under such a policy is a
 * group of the policy's.
 *
 * A group's weight is in its file io.maitre.weight. Until somebody writes there, it follows io.weight,
 * which systemd writes: that belongs to iocost, says nothing when it changes, and is looked at every
 * now and then.
 *
 * Lock order: queue_lock, blkcg->lock, weights_lock, hwk_sched.lock.
 */
#include "iosched/requests.h"

#ifdef HWK_GROUPS

#include <linux/cgroup.h>
#include <linux/kernfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#define HWK_LOOK_EVERY HZ

/* A control group, on all disks. */
struct hwk_cpd {
	struct blkcg_policy_data cpd; /* first */
	u32 weight;
	bool set;		  /* in its own file */
	struct list_head devices; /* its struct hwk_pd */
};

/* A policy's group outlives its blkg for as long as the policy refers to it. */
struct hwk_group_mem {
	struct list_head all;
	u8 area[] __aligned(8); /* policy->group_size: struct hw_group first */
};

/* A control group on one disk. */
struct hwk_pd {
	struct blkg_policy_data pd; /* first */
	struct hwk_sched *sched;
	struct hwk_group_mem *mem;
	struct hw_group *group; /* under sched->lock; NULL: the root's, or it has gone */
	struct hwk_cpd *cpd;
	struct list_head same; /* control group */
};

static DEFINE_SPINLOCK(weights_lock);
static struct blkcg_policy groups_policy;
static bool registered;

static void look(struct work_struct *work);
static DECLARE_DELAYED_WORK(look_work, look);

static void *member(void *of, size_t offset)
{
	return (u8 *)of + offset;
}

static struct hwk_pd *pd_of(struct blkcg_gq *blkg)
{
	struct blkg_policy_data **all = member(blkg, HWK_OFFSET_BLKCG_GQ_PD);
	struct blkg_policy_data *pd = READ_ONCE(all[groups_policy.plid]);

	return pd ? container_of(pd, struct hwk_pd, pd) : NULL;
}

static struct blkcg_gq *around(struct blkcg_gq *blkg)
{
	return *(struct blkcg_gq **)member(blkg, HWK_OFFSET_BLKCG_GQ_PARENT);
}

static struct hwk_cpd *cpd_of(struct blkcg *blkcg)
{
	struct blkcg_policy_data **cpd = member(blkcg, HWK_OFFSET_BLKCG_CPD);

	return container_of(cpd[groups_policy.plid], struct hwk_cpd, cpd);
}

static struct blkcg *blkcg_of(struct cgroup_subsys_state *css)
{
	return (struct blkcg *)((u8 *)css - HWK_OFFSET_BLKCG_CSS);
}

/* Under sched->lock: the group that @bio is of. One that has gone leaves it to those around. */
struct hw_group *hwk_find_group(const struct bio *bio)
{
	struct blkcg_gq *blkg = bio ? bio->bi_blkg : NULL;

	for (; blkg; blkg = around(blkg)) {
		struct hwk_pd *pd = pd_of(blkg);

		if (pd && pd->group)
			return pd->group;
	}
	return NULL;
}

/* ---- a control group on a disk ---- */

static void free_reaped(struct hwk_sched *sched)
{
	while (!list_empty(&sched->q->reap_groups)) {
		struct hw_group *group =
			list_first_entry(&sched->q->reap_groups, struct hw_group, reap);
		struct hwk_group_mem *mem =
			container_of((u8(*)[])group, struct hwk_group_mem, area);

		list_del(&group->reap);
		list_del(&mem->all);
		kfree(mem);
	}
}

static struct blkg_policy_data *pd_make(struct request_queue *rq_queue, gfp_t gfp)
{
	struct hwk_sched *sched = hwk_sched_of(rq_queue);
	struct hwk_pd *pd = kzalloc(sizeof(*pd), gfp);

	if (!pd)
		return NULL;
	pd->sched = sched;
	INIT_LIST_HEAD(&pd->same);
	pd->mem = kzalloc(sizeof(*pd->mem) + sched->policy->group_size, gfp);
	if (pd->mem)
		return &pd->pd;
	kfree(pd);
	return NULL;
}

#ifdef HWK_GROUPS_GIVEN_QUEUE
static struct blkg_policy_data *pd_alloc(gfp_t gfp, struct request_queue *rq_queue,
					 struct blkcg *blkcg)
{
	return pd_make(rq_queue, gfp);
}
#else
static struct blkg_policy_data *pd_alloc(struct gendisk *disk, struct blkcg *blkcg, gfp_t gfp)
{
	return pd_make(disk->queue, gfp);
}
#endif

/* Those around it are there already. */
static void pd_init(struct blkg_policy_data *data)
{
	struct hwk_pd *pd = container_of(data, struct hwk_pd, pd), *parent;
	struct blkcg_gq *outer = around(data->blkg);
	struct hwk_sched *sched = pd->sched;
	struct hw_group *group = (struct hw_group *)pd->mem->area;
	unsigned long flags;

	if (!outer)
		return; /* the root */
	parent = pd_of(outer);
	pd->cpd = cpd_of(*(struct blkcg **)member(data->blkg, HWK_OFFSET_BLKCG_GQ_BLKCG));
	spin_lock_irqsave(&weights_lock, flags);
	list_add_tail(&pd->same, &pd->cpd->devices);
	spin_lock(&sched->lock);
	free_reaped(sched);
	group->parent = parent ? parent->group : NULL;
	hw_group_start(sched->q, group, pd->cpd->weight);
	list_add_tail(&pd->mem->all, &sched->all_groups);
	pd->mem = NULL;
	pd->group = group;
	WRITE_ONCE(sched->groups, sched->groups + 1);
	spin_unlock(&sched->lock);
	spin_unlock_irqrestore(&weights_lock, flags);
	mod_delayed_work(system_wq, &look_work, 0);
}

/* A wait for somebody of it ends when it would have ended anyway. */
static void pd_offline(struct blkg_policy_data *data)
{
	struct hwk_pd *pd = container_of(data, struct hwk_pd, pd);
	struct hwk_sched *sched = pd->sched;
	unsigned long flags;

	if (!pd->group)
		return;
	spin_lock_irqsave(&weights_lock, flags);
	list_del_init(&pd->same);
	spin_lock(&sched->lock);
	hwk_set_now(sched, ktime_get_ns());
	hw_group_put(sched->q, pd->group);
	pd->group = NULL;
	WRITE_ONCE(sched->groups, sched->groups - 1);
	free_reaped(sched);
	spin_unlock(&sched->lock);
	spin_unlock_irqrestore(&weights_lock, flags);
}

static void pd_free(struct blkg_policy_data *data)
{
	struct hwk_pd *pd = container_of(data, struct hwk_pd, pd);

	kfree(pd->mem);
	kfree(pd);
}

/* ---- weights ---- */

static struct blkcg_policy_data *cpd_alloc(gfp_t gfp)
{
	struct hwk_cpd *cpd = kzalloc(sizeof(*cpd), gfp);

	if (!cpd)
		return NULL;
	cpd->weight = HW_GROUP_WEIGHT;
	INIT_LIST_HEAD(&cpd->devices);
	return &cpd->cpd;
}

static void cpd_free(struct blkcg_policy_data *data)
{
	kfree(container_of(data, struct hwk_cpd, cpd));
}

static void set_weight(struct hwk_cpd *cpd, u32 weight)
{
	struct hwk_pd *pd;

	lockdep_assert_held(&weights_lock);
	cpd->weight = weight;
	list_for_each_entry(pd, &cpd->devices, same) {
		spin_lock(&pd->sched->lock);
		pd->group->weight = weight;
		spin_unlock(&pd->sched->lock);
	}
}

/* "default 200", or "200". */
static int parse_weight(char *text, u32 *weight)
{
	text = strim(text);
	if (!strncmp(text, "default", 7))
		text = skip_spaces(text + 7);
	if (kstrtou32(text, 10, weight))
		return -EINVAL;
	return *weight >= 1 && *weight <= HW_GROUP_WEIGHT_MOST ? 0 : -ERANGE;
}

static int weight_show(struct seq_file *file, void *unused)
{
	seq_printf(file, "default %u\n", READ_ONCE(cpd_of(blkcg_of(seq_css(file)))->weight));
	return 0;
}

static ssize_t weight_write(struct kernfs_open_file *of, char *text, size_t size, loff_t at)
{
	struct hwk_cpd *cpd = cpd_of(blkcg_of(of_css(of)));
	u32 weight;
	int ret = parse_weight(text, &weight);

	if (ret)
		return ret;
	spin_lock_irq(&weights_lock);
	cpd->set = true;
	set_weight(cpd, weight);
	spin_unlock_irq(&weights_lock);
	return size;
}

/* What io.weight says of the group, read as somebody would read the file; 0: there is none. */
static u32 io_weight(struct cgroup_subsys_state *css)
{
	struct kernfs_node *node = kernfs_find_and_get(css->cgroup->kn, "io.weight");
	char text[64];
	struct kernfs_open_file of = { .kn = node };
	struct seq_file file = { .buf = text, .size = sizeof(text) - 1, .private = &of };
	struct cftype *type;
	u32 weight = 0;

	if (!node)
		return 0;
	type = node->priv;
	if (type->seq_show && !type->seq_show(&file, NULL)) {
		text[file.count] = '\0';
		text[strcspn(text, "\n")] = '\0'; /* of single devices below */
		if (parse_weight(text, &weight))
			weight = 0;
	}
	kernfs_put(node);
	return weight;
}

/* The groups that are on a disk, which is what matters. */
static void look(struct work_struct *work)
{
	struct cgroup_subsys_state *css;
	bool any = false;

	rcu_read_lock();
	css_for_each_descendant_pre(css, blkcg_root_css) {
		struct hwk_cpd *cpd = cpd_of(blkcg_of(css));
		u32 weight;

		if (!css->parent || cpd->set || list_empty_careful(&cpd->devices) ||
		    !css_tryget_online(css))
			continue;
		rcu_read_unlock();
		any = true;
		weight = io_weight(css);
		spin_lock_irq(&weights_lock);
		if (weight && !cpd->set && weight != cpd->weight)
			set_weight(cpd, weight);
		spin_unlock_irq(&weights_lock);
		rcu_read_lock();
		css_put(css);
	}
	rcu_read_unlock();
	if (any)
		schedule_delayed_work(&look_work, HWK_LOOK_EVERY);
}

static struct cftype files[] = {
	{
		.name = "maitre.weight",
		.flags = CFTYPE_NOT_ON_ROOT,
		.seq_show = weight_show,
		.write = weight_write,
	},
	{} /* the end */
};

static struct blkcg_policy groups_policy = {
	.dfl_cftypes = files,
	.cpd_alloc_fn = cpd_alloc,
	.cpd_free_fn = cpd_free,
	.pd_alloc_fn = pd_alloc,
	.pd_init_fn = pd_init,
	.pd_offline_fn = pd_offline,
	.pd_free_fn = pd_free,
};

/* ---- a disk, the module ---- */

int hwk_groups_begin(struct hwk_sched *sched)
{
	if (!sched->policy->group_size || !registered || !sched->rq_queue->disk)
		return 0;
	return hwk_groups_activate(sched->rq_queue, &groups_policy);
}

void hwk_groups_end(struct hwk_sched *sched)
{
	struct hwk_group_mem *mem, *next;

	if (sched->policy->group_size && registered && sched->rq_queue->disk)
		hwk_groups_deactivate(sched->rq_queue, &groups_policy);
	list_for_each_entry_safe(mem, next, &sched->all_groups, all)
		kfree(mem);
	INIT_LIST_HEAD(&sched->all_groups);
}

/* The kernel has room for some policies; without it all tasks are equal. */
void hwk_groups_register(void)
{
	int ret = blkcg_policy_register(&groups_policy);

	registered = !ret;
	if (ret)
		pr_warn("no weights of control groups (%d)\n", ret);
}

void hwk_groups_unregister(void)
{
	if (!registered)
		return;
	cancel_delayed_work_sync(&look_work);
	blkcg_policy_unregister(&groups_policy);
}

#endif
