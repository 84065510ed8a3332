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
from headwaiter.regret.frontier import FrontierPoint, bound, switch_s
from headwaiter.report.figure import figure

PICTURE = Path(__file__).resolve().parent / "frontier.png"
_STOCK, _OURS = "of an unchanged kernel", "others"
_LOOKS = {_STOCK: ("#d55e00", "o"), _OURS: ("#0072b2", "s")}


def _clusters(points: list[FrontierPoint]) -> list[list[FrontierPoint]]:
    """Those that lie so close together that their names would cover one another."""
    out: list[list[FrontierPoint]] = []
    for p in sorted(points, key=lambda p: (p.wait_s, p.name)):
        if out and p.wait_s < 1.15 * out[-1][-1].wait_s and abs(p.efficiency - out[-1][-1].efficiency) < 0.03:
            out[-1].append(p)
        else:
            out.append([p])
    return out


def draw(path: Path, points: list[FrontierPoint], swept: str) -> None:
    """Every scheduler a dot, the variants of `swept` a line, and the bound."""
    drive = find_drive(regrets.FRONTIER_DRIVE)
    change_s = switch_s(drive, regrets.READERS)
    waits = np.geomspace(0.05, 30, 200)
    what = f"{regrets.READERS} readers on {drive.name}"
    with figure(path, description=what, figsize=(7.5, 4.6), dpi=110, layout="constrained") as axes:
        limit = [bound(w, change_s, regrets.READERS) for w in waits.tolist()]
        axes.fill_between(waits, limit, 1.05, color="#eeeeee", lw=0)
        axes.plot(waits, limit, color="#555555", lw=1, label=f"bound: a change costs {1e3 * change_s:.1f} ms")
        line = sorted((p for p in points if p.name.startswith(f"{swept}:")), key=lambda p: p.wait_s)
        if line:
            label = f"{swept}, granularity from coarse to fine"
            axes.plot([p.wait_s for p in line], [p.efficiency for p in line], "o-", ms=3, lw=1, color="#009e73", label=label)
        for near in _clusters([p for p in points if ":" not in p.name]):
            for p in near:
                colour, mark = _LOOKS[_STOCK if find(p.name).is_model else _OURS]
                axes.plot(p.wait_s, p.efficiency, mark, ms=5, color=colour)
            names = "\n".join(", ".join(p.name for p in near[i : i + 3]) for i in range(0, len(near), 3))
            last = near[-1]
            at = {"xytext": (6, -4), "va": "top"} if len(near) > 1 else {"xytext": (7, 0), "va": "center"}
            axes.annotate(names, (last.wait_s, last.efficiency), textcoords="offset points", fontsize=7, **at)
        for kind, (colour, mark) in _LOOKS.items():
            axes.plot([], [], mark, ms=5, color=colour, label=kind)
        axes.set(
            xscale="log", xlim=(0.05, 30), ylim=(0, 1.05), xlabel="longest read, s", ylabel="throughput, of one reader alone"
        )
        axes.set_title(what, fontsize=10)
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right", fontsize=8)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE, regrets.frontier_points(), regrets.SWEPT)
