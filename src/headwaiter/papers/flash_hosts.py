# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Schedulers on flash with the processors of a host, against what others have published (drives/published.toml)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.paths import WORKLOADS
from headwaiter.drives import find_drive
from headwaiter.drives.flash import RATES
from headwaiter.drives.profile import Profile, from_toml
from headwaiter.drives.published import PublishedFigure, table, worn
from headwaiter.drives.sheet import from_iocost, known_models
from headwaiter.engine.constants import Op
from headwaiter.engine.hosts import HOSTS, KERNEL, Host
from headwaiter.engine.sim import Drive, Options, Outcome, simulate
from headwaiter.fio import JobLoad, load_jobs
from headwaiter.study.inkernel import WBT_PER_COMMAND, kernel_options

_TAGS = 256
"""Tags of each hardware queue, under a scheduler."""
_DEPTH = 1023
"""Commands that a hardware queue takes: so many requests are there without a scheduler."""
_JOBS = 8
_LARGE, _SMALL = 128 << 20, 4 << 10
_WAYS = {
    "rbps": "read",
    "rseqiops": "read",
    "rrandiops": "randread",
    "wbps": "write",
    "wseqiops": "write",
    "wrandiops": "randwrite",
}
_ALONE_MS = 500
"""For which there is nobody but the writers."""
_IOS = 100_000
_LEAST_S, _MOST_S = 0.2, 2.0
IOCOST = "iocost benchmark database"
Array = NDArray[np.bool_]


@dataclass(frozen=True)
class Scheduled:
    """A published figure of a scheduler, and the simulator's. allowed: how far off that may be, as a share."""

    figure: PublishedFigure
    place: str
    scheduler: str
    allowed: float

    @property
    def holds(self) -> bool:
        """Return whether it is near enough."""
        return abs(self.figure.error) <= self.allowed


@dataclass(frozen=True)
class _Load:
    """Processes that read at random, each with so many reads under way, on so many cores, for so long."""

    processes: int
    depth: int
    cores: int
    ms: int

    def run(self, drive: Drive, scheduler: str, host: Host) -> tuple[float, float]:
        """Thousands of reads a second, and their mean latency in microseconds."""
        size = (drive.sectors >> 12 << 21) // self.processes >> 20
        job = f"[r]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\niodepth={self.depth}\nnumjobs={self.processes}\n"
        load = load_jobs(Path("published.fio"), drive.sectors, f"{job}size={size}m\ntime_based\nruntime={self.ms}ms\n".encode())
        options = Options(nr_requests=_DEPTH if scheduler == "none" else _TAGS, join_arriving=True, pull_ahead=True)
        out = simulate(scheduler, drive, load, options=host.under(host.base(options, self.cores), scheduler))
        ios = int(out.tallies.ios.sum())
        return 1e6 * ios / out.totals["now_ns"], float(out.tallies.latency_sum_ns.sum()) / ios / 1000


def groups() -> list[dict[str, Any]]:
    """Published figures that have schedulers."""
    return table()["schedulers"]


def scheduled(group: Mapping[str, Any]) -> Iterator[Scheduled]:
    """Each scheduler at each place of a figure."""
    drive, host = find_drive(group["drive"]), HOSTS[group["host"]]
    for i, (processes, depth) in enumerate(zip(group["processes"], group["depth"], strict=True)):
        load = _Load(processes, depth, group["cores"], group["run_ms"])
        place = f"{processes} x {depth} reads of 4 KiB"
        for scheduler in KERNEL:
            rate, latency_us = load.run(drive, scheduler, host)
            found = latency_us if group["figure"] == "mean us" else rate
            what = f"{place}, {scheduler}"
            figure = PublishedFigure(drive.name, group["source"], what, group["figure"], group[scheduler][i], found)
            yield Scheduled(figure, place, scheduler, group["allowed"])


def _six(drive: Profile, rate: str, expected: float) -> float:
    """What the way of the database finds, with the drive's depth shared by 8 jobs: large I/Os one at a time, 32 small ones.

    expected: I/Os or bytes a second, by which is told for how long to measure.
    """
    large = rate.endswith("bps")
    bs, depth = (_LARGE, 1) if large else (_SMALL, 32)
    run_s = _LEAST_S if large else min(_MOST_S, max(_LEAST_S, _IOS / expected))
    job = (
        f"[coef]\nrw={_WAYS[rate]}\nbs={bs}\ndirect=1\nioengine=libaio\niodepth={depth}\nnumjobs={_JOBS}\n"
        f"size={(drive.sectors >> 11) // _JOBS}m\ntime_based\nruntime={round(run_s * 1e3)}ms\n"
    )
    host = HOSTS["xeon-10"]
    options = Options(nr_requests=_DEPTH, join_arriving=True, pull_ahead=True)
    load = load_jobs(Path("iocost.fio"), drive.sectors, job.encode())
    out = simulate("none", drive, load, options=host.under(host.base(options), "none"))
    return 1e9 * int(out.tallies.ios.sum()) / out.totals["now_ns"] * (bs if large else 1)


def iocost(models: Sequence[str] = ()) -> Iterator[PublishedFigure]:
    """The kernel's io.cost numbers of drives of the public database, of all unless told, and those of profiles made of them."""
    for name in models or tuple(known_models()):
        numbers = known_models()[name]
        drive = from_toml(from_iocost(name, None)[0], name, name)
        for rate in RATES:
            yield PublishedFigure(
                name, IOCOST, "8 jobs of fio, no scheduler", rate, numbers[rate], _six(drive, rate, numbers[rate])
            )


