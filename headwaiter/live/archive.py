# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The archive of a recording while it is written (headwaiter/archives.py says what is in it).

Each file of it is a zstd frame of its own: what has been written is whole at any time, and on a full disk the last frames make
room for the end.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Mapping
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path
from typing import Any

import zstandard

from headwaiter.archives import BEGIN, END

_LEVEL = 1
_FULL = (ENOSPC, EDQUOT, EFBIG)


class FullError(Exception):
    """The disk that the archive is on is full; the archive is as it was before the file that did not fit."""


class Archive:
    """An archive into a file that is there; add() appends a file, end() the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb", buffering=0)
        self._packer = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)
        self._frames = [0]
        self.bytes = 0

    def begin(self, what: Mapping[str, Any]) -> None:
        """The first file, by which the archive is known."""
        self.add(BEGIN, _document(what))

    def add(self, name: str, content: bytes) -> None:
        """Append a file. FullError if there is no room for it."""
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        self._append(entry.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE))

    def end(self, what: Mapping[str, Any]) -> None:
        """Append the last file, and take away those before it for as long as there is no room. FullError if that is no help."""
        content = _document(what)
        while True:
            try:
                self.add(END, content)
                self._append(bytes(2 * tarfile.BLOCKSIZE))
                return
            except FullError:
                if len(self._frames) < 3:
                    raise
                self._frames.pop()
                self._cut()

    def close(self) -> None:
        """Of the file, not of the archive: see end()."""
        self._file.close()

    def _append(self, data: bytes) -> None:
        frame = self._packer.compress(data)
        done = io.BytesIO(frame).getbuffer()
        try:
            while done:
                done = done[self._file.write(done) or 0 :]
        except OSError as e:
            self._cut()
            if e.errno in _FULL:
                raise FullError(os.strerror(e.errno)) from None
            raise
        self._frames.append(self._frames[-1] + len(frame))
        self.bytes = self._frames[-1]

    def _cut(self) -> None:
        os.ftruncate(self._file.fileno(), self._frames[-1])
        self._file.seek(self._frames[-1])


def _document(what: Mapping[str, Any]) -> bytes:
    """JSON, as text that ends."""
    return json.dumps(what).encode() + b"\n"
