# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Scores and regrets: how much of the best compromise a scheduler gives.

A scheduler's score in a cell is the geometric mean, over what is contested, of its own figure by the best of any scheduler; its
regret is 1 - score / best score of a single scheduler. Who sets the best is the reference: all schedulers as they are, without
those whose tunables were changed. Regrets are of each seed; a cell's is their median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwaiter.regret.contested import Metric
from headwaiter.regret.matrix import Cell
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


def regrets(cell: Cell, reference: Sequence[int]) -> F64:
    """Shape (schedulers, seeds): 0 for the best compromise of the reference and whatever is better, 1 for one that gives nothing."""
    metrics = cell.contest.metrics
    score = np.prod(ratios(cell.values, metrics, reference), axis=2) ** (1 / len(metrics))
    return np.maximum(0.0, 1 - score / score[list(reference)].max(axis=0))


def reference_of(variants: Sequence[Variant], names: Sequence[str] = ()) -> list[int]:
    """Who sets the best: those named; else those without settings of their own; else all."""
    chosen = [i for i, v in enumerate(variants) if v.name in names] if names else []
    return chosen or [i for i, v in enumerate(variants) if not v.settings] or list(range(len(variants)))


@dataclass(frozen=True)
class Standing:
    """How a scheduler stands over all cells. Regrets are shares, of medians over seeds; intervals are over seeds."""

    name: str
    worst: float
    worst_cell: int
    mean: float
    low: float
    high: float
    close: int
    """Cells within CLOSE of the best compromise."""


@dataclass(frozen=True)
class Judged:
    """All regrets: shape (schedulers, cells, seeds)."""

    variants: Sequence[Variant]
    cells: Sequence[Cell]
    reference: Sequence[int]
    by_seed: F64

    @property
    def median(self) -> F64:
        """Shape (schedulers, cells)."""
        return np.asarray(np.median(self.by_seed, axis=2))

    def standings(self) -> list[Standing]:
        """A row for each scheduler, the least mean regret first."""
        rows = []
        for variant, median, by_seed in zip(self.variants, self.median, self.by_seed, strict=True):
            means = by_seed.mean(axis=0)
            at = int(median.argmax())
            close = int((median <= CLOSE).sum())
            rows.append(
                Standing(
                    variant.name, float(median[at]), at, float(median.mean()), float(means.min()), float(means.max()), close
                )
            )
        return sorted(rows, key=lambda row: (row.mean, row.name))

    def why(self, scheduler: int, at: int) -> str:
        """What a scheduler has lost in a cell, and to whom: of the first seed whose regret is not below the median."""
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


def _figure(value: float) -> str:
    return "never" if np.isinf(value) else f"{value:.3g}"


def judge(cells: Sequence[Cell], variants: Sequence[Variant], reference: Sequence[int]) -> Judged:
    """Every scheduler in every cell."""
    return Judged(variants, cells, reference, np.stack([regrets(cell, reference) for cell in cells], axis=1))
