# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Schedulers on flash with the processors of a host, against what others have published (drives/published.toml)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwaiter.drives import find_drive
from headwaiter.drives.published import Figure, table
from headwaiter.engine.hosts import HOSTS, KERNEL, Host
from headwaiter.engine.sim import Drive, Options, simulate
from headwaiter.fio import load_jobs

_TAGS = 256
"""Of each hardware queue, under a scheduler."""
_DEPTH = 1023
"""Commands that a hardware queue takes: so many requests are there without a scheduler."""


@dataclass(frozen=True)
class Scheduled:
    """A published figure of a scheduler, and the simulator's. allowed: how far off that may be, as a share."""

    figure: Figure
    place: str
    scheduler: str
    allowed: float

    @property
    def holds(self) -> bool:
        """Whether it is near enough."""
        return abs(self.figure.error) <= self.allowed


@dataclass(frozen=True)
class _Load:
    """Processes that read at random, each with so many reads under way, on so many cores, for so long."""

    processes: int
    depth: int
    cores: int
    ms: int

    def run(self, drive: Drive, scheduler: str, host: Host) -> tuple[float, float]:
        """Thousands of reads a second, and their mean latency in microseconds."""
        size = (drive.sectors >> 12 << 21) // self.processes >> 20
        job = f"[r]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\niodepth={self.depth}\nnumjobs={self.processes}\n"
        load = load_jobs(Path("published.fio"), drive.sectors, f"{job}size={size}m\ntime_based\nruntime={self.ms}ms\n".encode())
        options = Options(nr_requests=_DEPTH if scheduler == "none" else _TAGS, join_arriving=True, pull_ahead=True)
        out = simulate(scheduler, drive, load, options=host.under(host.base(options, self.cores), scheduler))
        ios = int(out.tallies.ios.sum())
        return 1e6 * ios / out.totals["now_ns"], float(out.tallies.latency_sum_ns.sum()) / ios / 1000


def groups() -> list[dict[str, Any]]:
    """Published figures that have schedulers."""
    return table()["schedulers"]


def scheduled(group: Mapping[str, Any]) -> Iterator[Scheduled]:
    """Each scheduler at each place of a figure."""
    drive, host = find_drive(group["drive"]), HOSTS[group["host"]]
    for i, (processes, depth) in enumerate(zip(group["processes"], group["depth"], strict=True)):
        load = _Load(processes, depth, group["cores"], group["run_ms"])
        place = f"{processes} x {depth} reads of 4 KiB"
        for scheduler in KERNEL:
            rate, latency_us = load.run(drive, scheduler, host)
            found = latency_us if group["figure"] == "mean us" else rate
            what = f"{place}, {scheduler}"
            figure = Figure(drive.name, group["source"], what, group["figure"], group[scheduler][i], found)
            yield Scheduled(figure, place, scheduler, group["allowed"])


def in_order(found: Sequence[Scheduled], apart: float = 0.15) -> bool:
    """Whether, at each place, of two schedulers that differ by so much the better one is the better one here."""
    pairs = [(one.figure, other.figure) for one in found for other in found if one.place == other.place]
    return all(
        (one.measured > other.measured) == (one.simulated > other.simulated)
        for one, other in pairs
        if abs(one.measured - other.measured) > apart * min(one.measured, other.measured)
    )
