# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What docs/regret.md has of measured regrets, which take minutes: `make regret-docs` measures docs/regret.json anew.

python docs/regrets.py          measures all
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headwaiter.drives.choose import open_drive
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import Options
from headwaiter.regret.matrix import DRIVES, SEEDS, measure
from headwaiter.regret.scores import Judged, judge, reference_of
from headwaiter.regret.workloads import BUNDLED, read_contests
from headwaiter.study.variants import default_set, parse_variants
from headwaiter.study.workload import NR_REQUESTS

MEASUREMENTS = Path(__file__).resolve().parent / "regret.json"


def judged(policies: Iterable[str], workloads: Iterable[str] | None = None, drives: Iterable[str] = DRIVES) -> Judged:
    """Schedulers on the bundled workloads (or those of some names), as `headwaiter regret` has them."""
    contests = [c for c in read_contests([BUNDLED]) if workloads is None or c.name in workloads]
    variants = parse_variants(",".join(policies))
    options = MEASURED.apply(Options(nr_requests=NR_REQUESTS, join_arriving=True))
    cells, _ = measure(contests, [open_drive(name) for name in drives], variants, options, SEEDS)
    return judge(cells, variants, reference_of(variants))


def _standings(found: Judged) -> list[dict[str, Any]]:
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


def main() -> None:
    """Measure all."""
    made = {"standings": _standings(judged(default_set()))}
    MEASUREMENTS.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def table(name: str) -> tuple[list[str], list[list[str]]]:
    """Head and rows of what was measured: `standings`."""
    found: list[dict[str, Any]] = json.loads(MEASUREMENTS.read_text(encoding="utf-8"))[name]
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


if __name__ == "__main__":
    main()
