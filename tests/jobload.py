# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Job files, or the bundled ones of `regret`: what each job gets under a scheduler on a bundled drive, and its options."""

from __future__ import annotations

from pathlib import Path

import headwaiter
from headwaiter.study.schema import Result

REGRET = Path(__file__).parents[1] / "workloads" / "regret"


def run_jobs(folder: Path, scheduler: str, drive: str, *jobs: str, positions: bool = False) -> Result:
    """Sections of a job file, by psync unless one says otherwise."""
    job = folder / "jobs.fio"
    job.write_text("[global]\nioengine=psync\n" + "".join(jobs))
    return headwaiter.run(job, scheduler, drive, runs=0, positions=positions).result


def run_regret(name: str, drive: str, scheduler: str = "maitre", *, positions: bool = False) -> Result:
    return headwaiter.run(REGRET / name, scheduler, drive, runs=0, positions=positions).result


def options_of(text: str) -> list[dict[str, str]]:
    """The options of each section [pN] of a random job file."""
    return [dict(line.split("=", 1) for line in section.splitlines() if "=" in line) for section in text.split("[p")[1:]]
