# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The adaptive program of the study of today's schedulers (CS350, 2023): the scheduler that a table has for an operation, a file
size and a record length, into the queue of a disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwaiter.advice.advice import Target
from headwaiter.base.errors import Problem
from headwaiter.papers.cells import KIB, ByTable, Cell
from headwaiter.papers.schema import ChoiceRow, SelectDocument
from headwaiter.queue.apply import Applied, apply
from headwaiter.queue.schema import Written
from headwaiter.queue.settings import Settings, kept_requests
from headwaiter.queue.state import State

BY = "headwaiter select --apply"


@dataclass(frozen=True)
class FileOperation:
    """An operation on a file of a size, in records of a length."""

    operation: str
    file_bytes: int
    record_bytes: int


@dataclass(frozen=True)
class Selected:
    """The cell of a table, its schedulers by throughput as shares of the best's, and the one that is chosen."""

    asked: FileOperation
    cell: Cell
    over_kib: int
    """Files of the cell are larger than this."""
    of_best: dict[str, float]
    scheduler: str
    source: str

    def document(self, done: Sequence[Applied]) -> SelectDocument:
        """Return what `headwaiter select --json` prints."""
        return SelectDocument(
            operation=self.asked.operation,
            file_bytes=self.asked.file_bytes,
            record_bytes=self.asked.record_bytes,
            source=self.source,
            cell_over_bytes=self.over_kib * KIB,
            cell_file_bytes=self.cell.file_kib * KIB,
            cell_record_bytes=self.cell.record_kib * KIB,
            scheduler=self.scheduler,
            results=[ChoiceRow(scheduler=name, of_best=share) for name, share in self.of_best.items()],
            changes=[Written(device=one.device.name, file=c.file, old=c.old, new=c.new) for one in done for c in one.changes],
            in_force={one.device.name: one.after.scheduler for one in done} or None,
        )


def select(table: ByTable, asked: FileOperation, source: str, target: Target | None = None) -> Selected:
    """Return what the table has; for a disk, the best that its kernel has. Problem if there is nothing."""
    cell = table.cell(asked.operation, asked.file_bytes / KIB, asked.record_bytes / KIB)
    smaller = [one.file_kib for one in table.column(asked.operation, cell.record_kib) if one.file_kib < cell.file_kib]
    rates = table.rates[cell]
    best = max(rates.values())
    of_best = {name: rates[name] / best if best else 1.0 for name in sorted(rates, key=lambda name: -rates[name])}
    there = [name for name in of_best if target is None or name in (*target.offered, *target.loadable)]
    if not there:
        assert target
        raise Problem(f"{target.device.name}: the kernel has none of the table's schedulers ({', '.join(of_best)})")
    return Selected(asked, cell, max(smaller, default=0), of_best, there[0], source)


def put(found: Selected, target: Target, state: State) -> list[Applied]:
    """In force on all disks of a device, the former settings saved. Problem if the kernel refuses it; all is as before then."""
    wanted = Settings(found.scheduler, kept_requests(target.settings[0], found.scheduler))
    return apply(target.legs, wanted, state, BY)
