# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Read the kernel's trace ring buffer as it is (per_cpu/cpuN/trace_pipe_raw): no rounding of times, no text.

The walk over the events is a loop (headwaiter/base/ringbuffer.py), their fields are gathered by NumPy: a million events take a
second or two.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headwaiter.base.archives import COMMIT_MASK, MISSED, MISSED_STORED, PAGE, PAGE_HEADER
from headwaiter.base.errors import Problem
from headwaiter.base.ringbuffer import DamageError, EventFormat, pages, walk_page

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RingEvent:
    """One event: ns of the trace clock, the CPU it was on, the event's name, its fields."""

    time_ns: int
    cpu: int
    name: str
    values: dict[str, int | bytes]


@dataclass(frozen=True, eq=False)
class Walked:
    """Events of one CPU in their order, shape (n,): where each one's record begins and how many bytes it has; ns; its number.

    lost: before which of them (an index) how many are missing, -1 where the kernel does not say how many.
    """

    data: Array
    at: Array
    length: Array
    time_ns: Array
    number: Array
    lost: tuple[tuple[int, int], ...]

    def rows(self, format: EventFormat) -> Array:
        """Indexes of the events of a format. DamageError where one is too short for its fields."""
        found = np.flatnonzero(self.number == format.number)
        needs = max((offset + struct.calcsize(code) for offset, code in format.fields.values()), default=0)
        short = found[self.length[found] < needs]
        if len(short):
            raise DamageError(f"{format.name} is cut off", int(self.at[short[0]]))
        return found

    def column(self, rows: Array, format: EventFormat, name: str) -> Array:
        """A field of some events of a format: integers, or text of shape (n, size) as uint8. KeyError if it has no such field."""
        offset, code = format.fields[name]
        size = struct.calcsize(code)
        bytes_ = self.data[self.at[rows][:, None] + np.arange(offset, offset + size)]
        return bytes_ if code.endswith("s") else bytes_.view(code.replace("b", "i1").replace("B", "u1"))[:, 0]


def walk(data: bytes, page: int | None = PAGE) -> Walked:
    """Find the events of one CPU's pages. `page`: bytes of each; None: each one's end is cut off where nothing more is in it.

    DamageError if they are none.
    """
    places: list[int] = []
    lengths: list[int] = []
    times: list[int] = []
    lost: list[tuple[int, int]] = []
    for at, now, commit in pages(data, page):
        begin, size = at + PAGE_HEADER, commit & COMMIT_MASK
        if commit & (MISSED | MISSED_STORED):
            count = struct.unpack_from("<Q", data, begin + size)[0] if commit & MISSED_STORED else -1
            lost.append((len(places), count))
        walk_page(np.frombuffer(data, "<u4", size // 4, begin).tolist(), begin, now, places, lengths, times)
    bytes_ = np.frombuffer(data, np.uint8)
    where, length = np.array(places, np.int64), np.array(lengths, np.int64)
    number = bytes_[where[:, None] + np.arange(2)].view("<u2")[:, 0] if places else np.empty(0, np.uint16)
    return Walked(bytes_, where, length, np.array(times, np.uint64), number, tuple(lost))


def events(data: bytes, cpu: int, formats: dict[int, EventFormat]) -> Iterator[RingEvent]:
    """The events of one CPU's whole pages in their order, one by one; events of other numbers are passed over.

    Problem when pages were lost or are damaged.
    """
    try:
        found = walk(data)
        if found.lost:
            raise Problem(f"trace of CPU {cpu}: events were lost before event {found.lost[0][0]}")
        for format in formats.values():
            found.rows(format)
    except DamageError as e:
        raise Problem(f"trace of CPU {cpu}: byte {e.byte}: {e.cause}") from None
    for at, time, number in zip(found.at.tolist(), found.time_ns.tolist(), found.number.tolist(), strict=True):
        if f := formats.get(number):
            values = {name: struct.unpack_from(code, data, at + offset)[0] for name, (offset, code) in f.fields.items()}
            yield RingEvent(time, cpu, f.name, values)
