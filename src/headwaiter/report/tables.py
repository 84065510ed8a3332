# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Results for people (tables) and for programs (CSV)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from headwaiter.base.figures import digits
from headwaiter.base.records import Record, field_at, value_at
from headwaiter.engine.processor import processor_of
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import Drive, Options
from headwaiter.report.columns import ABSENT, CANNOT_TELL, Column, columns
from headwaiter.report.terminal import MOST, a_console
from headwaiter.study.changes import change_percent
from headwaiter.study.ranges import label
from headwaiter.study.schema import Answer, CallRow, Criterion, GroupRow, Margin, Result, SyncRow, TaskRow
from headwaiter.study.workload import Workload

_VERDICT = ("ahead_percent", "low_percent", "high_percent", "steady_percent")
_CSV = (
    "requests", "bytes", "progress_MBps", "throughput_MBps", "elapsed_s", "read.lat_ms.mean", "read.lat_ms.p99",
    "read.lat_ms.max", "fairness_jain", "disk.seek_s", "disk.rotation_s", "disk.transfer_s", "disk.idle_s", "disk.seeks",
    "anticipation.A", "anticipation.A_S", "anticipation.A_F", "anticipation.T_ms", "anticipation.T_S_ms",
    "anticipation.T_F_ms", "anticipation.T_F_per_A_S_ms", "range.throughput_MBps.low", "range.throughput_MBps.high",
    "waited_s", "write.lat_ms.mean", "write.lat_ms.p99", "write.lat_ms.max", "disk.waiting_s", "sync.calls",
    "sync.lat_ms.mean", "sync.lat_ms.p99", "sync.lat_ms.max",
)  # fmt: skip
_STYLES = {"better": "green", "worse": "red", "cannot tell": "yellow"}
OURS = "*"
"""Behind the name of a scheduler that a kernel has only with our modules."""
_NAMES = 20
"""Names of one row are in several lines where they are longer together."""


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
    """Return what was run: the title of a table."""
    return f"{work.name} on {drive.name}{f', replayed {work.replay}' if work.replay else ''}"


def print_notes(out: Console, notes: Iterable[str]) -> None:
    """Below a table: what one must know to read the results."""
    for note in notes:
        out.print(f"Note: {note}.", soft_wrap=True)


def print_conditions(out: Console, options: Options, notes: Iterable[str]) -> None:
    """Below a table: processor time, and notes."""
    show(out, Text(f"({processor_of(options).describe(options)})"))
    for note in notes:
        show(out, Text(f"Note: {note}."))


def brief(results: Sequence[Result], answer: Answer) -> list[Result]:
    """Return the schedulers that matter first: an unchanged kernel's, the best of ours, and those that the verdict names."""
    ahead = {m.scheduler: m.ahead_percent for m in answer.margins}
    ours = sorted((label(r) for r in results if not find(r.scheduler).is_model), key=lambda name: -ahead.get(name, 0.0))
    best = answer.module or next(iter(ours), None)
    named = {answer.baseline, answer.best if answer.best in ours else best, answer.best}
    return [r for r in results if find(r.scheduler).is_model or label(r) in named]


def table(
    results: Sequence[Result],
    margins: Sequence[Margin] = (),
    by: Criterion | None = None,
    *,
    width: int | None = None,
    parted: bool = False,
) -> Table:
    """A row per scheduler, in the order given, with as many columns as fit into `width`; None: with all.

    Schedulers that differ in no column are one row. `by`: the criterion of the margins. `parted`: schedulers of an unchanged
    kernel first. Those that need our modules have a mark, which a line beneath explains.
    """
    found = columns(results, margins, by)
    stock = [r for r in results if find(r.scheduler).is_model] if parted else []
    parts = [_alike(part, found) for part in (stock, [r for r in results if r not in stock])]
    judged = {m.scheduler: m.judgement for m in margins}
    shown = None
    for rank in sorted({0} | {column.rank for column in found}):
        more = _table(parts, [column for column in found if column.rank <= rank], judged)
        if shown and width is not None and _natural(more) > width:
            break
        shown = more
    assert shown
    return shown


def hidden(shown: Table, results: Sequence[Result], margins: Sequence[Margin] = (), by: Criterion | None = None) -> int:
    """Return how many columns a table leaves out for want of room."""
    return len(columns(results, margins, by)) + 1 - len(shown.columns)


def _natural(t: Table) -> int:
    """Return the width that nothing is cut at."""
    wide = a_console(MOST)
    return Measurement.get(wide, wide.options, t).maximum


