# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Mutations: of text by lines, fields and numbers; of binary records by fields; of either by bytes.

All draw from one random.Random, so that a seed tells everything.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

LARGEST_INPUT = 1 << 14

_NUMBER = re.compile(rb"(?:0x)?\d+")
_FIELD = re.compile(rb"[^\s,;=:+/\[\]{}\"]+")
_POWERS = (7, 8, 15, 16, 24, 31, 32, 33, 40, 52, 53, 55, 56, 61, 62, 63, 64, 65, 80)
BOUNDARIES = tuple(dict.fromkeys((
    *(str((1 << p) + d).encode() for p in _POWERS for d in (-1, 0, 1)),
    *(str(-(1 << p) + d).encode() for p in (0, 31, 63) for d in (-1, 0, 1)),
    b"0", b"1", b"2", b"-0", b"00", b"0x0", b"0xffffffffffffffff", b"-0x1", b"9" * 19, b"9" * 25, b"9" * 70, b"7" * 5000,
    b"1e3", b"1e308", b"-1e308", b"1e309", b"1e-999", b"1e9999999999", b"0.5", b".5", b"5.", b"1.5e3", b"0.0000000001",
    b"0." + b"1" * 400, b"nan", b"-nan", b"inf", b"-inf", b"NaN", b"Infinity", b"1_000", b"\xd9\xa3", b"+1", b"", b"-", b".",
)))  # fmt: skip
ODDITIES = (
    b"\0", b"\x1b[31m", b"\x07", b"\x7f", b"\x80", b"\xff", b"\xff\xfe", b"\xc2\x85", b"\xe2\x80\xa8", b"\xed\xa0\x80",
    "é".encode(), "日本".encode(), b"[/b]", b"[bold]", b":smile:", b"%s%n", b"'", b'"', b"\\", b"`", b"$", b"${HOME}", b"..",
    b"/", b"/dev/zero",
    b"x" * 300, b"y" * 5000, b"(" * 200, b"[" * 3000, b"{" * 200, b"#", b"!", b"~", b"\r", b"\r\n", b"\n", b"\n\n",
    b"\t", b"\x0b", b"\x0c", b"\x1c", b" ", b",", b";", b":", b"=", b"+", b"|", b".", b"true", b"none", b"idle", b"R", b"W",
)  # fmt: skip


@dataclass(frozen=True)
class Records:
    """A binary format. `cut(data)` gives the records; fields are (offset, struct format) within one."""

    cut: Callable[[bytes], list[bytes]]
    fields: Sequence[tuple[int, str]]


