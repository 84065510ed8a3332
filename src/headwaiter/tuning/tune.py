# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The best tunables of a scheduler for a workload, and whether they are better where the search has not looked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import Drive
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.judge import MARGIN, Judged, judge, runs_of
from headwaiter.judge.verdict import ahead_words
from headwaiter.study.changes import ahead_log, interval_words
from headwaiter.study.schema import Criterion, Margin
from headwaiter.study.trial import Trial
from headwaiter.study.variants import Variant
from headwaiter.study.workload import Reading, Workload
from headwaiter.tuning.halves import Halves, halves
from headwaiter.tuning.schema import Shown, TriedRow, TuneDocument, TunedRow
from headwaiter.tuning.search import Searched, TuningBench, Values, optimiser, search, variant_of
from headwaiter.tuning.space import Dial, dials


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search. judged: on the part held out; None if the search found nothing better than its start."""

    work: Workload
    drive: Drive
    conditions: RunConditions
    start: Variant
    best: Variant
    parts: Halves
    dials: tuple[Dial, ...]
    found: Searched
    margin: float
    judged: Judged | None

    @property
    def recommended(self) -> bool:
        """Return whether the best settings are better on the part held out, too."""
        return self.judged is not None and self.judged.answer.best == self.best.name

    @property
    def text(self) -> str:
        """Return what to do, in plain sentences."""
        return _text(self)

    @property
    def settings(self) -> Shown:
        """Tunables of the best settings that differ from the start."""
        return self._shown(self.found.best.values)

    @property
    def apply(self) -> list[str]:
        """Commands that apply what is recommended."""
        if not self.recommended:
            return []
        policy = find(self.best.scheduler)
        words = (f"{name}={policy.show(name, value)}" for name, value in self.best.settings.items() if isinstance(value, int))
        return [f"headwaiter apply sdX {':'.join([policy.kernel_name, *words])}"]

    @property
    def rows(self) -> list[TunedRow]:
        """A row for each tunable, the most important first."""
        found = self.found
        made = [self._row(one, value) for one, value in zip(self.dials, found.best.values, strict=True)]
        return sorted(made, key=lambda row: (row.value == row.start, -(row.importance_percent or 0.0)))

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the reader must know."""
        said = self.judged.notes if self.judged else self.parts.held.notes
        return tuple(dict.fromkeys((*self.work.notes, *said)))

    def document(self) -> TuneDocument:
        """Return what `headwaiter tune --json` prints."""
        judged = self.judged
        return TuneDocument(
            workload=self.work.name,
            workload_sha256=self.work.sha256,
            drive=self.drive.name,
            scheduler=self.start.name,
            seed=self.conditions.seed,
            replay=self.work.replay,
            ranked_by=self.found.criterion,
            trained_on=self.parts.trained_name,
            held_out=self.parts.held_name,
            trials=self.found.asked,
            settings=self.settings,
            trained_percent=100 * math.expm1(self.found.best.ahead),
            recommended=self.recommended,
            text=self.text,
            answer=judged.answer if judged else None,
            fit=judged.fit if judged else None,
            apply=self.apply,
            undo=["headwaiter revert sdX"] if self.recommended else [],
            tunables=self.rows,
            tried=[
                TriedRow(settings=self._shown(one.values), ahead_percent=100 * math.expm1(one.ahead)) for one in self.found.tried
            ],
            results=judged.results if judged else [],
            notes=self.notes,
        )

    def _shown(self, values: Values) -> Shown:
        pairs = zip(self.dials, values, strict=True)
        return {one.name: one.tunable.show(value) for one, value in pairs if value != one.start}

    def _row(self, one: Dial, value: int) -> TunedRow:
        share, lost = self.found.importance.get(one.name), self.found.without.get(one.name)
        return TunedRow(
            tunable=one.name,
            start=one.tunable.show(one.start),
            value=one.tunable.show(value),
            unit=one.tunable.unit,
            values=[one.tunable.show(each) for each in one.values],
            importance_percent=None if share is None else 100 * share,
            without_percent=None if lost is None else -100 * math.expm1(lost),
        )


