# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A fleet of machines whose workloads and drives are known: what each does, its recording, and what is true of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import recordings

from headwaiter.advice.advice import STOCK
from headwaiter.drives.profile import Profile, find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import Forest, Task
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.judge import judge
from headwaiter.study.ranges import label
from headwaiter.study.variants import candidates, parse_variant
from headwaiter.study.workload import CLOSED, Workload

MS = 1_000_000
HARD_DISKS, SSDS = ("barracuda-80g", "wd-re-4tb"), ("sata-ssd",)


@dataclass(frozen=True)
class Doing:
    """A program: what it asks for, one request after another, and how long it thinks between two."""

    writes: bool
    in_order: bool
    think_ms: float
    sectors: int
    requests: int


@dataclass(frozen=True)
class Known:
    """A machine, and the classes that it is of."""

    name: str
    drive: str
    programs: Sequence[Doing]
    workload_class: str
    drive_class: str
    seed: int

    def load(self) -> Forest:
        """All its programs, from the beginning on."""
        dice = np.random.default_rng(self.seed)
        many = [one.requests for one in self.programs]
        task = np.repeat(np.arange(len(many)), many)
        first = np.concatenate([[0], np.cumsum(many)[:-1]])
        room = 12_000_000
        sector, think, op = [], [], []
        for i, one in enumerate(self.programs):
            at = np.arange(one.requests) if one.in_order else dice.integers(0, room // one.sectors, one.requests)
            sector.append(i * room + at * one.sectors)
            think.append(one.think_ms * MS * dice.uniform(0.7, 1.3, one.requests))
            op.append(np.full(one.requests, Op.WRITE if one.writes else Op.READ, np.uint8))
        parent = np.arange(sum(many)) - 1
        parent[first] = -1
        return Forest(
            tasks=[Task(i + 1, f"program{i}", i) for i in range(len(many))],
            time_ns=np.zeros(sum(many), np.int64),
            parent=parent.astype(np.int64),
            delay_ns=np.concatenate(think).astype(np.int64),
            task=task.astype(np.uint32),
            op=np.concatenate(op),
            flags=np.full(sum(many), SYNC, np.uint8),
            sector=np.concatenate(sector).astype(np.uint64),
            sectors=np.repeat([one.sectors for one in self.programs], many).astype(np.uint32),
            ioprio=np.zeros(sum(many), np.uint16),
        )


KINDS = ("streams", "random", "alone", "crowd", "ssd")


def fleet(count: int, seed: int = 0) -> list[Known]:
    """So many machines, of every kind the same number."""
    dice = random.Random(f"fleet {seed}")
    return [_machine(KINDS[i % len(KINDS)], i, dice) for i in range(count)]


def _machine(kind: str, i: int, dice: random.Random) -> Known:
    disk = dice.choice(HARD_DISKS)
    name = f"machine{i:04d}"
    if kind == "streams":
        many = dice.randint(2, 4)
        programs = [Doing(False, True, dice.uniform(0.3, 1.2), 128, 8000 // many) for _ in range(many)]
        return Known(name, "barracuda-80g", programs, "sequential reads, several at once", "hard disk", i)
    if kind == "random":
        many = dice.randint(3, 5)
        programs = [Doing(False, False, dice.uniform(1, 6), 16, 8400 // many) for _ in range(many)]
        return Known(name, "barracuda-80g", programs, "random reads, several at once", "hard disk", i)
    if kind == "alone":
        programs = [Doing(False, False, dice.uniform(20, 30), 32, 2400)]
        return Known(name, disk, programs, "random reads, one at a time", "hard disk", i)
    if kind == "crowd":
        programs = [Doing(False, False, dice.uniform(1, 6), 16, 700) for _ in range(12)]
        return Known(name, "barracuda-80g", programs, "random reads, many at once", "hard disk", i)
    many = dice.randint(2, 3)
    programs = [Doing(False, False, dice.uniform(55, 75), 32, 1200) for _ in range(many)]
    return Known(name, "sata-ssd", programs, "random reads, one at a time", "SATA SSD", i)


def record_all(machines: Sequence[Known], folder: Path) -> Path:
    """The recordings of a fleet."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in machines:
        recordings.record(folder / f"{one.name}.csv", one.load(), drive=one.drive)
    return folder


@cache
def _drive(name: str) -> Profile:
    return find_drive(name)


def truth(one: Known) -> dict[str, float]:
    """How good each setting of the kernel's is for what the machine does, as a share of the best: by simulating that itself."""
    variants = [parse_variant(name) for name in candidates(STOCK)]
    work = Workload(one.name, one.load(), CLOSED)
    found = judge(work, _drive(one.drive), variants, RunConditions(wbt_depth=0), runs=0, doubted=False, tasks=False)
    rates = {label(result): result.progress_mbps or 0.0 for result in found.results}
    return {name: rate / max(rates.values()) for name, rate in rates.items()}
