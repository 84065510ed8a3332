# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a run will cost, told before it begins: how many I/Os, and how long they take to simulate.

The I/Os of a trace are counted. Those of a job are its bytes by its block size, or what its runtime allows at the rate at which
the drive alone serves such I/Os, whichever is less; jobs that run at the same time share the drive evenly. So the figure is
about right where the drive is busy and the scheduler lets each stream have it for a while, and too high else.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from headwaiter.engine.constants import SECTOR_BYTES, Directions, Op
from headwaiter.engine.sim import Drive, Forest, Load, Options, Task, simulate
from headwaiter.fio import JobLoad
from headwaiter.fio.jobs import READAHEAD_BYTES
from headwaiter.study.ongoing import Ongoing
from headwaiter.study.ranges import runs_for

IO_S = 1.5e-6
"""Processor time for an I/O, all in all: what the schedulers need on bundled drives, within a factor of two."""
LONG_S = 10.0
"""Runs that take longer are announced."""
_SAMPLE = 400
_WRITES = 20_000  # of 4 KiB, more than fit into the cache of a drive
_MOST_AT_ONCE = 256


def estimated_ios(load: Load, drive: Drive, options: Options) -> float:
    """About how many I/Os a load has."""
    if isinstance(load, Ongoing) and load.recorded:
        load = load.recorded  # in the same time
    if isinstance(load, Forest):
        return float(len(load.time_ns))
    if isinstance(load, JobLoad):
        return _Rates(drive, options).ios(load)
    return 0.0


@dataclass(frozen=True)
class Plan:
    """About so many I/Os a run, and so many runs of each scheduler."""

    ios: float
    runs: int
    schedulers: int

    @property
    def total_ios(self) -> int:
        """Return the I/Os of all runs."""
        return round(self.ios * self.runs * self.schedulers)


