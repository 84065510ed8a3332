# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The settings of a disk's queue: read, put in an order that keeps them, and read back.

A switch of the scheduler resets nr_requests and all tunables, so these follow it. The kernel makes each write whole even if the
writer is killed; only the sequence can be cut short, which is why state.py saves what was before.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote

from headwaiter.base.errors import Problem, shown
from headwaiter.queue.devices import Device, current_scheduler

SCHEDULER, NR_REQUESTS, WBT, TUNABLES = "scheduler", "nr_requests", "wbt_lat_usec", "iosched"
READ_AHEAD, QUEUE_DEPTH = "read_ahead_kb", "../device/queue_depth"
_TICKED = frozenset({"read_expire", "write_expire", "prio_aging_expire", "timeout_sync"})
"""Milliseconds that the kernel keeps in ticks, and so rounds."""
_TICK_MS = 10
"""The longest tick that Linux has."""
_LONGEST = 1 << 16
_LEAST_REQUESTS = 4
"""The kernel takes nothing less for nr_requests."""


@dataclass(frozen=True)
class Settings:
    """The settings of one queue. tunables: by the name of their file in iosched/.

    nr_requests, wbt_lat_usec, and tunables that are absent: of settings to be put, as the kernel has them after a switch. The
    others outlive a switch, and stay as they are where they are absent; of settings that were read, the disk lacks them.
    """

    scheduler: str
    nr_requests: int | None = None
    tunables: Mapping[str, str] = field(default_factory=dict, hash=False)
    wbt_lat_usec: int | None = None
    read_ahead_kb: int | None = None
    queue_depth: int | None = None

    def files(self) -> dict[str, str]:
        """Return what each file of queue/ says, in the order in which they must be written."""
        found = {SCHEDULER: self.scheduler}
        if self.nr_requests is not None:
            found[NR_REQUESTS] = str(self.nr_requests)
        found |= {f"{TUNABLES}/{name}": value for name, value in sorted(self.tunables.items())}
        rest = {WBT: self.wbt_lat_usec, READ_AHEAD: self.read_ahead_kb, QUEUE_DEPTH: self.queue_depth}
        return found | {file: str(value) for file, value in rest.items() if value is not None}

    def beside(self, wanted: Settings) -> Settings:
        """Return the settings without what outlives a switch of the scheduler and is not to be put."""
        return replace(
            self,
            read_ahead_kb=None if wanted.read_ahead_kb is None else self.read_ahead_kb,
            queue_depth=None if wanted.queue_depth is None else self.queue_depth,
        )

    def filled(self, other: Settings) -> Settings:
        """Return the settings with what they lack of that as another has it."""
        return replace(
            self,
            read_ahead_kb=other.read_ahead_kb if self.read_ahead_kb is None else self.read_ahead_kb,
            queue_depth=other.queue_depth if self.queue_depth is None else self.queue_depth,
        )


def by_way_of_none(before: Settings, wanted: Settings) -> bool:
    """Whether the scheduler in force must be chosen anew for its settings to act.

    bfq that is told low_latency=0 counts queues as no longer raised that never were (bfq_end_wr() of Linux 6.12), and while its
    count is wrong it does not idle for readers in sequence, which get a request a round (seen in the lab).
    """
    now, then = (one.tunables.get("low_latency") for one in (before, wanted))
    return before.scheduler == wanted.scheduler == "bfq" and then == "0" and now != "0"


def kept_requests(now: Settings, scheduler: str) -> int | None:
    """nr_requests for a switch to a scheduler: as it is, unless `none` has it, whose default is the device's depth."""
    return now.nr_requests if "none" not in (now.scheduler, scheduler) else None


@dataclass(frozen=True)
class Change:
    """A file of queue/, and what it said before and after."""

    file: str
    old: str
    new: str

    def __str__(self) -> str:
        """As it is told: `nr_requests 128 -> 4`, with a dash where there was nothing."""
        return f"{self.file} {self.old or '-'} -> {self.new}"


