# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A scheduler's result with what small changes of the load make of it (perturb.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from headwaiter.engine.sim import Drive, Load, Options, simulate
from headwaiter.engine.tables import Setting
from headwaiter.study.perturb import perturbed
from headwaiter.study.results import Json, summarise

Run = TypeVar("Run")
MARGIN = 0.05
"""A result that spreads by more than this share of itself is a range."""
RUNS = 8
"""Perturbed runs, unless somebody asks for another number."""
SHORT_IOS = 200_000
"""Loads of up to so many I/Os are perturbed unasked."""

FIGURES: dict[str, Callable[[Json], float]] = {
    "throughput_MBps": lambda r: float(r["throughput_MBps"]),
    "elapsed_s": lambda r: float(r["elapsed_s"]),
    "lat_mean_ms": lambda r: read_latency(r, "mean"),
    "lat_p99_ms": lambda r: read_latency(r, "p99"),
    "lat_max_ms": lambda r: read_latency(r, "max"),
    "fairness_jain": lambda r: float(r.get("fairness_jain", 0.0)),
}


def read_latency(r: Json, which: str) -> float:
    """Of reads, or of writes where there are no reads; ms."""
    return float((r.get("read") or r.get("write") or {"lat_ms": {which: 0.0}})["lat_ms"][which])


def measure(
    scheduler: str,
    drive: Drive,
    load: Load,
    tunables: Mapping[str, Setting] | None,
    options: Options,
    runs: int | None = None,
    progress: Callable[[int], None] | None = None,
    tasks: bool = True,
) -> Json:
    """One entry of "results", with "range" where the load was perturbed: the lowest and the highest of each figure.

    runs None: RUNS for short loads, else 0. Where throughput spreads by more than MARGIN, the entry is that of the run in the
    middle, not of the unperturbed one. tasks as in summarise().
    """
    first = simulate(scheduler, drive, load, tunables, options, progress=progress)
    more = others(scheduler, drive, load, tunables, options, runs_for(first.totals["issued"], runs), tasks)
    return with_range(summarise(first, tasks), more)


def runs_for(ios: float, asked: int | None) -> int:
    """How many perturbed runs follow the unperturbed one, of so many I/Os."""
    if asked is not None:
        return asked
    return RUNS if ios <= SHORT_IOS else 0


def others(
    scheduler: str,
    drive: Drive,
    load: Load,
    tunables: Mapping[str, Setting] | None,
    options: Options,
    runs: int,
    tasks: bool = True,
) -> list[Json]:
    """The entries of so many perturbed runs."""
    out = []
    for number in range(1, runs + 1):
        other_load, other_options = perturbed(load, options, number)
        out.append(summarise(simulate(scheduler, drive, other_load, tunables, other_options), tasks))
    return out


def with_range(nominal: Json, more: Sequence[Json]) -> Json:
    """The entry in the middle, with the range of all."""
    if not more:
        return nominal
    every = [nominal, *more]
    spread: dict[str, Any] = {"runs": len(every)}
    for name, figure in FIGURES.items():
        values = [figure(r) for r in every]
        spread[name] = {"low": min(values), "high": max(values)}
    return typical(every, FIGURES["throughput_MBps"]) | {"range": spread}


def typical(every: Sequence[Run], rate: Callable[[Run], float]) -> Run:
    """Of a run and its perturbed ones the first; where their rates are a range, the one in the middle."""
    ordered = sorted(every, key=rate)
    return ordered[len(ordered) // 2] if spreads(rate(ordered[0]), rate(ordered[-1]), rate(every[0])) else every[0]


def spreads(low: float, high: float, value: float) -> bool:
    """Is a value between these so uncertain that only its range can be told?"""
    return high - low > MARGIN * max(abs(value), 1e-12)


def is_range(r: Json, figure: str = "throughput_MBps") -> bool:
    """The same of a figure of an entry."""
    if "range" not in r:
        return False
    low, high = r["range"][figure]["low"], r["range"][figure]["high"]
    return spreads(low, high, FIGURES[figure](r))
