# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings that memory does not hold, read in pieces (lines.py): once for what must be known, and once for each run.

Requests may be out of order by HELD rows: so many are held back until later ones are there. Threads read ahead of whoever uses
the pieces.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from typing import TypeVar

import numpy as np

from headwaiter.base.errors import NoRequestsError, Problem
from headwaiter.engine.cgroups import Path as GroupPath
from headwaiter.engine.constants import Op
from headwaiter.engine.sim import Piece, Pieces, Task
from headwaiter.traces.fields import Array
from headwaiter.traces.formats.native import NativeColumns
from headwaiter.traces.lines import Lines, PartRows, at, joined, lines_of, texts
from headwaiter.traces.model import Trace
from headwaiter.traces.one_device import SeveralDevicesError, busiest, device_note
from headwaiter.traces.registry import load
from headwaiter.traces.source import Source

T = TypeVar("T")
HELD = 1 << 16
"""A request may stand so many rows behind its place in time."""
MARK = 1024
_AHEAD = 2
_WAIT_S = 0.2


@dataclass(frozen=True)
class PiecesIndex:
    """Facts of a trace that must be known before it is run. ios: rows of each task; end: the sector behind the last one."""

    lines: Lines
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
    names: dict[int, str]
    """Names of tasks by their numbers; empty: no names."""
    beginning: bytes
    """The first lines that have requests of the device."""
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Return where it is."""
        return self.lines.path

    def first(self) -> Trace:
        """The first requests: what a drive is chosen by."""
        lines = self.lines
        text = lines.header + self.beginning
        return load(lines.path, source=Source.member(lines.path, text, keep_good=True), device=lines.device)

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

        parts = ahead(texts(self.path, self.lines.skip))
        each = (self.lines.rows(part, completions=False) for part in parts)
        yield from in_order(self.path, ((timed(one.columns), one.lines) for one in each))


def index(path: Path, progress: Callable[[int], None] | None = None, device: str | None = None) -> PiecesIndex:
    """Read a trace once, and keep what must be known before a run. progress: with the number of rows that have been read.

    device: the one to read of a file that names several (default: the busiest; it takes one more reading to know that). Raises
    Problem with one line naming file, place and cause if the trace is not sound.
    """
    try:
        return _index(path, progress, device)
    except SeveralDevicesError:
        devices = _devices(path)
        chosen = busiest(devices)
        return replace(_index(path, progress, chosen), notes=(device_note(devices, chosen, "the busiest"),))


def _devices(path: Path) -> Counter[str]:
    """Return the number of requests of each device of a file, in the order of their first request."""
    lines = lines_of(path)
    found = lines.origin.devices = Counter()
    for part in ahead(texts(path, lines.skip)):
        lines.rows(part, completions=False)
    return found


def _index(path: Path, progress: Callable[[int], None] | None, device: str | None) -> PiecesIndex:
    lines = lines_of(path, device)
    found = _Found()
    digest = hashlib.sha256()

    def rows() -> Iterator[tuple[NativeColumns, Array]]:
        for part in ahead(texts(path, lines.skip, digest.update)):
            each = lines.rows(part, completions=False)
            if not found.rows:
                found.beginning = part.data
            found.meet(each)
            if progress:
                progress(found.rows)
            yield each.columns, each.lines

    for each in in_order(path, rows()):
        found.add(each)
    if not found.requests:
        raise NoRequestsError(f"{path}: contains no requests" if device is None else f"{path}: no device {device!r}")
    numbers = {group: number for number, group in enumerate(dict.fromkeys(found.group[i] for i in found.ios))}
    tasks = tuple(
        Task(i, found.names.get(i) or f"task {i}", numbers[found.group[i]], cgroup=found.cgroups.get(i, ())) for i in found.ios
    )
    return PiecesIndex(
        lines=lines,
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
        names=found.names,
        beginning=found.beginning,
    )


@dataclass
class _Found:
    """Facts of that part of a trace which has been read. ios: by task, in the order of their first rows in time."""

    names: dict[int, str] = field(default_factory=dict)
    group: dict[int, int] = field(default_factory=dict)
    cgroups: dict[int, GroupPath] = field(default_factory=dict)
    ios: dict[int, int] = field(default_factory=dict)
    beginning: bytes = b""
    rows: int = 0
    requests: int = 0
    first_ns: int = -1
    last_ns: int = 0
    end: int = 0
    end_line: int = 0
    marks_ns: list[Array] = field(default_factory=list)
    ordered: int = 0

    def meet(self, part: PartRows) -> None:
        """Rows as they stand in the file: what a task's first row says of it."""
        rows = part.columns
        if not len(rows.task):
            return
        ids, first = np.unique(rows.task, return_index=True)
        new = np.array([i not in self.group for i in ids.tolist()], bool)
        for i, row in zip(ids[new].tolist(), first[new].tolist(), strict=True):
            self.group[i] = i if rows.group is None else int(rows.group[row])
            self.names[i] = part.name(row)
        if new.any():
            self.cgroups |= part.cgroups(np.sort(first[new]))
        ends = rows.sector + rows.sectors
        last = int(np.argmax(ends))
        if ends[last] > self.end:
            self.end, self.end_line = int(ends[last]), int(part.lines[last])
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


def placed(path: Path, line: int) -> str:
    """A file and, if it is known, the line."""
    return f"{path}:{line}" if line else str(path)


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
        rows = new if held is None else joined(held, new)
        lines = np.concatenate([lines, new_lines])
        if (np.diff(rows.time_ns) <= 0).any():
            order = np.lexsort((rows.op == Op.FLUSH, rows.time_ns))
            rows, lines = at(rows, order), lines[order]
        if rows.time_ns[0] <= last:
            raise Problem(f"{placed(path, int(lines[0]))}: time goes back by more than {HELD} rows: sort the file by time")
        cut = int(np.searchsorted(rows.time_ns, rows.time_ns[max(0, len(lines) - HELD)]))
        if cut:
            last = int(rows.time_ns[cut - 1])
            yield at(rows, slice(0, cut))
        held, lines = at(rows, slice(cut, None)), lines[cut:]
    if held is not None and len(lines):
        yield held


def ahead(each: Iterator[T]) -> Iterator[T]:
    """Yield the items, made by a thread that is up to some items ahead. What goes wrong there is raised here."""
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
