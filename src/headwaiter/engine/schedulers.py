# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The schedulers there are, their tunables, tables and statistics, from core's own declarations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count, takewhile
from pathlib import Path

from headwaiter.base.errors import Problem, shown
from headwaiter.base.nearest import did_you_mean
from headwaiter.base.parsing import assignment, whole
from headwaiter.engine.constants import TunableType
from headwaiter.engine.native import ffi, lib, text
from headwaiter.engine.policy_tables import PolicyTable, Readers, Setting, table_at


@dataclass(frozen=True)
class Tunable:
    """A knob. `choices` names the values 0, 1, … of one that is a choice; `unit` is '' for plain numbers."""

    name: str
    default: int
    minimum: int
    maximum: int
    unit: str
    help: str
    choices: tuple[str, ...]
    is_flag: bool

    def show(self, value: int) -> int | str:
        """The value as it is written: a choice by its name."""
        return self.choices[value] if self.choices else value

    def parse(self, where: str, value: str) -> int:
        """The number for what somebody wrote; Problem if it is none or out of range."""
        if value in self.choices:
            return self.choices.index(value)
        try:
            return whole(value, self.minimum, self.maximum)
        except ValueError as e:
            no_number = "whole number" in str(e) and self.choices
            what = f"'{shown(value)}' is not one of {', '.join(self.choices)}" if no_number else str(e)
            raise Problem(f"{shown(where, 200)}: {what}") from None


@dataclass(frozen=True)
class Stat:
    """A figure that a scheduler keeps and lets be read."""

    name: str
    unit: str
    help: str


@dataclass(frozen=True)
class Preset:
    """Settings of a scheduler under a name of their own, as somebody would write them: `TUNABLE=VALUE`."""

    name: str
    help: str
    settings: tuple[str, ...]


@dataclass(frozen=True)
class PolicyCounters:
    """Counters in rows and columns that a scheduler keeps and lets be read."""

    name: str
    rows_from: str
    """In the kernel, the file for the row with which a read begins."""
    help: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Scheduler:
    """A policy of core."""

    name: str
    summary: str
    source: str
    tunables: dict[str, Tunable]
    tables: dict[str, PolicyTable]
    stats: dict[str, Stat]
    counters: PolicyCounters | None
    presets: dict[str, Preset]
    is_model: bool
    """It is the model of the scheduler of that name in today's kernel; the modules add the others there as hw-NAME."""
    is_unthrottled: bool
    """Under it the kernel does not throttle write-back."""
    groups: bool
    """Tasks share by the weights of their control groups."""

    @property
    def kernel_name(self) -> str:
        """Return how a kernel with the modules calls it."""
        return self.name if self.is_model else f"hw-{self.name}"

    def has(self, name: str) -> bool:
        """Return whether there is a tunable or a table of that name."""
        return name in self.tunables or name in self.tables

    def parse(self, where: str, name: str, value: str, readers: Readers | None = None) -> Setting:
        """Return what somebody wrote for a tunable (its value) or a table (a file's name); Problem if it is refused."""
        if name in self.tables:
            if not value:
                raise Problem(f"{shown(where, 200)}: expected the name of a file")
            return self.tables[name].read(Path(value), readers)
        return self.tunables[name].parse(where, value)

    def show(self, name: str, value: Setting) -> str:
        """A setting in a few words."""
        if isinstance(value, int):
            return str(self.tunables[name].show(value))
        return f"({len(value)} row{'s' if len(value) != 1 else ''})"

    def in_sysfs(self, name: str, value: Setting) -> str:
        """A setting as the kernel module reads it from the file of that name."""
        if isinstance(value, int):
            return f"{self.tunables[name].show(value)}\n"
        return self.tables[name].show(value, brief=True)


@cache
def reasons() -> dict[str, str]:
    """Why schedulers dispatch a request, as the event log gives it: what each word means."""
    found: dict[str, str] = {}
    r = ffi.new("struct hws_reason *")
    while lib.hws_reason_at(len(found), r) == 0:
        found[text(r.name)] = text(r.help)
    return found


