# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All experiments, by name, and running several of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from headwaiter.base.errors import Problem, shown
from headwaiter.base.nearest import did_you_mean
from headwaiter.papers.reproduce import (
    axboe,
    axboe_mixed,
    cs350,
    iyer,
    iyer_programs,
    seelam,
    seelam_servers,
    tsakalozos,
    tsakalozos_programs,
    tsakalozos_rates,
    tsakalozos_slow,
    tsakalozos_unread,
)
from headwaiter.papers.reproduce.bench import Bench, Level, at_once
from headwaiter.papers.reproduce.experiment import Experiment, Finding, run

DOCUMENTS = (
    axboe,
    axboe_mixed,
    seelam,
    seelam_servers,
    tsakalozos,
    tsakalozos_programs,
    tsakalozos_rates,
    tsakalozos_slow,
    tsakalozos_unread,
    iyer,
    iyer_programs,
    cs350,
)
EXPERIMENTS: dict[str, Experiment[Any]] = {one.name: one for document in DOCUMENTS for one in document.EXPERIMENTS}
QUICK = 0.2
"""Scale of --quick."""


def chosen(names: Sequence[str]) -> list[Experiment[Any]]:
    """The experiments of these names, or whose names begin with NAME-, each once; all if none is given. Problem if unknown."""
    out: dict[str, Experiment[Any]] = {}
    for name in names:
        found = {one: known for one, known in EXPERIMENTS.items() if one == name or one.startswith(f"{name}-")}
        if not found:
            known = ", ".join(EXPERIMENTS)
            raise Problem(f"no experiment {shown(name)}{did_you_mean(name, list(EXPERIMENTS))} (known: {known})")
        out |= found
    return list((out or EXPERIMENTS).values())


def run_all(experiments: Sequence[Experiment[Any]], levels: Sequence[Level], bench: Bench) -> Iterator[Finding]:
    """Each experiment at each of these levels at which it is run."""

    def one(experiment: Experiment[Any], level: Level) -> Finding:
        bench.say(f"{experiment.name} ({level})")
        return run(experiment, level, bench)

    if "sim" in levels:
        yield from (one(experiment, "sim") for experiment in experiments if experiment.runs("sim", bench.scale))
    if "lab" in levels:
        in_lab = [experiment for experiment in experiments if experiment.runs("lab", bench.scale)]
        # The longest first, else the last one to begin is waited for by itself.
        begun = sorted(in_lab, key=lambda experiment: -experiment.lasts_s("lab", bench.scale))
        failed = threading.Event()

        def in_guest(experiment: Experiment[Any]) -> Finding | None:
            # No other guest boots after one that failed.
            if failed.is_set():
                return None
            try:
                return one(experiment, "lab")
            except BaseException:
                failed.set()
                raise

        with ThreadPoolExecutor(max_workers=at_once("lab")) as pool:
            found = [finding for finding in pool.map(in_guest, begun) if finding]
        yield from sorted(found, key=lambda finding: in_lab.index(finding.experiment))
