# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Throughput of anticipating schedulers and of others (Tsakalozos et al., JSS 2009, figures 18 to 21)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from headwaiter.papers.reproduce.bench import Bench, ratio
from headwaiter.papers.reproduce.claims import Check, Claim, Investigation, PaperTable, Row, least
from headwaiter.papers.reproduce.experiment import Chart, Experiment
from headwaiter.papers.reproduce.guests import run_workload
from headwaiter.papers.reproduce.tsakalozos import (
    BASE,
    DOCUMENT,
    DRIVE,
    EVEN,
    HEURISTIC,
    MAX_SECTORS,
    PROGRAMS,
    READAHEAD_KIB,
    RULES,
    load,
)

ANTICIPATING, OTHERS = (BASE, HEURISTIC, "cas"), ("noop", "deadline", "cfq")
COMPARED, EXCEPTION = ("kva", "andrew", "multi-user"), "db"
RUNS = {"multi-user": 3}
"""In the lab; its random places are others in each."""
Rates = Mapping[str, float]
"""MB/s by scheduler."""


@dataclass(frozen=True)
class Throughput:
    """The rate of each scheduler by workload, and a way to measure another one, with so many KiB of read-ahead."""

    rates: Mapping[str, Rates]
    measure: Callable[[Bench, str, int], Rates]


def _sim_rates(bench: Bench, name: str, readahead_kib: int) -> Rates:
    of = load(bench, name) if readahead_kib else load(bench, name, readahead_kib=0)
    return {
        one.removesuffix(RULES): bench.run(DRIVE, of, one, max_sectors=MAX_SECTORS).throughput_mbps
        for one in (*ANTICIPATING, *OTHERS)
    }


def _lab_rates(bench: Bench, name: str, readahead_kib: int) -> Rates:
    given, runs = {"READAHEAD_KIB": readahead_kib}, RUNS.get(name, 1)
    ran = run_workload(bench, name, DRIVE, [*ANTICIPATING, *OTHERS], parameters=given, runs=runs)
    return {one.removesuffix(RULES): fmean(found.throughput_mbps for found in of_one) for one, of_one in ran.items()}


def throughput(bench: Bench) -> Throughput:
    """Measure the throughput of the anticipating schedulers and of the others."""
    return Throughput({name: _sim_rates(bench, name, READAHEAD_KIB) for name in (*COMPARED, EXCEPTION)}, _sim_rates)


def lab_throughput(bench: Bench) -> Throughput:
    """Measure the throughput of programs in the lab."""
    return Throughput({name: _lab_rates(bench, name, READAHEAD_KIB) for name in (*COMPARED, EXCEPTION)}, _lab_rates)


def _rate_rows(rates: Mapping[str, Rates]) -> list[Row]:
    return [[name, *of_one.values(), _ahead(of_one)] for name, of_one in rates.items()]


RATE_COLUMNS = ("workload", *(one.removesuffix(RULES) for one in (*ANTICIPATING, *OTHERS)), "worst anticipating / best other")


def _throughput_table(m: Throughput) -> list[PaperTable]:
    return [PaperTable("MB/s", RATE_COLUMNS, _rate_rows(m.rates))]


def _throughput_charts(m: Throughput) -> list[Chart]:
    lines = {one: [rates[one] for rates in m.rates.values()] for one in RATE_COLUMNS[1:-1]}
    return [Chart("Throughput (figures 18 to 21)", "workload", "MB/s", list(m.rates), lines)]


def _ahead(rates: Rates) -> float:
    """The worst of the anticipating by the best of the others."""
    plain = [one.removesuffix(RULES) for one in ANTICIPATING]
    return ratio(min(rates[one] for one in plain), max(rates[one] for one in OTHERS))


def _by_readahead(bench: Bench, m: Throughput) -> Investigation:
    """Say where they fall behind: whether read-ahead has left them anything to wait for."""
    behind = [name for name in COMPARED if _ahead(m.rates[name]) not in EVEN]
    return Investigation(
        "With read-ahead a small file is read whole by one request, and the process goes on to another: there is nothing near to"
        " wait for. Without read-ahead each page is a request.",
        PaperTable("MB/s without read-ahead", RATE_COLUMNS, _rate_rows({name: m.measure(bench, name, 0) for name in behind})),
    )


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "was-throughput",
        DOCUMENT,
        "throughput of anticipating schedulers and of others",
        DRIVE,
        {"sim": throughput, "lab": lab_throughput},
        _throughput_table,
        [
            Claim(
                "WA12",
                "the worst of the anticipating / the best of noop, deadline, cfq",
                "yes",
                lambda m: [Check(_ahead(m.rates[name]), EVEN, name) for name in COMPARED],
                why=_by_readahead,
            ),
            Claim(
                "WA22",
                "the exception: db, noop / as",
                "above 1",
                lambda m: [Check(ratio(m.rates[EXCEPTION]["noop"], m.rates[EXCEPTION]["as"]), least(1))],
            ),
        ],
        {"sim": 30, "lab": 150},
        printed=False,
        charts=_throughput_charts,
        notes={"lab": PROGRAMS},
        whole=("lab",),
    ),
)
