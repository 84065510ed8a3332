# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Disks of this machine as sysfs tells of them: which one a name means, what it is, its queue's settings. Nothing is written.

A name such as sdb may mean another disk tomorrow. What stays is the identity (WWN or serial), and `diskseq`, a number that the
kernel gives to each disk once: if it differs, the disk is another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwaiter.base.errors import Problem, plain, shown

SYSFS = Path("/sys")
DEV = Path("/dev")
UDEV = Path("/run/udev/data")
"""Folder in which udev, if it runs, keeps what it knows about devices."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9!_.:+-]{0,63}")
_NUMBER = re.compile(r"(\d{1,6}):(\d{1,8})")
_LONGEST = 4096
_FAMILY = re.compile(r"(?:sd|vd|hd|xvd)(?=[a-z]+\Z)|[A-Za-z]+")


@dataclass(frozen=True)
class Device:
    """A whole disk. `folder` is its folder in sysfs, /sys/block/NAME.

    wwn and serial: as the disk or udev tells them, else "". diskseq, rotational: None where the kernel does not tell.
    settings: what queue/ and queue/iosched/ say, by file name, the latter as iosched/NAME.
    """

    name: str
    folder: Path
    major: int
    minor: int
    sectors: int
    diskseq: int | None
    wwn: str
    serial: str
    model: str
    by_path: str
    rotational: bool | None
    zoned: str
    kind: str
    settings: Mapping[str, str] = field(hash=False)
    slaves: tuple[str, ...]
    holders: tuple[str, ...]

    @property
    def number(self) -> int:
        """The kernel's dev_t, as tracepoints have it."""
        return self.major << 20 | self.minor

    @property
    def identity(self) -> str:
        """Identifiers of this disk, best first: `wwn:…`, `serial:…`, `path:…`; `name:…` if it has nothing of its own."""
        for key, value in (("wwn", self.wwn), ("serial", self.serial), ("path", self.by_path)):
            if value:
                return f"{key}:{value}"
        return f"name:{self.name}"

    @property
    def scheduler(self) -> str | None:
        """The one in force; None where requests never meet one (md, bio-based dm, brd)."""
        return current_scheduler(self.settings.get("scheduler", ""))

    @property
    def schedulers(self) -> tuple[str, ...]:
        """Return the schedulers that the kernel offers now; it may load others."""
        return tuple(word.strip("[]") for word in self.settings.get("scheduler", "").split()) if self.scheduler else ()

    @property
    def is_zoned(self) -> bool:
        """Return whether the disk has zones that are written in order; a change of its scheduler may hang (docs/record.md)."""
        return self.zoned not in ("", "none")

    def is_there(self) -> bool:
        """Return whether this very disk still goes by its name."""
        number = _read(self.folder / "dev")
        return number == f"{self.major}:{self.minor}" and _whole(_read(self.folder / "diskseq")) == self.diskseq

    def facts(self) -> dict[str, str]:
        """All that is known of it but its settings, as text by name; what is not known is absent."""
        known = {
            "name": self.name,
            "number": f"{self.major},{self.minor}",
            "identity": self.identity,
            "wwn": self.wwn,
            "serial": self.serial,
            "model": self.model,
            "by_path": self.by_path,
            "kind": self.kind,
            "sectors": str(self.sectors),
            "diskseq": "" if self.diskseq is None else str(self.diskseq),
            "rotational": "" if self.rotational is None else str(int(self.rotational)),
            "zoned": self.zoned,
            "scheduler": self.scheduler or "",
            "slaves": " ".join(self.slaves),
            "holders": " ".join(self.holders),
            "queue_depth": _read(self.folder / "device/queue_depth"),
        }
        return {key: value for key, value in known.items() if value}


def current_scheduler(text: str) -> str | None:
    """The scheduler in force by what queue/scheduler says: `[none] mq-deadline`; None where it says none without brackets."""
    return next((word[1:-1] for word in text.split() if word.startswith("[") and word.endswith("]")), None)


def find(name: str, sysfs: Path = SYSFS, dev: Path = DEV, udev: Path = UDEV) -> Device:
    """The disk that a name (sda), a node (/dev/sda), a link to one (/dev/disk/by-id/…) or a partition of it means.

    Problem, naming what was asked for, if there is none.
    """
    wanted = name
    if "/" in name:
        try:
            path = Path(name).resolve()
        except (OSError, RuntimeError, ValueError):
            raise Problem(f"{shown(name)}: not a device") from None
        # sysfs has ! where a device's name has /.
        wanted = str(path.relative_to(dev)).replace("/", "!") if path.is_relative_to(dev) else path.name
    if not _NAME.fullmatch(wanted):
        raise Problem(f"{shown(name)}: not the name of a disk")
    folder = sysfs / "block" / wanted
    if not (folder / "dev").exists():
        link = sysfs / "class" / "block" / wanted
        if not (link / "partition").exists():
            raise Problem(f"{shown(name)}: no such disk ({sysfs / 'block'} has the names)")
        folder = sysfs / "block" / link.resolve().parent.name
    return read(folder, udev)


