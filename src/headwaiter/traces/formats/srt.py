# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""HP Labs SRT traces (TR_IOREC-1.3): a header of text up to a form feed, then big-endian records.

A record is 13 words of 32 bits, and a 14th, the queue's length, in version 4: its size in bytes; version << 16 | type;
time of arrival in seconds and microseconds; start and end of service in microseconds after arrival; bytes; sector;
device (its second byte from the right is the disk); driver; cylinder; flags; more. Type 1 is a request; type 2, a
suspect one, has one word more and is left out. Sectors have the size that the header gives for the disk. Flags: bit 0
read, bit 8 asynchronous. Neither tasks nor merges are recorded.
Source: Ruemmler and Wilkes, "UNIX disk access patterns", USENIX Winter 1993; the fields as DiskSim 3.0 reads them.
"""

from __future__ import annotations

import re

import numpy as np

from headwaiter.engine.constants import SECTOR_BYTES, SYNC, Op
from headwaiter.traces.fields import Array
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import Trace, bytes_to_sectors
from headwaiter.traces.one_device import pick_device
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_MAGIC = b"$$TR_IOREC-1.3"
_SIZE, _ID, _SEC, _USEC, _STOP, _BYTES, _SECTOR, _DEVICE, _FLAGS = 0, 1, 2, 3, 5, 6, 7, 8, 11
_REQUEST, _SUSPECT = 1, 2
_READ, _ASYNC = 1 << 0, 1 << 8
_DISK = re.compile(rb"\b(\d{1,3})\s*->\s*\{\s*disktype\b")
_SECTOR_SIZE = re.compile(rb"\bsectorsize\s*=\s*(\d{1,6})\b")


def sniff(head: bytes) -> bool:
    """Return whether the file begins as the header does."""
    return head.startswith(_MAGIC)


def read(source: Source, options: ReadOptions) -> Trace:
    """Read one disk's requests. Raises Problem, naming the byte, at anything that is not a whole record."""
    header_end = source.data.find(b"\f")
    if not sniff(source.head) or header_end < 0:
        raise source.problem("the header (from $$TR_IOREC-1.3 to a form feed) is incomplete")
    words = _records(source, header_end + 1)
    disk = words[:, _DEVICE] >> 8 & 0xFF
    disks, code = np.unique(disk, return_inverse=True)
    mask, notes = pick_device(source, [str(d) for d in disks.tolist()], code, options.device)
    words, chosen = words[mask], int(disk[mask][0])
    size = _sector_sizes(source.data[:header_end]).get(chosen)
    if not size:
        size = SECTOR_BYTES
        notes.append(f"the header does not give the sector size of disk {chosen}: {SECTOR_BYTES} bytes assumed")
    time = (words[:, _SEC] * 1_000_000 + words[:, _USEC]) * 1000
    sector, sectors = bytes_to_sectors(words[:, _SECTOR] * size, words[:, _BYTES])
    is_read = words[:, _FLAGS] & _READ != 0
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=time,
        complete_ns=time + words[:, _STOP] * 1000,
        sector=sector,
        sectors=sectors,
        op=np.where(is_read, int(Op.READ), int(Op.WRITE)),
        flags=np.where(is_read | (words[:, _FLAGS] & _ASYNC == 0), SYNC, 0),
        notes=notes,
    )


def _records(source: Source, begin: int) -> Array:
    """All requests as words, int64 of shape (n, 13)."""
    body = source.data[begin:]
    if len(body) < 4:
        raise source.problem("contains no requests")
    size = int.from_bytes(body[:4], "big")
    if size in (52, 56, 60) and len(body) % size == 0:
        words = np.frombuffer(body, ">u4").reshape(-1, size // 4)
        if (words[:, _SIZE] == size).all() and _sound(words[:, _ID], size).all():
            return _requests(source, words[:, :13].astype(np.int64))
    # Records of several sizes, or something is wrong: one by one.
    rows, at = [], 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        ident = np.frombuffer(body[at + 4 : at + 8].ljust(4, b"\0"), ">u4")
        if len(body) - at < 8 or (size in (52, 56, 60) and len(body) - at < size):
            raise source.problem("the trace is truncated within this record", byte=begin + at)
        if not _sound(ident, size).all():
            raise source.problem(f"not a record (size {size}, id {int(ident[0]):#x})", byte=begin + at)
        rows.append(np.frombuffer(body[at : at + 52], ">u4"))
        at += size
    return _requests(source, np.array(rows).astype(np.int64))


def _sound(ident: Array, size: int) -> Array:
    """Return whether version and type go with each other and with the record's size."""
    version, kind = ident >> 16, ident & 0xFFFF
    expected = 52 + 4 * (version >= 4) + 4 * (kind == _SUSPECT)
    sound: Array = (version >= 1) & (version <= 4) & (kind >= _REQUEST) & (kind <= _SUSPECT) & (expected == size)
    return sound


def _requests(source: Source, words: Array) -> Array:
    words = words[words[:, _ID] & 0xFFFF == _REQUEST]
    if not len(words):
        raise source.problem("contains no requests")
    return words


def _sector_sizes(header: bytes) -> dict[int, int]:
    """Bytes a sector, by disk, as the header's descriptions of the disks have it."""
    sizes = {}
    _, *parts = _DISK.split(header)
    for number, text in zip(parts[0::2], parts[1::2], strict=True):
        if found := _SECTOR_SIZE.search(text):
            sizes[int(number)] = int(found[1])
    return sizes


FORMAT = Format("srt", "HP Labs SRT traces, version 1.3 (binary)", sniff, read)
