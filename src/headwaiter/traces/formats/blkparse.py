# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""blkparse's text in its default format, one event a line, with or without the summary at the end.

Behind a summary another recording may begin. It counts, too, if its times go on, or if it is of other devices. Lines that are no
events, such as the names of input files, are passed over, and counted where they are not known.

    8,0    3        1     0.000000000   697  Q  WS 223490 + 8 [kjournald]

Source: blkparse(1), section "OUTPUT DESCRIPTION AND FORMATTING".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from headwaiter.base.errors import counted
from headwaiter.engine.constants import META, SYNC, Op
from headwaiter.traces.blkevents import make_block_trace
from headwaiter.traces.events import Events, Processes, make_flags, parse_rwbs, told_of
from headwaiter.traces.fields import Array, FieldTable, split_ragged
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace, with_flushes
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_LINE = re.compile(rb"\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+[A-Za-z]+(\s|\Z)")
_DEVICE = re.compile(r"\d+,\d+\Z")
_ACTIONS = ["Q", "M", "F", "G", "S", "R", "D", "C", "P", "U", "UT", "I", "X", "B", "A", "m"]
_TOP_LINES = 64
_COLUMNS = 6
"""device, cpu, sequence, time, pid, action; what follows depends on the action."""
_SECTOR = re.compile(r"\d{1,20}", re.ASCII)


def sniff(head: bytes) -> bool:
    """Return whether the first line that is not empty, and no input file's name, is an event."""
    lines = (line for line in head.splitlines()[:_TOP_LINES] if line.strip() and not _BESIDE.match(line.strip()))
    return bool(_LINE.match(next(lines, b"")[:256]))


def read(source: Source, options: ReadOptions) -> Trace:
    """Read a recording. Raises Problem at the first line that is not an event."""
    data, start, end, first, line_end, lines = split_ragged(source)
    kept, recording, notes = _events(source, data, start, first, line_end, lines)
    begin, tokens, line_end, lines = first[:-1][kept], np.diff(first)[kept], line_end[kept], lines[kept]
    short = tokens < _COLUMNS
    if short.any():
        raise source.problem("not a line of blkparse", line=int(lines[np.argmax(short)]))

    def table(rows: Array, columns: list[int]) -> FieldTable:
        at = begin[rows][:, None] + np.array(columns)
        return FieldTable(source, data, start[at], end[at], lines[rows])

    everything = np.arange(len(kept))
    head = table(everything, list(range(_COLUMNS)))
    devices, device = head.distinct([0])
    for k, (name,) in enumerate(devices):
        if not _DEVICE.match(name):
            raise head.problem(int(np.argmax(device == k)), f"{name!r} is not a device (major,minor)")
    time = head.fixed(3, "time", 9, high=MAX_TIME_NS)
    pid = head.integers(4, "pid", high=2**32 - 1)
    kind = head.words(5, "action", {name: k for k, name in enumerate(_ACTIONS)})
    letter = np.array([ord(name) if name in "QDCIXA" else 0 for name in _ACTIONS], np.uint8)[kind]

    # Requests have `sector + sectors`, splits `sector / sector`; flushes and passed-through commands neither.
    wide = np.flatnonzero((letter != 0) & (tokens >= _COLUMNS + 4))
    sign = data[start[begin[wide] + 8]] if len(wide) else np.zeros(0, np.uint8)
    rows = wide[sign == np.where(letter[wide] == ord("X"), ord("/"), ord("+"))]
    body = table(rows, [6, 7, 9])
    split = letter[rows] == ord("X")
    sector = body.integers(1, "sector", high=MAX_SECTOR)
    number = body.integers(2, "number of sectors", high=MAX_SECTOR)
    op, flags, flush = _rwbs(body)
    # blkparse 1.2 prints where a bio is split in 32 bits; it is behind the bio's begin.
    wrapped = split & (number <= sector)
    aux = np.where(split, np.where(wrapped, sector + (number - sector) % (1 << 32), number), 0)
    origin = np.flatnonzero((letter[rows] == ord("A")) & (tokens[rows] >= 13))
    aux[origin] = table(rows[origin], [12]).integers(0, "sector", high=MAX_SECTOR)
    processes = _processes(table, head, rows[np.isin(letter[rows], np.frombuffer(b"QDI", np.uint8))], line_end)
    for row in np.flatnonzero((kind == _ACTIONS.index("m")) & (tokens > 7)).tolist():
        text = data[start[begin[row] + 7] : line_end[row]].tobytes().decode("utf-8", "replace")
        processes.message(text, int(time[row]))
    bare = _without_place(table, np.flatnonzero((letter != 0) & (tokens > _COLUMNS + 1) & ~np.isin(everything, rows)))
    every = np.concatenate([rows, bare.row])
    none = np.zeros(len(bare.row), np.int64)
    events = Events(
        time_ns=time[every],
        action=letter[every],
        op=np.concatenate([op, bare.op]),
        flags=np.concatenate([flags, make_flags(bare.op, bare.sync, none != 0)]),
        flush=np.concatenate([flush, bare.flush]),
        sector=np.concatenate([sector, bare.sector]).astype(np.uint64),
        sectors=np.concatenate([np.where(split, 1, number), none]),
        pid=pid[every],
        device=device[every],
        aux=np.concatenate([aux, none]).astype(np.uint64),
    )
    used = np.ones(len(every), bool)
    if recording.any():
        fits = _going_on(time, device, recording)
        used = fits[every]
        notes.append(_behind(fits, recording, lines))
    some = events.rows(np.flatnonzero(told_of(events.sector, events.sectors, events.op)[0] & used))
    names = [name for (name,) in devices]
    return make_block_trace(source, FORMAT.name, some, device_names=names, processes=processes, options=options, notes=notes)


