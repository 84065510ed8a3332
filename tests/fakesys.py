# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A machine's /sys, /dev, /proc and the rest in a folder, and a kernel that answers writes to its queues as Linux does."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from headwaiter.queue.settings import Queue

DEFAULTS: dict[str, dict[str, str]] = {
    "none": {},
    "mq-deadline": {
        "async_depth": "192",
        "fifo_batch": "16",
        "front_merges": "1",
        "prio_aging_expire": "10000",
        "read_expire": "500",
        "write_expire": "5000",
        "writes_starved": "2",
    },
    "kyber": {"read_lat_nsec": "2000000", "write_lat_nsec": "10000000"},
    "hw-as": {"antic_expire": "6"},
    "bfq": {"low_latency": "1", "slice_idle": "8", "slice_idle_us": "8000", "strict_guarantees": "0"},
}
TICK_MS = 4


class FakeSystem:
    """`root` has sys/, dev/, run/udev/data/, proc/, etc/. Writes come through set(), as from the kernel's point of view."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.writes: list[tuple[str, str, str]] = []
        """(disk, file of queue/, value), in order."""
        self.number = 0
        for folder in ("sys/block", "sys/class/block", "dev", "run/udev/data", "proc", "etc/udev/rules.d", "var/lib/headwaiter"):
            (root / folder).mkdir(parents=True, exist_ok=True)

    @property
    def sysfs(self) -> Path:
        return self.root / "sys"

    def add(
        self,
        name: str,
        *,
        wwn: str = "",
        scheduler: str = "mq-deadline",
        zoned: str = "none",
        sectors: int = 1 << 31,
        queue_depth: int | None = None,
    ) -> Path:
        """A disk with a scheduler; its folder. queue_depth: of a SCSI disk."""
        self.number += 1
        folder = self.sysfs / "block" / name
        (folder / "queue").mkdir(parents=True)
        (folder / "slaves").mkdir()
        (folder / "holders").mkdir()
        (self.root / "dev" / name).touch()
        if queue_depth is not None:
            (folder / "device").mkdir()
            (folder / "device" / "queue_depth").write_text(f"{queue_depth}\n")
        put = {"dev": f"8:{16 * self.number}", "diskseq": str(self.number), "size": str(sectors), "wwid": wwn}
        for file, value in put.items():
            (folder / file).write_text(f"{value}\n")
        for file, value in {
            "zoned": zoned,
            "nr_requests": "64",
            "wbt_lat_usec": "75000",
            "read_ahead_kb": "128",
            "rotational": "1",
        }.items():
            (folder / "queue" / file).write_text(f"{value}\n")
        self._switch(folder / "queue", scheduler)
        return folder

    def stack(self, name: str, *slaves: str) -> Path:
        """A device without a scheduler, over others."""
        folder = self.add(name)
        shutil.rmtree(folder / "queue")
        (folder / "queue").mkdir()
        (folder / "queue" / "scheduler").write_text("none\n")
        for slave in slaves:
            (folder / "slaves" / slave).symlink_to(self.sysfs / "block" / slave)
        return folder

    def remove(self, name: str) -> None:
        shutil.rmtree(self.sysfs / "block" / name)

    def current(self, name: str) -> str:
        text = (self.sysfs / "block" / name / "queue" / "scheduler").read_text()
        return text[text.index("[") + 1 : text.index("]")]

    def everything(self, name: str) -> dict[str, str]:
        """What all files of queue/ say."""
        queue = self.sysfs / "block" / name / "queue"
        return {str(p.relative_to(queue)): p.read_text() for p in sorted(queue.rglob("*")) if p.is_file()}

    def _switch(self, queue: Path, scheduler: str) -> None:
        words = [f"[{one}]" if one == scheduler else one for one in DEFAULTS if not one.startswith("hw-") or one == scheduler]
        (queue / "scheduler").write_text(" ".join(words) + "\n")
        (queue / "nr_requests").write_text("64\n" if scheduler == "none" else "256\n")
        (queue / "wbt_lat_usec").write_text("0\n" if scheduler == "bfq" else "75000\n")
        shutil.rmtree(queue / "iosched", ignore_errors=True)
        if DEFAULTS[scheduler]:
            (queue / "iosched").mkdir()
        for file, value in DEFAULTS[scheduler].items():
            (queue / "iosched" / file).write_text(f"{value}\n")

    def set(self, name: str, file: str, value: str) -> None:
        """A write from user space; OSError as the kernel refuses it."""
        queue = self.sysfs / "block" / name / "queue"
        self.writes.append((name, file, value))
        if not (queue / file).exists():
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if file == "scheduler":
            if value not in DEFAULTS:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            if value != self.current(name):  # the same name changes nothing
                self._switch(queue, value)
            return
        if not value.isdecimal() or (file == "nr_requests" and int(value) > 1024):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if file.endswith("_expire"):
            value = str(-(-int(value) // TICK_MS) * TICK_MS)
        (queue / file).write_text(f"{value}\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSystem:
    """Writes to queues go to it; a write elsewhere in its sysfs cannot happen, for there is no other way."""
    system = FakeSystem(tmp_path / "machine")
    monkeypatch.setattr(Queue, "_set", lambda queue, file, value: system.set(queue.device.name, file, value))
    return system
