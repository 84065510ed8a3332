# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a document claims, and how it is decided: figures of a measurement, each with the band in which the claim holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from headwaiter.base.figures import digits

if TYPE_CHECKING:
    from headwaiter.papers.reproduce.bench import Bench

M = TypeVar("M")

DIGITS = 3
"""A figure is shown with so many (headwaiter.base.figures). A difference that nobody can see decides nothing."""


@dataclass(frozen=True)
class Band:
    """From `low` to `high`, both included."""

    low: float = -math.inf
    high: float = math.inf

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if self.low == -math.inf:
            return f"≤ {self.high:g}"
        return f"≥ {self.low:g}" if self.high == math.inf else f"{self.low:g} … {self.high:g}"


def most(high: float) -> Band:
    """No more than that."""
    return Band(high=high)


def least(low: float) -> Band:
    """No less than that."""
    return Band(low=low)


@dataclass(frozen=True)
class Check:
    """One figure of a claim; `what` says which, where there are several. events: how many it rests on, where that can be few."""

    value: float
    band: Band
    what: str = ""
    events: int | None = None

    @property
    def holds(self) -> bool:
        """Return whether it lies in its band, to the digits that are shown; what cannot be measured (nan) does not."""
        return self.value in self.band or (math.isfinite(self.value) and float(f"{self.value:.{DIGITS}g}") in self.band)

    def __str__(self) -> str:
        return f"{self.what} {digits(self.value)}" if self.what else digits(self.value)


FEWEST = 100
"""Fewer events tell nothing: by chance alone their number is off by a tenth."""
Cell: TypeAlias = str | float | None
Row: TypeAlias = Sequence[Cell]


@dataclass(frozen=True)
class PaperTable:
    """Cells in rows; numbers stay numbers. None is a cell without a figure."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Investigation:
    """An explanation of a result that is not the published one: a sentence with figures, and the table that they are from."""

    text: str
    table: PaperTable | None = None


@dataclass(frozen=True)
class Claim(Generic[M]):
    """A claim on what an experiment measures (M). `paper` is the published figure, as printed.

    why: makes the investigation, where the claim does not hold or `always` (it holds with a reservation). shortest: by
    level the scale below which a run cannot tell it, because too little happens. levels: where it is measured, if not wherever
    its experiment is.
    """

    id: str
    text: str
    paper: str
    checks: Callable[[M], Sequence[Check]]
    essential: bool = False
    why: Callable[[Bench, M], Investigation] | None = None
    always: bool = False
    shortest: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    levels: Sequence[str] = ("sim", "lab")


def outcome(*, holds: bool, too_short: bool) -> str:
    """Return a verdict in words."""
    return "too short to tell" if too_short else "holds" if holds else "does not hold"


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim, decided at one level."""

    id: str
    level: str
    essential: bool
    text: str
    paper: str
    checks: tuple[Check, ...]
    investigation: Investigation | None = None
    too_short: bool = False
    """The run was too short to tell, whatever its figures are: at its scale, or because too little happened in it."""

    @property
    def holds(self) -> bool:
        """All figures lie in their bands."""
        return all(check.holds for check in self.checks)

    @property
    def fails(self) -> bool:
        """It was decided, and does not hold."""
        return not self.holds and not self.too_short

    @property
    def outcome(self) -> str:
        """In words."""
        return outcome(holds=self.holds, too_short=self.too_short)

    @property
    def value(self) -> str:
        """The figures, as people read them."""
        return ", ".join(str(check) for check in self.checks)

    @property
    def holds_if(self) -> str:
        """The bands."""
        return ", ".join(dict.fromkeys(f"{check.what} {check.band}".strip() for check in self.checks))
