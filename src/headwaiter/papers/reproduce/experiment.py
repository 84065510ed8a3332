# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An experiment: how it is measured at each level, our figures beside the paper's if it prints some, its claims, its picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic

from headwaiter.judge.detail import Shown
from headwaiter.papers.reproduce.bench import Bench, Level
from headwaiter.papers.reproduce.claims import FEWEST, Claim, ClaimVerdict, M, PaperTable

BOOT_S = 15


@dataclass(frozen=True)
class Chart:
    """Lines of one picture: places along x, and a figure of each by the name of the line."""

    title: str
    x_title: str
    y_title: str
    x: Sequence[float | str]
    lines: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Experiment(Generic[M]):
    """One of a document's experiments. `measure` has a function for each level at which it is run."""

    name: str
    document: str
    title: str
    drive: str
    measure: Mapping[Level, Callable[[Bench], M]]
    tables: Callable[[M], Sequence[PaperTable]]
    claims: Sequence[Claim[M]]
    seconds: Mapping[Level, float]
    """About how long it takes at full scale on two processors of 2 GHz."""
    shortest: float = 0.0
    """It is not run at a smaller scale: it takes little time, and its claims need it."""
    charts: Callable[[M], Sequence[Chart]] = field(default=lambda _: ())
    heads: Callable[[Bench], Sequence[Shown]] | None = None
    """Runs of which a page shows where the head goes."""
    notes: Mapping[Level, str] = field(default_factory=lambda: MappingProxyType({}))
    """What differs from the paper's set-up."""
    printed: bool = True
    """Its document prints figures, which the tables have beside ours."""
    whole: Sequence[Level] = ()
    """Levels at which a shorter run says nothing: it is left out there."""

    def claims_at(self, level: Level) -> list[Claim[M]]:
        """Return those that it decides at a level."""
        return [claim for claim in self.claims if level in claim.levels]

    def runs(self, level: Level, scale: float = 1) -> bool:
        """Return whether it is run at that level and scale."""
        return level in self.measure and (scale >= 1 or level not in self.whole)

    def lasts_s(self, level: Level, scale: float = 1) -> float:
        """About how long it takes at a scale; in the lab a guest boots, too, at any."""
        part = max(scale, self.shortest)
        return self.seconds[level] * part if level == "sim" else BOOT_S + (self.seconds[level] - BOOT_S) * part


@dataclass(frozen=True)
class Finding:
    """The outcome of an experiment at one level."""

    experiment: Experiment[Any]
    level: Level
    tables: tuple[PaperTable, ...]
    charts: tuple[Chart, ...]
    verdicts: tuple[ClaimVerdict, ...]


def run(experiment: Experiment[Any], level: Level, bench: Bench) -> Finding:
    """Measure, and decide every claim that such a run can tell; what does not hold is investigated.

    Problem as the measurement raises it.
    """
    bench = replace(bench, scale=max(bench.scale, experiment.shortest))
    measured = experiment.measure[level](bench)
    verdicts = []
    for claim in experiment.claims_at(level):
        checks = tuple(claim.checks(measured))
        few = any(check.events is not None and check.events < FEWEST for check in checks)
        short = few or bench.scale < claim.shortest.get(level, 0)
        verdict = ClaimVerdict(claim.id, level, claim.essential, claim.text, claim.paper, checks, too_short=short)
        if claim.why and not short and (claim.always or verdict.fails):
            verdict = replace(verdict, investigation=claim.why(bench, measured))
        verdicts.append(verdict)
    return Finding(experiment, level, tuple(experiment.tables(measured)), tuple(experiment.charts(measured)), tuple(verdicts))