class Queue:
    """queue/ of one disk, held open: once the disk is gone every access fails, even if another disk has taken its name."""

    def __init__(self, device: Device, handle: int) -> None:
        self.device, self._handle = device, handle

    @property
    def folder(self) -> Path:
        """In sysfs."""
        return self.device.folder / "queue"

    def get(self, file: str) -> str:
        """Return what a file says, without the end of line. Problem if it cannot be read."""
        try:
            return self._get(file)
        except OSError as e:
            raise self._problem(file, e) from None

    def _get(self, file: str) -> str:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK, dir_fd=self._handle)
        try:
            return os.read(handle, _LONGEST).decode("utf-8", "replace").rstrip("\n")
        finally:
            os.close(handle)

    def set(self, file: str, value: str) -> None:
        """Write a file. Problem if the kernel refuses it."""
        try:
            self._set(file, value)
        except OSError as e:
            raise self._problem(file, e, value) from None

    def _set(self, file: str, value: str) -> None:
        # os.write, because an error of a buffered stream would be lost.
        handle = os.open(file, os.O_WRONLY | os.O_NOFOLLOW, dir_fd=self._handle)
        try:
            os.write(handle, f"{value}\n".encode())
        finally:
            os.close(handle)

    def _problem(self, file: str, error: OSError, value: str | None = None) -> Problem:
        refused = "" if value is None else f"'{shown(value)}' is refused: "
        return Problem(f"{self.folder / file}: {refused}{error.strerror}")

    def tunables(self) -> dict[str, str]:
        """Return the tunables of the scheduler in force that can be read and written, by name."""
        found = {}
        with suppress(OSError):  # `none` has no folder
            handle = os.open(TUNABLES, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._handle)
            try:
                names = [n for n in os.listdir(handle) if stat.S_IMODE(os.stat(n, dir_fd=handle).st_mode) & 0o600 == 0o600]
            finally:
                os.close(handle)
            for name in sorted(names):
                with suppress(OSError):
                    found[name] = self._get(f"{TUNABLES}/{name}")
        return found

    def offered(self) -> tuple[str, ...]:
        """The schedulers that the kernel has now; it may load others."""
        return tuple(word.strip("[]") for word in self.get(SCHEDULER).split())

    def read(self) -> Settings:
        """The settings in force. Problem if no scheduler acts here."""
        current = current_scheduler(self.get(SCHEDULER))
        if current is None:
            raise Problem(f"{self.device.name}: no scheduler acts on this device")
        nr_requests = self._number(NR_REQUESTS)
        wbt, read_ahead, depth = (self._optional(file) for file in (WBT, READ_AHEAD, QUEUE_DEPTH))
        return Settings(current, nr_requests, self.tunables(), wbt, read_ahead, depth)

    def _optional(self, file: str) -> int | None:
        """Return what a file says that not every disk has, or lets one write."""
        with suppress(OSError, ValueError):
            if os.stat(file, dir_fd=self._handle).st_mode & stat.S_IWUSR:
                return int(self._get(file))
        return None

    def _number(self, file: str) -> int:
        text = self.get(file)
        if not (text.isascii() and text.isdecimal()):
            raise Problem(f"{self.folder / file}: '{shown(text)}' is no number")
        return int(text)

    def put(self, wanted: Settings) -> list[Change]:
        """Put settings in force, write by write; what was changed. Problem if one is refused, or reads back as another."""
        before = self.read()
        if by_way_of_none(before, wanted):
            self.set(SCHEDULER, "none")
            self.set(SCHEDULER, wanted.scheduler)
            self._fill(before)
        elif wanted.scheduler != before.scheduler:
            self.set(SCHEDULER, wanted.scheduler)
            if wanted.scheduler == "none":
                self.take_all(self._number(NR_REQUESTS))
        self._fill(wanted)
        after = self.check(wanted)
        old, new = before.files(), after.files()
        return [Change(file, old.get(file, ""), value) for file, value in new.items() if old.get(file) != value]

    def take_all(self, number: int) -> None:
        """Let the device have so many requests at once, without a scheduler.

        nr_requests that was lowered there goes on to limit the device under every scheduler, though the file says what it does by
        default (seen on Linux 6.18); and a number that the file says already is not put.
        """
        if number > _LEAST_REQUESTS:
            self._by_way_of_another(number)

    def _by_way_of_another(self, number: int) -> None:
        """Put nr_requests where the number before the latest change counts, too."""
        self.set(NR_REQUESTS, str(number - 1 if number > _LEAST_REQUESTS else number + 1))
        self.set(NR_REQUESTS, str(number))

    def _fill(self, wanted: Settings) -> None:
        """Put all but the scheduler in force."""
        if wanted.nr_requests not in (None, self._number(NR_REQUESTS)):
            assert wanted.nr_requests is not None
            if wanted.scheduler == "none":
                self.set(NR_REQUESTS, str(wanted.nr_requests))
            else:
                # mq-deadline and kyber work out their limits from the number before the latest change.
                self._by_way_of_another(wanted.nr_requests)
        for name, value in sorted(wanted.tunables.items()):
            # Some depend on those before, so each is looked at only now.
            if self.get(f"{TUNABLES}/{name}") != value:
                self.set(f"{TUNABLES}/{name}", value)
        for file, number in ((WBT, wanted.wbt_lat_usec), (READ_AHEAD, wanted.read_ahead_kb), (QUEUE_DEPTH, wanted.queue_depth)):
            if number is not None and self.get(file) != str(number):
                self.set(file, str(number))

    def check(self, wanted: Settings) -> Settings:
        """The settings as they read back, twice alike. Problem if they are not those wanted, but for the rounding of ticks."""
        found = self.read()
        if self.read() != found:
            raise Problem(f"{self.folder}: settings change while they are read back: somebody else writes them, too")
        if file := differs(wanted, found):
            raise Problem(f"{self.folder / file}: reads back as '{shown(found.files().get(file, ''))}'")
        return found


