# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The best tunables of a scheduler for a workload: searched on one part of it, held against the defaults on another."""
