# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""WAS beside the other policies where nothing is read ahead (Tsakalozos et al., JSS 2009, tables 10 to 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwaiter.papers.reproduce.bench import Bench
from headwaiter.papers.reproduce.claims import Band, Check, Claim, Investigation, PaperTable, Row, least, most
from headwaiter.papers.reproduce.experiment import Experiment
from headwaiter.papers.reproduce.tsakalozos import (
    BETTER,
    DOCUMENT,
    DRIVE,
    SUMS,
    WHOLE,
    waits,
    waits_table,
)
from headwaiter.papers.reproduce.wait_figures import FORMS, WaitFigures

# T_F/A_S in ms, and kB/s of 1024 bytes: 95%, static 6 ms, WAS (Cold Boot), WAS (Andrew's-like).
PRINTED: Mapping[str, Sequence[float]] = {
    "kva": (0.249, 0.388, 0.185, 0.169),
    "andrew": (0.733, 0.771, 0.736, 0.699),
    "multi-user": (1.127, 1.251, 1.110, 1.128),
    "db": (0.216, 0.205, 0.199, 0.200),
}
"""T_F/A_S by its own figures: the last column of the tables has fewer digits."""
PRINTED_KIB: Mapping[str, Sequence[float]] = {
    "kva": (22851, 22561, 22851, 22657),
    "andrew": (8014, 9574, 9563, 9540),
    "multi-user": (26877, 26812, 26650, 27009),
    "db": (29539, 27749, 28321, 28032),
}


def unread(bench: Bench) -> WaitFigures:
    """The four workloads of the tables without read-ahead, with intervals made as ever, from recordings with it."""
    return waits(bench, tuple(PRINTED), readahead_kib=0)


def _tables(m: WaitFigures) -> list[PaperTable]:
    rows: list[Row] = [
        [name, form, round(kib * 1.024e-3, 1), m.rate_mbps(name, form)]
        for name, of in PRINTED_KIB.items()
        for form, kib in zip(FORMS, of, strict=True)
    ]
    return [
        *waits_table(m, PRINTED),
        PaperTable("Throughput", ["workload", "scheduler", "paper: MB/s", "ours: MB/s"], rows),
    ]


def _saved(id_: str, name: str, band: Band) -> Claim[WaitFigures]:
    _, static, *was = PRINTED[name]
    text = f"{name} without read-ahead: T_F/A_S, was / as"
    return Claim(id_, text, f"{min(was) / static:.2f}", lambda m: [m.gained(name, band)], why=_told)


def _told(_: Bench, m: WaitFigures) -> Investigation:
    """Return what becomes of the waits, by configuration."""
    rows: list[Row] = [
        [name, form, m.of(name, form).waits, m.of(name, form).failed, m.cost(name, form), m.rate_mbps(name, form)]
        for name in m.workloads
        for form in FORMS
    ]
    return Investigation(
        "Each page is a request of its own, and most follow the one before at once. Longer intervals meet more of the others; the"
        " time of waits that are met is not in T_F/A_S, but in the throughput.",
        PaperTable("Without read-ahead", ["workload", "scheduler", "A", "A_F", "T_F/A_S ms", "MB/s"], rows),
    )


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "was-unread",
        DOCUMENT,
        "Tables 10 to 13 under all four policies: without read-ahead",
        DRIVE,
        {"sim": unread},
        _tables,
        [
            # Half of what the paper saves.
            _saved("WA25", "kva", most(0.72)),
            _saved("WA26", "andrew", most(0.96)),
            _saved("WA27", "multi-user", most(0.95)),
            _saved("WA28", "db", most(0.99)),
            Claim(
                "WA29",
                "without read-ahead: throughput, was / as, the least of the four",
                "0.996",
                lambda m: [Check(min(m.rate(name) for name in m.workloads), least(0.98))],
                why=_told,
                shortest=WHOLE,
            ),
        ],
        {"sim": 85},
        notes={"sim": f"{BETTER}, {SUMS}"},
    ),
)