def _started_s(drive: Drive, load: JobLoad, options: Options, scheduler: str) -> float:
    """From the first to the last I/O of the load's first task."""
    t = simulate(scheduler, drive, load, options=options).tallies
    mine = t.task == 0
    return float(t.last_done_ns[mine].max() - t.first_issue_ns[mine].min()) / 1e9


def starts() -> Iterator[PublishedFigure]:
    """How long a program takes to start beside what writes, by load, write-back throttling and scheduler."""
    for group in table()["starts"]:
        drive, host, file = find_drive(group["drive"]), HOSTS[group["host"]], WORKLOADS / group["workload"]
        for one in group["loads"]:
            load = load_jobs(file, drive.sectors, file.read_bytes() + one.get("writer", "").encode())
            for throttled in one.get("throttled", [False]):
                text = f"{one['name']}, throttled" if throttled else one["name"]
                options = Options(nr_requests=_TAGS, join_arriving=True, wbt_depth=WBT_PER_COMMAND * _DEPTH if throttled else 0)
                base = host.base(options, one.get("cores", 0))
                for scheduler in KERNEL:
                    found = _started_s(drive, load, host.under(kernel_options(base, scheduler, _DEPTH), scheduler), scheduler)
                    measured = group["bfq_s" if scheduler == "bfq" else "others_s"]
                    yield PublishedFigure(drive.name, group["source"], f"{text}, {scheduler}", "s to start", measured, found)


def _beside(
    group: Mapping[str, Any], drive: Drive, scheduler: str, jobs: int, settings: Mapping[str, int] | None = None
) -> tuple[Outcome, Array, Array]:
    """A run of a reader beside jobs that write, and which of its tallies are of reads and of writes.

    The reader comes when the others have been writing for a while, as in the study. bfq tells it by that.
    """
    host = HOSTS[group["host"]]
    same = f"direct=1\nioengine=io_uring\nsize={(drive.sectors >> 11) // (2 * jobs)}m\ntime_based\n"
    job = (
        f"[r]\nrw=randread\nbs=4k\niodepth=1\nstartdelay={_ALONE_MS}ms\n{same}runtime={group['run_ms']}ms\n"
        f"[w]\nrw=randwrite\nbs={group['write_kib']}k\niodepth={group['at_once']}\nnumjobs={jobs}\n"
        f"{same}runtime={_ALONE_MS + group['run_ms']}ms\n"
    )
    load = load_jobs(Path("beside.fio"), drive.sectors, job.encode())
    base = host.base(kernel_options(Options(nr_requests=_TAGS, join_arriving=True), scheduler, _DEPTH), group["cores"])
    out = simulate(scheduler, drive, load, settings or {}, host.under(base, scheduler))
    return out, out.tallies.op == Op.READ, out.tallies.op == Op.WRITE


def beside_by_scheduler() -> Iterator[PublishedFigure]:
    """Latencies of a reader beside jobs that write, by their number and by scheduler."""
    for group in table()["beside_by_scheduler"]:
        drive = worn(find_drive(group["drive"]))
        for i, jobs in enumerate(group["jobs"]):
            for scheduler in KERNEL:
                out, reads, _ = _beside(group, drive, scheduler, jobs)
                text = f"reads beside {jobs} x {group['at_once']} writes of {group['write_kib']} KiB, {scheduler}"
                mean_us = float(out.tallies.latency_sum_ns[reads].sum() / out.tallies.ios[reads].sum() / 1e3)
                p99_us = _quantile_us(out, int(np.flatnonzero(reads)[0]), 0.99)
                for what, measured, found in zip(("mean us", "p99 us"), group[scheduler][i], (mean_us, p99_us), strict=True):
                    yield PublishedFigure(drive.name, group["source"], text, what, measured, found)


def _quantile_us(out: Outcome, tally: int, share: float) -> float:
    of_it = out.latencies.tally == tally
    order = np.argsort(out.latencies.ns[of_it])
    count = np.cumsum(out.latencies.count[of_it][order])
    return float(out.latencies.ns[of_it][order][np.searchsorted(count, share * count[-1])] / 1e3)


def kyber_targets() -> Iterator[PublishedFigure]:
    """Reads and writes a second under kyber, by its targets."""
    for group in table()["kyber_targets"]:
        drive = worn(find_drive(group["drive"]))
        for read_us, write_us, *measured in group["rows"]:
            targets = {"read_lat_nsec": read_us * 1000, "write_lat_nsec": write_us * 1000}
            out, *ways = _beside(group, drive, "kyber", 1, targets)
            spans_ms = (group["run_ms"], _ALONE_MS + group["run_ms"])
            for what, number, way, ms in zip(("reads/s", "writes/s"), measured, ways, spans_ms, strict=True):
                found = float(out.tallies.ios[way].sum() / ms * 1e3)
                yield PublishedFigure(drive.name, group["source"], f"targets {read_us} and {write_us} us", what, number, found)


def in_order(found: Sequence[Scheduled], apart: float = 0.15) -> bool:
    """Whether, at each place, of two schedulers that differ by so much the better one is the better one here."""
    pairs = [(one.figure, other.figure) for one in found for other in found if one.place == other.place]
    return all(
        (one.measured > other.measured) == (one.simulated > other.simulated)
        for one, other in pairs
        if abs(one.measured - other.measured) > apart * min(one.measured, other.measured)
    )
