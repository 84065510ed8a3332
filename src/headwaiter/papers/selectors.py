# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The published selectors, to compare with: by average request size (Seelam et al., OLS 2005, §6), from what `headwaiter rank`
measured beforehand; and a table by operation, file size and record length (CS350, 2023): the study's own, or from what
`headwaiter table` measured, or from iozone's output under each scheduler.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from headwaiter.base.errors import Problem, shown
from headwaiter.base.records import SCHEMA
from headwaiter.papers.cells import KIB, OPERATIONS, ByTable, Cell
from headwaiter.queue.devices import Device
from headwaiter.watch.decide import Window

Key = TypeVar("Key")
_REPORTS = {
    "writer": "write",
    "re-writer": "rewrite",
    "reader": "read",
    "re-reader": "reread",
    "random read": "random read",
    "random write": "random write",
}
_REPORT = re.compile(r'"([A-Za-z -]+?) report"', re.I)


def _against(rates: Mapping[str, float], current: str, candidates: Sequence[str]) -> dict[str, float]:
    if not rates.get(current):
        return {}
    return {name: math.log(rates[name] / rates[current]) for name in candidates if name != current and rates.get(name)}


@dataclass(frozen=True)
class BySize:
    """rates: MB/s by request size (bytes) and scheduler. subject: what they were measured on, as `rank` names it."""

    rates: Mapping[int, Mapping[str, float]]
    subject: str = ""

    def at(self, request_bytes: float) -> Mapping[str, float]:
        """At the measured size that is nearest, by their ratio."""
        size = min(self.rates, key=lambda one: abs(math.log(one / max(1.0, request_bytes))))
        return self.rates[size]

    def advantage(self, seen: Window, current: str, candidates: Sequence[str]) -> Mapping[str, float]:
        """See Selector."""
        return _against(self.at(seen.request_bytes), current, candidates)


def read_ranking(path: Path) -> BySize:
    """Return what `headwaiter rank --json -o FILE` wrote. Problem if it is something else."""
    return BySize(*_rates(path, "rank", lambda row: _positive(row["request_bytes"])))


def _positive(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number <= 0:
        raise ValueError
    return number


def check_subject(subject: str, device: Device, drive: str = "") -> None:
    """Problem if something was measured on another disk, or on a drive model that nobody says this one is like (`drive`)."""
    if subject not in ("", shown(device.identity), drive):
        raise Problem(
            f"{device.name} ({device.identity}): the ranking was measured on {shown(subject)};"
            f" measure this disk, or say with --drive which model it is like"
        )


def _rates(path: Path, command: str, key: Callable[[Mapping[str, Any]], Key]) -> tuple[dict[Key, dict[str, float]], str]:
    """MB/s by what `key` makes of a row, and scheduler, in a document of that command; and what it was measured on."""
    rates: dict[Key, dict[str, float]] = {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError
        subject = document["subject"]
        if not isinstance(subject, str):
            raise ValueError
        for row in document["results"]:
            rate = float(row["throughput_MBps"])
            name = row["scheduler"]
            if not (math.isfinite(rate) and rate >= 0 and isinstance(name, str) and name):
                raise ValueError
            rates.setdefault(key(row), {})[name] = rate
    except OSError as e:
        raise Problem(f"{path}: {e.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Problem(f"{path}: not what `headwaiter {command} --json` writes") from None
    if not rates:
        raise Problem(f"{path}: has no results")
    return rates, subject


def promised(table: ByTable, cells: Sequence[Cell], current: str, candidates: Sequence[str]) -> Mapping[str, float]:
    """Return the least Selector.advantage() of these cells, of work that may be any of them."""
    each = [_against(table.rates[cell], current, candidates) for cell in cells]
    return {name: min(one[name] for one in each) for name in candidates if each and all(name in one for one in each)}


def read_table(path: Path) -> ByTable:
    """Return what `headwaiter table --json -o FILE` wrote. Problem if it is something else."""

    def cell(row: Mapping[str, Any]) -> Cell:
        if row["operation"] not in OPERATIONS:
            raise ValueError
        file_kib, record_kib = (max(1, _positive(row[key]) // KIB) for key in ("file_bytes", "record_bytes"))
        if record_kib > file_kib:
            raise ValueError
        return Cell(row["operation"], file_kib, record_kib)

    return ByTable(*_rates(path, "table", cell))


def read_iozone(files: Mapping[str, Path]) -> ByTable:
    """From a file of iozone's output (-a, or -R) for each scheduler. Problem, naming file and line, if one has no figures."""
    rates: dict[Cell, dict[str, float]] = {}
    for scheduler, path in files.items():
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as e:
            raise Problem(f"{path}: {e.strerror}") from None
        found = dict(_excel(path, lines) if any(_REPORT.search(line) for line in lines) else _columns(path, lines))
        if not found:
            raise Problem(f"{path}: has no figures of iozone -a or -R")
        for cell, rate in found.items():
            rates.setdefault(cell, {})[scheduler] = rate
    return ByTable(rates)


def _columns(path: Path, lines: Sequence[str]) -> Iterable[tuple[Cell, float]]:
    """`-a`: a line for each file size and record length, a column for each operation; their head names kB and reclen."""
    begun = False
    for number, line in enumerate(lines, 1):
        words = line.split()
        if {"kB", "reclen"} <= set(words) or {"KB", "reclen"} <= set(words):
            begun = True
        elif begun and len(words) >= 3 and words[0].isdecimal():
            size, record, *figures = _numbers(path, number, words, sizes=2)
            _check_record(path, number, size, record)
            for operation, rate in zip(OPERATIONS, figures, strict=False):
                yield Cell(operation, size, record), float(rate)


def _excel(path: Path, lines: Sequence[str]) -> Iterable[tuple[Cell, float]]:
    """`-R`: a table for each operation, record lengths in its head and file sizes in front, in quotes."""
    operation, records = "", list[int]()
    for number, line in enumerate(lines, 1):
        title = _REPORT.search(line)
        words = line.replace('"', " ").split()
        if title:
            operation, records = _REPORTS.get(title[1].lower(), ""), []
        elif operation and words and all(word.isdecimal() for word in words) and '"' in line:
            if not records:
                records = _numbers(path, number, words, sizes=len(words))
                continue
            size, *figures = _numbers(path, number, words, sizes=1)
            if len(figures) > len(records):
                raise Problem(f"{path}:{number}: {len(figures)} figures for {len(records)} record lengths")
            # Where a record is longer than the file there is nothing, or 0.
            for record, rate in zip(records, figures, strict=False):
                if rate:
                    _check_record(path, number, size, record)
                    yield Cell(operation, size, record), float(rate)


def _check_record(path: Path, number: int, size: int, record: int) -> None:
    if record > size:
        raise Problem(f"{path}:{number}: a record of {record} KiB in a file of {size}")


def _numbers(path: Path, number: int, words: Sequence[str], sizes: int) -> list[int]:
    """Return what a line says; the first so many are sizes, which are not 0."""
    found = [int(word) for word in words if word.isascii() and word.isdecimal() and len(word) < 16]
    if len(found) != len(words):
        raise Problem(f"{path}:{number}: not all of it is numbers")
    if not all(found[:sizes]):
        raise Problem(f"{path}:{number}: a size of 0")
    return found
