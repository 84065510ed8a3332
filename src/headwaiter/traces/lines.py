# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files of which each line is a request by itself, read in parts of whole lines: native CSV, and formats that have `headers`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from headwaiter.base.errors import NoRequestsError, Problem, plain
from headwaiter.base.reading import StreamError, contents
from headwaiter.engine.cgroups import Path as GroupPath
from headwaiter.traces.fields import Array, FieldTable, split
from headwaiter.traces.formats import native
from headwaiter.traces.formats.native import NativeColumns
from headwaiter.traces.model import with_flushes
from headwaiter.traces.one_device import refuse_device
from headwaiter.traces.registry import Format, Origin, ReadOptions, formats
from headwaiter.traces.source import HEAD_BYTES, Source

TEXT_BYTES = 4 << 20
"""Bytes of text that are converted at once."""


@dataclass(frozen=True)
class TextPart:
    """Whole lines of a file: the text, and how many lines are in front of it."""

    data: bytes
    lines: int


@dataclass(frozen=True)
class PartRows:
    """The rows of a part as they stand in the file. lines: of each, 0 where that is not known; table, at: of native CSV."""

    columns: NativeColumns
    lines: Array
    table: FieldTable | None = None
    at: Mapping[str, int] = field(default_factory=dict)

    def name(self, row: int) -> str:
        """Return the name of a row's task; empty if it has none."""
        return plain(self.table.text(row, self.at["name"])).strip() if self.table and "name" in self.at else ""

    def cgroups(self, rows: Array) -> dict[int, GroupPath]:
        """The control groups that these rows tell, by task."""
        if not self.table or "cgroup" not in self.at:
            return {}
        return native.cgroups_of(self.table.rows(rows), self.at["cgroup"], self.columns.task[rows])


class Lines(ABC):
    """How the parts of one file are read: `skip` lines in front of the requests, and the head, which has those, too."""

    def __init__(self, path: Path, format: Format, skip: int, head: bytes, device: str | None, tasks_known: bool) -> None:
        self.path, self.format, self.skip, self.head, self.tasks_known = path, format, skip, head, tasks_known
        self.wanted = device
        self.origin = Origin()

    @property
    def device(self) -> str | None:
        """The device that is read, once a part has been; None where the format names none."""
        return self.wanted or self.origin.device

    @cached_property
    def header(self) -> bytes:
        """The lines in front of the requests."""
        return b"".join(line + b"\n" for line in self.head.split(b"\n", self.skip)[: self.skip])

    @abstractmethod
    def rows(self, part: TextPart, completions: bool = True) -> PartRows:
        """Read a part. completions: with those. Raises Problem at the first line that breaks the format."""


class NativeLines(Lines):
    """Native CSV."""

    def __init__(self, path: Path, head: bytes) -> None:
        header, skip = native.read_header(Source.member(path, head, keep_good=False))
        super().__init__(path, native.FORMAT, skip, head, None, tasks_known=True)
        self.at = {name: k for k, name in enumerate(header)}

    def rows(self, part: TextPart, completions: bool = True) -> PartRows:
        """See Lines."""
        table = _table(self.path, part, len(self.at))
        return PartRows(native.columns(table, self.at, completions), table.lines, table, self.at)


class ForeignLines(Lines):
    """Another format, which reads each part behind the lines in front of the first as if it were a file."""

    def __init__(self, path: Path, format: Format, head: bytes, device: str | None) -> None:
        assert format.headers
        super().__init__(path, format, format.headers(head), head, device, tasks_known=False)

    def rows(self, part: TextPart, completions: bool = True) -> PartRows:
        """See Lines. Requests of no length are left out, as when the file is read whole."""
        source = Shifted.member(self.path, self.header + part.data, keep_good=False)
        assert isinstance(source, Shifted)
        source.shift = part.lines - self.skip
        try:
            if not part.data.strip():
                raise NoRequestsError("")
            trace = with_flushes(self.format.read(source, ReadOptions(self.wanted, origin=self.origin)))
        except NoRequestsError:
            none = np.empty(0, np.int64)
            return PartRows(NativeColumns(none, none, none, none, none, none, none, None, None), none)
        names = ("time_ns", "task", "op", "flags", "sector", "sectors", "complete_ns")
        told: dict[str, Any] = {name: getattr(trace, name).astype(np.int64) for name in names}
        return PartRows(NativeColumns(**told, group=None, ioprio=None), np.zeros(len(trace.time_ns), np.int64))


