# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fleets for people: tables, and a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from headwaiter.base.errors import counted
from headwaiter.fleet.schema import FleetDocument, FleetStep
from headwaiter.fleet.summary import AS_IT_IS
from headwaiter.report.html import html_table
from headwaiter.report.page import Page, Section, assemble, check_libraries

_CHART_PX = 280
_MOST_SETTINGS = 12


def fleet_heading(found: FleetDocument) -> str:
    """Return how many there are, and by what they are judged."""
    return f"{counted(found.machines, 'machine')}, judged by {found.goal}"


def fleet_verdict(found: FleetDocument) -> str:
    """Return how many gain, what one setting for all would cost, and what a setting for each class would."""
    of = {fate: many for fate, many in found.fates.items() if many}
    gains = of.pop("gains", 0)
    words = {
        "nothing": "gain nothing by any setting", "idle": "have a nearly idle disk", "saturated": "have a saturated disk",
        "cannot tell": "cannot be told", "too little": "have too short a recording", "failed": "could not be read",
    }  # fmt: skip
    told = f"{gains} of {counted(found.machines, 'machine')} would gain"
    if found.gain_percent and gains:
        told += f", half of all of them {found.gain_percent['p50']:.0f}% or more" if found.gain_percent["p50"] >= 1 else ""
    told += ". " + "".join(f"{many} {words[fate]}. " for fate, many in of.items())
    settings = [one for one in found.one_for_all if one.setting != AS_IT_IS]
    now = next((one for one in found.one_for_all if one.setting == AS_IT_IS), None)
    if settings and now:
        first = settings[0]
        told += (
            f"One setting for all that costs least is {first.setting}: programs get {first.cost_percent:.1f}% less done than with"
            f" each machine's best, and {counted(first.losing, 'machine')} lose more than 5%. A setting for each class costs"
            f" {found.per_class_cost_percent:.1f}%; leaving all as it is, {now.cost_percent:.1f}%."
        )
    return told.strip()


def _table(heads: tuple[str, ...], words: int) -> Table:
    t = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for i, head in enumerate(heads):
        t.add_column(head, justify="left" if i < words else "right", overflow="fold")
    return t


def _spread(of: Mapping[str, float]) -> str:
    return f"{of['p10']:.0f} / {of['p50']:.0f} / {of['p90']:.0f}" if of else ""


def class_table(found: FleetDocument) -> Table:
    """A row for each class of workload and drive."""
    spreads = "gain, %\np10/50/90", "it costs, %\np10/50/90"
    t = _table(("drive", "workload", "setting", "machines", "gain", spreads[0], "nothing", "idle", "full", spreads[1]), 3)
    for one in found.classes:
        counts = (str(one.nothing + one.cannot_tell), str(one.idle), str(one.saturated))
        figures = (str(one.machines), str(one.gains), _spread(one.gain_percent), *counts, _spread(one.loss_percent))
        t.add_row(one.drive_class, one.workload_class, one.setting, *figures)
    return t


def cost_table(found: FleetDocument, most: int = _MOST_SETTINGS) -> Table:
    """A row for each setting, if all machines had it."""
    t = _table(("one for all", "machines", "costs, %", "p10/50/90", "lose > 5%"), 1)
    for i, one in enumerate(found.one_for_all):
        if i < most or one.setting == AS_IT_IS:
            t.add_row(one.setting, str(one.machines), f"{one.cost_percent:.1f}", _spread(one.loss_percent), str(one.losing))
    return t


def gain_table(found: FleetDocument) -> Table:
    """Return how many machines gain how much."""
    t = _table(("gain", "machines"), 1)
    for one in found.gains:
        t.add_row(_step(one), str(one.machines))
    for fate, many in found.fates.items():
        if fate != "gains" and many:
            t.add_row(fate, str(many))
    return t


def _step(one: FleetStep) -> str:
    return f"{one.from_percent:.0f}% or more" if one.to_percent is None else f"{one.from_percent:.0f} to {one.to_percent:.0f}%"


def failed_table(found: FleetDocument) -> Table:
    """Recordings that could not be judged."""
    t = _table(("recording", "could not be judged because"), 2)
    for one in found.failures:
        t.add_row(one.machine, one.error)
    return t


def render(found: FleetDocument) -> str:
    """The page. Problem without Bokeh and Jinja2."""
    check_libraries()
    cost = "If all machines had one setting: how much less programs get done than with each machine's own best."
    sections = [
        Section("gains", "How many gain how much", "Machines by what their own best setting gains.", [_chart(found)]),
        Section("fates", "All machines", "", table=html_table(gain_table(found))),
        Section("costs", "One setting for all", cost, table=html_table(cost_table(found, 1000))),
    ]
    if found.failures:
        sections.append(Section("failed", "What could not be judged", "", table=html_table(failed_table(found))))
    return assemble(Page(fleet_heading(found), fleet_verdict(found), class_table(found), found, found.notes), sections)


def _chart(found: FleetDocument) -> Any:
    """Machines by gain, and beside them those that gain nothing."""
    from bokeh.models import ColumnDataSource, FactorRange  # noqa: PLC0415 (an optional dependency)

    from headwaiter.report import charts  # noqa: PLC0415 (needs Bokeh)

    others = {fate: many for fate, many in found.fates.items() if fate != "gains" and many}
    steps = {_step(one): one.machines for one in found.gains}
    names = [*others, *steps]
    chart = charts.blank("gains", _CHART_PX, x_range=FactorRange(factors=names))
    colours = ["#999999"] * len(others) + ["#0072b2"] * len(steps)
    data = {"gain": names, "machines": [*others.values(), *steps.values()], "colour": colours}
    chart.vbar("gain", 0.8, "machines", source=ColumnDataSource(data, name="gains"), color="colour")
    chart.xaxis.major_label_orientation = 0.6
    chart.yaxis.axis_label = "machines"
    chart.y_range.start = 0
    return chart
