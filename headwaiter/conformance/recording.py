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

from ..errors import Problem

VERSION = "headwaiter-conformance-1"
COLUMNS = ("time_ns", "event", "request", "other", "sector", "sectors", "op", "flags", "ioprio", "task", "cpu")
EVENTS = ("insert", "back", "front", "join", "dispatch", "issue", "complete", "requeue", "exit", "attach",
          "timer", "allow")
NONE = -1


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
class Recording:
    """Facts by name, and events in order of time."""

    facts: dict[str, str]
    events: list[Event] = field(default_factory=list)

    def fact(self, name: str) -> str:
        """A fact that every recording has."""
        try:
            return self.facts[name]
        except KeyError:
            raise Problem(f"recording: it does not say '{name}='") from None

    def number(self, name: str) -> int:
        """A fact that is a number."""
        try:
            return int(self.fact(name))
        except ValueError:
            raise Problem(f"recording: {name}={self.facts[name]} is no number") from None

    @property
    def settings(self) -> dict[str, str]:
        """The scheduler's tunables as the kernel showed them."""
        return {key[4:]: value for key, value in self.facts.items() if key.startswith("set.")}


def encode(recording: Recording) -> bytes:
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
        raise Problem(f"{where}: '{row[1]}' is no event (there are: {', '.join(EVENTS)})")
    try:
        rest = [int(v) if v else NONE for v in row[2:]]
        event = Event(int(row[0]), row[1], *rest)
    except ValueError:
        raise Problem(f"{where}: not a number in {','.join(row)}") from None
    if min(event.time_ns, *rest) < NONE:
        raise Problem(f"{where}: a negative number in {','.join(row)}")
    if event.time_ns < last_ns:
        raise Problem(f"{where}: time goes back, from {last_ns} to {event.time_ns} ns")
    return event


def read(path: Path) -> Recording:
    """Read a recording; Problem naming file and line when it is damaged."""
    try:
        text = lzma.decompress(path.read_bytes()).decode()
    except OSError as e:
        raise Problem(f"{path}: {e.strerror}") from None
    except (lzma.LZMAError, EOFError, UnicodeDecodeError):
        raise Problem(f"{path}: not a recording: no whole xz file of text") from None
    lines = text.splitlines()
    if not lines or lines[0] != f"# {VERSION}":
        raise Problem(f"{path}:1: not a recording: '# {VERSION}' expected")
    recording = Recording({})
    at = 1
    while at < len(lines) and lines[at].startswith("# "):
        key, _, value = lines[at][2:].partition("=")
        recording.facts[key] = value
        at += 1
    if at == len(lines) or lines[at] != ",".join(COLUMNS):
        raise Problem(f"{path}:{at + 1}: the line of column names expected")
    last_ns = 0
    for number, row in enumerate(csv.reader(lines[at + 1 :]), at + 2):
        event = _event(path, number, row, last_ns)
        last_ns = event.time_ns
        recording.events.append(event)
    return recording
