# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The places of a machine that headwaiter looks at: all below one root, which tests put elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.queue import devices
from headwaiter.queue.apply import check
from headwaiter.queue.devices import Device
from headwaiter.queue.state import State


@dataclass(frozen=True)
class Machine:
    """A machine by the root of its file system; folder: where states are kept, if not where they are by default."""

    root: Path = Path("/")
    folder: Path | None = None

    @property
    def sysfs(self) -> Path:
        """The mount point of sysfs."""
        return self.root / "sys"

    @property
    def udev(self) -> Path:
        """The folder in which udev keeps what it knows of devices."""
        return self.root / "run" / "udev" / "data"

    @property
    def state(self) -> State:
        """Return what is saved of its disks."""
        return State(self.folder or self.root / "var" / "lib" / "headwaiter")

    @property
    def muted(self) -> list[str]:
        """Identifiers of advice that its administrator does not want to hear again: the first word of each line."""
        try:
            lines = (self.root / "etc" / "headwaiter" / "muted").read_text(encoding="utf-8").splitlines()
        except OSError:
            return []
        return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]

    def find(self, name: str) -> Device:
        """The disk of that name. Problem if there is none."""
        return devices.find(name, self.sysfs, self.root / "dev", self.udev)

    def has(self, name: str) -> bool:
        """Return whether there is a disk of that name."""
        try:
            self.find(name)
        except Problem:
            return False
        return True

    def legs(self, device: Device) -> list[Device]:
        """The disks on whose queues a scheduler of this device acts. Problem if one must not be touched."""
        found = self.leaves(device)
        for leg in found:
            check(leg)
        return found

    def leaves(self, device: Device) -> list[Device]:
        """Return the disks on whose queues a scheduler of this device acts, whether or not they may be touched."""
        return devices.leaves(device, self.udev)
