# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CSV whose columns mean what meaning.py says: with or without a header, separated by commas, semicolons, tabs or blanks.

Where commas do not separate fields they are decimal ones. Fields may be in quotes. Lines before the first row that begin with #
do not count.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headwaiter.base.errors import shown
from headwaiter.engine.constants import SECTOR_BYTES, SYNC, Op
from headwaiter.traces.clock import Clock, is_time
from headwaiter.traces.events import parse_rwbs
from headwaiter.traces.fields import Array, FieldTable, split
from headwaiter.traces.making import make_trace
from headwaiter.traces.meaning import PRESETS, Meaning, parse
from headwaiter.traces.model import EARLY_NS, MAX_SECTOR, Trace, bytes_to_sectors, from_zero
from headwaiter.traces.one_device import one_device, refuse_device
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_SEPARATORS = ("\t", ";", ",")
"""What a line has most of separates, and of two that it has equally many of the first; else blanks do (None)."""
_MOST_BYTES = 2**41 - 1
_MOST_DIGITS = 9
"""A column's number has at most so many digits."""
_WORDS = {
    **dict.fromkeys(("r", "read", "rd", "diskread"), Op.READ),
    **dict.fromkeys(("w", "write", "wr", "diskwrite"), Op.WRITE),
    **dict.fromkeys(("d", "discard", "t", "trim", "unmap"), Op.DISCARD),
    **dict.fromkeys(("f", "flush", "sync", "fsync", "diskflush"), Op.FLUSH),
}
_NUMBERS = {"0": Op.READ, "1": Op.WRITE}


@dataclass(frozen=True)
class _Layout:
    """The places of columns: the index of each key's, how many there are, the lines before the first row, and the separator."""

    at: Mapping[str, int]
    columns: int
    skip_lines: int
    separator: str | None


