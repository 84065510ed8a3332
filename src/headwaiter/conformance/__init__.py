# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Are our versions of the kernel's schedulers the kernel's? Decision by decision, from recordings of the real ones."""
