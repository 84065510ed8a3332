# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Flash drives against what others have measured and published: the table is published.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.drives.profile import Profile, find_drive, from_toml
from headwaiter.drives.validation import replay, unmeasured
from headwaiter.engine.constants import Op

TABLE = Path(__file__).with_name("published.toml")
_KIB = 1024
_SECTORS = 2
"""Sectors of a KiB."""
_READS = 100_000
_BESIDE = 60_000
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class PublishedFigure:
    """One that was published, and the model's."""

    drive: str
    source: str
    load: str
    figure: str
    measured: float
    simulated: float

    @property
    def error(self) -> float:
        return self.simulated / self.measured - 1


def worn(drive: Profile) -> Profile:
    """Without erased pages and fast cells: as after long writing."""
    return from_toml({**drive.data, "write": {**drive.data.get("write", {}), "pool": 1, "slc": 0}}, drive.name, drive.name)


def places(drive: Profile, rng: np.random.Generator, kib: NDArray[np.int64]) -> NDArray[np.uint64]:
    """At random, aligned to the size of each request."""
    sectors = kib * _SECTORS
    return (rng.random(kib.shape) * (drive.facts[0] // sectors)).astype(np.uint64) * sectors.astype(np.uint64)


def random_reads(drive: Profile, kib: int, at_once: int, host_ns: int, n: int = _READS) -> F64:
    """Times in us, the host's included, of the later part of a closed loop of reads."""
    sizes = np.full(max(n * 4 // kib, 20 * at_once), kib)
    load = unmeasured(
        np.full(len(sizes), Op.READ, np.uint8),
        places(drive, np.random.default_rng(kib), sizes),
        (sizes * _SECTORS).astype(np.uint32),
        np.full(len(sizes), host_ns),
    )
    return (replay(drive, load, at_once)[len(sizes) // 10 :] + host_ns) / 1e3


def written_before_a_read(drive: Profile, jobs: int, at_once: int, processors: int, kib: int, n: int = _BESIDE) -> float:
    """The reader's submission queue is that of the first processor; the jobs follow, in turn."""
    slots = 1 + jobs * at_once
    rows = max(400, n // slots)
    sizes = np.full((rows, slots), kib)
    sizes[:, 0] = 4
    op = np.full((rows, slots), Op.WRITE, np.uint8)
    op[:, 0] = Op.READ
    queue = np.concatenate([[0], np.repeat(np.arange(1, jobs + 1) % processors, at_once)]).astype(np.uint32)
    at = places(drive, np.random.default_rng(jobs), sizes).ravel()
    load = unmeasured(op.ravel(), at, (sizes * _SECTORS).astype(np.uint32).ravel())
    served = replay(drive, load, slots, queue).reshape(rows, slots)
    reads = served[:, 0][served[:, 0] > 0]
    writes = served[:, 1:][served[:, 1:] > 0]
    return float(reads[len(reads) // 4 :].mean() / writes.mean() * jobs * at_once)


@cache
def table() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def _reads(group: dict[str, Any]) -> Iterator[PublishedFigure]:
    drive = find_drive(group["drive"])
    for kib, at_once, measured, *p99 in group["rows"]:
        took_us = random_reads(drive, kib, at_once, round(group["host_us"] * 1e3))
        load = f"reads of {kib} KiB, {at_once} at once"
        yield PublishedFigure(drive.name, group["source"], load, "requests/s", measured, at_once / took_us.mean() * 1e6)
        if p99:
            yield PublishedFigure(drive.name, group["source"], load, "p99 us", p99[0], float(np.quantile(took_us, 0.99)))


def _beside(group: dict[str, Any]) -> Iterator[PublishedFigure]:
    drive = worn(find_drive(group["drive"]))
    for jobs, measured in group["rows"]:
        found = written_before_a_read(drive, jobs, group["at_once"], group["processors"], group["write_kib"])
        load = f"reads beside {jobs} × {group['at_once']} writes of {group['write_kib']} KiB"
        yield PublishedFigure(drive.name, group["source"], load, "writes before a read", measured, found)


def figures() -> Iterator[PublishedFigure]:
    for group in table()["reads"]:
        yield from _reads(group)
    for group in table()["beside_writers"]:
        yield from _beside(group)
