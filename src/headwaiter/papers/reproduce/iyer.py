# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Iyer & Druschel, "Anticipatory scheduling", SOSP 2001: deceptive idleness, as-seek, as-share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headwaiter.papers.reproduce.bench import Bench, ratio
from headwaiter.papers.reproduce.claims import Band, Check, Claim, PaperTable, Row, least, most
from headwaiter.papers.reproduce.experiment import Experiment
from headwaiter.papers.reproduce.guests import run_jobs

DOCUMENT = "Iyer & Druschel, Anticipatory scheduling, SOSP 2001"
DRIVE = "deskstar-75gxp"  # theirs: "7200 rpm IDE (IBM Deskstar)"
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


def _gain(bench: Bench, name: str) -> Gain:
    load = bench.jobs(name, DRIVE)
    rates = [bench.run(DRIVE, load, one, max_sectors=MAX_SECTORS).throughput_mbps for one in (WITH, WITHOUT)]
    return Gain(*rates)


def readers(bench: Bench) -> Mapping[str, Gain]:
    """Two readers, each with one request outstanding, and with eight."""
    return {"synchronous": _gain(bench, "iyer-readers"), "8 outstanding": _gain(bench, "iyer-async")}


def _lab_gain(bench: Bench, name: str) -> Gain:
    found = run_jobs(bench, name, DRIVE, (WITH, WITHOUT), {})
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


RANDOM = (4, 8, 16)


def random_readers(bench: Bench) -> Mapping[int, tuple[int, int]]:
    """Return waits and requests by number of random readers."""
    out = {}
    for n in RANDOM:
        found = bench.run(DRIVE, bench.jobs("iyer-random", DRIVE, {"numjobs=16": f"numjobs={n}"}), WITH)
        out[n] = (found.anticipation.waits if found.anticipation else 0, found.requests)
    return out


ANDREW_CLIENTS = (1, 2, 4)


def andrew(bench: Bench) -> Mapping[int, tuple[float, float]]:
    """Return the seconds of the whole benchmark by number of clients, with anticipation and without."""
    out = {}
    for n in ANDREW_CLIENTS:
        load = bench.generated("andrew", DRIVE, processes=n, runs=bench.count(16 / n))
        fast, slow = (bench.run(DRIVE, load, name, max_sectors=MAX_SECTORS).elapsed_s for name in (WITH, WITHOUT))
        out[n] = (fast, slow)
    return out


def _andrew_table(found: Mapping[int, tuple[float, float]]) -> list[PaperTable]:
    rows: list[Row] = [[n, *times, 1 - ratio(*times)] for n, times in found.items()]
    return [PaperTable("Andrew's benchmark, whole", ["clients", "with: s", "without: s", "share of time saved"], rows)]


def _readers_table(found: Mapping[str, Gain]) -> list[PaperTable]:
    paper = {"synchronous": (21.0, 5.0, 4.2), "8 outstanding": (None, None, None)}
    rows: list[Row] = [[name, *paper[name], one.with_mbps, one.without_mbps, one.ratio] for name, one in found.items()]
    figures = ("with: MB/s", "without: MB/s", "with / without")
    return [
        PaperTable("Two readers", ["requests", *(f"paper: {one}" for one in figures), *(f"ours: {one}" for one in figures)], rows)
    ]


def _shares_table(found: Mapping[str, Sequence[float]]) -> list[PaperTable]:
    paper = {"without": "1:1", "with": "1:2"}
    rows: list[Row] = [[what, paper[what], *rates, ratio(rates[1], rates[0])] for what, rates in found.items()]
    columns = ["anticipation", "paper", "ours: one ticket, MB/s", "two tickets, MB/s", "ratio"]
    return [PaperTable("Two readers with one ticket and two", columns, rows)]


def _adversary_table(found: Sequence[Trick]) -> list[PaperTable]:
    kept = {(trick.blocks, trick.pause_ms): trick.kept for trick in found}
    rows: list[Row] = [[blocks, *(kept[blocks, pause] for pause in PAUSES_MS)] for blocks in BURSTS]
    columns = ["reads at once", *(f"pause {pause} ms" for pause in PAUSES_MS)]
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
        "iyer-shares",
        DOCUMENT,
        "proportional share, one ticket and two",
        DRIVE,
        {"sim": shares},
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
        {"sim": 1},
        shortest=1,
    ),
    Experiment(
        "iyer-andrew",
        DOCUMENT,
        "Andrew's benchmark by one, two and four clients",
        DRIVE,
        {"sim": andrew},
        _andrew_table,
        [
            Claim(
                "ID4",
                "two clients: share of the time that anticipation saves",
                "8%",
                lambda m: [Check(1 - ratio(*m[2]), least(0.001))],
            )
        ],
        {"sim": 2},
        printed=False,
        notes={"sim": "generated programs (docs/was-workloads.md); the paper's figure is of another processor"},
    ),
    Experiment(
        "iyer-adversary",
        DOCUMENT,
        "the intelligent adversary, over think times and bursts",
        DRIVE,
        {"sim": adversary},
        _adversary_table,
        [
            Claim(
                "ID8",
                "share of all I/Os lost at its best think time",
                "small",
                lambda m: [Check(1 - min(trick.kept for trick in m), most(0.15))],
            )
        ],
        {"sim": 3},
        printed=False,
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