def tune(
    path: Path,
    work: Workload,
    drive: Drive,
    start: Variant,
    conditions: RunConditions,
    reading: Reading,
    *,
    by: Criterion | None = None,
    trials: int | None = None,
    seconds: float | None = None,
    runs: int | None = None,
    margin: float = MARGIN,
    anyway: bool = False,
    doubted: bool = True,
    progress: Callable[[str, int], None] | None = None,
) -> Tuned:
    """Search the tunables of a scheduler on one part of a workload, and hold the best against its start on another.

    path: where the workload comes from, and reading how it is read. start: the scheduler, with the settings from which the search
    starts. trials, seconds: how many settings are asked for, and for how long, whichever ends first (see search()). The other
    arguments are those of judge(). progress(scheduler, settings run) comes from this thread. Problem without Optuna, if the
    scheduler has no tunables or the workload no two parts, and as judge().
    """
    optimiser()
    policy = find(start.scheduler)
    found_dials = dials(policy, {name: value for name, value in start.settings.items() if isinstance(value, int)})
    parts = halves(path, work, drive, reading, conditions)
    bench = TuningBench(start, found_dials, parts.trained, drive, parts.trained_under, by, progress)
    found = search(bench, trials, seconds, conditions.seed, margin)
    best = variant_of(start, found_dials, found.best.values)
    judged = None
    if best.name != start.name:
        judged = judge(
            parts.held,
            drive,
            [start, best],
            parts.held_under,
            by=found.criterion,
            runs=runs_of(parts.held, runs),
            current=start.name,
            have=[policy.name],
            margin=margin,
            anyway=anyway,
            doubted=doubted,
        )
    return Tuned(work, drive, conditions, start, best, parts, found_dials, found, margin, judged)


def _text(told: Tuned) -> str:
    """The verdict, beginning with what to do."""
    start, best, first, second = told.start.name, told.best.name, told.parts.trained_name, told.parts.held_name
    good = f"{start} is as good as it is" if told.start.settings else "The defaults are as good"
    if told.judged is None:
        many = f"none of {len(told.found.tried)} settings" if len(told.found.tried) > 1 else "no other settings"
        return f"{good}: on {first}, {many} was more than {told.margin:.0%} better than {start}."
    answer = told.judged.answer
    if not answer.margins:
        return answer.text
    if told.recommended:
        return f"Take {best}. On {second}, which the search has not seen: {answer.text.partition('; ')[2]}"
    base = next(trial for trial in told.judged.trials if trial.variant.name == start)
    margin = next(one for one in answer.margins if one.scheduler == best)
    said = _ahead(told.judged.criterion, margin, base)
    on_first = ahead_words(told.found.criterion, told.found.best.ahead, base)
    of = f"with {best}, the best on {first} ({on_first}), on {second} {said}"
    if margin.judgement == "worse":
        return f"Keep {start}: {of}."
    if margin.judgement == "equivalent":
        return f"{good}: {of}."
    return f"{good}, as far as can be told: {of}." if _holds_zero(margin) else f"Cannot tell, so keep {start}: {of}."


def _holds_zero(margin: Margin) -> bool:
    low, high = margin.low_percent, margin.high_percent
    return (low is None or low <= 0) and (high is None or high >= 0)


def _ahead(by: Criterion, margin: Margin, base: Trial) -> str:
    """Return how far ahead the best settings are on the part held out, with the interval."""
    words = ahead_words(by, ahead_log(margin.ahead_percent), base)
    if margin.low_percent is None or margin.high_percent is None:
        return f"{words} (the sample is too small for an interval)"
    inner = interval_words(by, ahead_log(margin.low_percent), ahead_log(margin.high_percent))
    return f"{words} (95% interval: {inner})" if inner else words
