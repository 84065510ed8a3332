# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How sure it is that one scheduler is ahead of another: intervals of ratios, and what may be said of them.

A recording is one sample of what a load does. Its whole run under each scheduler is compared I/O by I/O: the ratio of the sums of
a figure, with an interval from a circular block bootstrap over cells of consecutive I/Os (waits.py), simultaneous over all
schedulers. Pieces replayed one by one would mislead: each begins and ends with idle schedulers and an empty queue.
Where there is no sample (generated load has as many I/Os as one likes), the runs with small changes of the load are the sample:
the lowest and the highest of n + 1 paired ratios hold the median one with a probability of 1 - 2^-n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwaiter.study.schema import Judgement

F64 = NDArray[np.float64]
RESAMPLES = 999
LEVEL = 0.95
FEWEST_CELLS = 12
"""Fewer cells are no sample."""
LEAST_SHARE = 0.01
"""A share of the whole sum. No resample is taken for less, which cells that tell of paces (waits.py) could make it."""
FEW_BLOCKS = 3.0
"""Intervals of n blocks are wider by this by n, which makes them hold as often as they say (tests/test_answer.py)."""
WINS = 0.9
"""Small changes of the load must leave so large a share of the verdict."""


@dataclass(frozen=True)
class Interval:
    """An interval of the logarithm of a ratio, above 0 where the second is better than the first; unknown ends are infinite."""

    point: float
    low: float
    high: float

    def judge(self, margin: float) -> Judgement:
        """Against a margin, such as 0.05: ratios from 1 / 1.05 to 1.05 are equivalent."""
        edge = float(np.log1p(margin))
        if self.low > edge:
            return "better"
        if self.high < -edge:
            return "worse"
        if -edge <= self.low and self.high <= edge:
            return "equivalent"
        return "cannot tell"

    def longer(self, margin: float) -> float:
        """Return by how much longer a sample would tell, were the point right: widths go with the root of the length."""
        edge = float(np.log1p(margin))
        distance = abs(abs(self.point) - edge)
        half = max(self.point - self.low, self.high - self.point)
        return (half / distance) ** 2 if distance > 0 else float("inf")


def bootstrap(costs: F64, base: int, seed: int, windows: int = 0) -> list[Interval]:
    """Hold each row against row `base`: all intervals hold at once with a probability of LEVEL.

    costs: shape (rows, cells), less is better. An interval is infinite where there are too few cells, or nothing to compare.
    windows: the cells are of so many pieces of a longer recording (windows.py), and what is in one belongs together.
    """
    cells = costs.shape[1]
    totals = costs.sum(axis=1)
    if cells < FEWEST_CELLS or (totals <= 0).any():
        return [_unknown(totals[base], total, row == base) for row, total in enumerate(totals)]
    parts = costs / totals[:, None]
    picked, blocks = _picked(parts - parts[base], seed, windows)
    sums = np.array([row[picked].sum(axis=1) for row in costs])
    sums = np.maximum(sums, LEAST_SHARE * totals[:, None])
    return _simultaneous(np.log(totals[base] / totals), np.log(sums[base] / sums), blocks)


def bootstrap_rates(done: Sequence[F64], active: Sequence[F64], base: int, seed: int, windows: int = 0) -> list[Interval]:
    """Hold each row's geometric mean of rates against that of row `base`, as bootstrap() does with sums.

    done, active: of each row the work and the time of programs, shape (programs, cells); more work in less time is better. A cell
    is told by how much it shifts the logarithm of its row's mean: by its part of each program's work upwards, by that of its time
    downwards. So cells that are left out or come twice change it as they would change the rates, to the first order, also where
    a program is there in few of them.
    """
    work, time = (np.array([part.sum(axis=1) for part in each]) for each in (done, active))
    point = np.log(work / time).mean(axis=1)
    point = point - point[base]
    cells = done[0].shape[1]
    if cells < FEWEST_CELLS:
        return [Interval(0.0, 0.0, 0.0) if row == base else Interval(float(p), -np.inf, np.inf) for row, p in enumerate(point)]
    shift = np.array(
        [(d / w[:, None] - a / t[:, None]).mean(axis=0) for d, a, w, t in zip(done, active, work, time, strict=True)]
    )
    shift = shift - shift[base]
    picked, blocks = _picked(shift, seed, windows)
    return _simultaneous(point, point[:, None] + np.array([row[picked].sum(axis=1) for row in shift]), blocks)


def _picked(difference: F64, seed: int, windows: int) -> tuple[NDArray[np.int64], int]:
    """Cells of each resample, shape (RESAMPLES, cells), of rows that vary about 0; and in how many blocks they come."""
    cells = difference.shape[1]
    length = max(_block(difference), -(-cells // windows) if windows else 1)
    rng = np.random.default_rng([seed, cells])
    blocks = -(-cells // length)
    start = rng.integers(0, cells, (RESAMPLES, blocks, 1))
    return ((start + np.arange(length)) % cells).reshape(RESAMPLES, -1)[:, :cells], blocks


def _simultaneous(point: F64, logs: F64, blocks: int) -> list[Interval]:
    """Intervals that hold all at once, of points and their resamples, shape (rows, RESAMPLES)."""
    spread = logs.std(axis=1, ddof=1)
    varies = spread > 1e-12
    largest = np.abs((logs - point[:, None])[varies] / spread[varies, None]).max(axis=0, initial=0.0)
    # Few blocks make a bootstrap too narrow, as the normal distribution is narrower than Student's.
    width = float(np.quantile(largest, LEVEL)) * spread * (1 + FEW_BLOCKS / blocks)
    return [Interval(float(p), float(p - w), float(p + w)) for p, w in zip(point, width, strict=True)]


def _block(difference: F64) -> int:
    """How many cells belong together, of rows that vary about 0: the cube root of their number, or more where neighbours are
    alike for longer, over all rows.
    """
    cells = difference.shape[1]
    least = max(1, round(cells ** (1 / 3)))
    centred = difference - difference.mean(axis=1, keepdims=True)
    power = (centred**2).sum()
    alike = 1
    for lag in range(1, cells // 8):
        if (centred[:, lag:] * centred[:, :-lag]).sum() <= power * 2 / np.sqrt(cells):
            break
        alike = lag + 1
    return int(min(max(least, 2 * alike), max(1, cells // 6)))


def _unknown(base: float, total: float, itself: bool) -> Interval:
    if itself:
        return Interval(0.0, 0.0, 0.0)
    point = float(np.log(base / total)) if base > 0 and total > 0 else 0.0
    return Interval(point, -np.inf, np.inf)


def paired(figures: Sequence[Sequence[float]], base: int, less_is_better: bool) -> list[Interval]:
    """Return each row's lowest and highest ratio to row `base`; a column has the runs with the same change of the load.

    A single column tells nothing of how sure it is.
    """
    values = np.maximum(np.array(figures, np.float64), 1e-300)
    logs = np.log(values[base] / values) if less_is_better else np.log(values / values[base])
    return [Interval(float(np.median(row)), float(row.min()), float(row.max())) for row in logs]


def wins(figures: Sequence[Sequence[float]], base: int, less_is_better: bool) -> list[float]:
    """Return the share of runs in which each row is on the side of row `base` on which the first run has it."""
    values = np.array(figures, np.float64)
    signs = np.sign(values[base] - values) if less_is_better else np.sign(values - values[base])
    return [float(share) for share in (signs == signs[:, :1]).mean(axis=1)]
