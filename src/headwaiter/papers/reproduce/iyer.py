# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Iyer & Druschel, "Anticipatory scheduling", SOSP 2001: deceptive idleness, as-seek, as-share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headwaiter.generated.model_machine import Process
from headwaiter.papers.reproduce.bench import Bench, ratio
from headwaiter.papers.reproduce.claims import Band, Check, Claim, PaperTable, Row, least, most
from headwaiter.papers.reproduce.experiment import Experiment
from headwaiter.papers.reproduce.guests import run_jobs, run_workload

DOCUMENT = "Iyer & Druschel, Anticipatory scheduling, SOSP 2001"
DRIVE = "deskstar-75gxp"  # theirs: "7200 rpm IDE (IBM Deskstar)"
FASTER = "cheetah-15k"  # theirs: "15000 rpm SCSI (Seagate Cheetah)"
MAX_SECTORS = 128
"""The largest request: 64 KiB. FreeBSD 4.3 joined no requests of a queue."""
WITH, WITHOUT = "as-seek", "as-seek:anticipate=0"


@dataclass(frozen=True)
class Gain:
    """MB/s with and without anticipation."""

    with_mbps: float
    without_mbps: float

    @property
    def ratio(self) -> float:
        """With by without."""
        return ratio(self.with_mbps, self.without_mbps)


def _gain(bench: Bench, name: str, drive: str = DRIVE) -> Gain:
    load = bench.jobs(name, drive)
    rates = [bench.run(drive, load, one, max_sectors=MAX_SECTORS).throughput_mbps for one in (WITH, WITHOUT)]
    return Gain(*rates)


def readers(bench: Bench) -> Mapping[str, Gain]:
    """Two readers, each with one request outstanding, and with eight."""
    return {"synchronous": _gain(bench, "iyer-readers"), "8 outstanding": _gain(bench, "iyer-async")}


def faster(bench: Bench) -> Mapping[str, Gain]:
    """The synchronous readers on a disk with half the positioning time."""
    return {"synchronous": _gain(bench, "iyer-readers", FASTER)}


def lab_faster(bench: Bench) -> Mapping[str, Gain]:
    """Measure them on it in a real kernel."""
    return {"synchronous": _lab_gain(bench, "iyer-readers", FASTER)}


def _lab_gain(bench: Bench, name: str, drive: str = DRIVE) -> Gain:
    found = run_jobs(bench, name, drive, (WITH, WITHOUT), {})
    return Gain(*(sum(row.throughput_mbps for row in found[one]) for one in (WITH, WITHOUT)))


def lab_readers(bench: Bench) -> Mapping[str, Gain]:
    """Measure the readers in a real kernel."""
    return {"synchronous": _lab_gain(bench, "iyer-readers"), "8 outstanding": _lab_gain(bench, "iyer-async")}


def shares(bench: Bench) -> Mapping[str, Sequence[float]]:
    """MB/s of two readers with one ticket and two, without and with anticipation."""
    load = bench.jobs("iyer-shares", DRIVE)
    load = replace(load, tasks=tuple(replace(task, share=i + 1) for i, task in enumerate(load.tasks)))
    return {
        what: [row.throughput_mbps for row in bench.run(DRIVE, load, name).tasks or ()]
        for what, name in (("without", "as-share:anticipate=0"), ("with", "as-share"))
    }


ONE_AND_TWO = {"[reader]\nnumjobs=2\n": "prioclass=2\n[one]\nprio=7\n[two]\nprio=6\n"}
"""Best effort 7 has one ticket, and 6 two; without anticipation, too, only tickets tell the readers apart."""


def lab_shares(bench: Bench) -> Mapping[str, Sequence[float]]:
    """Measure the shares in a real kernel, where the I/O priority says how many tickets a process has."""
    schedulers = {"without": "as-share:anticipate=0", "with": "as-share"}
    found = run_jobs(bench, "iyer-shares", DRIVE, list(schedulers.values()), ONE_AND_TWO)
    return {what: [row.throughput_mbps for row in found[name]] for what, name in schedulers.items()}


@dataclass(frozen=True)
class Trick:
    """An adversary: I/Os at once, then a pause; and I/Os of all, with anticipation by without."""

    blocks: int
    pause_ms: int
    kept: float


PAUSES_MS = (2, 5, 8, 12, 15, 18, 20, 25, 40)
BURSTS = (1, 2, 3, 4, 8, 16)


def adversary(bench: Bench) -> Sequence[Trick]:
    """Each pause and burst; places near each other, so that it looks worth waiting for."""
    out = []
    for blocks in BURSTS:
        for pause in PAUSES_MS:
            change = {"thinktime=18ms": f"thinktime={pause}ms", "thinktime_blocks=2": f"thinktime_blocks={blocks}"}
            load = bench.jobs("iyer-adversary", DRIVE, change)
            fast, slow = (bench.run(DRIVE, load, name).requests for name in (WITH, WITHOUT))
            out.append(Trick(blocks, pause, ratio(fast, slow)))
    return out


