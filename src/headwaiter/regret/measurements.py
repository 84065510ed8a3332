# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All workloads on all drives under all schedulers, several times each: the values of what is contested."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwaiter.base import ending
from headwaiter.base.errors import DoesNotFitError, Problem
from headwaiter.engine.sim import Drive, Load, Options, Outcome, simulate
from headwaiter.judge.conditions import RunConditions
from headwaiter.regret.metrics import MeasuredRun
from headwaiter.regret.workloads import Contest, fit
from headwaiter.study.perturb import perturbed
from headwaiter.study.progress import programs_of
from headwaiter.study.variants import Variant
from headwaiter.study.workload import NR_REQUESTS

STANDINGS = RunConditions(host="lab", nr_requests=NR_REQUESTS, wbt_depth=0, pull_ahead=False, settled=False, positions=True)
"""Those of the figures in docs/regret.md: old and new schedulers by themselves, not each as today's kernel runs it."""
DRIVES = ("barracuda-80g", "cheetah-15k", "wd-re-4tb", "raid0-4x-barracuda-80g", "sata-ssd", "nvme-ssd")
"""One head, a fast one, one with a queue of its own, four; a slow SSD and a fast one."""
SEEDS = 5


@dataclass(frozen=True)
class LoadOnDrive:
    """A workload on a drive."""

    contest: Contest
    drive: str
    values: NDArray[np.float64]
    """Shape (schedulers, seeds, metrics), each in the unit of its metric."""
    part: str = ""
    """The figure that it is of, where it is of a single one."""

    @property
    def workload(self) -> str:
        """The workload's name, with the figure."""
        return f"{self.contest.name}: {self.part}" if self.part else self.contest.name

    @property
    def name(self) -> str:
        """Workload and drive."""
        return f"{self.workload} on {self.drive}"


def measure_cell(contest: Contest, drive: Drive, each: Sequence[tuple[Variant, Options]], seed: int) -> NDArray[np.float64]:
    """Shape (schedulers, metrics), of one seed: 0 is the workload as it is, others change it a little (study/perturb.py)."""
    each = [(variant, replace(options, seed=options.seed + seed)) for variant, options in each]
    fitted = fit(contest, drive, each[0][1])
    values = []
    for variant, own in each:
        load, options = perturbed(fitted.load, own, seed)
        outcome = run(variant, drive, load, options)
        programs = programs_of(outcome, load) if contest.is_of_programs else None
        if contest.is_of_programs and programs is None:
            raise Problem(f"{contest.path}: contested: progress: no program goes on after an I/O that it has waited for")
        values.append(MeasuredRun(replace(fitted, load=load), outcome.rows, programs).values(contest.metrics))
    return np.array(values)


def run(variant: Variant, drive: Drive, load: Load, options: Options) -> Outcome:
    """A run, with its I/Os. Raises Ended if the process has been told to end."""
    ending.check()
    return simulate(variant.scheduler, drive, load, variant.settings, replace(options, record=True, exact=0))


def measure(
    contests: Sequence[Contest],
    drives: Sequence[Drive],
    variants: Sequence[Variant],
    conditions: RunConditions = STANDINGS,
    seeds: int = SEEDS,
    progress: Callable[[str, int], None] | None = None,
) -> tuple[list[LoadOnDrive], list[str]]:
    """A cell for each workload and drive, drives within workloads; as many at once as there are processors. And notes.

    A workload that goes beyond the end of a drive has no cell there, which a note tells; Problem if no cell is left.
    `progress(name, runs)` is called from the workers' threads when the runs of one seed are over.
    """
    pairs = [(contest, drive) for contest in contests for drive in drives]
    each = {drive.name: conditions.runs(variants, drive) for drive in drives}

    def one(job: tuple[tuple[Contest, Drive], int]) -> NDArray[np.float64] | DoesNotFitError:
        (contest, drive), seed = job
        try:
            values = measure_cell(contest, drive, each[drive.name], seed)
        except DoesNotFitError as e:
            return e
        if progress:
            progress(f"{contest.name} on {drive.name}, seed {seed}", len(variants))
        return values

    # The simulator runs outside Python's lock, so threads are enough.
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        try:
            found = iter(list(pool.map(one, [(pair, seed) for pair in pairs for seed in range(seeds)])))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    cells: list[LoadOnDrive] = []
    beyond: dict[str, list[str]] = {}
    for contest, drive in pairs:
        parts = [next(found) for _ in range(seeds)]
        values = [part for part in parts if not isinstance(part, DoesNotFitError)]
        if len(values) == seeds:
            cells.append(LoadOnDrive(contest, drive.name, np.stack(values, axis=1)))
        else:
            beyond.setdefault(contest.name, []).append(drive.name)
    notes = [f"{name} goes beyond the end of {', '.join(small)}: left out there" for name, small in beyond.items()]
    if not cells:
        raise Problem("; ".join(notes))
    return cells, notes
