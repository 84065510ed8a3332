# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How `top` shows an interval: as many columns as fit, for a terminal or as plain text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headwaiter.base.figures import brief
from headwaiter.description.programs import work_of
from headwaiter.description.schema import WaitsFor
from headwaiter.report.description_tables import lowering
from headwaiter.report.terminal import a_console
from headwaiter.study.blame import plural
from headwaiter.top.schema import TopDocument, TopFlow, TopProgram

_NAME = 20
"""So much of a program's name is shown."""
_LEAST_ROWS = 3
_BESIDE_ROWS = 2
"""Rows of the table beside programs: its head, and how many programs are left out."""
_MOST_SETTINGS = 16
_MOST_LEVERS = 2
"""So many take little room; --json has all."""


@dataclass(frozen=True)
class _Column:
    """A column of the table of programs; columns of a lower rank are shown first where there is little room."""

    head: str
    rank: int
    cell: Callable[[TopProgram], str]
    left: bool = False


def _rate(flow: TopFlow) -> str:
    return brief(flow.requests_per_s) if flow.requests_per_s else "·"


def _mbps(flow: TopFlow) -> str:
    return brief(round(flow.mbps, 2)) if flow.mbps else "·"


def duration(ms: float) -> str:
    """In the unit that suits it."""
    if ms < 1:
        return f"{1000 * ms:.0f}µs"
    return f"{brief(ms)}ms" if ms < 1000 else f"{brief(ms / 1000)}s"


def _pid(one: TopProgram) -> str:
    return str(one.pids[0]) if len(one.pids) == 1 else f"{len(one.pids)}×" if one.pids else ""


def _of_latency(what: str) -> Callable[[TopProgram], str]:
    return lambda one: duration(getattr(one.lat_ms, what)) if one.lat_ms else "·"


def whose(causes: WaitsFor, program: str) -> str:
    """In few words, for whom a program waits."""
    if causes.program is None or causes.op is None:
        return "nobody (device idle)"
    return f"its own {plural(causes.op)}" if causes.program == program else work_of(causes.program, causes.op)


def _for(one: TopProgram) -> str:
    others = [causes for causes in one.waits_for if causes.program != one.program]
    first = (others or list(one.waits_for))[:1]
    return f"{first[0].percent:.0f}% {whose(first[0], one.program)}" if first else ""


_COLUMNS = (
    _Column("program", 0, lambda one: one.program[:_NAME], left=True),
    _Column("PID", 5, _pid),
    _Column("r/s", 2, lambda one: _rate(one.read)),
    _Column("w/s", 2, lambda one: _rate(one.write)),
    _Column("rMB/s", 4, lambda one: _mbps(one.read)),
    _Column("wMB/s", 4, lambda one: _mbps(one.write)),
    _Column("p50", 3, _of_latency("p50")),
    _Column("p99", 1, _of_latency("p99")),
    _Column("longest", 3, _of_latency("max")),
    _Column("queue", 6, lambda one: str(one.under_way) if one.under_way else "·"),
    _Column("waits", 0, lambda one: f"{one.waits_percent:.0f}%" if one.waits_percent else "·"),
    _Column("most for", 0, _for, left=True),
)


def screen(found: TopDocument, width: int, height: int | None = None) -> RenderableType:
    """All of it, within so many columns, and lines where there are only so many."""
    head = [*_head(found), *([Text()] if found.programs is not None else [])]
    foot = [Text(), *told] if (told := _foot(found)) else []
    room = None
    if height is not None:
        lines = a_console(width).render_lines(Group(*head, *foot))
        room = max(_LEAST_ROWS, height - len(lines) - _BESIDE_ROWS)
    return Group(*head, *_programs(found, width, room), *foot)


def _head(found: TopDocument) -> list[Text]:
    queue = found.queue
    model = f" ({found.model})" if found.model else ""
    first = f"{found.device}{model}  {found.at.rpartition('T')[2]}, the last {brief(found.seconds)} s"
    if found.lost:
        first += f"  {found.lost} events lost"
    busy = f"busy {queue.busy_percent:.0f}%" if queue.busy_percent is not None else ""
    flows = [f"{name} {_flow(flow)}" for name, flow in (("reads", found.read), ("writes", found.write))]
    under_way = f"under way {queue.under_way}"
    if queue.in_device is not None:
        takes = f" of {queue.takes}" if queue.takes else ""
        under_way += f" ({queue.in_device}{takes} in the device, at most {queue.most})"
    elif queue.takes:
        under_way += f" (the device takes {queue.takes})"
    lines = [Text(first, "bold"), Text("  ".join(filter(None, (busy, *flows)))), Text(under_way)]
    if queue.scheduler:
        told = ", ".join(f"{name} {value}" for name, value in list(queue.settings.items())[:_MOST_SETTINGS])
        lines.append(Text.assemble("scheduler ", (queue.scheduler, "bold"), f": {told}" if told else "", overflow="fold"))
    return lines


def _flow(flow: TopFlow) -> str:
    latency = f" {duration(flow.mean_ms)}" if flow.mean_ms is not None else ""
    return f"{brief(flow.requests_per_s)}/s {brief(round(flow.mbps, 2))} MB/s{latency}"


def _programs(found: TopDocument, width: int, room: int | None) -> list[RenderableType]:
    if found.programs is None:
        return []
    if not found.programs:
        return [Text("(nothing was asked of it)")]
    shown = found.programs[:room]
    left = len(found.programs) - len(shown)
    table = _table(shown, width)
    return [table, Text(f"(and {left} more)")] if left else [table]


def _table(rows: Sequence[TopProgram], width: int) -> Table:
    ranks = sorted({column.rank for column in _COLUMNS})
    chosen: list[_Column] = []
    for rank in ranks:
        more = [column for column in _COLUMNS if column.rank <= rank]
        if chosen and _width(more, rows) > width:
            break
        chosen = more
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in chosen:
        last = column is chosen[-1]
        table.add_column(column.head, justify="left" if column.left else "right", no_wrap=not last, overflow="ellipsis")
    for row in rows:
        table.add_row(*(column.cell(row) for column in chosen))
    return table


def _width(columns: Sequence[_Column], rows: Sequence[TopProgram]) -> int:
    """Return how wide they are; the last one may be cut, or folded."""
    widths = [max(len(column.head), *(len(column.cell(row)) for row in rows)) + 1 for column in columns]
    return sum(widths[:-1]) + min(widths[-1], _NAME + 6)


def _foot(found: TopDocument) -> list[Text]:
    lines = [Text(f"{lowering(one, found.queue.scheduler)}.") for one in found.background[:1]]
    if found.advice:
        lines.append(Text.assemble(("What would help: ", "bold"), found.advice))
    for lever in found.levers[:_MOST_LEVERS]:
        text = lever.text if lever.kind == "set" else f"Besides, {lever.text}"
        lines += [Text(text), *(Text(f"  {line}", overflow="fold") for line in lever.apply)]
    return lines + [Text(f"Note: {note}.") for note in found.notes]
