# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The scheduler study (a student project, CS350): six operations over file sizes and record lengths, and a selector."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwaiter.reproduce.bench import Bench, jobs_of, ratio
from headwaiter.reproduce.claims import Check, Claim, Row, Table, least, most
from headwaiter.reproduce.experiment import Experiment
from headwaiter.reproduce.guests import run_programs

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
        [operation, f"{size} MiB", f"{record} KiB", *rates.values(), _best(rates)]
        for (operation, record, size), rates in found.tried.items()
    ]
    scores = [*found.single.items(), ("selector", found.selector)]
    return [
        Table(f"MB/s on {drive}", ["operation", "file", "record", *SCHEDULERS, "best"], rows),
        Table(f"{drive}: mean of throughput / the best", ["choice", "score"], [[name, score] for name, score in scores]),
    ]


CACHED_MIB = (1, 16)


def _cached_job(bench: Bench, case: Case) -> tuple[str, str]:
    """Its name, and itself."""
    operation, record, size = case
    kib = max(record, round(size * 1024 * min(bench.scale, 1) / record) * record)
    name = f"{operation.replace(' ', '_')}-{record}-{size}"
    ways = OPERATIONS[operation].splitlines()[0]
    return name, f"[{name}]\nstonewall\n{ways}\nbs={record}k\nsize={kib}k\nfilename={size}-{record}\n"


def cached(bench: Bench) -> Rates:
    """MB/s of one program whose files fit the page cache, by case and scheduler."""
    # In the order in which a file is written and read again.
    cases = [(operation, record, size) for size in CACHED_MIB for record in RECORDS_KIB for operation in OPERATIONS]
    jobs = {case: _cached_job(bench, case) for case in cases}
    text = "[global]\ndirectory=/mnt/files\nioengine=psync\nfallocate=none\ninvalidate=0\n"
    text += "".join(job for _, job in jobs.values())
    found = run_programs(bench, "study-cache", SSD, SCHEDULERS, {"DEPTH": 0}, {"/lab/jobs.fio": text.encode()})
    return {case: {one: case[1] * 1024 / ran.figures[name] for one, ran in found.items()} for case, (name, _) in jobs.items()}


def _spread(rates: Mapping[str, float]) -> float:
    return 1 - ratio(min(rates.values()), max(rates.values()))


def _best(rates: Mapping[str, float]) -> str:
    return max(rates, key=lambda name: rates[name])


def _cached_tables(found: Rates) -> list[Table]:
    rows: list[Row] = [
        [operation, f"{size} MiB", f"{record} KiB", *rates.values(), _best(rates), _spread(rates)]
        for (operation, record, size), rates in found.items()
    ]
    columns = ["operation", "file", "record", *SCHEDULERS, "best", "(best - worst) / best"]
    wins = Counter(_best(rates) for rates in found.values())
    return [
        Table("MB/s through the page cache", columns, rows),
        Table("Cases in which a scheduler is the best", ["scheduler", "cases"], [[name, wins[name]] for name in SCHEDULERS]),
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
    Experiment(
        "study-cache",
        DOCUMENT,
        "the six operations on files that fit the page cache",
        SSD,
        {"lab": cached},
        _cached_tables,
        [
            Claim(
                "CS1",
                "median over cases of (best - worst) / best",
                "0.087",
                lambda m: [Check(statistics.median(map(_spread, m.values())), most(0.2))],
            ),
            Claim(
                "CS2",
                "no scheduler is the best everywhere: so many are in some case",
                "yes",
                lambda m: [Check(len({_best(rates) for rates in m.values()}), least(2))],
            ),
        ],
        {"lab": 60},
        notes={"lab": "fio for IOzone, on ext4; files of 1 and 16 MiB; hardly anything of the differences is of the disk"},
    ),
)
