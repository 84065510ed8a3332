# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""J. Axboe, "Time sliced CFQ", linux-kernel, December 2004: read_files and write_files, O_DIRECT, one process a file, 30 s.

The tables are of 2 December. A kernel of that day took direct writes for asynchronous: `as` neither waits for the next one nor
counts it among its batches of synchronous requests. The patch that marks them (PF_SYNCWRITE in fs/direct-io.c) is of
7 December. cfq-slice of the tables has a queue for each process, whatever it does. So `as` has sync_writes=0 here; deadline does
not look at it. Slices have the values of that day: `cfq-slice-2004`.

The drive is not named. It buffers what makes one client write as fast as is printed (WRITE_BUFFER_KIB).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from statistics import fmean
from types import MappingProxyType
from typing import Any

from headwaiter.drives import Profile
from headwaiter.judge.detail import Shown
from headwaiter.papers.reproduce.bench import Bench, Clients, Level, clients, jobs_of, ratio, tasks
from headwaiter.papers.reproduce.claims import Band, Check, Claim, Investigation, PaperTable, Row, least, most
from headwaiter.papers.reproduce.experiment import Chart, Experiment
from headwaiter.papers.reproduce.guests import FioDone, job_text, run_job_files, run_jobs

DOCUMENT = "Axboe, Time sliced CFQ, linux-kernel, 2004"
DRIVE = "deskstar-75gxp"  # "IDE drive": of its time, of 7200 rpm
WRITE_BUFFER_KIB = 96
"""One client of the tables writes 13.7 MB/s in sequence, half of what the surface takes: a bufferful goes to it in each turn, and
this is the one. What the drive's profile has instead is an estimate."""
ON = f"{DRIVE}, {WRITE_BUFFER_KIB} KiB of writes buffered"
SCHEDULERS = ("deadline", "as", "cfq-slice-2004")
MAX_SECTORS = 256
"""The largest request on the drives and kernels of 2004: 128 KiB."""
CLIENTS = (1, 2, 4, 8)
LAB_NOTE = "fio on the disk itself, for a shorter time"
WRITES_NOTE = "direct writes are asynchronous under as, as they were in the kernel of the tables"
Cases = Mapping[tuple[str, int], Clients]

# Bandwidth in KiB/s (max, min, aggregate) and the longest latency in ms, of 1, 2, 4 and 8 clients.
Printed = Mapping[str, Sequence[tuple[int, int, int, int]]]
READ_SEQUENTIAL: Printed = {
    "deadline": ((19837, 19837, 19837, 22), (2116, 2114, 4230, 22), (361, 360, 1444, 41), (150, 149, 1201, 111)),
    "as": ((19480, 19480, 19480, 30), (9250, 9189, 18434, 261), (4513, 4469, 17970, 488), (2238, 2157, 17581, 934)),
    "cfq-slice-2004": ((19433, 19433, 19433, 9), (8686, 8628, 17312, 90), (4507, 4471, 17963, 254), (2181, 2104, 17134, 578)),
}
READ_RANDOM: Printed = {
    "deadline": ((7042, 7042, 7042, 20), (3052, 3051, 6103, 28), (1560, 1498, 6124, 101), (802, 581, 5487, 231)),
    "as": ((7041, 7041, 7041, 18), (4616, 2298, 6912, 270), (3190, 928, 6901, 360), (1524, 645, 6765, 636)),
    "cfq-slice-2004": ((7027, 7027, 7027, 19), (3429, 3413, 6841, 107), (1718, 1700, 6844, 282), (875, 827, 6795, 627)),
}
WRITE_SEQUENTIAL: Printed = {
    "deadline": ((13406, 13406, 13406, 21), (1553, 1551, 3104, 171), (690, 689, 2759, 116), (329, 318, 2604, 106)),
    "as": ((13330, 13330, 13330, 21), (2694, 2694, 5388, 77), (1754, 17, 4988, 762), (638, 342, 3866, 848)),
    "cfq-slice-2004": ((13267, 13267, 13267, 30), (6352, 6150, 12459, 239), (3230, 2945, 12524, 289), (1640, 1640, 12564, 599)),
}
WRITE_RANDOM: Printed = {
    "deadline": ((6749, 6749, 6749, 112), (1299, 1277, 2574, 813), (432, 418, 1715, 227), (291, 247, 2147, 1723)),
    "as": ((4110, 4110, 4110, 114), (815, 809, 1623, 631), (482, 349, 1760, 606), (476, 111, 2863, 752)),
    "cfq-slice-2004": ((4493, 4493, 4493, 129), (1710, 1513, 3216, 321), (521, 482, 2002, 476), (938, 877, 7210, 927)),
}