WORST = tuple((blocks, pause_ms) for blocks in (1, 2, 4) for pause_ms in (12, 18, 25))
"""Where the simulator has the adversary succeed best, and around it."""


def lab_adversary(bench: Bench) -> Sequence[Trick]:
    """Measure it in a real kernel, at its best tricks and around them."""
    out = []
    for blocks, pause in WORST:
        change = {"thinktime=18ms": f"thinktime={pause}ms", "thinktime_blocks=2": f"thinktime_blocks={blocks}"}
        found = run_jobs(bench, "iyer-adversary", DRIVE, (WITH, WITHOUT), change)
        fast, slow = (sum(row.throughput_mbps for row in found[one]) for one in (WITH, WITHOUT))
        out.append(Trick(blocks, pause, ratio(fast, slow)))
    return out


RANDOM = (4, 8, 16)


def random_readers(bench: Bench) -> Mapping[int, tuple[int, int]]:
    """Return waits and requests by number of random readers."""
    out = {}
    for n in RANDOM:
        found = bench.run(DRIVE, bench.jobs("iyer-random", DRIVE, {"numjobs=16": f"numjobs={n}"}), WITH)
        out[n] = (found.anticipation.waits if found.anticipation else 0, found.requests)
    return out


ANDREW_CLIENTS = (1, 2, 4)
Times = Mapping[int, tuple[float, float]]
"""By number of clients: seconds with anticipation, and without."""


@dataclass(frozen=True)
class AndrewTimes:
    """The whole benchmark, and its phases without those that compile; the latter in the simulator only."""

    whole: Times
    reading: Times


def andrew(bench: Bench) -> AndrewTimes:
    """The benchmark by so many clients, and what of it reads and searches."""
    return AndrewTimes(_andrews(bench, {}), _andrews(bench, {"compiles": 0}))


def _andrews(bench: Bench, changed: Mapping[str, float]) -> Times:
    out = {}
    for n in ANDREW_CLIENTS:
        sizes = {"processes": n, "runs": bench.count(16 / n), **changed}
        load = bench.generated("andrew", DRIVE, Process, 0, **sizes)
        fast, slow = (bench.run(DRIVE, load, name, max_sectors=MAX_SECTORS).elapsed_s for name in (WITH, WITHOUT))
        out[n] = (fast, slow)
    return out


COMPILE_US = 5000
"""In the lab: a tenth of the simulator's, because there each of the few files is compiled in a guest that is emulated."""


def lab_andrew(bench: Bench) -> AndrewTimes:
    """Measure the whole benchmark by real programs."""
    out = {}
    for n in ANDREW_CLIENTS:
        sizes = {"processes": n, "runs": bench.count(8 / n)}
        found = run_workload(bench, "andrew", DRIVE, (WITH, WITHOUT), parameters={"COMPILE_US": COMPILE_US}, sizes=sizes)
        (fast,), (slow,) = (found[one] for one in (WITH, WITHOUT))
        out[n] = (fast.elapsed_s, slow.elapsed_s)
    return AndrewTimes(out, {})


def _saved(times: tuple[float, float]) -> float:
    return 1 - ratio(*times)


def _andrew_tables(found: AndrewTimes) -> list[PaperTable]:
    columns = ["clients", "with: s", "without: s", "share of time saved"]
    return [
        PaperTable(f"Andrew's benchmark, {what}", columns, [[n, *times, _saved(times)] for n, times in of.items()])
        for what, of in (("whole", found.whole), ("without its compilations", found.reading))
        if of
    ]


def _readers_table(found: Mapping[str, Gain]) -> list[PaperTable]:
    paper = {"synchronous": (21.0, 5.0, 4.2), "8 outstanding": (None, None, None)}
    rows: list[Row] = [[name, *paper[name], one.with_mbps, one.without_mbps, one.ratio] for name, one in found.items()]
    figures = ("with: MB/s", "without: MB/s", "with / without")
    return [
        PaperTable("Two readers", ["requests", *(f"paper: {one}" for one in figures), *(f"ours: {one}" for one in figures)], rows)
    ]


def _gains_table(found: Mapping[str, Gain]) -> PaperTable:
    rows: list[Row] = [[name, one.with_mbps, one.without_mbps, one.ratio] for name, one in found.items()]
    return PaperTable("Two readers", ["requests", "with: MB/s", "without: MB/s", "with / without"], rows)


def _shares_table(found: Mapping[str, Sequence[float]]) -> list[PaperTable]:
    paper = {"without": "1:1", "with": "1:2"}
    rows: list[Row] = [[what, paper[what], *rates, ratio(rates[1], rates[0])] for what, rates in found.items()]
    columns = ["anticipation", "paper", "ours: one ticket, MB/s", "two tickets, MB/s", "ratio"]
    return [PaperTable("Two readers with one ticket and two", columns, rows)]


