# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A map of regrets, which Bokeh draws in the reader's browser. Only where a page is made may this be imported."""

from __future__ import annotations

from typing import Any

from bokeh.models import ColumnDataSource, FactorRange, HoverTool
from bokeh.plotting import figure

from headwaiter.regret.scores import CLOSE, RegretTable

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
    chart = figure(
        name=f"regret {drive}", height=_HEAD_PX + _ROW_PX * len(workloads), sizing_mode="stretch_width", toolbar_location=None,
        tools="", x_axis_location="above", x_range=FactorRange(factors=names), y_range=FactorRange(factors=workloads[::-1]),
    )  # fmt: skip
    source = ColumnDataSource(data, name=f"regret {drive}")
    cells = chart.rect("scheduler", "workload", 1, 1, source=source, fill_color="colour", line_color="#dddddd", line_width=1)
    chart.text(
        "scheduler", "workload", "percent", source=source, text_color="ink", text_align="center", text_baseline="middle",
        text_font_size="8.5pt",
    )  # fmt: skip
    chart.xaxis.major_label_orientation = 0.9
    chart.grid.grid_line_color = None
    tips = [("", "@workload, @scheduler"), ("regret", "@percent%, over seeds @range%"), ("", "@figures")]
    chart.add_tools(HoverTool(tooltips=tips, renderers=[cells]))
    return chart
