# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Read the kernel's trace ring buffer as it is (per_cpu/cpuN/trace_pipe_raw): no rounding of times, no text.

Source of the format: Documentation/trace and events/header_page, events/header_event of tracefs, 6.1 to 6.18 on x86-64.
The walk over the events is a loop, their fields are gathered by NumPy: a million events take a second or two.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headwaiter.base.archives import COMMIT_MASK, MISSED, MISSED_STORED, PAGE, PAGE_HEADER, used_bytes
from headwaiter.base.errors import Problem

Array = npt.NDArray[Any]

MAX_DATA = 28  # largest type_len that is a length in words
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
FIELD = re.compile(r"field:(?P<decl>[^;]*);\s*offset:(?P<offset>\d{1,5});\s*size:(?P<size>\d{1,5});\s*signed:(?P<signed>[01]);")
CODE = {(1, 0): "B", (1, 1): "b", (2, 0): "H", (2, 1): "h", (4, 0): "I", (4, 1): "i", (8, 0): "Q", (8, 1): "q"}


@dataclass(frozen=True)
class EventFormat:
    """What tracefs says of an event: its number, and (offset, struct code) of its fields by name."""

    name: str
    number: int
    fields: dict[str, tuple[int, str]]

    @classmethod
    def parse(cls, text: str) -> EventFormat:
        """From the event's `format` file."""
        name = re.search(r"^name: (\S+)", text, re.M)
        number = re.search(r"^ID: (\d{1,5})$", text, re.M)
        if not name or not number:
            raise Problem("trace: an event's format has no name or ID")
        fields = {}
        for m in FIELD.finditer(text):
            word = (m["decl"].split() or [""])[-1]
            size = int(m["size"])
            array = re.search(r"\[(\d*)\]$", word)
            code = f"{size}s" if array else CODE.get((size, int(m["signed"])), f"{size}s")
            fields[word.split("[")[0]] = (int(m["offset"]), "<" + code)
        return cls(name[1], int(number[1]), fields)


@dataclass(frozen=True)
class RingEvent:
    """One event: ns of the trace clock, the CPU it was on, the event's name, its fields."""

    time_ns: int
    cpu: int
    name: str
    values: dict[str, int | bytes]


class DamageError(Exception):
    """The pages are not such as a kernel writes: what is wrong, and at which byte."""

    def __init__(self, cause: str, byte: int) -> None:
        super().__init__(cause)
        self.cause, self.byte = cause, byte


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
    at = 0
    while at < len(data):
        if at + PAGE_HEADER > len(data) or (page and at + page > len(data)):
            raise DamageError("not a whole page", at)
        now, commit = struct.unpack_from("<QQ", data, at)
        begin, size = at + PAGE_HEADER, commit & COMMIT_MASK
        used = used_bytes(commit)
        if size % 4 or used > (page or len(data) - at):
            raise DamageError("the page claims to be longer than a page", at)
        if commit & (MISSED | MISSED_STORED):
            count = struct.unpack_from("<Q", data, begin + size)[0] if commit & MISSED_STORED else -1
            lost.append((len(places), count))
        _walk_page(np.frombuffer(data, "<u4", size // 4, begin).tolist(), begin, now, places, lengths, times)
        at += page or used
    bytes_ = np.frombuffer(data, np.uint8)
    where, length = np.array(places, np.int64), np.array(lengths, np.int64)
    number = bytes_[where[:, None] + np.arange(2)].view("<u2")[:, 0] if places else np.empty(0, np.uint16)
    return Walked(bytes_, where, length, np.array(times, np.uint64), number, tuple(lost))


def _walk_page(words: list[int], begin: int, now: int, places: list[int], lengths: list[int], times: list[int]) -> None:
    """Append the events in a page's words; its first byte is at `begin`, its time `now`."""
    at, end = 0, len(words)
    while at < end:
        kind, delta = words[at] & 31, words[at] >> 5
        if 0 < kind <= MAX_DATA:
            first, length, at = at + 1, kind, at + 1 + kind
        elif at + 1 >= end and not (kind == PADDING and not delta):
            raise DamageError("the event is cut off", begin + 4 * at)
        elif kind in (TIME_EXTEND, TIME_STAMP):
            stamp = (words[at + 1] << 27) + delta
            # An absolute time has 59 bits; the rest is the page's.
            now = now + stamp if kind == TIME_EXTEND else now & ~((1 << 59) - 1) | stamp
            at += 2
            continue
        elif kind == PADDING:
            if not delta:  # to the end of the page
                break
            now += delta
            at += 1 + (words[at + 1] + 3) // 4
            continue
        else:
            first, length = at + 2, (words[at + 1] - 1) // 4
            at = first + length
        now += delta
        if at > end or length < 1:
            raise DamageError("the event is cut off", begin + 4 * (first - 1))
        if now >> 63:
            raise DamageError("a time beyond any clock", begin + 4 * (first - 1))
        places.append(begin + 4 * first)
        lengths.append(4 * length)
        times.append(now)


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
