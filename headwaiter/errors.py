# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The one way in which headwaiter says that something given to it is wrong."""

from __future__ import annotations


class Problem(Exception):
    """Bad input: one line that names file, line and cause. The command line prints it and exits with status 2."""
