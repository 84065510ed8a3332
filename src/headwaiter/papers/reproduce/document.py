# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Findings for programs (JSON) and for people (text)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from headwaiter.base.figures import digits
from headwaiter.papers.reproduce.claims import ClaimVerdict, Investigation, PaperTable
from headwaiter.papers.reproduce.experiment import Finding
from headwaiter.papers.reproduce.schema import ClaimRow, ExperimentRow, FiguresTable, InvestigationRow, ReproduceDocument
from headwaiter.report.columns import ABSENT
from headwaiter.report.tables import show


def document(findings: Sequence[Finding], scale: float, settings: Sequence[str]) -> ReproduceDocument:
    """Return what `headwaiter reproduce --json` prints."""
    return ReproduceDocument(
        scale=scale,
        settings=settings or None,
        claims=[_claim(finding, verdict) for finding in findings for verdict in finding.verdicts],
        experiments=[
            ExperimentRow(
                name=finding.experiment.name,
                document=finding.experiment.document,
                title=finding.experiment.title,
                level=finding.level,
                drive=finding.experiment.drive,
                note=finding.experiment.notes.get(finding.level),
                printed=finding.experiment.printed,
                tables=[_figures(table) for table in finding.tables],
            )
            for finding in findings
        ],
    )


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _claim(finding: Finding, verdict: ClaimVerdict) -> ClaimRow:
    why = verdict.investigation
    return ClaimRow(
        id=verdict.id,
        experiment=finding.experiment.name,
        level=finding.level,
        essential=verdict.essential,
        holds=verdict.holds,
        too_short=verdict.too_short,
        claim=verdict.text,
        value=verdict.value,
        values=[_number(check.value) for check in verdict.checks],
        paper=verdict.paper,
        holds_if=verdict.holds_if,
        investigation=InvestigationRow(why.text, _figures(why.table) if why.table else None) if why else None,
    )


def _figures(table: PaperTable) -> FiguresTable:
    rows = [[_number(cell) if isinstance(cell, float) else cell for cell in row] for row in table.rows]
    return FiguresTable(table.title, table.columns, rows)


def cell(value: str | float | None) -> str:
    """A cell for people."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ABSENT
    return value if isinstance(value, str) else digits(value)


def rich_table(table: PaperTable) -> RichTable:
    """A table as the terminal and the page show it: figures to the right."""
    out = RichTable(
        title=table.title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for i, column in enumerate(table.columns):
        text = any(isinstance(row[i], str) for row in table.rows)
        out.add_column(column.replace(": ", ":\n"), justify="left" if text else "right", no_wrap=True)
    for row in table.rows:
        out.add_row(*(cell(value) for value in row))
    return out


def claims_table(verdicts: Sequence[ClaimVerdict]) -> RichTable:
    """A row for each verdict."""
    out = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("claim", "", "verdict", "value", "holds if", "paper"):
        out.add_column(column, no_wrap=column != "")
    for one in verdicts:
        style = "" if not one.fails else "bold red" if one.essential else "yellow"
        name = f"{one.id}{' (essential)' if one.essential else ''}"
        out.add_row(
            name,
            one.text,
            one.outcome,
            one.value.replace(", ", "\n"),
            one.holds_if.replace(", ", "\n"),
            one.paper,
            style=style,
        )
    return out


def summary(findings: Sequence[Finding]) -> str:
    """Return how many hold, which do not, and which the run was too short for."""
    verdicts = [verdict for finding in findings for verdict in finding.verdicts]
    failed = [verdict for verdict in verdicts if verdict.fails]
    short = [verdict for verdict in verdicts if verdict.too_short]
    essential = [verdict for verdict in failed if verdict.essential]
    names = ", ".join(f"{one.id} ({one.level})" for one in failed)
    which = f"; {names} do{'es' if len(failed) == 1 else ''} not" if failed else ""
    told = f" Of these, essential: {', '.join(one.id for one in essential)}." if essential else " No essential claim fails."
    untold = f" The run was too short to tell {', '.join(f'{one.id} ({one.level})' for one in short)}." if short else ""
    count = len(verdicts) - len(short)
    return f"{count - len(failed)} of {count} claims hold{which}.{told if failed else ''}{untold}"


def print_finding(out: Console, finding: Finding) -> None:
    """Tables, verdicts, and the investigations."""
    one = finding.experiment
    show(out, Text(f"{one.name} ({finding.level}): {one.title}", style="bold"))
    show(out, Text(f"{one.document}; on {one.drive}"))
    if finding.level in one.notes:
        show(out, Text(f"Note: {one.notes[finding.level]}."))
    if not one.printed:
        show(out, Text("Its document prints no figures for a table; those of its claims are below."))
    out.print()
    for table in finding.tables:
        show(out, rich_table(table))
        out.print()
    show(out, claims_table(finding.verdicts))
    out.print()
    for verdict in finding.verdicts:
        if verdict.investigation:
            _print_investigation(out, verdict, verdict.investigation)


def _print_investigation(out: Console, verdict: ClaimVerdict, why: Investigation) -> None:
    show(out, Text(f"{verdict.id}: {why.text}"))
    if why.table:
        out.print()
        show(out, rich_table(why.table))
    out.print()
