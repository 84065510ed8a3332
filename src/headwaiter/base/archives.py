# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is in an archive of `headwaiter record`, for those who write it and those who read it.

An archive (tar, packed by zstd) holds, in this order: `headwaiter.json`, how the recording began; the recorder's own files
(tracefs: `events/SYSTEM/NAME`, the events' formats, and `cpuN/NUMBER`, the kernel's pages, each without its unused end);
`end.json`, how it ended, which a recorder that was killed has not written.
"""

from __future__ import annotations

VERSION = "recording-1"
BEGIN, END = "headwaiter.json", "end.json"
TRACEFS, BLKTRACE, BPFTRACE = RECORDERS = ("tracefs", "blktrace", "bpftrace")

PAGE = 4096
PAGE_HEADER = 16
COMMIT_MASK = 0xFFFFF
MISSED, MISSED_STORED = 1 << 31, 1 << 30
"""Bits of a page's commit: events were lost before it; their number stands behind its data."""


def used_bytes(commit: int) -> int:
    """How much of a page holds something, by its commit: its header, its events, and the number of those lost before it."""
    return PAGE_HEADER + (commit & COMMIT_MASK) + (8 if commit & MISSED_STORED else 0)
