# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Scores and regrets: how much of the best compromise a scheduler gives.

A scheduler's score in a cell is the geometric mean, over what is contested, of its own figure by the best of any scheduler; its
regret is 1 - score / best score of a single scheduler. Who sets the best is the reference: all schedulers as they are, without
those whose tunables were changed. Regrets are of each seed; a cell's is their median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem, shown
from headwaiter.base.figures import brief
from headwaiter.base.nearest import did_you_mean
from headwaiter.engine.sim import Options
from headwaiter.regret.contested import Metric
from headwaiter.regret.measurements import LoadOnDrive
from headwaiter.regret.schema import RegretCell, RegretDocument, RegretFigure, RegretRow, RegretStanding
from headwaiter.study.results import processor_time
from headwaiter.study.variants import Variant

F64 = NDArray[np.float64]
CLOSE = 0.03
"""A regret up to this is none that matters."""


def ratios(values: F64, metrics: Sequence[Metric], reference: Sequence[int]) -> F64:
    """Own by best, at most the best's where the metric is capped; shape of values: (schedulers, seeds, metrics).

    Where no scheduler of the reference gets anywhere, all are alike: 1.
    """
    out = np.empty_like(values)
    for k, m in enumerate(metrics):
        # Nobody takes no time at all; whoever never ends has nothing.
        good = 1 / np.maximum(values[..., k], 1e-12) if m.low_is_good else values[..., k]
        best = good[list(reference)].max(axis=0)
        enough = m.cap * best
        counted = np.minimum(good, enough) if m.cap < 1 else good
        out[..., k] = np.divide(counted, enough, out=np.ones_like(good), where=enough > 0)
    return out


def regrets(cell: LoadOnDrive, reference: Sequence[int]) -> F64:
    """Shape (schedulers, seeds): 0 for the best compromise of the reference or a better one, 1 for one that gives nothing."""
    metrics = cell.contest.metrics
    score: F64 = np.prod(ratios(cell.values, metrics, reference), axis=2) ** (1 / len(metrics))
    best = score[list(reference)].max(axis=0)
    lost: F64 = 1 - np.divide(score, best, out=np.ones_like(score), where=best > 0)
    return lost.clip(min=0.0)


def reference_of(variants: Sequence[Variant], against: str | None = None) -> list[int]:
    """Return who sets the best: those named, with commas; else those with plain names; else all. Problem if one did not run."""
    known = [v.name for v in variants]
    if against is None:
        return [i for i, v in enumerate(variants) if v.name == v.scheduler] or list(range(len(variants)))
    for name in against.split(","):
        if name not in known:
            raise Problem(f"--against {shown(name)}: not among the schedulers judged{did_you_mean(name, known)}")
    return [known.index(name) for name in dict.fromkeys(against.split(","))]


def each(cells: Sequence[LoadOnDrive]) -> list[LoadOnDrive]:
    """Cells with a single figure each: one for each thing that is contested."""
    return [
        LoadOnDrive(replace(cell.contest, metrics=(m,)), cell.drive, cell.values[..., k : k + 1], m.text)
        for cell in cells for k, m in enumerate(cell.contest.metrics)
    ]  # fmt: skip


@dataclass(frozen=True)
class Standing:
    """A scheduler's standing over all cells. Regrets are shares, of medians over seeds; intervals are over seeds."""

    scheduler: int
    """Index into the schedulers judged."""
    worst: float
    worst_cell: int
    mean: float
    low: float
    high: float
    close: int
    """Cells within CLOSE of the best compromise."""


