# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Drives: profiles in TOML, what they are made from, and how well they hold against measured drives."""

from headwaiter.drives.profile import Profile, bundled, find_drive, load

__all__ = ["Profile", "bundled", "find_drive", "load"]
