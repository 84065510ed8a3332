# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A recording of what a kernel's scheduler was given and what it decided: a text file, compressed with xz.

Lines `# key=value` say how it was made; `set.NAME` is a tunable of the scheduler as the kernel shows it, `tick_ns` the
length of the kernel's tick. Ticks begin at multiples of it. Then CSV with a header line, one event a row:

    insert    request, sector, sectors, op, flags, ioprio, task, cpu
    allow     request, sector, …: may a bio of this kind join the request? Asked of bfq, which merges queues on it
    back      request has grown by so many sectors behind; front: before
    join      request `other` lay behind `request` and has become part of it
    dispatch  the scheduler was asked and gave this request, or none (empty)
    issue     the request was given to the device
    complete, requeue   by the device
    exit      the task has exited
    attach    the scheduler was attached to the device
    timer     the scheduler's timer ran

Times are those at which the block layer said so; for bfq, which judges by ns, those that it went by itself.
"""

from __future__ import annotations

import csv
import io
import lzma
from dataclasses import dataclass, field
from pathlib import Path

from headwaiter.base.errors import Problem, plain, shown
from headwaiter.base.parsing import whole
from headwaiter.base.reading import read_bytes, unpack

VERSION = "headwaiter-conformance-1"
COLUMNS = ("time_ns", "event", "request", "other", "sector", "sectors", "op", "flags", "ioprio", "task", "cpu")
EVENTS = ("insert", "back", "front", "join", "dispatch", "issue", "complete", "requeue", "exit", "attach", "timer", "allow")
NONE = -1
LARGEST = {
    "time_ns": 2**62,
    "request": 2**40,
    "other": 2**40,
    "sector": 2**55,
    "sectors": 2**32 - 1,
    "op": 3,
    "flags": 7,
    "ioprio": 2**16 - 1,
    "task": 2**32 - 1,
    "cpu": 1023,
}
FACTS = {"depth": (1, 2**20), "nr_requests": (0, 2**20), "tick_ns": (1000, 10**9)}
"""The least and largest value of the facts that are numbers."""
NEEDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("insert", "allow"), ("request", "sector", "sectors", "op", "flags", "ioprio", "task", "cpu")),
    **dict.fromkeys(("back", "front"), ("request", "sectors")),
    **dict.fromkeys(("issue", "complete", "requeue"), ("request",)),
    "join": ("request", "other"),
    "exit": ("task",),
}
"""What a row of each event must tell; the others need nothing but the time."""


@dataclass
class Event:
    """One row. Numbers that the event has no use for are NONE."""

    time_ns: int
    event: str
    request: int = NONE
    other: int = NONE
    sector: int = NONE
    sectors: int = NONE
    op: int = NONE
    flags: int = NONE
    ioprio: int = NONE
    task: int = NONE
    cpu: int = NONE


@dataclass
class DecisionRecording:
    """Facts by name, and events in order of time."""

    facts: dict[str, str]
    events: list[Event] = field(default_factory=list)

    def fact(self, name: str) -> str:
        """A fact that every recording has."""
        try:
            return self.facts[name]
        except KeyError:
            raise Problem(f"recording: '{name}=' is missing") from None

    def number(self, name: str) -> int:
        """A fact that is a number, within the bounds of FACTS."""
        try:
            return whole(self.fact(name), *FACTS[name])
        except ValueError as e:
            raise Problem(f"recording: {name}: {e}") from None

    @property
    def settings(self) -> dict[str, str]:
        """The scheduler's tunables as the kernel showed them."""
        return {key[4:]: value for key, value in self.facts.items() if key.startswith("set.")}


def encode(recording: DecisionRecording) -> bytes:
    """A recording as a file has it; the same recording gives the same bytes."""
    out = io.StringIO()
    out.write(f"# {VERSION}\n")
    for key, value in recording.facts.items():
        out.write(f"# {key}={value}\n")
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for e in recording.events:
        values = (getattr(e, c) for c in COLUMNS)
        rows.writerow(["" if v == NONE else v for v in values])
    return lzma.compress(out.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME)


def _event(path: Path, number: int, row: list[str], last_ns: int) -> Event:
    where = f"{path}:{number}"
    if len(row) != len(COLUMNS):
        raise Problem(f"{where}: {len(row)} columns, not {len(COLUMNS)}")
    if row[1] not in EVENTS:
        raise Problem(f"{where}: '{shown(row[1])}' is not an event (known: {', '.join(EVENTS)})")
    values = {}
    for name, text in zip(COLUMNS, row, strict=True):
        if name == "event":
            continue
        try:
            values[name] = whole(text, 0, LARGEST[name]) if text else NONE
        except ValueError as e:
            raise Problem(f"{where}: {name}: {e}") from None
    for name in ("time_ns", *NEEDS.get(row[1], ())):
        if values[name] == NONE:
            raise Problem(f"{where}: {row[1]} without {name}")
    event = Event(event=row[1], **values)
    if event.sector + event.sectors > LARGEST["sector"]:
        raise Problem(f"{where}: sectors {event.sector}+{event.sectors} lie beyond any disk")
    if row[1] in ("insert", "allow", "back", "front") and not event.sectors:
        raise Problem(f"{where}: {row[1]} of no sectors")
    if event.time_ns < last_ns:
        raise Problem(f"{where}: time goes backwards, from {last_ns} to {event.time_ns} ns")
    return event


def read(path: Path) -> DecisionRecording:
    """Read a recording; Problem naming file and line when it is damaged."""
    raw = read_bytes(path)
    if not raw.startswith(b"\xfd7zXZ\0"):
        raise Problem(f"{path}: not a recording: not a complete xz file of text")
    return parse(path, unpack(path, raw))


def parse(path: Path, data: bytes) -> DecisionRecording:
    """A recording from its text; path is for messages."""
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        raise Problem(f"{path}: not a recording: not a complete xz file of text") from None
    if lines[-1] == "":
        lines.pop()
    if not lines or lines[0] != f"# {VERSION}":
        raise Problem(f"{path}:1: not a recording: expected '# {VERSION}'")
    recording = DecisionRecording({})
    at = 1
    while at < len(lines) and lines[at].startswith("# "):
        key, _, value = lines[at][2:].partition("=")
        recording.facts[plain(key)] = plain(value)
        at += 1
    if at == len(lines) or lines[at] != ",".join(COLUMNS):
        raise Problem(f"{path}:{at + 1}: expected the line of column names")
    last_ns = 0
    for number, line in enumerate(lines[at + 1 :], at + 2):
        event = _event(path, number, line.split(","), last_ns)
        last_ns = event.time_ns
        recording.events.append(event)
    return recording
