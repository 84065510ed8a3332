# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One scheduler on one workload: the document of `headwaiter run --json`, and of Run.to_json() in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from headwaiter.base.figures import digits
from headwaiter.engine.sim import Drive, Load, Options, Outcome
from headwaiter.study.drive_fit import doubts
from headwaiter.study.ranges import runs_for, told_range, with_range
from headwaiter.study.results import coarse_note, processor_time
from headwaiter.study.schema import RunDocument
from headwaiter.study.trial import SoFar, first_run, others
from headwaiter.study.variants import Variant
from headwaiter.study.workload import Workload


@dataclass(frozen=True)
class Single:
    """The figures of a run, what came of it I/O by I/O, and the load that it was made with."""

    document: RunDocument
    outcome: Outcome
    load: Load


def run_single(
    work: Workload,
    drive: Drive,
    variant: Variant,
    options: Options,
    asked: int | None,
    *,
    seed: int,
    log: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Single:
    """Run a variant once, and `asked` times more with small changes of the load, whose range the figures then have.

    asked: None for as many as a load of that length has. log: as in simulate(). progress: called with the number of I/Os done.
    """
    load, first = first_run(variant, drive, work.load, options, log, progress)
    assert first.outcome
    so_far = SoFar(progress, first.outcome.totals["completed"]) if progress else None
    runs = runs_for(first.outcome.totals["issued"], asked)
    more = [one.result for one in others(variant, drive, load, options, runs, progress=so_far)]
    result = replace(first.result, range=with_range(first.result, more).range)
    notes = [*work.notes, *doubts(work, drive), *coarse_note([result], options.exact)]
    if told := told_range(result):
        notes.append(
            "with small changes of processor time, starts and think times, throughput is"
            f" {digits(told.low)} to {digits(told.high)} MB/s"
        )
    document = RunDocument(
        workload=work.name,
        workload_sha256=work.sha256,
        drive=drive.name,
        seed=seed,
        replay=work.replay,
        processor=processor_time(options),
        notes=notes,
        results=[result],
    )
    return Single(document, first.outcome, load)
