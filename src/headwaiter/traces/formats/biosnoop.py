# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A line for each I/O that is done, as biosnoop of BCC prints it, or docs/biosnoop.bt with bpftrace:

    TIME(s)     COMM           PID     DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)
    0.000004    supervise      1950    xvda1   W 13092560   4096      0.01    0.74

TIME is that of completion; the I/O was issued LAT earlier, and came to the scheduler QUE before that. Columns in any order,
with the unit s, ms, us or ns in parentheses; LAT or QUE may be missing, and further columns do not count. Cells are padded to
their header's place: COMM may contain blanks, a cell may be empty, and one that is full touches the next. So a line is cut at
blanks if every cell is then of its column's kind, else at the header's places, else at what fits the kinds. Source: biosnoop(8).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from headwaiter.base.errors import counted, shown
from headwaiter.engine.constants import SYNC, Op
from headwaiter.traces.fields import Array, FieldTable
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace, bytes_to_sectors, from_zero
from headwaiter.traces.one_device import one_device
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_HEADER = re.compile(rb"\s*TIME\((s|ms|us|ns)\)\s")
_COLUMN = re.compile(rb"([A-Z]+)(?:\((s|ms|us|ns)\))?\Z")
_WORD = re.compile(rb"\S+")
_SCALE = {b"s": 9, b"ms": 6, b"us": 3, b"ns": 0}
_REQUIRED = (b"TIME", b"PID", b"DISK", b"T", b"SECTOR", b"BYTES")
_TIMED = (b"TIME", b"LAT", b"QUE")
_KINDS = {
    b"TIME": rb"\d+(?:\.\d+)?", b"COMM": rb"\S.*?|", b"PID": rb"-?\d+|", b"DISK": rb"\S+|", b"T": rb"[A-Za-z]+",
    b"SECTOR": rb"-?\d+", b"BYTES": rb"\d+", b"QUE": rb"-?\d+(?:\.\d+)?|", b"LAT": rb"-?\d+(?:\.\d+)?|",
}  # fmt: skip
_OTHER = rb"\S+|"
_LOST = re.compile(rb"\s*(?:Possibly lost|Lost) (\d{1,19}) (?:samples|events)")
_OPS = {"R": Op.READ, "W": Op.WRITE, "D": Op.DISCARD}
_MOST_BYTES = 2**41 - 1
_LONGEST = 4096
"""Bytes of a line."""
_MOST_WORDS = 16
"""A command's name has at most so many words."""
_TOP_LINES = 6
"""In which the header is: bpftrace and shells print before it."""

Cut = Callable[[bytes], list[tuple[int, int]] | None]


@dataclass(frozen=True)
class _Columns:
    """Names in order, units of times, and where each begins in the header."""

    names: list[bytes]
    units: dict[bytes, bytes]
    places: list[int]


def sniff(head: bytes) -> bool:
    """Return whether the header is there, after what bpftrace says when it begins."""
    return any(_HEADER.match(line) for line in head.splitlines()[:_TOP_LINES])


