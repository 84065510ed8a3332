# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The formats that can be read, and how a file's format is found.

A format is one file in formats/ with a FORMAT; nothing else lists it. What a file is follows from its content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TextIO

from headwaiter.base.errors import Problem, plain
from headwaiter.base.frames import is_parquet, parquet_csv
from headwaiter.base.reading import is_folder
from headwaiter.traces import foreign
from headwaiter.traces import formats as _package
from headwaiter.traces.model import Trace
from headwaiter.traces.source import Damage, Source

DEFAULT_GROUP_GAP_MS = 20.0
"""A fork, an exec and a few links of a chain that find all they read in memory and so leave no trace."""

_LISTED = 8


@dataclass
class Origin:
    """What the pieces of a file that is read in pieces have in common: what their times count from, and the device."""

    base: int | None = None
    device: str | None = None
    devices: Counter[str] | None = None
    """How many requests each device has, where the pieces are read for that only."""


@dataclass(frozen=True)
class ReadOptions:
    """The caller's choices about reading."""

    device: str | None = None
    """The device to read from a trace of several, as the format names it; None: the one with most requests."""
    group_gap_ns: int = round(DEFAULT_GROUP_GAP_MS * 1e6)
    """The longest pause between tasks of one name that are one thread of control."""
    columns: str | None = None
    """What the columns of CSV of any kind mean (meaning.py)."""
    origin: Origin | None = None
    """What is read is a piece of a file; None: it is all of it."""

    def base(self, least: int, margin: int) -> int:
        """What times count from: the least of them; of a piece, what was the least in the first one, less a margin.

        A row of another piece may be earlier than all of the first.
        """
        if self.origin is None:
            return least
        if self.origin.base is None:
            self.origin.base = least - margin
        return self.origin.base


@dataclass(frozen=True)
class Format:
    """A format: `sniff` decides by a file's decompressed beginning, `read` makes a Trace or raises Problem."""

    name: str
    title: str
    sniff: Callable[[bytes], bool]
    read: Callable[[Source, ReadOptions], Trace]
    rank: int = 0
    """Formats are tried in order of rank; those that other formats' files could pass for come late."""
    files: Callable[[Path], list[Path]] | None = None
    """Where a recording may be several files or a directory: those of the recording that a path is, or is one of."""
    leads: bool = False
    """Whether such a file tells what else is in its archive, and the archive is one recording."""
    guess: str = ""
    """What to tell of a file that was taken for this format, and might be of another that looks alike."""
    write: Callable[[Trace, TextIO], list[str]] | None = None
    """Writes a trace, and returns what of it the format cannot say; None: the format is only read."""
    headers: Callable[[bytes], int] | None = None
    """How many lines of a file's beginning are no requests, where each other line is one by itself; None: lines are not."""


@cache
def formats() -> dict[str, Format]:
    """All formats by name, in the order in which they are tried."""
    found: list[Format] = [
        import_module(f"{_package.__name__}.{module.name}").FORMAT for module in iter_modules(_package.__path__)
    ]
    return {f.name: f for f in sorted(found, key=lambda f: (f.rank, f.name))}


def detect(path: str | Path) -> Format | None:
    """The format of a trace file, or None if it is none that is known. Raises Problem if it cannot be read."""
    return _detect(_inside(Source(Path(path)), None))


def load(
    path: str | Path,
    *,
    format: str | None = None,
    device: str | None = None,
    group_gap_ms: float = DEFAULT_GROUP_GAP_MS,
    columns: str | None = None,
    keep_good: bool = False,
    source: Source | None = None,
) -> Trace:
    """Read a trace file (or, for blktrace, a directory of one recording's files), or the one in a tar archive.

    format None finds it from the content; columns makes it `columns`; the rest as in Options. keep_good: of a damaged or
    truncated recording, use what comes before the damage; the trace's notes tell what was dropped. source is the file if
    something of it has been read already, which a pipe allows only once. Raises Problem with one line naming file, place
    and cause if the file is not a sound trace.
    """
    source = source or Source(Path(path), keep_good=keep_good)
    if columns is not None:
        if format not in (None, "columns"):
            raise Problem(f"--columns is for CSV, and the format is to be {format!r}")
        format = "columns"
    if not 0 <= group_gap_ms <= 1e9:
        raise Problem(f"group gap of {group_gap_ms:g} ms: must be from 0 to 1e9")
    if format is not None and format not in formats():
        raise Problem(f"unknown trace format {format!r} (known: {', '.join(formats())})")
    outer, source = source, _inside(source, formats()[format] if format else None)
    if not is_folder(source.path) and is_parquet(source.head):
        source.become(parquet_csv(source.path, source.data))
    chosen = formats()[format] if format else _detect(source)
    if chosen is None or not chosen.files:
        if is_folder(source.path):
            raise source.problem("a directory without a recording of several files")
        if not source.data:
            raise source.problem("empty file")
    if chosen is None:
        what = foreign.named(source.head, source.path.name)
        raise source.problem(
            what or f"no known trace format (known: {', '.join(formats())}); `headwaiter import --columns` reads CSV of any kind"
        )
    guess = [chosen.guess] if chosen.guess and format is None else []
    try:
        trace = _read(chosen, source, ReadOptions(device, round(group_gap_ms * 1e6), columns))
        return replace(trace, notes=(*trace.notes, *guess, *map(plain, source.all_dropped)), sha256=outer.sha256)
    except MemoryError:
        raise source.problem(f"not enough memory for a trace of {len(source.data) >> 20} MiB") from None


def _read(chosen: Format, source: Source, options: ReadOptions) -> Trace:
    """Read; where only what is good is wanted, without what lies behind the damage, for as long as there is any."""
    while True:
        try:
            return chosen.read(source, options)
        except Damage as damage:
            if not source.keep_good or not damage.source.cut(damage):
                raise


def _inside(source: Source, given: Format | None) -> Source:
    """The trace in an archive, or the file itself if it is none. Problem if there is no trace in it, or more than one."""
    if is_folder(source.path) or not source.is_archive:
        return source
    members = [m for m in source.unpacked() if m.data]
    found = [(m, f) for m in members if (f := _detect(m) if given is None or given.leads else given)]
    first = next((one for one in found if one[1].leads), found[0] if found else None)
    if not first:
        raise source.problem("an archive without a trace of a known format")
    # A recording of several files is one.
    if len(found) > 1 and not first[1].leads and not all(f.files and f is first[1] for _, f in found):
        names = [str(m.path.relative_to(source.path)) for m, _ in found[:_LISTED]] + ["…"] * (len(found) > _LISTED)
        raise source.problem(f"an archive of {len(found)} traces ({', '.join(names)}): extract one of them")
    return first[0]


def _detect(source: Source) -> Format | None:
    """Tell the format by content; of a directory, and of a CPU's empty file, by the content of the other files."""
    if not source.members and (is_folder(source.path) or not source.data):
        for format in formats().values():
            for file in format.files(source.path) if format.files else ():
                part = Source(file)
                if part.data and format.sniff(part.head):
                    return format
        return None
    return next((f for f in formats().values() if f.sniff(source.head)), None)
