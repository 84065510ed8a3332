# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Findings as one page: verdicts, tables, and the pictures of `compare --report`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwaiter.papers.reproduce.bench import Bench
from headwaiter.papers.reproduce.document import cell, claims_table, document, rich_table, summary
from headwaiter.papers.reproduce.experiment import Finding
from headwaiter.report.html import html_table, paragraphs
from headwaiter.report.page import Page, Section, assemble, check_libraries


def render(findings: Sequence[Finding], bench: Bench, settings: Sequence[str]) -> str:
    """The page. Runs of which it shows the head are made once more. Problem without Bokeh and Jinja2."""
    check_libraries()
    return assemble(
        Page(
            "The published experiments, run again",
            summary(findings),
            claims_table([verdict for finding in findings for verdict in finding.verdicts]),
            document(findings, bench.scale, settings),
            hint="Click a scheduler in a legend to hide it. Drag with a chosen tool to zoom.",
        ),
        [_section(finding, bench) for finding in findings],
    )


def _section(finding: Finding, bench: Bench) -> Section:
    from headwaiter.report import charts  # noqa: PLC0415 (needs Bokeh)

    one = finding.experiment
    drawn: list[Any] = []
    for i, chart in enumerate(finding.charts):
        name = f"{one.name}-{finding.level}-chart-{i}"
        places = [cell(place) for place in chart.x]
        drawn.append(charts.lines(name, chart.title, (chart.x_title, chart.y_title), places, chart.lines))
    if one.heads and finding.level == "sim":
        drawn += charts.heads(one.heads(bench))
    legend = f"{one.document}; on {one.drive}."
    if note := one.notes.get(finding.level):
        legend += f" {note[0].upper()}{note[1:]}."
    if not one.printed:
        legend += " Its document prints no figures for a table."
    if one.heads:
        legend += " Below, where the head goes; shaded: the scheduler waits, with the disk idle."
    tables = "".join(html_table(rich_table(table)) for table in finding.tables) + html_table(claims_table(finding.verdicts))
    for verdict in finding.verdicts:
        if why := verdict.investigation:
            tables += paragraphs(f"{verdict.id}: {why.text}") + (html_table(rich_table(why.table)) if why.table else "")
    return Section(f"{one.name}-{finding.level}", f"{one.name} ({finding.level}): {one.title}", legend, drawn, tables)
