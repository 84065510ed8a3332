# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Record what is asked of disks, for a while, into an archive. Nothing is written to a device.

The recorder is the kernel's tracing, through an instance of our own; where that is denied blktrace, and where only that is there
bpftrace (substitutes.py). Whatever ends a recording, what was recorded until then is kept.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headwaiter.base.archives import BLKTRACE, BPFTRACE, PAGE, TRACEFS, VERSION, used_bytes
from headwaiter.base.ending import gently
from headwaiter.base.errors import Problem
from headwaiter.base.outputs import Temporary, anew, writing
from headwaiter.base.places import Place
from headwaiter.queue.devices import Device
from headwaiter.recorder import substitutes as others
from headwaiter.recorder import tracefs
from headwaiter.recorder.anonymous import Anonymous
from headwaiter.recorder.packing import Archive, FullError

READ_EACH_S = 0.1
LOOK_EACH_S = 1.0
"""Interval at which the disks' presence, their counters and losses are looked at."""
BUFFER_KB = 8192
_CHUNK = 1 << 20
_PAGES = 256
_COMMITS = struct.Struct(f"<8xQ{PAGE - 16}x")
"""The header of a page."""
FINISHED, _TOLD = "time", "a signal"
_MODE = 0o600
"""The mode of a new archive, whatever the umask: it names programs, and places on the disk."""


@dataclass(frozen=True)
class Sofar:
    """Progress since the recording began: requests completed and bytes moved of all disks, and events lost."""

    seconds: float
    requests: int
    bytes: int
    lost: int
    recorded_bytes: int


@dataclass(frozen=True)
class RecordingDone:
    """A recording that is over; `reason` is "time", "a signal", or what went wrong."""

    recorder: str
    reason: str
    sofar: Sofar
    gaps: tuple[dict[str, int], ...]

    @property
    def trouble(self) -> str:
        """Return what went wrong; "" if nothing did."""
        return "" if self.reason in (FINISHED, _TOLD) else self.reason


class Keeper(Protocol):
    """A taker of what is recorded, as the files of an archive."""

    def add(self, name: str, content: bytes | bytearray) -> None:
        """Take a file. FullError if there is no room for it."""


class Recorder(Protocol):
    """A recorder; its files go into the archive that it is given."""

    gaps: list[dict[str, int]]

    def drain(self) -> None:
        """Move what has been recorded into the archive. FullError if there is no room."""

    def look(self) -> int:
        """Return how many events have been lost, noting the gaps. Problem if the recorder has ended by itself."""

    def finish(self) -> None:
        """Record no more, and move what is left. FullError if there is no room."""


