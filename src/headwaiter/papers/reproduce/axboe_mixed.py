# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Axboe's readers beside writers (linux-kernel, December 2004): direct, through the page cache, in a crowd; and fsck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwaiter.fio import JobLoad
from headwaiter.papers.reproduce.axboe import (
    DOCUMENT,
    LAB_NOTE,
    MAX_SECTORS,
    ON,
    SCHEDULERS,
    WRITES_NOTE,
    drive,
    of_that_day,
    run_in_lab,
    together,
)
from headwaiter.papers.reproduce.bench import Bench, Clients, clients, ratio
from headwaiter.papers.reproduce.claims import Band, Check, Claim, Investigation, PaperTable, Row, least, most
from headwaiter.papers.reproduce.experiment import Experiment
from headwaiter.papers.reproduce.guests import ProgramsRan, run_programs


@dataclass(frozen=True)
class Pair:
    """MB/s and the longest I/O (ms) of the reader, and of the writer."""

    read_mbps: float
    read_lat_ms: float
    write_mbps: float
    write_lat_ms: float

    @property
    def total(self) -> float:
        """MB/s of both."""
        return self.read_mbps + self.write_mbps


Pairs = Mapping[str, Pair]


def _pair(reads: Clients, writes: Clients) -> Pair:
    return Pair(reads.agg_mbps, reads.max_lat_ms, writes.agg_mbps, writes.max_lat_ms)


def _simulated(bench: Bench, load: JobLoad, scheduler: str, **options: int) -> Pair:
    rows = bench.run(drive(), load, scheduler, {}, **options).tasks or ()
    return _pair(*(clients(row for row in rows if row.op == op) for op in ("read", "write")))


def _in_lab(bench: Bench, change: Mapping[str, str], schedulers: Sequence[str] = SCHEDULERS) -> Pairs:
    found = run_in_lab(bench, "axboe-reader-writer", change, schedulers)
    return {name: _pair(*(together(rows, op=op) for op in ("read", "write"))) for name, rows in found.items()}


PRINTED_PAIRS = {"deadline": (2520, 45, 1258, 85), "as": (27985, 34, 64, 1042), "cfq-slice-2004": (12703, 108, 9743, 89)}


def pairs(bench: Bench, direct: bool = True, marked: bool = False) -> Pairs:
    """A reader beside a writer of 64 KiB blocks under each scheduler."""
    load = bench.jobs("axboe-reader-writer", drive(), {"rw=write": "rw=write\ndirect=1"} if direct else {})
    return {name: _simulated(bench, load, of_that_day(name, marked)) for name in SCHEDULERS}


def lab_pairs(bench: Bench) -> Pairs:
    """Measure it in a real kernel."""
    return _in_lab(bench, {"rw=write": "rw=write\ndirect=1\noffset=8g"})


def _pairs_table(found: Pairs) -> list[PaperTable]:
    figures = ("reader MB/s", "its longest ms", "writer MB/s", "its longest ms")
    rows: list[Row] = []
    for name, one in found.items():
        read, read_lat, write, write_lat = PRINTED_PAIRS[name]
        ours = [one.read_mbps, one.read_lat_ms, one.write_mbps, one.write_lat_ms]
        rows.append([name, round(read * 1.024e-3, 3), read_lat, round(write * 1.024e-3, 3), write_lat, *ours])
    return [
        PaperTable(
            "A reader beside a writer", ["scheduler", *(f"paper: {f}" for f in figures), *(f"ours: {f}" for f in figures)], rows
        )
    ]


def _collapse(bench: Bench, _: Pairs) -> Investigation:
    """Return what brings the writer down under as."""
    plain, marked = pairs(bench)["as"], pairs(bench, marked=True)["as"]
    rows: list[Row] = [
        ["asynchronous, as in the tables", plain.read_mbps, plain.write_mbps, plain.write_lat_ms],
        ["synchronous, as since 7 December 2004", marked.read_mbps, marked.write_mbps, marked.write_lat_ms],
    ]
    return Investigation(
        "Where the kernel takes the direct write for asynchronous, `as` serves one in each batch of reads of half a second: the"
        " writer has never a second one queued. Marked as synchronous it gets a share like the reader's.",
        PaperTable(
            "The writer under as, in the simulator", ["direct writes", "reader MB/s", "writer MB/s", "its longest ms"], rows
        ),
    )


CROWDED = ("as", *(f"as:write_expire={ms}" for ms in (50, 5000)))
CROWD_KIB = {"as": (27 * 1024, 100)}
"""Throughput of two readers and two writers, as the text has it."""


