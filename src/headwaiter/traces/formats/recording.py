# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Archives of `headwaiter record` (headwaiter/archives.py): the kernel's own pages, or what another recorder wrote."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headwaiter.archives import BLKTRACE, BPFTRACE, TRACEFS
from headwaiter.engine.constants import Op
from headwaiter.errors import NoRequestsError, Problem, shown
from headwaiter.traces import recording
from headwaiter.traces.blkevents import make_block_trace
from headwaiter.traces.events import Events, Letters, Processes, make_flags, parse_rwbs, told_of
from headwaiter.traces.formats import blktrace, ftrace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Array, Trace
from headwaiter.traces.recording import Gap, Recording
from headwaiter.traces.registry import Format, Options
from headwaiter.traces.ring import DamageError, Walked, walk
from headwaiter.traces.ring import Format as EventFormat
from headwaiter.traces.source import Source

_PAGES = re.compile(r"cpu(\d{1,4})/(\d{1,9})")
_FORMAT = re.compile(r"events/\w+/\w+")
_LETTERS = {
    "block_bio_queue": "Q",
    "block_split": "X",
    "block_bio_remap": "A",
    "block_rq_insert": "I",
    "block_rq_issue": "D",
    "block_rq_complete": "C",
}
_AUX = {"X": "new_sector", "A": "old_sector"}
_SHOWN = 4
_NAMED = "QXA"
"""These happen in the name of who asks."""


def sniff(head: bytes) -> bool:
    """Whether this is an archive's first file."""
    return head.startswith(recording.MAGIC)


def read(source: Source, options: Options) -> Trace:
    """Read the recording that a headwaiter.json begins. Raises Problem, naming file and byte, at anything that is damaged."""
    found = recording.read(source)
    told = _told(found)
    if found.recorder != TRACEFS:
        return _other(source, options, found, told)
    formats = {f.number: f for f in _formats(source)}
    parts = [_Part(*one, formats) for one in _pages(source)]
    starts = [int(part.walked.time_ns.min()) for part in parts if len(part.walked.time_ns)]
    if not starts:
        raise NoRequestsError(f"{source.path}: nothing was recorded")
    start = min(starts)
    if max(int(part.walked.time_ns.max()) for part in parts if len(part.walked.time_ns)) - start > MAX_TIME_NS:
        raise source.problem("times differ by more than 73 years")
    processes = Processes()
    columns: dict[str, list[Array]] = defaultdict(list)
    for part in parts:
        part.follow_processes(start, processes)
        for name, letter in _LETTERS.items():
            for key, column in part.moves(name, letter, start, processes).items():
                columns[key].append(column)
    joined = {key: np.concatenate(values) for key, values in columns.items()}
    if not joined:
        raise source.problem("no format of an event of the block layer")
    devices, joined["device"] = np.unique(joined["device"], return_inverse=True)
    numbers = [f"{d >> 20},{d & 0xFFFFF}" for d in devices.tolist()]
    order = np.argsort(joined["time_ns"], kind="stable")
    gaps = [(part.cpu, count) for part in parts for _, count in part.walked.lost]
    if gaps and not found.lost:
        told.append(f"events were lost before {len(gaps)} pages of the recording")
    trace = make_block_trace(
        source,
        FORMAT.name,
        Events(**{key: column[order] for key, column in joined.items()}),
        device_names=_names(numbers, found),
        processes=processes,
        options=_named(options, found),
        notes=told,
    )
    return replace(trace, source=str(source.path.parent), processors=found.processors)


def _told(found: Recording) -> list[str]:
    """What the user must know of how it was recorded."""
    told = []
    if found.lost:
        gaps = [f"{gap.events} on CPU {gap.cpu} {_span(gap, found)}" for gap in found.gaps[:_SHOWN]]
        more = [f"{len(found.gaps) - _SHOWN} more gaps"] if len(found.gaps) > _SHOWN else []
        told.append(f"{found.lost} events were lost while recording: {', '.join(gaps + more)}")
    if not found.reason:
        told.append("the recorder was killed: the recording has no end, and losses are not known")
    elif found.reason != "time":
        told.append(f"the recording ended early: {found.reason}")
    return told


