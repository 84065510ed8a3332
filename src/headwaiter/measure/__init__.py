# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What fio measures on this machine: what I/O costs its processors (docs/calibrate.md)."""
