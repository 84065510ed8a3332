# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Regrets for people: a table, and a page with a map of every cell."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rich import box
from rich.table import Table

from headwaiter.base.errors import counted
from headwaiter.engine.sim import Options
from headwaiter.regret.scores import CLOSE, RegretTable
from headwaiter.report.page import Page, Section, assemble, check_libraries

_HINT = "Move over a cell for its figures. Darker is worse; white is within 3% of the best compromise."


def heading(judged: RegretTable) -> str:
    """Return what was run: the title of a table."""
    workloads, drives = {c.workload for c in judged.cells}, {c.drive for c in judged.cells}
    seeds = judged.by_seed.shape[2]
    return f"Regrets over {counted(len(workloads), 'workload')} on {counted(len(drives), 'drive')}, {counted(seeds, 'seed')}"


def verdict(judged: RegretTable) -> str:
    """The least mean, and the least worst case."""
    rows = judged.standings()
    first, safe = rows[0], min(rows, key=lambda row: row.worst)
    names = [judged.variants[row.scheduler].name for row in (first, safe)]
    out = f"{names[0]} has the least mean regret, {100 * first.mean:.1f}%, and loses {100 * first.worst:.0f}% at most."
    return out if safe is first else f"{out} {names[1]} loses least in its worst cell, {100 * safe.worst:.0f}%."


def standings_table(judged: RegretTable) -> Table:
    """A row per scheduler, the least mean regret first."""
    t = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    t.add_column("\nscheduler", no_wrap=True)
    for head in ("mean\n%", "over seeds\n%", "worst\n%", f"within {CLOSE:.0%}\nof {len(judged.cells)}"):
        t.add_column(head, justify="right", no_wrap=True)
    t.add_column("\nworst in", no_wrap=True)
    for row in judged.standings():
        t.add_row(
            judged.variants[row.scheduler].name, f"{100 * row.mean:.1f}", f"{100 * row.low:.1f} to {100 * row.high:.1f}",
            f"{100 * row.worst:.0f}", str(row.close), judged.cells[row.worst_cell].name,
        )  # fmt: skip
    return t


def reasons(judged: RegretTable) -> list[str]:
    """Return a line for each scheduler: the cell in which it loses most, and what it loses there."""
    return [
        f"{judged.variants[row.scheduler].name} loses {100 * row.worst:.0f}% in {judged.cells[row.worst_cell].name}:"
        f" {judged.why(row.scheduler, row.worst_cell)}"
        for row in judged.standings()
    ]


def render(judged: RegretTable, options: Options, notes: Sequence[str] = ()) -> str:
    """A page with a map for each drive: workloads by schedulers. Problem without Bokeh and Jinja2."""
    check_libraries()
    from headwaiter.report.heat import heat_map  # noqa: PLC0415 (needs Bokeh)

    drives = list(dict.fromkeys(cell.drive for cell in judged.cells))
    legend = "Regret in percent: how much a scheduler's score lacks of the best compromise."
    sections = [Section(f"drive-{i}", drive, legend, [heat_map(judged, drive)]) for i, drive in enumerate(drives)]
    listed = "".join(f"<tr><td>{escape(line)}</td></tr>\n" for line in reasons(judged))
    sections.append(
        Section(
            "worst", "Where each loses most", "Own figures against those of the best compromise.", (), f"<table>{listed}</table>"
        )
    )
    document = judged.document(options, notes)
    page = Page(heading(judged), verdict(judged), standings_table(judged), document, document.notes, hint=_HINT)
    return assemble(page, sections)
