# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A trace file's bytes, decompressed, and the errors that name a place in it."""

from __future__ import annotations

import gzip
import lzma
import zlib
from functools import cached_property
from pathlib import Path

import zstandard

from headwaiter.errors import Problem

HEAD_BYTES = 65536
"""How much of a file's beginning decides its format."""

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"


class Source:
    """One file, read whole; gzip, xz and zstd are undone by content, whatever the name says."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def data(self) -> bytes:
        """The content, decompressed. Raises Problem if it cannot be read or a compressed stream is damaged or cut."""
        try:
            raw = self.path.read_bytes()
        except OSError as e:
            raise self.problem(e.strerror or "cannot be read") from None
        if raw.startswith(_GZIP):
            return self._gunzip(raw)
        if raw.startswith(_XZ):
            return self._unxz(raw)
        if raw.startswith(_ZSTD):
            return self._unzstd(raw)
        return raw

    @property
    def head(self) -> bytes:
        return self.data[:HEAD_BYTES]

    def problem(self, cause: str, *, line: int | None = None, byte: int | None = None) -> Problem:
        """An error at a line (from 1) or a byte (from 0, of the decompressed content), or of the file as a whole."""
        if line is not None:
            return Problem(f"{self.path}:{line}: {cause}")
        if byte is not None:
            return Problem(f"{self.path}: byte {byte}: {cause}")
        return Problem(f"{self.path}: {cause}")

    def _gunzip(self, raw: bytes) -> bytes:
        try:
            return gzip.decompress(raw)
        except EOFError:
            raise self.problem("the gzip stream is cut short") from None
        except (OSError, zlib.error):
            raise self.problem("the gzip stream is damaged") from None

    def _unxz(self, raw: bytes) -> bytes:
        try:
            return lzma.decompress(raw)
        except lzma.LZMAError as e:
            cut = "end-of-stream" in str(e)
            raise self.problem(f"the xz stream is {'cut short' if cut else 'damaged'}") from None
        except MemoryError:
            raise self.problem("the xz stream is damaged") from None

    def _unzstd(self, raw: bytes) -> bytes:
        parts: list[bytes] = []
        try:
            while raw:
                frame = zstandard.ZstdDecompressor().decompressobj()
                parts.append(frame.decompress(raw))
                if not frame.eof:
                    raise self.problem("the zstd stream is cut short")
                raw = frame.unused_data
        except (zstandard.ZstdError, MemoryError):
            raise self.problem("the zstd stream is damaged") from None
        return b"".join(parts)
