# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The JSON output of `headwaiter reproduce`. See study/schema.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from headwaiter.base.records import Document, Record, Says


@dataclass(frozen=True, slots=True)
class FiguresTable(Record):
    """Figures in rows; null where there is none."""

    title: Annotated[str, Says("its title")]
    columns: Annotated[Sequence[str], Says("the columns' names, with units")]
    rows: Annotated[Sequence[Sequence[str | float | None]], Says("cells, one for each column")]


@dataclass(frozen=True, slots=True)
class InvestigationRow(Record):
    """Why a result is not the published one."""

    text: Annotated[str, Says("what explains it")]
    table: Annotated[FiguresTable | None, Says("the figures that show it")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow(Record):
    """A published claim, at one level."""

    id: Annotated[str, Says("the claim")]
    experiment: Annotated[str, Says("the experiment that decides it")]
    level: Annotated[Literal["sim", "lab"], Says("simulator, or kernel lab")]
    essential: Annotated[bool, Says("the document exists to say this")]
    holds: Annotated[bool, Says("all values lie in their bands")]
    too_short: Annotated[bool, Says("the run was too short to tell, whatever the values are")]
    claim: Annotated[str, Says("what is claimed")]
    value: Annotated[str, Says("the measured figures, as people read them")]
    values: Annotated[Sequence[float | None], Says("the same as numbers; null where it cannot be told")]
    paper: Annotated[str, Says("the published figures, as printed")]
    holds_if: Annotated[str, Says("the bands")]
    investigation: Annotated[InvestigationRow | None, Says("of a claim that does not hold, or holds with a reservation: why")] = (
        None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRow(Record):
    """A published experiment, at one level."""

    name: Annotated[str, Says("its name")]
    document: Annotated[str, Says("where it was published")]
    title: Annotated[str, Says("its content")]
    level: Annotated[Literal["sim", "lab"], Says("simulator, or kernel lab")]
    drive: Annotated[str, Says("names of the drives")]
    note: Annotated[str | None, Says("what differs from the published set-up")] = None
    printed: Annotated[bool, Says("the document prints figures, which the tables have beside ours")]
    tables: Annotated[Sequence[FiguresTable], Says("our figures")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproduceDocument(Document):
    """`headwaiter reproduce`"""

    scale: Annotated[float, Says("how long the experiments ran, as a share of the default")]
    settings: Annotated[Sequence[str] | None, Says("of `--set`")] = None
    claims: Annotated[Sequence[ClaimRow], Says("a row for each claim and level")]
    experiments: Annotated[Sequence[ExperimentRow], Says("a row for each experiment and level")]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDocument(Document):
    """machine.json in the folder of `headwaiter reproduce --archive`"""

    commit: Annotated[str | None, Says("the source tree's commit; absent outside of a clone")] = None
    system: Annotated[str, Says("the operating system")]
    processor: Annotated[str, Says("the processor's name")]
    processors: Annotated[int, Says("how many there are")]
    python: Annotated[str, Says("Python's version")]
    numpy: Annotated[str, Says("NumPy's version")]
    guest_kernel: Annotated[str | None, Says("of runs in the lab: the release of the guest's kernel")] = None
    qemu: Annotated[str | None, Says("of runs in the lab: QEMU's version")] = None
    fio: Annotated[str | None, Says("of runs in the lab: fio's version")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimBeside(Record):
    """A claim in two runs."""

    id: Annotated[str, Says("the claim")]
    experiment: Annotated[str, Says("the experiment that decides it")]
    level: Annotated[str, Says("`sim` or `lab`")]
    essential: Annotated[bool, Says("the document exists to say this")]
    claim: Annotated[str, Says("what is claimed")]
    first: Annotated[str, Says("the figures of the first run, as people read them")]
    second: Annotated[str, Says("the figures of the second run")]
    differ_percent: Annotated[
        float | None,
        Says(
            "the largest difference between their figures, as a share of the greater; null if they are not as many",
            "%",
            null=True,
        ),
    ]
    first_verdict: Annotated[str, Says("`holds`, `does not hold` or `too short to tell` in the first run")]
    second_verdict: Annotated[str, Says("the same in the second run")]
    decided_alike: Annotated[bool, Says("both verdicts are the same")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentBeside(Record):
    """The tables of an experiment in two runs; figures that the document prints do not count."""

    name: Annotated[str, Says("its name")]
    level: Annotated[str, Says("`sim` or `lab`")]
    figures: Annotated[int, Says("how many figures the tables have")]
    alike: Annotated[int, Says("how many of them are the same in both")]
    differ_percent: Annotated[
        float | None,
        Says("the largest difference, as a share of the greater; null if the tables are of other sizes", "%", null=True),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondRunDocument(Document):
    """`headwaiter reproduce --compare`"""

    scale: Annotated[float, Says("how long the experiments of both ran, as a share of the default")]
    claims: Annotated[Sequence[ClaimBeside], Says("a row for each claim and level that both have")]
    experiments: Annotated[Sequence[ExperimentBeside], Says("a row for each experiment and level that both have")]
    only_first: Annotated[Sequence[str], Says("claims that only the first has")]
    only_second: Annotated[Sequence[str], Says("claims that only the second has")]


DOCUMENTS: tuple[type[Record], ...] = (ReproduceDocument, SecondRunDocument, MachineDocument)
