# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The published experiments: measured anew, beside what was printed, with a verdict on each claim (docs/reproduction.md)."""
