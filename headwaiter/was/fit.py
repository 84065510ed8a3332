# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calibration, observation and designation in one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwaiter.was.calibrate import Calibration, Choices, calibrate
from headwaiter.was.config import Config, config
from headwaiter.was.designate import Designation, designate
from headwaiter.was.matrix import Matrix
from headwaiter.was.observe import Observation


@dataclass(frozen=True)
class Fit:
    """A configuration, and what it was made by."""

    config: Config
    calibration: Calibration
    matrix: Matrix
    designation: Designation


def designated(given: Config, chosen: Designation, made: Mapping[str, Any]) -> Config:
    """The same classes, with these intervals."""
    more = {"failures": chosen.failures, "waits": chosen.waits, "penalty_us": chosen.penalty_us}
    return config(given.history, given.spatial, given.temporal, chosen.wait_us, {**given.made, **made, **more})


def fit(observation: Observation, choices: Choices, bound_us: int, least_us: int) -> Fit:
    """Classes and intervals for what was observed. Problem if the bound cannot be kept, or there is nothing to fit to."""
    found = calibrate(observation, choices)
    made = {"from": observation.name, "max_us": observation.max_us, "bucket_us": choices.bucket_us}
    classes = found.config([observation.max_us] * found.best.classes, made)
    matrix = observation.matrix(classes, choices.bucket_us)
    chosen = designate(matrix, bound_us, least_us, relaxed=True)
    done = designated(classes, chosen, {"bound_us": bound_us, "least_us": least_us})
    return Fit(done, found, matrix, chosen)
