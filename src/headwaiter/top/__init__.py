# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Show who waits for whom at a disk, now (docs/top.md)."""
