# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A disk's queue: the disk, its settings, what was in force before, and what else sets them. It needs no library and no NumPy."""
