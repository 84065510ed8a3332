# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What else sets schedulers on this machine, and would undo a choice: udev rules, tuned's profile, units, tmpfiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from headwaiter.live.changed import Foreign

OURS = "99-headwaiter.rules"
_UDEV = ("etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d")
_UNITS = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
_TMPFILES = ("etc/tmpfiles.d", "run/tmpfiles.d", "usr/lib/tmpfiles.d")
_TUNED = ("etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned")
_SETS = re.compile(r'ATTR\{queue/scheduler\}\s*:?=\s*"([^"]*)"')
_KERNEL = re.compile(r'KERNEL\s*==\s*"([^"]*)"')
_ACTION = re.compile(r'ACTION\s*(==|!=)\s*"([^"]*)"')
_FILE = re.compile(r"queue/scheduler")
_WRITTEN = re.compile(r"(?:echo\s+[\"']?([\w-]+)[\"']?\s*(?:>|\|)|-\s+([\w-]+)\s*$)")
_PATTERN = re.compile(r"/sys/(?:class/)?block/([^/\s]+)/queue")


def foreign(root: Path = Path("/")) -> list[Foreign]:
    """All that is found, in the order in which it is read."""
    return [
        *_udev(root),
        *_tuned(root),
        *_files(root, _UNITS, "*.service", "unit"),
        *_files(root, _TMPFILES, "*.conf", "tmpfiles"),
    ]


def acting_on(found: Sequence[Foreign], name: str) -> list[Foreign]:
    """Those that may be for a disk of that name."""
    return [one for one in found if not one.disks or any(fnmatch(name, pattern) for pattern in one.disks.split("|"))]


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
    """Its lines with their numbers, those joined that a backslash continues; no comments."""
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


def _udev(root: Path) -> Iterator[Foreign]:
    for path in _in_force(root, _UDEV, "*.rules"):
        if path.name == OURS:
            continue
        for number, line in _lines(path):
            sets = _SETS.search(line)
            if not sets:
                continue
            kernel, action = _KERNEL.search(line), _ACTION.search(line)
            also = action is None or (action[1] == "==") == any(fnmatch("change", one) for one in action[2].split("|"))
            when = "on each event of the disk, such as a program closing it after writing" if also else "when the disk is added"
            yield Foreign(
                kind="udev", file=str(path), line=number, scheduler=sets[1], disks=kernel[1] if kernel else "", when=when
            )


def _tuned(root: Path) -> Iterator[Foreign]:
    """The active profiles, and what they include."""
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
                    when="when tuned starts, or the disk is added",
                )


def _files(root: Path, folders: Sequence[str], pattern: str, kind: str) -> Iterator[Foreign]:
    """Units and others that name the file of sysfs."""
    for path in _in_force(root, folders, pattern):
        for number, line in _lines(path):
            if not _FILE.search(line):
                continue
            value, disks = _WRITTEN.search(line), _PATTERN.search(line)
            yield Foreign(
                kind="unit" if kind == "unit" else "tmpfiles",
                file=str(path),
                line=number,
                scheduler=(value[1] or value[2] or "") if value else "",
                disks=disks[1].replace("$", "*") if disks and "$" not in disks[1] else "",
                when="when it is started",
            )