def plan(load: Load, drive: Drive, options: Options, schedulers: int, asked: int | None, wide: bool = False) -> Plan:
    """Before the work begins; asked as runs of trial.measure(), which perturbs half as often again (`wide`)."""
    ios = estimated_ios(load, drive, options)
    perturbed = runs_for(ios, asked)
    return Plan(ios, 1 + perturbed + (perturbed // 2 if wide else 0), schedulers)


def announcement(planned: Plan) -> str:
    """One line for people who are about to wait for long; '' if that is not so. As many run at once as there are processors."""
    ios, runs, schedulers = planned.ios, planned.runs, planned.schedulers
    at_once = min(schedulers, len(os.sched_getaffinity(0)))
    seconds = ios * runs * schedulers * IO_S / at_once
    if seconds < LONG_S:
        return ""
    number = schedulers * runs
    many = f"{number} runs of about {amount(ios)} I/Os each" if number > 1 else f"about {amount(ios)} I/Os"
    return f"{many}, about {_duration(seconds)}; Ctrl-C stops it"


def amount(n: float) -> str:
    """About so many, in words."""
    for size, name in ((1e9, "billion"), (1e6, "million")):
        if n >= size:
            return f"{_rounded(n / size)} {name}"
    return _rounded(n)


def _duration(seconds: float) -> str:
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"{_rounded(seconds / size)} {name}"
    return f"{_rounded(seconds)} seconds"


def _rounded(n: float) -> str:
    """Two digits say enough."""
    return f"{round(n, 1 - math.floor(math.log10(n))):,.0f}" if n >= 10 else f"{n:.1f}".removesuffix(".0")


def _bytes(size: int, io_size: int, loops: int) -> int:
    """Return the bytes of all passes of a job over files of `size`: `loops` of them, and more until io_size is reached."""
    if io_size <= size:
        return (io_size or size) * loops
    return min(io_size * loops, size * max(loops, -(-io_size // size)))


def _mean_bytes(f: Mapping[str, Any], op: int) -> float:
    """Return the mean size of an I/O, by the shares of sizes, if there are any."""
    split = f["splits"][op]
    total = sum(percent for _, percent in split)
    if not total:
        return float((f["min_bytes"][op] + f["max_bytes"][op]) / 2)
    return float(sum(size * percent for size, percent in split) / total)


class _Rates:
    """The pace at which one drive serves the I/Os of jobs."""

    def __init__(self, drive: Drive, options: Options) -> None:
        self.drive, self.options = drive, options
        self.served_s = cache(self._served_s)

    def ios(self, load: JobLoad) -> float:
        """Stages are what stonewalls part."""
        stages: list[list[Mapping[str, Any]]] = []
        for job in load.jobs:
            if job.fields["stonewall"] or not stages:
                stages.append([])
            stages[-1].append(job.fields)
        return sum(self._stage(stage) for stage in stages)

    def _stage(self, jobs: Sequence[Mapping[str, Any]]) -> float:
        at_once = min(_MOST_AT_ONCE, sum(f["depth"] for f in jobs))
        return sum(self._job(f, at_once, len(jobs)) for f in jobs)

    def _job(self, f: Mapping[str, Any], at_once: int, sharing: int) -> float:
        reads = {Directions.READS: 1.0, Directions.WRITES: 0.0}.get(f["directions"], f["read_percent"] / 100)
        parts = [(op, share) for op, share in ((Op.READ, reads), (Op.WRITE, 1 - reads)) if share]
        mean_bytes = sum(share * _mean_bytes(f, op) for op, share in parts)
        by_size = math.inf if f["time_based"] else _bytes(f["size"], f["io_size"], f["loops"]) / mean_bytes
        if f["number_ios"] and not f["time_based"]:
            by_size = min(by_size, f["number_ios"] * f["loops"])
        if not f["runtime_ns"]:
            return float(by_size)
        one_s = sum(share * self._one_s(f, op, at_once, sharing) for op, share in parts)
        return float(min(by_size, f["runtime_ns"] / 1e9 / one_s))

    def _one_s(self, f: Mapping[str, Any], op: int, at_once: int, sharing: int) -> float:
        """From one I/O of a job to its next, on average."""
        size, random, o = _mean_bytes(f, op), bool(f["random"]), self.options
        span = 1 << (f["size"] // SECTOR_BYTES).bit_length() if random else 0
        pages, paced_s = size / 4096, f["think_ns"] / 1e9 / max(1, f["think_blocks"])
        if f["rate_bytes"][op]:
            paced_s = max(paced_s, size / f["rate_bytes"][op])
        if f["buffered"]:
            own_s = (o.copy_ns + o.copy_page_ns * pages) / 1e9
            # Through the page cache, neighbours come and go together.
            unit = size if random else max(size, READAHEAD_BYTES)
            disk_s = self.served_s(op, span, math.ceil(unit / SECTOR_BYTES), at_once) * size / unit
            return float(max(own_s + paced_s, sharing * disk_s))
        own_s = (o.turnaround_ns + o.turnaround_page_ns * pages) / 1e9
        sectors, depth = max(1, round(size / SECTOR_BYTES)), min(_MOST_AT_ONCE, f["depth"])
        alone_s = self.served_s(op, span, sectors, depth)
        # I/Os in sequence are joined, but only with those of their own job.
        shared_s = sharing * min(alone_s, self.served_s(op, span, sectors, at_once, merging=False))
        alone_s = own_s + alone_s if f["depth"] == 1 else max(own_s, alone_s)
        return float(max(alone_s + paced_s, shared_s))

    def _served_s(self, op: int, span: int, sectors: int, at_once: int, merging: bool = True) -> float:
        """Return the drive's time for an I/O, `at_once` like it under way: random in `span` sectors, or (0) in sequence."""
        room = self.drive.sectors
        if span:
            room = min(room, max(span, sectors))
        sectors = min(sectors, room)
        n = at_once + (_WRITES if span and op == Op.WRITE else _SAMPLE)
        number = np.arange(n)
        place = number * sectors % max(1, room - sectors + 1)
        if span:
            place = np.random.default_rng(0).integers(0, room - sectors + 1, n)
        load = Forest(
            tasks=[Task(0, "sample", 0)],
            time_ns=np.zeros(n, np.int64),
            parent=np.maximum(number - at_once, -1),
            delay_ns=np.zeros(n, np.int64),
            task=np.zeros(n, np.uint32),
            op=np.full(n, op, np.uint8),
            flags=np.ones(n, np.uint8),
            sector=place.astype(np.uint64),
            sectors=np.full(n, sectors, np.uint32),
            ioprio=np.zeros(n, np.uint16),
        )
        o = self.options
        options = Options(
            merging=merging and o.merging, join_arriving=o.join_arriving, queue_depth=o.queue_depth, max_sectors=o.max_sectors
        )
        run = simulate("noop", self.drive, load, options=options)
        return max(1, run.totals["now_ns"]) / 1e9 / n
