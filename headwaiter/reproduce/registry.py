# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All experiments, by name, and running several of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headwaiter.errors import Problem, shown
from headwaiter.nearest import did_you_mean
from headwaiter.reproduce import axboe, iyer, iyer_programs, seelam, servers, study, was
from headwaiter.reproduce.bench import LEVELS, Bench, Level
from headwaiter.reproduce.experiment import Experiment, Finding, run

EXPERIMENTS: dict[str, Experiment[Any]] = {
    one.name: one for document in (axboe, seelam, servers, was, iyer, iyer_programs, study) for one in document.EXPERIMENTS
}
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
    for level in LEVELS:
        for experiment in experiments:
            if level in levels and experiment.runs(level, bench.scale):
                bench.say(f"{experiment.name} ({level})")
                yield run(experiment, level, bench)
