# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A configuration for each part of the day, and the units of systemd that put it in force: at boot, and when its time comes.

Tsakalozos et al. fit their waits to one load, and a server has one by day and another by night. Which configuration is in force
depends on nothing but the clock, so that whatever was missed while the machine was off, or asleep, makes no difference.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headwaiter.base import outputs
from headwaiter.base.errors import Problem, shown
from headwaiter.base.parsing import assignment
from headwaiter.papers.was.sysfs import called

UNITS = Path("/etc/systemd/system")
BY_ID = Path("/dev/disk/by-id")
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_FORM = "HH:MM=CONFIG, such as 07:30=day.toml"
_LASTING = ("wwn-", "nvme-eui.", "")
"""Beginnings of links to disks in BY_ID, those that name the disk itself first."""


@dataclass(frozen=True)
class PartOfDay:
    """From this minute of the day on, this configuration is in force."""

    minute: int
    config: Path

    @property
    def time(self) -> str:
        """Return the time of day, as 07:30."""
        return f"{self.minute // 60:02}:{self.minute % 60:02}"


def timetable(words: Sequence[str]) -> list[PartOfDay]:
    """Return the entries in the order of their times. Problem if a word is no entry, or two have one time."""
    found: dict[int, PartOfDay] = {}
    for word in words:
        time, config = assignment("was schedule", word, _FORM)
        matched = _TIME.fullmatch(time)
        if not matched or not config:
            raise Problem(f"was schedule {shown(word, 200)}: expected {_FORM}")
        minute = 60 * int(matched[1]) + int(matched[2])
        if minute in found:
            raise Problem(f"was schedule {shown(word, 200)}: {time} has {found[minute].config} already")
        found[minute] = PartOfDay(minute, Path(config))
    return [found[minute] for minute in sorted(found)]


def at(entries: Sequence[PartOfDay], minute: int) -> tuple[PartOfDay, PartOfDay]:
    """(the entry in force at this minute of the day, the next one); before the first of a day the last one still is."""
    begun = [k for k, one in enumerate(entries) if one.minute <= minute]
    now = begun[-1] if begun else len(entries) - 1
    return entries[now], entries[(now + 1) % len(entries)]


def lasting(device: str, by_id: Path = BY_ID) -> Path | None:
    """Return the name of a disk that outlives a reboot; None if it has none."""
    name = called(device)
    links: list[str] = []
    with suppress(OSError):
        links = sorted(link.name for link in by_id.iterdir() if link.resolve().name == name)
    return next((by_id / link for begin in _LASTING for link in links if link.startswith(begin)), None)


@dataclass(frozen=True)
class Units:
    """A service that puts what the hour asks for in force, and the timer that starts it."""

    folder: Path
    name: str
    """Without a suffix."""

    @classmethod
    def of(cls, device: str, folder: Path = UNITS) -> Units:
        """Return those of a disk, by its lasting name or the one that it has."""
        return cls(folder, f"headwaiter-was-{re.sub('[^A-Za-z0-9:_.-]', '-', Path(device).name)}")

    @property
    def timer(self) -> str:
        """Return the name of the unit to be enabled."""
        return f"{self.name}.timer"

    def texts(self, program: str, device: str, entries: Sequence[PartOfDay]) -> dict[str, str]:
        """Return the units, by the names of their files."""
        words = [program, "was", "schedule", device, *(f"{one.time}={one.config}" for one in entries)]
        head = f"# By headwaiter: `headwaiter was schedule {device} --forget` takes it away.\n[Unit]\nDescription="
        service = (
            f"{head}Waits of the scheduler of {Path(device).name} for this time of day\n\n"
            f"[Service]\nType=oneshot\nExecStart={' '.join(_quoted(word) for word in words)}\n"
        )
        times = "".join(f"OnCalendar=*-*-* {one.time}:00\n" for one in entries)
        timer = (
            f"{head}Times of day at which waits change on {Path(device).name}\n\n"
            f"[Timer]\nOnBootSec=5\n{times}AccuracySec=1\n\n[Install]\nWantedBy=timers.target\n"
        )
        return {f"{self.name}.service": service, self.timer: timer}

    def keep(self, program: str, device: str, entries: Sequence[PartOfDay]) -> list[str]:
        """Write the units, and enable the timer; what remains to be done by hand, as lines for a shell."""
        texts = self.texts(program, device, entries)
        for file in texts:
            outputs.check(self.folder / file)
        for file, text in texts.items():
            with outputs.writing(self.folder / file, 0o644) as temporary:
                temporary.write_text(text, encoding="utf-8")
        return self._systemctl(["daemon-reload"], ["enable", "--now", self.timer])

    def drop(self) -> list[str]:
        """Disable the timer, and take the units away. Problem if there are none."""
        files = [self.folder / f"{self.name}.{kind}" for kind in ("timer", "service")]
        if not any(file.exists() for file in files):
            raise Problem(f"{files[0]}: no such file: this disk has no timetable")
        left = self._systemctl(["disable", "--now", self.timer])
        for file in files:
            file.unlink(missing_ok=True)
        return [*left, *self._systemctl(["daemon-reload"])]

    def _systemctl(self, *calls: Sequence[str]) -> list[str]:
        """Lines for a shell where the units are not those of the running systemd. Problem if systemd refuses one."""
        if self.folder != UNITS or not Path("/run/systemd/system").is_dir():
            return [f"systemctl {' '.join(words)}" for words in calls]
        for words in calls:
            done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
            if done.returncode:
                why = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
                raise Problem(f"systemctl {' '.join(words)}: {why}")
        return []


def _quoted(word: str) -> str:
    """A word of ExecStart=, as systemd.service(5) has it."""
    told = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return told if re.fullmatch(r"[A-Za-z0-9/:=.,_+@%$-]+", told) else f'"{told}"'
