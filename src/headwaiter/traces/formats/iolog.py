# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fio's I/O logs (write_iolog, read_iolog), versions 2 and 3.

    fio version 3 iolog                       fio version 2 iolog
    microseconds file action [offset bytes]   file action [offset bytes]

Jobs that share a log each write a header of their own: their actions are of one time, and of as many threads.

Version 2 has no times but `wait` actions: fio replays it one request after the other, and so do we, by taking each
request for complete at once: then every one depends on the one before. Several files count as several devices.
Source: fio's HOWTO, "Trace file format v2", "v3"; the unit of version 3 from fio's log_io_u().
"""

from __future__ import annotations

from typing import TextIO

import numpy as np

from headwaiter.engine.constants import SECTOR_BYTES, Op
from headwaiter.traces.fields import Array, FieldTable, split_ragged
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import MAX_TIME_NS, Trace
from headwaiter.traces.one_device import pick_device
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_HEADERS = {b"fio version 2 iolog": 2, b"fio version 3 iolog": 3}
_MOVES = {"read": int(Op.READ), "write": int(Op.WRITE), "trim": int(Op.DISCARD)}
_WAIT, _OTHER = 8, 9
_ACTIONS = {**_MOVES, "wait": _WAIT, **dict.fromkeys(("sync", "datasync", "add", "open", "close", "unlink"), _OTHER)}
_FILE = "/dev/sda"
_MAX_US = MAX_TIME_NS // 1000


def sniff(head: bytes) -> bool:
    """Return whether the first line says that it is an iolog, whatever the version."""
    return head.startswith(b"fio version ") and b"iolog" in head[:32]


def read(source: Source, options: ReadOptions) -> Trace:
    """Read one file's requests. Raises Problem at the first line that breaks the format."""
    data, start, end, first, line_end, lines = split_ragged(source)
    version, job = _jobs(source, [data[start[a] : b].tobytes() for a, b in zip(first[:-1], line_end, strict=True)], lines)
    kept = np.flatnonzero(job >= 0)
    job, lines = job[kept], lines[kept]
    first, tokens = first[:-1][kept], np.diff(first)[kept] - (version == 3)
    if (wrong := (tokens != 2) & (tokens != 4)).any():
        raise source.problem("neither `file action` nor `file action offset length`", line=int(lines[np.argmax(wrong)]))

    def table(rows: Array, columns: list[int]) -> FieldTable:
        at = first[rows][:, None] + np.array(columns) + (version == 3)
        return FieldTable(source, data, start[at], end[at], lines[rows])

    everything = np.arange(len(lines))
    action = table(everything, [0, 1]).words(1, "action", _ACTIONS)
    short = (action < _OTHER) & (tokens == 2)
    if short.any():
        raise source.problem("offset and length are missing", line=int(lines[np.argmax(short)]))
    waits = np.flatnonzero(action == _WAIT)
    if version == 3:
        if len(waits):
            raise source.problem("wait is not allowed in version 3", line=int(lines[waits[0]]))
        time = table(everything, [-1]).integers(0, "time", high=_MAX_US) * 1000
    else:
        pause = np.zeros(len(lines), np.int64)
        pause[waits] = table(waits, [0, 1, 2]).integers(2, "wait", high=10**12)
        if (late := np.cumsum(pause, dtype=np.float64) > _MAX_US).any():
            raise source.problem("the waits add up to more than 73 years", line=int(lines[np.argmax(late)]))
        # Each job waits for itself.
        begun = np.cumsum(pause)
        time = (begun - begun[np.searchsorted(job, job)] + pause[np.searchsorted(job, job)]) * 1000

    moves = np.flatnonzero(np.isin(action, list(_MOVES.values())))
    if not len(moves):
        raise source.problem("contains no requests")
    body = table(moves, [0, 2, 3])
    files, code = body.distinct([0])
    mask, notes = pick_device(source, [name for (name,) in files], code, options.device)
    body, moves = body.rows(np.flatnonzero(mask)), moves[mask]
    sector, sectors = body.byte_ranges((1, "offset"), (2, "length"))
    if job.any():
        notes.append(
            f"the logs of {int(job.max()) + 1} jobs in one file, read as of one time (give each job its own write_iolog)"
        )
    if version == 2:
        notes.append("version 2 has no times: requests follow one another")
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=time[moves],
        complete_ns=time[moves] if version == 2 else None,
        task_id=job[moves] if version == 2 or job.any() else None,
        sector=sector,
        sectors=sectors,
        op=action[moves],
        notes=notes,
    )


def _jobs(source: Source, texts: list[bytes], lines: Array) -> tuple[int, Array]:
    """(version, the job that each line is of, -1 for a header), shape (lines,)."""
    version = _HEADERS.get(b" ".join(texts[0].split()))
    if version is None:
        raise source.problem("not an iolog of version 2 or 3", line=int(lines[0]))
    headers = np.array([text.startswith(b"fio version ") and text.split()[-1:] == [b"iolog"] for text in texts])
    for row in np.flatnonzero(headers).tolist():
        if _HEADERS.get(b" ".join(texts[row].split())) != version:
            raise source.problem(f"another version begins here, and the file is of version {version}", line=int(lines[row]))
    return version, np.where(headers, -1, np.cumsum(headers) - 1)


def write(trace: Trace, out: TextIO) -> list[str]:
    """Write a trace as an I/O log of version 3, which fio replays with read_iolog; what the log cannot say is returned."""
    known = np.isin(trace.op, list(_MOVES.values()))
    word = {number: name for name, number in _MOVES.items()}
    time_us = (trace.time_ns - trace.time_ns[0]) // 1000
    out.write(f"fio version 3 iolog\n0 {_FILE} add\n0 {_FILE} open\n")
    columns = (time_us, trace.op, trace.sector, trace.sectors)
    for time, op, sector, sectors in zip(*(c[known].tolist() for c in columns), strict=True):
        out.write(f"{time} {_FILE} {word[op]} {sector * SECTOR_BYTES} {sectors * SECTOR_BYTES}\n")
    out.write(f"{int(time_us[-1])} {_FILE} close\n")
    lost = ["an iolog has times of issue in whole microseconds, and neither tasks nor completions"]
    if not known.all():
        lost.append(f"{int((~known).sum())} requests that are no read, write or discard are left out")
    if trace.flushes:
        lost.append(f"{len(trace.flushes)} flushes of the drive's cache are left out")
    return lost


FORMAT = Format("iolog", "fio's I/O logs, versions 2 and 3", sniff, read, write=write)
