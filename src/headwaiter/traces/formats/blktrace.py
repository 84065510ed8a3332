# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""blktrace's binary files: one struct blk_io_trace (version 7) or blk_io_trace2 (version 8) after another.

Source: include/uapi/linux/blktrace_api.h. Either endianness. A recording has one file for each CPU, NAME.blktrace.0
and so on: given any one of them all are read, as are all of a directory; and a file may hold several CPUs' records.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from headwaiter.base.errors import Problem
from headwaiter.base.reading import is_folder
from headwaiter.engine.constants import SECTOR_BYTES, Op
from headwaiter.traces.blkevents import make_block_trace
from headwaiter.traces.events import FUA, PREFLUSH, Events, Processes, make_flags, told_of
from headwaiter.traces.model import MAX_TIME_NS, Trace
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

Array = npt.NDArray[Any]

_MAGIC = 0x65617400
_VERSIONS = (7, 8)
_COMMON_HEAD = [("magic", "u4"), ("sequence", "u4"), ("time", "u8"), ("sector", "u8"), ("bytes", "u4")]
_COMMON_TAIL = [("device", "u4"), ("cpu", "u4"), ("error", "u2"), ("pdu_len", "u2")]
_FIELDS = {
    7: [*_COMMON_HEAD, ("action", "u4"), ("pid", "u4"), *_COMMON_TAIL],
    8: [*_COMMON_HEAD, ("pid", "u4"), ("action", "u8"), *_COMMON_TAIL, ("pad", "V12")],
}

# Categories, the action's bits from 16 upwards.
_WRITE, _FLUSH, _SYNC, _PC, _NOTIFY = 1 << 1, 1 << 2, 1 << 3, 1 << 9, 1 << 10
_META, _DISCARD, _FUA, _READ = 1 << 12, 1 << 13, 1 << 15, 1 << 0
# Actions, its low byte; bit 8 says that the number of a control group comes before the payload.
_LETTERS = {1: "Q", 7: "D", 8: "C", 12: "I", 13: "X", 15: "A"}
_CGROUP = 1 << 8
_TN_PROCESS, _TN_MESSAGE = 0, 2

_CPU_FILE = re.compile(r"(?P<stem>.*\.blktrace\.)(?P<cpu>\d+)(?P<packed>\.(gz|xz|zst))?\Z")


def sniff(head: bytes) -> bool:
    """Return whether the file begins with a record's magic number, whatever the version."""
    return len(head) >= 4 and any(int.from_bytes(head[:4], o) & 0xFFFFFF00 == _MAGIC for o in ("little", "big"))


def read(source: Source, options: ReadOptions) -> Trace:
    """Read a whole recording. Raises Problem, naming file and byte, at anything that is not a whole record."""
    parts = [_records(f) for f in map(source.beside, _recording(source)) if f.data]
    if not parts:
        raise source.problem("nothing recorded")
    notes = [p.record["action"] >> np.uint64(16) & np.uint64(_NOTIFY) != 0 for p in parts]
    times = np.concatenate([p.record["time"][~n] for p, n in zip(parts, notes, strict=True)])
    if not len(times):
        raise source.problem("contains no requests")
    start = times.min()
    if int(times.max()) - int(start) > MAX_TIME_NS:
        raise source.problem("times differ by more than 73 years")
    processes = Processes()
    for part, note in zip(parts, notes, strict=True):
        _read_notes(part, np.flatnonzero(note), int(start), processes)
    columns = [_moves(part, np.flatnonzero(~note), start) for part, note in zip(parts, notes, strict=True)]
    devices, code = np.unique(np.concatenate([c["device"] for c in columns]), return_inverse=True)
    joined = {name: np.concatenate([c[name] for c in columns]) for name in columns[0]} | {"device": code}
    names = [f"{d >> 20},{d & 0xFFFFF}" for d in devices.tolist()]
    return make_block_trace(source, FORMAT.name, Events(**joined), device_names=names, processes=processes, options=options)


def _recording(source: Source) -> list[Path]:
    """The files of the recording that source is one of, beside it in its folder or its archive."""
    if source.members and _CPU_FILE.match(source.path.name):
        return _of_recording(sorted(p for p in source.members if p.parent == source.path.parent), source.path)
    return _files(source.path)


def _files(path: Path) -> list[Path]:
    """The files of the recording that path is, or is one of."""
    if is_folder(path):
        return _cpu_files(path, None)
    found = _CPU_FILE.match(path.name)
    return _cpu_files(path.parent, path) if found else [path]


def _cpu_files(directory: Path, one: Path | None) -> list[Path]:
    try:
        return _of_recording(sorted(directory.iterdir()), one)
    except OSError as e:
        raise Problem(f"{directory}: {e.strerror}") from None


def _of_recording(files: list[Path], one: Path | None) -> list[Path]:
    """All CPUs' files, or those of the recording that `one` is of; of a file packed and unpacked, the like of `one`."""
    wanted = _CPU_FILE.match(one.name) if one else None
    chosen: dict[tuple[str, int], Path] = {}
    for path in files:
        found = _CPU_FILE.match(path.name)
        if found and (not wanted or found["stem"] == wanted["stem"]):
            key = found["stem"], int(found["cpu"])
            if key not in chosen or (wanted and found["packed"] == wanted["packed"]):
                chosen[key] = path
    return [chosen[key] for key in sorted(chosen)]


@dataclass(frozen=True, eq=False)
class _Part:
    """One file's records: structured array of shape (n,), native byte order, and where each one's payload begins."""

    data: Array
    record: Array
    payload: Array

    def payload_bytes(self, k: int) -> bytes:
        skip = 8 if int(self.record["action"][k]) & _CGROUP else 0
        begin = int(self.payload[k])
        return bytes(self.data[begin + skip : begin + int(self.record["pdu_len"][k])].tobytes())