def _alike(results: Sequence[Result], found: Sequence[Column]) -> list[list[Result]]:
    """Results in rows: those whose cells are the same in every column are one, where the first of them is."""
    rows: dict[tuple[str | None, ...], list[Result]] = {}
    for r in results:
        rows.setdefault(tuple(column.cell(r) for column in found), []).append(r)
    return list(rows.values())


def _table(parts: Sequence[Sequence[Sequence[Result]]], found: Sequence[Column], judged: Mapping[str, str]) -> Table:
    t = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    t.add_column("\nscheduler", no_wrap=True)
    for column in found:
        t.add_column(column.head, justify="right", no_wrap=True)
    every = [r for rows in parts for row in rows for r in row]
    ours = not all(find(r.scheduler).is_model for r in every)
    for rows in parts:
        for i, row in enumerate(rows):
            names = [label(r) + (OURS if ours and not find(r.scheduler).is_model else "") for r in row]
            style = _STYLES.get(judged.get(label(row[0]), ""), "") + (" bold" if i == 0 else "")
            t.add_row(_several(names), *(column.cell(row[0]) or ABSENT for column in found), style=style.strip() or None)
        t.add_section()
    marks = [f"{OURS} needs headwaiter's kernel modules."] if ours else []
    if any(judged.get(label(r)) == "cannot tell" for r in every):
        marks.append(f"{CANNOT_TELL} cannot tell: chance may explain it.")
    t.caption, t.caption_style, t.caption_justify = "\n".join(marks) or None, "", "left"
    return t


def _several(names: Sequence[str]) -> str:
    """Names in one line, or in as many as they need."""
    lines = [names[0]]
    for name in names[1:]:
        joined = f"{lines[-1]}, {name}"
        lines[-1:] = [joined] if len(joined) <= _NAMES else [f"{lines[-1]},", name]
    return "\n".join(lines)


def legend(results: Sequence[Result], margins: Sequence[Margin] = (), by: Criterion | None = None) -> Table:
    """Return what the columns mean."""
    t = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    t.add_column(no_wrap=True)
    t.add_column()
    t.add_row(f"scheduler{OURS}", "needs headwaiter's kernel modules; the others are in today's kernels")
    for column in columns(results, margins, by):
        t.add_row(column.name.strip(), column.help)
    return t


def tasks_table(result: Result, limit: int = 24) -> Table:
    """A row per thread of control if there are chains of tasks, else per task and operation, calls of read, write and such as
    fsync among them.
    """
    chains = result.groups or ()
    calls: list[CallRow | SyncRow] = [*(result.calls or ()), *((result.sync and result.sync.tasks) or ())]
    rows: list[GroupRow | TaskRow | CallRow | SyncRow] = [*(chains or result.tasks or ()), *calls]
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
        if isinstance(r, (CallRow, SyncRow)):
            figures = [f"{r.op}()" if isinstance(r, CallRow) else "sync", digits(r.calls), ABSENT, ABSENT, ABSENT]
        else:
            what = str(r.tasks) if isinstance(r, GroupRow) else r.op
            figures = [what, digits(r.requests), digits(r.bytes / 1e6), digits(r.throughput_mbps), digits(r.elapsed_s)]
        t.add_row(r.name, *figures, *(digits(ms) for ms in (r.lat_ms.mean, r.lat_ms.p99, r.lat_ms.max)))
    if len(rows) > limit:
        t.caption = f"… and {len(rows) - limit} more (--json shows all)"
    return t


def csv_rows(results: Sequence[Result], margins: Sequence[Margin] = (), by: Criterion | None = None) -> list[dict[str, object]]:
    """What is known of each scheduler, by column: its full name, the verdict on it, and figures as in the JSON; or None."""
    judged = {m.scheduler: m for m in margins}
    rows: list[dict[str, object]] = []
    for r in results:
        margin = judged.get(label(r))
        row: dict[str, object] = {"variant": label(r), "scheduler": r.scheduler}
        row["judgement"] = margin.judgement if margin else None
        row["change_percent"] = change_percent(by, margin) if by and margin else None
        row |= {path: value_at(margin, path) if margin else None for path in _VERDICT}
        rows.append(row | {path: value_at(r, path) for path in _CSV})
    return rows


def write_csv(rows: Iterable[Mapping[str, object]], out: TextIO) -> None:
    """A line for each of csv_rows(), in full precision; what is not known is empty."""
    writer = csv.writer(out, lineterminator="\n")
    for i, row in enumerate(rows):
        if i == 0:
            writer.writerow(row)
        writer.writerow("" if value is None else value for value in row.values())
