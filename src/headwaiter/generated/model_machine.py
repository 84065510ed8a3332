# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A machine on which programs are played, to find out what they ask of the disk and what each request waits for.

A program is a Python generator that reads, writes, thinks and starts other programs; it yields where another process may go
first. The machine has a clock of its own, on which a read takes about as long as on a disk that serves one at a time: it decides
who finds what in the page cache, and which of two things that a process waited for was the later one. What comes out is a forest:
a request follows another one's completion after a think time, whatever disk and scheduler it then meets.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from typing import TypeAlias

import numpy as np

from headwaiter.engine.constants import META, SYNC, Op
from headwaiter.engine.sim import Forest, Task
from headwaiter.generated.files import PAGE_BYTES, PAGE_SECTORS, File

US, MS, S = 1_000, 1_000_000, 1_000_000_000
NEAR_NS, FAR_NS, PAGE_NS = 500 * US, 8 * MS, 70 * US
"""Time of a request that goes on where the last one ended, of any other one, and of each page, by the machine's own clock."""
WAKE_NS, COPY_NS = 60 * US, 2 * US
"""Until a process goes on whose request is done, as the paper's static scheduler measures it on KVA (T_S / A_S); and for a page
that is copied from or to the page cache."""
FIRST_PID = 100
WRITE_PAGES = 128
"""Pages in one write of the flusher: 512 KiB."""
WRITES_AT_ONCE = 64
LOOK_NS, AGE_NS = 5 * S, 30 * S
"""The flusher looks so often for pages that have been dirty for so long, as Linux's."""

Program: TypeAlias = "Generator[Process | None, None, None]"
"""Yields the process that it waits for to end, or None."""


