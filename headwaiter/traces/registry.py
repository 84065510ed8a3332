# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The formats that can be read, and how a file's format is found.

A format is one file in formats/ with a FORMAT; nothing else lists it. What a file is follows from its content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from headwaiter.errors import Problem
from headwaiter.reading import is_folder
from headwaiter.traces import formats as _package
from headwaiter.traces.model import Trace
from headwaiter.traces.source import Source

DEFAULT_GROUP_GAP_MS = 20.0
"""A fork, an exec and a few links of a chain that find all they read in memory and so leave no trace."""


@dataclass(frozen=True)
class Options:
    """What the caller may choose about reading."""

    device: str | None = None
    """Of a trace of several devices, the one to read, as the format names it; None: the one with most requests."""
    group_gap_ns: int = round(DEFAULT_GROUP_GAP_MS * 1e6)
    """The longest pause between tasks of one name that are one thread of control."""


@dataclass(frozen=True)
class Format:
    """A format: `sniff` decides by a file's decompressed beginning, `read` makes a Trace or raises Problem."""

    name: str
    title: str
    sniff: Callable[[bytes], bool]
    read: Callable[[Source, Options], Trace]
    rank: int = 0
    """Formats are tried in order of rank; those that other formats' files could pass for come late."""
    files: Callable[[Path], list[Path]] | None = None
    """Where a recording may be several files or a directory: those of the recording that a path is, or is one of."""


@cache
def formats() -> dict[str, Format]:
    """All formats by name, in the order in which they are tried."""
    found: list[Format] = [
        import_module(f"{_package.__name__}.{module.name}").FORMAT for module in iter_modules(_package.__path__)
    ]
    return {f.name: f for f in sorted(found, key=lambda f: (f.rank, f.name))}


def detect(path: str | Path) -> Format | None:
    """The format of a trace file, or None if it is none that is known. Raises Problem if it cannot be read."""
    return _detect(Source(Path(path)))


def load(
    path: str | Path,
    *,
    format: str | None = None,
    device: str | None = None,
    group_gap_ms: float = DEFAULT_GROUP_GAP_MS,
    source: Source | None = None,
) -> Trace:
    """Read a trace file (or, for blktrace, a directory of one recording's files).

    format None finds it from the content; the rest as in Options. source is the file if something of it has been read
    already, which a pipe allows only once. Raises Problem with one line naming file, place and cause if the file is not
    a sound trace.
    """
    source = source or Source(Path(path))
    if not 0 <= group_gap_ms <= 1e9:
        raise Problem(f"group gap of {group_gap_ms:g} ms: must be from 0 to 1e9")
    if format is not None and format not in formats():
        raise Problem(f"unknown trace format {format!r} (known: {', '.join(formats())})")
    chosen = formats()[format] if format else _detect(source)
    if chosen is None or not chosen.files:
        if is_folder(source.path):
            raise source.problem("a directory without a recording of several files")
        if not source.data:
            raise source.problem("empty file")
    if chosen is None:
        raise source.problem(f"no known trace format (known: {', '.join(formats())})")
    try:
        return chosen.read(source, Options(device, round(group_gap_ms * 1e6)))
    except MemoryError:
        raise source.problem(f"not enough memory for a trace of {len(source.data) >> 20} MiB") from None


def _detect(source: Source) -> Format | None:
    """By content; a directory, and the empty file of a CPU that did nothing, by the content of the other files."""
    if is_folder(source.path) or not source.data:
        for format in formats().values():
            for file in format.files(source.path) if format.files else ():
                part = Source(file)
                if part.data and format.sniff(part.head):
                    return format
        return None
    return next((f for f in formats().values() if f.sniff(source.head)), None)
