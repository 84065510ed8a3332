# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a worker does: it runs a batch of cells of one group, and keeps what it has read for the next batch.

It keeps one workload as it was read, one as it was fitted to a drive, and one as it is run: its memory is bounded by the largest.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import headwaiter
from headwaiter.base.errors import Problem
from headwaiter.engine.sim import Drive
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.drive_fit import AUTO, read_on_drive
from headwaiter.study.perturb import perturbed
from headwaiter.study.schema import Direction, Result
from headwaiter.study.trial import measure
from headwaiter.study.variants import Variant
from headwaiter.study.workload import Reading, Workload, read_recording
from headwaiter.sweeps.design import SweepCell, SweepGroup, content_sha256
from headwaiter.sweeps.rows import cause_text, check_version, rows_of
from headwaiter.sweeps.schema import SweepRow
from headwaiter.traces import Source, Trace

T = TypeVar("T")


@dataclass(frozen=True)
class CellBatch:
    """Cells of one group, and the version that they are to be run by."""

    cells: Sequence[SweepCell]
    version: str = field(default_factory=lambda: headwaiter.__version__)


@dataclass(frozen=True)
class CellsDone:
    """The outcome of a batch: a row for each cell, and how many workloads were read for it."""

    rows: list[SweepRow]
    reads: int


@dataclass
class _Slot:
    """The last thing that was made of its kind."""

    key: object = None
    value: Any = None

    def get(self, key: object, make: Callable[[], T]) -> T:
        """It, if it is of this key; else what is made now. The old one goes first, so that there are never two."""
        if self.key != key:
            self.key = self.value = None
            made = make()
            self.key, self.value = key, made
        kept: T = self.value
        return kept


class Kept:
    """A worker's state from one cell to the next."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reads = 0
        self._read, self._fitted, self._loaded = _Slot(), _Slot(), _Slot()

    def _clear(self, *slots: _Slot) -> None:
        for slot in slots:
            slot.key = slot.value = None

    def trace(self, group: SweepGroup, reading: Reading) -> Trace | None:
        """The trace of a group's workload; None if that is none."""
        key = (group.file.path, group.file.sha256, reading.group_gap_ms, reading.device, reading.streams)
        if self._read.key != key:
            self._clear(self._fitted, self._loaded)
        return self._read.get(key, lambda: self._trace(group, reading))

    def _trace(self, group: SweepGroup, reading: Reading) -> Trace | None:
        path = group.file.path
        if content_sha256(path) != group.file.sha256:
            raise Problem(f"{path}: it has changed since the sweep began")
        self.reads += 1
        return read_recording(path, reading, Source(path))

    def workload(self, group: SweepGroup, seed: int) -> tuple[Workload, Drive]:
        """A group's workload on its drive. Seeds matter to generated workloads alone."""
        reading = Reading(**dict(group.reading), seed=seed)  # type: ignore[arg-type]
        trace = self.trace(group, reading)
        key = (self._read.key, group.drive, group.reading, None if trace is not None else seed)
        if self._fitted.key != key:
            self._clear(self._loaded)
        drive = group.drive.model or AUTO
        return self._fitted.get(key, lambda: read_on_drive(group.file.path if trace is None else trace, drive, reading))

    def run(self, cell: SweepCell) -> SweepRow:
        """Run a cell: figures are those of `headwaiter compare`, of its one run, or of `runs` with small changes."""
        work, drive = self.workload(cell.group, cell.seed)
        conditions = RunConditions(**dict(cell.conditions), seed=cell.seed)  # type: ignore[arg-type]
        loaded = self._loaded.get((self._fitted.key, conditions), lambda: conditions.load(work, drive))
        ((variant, options),) = conditions.runs([cell.variant], drive, loaded.trace)
        load, options = perturbed(loaded.load, options, cell.seed)
        trial = measure(variant, drive, load, options, cell.group.runs, tasks=False)
        return row_of(cell, drive, loaded.replay, trial.result)


KEPT = Kept()
"""Kept by this process from one batch to the next."""


def run_cells(batch: CellBatch) -> CellsDone:
    """Run cells one after another; one that fails has a row that says why. Problem if this is another version."""
    check_version(batch.version, "the sweep is of")
    with KEPT.lock:
        before = KEPT.reads
        return CellsDone(rows_of(batch.cells, KEPT.run, failed), KEPT.reads - before)


def _about(cell: SweepCell) -> dict[str, Any]:
    return {
        "key": cell.key,
        "version": headwaiter.__version__,
        "workload": cell.group.file.label,
        "drive": cell.group.drive.label,
        "workload_sha256": cell.group.file.sha256,
        "scheduler": cell.variant.scheduler,
        "variant": cell.variant.name,
        "settings": json.dumps(_settings(cell.variant)),
        "conditions": json.dumps(cell.all_conditions),
        "seed": cell.seed,
        "runs": cell.group.runs,
    }


def _settings(variant: Variant) -> dict[str, int | str]:
    """The settings, by name; of choices the number, of tables how many rows they have."""
    return {
        name: value if isinstance(value, int | str) else f"{len(value)} rows" for name, value in sorted(variant.settings.items())
    }


def failed(cell: SweepCell, cause: str) -> SweepRow:
    """The row of a cell that failed."""
    model = cell.group.drive.model
    return SweepRow(**_about(cell), drive_model=model.name if model else None, error=cause_text(cause))


def row_of(cell: SweepCell, drive: Drive, replay: str | None, found: Result) -> SweepRow:
    """The row of a cell."""
    told, disk, host, waits, sync = found.range, found.disk, found.host, found.anticipation, found.sync
    progress = told.progress_mbps if told else None
    return SweepRow(
        **_about(cell),
        drive_model=drive.name,
        replay=replay,
        elapsed_s=found.elapsed_s,
        requests=found.requests,
        bytes=found.bytes,
        throughput_mbps=found.throughput_mbps,
        throughput_low_mbps=told.throughput_mbps.low if told else None,
        throughput_high_mbps=told.throughput_mbps.high if told else None,
        progress_mbps=found.progress_mbps,
        progress_low_mbps=progress.low if progress else None,
        progress_high_mbps=progress.high if progress else None,
        waited_s=found.waited_s,
        fairness_jain=found.fairness_jain,
        **_direction("read", found.read),
        **_direction("write", found.write),
        sync_calls=sync.calls if sync else None,
        sync_mean_ms=sync.lat_ms.mean if sync else None,
        sync_p99_ms=sync.lat_ms.p99 if sync else None,
        merges=found.merges,
        dispatched=found.dispatched,
        busy_s=disk.busy_s,
        idle_s=disk.idle_s,
        waiting_s=disk.waiting_s,
        seeks=disk.seeks,
        processor_percent=host.processor_percent if host else None,
        lock_percent=host.lock_percent if host else None,
        waits=waits.waits if waits else None,
        waits_met=waits.met if waits else None,
    )


def _direction(name: str, found: Direction | None) -> dict[str, Any]:
    if found is None:
        return {}
    latency = {f"{name}_{one}_ms": getattr(found.lat_ms, one) for one in ("mean", "p50", "p95", "p99", "max")}
    return {f"{name}_requests": found.requests, f"{name}_mbps": found.throughput_mbps, **latency}
