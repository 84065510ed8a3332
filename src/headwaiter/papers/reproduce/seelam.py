# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Seelam, Romero, Teller, Buros, "Enhancements to Linux I/O Scheduling", OLS 2005: cooperative anticipatory scheduling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwaiter.engine.sim import Load, Outcome
from headwaiter.papers.reproduce.bench import Bench, ratio
from headwaiter.papers.reproduce.claims import Band, Check, Claim, Investigation, PaperTable, Row, least, most
from headwaiter.papers.reproduce.experiment import Chart, Experiment
from headwaiter.papers.reproduce.guests import run_jobs, run_programs
from headwaiter.papers.reproduce.made_files import texts

DOCUMENT = "Seelam et al., Enhancements to Linux I/O Scheduling, OLS 2005"
DRIVE = "maxtor-20g"  # theirs: "7200 rpm Maxtor 20 GB IDE disk"
ARRAY = "raid0-4x-barracuda-80g"  # theirs: four IDE drives of 10 GB
MAX_SECTORS = 256
"""The largest request: 128 KiB, as on the drives and kernels of 2005."""
THREE = ("deadline", "as", "cas")


@dataclass(frozen=True)
class Timed:
    """The time that the timed program took, and MB/s of all that completed meanwhile."""

    elapsed_s: float
    throughput_mbps: float


Runs = Mapping[str, Timed]


def timed(outcome: Outcome, program: str) -> Timed:
    """Until the last I/O of all threads of control that begin with a task of such a name."""
    rows, groups = outcome.rows, [task.group for task in outcome.tasks]
    mine = {task.group for task in outcome.tasks if task.name.startswith(program)}
    of_mine = [group in mine for group in groups]
    end = max(int(done) for done, task in zip(rows.complete_ns, rows.task, strict=True) if of_mine[task])
    done = rows.sectors[rows.complete_ns <= end].sum() * 512
    return Timed(end / 1e9, float(done) / (end / 1e3))


def _measure(bench: Bench, load: Load, program: str, schedulers: Sequence[str] = THREE) -> Runs:
    return {name: timed(bench.outcome(DRIVE, load, name, max_sectors=MAX_SECTORS), program) for name in schedulers}


def write_read(bench: Bench) -> Runs:
    """Table 1: dd writes for ever, cat reads 200 MB."""
    size = f"size={bench.count(200, 8)}m"
    return _measure(bench, bench.jobs("seelam-write-read", DRIVE, {"size=200m": size}), "cat")


def stream_chunks(bench: Bench) -> Runs:
    """Table 2: a stream, and find with a new cat for each file. The stream must not end before."""
    files = bench.count(400, 100)
    return _measure(bench, bench.generated("seelam-chunks", DRIVE, files=files, stream_mib=8 * files), "find")


@dataclass(frozen=True)
class Instances:
    """One instance of find, and two at once."""

    one: Runs
    two: Runs

    def slowdown(self, name: str) -> float:
        """Time of two by time of one."""
        return ratio(self.two[name].elapsed_s, self.one[name].elapsed_s)


def chunks(bench: Bench) -> Instances:
    """Table 3 and Figure 3."""
    files = bench.count(2000, 200)
    one, two = (bench.generated("seelam-chunks", DRIVE, files=files, instances=n) for n in (1, 2))
    return Instances(_measure(bench, one, "find"), _measure(bench, two, "find"))


READ_MIB = 40
TREE_FILES, STREAMED_FILES, FILE_BYTES, FOLDER_FILES = 400, 180, 7680, 18
LAB_TREE = "real programs on ext4, find with a new cat for each of {} files"


def lab_write_read(bench: Bench) -> Runs:
    """Table 1 with dd and cat."""
    found = run_programs(bench, "seelam-write-read", DRIVE, THREE, {"READ_MIB": bench.count(READ_MIB, 8)})
    return {name: Timed(one.elapsed_s, one.throughput_mbps) for name, one in found.items()}


def _lab_searches(bench: Bench, files: int, *, stream: bool) -> Instances:
    found = run_programs(
        bench, "seelam-chunks", DRIVE, THREE, {"STREAMED": int(stream)}, texts("/tree", files, FILE_BYTES, FOLDER_FILES)
    )

    def timed_of(instances: str) -> Runs:
        return {name: Timed(one.figures[f"{instances}_s"], one.figures[f"{instances}_mbps"]) for name, one in found.items()}

    return Instances(timed_of("one"), {} if stream else timed_of("two"))


def lab_stream_chunks(bench: Bench) -> Runs:
    """Table 2 with find, cat and dd."""
    return _lab_searches(bench, bench.count(STREAMED_FILES, 20), stream=True).one


def lab_chunks(bench: Bench) -> Instances:
    """Table 3 with find and cat."""
    return _lab_searches(bench, bench.count(TREE_FILES, 100), stream=False)


SIZES_KIB = (4, 16, 64, 256)
RANKED = ("deadline", "as", "cas", "cfq", "noop")
Ranking = Mapping[str, Mapping[str, Sequence[float]]]