@cache
def drive() -> Profile:
    """The document's drive."""
    return Bench.buffering(DRIVE, WRITE_BUFFER_KIB)


def of_that_day(scheduler: str, marked: bool = False) -> str:
    """The scheduler as it saw direct writes. marked: they are synchronous for all, as in later kernels."""
    return f"{scheduler}:sync_writes=0" if scheduler.partition(":")[0] == "as" and not marked else scheduler


def run_in_lab(
    bench: Bench, workload: str, change: Mapping[str, str], schedulers: Sequence[str] = SCHEDULERS
) -> Mapping[str, Sequence[FioDone]]:
    """What each process did under each scheduler of that day, in a real kernel."""
    found = run_jobs(bench, workload, drive(), [of_that_day(name) for name in schedulers], change)
    return dict(zip(schedulers, found.values(), strict=True))


def cases(
    bench: Bench,
    workload: str,
    change: Mapping[str, str] = MappingProxyType({}),
    on: Profile | None = None,
    marked: bool = False,
) -> Cases:
    """1, 2, 4 and 8 clients under each scheduler, on a drive (None: the document's). marked: direct writes are synchronous for
    all, as in later kernels."""
    on = on or drive()
    load = bench.jobs(workload, on, change)
    results = {name: bench.run(on, load, of_that_day(name, marked)) for name in SCHEDULERS}
    return {(name, n): clients(tasks(r, f"clients{n}")) for name, r in results.items() for n in CLIENTS}


def lab_cases(bench: Bench, workload: str, change: Mapping[str, str] = MappingProxyType({})) -> Cases:
    """Measure it in a real kernel."""
    found = run_in_lab(bench, workload, change)
    return {(name, n): together(rows, f"clients{n}") for name, rows in found.items() for n in CLIENTS}


RUNS = 8
"""The lab runs writers so often. Under as they settle into one of two orders and keep it: microseconds decide which."""


def lab_means(bench: Bench, workload: str, change: Mapping[str, str] = MappingProxyType({})) -> Cases:
    """Measure it in a real kernel: the mean of runs in which clients begin at times of their own."""
    text = job_text(bench, workload, change)
    jobs = {f"{n}-{run}": _alone(text, n, run) for n in CLIENTS for run in range(RUNS)}
    found = run_job_files(bench, jobs, drive(), [of_that_day(name) for name in SCHEDULERS])
    return {
        (name, n): mean_of([together(of[f"{n}-{run}"]) for run in range(RUNS)])
        for name, of in zip(SCHEDULERS, found.values(), strict=True)
        for n in CLIENTS
    }


def _alone(text: str, n: int, run: int) -> str:
    """The part of a job file that has so many clients, which begin up to 100 ms apart."""
    head = text.partition(f"[clients{CLIENTS[0]}]")[0].replace("stonewall\n", "")
    return f"{head}startdelay=0-100ms\nrandseed={run + 1}\n[clients{n}]\nnumjobs={n}\n"


def mean_of(runs: Sequence[Clients]) -> Clients:
    """Return the mean rates of runs, and the longest I/O of all."""
    rates = [fmean(rate) for rate in zip(*((one.max_mbps, one.min_mbps, one.agg_mbps) for one in runs), strict=True)]
    return Clients(rates[0], rates[1], rates[2], max(one.max_lat_ms for one in runs))


def together(rows: Sequence[FioDone], name: str = "", op: str = "") -> Clients:
    """Return what processes of a name, or all that read or write, did."""
    mine = [row for row in rows if name in ("", row.name) and op in ("", row.op)]
    rates = [row.throughput_mbps for row in mine]
    return Clients(max(rates), min(rates), sum(rates), max(row.longest_ms for row in mine))


def table(printed: Printed, found: Cases) -> list[PaperTable]:
    """A row for each scheduler and number of clients."""
    rows: list[Row] = []
    for name, n in found:
        fast, slow, agg, latency = printed[name][CLIENTS.index(n)]
        ours = found[name, n]
        paper = [round(kib * 1.024e-3, 3) for kib in (fast, slow, agg)]
        rows.append([name, n, *paper, latency, ours.max_mbps, ours.min_mbps, ours.agg_mbps, ours.max_lat_ms])
    figures = ("max MB/s", "min MB/s", "all MB/s", "longest ms")
    head = ["scheduler", "clients", *(f"paper: {one}" for one in figures), *(f"ours: {one}" for one in figures)]
    return [PaperTable("Bandwidth of the fastest client, the slowest and all; the longest I/O", head, rows)]