def _records(source: Source) -> _Part:
    """Find all records of a file at once: by their magic number, then by checking that each leads to the next."""
    data = np.frombuffer(source.data, np.uint8)
    head = source.data[:4]
    if not sniff(head):
        raise source.problem("not a blktrace record", byte=0)
    order: Literal["<", ">"] = "<" if int.from_bytes(head, "little") & 0xFFFFFF00 == _MAGIC else ">"
    version = head[0] if order == "<" else head[3]
    if version not in _VERSIONS:
        raise source.problem(f"blktrace record of version {version} (known: 7, 8)", byte=0)
    kind = np.dtype(_FIELDS[version]).newbyteorder(order)
    size = kind.itemsize
    at = np.flatnonzero(data[: max(len(data) - size + 1, 0)] == head[0])
    for k in (1, 2, 3):
        at = at[data[at + k] == head[k]]
    if not len(at):
        raise source.problem("the recording is truncated within this record", byte=0)
    low, high = (size - 2, size - 1) if version == 7 else (50, 51)
    if order == ">":
        low, high = high, low
    follow = at + size + data[at + low] + (data[at + high].astype(np.int64) << 8)
    position = np.searchsorted(at, follow)
    # A payload may happen to contain the magic number. Wherever a record does not lead to the next candidate, step.
    leads_on = (position == np.arange(1, len(at) + 1)) & (np.append(at, len(data))[position] == follow)
    breaks = np.flatnonzero(~leads_on).tolist()
    runs, k = [], 0
    while True:
        b = bisect_left(breaks, k)
        last = breaks[b] if b < len(breaks) else len(at) - 1
        runs.append(np.arange(k, last + 1))
        target, k = int(follow[last]), int(position[last])
        if target == len(data):
            break
        if k == len(at) or at[k] != target:
            rest = source.data[target : target + 4]
            if target > len(data):
                raise source.problem("the recording is truncated within this record", byte=int(at[last]))
            cut = len(data) - target < size and head.startswith(rest)
            cause = "the recording is truncated within this record" if cut else "not a blktrace record"
            raise source.problem(cause, byte=target)
    at = at[np.concatenate(runs)]
    anywhere: Array = np.ndarray(len(data) - size + 1, kind, source.data, strides=(1,))
    record = anywhere[at].astype(kind.newbyteorder("="))
    return _Part(data, record, at + size)


def _read_notes(part: _Part, index: Array, start: int, processes: Processes) -> None:
    """Take names, forks and exits from the notes (process and message) at index."""
    kind = part.record["action"][index] & np.uint64(0xFF)
    for k in index[kind == _TN_PROCESS].tolist():
        name = part.payload_bytes(k).split(b"\0")[0].decode("utf-8", "replace")
        processes.names[int(part.record["pid"][k])] = name
    for k in index[kind == _TN_MESSAGE].tolist():
        text = part.payload_bytes(k).rstrip(b"\0\n").decode("utf-8", "replace")
        processes.message(text, max(0, int(part.record["time"][k]) - start))


def _moves(part: _Part, index: Array, start: Any) -> dict[str, Array]:
    """The columns of Events for the records at index that move data, with device numbers for its device."""
    record = part.record[index]
    number = record["action"] & np.uint64(0xFF)
    bits = record["action"] >> np.uint64(16)
    letter = np.zeros(len(record), np.uint8)
    for value, name in _LETTERS.items():
        letter[number == value] = ord(name)
    op = np.full(len(record), Op.OTHER, np.uint8)
    op[bits & _READ != 0] = Op.READ
    # The kernel's own request for a flush counts as a read, and moves nothing.
    op[(bits & (_READ | _FLUSH) == _READ | _FLUSH) & (record["bytes"] == 0)] = Op.FLUSH
    op[bits & _WRITE != 0] = Op.WRITE
    op[bits & _DISCARD != 0] = Op.DISCARD
    sectors = (record["bytes"].astype(np.int64) + SECTOR_BYTES - 1) // SECTOR_BYTES
    told, sector = told_of(record["sector"].astype(np.uint64), sectors, op)
    sectors[letter == ord("X")] = np.maximum(1, sectors[letter == ord("X")])
    keep = (letter != 0) & (bits & _PC == 0) & (told | (sectors > 0))
    columns = (record, bits, letter, part.payload[index], op, sectors, sector)
    record, bits, letter, payload, op, sectors, sector = (column[keep] for column in columns)
    # What an X or an A says of places comes last in its payload, big-endian.
    skip = np.where(record["action"] & np.uint64(_CGROUP) != 0, 8, 0)
    length = record["pdu_len"].astype(np.int64) - skip
    aux = np.zeros(len(record), np.uint64)
    for name, place in (("X", 0), ("A", 8)):
        here = np.flatnonzero((letter == ord(name)) & (length >= place + 8))
        if len(here):
            at = payload[here] + skip[here] + place
            aux[here] = part.data[at[:, None] + np.arange(8)].view(">u8")[:, 0]
    return {
        "time_ns": (record["time"] - start).astype(np.int64),
        "action": letter,
        "op": op,
        "flags": make_flags(op, bits & (_SYNC | _FLUSH | _FUA) != 0, bits & _META != 0),
        "flush": (PREFLUSH * (bits & _FLUSH != 0) + FUA * (bits & _FUA != 0)).astype(np.uint8),
        "sector": sector,
        "sectors": sectors,
        "pid": record["pid"].astype(np.int64),
        "device": record["device"].astype(np.int64),
        "aux": aux,
    }


FORMAT = Format("blktrace", "blktrace binary files; all CPUs' files of a recording are merged", sniff, read, files=_files)
