# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Many machines' recordings: what each is advised, which classes they fall into, and what one setting for all would cost."""
