# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Take names out of a recording: of programs, of one disk among others, of the kernel's build, and when it was.

A program becomes `program-N`, the same in all of the recording. The kernel's own threads keep their names: nobody's program waits
for them, and advice must know that. The kernel does not clear what it does not use of a record, and pieces of names stand there:
only the fields of its format are left. Model, size and settings of disks stay.
"""

from __future__ import annotations

import json
import re
import struct
from typing import Any

from headwaiter.base.archives import BEGIN, COMMIT_MASK, PAGE_HEADER
from headwaiter.base.errors import Problem
from headwaiter.base.ringbuffer import DamageError, EventFormat, pages, walk_page
from headwaiter.base.threads import is_kernel_thread

_FACTS = ("name", "number", "model", "kind", "sectors", "rotational", "zoned", "scheduler", "slaves", "holders", "queue_depth")
_RELEASE = re.compile(r"[\d.]*\d")
_NUMBER_BYTES = 2
"""A record begins with its event's number."""
_Text = tuple[str, slice]
_Parts = tuple[list[slice], list[_Text], list[_Text]]
"""The parts of a record: what stays as it is, texts by their fields, and fields that say where their text is."""
_UNKNOWN: _Parts = ([slice(_NUMBER_BYTES)], [], [])


class Anonymous:
    """Substitutes for one recording's names, file by file, in the order of the archive."""

    def __init__(self) -> None:
        self._formats: dict[int, _Parts] = {}
        self._called: dict[bytes, bytes] = {}

    def file(self, name: str, content: bytes) -> bytes:
        """A file of the archive without names. Problem if it is damaged."""
        if name == BEGIN:
            return _beginning(content)
        if name.startswith("events/"):
            format = EventFormat.parse(content.decode("utf-8", "replace"))
            self._formats[format.number] = _parts(format)
            return content
        if name.startswith("cpu"):
            try:
                return self._pages(bytearray(content))
            except DamageError as e:
                raise Problem(f"{name}: byte {e.byte}: {e.cause}") from None
        return content

    def _pages(self, data: bytearray) -> bytes:
        for at, now, commit in pages(data, None):
            begin, size = at + PAGE_HEADER, commit & COMMIT_MASK
            places: list[int] = []
            lengths: list[int] = []
            words = list(struct.unpack_from(f"<{size // 4}I", data, begin))
            walk_page(words, begin, now, places, lengths, [])
            for place, length in zip(places, lengths, strict=True):
                data[place : place + length] = self._record(bytes(data[place : place + length]))
        return bytes(data)

    def _record(self, old: bytes) -> bytes:
        """A record with the fields of its format, and nothing between them."""
        new = bytearray(len(old))
        kept, texts, elsewhere = self._formats.get(int.from_bytes(old[:_NUMBER_BYTES], "little"), _UNKNOWN)
        for part in kept:
            new[part] = old[part]
        for field, part in texts:
            new[part] = self._text(field, old[part])
        for field, at in elsewhere:
            where = int.from_bytes(old[at], "little")
            part = slice(where & 0xFFFF, (where & 0xFFFF) + (where >> 16))
            new[part] = self._text(field, old[part])
        return bytes(new[: len(old)])

    def _text(self, field: str, value: bytes) -> bytes:
        """A text that is as long, ends where it ended, and names no program."""
        text = value.split(b"\0")[0]
        if field.endswith("comm"):
            text = self._label(text)[: max(len(value) - 1, 0)]
        return text.ljust(len(value), b"\0")

    def _label(self, name: bytes) -> bytes:
        if not name or is_kernel_thread(name.decode("utf-8", "replace")):
            return name
        return self._called.setdefault(name, b"program-%d" % (len(self._called) + 1))


def _parts(format: EventFormat) -> _Parts:
    kept, texts, elsewhere = [slice(_NUMBER_BYTES)], [], []
    for field, (offset, code) in format.fields.items():
        part = slice(offset, offset + struct.calcsize(code))
        if code.endswith("s") and field not in format.elsewhere:
            texts.append((field, part))
            continue
        kept.append(part)
        if field in format.elsewhere:
            elsewhere.append((field, part))
    return kept, texts, elsewhere


def _beginning(content: bytes) -> bytes:
    told: dict[str, Any] = json.loads(content)
    told.pop("began_unix_ns", None)
    release = _RELEASE.match(told["kernel"])
    told["kernel"] = release[0] if release else ""
    for disk in told["disks"]:
        disk["facts"] = {name: disk["facts"][name] for name in _FACTS if name in disk["facts"]}
    return json.dumps(told).encode() + b"\n"
