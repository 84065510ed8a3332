# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Draw docs/frontier.png: throughput of eight readers by how long one of them waits, of every scheduler, with what is possible.

    python docs/frontier.py [FILE]

The points are those of docs/regret.json.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import regrets

from headwaiter.drives.profile import find_drive
from headwaiter.engine.schedulers import find
from headwaiter.regret.frontier import Point, bound, switch_s
from headwaiter.report.figure import figure

PICTURE = Path(__file__).resolve().parent / "frontier.png"
_LOOKS = {"kernel": ("#d55e00", "o"), "ours": ("#0072b2", "s")}


def draw(path: Path, points: list[Point], swept: str) -> None:
    """Every scheduler a dot, the variants of `swept` a line, and the bound."""
    drive = find_drive(regrets.FRONTIER_DRIVE)
    waits = np.geomspace(0.05, 30, 200)
    what = f"{regrets.READERS} readers on {drive.name}"
    with figure(path, description=what, figsize=(7.5, 4.6), dpi=110, layout="constrained") as axes:
        limit = [bound(w, drive, regrets.READERS) for w in waits.tolist()]
        axes.fill_between(waits, limit, 1.05, color="#eeeeee", lw=0)
        axes.plot(
            waits, limit, color="#555555", lw=1, label=f"bound: a change costs {1e3 * switch_s(drive, regrets.READERS):.1f} ms"
        )
        line = sorted((p for p in points if p.name.startswith(f"{swept}:")), key=lambda p: p.wait_s)
        if line:
            label = f"{swept}, granularity from coarse to fine"
            axes.plot([p.wait_s for p in line], [p.efficiency for p in line], "o-", ms=3, lw=1, color="#009e73", label=label)
        for p in points:
            if ":" in p.name:
                continue
            kind = "kernel" if find(p.name).is_model else "ours"
            colour, mark = _LOOKS[kind]
            axes.plot(p.wait_s, p.efficiency, mark, ms=5, color=colour)
            axes.annotate(p.name, (p.wait_s, p.efficiency), textcoords="offset points", xytext=(5, -9), fontsize=7)
        axes.set(
            xscale="log", xlim=(0.05, 30), ylim=(0, 1.05), xlabel="longest read, s", ylabel="throughput, of one reader alone"
        )
        axes.set_title(what, fontsize=10)
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right", fontsize=8)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE, regrets.frontier_points(), regrets.SWEPT)
