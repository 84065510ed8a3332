# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings of what is asked of disks: by tracefs, or by other recorders where that is denied (docs/record.md)."""
