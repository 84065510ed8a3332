# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A sweep: every cell that is not done is run, and its row is kept as soon as it is there."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwaiter.engine.policy_tables import Readers
from headwaiter.sweeps.design import SweepCell, cells_of
from headwaiter.sweeps.farm import Spreading, workers_of
from headwaiter.sweeps.parts import ParquetParts, check_dask
from headwaiter.sweeps.schema import SweepDocument, SweepFailure, SweepRow
from headwaiter.sweeps.sweepfile import SweepSpec, read_sweep
from headwaiter.sweeps.worker import CellBatch, CellsDone, failed, run_cells

if TYPE_CHECKING:
    import pandas as pd

FOLDERS = ("workload", "drive")
_ANOTHER = "sweep: give another folder, or --extend to add to it"
_MOST_REASONS = 20


@dataclass(frozen=True)
class Swept:
    """A sweep that is over."""

    folder: Path
    cells: Sequence[SweepCell]
    done: int
    failures: Mapping[str, int]
    """How many cells of the sweep failed, by reason."""
    workers: int
    reads: int
    lost: int

    @property
    def failed(self) -> int:
        """Return how many cells failed."""
        return sum(self.failures.values())

    def document(self) -> SweepDocument:
        """Return what `headwaiter sweep --json` prints."""
        return SweepDocument(
            results=str(self.folder),
            cells=len(self.cells),
            done=self.done,
            kept=len(self.cells) - self.done,
            failed=self.failed,
            failures=failures_of(self.failures),
            workers=self.workers,
            reads=self.reads,
            lost=self.lost,
        )

    def frame(self) -> pd.DataFrame:
        """The rows of this sweep, in the order of its cells."""
        found = results_of(self.folder).frame().set_index("key", drop=False)
        found.index.name = None
        ordered: pd.DataFrame = found.loc[[cell.key for cell in self.cells]].reset_index(drop=True)
        return ordered


def failures_of(counts: Mapping[str, int]) -> list[SweepFailure]:
    """The most frequent reasons first."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return [SweepFailure(error=error, cells=many) for error, many in ordered[:_MOST_REASONS]]


def results_of(folder: Path) -> ParquetParts:
    """A folder of a sweep's results."""
    return ParquetParts(folder, SweepRow, FOLDERS)


def sweep(
    given: str | Path | Mapping[str, Any],
    folder: Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    extend: bool = False,
    retry: bool = False,
    readers: Readers | None = None,
    began: Callable[[int, int], None] | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Swept:
    """Run the cells of a sweep file, or of a mapping of its form, that are not in the folder yet.

    workers, cluster: see workers_of(). extend: add to a folder of another sweep. retry: run cells again that failed.
    began(cells, of them to be run) comes once, progress("cells", so many of them) after each batch. Problem if something given is
    wrong; a cell that fails has a row that says why.
    """
    check_dask()
    spec = read_sweep(given, readers)
    cells = cells_of(spec)
    kept = results_of(folder)
    with kept.held(_identity(cells, spec), _ANOTHER, extend=extend):
        known = kept.keys()
        if retry:
            kept.forget(key for cell in cells if known.get(key := cell.key))
            known = {key: bad for key, bad in known.items() if not bad}
        todo = [cell for cell in cells if cell.key not in known]
        if began:
            began(len(cells), len(todo))
        count, reads, lost, many = 0, 0, 0, 0
        if todo:
            with workers_of(cluster, workers) as farm:
                work: Spreading[SweepCell, CellsDone] = Spreading(farm, run_cells, CellBatch, lambda cell: cell.group)
                for some, found in work.results(todo):
                    rows = [failed(cell, found) for cell in some] if isinstance(found, str) else found.rows
                    kept.add(rows)
                    count += len(rows)
                    reads += 0 if isinstance(found, str) else found.reads
                    if progress:
                        progress("cells", count)
                many, lost = farm.workers(), work.lost
        return Swept(folder, cells, count, _reasons(kept, cells), many, reads, lost)


def _identity(cells: Iterable[SweepCell], spec: SweepSpec) -> dict[str, Any]:
    """Return what a sweep is known again by: its cells, whatever the file looks like."""
    digest = hashlib.sha256(json.dumps(sorted(cell.key for cell in cells)).encode()).hexdigest()
    return {
        "sha256": digest,
        "workloads": [one.label for one in spec.workloads],
        "drives": [one.label for one in spec.drives],
        "schedulers": list(spec.schedulers),
    }


def _reasons(kept: ParquetParts, cells: Sequence[SweepCell]) -> Counter[str]:
    if not any(kept.keys().values()):
        return Counter()
    frame = kept.frame()
    mine = frame[frame["key"].isin([cell.key for cell in cells]) & frame["error"].notna()]
    return Counter(mine["error"])
