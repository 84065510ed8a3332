# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Throughput by scheduler and request size (Seelam et al., OLS 2005, Figure 5): of a drive model, or by fio of a disk here.

A job file says what is done, so that both do the same: processes that read parts of the disk of their own, in order or at random.
Nothing is written.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.engine.sim import Drive, Options
from headwaiter.errors import Problem, shown
from headwaiter.fio import load_jobs
from headwaiter.judge.conditions import Conditions
from headwaiter.live.apply import apply, revert
from headwaiter.live.devices import Device
from headwaiter.live.schema import RankDocument, RankRow, SizeWinner
from headwaiter.live.settings import Settings, opened
from headwaiter.live.state import State
from headwaiter.study.ranges import THROUGHPUT, told_range
from headwaiter.study.trial import measure
from headwaiter.study.variants import Variant

T = TypeVar("T")
Pattern = Literal["sequential", "random", "mixed"]
SIZES = tuple(1 << shift for shift in range(12, 21))
"""4 KiB to 1 MiB."""
EVEN = 0.02
"""Schedulers that differ by a smaller share are equally good."""
BY = "headwaiter rank"


@dataclass(frozen=True)
class Load:
    """What is measured: processes that each read a part of the disk of their own, and think between two reads."""

    pattern: Pattern = "mixed"
    processes: int = 4
    seconds: float = 3.0
    think_us: int = 500

    def job(self, request_bytes: int, capacity_bytes: int, file: str) -> str:
        """As fio reads it."""
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
class Point:
    """What a scheduler, by its name in the kernel, did with requests of a size; low and high: of several runs."""

    scheduler: str
    request_bytes: int
    mbps: float
    low: float
    high: float


def of_drive(
    drive: Drive,
    schedulers: Sequence[Variant],
    sizes: Sequence[int],
    load: Load,
    conditions: Conditions,
    runs: int,
    progress: Callable[[str, int], None] | None = None,
) -> list[Point]:
    """In the simulator, as the judge runs them; low and high are of `runs` more runs with small changes of the load."""

    def one(cell: tuple[int, tuple[Variant, Options]]) -> Point:
        size, (variant, options) = cell
        jobs = load_jobs(Path("rank.fio"), drive.sectors, load.job(size, drive.sectors * SECTOR_BYTES, "/dev/disk").encode())
        tick = (lambda done: progress(f"{variant.name} {size}", done)) if progress else None
        result = measure(variant, drive, jobs, options, runs, tick, tasks=False).result
        spread = told_range(result, THROUGHPUT)
        low, high = (spread.low, spread.high) if spread else (result.throughput_mbps, result.throughput_mbps)
        return Point(variant.name, size, result.throughput_mbps, low, high)

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(one, [(size, each) for size in sizes for each in conditions.runs(schedulers, drive)]))


def of_device(
    device: Device,
    legs: Sequence[Device],
    node: Path,
    schedulers: Sequence[str],
    sizes: Sequence[int],
    load: Load,
    state: State,
    runs: int,
    progress: Callable[[str], None] = lambda what: None,
) -> list[Point]:
    """By fio on a disk of this machine, reading only; its schedulers are changed, and restored at the end.

    The figure is that in the middle of `runs`. Problem if there is no fio, or it fails.
    """
    fio = fio_there()
    found = []
    with restored(legs, state):
        for scheduler in schedulers:
            apply(legs, Settings(scheduler), state, BY)
            for size in sizes:
                progress(f"{scheduler}, {size} bytes")
                job = load.job(size, device.sectors * SECTOR_BYTES, str(node))
                rates = sorted(fio_rate(fio, job) for _ in range(runs))
                found.append(Point(scheduler, size, rates[len(rates) // 2], rates[0], rates[-1]))
    return found


@contextmanager
def restored(legs: Sequence[Device], state: State) -> Iterator[None]:
    """Whatever the block changes, the settings of these disks are then as before; should it be killed, `revert` restores them."""
    known = [state.of(leg) for leg in legs]
    entry = []
    for leg in legs:
        with opened(leg) as queue:
            entry.append(queue.read())
    try:
        yield
    finally:
        troubles = []
        for leg, was, before in zip(legs, known, entry, strict=True):
            if was is None and state.of(leg):
                troubles.append(revert(leg, state)[1].trouble)
            elif was is not None:
                apply([leg], before.beside(was.before), state, BY)
        if any(troubles):
            raise Problem("; ".join(filter(None, troubles)))


def fio_there() -> str:
    """Its path. Problem if it is not installed."""
    fio = shutil.which("fio")
    if fio is None:
        raise Problem("measuring a disk needs fio (Debian: apt-get install fio)")
    return fio


def fio_rate(fio: str, job: str) -> float:
    """MB/s of a job file's processes together, which only read, all for the same time."""

    def rate(jobs: Sequence[Mapping[str, Any]]) -> float:
        return float(sum(one[way]["bw_bytes"] for one in jobs for way in ("read", "write") if way in one)) / 1e6

    return fio_told(fio, job, rate)


def fio_told(fio: str, job: str, what: Callable[[Sequence[Mapping[str, Any]]], T], folder: Path | None = None) -> T:
    """What a function makes of fio's account of a job file's jobs. Files are in `folder`; without one it only reads."""
    command = [fio, *([] if folder else ["--readonly"]), "--output-format=json", "-"]
    done = subprocess.run(command, input=job, capture_output=True, text=True, check=False, cwd=folder)
    try:
        if done.returncode:
            raise ValueError
        return what(json.loads(done.stdout[done.stdout.index("{") :])["jobs"])
    except (ValueError, KeyError, TypeError):
        raise Problem(f"fio: {shown((done.stderr or done.stdout).strip() or 'no result', 200)}") from None


def winners(points: Sequence[Point]) -> list[SizeWinner]:
    """For each size the best, and how far it is ahead of the next."""
    out = []
    for size in sorted({point.request_bytes for point in points}):
        best, *rest = sorted((p for p in points if p.request_bytes == size), key=lambda p: -p.mbps)
        ahead = best.mbps / rest[0].mbps - 1 if rest and rest[0].mbps else 0.0
        even = [p.scheduler for p in rest if p.mbps >= best.mbps * (1 - EVEN)]
        out.append(SizeWinner(request_bytes=size, scheduler=best.scheduler, ahead_percent=100 * ahead, even=even))
    return out


def document(subject: str, load: Load, points: Sequence[Point], notes: Sequence[str]) -> RankDocument:
    """As `headwaiter rank --json` prints it, and `watch --ranking` reads it."""
    rows = [
        RankRow(scheduler=p.scheduler, request_bytes=p.request_bytes, throughput_mbps=p.mbps, low_mbps=p.low, high_mbps=p.high)
        for p in points
    ]
    return RankDocument(
        subject=subject, pattern=load.pattern, processes=load.processes, results=rows, winners=winners(points), notes=notes
    )


PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
