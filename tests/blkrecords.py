# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""blktrace records for tests: as the kernel would write them, from one call an event."""

from __future__ import annotations

import struct

MAGIC = 0x65617400
ACTIONS = {"Q": 1, "M": 2, "F": 3, "G": 4, "R": 6, "D": 7, "C": 8, "P": 9, "U": 10, "I": 12, "X": 13, "A": 15}
CATEGORIES = {
    "R": 1 << 0, "W": 1 << 1, "F": 1 << 2, "S": 1 << 3, "P": 1 << 9, "A": 1 << 11, "M": 1 << 12, "D": 1 << 13,
    "U": 1 << 15,
}  # fmt: skip
NOTIFY = 1 << 10
CGROUP = 1 << 8


def record(
    time: int,
    action: int,
    *,
    category: int,
    sector: int = 0,
    size: int = 0,
    pid: int = 0,
    device: tuple[int, int] = (8, 0),
    cpu: int = 0,
    payload: bytes = b"",
    order: str = "<",
    version: int = 7,
    cgroup: bool = False,
) -> bytes:
    """One record. category: bits of BLK_TC_*; size in bytes."""
    if cgroup:
        action |= CGROUP
        payload = struct.pack(order + "Q", 77) + payload
    what = action | category << 16
    head = (MAGIC | version, 1, time, sector, size)
    tail = (device[0] << 20 | device[1], cpu, 0, len(payload))
    if version == 7:
        return struct.pack(order + "IIQQIIIIIHH", *head, what, pid, *tail) + payload
    return struct.pack(order + "IIQQIIQIIHH12x", *head, pid, what, *tail) + payload


def event(time: int, letter: str, rwbs: str, sector: int, sectors: int, *, pid: int = 100, **more: object) -> bytes:
    """An event as blkparse prints it. aux: the sector in the payload of X and A. In rwbs U is FUA, P passed through."""
    aux = more.pop("aux", None)
    payload = b""
    if letter == "X":
        payload = struct.pack(">Q", aux)
    elif letter == "A":
        payload = struct.pack(">IIQ", 8 << 20 | 1, 8 << 20, aux)
    category = 0
    for c in rwbs:
        category |= CATEGORIES[c]
    return record(time, ACTIONS[letter], category=category, sector=sector, size=sectors * 512, pid=pid, payload=payload, **more)  # type: ignore[arg-type]


def process(time: int, pid: int, name: str, **more: object) -> bytes:
    """The note that names a process."""
    return record(time, 0, category=NOTIFY, pid=pid, payload=name.encode().ljust(16, b"\0"), **more)  # type: ignore[arg-type]


def message(time: int, text: str, **more: object) -> bytes:
    """A message in the recording."""
    return record(time, 2, category=NOTIFY, payload=text.encode(), **more)  # type: ignore[arg-type]
