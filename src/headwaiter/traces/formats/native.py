# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The project's own trace format: CSV with a header line, read and written.

    time_s,task,op,sync,sector,sectors[,complete_s][,group][,ioprio][,meta][,name][,cgroup]

in any order of columns. op is R, W, D (discard), O (other) or F, a flush of the drive's own cache, whose sector and sectors
are 0; sync and meta are 0 or 1; sectors have 512 bytes; complete_s may be empty (unknown); ioprio is rt/0 … be/4 … idle or
none; name is the task's command, cgroup its control group, as in a/b or, with weights, a:200/b:400. Lines before the header
that begin with # are comments.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from headwaiter.base.errors import shown
from headwaiter.engine.cgroups import Path, parse_path, written_path
from headwaiter.engine.constants import META, SYNC, IoprioClass, Op, ioprio, ioprio_parts
from headwaiter.traces.fields import Array, FieldTable, split
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace, with_flushes
from headwaiter.traces.one_device import refuse_device
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

REQUIRED = ("time_s", "task", "op", "sync", "sector", "sectors")
OPTIONAL = ("complete_s", "group", "ioprio", "meta", "name", "cgroup")

_OPS = {"R": int(Op.READ), "W": int(Op.WRITE), "D": int(Op.DISCARD), "O": int(Op.OTHER), "F": int(Op.FLUSH)}
_LETTERS = {number: letter for letter, number in _OPS.items()}
_YES_NO = {"0": 0, "1": 1}
_IOPRIO = (
    {"none": 0, "": 0, "idle": ioprio(IoprioClass.IDLE)}
    | {f"rt/{level}": ioprio(IoprioClass.RT, level) for level in range(8)}
    | {f"be/{level}": ioprio(IoprioClass.BE, level) for level in range(8)}
)
_WRITE_ROWS = 65536


def sniff(head: bytes) -> bool:
    """Return whether the first line that is no comment names one of our columns among its fields."""
    line = next((x for x in head.splitlines() if x.strip() and not x.startswith(b"#")), b"")
    fields = {field.strip() for field in line.split(b",")}
    return b"time_s" in fields or {b"sector", b"sectors"} <= fields


def read(source: Source, options: ReadOptions) -> Trace:
    """Read a native trace. Raises Problem at the first line that breaks the format."""
    refuse_device(source, options.device)
    header, number = read_header(source)
    table = split(source, len(header), delimiter=",", skip_lines=number)
    at = {name: k for k, name in enumerate(header)}
    found = columns(table, at)
    names: dict[int, str] = {}
    if "name" in at:
        ids, first = np.unique(found.task, return_index=True)
        names = {int(i): table.text(int(row), at["name"]) for i, row in zip(ids, first, strict=True)}
    cgroups = cgroups_of(table, at["cgroup"], found.task) if "cgroup" in at else {}
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=found.time_ns,
        sector=found.sector,
        sectors=found.sectors,
        op=found.op,
        flags=found.flags,
        complete_ns=found.complete_ns,
        task_id=found.task,
        group=found.group,
        ioprio=found.ioprio,
        names=names,
        cgroups=cgroups,
        group_gap_ns=options.group_gap_ns,
    )


@dataclass(frozen=True)
class NativeColumns:
    """The columns of native CSV, as int64 of shape (rows,); None: there is no such column."""

    time_ns: Array
    task: Array
    op: Array
    flags: Array
    sector: Array
    sectors: Array
    complete_ns: Array | None
    group: Array | None
    ioprio: Array | None


def columns(table: FieldTable, at: Mapping[str, int], completions: bool = True) -> NativeColumns:
    """The columns of a table, whose places `at` tells by name. Raises Problem at the first line that breaks the format.

    completions: read when requests were done, too.
    """
    time = table.fixed(at["time_s"], "time_s", 9, high=MAX_TIME_NS)
    task = table.integers(at["task"], "task", high=2**32 - 1)
    op = table.words(at["op"], "op", _OPS)
    flags = table.words(at["sync"], "sync", _YES_NO) * SYNC
    sector = table.integers(at["sector"], "sector", high=MAX_SECTOR)
    sectors = table.integers(at["sectors"], "sectors", high=2**32 - 1)
    flush = op == Op.FLUSH
    for wrong, cause in (
        (~flush & (sectors == 0), "sectors 0: only a flush has none"),
        (flush & ((sector > 0) | (sectors > 0)), "a flush has no sectors: 0,0"),
        (sector + sectors > MAX_SECTOR, "the request ends beyond any disk"),
    ):
        if wrong.any():
            raise table.problem(int(np.argmax(wrong)), cause)
    complete = group = ioprio = None
    if "complete_s" in at and completions:
        complete = table.fixed(at["complete_s"], "complete_s", 9, high=MAX_TIME_NS, blank=-1)
        early = (complete >= 0) & (complete < time)
        if early.any():
            raise table.problem(int(np.argmax(early)), "complete_s is before time_s")
    if "group" in at:
        group = table.integers(at["group"], "group", high=2**32 - 1)
    if "ioprio" in at:
        ioprio = table.words(at["ioprio"], "ioprio", _IOPRIO)
    if "meta" in at:
        flags |= table.words(at["meta"], "meta", _YES_NO) * META
    return NativeColumns(time, task, op, flags, sector, sectors, complete, group, ioprio)


