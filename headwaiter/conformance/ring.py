# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Read the kernel's trace ring buffer as it is (per_cpu/cpuN/trace_pipe_raw): no rounding of times, no text.

Source of the format: Documentation/trace and events/header_page, events/header_event of tracefs, 6.1 to 6.12 on x86-64.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from headwaiter.errors import Problem

PAGE = 4096
PAGE_HEADER = 16
MAX_DATA = 28  # largest type_len that is a length in words
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
FIELD = re.compile(r"field:(?P<decl>.*?);\s*offset:(?P<offset>\d+);\s*size:(?P<size>\d+);\s*signed:(?P<signed>\d);")
CODE = {(1, 0): "B", (1, 1): "b", (2, 0): "H", (2, 1): "h", (4, 0): "I", (4, 1): "i", (8, 0): "Q", (8, 1): "q"}


@dataclass(frozen=True)
class Format:
    """What tracefs says of an event: its number, and (offset, struct code) of its fields by name."""

    name: str
    number: int
    fields: dict[str, tuple[int, str]]

    @classmethod
    def parse(cls, text: str) -> Format:
        """From the event's `format` file."""
        name = re.search(r"^name: (\S+)", text, re.M)
        number = re.search(r"^ID: (\d+)", text, re.M)
        if not name or not number:
            raise Problem("trace: an event's format has no name or ID")
        fields = {}
        for m in FIELD.finditer(text):
            word = m["decl"].split()[-1]
            size = int(m["size"])
            array = re.search(r"\[(\d*)\]$", word)
            code = f"{size}s" if array else CODE[size, int(m["signed"])]
            fields[word.split("[")[0]] = (int(m["offset"]), "<" + code)
        return cls(name[1], int(number[1]), fields)


@dataclass(frozen=True)
class Event:
    """One event: ns of the trace clock, the CPU it was on, the event's name, its fields."""

    time_ns: int
    cpu: int
    name: str
    values: dict[str, int | bytes]


def events(data: bytes, cpu: int, formats: dict[int, Format]) -> Iterator[Event]:
    """The events of one CPU's buffer in their order; events of other numbers are passed over.

    Problem when pages were lost or are damaged.
    """
    if len(data) % PAGE:
        raise Problem(f"trace of CPU {cpu}: {len(data)} bytes are not whole pages")
    for page in range(0, len(data), PAGE):
        now, commit = struct.unpack_from("<QQ", data, page)
        if commit >> 30:
            raise Problem(f"trace of CPU {cpu}: events were lost before byte {page}")
        at = page + PAGE_HEADER
        end = at + (commit & 0xFFFFF)
        if end > page + PAGE:
            raise Problem(f"trace of CPU {cpu}: the page at byte {page} claims to be longer than a page")
        while at < end:
            head = struct.unpack_from("<I", data, at)[0]
            kind, delta = head & 31, head >> 5
            if kind in (TIME_EXTEND, TIME_STAMP):
                high = struct.unpack_from("<I", data, at + 4)[0]
                stamp = (high << 27) + delta
                # An absolute time has 59 bits; the rest is the page's.
                now = now + stamp if kind == TIME_EXTEND else now & ~((1 << 59) - 1) | stamp
                at += 8
                continue
            if kind == PADDING:
                if not delta:  # to the end of the page
                    break
                at += 4 + struct.unpack_from("<I", data, at + 4)[0]
                now += delta
                continue
            now += delta
            body, length = (at + 4, 4 * kind) if kind else (at + 8, struct.unpack_from("<I", data, at + 4)[0] - 4)
            if body + length > end:
                raise Problem(f"trace of CPU {cpu}: the event at byte {at} is cut off")
            number = struct.unpack_from("<H", data, body)[0]
            if number in formats:
                f = formats[number]
                yield Event(
                    now, cpu, f.name, {n: struct.unpack_from(code, data, body + o)[0] for n, (o, code) in f.fields.items()}
                )
            at = body + (length + 3 & ~3)