def crowd(bench: Bench) -> Pairs:
    """Two readers beside two writers of 64 KiB blocks under as, and with other deadlines for writes."""
    return {name: _crowd(bench, name) for name in CROWDED}


def lab_crowd(bench: Bench) -> Pairs:
    """Measure the four in a real kernel."""
    return _in_lab(bench, _many(2, 2, "\noffset=8g"), CROWDED)


def _many(readers: int, writers: int, apart: str = "") -> Mapping[str, str]:
    """The change of the job file that makes it so many."""
    return {"rw=read\n": f"rw=read\nnumjobs={readers}\n", "rw=write\n": f"rw=write\ndirect=1{apart}\nnumjobs={writers}\n"}


def _crowd(bench: Bench, name: str, readers: int = 2, writers: int = 2) -> Pair:
    load = bench.jobs("axboe-reader-writer", drive(), _many(readers, writers))
    return _simulated(bench, load, of_that_day(name))


def _let_in(bench: Bench, _: Pairs) -> Investigation:
    """Return when writers get something, by the number of readers."""
    rows: list[Row] = []
    for readers, writers in ((1, 1), (1, 2), (2, 1), (2, 2)):
        one = _crowd(bench, "as", readers, writers)
        rows.append([readers, writers, one.read_mbps, one.write_mbps, ratio(one.write_mbps, one.total)])
    return Investigation(
        "Direct writes are asynchronous, and a batch of them begins after half a second of reads. With one writer it has one"
        " write; with two there is always another, and the batch goes on for its time.",
        PaperTable("Under as, in the simulator", ["readers", "writers", "read MB/s", "written MB/s", "writers' share"], rows),
    )


def _crowd_table(found: Pairs) -> list[PaperTable]:
    rows: list[Row] = [
        [name, *(kib and round(kib * 1.024e-3, 3) for kib in CROWD_KIB.get(name, (None, None))), one.read_mbps, one.write_mbps]
        for name, one in found.items()
    ]
    columns = ["scheduler", "paper: read MB/s", "paper: written MB/s", "ours: read MB/s", "ours: written MB/s"]
    return [PaperTable("Two readers beside two writers", columns, rows)]


OLD_AND_NEW = ("cfq", "cfq-slice-2004")
CACHED = {"rw=read\ndirect=1": "rw=read"}


def streams(bench: Bench) -> Pairs:
    """Streaming read beside streaming write, both through the page cache, under old and time-sliced CFQ."""
    load = bench.jobs("axboe-reader-writer", drive(), CACHED)
    return {name: _simulated(bench, load, name, max_sectors=MAX_SECTORS) for name in OLD_AND_NEW}


def lab_streams(bench: Bench) -> Pairs:
    """Measure the streams in a real kernel, whose page cache has the disk's pages."""
    return _in_lab(bench, {**CACHED, "rw=write": "rw=write\noffset=8g"}, OLD_AND_NEW)


def _write_back(_: Bench, m: Pairs) -> Investigation:
    """Return what the reader gains, and what the writer loses."""
    rows: list[Row] = [[name, one.read_mbps, one.write_mbps, ratio(one.read_mbps, one.total)] for name, one in m.items()]
    return Investigation(
        "The reader gains more than the writer loses. Write-back has slices of its own, whose length (slice_async) the first"
        " posting does not print; here it is that of 2.6.32.",
        PaperTable("The streams", ["scheduler", "read MB/s", "written MB/s", "the reader's share"], rows),
    )


def _streams_table(found: Pairs) -> list[PaperTable]:
    # vmstat's bi and bo, which are KiB/s: mean of the rows.
    printed = {"cfq": (15680, 7770), "cfq-slice-2004": (54976, 4978)}
    rows: list[Row] = [
        [name, *(round(kib * 1.024e-3, 3) for kib in printed[name]), one.read_mbps, one.write_mbps] for name, one in found.items()
    ]
    columns = ["scheduler", "paper: read MB/s", "paper: written MB/s", "ours: read MB/s", "ours: written MB/s"]
    return [PaperTable("A streaming reader beside a streaming writer", columns, rows)]


FSCK_FILES, FSCK_FILE_MIB = 18, 8


def fsck(bench: Bench) -> Mapping[str, ProgramsRan]:
    """A check of a file system, with nothing beside it."""
    parameters = {"FILES": bench.count(FSCK_FILES), "FILE_MIB": FSCK_FILE_MIB}
    return run_programs(bench, "axboe-fsck", drive(), SCHEDULERS, parameters)


