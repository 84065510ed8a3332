# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sweeps for people: tables, a page with heat maps, and a picture of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from headwaiter.base.errors import counted
from headwaiter.base.figures import digits
from headwaiter.report.figure import figure
from headwaiter.report.html import html_table
from headwaiter.report.page import Page, Section, assemble, check_libraries
from headwaiter.sweeps.schema import SweepFailure, SweepReportDocument
from headwaiter.sweeps.standings import HeatTable, SweepReport

_HINT = "Move over a cell for its figure. Darker is worse; white is as good as the best."
_MOST = 30
_MOST_NUMBERS = 1200
"""A map of more cells has no numbers in them."""
_DARK = 0.35


def report_heading(found: SweepReportDocument) -> str:
    """Return what was compared, and by what."""
    failed = sum(one.cells for one in found.failures)
    bad = f", {failed} failed" if failed else ""
    return f"{found.results}: {counted(found.cells, 'cell')}{bad}, by {found.by}"


def report_verdict(found: SweepReportDocument) -> str:
    """Return which setting is the best over all, and which loses least where it is worst."""
    ranked = found.standings
    first, safe = ranked[0], max(ranked, key=lambda one: one.worst)
    told = f"{first.variant} is the best over all: {_percent(first.of_best)} of the best of each cell on the (geometric) mean."
    if safe is first:
        return f"{told} Nowhere does it have less than {_percent(first.worst)}."
    worst = f"In {first.worst_in} it has {_percent(first.worst)}."
    return f"{told} {worst} {safe.variant} loses least where it is worst: {_percent(safe.worst)} in {safe.worst_in}."


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _table(heads: Sequence[str], numbers: int) -> Table:
    """A table whose last columns are numbers."""
    t = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for i, head in enumerate(heads):
        t.add_column(head, justify="right" if i >= len(heads) - numbers else "left", no_wrap=True, overflow="fold")
    return t


def standing_table(found: SweepReportDocument, most: int = _MOST) -> Table:
    """A row for each variant."""
    t = _table(("setting", "worst in", "cells", "of the best, %", "worst, %", "best in"), 4)
    for one in found.standings[:most]:
        figures = (str(one.cells), f"{100 * one.of_best:.1f}", f"{100 * one.worst:.1f}", str(one.first))
        t.add_row(one.variant, one.worst_in, *figures)
    if len(found.standings) > most:
        t.caption = f"{len(found.standings) - most} more are worse."
    return t


def best_table(found: SweepReportDocument, most: int = _MOST) -> Table:
    """A row for each workload, drive and conditions."""
    t = _table(("workload", "drive", "conditions", "best", "against", found.by, "times as good"), 2)
    for one in found.best[:most]:
        ratio = "" if one.of_baseline is None else f"{one.of_baseline:.2f}"
        said = "" if one.conditions == "{}" else one.conditions
        t.add_row(one.workload, one.drive, said, one.variant, one.baseline, digits(one.value), ratio)
    if len(found.best) > most:
        t.caption = f"{len(found.best) - most} more: --json has all."
    return t


def effect_table(found: SweepReportDocument) -> Table:
    """A row for each value of what was swept."""
    t = _table(("swept", "value", "cells", "of the best, %"), 2)
    for one in found.effects:
        t.add_row(one.name, one.value, str(one.cells), f"{100 * one.of_best:.1f}")
    return t


def failure_table(failures: Sequence[SweepFailure]) -> Table:
    """A row for each reason."""
    t = _table(("cells failed because", "cells"), 1)
    t.columns[0].no_wrap = False
    for one in failures:
        t.add_row(one.error, str(one.cells))
    return t


def render(found: SweepReport) -> str:
    """A page with all maps. Problem without Bokeh and Jinja2."""
    check_libraries()
    from headwaiter.report.heat import share_map  # noqa: PLC0415 (needs Bokeh)

    document = found.document
    told = "How good each is, as a share of the best of the same workload, drive, conditions and seed."
    sections = [Section(f"map-{i}", one.title, told, [share_map(one, f"map {i}")]) for i, one in enumerate(found.maps)]
    sections.append(Section("best", "The best of each", "Means over seeds.", table=html_table(best_table(document, 1000))))
    if document.effects:
        sections.append(Section("effects", "What each value does", told, table=html_table(effect_table(document))))
    if document.failures:
        sections.append(Section("failed", "What failed", "", table=html_table(failure_table(document.failures))))
    title, verdict = report_heading(document), report_verdict(document)
    return assemble(Page(title, verdict, standing_table(document), document, document.notes, hint=_HINT), sections)


def draw(found: SweepReport, path: Path) -> None:
    """Draw all maps, one below the other, into a picture. Problem without matplotlib."""
    maps = found.maps
    rows = [max(2.2, 0.28 * len(one.rows) + 1.6) for one in maps]
    wide = max(5.0, *(2.5 + 0.09 * max(map(len, one.rows)) + 0.62 * len(one.columns) for one in maps))
    more = {"figsize": (wide, sum(rows)), "gridspec_kw": {"height_ratios": rows}, "squeeze": False, "layout": "constrained"}
    description = f"share of the best, {report_heading(found.document)}"
    with figure(path, len(maps), 1, description=description, **more) as axes:
        for one, (panel,) in zip(maps, axes, strict=True):
            _draw_map(one, panel)


def _draw_map(one: HeatTable, panel: Any) -> None:
    shown = np.ma.masked_invalid(100 * one.values)
    panel.imshow(shown, cmap="YlOrBr_r", vmin=0, vmax=100, aspect="auto")
    panel.set_xticks(range(len(one.columns)), one.columns, rotation=30, ha="right", fontsize="x-small")
    panel.set_yticks(range(len(one.rows)), one.rows, fontsize="x-small")
    panel.set(title=f"{one.title}, % of the best", xlabel=one.column_head, ylabel=one.row_head)
    if one.values.size <= _MOST_NUMBERS:
        for i, j in np.ndindex(*one.values.shape):
            if math.isfinite(value := float(one.values[i, j])):
                ink = "white" if value < _DARK else "black"
                panel.text(j, i, f"{100 * value:.0f}", ha="center", va="center", fontsize="xx-small", color=ink)
