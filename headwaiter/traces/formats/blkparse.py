# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""blkparse's text in its default format, one event a line, with or without the summary at the end.

    8,0    3        1     0.000000000   697  Q  WS 223490 + 8 [kjournald]

Source: blkparse(1), section "OUTPUT DESCRIPTION AND FORMATTING".
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from headwaiter.engine.constants import Op
from headwaiter.traces.blkevents import Events, Processes, make_block_trace, make_flags
from headwaiter.traces.columns import Array, Table, split_ragged
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace
from headwaiter.traces.registry import Format, Options
from headwaiter.traces.source import Source

_LINE = re.compile(rb"\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+[A-Za-z]+(\s|\Z)")
_DEVICE = re.compile(r"\d+,\d+\Z")
_ACTIONS = ["Q", "M", "F", "G", "S", "R", "D", "C", "P", "U", "UT", "I", "X", "B", "A", "m"]
_COLUMNS = 6
"""device, cpu, sequence, time, pid, action; what follows depends on the action."""


def sniff(head: bytes) -> bool:
    """Whether the first line that is not empty is an event."""
    return bool(_LINE.match(head.lstrip()[:256]))


def read(source: Source, options: Options) -> Trace:
    """Read a recording. Raises Problem at the first line that is not an event."""
    data, start, end, first, line_end, lines = split_ragged(source)
    summary = _summary(data, start, first)
    if not summary:
        raise source.problem("contains no events", line=int(lines[0]))
    first, line_end, lines = first[: summary + 1], line_end[:summary], lines[:summary]
    tokens = np.diff(first)
    short = tokens < _COLUMNS
    if short.any():
        raise source.problem("not a line of blkparse", line=int(lines[np.argmax(short)]))

    def table(rows: Array, columns: list[int]) -> Table:
        at = first[rows][:, None] + np.array(columns)
        return Table(source, data, start[at], end[at], lines[rows])

    head = table(np.arange(summary), list(range(_COLUMNS)))
    devices, device = head.distinct([0])
    for k, (name,) in enumerate(devices):
        if not _DEVICE.match(name):
            raise head.problem(int(np.argmax(device == k)), f"{name!r} is not a device (major,minor)")
    time = head.fixed(3, "time", 9, high=MAX_TIME_NS)
    pid = head.integers(4, "pid", high=2**32 - 1)
    kind = head.words(5, "action", {name: k for k, name in enumerate(_ACTIONS)})
    letter = np.array([ord(name) if name in "QDCIXA" else 0 for name in _ACTIONS], np.uint8)[kind]

    # Requests have `sector + sectors`, splits `sector / sector`; flushes and passed-through commands neither.
    wide = np.flatnonzero((letter != 0) & (tokens >= _COLUMNS + 4))
    sign = data[start[first[wide] + 8]] if len(wide) else np.zeros(0, np.uint8)
    rows = wide[sign == np.where(letter[wide] == ord("X"), ord("/"), ord("+"))]
    body = table(rows, [6, 7, 9])
    split = letter[rows] == ord("X")
    sector = body.integers(1, "sector", high=MAX_SECTOR)
    number = body.integers(2, "number of sectors", high=MAX_SECTOR)
    op, flags = _rwbs(body)
    aux = np.where(split, number, 0)
    origin = np.flatnonzero((letter[rows] == ord("A")) & (tokens[rows] >= 13))
    aux[origin] = table(rows[origin], [12]).integers(0, "sector", high=MAX_SECTOR)
    processes = _processes(table, head, rows[np.isin(letter[rows], np.frombuffer(b"QDI", np.uint8))], line_end)
    for row in np.flatnonzero((kind == _ACTIONS.index("m")) & (tokens > 7)).tolist():
        text = data[start[first[row] + 7] : line_end[row]].tobytes().decode("utf-8", "replace")
        processes.message(text, int(time[row]))
    events = Events(
        time_ns=time[rows],
        action=letter[rows],
        op=op,
        flags=flags,
        sector=sector.astype(np.uint64),
        sectors=np.where(split, 1, number),
        pid=pid[rows],
        device=device[rows],
        aux=aux.astype(np.uint64),
    )
    some = events.rows(np.flatnonzero(events.sectors > 0))
    names = [name for (name,) in devices]
    return make_block_trace(source, FORMAT.name, some, device_names=names, processes=processes, options=options)


def _summary(data: Array, start: Array, first: Array) -> int:
    """How many lines come before the summary, which begins at a line of `CPU0 (…):` or `Total (…):`."""
    begin = start[first[:-1]]
    ahead = data[np.minimum(begin[:, None] + np.arange(3), len(data) - 1)]
    at = (ahead == np.frombuffer(b"CPU", np.uint8)).all(axis=1) | (ahead == np.frombuffer(b"Tot", np.uint8)).all(axis=1)
    return int(np.argmax(at)) if at.any() else len(begin)


def _rwbs(body: Table) -> tuple[Array, Array]:
    """(op, flags) from the RWBS column: F before the operation is a flush, after it FUA; D discard, S sync, M meta."""
    code = body.packed(0)
    distinct, inverse = np.unique(code, return_inverse=True)
    op, sync, meta = [], [], []
    for value in distinct.tolist():
        text = value.to_bytes(8, "big").lstrip(b"\0").decode("latin-1")
        found = re.fullmatch(r"F?([RWDN]|DE|ZR|ZA)([FASMBE]*)", text)
        if not found:
            row = int(np.argmax(code == value))
            raise body.problem(row, f"unknown operation {body.text(row, 0)[:16]!r}")
        op.append({"R": Op.READ, "W": Op.WRITE, "D": Op.DISCARD}.get(found[1][0], Op.OTHER))
        sync.append(text.startswith("F") or "S" in found[2] or "F" in found[2] or "B" in found[2])
        meta.append("M" in found[2])
    ops = np.array(op, np.uint8)[inverse]
    return ops, make_flags(ops, np.array(sync, bool)[inverse], np.array(meta, bool)[inverse])


def _processes(table: Callable[[Array, list[int]], Table], head: Table, rows: Array, line_end: Array) -> Processes:
    """The commands' names: what stands in brackets at a line's end, of each pid's first event."""
    found = Processes()
    pids = head.integers(4, "pid")[rows]
    for pid, k in zip(*np.unique(pids, return_index=True), strict=True):
        row = int(rows[k])
        begin = int(table(np.array([row]), [9]).end[0, 0])
        text = head.data[begin : line_end[row]].tobytes().decode("utf-8", "replace")
        if (name := re.search(r"\[(.*)\]$", text)) and name[1] not in ("", "(null)"):
            found.names[int(pid)] = name[1]
    return found


FORMAT = Format("blkparse", "blkparse's default text output", sniff, read)
