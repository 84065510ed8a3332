# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A trace file's bytes, decompressed, and the errors that name a place in it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.base.reading import beginning, read_bytes, unpack

HEAD_BYTES = 65536
"""Bytes at the beginning of a file that decide its format."""
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_MOST_MEMBERS = 10_000


class Damage(Problem):
    """An error at a place of a file, before which all may be good."""

    def __init__(self, message: str, source: Source, line: int | None, byte: int | None) -> None:
        super().__init__(message)
        self.source, self.line, self.byte = source, line, byte


class Source:
    """One file, read whole and once; gzip, xz and zstd are undone by content, whatever the name says.

    keep_good: a compressed stream that is damaged or cut counts as far as it goes; `dropped` tells of it.
    """

    def __init__(self, path: Path, *, keep_good: bool = False) -> None:
        self.path = path
        self.keep_good = keep_good
        self.dropped: list[str] = []
        self._whole_bytes = 0
        self._cause = ""
        self.members: Mapping[Path, Source] = {}
        """All files of the archive that this file is in, itself included."""
        # Not itself: a trace that is read in pieces would leave each of them to the collector of garbage, which comes late.
        self._beside: dict[Path, Source] = {}

    @classmethod
    def member(cls, path: Path, content: bytes, keep_good: bool) -> Source:
        """A file of an archive, with its content as it is stored there."""
        source = cls(path, keep_good=keep_good)
        source.__dict__["raw"] = content
        return source

    def beside(self, path: Path) -> Source:
        """Another file of the same recording; the same object for the same path."""
        if path in self.members:
            return self.members[path]
        if path == self.path:
            return self
        return self._beside.setdefault(path, Source(path, keep_good=self.keep_good))

    @property
    def all_dropped(self) -> list[str]:
        """Return what is not used of this file and those beside it."""
        sources = {self.path: self, **self._beside, **self.members}.values()
        return [text for source in sources for text in (*source.dropped, source._cause) if text]

    @cached_property
    def raw(self) -> bytes:
        """The content as it is stored. Raises Problem if it cannot be read."""
        return read_bytes(self.path)

    @property
    def sha256(self) -> str:
        """Return the digest of what has been read, as it is stored; several files count one after the other, by name."""
        digest = hashlib.sha256()
        for source in sorted({self, *self._beside.values()}, key=lambda one: str(one.path)):
            digest.update(source.__dict__.get("raw", b""))
        return digest.hexdigest()

    @cached_property
    def data(self) -> bytes:
        """The content, decompressed. Raises Problem if it cannot be read or a compressed stream is damaged or cut."""
        data = unpack(self.path, self.raw, cut=self.dropped if self.keep_good else None)
        # The last line of a text that has been cut may lack digits, and look good.
        if self.keep_good and data and not data.endswith(b"\n") and b"\0" not in data[:HEAD_BYTES]:
            end = data.rfind(b"\n") + 1
            self.dropped.append(f"{self.path}: the last line, which does not end ({len(data) - end} bytes), dropped")
            data = data[:end]
        return data

    @property
    def head(self) -> bytes:
        """The beginning of the content, for which a file is not read whole."""
        if "data" in self.__dict__ or self.is_read or not self.path.is_file():
            return self.data[:HEAD_BYTES]
        return self._head

    @property
    def stored_head(self) -> bytes:
        """The beginning of the content as it is stored."""
        if self.is_read or not self.path.is_file():
            return self.raw[:HEAD_BYTES]
        try:
            with self.path.open("rb") as f:
                return f.read(HEAD_BYTES)
        except OSError:
            return self.raw[:HEAD_BYTES]

    @property
    def is_read(self) -> bool:
        """Return whether the whole file is in memory."""
        return "raw" in self.__dict__

    @cached_property
    def _head(self) -> bytes:
        return beginning(self.path, HEAD_BYTES)[0]

    @property
    def is_archive(self) -> bool:
        """Return whether the content is a tar archive."""
        return self.head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + len(_TAR_MAGIC)] == _TAR_MAGIC

    def unpacked(self) -> list[Source]:
        """The files of an archive, in its order, with paths below its own. Raises Problem if it is damaged."""
        found: dict[Path, Source] = {}
        view = io.BytesIO(self.data)
        try:
            with tarfile.open(fileobj=view, mode="r:") as archive:
                for entry in archive:
                    if not entry.isfile():
                        continue
                    if len(found) == _MOST_MEMBERS:
                        raise self.problem(f"more than {_MOST_MEMBERS} files")
                    path = self.path / entry.name.lstrip("/")
                    content = self.data[entry.offset_data : entry.offset_data + entry.size]
                    if len(content) < entry.size and not self.keep_good:
                        raise self.problem(f"the archive is truncated within {entry.name}")
                    if entry.sparse is not None:
                        raise self.problem(f"{entry.name} is stored as a sparse file")
                    found[path] = Source.member(path, content, self.keep_good)
        except (tarfile.TarError, EOFError, ValueError, OverflowError, OSError):
            if not (self.keep_good and found):
                raise self.problem("the archive is damaged") from None
            self.dropped.append(f"{self.path}: the rest of the archive, which is damaged, dropped")
        for source in found.values():
            source.members = found
        if found:
            next(iter(found.values())).dropped.extend(self.dropped)
        return list(found.values())

    def cut(self, damage: Damage) -> bool:
        """Go without what comes from the damage on. False if nothing would remain."""
        end = damage.byte
        if end is None:
            end = 0
            for _ in range((damage.line or 1) - 1):
                end = self.data.find(b"\n", end) + 1
        if not 0 < end < len(self.data):
            return False
        self._whole_bytes = self._whole_bytes or len(self.data)
        place = f"line {damage.line}" if damage.line else f"byte {end}"
        cause = str(damage).removeprefix(f"{self.path}").partition(": ")[2]
        self._cause = f"{self.path}: dropped from {place} on, {self._whole_bytes - end} of {self._whole_bytes} bytes: {cause}"
        self.__dict__["data"] = self.data[:end]
        return True

    def become(self, data: bytes) -> None:
        """Other content in the place of what there is: the same in a form that can be read."""
        self.__dict__["data"] = data

    def blank(self, letter: bytes) -> None:
        """Spaces in the place of a letter."""
        self.__dict__["data"] = self.data.replace(letter, b" ")

    def problem(self, cause: str, *, line: int | None = None, byte: int | None = None) -> Problem:
        """An error at a line (from 1) or a byte (from 0, of the decompressed content), or of the file as a whole."""
        if line is not None:
            return Damage(f"{self.path}:{line}: {cause}", self, line, None)
        if byte is not None:
            return Damage(f"{self.path}: byte {byte}: {cause}", self, None, byte)
        return Problem(f"{self.path}: {cause}")
