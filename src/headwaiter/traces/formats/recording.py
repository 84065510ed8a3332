# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Archives of `headwaiter record` (headwaiter/base/archives.py): the kernel's own pages, or what another recorder wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headwaiter.base.archives import BLKTRACE, BPFTRACE, TRACEFS
from headwaiter.base.errors import NoRequestsError, Problem
from headwaiter.base.ringbuffer import EventFormat
from headwaiter.engine.schedulers import known
from headwaiter.traces import recording
from headwaiter.traces.blkevents import make_block_trace
from headwaiter.traces.events import Events, Processes
from headwaiter.traces.formats import blktrace, ftrace
from headwaiter.traces.model import MAX_TIME_NS, Trace
from headwaiter.traces.pages import Part, joined_moves
from headwaiter.traces.recording import Gap, Recording
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_PAGES = re.compile(r"cpu(\d{1,4})/(\d{1,9})")
_FORMAT = re.compile(r"events/\w+/\w+")
_SHOWN = 4


def sniff(head: bytes) -> bool:
    """Return whether this is an archive's first file."""
    return head.startswith(recording.MAGIC)


def read(source: Source, options: ReadOptions) -> Trace:
    """Read the recording that a headwaiter.json begins. Raises Problem, naming file and byte, at anything that is damaged."""
    found = recording.read(source)
    told = _told(found)
    if found.recorder != TRACEFS:
        return _other(source, options, found, told)
    formats = {f.number: f for f in _formats(source)}
    parts = [Part(*one, formats) for one in _pages(source)]
    starts = [int(part.walked.time_ns.min()) for part in parts if len(part.walked.time_ns)]
    if not starts:
        raise NoRequestsError(f"{source.path}: nothing was recorded")
    start = min(starts)
    if max(int(part.walked.time_ns.max()) for part in parts if len(part.walked.time_ns)) - start > MAX_TIME_NS:
        raise source.problem("times differ by more than 73 years")
    processes = Processes()
    joined = joined_moves(parts, start, processes)
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
        inserted=True,
    )
    return replace(trace, source=str(source.path.parent), **_machine(found, options.device))


def _told(found: Recording) -> list[str]:
    """Return what the user must know of how it was recorded."""
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
    called = {disk.number: disk.name for disk in found.disks}
    named = [called.get(number, number) for number in numbers]
    return named if len(set(named)) == len(named) else numbers


def _named(options: ReadOptions, found: Recording) -> ReadOptions:
    """With the name of a disk where its number was asked for."""
    wanted = (options.device or "").replace(":", ",")
    name = next((disk.name for disk in found.disks if disk.number == wanted), options.device)
    return ReadOptions(name, options.group_gap_ns, options.columns)


def _other(source: Source, options: ReadOptions, found: Recording, told: list[str]) -> Trace:
    """Read another recorder's own files, in its own format, which names disks by number."""
    readers: Mapping[str, Format] = {BLKTRACE: blktrace.FORMAT, BPFTRACE: ftrace.FORMAT}
    chosen = readers[found.recorder]
    first = next((m for m in source.members.values() if m is not source and m.data and chosen.sniff(m.head)), None)
    if first is None:
        raise NoRequestsError(f"{source.path}: nothing was recorded")
    number = next((disk.number for disk in found.disks if disk.name == options.device), options.device)
    trace = chosen.read(first, ReadOptions(number, options.group_gap_ns, options.columns))
    return replace(
        trace,
        source=str(source.path.parent),
        format=FORMAT.name,
        notes=(*told, *trace.notes),
        **_machine(found, options.device),
    )


def _machine(found: Recording, device: str | None) -> dict[str, Any]:
    """Return what a trace has of the machine and the disk."""
    current, offered = found.schedulers(device)
    here = known(offered)
    return {
        "scheduler": here.get(current, ""),
        "schedulers": tuple(here.values()),
        "processors": found.processors,
        "device_model": found.model(device),
        "nr_requests": found.nr_requests(device),
        "device_depth": found.depth(device),
        "rotational": found.rotational(device),
    }


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


FORMAT = Format("recording", "archives of `headwaiter record`", sniff, read, rank=-1, leads=True)
