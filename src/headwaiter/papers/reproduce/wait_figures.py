# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What came of waits under the forms of the anticipatory scheduler that the paper on WAS compares, draw after draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from headwaiter.base.records import fields
from headwaiter.papers.reproduce.bench import ratio
from headwaiter.papers.reproduce.claims import Band, Check
from headwaiter.papers.was.config import Config
from headwaiter.study.schema import Anticipation

MADE_FROM = ("cold-boot", "andrew")
"""The recordings that intervals are made from."""
FORMS = ("as-95", "as", *(f"was ({name})" for name in MADE_FROM))
BETTER_FORM = "was (better)"
"""In each draw the configuration that loses less."""


@dataclass(frozen=True)
class WaitFigures:
    """The outcome of waits, and MB/s, by workload and form of the scheduler, in each draw."""

    waits: Mapping[tuple[str, str], Sequence[Anticipation | None]]
    mbps: Mapping[tuple[str, str], Sequence[float]]
    intervals: Mapping[str, Config]
    """The first draw's."""
    busiest: Mapping[str, Sequence[int]]
    """By recording of the first draw, those of the class that waits most: successes in each millisecond, then failures."""

    @property
    def workloads(self) -> Sequence[str]:
        """Their names."""
        return list(dict.fromkeys(name for name, _ in self.waits))

    @cached_property
    def better(self) -> Mapping[str, Sequence[str]]:
        """Return the better configuration of each workload, by draw."""

        def least_cost(name: str, draw: int) -> str:
            def cost(form: str) -> float:
                found = self.waits[name, form][draw]
                return found.cost_ms if found and found.cost_ms is not None else math.inf

            return min(FORMS[2:], key=cost)

        return {name: [least_cost(name, draw) for draw in range(len(self.waits[name, FORMS[1]]))] for name in self.workloads}

    def _draws(self, name: str, form: str) -> Sequence[tuple[str, int]]:
        """The form that counts in each draw, and the draw."""
        forms = self.better[name] if form == BETTER_FORM else [form] * len(self.waits[name, form])
        return list(zip(forms, range(len(forms)), strict=True))

    def found(self, name: str, form: str) -> Anticipation | None:
        """Return what came of the waits of all draws; None if there were none."""
        return summed([one for of, draw in self._draws(name, form) if (one := self.waits[name, of][draw])])

    def of(self, name: str, form: str) -> Anticipation:
        """Return what came of the waits, of which there were some."""
        found = self.found(name, form)
        assert found is not None
        return found

    def cost(self, name: str, form: str) -> float:
        """T_F/A_S in ms; nan where no wait was met."""
        found = self.found(name, form)
        return found.cost_ms if found and found.cost_ms is not None else float("nan")

    def rate_mbps(self, name: str, form: str) -> float:
        """Return the mean of MB/s."""
        return fmean(self.mbps[name, of][draw] for of, draw in self._draws(name, form))

    def gain(self, name: str) -> float:
        """T_F/A_S of the better configurations by that of `as`."""
        return ratio(self.cost(name, BETTER_FORM), self.cost(name, "as"))

    def gained(self, name: str, band: Band) -> Check:
        """The gain; it rests on the waits that fail under `as`."""
        return Check(self.gain(name), band, events=self.of(name, "as").failed)

    def rate(self, name: str) -> float:
        """MB/s under the better configurations by that under `as`."""
        return ratio(self.rate_mbps(name, BETTER_FORM), self.rate_mbps(name, "as"))

    def beside_95(self, name: str) -> float:
        """T_F/A_S of the better configurations by that of `as-95`."""
        return ratio(self.cost(name, BETTER_FORM), self.cost(name, "as-95"))


def summed(runs: Sequence[Anticipation]) -> Anticipation | None:
    """Return what came of the waits of all runs."""
    if not runs:
        return None
    names = [one.name for one in fields(Anticipation) if one.name != "cost_ms"]
    sums: dict[str, Any] = {name: sum(getattr(run, name) for run in runs) for name in names}
    return Anticipation(**sums, cost_ms=ratio(sums["failed_ms"], sums["met"]) if sums["met"] else None)
