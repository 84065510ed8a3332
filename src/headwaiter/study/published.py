# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Published measurements (drives/published.py), and what the simulator makes of the same: one function a figure.

The machine of the flash study of 2024 is the host xeon-10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwaiter.drives import published
from headwaiter.drives.published import Fact
from headwaiter.engine.hosts import XEON_10
from headwaiter.engine.sim import Drive, Options, simulate
from headwaiter.fio import load_jobs

_TAGS = 256
"""Of each hardware queue, under a scheduler."""
_DEPTH = 1023
"""Commands that a hardware queue takes: so many requests are there without a scheduler."""


@dataclass(frozen=True)
class _Load:
    """Processes that read at random, each with so many reads under way, on so many cores."""

    processes: int
    depth: int
    cores: int
    ms: int

    def run(self, drive: Drive, scheduler: str) -> tuple[float, float]:
        """Thousands of reads a second, and their mean latency in microseconds."""
        size = (drive.sectors >> 12 << 21) // self.processes >> 20
        job = f"[r]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\niodepth={self.depth}\nnumjobs={self.processes}\n"
        load = load_jobs(Path("published.fio"), drive.sectors, f"{job}size={size}m\ntime_based\nruntime={self.ms}ms\n".encode())
        options = Options(nr_requests=_DEPTH if scheduler == "none" else _TAGS, join_arriving=True, pull_ahead=True)
        options = XEON_10.under(XEON_10.base(options, self.cores), scheduler)
        out = simulate(scheduler, drive, load, options=options)
        ios = int(out.tallies.ios.sum())
        return 1e6 * ios / out.totals["now_ns"], float(out.tallies.latency_sum_ns.sum()) / ios / 1000


def _facts(
    figure: str,
    unit: str,
    allowed: float,
    places: Sequence[int],
    table: Mapping[str, Sequence[float]],
    load: Callable[[int], _Load],
    drive: Drive,
) -> Iterator[Fact]:
    """A fact for each place and scheduler."""
    for i, place in enumerate(places):
        work = load(place)
        what = f"{work.processes} x depth {work.depth}"
        for scheduler, row in table.items():
            rate, latency = work.run(drive, scheduler)
            yield Fact(figure, what, scheduler, unit, row[i], rate if unit == "kIOPS" else latency, allowed)


def figure_2(drive: Drive) -> list[Fact]:
    """Latency by depth."""
    return list(_facts("2", "us", 0.2, published.DEPTHS_2, published.FIGURE_2, lambda depth: _Load(1, depth, 1, 60), drive))


def figure_3(drive: Drive) -> list[Fact]:
    """Latency by processes on one core."""
    return list(_facts("3", "us", 0.2, published.PROCESSES_3, published.FIGURE_3, lambda n: _Load(n, 1, 1, 60), drive))


def figure_5(drive: Drive) -> list[Fact]:
    """Latency by processes on all cores."""
    return list(_facts("5", "us", 0.2, published.PROCESSES_5, published.FIGURE_5, lambda n: _Load(n, 1, 10, 40), drive))


def figure_7(drive: Drive) -> list[Fact]:
    """Throughput by processes."""
    return list(_facts("7", "kIOPS", 0.1, published.PROCESSES_7, published.FIGURE_7, lambda n: _Load(n, 128, 10, 30), drive))


def figure_8(drive: Drive) -> list[Fact]:
    """The same on another day: how far two days differ."""
    return list(_facts("8", "kIOPS", 0.15, published.PROCESSES_8, published.FIGURE_8, lambda n: _Load(n, 128, 10, 30), drive))


def in_order(facts: Sequence[Fact], apart: float = 0.15) -> bool:
    """Whether, at each place, of two schedulers that differ by so much the better one is the better one here."""
    return all(
        (one.published > other.published) == (one.simulated > other.simulated)
        for one in facts
        for other in facts
        if one.what == other.what and abs(one.published - other.published) > apart * min(one.published, other.published)
    )


FIGURES: Mapping[str, Callable[[Drive], list[Fact]]] = {
    "2": figure_2,
    "3": figure_3,
    "5": figure_5,
    "7": figure_7,
    "8": figure_8,
}
