# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Lay out the files of a job file on the drive.

Devices (/dev/… but /dev/shm/…) are the drive itself: whatever they are called, they are one. Files lie one after
another in the order in which they appear, each max(its size, min(C/n, C/64)) bytes after the one before, for n files on
a drive of C bytes: far enough apart that going from one to another is a real seek, near enough for like transfer rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PAGE = 4096
DEVICE = "/dev/"


def is_device(name: str) -> bool:
    """Does this filename mean the drive?"""
    return name.startswith(DEVICE) and not name.startswith("/dev/shm/")


def split_filenames(value: str) -> list[str]:
    r"""Several names separated by ':' ('\:' is a colon within one)."""
    parts = value.replace("\\:", "\0").split(":")
    return [p.replace("\0", ":").strip() for p in parts if p.strip()]


@dataclass(frozen=True)
class Region:
    """A job's part of a file: I/O goes from `offset` for `span` bytes; `size` is the file's."""

    file: str
    offset: int
    span: int
    size: int


def lay_out(regions: Sequence[Region], capacity: int) -> dict[str, int]:
    """First byte of each file on a drive of `capacity` bytes. Whether they fit is the caller's to see."""
    sizes: dict[str, int] = {}
    for region in regions:
        if not is_device(region.file):
            sizes[region.file] = max(sizes.get(region.file, 0), region.size)
    bases: dict[str, int] = {}
    at = 0
    for name, size in sizes.items():
        bases[name] = at
        pages = max(-(-size // PAGE), min(capacity // len(sizes), capacity // 64) // PAGE)
        at += pages * PAGE
    return bases
