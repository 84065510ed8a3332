# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The scheduler study (a student project, CS350): six operations over file sizes and record lengths, and a selector."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwaiter.reproduce.bench import Bench, jobs_of, ratio
from headwaiter.reproduce.claims import Check, Claim, Row, Table, least
from headwaiter.reproduce.experiment import Experiment

DOCUMENT = "OS-performance profiling and I/O scheduling, CS350 project, 2023"
SSD, DISK = "nvme-ssd", "wd-re-4tb"  # theirs: an SSD of 512 GB (NVMe); the disk, because schedulers hardly differ on that
SCHEDULERS = ("none", "bfq", "mq-deadline", "kyber")
RECORDS_KIB = (8, 64, 512)
FILES_MIB = (1, 32)
# Of each operation the lines of a job file; a file that is written or read again has been so before.
OPERATIONS = {
    "write": "rw=write",
    "re-write": "rw=write\nloops=2",
    "read": "rw=read",
    "re-read": "rw=read\nloops=2",
    "random read": "rw=randread",
    "random write": "rw=randwrite",
}
Case = tuple[str, int, int]
Rates = Mapping[Case, Mapping[str, float]]


@dataclass(frozen=True)
class Study:
    """MB/s by case and scheduler: of the runs that the selector learns from, and of others."""

    learnt: Rates
    tried: Rates

    def score(self, choose: Mapping[Case, str]) -> float:
        """Mean over all cases of throughput by the best scheduler's, of a choice for each case."""
        return statistics.mean(self.tried[case][name] / max(self.tried[case].values()) for case, name in choose.items())

    @property
    def selector(self) -> float:
        """That of the scheduler that was the best when it learnt."""
        return self.score({case: max(rates, key=lambda name: rates[name]) for case, rates in self.learnt.items()})

    @property
    def single(self) -> Mapping[str, float]:
        """Of each scheduler alone."""
        return {name: self.score(dict.fromkeys(self.tried, name)) for name in SCHEDULERS}


def _rates(bench: Bench, drive: str, seed: int) -> Rates:
    out: dict[Case, dict[str, float]] = {}
    for operation, lines in OPERATIONS.items():
        for size in FILES_MIB:
            for record in RECORDS_KIB:
                files = bench.count(32 / size)
                text = f"[global]\ndirect=1\nioengine=libaio\niodepth=4\nrandseed={seed}\nbs={record}k\n{lines}\n"
                load = jobs_of("study", f"{text}[job]\nsize={size * files}m\nnrfiles={files}\nnumjobs=4\n", bench.drive(drive))
                out[operation, record, size] = {one: bench.run(drive, load, one, seed=seed).throughput_mbps for one in SCHEDULERS}
    return out


def study(bench: Bench) -> Mapping[str, Study]:
    """All cases on each drive, twice with other random numbers."""
    return {drive: Study(_rates(bench, drive, 1), _rates(bench, drive, 2)) for drive in (SSD, DISK)}


def _tables(m: Mapping[str, Study]) -> list[Table]:
    return [table for drive, found in m.items() for table in _tables_of(drive, found)]


def _tables_of(drive: str, found: Study) -> list[Table]:
    rows: list[Row] = [
        [operation, f"{size} MiB", f"{record} KiB", *rates.values(), max(rates, key=lambda name: rates[name])]
        for (operation, record, size), rates in found.tried.items()
    ]
    scores = [*found.single.items(), ("selector", found.selector)]
    return [
        Table(f"MB/s on {drive}", ["operation", "file", "record", *SCHEDULERS, "best"], rows),
        Table(f"{drive}: mean of throughput / the best", ["choice", "score"], [[name, score] for name, score in scores]),
    ]


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "study",
        DOCUMENT,
        "six operations by file size and record length under today's four schedulers, and a selector",
        f"{SSD}, {DISK}",
        {"sim": study},
        _tables,
        [
            Claim(
                "CS3",
                "throughput of the selector / of the best single scheduler",
                "intended",
                lambda m: [Check(ratio(one.selector, max(one.single.values())), least(0.99), drive) for drive, one in m.items()],
                essential=True,
            ),
        ],
        {"sim": 20},
        notes={
            "sim": "direct I/O of four processes, because through the page cache hardly anything reaches the disk;"
            " the SSD serves all that they ask at once"
        },
    ),
)
