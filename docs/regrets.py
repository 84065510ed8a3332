# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What docs/regret.md and `watch` have of measured regrets, which take minutes: `make regret-docs` measures them anew.

python docs/regrets.py [PART...]          measures all, or one of standings and frontier
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from headwaiter.drives.choose import open_drive
from headwaiter.drives.profile import find_drive
from headwaiter.engine.schedulers import catalogue, find
from headwaiter.regret.frontier import FrontierPoint, bound, points, switch_s
from headwaiter.regret.measurements import DRIVES, SEEDS, STANDINGS, measure
from headwaiter.regret.scores import RegretTable, judge, reference_of
from headwaiter.regret.workloads import BUNDLED, read_contests
from headwaiter.study.variants import default_set, parse_variants

READERS = 8
FRONTIER_DRIVE = "barracuda-80g"
SWEPT = "maitre"
STANDINGS_SEEDS = 1
"""All schedulers, workloads and drives once for each: some minutes of a processor."""
GRANULARITIES = (5, 10, 20, 35, 50, 80, 120, 200, 350)
"""In permille of a disk's time."""
MEASUREMENTS = Path(__file__).resolve().parent / "regret.json"
OF_WATCH = Path(__file__).resolve().parents[1] / "src/headwaiter/watch/regret.json"
"""Kernel names of schedulers and what they lose in the mean, in percent: a part of the package."""


def judged(policies: Iterable[str], workloads: Iterable[str] | None = None, drives: Iterable[str] = DRIVES) -> RegretTable:
    """Schedulers on the bundled workloads (or those of some names), as `headwaiter regret` has them."""
    contests = [c for c in read_contests([BUNDLED]) if workloads is None or c.name in workloads]
    variants = parse_variants(",".join(policies))
    cells, _ = measure(contests, [open_drive(name) for name in drives], variants, seeds=STANDINGS_SEEDS)
    return judge(cells, variants, reference_of(variants))


def _standings(found: RegretTable) -> list[dict[str, Any]]:
    return [
        {
            "scheduler": found.variants[row.scheduler].name,
            "mean": round(100 * row.mean, 1),
            "low": round(100 * row.low, 1),
            "high": round(100 * row.high, 1),
            "worst": round(100 * row.worst),
            "close": row.close,
            "cells": len(found.cells),
            "worst_in": found.cells[row.worst_cell].name,
        }
        for row in found.standings()
    ]


def _frontier() -> list[dict[str, Any]]:
    names = [v.name for v in parse_variants(",".join(default_set()))]
    if SWEPT in catalogue():
        names += [f"{SWEPT}:granularity={value}" for value in GRANULARITIES]
    drive = find_drive(FRONTIER_DRIVE)
    found = points(parse_variants(",".join(names)), drive, STANDINGS.options(drive), READERS, SEEDS)
    return [{"scheduler": p.name, "efficiency": round(p.efficiency, 3), "wait_s": round(p.wait_s, 3)} for p in found]


PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "standings": lambda: _standings(judged(default_set())),
    "frontier": _frontier,
}


def main() -> None:
    """Measure what is asked for, or all."""
    made = json.loads(MEASUREMENTS.read_text(encoding="utf-8")) if MEASUREMENTS.exists() else {}
    for part in sys.argv[1:] or PARTS:
        made[part] = PARTS[part]()
    MEASUREMENTS.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    losses = {find(row["scheduler"]).kernel_name: row["mean"] for row in made["standings"]}
    OF_WATCH.write_text(json.dumps(losses, indent=1) + "\n", encoding="utf-8")


def _found(part: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(MEASUREMENTS.read_text(encoding="utf-8"))[part]
    return found


def frontier_points() -> list[FrontierPoint]:
    """The points of the frontier, as they were measured."""
    return [FrontierPoint(r["scheduler"], r["efficiency"], r["wait_s"]) for r in _found("frontier")]


def _frontier_table() -> tuple[list[str], list[list[str]]]:
    change_s = switch_s(find_drive(FRONTIER_DRIVE), READERS)
    rows = sorted(frontier_points(), key=lambda p: p.wait_s)
    head = ["scheduler", "longest read, s", "of one reader", "possible"]
    return head, [
        [f"`{p.name}`", f"{p.wait_s:.2f}", f"{p.efficiency:.3f}", f"{bound(p.wait_s, change_s, READERS):.3f}"] for p in rows
    ]


def _standings_table() -> tuple[list[str], list[list[str]]]:
    found = _found("standings")
    head = ["scheduler", "mean regret, %", "over seeds", "worst, %", f"within 3%, of {found[0]['cells']}", "worst in"]
    return head, [
        [
            f"`{r['scheduler']}`",
            f"{r['mean']:.1f}",
            f"{r['low']:.1f} to {r['high']:.1f}",
            str(r["worst"]),
            str(r["close"]),
            r["worst_in"],
        ]
        for r in found
    ]


def table(part: str) -> tuple[list[str], list[list[str]]]:
    """Head and rows of what was measured."""
    return {"standings": _standings_table, "frontier": _frontier_table}[part]()


if __name__ == "__main__":
    main()