@dataclass(frozen=True)
class _Bare:
    """Events of flushes without data, shape (n,): their rows, and what is in the columns of Events."""

    row: Array
    op: Array
    sync: Array
    flush: Array
    sector: Array


def _without_place(table: Callable[[Array, list[int]], FieldTable], rows: Array) -> _Bare:
    """Find the lines without `+` that tell of flushes: `Q FWS [fio]`, `D FF [kworker]`, `C FF sector [0]`, `C WS 0 [0]`."""
    words = table(rows, [5, 6, 7])
    found = []
    for k, row in enumerate(rows.tolist()):
        kind = parse_rwbs(words.text(k, 1))
        if kind and kind.may_flush:
            place = words.text(k, 2) if words.text(k, 0) == "C" else ""
            sector = int(place) if _SECTOR.fullmatch(place) else 0
            found.append((row, kind.op, kind.sync, kind.flush, sector if sector <= MAX_SECTOR else 0))
    columns = np.array(found, np.int64).reshape(-1, 5)
    return _Bare(
        row=columns[:, 0],
        op=columns[:, 1].astype(np.uint8),
        sync=columns[:, 2] != 0,
        flush=columns[:, 3].astype(np.uint8),
        sector=columns[:, 4],
    )


_SUMMARY = re.compile(rb"(CPU\d+|Total) \(")
# Numbers of events that are missing.
_SKIPS = re.compile(rb"Skips: [\d,]+ forward \(([\d,]{1,24}) -")
# What blkparse prints besides events: of its input, of CPUs and processes, and of how it went.
_BESIDE = re.compile(
    rb"Input file |(PC )?(Reads?|Writes?|Discards?|Flushes) |(Read|Write) depth|IO unplugs|Timer unplugs|Allocation wait"
    rb"|Dispatch wait|Completion wait|Throughput |Events \(|Skips: |.* \(\d+(, .*)?\)$"
)


def _events(
    source: Source, data: Array, start: Array, first: Array, line_end: Array, lines: Array
) -> tuple[Array, Array, list[str]]:
    """(rows that are events, which recording of the file each is in, from 0, notes). Problem if too few are."""
    begin = start[first[:-1]]
    letter = data[begin]
    event = (letter >= ord("0")) & (letter <= ord("9"))
    aside = np.flatnonzero(~event)
    texts = {row: data[begin[row] : line_end[row]].tobytes() for row in aside.tolist()}
    summary = next((row for row, text in texts.items() if _SUMMARY.match(text)), len(lines))
    # A process whose name begins with a digit, in a summary of processes.
    for row in range(summary, len(lines)):
        if event[row] and not _LINE.match(text := data[begin[row] : line_end[row]].tobytes()[:256]):
            event[row], texts[row] = False, text
    unknown = [row for row, text in texts.items() if not (_SUMMARY.match(text) or _BESIDE.match(text))]
    kept = np.flatnonzero(event)
    if not len(kept):
        raise source.problem("contains no events", line=int(lines[0]))
    if len(unknown) > len(kept):
        raise source.problem("not a line of blkparse", line=int(lines[unknown[0]]))
    notes = []
    if lost := sum(int(found[1].replace(b",", b"") or b"0") for text in texts.values() if (found := _SKIPS.match(text))):
        notes.append(f"{lost} events were lost while recording")
    if unknown:
        notes.append(f"{counted(len(unknown), 'line')} not known here and not used (the first: line {int(lines[unknown[0]])})")
    heads = [row for row, text in texts.items() if _SUMMARY.match(text)]
    behind = np.searchsorted(np.array(heads, np.int64), kept)
    return kept, np.unique(behind, return_inverse=True)[1], notes