def charts(found: Cases) -> list[Chart]:
    """Throughput and latency against clients."""
    names = list(dict.fromkeys(name for name, _ in found))

    def lines(figure: Callable[[Clients], float]) -> dict[str, list[float]]:
        return {name: [figure(found[name, n]) for n in CLIENTS] for name in names}

    return [
        Chart("Aggregate bandwidth", "clients", "MB/s", CLIENTS, lines(lambda c: c.agg_mbps)),
        Chart("Longest I/O", "clients", "ms", CLIENTS, lines(lambda c: c.max_lat_ms)),
    ]


def heads(bench: Bench) -> list[Shown]:
    """Two sequential readers: the picture that explains deceptive idleness at a glance."""
    text = "[global]\nioengine=psync\ndirect=1\nrw=read\nbs=4k\nsize=256m\nruntime=1s\ntime_based\n[reader]\nnumjobs=2\n"
    load = jobs_of("readers", text, drive())
    return [bench.pictured(drive(), load, name) for name in SCHEDULERS]


def kept(found: Cases, name: str) -> float:
    """Aggregate at 8 clients by that at 1."""
    return ratio(found[name, 8].agg_mbps, found[name, 1].agg_mbps)


def _growth(found: Cases) -> list[Check]:
    def latency(name: str, n: int) -> float:
        return found[name, n].max_lat_ms

    steps = [latency(name, b) / latency(name, a) for name in ("as", "cfq-slice-2004") for a, b in pairwise(CLIENTS)]
    others = min(latency("as", 8), latency("cfq-slice-2004", 8))
    return [
        Check(min(steps), least(1), "least growth as clients double"),
        Check(ratio(latency("deadline", 8), others), most(1), "deadline / the better of both at 8"),
    ]


def _written(bench: Bench, _: Cases) -> Investigation:
    """Sequential writes: as the scheduler and the drive's cache see them."""
    large, small = bench.drive(DRIVE), bench.buffering(DRIVE, WRITE_BUFFER_KIB, stretches=1)
    rows: list[Row] = []
    for what, on, marked in (
        ("asynchronous, the buffer that the tables imply", drive(), False),
        ("synchronous, as since 7 December 2004", drive(), True),
        ("asynchronous, the 512 KiB of the drive's profile", large, False),
        ("asynchronous, a buffer of one stretch at a time", small, False),
        ("synchronous, a buffer of one stretch at a time", small, True),
    ):
        found = cases(bench, "axboe-seq-write", on=on, marked=marked)
        alone = found["deadline", 1].agg_mbps
        rows.append([what, alone, *(kept(found, name) for name in SCHEDULERS), found["as", 4].unfairness])
    columns = ["direct writes under as", "one client: MB/s", *(f"{name}: 8 / 1" for name in SCHEDULERS)]
    columns.append("as, 4 clients: fastest / slowest")
    return Investigation(
        "Two things decide it. The kernel took direct writes for asynchronous until 7 December 2004, so `as` did not wait for a"
        " writer's next one. And the drive's buffer: one that holds many stretches collects each writer's blocks and loses little"
        " where the scheduler jumps between them; one that holds a single one loses all, more than the paper's did.",
        PaperTable("Sequential writes in the simulator: bandwidth of 8 clients / of 1", columns, rows),
    )


def _scattered(bench: Bench, _: Cases) -> Investigation:
    """Random writes: over how much of the disk."""
    rows: list[Row] = []
    for size in ("1m", "2m", "4m", "16m", "256m"):
        found = cases(bench, "axboe-rand-write", {"size=256m": f"size={size}"})
        alone, gain = found["deadline", 1].agg_mbps, ratio(found["cfq-slice-2004", 8].agg_mbps, found["deadline", 8].agg_mbps)
        rows.append([size, alone, gain])
    return Investigation(
        "The size of the files is not printed. One client's 6.9 MB/s of random 4 KiB are 1687 places a second, which a disk"
        " reaches only if they lie close together; the gain of time slices is that of staying among one client's.",
        PaperTable(
            "Random writes, by file size", ["file", "deadline, 1 client: MB/s", "8 clients: cfq-slice-2004 / deadline"], rows
        ),
    )


