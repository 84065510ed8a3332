# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pack a guest's file system: a cpio archive ("newc") whose bytes depend on nothing but what is put in."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.lab.host import need, run

LIBRARY = re.compile(r"(/\S+) \(0x")


class Initramfs:
    """Files by path, written in order of path, all owned by root and of time 0."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes]] = {}

    def add(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Put `data` at `path` (absolute), making the folders above it."""
        path = path.lstrip("/")
        parents = [str(parent) for parent in Path(path).parents]
        for parent in reversed(parents[:-1]):
            self._entries.setdefault(parent, (stat.S_IFDIR | 0o755, b""))
        self._entries[path] = (stat.S_IFREG | (0o755 if executable else 0o644), data)

    def add_folder(self, path: str) -> None:
        """Make an empty folder."""
        self.add(f"{path}/.keep", b"")

    def add_program(self, tool: str) -> None:
        """Copy the host's program `tool` to /bin, with its libraries."""
        source = Path(need(tool))
        self.add(f"bin/{source.name}", source.read_bytes(), executable=True)
        if source.read_bytes()[:4] != b"\x7fELF":
            raise Problem(f"lab: {source} is not a program")
        try:
            libraries = LIBRARY.findall(run(["ldd", str(source)]))
        except Problem:  # ldd fails on a static program
            return
        for library in libraries:
            self.add(library, Path(library).read_bytes(), executable=True)

    def pack(self) -> bytes:
        """The archive."""
        out = bytearray()
        # The kernel opens /dev/console before /init can mount anything.
        nodes = {"dev": (stat.S_IFDIR | 0o755, b""), "dev/console": (stat.S_IFCHR | 0o600, b"")}
        entries = sorted((nodes | self._entries).items())
        for number, (path, (mode, data)) in enumerate(entries, 1):
            self._record(out, number, path, mode, data)
        self._record(out, 0, "TRAILER!!!", 0, b"")
        return bytes(out)

    @staticmethod
    def _record(out: bytearray, number: int, path: str, mode: int, data: bytes) -> None:
        name = path.encode() + b"\0"
        device = (5, 1) if stat.S_ISCHR(mode) else (0, 0)
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