def differs(wanted: Settings, found: Settings) -> str:
    """The first file in which settings are not those wanted, but for the rounding of ticks; "" if there is none."""
    there = found.files()
    for file, value in wanted.files().items():
        if value != there.get(file) and not _rounded(file, value, there.get(file, "")):
            return file
    return ""


def _rounded(file: str, wanted: str, found: str) -> bool:
    if file.removeprefix(f"{TUNABLES}/") not in _TICKED or not (wanted.isdecimal() and found.isdecimal()):
        return False
    return abs(int(wanted) - int(found)) <= _TICK_MS


@contextmanager
def opened(device: Device) -> Iterator[Queue]:
    """The queue of a disk. Problem if it has gone, or is another disk by now."""
    try:
        handle = os.open(device.folder / "queue", os.O_PATH | os.O_DIRECTORY)
    except OSError as e:
        raise Problem(f"{device.name}: {e.strerror}: {device.folder / 'queue'}") from None
    try:
        # Looked at once the folder is held: from here on it cannot be another disk's.
        if not device.is_there():
            raise Problem(f"{device.name}: is not the disk any more that it was")
        yield Queue(device, handle)
    finally:
        os.close(handle)


UNKNOWN_FOLDER = Path("/sys/block/sdX")
"""Stands in lines for a shell where nobody has said which disk it is."""


def commands(folder: Path, wanted: Settings, before: Settings | None = None) -> list[str]:
    """Return the lines for a shell that put settings in force on the disk with this folder in sysfs.

    before: those in force now, where they are known.
    """
    folder /= "queue"
    files = list(wanted.files().items())
    if before and by_way_of_none(before, wanted):
        kept = {f"{TUNABLES}/{name}": value for name, value in before.tunables.items() if name not in wanted.tunables}
        files = [(SCHEDULER, "none"), files[0], *kept.items(), *files[1:]]
    return [f"echo {quote(value)} >{os.path.normpath(folder / file)}" for file, value in files]
