# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Make BTF, the type information of a kernel, for kernels that there are not.

Types are written as in C ("const struct bio *", "int (struct bio *, bool)"). A struct that is referred to and never defined
is empty. Source of the format: Documentation/bpf/btf.rst.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

INT, PTR, ARRAY, STRUCT, ENUM, TYPEDEF, CONST, FUNC, PROTO = 1, 2, 3, 4, 6, 8, 10, 12, 13
SIZES = {"bool": 1, "char": 1, "int": 4, "unsigned int": 4, "long unsigned int": 8}
TYPEDEFS = {"size_t": "long unsigned int", "ssize_t": "long unsigned int", "u64": "long unsigned int",
            "blk_opf_t": "unsigned int", "blk_insert_t": "unsigned int", "gfp_t": "unsigned int"}  # fmt: skip


class Writer:
    """Collects types; `data` is the whole blob."""

    def __init__(self) -> None:
        self._texts = bytearray(b"\0")
        self._types: list[bytes] = []
        self._numbers: dict[str, int] = {"void": 0}
        self._sizes: dict[str, int] = {}

    def _text(self, text: str) -> int:
        at = len(self._texts)
        self._texts += text.encode() + b"\0"
        return at

    def _add(self, kind: int, name: str, size: int, rows: Sequence[tuple[int, ...]] | None = None, extra: bytes = b"") -> int:
        at = self._text(name) if name else 0
        body = b"".join(struct.pack(f"<{len(row)}I", *row) for row in rows or [])
        self._types.append(struct.pack("<III", at, kind << 24 | len(rows or []), size) + extra + body)
        return len(self._types)

    def type(self, text: str) -> int:
        """The number of a type; it is added if it is new."""
        if text not in self._numbers:
            self._numbers[text] = self._new(text)
        return self._numbers[text]

    def _new(self, text: str) -> int:
        if match := re.fullmatch(r"(.+?) \((.*)\)", text):
            return self._add(PTR, "", self._proto(match[1], match[2]))
        if match := re.fullmatch(r"(.+?)\[(\d+)\]", text):
            extra = struct.pack("<III", self.type(match[1].rstrip()), self.type("int"), int(match[2]))
            return self._add(ARRAY, "", 0, extra=extra)
        if text.endswith("*"):
            return self._add(PTR, "", self.type(text[:-1].rstrip()))
        if text.startswith("const "):
            return self._add(CONST, "", self.type(text[6:]))
        if text.startswith("struct "):
            return self._add(STRUCT, text[7:], 0)
        if text.startswith("enum "):
            return self._add(ENUM, text[5:], 4)
        if text in TYPEDEFS:
            return self._add(TYPEDEF, text, self.type(TYPEDEFS[text]))
        return self._add(INT, text, SIZES[text], extra=struct.pack("<I", SIZES[text] * 8))

    def _proto(self, result: str, parameters: str) -> int:
        rows = [(0, self.type(one)) for one in parameters.split(", ") if one != "void"]
        return self._add(PROTO, "", self.type(result), rows)

    def _size(self, text: str) -> int:
        if match := re.fullmatch(r"(.+?)\[(\d+)\]", text):
            return self._size(match[1].rstrip()) * int(match[2])
        if text.endswith(("*", ")")):
            return 8
        if text.startswith("struct "):
            return self._sizes.get(text[7:], 0)
        return SIZES[TYPEDEFS.get(text, text)]

    def define(self, name: str, members: dict[str, str], moved: dict[str, int] | None = None) -> None:
        """A struct laid out as a compiler does, but for members `moved` by so many bytes."""
        rows = []
        end = 0
        for member, text in members.items():
            size = self._size(text)
            end += -end % min(size or 1, 8)
            rows.append((self._text(member), self.type(text), 8 * (end + (moved or {}).get(member, 0))))
            end += size
        self._sizes[name] = end + -end % 8
        number = self.type(f"struct {name}")  # what may have been referred to already
        self._add(STRUCT, name, self._sizes[name], rows)
        self._types[number - 1] = self._types.pop()

    def enumerate(self, name: str, values: list[str]) -> None:
        """An enumeration from 0."""
        rows = [(self._text(value), number) for number, value in enumerate(values)]
        self._numbers[f"enum {name}"] = self._add(ENUM, name, 4, rows)

    def function(self, name: str, signature: str) -> None:
        """A function of the kernel."""
        match = re.fullmatch(r"(.+?) \((.*)\)", signature)
        assert match
        self._add(FUNC, name, self._proto(match[1], match[2]))

    @property
    def data(self) -> bytes:
        """The blob."""
        types = b"".join(self._types)
        head = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(self._texts))
        return head + types + bytes(self._texts)


def move_member(data: bytes, name: str, member: str, by_bytes: int) -> bytes:
    """Return the BTF with a member of struct `name` elsewhere."""
    fixed, each = {1: 4, 3: 12, 14: 4, 17: 4}, {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
    header, type_at, type_bytes, text_at = struct.unpack_from("<4I", data, 4)

    def text(offset: int) -> str:
        start = header + text_at + offset
        return data[start : data.index(b"\0", start)].decode()

    at = header + type_at
    while at < header + type_at + type_bytes:
        called, info = struct.unpack_from("<II", data, at)
        kind, count = info >> 24 & 31, info & 0xFFFF
        for row in range(at + 12, at + 12 + 12 * count, 12) if kind == STRUCT and text(called) == name else ():
            member_name, _, bit = struct.unpack_from("<3I", data, row)
            if text(member_name) == member:
                return data[: row + 8] + struct.pack("<I", bit + 8 * by_bytes) + data[row + 12 :]
        at += 12 + fixed.get(kind, 0) + count * each.get(kind, 0)
    raise KeyError(f"{name}.{member}")
