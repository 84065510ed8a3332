# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The archive of a recording while it is written (headwaiter/base/archives.py says what is in it).

It is packed only when the recording is over, because that would cost more than reading the kernel's buffers does. What has been
written is whole at any time, and on a full disk the last files make room for the end.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Mapping
from errno import EDQUOT, EFBIG, ENOSPC
from io import BytesIO
from pathlib import Path
from typing import Any

import zstandard

from headwaiter.base.archives import BEGIN, END

_LEVEL = 3
_FULL = (ENOSPC, EDQUOT, EFBIG)


class FullError(Exception):
    """The disk that the archive is on is full; the archive is as it was before the file that did not fit."""


class Archive:
    """An archive into a file that is there; add() appends a file, end() the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb", buffering=0)
        self._ends = [0]
        self.bytes = 0

    def begin(self, what: Mapping[str, Any]) -> None:
        """The first file, by which the archive is known."""
        self.add(BEGIN, _document(what))

    def add(self, name: str, content: bytes | bytearray) -> None:
        """Append a file. FullError if there is no room for it."""
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        self._append(entry.tobuf(tarfile.USTAR_FORMAT), content, bytes(-len(content) % tarfile.BLOCKSIZE))

    def end(self, what: Mapping[str, Any]) -> None:
        """Append the last file, and take away those before it for as long as there is no room. FullError if that is no help."""
        content = _document(what)
        while True:
            try:
                self.add(END, content)
                self._append(bytes(2 * tarfile.BLOCKSIZE))
                return
            except FullError:
                if len(self._ends) < 3:
                    raise
                self._ends.pop()
                self._cut()

    def pack(self, packed: Path) -> None:
        """Compress it into another file, once it has ended. OSError if there is no room for that."""
        with packed.open("wb") as out, self._path.open("rb") as plain:
            zstandard.ZstdCompressor(level=_LEVEL).copy_stream(plain, out, size=self.bytes)

    def pack_changed(self, packed: Path, change: Callable[[str, bytes], bytes]) -> None:
        """Compress it with another content for each of its files, by name and content. OSError if there is no room for that."""
        compressor = zstandard.ZstdCompressor(level=_LEVEL)
        with (
            packed.open("wb") as out,
            compressor.stream_writer(out) as into,
            tarfile.open(self._path) as plain,
            tarfile.open(fileobj=into, mode="w|", format=tarfile.USTAR_FORMAT) as changed,
        ):
            for entry in plain:
                if file := plain.extractfile(entry):
                    content = change(entry.name, file.read())
                    entry.size = len(content)
                    changed.addfile(entry, BytesIO(content))

    def close(self) -> None:
        """Close the file; end() ends the archive."""
        self._file.close()

    def _append(self, *parts: bytes | bytearray) -> None:
        try:
            for part in parts:
                with memoryview(part) as whole:
                    done = 0
                    while done < len(whole):
                        done += self._file.write(whole[done:]) or 0
        except OSError as e:
            self._cut()
            if e.errno in _FULL:
                raise FullError(os.strerror(e.errno)) from None
            raise
        self._ends.append(self._ends[-1] + sum(map(len, parts)))
        self.bytes = self._ends[-1]

    def _cut(self) -> None:
        os.ftruncate(self._file.fileno(), self._ends[-1])
        self._file.seek(self._ends[-1])


def _document(what: Mapping[str, Any]) -> bytes:
    """JSON, as text that ends."""
    return json.dumps(what).encode() + b"\n"
