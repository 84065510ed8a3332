/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a request was dispatched when it was: the rule of the policy that decided, in its own word.
 * For event logs; nothing is decided by it.
 */
#ifndef HW_REASON_H
#define HW_REASON_H

/* Each reason once: name in C, name in logs, meaning. */
// clang-format off: a table
#define HW_REASONS(X)                                                                       \
	X(HW_UNTOLD, "", "the policy gives no reason")                                      \
	X(HW_ARRIVAL, "arrival", "it came first")                                           \
	X(HW_FIRST, "first",                                                                \
	  "put before all others: by the host, given back by the device, or decided before") \
	X(HW_SEEK_ORDER, "seek-order", "it is next, or nearest, on the way of the head")    \
	X(HW_BATCH, "batch", "the batch, or the turn of its queue, goes on")                \
	X(HW_TURN, "turn", "it is the turn of its direction, task or queue")                \
	X(HW_EXPIRED, "expired", "its deadline is over")                                    \
	X(HW_AGED, "aged", "it has waited for so long that higher priorities do not count") \
	X(HW_STARVED, "starved", "writes have waited for enough batches of reads")          \
	X(HW_SLICE, "slice", "its queue has the device, and goes on")                       \
	X(HW_SLICE_OVER, "slice-over", "the time of the queue before is up")                \
	X(HW_BUDGET_OVER, "budget-over", "the budget of the queue before is used up")       \
	X(HW_QUEUE_EMPTY, "queue-empty", "the queue before has no more requests")           \
	X(HW_PREEMPTED, "preempted", "it, or its queue, goes before the one that had the device") \
	X(HW_ANTICIPATED, "anticipated", "the device was kept idle for it")                 \
	X(HW_WAIT_BROKEN, "wait-broken", "a request, or an exit, has ended a wait for another task") \
	X(HW_WAIT_OVER, "wait-over", "the device was kept idle for another task, in vain")  \
	X(HW_INJECTED, "injected", "served beside the queue that has the device")     \
	X(HW_DRAIN, "drain", "the host drains the queue")
// clang-format on

#define HW_REASON_ENUM(reason, name, help) reason,
enum hw_reason { HW_REASONS(HW_REASON_ENUM) };

#endif
