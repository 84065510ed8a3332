# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recorders for machines on which tracefs is denied: blktrace, and where only that is there, bpftrace."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headwaiter.base.ending import tidied
from headwaiter.base.errors import Problem, shown
from headwaiter.base.places import Place
from headwaiter.queue.devices import Device
from headwaiter.recorder.packing import Archive

_STARTS_WITHIN_S = 30.0
"""bpftrace compiles its program first."""
_LOOKS_EACH_S = 0.02
_ENDS_WITHIN_S = 20.0
_EVENTS_FILE = "events.txt"
_LOST = re.compile(rb"^Lost (\d{1,18}) events$", re.M)
_DROPPED = re.compile(r"dropped (\d{1,18})")

_LINE = (
    'printf("%s-%d [%03d] %llu.%09llu: NAME: %d,%d %s %llu + %u [%s]\\n", comm, pid, cpu, nsecs / 1000000000, nsecs % 1000000000,'
)
_EVENTS = (("block_bio_queue", "comm"), ("block_rq_complete", '"0"'))


class MissingError(Exception):
    """The program is not there, or does not work here; the message is why."""


class RecorderProgram(ABC):
    """A program that records into a folder until it gets SIGINT; what it leaves there goes into the archive at the end."""

    name = ""

    def __init__(self, disks: Sequence[Device], archive: Archive, folder: Path) -> None:
        self.archive, self.folder = archive, folder
        self.gaps: list[dict[str, int]] = []
        self.process = self._start(self.arguments(disks))

    @abstractmethod
    def arguments(self, disks: Sequence[Device]) -> list[str]:
        """Return how the program is called, without its name."""

    def lost(self) -> int:
        """Events that the program says that it has lost, once it has ended."""
        found = [int(number) for number in _DROPPED.findall(self._said())]
        return max(found, default=0)

    def _start(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        path = shutil.which(self.name)
        if not path:
            raise MissingError("not installed")
        with (self.folder / "said").open("wb") as said:
            process = subprocess.Popen(
                [path, *arguments], stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.folder, start_new_session=True
            )
        deadline = time.monotonic() + _STARTS_WITHIN_S
        while process.poll() is None and not self.records():
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise MissingError("does not begin to record")
            time.sleep(_LOOKS_EACH_S)
        if process.returncode is not None:
            raise MissingError(shown(" ".join(self._said().split()) or f"ended with status {process.returncode}", 200))
        return process

    def records(self) -> bool:
        """Return whether it has begun: its files are there."""
        return any(path.name != "said" for path in self.folder.iterdir())

    def _said(self) -> str:
        return (self.folder / "said").read_text(encoding="utf-8", errors="replace")

    def drain(self) -> None:  # noqa: B027 (not abstract: right for both)
        """See Recorder: these keep what they record in files of their own."""

    def look(self) -> int:
        """See Recorder."""
        if self.process.poll() is not None and not self._ended:
            raise Problem(f"{self.name} has ended by itself: {shown(' '.join(self._said().split()), 200)}")
        return self.lost() if self._ended else 0

    _ended = False

    def finish(self) -> None:
        """See Recorder."""
        self._ended = True
        self.end()
        for path in sorted(self.folder.iterdir()):
            if path.name != "said":
                self.archive.add(path.name, self.content(path))

    def content(self, path: Path) -> bytes:
        """Return the content of one of its files, as it is kept."""
        return path.read_bytes()

    def end(self) -> None:
        """Let it write what it holds and end, and else end it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Blktrace(RecorderProgram):
    """blktrace, into binary files, one for each CPU."""

    name = "blktrace"

    def arguments(self, disks: Sequence[Device]) -> list[str]:
        """See Program."""
        named = [word for disk in disks for word in ("-d", f"/dev/{disk.name.replace('!', '/')}")]
        return [*named, "-o", "trace"] if len(disks) == 1 else named


class Bpftrace(RecorderProgram):
    """bpftrace, into text as ftrace's."""

    name = "bpftrace"

    def arguments(self, disks: Sequence[Device]) -> list[str]:
        """See Program."""
        return ["-q", "-B", "line", "-o", _EVENTS_FILE, "-e", script([disk.number for disk in disks])]

    def records(self) -> bool:
        """See Program: its first line says so."""
        file = self.folder / _EVENTS_FILE
        return file.exists() and file.stat().st_size > 0

    def lost(self) -> int:
        """See Program: it says so among the events."""
        return sum(map(int, _LOST.findall((self.folder / _EVENTS_FILE).read_bytes())))

    def content(self, path: Path) -> bytes:
        """See Program; losses as ftrace tells them."""
        return _LOST.sub(rb"CPU:0 [LOST \1 EVENTS]", path.read_bytes())


def script(numbers: Sequence[int]) -> str:
    """The program of bpftrace that prints queueing and completion of some disks, by dev_t."""
    wanted = " || ".join(f"args->dev == {number}" for number in numbers)
    probes = ['BEGIN { printf("# recording\\n"); }']
    for name, comm in _EVENTS:
        line = _LINE.replace("NAME", name)
        values = f"args->dev >> 20, args->dev & 0xfffff, args->rwbs, args->sector, args->nr_sector, {comm});"
        probes.append(f"tracepoint:block:{name} /{wanted}/ {{ {line} {values} }}")
    return "\n".join(probes)


@contextmanager
def started(make: type[RecorderProgram], disks: Sequence[Device], archive: Archive, place: Place) -> Iterator[RecorderProgram]:
    """The program, recording into a folder beside the archive. MissingError if it cannot."""
    with place.workshop() as folder:
        program = make(disks, archive, folder)
        with tidied(program.end):
            yield program
