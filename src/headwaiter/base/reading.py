# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files read whole, packed or not, but never more than there is memory for; and piece by piece, where they are longer.

Devices that do not end, and a few kilobytes that unpack to a terabyte, stop at a limit and say so.
"""

from __future__ import annotations

import io
import lzma
import resource
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zstandard

from headwaiter.base.errors import Problem

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_CHUNK = 1 << 20
_PIECE = 1 << 16
_ZSTD_CHUNK = 1 << 10
"""Packed data is read in pieces of this size: four bytes may stand for 128 KiB, and nothing else bounds what comes out."""
_LEAST = 64 << 20
_SHARE = 10
"""A trace in memory takes about so many times its size."""

TEXT_BYTES = 16 << 20
"""The largest file of those that people write by hand: job files, profiles, parameters."""


def free_memory_bytes() -> int:
    """Return what this process may still allocate: free memory of the machine, of its control group, of its own limit."""
    free = [_meminfo()]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        free.append(max(0, soft - _address_space()))
    group = _number("/sys/fs/cgroup/memory.max")
    if group is not None:
        free.append(max(0, group - (_number("/sys/fs/cgroup/memory.current") or 0)))
    return min(free)


def exists(path: Path) -> bool:
    """Return whether there is something of that name. Problem for a name that no file can have."""
    return _mode(path) is not None


def is_folder(path: Path) -> bool:
    """Return whether there is a folder of that name. Problem for a name that no file can have."""
    return stat.S_ISDIR(_mode(path) or 0)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        raise Problem(f"{path}: {e.strerror}") from None
    except ValueError:
        raise Problem(f"{path}: not a valid file name") from None


def most_bytes() -> int:
    """Return how large a file may be, unpacked, to be read into memory."""
    return max(_LEAST, free_memory_bytes() // _SHARE)


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """A file's bytes. Problem if it cannot be read or is larger than `most` (default: what memory allows)."""
    try:
        with path.open("rb") as f:
            return _gather(path, iter(lambda: f.read(_CHUNK), b""), "read", most)
    except OSError as e:
        raise Problem(f"{path}: {e.strerror or 'cannot be read'}") from None
    except ValueError:
        raise Problem(f"{path}: not a valid file name") from None


def read_text(path: Path, encoding: str = "utf-8", most: int = TEXT_BYTES) -> str:
    """A file that people write, as text. Problem if it cannot be read, is no text, or larger than `most` bytes."""
    try:
        return read_bytes(path, most).decode(encoding)
    except UnicodeDecodeError as e:
        raise Problem(f"{path}: byte {e.start}: not text ({encoding})") from None


def unpack(path: Path, raw: bytes, most: int | None = None, cut: list[str] | None = None) -> bytes:
    """The content of gzip, xz or zstd data, told by their first bytes; other data as they are.

    Problem if the data are damaged or cut short, or hold more than `most` bytes (default: what memory allows). With a list
    `cut`, what comes before the damage is the content, and a line is added to the list.
    """
    for magic, name, open_ in ((_GZIP, "gzip", _gunzip), (_XZ, "xz", _unxz), (_ZSTD, "zstd", _unzstd)):
        if raw.startswith(magic):
            chunks = open_(raw) if cut is None else _until_damage(path, open_(raw), name, cut)
            return _unpack(path, chunks, name, most)
    return raw


class _CutError(Exception):
    """The data end too early."""


class _HungryError(Exception):
    """The data ask for a dictionary that is too large."""


def _until_damage(path: Path, chunks: Iterator[bytes], name: str, cut: list[str]) -> Iterator[bytes]:
    """Read as far as the stream is sound."""
    size = 0
    try:
        for chunk in chunks:
            size += len(chunk)
            yield chunk
    except (_CutError, zlib.error, lzma.LZMAError, zstandard.ZstdError):
        cut.append(f"{path}: the {name} stream is damaged or truncated behind {size} bytes of content; its rest is dropped")


def _unpack(path: Path, chunks: Iterator[bytes], name: str, most: int | None) -> bytes:
    try:
        return _gather(path, chunks, "unpack", most)
    except _CutError:
        raise Problem(f"{path}: the {name} stream is truncated") from None
    except _HungryError:
        raise Problem(f"{path}: the {name} stream needs more memory to unpack than is available") from None
    except (zlib.error, lzma.LZMAError, zstandard.ZstdError):
        raise Problem(f"{path}: the {name} stream is damaged") from None


