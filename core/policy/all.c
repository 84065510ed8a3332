// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The table of policies: a new one is a line here, a declaration in policies.h and a line in
 * meson.build.
 */
#include "core/policy/policies.h"

// clang-format off: one a line, where core/new-policy adds another
const struct hw_policy *const hw_policies[] = {
	&hw_noop,
	&hw_deadline,
	&hw_as,
	&hw_as_95,
	&hw_cas,
	&hw_was,
	&hw_was_online,
	HW_MODELS(&hw_none, &hw_mq_deadline, &hw_kyber)
	&hw_as_seek,
	&hw_as_share,
	&hw_cfq,
	&hw_cfq_slice,
	HW_MODELS(&hw_bfq)
	&hw_maitre,
	NULL,
};
// clang-format on
