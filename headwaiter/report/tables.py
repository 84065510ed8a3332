# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Results for people (tables) and for programs (CSV)."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table

from headwaiter.engine.processor import processor_of
from headwaiter.engine.sim import Drive, Options
from headwaiter.record import Record, field_at, value_at
from headwaiter.study.ranges import told_range
from headwaiter.study.schema import Anticipation, GroupRow, Result, TaskRow
from headwaiter.study.workload import Workload

_WIDTH = 200
_THROUGHPUT = "throughput_MBps"


@dataclass(frozen=True)
class Column:
    """Of the table and of the CSV: where in a result it is found, how it is printed, and its head, if not the field's."""

    path: str
    form: str
    title: str = ""

    @property
    def head(self) -> str:
        """What stands above it."""
        return self.title or field_at(Result, self.path).head


COLUMNS = (
    Column(_THROUGHPUT, ".2f"),
    Column("elapsed_s", ".2f"),
    Column("read.lat_ms.mean", ".2f", "read mean ms"),
    Column("read.lat_ms.p99", ".1f"),
    Column("read.lat_ms.max", ".0f"),
    Column("fairness_jain", ".3f"),
    Column("disk.seek_s", "share", "seek"),
    Column("disk.rotation_s", "share", "rotate"),
    Column("disk.transfer_s", "share", "transfer"),
    Column("disk.idle_s", "share", "waiting"),
    Column("disk.seeks", "d"),
    Column("anticipation", "waits", "A_S/A"),
    Column("anticipation.T_F_per_A_S_ms", ".3f"),
)
_CSV_WAITS = ("A", "A_S", "A_F", "T_ms", "T_S_ms", "T_F_ms", "T_F_per_A_S_ms")


def _cell(result: Result, column: Column) -> str:
    if column.path == _THROUGHPUT and (spread := told_range(result)):
        return f"{spread.low:{column.form}}–{spread.high:{column.form}}"
    value = value_at(result, column.path)
    if isinstance(value, Anticipation):
        return f"{value.met}/{value.waits}"
    if not isinstance(value, (int, float)):
        return "–"
    if column.form == "share":
        return f"{value / result.elapsed_s:.0%}" if result.elapsed_s else "–"
    return format(value, column.form)


def console(file: TextIO | None = None) -> Console:
    """A console for stdout, or for a file, which gets plain text whatever FORCE_COLOR says.

    Where there is no terminal, it is so wide that no table is cut. Text is shown as it is: names of tasks, jobs, devices and
    files may look like rich's markup ([b], :smile:), so what is to be bold is a rich Text.
    """
    if file is not None:
        return Console(file=file, highlight=False, markup=False, emoji=False, width=_WIDTH, force_terminal=False)
    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else _WIDTH)


def heading(work: Workload, drive: Drive) -> str:
    """What was run: the title of a table."""
    return f"{work.name} on {drive.name}{f', replayed {work.replay}' if work.replay else ''}"


def print_notes(out: Console, notes: Iterable[str]) -> None:
    """Below a table: what one must know to read the results."""
    for note in notes:
        out.print(f"Note: {note}.", soft_wrap=True)


def print_conditions(out: Console, options: Options, notes: Iterable[str]) -> None:
    """Below a table: processor time, and notes."""
    out.print(f"({processor_of(options).describe()})", soft_wrap=True)
    print_notes(out, notes)


def table(results: Sequence[Result], title: str) -> Table:
    """A row per scheduler, in the order given. Columns that no result has are left out."""
    t = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    t.add_column("scheduler", no_wrap=True)
    shown = [c for c in COLUMNS if any(value_at(r, c.path) is not None for r in results)]
    for column in shown:
        t.add_column(column.head, justify="right", no_wrap=True)
    for i, r in enumerate(results):
        t.add_row(r.scheduler, *(_cell(r, column) for column in shown), style="bold" if i == 0 else None)
    return t


def tasks_table(result: Result, limit: int = 24) -> Table:
    """A row per thread of control if there are chains of tasks, else per task and operation."""
    chains = result.groups or ()
    rows: Sequence[GroupRow | TaskRow] = chains or result.tasks or ()
    title = "threads of control" if chains else "tasks"
    t = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    kind: type[Record] = GroupRow if chains else TaskRow
    paths = ("name", "tasks" if chains else "op", "requests", "bytes", _THROUGHPUT, "elapsed_s")
    for path in (*paths, "lat_ms.mean", "lat_ms.p99", "lat_ms.max"):
        head = "MB" if path == "bytes" else field_at(kind, path).head
        t.add_column(head, justify="left" if path in ("name", "op") else "right", no_wrap=True)
    for r in rows[:limit]:
        t.add_row(
            r.name,
            str(r.tasks) if isinstance(r, GroupRow) else r.op,
            str(r.requests),
            f"{r.bytes / 1e6:.1f}",
            f"{r.throughput_mbps:.2f}",
            f"{r.elapsed_s:.2f}",
            f"{r.lat_ms.mean:.2f}",
            f"{r.lat_ms.p99:.1f}",
            f"{r.lat_ms.max:.0f}",
        )
    if len(rows) > limit:
        t.caption = f"… and {len(rows) - limit} more (--json shows all)"
    return t


def write_csv(results: Iterable[Result], out: TextIO) -> None:
    """A line per scheduler, full precision, seconds and ms as in the JSON; what a run does not have is empty."""
    paths = ["scheduler", "requests", "bytes"]
    paths += [column.path for column in COLUMNS if not column.path.startswith("anticipation")]
    paths += [f"anticipation.{key}" for key in _CSV_WAITS]
    paths += [f"range.{_THROUGHPUT}.{end}" for end in ("low", "high")]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(paths)
    for r in results:
        values = (value_at(r, path) for path in paths)
        writer.writerow("" if value is None else value for value in values)
