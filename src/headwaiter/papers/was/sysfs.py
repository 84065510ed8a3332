# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A configuration into the scheduler of a live device, and back out of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from headwaiter.base.errors import Problem, shown
from headwaiter.base.parsing import whole
from headwaiter.engine.schedulers import find
from headwaiter.papers.was.config import POLICY, TABLE, Config
from headwaiter.papers.was.matrix import Matrix
from headwaiter.papers.was.observe import RULES, buckets

SYSFS = Path("/sys")
FAILED = 64
"""The column of waits in vain."""
_NAME = re.compile(r"[A-Za-z0-9!_.:-]{1,31}")


def called(device: str) -> str:
    """Return the name of a disk that was given by its name (sda), its node, or a link of udev's to that."""
    return Path(device).resolve().name if device.startswith("/dev/disk/") else device.removeprefix("/dev/")


def folder(device: str, sysfs: Path = SYSFS) -> Path:
    """queue/ of a disk that runs the scheduler, by its name (sda) or its node (/dev/sda). Problem if it does not run it."""
    name = called(device)
    queue = sysfs / "block" / name / "queue"
    if not _NAME.fullmatch(name) or name.startswith(".") or not queue.is_dir():
        raise Problem(f"{shown(device)}: no such disk ({sysfs / 'block'} has the names)")
    wanted = find(POLICY).kernel_name
    offered = _read(queue / "scheduler").split()
    if f"[{wanted}]" not in offered:
        current = next((word for word in offered if word.startswith("[")), "none").strip("[]")
        raise Problem(f"{name}: its scheduler is {shown(current)}: run `echo {wanted} >{queue / 'scheduler'}` (docs/kernel.md)")
    return queue


def install(config: Config, device: str, sysfs: Path = SYSFS) -> Path:
    """Put a configuration in force, with the rules of `as` that it was tried with, read it back and compare; the file.

    Problem if it is refused: the old one stays in force.
    """
    file = folder(device, sysfs) / "iosched" / TABLE
    table = find(POLICY).tables[TABLE]
    rows = table.check(str(file), config.rows())
    _write(file, table.show(rows, brief=True))
    for name, value in RULES.items():
        _write(file.parent / name, f"{value}\n")
    there = table.parse(str(file), _read(file).encode())
    if there.shape != rows.shape or (there != rows).any():
        raise Problem(f"{file}: the kernel's rows differ from those written: another writer, or another version")
    return file


def read_counters(config: Config, device: str, sysfs: Path = SYSFS) -> Matrix:
    """A, as the scheduler of a disk has counted it since the configuration, which must wait alike for all, came into force.

    Problem if it is another one, or nothing is counted. docs/kernel.md says what the file `observed` holds.
    """
    iosched = folder(device, sysfs) / "iosched"
    longest = config.wait_us[0]
    if set(config.wait_us) != {longest}:
        raise Problem(f"{device}: the waits of an observation must be the same for every class, as `was calibrate` writes them")
    there = find(POLICY).tables[TABLE].parse(str(iosched / TABLE), _read(iosched / TABLE).encode())
    if there.tolist() != config.rows().tolist():
        raise Problem(f"{device}: another configuration is in force: run `headwaiter was load` on this one")
    if _read(iosched / "observe").strip() != "1":
        raise Problem(f"{device}: nothing is counted: run `echo 1 >{iosched / 'observe'}`")
    bucket_us = _number(iosched / "bucket_us", _read(iosched / "bucket_us"))
    file, width = iosched / "observed", buckets(longest, bucket_us)
    counts = np.zeros((config.classes, width + 1), np.int64)
    for number, column, count in _observed(file):
        if not 1 <= number <= config.classes or (column >= width and column != FAILED):
            raise Problem(f"{file}: class {number}, column {column}: not of {config.classes} classes and {width} buckets")
        counts[number - 1, width if column == FAILED else column] = count
    return Matrix(counts, bucket_us, config.classifier, {"observed": device})


def _observed(file: Path) -> Iterator[tuple[int, int, int]]:
    """(class, column, count), read a page after the other."""
    counters = find(POLICY).counters
    assert counters
    begin = 1
    while begin:
        _write(file.with_name(counters.rows_from), f"{begin}\n")
        before, begin = begin, 0
        for line in _read(file).splitlines():
            number, *cells = line.split() or [""]
            if number == "next" and len(cells) == 1:
                begin = _number(file, cells[0])
                if begin <= before:
                    raise Problem(f"{file}: its page from class {before} ends before class {begin}")
                continue
            for cell in cells:
                column, _, count = cell.partition(":")
                yield _number(file, number), _number(file, column), _number(file, count)


def _write(path: Path, text: str) -> None:
    try:
        with path.open("r+b", buffering=0) as stream:
            stream.write(text.encode())
    except OSError as e:
        raise Problem(f"{path}: {e.strerror}; the kernel's log has details, and the previous rows stay in force") from None


def _number(path: Path, text: str) -> int:
    try:
        return whole(text.strip(), 0, 2**32 - 1)
    except ValueError as e:
        raise Problem(f"{path}: {e}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as e:
        raise Problem(f"{path}: {getattr(e, 'strerror', None) or 'not text'}") from None
