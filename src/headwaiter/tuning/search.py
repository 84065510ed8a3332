# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The search for settings by Optuna, on the part of a workload that is there for it.

A batch of settings is asked for, run, and told back. The size of a batch is fixed, whatever the number of processors, so that the
same seed finds the same settings on every machine. All settings are run with the same small changes of the load.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headwaiter.base.errors import Problem
from headwaiter.engine.sim import Drive
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.compare import RANKINGS, rank
from headwaiter.study.cost import estimated_ios
from headwaiter.study.ranges import SHORT_IOS, read_latency
from headwaiter.study.schema import Criterion
from headwaiter.study.trial import Trial, measure_all
from headwaiter.study.variants import Variant
from headwaiter.study.workload import OPEN, Workload
from headwaiter.tuning.space import Dial, size

TRIALS = 64
"""Settings that are tried, unless somebody says otherwise."""
BATCH = 4
RANDOM = 16
"""So many settings are chosen by chance before the search learns from them."""
RUNS = ((SHORT_IOS // 4, 6), (SHORT_IOS, 2))
"""Perturbed runs of each, for loads of up to so many I/Os, and half as many with larger changes of think times."""
LONG_MS = 1000.0
"""Nobody may wait for longer than this, and twice as long as at the start: what is beyond counts against settings."""
LEVELS = 5
"""Values of a tunable that tell how important it is, beside the best one."""
_IDLE_BATCHES = 25
"""After so many batches without a new setting, there is nothing left to find."""

Values = tuple[int, ...]
"""A value of each dial."""


@dataclass(frozen=True)
class Tried:
    """Settings that were run. ahead: the logarithm of a ratio to the start, above 0 where they are better."""

    values: Values
    ahead: float


@dataclass(frozen=True)
class Searched:
    """The outcome of a search. best: the values that are left when what earns too little is put back.

    importance: of each dial, shares of 1; nothing where none makes a difference. without: of each dial that is not where it was,
    how much is lost if it were, as a logarithm. asked: settings asked for, some of them more than once.
    """

    criterion: Criterion
    tried: tuple[Tried, ...]
    best: Tried
    importance: Mapping[str, float]
    without: Mapping[str, float]
    asked: int


def optimiser() -> Any:
    """Optuna. Problem if it is not installed."""
    try:
        import optuna  # noqa: PLC0415
    except ImportError:
        raise Problem("tune needs Optuna (pip install 'headwaiter[tune]')") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def variant_of(start: Variant, dials: Sequence[Dial], values: Values) -> Variant:
    """The scheduler with other settings than at the start, under a name that tells them."""
    changed = [(one, value) for one, value in zip(dials, values, strict=True) if value != one.start]
    put = {one.name: value for one, value in changed}
    name, *pairs = start.name.split(":")
    kept = (pair for pair in pairs if pair.partition("=")[0] not in put)
    words = (f"{one.name}={one.tunable.show(value)}" for one, value in changed)
    return Variant(start.scheduler, ":".join([name, *kept, *words]), {**start.settings, **put})


@dataclass
class TuningBench:
    """The bench on which settings are run, each once."""

    start: Variant
    dials: tuple[Dial, ...]
    work: Workload
    drive: Drive
    conditions: RunConditions
    criterion: Criterion | None
    progress: Callable[[str, int], None] | None = None
    scores: dict[Values, float] = field(default_factory=dict)
    patience_ms: float = 0.0

    def __post_init__(self) -> None:
        self.work = self.conditions.load(self.work, self.drive)
        options = self.conditions.options(self.drive, self.work.trace)
        ios = estimated_ios(self.work.load, self.drive, options)
        self.runs = next((runs for most, runs in RUNS if ios <= most), 0)

    def run(self, wanted: Sequence[Values]) -> list[float]:
        """The score of each: the logarithm of the figure, more is better."""
        new = [one for one in dict.fromkeys(wanted) if one not in self.scores]
        variants = [variant_of(self.start, self.dials, one) for one in new]
        each = self.conditions.runs(variants, self.drive, self.work.trace)
        for values, trial in zip(new, measure_all(each, self.drive, self.work.load, self.runs, tasks=False), strict=True):
            self.scores[values] = self._score(trial)
        if self.progress:
            self.progress(self.start.name, len(self.scores))
        return [self.scores[one] for one in wanted]

    def _score(self, trial: Trial) -> float:
        if self.criterion is None:
            # As the judge does, which holds timestamps' paces for nothing.
            self.criterion, _ = rank([trial.result], "latency" if self.work.replay == OPEN else None)
        longest = float(np.median([read_latency(run).max for run in trial.runs]))
        self.patience_ms = self.patience_ms or max(LONG_MS, 2 * longest)
        _, figure, sign = RANKINGS[self.criterion]
        mean = float(np.mean([-sign * np.log(max(figure.of(run), 1e-12)) for run in trial.runs]))
        return mean - max(0.0, float(np.log(max(longest, 1e-12) / self.patience_ms)))


def search(bench: TuningBench, trials: int | None, seconds: float | None, seed: int, margin: float) -> Searched:
    """Look for the best values: so many trials, or so long, whichever ends first; and put back what brings less than a margin.

    trials None: TRIALS, or as many as the time allows where that is given.
    """
    optuna = optimiser()
    dials = bench.dials
    start = tuple(one.start for one in dials)
    bench.run([start])
    assert bench.criterion
    limit = (TRIALS if seconds is None else None) if trials is None else trials
    until = None if seconds is None else time.monotonic() + seconds
    sampler = optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=RANDOM, multivariate=True, constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial({one.name: _place(one, one.start) for one in dials})
    asked, idle = 0, 0
    while (limit is None or asked < limit) and (until is None or not asked or time.monotonic() < until):
        many = BATCH if limit is None else min(BATCH, limit - asked)
        batch = [study.ask() for _ in range(many)]
        wanted = [tuple(_suggested(trial, one) for one in dials) for trial in batch]
        before = len(bench.scores)
        for trial, score in zip(batch, bench.run(wanted), strict=True):
            study.tell(trial, score - bench.scores[start])
        asked += many
        idle = idle + 1 if len(bench.scores) == before else 0
        if len(bench.scores) >= size(dials) or idle >= _IDLE_BATCHES:
            break
    best = _moderate(bench, start, float(np.log1p(margin)))
    importance = _importance(bench, best)
    without = _without(bench, best, start)
    tried = tuple(Tried(values, score - bench.scores[start]) for values, score in bench.scores.items())
    return Searched(bench.criterion, tried, Tried(best, bench.scores[best] - bench.scores[start]), importance, without, asked)


def _place(dial: Dial, value: int) -> int:
    """Return what stands for a value in Optuna: its place among the values, where neighbours are alike."""
    return dial.values.index(value) if dial.ordered else value


def _suggested(trial: Any, dial: Dial) -> int:
    if dial.ordered:
        place: int = trial.suggest_int(dial.name, 0, len(dial.values) - 1)
        return dial.values[place]
    found: int = trial.suggest_categorical(dial.name, dial.values)
    return found


def _importance(bench: TuningBench, best: Values) -> dict[str, float]:
    """Return by how much each dial alone moves the figure around the best settings: its share of the sum of variances.

    It is measured, and not read from the trials as fANOVA and PED-ANOVA do. The search turns early to what is good, so that few
    trials are left which show how bad another value of the most important dial is.
    """
    spread: dict[str, float] = {}
    for i, dial in enumerate(bench.dials):
        last = len(dial.values) - 1
        places = {round(last * step / (LEVELS - 1)) for step in range(LEVELS)} | {dial.values.index(dial.start)}
        values = sorted({dial.values[place] for place in places} | {best[i]})
        spread[dial.name] = float(np.var(bench.run([_with(best, i, value) for value in values])))
    total = sum(spread.values())
    return {name: share / total for name, share in spread.items()} if total > 0 else {}


def _moderate(bench: TuningBench, start: Values, edge: float) -> Values:
    """The best values, those put back to the start that bring less than `edge` each, and the others as near to it as may be."""
    best = max(bench.scores, key=lambda values: bench.scores[values])
    while backs := [_with(best, i, start[i]) for i in range(len(start)) if best[i] != start[i]]:
        score, nearer = max(zip(bench.run(backs), backs, strict=True))
        if score < bench.scores[best] - edge:
            break
        best = nearer
    least = bench.scores[best] - edge
    for i, dial in enumerate(bench.dials):
        steps = [_with(best, i, value) for value in _between(dial, start[i], best[i])]
        best = next((one for one, score in zip(steps, bench.run(steps), strict=True) if score >= least), best)
    return best


def _with(values: Values, at: int, value: int) -> Values:
    return (*values[:at], value, *values[at + 1 :])


def _between(dial: Dial, start: int, best: int) -> list[int]:
    """The values from the start, which is among them, to the best one, which is not."""
    if not dial.ordered or start == best:
        return [start] if start != best else []
    first, last = dial.values.index(start), dial.values.index(best)
    return list(dial.values[first:last] if first < last else dial.values[first:last:-1])


def _without(bench: TuningBench, best: Values, start: Values) -> dict[str, float]:
    """Return what is lost without each value that is not as at the start."""
    changed = [i for i in range(len(start)) if best[i] != start[i]]
    scores = bench.run([_with(best, i, start[i]) for i in changed])
    return {bench.dials[i].name: score - bench.scores[best] for i, score in zip(changed, scores, strict=True)}
