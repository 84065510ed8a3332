# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a scheduler for every drive is held to, in a steady state: a table of demands, and what a scheduler comes to.

python tests/acceptance.py [SCHEDULER] [SEEDS]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from headwaiter.base.paths import WORKLOADS
from headwaiter.drives.choose import open_drive
from headwaiter.engine.sim import Options
from headwaiter.regret.contested import Metric, parse_contested
from headwaiter.regret.measurements import SEEDS, measure_cell
from headwaiter.regret.workloads import read_contests
from headwaiter.study.variants import parse_variant

TIMED = "[global]\nioengine=psync\nruntime=20s\ntime_based\n"
BUFFERED = TIMED + "direct=0\nrw=read\nbs=64k\nsize=2g\n[reader]\nnumjobs={n}\n"
INTER = (
    TIMED + "[inter]\nrw=randread:4\nbs=16k\nsize=512m\ndirect=1\nthinktime=1000000\nthinktime_blocks=20\nstartdelay=2s\n"
    "[stream]\nrw=read\nbs=128k\nsize=2g\ndirect=0\nnumjobs={n}\n"
)
JOBS = {
    **{f"buf{n}": BUFFERED.format(n=n) for n in (1, 8, 16)},
    **{f"inter-{n}": INTER.format(n=n) for n in (4, 8)},
    "startup-8": "[global]\nioengine=psync\ndirect=1\nrw=read\nbs=128k\nthinktime=50\n[start]\nsize=10m\nstartdelay=7s\n"
    "[stream]\nsize=2g\nnumjobs=8\nruntime=20s\ntime_based\n",
    "rand-d32": TIMED + "direct=1\nrw=randread\nbs=4k\nfilename=/dev/sda\n[rand]\nioengine=libaio\niodepth=32\n",
    "rw-direct": TIMED + "bs=64k\nsize=2g\n[reader]\nrw=read\ndirect=1\n[writer]\nrw=write\n",
    "adv-7ms": TIMED + "direct=1\nsize=1g\nrw=read\n[adv]\nbs=4k\nthinktime=7000\n[stream]\nbs=64k\nthinktime=100\n",
}
FILES = {"chain1": WORKLOADS / "regret" / "chain1.toml", "example": WORKLOADS / "example.blktrace.xz"}
OPTIONS = Options()
"""Without processor time and without a limit of requests: so the demands were set."""


@dataclass(frozen=True)
class Demand:
    """A figure of a load on a drive: at least (times: at most) `factor` of its unit, or of the same of `other` load, or of the
    best of `rivals`.
    """

    load: str
    drive: str
    figure: str
    factor: float
    other: str = ""
    rivals: tuple[str, ...] = ()

    @property
    def metric(self) -> Metric:
        (found,) = parse_contested("acceptance", self.figure)
        return found

    def wanted(self, scheduler: str, seeds: int) -> float:
        """The number that the figure is held against."""
        if self.other:
            return self.factor * value(self.other, self.drive, self.figure, scheduler, seeds)
        if self.rivals:
            best = min if self.metric.low_is_good else max
            return self.factor * best(value(self.load, self.drive, self.figure, rival, seeds) for rival in self.rivals)
        return self.factor

    def is_met(self, scheduler: str, seeds: int = SEEDS, slack: float = 0.0) -> bool:
        """Whether a scheduler does what is demanded, or almost."""
        own, wanted = value(self.load, self.drive, self.figure, scheduler, seeds), self.wanted(scheduler, seeds)
        return own <= wanted * (1 + slack) if self.metric.low_is_good else own >= wanted * (1 - slack)

    def __str__(self) -> str:
        return f"{self.load}, {self.figure}, on {self.drive}"


@cache
def value(load: str, drive: str, figure: str, scheduler: str, seeds: int = SEEDS) -> float:
    """The median over seeds."""
    with tempfile.TemporaryDirectory() as folder:
        path = FILES.get(load) or Path(folder) / f"{load}.fio"
        if load in JOBS:
            path.write_text(JOBS[load])
        (contest,) = read_contests([path], figure)
        contest = replace(contest, metrics=parse_contested("acceptance", figure))
        variants, opened = [parse_variant(scheduler)], open_drive(drive)
        each = [(variant, OPTIONS) for variant in variants]
        return float(np.median([measure_cell(contest, opened, each, seed) for seed in range(seeds)]))


PRESENT = ("as", "cas", "none", "mq-deadline", "bfq", "cfq-slice")
ALL, STREAM, BURST = "MB/s in all", "MB/s of stream", "mean time of a burst of inter"
DISKS = ("barracuda-80g", "wd-re-4tb", "cheetah-15k")
DEMANDS: tuple[Demand, ...] = (
    *(Demand("buf8", drive, ALL, 0.95, other="buf1") for drive in DISKS),
    *(Demand("buf16", drive, ALL, 0.97, rivals=PRESENT) for drive in DISKS),
    Demand("buf8", "barracuda-80g", "longest read", 2000),
    *(
        Demand("startup-8", drive, "time from start to end of start", 1, rivals=("bfq",))
        for drive in ("barracuda-80g", "wd-re-4tb", "sata-ssd", "nvme-ssd")
    ),
    *(
        Demand(load, "barracuda-80g", figure, factor)
        for load in ("inter-4", "inter-8")
        for figure, factor in ((BURST, 45), (STREAM, 60))
    ),
    *(
        Demand("inter-8", drive, figure, factor, rivals=("bfq",))
        for drive in ("wd-re-4tb", "cheetah-15k", "sata-ssd", "nvme-ssd")
        for figure, factor in ((BURST, 1), (STREAM, 0.97))
    ),
    Demand("chain1", "barracuda-80g", "time from start to end of chain", 3.5),
    Demand("chain1", "barracuda-80g", "MB/s while chain lives, of stream", 35),
    *(Demand("example", drive, ALL, 0.98, rivals=PRESENT) for drive in ("barracuda-80g", "deskstar-75gxp")),
    *(Demand("rand-d32", drive, ALL, 0.995, rivals=("none",)) for drive in ("nvme-ssd", "sata-ssd")),
    Demand("rw-direct", "barracuda-80g", "MB/s of reader", 50),
    Demand("rw-direct", "barracuda-80g", ALL, 65),
    Demand("adv-7ms", "barracuda-80g", STREAM, 25),
    Demand("adv-7ms", "barracuda-80g", "MB/s of adv", 0.2),
)  # fmt: skip


def table(scheduler: str, seeds: int = SEEDS, demands: Sequence[Demand] = DEMANDS) -> list[list[str]]:
    """Return load, drive, figure, the scheduler's value, what is wanted and whether it is met, for each demand."""
    rows = []
    for d in demands:
        own, wanted = value(d.load, d.drive, d.figure, scheduler, seeds), d.wanted(scheduler, seeds)
        by = f" ({d.factor:g} of {d.other or ', '.join(d.rivals)})" if d.other or d.rivals else ""
        sign = "at most" if d.metric.low_is_good else "at least"
        met = "met" if d.is_met(scheduler, seeds) else "NOT MET"
        rows.append([d.load, d.drive, d.figure, f"{own:.4g} {d.metric.unit}".strip(), f"{sign} {wanted:.4g}{by}", met])
    return rows


if __name__ == "__main__":
    for row in table(sys.argv[1] if len(sys.argv) > 1 else "maitre", int(sys.argv[2]) if len(sys.argv) > 2 else SEEDS):
        print(" | ".join(row))