def whole_disks(sysfs: Path = SYSFS, udev: Path = UDEV) -> list[Device]:
    """All disks that hold something, by name. Problem if sysfs is not there."""
    try:
        names = sorted(path.name for path in (sysfs / "block").iterdir())
    except OSError as e:
        raise Problem(f"{sysfs / 'block'}: {e.strerror}") from None
    found = []
    for name in names:
        try:
            device = read(sysfs / "block" / name, udev)
        except Problem:  # it has gone since
            continue
        if device.sectors:
            found.append(device)
    return found


def read(folder: Path, udev: Path = UDEV) -> Device:
    """The disk of a folder of sysfs. Problem if it is no disk's, or no longer one's."""
    numbers = _NUMBER.fullmatch(_read(folder / "dev"))
    if not numbers:
        raise Problem(f"{folder.name}: no such disk ({folder.parent} has the names)")
    major, minor = int(numbers[1]), int(numbers[2])
    said = _from_udev(udev / f"b{major}:{minor}")
    inner = folder / "device"
    settings = dict(_settings(folder / "queue"))
    wwn = said.get("ID_WWN_WITH_EXTENSION") or said.get("ID_WWN") or _read(folder / "wwid") or _read(inner / "wwid")
    serial = said.get("ID_SERIAL_SHORT") or _read(inner / "serial") or _read(folder / "serial") or _vpd_serial(inner / "vpd_pg80")
    uuid = _read(folder / "dm" / "uuid") or _read(folder / "md" / "uuid")
    rotational = settings.get("rotational")
    return Device(
        name=folder.name,
        folder=folder,
        major=major,
        minor=minor,
        sectors=_whole(_read(folder / "size")) or 0,
        diskseq=_whole(_read(folder / "diskseq")),
        wwn=" ".join(wwn.split()),
        serial=serial or uuid,
        model=_model(inner),
        # A loop device is where its file is.
        by_path=said.get("ID_PATH") or _read(folder / "loop" / "backing_file"),
        rotational=None if rotational is None else rotational == "1",
        zoned=settings.get("zoned", ""),
        kind=_kind(folder),
        settings=settings,
        slaves=_names(folder / "slaves"),
        holders=_names(folder / "holders"),
    )


def leaves(device: Device, udev: Path = UDEV) -> list[Device]:
    """Return the devices on which a scheduler acts: itself, or all legs of what it is stacked on, each once.

    A device that has a scheduler (request-based dm-multipath, too) is its own leaf; beneath it requests go as they come.
    """
    if device.scheduler is not None or not device.slaves:
        return [device]
    found: dict[str, Device] = {}
    for name in device.slaves:
        try:
            below = read(_disk_of(device.folder.parent, device.folder / "slaves" / name), udev)
        except Problem:
            continue
        found |= {leaf.name: leaf for leaf in leaves(below, udev)}
    return list(found.values()) or [device]


def _disk_of(block: Path, slave: Path) -> Path:
    """The whole disk's folder, of a slave that may be a partition."""
    if (slave / "partition").exists():
        return block / slave.resolve().parent.name
    return block / slave.name


def _kind(folder: Path) -> str:
    """The driver's family, by what only it has in sysfs; else by the name without the letters or digits that count."""
    for part, name in (("loop", "loop"), ("dm", "dm"), ("md", "md"), ("mm_stat", "zram")):
        if (folder / part).exists():
            return name
    family = _FAMILY.match(folder.name)
    return family[0] if family else folder.name


def _model(inner: Path) -> str:
    """Maker and model of a disk; a PCI number is no maker."""
    words = (_read(inner / "vendor"), _read(inner / "model"))
    return " ".join(" ".join(word for word in words if not word.startswith("0x")).split())


def _settings(queue: Path) -> Iterator[tuple[str, str]]:
    for folder, prefix in ((queue, ""), (queue / "iosched", "iosched/")):
        try:
            files = sorted(path for path in folder.iterdir() if path.is_file())
        except OSError:
            continue
        for path in files:
            # Files that cannot be read, or are of no use to people, are passed over.
            if text := _read(path):
                yield prefix + path.name, text


def _from_udev(path: Path) -> dict[str, str]:
    """Return what udev stores: `E:KEY=VALUE` a line."""
    pairs = (line[2:].partition("=") for line in _lines(path) if line.startswith("E:"))
    return {key: value for key, _, value in pairs}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _names(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(path.name for path in folder.iterdir()))
    except OSError:
        return ()


def _vpd_serial(path: Path) -> str:
    """The unit serial number page of a SCSI disk: four bytes of header, then text."""
    try:
        with path.open("rb") as file:
            page = file.read(256)
    except OSError:
        return ""
    return plain(page[4 : 4 + page[3]].decode("ascii", "replace").strip()) if len(page) > 4 else ""


def _read(path: Path) -> str:
    """An attribute's text without blanks at its ends; "" if it is not there, cannot be read, or the disk has gone."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return plain(os.read(handle, _LONGEST).decode("utf-8", "replace").strip("\0 \n"))
    except OSError:
        return ""
    finally:
        os.close(handle)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None