def sizes(bench: Bench) -> Ranking:
    """Figure 5: MB/s of each scheduler by request size, on one disk and on four."""
    loads = {drive: [bench.jobs("seelam-sizes", drive, {"bs=4k": f"bs={kib}k"}) for kib in SIZES_KIB] for drive in (DRIVE, ARRAY)}
    return {
        drive: {name: [bench.run(drive, load, name).throughput_mbps for load in of_drive] for name in RANKED}
        for drive, of_drive in loads.items()
    }


def lab_sizes(bench: Bench) -> Ranking:
    """Measure Figure 5 in a real kernel."""
    out = {}
    for drive in (DRIVE, ARRAY):
        of_sizes = [run_jobs(bench, "seelam-sizes", drive, RANKED, {"bs=4k": f"bs={kib}k"}) for kib in SIZES_KIB]
        out[drive] = {name: [sum(row.throughput_mbps for row in found[name]) for found in of_sizes] for name in RANKED}
    return out


def least_regret(found: Mapping[str, Sequence[float]]) -> float:
    """The share of throughput that the best fixed choice loses at its worst size."""
    best = [max(rates) for rates in zip(*found.values(), strict=True)]
    worst = [max(1 - ratio(mine, top) for mine, top in zip(rates, best, strict=True)) for rates in found.values()]
    return min(worst)


def _timed_table(title: str, printed: Mapping[str, tuple[float, float]], found: Runs) -> list[PaperTable]:
    rows: list[Row] = [[name, *printed[name], one.elapsed_s, one.throughput_mbps] for name, one in found.items()]
    return [PaperTable(title, ["scheduler", "paper: s", "paper: MB/s", "ours: s", "ours: MB/s"], rows)]


def _instances_table(found: Instances) -> list[PaperTable]:
    printed = {"deadline": (14.5, 4.0, 7), "as": (15.5, 4.0, 7), "cas": (15.5, 11.6, 2.5)}
    rows: list[Row] = [
        [name, *printed[name], found.one[name].throughput_mbps, found.two[name].throughput_mbps, found.slowdown(name)]
        for name in THREE
    ]
    figures = ("one: MB/s", "two: MB/s", "time of two / of one")
    columns = ["scheduler", *(f"paper: {one}" for one in figures), *(f"ours: {one}" for one in figures)]
    return [PaperTable("One and two chunk readers", columns, rows)]


def _sizes_table(found: Ranking) -> list[PaperTable]:
    return [
        PaperTable(
            f"MB/s by request size on {drive}",
            ["scheduler", *(f"{kib} KiB" for kib in SIZES_KIB)],
            [[name, *rates] for name, rates in of_drive.items()],
        )
        for drive, of_drive in found.items()
    ]


def _sizes_charts(found: Ranking) -> list[Chart]:
    return [Chart(f"Throughput on {drive}", "request, KiB", "MB/s", SIZES_KIB, of_drive) for drive, of_drive in found.items()]


def _time(m: Runs, a: str, b: str) -> float:
    return ratio(m[a].elapsed_s, m[b].elapsed_s)


def _rate(m: Runs, a: str, b: str) -> float:
    return ratio(m[a].throughput_mbps, m[b].throughput_mbps)


def _spread(found: Runs) -> float:
    rates = [one.throughput_mbps for one in found.values()]
    return max(rates) / min(rates) - 1


def _over_equal_time(_: Bench, m: Runs) -> Investigation:
    """Return what both programs get in the time that the chain takes under deadline."""
    whole_s, alone_mbps = m["deadline"].elapsed_s, m["as"].throughput_mbps
    rows: list[Row] = []
    for name, one in m.items():
        moved = one.throughput_mbps * min(one.elapsed_s, whole_s) + alone_mbps * max(0.0, whole_s - one.elapsed_s)
        rows.append(
            [name, one.elapsed_s, one.throughput_mbps, moved / whole_s, ratio(moved / whole_s, m["deadline"].throughput_mbps)]
        )
    return Investigation(
        "Throughput is that of both programs while the chain runs. Under cas it has ended in half of deadline's time,"
        " and the rest of that time, in which the stream has the disk, does not count.",
        PaperTable(
            "In the time of deadline's chain, with what the stream gets under as after the chain",
            ["scheduler", "s", "MB/s while it runs", "MB/s in deadline's time", "/ deadline"],
            rows,
        ),
    )