def _adversary_table(found: Sequence[Trick]) -> list[PaperTable]:
    kept = {(trick.blocks, trick.pause_ms): trick.kept for trick in found}
    bursts, pauses = (sorted({key[i] for key in kept}) for i in (0, 1))
    rows: list[Row] = [[blocks, *(kept[blocks, pause] for pause in pauses)] for blocks in bursts]
    columns = ["reads at once", *(f"pause {pause} ms" for pause in pauses)]
    return [PaperTable("I/Os of the adversary and four others, with anticipation / without", columns, rows)]


def _random_table(found: Mapping[int, tuple[int, int]]) -> list[PaperTable]:
    rows: list[Row] = [[n, waits, requests, ratio(waits, requests)] for n, (waits, requests) in found.items()]
    return [PaperTable("Waits for random readers", ["readers", "A", "requests", "A / requests"], rows)]


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "iyer-readers",
        DOCUMENT,
        "two concurrent readers, with one request outstanding and with eight",
        DRIVE,
        {"sim": readers, "lab": lab_readers},
        _readers_table,
        [
            Claim(
                "ID1",
                "synchronous readers: throughput with anticipation / without",
                "4.2",
                lambda m: [Check(m["synchronous"].ratio, least(3))],
                essential=True,
            ),
            Claim(
                "ID9",
                "8 outstanding: the gain from anticipation",
                "~0",
                lambda m: [Check(m["8 outstanding"].ratio - 1, most(0.1))],
            ),
        ],
        {"sim": 1, "lab": 30},
        notes={
            "sim": "requests of 64 KiB at most, as in FreeBSD, which joined none in its queue",
            "lab": "fio on the disk itself; a tenth as much is read",
        },
    ),
    Experiment(
        "iyer-faster",
        DOCUMENT,
        "the two readers on a disk of 15,000 rpm",
        FASTER,
        {"sim": faster, "lab": lab_faster},
        lambda m: [_gains_table(m)],
        [
            Claim(
                "ID11",
                "the Cheetah: throughput of synchronous readers with anticipation / without",
                "yes",
                # Half the seek and half the turn to lose, and a faster disk to lose it on.
                lambda m: [Check(m["synchronous"].ratio, least(2))],
            )
        ],
        {"sim": 1, "lab": 30},
        printed=False,
        notes={"sim": "requests of 64 KiB at most", "lab": "fio on the disk itself; a tenth as much is read"},
    ),
    Experiment(
        "iyer-shares",
        DOCUMENT,
        "proportional share, one ticket and two",
        DRIVE,
        {"sim": shares, "lab": lab_shares},
        _shares_table,
        [
            Claim(
                "ID2",
                "without anticipation the second gets",
                "1 time as much",
                lambda m: [Check(ratio(m["without"][1], m["without"][0]), Band(0.85, 1.2))],
                essential=True,
            ),
            Claim(
                "ID3",
                "with anticipation the second gets",
                "2 times as much",
                lambda m: [Check(ratio(m["with"][1], m["with"][0]), Band(1.9, 2.1))],
                essential=True,
            ),
        ],
        {"sim": 1, "lab": 30},
        shortest=1,
        notes={"lab": "fio on the disk itself; tickets by I/O priority, best effort 7 and 6"},
    ),
    Experiment(
        "iyer-andrew",
        DOCUMENT,
        "Andrew's benchmark by one, two and four clients",
        DRIVE,
        {"sim": andrew, "lab": lab_andrew},
        _andrew_tables,
        [
            Claim(
                "ID4",
                "two clients: share of the time that anticipation saves",
                "8%",
                lambda m: [Check(_saved(m.whole[2]), least(0.001))],
            ),
            Claim(
                "ID12",
                "two clients, without the compilations: share of the time that anticipation saves",
                "54%",
                lambda m: [Check(_saved(m.reading[2]), least(0.27))],
                levels=("sim",),
            ),
        ],
        {"sim": 4, "lab": 90},
        printed=False,
        notes={
            "sim": "generated programs (docs/was-workloads.md); the paper's figure is of another processor, and 54% of its phase"
            " that reads: half of that is asked",
            "lab": "cp, find, grep and a compiler that reads and waits, on ext4",
        },
    ),
    Experiment(
        "iyer-adversary",
        DOCUMENT,
        "the intelligent adversary, over think times and bursts",
        DRIVE,
        {"sim": adversary, "lab": lab_adversary},
        _adversary_table,
        [
            Claim(
                "ID8",
                "share of all I/Os lost at its best think time",
                "small",
                lambda m: [Check(1 - min(trick.kept for trick in m), most(0.15))],
            )
        ],
        {"sim": 3, "lab": 200},
        printed=False,
        notes={"lab": "fio on the disk itself, for a shorter time; nine of the tricks"},
    ),
    Experiment(
        "iyer-random",
        DOCUMENT,
        "random readers, for whom it should not wait",
        DRIVE,
        {"sim": random_readers},
        _random_table,
        [Claim("ID10", "16 random readers: waits / requests", "yes", lambda m: [Check(ratio(*m[16]), most(0.02))])],
        {"sim": 1},
        shortest=1,
        printed=False,
        notes={
            "sim": "with few readers it waits now and then, with success: where all that is queued lies farther than the next"
            " request of the same reader is expected to"
        },
    ),
)
