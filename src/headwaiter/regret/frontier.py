# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Throughput against waiting: what N equal readers get of a disk together, and how long one of them waits at most.

Whoever changes to another reader pays for a seek, of a time s. To lose no more than a share e by that, each must have turns of
s (1 - e) / e; then somebody waits (N - 1) s / e, and no scheduler that pays s for a turn can do better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwaiter.drives.profile import Profile
from headwaiter.engine.constants import SECTOR_BYTES, SYNC, Op
from headwaiter.engine.sim import Forest, Options, Task, simulate
from headwaiter.fio import load_jobs
from headwaiter.regret.contested import parse_contested
from headwaiter.regret.measurements import run
from headwaiter.regret.metrics import MeasuredRun
from headwaiter.regret.workloads import Fitted
from headwaiter.study.perturb import perturbed
from headwaiter.study.variants import Variant

RUNTIME_S = 40
FILE_BYTES = 1 << 30
_ROUNDS = 20
_TURN_BYTES, _READ_BYTES = 4 << 20, 128 << 10
_JOB = """[global]
ioengine=psync
direct=0
rw=read
bs=64k
size={size}
runtime={runtime}s
time_based
[reader]
numjobs={readers}
"""
_METRICS = parse_contested("frontier", "MB/s in all; longest read")


@dataclass(frozen=True)
class FrontierPoint:
    """A scheduler: readers' throughput together by that of one alone, and their longest read; medians over seeds."""

    name: str
    efficiency: float
    wait_s: float


def switch_s(drive: Profile, readers: int) -> float:
    """What a change of readers costs on average, measured on the drive alone: turns of a few MiB at each file, one reader after
    another and round and round, against all turns of the first reader, then of the next.
    """
    turns = np.arange(readers * _ROUNDS)
    in_turn, one_by_one = _turns_s(drive, turns % readers), _turns_s(drive, turns // _ROUNDS)
    return (in_turn - one_by_one) / (readers * (_ROUNDS - 1))


def _turns_s(drive: Profile, file: NDArray[np.int64]) -> float:
    """Return how long turns take, each of which reads on in the file of that number."""
    number = np.array([np.count_nonzero(file[:i] == f) for i, f in enumerate(file.tolist())])
    begin = (file * FILE_BYTES + number * _TURN_BYTES) // SECTOR_BYTES
    sector = (begin[:, None] + np.arange(_TURN_BYTES // _READ_BYTES) * (_READ_BYTES // SECTOR_BYTES)).reshape(-1)
    n = len(sector)
    forest = Forest(
        [Task(0, "reader", 0)],
        time_ns=np.zeros(n, np.int64),
        parent=np.arange(n) - 1,
        delay_ns=np.zeros(n, np.int64),
        task=np.zeros(n, np.uint32),
        op=np.full(n, Op.READ, np.uint8),
        flags=np.full(n, SYNC, np.uint8),
        sector=sector.astype(np.uint64),
        sectors=np.full(n, _READ_BYTES // SECTOR_BYTES, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )
    return simulate("noop", drive, forest).totals["now_ns"] / 1e9


def bound(wait_s: float, change_s: float, readers: int) -> float:
    """The efficiency that is possible if nobody waits longer than that, where a change costs so much."""
    return max(0.0, 1 - (readers - 1) * change_s / wait_s)


def points(
    variants: Sequence[Variant], drive: Profile, options: Options, readers: int = 8, seeds: int = 5
) -> list[FrontierPoint]:
    """A point for each variant, in the order given. One reader alone is measured under noop, which does not delay it."""
    alone = _medians([Variant("noop", "noop")], drive, options, 1, seeds)[0][0]
    found = _medians(variants, drive, options, readers, seeds)
    return [FrontierPoint(v.name, rate / alone, wait_ms / 1e3) for v, (rate, wait_ms) in zip(variants, found, strict=True)]


def _medians(
    variants: Sequence[Variant], drive: Profile, options: Options, readers: int, seeds: int
) -> list[tuple[float, float]]:
    job = _JOB.format(size=FILE_BYTES, runtime=RUNTIME_S, readers=readers).encode()
    load = load_jobs(Path("frontier"), drive.sectors, job)
    window = (RUNTIME_S * 10**9 // 4, RUNTIME_S * 10**9)
    out = []
    for variant in variants:
        values = []
        for seed in range(seeds):
            changed, how = perturbed(load, replace(options, seed=options.seed + seed), seed)
            values.append(MeasuredRun(Fitted(changed, window), run(variant, drive, changed, how).rows).values(_METRICS))
        rate, wait_ms = np.median(values, axis=0).tolist()
        out.append((rate, wait_ms))
    return out