@dataclass(frozen=True)
class RegretTable:
    """All regrets: shape (schedulers, cells, seeds)."""

    variants: Sequence[Variant]
    cells: Sequence[LoadOnDrive]
    reference: Sequence[int]
    by_seed: F64

    @property
    def median(self) -> F64:
        """Shape (schedulers, cells)."""
        return np.asarray(np.median(self.by_seed, axis=2))

    def standings(self) -> list[Standing]:
        """A row for each scheduler, the least mean regret first."""
        rows = []
        for i, (median, by_seed) in enumerate(zip(self.median, self.by_seed, strict=True)):
            means = by_seed.mean(axis=0)
            at = int(median.argmax())
            close = int((median <= CLOSE).sum())
            rows.append(Standing(i, float(median[at]), at, float(median.mean()), float(means.min()), float(means.max()), close))
        return sorted(rows, key=lambda row: (row.mean, self.variants[row.scheduler].name))

    def why(self, scheduler: int, at: int) -> str:
        """Return what a scheduler has lost in a cell, and to whom: of the first seed whose regret is not below the median."""
        cell = self.cells[at]
        by_seed = self.by_seed[scheduler, at]
        seed = int(np.argmin(np.where(by_seed >= self.median[scheduler, at], by_seed, np.inf)))
        best = min(self.reference, key=lambda other: float(self.by_seed[other, at, seed]))
        parts = [
            f"{m.text}: {_figure(cell.values[scheduler, seed, k])}{unit} against {_figure(cell.values[best, seed, k])}{unit}"
            for k, m in enumerate(cell.contest.metrics)
            for unit in (f" {m.unit}" if m.unit else "",)
        ]
        return f"{'; '.join(parts)} under {self.variants[best].name}"

    def figures(self, scheduler: int, at: int) -> str:
        """A scheduler's figures in a cell, medians over seeds."""
        cell = self.cells[at]
        middle = np.median(cell.values[scheduler], axis=0)
        return "; ".join(f"{m.text}: {_figure(v)} {m.unit}".rstrip() for m, v in zip(cell.contest.metrics, middle, strict=True))

    def document(self, options: Options, notes: Sequence[str] = ()) -> RegretDocument:
        """All of it for programs; options as the cells were measured with."""
        return RegretDocument(
            seeds=self.by_seed.shape[2],
            seed=options.seed,
            reference=[self.variants[i].name for i in self.reference],
            processor=processor_time(options),
            notes=list(notes),
            results=[self._standing(row) for row in self.standings()],
            cells=[
                RegretCell(workload=cell.workload, drive=cell.drive, rows=[self._row(i, at) for i in range(len(self.variants))])
                for at, cell in enumerate(self.cells)
            ],
        )

    def _standing(self, row: Standing) -> RegretStanding:
        cell = self.cells[row.worst_cell]
        return RegretStanding(
            scheduler=self.variants[row.scheduler].name,
            mean_percent=100 * row.mean,
            low_percent=100 * row.low,
            high_percent=100 * row.high,
            worst_percent=100 * row.worst,
            worst_workload=cell.workload,
            worst_drive=cell.drive,
            why=self.why(row.scheduler, row.worst_cell),
            close=row.close,
        )

    def _row(self, scheduler: int, at: int) -> RegretRow:
        cell, by_seed = self.cells[at], self.by_seed[scheduler, at]
        middle = np.median(cell.values[scheduler], axis=0)
        return RegretRow(
            scheduler=self.variants[scheduler].name,
            regret_percent=100 * float(np.median(by_seed)),
            low_percent=100 * float(by_seed.min()),
            high_percent=100 * float(by_seed.max()),
            figures=[
                RegretFigure(contested=m.text, unit=m.unit, value=float(value) if np.isfinite(value) else None)
                for m, value in zip(cell.contest.metrics, middle, strict=True)
            ],
        )


def judge(cells: Sequence[LoadOnDrive], variants: Sequence[Variant], reference: Sequence[int]) -> RegretTable:
    """Every scheduler in every cell."""
    return RegretTable(variants, cells, reference, np.stack([regrets(cell, reference) for cell in cells], axis=1))


def _figure(value: float) -> str:
    return "never" if np.isinf(value) else brief(value)
