// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A module that does wrong what its parameter names, so that the debug kernel complains: does every
 * check work, and is its complaint noticed? Its insertion always fails, and undoes what it can.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

static char *what = "";
module_param(what, charp, 0);

static DEFINE_SPINLOCK(first);
static DEFINE_SPINLOCK(second);
static int __rcu *guarded;
static char *volatile lost;
static volatile int one = 1;

static void lock_order(void)
{
	spin_lock(&first);
	spin_lock(&second);
	spin_unlock(&second);
	spin_unlock(&first);
	spin_lock(&second);
	spin_lock(&first);
	spin_unlock(&first);
	spin_unlock(&second);
}

/* What an interrupt takes must not be taken with interrupts on. */
static enum hrtimer_restart in_interrupt_too(struct hrtimer *timer)
{
	spin_lock(&first);
	spin_unlock(&first);
	return HRTIMER_NORESTART;
}

static void lock_in_interrupt(void)
{
	struct hrtimer timer;

	hrtimer_init_on_stack(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer.function = in_interrupt_too;
	hrtimer_start(&timer, ns_to_ktime(NSEC_PER_MSEC), HRTIMER_MODE_REL);
	msleep(20);
	hrtimer_cancel(&timer);
	destroy_hrtimer_on_stack(&timer);
	spin_lock(&first);
	spin_unlock(&first);
}

static void sleep_with_lock(void)
{
	spin_lock(&first);
	might_sleep();
	spin_unlock(&first);
}

static void unguarded(void)
{
	(void)rcu_dereference(guarded);
}

static void processor(void)
{
	(void)smp_processor_id();
}

static void out_of_bounds(void)
{
	char *volatile area = kmalloc(40, GFP_KERNEL);

	if (area)
		(void)*(volatile char *)(area + 40);
	kfree(area);
}

static void use_after_free(void)
{
	char *volatile area = kmalloc(40, GFP_KERNEL);

	kfree(area);
	if (area)
		(void)*(volatile char *)area;
}

static void vmalloc_bounds(void)
{
	char *volatile area = vmalloc(5000);

	if (area)
		(void)*(volatile char *)(area + 5000);
	vfree(area);
}

static void shift(void)
{
	one = 1 << (one + 31);
	one = 1;
}

static void array(void)
{
	static volatile int rows[4];

	rows[one + 2] = rows[one + 3];
}

static void double_delete(void)
{
	LIST_HEAD(list);
	struct list_head entry;

	list_add(&entry, &list);
	list_del(&entry);
	list_del(&entry);
}

static void never(struct timer_list *timer)
{
}

static void free_armed_timer(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, never, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	kfree(timer); /* the check disarms it */
}

static void warn(void)
{
	WARN_ON(one);
}

static void hang(void)
{
	schedule_timeout_uninterruptible(8 * HZ);
}

static void leak(void)
{
	int i;

	for (i = 0; i < 16; i++)
		lost = kmalloc(1000, GFP_KERNEL);
	lost = NULL;
}

static const struct {
	const char *name;
	void (*wrong)(void);
} wrongs[] = {
	{ "unguarded", unguarded },
	{ "processor", processor },
	{ "sleep", sleep_with_lock },
	{ "warn", warn },
	{ "hang", hang },
	{ "lock-order", lock_order },
	{ "lock-in-interrupt", lock_in_interrupt },
	{ "shift", shift },
	{ "array", array },
	{ "double-delete", double_delete },
	{ "free-armed-timer", free_armed_timer },
	{ "out-of-bounds", out_of_bounds },
	{ "use-after-free", use_after_free },
	{ "vmalloc-bounds", vmalloc_bounds },
	{ "leak", leak },
};

static int __init provoke_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrongs); i++) {
		if (!strcmp(what, wrongs[i].name)) {
			wrongs[i].wrong();
			return -EAGAIN;
		}
	}
	return -EINVAL;
}
module_init(provoke_init);

MODULE_DESCRIPTION("Provokes the kernel's checks");
MODULE_AUTHOR("The headwaiter authors");
MODULE_LICENSE("Dual BSD/GPL");
