# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A variant of a scheduler on a load: its run, and those with small changes of the load."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from headwaiter.engine.sim import Drive, Forest, Load, Options, Outcome, simulate
from headwaiter.study.cost import estimated_ios
from headwaiter.study.ongoing import Ongoing
from headwaiter.study.perturb import WIDE_THINK_SHARE, perturbed
from headwaiter.study.progress import Programs, programs_of
from headwaiter.study.ranges import SHORT_IOS, pace, runs_for, typical, with_range
from headwaiter.study.results import summarise
from headwaiter.study.schema import Result
from headwaiter.study.variants import Variant
from headwaiter.study.waits import Waits, contention, slowdown, waits_of


@dataclass(frozen=True)
class Trial:
    """The outcome of a variant."""

    variant: Variant
    result: Result
    """With its range, where the load was perturbed; then of the run in the middle, where throughput is a range."""
    runs: tuple[Result, ...]
    """The unperturbed run, and those with small changes of the load; run i of every trial of a load has the same changes."""
    waits: Waits | None
    """The waits of the run, if the load is a trace or a generated workload."""
    contention: float | None
    """Share of its I/Os that found the device occupied; None if the run was too long to know."""
    programs: Programs | None = None
    """How fast programs get their work done, in the run that the result is of; None where timestamps set their pace."""
    slowdown: float | None = None
    """How many times as long I/Os take as alone, where there is a host; None if that is not known."""


class SoFar:
    """I/Os of one run after another."""

    def __init__(self, progress: Callable[[int], None] | None, ios: int = 0) -> None:
        self.progress, self.ios = progress, ios

    def tick(self, completed: int) -> None:
        """So many I/Os of the run that is under way."""
        if self.progress:
            self.progress(self.ios + completed)

    def over(self, completed: int) -> None:
        """It is over, after so many."""
        self.tick(completed)
        self.ios += completed


@dataclass(frozen=True)
class Ran:
    """The outcome of a single run."""

    outcome: Outcome | None
    """None where only the figures are wanted."""
    result: Result
    waits: Waits | None
    programs: Programs | None


@dataclass(frozen=True)
class _Begun:
    """A variant after its unperturbed run: what that came to, and how many I/Os it had."""

    variant: Variant
    load: Load
    first: Ran
    contention: float | None
    slowdown: float | None
    ios: int
    so_far: SoFar


def _begin(
    variant: Variant,
    drive: Drive,
    load: Load,
    options: Options,
    progress: Callable[[int], None] | None = None,
    tasks: bool = True,
) -> _Begun:
    """The unperturbed run of a variant."""
    load, first = first_run(variant, drive, load, options, progress=progress, tasks=tasks)
    outcome = first.outcome
    assert outcome
    occupied = first.waits.contention if first.waits else _contention(outcome)
    slower = _slowdown(outcome)
    so_far = SoFar(progress)
    so_far.over(outcome.totals["completed"])
    return _Begun(variant, load, replace(first, outcome=None), occupied, slower, outcome.totals["issued"], so_far)


