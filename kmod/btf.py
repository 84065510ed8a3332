# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Read a kernel's BTF (its types, in the kernel's own compact form) and write C declarations from it.

Source: Documentation/bpf/btf.rst. Nothing but the standard library, because DKMS runs this on machines that have no more.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, PROTO = range(1, 14)
VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(14, 20)
EXTRA_WORDS = {INT: 1, ARRAY: 3, VAR: 1, DECL_TAG: 1}
ROW_WORDS = {STRUCT: 3, UNION: 3, ENUM: 2, PROTO: 2, DATASEC: 3, ENUM64: 3}
MAGICS = {b"\x1f\x8b\x08": ("gzip", "-dc"), b"\xfd7zXZ\0": ("xz", "-dc"), b"\x28\xb5\x2f\xfd": ("zstd", "-dcq"),
          b"\x02\x21\x4c\x18": ("lz4", "-dcq")}  # fmt: skip


class BtfError(Exception):
    """No BTF, or not what was expected: one line."""


@dataclass(frozen=True)
class Type:
    """One type: `info` is its size or the type that it refers to; `rows` are members, enumerators or parameters."""

    kind: int
    name: str
    info: int
    flag: bool
    extra: tuple[int, ...]
    rows: list[tuple[int, ...]] = field(repr=False)


class Btf:
    """All types of a kernel; of a module, with those of its kernel (`base`), whose numbers and names it goes on from."""

    def __init__(self, data: bytes, base: Btf | None = None) -> None:
        if len(data) < 24 or data[:2] != b"\x9f\xeb":
            raise BtfError("not BTF data")
        header, type_at, type_bytes, string_at, string_bytes = struct.unpack_from("<5I", data, 4)
        self._strings: bytes = (base._strings if base else b"") + data[header + string_at : header + string_at + string_bytes]
        self.types: list[Type] = list(base.types) if base else [Type(0, "void", 0, False, (), [])]
        words = struct.unpack_from(f"<{type_bytes // 4}I", data, header + type_at)
        at = 0
        while at < len(words):
            name, info, size = words[at : at + 3]
            at += 3
            kind, count = info >> 24 & 0x1F, info & 0xFFFF
            extra = words[at : at + EXTRA_WORDS.get(kind, 0)]
            at += len(extra)
            width = ROW_WORDS.get(kind, 0)
            rows = [words[i : i + width] for i in range(at, at + width * count, width)] if width else []
            at += width * count
            self.types.append(Type(kind, self.string(name), size, bool(info >> 31), extra, rows))

    def string(self, offset: int) -> str:
        """The string at `offset` of the string section."""
        return self._strings[offset : self._strings.index(b"\0", offset)].decode()

    @cached_property
    def _by_name(self) -> dict[tuple[int, str], int]:
        return {(type_.kind, type_.name): number for number, type_ in reversed(list(enumerate(self.types)))}

    def find(self, kind: int, name: str) -> Type:
        """The first type of that kind and name."""
        try:
            return self.types[self._by_name[kind, name]]
        except KeyError:
            raise BtfError(f"the kernel's BTF has no {name}") from None

    def has(self, kind: int, name: str) -> bool:
        """Is there a type of that kind and name?"""
        return (kind, name) in self._by_name

    def members(self, type_: Type) -> list[tuple[str, int, int, int]]:
        """Members of a struct: name, type, offset in bits, width in bits (0 = not a bit field)."""
        return [
            (self.string(name), number, at & 0xFFFFFF if type_.flag else at, at >> 24 if type_.flag else 0)
            for name, number, at in type_.rows
        ]

    def offsets(self, name: str) -> dict[str, int]:
        """Byte offsets of a struct's members by name, with those of unnamed structures within it."""
        found: dict[str, int] = {}
        inside = [(self.find(STRUCT, name), 0)]
        while inside:
            type_, base = inside.pop()
            for member, number, at, _ in self.members(type_):
                if member:
                    found[member] = (base + at) // 8
                elif self.types[number].kind in (STRUCT, UNION):
                    inside.append((self.types[number], base + at))
        return found

    def declare(self, number: int, name: str = "") -> str:
        """The C declaration of something of that type, e.g. "char name[16]"; without a name, the type itself."""
        type_ = self.types[number]
        if type_.kind == 0:
            return f"void {name}".rstrip()
        if type_.kind in (INT, TYPEDEF, FLOAT):
            return f"{type_.name} {name}".rstrip()
        if type_.kind in (STRUCT, UNION, ENUM, ENUM64, FWD):
            word = {STRUCT: "struct", ENUM: "enum", ENUM64: "enum"}.get(type_.kind, "struct")
            if type_.kind == UNION or (type_.kind == FWD and type_.flag):
                word = "union"
            if not type_.name:
                raise BtfError(f"anonymous {word} in a private declaration: {name or 'no name'}")
            return f"{word} {type_.name} {name}".rstrip()
        if type_.kind == PTR:
            inner = self._pointed(type_.info)
            wrap = self.types[inner].kind in (PROTO, ARRAY)
            return self.declare(inner, f"(*{name})" if wrap else f"*{name}")
        if type_.kind in (CONST, VOLATILE, RESTRICT):
            word = {CONST: "const", VOLATILE: "volatile", RESTRICT: "restrict"}[type_.kind]
            inner = self._strip_tags(type_.info)
            if self.types[inner].kind == PTR:
                return self.declare(inner, f"{word} {name}".rstrip())
            return f"{word} {self.declare(inner, name)}"
        if type_.kind == ARRAY:
            element, _, count = type_.extra
            return self.declare(element, f"{name}[{count}]")
        if type_.kind == PROTO:
            return self.declare(type_.info, f"{name}({self._parameters(type_)})")
        if type_.kind == TYPE_TAG:
            return self.declare(type_.info, name)
        raise BtfError(f"cannot declare {name}: BTF kind {type_.kind}")

    def _strip_tags(self, number: int) -> int:
        while self.types[number].kind == TYPE_TAG:
            number = self.types[number].info
        return number

    def _pointed(self, number: int) -> int:
        """What a pointer points to; of a function, its type, whatever name it has."""
        number = follow = self._strip_tags(number)
        while self.types[follow].kind == TYPEDEF:
            follow = self._strip_tags(self.types[follow].info)
        return follow if self.types[follow].kind == PROTO else number

    def _parameters(self, proto: Type) -> str:
        return ", ".join(self.declare(number) for _, number in proto.rows) or "void"

    def signature(self, number: int) -> str:
        """The type of a member; of a pointer to a function, "int (struct request_queue *, bool)"."""
        if self.types[number].kind == PTR:
            proto = self.types[self._pointed(self.types[number].info)]
            if proto.kind == PROTO:
                return f"{self.declare(proto.info)} ({self._parameters(proto)})"
        return self.declare(number)

    def function(self, name: str) -> str:
        """The signature of a function of the kernel."""
        proto = self.types[self.find(FUNC, name).info]
        return f"{self.declare(proto.info)} ({self._parameters(proto)})"

    def prototype(self, function: str) -> str:
        """The C prototype of a function of the kernel."""
        return self.declare(self.find(FUNC, function).info, function)


