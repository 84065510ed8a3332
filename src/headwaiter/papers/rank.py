# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Throughput by scheduler and request size (Seelam et al., OLS 2005, Figure 5): of a drive model, or by fio of a disk here.

A job file says what is done, so that both do the same: processes that read parts of the disk of their own, in order or at random.
Nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from headwaiter.base.errors import Problem
from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.engine.sim import Drive, Options
from headwaiter.fio import load_jobs
from headwaiter.judge.conditions import RunConditions
from headwaiter.measure.running import fio_rate, fio_there, restored
from headwaiter.papers.schema import RankDocument, RankRow, SizeWinner
from headwaiter.queue.apply import apply
from headwaiter.queue.devices import Device
from headwaiter.queue.settings import Settings
from headwaiter.queue.state import State
from headwaiter.study.ranges import THROUGHPUT, told_range
from headwaiter.study.trial import measure
from headwaiter.study.variants import Variant

Pattern = Literal["sequential", "random", "mixed"]
SIZES = tuple(1 << shift for shift in range(12, 21))
"""4 KiB to 1 MiB."""
EVEN = 0.02
"""Schedulers that differ by a smaller share are equally good."""
BY = "headwaiter rank"


@dataclass(frozen=True)
class RankedLoad:
    """The load that is measured: processes that each read a part of the disk of their own, and think between two reads."""

    pattern: Pattern = "mixed"
    processes: int = 4
    seconds: float = 3.0
    think_us: int = 500

    def job(self, request_bytes: int, capacity_bytes: int, file: str) -> str:
        """Return the job file for fio."""
        part = capacity_bytes // self.processes // SIZES[-1] * SIZES[-1]
        if not part:
            raise Problem(f"{file}: {capacity_bytes} bytes are too few for {self.processes} processes")
        head = ["[global]", f"filename={file}", "direct=1", f"bs={request_bytes}", f"thinktime={self.think_us}", f"size={part}"]
        head += ["time_based", f"runtime={round(1000 * self.seconds)}ms"]
        lines = [line for i in range(self.processes) for line in (f"[p{i}]", f"rw={self._rw(i)}", f"offset={i * part}")]
        return "\n".join([*head, *lines]) + "\n"

    def _rw(self, process: int) -> str:
        random = self.pattern == "random" or (self.pattern == "mixed" and process % 2 == 1)
        return "randread" if random else "read"


@dataclass(frozen=True)
class RankedPoint:
    """The throughput of a scheduler, by its name in the kernel, with requests of a size; low and high: of several runs."""

    scheduler: str
    request_bytes: int
    mbps: float
    low: float
    high: float


def of_drive(
    drive: Drive,
    schedulers: Sequence[Variant],
    sizes: Sequence[int],
    load: RankedLoad,
    conditions: RunConditions,
    runs: int,
    progress: Callable[[str, int], None] | None = None,
) -> list[RankedPoint]:
    """In the simulator, as the judge runs them; low and high are of `runs` more runs with small changes of the load."""

    def one(cell: tuple[int, tuple[Variant, Options]]) -> RankedPoint:
        size, (variant, options) = cell
        jobs = load_jobs(Path("rank.fio"), drive.sectors, load.job(size, drive.sectors * SECTOR_BYTES, "/dev/disk").encode())
        tick = (lambda done: progress(f"{variant.name} {size}", done)) if progress else None
        result = measure(variant, drive, jobs, options, runs, tick, tasks=False).result
        spread = told_range(result, THROUGHPUT)
        low, high = (spread.low, spread.high) if spread else (result.throughput_mbps, result.throughput_mbps)
        return RankedPoint(variant.name, size, result.throughput_mbps, low, high)

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(one, [(size, each) for size in sizes for each in conditions.runs(schedulers, drive)]))


def of_device(
    device: Device,
    legs: Sequence[Device],
    node: Path,
    schedulers: Sequence[str],
    sizes: Sequence[int],
    load: RankedLoad,
    state: State,
    runs: int,
    progress: Callable[[str], None] = lambda what: None,
) -> list[RankedPoint]:
    """Measure by fio on a disk of this machine, reading only; its schedulers are changed, and restored at the end.

    The figure is that in the middle of `runs`. Problem if there is no fio, or it fails.
    """
    fio = fio_there()
    found = []
    with restored(legs, state, BY):
        for scheduler in schedulers:
            apply(legs, Settings(scheduler), state, BY)
            for size in sizes:
                progress(f"{scheduler}, {size} bytes")
                job = load.job(size, device.sectors * SECTOR_BYTES, str(node))
                rates = sorted(fio_rate(fio, job) for _ in range(runs))
                found.append(RankedPoint(scheduler, size, rates[len(rates) // 2], rates[0], rates[-1]))
    return found


def winners(points: Sequence[RankedPoint]) -> list[SizeWinner]:
    """For each size the best, and how far it is ahead of the next."""
    out = []
    for size in sorted({point.request_bytes for point in points}):
        best, *rest = sorted((p for p in points if p.request_bytes == size), key=lambda p: -p.mbps)
        ahead = best.mbps / rest[0].mbps - 1 if rest and rest[0].mbps else 0.0
        even = [p.scheduler for p in rest if p.mbps >= best.mbps * (1 - EVEN)]
        out.append(SizeWinner(request_bytes=size, scheduler=best.scheduler, ahead_percent=100 * ahead, even=even))
    return out


def document(subject: str, load: RankedLoad, points: Sequence[RankedPoint], notes: Sequence[str]) -> RankDocument:
    """Return what `headwaiter rank --json` prints, and `watch --ranking` reads."""
    rows = [
        RankRow(scheduler=p.scheduler, request_bytes=p.request_bytes, throughput_mbps=p.mbps, low_mbps=p.low, high_mbps=p.high)
        for p in points
    ]
    return RankDocument(
        subject=subject, pattern=load.pattern, processes=load.processes, results=rows, winners=winners(points), notes=notes
    )


PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
