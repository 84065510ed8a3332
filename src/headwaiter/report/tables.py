# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Results for people (tables) and for programs (CSV)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from headwaiter.engine.processor import processor_of
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import Drive, Options
from headwaiter.record import Record, field_at, value_at
from headwaiter.report.columns import ABSENT, Column, columns, digits
from headwaiter.report.terminal import MOST, a_console
from headwaiter.study.ranges import label
from headwaiter.study.schema import GroupRow, Margin, Result, SyncRow, TaskRow
from headwaiter.study.workload import Workload

_CSV = (
    "scheduler", "requests", "bytes", "throughput_MBps", "elapsed_s", "read.lat_ms.mean", "read.lat_ms.p99", "read.lat_ms.max",
    "fairness_jain", "disk.seek_s", "disk.rotation_s", "disk.transfer_s", "disk.idle_s", "disk.seeks", "anticipation.A",
    "anticipation.A_S", "anticipation.A_F", "anticipation.T_ms", "anticipation.T_S_ms", "anticipation.T_F_ms",
    "anticipation.T_F_per_A_S_ms", "range.throughput_MBps.low", "range.throughput_MBps.high", "variant", "waited_s",
    "write.lat_ms.mean", "write.lat_ms.p99", "write.lat_ms.max", "disk.waiting_s", "sync.calls", "sync.lat_ms.mean",
    "sync.lat_ms.p99", "sync.lat_ms.max",
)  # fmt: skip
_STYLES = {"better": "green", "worse": "red", "cannot tell": "yellow"}
OURS = "*"
"""Behind the name of a scheduler that a kernel has only with our modules."""


def show(out: Console, what: RenderableType) -> None:
    """Print without blanks at the ends of lines, and without cutting what is wider than the console."""
    wide = Measurement.get(out, out.options.update(width=MOST), what).maximum
    options = out.options.update(width=max(out.width, wide) if isinstance(what, Table) else out.width)
    lines = out.render_lines(what, options, pad=False)
    for line in lines:
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
        out.print(Segments([*line, Segment.line()]), crop=False, soft_wrap=True, end="")


def heading(work: Workload, drive: Drive) -> str:
    """What was run: the title of a table."""
    return f"{work.name} on {drive.name}{f', replayed {work.replay}' if work.replay else ''}"


def print_notes(out: Console, notes: Iterable[str]) -> None:
    """Below a table: what one must know to read the results."""
    for note in notes:
        out.print(f"Note: {note}.", soft_wrap=True)


def print_conditions(out: Console, options: Options, notes: Iterable[str]) -> None:
    """Below a table: processor time, and notes."""
    show(out, Text(f"({processor_of(options).describe()})"))
    for note in notes:
        show(out, Text(f"Note: {note}."))


def table(results: Sequence[Result], margins: Sequence[Margin] = (), *, width: int | None = None, parted: bool = False) -> Table:
    """A row per scheduler, in the order given, with as many columns as fit into `width`; None: with all.

    `parted`: schedulers of an unchanged kernel first. Those that need our modules have a mark.
    """
    stock = [r for r in results if find(r.scheduler).is_model] if parted else []
    rest = [r for r in results if r not in stock]
    found = columns(results, margins)
    ranks = sorted({column.rank for column in found})
    shown = _table(stock, rest, found[:0], margins)
    for rank in ranks:
        more = _table(stock, rest, [column for column in found if column.rank <= rank], margins)
        if rank and width is not None and _natural(more) > width:
            break
        shown = more
    return shown


def hidden(results: Sequence[Result], margins: Sequence[Margin], shown: Table) -> int:
    """How many columns a table leaves out for want of room."""
    return len(columns(results, margins)) + 1 - len(shown.columns)


def _natural(t: Table) -> int:
    """So wide it is if nothing is cut."""
    wide = a_console(MOST)
    return Measurement.get(wide, wide.options, t).maximum


def _table(stock: Sequence[Result], rest: Sequence[Result], found: Sequence[Column], margins: Sequence[Margin]) -> Table:
    t = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    t.add_column("\nscheduler", no_wrap=True)
    for column in found:
        t.add_column(column.head, justify="right", no_wrap=True)
    judged = {m.scheduler: m.judgement for m in margins}
    ours = not all(find(r.scheduler).is_model for r in (*stock, *rest))
    for rows in (stock, rest):
        for r in rows:
            name = label(r) + (OURS if ours and not find(r.scheduler).is_model else "")
            first = r is (stock or rest)[0] or r is (rest or stock)[0]
            style = _STYLES.get(judged.get(label(r), ""), "") + (" bold" if first else "")
            t.add_row(name, *(column.cell(r) or ABSENT for column in found), style=style.strip() or None)
        t.add_section()
    return t


def legend(results: Sequence[Result], margins: Sequence[Margin]) -> Table:
    """What the columns mean."""
    t = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    t.add_column(no_wrap=True)
    t.add_column()
    t.add_row(f"scheduler{OURS}", "needs headwaiter's kernel modules; the others are in today's kernels")
    for column in columns(results, margins):
        t.add_row(column.name.strip(), column.help)
    return t


def tasks_table(result: Result, limit: int = 24) -> Table:
    """A row per thread of control if there are chains of tasks, else per task and operation, calls such as fsync among them."""
    chains = result.groups or ()
    rows: list[GroupRow | TaskRow | SyncRow] = [*(chains or result.tasks or ()), *((result.sync and result.sync.tasks) or ())]
    if not chains:
        places = {row.task: k for k, row in reversed(list(enumerate(result.tasks or ())))}
        rows.sort(key=lambda row: places.get(row.task, len(places)) if not isinstance(row, GroupRow) else 0)
    title = "threads of control" if chains else "tasks"
    t = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    kind: type[Record] = GroupRow if chains else TaskRow
    paths = ("name", "tasks" if chains else "op", "requests", "bytes", "throughput_MBps", "elapsed_s")
    for path in (*paths, "lat_ms.mean", "lat_ms.p99", "lat_ms.max"):
        head = "MB" if path == "bytes" else field_at(kind, path).head
        t.add_column(head, justify="left" if path in ("name", "op") else "right", no_wrap=path != "name", overflow="fold")
    for r in rows[:limit]:
        if isinstance(r, SyncRow):
            figures = ["sync", str(r.calls), ABSENT, ABSENT, ABSENT]
        else:
            what = str(r.tasks) if isinstance(r, GroupRow) else r.op
            figures = [what, str(r.requests), digits(r.bytes / 1e6), digits(r.throughput_mbps), digits(r.elapsed_s)]
        t.add_row(r.name, *figures, *(digits(ms) for ms in (r.lat_ms.mean, r.lat_ms.p99, r.lat_ms.max)))
    if len(rows) > limit:
        t.caption = f"… and {len(rows) - limit} more (--json shows all)"
    return t


def write_csv(results: Iterable[Result], out: TextIO) -> None:
    """A line per scheduler, full precision, seconds and ms as in the JSON; what a run does not have is empty."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for r in results:
        values = (value_at(r, path) for path in _CSV)
        writer.writerow("" if value is None else value for value in values)
