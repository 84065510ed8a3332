# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Results for people (tables) and for programs (CSV)."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table

from headwaiter.study.ranges import is_range
from headwaiter.study.results import Json

_WIDTH = 200

# Column: title, path into a result, format. One list for the table and the CSV.
COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("MB/s", "throughput_MBps", ".2f"),
    ("elapsed s", "elapsed_s", ".2f"),
    ("read mean ms", "read.lat_ms.mean", ".2f"),
    ("p99 ms", "read.lat_ms.p99", ".1f"),
    ("max ms", "read.lat_ms.max", ".0f"),
    ("fairness", "fairness_jain", ".3f"),
    ("seek", "disk.seek_s", "share"),
    ("rotate", "disk.rotation_s", "share"),
    ("transfer", "disk.transfer_s", "share"),
    ("waiting", "disk.idle_s", "share"),
    ("seeks", "disk.seeks", "d"),
    ("A_S/A", "anticipation", "waits"),
    ("T_F/A_S ms", "anticipation.T_F_per_A_S_ms", ".3f"),
)


def _at(result: Json, path: str) -> object:
    value: object = result
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def _cell(result: Json, path: str, form: str) -> str:
    value = _at(result, path)
    if path == "throughput_MBps" and is_range(result):
        spread = result["range"][path]
        return f"{spread['low']:{form}}–{spread['high']:{form}}"
    if isinstance(value, dict) and form == "waits":
        return f"{value['A_S']}/{value['A']}"
    if not isinstance(value, (int, float)):
        return "–"
    if form == "share":
        return f"{value / result['elapsed_s']:.0%}" if result["elapsed_s"] else "–"
    return format(value, form)


def console(file: TextIO | None = None) -> Console:
    """A console for stdout, or for a file, which gets plain text whatever FORCE_COLOR says.

    Where there is no terminal, it is so wide that no table is cut. Text is shown as it is: names of tasks, jobs, devices and
    files may look like rich's markup ([b], :smile:), so what is to be bold is a rich Text.
    """
    if file is not None:
        return Console(file=file, highlight=False, markup=False, emoji=False, width=_WIDTH, force_terminal=False)
    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else _WIDTH)


def table(results: Sequence[Json], title: str) -> Table:
    """A row per scheduler, in the order given. Columns that no result has are left out."""
    t = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    t.add_column("scheduler", no_wrap=True)
    shown = [c for c in COLUMNS if any(_at(r, c[1]) is not None for r in results)]
    for name, _, _ in shown:
        t.add_column(name, justify="right", no_wrap=True)
    for i, r in enumerate(results):
        t.add_row(r["scheduler"], *(_cell(r, path, form) for _, path, form in shown), style="bold" if i == 0 else None)
    return t


def tasks_table(result: Json, limit: int = 24) -> Table:
    """A row per thread of control if there are chains of tasks, else per task and operation."""
    chains: list[Json] = result.get("groups", [])
    rows: list[Json] = chains or result["tasks"]
    title = "threads of control" if chains else "tasks"
    t = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    kind = "tasks" if chains else "op"
    for head in ("name", kind, "requests", "MB", "MB/s", "elapsed s", "mean ms", "p99 ms", "max ms"):
        t.add_column(head, justify="left" if head in ("name", "op") else "right", no_wrap=True)
    for r in rows[:limit]:
        lat = r["lat_ms"]
        t.add_row(
            str(r["name"]),
            str(r["tasks"] if chains else r["op"]),
            str(r["requests"]),
            f"{r['bytes'] / 1e6:.1f}",
            f"{r['throughput_MBps']:.2f}",
            f"{r['elapsed_s']:.2f}",
            f"{lat['mean']:.2f}",
            f"{lat['p99']:.1f}",
            f"{lat['max']:.0f}",
        )
    if len(rows) > limit:
        t.caption = f"… and {len(rows) - limit} more (--json shows all)"
    return t


def write_csv(results: Iterable[Json], out: TextIO) -> None:
    """A line per scheduler, full precision, seconds and ms as in the JSON; what a run does not have is empty."""
    paths = [path for _, path, _ in COLUMNS if not path.startswith("anticipation")]
    paths += [f"anticipation.{k}" for k in ("A", "A_S", "A_F", "T_ms", "T_S_ms", "T_F_ms", "T_F_per_A_S_ms")]
    paths += ["range.throughput_MBps.low", "range.throughput_MBps.high"]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["scheduler", "requests", "bytes", *paths])
    for r in results:
        values = (_at(r, p) for p in ("requests", "bytes", *paths))
        writer.writerow([r["scheduler"], *("" if v is None else v for v in values)])
