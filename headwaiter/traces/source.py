# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A trace file's bytes, decompressed, and the errors that name a place in it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from headwaiter.errors import Problem
from headwaiter.reading import read_bytes, unpack

HEAD_BYTES = 65536
"""How much of a file's beginning decides its format."""


class Source:
    """One file, read whole and once; gzip, xz and zstd are undone by content, whatever the name says."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def raw(self) -> bytes:
        """The content as it is stored. Raises Problem if it cannot be read."""
        return read_bytes(self.path)

    @cached_property
    def data(self) -> bytes:
        """The content, decompressed. Raises Problem if it cannot be read or a compressed stream is damaged or cut."""
        return unpack(self.path, self.raw)

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
