# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Change a load a little, to see what a result is worth that may hang on microseconds.

Readers of one disk can settle into different orders and keep them for thousands of I/Os. Which one they come to is decided by
when they begin, where the platter stands, and how long a process needs between two I/Os: things that no two runs on a real
machine have in common. So a load is run again with each of them changed a little, and where that changes the result, the result
is a range.
"""

from __future__ import annotations

import dataclasses
import random

import numpy as np

from headwaiter.engine.sim import EVERY_TIME, Forest, Load, Options
from headwaiter.fio import JobLoad
from headwaiter.study.ongoing import Ongoing

PROCESSOR_SHARE = 0.2
THINK_SHARE = 0.05
WIDE_THINK_SHARE = 0.2
START_NS = 10_000_000
"""Each process begins up to so much later."""
TURN_NS = 20_000_000
"""All begin up to so much later: more than a turn of any platter."""


def perturbed(load: Load, options: Options, number: int, think_share: float = THINK_SHARE) -> tuple[Load, Options]:
    """Load and options with processor time, start, platter and think times changed; the same number, the same change.

    Number 0 changes nothing. Think times change by up to `think_share` of themselves.
    """
    if number == 0:
        return load, options
    dice = random.Random(f"headwaiter perturbation {options.seed} {number}")
    factor = dice.uniform(1 - PROCESSOR_SHARE, 1 + PROCESSOR_SHARE)
    times = {name: round(getattr(options, name) * factor) for name in EVERY_TIME}
    options = dataclasses.replace(options, race_seed=number, **times)
    turn = dice.randrange(TURN_NS)
    if isinstance(load, JobLoad):
        return _jobs(load, dice, turn, think_share), options
    if isinstance(load, Forest):
        return _forest(load, dice.getrandbits(64), turn, think_share), options
    return load, options


def _jobs(load: JobLoad, dice: random.Random, turn: int, think_share: float) -> JobLoad:
    jobs = []
    for job in load.jobs:
        later = turn + dice.randrange(START_NS)
        think = round(job.fields["think_ns"] * dice.uniform(1 - think_share, 1 + think_share))
        jobs.append(
            dataclasses.replace(
                job,
                fields={
                    **job.fields,
                    "start_min_ns": job.fields["start_min_ns"] + later,
                    "start_max_ns": job.fields["start_max_ns"] + later,
                    "think_ns": think,
                },
            )
        )
    return dataclasses.replace(load, jobs=tuple(jobs))


def _forest(load: Forest, seed: int, turn: int, think_share: float) -> Forest:
    """Roots move with their tasks; what follows another I/O after a while does so after a little more or less."""
    numbers = np.random.default_rng(seed)
    later = turn + numbers.integers(0, START_NS, len(load.tasks))
    think = numbers.uniform(1 - think_share, 1 + think_share, len(load.delay_ns))
    if isinstance(load, Ongoing):
        # What is submitted in one go (plugs.py) stays together: a program that thinks longer does all of it later.
        think = np.where(load.parent >= 0, think[np.maximum(load.parent, 0)], think)
    return dataclasses.replace(
        load,
        time_ns=load.time_ns + later[load.task],
        delay_ns=np.rint(load.delay_ns * think).astype(np.int64),
        free=_forest(load.free, seed, turn, think_share) if load.free is not None else None,
    )