def lines_of(path: Path, device: str | None = None) -> Lines:
    """How a file is read in parts. Raises Problem if it is empty, or its format cannot be.

    device: the one to read of a file that names devices.
    """
    head = next(texts(path, 0), TextPart(b"", 0)).data
    if not head.strip():
        raise Problem(f"{path}: empty file")
    format = line_format(head)
    if format is None:
        known = ", ".join(one.name for one in formats().values() if one.headers)
        raise Problem(f"{path}: not of a format that can be read from disk in pieces (native, {known})")
    if format is native.FORMAT:
        refuse_device(Source.member(path, head, keep_good=False), device)
        return NativeLines(path, head)
    return ForeignLines(path, format, head, device)


def line_format(head: bytes) -> Format | None:
    """The format of a file that begins so, if it can be read in parts."""
    found = next((one for one in formats().values() if one.sniff(head[:HEAD_BYTES])), None)
    return found if found is native.FORMAT or (found and found.headers) else None


def texts(path: Path, skip: int, stored: Callable[[bytes], object] = len) -> Iterator[TextPart]:
    """A file in whole lines, without the first `skip`; `stored` as for contents().

    Problem names the line at which a compressed stream ends too early.
    """
    rest, lines = b"", 0
    pieces: list[bytes] = []
    size = 0

    def part(data: bytes) -> TextPart:
        before = lines
        if lines < skip:
            kept = data.split(b"\n", skip - lines)
            data, before = kept[-1] if len(kept) > skip - lines else b"", skip
        return TextPart(data, before)

    try:
        for piece in (whole[at : at + TEXT_BYTES] for whole in contents(path, stored) for at in range(0, len(whole), TEXT_BYTES)):
            pieces.append(piece)
            size += len(piece)
            if size < TEXT_BYTES:
                continue
            text = rest + b"".join(pieces)
            pieces, size = [], 0
            end = text.rfind(b"\n") + 1
            whole, rest = text[:end], text[end:]
            if whole:
                yield part(whole)
                lines += whole.count(b"\n")
    except StreamError as e:
        lines += (rest + b"".join(pieces)).count(b"\n")
        raise Problem(f"{path}:{lines + 1}: {e}") from None
    if text := rest + b"".join(pieces):
        yield part(text)


def _table(path: Path, part: TextPart, width: int) -> FieldTable:
    """The fields of whole lines; lines are those of the file."""
    blank = not part.data.strip()
    source = Shifted.member(path, part.data, keep_good=False)
    assert isinstance(source, Shifted)
    source.shift = part.lines
    if blank:
        none = np.empty((0, width), np.int64)
        return FieldTable(source, np.empty(0, np.uint8), none, none, np.empty(0, np.int64))
    table = split(source, width, delimiter=",")
    source.shift = 0
    return replace(table, lines=table.lines + part.lines)


class Shifted(Source):
    """A part of a file: its lines count from another one on."""

    shift = 0

    def problem(self, cause: str, *, line: int | None = None, byte: int | None = None) -> Problem:
        """See Source."""
        return super().problem(cause, line=None if line is None else line + self.shift, byte=byte)


def at(rows: NativeColumns, which: Array | slice) -> NativeColumns:
    """Only some rows."""
    given: dict[str, Any] = {one.name: getattr(rows, one.name) for one in fields(rows)}
    chosen: dict[str, Any] = {name: None if column is None else column[which] for name, column in given.items()}
    return NativeColumns(**chosen)


def joined(first: NativeColumns, second: NativeColumns) -> NativeColumns:
    """Rows behind others."""
    pairs: dict[str, Any] = {one.name: (getattr(first, one.name), getattr(second, one.name)) for one in fields(first)}
    both: dict[str, Any] = {name: None if pair[0] is None else np.concatenate(pair) for name, pair in pairs.items()}
    return NativeColumns(**both)
