# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What fio measured on a real drive, job by job, and what the same jobs get from a profile in the simulator.

Each job of fio's JSON is taken to have run alone (`stonewall`). A profile that `drives from --fio` made has the machine's own
time in its latencies; so none is added, and there is no scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from headwaiter.base.errors import Problem
from headwaiter.drives.profile import Profile
from headwaiter.drives.volume import fio_jobs
from headwaiter.engine.sim import Options, simulate
from headwaiter.fio import load_jobs

RUN_MS = 2000
_REQUESTS = 1023
_OF_THE_MACHINE = (
    "filename", "directory", "runtime", "ramp_time", "time_based", "stonewall", "wait_for_previous", "name", "size", "filesize",
    "io_size", "offset",
)  # fmt: skip
"""Options of where and for how long, which the simulator has its own of."""


@dataclass(frozen=True)
class Predicted:
    """I/Os a second of a job: those of each run of fio's, and the simulator's."""

    job: str
    measured: tuple[float, ...]
    simulated: float

    @property
    def middle(self) -> float:
        """The run in the middle."""
        return median(self.measured)


def _rate(job: Mapping[str, Any], where: Path) -> float:
    try:
        return sum(float(job[way]["iops"]) for way in ("read", "write") if way in job)
    except (KeyError, TypeError, ValueError):
        raise Problem(f"{where}: job '{job.get('jobname', '')}': lacks iops") from None


def _simulated(drive: Profile, options: Mapping[str, str], where: Path) -> float:
    kept = {key: value for key, value in options.items() if key not in _OF_THE_MACHINE}
    lines = [f"{key}={value}" if value not in (None, "") else key for key, value in kept.items()]
    mib = (drive.facts[0] >> 11) // max(1, int(kept.get("numjobs") or 1))
    text = "\n".join(["[job]", *lines, f"size={mib}m", f"runtime={RUN_MS}ms", "time_based", ""])
    load = load_jobs(where, drive.sectors, text.encode())
    out = simulate("none", drive, load, options=Options(nr_requests=_REQUESTS, join_arriving=True, pull_ahead=True))
    return 1e9 * float(out.tallies.ios.sum()) / out.totals["now_ns"]


def predicted(drive: Profile, paths: Sequence[Path]) -> Iterator[Predicted]:
    """The jobs of files that hold the same ones, a file for each run; Problem if they do not."""
    runs = [dict(fio_jobs(path)) for path in paths]
    if any(run.keys() != runs[0].keys() for run in runs):
        raise Problem(f"{paths[0]}: has other jobs than the files after it; each is to hold a run of the same jobs")
    for name, (options, _) in runs[0].items():
        rates = tuple(_rate(run[name][1], path) for run, path in zip(runs, paths, strict=True))
        if min(rates) > 0:
            yield Predicted(name, rates, _simulated(drive, options, paths[0]))
