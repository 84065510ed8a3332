# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waits of programs in the lab (Tsakalozos et al., JSS 2009, tables 2, 3, 7 and 8).

Intervals are made as the paper made them: Cold Boot and Andrew's-like are recorded on the machine that is to use them, here a
guest, while it waits for up to M.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from headwaiter.base.parsing import parse_toml
from headwaiter.base.paths import WORKLOADS
from headwaiter.base.reading import read_bytes
from headwaiter.engine.schedulers import find
from headwaiter.experiments import workloads
from headwaiter.papers.reproduce.bench import OPTIONS, Bench, at_once, ratio
from headwaiter.papers.reproduce.claims import Investigation, PaperTable, Row, most
from headwaiter.papers.reproduce.experiment import Experiment
from headwaiter.papers.reproduce.guests import Waited, record_workload, run_workload
from headwaiter.papers.reproduce.tsakalozos import (
    BASE,
    BETTER,
    COLD_BOOT,
    DOCUMENT,
    DRIVE,
    HEURISTIC,
    KVA,
    MULTI_USER,
    PROGRAMS,
    RULES,
    WHOLE,
    configured,
    gains,
    load,
    observe,
    of_waits,
    waits_charts,
    waits_table,
)
from headwaiter.papers.reproduce.wait_figures import FORMS, MADE_FROM, WaitFigures
from headwaiter.papers.was.config import DEFAULT_US, MAX_US
from headwaiter.papers.was.designate import appraise
from headwaiter.papers.was.observe import BUCKET_US, Observation, joined, watch

PLAYED = ("kva", "cold-boot", "multi-user", "db")
"""On the paper's other four too few waits fail in a guest for T_F/A_S to tell anything."""
LAB_DRAWS = 4
"""Each has recordings and workloads of its own, as in the simulator."""
RECORDED_RUNS = 2
"""One of Andrew's-like would have too few waits."""
SIZES: Mapping[str, Mapping[str, float]] = {
    "andrew": {"runs": 6},
    "multi-user": {"requests": 400},
    "db": {"data_mib": 100, "log_mib": 12, "common_log_mib": 25},
    "kva": {},
}
"""Larger than those of `headwaiter lab run workloads`. Cold Boot is whole."""


def sizes_of(name: str) -> Mapping[str, float]:
    """Return SIZES; of what they lack, those of workloads/NAME.toml that are smaller in the guest."""
    if name in SIZES:
        return SIZES[name]
    path = WORKLOADS / f"{name}.toml"
    whole = parse_toml(str(path), read_bytes(path))
    return {key: whole[key] for key in workloads.PLAYED[name]}


def recorded(bench: Bench, name: str, seed: int) -> Observation:
    """Return what `as` sees and does on recordings of a guest, when it waits for up to M."""
    waiting = f"{BASE}:antic_expire={MAX_US // 1000}"
    loads = record_workload(bench, name, DRIVE, waiting, RECORDED_RUNS, sizes_of(name), seed)
    return joined([watch(name, bench.drive(DRIVE), of, OPTIONS) for of in loads])


def waits(bench: Bench) -> WaitFigures:
    """Four workloads as programs, with intervals that are made from recordings of the lab."""
    table = find("was").tables["config"]
    forms = dict(zip(FORMS, [HEURISTIC, BASE, *(f"was{RULES}:config={name}" for name in MADE_FROM)], strict=True))

    def record(seed: int) -> dict[str, Observation]:
        return {name: recorded(bench, name, seed) for name in MADE_FROM}

    def play(seed: int) -> dict[str, dict[str, list[Waited]]]:
        texts = {name: table.show(config.rows()) + "\n" for name, (_, config) in made[seed].items()}
        each = [*forms.values()]
        return {name: run_workload(bench, name, DRIVE, each, texts, sizes=sizes_of(name), seed=seed) for name in PLAYED}

    with ThreadPoolExecutor(at_once("lab")) as pool:
        observed = pool.map(record, range(LAB_DRAWS))
        # Not in threads: HiGHS has standard output turned away.
        made = [{name: (one, configured(one)) for name, one in of.items()} for of in list(observed)]
        ran = list(pool.map(play, range(LAB_DRAWS)))
    of_runs = {
        (name, form): [one for of in ran for one in of[name][scheduler]] for name in PLAYED for form, scheduler in forms.items()
    }
    return of_waits(
        {key: [one.waits for one in runs] for key, runs in of_runs.items()},
        {key: [one.throughput_mbps for one in runs] for key, runs in of_runs.items()},
        made[0],
    )


def _learnt(bench: Bench, _: WaitFigures) -> Investigation:
    """Say what the intervals of a draw of Cold Boot, in the simulator, come to on its own waits, and on those of the next one."""
    seen = [observe(bench, "cold-boot", load(bench, "cold-boot", seed=seed)) for seed in range(LAB_DRAWS)]
    rows: list[Row] = []
    for seed, own in enumerate(seen):
        config = configured(own)
        matrices = [one.matrix(config, BUCKET_US) for one in (own, seen[(seed + 1) % LAB_DRAWS])]
        static = (DEFAULT_US,) * config.classes
        outcomes = [appraise(matrix, us) for matrix in matrices for us in (static, config.wait_us)]
        rows.append([seed + 1, *(ratio(one.penalty_us / 1e3, one.successes) for one in outcomes)])
    return Investigation(
        "On the waits that they were made from, intervals lose about as much less than static 6 ms as the paper's do. On those of"
        " another draw they lose as much as static 6 ms: a hundred classes have few failed waits each, and what is learnt from"
        " them is mostly chance. A guest's second run of the same programs, in which other requests meet, is nearly another one.",
        PaperTable(
            "Cold Boot, as observed: T_F/A_S, ms",
            ["draw", "6 ms", "its intervals", "the next draw: 6 ms", "the next draw: these intervals"],
            rows,
        ),
    )


def _shorter(_: Bench, m: WaitFigures) -> Investigation:
    """Say what becomes of the database's waits, by where intervals come from."""
    rows: list[Row] = [[form, (a := m.of("db", form)).waits, a.failed, a.cost_ms, m.rate_mbps("db", form)] for form in FORMS]
    return Investigation(
        "A process of the database that was slow is in a class of which the recordings have few waits: its interval is chance."
        " Where it is short, A_S falls by more than A_F.",
        PaperTable("db", ["scheduler", "A", "A_F", "T_F/A_S ms", "MB/s"], rows),
    )


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "was-programs",
        DOCUMENT,
        "Tables 2, 3, 7 and 8: what came of the waits of programs",
        DRIVE,
        {"lab": waits},
        waits_table,
        [
            *KVA,
            replace(COLD_BOOT, why=_learnt),
            MULTI_USER,
            gains("WA30", "db", "0.72", most(0.95), why=_shorter, shortest=WHOLE),
        ],
        {"lab": 1100},
        charts=waits_charts,
        notes={"lab": f"{BETTER} in each of {LAB_DRAWS} draws, recorded in the lab; {PROGRAMS}"},
        whole=("lab",),
    ),
)
