# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Native CSV that memory does not hold, read in pieces: once for what must be known of the whole, and once for each run.

Requests may be out of order by HELD rows: so many are held back until later ones are there. Threads read ahead of whoever uses
the pieces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

import numpy as np

from headwaiter.base.errors import NoRequestsError, Problem, plain
from headwaiter.base.reading import StreamError, contents
from headwaiter.engine.cgroups import Path as GroupPath
from headwaiter.engine.constants import Op
from headwaiter.engine.sim import Piece, Pieces, Task
from headwaiter.traces.fields import Array, FieldTable, split
from headwaiter.traces.formats.native import NativeColumns, cgroups_of, columns, read_header, sniff
from headwaiter.traces.source import Source

T = TypeVar("T")
TEXT_BYTES = 4 << 20
"""Of the text that is converted at once."""
HELD = 1 << 16
"""A request may stand so many rows behind its place in time."""
MARK = 1024
_AHEAD = 2
_WAIT_S = 0.2


@dataclass(frozen=True)
class TextPart:
    """Whole lines of a file: the text, and how many lines are in front of it."""

    data: bytes
    lines: int


@dataclass(frozen=True)
class PiecesIndex:
    """Facts of a trace that must be known before it is run. ios: rows of each task; end: the sector behind the last one."""

    path: Path
    header: tuple[str, ...]
    header_lines: int
    head: bytes
    """The first lines, the header included: what a drive is chosen by."""
    sha256: str
    tasks: tuple[Task, ...]
    ios: Array
    rows: int
    requests: int
    first_ns: int
    last_ns: int
    end: int
    end_line: int
    marks_ns: Array
    """The time of every MARK-th row."""

    @property
    def header_text(self) -> bytes:
        """The line that names the columns."""
        return ",".join(self.header).encode() + b"\n"

    @property
    def ids(self) -> Array:
        """The numbers that the file gives to tasks."""
        return np.array([task.id for task in self.tasks], np.int64)

    def load(self, speed: float = 1.0) -> Pieces:
        """The trace as a run takes it: open, the first row at 0, times divided by `speed`."""
        ids = self.ids
        order = np.argsort(ids)

        def read() -> Iterator[Piece]:
            for rows in ahead(self._sorted(speed)):
                yield Piece(
                    time_ns=rows.time_ns,
                    task=order[np.searchsorted(ids[order], rows.task)].astype(np.uint32),
                    op=rows.op.astype(np.uint8),
                    flags=rows.flags.astype(np.uint8),
                    sector=rows.sector.astype(np.uint64),
                    sectors=rows.sectors.astype(np.uint32),
                    ioprio=(np.zeros(len(rows.time_ns)) if rows.ioprio is None else rows.ioprio).astype(np.uint16),
                )

        return Pieces(self.tasks, self.ios.astype(np.uint64), read)

    def _sorted(self, speed: float) -> Iterator[NativeColumns]:
        def timed(rows: NativeColumns) -> NativeColumns:
            time = rows.time_ns - self.first_ns
            return replace(rows, time_ns=time if speed == 1 else (time / speed).astype(np.int64))

        parts = ahead(texts(self.path, self.header_lines))
        tables = (table_of(self.path, part, len(self.header)) for part in parts)
        at = {name: k for k, name in enumerate(self.header)}
        yield from in_order(self.path, ((timed(columns(table, at, completions=False)), table.lines) for table in tables))


def index(path: Path, progress: Callable[[int], None] | None = None) -> PiecesIndex:
    """Read a trace once, and keep what must be known before a run. progress: with the number of rows that have been read.

    Raises Problem with one line naming file, place and cause if the trace is not sound.
    """
    header, header_lines, head = _header(path)
    at = {name: k for k, name in enumerate(header)}
    found = _Found()
    digest = hashlib.sha256()
    parts = ahead(texts(path, header_lines, digest.update))
    tables = (table_of(path, part, len(header)) for part in parts)

    def rows() -> Iterator[tuple[NativeColumns, Array]]:
        for table in tables:
            each = columns(table, at, completions=False)
            found.meet(table, at, each)
            if progress:
                progress(found.rows)
            yield each, table.lines

    for each in in_order(path, rows()):
        found.add(each)
    if not found.requests:
        raise NoRequestsError(f"{path}: contains no requests")
    numbers = {group: number for number, group in enumerate(dict.fromkeys(found.group[i] for i in found.ios))}
    tasks = tuple(
        Task(i, found.names.get(i) or f"task {i}", numbers[found.group[i]], cgroup=found.cgroups.get(i, ())) for i in found.ios
    )
    return PiecesIndex(
        path=path,
        header=tuple(header),
        header_lines=header_lines,
        head=head,
        sha256=digest.hexdigest(),
        tasks=tasks,
        ios=np.array(list(found.ios.values()), np.int64),
        rows=found.rows,
        requests=found.requests,
        first_ns=found.first_ns,
        last_ns=found.last_ns,
        end=found.end,
        end_line=found.end_line,
        marks_ns=np.concatenate(found.marks_ns),
    )


