# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which of udev's rules are for a disk: their matches, read as udev(7) has them, against what sysfs and udev tell of it.

A match has three answers: yes, no, and None where it cannot be told from here. A program that a rule runs is not run, and what a
switch of the scheduler changes may say something else by the time that the rule is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from headwaiter.queue.devices import Device

ACTIONS = ("add", "change")
"""Kinds of events of a disk that is present."""
_TERM = re.compile(r'([A-Z_]+)(?:\{((?:[^{}]|\{[^{}]*\})*)\})?\s*(==|!=|\+=|-=|:=|=)\s*([ei]*)"((?:[^"\\]|\\.)*)"')
_OF_PARENTS = frozenset({"KERNELS", "SUBSYSTEMS", "DRIVERS", "ATTRS", "TAGS"})
_SCHEDULER = "queue/scheduler"
_WRITTEN = re.compile(r"\becho\s+(?:-n\s+)?[\"']?([\w-]+)")
_SWITCHED = re.compile(r"queue/(?:iosched/.*|nr_requests|wbt_lat_usec)")
"""Settings that a switch of the scheduler changes, besides its name."""
_OF_ONE_EVENT = frozenset({"DISK_MEDIA_CHANGE", "DISK_EJECT_REQUEST", "DISK_RO", "RESIZE", "SDEV_UA", "SDEV_MEDIA_CHANGE"})
"""Properties that only some events have."""
Known = bool | None


@dataclass(frozen=True)
class Term:
    """A match or an assignment: `KEY{name}op"value"`."""

    key: str
    name: str
    op: str
    value: str
    any_case: bool = False

    @property
    def is_match(self) -> bool:
        """It changes nothing."""
        return self.op in ("==", "!=")

    @property
    def text(self) -> str:
        """Return the text that a rule has."""
        return f'{self.key}{f"{{{self.name}}}" if self.name else ""}{self.op}"{self.value}"'

    def fits(self, text: str | None) -> bool:
        """Return whether the match is met by this text; None: there is none, which meets neither == nor !=."""
        if text is None:
            return False
        if not self.value[-1:].isspace():
            text = text.rstrip()
        pattern = re.sub(r"\\(.)", r"[\1]", self.value)
        if self.any_case:
            pattern, text = pattern.casefold(), text.casefold()
        return any(fnmatchcase(text, one) for one in pattern.split("|")) == (self.op == "==")


@dataclass(frozen=True)
class Rule:
    """A line of a file of rules."""

    line: int
    terms: tuple[Term, ...]

    @property
    def conditions(self) -> list[str]:
        """Return its matches, but for names and actions."""
        return [term.text for term in self.terms if term.is_match and term.key not in ("KERNEL", "ACTION")]

    def value(self, key: str, op: str = "=") -> str | None:
        """Return the value of its first term with that key and operator."""
        return next((term.value for term in self.terms if term.key == key and term.op == op), None)

    @property
    def scheduler(self) -> str | None:
        """The scheduler that it sets; "" if that cannot be told, None if it sets none."""
        for term in self.terms:
            if term.key == "ATTR" and term.name == _SCHEDULER and term.op in ("=", ":="):
                return "" if set("$%") & set(term.value) else term.value
            if term.key == "RUN" and _SCHEDULER in term.value:
                written = _WRITTEN.search(term.value)
                return written[1] if written else ""
        return None


def terms(line: str) -> tuple[Term, ...]:
    """Return the terms of a line whose continuations are joined."""
    found = []
    for key, name, op, prefix, value in _TERM.findall(line):
        found.append(Term(key, name, op, value.replace('\\"', '"'), "i" in prefix))
    return tuple(found)


def _both(of: Iterable[Known]) -> Known:
    """All of them; the first no decides."""
    found: Known = True
    for one in of:
        if one is False:
            return False
        found = found and one
    return found


def either(*of: Known) -> Known:
    """At least one of them."""
    return True if True in of else None if None in of else False


