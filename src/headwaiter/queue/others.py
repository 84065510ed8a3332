# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What else sets schedulers on this machine, and would undo a choice: udev rules, tuned's profile, units, tmpfiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from headwaiter.queue import udev
from headwaiter.queue.devices import Device
from headwaiter.queue.schema import Foreign

OURS = "99-headwaiter.rules"
_UDEV = ("etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d")
_UNITS = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
_TMPFILES = ("etc/tmpfiles.d", "run/tmpfiles.d", "usr/lib/tmpfiles.d")
_TUNED = ("etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned")
_EACH = "on each event of the disk, such as a program closing it after writing"
_ADDED = "when the disk is added"
_FILE = re.compile(r"queue/scheduler")
_WRITTEN = re.compile(r"(?:echo\s+[\"']?([\w-]+)[\"']?\s*(?:>|\|)|-\s+([\w-]+)\s*$)")
_PATTERN = re.compile(r"/sys/(?:class/)?block/([^/\s]+)/queue")


def foreign(root: Path = Path("/"), disks: Sequence[Device] = ()) -> list[Foreign]:
    """All that is found, in the order in which it is read; each with those of these disks that it acts on, or may act on."""
    return [
        *_udev(root, disks),
        *_tuned(root, disks),
        *_files(root, _UNITS, "*.service", "unit", disks),
        *_files(root, _TMPFILES, "*.conf", "tmpfiles", disks),
    ]


def acting_on(found: Sequence[Foreign], name: str) -> list[Foreign]:
    """Return those that act on a disk of that name, or may do so."""
    return [one for one in found if name in (*one.acts_on, *one.may_act_on)]


def _in_force(root: Path, folders: Sequence[str], pattern: str) -> Iterator[Path]:
    """Files of some folders; one in an earlier folder hides those of its name, and is empty if it leads to /dev/null."""
    seen: set[str] = set()
    paths: list[Path] = []
    for folder in folders:
        for path in sorted((root / folder).glob(pattern)):
            if path.name not in seen:
                seen.add(path.name)
                paths.append(path)
    yield from sorted((path for path in paths if path.is_file()), key=lambda path: path.name)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return its lines with their numbers; continued lines are joined, comments left out."""
    begin, text = 0, ""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        begin = begin or number
        text += line.rstrip("\\") if line.endswith("\\") else line
        if not line.endswith("\\"):
            if not text.lstrip().startswith(("#", ";")):
                yield begin, text
            begin, text = 0, ""


def _udev(root: Path, disks: Sequence[Device]) -> Iterator[Foreign]:
    looked = [udev.UdevDisk(disk, root) for disk in disks]
    for path in _in_force(root, _UDEV, "*.rules"):
        if path.name == OURS:
            continue
        rules = [udev.Rule(number, udev.terms(line)) for number, line in _lines(path)]
        if all(rule.scheduler is None for rule in rules):
            continue
        acting = {disk.device.name: [disk.acting(rules, action) for action in udev.ACTIONS] for disk in looked}
        for rule in rules:
            if rule.scheduler is None:
                continue
            of = {name: [lines.get(rule.line, False) for lines in each] for name, each in acting.items()}
            known = {name: udev.either(*each) for name, each in of.items()}
            also = any(each[-1] is not False for each in of.values() if any(one is not False for one in each))
            if not any(one is not False for one in known.values()):
                also = all(term.fits("change") for term in rule.terms if term.key == "ACTION")
            yield Foreign(
                kind="udev",
                file=str(path),
                line=rule.line,
                scheduler=rule.scheduler,
                disks=rule.value("KERNEL", "==") or "",
                conditions=rule.conditions,
                when=_EACH if also else _ADDED,
                acts_on=[name for name, one in known.items() if one],
                may_act_on=[name for name, one in known.items() if one is None],
            )


def _tuned(root: Path, disks: Sequence[Device]) -> Iterator[Foreign]:
    """The active profiles, and what they include. They act on all disks."""
    try:
        wanted = (root / "etc/tuned/active_profile").read_text(encoding="utf-8").split()
    except OSError:
        return
    seen: set[str] = set()
    while wanted:
        name = wanted.pop(0)
        if name in seen or "/" in name:
            continue
        seen.add(name)
        path = next((p for f in _TUNED if (p := root / f / name / "tuned.conf").is_file()), None)
        section = ""
        for number, line in _lines(path) if path else ():
            key, _, value = (part.strip() for part in line.partition("="))
            if line.startswith("["):
                section = line.strip("[] ")
            elif section == "main" and key == "include":
                wanted += re.split(r"[,;\s]+", value)
            elif key == "elevator":
                yield Foreign(
                    kind="tuned",
                    file=str(path),
                    line=number,
                    scheduler=value,
                    disks="",
                    conditions=(),
                    when="when tuned starts, or the disk is added",
                    acts_on=[disk.name for disk in disks],
                    may_act_on=(),
                )


def _files(root: Path, folders: Sequence[str], pattern: str, kind: str, disks: Sequence[Device]) -> Iterator[Foreign]:
    """Units and others that name the file of sysfs."""
    for path in _in_force(root, folders, pattern):
        for number, line in _lines(path):
            if not _FILE.search(line):
                continue
            value, where = _WRITTEN.search(line), _PATTERN.search(line)
            names = where[1] if where and "$" not in where[1] else ""
            yield Foreign(
                kind="unit" if kind == "unit" else "tmpfiles",
                file=str(path),
                line=number,
                scheduler=(value[1] or value[2] or "") if value else "",
                disks=names,
                conditions=(),
                when="when it is started",
                acts_on=[disk.name for disk in disks if fnmatch(disk.name, names)],
                may_act_on=[] if names else [disk.name for disk in disks],
            )