def _fsck_table(found: Mapping[str, ProgramsRan]) -> list[PaperTable]:
    printed = {"as": 30.594, "deadline": 30.475, "cfq-slice-2004": 27.921}
    rows: list[Row] = [[name, printed[name], one.elapsed_s, one.throughput_mbps] for name, one in found.items()]
    return [PaperTable("fsck of an ext2 file system", ["scheduler", "paper: s", "ours: s", "ours: MB/s"], rows)]


def _one_at_a_time(_: Bench, found: Mapping[str, ProgramsRan]) -> Investigation:
    """The check: how much a scheduler has to choose from."""
    rows: list[Row] = [
        [name, one.elapsed_s, round(one.figures["requests"]), one.figures["at_a_time"]] for name, one in found.items()
    ]
    return Investigation(
        "One process checks, with nothing beside it: all requests are its own, and there is little to choose from. The twelfth"
        " that the published check gained is not in the order of requests.",
        PaperTable("fsck: what the schedulers see", ["scheduler", "s", "requests", "requests at a time, mean"], rows),
    )


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "axboe-reader-writer",
        DOCUMENT,
        "a reader beside a writer, 64 KiB, O_DIRECT",
        ON,
        {"sim": pairs, "lab": lab_pairs},
        _pairs_table,
        [
            Claim(
                "AX12",
                "bandwidth of both, cfq-slice-2004 / deadline",
                "5.9",
                lambda m: [Check(ratio(m["cfq-slice-2004"].total, m["deadline"].total), least(2))],
                essential=True,
            ),
            Claim(
                "AX13",
                "cfq-slice-2004: the writer's share",
                "0.43",
                lambda m: [Check(ratio(m["cfq-slice-2004"].write_mbps, m["cfq-slice-2004"].total), Band(0.25, 0.6))],
            ),
            Claim(
                "AX14",
                "the reader, as / cfq-slice-2004 (the writer gets 0.007 times as much)",
                "2.2",
                lambda m: [Check(ratio(m["as"].read_mbps, m["cfq-slice-2004"].read_mbps), least(1.2))],
                why=_collapse,
                always=True,
            ),
        ],
        {"sim": 1, "lab": 30},
        notes={
            "sim": WRITES_NOTE,
            "lab": f"{LAB_NOTE}; {WRITES_NOTE}",
        },
    ),
    Experiment(
        "axboe-crowd",
        DOCUMENT,
        "two readers beside two writers, 64 KiB, O_DIRECT, under as",
        ON,
        {"sim": crowd, "lab": lab_crowd},
        _crowd_table,
        [
            Claim(
                "AX18",
                "as: the writers' share of the bandwidth",
                "0.004",
                # A twentieth is starvation yet, next to the third that was expected of `as`.
                lambda m: [Check(ratio(m["as"].write_mbps, m["as"].total), most(0.05))],
                why=_let_in,
            ),
            Claim(
                "AX19",
                "as: the writers' rate with write_expire of 50 ms, and of 5 s / with 250 ms",
                "1",
                lambda m: [
                    Check(ratio(m[name].write_mbps, m["as"].write_mbps), Band(0.8, 1.25), name.partition(":")[2])
                    for name in CROWDED[1:]
                ],
            ),
        ],
        {"sim": 1, "lab": 60},
        notes={"sim": WRITES_NOTE, "lab": f"{LAB_NOTE}; {WRITES_NOTE}"},
    ),
    Experiment(
        "axboe-streams",
        DOCUMENT,
        "a streaming reader beside a streaming writer through the page cache, under old and time-sliced CFQ",
        ON,
        {"sim": streams, "lab": lab_streams},
        _streams_table,
        [
            Claim(
                "AX16",
                "read rate, cfq-slice-2004 / cfq",
                "3.6",
                lambda m: [Check(ratio(m["cfq-slice-2004"].read_mbps, m["cfq"].read_mbps), least(2))],
                why=_write_back,
            )
        ],
        {"sim": 1, "lab": 60},
        notes={"sim": "the simulator's page cache; requests of 128 KiB at most", "lab": f"{LAB_NOTE}, through its page cache"},
    ),
    Experiment(
        "axboe-fsck",
        DOCUMENT,
        "fsck of an ext2 file system with few large files",
        ON,
        {"lab": fsck},
        _fsck_table,
        [
            Claim(
                "AX15",
                "time, cfq-slice-2004 / deadline",
                "0.92",
                lambda m: [Check(ratio(m["cfq-slice-2004"].elapsed_s, m["deadline"].elapsed_s), most(1.0))],
                why=_one_at_a_time,
                always=True,
            )
        ],
        {"lab": 60},
        notes={"lab": f"8 GiB with a million inodes of 128 bytes and {2 * FSCK_FILES} files"},
    ),
)