def _ranked(_: Bench, m: Ranking) -> Investigation:
    """Return who is ahead at each size, and what the best fixed choice loses."""
    rows: list[Row] = []
    for drive, found in m.items():
        best = [max(found, key=lambda name: found[name][i]) for i in range(len(SIZES_KIB))]
        rows.append([drive, *best, least_regret(found)])
    return Investigation(
        "Who is ahead changes with the size on the array alone, and by little: those that anticipate are ahead at all sizes, and"
        " by little of each other.",
        PaperTable("The best by request size", ["drive", *(f"{kib} KiB" for kib in SIZES_KIB), "the best choice loses"], rows),
    )


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "seelam-write-read",
        DOCUMENT,
        "Table 1: streaming write, and a read of 200 MB",
        DRIVE,
        {"sim": write_read, "lab": lab_write_read},
        lambda m: _timed_table(
            "The read of 200 MB; MB/s of both programs", {"deadline": (129, 25), "as": (10, 33), "cas": (9, 33)}, m
        ),
        [
            Claim(
                "SE1",
                "time of the read, deadline / as",
                "12.9",
                lambda m: [Check(_time(m, "deadline", "as"), least(4))],
                essential=True,
                shortest={"lab": 1},
            ),
            Claim("SE2", "throughput, as / deadline", "1.32", lambda m: [Check(_rate(m, "as", "deadline"), least(1.1))]),
            Claim("SE3", "time of the read, cas / as", "0.9", lambda m: [Check(_time(m, "cas", "as"), Band(0.8, 1.25))]),
        ],
        {"sim": 2, "lab": 60},
        notes={
            "sim": "the simulator's page cache; requests of 128 KiB at most",
            "lab": f"dd and cat on ext4; a file of {READ_MIB} MiB",
        },
    ),
    Experiment(
        "seelam-stream-chunks",
        DOCUMENT,
        "Table 2: streaming reads, and chunk reads by a chain of processes",
        DRIVE,
        {"sim": stream_chunks, "lab": lab_stream_chunks},
        lambda m: _timed_table(
            "The chain of processes; MB/s of both programs", {"deadline": (297, 9), "as": (4767, 35), "cas": (255, 34)}, m
        ),
        [
            Claim(
                "SE4",
                "time of the chain, as / deadline",
                "16.1",
                lambda m: [Check(_time(m, "as", "deadline"), least(5))],
                essential=True,
            ),
            Claim(
                "SE5",
                "time of the chain, cas / deadline",
                "0.86",
                lambda m: [Check(_time(m, "cas", "deadline"), most(1.1))],
                essential=True,
            ),
            Claim(
                "SE6",
                "throughput, / deadline",
                "3.9, 3.8",
                lambda m: [Check(_rate(m, name, "deadline"), least(2), name) for name in ("as", "cas")],
                essential=True,
                why=_over_equal_time,
                shortest={"sim": 0.75, "lab": 1},
            ),
        ],
        {"sim": 7, "lab": 120},
        shortest=0.5,
        notes={
            "sim": "generated programs (workloads/seelam-chunks.toml) on 400 files",
            "lab": LAB_TREE.format(STREAMED_FILES),
        },
    ),
    Experiment(
        "seelam-chunks",
        DOCUMENT,
        "Table 3 and Figure 3: one and two chains of chunk reads",
        DRIVE,
        {"sim": chunks, "lab": lab_chunks},
        _instances_table,
        [
            Claim("SE7", "one chain: throughputs of the three differ by", "7%", lambda m: [Check(_spread(m.one), most(0.15))]),
            Claim(
                "SE8",
                "two chains: throughput, as / deadline",
                "1.0",
                lambda m: [Check(_rate(m.two, "as", "deadline"), most(1.3))],
                essential=True,
            ),
            Claim(
                "SE9",
                "two chains: throughput, cas / deadline",
                "2.9",
                lambda m: [Check(_rate(m.two, "cas", "deadline"), least(1.8))],
                essential=True,
                shortest={"lab": 1},
            ),
            Claim(
                "SE10",
                "time of two chains / of one",
                "7, 7, 2.5",
                lambda m: [
                    Check(m.slowdown("cas"), most(3.2), "cas"),
                    Check(ratio(m.slowdown("deadline"), m.slowdown("cas")), least(1.3), "deadline's / cas's"),
                    Check(ratio(m.slowdown("as"), m.slowdown("cas")), least(1.3), "as's / cas's"),
                ],
            ),
        ],
        {"sim": 2, "lab": 60},
        notes={
            "sim": "generated programs (workloads/seelam-chunks.toml) on 2000 files",
            "lab": LAB_TREE.format(TREE_FILES),
        },
    ),
    Experiment(
        "seelam-sizes",
        DOCUMENT,
        "Figure 5: the ranking by average request size, on one disk and on RAID-0 of four",
        f"{DRIVE}, {ARRAY}",
        {"sim": sizes, "lab": lab_sizes},
        _sizes_table,
        [
            Claim(
                "SE15",
                "no scheduler is the best at all sizes: the best fixed choice loses at its worst size",
                "yes",
                lambda m: [
                    Check(max(least_regret(of_drive) for of_drive in m.values()), least(0.02), "on one disk or on RAID-0")
                ],
                why=_ranked,
            ),
        ],
        {"sim": 8, "lab": 300},
        printed=False,
        notes={"lab": "fio on the disk itself, for a shorter time"},
        charts=_sizes_charts,
    ),
)
