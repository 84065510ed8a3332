# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recorders for machines on which tracefs is denied: blktrace, and where only that is there, bpftrace."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from headwaiter.ending import tidied
from headwaiter.errors import Problem, shown
from headwaiter.live.archive import Archive
from headwaiter.live.devices import Device

_STARTS_WITHIN_S = 0.5
"""A recorder that cannot work ends at once."""
_ENDS_WITHIN_S = 20.0
_DROPPED = re.compile(r"dropped (\d{1,18})")

_LINE = (
    'printf("%s-%d [%03d] %llu.%09llu: NAME: %d,%d %s %llu + %u [%s]\\n", comm, pid, cpu, nsecs / 1000000000, nsecs % 1000000000,'
)
_EVENTS = (("block_bio_queue", "comm"), ("block_rq_complete", '"0"'))


class MissingError(Exception):
    """The program is not there, or does not work here; the message is why."""


class Program:
    """A program that records into a folder until it gets SIGINT; what it leaves there goes into the archive at the end."""

    name = ""

    def __init__(self, disks: Sequence[Device], archive: Archive, folder: Path) -> None:
        self.archive, self.folder = archive, folder
        self.gaps: list[dict[str, int]] = []
        self.process = self._start(self.arguments(disks))

    def arguments(self, disks: Sequence[Device]) -> list[str]:
        """How the program is called, without its name."""
        raise NotImplementedError

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
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STARTS_WITHIN_S)
            raise MissingError(shown(" ".join(self._said().split()) or f"ended with status {process.returncode}", 200))
        return process

    def _said(self) -> str:
        return (self.folder / "said").read_text(encoding="utf-8", errors="replace")

    def drain(self) -> None:
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
                self.archive.add(path.name, path.read_bytes())

    def end(self) -> None:
        """Let it write what it holds and end, and else end it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Blktrace(Program):
    """blktrace, into binary files, one for each CPU."""

    name = "blktrace"

    def arguments(self, disks: Sequence[Device]) -> list[str]:
        """See Program."""
        named = [word for disk in disks for word in ("-d", f"/dev/{disk.name.replace('!', '/')}")]
        return [*named, "-o", "trace"] if len(disks) == 1 else named


class Bpftrace(Program):
    """bpftrace, into text as ftrace's."""

    name = "bpftrace"

    def arguments(self, disks: Sequence[Device]) -> list[str]:
        """See Program."""
        return ["-q", "-o", "events.txt", "-e", script([disk.number for disk in disks])]


def script(numbers: Sequence[int]) -> str:
    """The program of bpftrace that prints queueing and completion of some disks, by dev_t."""
    wanted = " || ".join(f"args->dev == {number}" for number in numbers)
    probes = []
    for name, comm in _EVENTS:
        line = _LINE.replace("NAME", name)
        values = f"args->dev >> 20, args->dev & 0xfffff, args->rwbs, args->sector, args->nr_sector, {comm});"
        probes.append(f"tracepoint:block:{name} /{wanted}/ {{ {line} {values} }}")
    return "\n".join(probes)


@contextmanager
def started(make: type[Program], disks: Sequence[Device], archive: Archive, folder: Path) -> Iterator[Program]:
    """The program, recording into a folder beside the archive. MissingError if it cannot."""
    with tempfile.TemporaryDirectory(prefix=".headwaiter-", dir=folder) as inner:
        program = make(disks, archive, Path(inner))
        with tidied(program.end):
            yield program
