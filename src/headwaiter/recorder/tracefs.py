# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A private instance of the kernel's tracing: its own buffers, clock, events and filters, so that no other tracing is touched.

An instance outlives the process that made it, and goes on costing: its name says whose it is, and those of processes that are no
longer there are removed by the next recorder.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EACCES, EBUSY, EPERM, EROFS
from pathlib import Path

from headwaiter.base.ending import tidied
from headwaiter.base.errors import Problem

USUAL = Path("/sys/kernel/tracing")
PREFIX = "headwaiter"
EVENTS = (
    "block/block_bio_queue",
    "block/block_split",
    "block/block_bio_remap",
    "block/block_rq_complete",
    "sched/sched_process_fork",
    "sched/sched_process_exit",
)
ISSUES = "block/block_rq_issue"
"""When a request is given to the device: for its service times and its true depth."""
INSERTS = "block/block_rq_insert"
"""When the scheduler is given a write, which write-back throttling may have held back. Of reads it tells nothing."""
_ONLY = {INSERTS: 'rwbs ~ "*W*"'}
CLOCK = "mono"
_INSTANCE = re.compile(rf"{PREFIX}-(\d{{1,10}})-(\d{{1,20}})")
_MOST_FILTERED = 24
"""Disks in a filter; with more of them all disks' events are recorded, and chosen from later."""
_STATS = re.compile(r"^(entries|overrun|commit overrun|dropped events|read events|now ts):\s*(\d+)(?:\.(\d{6}))?", re.M)


class DeniedError(Exception):
    """Tracing cannot be used here; the message is why."""


@dataclass(frozen=True)
class Stats:
    """The state of one CPU's buffer: events lost since the beginning, and the time of the clock at which that was so."""

    lost: int
    now_ns: int


def place(mounts: Path = Path("/proc/self/mounts"), usual: Path = USUAL) -> Path:
    """Return the mount point of tracefs, after mounting it if it was nowhere. DeniedError if that cannot be done."""
    with suppress(OSError):
        for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split()
            if len(words) > 2 and words[2] == "tracefs":
                return Path(words[1])
    if not usual.is_dir():
        raise DeniedError("this kernel has no tracefs")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"nodev", os.fsencode(usual), b"tracefs", 0, None):
        raise DeniedError(f"tracefs cannot be mounted: {os.strerror(ctypes.get_errno())}")
    return usual


def own_name() -> str:
    """The name of this process's instance."""
    return f"{PREFIX}-{os.getpid()}-{_started(os.getpid())}"


def remove_stale(root: Path) -> list[str]:
    """Remove the instances of recorders that are no longer there; their names."""
    removed = []
    with suppress(OSError):
        for folder in sorted((root / "instances").iterdir()):
            found = _INSTANCE.fullmatch(folder.name)
            if found and _started(int(found[1])) != int(found[2]):
                with suppress(OSError):
                    folder.rmdir()
                    removed.append(folder.name)
    return removed


def _started(pid: int) -> int:
    """Return when a process began, in ticks since the machine did; -1 if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return -1
    # The command's name, in parentheses, may hold anything.
    return int(text.rpartition(")")[2].split()[19])


class Instance:
    """Buffers of this recording. Pages are read as the kernel has them."""

    def __init__(self, folder: Path, events: Sequence[str]) -> None:
        self.folder, self.events = folder, tuple(events)
        self.cpus: list[int] = []
        self._raw: dict[int, int] = {}

    def prepare(self, numbers: Sequence[int], buffer_kb: int) -> None:
        """Choose clock, size and events; record nothing yet. `numbers` are the disks', as dev_t."""
        self._write("tracing_on", "0")
        self._write("trace_clock", CLOCK)
        # What is kept must have no holes but the one at the end: the buffer takes nothing while it is full.
        self._write("options/overwrite", "0")
        self._write("buffer_size_kb", str(buffer_kb))
        if 0 < len(numbers) <= _MOST_FILTERED:
            wanted = " || ".join(f"dev == {number}" for number in numbers)
            for event in self.events:
                if event.startswith("block/"):
                    only = _ONLY.get(event)
                    self._write(f"events/{event}/filter", f"({wanted}) && {only}" if only else wanted)
        for event in self.events:
            self._write(f"events/{event}/enable", "1")
        folders = (self.folder / "per_cpu").iterdir()
        self.cpus = sorted(int(path.name[3:]) for path in folders if path.name.startswith("cpu"))
        for cpu in self.cpus:
            self._raw[cpu] = os.open(self.folder / f"per_cpu/cpu{cpu}/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)

    def start(self) -> None:
        """Record from now on."""
        self._write("tracing_on", "1")

    def stop(self) -> None:
        """Record no more; what is in the buffers can still be read."""
        self._write("tracing_on", "0")

    def format(self, event: str) -> bytes:
        """The event's `format` file."""
        return (self.folder / "events" / event / "format").read_bytes()

    def read(self, cpu: int, pages: Sequence[memoryview]) -> int:
        """Fill pages with those that a CPU has filled, and the one that it is at; how many bytes that is.

        The kernel gives one page for each part of a readv().
        """
        try:
            return os.readv(self._raw[cpu], pages)
        except BlockingIOError:
            return 0

    def stats(self, cpu: int) -> Stats:
        """Return what a CPU has lost until now."""
        text = (self.folder / f"per_cpu/cpu{cpu}/stats").read_text(encoding="ascii")
        found = {m[1]: int(m[2]) if m[3] is None else int(m[2]) * 10**9 + int(m[3]) * 1000 for m in _STATS.finditer(text)}
        lost = sum(found.get(name, 0) for name in ("overrun", "commit overrun", "dropped events"))
        return Stats(lost, found.get("now ts", 0))

    def close(self) -> None:
        """Remove it, whatever it is doing."""
        for handle in self._raw.values():
            with suppress(OSError):
                os.close(handle)
        self._raw.clear()
        with suppress(OSError):
            self.folder.rmdir()

    def _write(self, name: str, text: str) -> None:
        handle = os.open(self.folder / name, os.O_WRONLY)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)


@contextmanager
def instance(root: Path, events: Sequence[str], numbers: Sequence[int], buffer_kb: int) -> Iterator[Instance]:
    """An instance, ready to start, that is removed in the end. DeniedError if it cannot be made, or lacks an event."""
    folder = root / "instances" / own_name()
    try:
        folder.mkdir()
    except FileExistsError:
        raise Problem(f"{folder}: this process is recording already") from None
    except OSError as e:
        why = "only root may use it" if e.errno in (EACCES, EPERM, EROFS) and os.geteuid() else e.strerror
        raise DeniedError(f"tracefs: {why}") from None
    made = Instance(folder, events)
    with tidied(made.close):
        try:
            made.prepare(numbers, buffer_kb)
        except OSError as e:
            busy = "another recorder is reading it" if e.errno == EBUSY else e.strerror
            raise DeniedError(f"tracefs: {e.filename or folder}: {busy}") from None
        yield made
