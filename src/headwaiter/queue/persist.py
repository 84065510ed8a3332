# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A udev rule that gives a disk its settings whenever it appears or changes, by its WWN or serial and never by its name.

A scheduler of a module needs nothing else: the kernel loads it when the rule names it. Where the initramfs has both (a hook of
the package sees to it), it is made anew when such a rule changes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from os.path import normpath
from pathlib import Path

from headwaiter.base import outputs
from headwaiter.base.errors import Problem
from headwaiter.queue.devices import Device
from headwaiter.queue.loading import OURS, program
from headwaiter.queue.settings import Settings

FILE = Path("/etc/udev/rules.d/99-headwaiter.rules")
ROOT = Path("/")
"""The machine whose initramfs can be made anew from here."""
HOOK = Path("/usr/share/initramfs-tools/hooks/headwaiter")
_KEYS = ("ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL", "ID_SERIAL_SHORT")
_BY = "# By headwaiter"
_KEPT = f"{_BY}: `apply --persist` writes a disk's rule, `revert` takes it away.\n"
_MODULE = f'ATTR{{queue/scheduler}}="{OURS}'


def rules(legs: Sequence[Device], wanted: Settings, udev: Path) -> str:
    """The text of a file of rules. Problem if a disk has nothing that stays its own."""
    head = f"{_BY}: to be put into {FILE}; then `udevadm control --reload && udevadm trigger`.\n"
    return head + "".join(_rule(leg, wanted, udev) for leg in legs)


def file_of(root: Path) -> Path:
    """Return the file of rules on a machine."""
    return root / FILE.relative_to("/")


def check(legs: Sequence[Device], wanted: Settings, root: Path, udev: Path) -> None:
    """Problem if these rules could not be kept, as far as that can be told before."""
    rules(legs, wanted, udev)
    file_of(root).parent.mkdir(parents=True, exist_ok=True)
    outputs.check(file_of(root))


def keep(legs: Sequence[Device], wanted: Settings, root: Path, udev: Path) -> Path:
    """Write a rule for each of these disks, in the place of what the file had for them. The file."""
    made = "".join(_rule(leg, wanted, udev) for leg in legs)
    _renew(root, _KEPT + "".join(_others(root, legs, udev)) + made)
    return file_of(root)


def drop(legs: Sequence[Device], root: Path, udev: Path) -> list[Device]:
    """Take the rules of these disks away; those that had one. The file goes with the last rule."""
    found = [leg for leg in legs if is_kept(leg, root, udev)]
    if found:
        others = _others(root, found, udev)
        _renew(root, _KEPT + "".join(others) if any(not line.startswith("#") for line in others) else "")
    return found


def is_kept(device: Device, root: Path, udev: Path) -> bool:
    """Return whether a disk has a rule."""
    owns = list(_owns(device, udev))
    return any(_is_for(line, owns) for line in _lines(root))


def _others(root: Path, legs: Sequence[Device], udev: Path) -> list[str]:
    """Return what the file has for other disks, each with its title."""
    owns = [own for leg in legs for own in _owns(leg, udev)]
    kept: list[str] = []
    for line in _lines(root):
        if _is_for(line, owns):
            if kept and kept[-1].startswith("#"):
                kept.pop()
        elif not line.startswith(_BY):
            kept.append(line)
    return kept


def _is_for(line: str, owns: Sequence[str]) -> bool:
    return not line.startswith("#") and any(own in line.split(", ") for own in owns)


def _lines(root: Path) -> list[str]:
    try:
        return file_of(root).read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as e:
        raise Problem(f"{file_of(root)}: {e.strerror if isinstance(e, OSError) else 'is no text'}") from None


def _renew(root: Path, text: str) -> None:
    """Write the file, or remove it if there is nothing to write; and what was made from it."""
    path, before = file_of(root), "".join(_lines(root))
    if text == before:
        return
    try:
        if text:
            with outputs.writing(path, 0o644) as temporary:
                temporary.write_text(text, encoding="utf-8")
        else:
            path.unlink()
    except OSError as e:
        raise Problem(f"{path}: {e.strerror}") from None
    if root == ROOT and (_MODULE in before or _MODULE in text) and HOOK.exists():
        _renew_initramfs()


def _renew_initramfs() -> None:
    if update := program("update-initramfs"):
        done = subprocess.run([update, "-u", "-k", "all"], capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip() or "it fails").splitlines()[-1]
            raise Problem(f"{FILE} is written, but update-initramfs -u -k all: {last}")


def _rule(device: Device, wanted: Settings, udev: Path) -> str:
    match = ", ".join(['ACTION=="add|change"', 'SUBSYSTEM=="block"', 'ENV{DEVTYPE}=="disk"', _own(device, udev)])
    # A zoned disk is left alone, and so is one without a scheduler, which says none without brackets.
    match += ', ATTR{queue/zoned}=="none", ATTR{queue/scheduler}!="none"'
    # The scheduler comes first: files() has it so.
    puts = ", ".join(f'ATTR{{{normpath(f"queue/{file}")}}}="{_plain(value)}"' for file, value in wanted.files().items())
    title = f"# {device.name}" + (f", {device.model}" if device.model else "")
    return f"{title}\n{match}, {puts}\n"


def _own(device: Device, udev: Path) -> str:
    """Return what matches this disk and no other."""
    for match, value in _marks(device, udev):
        return f'{match}=="{_plain(value)}"'
    raise Problem(f"{device.name}: has no WWN and no serial, and a rule by its name may be for another disk tomorrow")


def _owns(device: Device, udev: Path) -> Iterator[str]:
    """All that may match this disk in a rule: udev may have known less of it when that was written."""
    return (f'{match}=="{value}"' for match, value in _marks(device, udev))


def _marks(device: Device, udev: Path) -> Iterator[tuple[str, str]]:
    """Keys of rules, and what they say of this disk and no other."""
    try:
        lines = (udev / f"b{device.major}:{device.minor}").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    said = dict(line[2:].partition("=")[::2] for line in lines if line.startswith("E:"))
    yield from ((f"ENV{{{key}}}", said[key]) for key in _KEYS if said.get(key))
    for file, key in (("wwid", "ATTR{wwid}"), ("device/wwid", "ATTRS{wwid}"), ("serial", "ATTR{serial}")):
        try:
            value = (device.folder / file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if value:
            yield key, value


def _plain(value: str) -> str:
    """Return a text as it may stand between quotes in a rule. Problem if it may not."""
    if any(c in value for c in '"\\\n$%*?[|'):
        raise Problem(f"'{value}' cannot stand in a udev rule")
    return value
