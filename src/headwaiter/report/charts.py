# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Charts of a comparison, which Bokeh draws in the reader's browser. Only where a page is made may this be imported."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import BasicTickFormatter, ColumnDataSource, FactorRange, FixedTicker, HoverTool, Range1d
from bokeh.models.annotations import Legend, LegendItem
from bokeh.palettes import Colorblind
from bokeh.plotting import figure

from headwaiter.judge.detail import Shown
from headwaiter.report.head import caption
from headwaiter.study.ranges import label
from headwaiter.study.results import shares

_TOOLS = "xpan,xwheel_zoom,box_zoom,undo,reset,save"
_DASHES = ("solid", "dashed", "dotted")
# Yellow cannot be seen on white, nor black on a dark page.
_COLOURS = tuple({"#000000": "#7f7f7f"}.get(c, c) for c in Colorblind[8] if c != "#F0E442")
MOST_CURVES = 6
"""So many are drawn at first; a click in the legend draws another."""
_NINES = {1: "0%", 2: "50%", 10: "90%", 100: "99%", 1000: "99.9%", 10_000: "99.99%", 100_000: "99.999%", 1_000_000: "99.9999%"}
_CHART_PX, _HEAD_PX, _BAR_PX = 400, 190, 26
_WAITING = "#f2d7a0"
_PARTS = {
    "seek": "#d55e00",
    "rotate": "#e69f00",
    "transfer": "#0072b2",
    "busy": "#0072b2",
    "other": "#999999",
    "waiting": _WAITING,
    "idle": "#e8e8e8",
}


def blank(name: str, height: int, **more: Any) -> Any:
    """A figure as wide as the page. No tool is active: a finger on the chart scrolls the page."""
    made = figure(name=name, height=height, sizing_mode="stretch_width", toolbar_location="above", tools=_TOOLS, **more)
    made.toolbar.logo = None
    made.toolbar.active_drag = made.toolbar.active_scroll = None
    made.grid.grid_line_alpha = 0.5
    return made


def legend_below(chart: Any, lines: Mapping[str, Any]) -> None:
    items = [LegendItem(label=name, renderers=[line]) for name, line in lines.items()]
    look: dict[str, Any] = {"ncols": 4, "spacing": 6, "location": "left", "border_line_alpha": 0, "label_text_font_size": "8.5pt"}
    legend = Legend(items=items, click_policy="hide", **look)
    chart.add_layout(legend, "below")


