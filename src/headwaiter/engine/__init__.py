# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What talks to libheadwaiter: its declarations, its policies, a run, a policy driven call by call."""
