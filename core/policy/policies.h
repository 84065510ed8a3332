/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every policy, and what their tables of tunables have in common. */
#ifndef HW_POLICIES_H
#define HW_POLICIES_H

#include "core/elevator.h"

/* A row of a table of tunables for the s64 @field of @type. */
#define HW_TUNE(qtype, field, def_, min_, max_, unit_, help_) \
	{ .name = #field,                                     \
	  .type = HW_INT,                                     \
	  .offset = offsetof(qtype, field),                   \
	  .def = (def_),                                      \
	  .min = (min_),                                      \
	  .max = (max_),                                      \
	  .unit = (unit_),                                    \
	  .help = (help_) }
#define HW_TUNE_BOOL(qtype, field, def_, help_) \
	{ .name = #field,                       \
	  .type = HW_BOOL,                      \
	  .offset = offsetof(qtype, field),     \
	  .def = (def_),                        \
	  .min = 0,                             \
	  .max = 1,                             \
	  .unit = "",                           \
	  .help = (help_) }
#define HW_TUNE_ENUM(qtype, field, def_, choices_, help_) \
	{ .name = #field,                                 \
	  .type = HW_ENUM,                                \
	  .offset = offsetof(qtype, field),               \
	  .def = (def_),                                  \
	  .min = 0,                                       \
	  .max = ARRAY_SIZE(choices_) - 2,                \
	  .unit = "",                                     \
	  .help = (help_),                                \
	  .choices = (choices_) }

#define HW_INT_MAX 0x7fffffffll

/*
 * Policies whose source counts in jiffies count in ticks. The tunable is called tick_us everywhere;
 * HZ is derived from it. Field: s64 tick_us.
 */
#define HW_TUNE_TICK(qtype, def_)                      \
	HW_TUNE(qtype, tick_us, def_, 1, 100000, "us", \
		"length of the tick, this policy's unit of time")

/*
 * Policies that wait do so for the seek that it saves. Where nothing moves there is none to save,
 * and the wait is lost time: so the flag of the host's says, unless the tunable says to wait all
 * the same. Field: s64 wait_nonrot.
 */
#define HW_TUNE_WAIT_NONROT(qtype)          \
	HW_TUNE_BOOL(qtype, wait_nonrot, 0, \
		     "wait also on non-rotational devices, where no seek is saved")

static inline bool hw_may_wait(const struct hw_queue *q, s64 wait_nonrot)
{
	return q->dev.rotational || wait_nonrot;
}

extern const struct hw_policy hw_noop;
extern const struct hw_policy hw_deadline;
extern const struct hw_policy hw_as;
extern const struct hw_policy hw_as_95;
extern const struct hw_policy hw_cas;
extern const struct hw_policy hw_was;
extern const struct hw_policy hw_was_online;
extern const struct hw_policy hw_none;
extern const struct hw_policy hw_mq_deadline;
extern const struct hw_policy hw_kyber;
extern const struct hw_policy hw_as_seek;
extern const struct hw_policy hw_as_share;
extern const struct hw_policy hw_cfq;
extern const struct hw_policy hw_cfq_slice;
extern const struct hw_policy hw_bfq;
extern const struct hw_policy hw_maitre;

#endif