class Mutator:
    """Makes inputs from inputs. dictionary: words of the format, which stand for fields."""

    def __init__(self, rng: Random, dictionary: Sequence[bytes] = (), records: Records | None = None) -> None:
        self.rng = rng
        self.dictionary = tuple(dictionary)
        self.records = records
        text = (
            self._number,
            self._number,
            self._number,
            self._field,
            self._field,
            self._field,
            self._line,
            self._line,
            self._line,
            self._oddity,
            self._bytes,
            self._bits,
        )
        binary = (
            self._record,
            self._record,
            self._record,
            self._record_field,
            self._record_field,
            self._record_field,
            self._record_field,
            self._bytes,
            self._bits,
        )
        self.ways = binary if records else text

    def mutate(self, data: bytes, other: bytes) -> bytes:
        """A few changes to data; `other` is an input to splice with."""
        rng = self.rng
        if rng.random() < 0.1:
            data = self._splice(data, other)
        for _ in range(1 + min(5, int(rng.expovariate(0.8)))):
            data = rng.choice(self.ways)(data, other)
        return data[:LARGEST_INPUT]

    def _splice(self, data: bytes, other: bytes) -> bytes:
        rng = self.rng
        if self.records:
            mine, theirs = self.records.cut(data), self.records.cut(other)
            return b"".join(mine[: rng.randint(0, len(mine))] + theirs[rng.randint(0, len(theirs)) :])
        mine, theirs = data.splitlines(True), other.splitlines(True)
        return b"".join(mine[: rng.randint(0, len(mine))] + theirs[rng.randint(0, len(theirs)) :])

    def _token(self) -> bytes:
        rng = self.rng
        kind = rng.random()
        if self.dictionary and kind < 0.5:
            return rng.choice(self.dictionary)
        return rng.choice(BOUNDARIES) if kind < 0.85 else rng.choice(ODDITIES)

    def _number(self, data: bytes, other: bytes) -> bytes:
        """Change a number: to a boundary, by a little, by a factor, to that of another place."""
        rng = self.rng
        places = [m.span() for m in _NUMBER.finditer(data)]
        if not places:
            return self._oddity(data, other)
        begin, end = rng.choice(places)
        old = data[begin:end]
        match rng.randrange(7):
            case 0 | 1:
                new = rng.choice(BOUNDARIES)
            case 2:
                new = (
                    str(max(0, int(old[:18], 16 if old[:2] == b"0x" else 10) + rng.choice((-8, -2, -1, 1, 2, 8)))).encode()
                    if len(old) > 2 or old.isdigit()
                    else b"1"
                )
            case 3:
                new = b"-" + old
            case 4:
                new = old + rng.choice((b"0", b"00", b"000000", b".5", b".", b"e3", b"k", b"%", old))
            case 5:
                a, b = rng.choice(places)
                new = data[a:b]
            case _:
                new = str(rng.randrange(1 << rng.randrange(1, 66))).encode()
        return data[:begin] + new + data[end:]

    def _field(self, data: bytes, other: bytes) -> bytes:
        """Replace, drop, double or move a field."""
        rng = self.rng
        places = [m.span() for m in _FIELD.finditer(data)]
        if not places:
            return self._oddity(data, other)
        begin, end = rng.choice(places)
        a, b = rng.choice(places)
        match rng.randrange(6):
            case 0 | 1:
                return data[:begin] + self._token() + data[end:]
            case 2:
                return data[:begin] + data[end:]
            case 3:
                return data[:end] + data[end : end + 1] + data[begin:end] + data[end:]
            case 4:
                return data[:begin] + data[a:b] + data[end:]
            case _:
                where = rng.choice((begin, end))
                return data[:where] + self._token() + data[where:]

    def _line(self, data: bytes, other: bytes) -> bytes:
        """Drop, double, move, shuffle lines, or take some from another input."""
        rng = self.rng
        lines = data.splitlines(True)
        if len(lines) < 2:
            return self._field(data, other)
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(7):
            case 0:
                del lines[i]
            case 1:
                lines.insert(j, lines[i])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case 3:
                i, j = min(i, j), max(i, j) + 1
                part = lines[i:j]
                rng.shuffle(part)
                lines[i:j] = part
            case 4:
                theirs = other.splitlines(True)
                if theirs:
                    k = rng.randrange(len(theirs))
                    lines[i:i] = theirs[k : k + rng.randint(1, 4)]
            case 5:
                lines[i] = lines[i].rstrip(b"\r\n")
            case _:
                lines[i:i] = [lines[i]] * rng.choice((2, 5, 40))
        return b"".join(lines)

    def _oddity(self, data: bytes, other: bytes) -> bytes:
        at = self.rng.randint(0, len(data))
        return data[:at] + self.rng.choice(ODDITIES) + data[at:]

    def _bytes(self, data: bytes, other: bytes) -> bytes:
        """Cut, drop, double, overwrite a stretch."""
        rng = self.rng
        begin = rng.randint(0, len(data))
        end = min(len(data), begin + int(rng.expovariate(0.1)))
        match rng.randrange(6):
            case 0:
                return data[:begin]
            case 1:
                return data[:begin] + data[end:]
            case 2:
                return data[:end] + data[begin:]
            case 3:
                return data[:begin] + rng.randbytes(end - begin) + data[end:]
            case 4:
                return data[:begin] + bytes([rng.choice((0, 0xFF, 0x20, 0x0A))]) * (end - begin) + data[end:]
            case _:
                return data[:begin] + rng.randbytes(rng.randint(1, 4)) + data[begin:]

    def _bits(self, data: bytes, other: bytes) -> bytes:
        if not data:
            return data
        out = bytearray(data)
        for _ in range(self.rng.choice((1, 1, 1, 2, 4))):
            out[self.rng.randrange(len(out))] ^= 1 << self.rng.randrange(8)
        return bytes(out)

    def _record(self, data: bytes, other: bytes) -> bytes:
        """Drop, double, move, shuffle records, or take one from another input."""
        assert self.records
        rng = self.rng
        records = self.records.cut(data)
        if not records:
            return self._bytes(data, other)
        i, j = rng.randrange(len(records)), rng.randrange(len(records))
        match rng.randrange(6):
            case 0:
                del records[i]
            case 1:
                records.insert(j, records[i])
            case 2:
                records[i], records[j] = records[j], records[i]
            case 3:
                rng.shuffle(records)
            case 4:
                theirs = self.records.cut(other)
                if theirs:
                    records.insert(i, rng.choice(theirs))
            case _:
                records[i:i] = [records[i]] * rng.choice((2, 5, 20))
        return b"".join(records)

    def _record_field(self, data: bytes, other: bytes) -> bytes:
        """Set a field of a record: to a boundary, near to what it was, to another record's, one bit."""
        assert self.records
        rng = self.rng
        records = self.records.cut(data)
        if not records:
            return self._bits(data, other)
        i = rng.randrange(len(records))
        offset, form = rng.choice(self.records.fields)
        size = struct.calcsize(form)
        record = records[i]
        if len(record) < offset + size:
            return self._bits(data, other)
        mask = (1 << 8 * size) - 1
        old = int(struct.unpack_from(form, record, offset)[0])
        match rng.randrange(5):
            case 0:
                new = rng.choice((0, 1, 2, mask, mask - 1, mask >> 1, (mask >> 1) + 1, mask >> 2, rng.getrandbits(8 * size)))
            case 1:
                new = old + rng.choice((-512, -8, -1, 1, 8, 512))
            case 2:
                donor = rng.choice(records)
                new = struct.unpack_from(form, donor, offset)[0] if len(donor) >= offset + size else 0
            case 3:
                new = old ^ 1 << rng.randrange(8 * size)
            case _:
                new = 1 << rng.randrange(8 * size)
        out = bytearray(record)
        struct.pack_into(form, out, offset, new & mask)
        records[i] = bytes(out)
        return b"".join(records)