@dataclass
class _Found:
    """Facts of that part of a trace which has been read. ios: by task, in the order of their first rows in time."""

    names: dict[int, str] = field(default_factory=dict)
    group: dict[int, int] = field(default_factory=dict)
    cgroups: dict[int, GroupPath] = field(default_factory=dict)
    ios: dict[int, int] = field(default_factory=dict)
    rows: int = 0
    requests: int = 0
    first_ns: int = -1
    last_ns: int = 0
    end: int = 0
    end_line: int = 0
    marks_ns: list[Array] = field(default_factory=list)
    ordered: int = 0

    def meet(self, table: FieldTable, at: dict[str, int], rows: NativeColumns) -> None:
        """Rows as they stand in the file: what a task's first row says of it."""
        if not len(rows.task):
            return
        ids, first = np.unique(rows.task, return_index=True)
        new = np.array([i not in self.group for i in ids.tolist()], bool)
        for i, row in zip(ids[new].tolist(), first[new].tolist(), strict=True):
            self.group[i] = i if rows.group is None else int(rows.group[row])
            self.names[i] = plain(table.text(row, at["name"])).strip() if "name" in at else ""
        if "cgroup" in at and new.any():
            chosen = np.sort(first[new])
            self.cgroups |= cgroups_of(table.rows(chosen), at["cgroup"], rows.task[chosen])
        ends = rows.sector + rows.sectors
        last = int(np.argmax(ends))
        if ends[last] > self.end:
            self.end, self.end_line = int(ends[last]), int(table.lines[last])
        self.rows += len(rows.task)
        self.requests += int((rows.op != Op.FLUSH).sum())

    def add(self, rows: NativeColumns) -> None:
        """Rows in order of time."""
        ids, first, count = np.unique(rows.task, return_index=True, return_counts=True)
        for k in np.argsort(first).tolist():
            self.ios[int(ids[k])] = self.ios.get(int(ids[k]), 0) + int(count[k])
        if self.first_ns < 0:
            self.first_ns = int(rows.time_ns[0])
        self.last_ns = int(rows.time_ns[-1])
        self.marks_ns.append(rows.time_ns[-self.ordered % MARK :: MARK].copy())
        self.ordered += len(rows.time_ns)


def _header(path: Path) -> tuple[list[str], int, bytes]:
    """(names of the columns, lines up to and including the header, the first lines)."""
    part = next(texts(path, 0), TextPart(b"", 0))
    if not part.data.strip():
        raise Problem(f"{path}: empty file")
    if not sniff(part.data[: 1 << 16]):
        raise Problem(f"{path}: only native CSV can be replayed from disk (headwaiter import writes it)")
    header, lines = read_header(Source.member(path, part.data, keep_good=False))
    return header, lines, part.data


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


def table_of(path: Path, part: TextPart, width: int) -> FieldTable:
    """The fields of whole lines; lines are those of the file."""
    blank = not part.data.strip()
    source = _Shifted.member(path, part.data, keep_good=False)
    assert isinstance(source, _Shifted)
    source.shift = part.lines
    if blank:
        none = np.empty((0, width), np.int64)
        return FieldTable(source, np.empty(0, np.uint8), none, none, np.empty(0, np.int64))
    table = split(source, width, delimiter=",")
    source.shift = 0
    return replace(table, lines=table.lines + part.lines)


class _Shifted(Source):
    """A part of a file: its lines count from another one on."""

    shift = 0

    def problem(self, cause: str, *, line: int | None = None, byte: int | None = None) -> Problem:
        """See Source."""
        return super().problem(cause, line=None if line is None else line + self.shift, byte=byte)


def in_order(path: Path, each: Iterator[tuple[NativeColumns, Array]]) -> Iterator[NativeColumns]:
    """Rows by time, in pieces of which each is later than the one before; flushes behind requests of the same time.

    each: rows as they stand in the file, with their lines. Problem where a row stands too far behind its place.
    """
    held: NativeColumns | None = None
    lines = np.empty(0, np.int64)
    last = -1
    for new, new_lines in each:
        if not len(new_lines):
            continue
        rows = new if held is None else _joined(held, new)
        lines = np.concatenate([lines, new_lines])
        if (np.diff(rows.time_ns) <= 0).any():
            order = np.lexsort((rows.op == Op.FLUSH, rows.time_ns))
            rows, lines = _at(rows, order), lines[order]
        if rows.time_ns[0] <= last:
            raise Problem(f"{path}:{lines[0]}: time_s goes back by more than {HELD} rows: sort the file by time")
        cut = int(np.searchsorted(rows.time_ns, rows.time_ns[max(0, len(lines) - HELD)]))
        if cut:
            last = int(rows.time_ns[cut - 1])
            yield _at(rows, slice(0, cut))
        held, lines = _at(rows, slice(cut, None)), lines[cut:]
    if held is not None and len(lines):
        yield held


def _at(rows: NativeColumns, which: Array | slice) -> NativeColumns:
    given: dict[str, Any] = {one.name: getattr(rows, one.name) for one in fields(rows)}
    chosen: dict[str, Any] = {name: None if column is None else column[which] for name, column in given.items()}
    return NativeColumns(**chosen)


def _joined(first: NativeColumns, second: NativeColumns) -> NativeColumns:
    pairs: dict[str, Any] = {one.name: (getattr(first, one.name), getattr(second, one.name)) for one in fields(first)}
    joined: dict[str, Any] = {name: None if pair[0] is None else np.concatenate(pair) for name, pair in pairs.items()}
    return NativeColumns(**joined)


def ahead(each: Iterator[T]) -> Iterator[T]:
    """The same, made by a thread that is up to some items ahead. What goes wrong there is raised here."""
    items: Queue[tuple[bool, T | BaseException | None]] = Queue(maxsize=_AHEAD)
    unwanted = Event()

    def put(more: bool, item: T | BaseException | None) -> None:
        while not unwanted.is_set():
            try:
                items.put((more, item), timeout=_WAIT_S)
                return
            except Full:
                pass

    def make() -> None:
        try:
            for item in each:
                put(True, item)
                if unwanted.is_set():
                    return
            put(False, None)
        except BaseException as e:
            put(False, e)

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            more, item = items.get()
            if isinstance(item, BaseException):
                raise item
            if not more:
                return
            yield item  # type: ignore[misc]
    finally:
        unwanted.set()
        thread.join()
