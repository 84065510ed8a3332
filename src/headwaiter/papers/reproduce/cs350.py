# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The scheduler study (a student project, CS350): six operations over file sizes and record lengths, and a selector."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwaiter.papers.cells import KIB, study_table
from headwaiter.papers.reproduce.bench import Bench, jobs_of, ratio, tasks
from headwaiter.papers.reproduce.claims import Check, Claim, PaperTable, Row, least, most
from headwaiter.papers.reproduce.experiment import Experiment
from headwaiter.papers.reproduce.guests import run_programs
from headwaiter.study.schema import TaskRow

DOCUMENT = "OS-performance profiling and I/O scheduling, CS350 project, 2023"
SSD, DISK = "nvme-ssd", "wd-re-4tb"  # theirs: an SSD of 512 GB (NVMe); the disk, because schedulers hardly differ on that
SCHEDULERS = ("none", "bfq", "mq-deadline", "kyber")
RECORDS_KIB = (8, 64, 512)
FILES_MIB = (1, 32)
WAYS = {
    "write": "write",
    "re-write": "write",
    "read": "read",
    "re-read": "read",
    "random read": "randread",
    "random write": "randwrite",
}
"""As a job file has them; a file that is written or read again has been so before."""
JOB = "job"
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
        """Return the rate under the scheduler that was the best when the selector learnt."""
        return self.score({case: max(rates, key=lambda name: rates[name]) for case, rates in self.learnt.items()})

    @property
    def single(self) -> Mapping[str, float]:
        """Return the throughput under each scheduler alone."""
        return {name: self.score(dict.fromkeys(self.tried, name)) for name in SCHEDULERS}


def _rates(bench: Bench, drive: str, seed: int) -> Rates:
    out: dict[Case, dict[str, float]] = {}
    for operation in WAYS:
        for size in FILES_MIB:
            for record in RECORDS_KIB:
                text = _job(operation, record, size, bench.count(32 / size), seed)
                load = jobs_of("study", text, bench.drive(drive))
                found = {one: tasks(bench.run(drive, load, one, seed=seed), JOB) for one in SCHEDULERS}
                out[operation, record, size] = {one: _rate(rows) for one, rows in found.items()}
    return out


def _rate(rows: Sequence[TaskRow]) -> float:
    """MB/s of processes that begin at once, until the last of them ends."""
    return sum(row.bytes for row in rows) / 1e6 / max(row.elapsed_s for row in rows)


def _job(operation: str, record_kib: int, size_mib: int, files: int, seed: int) -> str:
    """Write a job file in which only the job of that name counts: what it does again another job has done before."""
    text = f"[global]\ndirect=1\nioengine=libaio\niodepth=4\nrandseed={seed}\nbs={record_kib}k\nrw={WAYS[operation]}\n"
    text += f"size={size_mib * files}m\nnrfiles={files}\nnumjobs=4\nfilename_format=$jobnum.$filenum\n"
    return f"{text}[before]\n[{JOB}]\nstonewall\n" if operation.startswith("re-") else f"{text}[{JOB}]\n"


def study(bench: Bench) -> Mapping[str, Study]:
    """All cases on each drive, twice with other random numbers."""
    return {drive: Study(_rates(bench, drive, 1), _rates(bench, drive, 2)) for drive in (SSD, DISK)}


def _tables(m: Mapping[str, Study]) -> list[PaperTable]:
    return [table for drive, found in m.items() for table in _tables_of(drive, found)]


def _printed(case: Case) -> Mapping[str, float]:
    """Return what the study prints of its SSD for the range in which the file lies."""
    operation, record, size = case
    table = study_table()
    return table.rates[table.cell(operation.replace("-", ""), size * KIB, record)]


def _case(case: Case) -> list[str]:
    operation, record, size = case
    return [operation, f"{size} MiB", f"{record} KiB"]


def _tables_of(drive: str, found: Study) -> list[PaperTable]:
    rows: list[Row] = [
        [*_case(case), *rates.values(), _best(rates), _best(_printed(case))] for case, rates in found.tried.items()
    ]
    scores = [*found.single.items(), ("selector", found.selector)]
    return [
        PaperTable(f"MB/s on {drive}", ["operation", "file", "record", *SCHEDULERS, "ours: best", "paper: best"], rows),
        PaperTable(f"{drive}: mean of throughput / the best", ["choice", "score"], [[name, score] for name, score in scores]),
    ]


