# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The judge: one workload, one drive, some schedulers, under the same conditions whoever asks; and one verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from headwaiter.engine.sim import Drive, Forest, Options
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.verdict import answer, baseline
from headwaiter.study.compare import explain, rank, uncertain, without_processor
from headwaiter.study.drive_fit import UNKNOWN, doubt, fit
from headwaiter.study.faith import replayed, told
from headwaiter.study.inkernel import depth_of
from headwaiter.study.ranges import label
from headwaiter.study.results import coarse_note, processor_time
from headwaiter.study.schema import Answer, CompareDocument, Criterion, Fit, Lever, Replayed, Result
from headwaiter.study.trial import Trial, measure_all
from headwaiter.study.variants import Variant
from headwaiter.study.windows import SAMPLED_RUNS
from headwaiter.study.workload import OPEN, Workload

MARGIN = 0.05
"""Differences of a smaller share do not matter, unless somebody says otherwise."""


@dataclass(frozen=True)
class Judged:
    """Variants of schedulers on one workload and drive, best first by the criterion. `work` is the workload as it was run."""

    work: Workload
    drive: Drive
    conditions: RunConditions
    criterion: Criterion
    trials: tuple[Trial, ...]
    answer: Answer
    why: str
    uncertain: str
    notes: tuple[str, ...]
    levers: tuple[Lever, ...] = ()
    """Levers that help beside a scheduler (levers.py), if they were asked for."""
    recorded_under: str | None = None
    fit: Fit | None = None
    """The fit of the drive to the recording, if that has completions."""
    replayed: Replayed | None = None
    """How true the replay under the scheduler that was in force is, if that is known."""

    @property
    def results(self) -> list[Result]:
        """A result for each variant."""
        return [trial.result for trial in self.trials]

    @property
    def options(self) -> Options:
        """Return what they have in common."""
        return self.conditions.options(self.drive, self.work.trace)

    def options_of(self, trial: Trial) -> Options:
        """Return what one of them was run with."""
        options = self.options
        return self.conditions.of(options, trial.variant.scheduler, depth_of(self.drive, options), self.recorded_under)

    def document(self) -> CompareDocument:
        """Return what `headwaiter compare --json` prints."""
        return CompareDocument(
            workload=self.work.name,
            workload_sha256=self.work.sha256,
            drive=self.drive.name,
            seed=self.conditions.seed,
            replay=self.work.replay,
            ranked_by=self.criterion,
            why=self.why,
            uncertain=self.uncertain,
            answer=self.answer,
            levers=self.levers,
            fit=self.fit,
            replayed=self.replayed,
            processor=processor_time(self.options),
            notes=self.notes,
            results=self.results,
        )


def runs_of(work: Workload, asked: int | None) -> int | None:
    """Return how often a workload is run with small changes, as measure_all() takes it; a sample of a long one fewer times."""
    return SAMPLED_RUNS if asked is None and work.windows else asked


def judge(
    work: Workload,
    drive: Drive,
    variants: Sequence[Variant],
    conditions: RunConditions,
    *,
    by: Criterion | None = None,
    runs: int | None = None,
    current: str | None = None,
    recorded_under: str | None = None,
    have: Collection[str] | None = None,
    margin: float = MARGIN,
    anyway: bool = False,
    doubted: bool = True,
    tasks: bool = True,
    progress: Callable[[str, int], None] | None = None,
) -> Judged:
    """Run every variant on the workload, and judge them.

    by None: see compare.rank(). runs: with small changes of the load (None: 8 for short loads, see runs_of()). current: name
    of the variant that others are held against (None: that in force at the recording, else see verdict.baseline()).
    recorded_under: the scheduler that was in force at the recording (None: as far as that tells). have: schedulers that the
    kernel has (None: the recorded one's, else those of an unchanged one). margin: a share. anyway: judge even on a drive that is
    not the recorded one. doubted: hold the drive against the recording, and look for one that fits better. That takes long.
    tasks: results have rows of tasks. progress(variant, I/Os done) comes from any thread. Problem as simulate() raises it.
    """
    work = conditions.load(work, drive)
    recording = work.recording
    if recording:
        recorded_under = recorded_under or recording.scheduler or None
        have = recording.schedulers or None if have is None else have
    options = conditions.options(drive, work.trace)
    each = conditions.runs(variants, drive, work.trace, recorded_under)
    trials = measure_all(each, drive, work.load, runs_of(work, runs), progress, tasks)
    results = [trial.result for trial in trials]
    is_open = work.replay == OPEN and isinstance(work.load, Forest)
    # Timestamps set the throughput of an open replay; what is left of differences is the last requests'.
    criterion, ranked = rank(results, by or ("latency" if is_open else None))
    current = current or trials[baseline(trials, recorded_under)].variant.name
    by_name = {trial.variant.name: trial for trial in trials}
    ordered = tuple(by_name[label(r)] for r in ranked)
    under = recorded_under or UNKNOWN
    known = fit(recording, drive, under) if recording and doubted else None
    line, refused = doubt(known, recording, drive, under)
    as_recorded = by_name.get(current)
    true = replayed(work, as_recorded) if as_recorded and as_recorded.variant.scheduler == recorded_under else None
    judged = answer(
        ordered,
        criterion,
        is_open=is_open,
        current=current,
        margin=margin,
        seed=conditions.seed,
        wrong_drive=line if refused and not anyway else "",
        have=have,
        windows=work.windows,
    )
    return Judged(
        work=work,
        drive=drive,
        conditions=conditions,
        criterion=criterion,
        trials=ordered,
        answer=judged,
        why=explain(criterion, ranked),
        uncertain=uncertain(criterion, ranked),
        notes=(
            *work.notes,
            *((line,) if line and judged.outcome != "wrong drive" else ()),
            *((told(true),) if true else ()),
            *coarse_note(results, options.exact),
            *without_processor(trials, drive, work.load, each),
        ),
        recorded_under=recorded_under,
        fit=known,
        replayed=true,
    )