def read(source: Source, options: ReadOptions) -> Trace:
    """Read one disk's requests. Raises Problem at the first line that breaks the format."""
    columns, first = _header(source)
    table, empty, notes = _rows(source, columns, first)
    at = {name: columns.names.index(name) for name in _KINDS if name in columns.names}
    if empty:
        notes.append(f"{counted(empty, 'line')} without a disk or a length (flushes, commands) left out")
    if not len(table):
        raise source.problem("contains no requests")
    table, told = one_device(table, [at[b"DISK"]], options)
    notes += told

    def times(name: bytes) -> Array:
        if name not in at:
            return np.zeros(len(table), np.int64)
        return table.fixed(at[name], name.decode(), _SCALE[columns.units[name]], high=MAX_TIME_NS, blank=0)

    # In an early line the I/O began before the clock did.
    done, latency, queued = times(b"TIME"), times(b"LAT"), times(b"QUE")
    issued = done - latency - queued
    if (far := issued < -MAX_TIME_NS // 2).any():
        raise table.problem(int(np.argmax(far)), "LAT is out of range")
    time = issued - issued.min()
    if time.max() > MAX_TIME_NS:
        raise source.problem("times differ by more than 73 years")
    time, complete = from_zero(time, time + latency + queued if b"LAT" in at else None)
    op, flags = _operations(table, at[b"T"])
    sector = table.integers(at[b"SECTOR"], "SECTOR", high=MAX_SECTOR)
    size = table.integers(at[b"BYTES"], "BYTES", high=_MOST_BYTES)
    pid = np.maximum(table.integers(at[b"PID"], "PID", low=-1, high=2**32 - 1), 0)
    commands: dict[int, str] = {}
    if b"COMM" in at:
        ids, rows = np.unique(pid, return_index=True)
        commands = {int(i): table.text(int(row), at[b"COMM"]) for i, row in zip(ids, rows, strict=True)}
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


def _header(source: Source) -> tuple[_Columns, int]:
    """(the columns, the line behind them, from 1)."""
    lines = source.head.split(b"\n")[:_TOP_LINES]
    top = next((k for k, line in enumerate(lines) if _HEADER.match(line)), None)
    if top is None:
        raise source.problem("the header TIME(s) … is missing")
    names, units, places = [], {}, []
    for word in _WORD.finditer(lines[top].expandtabs()):
        found = _COLUMN.match(word[0])
        name = found[1] if found else word[0]
        if name in names:
            raise source.problem(f"column {name.decode('utf-8', 'replace')[:40]!r} is there twice", line=top + 1)
        names.append(name)
        places.append(word.start())
        if name in _TIMED:
            units[name] = (found[2] if found else None) or b"ms"
    for name in _REQUIRED:
        if name not in names:
            raise source.problem(f"column {name.decode()} is missing", line=top + 1)
    return _Columns(names, units, places), top + 2


def _rows(source: Source, columns: _Columns, first: int) -> tuple[FieldTable, int, list[str]]:
    """(the lines with a disk and a length, how many have none, notes)."""
    names = columns.names
    disk, size, count = names.index(b"DISK"), names.index(b"BYTES"), len(names)
    cuts = _cuts(columns)
    lines: list[int] = []
    spans: list[list[tuple[int, int]]] = []
    position, empty, lost, unknown = 0, 0, 0, []
    data = source.data.replace(b"\t", b" ")
    for number, line in enumerate(data.split(b"\n"), 1):
        begin, position = position, position + len(line) + 1
        if number < first or not line.strip() or _HEADER.match(line):
            continue
        ways = (cut(line) for cut in cuts if len(line) <= _LONGEST)
        cells = next((found for found in ways if found), None)
        if cells is None:
            if gone := _LOST.match(line):
                lost += int(gone[1])
            elif line.strip()[:1].isalpha():  # what a shell or a tool says, and no damaged row
                unknown.append(number)
            else:
                raise source.problem(_wrong(line, columns), line=number)
            continue
        if cells[disk][0] == cells[disk][1] or not line[slice(*cells[size])].strip(b"0"):
            empty += 1
            continue
        lines.append(number)
        spans.append([(begin + a, begin + b) for a, b in cells])
    if not lines and not empty:
        raise source.problem("contains no requests")
    notes = [f"{lost} events were lost while recording"] if lost else []
    if unknown:
        notes.append(f"{counted(len(unknown), 'line')} not known here and not used (the first: line {unknown[0]})")
    grid = np.array(spans, np.int64).reshape(-1, count, 2)
    bytes_ = np.frombuffer(data, np.uint8)
    return FieldTable(source, bytes_, grid[:, :, 0], grid[:, :, 1], np.array(lines, np.int64)), empty, notes


def _cuts(columns: _Columns) -> tuple[Cut, Cut, Cut]:
    """How to cut a line into cells, the surest way first: each returns where they are, or None if one is not of its kind."""
    names, places = columns.names, columns.places
    kinds = [_KINDS.get(name, _OTHER) for name in names]
    checks = [re.compile(kind) for kind in kinds]
    all_there = re.compile(rb"\s*" + rb"\s+".join(b"(" + kind.removesuffix(b"|") + b")" for kind in kinds) + rb"\s*")

    def at_blanks(line: bytes) -> list[tuple[int, int]] | None:
        found = all_there.fullmatch(line)
        return [found.span(k + 1) for k in range(len(names))] if found else None

    def at_places(line: bytes) -> list[tuple[int, int]] | None:
        found = []
        for k, place in enumerate(places):
            cell = line[place : places[k + 1]] if k + 1 < len(places) else line[place:]
            begin = min(place, len(line)) + len(cell) - len(cell.lstrip())
            end = min(place, len(line)) + len(cell.rstrip())
            if not checks[k].fullmatch(line[begin:end]):
                return None
            found.append((begin, max(begin, end)))
        return found

    def by_kind(line: bytes) -> list[tuple[int, int]] | None:
        return _aligned([word.span() for word in _WORD.finditer(line)], line, columns, checks)

    return at_blanks, at_places, by_kind


def _aligned(
    words: list[tuple[int, int]], line: bytes, columns: _Columns, checks: list[re.Pattern[bytes]]
) -> list[tuple[int, int]] | None:
    """The cells that words are, in order, each of its column's kind, as near their places as can be. COMM may be several."""
    if len(words) > len(columns.names) + _MOST_WORDS:
        return None
    # best[i]: the least distance with the first i words in the columns so far, and the cells.
    best: dict[int, tuple[int, list[tuple[int, int]]]] = {0: (0, [])}
    for name, place, check in zip(columns.names, columns.places, checks, strict=True):
        nowhere = min(place, len(line))
        reached: dict[int, tuple[int, list[tuple[int, int]]]] = {}
        for used, (distance, cells) in best.items():
            ways = [(used, (nowhere, nowhere), 0)] if check.fullmatch(b"") else []
            last = len(words) if name == b"COMM" else used + 1
            for until in range(used + 1, min(last, len(words)) + 1):
                cell = (words[used][0], words[until - 1][1])
                if check.fullmatch(line[slice(*cell)]):
                    ways.append((until, cell, abs(cell[0] - place)))
            for until, cell, away in ways:
                if until not in reached or distance + away < reached[until][0]:
                    reached[until] = (distance + away, [*cells, cell])
        best = reached
    found = best.get(len(words))
    return found[1] if found else None


def _wrong(line: bytes, columns: _Columns) -> str:
    """Return what is the matter with a line that fits no way."""
    words = line.split()
    if len(words) != len(columns.names):
        return f"{len(words)} fields where {len(columns.names)} are expected"
    for name, word in zip(columns.names, words, strict=True):
        if not re.fullmatch(_KINDS.get(name, _OTHER), word):
            what = "operation" if name == b"T" else name.decode("utf-8", "replace")
            return f"unknown {what} {shown(word[:16].decode('utf-8', 'replace'))!r}"
    return "the cells are not those of the columns"


def _operations(table: FieldTable, column: int) -> tuple[Array, Array]:
    """(op, flags) by the first letter; an S among the others says that a write is waited for, an F before it is a flush."""
    texts, row_of = table.distinct([column])
    op, flags = [], []
    for (text,) in texts:
        letters = text.removeprefix("F")
        op.append(_OPS.get(letters[:1], Op.OTHER))
        flags.append(SYNC * (op[-1] == Op.READ or text.startswith("F") or "S" in letters))
    return np.array(op, np.uint8)[row_of], np.array(flags, np.uint8)[row_of]


FORMAT = Format("biosnoop", "biosnoop of BCC, and docs/biosnoop.bt with bpftrace", sniff, read)
