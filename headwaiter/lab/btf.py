# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the members of a kernel's structures are, from its BTF (the type information in /sys/kernel/btf).

Source of the format: Documentation/bpf/btf.rst of the kernel.
"""

from __future__ import annotations

import struct

from headwaiter.errors import Problem

MAGIC = 0xEB9F
STRUCT, UNION = 4, 5
# Bytes that follow a type's 12, by kind: (fixed, for each of its vlen members).
TAIL = {1: (4, 0), 2: (0, 0), 3: (12, 0), STRUCT: (0, 12), UNION: (0, 12), 6: (0, 8), 7: (0, 0), 8: (0, 0), 9: (0, 0),
        10: (0, 0), 11: (0, 0), 12: (0, 0), 13: (0, 8), 14: (4, 0), 15: (0, 12), 16: (0, 0), 17: (4, 0), 18: (0, 0),
        19: (0, 12)}  # fmt: skip


class Btf:
    """The types of a kernel, or of a module on top of its kernel's."""

    def __init__(self, data: bytes, base: Btf | None = None) -> None:
        """`data` is a whole BTF blob, of a module if there is a base; Problem if it is not one."""
        if len(data) < 24 or struct.unpack_from("<H", data)[0] != MAGIC:
            raise Problem("BTF: this is no type information")
        header, type_at, type_bytes, text_at, text_bytes = struct.unpack_from("<5I", data, 4)
        self._text = data[header + text_at : header + text_at + text_bytes]
        self._data = data
        self._base = base
        self._texts = base.end_of_text if base else 0  # a module's numbers and texts go on where the kernel's end
        self._first = base.count if base else 1
        self._at: list[int] = []  # offset of each type by number
        at, end = header + type_at, header + type_at + type_bytes
        while at < end:
            info = struct.unpack_from("<I", data, at + 4)[0]
            kind, count = info >> 24 & 31, info & 0xFFFF
            if kind not in TAIL:
                raise Problem(f"BTF: type {self.count} is of unknown kind {kind}")
            self._at.append(at)
            at += 12 + TAIL[kind][0] + count * TAIL[kind][1]

    @property
    def count(self) -> int:
        """Number of types, with those of the base and void."""
        return self._first + len(self._at)

    @property
    def end_of_text(self) -> int:
        """Bytes of names, with those of the base."""
        return self._texts + len(self._text)

    def _name(self, offset: int) -> str:
        if self._base and offset < self._texts:
            return self._base._name(offset)
        offset -= self._texts
        return self._text[offset : self._text.index(b"\0", offset)].decode()

    def _add_members(self, number: int, bits: int, out: dict[str, int]) -> None:
        if self._base and number < self._first:
            self._base._add_members(number, bits, out)
        else:
            self._members(self._at[number - self._first], bits, out)

    def _members(self, at: int, base: int, out: dict[str, int]) -> None:
        info = struct.unpack_from("<I", self._data, at + 4)[0]
        for i in range(info & 0xFFFF):
            name, kind, offset = struct.unpack_from("<3I", self._data, at + 12 + 12 * i)
            bits = base + (offset & 0xFFFFFF if info >> 31 else offset)
            if name:
                out[self._name(name)] = bits // 8
            elif kind:  # an unnamed structure: its members count as ours
                self._add_members(kind, bits, out)

    def offsets(self, structure: str) -> dict[str, int]:
        """Byte offsets of the members of `struct STRUCTURE` by name; Problem if there is none."""
        for at in self._at:
            name, info = struct.unpack_from("<2I", self._data, at)
            if info >> 24 & 31 == STRUCT and name and self._name(name) == structure:
                found: dict[str, int] = {}
                self._members(at, 0, found)
                return found
        raise Problem(f"BTF: this kernel has no struct {structure}")
