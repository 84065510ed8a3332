# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The page of `headwaiter describe --report`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from rich.table import Table

from headwaiter.description.describe import think_times
from headwaiter.description.schema import DescribeDocument
from headwaiter.engine.constants import SECTOR_BYTES, Op
from headwaiter.report.description_tables import (
    facts,
    known_programs,
    lowering,
    phases,
    programs,
    programs_legend,
    suffering,
    threads,
)
from headwaiter.report.html import html_table
from headwaiter.report.page import Page, Section, assemble
from headwaiter.traces import Trace

_BINS = 240
_MOST_POINTS = 20_000
_HEIGHT_PX = 320
_OPS = ((Op.READ, "read", "#1f4e79"), (Op.WRITE, "write", "#d55e00"), (Op.DISCARD, "discard", "#999999"))


def render(found: DescribeDocument, trace: Trace) -> str:
    """The page of a trace and its description. The same input gives the same bytes."""
    whole = found.whole
    title = f"{found.trace}: {whole.requests} requests, {whole.bytes / 1e6:.1f} MB in {found.seconds:.3f} s"
    told = facts(found)
    table = Table(box=None)
    table.add_column("property")
    table.add_column("value")
    for row in told:
        table.add_row(*row)
    verdict = next((value for name, value in told if name == "deceptive idleness"), "Tasks or completions are not known.")
    # Of threads of control there may be a million.
    brief = replace(found, rows=[])
    hint = "Click a name in a legend to hide it. Drag with a chosen tool to zoom; the arrow beside the tools goes back."
    return assemble(Page(title, verdict, table, brief, found.notes, hint=hint), _sections(found, trace))


def _sections(found: DescribeDocument, trace: Trace) -> list[Section]:
    sections = [
        Section("rate", "Requests over time", "Requests a second, in equal parts of the recording.", [_rate(trace)]),
        Section(
            "places",
            "Where they go",
            f"A dot for each request, of {_MOST_POINTS:,} at most, which are taken evenly.",
            [_places(trace)],
        ),
        Section("sizes", "Sizes", "Number of requests by size.", [_sizes(trace)]),
    ]
    if lines := _times(trace):
        legend = (
            "Share of requests for which it was no longer. Think time: from the completion that a program waited for to its next."
        )
        sections.append(Section("times", "Times", legend, [_distributions(lines)]))
    if known_programs(found):
        who, lowered = suffering(found), [lowering(one, found.scheduler) for one in found.background]
        legend = "".join(f"{line}. " for line in (*who, *lowered, programs_legend(found)) if line).strip()
        title = "Who waits for whom" if who else "Latency by operation"
        sections.insert(0, Section("programs", title, legend, table=html_table(programs(found))))
    if len(found.phases) > 1:
        sections.append(
            Section("phases", "Phases", "Neighbouring parts that are alike are one.", table=html_table(phases(found)))
        )
    if found.rows:
        sections.append(
            Section("threads", "Threads of control", "Those with most requests; medians.", table=html_table(threads(found)))
        )
    return sections


def _rate(trace: Trace) -> Any:
    from bokeh.models import ColumnDataSource  # noqa: PLC0415 (an optional dependency)

    from headwaiter.report import charts  # noqa: PLC0415 (needs Bokeh)

    chart = charts.blank("rate", _HEIGHT_PX)
    chart.xaxis.axis_label, chart.yaxis.axis_label = "s", "requests/s"
    chart.y_range.start = 0
    seconds = (trace.time_ns - trace.time_ns[0]) / 1e9
    edges = np.linspace(0, max(float(seconds[-1]), 1e-9), _BINS + 1)
    lines = {}
    for op, name, colour in _OPS:
        if not (trace.op == op).any():
            continue
        count, _ = np.histogram(seconds[trace.op == op], edges)
        rate = count / (edges[1] - edges[0])
        source = ColumnDataSource({"s": edges, "rate": np.append(rate, rate[-1:])}, name=f"rate {name}")
        lines[name] = chart.step("s", "rate", source=source, mode="after", color=colour, line_width=1.5)
    charts.legend_below(chart, lines)
    return chart


def _places(trace: Trace) -> Any:
    from bokeh.models import ColumnDataSource  # noqa: PLC0415

    from headwaiter.report import charts  # noqa: PLC0415

    chart = charts.blank("places", _HEIGHT_PX)
    chart.xaxis.axis_label, chart.yaxis.axis_label = "s", "GiB"
    shown = np.unique(np.linspace(0, len(trace) - 1, min(len(trace), _MOST_POINTS)).astype(np.int64))
    lines = {}
    for op, name, colour in _OPS:
        rows = shown[trace.op[shown] == op]
        if not len(rows):
            continue
        data = {
            "s": (trace.time_ns[rows] - trace.time_ns[0]) / 1e9,
            "gib": trace.sector[rows].astype(np.float64) * SECTOR_BYTES / (1 << 30),
        }
        source = ColumnDataSource(data, name=f"places {name}")
        lines[name] = chart.scatter("s", "gib", source=source, size=2.5, color=colour, line_alpha=0)
    charts.legend_below(chart, lines)
    return chart


def _sizes(trace: Trace) -> Any:
    from bokeh.models import ColumnDataSource  # noqa: PLC0415

    from headwaiter.report import charts  # noqa: PLC0415

    sizes, which = np.unique(trace.sectors, return_inverse=True)
    kib = sizes.astype(np.float64) * SECTOR_BYTES / 1024
    chart = charts.blank("sizes", _HEIGHT_PX, x_axis_type="log")
    chart.xaxis.axis_label, chart.yaxis.axis_label = "KiB", "requests"
    chart.y_range.start = 0
    lines = {}
    for op, name, colour in _OPS:
        count = np.bincount(which.reshape(-1)[trace.op == op], minlength=len(sizes))
        if count.any():
            source = ColumnDataSource({"kib": kib[count > 0], "count": count[count > 0]}, name=f"sizes {name}")
            lines[name] = chart.segment("kib", 0, "kib", "count", source=source, color=colour, line_width=4)
    charts.legend_below(chart, lines)
    return chart


def _times(trace: Trace) -> dict[str, Any]:
    """Times in ms by what they are, those that are known."""
    known = trace.complete_ns >= 0
    found = {"think time": think_times(trace), "latency": (trace.complete_ns - trace.time_ns)[known]}
    if trace.issue_ns is not None:
        issued = known & (trace.issue_ns >= 0)
        found["service time"] = (trace.complete_ns - trace.issue_ns)[issued]
    return {name: np.sort(values) / 1e6 for name, values in found.items() if len(values)}


def _distributions(lines: dict[str, Any]) -> Any:
    from bokeh.models import ColumnDataSource  # noqa: PLC0415

    from headwaiter.report import charts  # noqa: PLC0415

    chart = charts.blank("times", _HEIGHT_PX, x_axis_type="log")
    chart.xaxis.axis_label, chart.yaxis.axis_label = "ms", "% of requests"
    drawn = {}
    for i, (name, ms) in enumerate(lines.items()):
        at = np.unique(np.linspace(0, len(ms) - 1, min(len(ms), 500)).astype(np.int64))
        data = {"ms": np.maximum(ms[at], 1e-6), "share": 100 * (at + 1) / len(ms)}
        drawn[name] = chart.step(
            "ms", "share", source=ColumnDataSource(data, name=f"times {name}"), mode="after", **charts.look(i)
        )
    charts.legend_below(chart, drawn)
    return chart
