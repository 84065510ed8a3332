# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Seelam et al., Table 4: web, mail, file and metadata servers after the profile of FFSB, by real threads on ext4 in the lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwaiter.papers.reproduce.bench import Bench, ratio
from headwaiter.papers.reproduce.claims import Check, Claim, Investigation, PaperTable, Row, least, most
from headwaiter.papers.reproduce.experiment import Experiment
from headwaiter.papers.reproduce.guests import ProgramsRan, run_programs
from headwaiter.papers.reproduce.seelam import DOCUMENT, DRIVE

SCHEDULERS = ("deadline", "as", "cas", "cfq", "noop")
PAPER_S = {
    "web": (924, 863, 855, 931, 910),
    "mail": (118, 177, 109, 112, 125),
    "file": (1127, 916, 890, 1099, 1127),
    "metadata": (305, 295, 288, 253, 319),
}
WEIGHTS = {
    "web": "read=100",
    "mail": "read=40 create=40 delete=20",
    "file": "read=80 write=20",
    "metadata": "create=40 append=40 delete=20",
}
"""In percent of the operations."""
SHARE = 10
"""Ours are a tenth of theirs: files, operations of each thread, and memory."""
FILES, OPERATIONS, MEMORY_MIB = 100_000 // SHARE, 20_000 // SHARE, 1000 // SHARE
RUNS = {"web": 3, "mail": 3, "file": 3, "metadata": 6}
"""They print the mean of 3. Ours of the metadata server are as far apart as its schedulers are, and take a tenth as long."""
CACHED_FILES = 2500
"""They fit into memory."""
Times = Mapping[str, float]
"""By scheduler: seconds."""
SPREADS = {"web": 0.04, "mail": 0.11, "file": 0.045, "metadata": 0.077}
"""Their runs' standard deviations are below that part of the mean, whatever the scheduler."""


@dataclass(frozen=True)
class Served:
    """By server: seconds by scheduler, and the standard deviation of their runs by the mean."""

    times: Mapping[str, Times]
    spreads: Mapping[str, Times]


def _ran(bench: Bench, server: str, files: int, *, cached: bool) -> Mapping[str, ProgramsRan]:
    given: dict[str, int | str] = {
        "FILES": files,
        "MEMORY_MIB": MEMORY_MIB,
        "OPERATIONS": bench.count(OPERATIONS),
        "WEIGHTS": WEIGHTS[server],
        "CACHED": int(cached),
    }
    return run_programs(bench, "seelam-servers", DRIVE, SCHEDULERS, given, runs=RUNS[server])


def servers(bench: Bench) -> Served:
    """Each of the four under each scheduler."""
    ran = {server: _ran(bench, server, FILES, cached=False) for server in WEIGHTS}
    return Served(
        {server: {name: one.elapsed_s for name, one in of.items()} for server, of in ran.items()},
        {server: {name: one.spread for name, one in of.items()} for server, of in ran.items()},
    )


def _table(m: Served) -> list[PaperTable]:
    rows: list[Row] = []
    for server, times in m.times.items():
        rows.append([server, "paper", *PAPER_S[server]])
        rows.append(["", "ours", *times.values()])
    spreads: list[Row] = [[server, SPREADS[server], *of.values()] for server, of in m.spreads.items()]
    return [
        PaperTable("Seconds", ["server", "", *SCHEDULERS], rows),
        PaperTable("Standard deviation / mean of the runs", ["server", "paper: below", *SCHEDULERS], spreads),
    ]


def _beside_best(times: Mapping[str, float], name: str) -> float:
    return ratio(times[name], min(times.values()))


def _beside_worst(times: Mapping[str, float], name: str) -> float:
    return ratio(times[name], max(times.values()))


def _others(times: Mapping[str, float]) -> float:
    """The least of those that do not anticipate."""
    return min(taken for name, taken in times.items() if name not in ("as", "cas"))


def _in_memory(bench: Bench, _: Served) -> Investigation:
    return Investigation(
        "Theirs hardly read from the disk: 109 to 177 s for 32,000 files are 3.4 to 5.5 ms a file; their web server takes 11 ms."
        " With files that have been read before, the disk has writes alone, for which no scheduler waits, and `as` takes as long"
        " as the others. Theirs took longest under `as`, and its runs differed by 11%, the others' by 3.5%: something in Linux"
        " 2.6.9 held it up that none of these schedulers has.",
        PaperTable(
            "The mail server with its files in memory",
            ["scheduler", "s"],
            [[name, one.elapsed_s] for name, one in _ran(bench, "mail", CACHED_FILES, cached=True).items()],
        ),
    )


def _alike(_: Bench, m: Served) -> Investigation:
    """The metadata server: how far runs of one scheduler are apart, and how far schedulers are."""
    rows: list[Row] = [[name, seconds, m.spreads["metadata"][name]] for name, seconds in m.times["metadata"].items()]
    return Investigation(
        f"{RUNS['metadata']} runs of a tenth of their operations do not decide it: runs of one scheduler are as far apart as"
        " schedulers.",
        PaperTable("The metadata server", ["scheduler", "s", "standard deviation / mean"], rows),
    )


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "seelam-servers",
        DOCUMENT,
        "Table 4: web, mail, file and metadata servers",
        DRIVE,
        {"lab": servers},
        _table,
        [
            Claim(
                "SE11",
                "web server: time, cas / the best, cfq / the worst",
                "1, 1",
                lambda m: [
                    Check(_beside_best(m.times["web"], "cas"), most(1.02), "cas / best"),
                    Check(_beside_worst(m.times["web"], "cfq"), least(0.97), "cfq / worst"),
                ],
            ),
            Claim(
                "SE12",
                "file server: time, cas / as, the best other / as, the best other / cas",
                "0.97, 1.20, 1.23",
                lambda m: [
                    Check(ratio(m.times["file"]["cas"], m.times["file"]["as"]), most(1), "cas / as"),
                    Check(ratio(_others(m.times["file"]), m.times["file"]["as"]), least(1), "other / as"),
                    Check(ratio(_others(m.times["file"]), m.times["file"]["cas"]), least(1.1), "other / cas"),
                ],
            ),
            Claim(
                "SE13",
                "mail server: time, as / the worst, cas / as",
                "1, 0.62",
                lambda m: [
                    Check(_beside_worst(m.times["mail"], "as"), least(1), "as / worst"),
                    Check(ratio(m.times["mail"]["cas"], m.times["mail"]["as"]), most(0.9), "cas / as"),
                ],
                why=_in_memory,
            ),
            Claim(
                "SE14",
                "metadata server: time, cfq / the best",
                "1",
                lambda m: [Check(_beside_best(m.times["metadata"], "cfq"), most(1.03))],
                why=_alike,
            ),
            Claim(
                "SE16",
                "the greatest standard deviation of the runs / mean",
                "below 0.04, 0.11, 0.045, 0.077",
                lambda m: [Check(max(of.values()), most(SPREADS[server]), server) for server, of in m.spreads.items()],
            ),
        ],
        {"lab": 1400},
        notes={
            "lab": f"threads on ext3; a tenth of theirs: {FILES} files, {OPERATIONS} operations a thread, {MEMORY_MIB} MiB of"
            " memory; whole files, and appends of 4 KiB; until all is on the disk"
        },
        whole=("lab",),
    ),
)