def _gather(path: Path, chunks: Iterator[bytes], verb: str, most: int | None) -> bytes:
    out = io.BytesIO()
    limit = _LEAST if most is None else most
    try:
        for chunk in chunks:
            out.write(chunk)
            if out.tell() > limit and (most is not None or out.tell() > (limit := most_bytes())):
                why = "the free memory" if most is None else "this kind of file"
                what = "unpacks to" if verb == "unpack" else "has"
                raise Problem(f"{path}: {what} more than {limit >> 20} MiB, the limit set by {why}")
        return out.getvalue()
    except MemoryError:
        out.close()
        raise Problem(f"{path}: not enough memory to {verb} it") from None


def _gunzip(raw: bytes) -> Iterator[bytes]:
    # Members follow one another; zeros may follow the last.
    at = 0
    while at < len(raw):
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            piece = member.unconsumed_tail
            if not piece:
                piece = raw[at : at + _PIECE]
                at += len(piece)
            yield (out := member.decompress(piece, _CHUNK))
            if not piece and not out and not member.eof:
                raise _CutError
        at -= len(member.unused_data)
        if raw[at : at + 1] == b"\0":
            at = len(raw) - len(raw[at:].lstrip(b"\0"))


def _unxz(raw: bytes) -> Iterator[bytes]:
    limit = most_bytes()
    while raw:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limit)
        while not stream.eof:
            try:
                yield (out := stream.decompress(raw, _CHUNK))
            except lzma.LZMAError as e:
                raise (_HungryError if "limit" in str(e) else e) from None
            if not out and stream.needs_input and raw == b"":
                raise _CutError
            raw = b""
        raw = stream.unused_data.lstrip(b"\0")


def _unzstd(raw: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(raw):
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if at >= len(raw):
                raise _CutError
            try:
                yield frame.decompress(raw[at : at + _ZSTD_CHUNK])
            except zstandard.ZstdError as e:
                raise (_HungryError if "memory" in str(e) else e) from None
            at += _ZSTD_CHUNK
        at = min(at, len(raw)) - len(frame.unused_data)


class StreamError(Exception):
    """A compressed stream is damaged or ends too early; the message says which, without the file's name."""


def contents(path: Path, stored: Callable[[bytes], object] = len) -> Iterator[bytes]:
    """A file's content piece by piece, however long it is; gzip, xz and zstd are undone. Problem if it cannot be read.

    stored: called with every piece as it is stored. StreamError when the good part of a stream has been given.
    """
    try:
        with path.open("rb") as f:

            def read(most: int) -> bytes:
                data = f.read(most)
                stored(data)
                return data

            head = read(_ZSTD_CHUNK)
            for magic, name, new, damage in _STREAMS:
                if head.startswith(magic):
                    try:
                        yield from _members(read, head, new, pads=magic != _ZSTD)
                    except _CutError:
                        raise StreamError(f"the {name} stream is truncated") from None
                    except damage:
                        raise StreamError(f"the {name} stream is damaged") from None
                    return
            while head:
                yield head
                head = read(_CHUNK)
    except OSError as e:
        raise Problem(f"{path}: {e.strerror or 'cannot be read'}") from None


def beginning(path: Path, most: int) -> tuple[bytes, int]:
    """(at most so many bytes of a file's content, how many stored ones were read for them); of a damaged one what is good."""
    found = io.BytesIO()
    stored = 0

    def count(data: bytes) -> None:
        nonlocal stored
        stored += len(data)

    try:
        for piece in contents(path, count):
            found.write(piece)
            if found.tell() >= most:
                break
    except StreamError:
        pass
    return found.getvalue()[:most], stored


_STREAMS: tuple[tuple[bytes, str, Callable[[], Any], type[Exception]], ...] = (
    (_GZIP, "gzip", lambda: zlib.decompressobj(wbits=31), zlib.error),
    (_XZ, "xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=most_bytes()), lzma.LZMAError),
    (_ZSTD, "zstd", lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError),
)


def _members(read: Callable[[int], bytes], data: bytes, new: Callable[[], Any], pads: bool) -> Iterator[bytes]:
    """Streams that follow one another; zeros may follow the last one, if it `pads`."""
    piece = _PIECE if pads else _ZSTD_CHUNK
    while data:
        stream = new()
        while not stream.eof:
            if not data and not (data := read(piece)):
                raise _CutError
            if out := stream.decompress(data):
                yield out
            data = b""
        data = stream.unused_data
        while pads and not data.lstrip(b"\0") and (more := read(piece)):
            data = more
        data = data.lstrip(b"\0") if pads else data or read(piece)


def _meminfo() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return 1 << 62


def _address_space() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _number(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