def _span(gap: Gap, found: Recording) -> str:
    return f"within {(gap.from_ns - found.began_ns) / 1e9:.1f}-{(gap.to_ns - found.began_ns) / 1e9:.1f} s"


def _names(numbers: list[str], found: Recording) -> list[str]:
    known = {disk.number: disk.name for disk in found.disks}
    named = [known.get(number, number) for number in numbers]
    return named if len(set(named)) == len(named) else numbers


def _named(options: Options, found: Recording) -> Options:
    """With the name of a disk where its number was asked for."""
    wanted = (options.device or "").replace(":", ",")
    name = next((disk.name for disk in found.disks if disk.number == wanted), options.device)
    return Options(name, options.group_gap_ns, options.columns)


def _other(source: Source, options: Options, found: Recording, told: list[str]) -> Trace:
    """Of another recorder: its own files, in its own format; disks by number, as it names them."""
    readers: Mapping[str, Format] = {BLKTRACE: blktrace.FORMAT, BPFTRACE: ftrace.FORMAT}
    chosen = readers[found.recorder]
    first = next((m for m in source.members.values() if m is not source and m.data and chosen.sniff(m.head)), None)
    if first is None:
        raise NoRequestsError(f"{source.path}: nothing was recorded")
    number = next((disk.number for disk in found.disks if disk.name == options.device), options.device)
    trace = chosen.read(first, Options(number, options.group_gap_ns, options.columns))
    return replace(
        trace, source=str(source.path.parent), format=FORMAT.name, notes=(*told, *trace.notes), processors=found.processors
    )


def _formats(source: Source) -> list[EventFormat]:
    found = []
    for member in source.members.values():
        if _FORMAT.fullmatch(_inner(source, member)):
            try:
                found.append(EventFormat.parse(member.data.decode("utf-8", "replace")))
            except Problem:
                raise member.problem("an event's format has no name or ID") from None
    if not found:
        raise source.problem("no formats of events")
    return found


def _inner(source: Source, member: Source) -> str:
    folder = source.path.parent
    return member.path.relative_to(folder).as_posix() if member.path.is_relative_to(folder) else ""


def _pages(source: Source) -> list[tuple[int, Source]]:
    """The files of pages, with their CPUs, in order."""
    found = [(m, member) for member in source.members.values() if (m := _PAGES.fullmatch(_inner(source, member)))]
    return [(int(m[1]), member) for m, member in sorted(found, key=lambda one: (int(one[0][1]), int(one[0][2])))]