def _experiment(
    name: str,
    title: str,
    printed: Printed,
    claims: Sequence[Claim[Cases]],
    seconds: float,
    change: Mapping[str, str] = MappingProxyType({}),
    note: str = "",
    pictures: Callable[[Bench], Sequence[Shown]] | None = None,
    shortest: float = 0.0,
    means: bool = False,
) -> Experiment[Cases]:
    in_lab = lab_means if means else lab_cases
    measure: dict[Level, Callable[[Bench], Cases]] = {
        "sim": partial(cases, workload=name, change=change),
        "lab": partial(in_lab, workload=name, change=change),
    }
    lab_note = f"{LAB_NOTE}; the mean of {RUNS} runs" if means else LAB_NOTE
    return Experiment(
        name,
        DOCUMENT,
        title,
        ON,
        measure,
        partial(table, printed),
        claims,
        {"sim": seconds, "lab": 360 if means else 90},
        shortest,
        charts,
        pictures,
        {"sim": note, "lab": f"{lab_note}; {note}"} if note else {"lab": lab_note},
    )


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    _experiment(
        "axboe-seq-read",
        "sequential reads of 4 KiB, one to eight clients",
        READ_SEQUENTIAL,
        [
            Claim(
                "AX1",
                "deadline: bandwidth of 8 clients / of 1",
                "0.061",
                lambda m: [Check(kept(m, "deadline"), most(0.25))],
                essential=True,
            ),
            Claim("AX2", "as: 8 / 1", "0.90", lambda m: [Check(kept(m, "as"), least(0.8))], essential=True),
            Claim(
                "AX3", "cfq-slice-2004: 8 / 1", "0.88", lambda m: [Check(kept(m, "cfq-slice-2004"), least(0.8))], essential=True
            ),
            Claim(
                "AX4",
                "longest I/O of 8 clients, cfq-slice-2004 / as",
                "0.62",
                lambda m: [Check(ratio(m["cfq-slice-2004", 8].max_lat_ms, m["as", 8].max_lat_ms), most(0.75))],
                essential=True,
                shortest={"lab": 1},
            ),
            Claim(
                "AX17",
                "cfq-slice-2004: the longest I/O, ours / the paper's",
                "1",
                # A reader waits for the slices of the others, which are as long as the paper's: drives add little.
                lambda m: [
                    Check(ratio(m["cfq-slice-2004", n].max_lat_ms, printed), Band(0.8, 1.25), f"{n} clients")
                    for n, (*_, printed) in zip(CLIENTS[1:], READ_SEQUENTIAL["cfq-slice-2004"][1:], strict=True)
                ],
            ),
            Claim(
                "AX5", "the longest I/O grows with clients under as and cfq-slice-2004; deadline's is shortest", "yes", _growth
            ),
        ],
        4,
        pictures=heads,
    ),
    _experiment(
        "axboe-rand-read",
        "random reads of 64 KiB, one to eight clients",
        READ_RANDOM,
        [
            Claim(
                "AX6",
                "bandwidth of 8 clients / of 1",
                "0.96, 0.97",
                lambda m: [Check(kept(m, name), least(0.85), name) for name in ("as", "cfq-slice-2004")],
            ),
            Claim(
                "AX7",
                "8 clients: the fastest gets so many times as much as the slowest",
                "2.4, 1.06",
                lambda m: [
                    Check(m["as", 8].unfairness, least(1.3), "as"),
                    Check(m["cfq-slice-2004", 8].unfairness, most(1.15), "cfq-slice-2004"),
                ],
                essential=True,
            ),
        ],
        1,
        shortest=1,
    ),
    _experiment(
        "axboe-seq-write",
        "sequential writes of 4 KiB, one to eight clients",
        WRITE_SEQUENTIAL,
        [
            Claim(
                "AX8",
                "cfq-slice-2004: bandwidth of 8 clients / of 1",
                "0.95",
                lambda m: [Check(kept(m, "cfq-slice-2004"), least(0.85))],
                essential=True,
            ),
            Claim(
                "AX9",
                "8 / 1",
                "0.19, 0.29",
                lambda m: [Check(kept(m, name), most(0.5), name) for name in ("deadline", "as")],
                why=_written,
            ),
            Claim(
                "AX10",
                "as, 4 clients: the fastest / the slowest",
                "103",
                lambda m: [Check(m["as", 4].unfairness, least(1.5))],
                why=_written,
                shortest={"lab": 1},
            ),
        ],
        4,
        note=WRITES_NOTE,
        means=True,
    ),
    _experiment(
        "axboe-rand-write",
        "random writes of 4 KiB, one to eight clients",
        WRITE_RANDOM,
        [
            Claim(
                "AX11",
                "bandwidth of 8 clients, cfq-slice-2004 / deadline",
                "3.4",
                lambda m: [Check(ratio(m["cfq-slice-2004", 8].agg_mbps, m["deadline", 8].agg_mbps), least(1.3))],
                why=_scattered,
            ),
        ],
        1,
        {"size=256m": "size=2m"},
        "files of 2 MiB: the size that lets one client write as fast at random as is printed",
        shortest=1,
    ),
)
