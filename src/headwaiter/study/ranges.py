# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A scheduler's result with what small changes of the load make of it (perturb.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from headwaiter.study.schema import Latency, Range, Result, Spread

Run = TypeVar("Run")
RANGE_SHARE = 0.05
"""A result that spreads by more than this share of itself is a range."""
RUNS = 8
"""Perturbed runs, unless somebody asks for another number."""
SHORT_IOS = 200_000
"""Loads of up to so many I/Os are perturbed unasked."""

_NOTHING = Latency(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def label(r: Result) -> str:
    """Return what a result is called where several are compared."""
    return r.variant or r.scheduler


def read_latency(r: Result) -> Latency:
    """Return the latency of reads, or of writes where there are no reads; 0 where there are neither."""
    direction = r.read or r.write
    return direction.lat_ms if direction else _NOTHING


@dataclass(frozen=True)
class Figure:
    """A figure that results are ranked by: what a result has of it, and what a range tells of it."""

    of: Callable[[Result], float]
    told: Callable[[Range], Spread]


THROUGHPUT = Figure(lambda r: r.throughput_mbps, lambda told: told.throughput_mbps)
ELAPSED = Figure(lambda r: r.elapsed_s, lambda told: told.elapsed_s)
MEAN_LATENCY = Figure(lambda r: read_latency(r).mean, lambda told: told.lat_mean_ms)
P99_LATENCY = Figure(lambda r: read_latency(r).p99, lambda told: told.lat_p99_ms)
MAX_LATENCY = Figure(lambda r: read_latency(r).max, lambda told: told.lat_max_ms)
FAIRNESS = Figure(lambda r: r.fairness_jain or 0.0, lambda told: told.fairness_jain)
PROGRESS = Figure(lambda r: r.progress_mbps or 0.0, lambda told: told.progress_mbps or Spread(0.0, 0.0))
WAITED = Figure(lambda r: r.waited_s or 0.0, lambda told: told.waited_s or Spread(0.0, 0.0))


def runs_for(ios: float, asked: int | None) -> int:
    """Return how many perturbed runs follow the unperturbed one, of so many I/Os."""
    if asked is not None:
        return asked
    return RUNS if ios <= SHORT_IOS else 0


def with_range(nominal: Result, more: Sequence[Result]) -> Result:
    """The entry in the middle, with the range of all."""
    if not more:
        return nominal
    every = [nominal, *more]

    def spread(figure: Figure) -> Spread:
        values = [figure.of(r) for r in every]
        return Spread(low=min(values), high=max(values))

    told = Range(
        runs=len(every),
        throughput_mbps=spread(THROUGHPUT),
        elapsed_s=spread(ELAPSED),
        lat_mean_ms=spread(MEAN_LATENCY),
        lat_p99_ms=spread(P99_LATENCY),
        lat_max_ms=spread(MAX_LATENCY),
        fairness_jain=spread(FAIRNESS),
        waited_s=spread(WAITED) if nominal.waited_s is not None else None,
        progress_mbps=spread(PROGRESS) if nominal.progress_mbps is not None else None,
    )
    return replace(typical(every, pace(nominal).of), range=told)


def pace(r: Result) -> Figure:
    """Return what tells which of several runs is the typical one."""
    return THROUGHPUT if r.progress_mbps is None else PROGRESS


def typical(every: Sequence[Run], rate: Callable[[Run], float]) -> Run:
    """Return the first of a run and its perturbed ones; where their rates are a range, the one in the middle."""
    ordered = sorted(every, key=rate)
    return ordered[len(ordered) // 2] if spreads(rate(ordered[0]), rate(ordered[-1]), rate(every[0])) else every[0]


def spreads(low: float, high: float, value: float, share: float = RANGE_SHARE) -> bool:
    """Is a value between these so uncertain that only its range can be told?"""
    return high - low > share * max(abs(value), 1e-12)


def told_range(r: Result, figure: Figure = THROUGHPUT) -> Spread | None:
    """The range of a figure of a result, where only that can be told; else None."""
    told = figure.told(r.range) if r.range else None
    return told if told and spreads(told.low, told.high, figure.of(r)) else None
