# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel's trace ring buffer: what its pages hold, and what tracefs says of an event's fields.

Source: Documentation/trace and events/header_page, events/header_event of tracefs, 6.1 to 6.18 on x86-64. The recorder reads
pages too, so this needs nothing but Python's own library.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from headwaiter.base.archives import COMMIT_MASK, PAGE_HEADER, used_bytes
from headwaiter.base.errors import Problem

_MAX_DATA = 28  # largest type_len that is a length in words
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
_FIELD = re.compile(r"field:(?P<decl>[^;]*);\s*offset:(?P<offset>\d{1,5});\s*size:(?P<size>\d{1,5});\s*signed:(?P<signed>[01]);")
_CODE = {(1, 0): "B", (1, 1): "b", (2, 0): "H", (2, 1): "h", (4, 0): "I", (4, 1): "i", (8, 0): "Q", (8, 1): "q"}
_ELSEWHERE = "__data_loc "
"""Such a field says where in the record its text is, and how long."""


@dataclass(frozen=True)
class EventFormat:
    """An event as tracefs describes it: its number, (offset, struct code) of its fields by name.

    elsewhere: fields that only say where in the record their text is, and how long.
    """

    name: str
    number: int
    fields: dict[str, tuple[int, str]]
    elsewhere: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> EventFormat:
        """From the event's `format` file."""
        name = re.search(r"^name: (\S+)", text, re.M)
        number = re.search(r"^ID: (\d{1,5})$", text, re.M)
        if not name or not number:
            raise Problem("trace: an event's format has no name or ID")
        fields, elsewhere = {}, set()
        for m in _FIELD.finditer(text):
            word = (m["decl"].split() or [""])[-1]
            size = int(m["size"])
            array = re.search(r"\[(\d*)\]$", word)
            code = f"{size}s" if array else _CODE.get((size, int(m["signed"])), f"{size}s")
            field = word.split("[")[0]
            fields[field] = (int(m["offset"]), "<" + code)
            if m["decl"].lstrip().startswith(_ELSEWHERE):
                elsewhere.add(field)
        return cls(name[1], int(number[1]), fields, frozenset(elsewhere))


class DamageError(Exception):
    """The pages are not such as a kernel writes: what is wrong, and at which byte."""

    def __init__(self, cause: str, byte: int) -> None:
        super().__init__(cause)
        self.cause, self.byte = cause, byte


def pages(data: bytes | bytearray, page: int | None) -> Iterator[tuple[int, int, int]]:
    """(where it begins, its time, its commit) of each page. `page`: bytes of each; None: without each one's unused end.

    DamageError if they are none.
    """
    at = 0
    while at < len(data):
        if at + PAGE_HEADER > len(data) or (page and at + page > len(data)):
            raise DamageError("not a whole page", at)
        now, commit = struct.unpack_from("<QQ", data, at)
        used = used_bytes(commit)
        if (commit & COMMIT_MASK) % 4 or used > (page or len(data) - at):
            raise DamageError("the page claims to be longer than a page", at)
        yield at, now, commit
        at += page or used


def walk_page(words: list[int], begin: int, now: int, places: list[int], lengths: list[int], times: list[int]) -> None:
    """Append the records in a page's words: where, how many bytes, when. Its first byte is at `begin`, its time `now`.

    DamageError if they are none.
    """
    at, end = 0, len(words)
    while at < end:
        kind, delta = words[at] & 31, words[at] >> 5
        if 0 < kind <= _MAX_DATA:
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
