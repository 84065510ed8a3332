# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Draw the way of the head with matplotlib, a panel for each run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from headwaiter.judge.detail import Head
from headwaiter.report.figure import figure
from headwaiter.study.ranges import label
from headwaiter.study.schema import Result

_WIDTH_IN, _HEIGHT_IN = 11.0, 2.9


def caption(result: Result) -> str:
    """Return what stands above a panel."""
    return f"{label(result)}: {result.throughput_mbps:.1f} MB/s, {result.disk.seeks:,} seeks"


def draw_heads(path: Path, runs: Sequence[tuple[Result, Head]], until_ms: float | None = None) -> None:
    """A file with a panel for each run: a dot for each dispatch, waits shaded. Problem if it cannot be drawn or written.

    All show the same time, up to `until_ms` (default: the first end of what is known of one of them). The file holds the captions
    as text, too, where its format can.
    """
    ends = [float(head.dispatch_ms[-1]) if len(head.dispatch_ms) else 0.0 for _, head in runs]
    until = min(ends) if until_ms is None else until_ms
    captions = [caption(result) for result, _ in runs]
    size = {"figsize": (_WIDTH_IN, _HEIGHT_IN), "sharey": True, "squeeze": False, "layout": "constrained"}
    with figure(path, 1, len(runs), description="\n".join(captions), **size) as axes:
        for axis, title, (_, head) in zip(axes[0], captions, runs, strict=True):
            shown = head.dispatch_ms <= until
            waits = head.waits_ms[head.waits_ms[:, 0] <= until]
            axis.plot(head.dispatch_ms[shown], head.position_gib[shown], lw=0.5, color="#9bb7d4", zorder=2)
            axis.scatter(head.dispatch_ms[shown], head.position_gib[shown], s=3, color="#1f4e79", zorder=3)
            axis.broken_barh(
                np.column_stack((waits[:, 0], waits[:, 1] - waits[:, 0])).tolist(),
                (0, 1),
                transform=axis.get_xaxis_transform(),
                color="#f2d7a0",
                linewidth=0,
                zorder=1,
            )
            axis.set_xlim(0, until or 1)
            axis.set_title(title, fontsize=10)
            axis.set_xlabel("ms")
        axes[0][0].set_ylabel("head at (GiB)")