class ReadaheadWindow:
    """Read-ahead of an open file, in pages: the window asked for last, of which `ahead` at its end were not wanted yet; the page
    that asks for the next window when it is reached; the page that was read last."""

    def __init__(self) -> None:
        self.start = 0
        self.size = 0
        self.ahead = 0
        self.marker = -1
        self.last = -1

    def extends(self, page: int, wanted: int, most: int, marked: bool) -> bool:
        """Go on to the window for a page that is not there, or that is marked, as Linux 2.6.23's ondemand_readahead() does.

        False: the read goes by itself, and nothing is read ahead.
        """
        if page and page in (self.start + self.size - self.ahead, self.start + self.size):
            self.start += self.size
            self.size = self.ahead = min(self.size * (4 if self.size < most // 16 else 2), most)
        elif marked or page - self.last in (0, 1) or wanted > most:
            self.start, self.size = page, _first_window(wanted, most)
            self.ahead = self.size - wanted if self.size > wanted else self.size
        else:
            return False
        self.marker = self.start + self.size - self.ahead
        return True


class Process:
    """A process that asks. `row` is the last request that it waited for, done at `since_ns` of the machine's clock."""

    def __init__(self, machine: ModelMachine, task: int, parent: Process | None) -> None:
        self.machine = machine
        self.task = task
        self.now_ns: int = parent.now_ns if parent else 0
        self.since_ns: int = parent.since_ns if parent else 0
        self.row: int = parent.row if parent else -1
        self.ended = False
        self.waiting: list[Process] = []
        self.windows: dict[File, ReadaheadWindow] = {}

    def think(self, ns: float) -> None:
        """Use the processor for so long."""
        self.now_ns += round(ns)

    def sleep(self, ns: float) -> None:
        """Wait for so long for a clock or a person: no processor shortens it."""
        self.now_ns += round(ns)

    def await_row(self, row: int) -> None:
        """Wait for a request; nothing changes if that is done."""
        done = self.machine.done_ns[row]
        if done >= self.now_ns:
            self.row, self.since_ns, self.now_ns = row, done, done + WAKE_NS

    def follow(self, other: Process) -> None:
        """Go on when a process that has ended is through."""
        if other.now_ns >= self.now_ns:
            self.now_ns, self.row, self.since_ns = other.now_ns, other.row, other.since_ns

    def start(self, name: str, program: Callable[[Process], Program], *, same: bool = False) -> Process:
        """Start a process beside this one; with `same` it belongs to the same thread of control."""
        return self.machine.start(name, program, self, same=same)

    def run(self, name: str, program: Callable[[Process], Program]) -> Program:
        """Start a process and wait until it has ended."""
        yield from self.wait(self.start(name, program, same=True))

    def wait(self, other: Process) -> Program:
        """Wait until another process has ended."""
        if not other.ended:
            yield other
        self.follow(other)

    def read(self, file: File, page: int, count: int = 1) -> Program:
        """read(): pages one after another, through the page cache, with read-ahead."""
        window = self.windows.setdefault(file, ReadaheadWindow())
        count = min(count, file.pages - page)
        for p in range(page, page + count):
            row = file.cached.get(p)
            if row is None:
                yield None
                row = file.cached.get(p)  # another process may have come first
            if row is None:
                self._read_ahead(file, window, p, page + count - p)
            if p == window.marker:
                window.marker = -1
                self._read_ahead(file, window, p, page + count - p, marked=True)
            if (row := file.cached[p]) >= 0:
                self.await_row(row)
            window.last = p
            self.now_ns += COPY_NS

    def read_all(self, file: File) -> Program:
        """Read a file from front to back."""
        yield from self.read(file, 0, file.pages)

    def fault(self, file: File, page: int, around: int = 32) -> Program:
        """Touch a page of a mapped file: what is not there of the pages around it is read, as Linux does."""
        if page not in file.cached:
            yield None
        if page not in file.cached:
            around = min(around, self.machine.readahead_pages or 1)
            first = max(0, page - around // 2)
            wanted = [p for p in range(first, min(first + around, file.pages)) if p not in file.cached]
            for p in _runs(wanted):
                self.machine.ask(self, file, p[0], p[1])
        row = file.cached[page]
        if row >= 0:
            self.await_row(row)

    def look_up(self, blocks: tuple[tuple[File, int], ...]) -> Program:
        """Read metadata: each block is needed to know the next."""
        for file, page in blocks:
            if page not in file.cached:
                yield None
            if page not in file.cached:
                self.machine.ask(self, file, page, 1, META)
            row = file.cached[page]
            if row >= 0:
                self.await_row(row)

    def write(self, file: File, page: int, count: int = 1) -> Program:
        """Dirty pages. Who dirties more than may be dirty waits until what was written back before is on the disk, and then
        writes them back itself, as in Linux up to 2.6.37.
        """
        for p in range(page, min(page + count, file.pages)):
            file.cached[p] = -1
            self.machine.dirty.setdefault((file, p), self.now_ns)
            self.now_ns += COPY_NS
            if len(self.machine.dirty) > self.machine.dirty_pages:
                yield None
                if self.machine.last_write >= 0:
                    self.await_row(self.machine.last_write)
                self.machine.write_back(self, self.now_ns, self.task)

    def forget(self, file: File) -> None:
        """Nothing of a file is in memory any more, as where it is larger than that."""
        file.cached.clear()
        self.windows.pop(file, None)

    def sync(self) -> Program:
        """Wait until all that is dirty is on the disk."""
        yield None
        self.machine.write_back(self, self.now_ns, self.task)
        if self.machine.last_write >= 0:
            self.await_row(self.machine.last_write)

    def write_all(self, file: File) -> Program:
        """Write a file from front to back."""
        yield from self.write(file, 0, file.pages)

    def _read_ahead(self, file: File, window: ReadaheadWindow, page: int, wanted: int, *, marked: bool = False) -> None:
        """Ask for a page that is not there, or for what follows a page that is marked: a window where the file is read in
        sequence, else no more than is wanted."""
        most = self.machine.readahead_pages
        first, count = page, min(wanted, most or 1)
        if most and window.extends(page, wanted, most, marked):
            first, count = window.start, window.size
        for start, pages in _runs([p for p in range(first, min(first + count, file.pages)) if p not in file.cached]):
            self.machine.ask(self, file, start, pages)


class ModelMachine:
    """The disk's clock, the page cache's dirty pages, processes, and the rows that come of them.

    readahead_kib 0: no read-ahead, each page is asked for by itself.
    """

    def __init__(
        self, rng: np.random.Generator, readahead_kib: int = 128, dirty_mib: int = 100, process: type[Process] = Process
    ) -> None:
        self.rng = rng
        self._process = process
        self.readahead_pages = readahead_kib * 1024 // PAGE_BYTES
        self.dirty_pages = dirty_mib * (1 << 20) // PAGE_BYTES
        self.dirty: dict[tuple[File, int], int] = {}
        self.done_ns: list[int] = []
        self.last_write = -1
        self._rows: list[tuple[int, int, int, int, int, int, int, int]] = []
        self._tasks: list[Task] = []
        self._groups = 0
        self._flusher = -1
        self._head = 0
        self._free_ns = 0
        self._order = 0
        self._ready: list[tuple[int, int, Process, Program]] = []
        self._programs: dict[Process, Program] = {}
        self._look_ns = LOOK_NS

    def start(
        self, name: str, program: Callable[[Process], Program], parent: Process | None = None, *, same: bool = False
    ) -> Process:
        """A new process. It begins when its parent has come so far, or at 0."""
        process = self._process(self, self._task(name, self._tasks[parent.task].group if parent and same else None), parent)
        self._programs[process] = program(process)
        self._push(process)
        return process

    def play(self) -> Forest:
        """Run all processes to their ends, write back what is dirty, and hand over what was asked for."""
        last: Process | None = None
        while self._ready:
            _, _, process, program = heapq.heappop(self._ready)
            if process.now_ns >= self._look_ns:
                self._look_ns = process.now_ns + LOOK_NS
                self.write_back(process, process.now_ns - AGE_NS)
            try:
                other = next(program)
            except StopIteration:
                process.ended = True
                del self._programs[process]
                if last is None or process.now_ns >= last.now_ns:
                    last = process
                for one in process.waiting:
                    self._push(one)
                continue
            if other is None or other.ended:
                self._push(process)
            else:
                other.waiting.append(process)
        assert last is not None and not self._programs, "a process waits for itself"
        self.write_back(last, last.now_ns)
        return self._forest()

    def ask(self, process: Process, file: File, page: int, count: int, flags: int = 0) -> list[int]:
        """Reads of pages that become cached: a row for each extent that they touch."""
        out = []
        count = min(count, file.pages - page)
        for sector, pages in file.pieces(page, count):
            start = max(process.now_ns, self._free_ns)
            self._free_ns = start + (NEAR_NS if sector == self._head else FAR_NS) + pages * PAGE_NS
            self._head = sector + pages * PAGE_SECTORS
            row = self._row(process, process.task, Op.READ, SYNC | flags, (sector, pages), self._free_ns)
            file.cached.update((p, row) for p in range(page, page + pages))
            page += pages
            out.append(row)
        return out

    def write_back(self, process: Process, before_ns: int, task: int = -1) -> None:
        """A task, the flusher by default, writes what has been dirty since before then, in order of place; it begins where
        `process` is now.
        """
        old = [key for key, since in self.dirty.items() if since <= before_ns]
        if not old:
            return
        if task < 0 and self._flusher < 0:
            self._flusher = self._task("flusher", None)
        for key in old:
            del self.dirty[key]
        sectors = sorted(file.sector(page) for file, page in old)
        rows: list[int] = []
        done = process.now_ns
        for first, pages in _writes(sectors):
            done += NEAR_NS + pages * PAGE_NS
            row = self._row(process, self._flusher if task < 0 else task, Op.WRITE, 0, (first, pages), done)
            if len(rows) >= WRITES_AT_ONCE:
                time, _, _, *rest = self._rows[row]
                self._rows[row] = (time, rows[-WRITES_AT_ONCE], 0, *rest)  # type: ignore[assignment]
            rows.append(row)
        self.last_write = rows[-1]

    def _task(self, name: str, group: int | None) -> int:
        if group is None:
            group, self._groups = self._groups, self._groups + 1
        self._tasks.append(Task(FIRST_PID + len(self._tasks), name, group))
        return len(self._tasks) - 1

    def _push(self, process: Process) -> None:
        self._order += 1
        heapq.heappush(self._ready, (process.now_ns, self._order, process, self._programs[process]))

    def _row(self, process: Process, task: int, op: int, flags: int, where: tuple[int, int], done_ns: int) -> int:
        delay = process.now_ns - process.since_ns
        sector, pages = where
        self._rows.append((process.now_ns, process.row, delay, task, op, flags, sector, pages * PAGE_SECTORS))
        self.done_ns.append(done_ns)
        return len(self._rows) - 1

    def _forest(self) -> Forest:
        columns = np.array(self._rows, np.int64).reshape(-1, 8).T
        time, parent, delay, task, op, flags, sector, sectors = columns
        return Forest(
            tasks=tuple(self._tasks),
            time_ns=np.ascontiguousarray(time),
            parent=np.ascontiguousarray(parent),
            delay_ns=np.where(parent < 0, 0, delay),
            task=task.astype(np.uint32),
            op=op.astype(np.uint8),
            flags=flags.astype(np.uint8),
            sector=sector.astype(np.uint64),
            sectors=sectors.astype(np.uint32),
            ioprio=np.zeros(len(task), np.uint16),
        )


def _first_window(wanted: int, most: int) -> int:
    """Pages that Linux 2.6.23 and later read first, of a file that is read in sequence."""
    size = 1 << (wanted - 1).bit_length()
    if size <= most // 32:
        return size * 4
    if size <= most // 4:
        return size * 2
    return most


def _runs(pages: list[int]) -> list[tuple[int, int]]:
    """Ascending numbers as runs: (first, how many)."""
    out: list[tuple[int, int]] = []
    for p in pages:
        if out and p == out[-1][0] + out[-1][1]:
            out[-1] = (out[-1][0], out[-1][1] + 1)
        else:
            out.append((p, 1))
    return out


def _writes(sectors: list[int]) -> list[tuple[int, int]]:
    """Pages, by their ascending sectors, as writes of up to WRITE_PAGES: (first sector, pages)."""
    out: list[tuple[int, int]] = []
    for sector in sectors:
        if out and out[-1][1] < WRITE_PAGES and sector == out[-1][0] + out[-1][1] * PAGE_SECTORS:
            out[-1] = (out[-1][0], out[-1][1] + 1)
        else:
            out.append((sector, 1))
    return out
