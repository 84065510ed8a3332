# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A fleet of machines whose workloads and drives are known: what each does, its recording, and what is true of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import recordings

from headwaiter.advice.advice import STOCK
from headwaiter.drives.profile import Profile, find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import Forest, Options, Task, simulate
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.variants import candidates, parse_variant

MS = 1_000_000
SAMPLES = 2
ENOUGH = 12
"""No scheduler gets so many times as much done as another."""
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

    def load(self, times: int = 1) -> Forest:
        """All its programs, from the beginning on; times: with so many times as much to do."""
        dice = np.random.default_rng(self.seed)
        many = [times * one.requests for one in self.programs]
        task = np.repeat(np.arange(len(many)), many)
        first = np.concatenate([[0], np.cumsum(many)[:-1]])
        room = 12_000_000
        sector, think, op = [], [], []
        for i, one in enumerate(self.programs):
            at = np.arange(many[i]) if one.in_order else dice.integers(0, room // one.sectors, many[i])
            sector.append(i * room + at * one.sectors)
            think.append(one.think_ms * MS * dice.uniform(0.7, 1.3, many[i]))
            op.append(np.full(many[i], Op.WRITE if one.writes else Op.READ, np.uint8))
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
    """How good each setting of the kernel's is for what the machine does, as a share of the best, by simulating its programs.

    They have more to do than there is time for, as what goes on has: who has done all it has leaves the disk to others. Where
    programs hardly think, chance decides whom a scheduler waits for, so that other places and pauses are another sample.
    """
    drive = _drive(one.drive)
    first = simulate("mq-deadline", drive, one.load(), options=Options(record=True, nr_requests=256))
    until_ns = int(np.asarray(first.rows.complete_ns).max())
    samples = [replace(one, seed=one.seed + 10_000 * k).load(ENOUGH) for k in range(SAMPLES)]
    samples = [replace(load, until_ns=np.full(len(load.time_ns), until_ns)) for load in samples]
    variants = [parse_variant(name) for name in candidates(STOCK)]
    logs: dict[str, list[float]] = {}
    for variant, options in RunConditions(wbt_depth=0).runs(variants, drive):
        for load in samples:
            rows = simulate(variant.scheduler, drive, load, variant.settings, replace(options, record=True)).rows
            done = np.asarray(rows.complete_ns)
            there = (done > 0) & (done <= until_ns)
            work = np.bincount(load.task[there], weights=load.sectors[there], minlength=len(load.tasks))
            logs.setdefault(variant.name, []).append(float(np.log(work).mean()))
    rates = {name: np.exp(np.mean(each)) for name, each in logs.items()}
    return {name: float(rate / max(rates.values())) for name, rate in rates.items()}