CACHED_MIB = (1, 16)


def _cached_job(bench: Bench, case: Case) -> tuple[str, str]:
    """Return the job's name and text."""
    operation, record, size = case
    kib = max(record, round(size * 1024 * min(bench.scale, 1) / record) * record)
    name = f"{operation.replace(' ', '_')}-{record}-{size}"
    return name, f"[{name}]\nstonewall\nrw={WAYS[operation]}\nbs={record}k\nsize={kib}k\nfilename={size}-{record}\n"


def cached(bench: Bench, run: int) -> Rates:
    """MB/s of one program whose files fit the page cache, by case and scheduler; each run has random places of its own."""
    # In the order in which a file is written and read again.
    cases = [(operation, record, size) for size in CACHED_MIB for record in RECORDS_KIB for operation in WAYS]
    jobs = {case: _cached_job(bench, case) for case in cases}
    text = f"[global]\ndirectory=/mnt/files\nioengine=psync\nfallocate=none\ninvalidate=0\nrandseed={run}\n"
    text += "".join(job for _, job in jobs.values())
    found = run_programs(bench, "study-cache", SSD, SCHEDULERS, {"DEPTH": 0}, {"/lab/jobs.fio": text.encode()})
    return {case: {one: case[1] * 1024 / ran.figures[name] for one, ran in found.items()} for case, (name, _) in jobs.items()}


@dataclass(frozen=True)
class Cached:
    """MB/s through the page cache, of a run and of a second one."""

    first: Rates
    second: Rates

    @property
    def selected(self) -> Study:
        """A selector that learnt from the first, tried in the second."""
        return Study(self.first, self.second)


def cached_twice(bench: Bench) -> Cached:
    """Two guests, one after the other."""
    return Cached(cached(bench, 1), cached(bench, 2))


def _spread(rates: Mapping[str, float]) -> float:
    return 1 - ratio(min(rates.values()), max(rates.values()))


def _best(rates: Mapping[str, float]) -> str:
    return max(rates, key=lambda name: rates[name])


def _cached_row(case: Case, rates: Mapping[str, float]) -> Row:
    printed = _printed(case)
    theirs = [round(printed[name] * 1.024e-3) for name in SCHEDULERS]
    return [*_case(case)[1:], *rates.values(), *theirs, *(figure(of) for figure in (_best, _spread) for of in (rates, printed))]


def _cached_tables(m: Cached) -> list[PaperTable]:
    found = m.first
    figures = ("best", "(best - worst) / best")
    columns = [
        *("file", "record"),
        *(f"{whose}: {name}" for whose in ("ours", "paper") for name in SCHEDULERS),
        *(f"{whose}: {one}" for one in figures for whose in ("ours", "paper")),
    ]
    wins, printed = Counter(map(_best, found.values())), Counter(map(_best, study_table().rates.values()))
    scores = [*m.selected.single.items(), ("selector", m.selected.selector)]
    return [
        *(
            PaperTable(
                f"{operation}: MB/s through the page cache",
                columns,
                [_cached_row(case, rates) for case, rates in found.items() if case[0] == operation],
            )
            for operation in WAYS
        ),
        PaperTable("A second run: mean of throughput / the best", ["choice", "score"], [[name, score] for name, score in scores]),
        PaperTable(
            "Cases in which a scheduler is the best",
            ["scheduler", "ours: cases", "paper: cases"],
            [[name, wins[name], printed[name]] for name in SCHEDULERS],
        ),
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
        {"lab": cached_twice},
        _cached_tables,
        [
            Claim(
                "CS1",
                "median over cases of (best - worst) / best",
                "0.087",
                lambda m: [Check(statistics.median(map(_spread, m.first.values())), most(0.2))],
            ),
            Claim(
                "CS2",
                "no scheduler is the best everywhere: so many are in some case",
                "yes",
                lambda m: [Check(len({_best(rates) for rates in m.first.values()}), least(2))],
            ),
            Claim(
                "CS3",
                "throughput of the selector / of the best single scheduler",
                "intended",
                lambda m: [Check(ratio(m.selected.selector, max(m.selected.single.values())), least(0.99))],
                essential=True,
            ),
        ],
        {"lab": 120},
        notes={"lab": "fio for IOzone, on ext4; files of 1 and 16 MiB; hardly anything of the differences is of the disk"},
    ),
)
