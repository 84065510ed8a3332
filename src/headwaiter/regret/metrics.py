# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From the rows of a run to the figures that are contested."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headwaiter.engine.constants import SECTOR_BYTES, Op
from headwaiter.engine.sim import Rows
from headwaiter.regret.contested import Metric
from headwaiter.regret.workloads import Fitted, burst_ios, members
from headwaiter.study.progress import Programs
from headwaiter.study.results import jain

Mask = NDArray[np.bool_]


class MeasuredRun:
    """A run of a fitted workload. Latencies are of I/Os under way in the window, rates of those that complete in it."""

    def __init__(self, fitted: Fitted, rows: Rows, programs: Programs | None = None) -> None:
        self.load = fitted.load
        self._programs = programs
        self.rows = rows  # the columns lie in its memory
        self.issue = np.asarray(rows.issue_ns)
        self.done = np.asarray(rows.complete_ns)
        self.task, self.op = np.asarray(rows.task), np.asarray(rows.op)
        self.bytes = np.asarray(rows.sectors).astype(np.int64) * SECTOR_BYTES
        self.begin, self.end = fitted.window_ns or (0, int(self.done.max(initial=1)))

    def value(self, m: Metric) -> float:
        """The figure, in its unit; of what never happened, 0 for rates and inf for times."""
        if m.kind == "jain":
            return self._jain(m.of or "")
        if m.kind == "burst":
            return self._burst_ms(m.of or "")
        if m.kind == "span":
            begin, end = self._life(self._whose(m.of))
            return (end - begin) / 1e9 if end > begin else math.inf
        if m.kind == "latency":
            return self._latency_ms(m)
        if m.kind == "progress":
            return self._progress_mbps()
        begin, end = self._life(self._whose(m.during)) if m.during else (self.begin, self.end)
        return self._mbps(self._whose(m.of), begin, end)

    def values(self, metrics: Sequence[Metric]) -> list[float]:
        """Return the figure of each metric."""
        return [self.value(m) for m in metrics]

    def _whose(self, name: str | None) -> Mask:
        if name is None:
            return np.ones(len(self.task), bool)
        mine = np.zeros(max(len(self.load.tasks), int(self.task.max(initial=0)) + 1), bool)
        mine[members(self.load, name)] = True
        return mine[self.task]

    def _life(self, whose: Mask) -> tuple[int, int]:
        return (int(self.issue[whose].min()), int(self.done[whose].max())) if whose.any() else (0, 0)

    def _mbps(self, whose: Mask, begin: int, end: int) -> float:
        inside = whose & (self.done >= begin) & (self.done <= end)
        return float(self.bytes[inside].sum()) * 1e3 / (end - begin) if end > begin else 0.0

    def _progress_mbps(self) -> float:
        """Return progress over the whole run, as the judge has it: what a program writes into the page cache is its work, too."""
        assert self._programs, "who measures progress gives the programs"
        return self._programs.progress_mbps

    def _jain(self, name: str) -> float:
        inside = (self.done >= self.begin) & (self.done <= self.end)
        size = np.bincount(self.task[inside], self.bytes[inside], minlength=len(self.load.tasks))
        return jain(size[members(self.load, name)].astype(np.float64))

    def _latency_ms(self, m: Metric) -> float:
        mine = self._whose(m.of) & (self.op == (Op.READ if m.op == "read" else Op.WRITE))
        mine &= (self.done >= self.begin) & (self.issue <= self.end)
        taken = self.done[mine] - self.issue[mine]
        if not len(taken):
            return math.inf
        if not m.percent:
            return float(taken.mean()) / 1e6
        # The least latency that so many percent of them do not exceed, as elsewhere (study/results.py).
        place = max(0, math.ceil(len(taken) * m.percent / 100 - 1e-9) - 1)
        return float(np.partition(taken, place)[place]) / 1e6

    def _burst_ms(self, name: str) -> float:
        """Time in bursts by the bursts that were done in it. One that the window's end cuts counts as far as it came."""
        spent = 0
        bursts = 0.0
        for task in members(self.load, name):
            mine = np.flatnonzero(self.task == task)
            mine = mine[np.argsort(self.issue[mine], kind="stable")]
            size = burst_ios(self.load, task)
            for first in range(0, len(mine), size):
                burst = mine[first : first + size]
                begin, end = int(self.issue[burst[0]]), int(self.done[burst].max())
                if end < self.begin or begin >= self.end:
                    continue
                # A job that its runtime ends in the middle has fewer.
                spent += min(end, self.end) - begin
                bursts += float((self.done[burst] <= self.end).sum()) / size
        return spent / bursts / 1e6 if bursts else math.inf
