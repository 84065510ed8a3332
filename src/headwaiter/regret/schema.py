# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The JSON output of `headwaiter regret`. See study/schema.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from headwaiter.base.records import Document, Notes, Record, Says
from headwaiter.study.schema import ProcessorTime


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretStanding(Record):
    """A scheduler over all cells. Of each cell its median over seeds counts."""

    scheduler: Annotated[str, Says("the scheduler, or its variant")]
    mean_percent: Annotated[float, Says("mean regret", "%")]
    low_percent: Annotated[float, Says("the lowest mean of a single seed", "%")]
    high_percent: Annotated[float, Says("the highest", "%")]
    worst_percent: Annotated[float, Says("largest regret", "%")]
    worst_workload: Annotated[str, Says("the workload in which it has that")]
    worst_drive: Annotated[str, Says("the drive on which it has that")]
    why: Annotated[str, Says("what it has lost there, and to whom")]
    close: Annotated[int, Says("cells in which it is within 3% of the best compromise")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretFigure(Record):
    """One of the things that are contested."""

    contested: Annotated[str, Says("which")]
    unit: Annotated[str, Says("of the value; empty for an index")]
    value: Annotated[float | None, Says("median over seeds; null for a time that never ends", null=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretRow(Record):
    """A scheduler in a cell."""

    scheduler: Annotated[str, Says("the scheduler, or its variant")]
    regret_percent: Annotated[float, Says("1 - score / best score, median over seeds", "%")]
    low_percent: Annotated[float, Says("the lowest of a seed", "%")]
    high_percent: Annotated[float, Says("the highest", "%")]
    figures: Annotated[Sequence[RegretFigure], Says("the figures that make the score")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretCell(Record):
    """A workload on a drive."""

    workload: Annotated[str, Says("the workload")]
    drive: Annotated[str, Says("the drive")]
    rows: Annotated[Sequence[RegretRow], Says("every scheduler, in the order given")]


@dataclass(frozen=True, kw_only=True)
class RegretDocument(Document):
    """`headwaiter regret`"""

    seeds: Annotated[int, Says("runs of each cell under each scheduler")]
    seed: Annotated[int, Says("the first seed")]
    reference: Annotated[Sequence[str], Says("the schedulers that set what is best")]
    processor: Annotated[ProcessorTime, Says("processor time of I/O")]
    notes: Notes
    results: Annotated[Sequence[RegretStanding], Says("every scheduler, the least mean regret first")]
    cells: Annotated[Sequence[RegretCell], Says("every cell")]


DOCUMENTS: tuple[type[Record], ...] = (RegretDocument,)