def _going_on(time: Array, device: Array, recording: Array) -> Array:
    """Return which events belong together: those of the first recording, and of others whose times go on, or of other devices."""
    fits: Array = recording == 0
    for k in range(1, int(recording.max()) + 1):
        here = recording == k
        alike = fits & np.isin(device, np.unique(device[here]))
        if not alike.any() or time[here].min() >= time[fits].max():
            fits |= here
    return fits


def _behind(fits: Array, recording: Array, lines: Array) -> str:
    first = int(lines[np.argmax(recording > 0)])
    if fits.all():
        return f"{int(recording.max()) + 1} recordings, one behind the other (the second begins in line {first})"
    left = counted(int((~fits).sum()), "line")
    return f"{left} behind a summary (from line {first} on) not used: another recording, whose times begin anew"


def _rwbs(body: FieldTable) -> tuple[Array, Array, Array]:
    """(op, flags, flush) from the RWBS column."""
    code = body.packed(0)
    distinct, inverse = np.unique(code, return_inverse=True)
    parsed = []
    for value in distinct.tolist():
        text = value.to_bytes(8, "big").lstrip(b"\0").decode("latin-1")
        found = parse_rwbs(text)
        if not found:
            row = int(np.argmax(code == value))
            raise body.problem(row, f"unknown operation {body.text(row, 0)[:16]!r}")
        parsed.append(found)
    table = np.array(parsed, np.int64).reshape(-1, 4)[inverse]
    op = table[:, 0].astype(np.uint8)
    return op, make_flags(op, table[:, 1] != 0, table[:, 2] != 0), table[:, 3].astype(np.uint8)


def _processes(table: Callable[[Array, list[int]], FieldTable], head: FieldTable, rows: Array, line_end: Array) -> Processes:
    """The commands' names: what stands in brackets at a line's end, of each pid's first event."""
    found = Processes()
    pids = head.integers(4, "pid")[rows]
    for pid, k in zip(*np.unique(pids, return_index=True), strict=True):
        row = int(rows[k])
        begin = int(table(np.array([row]), [9]).end[0, 0])
        text = head.data[begin : line_end[row]].tobytes().decode("utf-8", "replace")
        if (name := re.search(r"\[(.*)\]$", text)) and name[1] not in ("", "(null)"):
            found.names[int(pid)] = name[1]
    return found


_WRITE_ROWS = 65536


def write(trace: Trace, out: TextIO) -> list[str]:
    """Write a trace as blkparse prints a recording of queue and completion events; what cannot be said is returned."""
    trace = with_flushes(trace)
    n = len(trace)
    done = np.flatnonzero(trace.complete_ns >= 0)
    exits = [(t.exit_ns, t.id) for t in trace.tasks if t.exit_ns is not None]
    # What arrives at the instant of a completion comes first, so that no request is complete before it is there.
    time = np.concatenate([trace.time_ns, trace.complete_ns[done], np.array([e for e, _ in exits], np.int64)])
    order = np.argsort(time, kind="stable")
    rwbs = _letters(trace)
    ids = [t.id for t in trace.tasks]
    names = ["".join(c if c.isprintable() else "_" for c in t.name) for t in trace.tasks]
    for begin in range(0, len(order), _WRITE_ROWS):
        lines = []
        for number, k in enumerate(order[begin : begin + _WRITE_ROWS].tolist(), begin + 1):
            seconds, rest = divmod(int(time[k]), 10**9)
            start = f"  8,0    0 {number:8d} {seconds:5d}.{rest:09d}"
            if k >= n + len(done):
                lines.append(f"{start}     0  m   N exit {exits[k - n - len(done)][1]}\n")
                continue
            row = k if k < n else int(done[k - n])
            task = int(trace.task[row])
            if trace.op[row] == Op.FLUSH:
                what = f"{ids[task]:5d}  Q FWS [{names[task]}]" if k < n else "    0  C  WS 0 [0]"
                lines.append(f"{start} {what}\n")
                continue
            place = f"{rwbs[row]:>3} {int(trace.sector[row])} + {int(trace.sectors[row])}"
            if k < n:
                lines.append(f"{start} {ids[task]:5d}  Q {place} [{names[task]}]\n")
            else:
                lines.append(f"{start}     0  C {place} [0]\n")
        out.write("".join(lines))
    lost = ["blkparse's text tells neither threads of control nor priorities; completions are matched by place when it is read"]
    if not trace.tasks_known:
        lost.append("the trace does not identify tasks: all requests are written as those of one process")
    return lost


def _letters(trace: Trace) -> list[str]:
    """The RWBS column: reads are always waited for, and have no S."""
    out = []
    for op, flags in zip(trace.op.tolist(), trace.flags.tolist(), strict=True):
        sync = "S" if flags & SYNC and op != Op.READ else ""
        out.append("RWDNF"[op] + sync + ("M" if flags & META else ""))
    return out


FORMAT = Format("blkparse", "blkparse's default text output", sniff, read, write=write)