class UdevDisk:
    """A disk's properties that rules may ask for, as they are now. root: of the machine."""

    def __init__(self, device: Device, root: Path) -> None:
        self.device, self._root = device, root
        self._sysfs = (root / "sys").resolve()

    def acting(self, rules: Sequence[Rule], action: str) -> dict[int, Known]:
        """Return the rules of one file, by their lines, that are applied, or may be applied, to the disk when this happens."""
        found: dict[int, Known] = {}
        here: Known = True
        waiting: dict[str, Known] = {}
        env: dict[str, str | None] = {}
        for rule in rules:
            if label := rule.value("LABEL"):
                here = either(here, waiting.pop(label, False))
            if here is False:
                continue
            meets = self._meets(rule, action, env)
            met = _both((here, meets))
            if met is False:
                continue
            found[rule.line] = met
            self._assign(rule, met, env)
            if goto := rule.value("GOTO"):
                waiting[goto] = either(waiting.get(goto, False), met)
                here = _both((here, None if meets is None else not meets))
        return found

    @staticmethod
    def _assign(rule: Rule, met: Known, env: dict[str, str | None]) -> None:
        """What a rule makes of properties. What it stores for good udev tells at the end, whoever set it."""
        for term in rule.terms:
            if term.key == "ENV" and not term.is_match:
                plain = met and term.op in ("=", ":=") and not set("$%") & set(term.value)
                if plain or term.name.startswith("."):
                    env[term.name] = term.value if plain else None

    def _meets(self, rule: Rule, action: str, env: Mapping[str, str | None]) -> Known:
        matches = [term for term in rule.terms if term.is_match or term.key in ("PROGRAM", "IMPORT")]
        own = (self._own(term, action, env) for term in matches if term.key not in _OF_PARENTS)
        of_parents = [term for term in matches if term.key in _OF_PARENTS]
        return _both((_both(own), not of_parents or either(*(self._parent(each, of_parents) for each in self._chain))))

    def _own(self, term: Term, action: str, env: Mapping[str, str | None]) -> Known:
        match term.key:
            case "ACTION":
                return term.fits(action)
            case "KERNEL":
                return term.fits(self.device.name)
            case "SUBSYSTEM":
                return term.fits("block")
            case "DRIVER":
                return term.fits("")
            case "DEVPATH":
                return term.fits(f"/{self._chain[0].relative_to(self._sysfs)}")
            case "ATTR":
                return self._attribute(term, self._chain[0])
            case "ENV":
                return self._property(term, action, env)
            case "TAG" if self._stored is not None:
                tags = [line[2:] for line in self._stored if line.startswith("G:")]
                return any(Term("", "", "==", term.value).fits(tag) for tag in tags) == (term.op == "==")
            case "TEST":
                return self._test(term)
        return None

    def _property(self, term: Term, action: str, env: Mapping[str, str | None]) -> Known:
        if term.name in env:
            value = env[term.name]
            return None if value is None else term.fits(value)
        of_event = {"ACTION": action, "SUBSYSTEM": "block", "DEVTYPE": "disk", "DEVNAME": f"/dev/{self.device.name}"}
        of_event |= {"MAJOR": str(self.device.major), "MINOR": str(self.device.minor)}
        if term.name in of_event:
            return term.fits(of_event[term.name])
        if self._stored is None or term.name in _OF_ONE_EVENT or set("$%") & set(term.name):
            return None
        return term.fits(self._properties.get(term.name, ""))

    def _test(self, term: Term) -> Known:
        """Return whether there is a file, in sysfs beneath the disk if the path says no more."""
        path = term.value.replace("$kernel", "%k").replace("%k", self.device.name).replace("$sys", "/sys").replace("%S", "/sys")
        if term.name or set("$%*?[") & set(path) or _SWITCHED.fullmatch(path) or path == "queue/iosched":
            return None
        there = (self._root / path[1:] if path.startswith("/") else self._chain[0] / path).exists()
        return there == (term.op == "==")

    def _parent(self, folder: Path, of: Sequence[Term]) -> Known:
        """Return whether one device meets all that a rule asks of some device above."""
        return _both(self._above(term, folder) for term in of)

    def _above(self, term: Term, folder: Path) -> Known:
        is_disk = folder == self._chain[0]
        match term.key:
            case "KERNELS":
                return term.fits(folder.name)
            case "SUBSYSTEMS":
                return term.fits("block" if is_disk else _leads_to(folder / "subsystem"))
            case "DRIVERS":
                return term.fits(_leads_to(folder / "driver"))
            case "ATTRS":
                return self._attribute(term, folder)
        return None

    def _attribute(self, term: Term, folder: Path) -> Known:
        if set("$%") & set(term.name) or term.name.startswith("["):
            return None
        if folder == self._chain[0]:
            if _SWITCHED.fullmatch(term.name):
                return None
            if term.name == _SCHEDULER:
                return self._scheduler(term)
        return term.fits(_text(folder / term.name))

    def _scheduler(self, term: Term) -> Known:
        """Say whether a match on the file that a switch rewrites holds, if it does so under each scheduler."""
        names = self.device.schedulers
        said: list[str | None] = [" ".join(f"[{one}]" if one == current else one for one in names) for current in names]
        answers = {term.fits(text) for text in (said or [_text(self._chain[0] / _SCHEDULER)])}
        return answers.pop() if len(answers) == 1 else None

    @cached_property
    def _chain(self) -> list[Path]:
        """The folders of the disk and of the devices above it."""
        folder = self.device.folder.resolve()
        above = folder / "device"
        found = [folder]
        for start in (folder, *([above.resolve()] if above.is_dir() else [])):
            for one in (start, *start.parents):
                if one == self._sysfs or self._sysfs not in one.parents:
                    break
                if one not in found and (one / "uevent").exists():
                    found.append(one)
        return found

    @cached_property
    def _stored(self) -> list[str] | None:
        """Return what udev has noted of the disk; None where it does not run, or has not seen it."""
        path = self._root / "run" / "udev" / "data" / f"b{self.device.major}:{self.device.minor}"
        text = _text(path)
        return None if text is None else text.splitlines()

    @cached_property
    def _properties(self) -> dict[str, str]:
        return dict(_pairs(line[2:] for line in self._stored or () if line.startswith("E:")))


def _pairs(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        key, _, value = line.partition("=")
        yield key, value


def _text(path: Path) -> str | None:
    """Return what a file says without the end of line; None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError:
        return None


def _leads_to(link: Path) -> str | None:
    """The last name of where a link leads; None if there is none."""
    return link.resolve().name if link.exists() else None