@dataclass
class Tracing:
    """Pages of a private instance."""

    instance: tracefs.Instance
    archive: Keeper
    gaps: list[dict[str, int]] = field(default_factory=list)
    _pending: dict[int, bytearray] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)
    _seen: dict[int, tracefs.Stats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._whole = memoryview(bytearray(_PAGES * PAGE))
        self._pages = [self._whole[k * PAGE : (k + 1) * PAGE] for k in range(_PAGES)]

    def drain(self) -> None:
        """See Recorder. Few steps of Python for each page: they are a part of the recorder's cost."""
        for cpu in self.instance.cpus:
            kept = self._pending.setdefault(cpu, bytearray())
            while size := self.instance.read(cpu, self._pages):
                for page, (commit,) in zip(self._pages, _COMMITS.iter_unpack(self._whole[:size]), strict=False):
                    kept += page[: used_bytes(commit)]
                if len(kept) >= _CHUNK:
                    self._store(cpu)
                if size < len(self._whole):
                    break

    def _store(self, cpu: int) -> None:
        kept = self._pending[cpu]
        if kept:
            number = self._numbers.get(cpu, 0)
            self._numbers[cpu] = number + 1
            try:
                self.archive.add(f"cpu{cpu}/{number:06d}", kept)
            finally:
                kept.clear()

    def look(self) -> int:
        """See Recorder. A gap lies between two looks."""
        total = 0
        for cpu in self.instance.cpus:
            now = self.instance.stats(cpu)
            before = self._seen.get(cpu, tracefs.Stats(0, now.now_ns))
            if now.lost > before.lost:
                self._gap(cpu, now.lost - before.lost, before.now_ns, now.now_ns)
            self._seen[cpu] = now
            total += now.lost
        return total

    def _gap(self, cpu: int, events: int, from_ns: int, to_ns: int) -> None:
        last = next((gap for gap in reversed(self.gaps) if gap["cpu"] == cpu), None)
        if last and last["to_ns"] >= from_ns:
            last["events"] += events
            last["to_ns"] = to_ns
        else:
            self.gaps.append({"cpu": cpu, "events": events, "from_ns": from_ns, "to_ns": to_ns})

    def finish(self) -> None:
        """See Recorder."""
        self.instance.stop()
        self.hand_over()

    def hand_over(self) -> None:
        """Move all that has been recorded into the archive, however little it is."""
        self.drain()
        for cpu in self.instance.cpus:
            self._store(cpu)


def with_issues(disks: Sequence[Device], asked: bool | None) -> bool:
    """Whether to record also when a device gets a request: as asked, else if a disk rotates, for those take few requests."""
    return any(disk.rotational for disk in disks) if asked is None else asked


def record(
    disks: Sequence[Device],
    seconds: float,
    output: Path,
    *,
    issues: bool | None = None,
    buffer_kb: int = BUFFER_KB,
    recorder: str | None = None,
    anonymous: bool = False,
    each_second: Callable[[Sofar], None] = lambda sofar: None,
) -> RecordingDone:
    """Record disks into a file, for so many seconds or until a signal comes; `issues`: also when the device gets a request.

    Nobody else may read a new file; one that is there keeps its mode. anonymous: names are taken out before anything is kept
    (anonymous.py), which needs the kernel's tracing.

    `recorder` None: the first of RECORDERS that works here. Problem if there is none, or nothing can be kept. Trouble that
    comes later is in what is returned, and what was recorded until then in the file.
    """
    issues = with_issues(disks, issues)
    if anonymous:
        if recorder not in (None, TRACEFS):
            raise Problem(f"--anonymous: names are taken out of what {TRACEFS} records only, not out of {recorder}'s files")
        recorder = TRACEFS
    with gently() as told, writing(output, _MODE) as temporary:
        archive = Archive(temporary)
        try:
            with _recorder(disks, archive, temporary.place, issues, buffer_kb, recorder) as (name, recording, start):
                begun = _begin(name, disks, seconds, archive, buffer_kb)
                start()
                done = _run(name, recording, disks, seconds, archive, begun, told, each_second)
            if anonymous:
                _without_names(archive, temporary, output)
            else:
                with suppress(OSError), anew(temporary) as packed:  # without room for that it stays as it is
                    archive.pack(packed)
            return done
        except FullError as e:
            raise Problem(f"{output}: {e}") from None
        finally:
            archive.close()


def _without_names(archive: Archive, temporary: Temporary, output: Path) -> None:
    try:
        with anew(temporary) as packed:
            archive.pack_changed(packed, Anonymous().file)
    except OSError as e:
        raise Problem(f"{output}: {e.strerror or e}: names cannot be taken out, so nothing is kept") from None


@contextmanager
def followed(disk: Device, keeper: Keeper, *, issues: bool, buffer_kb: int = BUFFER_KB) -> Iterator[Tracing]:
    """Record a disk, by the kernel's tracing, into what keeps it, until the block is left: the caller drains.

    Problem if tracing cannot be used here.
    """
    try:
        with _tracing([disk], keeper, issues, buffer_kb) as recorder:
            _start_tracefs(recorder.instance, keeper)
            yield recorder
    except tracefs.DeniedError as e:
        raise Problem(f"{disk.name}: {_root_only()}{e}") from None


@contextmanager
def _tracing(disks: Sequence[Device], keeper: Keeper, issues: bool, buffer_kb: int) -> Iterator[Tracing]:
    root = tracefs.place()
    tracefs.remove_stale(root)
    events = (*tracefs.EVENTS, *((tracefs.ISSUES, tracefs.INSERTS) if issues else ()))
    with tracefs.instance(root, events, [disk.number for disk in disks], buffer_kb) as instance:
        yield Tracing(instance, keeper)


def _root_only() -> str:
    return "" if os.geteuid() == 0 else "recording needs root; "


@contextmanager
def _recorder(
    disks: Sequence[Device], archive: Archive, place: Place, issues: bool, buffer_kb: int, wanted: str | None
) -> Iterator[tuple[str, Recorder, Callable[[], None]]]:
    """(name, the recorder, what starts it) of the first that works."""
    why: list[str] = []
    if wanted in (None, TRACEFS):
        try:
            with _tracing(disks, archive, issues, buffer_kb) as recorder:
                yield TRACEFS, recorder, lambda: _start_tracefs(recorder.instance, archive)
                return
        except tracefs.DeniedError as e:
            why.append(str(e))
    for name, make in ((BLKTRACE, others.Blktrace), (BPFTRACE, others.Bpftrace)):
        if wanted in (None, name):
            try:
                with others.started(make, disks, archive, place) as other:
                    yield name, other, lambda: None
                    return
            except others.MissingError as e:
                why.append(f"{name}: {e}")
    raise Problem(f"{', '.join(disk.name for disk in disks)}: {_root_only()}{'; '.join(why)}")


def _start_tracefs(instance: tracefs.Instance, archive: Keeper) -> None:
    for event in instance.events:
        archive.add(f"events/{event}", instance.format(event))
    instance.start()


def _begin(name: str, disks: Sequence[Device], seconds: float, archive: Archive, buffer_kb: int) -> int:
    """Write how the recording begins; the time of that."""
    began_ns = time.monotonic_ns()
    archive.begin(beginning(name, disks, seconds, buffer_kb, began_ns))
    return began_ns


def beginning(name: str, disks: Sequence[Device], seconds: float, buffer_kb: int, began_ns: int) -> dict[str, Any]:
    """Return what an archive's first file says."""
    return {
        "headwaiter": VERSION,
        "recorder": name,
        "kernel": os.uname().release,
        "processors": os.sysconf("SC_NPROCESSORS_ONLN"),
        "clock": tracefs.CLOCK,
        "began_ns": began_ns,
        "began_unix_ns": time.time_ns(),
        "seconds": seconds,
        "buffer_kb": buffer_kb,
        "page_bytes": PAGE,
        "disks": [{"name": d.name, "number": f"{d.major},{d.minor}", "facts": d.facts(), "settings": d.settings} for d in disks],
    }


def _run(
    name: str,
    recorder: Recorder,
    disks: Sequence[Device],
    seconds: float,
    archive: Archive,
    began_ns: int,
    told: threading.Event,
    each_second: Callable[[Sofar], None],
) -> RecordingDone:
    before = {disk.name: _counters(disk) for disk in disks}
    latest = dict(before)
    end_ns, next_look_ns = began_ns + round(seconds * 1e9), began_ns + round(LOOK_EACH_S * 1e9)
    reason, lost = FINISHED, 0

    def sofar(now_ns: int) -> Sofar:
        # Of a disk that has gone the last that was known.
        latest.update((disk.name, now) for disk in disks if (now := _counters(disk)) >= latest[disk.name])
        requests, sectors = (sum(latest[name][k] - before[name][k] for name in before) for k in (0, 1))
        return Sofar((now_ns - began_ns) / 1e9, requests, 512 * sectors, lost, archive.bytes)

    recorder.look()
    try:
        while (now_ns := time.monotonic_ns()) < end_ns:
            if told.wait(min(READ_EACH_S, (end_ns - now_ns) / 1e9)):
                reason = _TOLD
                break
            recorder.drain()
            if time.monotonic_ns() >= next_look_ns:
                next_look_ns += round(LOOK_EACH_S * 1e9)
                lost = recorder.look()
                if gone := [disk.name for disk in disks if not disk.is_there()]:
                    reason = f"{', '.join(gone)} has vanished"
                    break
                each_second(sofar(time.monotonic_ns()))
        recorder.finish()
        lost = recorder.look()
    except FullError as e:
        reason = str(e)
        lost = recorder.look()
    except Problem as e:
        reason = str(e)
    ended_ns = time.monotonic_ns()
    done = RecordingDone(name, reason, sofar(ended_ns), tuple(recorder.gaps))
    end: dict[str, Any] = {"ended_ns": ended_ns, "reason": reason, "lost": lost, "gaps": recorder.gaps}
    end["stat"] = {disk.name: _stat(disk) for disk in disks}
    archive.end(end)
    return done


def _stat(disk: Device) -> str:
    try:
        return " ".join((disk.folder / "stat").read_text(encoding="ascii").split())
    except OSError:
        return ""


def _counters(disk: Device) -> tuple[int, int]:
    """(requests completed, sectors moved) since the disk is there; zeros if it has gone."""
    numbers = [int(word) for word in _stat(disk).split()]
    if len(numbers) < 11:
        return 0, 0
    discards = numbers[11:15] or [0, 0, 0, 0]
    return numbers[0] + numbers[4] + discards[0], numbers[2] + numbers[6] + discards[2]