def section(elf: bytes, wanted: str) -> bytes | None:
    """A section of a 64-bit little-endian ELF file; None if it has none of that name."""
    if elf[:6] != b"\x7fELF\x02\x01":
        return None
    table, size, count, names = (
        struct.unpack_from("<Q", elf, 40)[0],
        *struct.unpack_from("<HHH", elf, 58),
    )
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    at = headers[names][4]
    for name, _, _, _, offset, length in headers:
        if elf[at + name : elf.index(b"\0", at + name)].decode() == wanted:
            return elf[offset : offset + length]
    return None


def unpack_image(image: bytes) -> bytes:
    """The ELF file inside a compressed kernel image."""
    missing = []
    for magic, (tool, *options) in MAGICS.items():
        for match in re.finditer(re.escape(magic), image):
            program = shutil.which(tool)
            if not program:
                missing.append(tool)
                break
            # What follows the packed kernel makes the tool complain, after it has written all of it.
            done = subprocess.run([program, *options], input=image[match.start() :], capture_output=True, check=False)
            if done.stdout[:4] == b"\x7fELF":
                return done.stdout
    hint = f" ({', '.join(missing)} not installed)" if missing else ""
    raise BtfError(f"cannot unpack the kernel image{hint}")


def load(path: Path) -> Btf:
    """BTF from a raw file (/sys/kernel/btf/vmlinux), an ELF file (vmlinux) or a boot image (vmlinuz)."""
    data = path.read_bytes()
    raw = data[:2] == b"\x9f\xeb"
    if not raw and data[:4] != b"\x7fELF":
        data = unpack_image(data)
    try:
        found = data if raw else section(data, ".BTF")
        if found is None:
            raise BtfError(f"{path}: no BTF in it")
        return Btf(found)
    except (struct.error, ValueError, IndexError) as error:
        raise BtfError(f"{path}: damaged: {error}") from None