def _tunable(policy: bytes, index: int) -> Tunable:
    t = ffi.new("struct hws_tunable *")
    lib.hws_tunable_at(policy, index, t)
    choices: list[str] = []
    while t.choices != ffi.NULL and t.choices[len(choices)] != ffi.NULL:
        choices.append(text(t.choices[len(choices)]))
    is_flag = t.type == TunableType.FLAG
    return Tunable(text(t.name), getattr(t, "def"), t.min, t.max, text(t.unit), text(t.help), tuple(choices), is_flag)


def _stat(policy: bytes, index: int) -> Stat:
    s = ffi.new("struct hws_stat *")
    lib.hws_stat_at(policy, index, s)
    return Stat(text(s.name), text(s.unit), text(s.help))


def _preset(policy: bytes, index: int) -> Preset | None:
    p = ffi.new("struct hws_preset *")
    if lib.hws_preset_at(policy, index, p) < 0:
        return None
    return Preset(text(p.name), text(p.help), tuple(text(p.settings).split()))


def _counters(policy: bytes) -> PolicyCounters | None:
    c = ffi.new("struct hws_counters *")
    if lib.hws_counters_at(policy, c) < 0:
        return None
    return PolicyCounters(text(c.name), text(getattr(c, "from")), text(c.help), c.rows, c.columns)


@cache
def catalogue() -> dict[str, Scheduler]:
    """All schedulers by name, in core's order."""
    found: dict[str, Scheduler] = {}
    p = ffi.new("struct hws_policy *")
    while lib.hws_policy_at(len(found), p) == 0:
        name = ffi.string(p.name)
        tunables = (_tunable(name, i) for i in range(p.nr_tunables))
        tables = (table_at(name, i) for i in range(p.nr_tables))
        stats = (_stat(name, i) for i in range(p.nr_stats))
        presets = takewhile(lambda one: one is not None, (_preset(name, i) for i in count()))
        found[name.decode()] = Scheduler(
            name.decode(),
            text(p.summary),
            text(p.source),
            {t.name: t for t in tunables},
            {t.name: t for t in tables},
            {s.name: s for s in stats},
            _counters(name),
            {one.name: one for one in presets if one},
            bool(p.model),
            bool(p.unthrottled),
            bool(p.groups),
        )
    return found


def find(name: str) -> Scheduler:
    """The scheduler of that name; Problem if there is none."""
    return _found(name, list(catalogue()))


def known(kernel_names: Iterable[str]) -> dict[str, str]:
    """Return those of these schedulers of a kernel that can be simulated, with their names here."""
    here = {s.kernel_name: s.name for s in catalogue().values()}
    return {name: here[name] for name in kernel_names if name in here}


def names() -> list[str]:
    """Return what a scheduler can be called where settings are given, too: its name, or that of one of its presets."""
    return [name for s in catalogue().values() for name in (s.name, *s.presets)]


def find_preset(name: str) -> tuple[Scheduler, tuple[str, ...]]:
    """The scheduler of that name, or whose preset has it, and the preset's settings. Problem if there is neither."""
    for scheduler in catalogue().values():
        if name in scheduler.presets:
            return scheduler, scheduler.presets[name].settings
    return _found(name, names()), ()


def _found(name: str, known: Sequence[str]) -> Scheduler:
    try:
        return catalogue()[name]
    except KeyError:
        meant = did_you_mean(name.removeprefix("hw-"), known)
        raise Problem(f"no scheduler '{shown(name)}'{meant} (known: {', '.join(known)})") from None


def settings(
    scheduler: Scheduler, pairs: Iterable[str], readers: Readers | None = None, option: str = "--set"
) -> dict[str, Setting]:
    """`k=v` pairs as numbers and `k=file` pairs as rows, checked against the scheduler's tunables and tables.

    `option` is where somebody wrote them.
    """
    out: dict[str, Setting] = {}
    for pair in pairs:
        key, value = assignment(option, pair, "TUNABLE=VALUE or TABLE=FILE")
        if not scheduler.has(key):
            known = [*scheduler.tunables, *scheduler.tables]
            raise Problem(
                f"{option} {shown(pair, 200)}: {scheduler.name} has no tunable or table '{shown(key)}'"
                f"{did_you_mean(key, known)} (known: {', '.join(known)})"
            )
        out[key] = scheduler.parse(f"{option} {pair}", key, value, readers)
    return out
