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

from headwaiter.drives.profile import Profile
from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.engine.sim import Options
from headwaiter.fio import load_jobs
from headwaiter.regret.contested import parse_contested
from headwaiter.regret.matrix import run
from headwaiter.regret.metrics import Measured
from headwaiter.regret.workloads import Fitted
from headwaiter.study.perturb import perturbed
from headwaiter.study.variants import Variant

RUNTIME_S = 40
FILE_BYTES = 1 << 30
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
class Point:
    """A scheduler: readers' throughput together by that of one alone, and their longest read; medians over seeds."""

    name: str
    efficiency: float
    wait_s: float


def switch_s(drive: Profile, readers: int) -> float:
    """What a change costs on average, to the next file, or from the last to the first, of those that lie side by side."""
    sectors, ns = (np.array(column, float) for column in zip(*drive.positions, strict=True))
    apart = FILE_BYTES / SECTOR_BYTES
    near, back = np.interp([apart, (readers - 1) * apart], sectors, ns)
    return float((readers - 1) * near + back) / readers / 1e9


def bound(wait_s: float, drive: Profile, readers: int) -> float:
    """The efficiency that is possible if nobody waits longer than that."""
    return max(0.0, 1 - (readers - 1) * switch_s(drive, readers) / wait_s)


def points(variants: Sequence[Variant], drive: Profile, options: Options, readers: int = 8, seeds: int = 5) -> list[Point]:
    """A point for each variant, in the order given. One reader alone is measured under noop, which does not delay it."""
    alone = _medians([Variant("noop", "noop")], drive, options, 1, seeds)[0][0]
    found = _medians(variants, drive, options, readers, seeds)
    return [Point(v.name, rate / alone, wait_ms / 1e3) for v, (rate, wait_ms) in zip(variants, found, strict=True)]


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
            values.append(Measured(Fitted(changed, window), run(variant, drive, changed, how)).values(_METRICS))
        rate, wait_ms = np.median(values, axis=0).tolist()
        out.append((rate, wait_ms))
    return out
