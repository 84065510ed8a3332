# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Do the simulator and the kernel agree? The same fio job files, drive profile and schedulers in both.

In the lab fio itself reads the emulated disk past the page cache; in the simulator the job file is a workload. Both let
64 requests exist at once; the kernel's own schedulers decide one request ahead of the device, and are simulated so. Under
none there are as many requests as the device takes. With more processes than that, none is left out: who gets the place of
a request that is done is settled by the process scheduler (the process that is done, if it is quick).

Throughput is of all processes together, up to the end of the last; p99 is of all their I/Os. fio sorts latencies into bins
that are up to 1.6% wide.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headwaiter.device import open_drive
from headwaiter.drives import find_drive
from headwaiter.errors import Problem
from headwaiter.fio.parser import Section, parse
from headwaiter.lab.guest import Guest, boot, source_folder
from headwaiter.lab.kernels import Progress, kernel
from headwaiter.lab.modules import build
from headwaiter.lab.script import BASE_MODULES, Row, drive_files, tool
from headwaiter.sim import Options, simulate
from headwaiter.workload import Reading, read_workload

NR_REQUESTS = 64
TURNAROUND_NS = 20_000
KERNELS_OWN = ("none", "mq-deadline", "kyber", "bfq")
OURS = ("noop", "deadline", "as", "as-95", "cas", "as-seek", "as-share", "cfq", "cfq-slice")
THROUGHPUT_BOUND_PERCENT = 3.0
P99_BOUND_PERCENT = 10.0


@dataclass(frozen=True)
class Job:
    """A job file, all of whose jobs use the disk itself, with direct I/O."""

    name: str
    text: str


@dataclass(frozen=True)
class Figures:
    """What is compared."""

    throughput_mbps: float
    p99_ms: float


def reading(readers: int, random: bool, io_size: str = "96m") -> Job:
    """Readers far apart on the device, each 128 KiB at a time in sequence, or 4 KiB at random places.

    With 64 KiB, the one I/O of a time slice that waits for all other readers would be the hundredth, and the 99th
    percentile either that wait or none.
    """
    load = ["rw=randread", "bs=4k", "runtime=240", "time_based", "norandommap"] if random else [
        "rw=read", "bs=128k", f"io_size={io_size}"]  # fmt: skip
    lines = ["[global]", "filename=/dev/sda", "ioengine=psync", "direct=1", "size=2g", "offset_increment=2g", *load]
    return Job(
        f"{'random' if random else 'sequential'}-{readers}", "\n".join([*lines, "", "[reader]", f"numjobs={readers}", ""])
    )


JOBS = tuple(reading(readers, random) for random in (False, True) for readers in (1, 2, 4, 8))


def job_of_file(path: Path) -> Job:
    """A job file for both; Problem if the lab cannot run it as the simulator does."""
    sections = parse(path)
    for section in sections:
        _check(section)
    text = path.read_text()
    if re.search(r"^\s*include\s", text, re.MULTILINE):
        raise Problem(f"{path}: includes a file, which the lab would not find")
    return Job(path.stem, re.sub(r"^(\s*filename\s*=).*$", r"\1/dev/sda", text, flags=re.MULTILINE))


def _check(section: Section) -> None:
    name = section.get("filename", "")
    if not name.startswith("/dev/") or ":" in name:
        raise section.at("filename").problem("the lab compares jobs on the disk itself: filename=/dev/sda")
    if not section.get("direct", False):
        raise section.at("direct").problem("the lab compares direct I/O only: direct=1")


def in_lab(series: str, drive: str, schedulers: Sequence[str], jobs: Sequence[Job], say: Progress) -> dict[str, Figures]:
    """fio's figures by "SCHEDULER/JOB", with the schedulers named as in the kernel."""
    on = kernel(series, say)
    guest = Guest(
        on,
        (source_folder() / "lab" / "guest" / "agree.sh").read_text(),
        modules=BASE_MODULES,
        own_modules=build(on, say),
        programs=[("fio", "fio"), ("chrt", "util-linux")],
        tools={"scatter": tool("scatter")},
        environment={"DRIVE": Path(drive).stem, "SCHEDULERS": " ".join(schedulers)},
        files={f"/lab/jobs/{job.name}.fio": job.text.encode() for job in jobs} | drive_files(drive),
        shift=0,
        limit_s=7200,
    )
    return {name: lab_figures(json.loads(data)) for name, data in boot(guest, say).files.items()}


