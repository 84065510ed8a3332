# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The disks of a running machine: recorded, described, put under a scheduler. What it acts on is always named by the user."""