def look(i: int) -> dict[str, Any]:
    """Return the look of the line of scheduler i; no two are alike."""
    return {"line_color": _COLOURS[i % len(_COLOURS)], "line_dash": _DASHES[i // len(_COLOURS) % len(_DASHES)], "line_width": 2}


def latencies(shown: Sequence[Shown], first: Collection[str]) -> Any:
    """Latency on a logarithmic axis by the share of I/Os that do not exceed it, with as much room for each nine.

    first: the schedulers that are drawn before the reader chooses others.
    """
    most = max((len(s.detail.within) and s.result.requests for s in shown), default=1) or 1
    chart = blank("latency", _CHART_PX, x_axis_type="log", y_axis_type="log")
    chart.xaxis.axis_label, chart.yaxis.axis_label = "share of I/Os", "latency within, ms"
    ticks = [nine for nine in _NINES if nine <= most]
    chart.xaxis.ticker = FixedTicker(ticks=ticks)
    chart.xaxis.major_label_overrides = {float(nine): _NINES[nine] for nine in ticks}
    chart.yaxis.formatter = BasicTickFormatter(use_scientific=False)
    lines = {}
    for i, s in enumerate(shown):
        # All but one I/O in n is at 1/n: the slowest at the number of I/Os.
        rank = 1 / (1 - s.detail.within + 1 / s.result.requests) if s.result.requests else np.empty(0)
        data = {"x": rank, "ms": s.detail.latency_ms, "share": 100 * s.detail.within}
        name = label(s.result)
        source = ColumnDataSource(data, name=f"latency {name}")
        lines[name] = chart.line("x", "ms", source=source, name=name, visible=name in first, **look(i))
    chart.add_tools(HoverTool(tooltips=[("scheduler", "$name"), ("share of I/Os", "@share{0.000}%"), ("within", "@ms{0.00} ms")]))
    legend_below(chart, lines)
    return chart


def throughput(shown: Sequence[Shown], first: Collection[str]) -> Any:
    """Draw MB/s over time. first: see latencies()."""
    chart = blank("throughput", _CHART_PX)
    chart.xaxis.axis_label, chart.yaxis.axis_label = "s", "MB/s"
    chart.y_range.start = 0
    lines = {}
    for i, s in enumerate(shown):
        name, rate = label(s.result), s.detail.rate_mbps
        # The last bin's rate holds until its end.
        data = {"s": s.detail.time_s, "rate": np.append(rate, rate[-1:])}
        source = ColumnDataSource(data, name=f"throughput {name}")
        lines[name] = chart.step("s", "rate", source=source, mode="after", name=name, visible=name in first, **look(i))
    chart.add_tools(HoverTool(tooltips=[("scheduler", "$name"), ("at", "@s{0.00} s"), ("MB/s", "@rate{0.0}")]))
    legend_below(chart, lines)
    return chart


def lines(name: str, title: str, axes: tuple[str, str], x: Sequence[str], y: Mapping[str, Sequence[float]]) -> Any:
    """Figures of schedulers, a line each, over places along x; on a logarithmic axis where they differ much."""
    values = [value for one in y.values() for value in one if value > 0]
    wide = bool(values) and max(values) > 20 * min(values)
    chart = blank(name, _CHART_PX, x_range=FactorRange(factors=list(x)), title=title, y_axis_type="log" if wide else "linear")
    chart.xaxis.axis_label, chart.yaxis.axis_label = axes
    chart.yaxis.formatter = BasicTickFormatter(use_scientific=False)
    if not wide:
        chart.y_range.start = 0
    drawn = {}
    for i, (one, figures) in enumerate(y.items()):
        shown = [value if value > 0 or not wide else float("nan") for value in figures]
        source = ColumnDataSource({"x": list(x), "y": shown}, name=f"{name} {one}")
        drawn[one] = chart.line("x", "y", source=source, name=one, visible=i < MOST_CURVES, **look(i))
        dots = chart.scatter("x", "y", source=source, size=6, color=_COLOURS[i % len(_COLOURS)], visible=i < MOST_CURVES)
        drawn[one].js_link("visible", dots, "visible")
    chart.add_tools(HoverTool(tooltips=[("scheduler", "$name"), (axes[0], "@x"), (axes[1], "@y{0.000}")]))
    legend_below(chart, drawn)
    return chart


def disk_time(shown: Sequence[Shown]) -> Any:
    """A bar for each scheduler, of all its time."""
    names = [label(s.result) for s in shown][::-1]
    found = [shares(s.result.disk) for s in shown][::-1]
    colours = {part: colour for part, colour in _PARTS.items() if any(part in one for one in found)}
    data: dict[str, Any] = {"scheduler": names, **{part: [100 * one.get(part, 0.0) for one in found] for part in colours}}
    chart = figure(
        name="disk", height=80 + _BAR_PX * len(shown), sizing_mode="stretch_width",
        y_range=FactorRange(factors=names), x_range=Range1d(start=0, end=100), toolbar_location=None, tools="",
    )  # fmt: skip
    source = ColumnDataSource(data, name="disk")
    bars = chart.hbar_stack(list(colours), y="scheduler", source=source, height=0.8, color=list(colours.values()))
    chart.xaxis.axis_label = "% of the time"
    chart.ygrid.grid_line_color = None
    tips = [(part, f"@{part}{{0.0}}%") for part in colours]
    chart.add_tools(
        HoverTool(tooltips=[("", "@scheduler"), *tips], renderers=[*bars[:1]]), HoverTool(tooltips=tips, renderers=[*bars[1:]])
    )
    legend_below(chart, dict(zip(colours, bars, strict=True)))
    return chart


def heads(shown: Sequence[Shown]) -> list[Any]:
    """A panel for each scheduler: position over time, waits shaded. All show the same time, and zoom together."""
    ends = [float(s.head.dispatch_ms[-1]) for s in shown if len(s.head.dispatch_ms)]
    places = np.concatenate([s.head.position_gib for s in shown]) if shown else np.empty(0)
    low, high = (float(places.min()), float(places.max())) if len(places) else (0.0, 1.0)
    room = (high - low) * 0.04 or 0.001
    time = Range1d(start=0, end=min(ends, default=1.0) or 1.0, bounds=(0, max(ends, default=1.0) or 1.0))
    place = Range1d(start=low - room, end=high + room)
    panels = []
    for s in shown:
        name = label(s.result)
        chart = blank(f"head {name}", _HEAD_PX, x_range=time, y_range=place, title=caption(s.result))
        chart.xaxis.axis_label, chart.yaxis.axis_label = "ms", "GiB"
        waits = {"begin": s.head.waits_ms[:, 0], "end": s.head.waits_ms[:, 1]}
        chart.vstrip("begin", "end", source=ColumnDataSource(waits, name=f"waits {name}"), color=_WAITING, line_alpha=0)
        data = {"ms": s.head.dispatch_ms, "gib": s.head.position_gib}
        source = ColumnDataSource(data, name=f"head {name}")
        chart.line("ms", "gib", source=source, line_width=0.5, color="#9bb7d4")
        chart.scatter("ms", "gib", source=source, size=2.5, color="#1f4e79", line_alpha=0)
        panels.append(chart)
    return panels
