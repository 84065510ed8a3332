# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Maps of regrets and of shares, which Bokeh draws in the reader's browser. Only where a page is made may this be imported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bokeh.models import ColumnDataSource, FactorRange, HoverTool
from bokeh.plotting import figure

from headwaiter.regret.scores import CLOSE, RegretTable
from headwaiter.sweeps.standings import HeatTable

_ROW_PX, _HEAD_PX = 22, 110
_SHADES = ("#ffffff", "#fdf1d7", "#fbdcaa", "#f5b97a", "#e58a55", "#c8543c", "#8f2020")
"""White is as good as the best; the others are for a sixth each of what is left."""
_DARK = 4


def heat_map(judged: RegretTable, drive: str) -> Any:
    """Workloads by schedulers on one drive; each cell has its regret in percent, and what is contested where one points at it."""
    median = judged.median
    names = [judged.variants[row.scheduler].name for row in judged.standings()]
    data: dict[str, list[Any]] = {key: [] for key in ("scheduler", "workload", "percent", "colour", "ink", "figures", "range")}
    workloads = []
    for at, cell in enumerate(judged.cells):
        if cell.drive != drive:
            continue
        workloads.append(cell.workload)
        for i, variant in enumerate(judged.variants):
            regret, by_seed = float(median[i, at]), 100 * judged.by_seed[i, at]
            shade = 0 if regret <= CLOSE else min(len(_SHADES) - 1, 1 + int((regret - CLOSE) / (1 - CLOSE) * (len(_SHADES) - 1)))
            data["scheduler"].append(variant.name)
            data["workload"].append(cell.workload)
            data["percent"].append(f"{100 * regret:.0f}")
            data["colour"].append(_SHADES[shade])
            data["ink"].append("#ffffff" if shade > _DARK else "#1a1a1a")
            data["figures"].append(judged.figures(i, at))
            data["range"].append(f"{by_seed.min():.0f} to {by_seed.max():.0f}")
    tips = [("", "@workload, @scheduler"), ("regret", "@percent%, over seeds @range%"), ("", "@figures")]
    return _chart(f"regret {drive}", data, ("scheduler", names), ("workload", workloads), tips)


def share_map(table: HeatTable, name: str) -> Any:
    """Rows by columns; each cell has how good it is, in percent of the best."""
    data: dict[str, list[Any]] = {key: [] for key in ("column", "row", "percent", "colour", "ink")}
    for i, row in enumerate(table.rows):
        for j, column in enumerate(table.columns):
            share = float(table.values[i, j])
            if not math.isfinite(share):
                continue
            lacking = 1 - share
            shade = 0 if lacking <= CLOSE else min(len(_SHADES) - 1, 1 + int(lacking * (len(_SHADES) - 1)))
            data["column"].append(column)
            data["row"].append(row)
            data["percent"].append(f"{100 * share:.0f}")
            data["colour"].append(_SHADES[shade])
            data["ink"].append("#ffffff" if shade > _DARK else "#1a1a1a")
    tips = [(table.row_head, "@row"), (table.column_head, "@column"), ("of the best", "@percent%")]
    return _chart(name, data, ("column", table.columns), ("row", table.rows), tips)


def _chart(
    name: str,
    data: dict[str, list[Any]],
    across: tuple[str, Sequence[str]],
    down: tuple[str, Sequence[str]],
    tips: list[tuple[str, str]],
) -> Any:
    """A coloured field with a number for each cell."""
    x, y = across[0], down[0]
    chart = figure(
        name=name, height=_HEAD_PX + _ROW_PX * len(down[1]), sizing_mode="stretch_width", toolbar_location=None,
        tools="", x_axis_location="above", x_range=FactorRange(factors=list(across[1])),
        y_range=FactorRange(factors=list(down[1])[::-1]),
    )  # fmt: skip
    source = ColumnDataSource(data, name=name)
    cells = chart.rect(x, y, 1, 1, source=source, fill_color="colour", line_color="#dddddd", line_width=1)
    chart.text(
        x, y, "percent", source=source, text_color="ink", text_align="center", text_baseline="middle",
        text_font_size="8.5pt",
    )  # fmt: skip
    chart.xaxis.major_label_orientation = 0.9
    chart.grid.grid_line_color = None
    chart.add_tools(HoverTool(tooltips=tips, renderers=[cells]))
    return chart
