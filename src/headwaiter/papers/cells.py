# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Throughput by operation, file size and record length under several schedulers, as iozone measures it; and the published table
of the study of today's schedulers (CS350, 2023).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.base.figures import brief

KIB = 1024
OPERATIONS = ("write", "rewrite", "read", "reread", "random read", "random write")
"""Those of the study, in the order of iozone's columns."""


@dataclass(frozen=True)
class Cell:
    """A cell of the table: operation, file size and record length in KiB.

    As in the study, a cell is for all files down to the size of the next smaller cell.
    """

    operation: str
    file_kib: int
    record_kib: int


@dataclass(frozen=True)
class ByTable:
    """rates: throughput, in any unit, by cell and scheduler. subject: what it was measured on, as `table` names it."""

    rates: Mapping[Cell, Mapping[str, float]]
    subject: str = ""

    def cell(self, operation: str, file_kib: float, record_kib: float) -> Cell:
        """Return the cell of the nearest record length, by ratio, whose files are that large. Problem if there is none."""
        column = self.column(operation, record_kib)
        if record_kib > file_kib:
            raise Problem(f"a record of {brief(record_kib, 6)} KiB is longer than a file of {brief(file_kib, 6)} KiB")
        if file_kib > column[-1].file_kib:
            largest = f"{brief(column[-1].file_kib, 6)} KiB with records of {brief(column[-1].record_kib, 6)} KiB"
            raise Problem(f"the table has files of up to {largest}, and this is one of {brief(file_kib, 6)} KiB")
        return next(cell for cell in column if file_kib <= cell.file_kib)

    def column(self, operation: str, record_kib: float) -> list[Cell]:
        """The cells of an operation and the nearest record length, the smallest files first. Problem as of cell()."""
        lengths = sorted({cell.record_kib for cell in self.rates if cell.operation == operation})
        if not lengths:
            known = ", ".join(dict.fromkeys(cell.operation for cell in self.rates))
            raise Problem(f"the table has no {operation} (it has {known})")
        if not lengths[0] <= record_kib <= lengths[-1]:
            raise Problem(
                f"the table has records of {lengths[0]} to {lengths[-1]} KiB, and this is one of {brief(record_kib, 6)} KiB"
            )
        length = min(lengths, key=lambda one: abs(math.log(one / record_kib)))
        cells = (cell for cell in self.rates if (cell.operation, cell.record_kib) == (operation, length))
        return sorted(cells, key=lambda cell: cell.file_kib)


STUDY = Path(__file__).parent / "study-2023.csv"
STUDY_SOURCE = "CS350 project, 2023: IOzone through the page cache of a PC with an NVMe SSD"


def study_table() -> ByTable:
    """The table of the study, as it was printed."""
    lines = (line for line in STUDY.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    rates = {}
    for row in csv.DictReader(lines):
        operation, record, size = (row.pop(key) for key in ("operation", "record_kib", "file_kib"))
        rates[Cell(operation, int(size), int(record))] = {name: float(rate) for name, rate in row.items()}
    return ByTable(rates)
