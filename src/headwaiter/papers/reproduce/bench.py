# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What experiments measure with: runs of the simulator, at a scale, with settings that override those of every run."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from headwaiter.base.paths import WORKLOADS
from headwaiter.drives import Profile, find_drive
from headwaiter.drives.profile import from_toml
from headwaiter.engine.policy_tables import Setting
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import Drive, Load, Options, Outcome, simulate
from headwaiter.fio import JobLoad, load_jobs
from headwaiter.generated import generate
from headwaiter.generated.model_machine import Process
from headwaiter.judge.detail import Shown, detail, head
from headwaiter.study.results import summarise
from headwaiter.study.schema import Result, TaskRow
from headwaiter.study.variants import Variant, parse_variant
from headwaiter.study.workload import NR_REQUESTS

Level = Literal["sim", "lab"]
LEVELS: tuple[Level, ...] = ("sim", "lab")
OPTIONS = MEASURED.apply(Options(nr_requests=NR_REQUESTS, join_arriving=True))
SCALED = re.compile(r"^(runtime|io_size)=(\d+)(s|k|m|g)\b", re.MULTILINE)
"""Options of a job file that say how long it runs."""

Settings = Mapping[str, Mapping[str, Setting]]


def at_once(level: Level) -> int:
    """Return how many experiments run at the same time: a guest needs one of the host's processors."""
    return len(os.sched_getaffinity(0)) if level == "lab" else 1


@dataclass(frozen=True)
class Bench:
    """At which scale, and with what: `settings` by scheduler override those of every run of it."""

    scale: float = 1.0
    settings: Settings = field(default_factory=lambda: MappingProxyType({}))
    say: Callable[[str], None] = lambda text: None
    loads: dict[tuple[Any, ...], Load] = field(default_factory=dict, repr=False)
    """Generated workloads, which several experiments share."""

    @staticmethod
    def drive(drive: str | Profile) -> Profile:
        """A profile, or the bundled one of that name."""
        return find_drive(drive) if isinstance(drive, str) else drive

    @staticmethod
    def buffering(name: str, kib: int, stretches: int | None = None) -> Profile:
        """A bundled drive that buffers no more than so much of what is written, and of so many stretches (None: as it does)."""
        data = copy.deepcopy(find_drive(name).data)
        data["write"] |= {"limit": kib * 2} | ({} if stretches is None else {"extents": stretches})
        return from_toml(data, f"{name}-{kib}k", name)

    def count(self, number: float, least: int = 1) -> int:
        """Return the number at this scale, but no fewer than `least`."""
        return max(least, round(number * self.scale))

    def variant(self, text: str) -> Variant:
        """A scheduler with its settings, such as as:cooperation=1, and with those that override them."""
        given = parse_variant(text)
        return replace(given, settings={**given.settings, **self.settings.get(given.scheduler, {})})

    def run(
        self,
        drive: str | Profile,
        load: Load,
        scheduler: str,
        settings: Mapping[str, Setting] = MappingProxyType({}),
        **options: int,
    ) -> Result:
        """One run, with a row for each task; `settings` beside those in the scheduler's text. Problem as simulate()."""
        return summarise(self._simulate(drive, load, scheduler, options, settings))

    def outcome(self, drive: str | Profile, load: Load, scheduler: str, **options: int) -> Outcome:
        """One run, with a row for each I/O. Problem as simulate()."""
        return self._simulate(drive, load, scheduler, {**options, "record": True})

    def _simulate(
        self,
        drive: str | Profile,
        load: Load,
        scheduler: str,
        options: Mapping[str, int],
        settings: Mapping[str, Setting] = MappingProxyType({}),
    ) -> Outcome:
        variant, device = self.variant(scheduler), self.drive(drive)
        self.say(f"{device.name}, {variant.name}")
        return simulate(variant.scheduler, device, load, {**settings, **variant.settings}, _options(options))

    def pictured(self, drive: str | Profile, load: Load, scheduler: str) -> Shown:
        """A run in pictures."""
        variant, device = self.variant(scheduler), self.drive(drive)
        result = self.run(drive, load, scheduler)
        known = detail(variant, device, load, OPTIONS, result.requests)
        return Shown(result, known, head(variant, device, load, OPTIONS))

    def jobs(self, name: str, drive: str | Profile, change: Mapping[str, str] = MappingProxyType({})) -> JobLoad:
        """A bundled job file at this scale, with some of its text changed."""
        text = (WORKLOADS / f"{name}.fio").read_text(encoding="utf-8")
        for old, new in change.items():
            assert old in text, old
            text = text.replace(old, new)
        return jobs_of(name, self.scaled(text), self.drive(drive))

    def text(self, name: str, text: str, drive: str | Profile) -> JobLoad:
        """A job file at this scale."""
        return jobs_of(name, self.scaled(text), self.drive(drive))

    def scaled(self, text: str) -> str:
        """The text of a job file whose runs are so much shorter: of seconds a tenth each at least, of sizes 64 KiB."""

        def changed(found: re.Match[str]) -> str:
            key, number, unit = found[1], int(found[2]), found[3]
            if unit == "s":
                return f"{key}={max(100, round(number * self.scale * 1000))}ms"
            kib = number << {"k": 0, "m": 10, "g": 20}[unit]
            return f"{key}={max(64, round(kib * self.scale / 64) * 64)}k"

        return SCALED.sub(changed, text)

    def generated(
        self, name: str, drive: str | Profile, process: type[Process] = Process, seed: int = 0, **changed: float
    ) -> Load:
        """A bundled generated workload, with some of its parameters changed."""
        sectors = self.drive(drive).sectors
        key = (name, sectors, process, seed, *sorted(changed.items()))
        if key not in self.loads:
            self.say(f"generating {name}")
            path = WORKLOADS / f"{name}.toml"
            self.loads[key] = generate(path, path.read_bytes(), sectors, seed, process, **changed)
        return self.loads[key]


def _options(given: Mapping[str, int]) -> Options:
    changed: dict[str, Any] = dict(given)
    return replace(OPTIONS, **changed)


def jobs_of(name: str, text: str, drive: Drive) -> JobLoad:
    """A job file's text as a load."""
    return load_jobs(Path(f"{name}.fio"), drive.sectors, text.encode())


@dataclass(frozen=True)
class Clients:
    """Some tasks side by side, as Axboe prints them: MB/s of the fastest, the slowest and all; the longest I/O."""

    max_mbps: float
    min_mbps: float
    agg_mbps: float
    max_lat_ms: float

    @property
    def unfairness(self) -> float:
        """Return how many times as much the fastest gets as the slowest."""
        return self.max_mbps / self.min_mbps if self.min_mbps else float("inf")


def clients(rows: Iterable[TaskRow]) -> Clients:
    """Sum up the rows of at least one task."""
    given = list(rows)
    rates = [row.throughput_mbps for row in given]
    return Clients(max(rates), min(rates), sum(rates), max(row.lat_ms.max for row in given))


def tasks(result: Result, name: str) -> list[TaskRow]:
    """The tasks of a job: NAME, or NAME.0, NAME.1, …"""
    return [row for row in result.tasks or () if row.name == name or row.name.startswith(f"{name}.")]


def ratio(a: float, b: float) -> float:
    """a by b; nan where b is 0."""
    return a / b if b else float("nan")
