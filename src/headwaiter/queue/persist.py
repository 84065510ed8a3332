# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A udev rule that gives a disk its settings whenever it appears or changes, by its WWN or serial and never by its name."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import normpath
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.queue.devices import Device
from headwaiter.queue.settings import Settings

FILE = Path("/etc/udev/rules.d/99-headwaiter.rules")
_KEYS = ("ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL", "ID_SERIAL_SHORT")


def rules(legs: Sequence[Device], wanted: Settings, udev: Path) -> str:
    """The text of a file of rules. Problem if a disk has nothing that stays its own."""
    head = f"# By headwaiter: to be put into {FILE}; then `udevadm control --reload && udevadm trigger`.\n"
    return head + "".join(_rule(leg, wanted, udev) for leg in legs)


def _rule(device: Device, wanted: Settings, udev: Path) -> str:
    match = ", ".join(['ACTION=="add|change"', 'SUBSYSTEM=="block"', 'ENV{DEVTYPE}=="disk"', _own(device, udev)])
    # A zoned disk is left alone, and so is one without a scheduler, which says none without brackets.
    match += ', ATTR{queue/zoned}=="none", ATTR{queue/scheduler}!="none"'
    # The scheduler comes first: files() has it so.
    puts = ", ".join(f'ATTR{{{normpath(f"queue/{file}")}}}="{_plain(value)}"' for file, value in wanted.files().items())
    title = f"# {device.name}" + (f", {device.model}" if device.model else "")
    return f"{title}\n{match}, {puts}\n"


def _own(device: Device, udev: Path) -> str:
    """What matches this disk and no other."""
    try:
        lines = (udev / f"b{device.major}:{device.minor}").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    said = dict(line[2:].partition("=")[::2] for line in lines if line.startswith("E:"))
    for key in _KEYS:
        if said.get(key):
            return f'ENV{{{key}}}=="{_plain(said[key])}"'
    for file, key in (("wwid", "ATTR{wwid}"), ("device/wwid", "ATTRS{wwid}"), ("serial", "ATTR{serial}")):
        try:
            value = (device.folder / file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if value:
            return f'{key}=="{_plain(value)}"'
    raise Problem(f"{device.name}: has no WWN and no serial, and a rule by its name may be for another disk tomorrow")


def _plain(value: str) -> str:
    """As it may stand between quotes in a rule. Problem if it may not."""
    if any(c in value for c in '"\\\n$%*?[|'):
        raise Problem(f"'{value}' cannot stand in a udev rule")
    return value