def read(source: Source, options: ReadOptions, meaning: Meaning, format: str) -> Trace:
    """Read a file whose columns mean that. Raises Problem at the first line that does not fit."""
    source.blank(b'"')
    layout = _layout(source, meaning.names)
    at, names = layout.at, meaning.names
    table = split(source, layout.columns, delimiter=layout.separator, skip_lines=layout.skip_lines)
    notes: list[str] = []
    if "device" in at:
        table, notes = one_device(table, [at["device"]], options)
    else:
        refuse_device(source, options.device)
    numbers = table
    if layout.separator != ",":
        numbers = dataclasses.replace(table, data=np.where(table.data == ord(","), np.uint8(ord(".")), table.data))
    time, complete = _times(numbers, meaning, at, options)
    if "op" in at:
        op, flags, told = _operations(table, at["op"], names["op"], meaning.words)
        notes += told
    else:
        op, flags = np.full(len(table), int(Op.READ)), np.full(len(table), SYNC)
        notes.append("no column op: all requests are taken for reads")
    if "sync" in at:
        flags = table.words(at["sync"], names["sync"], {"0": 0, "1": 1, "false": 0, "true": 1, "False": 0, "True": 1}) * SYNC
    units = meaning.bytes
    offset = table.integers(at["offset"], names["offset"], high=MAX_SECTOR * SECTOR_BYTES // units["offset"] - 1)
    size = table.integers(at["size"], names["size"], high=_MOST_BYTES // units["size"])
    sector, sectors = bytes_to_sectors(offset * units["offset"], size * units["size"])
    tasks, commands = _tasks(table, at, names)
    return make_trace(
        source=str(source.path),
        format=format,
        time_ns=time,
        complete_ns=complete,
        sector=np.where(op == Op.FLUSH, 0, sector),
        sectors=np.where(op == Op.FLUSH, 0, sectors),
        op=op,
        flags=flags,
        task_id=tasks,
        names=commands,
        group_gap_ns=options.group_gap_ns,
        notes=notes,
    )


def preset(name: str, title: str, line: bytes) -> Format:
    """A format of that name in PRESETS; `line` matches its first line, or its second behind a header."""
    pattern = re.compile(line + rb"\s*", re.IGNORECASE)

    def sniff(head: bytes) -> bool:
        """Return whether the first two lines are such rows, or the first is a header and the second one."""
        lines = [text for text in head.splitlines()[:2] if text.strip()]
        return bool(lines) and bool(pattern.fullmatch(lines[-1])) and (len(lines) > 1 or head.endswith(b"\n"))

    def read_preset(source: Source, options: ReadOptions) -> Trace:
        """Read one device's requests. Raises Problem at the first line that breaks the format."""
        return read(source, options, parse(PRESETS[name], source.problem), name)

    def headers(head: bytes) -> int:
        """Return 1 if there is a header."""
        return int(not pattern.fullmatch(next(iter(head.splitlines()), b"")))

    return Format(name, title, sniff, read_preset, headers=headers)


def _times(table: FieldTable, meaning: Meaning, at: Mapping[str, int], options: ReadOptions) -> tuple[Array, Array]:
    """(issue, completion or -1), from 0 or the base of pieces, in ns."""
    names, scales, clock = meaning.names, meaning.scales, Clock()
    time = clock.column(table, at["time"], names["time"], scales["time"])
    complete = None
    if "complete" in at:
        complete = clock.column(table, at["complete"], names["complete"], scales["complete"], blank=True)
    elif "latency" in at:
        latency = Clock(0).column(table, at["latency"], names["latency"], scales["latency"], blank=True)
        complete = np.where(latency >= 0, time + latency, -1)
    if complete is not None and (early := (complete >= 0) & (complete < time)).any():
        raise table.problem(int(np.argmax(early)), f"{names['complete']} is before {names['time']}")
    return from_zero(time, complete, options.base(int(time.min()), EARLY_NS))


def _operations(table: FieldTable, column: int, name: str, words: Mapping[str, Op]) -> tuple[Array, Array, list[str]]:
    """(op, flags, notes) by the words of a column: those that were given, plain ones, or the kernel's letters (WS, RA, FF, …)."""
    texts, row_of = table.distinct([column])
    ops, waited, guessed = [], [], False
    for k, (text,) in enumerate(texts):
        word = text.casefold()
        op, sync = words.get(word, _WORDS.get(word) if not words else None), False
        if op is None and not words and word in _NUMBERS:
            op, guessed = _NUMBERS[word], True
        elif op is None and not words and (letters := parse_rwbs(text.upper())):
            op, sync = letters.op, letters.sync
        if op is None:
            how = ", ".join(words or ("r", "w", "d", "read", "write", "trim"))
            hint = "" if words else f"; op={name}:{shown(text[:16])}=r/…=w says what it is"
            raise table.problem(int(np.argmax(row_of == k)), f"unknown {name} {shown(text[:40])!r} (known: {how}{hint})")
        ops.append(int(op))
        waited.append(SYNC * (op in (Op.READ, Op.FLUSH) or sync))
    notes = [f"{name}: 0 is taken for a read and 1 for a write (op={name}:0=w/1=r says otherwise)"] if guessed else []
    return np.array(ops)[row_of], np.array(waited)[row_of], notes


def _tasks(table: FieldTable, at: Mapping[str, int], names: Mapping[str, str]) -> tuple[Array | None, dict[int, str]]:
    """(numbers, names): as the column has them, or counted from 1 where it has names."""
    if "task" not in at:
        return None, {}
    column = at["task"]
    if table.text(0, column).isdecimal():
        return table.integers(column, names["task"], high=2**32 - 1), {}
    texts, row_of = table.distinct([column])
    return row_of + 1, {k + 1: text for k, (text,) in enumerate(texts)}


def _layout(source: Source, names: Mapping[str, str]) -> _Layout:
    """Return the places of columns. Problem if the first line does not have them."""
    for number, line in enumerate(source.head.split(b"\n"), 1):
        if line.strip() and not line.startswith(b"#"):
            return _find(source, names, line.decode("utf-8-sig", "replace").rstrip("\r"), number)
    raise source.problem("contains no requests")


def _fields(text: str, separator: str | None) -> list[str]:
    return text.split() if separator is None else [name.strip() for name in text.split(separator)]


def _find(source: Source, names: Mapping[str, str], line: str, number: int) -> _Layout:
    ways: list[str | None] = [*sorted(filter(line.count, _SEPARATORS), key=line.count, reverse=True), None]
    for separator in ways:
        header = _fields(line, separator)
        if all(header.count(name) == 1 for name in names.values()) and not all(name.isdecimal() for name in names.values()):
            return _Layout({key: header.index(name) for key, name in names.items()}, len(header), number, separator)
    # By number: the file may have a header even so.
    for separator in ways:
        header = _fields(line, separator)
        at = {key: _place(name, header) for key, name in names.items()}
        if all(place >= 0 for place in at.values()):
            named = any(name in header and not name.isdecimal() for name in names.values())
            rows = is_time(header[at["time"]]) and not named
            return _Layout(at, len(header), number - 1 if rows else number, separator)
    header = _fields(line, ways[0])
    name = next(name for name in names.values() if header.count(name) != 1 and _place(name, header) < 0)
    how = "is there more than once" if name in header else "is not in the header"
    raise source.problem(f"column {shown(name[:40])!r} {how} ({shown(', '.join(header)[:200])})", line=number)


def _place(name: str, header: list[str]) -> int:
    """The index of a column by number, or else by name; -1 if there is none, or more than one.

    A field of the first row that is the same number is no name of a column.
    """
    number = int(name) if name.isascii() and name.isdecimal() and len(name) <= _MOST_DIGITS else 0
    if 1 <= number <= len(header):
        return number - 1
    return header.index(name) if header.count(name) == 1 else -1