def cgroups_of(table: FieldTable, column: int, task: Array) -> dict[int, Path]:
    """Return the groups by task; a task is in the group that its first row names, and a group has one weight."""
    found: dict[int, Path] = {}
    weights: dict[tuple[str, ...], int] = {}
    ids, first = np.unique(task, return_index=True)
    for i, row in zip(ids.tolist(), first.tolist(), strict=True):
        try:
            found[i] = path = parse_path(table.text(row, column))
        except ValueError as e:
            raise table.problem(row, f"cgroup: {e}") from None
        for k, (_, weight) in enumerate(path):
            if weights.setdefault(names := tuple(name for name, _ in path[: k + 1]), weight) != weight:
                raise table.problem(row, f"cgroup: {shown('/'.join(names))} has weight {weights[names]} already")
    return found


def read_header(source: Source) -> tuple[list[str], int]:
    """(names of the columns, lines up to and including the header)."""
    number, position, line = 0, 0, b""
    while position < len(source.data):
        end = source.data.find(b"\n", position)
        end = len(source.data) if end < 0 else end
        line = source.data[position:end].strip()
        position, number = end + 1, number + 1
        if line and not line.startswith(b"#"):
            break
    header = [field.strip() for field in line.decode("utf-8", "replace").split(",")]
    for name in header:
        if name not in REQUIRED + OPTIONAL:
            raise source.problem(f"unknown column {name[:40]!r} (known: {', '.join(REQUIRED + OPTIONAL)})", line=number)
        if header.count(name) > 1:
            raise source.problem(f"column {name} occurs twice", line=number)
    for name in REQUIRED:
        if name not in header:
            raise source.problem(f"column {name} is missing", line=number)
    return header, number


def write_csv(trace: Trace, out: TextIO) -> list[str]:
    """Write a trace as native CSV; optional columns only where they say something. Nothing is lost: an empty list.

    Commas, quotes and line breaks in commands' names become underscores.
    """
    trace = with_flushes(trace)
    header = list(REQUIRED)
    named = any(t.name for t in trace.tasks)
    optional = {
        "complete_s": trace.completions_known,
        # With names and without groups a reader would look for groups again.
        "group": named or bool((trace.group != trace.task).any()),
        "ioprio": bool(trace.ioprio.any()),
        "meta": bool((trace.flags & META).any()),
        "name": named,
        "cgroup": any(t.cgroup for t in trace.tasks),
    }
    header += [name for name in OPTIONAL if optional[name]]
    out.write(",".join(header) + "\n")
    ids, names = [t.id for t in trace.tasks], [_plain(t.name) for t in trace.tasks]
    groups = [_plain(written_path(t.cgroup)) for t in trace.tasks]
    column: dict[str, Callable[[slice], Sequence[Any]]] = {
        "time_s": lambda here: _seconds(trace.time_ns[here]),
        "task": lambda here: [ids[k] for k in trace.task[here].tolist()],
        "op": lambda here: [_LETTERS[k] for k in trace.op[here].tolist()],
        "sync": lambda here: (trace.flags[here] & SYNC).tolist(),
        "sector": lambda here: trace.sector[here].tolist(),
        "sectors": lambda here: trace.sectors[here].tolist(),
        "complete_s": lambda here: _seconds(trace.complete_ns[here]),
        "group": lambda here: trace.group[here].tolist(),
        "ioprio": lambda here: [_ioprio(value) for value in trace.ioprio[here].tolist()],
        "meta": lambda here: ((trace.flags[here] & META) // META).tolist(),
        "name": lambda here: [names[k] for k in trace.task[here].tolist()],
        "cgroup": lambda here: [groups[k] for k in trace.task[here].tolist()],
    }
    line = ",".join(["%s"] * len(header)) + "\n"
    for begin in range(0, len(trace), _WRITE_ROWS):
        here = slice(begin, begin + _WRITE_ROWS)
        out.write("".join([line % row for row in zip(*(column[name](here) for name in header), strict=True)]))
    return []


def native_csv(trace: Trace) -> str:
    """Return a trace as the text of native CSV."""
    out = io.StringIO()
    write_csv(trace, out)
    return out.getvalue()


def _seconds(ns: Array) -> list[str]:
    """Times as decimal seconds, all nine digits; unknown ones (-1) as nothing."""
    whole, rest = np.divmod(ns, 10**9)
    return [f"{s}.{r:09d}" if s >= 0 else "" for s, r in zip(whole.tolist(), rest.tolist(), strict=True)]


def _ioprio(value: int) -> str:
    kind, level = ioprio_parts(value)
    level = min(level, 7)
    return {IoprioClass.RT: f"rt/{level}", IoprioClass.BE: f"be/{level}", IoprioClass.IDLE: "idle"}.get(kind, "none")


def _plain(name: str) -> str:
    return "".join("_" if c in ',"' or not c.isprintable() else c for c in name).strip()


FORMAT = Format("native", "native CSV (time_s,task,op,sync,sector,sectors…)", sniff, read, rank=-1, write=write_csv)
