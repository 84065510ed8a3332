# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is made of runs: comparisons, ranges, figures; and what runs are made of, loads."""
