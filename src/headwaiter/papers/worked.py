# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a recording of a disk tells of operation, order, file size and record length, as a table of the study has them.

A disk sees requests, not files. It tells reads from writes, what goes on where the same thread's last request ended, and what is
read or written again within the recording. It does not tell whether a file was written before the recording began, nor, of random
I/O, how large its file is; and read-ahead and write-back make requests longer than a program's records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwaiter.base.errors import Problem
from headwaiter.base.figures import brief
from headwaiter.engine.constants import SECTOR_BYTES, Op
from headwaiter.papers.cells import KIB, ByTable, Cell
from headwaiter.traces import Trace

Array = np.ndarray[Any, Any]
AGAIN = 1.5
"""So many times as much was transferred as there are different sectors: it was done again."""


@dataclass(frozen=True)
class Worked:
    """Work done: one of these operations, on files of such a size (None: it cannot be told), in requests of such a size."""

    operations: Sequence[str]
    file_kib: float | None
    record_kib: float

    def cells(self, table: ByTable) -> list[Cell]:
        """All that it may be. Problem if the table does not cover it."""
        found = []
        for operation in self.operations:
            if self.file_kib is None:
                found += table.column(operation, self.record_kib)
            else:
                found.append(table.cell(operation, max(self.file_kib, self.record_kib), self.record_kib))
        return found

    def __str__(self) -> str:
        size = "files of an unknown size" if self.file_kib is None else f"files of about {brief(self.file_kib)} KiB"
        return f"{' or '.join(self.operations)}, requests of {brief(self.record_kib)} KiB, {size}"


def worked(trace: Trace) -> Worked:
    """Return what was done in the direction of most requests. Problem if nothing was read or written."""
    reads = trace.op == Op.READ
    direction = Op.READ if 2 * int(reads.sum()) >= len(trace) else Op.WRITE
    mine = trace.op == direction
    if not mine.any():
        raise Problem("nothing was read or written")
    begin, length = trace.sector[mine].astype(np.int64), trace.sectors[mine].astype(np.int64)
    group = trace.group[mine]
    record_kib = float(length.mean()) * SECTOR_BYTES / KIB
    name = "read" if direction == Op.READ else "write"
    if 2 * int(_goes_on(begin, length, group).sum()) < len(begin):
        return Worked((f"random {name}",), None, record_kib)
    stretches = _stretches(begin, length)
    again = int(length.sum()) > AGAIN * int(stretches.sum())
    operations = (f"re{name}",) if again else (name, f"re{name}")
    return Worked(operations, _middle(stretches) * SECTOR_BYTES / KIB, record_kib)


def _goes_on(begin: Array, length: Array, group: Array) -> Array:
    """Return whether a request begins where the last one of its thread of control ended."""
    order = np.argsort(group, kind="stable")
    before, this = order[:-1], order[1:]
    found = np.zeros(len(begin), bool)
    found[this] = (group[before] == group[this]) & (begin[before] + length[before] == begin[this])
    return found


def _stretches(begin: Array, length: Array) -> Array:
    """How long the stretches of the disk are of which each sector was transferred: as of files that were done as a whole."""
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate((begin + length)[order])
    first = np.flatnonzero(np.r_[True, begin[1:] > end[:-1]])
    last = np.r_[first[1:] - 1, len(begin) - 1]
    lengths: Array = end[last] - begin[first]
    return lengths


def _middle(stretches: Array) -> float:
    """The length of the stretch that has the sector in the middle of all."""
    inner = np.sort(stretches)
    return float(inner[np.searchsorted(np.cumsum(inner), inner.sum() / 2)])
