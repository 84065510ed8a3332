# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tracepoints of the block layer as text: tracefs (trace, trace_pipe), `trace-cmd report`, `perf script`.

    dd-4711    [001] d..1.  1234.567890: block_rq_issue: 8,0 R 4096 () 223490 + 8 [dd]
    dd  4711 [001]  1234.567890: block:block_bio_queue: 8,0 R 223490 + 8 [dd]

Events of other kinds, comments and stacks are passed over. Lines that are none of these are counted, and a note tells of them:
one that a tool writes and we do not know is no reason to refuse a recording. Where they outnumber the events it is no recording.
Source: include/trace/events/block.h of Linux 6.1 to 6.12.
"""

from __future__ import annotations

import re

import numpy as np

from headwaiter.base.errors import counted
from headwaiter.traces.blkevents import make_block_trace
from headwaiter.traces.events import Events, Processes, make_flags, parse_rwbs
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_EVENT = re.compile(
    rb"\s*(?P<comm>\S.*?)(?:-|\s+)(?P<pid>\d{1,10})(?:/\d+)?\s+(?:\(\s*[-\d]+\)\s+)?\[\d{1,5}\]\s+(?:[\w.#>]{1,8}\s+)?"
    rb"(?P<time>\d{1,10}\.\d{1,9}):\s+(?:\d+\s+)?(?:\w+:)?(?P<event>\w+):\s*(?P<rest>.*)"
)
_REQUEST = re.compile(
    rb"(?P<device>\d{1,4},\d{1,7}) (?P<rwbs>[A-Z]{1,10}) (?:\d+ )?(?:\([^)]*\) )?"
    rb"(?P<sector>\d{1,20}) (?P<sign>[+/]) (?P<number>\d{1,20})"
    rb"(?: <- \((?P<from>\d{1,4},\d{1,7})\) (?P<before>\d{1,20}))?(?: \w+,\d+,\d+)?(?: \[(?P<name>.*)\])?"
)
_FORK = re.compile(rb"comm=.* pid=(\d{1,10}) child_comm=.* child_pid=(\d{1,10})")
_EXIT = re.compile(rb"comm=.* pid=(\d{1,10})\b")
_STACK = re.compile(rb"\s+(?:[0-9a-f]{4,16} |=> )")
_HEAD = re.compile(rb"cpus=\d+|version = \d+|CPU \d+ is empty")
# tracefs and trace-cmd, with a number or without, and perf script with --show-lost-events.
_LOST = re.compile(
    rb"CPU:\s*\d+ \[(?:LOST (?:(?P<a>\d{1,19}) )?EVENTS|(?:(?P<b>\d{1,19}) )?EVENTS (?:DROPPED|LOST))\]"
    rb"|.*\bPERF_RECORD_LOST(?:_SAMPLES)?:?\s+lost (?P<c>\d{1,19})"
)
_LETTERS = {
    b"block_bio_queue": "Q",
    b"block_split": "X",
    b"block_bio_remap": "A",
    b"block_rq_insert": "I",
    b"block_rq_issue": "D",
    b"block_rq_complete": "C",
}


def sniff(head: bytes) -> bool:
    """Return whether one of the first lines that are no comment is an event."""
    lines = [
        x for x in head.splitlines()[:60] if x.strip() and not x.startswith(b"#") and not _HEAD.match(x) and not _LOST.match(x)
    ]
    return any(_EVENT.fullmatch(line) for line in lines[:16])


def read(source: Source, options: ReadOptions) -> Trace:
    """Read a recording. Raises Problem at the first event of the block layer that is damaged, or if few lines are events."""
    rows: list[tuple[int, int, int, bool, bool, int, int, int, int, int, int]] = []
    devices: dict[str, int] = {}
    processes = Processes()
    notes: list[tuple[bytes, re.Match[bytes], int]] = []
    lost, some_lost, known, unknown = 0, False, 0, []
    start = None
    for number, line in enumerate(source.data.split(b"\n"), 1):
        found = _EVENT.fullmatch(line.rstrip())
        if not found:
            if gone := _LOST.match(line.strip()):
                count = next((n for n in gone.groups() if n), None)
                lost, some_lost = lost + int(count or 0), some_lost or count is None
            elif line.strip() and not line.startswith(b"#") and not _STACK.match(line) and not _HEAD.match(line):
                unknown.append(number)
            continue
        known += 1
        whole, _, fraction = found["time"].partition(b".")
        time = int(whole) * 10**9 + int(fraction.ljust(9, b"0"))
        start = time if start is None else min(start, time)
        event = found["event"]
        if event in (b"sched_process_fork", b"sched_process_exit"):
            if match := (_FORK if event.endswith(b"fork") else _EXIT).match(found["rest"]):
                notes.append((event, match, time))
            continue
        letter = _LETTERS.get(event)
        if letter is None:
            continue
        what = _REQUEST.fullmatch(found["rest"])
        if not what or (what["sign"] == b"/") != (letter == "X") or (what["before"] is None) != (letter != "A"):
            raise source.problem(f"{event.decode()} without a request", line=number)
        sector, count, before = int(what["sector"]), int(what["number"]), int(what["before"] or 0)
        data = letter == "X" or count > 0
        if not data and sector > MAX_SECTOR:
            # A flush without data may have the sector -1.
            sector = 0
        if max(sector, count, before) > MAX_SECTOR:
            continue
        kind = parse_rwbs(what["rwbs"].decode())
        if not data and not (kind and kind.may_flush):
            continue
        if kind is None:
            raise source.problem(f"unknown operation {what['rwbs'].decode()!r}", line=number)
        aux = count if letter == "X" else before
        device = devices.setdefault(what["device"].decode(), len(devices))
        pid = int(found["pid"])
        if pid >= 1 << 32:
            raise source.problem(f"pid {pid} is out of range", line=number)
        if letter in "QXA" and pid not in processes.names:
            processes.names[pid] = found["comm"].decode("utf-8", "replace")
        rows.append((time, ord(letter), *kind, sector, 1 if letter == "X" else count, pid, device, aux))
    if len(unknown) > known:
        raise source.problem("not an event of ftrace, perf script or trace-cmd", line=unknown[0])
    if start is None or not rows:
        raise source.problem("contains no events of the block layer")
    if max(row[0] for row in rows) - start > MAX_TIME_NS:
        raise source.problem("times differ by more than 73 years")
    for event, match, time in notes:
        pids = " ".join(pid.decode() for pid in match.groups())
        processes.message(f"{'fork' if event.endswith(b'fork') else 'exit'} {pids}", time - start)
    time_ns = np.array([row[0] - start for row in rows], np.int64)
    action, op, sync, meta, flush, sector_, sectors, pid_, device_, aux_ = (
        np.array(c) for c in zip(*(r[1:] for r in rows), strict=True)
    )
    events = Events(
        time_ns=time_ns,
        action=action.astype(np.uint8),
        op=op.astype(np.uint8),
        flags=make_flags(op.astype(np.uint8), sync, meta),
        flush=flush.astype(np.uint8),
        sector=sector_.astype(np.uint64),
        sectors=sectors.astype(np.int64),
        pid=pid_.astype(np.int64),
        device=device_.astype(np.int64),
        aux=aux_.astype(np.uint64),
    )
    told = [f"{lost} events were lost while recording"] if lost else []
    if some_lost:
        told.append(f"{'more ' if lost else ''}events were lost while recording (number unknown)")
    if unknown:
        told.append(f"{counted(len(unknown), 'line')} not known here and not used (the first: line {unknown[0]})")
    return make_block_trace(
        source, FORMAT.name, events, device_names=list(devices), processes=processes, options=options, notes=told
    )


FORMAT = Format("ftrace", "block events as text: tracefs, trace-cmd report, perf script", sniff, read)
