# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fields of `headwaiter tune --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from headwaiter.base.records import Document, Notes, Record, Says
from headwaiter.study.schema import Answer, Criterion, Fit, Replay, Result

Shown = Mapping[str, int | str]
"""Values of tunables by name, choices by theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedRow(Record):
    """A tunable that was searched."""

    tunable: Annotated[str, Says("its name")]
    start: Annotated[int | str, Says("its value without the search")]
    value: Annotated[int | str, Says("its value in the best settings")]
    unit: Annotated[str, Says("its unit")]
    values: Annotated[Sequence[int | str], Says("the values that were tried")]
    importance_percent: Annotated[
        float | None,
        Says("how much it alone moves the figure around the best settings, as a share of what all do; absent if none does", "%"),
    ] = None
    without_percent: Annotated[
        float | None,
        Says("of one that differs from `start`: by how much the first part is worse off without that", "%"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRow(Record):
    """Settings that were run on the first part."""

    settings: Annotated[Shown, Says("tunables that differ from where the search starts")]
    ahead_percent: Annotated[float, Says("how much better they are than those, mean of the perturbed runs", "%")]


@dataclass(frozen=True, kw_only=True)
class TuneDocument(Document):
    """`headwaiter tune`"""

    workload: Annotated[str, Says("name of the workload's file")]
    workload_sha256: Annotated[str, Says("digest of the file")]
    drive: Annotated[str, Says("drive profile")]
    scheduler: Annotated[str, Says("the scheduler, with the settings that the search starts from")]
    seed: Annotated[int, Says("seed of the search and of random load")]
    replay: Annotated[Replay | None, Says("how a trace is replayed", null=True)]
    ranked_by: Annotated[Criterion, Says("the figure that is improved")]
    trained_on: Annotated[str, Says("the part of the workload that was searched on")]
    held_out: Annotated[str, Says("the part that the verdict is of, which the search has not seen")]
    trials: Annotated[int, Says("settings asked for; some more than once")]
    settings: Annotated[Shown, Says("tunables of the best settings that differ from where the search starts; empty: none do")]
    trained_percent: Annotated[float, Says("how much better these are on the first part", "%")]
    recommended: Annotated[bool, Says("they are better on the part held out, too, so that `apply` is advised")]
    text: Annotated[str, Says("the same in plain sentences")]
    answer: Annotated[Answer | None, Says("the judge's verdict on the part held out; null if no settings were better", null=True)]
    fit: Annotated[Fit | None, Says("how well the drive explains the part held out")] = None
    apply: Annotated[Sequence[str], Says("commands that apply what is recommended")]
    undo: Annotated[Sequence[str], Says("commands that undo that")]
    tunables: Annotated[Sequence[TunedRow], Says("what was searched, the most important first")]
    tried: Annotated[Sequence[TriedRow], Says("every setting that was run, in order")]
    results: Annotated[Sequence[Result], Says("with and without the settings on the part held out, the best first")]
    notes: Notes


DOCUMENTS = (TuneDocument,)