class _Part:
    """The events of one file of pages."""

    def __init__(self, cpu: int, source: Source, formats: Mapping[int, EventFormat]) -> None:
        self.cpu, self.source, self.formats = cpu, source, {f.name: f for f in formats.values()}
        self.walked: Walked = self._sound(lambda: walk(source.data, None))

    def _sound(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except DamageError as e:
            raise self.source.problem(e.cause, byte=e.byte) from None

    def column(self, rows: Array, format: EventFormat, name: str) -> Array:
        """As Walked.column(); Problem if the format has no such field."""
        if name not in format.fields:
            raise self.source.problem(f"the format of {format.name} has no {name}")
        return self.walked.column(rows, format, name)

    def numbers(self, rows: Array, format: EventFormat, name: str) -> Array:
        """The same of a field that is a number, as int64 or uint64."""
        found = self.column(rows, format, name)
        if found.ndim != 1:
            raise self.source.problem(f"{format.name}: {name} is not a number")
        return found

    def texts(self, rows: Array, format: EventFormat, name: str) -> Array:
        """The same of a field that is text, shape (n, size)."""
        found = self.column(rows, format, name)
        if found.ndim != 2:
            raise self.source.problem(f"{format.name}: {name} is not text")
        return found

    def follow_processes(self, start: int, processes: Processes) -> None:
        """Forks and exits."""
        if fork := self.formats.get("sched_process_fork"):
            rows = self._sound(lambda: self.walked.rows(fork))
            parents, children = (self.numbers(rows, fork, name).tolist() for name in ("parent_pid", "child_pid"))
            processes.parents |= dict(zip(children, parents, strict=True))
        if exit_ := self.formats.get("sched_process_exit"):
            rows = self._sound(lambda: self.walked.rows(exit_))
            times = (self.walked.time_ns[rows].astype(np.int64) - start).tolist()
            processes.exits_ns |= dict(zip(self.numbers(rows, exit_, "pid").tolist(), times, strict=True))

    def moves(self, name: str, letter: str, start: int, processes: Processes) -> dict[str, Array]:
        """The columns of Events for one kind of event, with device numbers for its device; none without its format."""
        format = self.formats.get(name)
        if not format:
            return {}
        rows = self._sound(lambda: self.walked.rows(format))
        sector = self.numbers(rows, format, "sector").astype(np.uint64)
        # A split tells where it cuts, and not how much.
        sectors = np.ones(len(rows), np.int64) if letter == "X" else self.numbers(rows, format, "nr_sector").astype(np.int64)
        aux = self.numbers(rows, format, _AUX[letter]).astype(np.uint64) if letter in _AUX else np.zeros(len(rows), np.uint64)
        data = (sector <= MAX_SECTOR) & (sectors > 0) & (aux <= MAX_SECTOR)
        op, flags, flush = self._operations(self.texts(rows, format, "rwbs"), data, name)
        keep, sector = told_of(sector, sectors, op)
        keep &= aux <= MAX_SECTOR
        rows = rows[keep]
        pid = self.numbers(rows, format, "common_pid").astype(np.int64) & 0xFFFFFFFF
        if letter in _NAMED and "comm" in format.fields:
            self._names(pid, self.texts(rows, format, "comm"), processes)
        return {
            "time_ns": self.walked.time_ns[rows].astype(np.int64) - start,
            "action": np.full(len(rows), ord(letter), np.uint8),
            "op": op[keep],
            "flags": flags[keep],
            "flush": flush[keep],
            "sector": sector[keep],
            "sectors": sectors[keep],
            "pid": pid,
            "device": self.numbers(rows, format, "dev").astype(np.int64),
            "aux": aux[keep],
        }

    def _operations(self, rwbs: Array, data: Array, name: str) -> tuple[Array, Array, Array]:
        """(op, flags, flush) of the kernel's letters, which end at the first NUL: behind it are what the buffer held before.

        Problem if those of an event with data are not known.
        """
        kinds, which = np.unique(rwbs, axis=0, return_inverse=True) if len(rwbs) else (rwbs, np.empty(0, np.int64))
        texts = [bytes(kind).split(b"\0")[0].decode("latin-1") for kind in kinds]
        parsed = [parse_rwbs(text) for text in texts]
        which = which.reshape(-1)
        if unknown := [k for k in np.unique(which[data]).tolist() if parsed[k] is None]:
            raise self.source.problem(f"{name}: unknown operation '{shown(texts[unknown[0]])}'")
        none = Letters(Op.OTHER, False, False, 0)
        table = np.array([one or none for one in parsed], np.int64).reshape(-1, 4)[which]
        op = table[:, 0].astype(np.uint8)
        return op, make_flags(op, table[:, 1] != 0, table[:, 2] != 0), table[:, 3].astype(np.uint8)

    def _names(self, pid: Array, comm: Array, processes: Processes) -> None:
        for number, row in zip(*(one.tolist() for one in np.unique(pid, return_index=True)), strict=True):
            if number not in processes.names:
                processes.names[number] = bytes(comm[row]).split(b"\0")[0].decode("utf-8", "replace")


FORMAT = Format("recording", "archives of `headwaiter record`", sniff, read, rank=-1, leads=True)
