# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `headwaiter record` tells beside the events: who recorded, on which disks, what was lost, and why it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwaiter.base.archives import BEGIN, END, RECORDERS, VERSION
from headwaiter.base.errors import plain
from headwaiter.queue.devices import current_scheduler
from headwaiter.traces.source import Source

MAGIC = b'{"headwaiter": "recording-'
_MOST = 2**62


@dataclass(frozen=True)
class RecordedDisk:
    """A disk that was recorded: as the kernel numbers it (`8,0`), by name, with what was known of it and its settings."""

    name: str
    number: str
    facts: Mapping[str, str]
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Gap:
    """Events of a CPU that are missing between two times of the recording's clock."""

    cpu: int
    events: int
    from_ns: int
    to_ns: int


_BY_TAGS = {"loop", "vd"}
"""Kinds of disks that take as many requests as they have tags."""
_TAGS = 128


@dataclass(frozen=True)
class Recording:
    """Facts of a recording; `reason` is why it ended, "" where its recorder was killed. Times are of its clock."""

    recorder: str
    kernel: str
    disks: tuple[RecordedDisk, ...]
    began_ns: int
    ended_ns: int | None
    reason: str
    lost: int
    gaps: tuple[Gap, ...]
    processors: int | None = None
    """That the machine had; None: not told."""

    @property
    def seconds(self) -> float | None:
        """Return how long was recorded; None where that is not known."""
        return None if self.ended_ns is None else (self.ended_ns - self.began_ns) / 1e9

    def model(self, device: str | None = None) -> str:
        """Return what the kernel calls the disk of this name or number, or the only one; empty where that is not known."""
        disk = self._disk(device)
        return disk.facts.get("model", "") if disk else ""

    def nr_requests(self, device: str | None = None) -> int | None:
        """Return the disk's nr_requests where a scheduler was in force, and both are known."""
        disk = self._disk(device)
        number = disk.settings.get("nr_requests", "") if disk else ""
        return int(number) if self.schedulers(device)[0] not in ("", "none") and number.isdecimal() and int(number) else None

    def depth(self, device: str | None = None) -> int | None:
        """Return how many requests the disk takes at once; None where sysfs does not tell.

        Disks of SCSI have a file for it. Of others nr_requests tells, unless it was changed: without a scheduler it is the number
        of the device's tags, and with one twice that, up to 256 (blk_mq_init_sched()).
        """
        disk = self._disk(device)
        if disk is None:
            return None
        told, number = disk.facts.get("queue_depth", ""), disk.settings.get("nr_requests", "")
        if told.isdecimal() and int(told):
            return int(told)
        if not number.isdecimal() or disk.facts.get("kind", "") not in _BY_TAGS:
            return None
        return int(number) if self.schedulers(device)[0] == "none" else min(int(number), 2 * _TAGS) // 2 or None

    def rotational(self, device: str | None = None) -> bool | None:
        """Return whether the kernel took the disk for one that rotates; None where sysfs does not tell."""
        disk = self._disk(device)
        return {"0": False, "1": True}.get(disk.settings.get("rotational", "") if disk else "")

    def schedulers(self, device: str | None = None) -> tuple[str, tuple[str, ...]]:
        """Return (the scheduler in force on the disk, all that the kernel offered for it), by their names in the kernel.

        Empty where they are not known.
        """
        disk = self._disk(device)
        text = disk.settings.get("scheduler", "") if disk else ""
        current = current_scheduler(text)
        return (current, tuple(word.strip("[]") for word in text.split())) if current else ("", ())

    def _disk(self, device: str | None) -> RecordedDisk | None:
        wanted = (None, "") if device is None else (device, device.replace(":", ","))
        disks = [disk for disk in self.disks if device is None or disk.name in wanted or disk.number in wanted]
        return disks[0] if len(disks) == 1 else None


def of(source: Source) -> Recording | None:
    """Return what a file tells of its recording; None if it is no archive of `headwaiter record`. Problem if that is damaged."""
    if not source.is_archive:
        return None
    members = {member.path: member for member in source.unpacked()}
    begin = members.get(source.path / BEGIN)
    return read(begin) if begin else None


def read(begin: Source) -> Recording:
    """The recording that a `headwaiter.json` begins. Problem, naming the file, if it is none."""
    start = _document(begin)
    if start.get("headwaiter") != VERSION:
        raise begin.problem(f"not of this version of the format ({VERSION})")
    recorder = _text(begin, start, "recorder")
    if recorder not in RECORDERS:
        raise begin.problem("recorder: not one of " + ", ".join(RECORDERS))
    disks = tuple(_disk(begin, one) for one in _list(begin, start, "disks"))
    last = begin.members.get(beside(begin, END))
    end = _document(last) if last else {}
    began_ns = _number(begin, start, "began_ns")
    processors = _number(begin, start, "processors") if "processors" in start else None
    if not last:
        return Recording(recorder, _text(begin, start, "kernel"), disks, began_ns, None, "", 0, (), processors)
    names = ("cpu", "events", "from_ns", "to_ns")
    gaps = tuple(Gap(*(_number(last, _mapping(last, one), name) for name in names)) for one in _list(last, end, "gaps"))
    return Recording(
        recorder=recorder,
        kernel=_text(begin, start, "kernel"),
        disks=disks,
        began_ns=began_ns,
        ended_ns=max(began_ns, _number(last, end, "ended_ns")),
        reason=_text(last, end, "reason"),
        lost=_number(last, end, "lost"),
        gaps=gaps,
        processors=processors,
    )


def beside(begin: Source, name: str) -> Path:
    """The path of another file of the archive."""
    return begin.path.parent / name


def _disk(source: Source, value: Any) -> RecordedDisk:
    one = _mapping(source, value)
    facts, settings = (_texts(source, _mapping(source, one.get(key)), key) for key in ("facts", "settings"))
    return RecordedDisk(_text(source, one, "name"), _text(source, one, "number"), facts, settings)


def _document(source: Source) -> Mapping[str, Any]:
    try:
        return _mapping(source, json.loads(source.data))
    except (ValueError, RecursionError):
        raise source.problem("not JSON") from None


def _mapping(source: Source, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise source.problem("an object is missing where one is expected")
    return value


def _list(source: Source, document: Mapping[str, Any], key: str) -> list[Any]:
    value = document.get(key)
    if not isinstance(value, list):
        raise source.problem(f"{key}: not a list")
    return value


def _text(source: Source, document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise source.problem(f"{key}: not text")
    return plain(value)


def _texts(source: Source, document: Mapping[str, Any], key: str) -> dict[str, str]:
    if not all(isinstance(value, str) for value in document.values()):
        raise source.problem(f"{key}: not all of it is text")
    return {plain(name): plain(value) for name, value in document.items()}


def _number(source: Source, document: Mapping[str, Any], key: str) -> int:
    value = document.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST:
        raise source.problem(f"{key}: not a number from 0 to 2^62")
    return value
