# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A workload in two parts: one to search on, and one that the search has not seen.

A recording has a first and a second half. What is generated is made, or run, a second time with another seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from headwaiter.engine.sim import Drive
from headwaiter.fio import JobLoad
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.workload import Reading, Workload, halves_of, read_workload


@dataclass(frozen=True)
class Halves:
    """Both parts, the conditions under which each is run, and what they are called."""

    trained: Workload
    held: Workload
    trained_under: RunConditions
    held_under: RunConditions
    trained_name: str
    held_name: str


def halves(path: Path, work: Workload, drive: Drive, reading: Reading, conditions: RunConditions) -> Halves:
    """Both parts of a workload that has been read from a file. Problem if it is a single request."""
    other = replace(conditions, seed=conditions.seed + 1)
    seeds = f"a run with seed {conditions.seed}", f"a run with seed {other.seed}"
    recording = work.recording
    if recording is not None:
        first, second = halves_of(path, recording, drive, reading)
        return Halves(first, second, conditions, conditions, "the first half", "the second half")
    if isinstance(work.load, JobLoad):
        return Halves(work, work, conditions, other, *seeds)
    again = read_workload(path, drive, replace(reading, seed=other.seed))
    return Halves(work, again, conditions, other, *seeds)