def _finish(begun: _Begun, drive: Drive, options: Options, number: int, tasks: bool = True) -> Trial:
    """Those with changes of the load."""
    variant, load, so_far = begun.variant, begun.load, begun.so_far
    every = [begun.first, *others(variant, drive, load, options, number, tasks=tasks, progress=so_far)]
    wide = [one.result for one in others(variant, drive, load, options, number // 2, WIDE_THINK_SHARE, tasks, so_far)]
    results = [one.result for one in every]
    # Where a few microseconds decide who is favoured, a single run may be the exception.
    shown = typical(every, lambda one: pace(begun.first.result).of(one.result))
    ranged = with_range(results[0], results[1:])
    return Trial(variant, ranged, (*results, *wide), shown.waits, begun.contention, shown.programs, begun.slowdown)


def measure(
    variant: Variant,
    drive: Drive,
    load: Load,
    options: Options,
    runs: int | None = None,
    progress: Callable[[int], None] | None = None,
    tasks: bool = True,
) -> Trial:
    """Run a variant, and again with small changes of the load: `runs` times, and half as often with larger ones of think times.

    runs None: RUNS for short loads, else 0. Without `tasks`, results have no rows of tasks. The result's range is of the smaller
    changes.
    """
    begun = _begin(variant, drive, load, options, progress, tasks)
    return _finish(begun, drive, options, runs_for(begun.ios, runs), tasks)


def measure_all(
    each: Sequence[tuple[Variant, Options]],
    drive: Drive,
    load: Load,
    runs: int | None = None,
    progress: Callable[[str, int], None] | None = None,
    tasks: bool = True,
) -> list[Trial]:
    """Measure each variant as measure() does, in the order given, as many at once as there are processors.

    All have the same number of runs, for run i of one is compared with run i of another: with runs None it is that of the variant
    under which the load is longest. `progress(name, completed)` is called from the workers' threads.
    """

    def first(one: tuple[Variant, Options]) -> _Begun:
        variant, options = one
        tick = (lambda done: progress(variant.name, done)) if progress else None
        return _begin(variant, drive, load, options, tick, tasks)

    # The simulator runs outside Python's lock, so threads are enough.
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        begun = list(pool.map(first, each))
        number = runs_for(max((one.ios for one in begun), default=0), runs)
        return list(pool.map(lambda one, conditions: _finish(one, drive, conditions[1], number, tasks), begun, each))


def first_run(
    variant: Variant,
    drive: Drive,
    load: Load,
    options: Options,
    log: Path | None = None,
    progress: Callable[[int], None] | None = None,
    tasks: bool = True,
) -> tuple[Load, Ran]:
    """The unperturbed run of a variant, and the load that it was made with; `log` as in simulate().

    Programs that go on are repeated until none comes to its end under this variant, as far as there is room.
    """
    # A run of jobs may be as long as it likes; its rows are kept if it is short.
    record = isinstance(load, Forest) or estimated_ios(load, drive, options) <= SHORT_IOS
    options = replace(options, record=record or options.record)
    load = load.under(variant.scheduler) if isinstance(load, Forest) else load
    while True:
        outcome = simulate(variant.scheduler, drive, load, variant.settings, options, log, progress)
        more = load.longer(np.asarray(outcome.rows.issue_ns)) if isinstance(load, Ongoing) else None
        if more is None:
            return load, _ran(variant, outcome, load, tasks)
        load = more


def others(
    variant: Variant,
    drive: Drive,
    load: Load,
    options: Options,
    runs: int,
    think_share: float | None = None,
    tasks: bool = True,
    progress: SoFar | None = None,
) -> Iterator[Ran]:
    """Run so many perturbed runs, without their outcomes."""
    for number in range(1, runs + 1):
        more = () if think_share is None else (think_share,)
        other_load, other_options = perturbed(load, options, number, *more)
        other_options = replace(other_options, record=isinstance(other_load, Forest))
        tick = progress.tick if progress else None
        outcome = simulate(variant.scheduler, drive, other_load, variant.settings, other_options, progress=tick)
        if progress:
            progress.over(outcome.totals["completed"])
        yield replace(_ran(variant, outcome, other_load, tasks), outcome=None)


def _ran(variant: Variant, outcome: Outcome, load: Load, tasks: bool) -> Ran:
    waits = waits_of(outcome, load) if isinstance(load, Forest) else None
    closed = waits and isinstance(load, Forest) and bool((load.parent >= 0).any())
    programs = programs_of(outcome, load)
    result = replace(
        summarise(outcome, tasks),
        variant=variant.name if variant.name != variant.scheduler else None,
        waited_s=waits.waited_s if waits and closed else None,
        progress_mbps=programs.progress_mbps if programs else None,
    )
    return Ran(outcome, replace(result, programs=programs.rows()) if programs and tasks else result, waits, programs)


def _slowdown(outcome: Outcome) -> float | None:
    """Return the slowdown of a run with a host: a disk is slower under load, whatever is done."""
    if outcome.recorded is None or not outcome.totals["cores"]:
        return None
    rows = outcome.recorded
    there = np.flatnonzero((np.asarray(rows.issue_ns) >= 0) & (np.asarray(rows.complete_ns) >= 0))
    return slowdown(rows.issue_ns[there], rows.complete_ns[there], rows.op[there], rows.sectors[there])


def _contention(outcome: Outcome) -> float | None:
    if outcome.recorded is None or not len(outcome.recorded.issue_ns):
        return None
    rows = outcome.recorded
    return contention(np.asarray(rows.issue_ns), np.asarray(rows.complete_ns), int(outcome.totals["queue_depth"]))
