# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A line for each I/O that is done, as biosnoop of BCC prints it, or docs/biosnoop.bt with bpftrace:

    TIME(s)     COMM           PID     DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)
    0.000004    supervise      1950    xvda1   W 13092560   4096      0.01    0.74

TIME is that of completion; the I/O was issued LAT earlier, and came to the scheduler QUE before that. Columns in any order,
with the unit s, ms, us or ns in parentheses; LAT or QUE may be missing. COMM may contain blanks. Source: biosnoop(8).
"""

from __future__ import annotations

import re

import numpy as np

from headwaiter.engine.constants import SYNC, Op
from headwaiter.traces.columns import Array, Table, split_ragged
from headwaiter.traces.devices import one_device
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace, bytes_to_sectors, from_zero
from headwaiter.traces.registry import Format, Options
from headwaiter.traces.source import Source

_HEADER = re.compile(rb"TIME\((s|ms|us|ns)\)\s")
_COLUMN = re.compile(r"([A-Z]+)(?:\((s|ms|us|ns)\))?\Z")
_SCALE = {"s": 9, "ms": 6, "us": 3, "ns": 0}
_REQUIRED = ("TIME", "PID", "DISK", "T", "SECTOR", "BYTES")
_KNOWN = (*_REQUIRED, "COMM", "LAT", "QUE")
_OPS = {"R": Op.READ, "W": Op.WRITE, "D": Op.DISCARD}
_MOST_BYTES = 2**41 - 1


def sniff(head: bytes) -> bool:
    """Whether the header is there, after what bpftrace says when it begins."""
    return any(_HEADER.match(line) for line in head.splitlines()[:4])


def read(source: Source, options: Options) -> Trace:
    """Read one disk's requests. Raises Problem at the first line that breaks the format."""
    data, start, end, first, _, lines = split_ragged(source)
    top = next((k for k in range(min(4, len(lines))) if _HEADER.match(data[start[first[k]] :][:64].tobytes())), None)
    if top is None:
        raise source.problem("the header TIME(s) … is missing")
    names, units = _columns(source, [data[a:b].tobytes() for a, b in _spans(start, end, first, top)], int(lines[top]))
    first, lines = first[top + 1 :], lines[top + 1 :]
    if not len(lines):
        raise source.problem("contains no requests")
    more = np.diff(first) - len(names)
    fixed = "COMM" not in names
    if (wrong := (more < 0) | (fixed & (more != 0))).any():
        row = int(np.argmax(wrong))
        raise source.problem(f"{more[row] + len(names)} fields where {len(names)} are expected", line=int(lines[row]))
    # What a command's name has too many is its own.
    name_at = names.index("COMM") if not fixed else len(names)
    place = first[:-1, None] + np.arange(len(names)) + np.where(np.arange(len(names)) > name_at, more[:, None], 0)
    stop = end[place]
    if not fixed:
        stop[:, name_at] = end[first[:-1] + name_at + more]
    table, notes = one_device(Table(source, data, start[place], stop, lines), [names.index("DISK")], options.device)

    def times(name: str) -> Array:
        if name not in names:
            return np.zeros(len(table), np.int64)
        return table.fixed(names.index(name), name, _SCALE[units[name]], high=MAX_TIME_NS)

    # In an early line the I/O began before the clock did.
    done, latency, queued = times("TIME"), times("LAT"), times("QUE")
    issued = done - latency - queued
    if (far := issued < -MAX_TIME_NS // 2).any():
        raise table.problem(int(np.argmax(far)), "LAT is out of range")
    time = issued - issued.min()
    if time.max() > MAX_TIME_NS:
        raise source.problem("times differ by more than 73 years")
    known = "LAT" in names
    time, complete = from_zero(time, time + latency + queued if known else None)
    op, flags = _operations(table, names.index("T"))
    sector = table.integers(names.index("SECTOR"), "SECTOR", high=MAX_SECTOR)
    size = table.integers(names.index("BYTES"), "BYTES", high=_MOST_BYTES)
    pid = table.integers(names.index("PID"), "PID", high=2**32 - 1)
    commands: dict[int, str] = {}
    if not fixed:
        ids, rows = np.unique(pid, return_index=True)
        commands = {int(i): table.text(int(row), name_at) for i, row in zip(ids, rows, strict=True)}
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=time,
        complete_ns=complete,
        sector=sector,
        sectors=bytes_to_sectors(np.zeros_like(size), size)[1],
        op=op,
        flags=flags,
        task_id=pid,
        names=commands,
        group_gap_ns=options.group_gap_ns,
        notes=[*notes, "requests as the drive got them, already merged"],
    )


def _spans(start: Array, end: Array, first: Array, row: int) -> list[tuple[int, int]]:
    here = slice(int(first[row]), int(first[row + 1]))
    return list(zip(start[here].tolist(), end[here].tolist(), strict=True))


def _columns(source: Source, header: list[bytes], line: int) -> tuple[list[str], dict[str, str]]:
    """Names in order, and the units of those that are times."""
    names, units = [], {}
    for raw in header:
        text = raw.decode("utf-8", "replace")
        found = _COLUMN.match(text)
        if not found or found[1] not in _KNOWN or found[1] in names:
            raise source.problem(f"column {text[:40]!r} is unknown, or there twice (known: {', '.join(_KNOWN)})", line=line)
        names.append(found[1])
        if found[1] in ("TIME", "LAT", "QUE"):
            units[found[1]] = found[2] or "ms"
    for name in _REQUIRED:
        if name not in names:
            raise source.problem(f"column {name} is missing", line=line)
    return names, units


def _operations(table: Table, column: int) -> tuple[Array, Array]:
    """(op, flags) by the first letter; an S among the others says that a write is waited for, an F before it is a flush."""
    packed = table.packed(column)
    distinct, inverse = np.unique(packed, return_inverse=True)
    op, flags = [], []
    for value in distinct.tolist():
        text = value.to_bytes(8, "big").lstrip(b"\0").decode("latin-1")
        letters = text.removeprefix("F")
        if not text.isalpha():
            raise table.problem(int(np.argmax(packed == value)), f"unknown operation {text[:16]!r}")
        op.append(_OPS.get(letters[:1], Op.OTHER))
        flags.append(SYNC * (op[-1] == Op.READ or text.startswith("F") or "S" in letters))
    return np.array(op, np.uint8)[inverse], np.array(flags, np.uint8)[inverse]


FORMAT = Format("biosnoop", "biosnoop of BCC, and docs/biosnoop.bt with bpftrace", sniff, read)
