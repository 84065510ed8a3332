# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""WAS on a slower machine (Tsakalozos et al., JSS 2009, §4.4, tables 14 and 15): an older drive, and a slower processor.

Programs think for as many times longer as the processor is slower. What they sleep, and the user's pauses, stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwaiter.generated.model_machine import Process
from headwaiter.papers.reproduce.bench import Bench, ratio
from headwaiter.papers.reproduce.claims import Check, Claim, Investigation, PaperTable, Row, least, most
from headwaiter.papers.reproduce.experiment import Chart, Experiment
from headwaiter.papers.reproduce.tsakalozos import (
    BETTER,
    DOCUMENT,
    DRIVE,
    SUMS,
    WHOLE,
    Computer,
    load,
    observe,
    waits,
    waits_charts,
    waits_table,
)
from headwaiter.papers.reproduce.wait_figures import FORMS, MADE_FROM, WaitFigures
from headwaiter.papers.was.classify import differences

SLOWER = 3.0 / 1.3
"""Pentium 4 of 3 GHz against Pentium M of 1.3 GHz, by their clocks."""
# T_F/A_S in ms: static 6 ms, WAS (Cold Boot), WAS (Andrew's-like), of tables 14 and 15.
PRINTED = {
    "kva": (0.658, 0.241, 0.250),
    "andrew": (2.607, 2.272, 2.179),
    "kernel-compile": (14.237, 9.149, 2.813),
    "bonnie": (0.137, 0.102, 0.103),
}


class Slow(Process):
    """One on the slow machine."""

    def think(self, ns: float) -> None:
        super().think(ns * SLOWER)


SLOW = Computer(Slow, "deskstar-75gxp")  # theirs: 30 GB Ultra-ATA-100


@dataclass(frozen=True)
class Prospect:
    """Differences between successive reads of a process, on the fast machine and on the slow one."""

    distance: float
    """Largest distance of the two cumulative distributions in space."""
    fast_us: float
    slow_us: float
    """Median in time."""
    deciles: Mapping[str, Sequence[float]]
    """The sectors, and ms, of both machines below which one tenth of the differences is, two tenths, …"""


def prospects(bench: Bench) -> Mapping[str, Prospect]:
    """Run the programs that the prospect functions are made from, also with a slower processor and an older drive."""
    out = {}
    for name in MADE_FROM:
        fast = observe(bench, name, load(bench, name))
        slow = observe(bench, name, load(bench, name, SLOW.process, SLOW.drive), SLOW.drive)
        (space, time, known), (slow_space, slow_time, slow_known) = differences(fast.reads), differences(slow.reads)
        out[name] = Prospect(
            _apart(space[known], slow_space[slow_known]),
            float(np.median(time[known])),
            float(np.median(slow_time[slow_known])),
            {
                "fast: sectors": _deciles(space[known]),
                "slow: sectors": _deciles(slow_space[slow_known]),
                "fast: ms": _deciles(time[known] / 1e3),
                "slow: ms": _deciles(slow_time[slow_known] / 1e3),
            },
        )
    return out


TENTHS = tuple(range(1, 10))


def _deciles(values: np.ndarray[Any, Any]) -> list[float]:
    return [float(value) for value in np.quantile(values, [tenth / 10 for tenth in TENTHS])]


def _prospect_charts(m: Mapping[str, Prospect]) -> list[Chart]:
    return [
        Chart(
            f"{name}: differences between successive reads of a process, in {unit}",
            "tenths of them that are no larger",
            unit,
            TENTHS,
            {machine: one.deciles[f"{machine}: {unit}"] for machine in ("fast", "slow")},
        )
        for name, one in m.items()
        for unit in ("sectors", "ms")
    ]


def _apart(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """Kolmogorov and Smirnov's distance."""
    values = np.union1d(a, b)
    below = [np.searchsorted(np.sort(one), values, side="right") / len(one) for one in (a, b)]
    return float(np.abs(below[0] - below[1]).max())


def _prospect_table(m: Mapping[str, Prospect]) -> list[PaperTable]:
    rows: list[Row] = [
        [name, one.distance, one.fast_us / 1e3, one.slow_us / 1e3, ratio(one.slow_us, one.fast_us)] for name, one in m.items()
    ]
    columns = ["workload", "largest distance in space", "fast: median ms", "slow: median ms", "slow / fast"]
    return [PaperTable("Differences between successive reads of a process", columns, rows)]


@dataclass(frozen=True)
class Slower:
    """The prospect functions on both machines, and the outcome of waits on the slow one."""

    prospects: Mapping[str, Prospect]
    waits: WaitFigures


def slower(bench: Bench) -> Slower:
    """Intervals are made on the slow machine, as those of the fast one were made there."""
    return Slower(prospects(bench), waits(bench, tuple(PRINTED), FORMS[1:], SLOW))


def _table(m: Slower) -> list[PaperTable]:
    return [*waits_table(m.waits, PRINTED, FORMS[1:]), *_prospect_table(m.prospects)]


def _gain(id_: str, name: str, most_: float, why: Any = None) -> Claim[Slower]:
    static, *was = PRINTED[name]
    paper = f"{min(was) / static:.2f}"
    text = f"{name} on the slower machine: T_F/A_S, was / as"
    return Claim(id_, text, paper, lambda m: [m.waits.gained(name, most(most_))], why=why, shortest=WHOLE)


def _sparse(_: Bench, m: Slower) -> Investigation:
    """Kernel compile: how few waits there are to tell it by, and how few of the paper's fail."""
    rows: list[Row] = [
        ["paper: as", 199, 140, 14.237],
        ["paper: was (andrew)", 97, 33, 2.813],
        *([form, (a := m.waits.of("kernel-compile", form)).waits, a.failed, a.cost_ms] for form in FORMS[1:]),
    ]
    return Investigation(
        "In the paper most waits of its shortened compilation fail under static 6 ms. In ours most are met, as they are in the"
        " paper's own table of the faster machine (10% fail): there is little left to save.",
        PaperTable("kernel-compile", ["scheduler", "A", "A_F", "T_F/A_S ms"], rows),
    )


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "was-slow",
        DOCUMENT,
        "Tables 14 and 15: what came of the waits on a slower machine; the prospect functions of both",
        f"{DRIVE}, {SLOW.drive}",
        {"sim": slower},
        _table,
        [
            Claim(
                "WA15",
                "the spatial prospect is the same, the temporal one shifts to longer times",
                "yes",
                lambda m: [
                    Check(max(one.distance for one in m.prospects.values()), most(0.15), "largest distance in space"),
                    Check(
                        min(one.slow_us / one.fast_us for one in m.prospects.values()),
                        least(1.05),
                        "least growth of the median in time",
                    ),
                ],
            ),
            # As on the fast machine: half of what the paper saves.
            _gain("WA16", "kva", 0.68),
            _gain("WA17", "andrew", 0.92),
            _gain("WA18", "kernel-compile", 0.6, _sparse),
            _gain("WA19", "bonnie", 0.87),
        ],
        {"sim": 75},
        charts=lambda m: [*waits_charts(m.waits), *_prospect_charts(m.prospects)],
        notes={
            "sim": f"processors' work takes {SLOWER:.1f} times as long on the slow machine, by their clocks; sleeps and pauses"
            f" are the same; {BETTER}, made there, {SUMS}"
        },
    ),
)