def lab_figures(fio: Mapping[str, Any]) -> Figures:
    """Of fio's output as "json+"."""
    both = [job[way] for job in fio["jobs"] for way in ("read", "write") if job[way]["io_bytes"]]
    if not both:
        raise Problem("lab agree: fio has done no I/O")
    seconds = max(one["runtime"] for one in both) / 1000
    bins: dict[int, int] = {}
    for one in both:
        for ns, count in one["clat_ns"]["bins"].items():
            bins[int(ns)] = bins.get(int(ns), 0) + count
    ns = np.array(sorted(bins))
    counts = np.array([bins[one] for one in ns.tolist()])
    p99_ns = ns[np.searchsorted(np.cumsum(counts), 0.99 * counts.sum())]
    return Figures(sum(one["io_bytes"] for one in both) / 1e6 / seconds, float(p99_ns) / 1e6)


def crowded(drive: str, job: Job) -> bool:
    """Does a job have more processes than the drive takes requests?"""
    with _as_file(job) as path:
        processes = len(read_workload(path, open_drive(drive), Reading()).load.tasks)
    return processes > find_drive(drive).facts[1]


@contextmanager
def _as_file(job: Job) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="headwaiter-agree-") as folder:
        path = Path(folder) / f"{job.name}.fio"
        path.write_text(job.text)
        yield path


def in_simulator(drive: str, scheduler: str, job: Job) -> Figures:
    """The same of a run of the simulator."""
    device = open_drive(drive)
    own = scheduler in KERNELS_OWN and scheduler != "none"
    limit = 0 if scheduler == "none" else NR_REQUESTS
    options = Options(nr_requests=limit, pull_ahead=own, turnaround_ns=TURNAROUND_NS)
    with _as_file(job) as path:
        run = simulate(scheduler, device, read_workload(path, device, Reading()).load, options=options)
    done = run.complete_ns >= 0
    latency = run.complete_ns[done] - run.issue_ns[done]
    seconds = (int(run.complete_ns[done].max()) - int(run.issue_ns[done].min())) / 1e9
    return Figures(float(run.sectors[done].sum()) * 512 / 1e6 / seconds, float(np.percentile(latency, 99)) / 1e6)


def _off_percent(simulated: float, measured: float) -> float:
    return 100 * (simulated / measured - 1)


def row(series: str, scheduler: str, job: str, lab: Figures, sim: Figures) -> Row:
    """A comparison, with its verdict."""
    rate_off = _off_percent(sim.throughput_mbps, lab.throughput_mbps)
    p99_off = _off_percent(sim.p99_ms, lab.p99_ms)
    return {
        "kernel": series,
        "scheduler": scheduler,
        "job": job,
        "lab_MBps": round(lab.throughput_mbps, 3),
        "sim_MBps": round(sim.throughput_mbps, 3),
        "throughput_off_percent": round(rate_off, 2),
        "lab_p99_ms": round(lab.p99_ms, 3),
        "sim_p99_ms": round(sim.p99_ms, 3),
        "p99_off_percent": round(p99_off, 2),
        "agree": abs(rate_off) <= THROUGHPUT_BOUND_PERCENT and abs(p99_off) <= P99_BOUND_PERCENT,
    }


def compare(series: str, drive: str, schedulers: Sequence[str], jobs: Sequence[Job], say: Progress) -> list[Row]:
    """A row for each scheduler (named as in the simulator) and job: both figures of both, and how far apart they are."""
    known = {**{name: name for name in KERNELS_OWN}, **{name: f"hw-{name}" for name in OURS}}
    if unknown := [name for name in schedulers if name not in known]:
        raise Problem(f"lab agree: {', '.join(unknown)}: not a scheduler that both have ({', '.join(known)})")
    found = in_lab(series, drive, [known[name] for name in schedulers], jobs, say)
    rows = []
    for name in schedulers:
        for job in jobs:
            if name == "none" and crowded(drive, job):
                continue
            say(f"simulating {name}: {job.name}")
            rows.append(row(series, known[name], job.name, found[f"{known[name]}/{job.name}"], in_simulator(drive, name, job)))
    return rows
