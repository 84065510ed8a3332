# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A run in detail, for pictures: where the head went, how latencies are distributed, how much was done when."""

from __future__ import annotations

import csv
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.ending import tidied
from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.engine.sim import Drive, Load, Options, Outcome, simulate
from headwaiter.judge.judge import Judged
from headwaiter.study.ongoing import Ongoing
from headwaiter.study.schema import Result
from headwaiter.study.trial import Trial, first_run
from headwaiter.study.variants import Variant

F64 = NDArray[np.float64]

MOST_DISPATCHES = 4000
"""A picture of the head shows so many, the first of the run."""
MOST_ROWS = 5_000_000
"""A run of more I/Os has no throughput over time, for which each I/O is kept."""
_BINS = 100
_PERCENTILES = 400
_GIB = 2**30


@dataclass(frozen=True, eq=False)
class Head:
    """The way of the head: when (ms) and where (GiB) the first dispatches of a run were, shape (n,), and the waits between.

    waits_ms: begin and end, shape (m, 2). whole: these are all dispatches of the run.
    """

    dispatch_ms: F64
    position_gib: F64
    waits_ms: F64
    whole: bool


@dataclass(frozen=True, eq=False)
class Detail:
    """Figures of a run for pictures, beside its head.

    latency_ms: the latency that `within` (shares of all I/Os, increasing up to 1) of them do not exceed, one shape.
    time_s, rate_mbps: throughput over time, from time_s[i] to time_s[i + 1]: one element less; empty without rows.
    """

    within: F64
    latency_ms: F64
    time_s: F64
    rate_mbps: F64


@dataclass(frozen=True)
class Shown:
    """A variant in pictures, with its figures."""

    result: Result
    detail: Detail
    head: Head


def pictured(found: Judged, progress: Callable[[str, int], None] | None = None) -> list[Shown]:
    """Run the load once more under each variant of a comparison, unperturbed, as many at once as there are processors.

    Raises as simulate(); `progress(name, I/Os done)` is called from the workers' threads.
    """

    def one(trial: Trial) -> Shown:
        variant, r = trial.variant, trial.result
        tick = (lambda done: progress(variant.name, done)) if progress else None
        options, load = found.options_of(trial), found.work.load
        if isinstance(load, Ongoing):  # it is as long as it needs to be under this variant
            load, _ = first_run(variant, found.drive, load, options, tasks=False)
        known = detail(variant, found.drive, load, options, r.requests, tick)
        return Shown(r, known, head(variant, found.drive, load, options))

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(one, found.trials))


class _Enough(Exception):
    """The log has what is wanted."""


def head(
    variant: Variant,
    drive: Drive,
    load: Load,
    options: Options,
    most: int = MOST_DISPATCHES,
) -> Head:
    """Run the load until so many requests were dispatched, and tell where they were. Raises as simulate()."""
    folder = Path(tempfile.mkdtemp(prefix="headwaiter-"))
    with tidied(lambda: shutil.rmtree(folder, ignore_errors=True)):
        log = folder / "log.csv"
        whole = _logged(variant, drive, load, options, log, most)
        return _head(log, most, whole)


def _logged(variant: Variant, drive: Drive, load: Load, options: Options, log: Path, most: int) -> bool:
    """Write the log of a run, or of its beginning with so many dispatches at least; whether it is the whole run's."""

    def enough(completed: int) -> None:
        # I/Os are merged into fewer requests, so the log is read only where it may have enough.
        if completed > most and _dispatches(log, most):
            raise _Enough

    try:
        simulate(variant.scheduler, drive, load, variant.settings, options, log, enough)
    except _Enough:
        return False
    return True


def _dispatches(log: Path, most: int) -> bool:
    """Does the log, as far as it is written, have more dispatches?"""
    with log.open("rb") as f:
        return sum(line.count(b",dispatch,") for line in f) > most


def _head(log: Path, most: int, whole: bool) -> Head:
    ms: list[float] = []
    gib: list[float] = []
    waits: list[tuple[float, float]] = []
    begun: float | None = None
    with log.open(encoding="utf-8", newline="") as f:
        for row in csv.DictReader(f):
            if row["event"] == "dispatch":
                if len(ms) == most:
                    whole = False
                    break
                ms.append(int(row["time_ns"]) / 1e6)
                gib.append(int(row["sector"]) * SECTOR_BYTES / _GIB)
            elif row["event"] == "wait_begin":
                begun = int(row["time_ns"]) / 1e6
            elif row["event"] == "wait_end" and begun is not None:
                waits.append((begun, int(row["time_ns"]) / 1e6))
                begun = None
    return Head(np.array(ms), np.array(gib), np.array(waits, np.float64).reshape(-1, 2), whole)


def detail(
    variant: Variant,
    drive: Drive,
    load: Load,
    options: Options,
    ios: int,
    progress: Callable[[int], None] | None = None,
) -> Detail:
    """Run the load, which has so many I/Os, once more and keep what pictures show. Raises as simulate()."""
    rows = ios <= MOST_ROWS
    outcome = simulate(variant.scheduler, drive, load, variant.settings, replace(options, record=rows), progress=progress)
    return Detail(*_distribution(outcome), *(_over_time(outcome) if rows else (np.empty(0), np.empty(0))))


def _distribution(o: Outcome) -> tuple[F64, F64]:
    """The latency of the fastest I/O, of each percentile (closer towards the slowest), and of the slowest."""
    order = np.argsort(o.latencies.ns, kind="stable")
    ns, until = o.latencies.ns[order], np.cumsum(o.latencies.count[order])
    if not len(ns):
        return np.empty(0), np.empty(0)
    total = int(until[-1])
    # Shares of I/Os that are slower: from all down to a single one, evenly on a logarithmic scale.
    slower = np.unique(np.rint(np.geomspace(total, 1, _PERCENTILES)).astype(np.int64))[::-1]
    place = total - slower + 1
    longest = int(o.tallies.latency_max_ns.max())
    ms = ns[np.searchsorted(until, place - 1, side="right")] / 1e6
    ms[-1] = longest / 1e6
    return place / total, ms


def _over_time(o: Outcome) -> tuple[F64, F64]:
    rows = o.rows
    done = rows.complete_ns >= 0
    if not done.any():
        return np.empty(0), np.empty(0)
    end_s = float(rows.complete_ns[done].max()) / 1e9
    edges = np.linspace(0, end_s or 1e-9, _bins(int(done.sum())) + 1)
    size = rows.sectors[done].astype(np.float64) * SECTOR_BYTES / 1e6
    mb, _ = np.histogram(rows.complete_ns[done] / 1e9, edges, weights=size)
    return edges, mb / np.diff(edges)


def _bins(ios: int) -> int:
    """Few I/Os have few bins: each about as many as there are bins."""
    return max(1, min(_BINS, math.isqrt(ios)))
