# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What docs/drives.md has of docs/published.json, which `make published-docs` measures anew (headwaiter validate --published)."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

MEASUREMENTS = Path(__file__).resolve().parent / "published.json"
Rows = tuple[list[str], list[list[str]]]


def _found() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(MEASUREMENTS.read_text(encoding="utf-8"))["figures"]
    return rows


def _short(source: str) -> str:
    """A source without its title."""
    return source.rpartition("ICPE 2024, ")[2]


def _errors() -> Rows:
    """A row for each source and figure of one number: how far off."""
    kinds: dict[tuple[str, str], list[float]] = {}
    for row in _found():
        if row["figure"] != "s to start" and "figure 11d" not in row["source"] and "tables" not in row["source"]:
            kinds.setdefault((_short(row["source"]), row["figure"]), []).append(abs(row["error"]))
    head = ["published", "figure", "numbers", "error in the median", "at most"]
    return head, [[source, what, str(len(off)), f"{median(off):.1%}", f"{max(off):.1%}"] for (source, what), off in kinds.items()]


def _each(part: str) -> Rows:
    """A row for each load, with the factor by which the simulator is off."""
    head = ["load", "figure", "published", "here", "here by published"]
    return head, [
        [row["load"], row["figure"], f"{row['measured']:.4g}", f"{row['simulated']:.4g}", f"{row['error'] + 1:.2f}"]
        for row in _found()
        if part in row["source"]
    ]


def table(name: str) -> Rows:
    """Head and rows of a table."""
    return {
        "errors": _errors,
        "beside": lambda: _each("figure 11d"),
        "targets": lambda: _each("tables 3 and 4"),
    }[name]()
