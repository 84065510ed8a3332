# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Do the simulator and the kernel agree? The same fio job files, drive profile and schedulers in both.

In the lab fio itself reads the emulated disk past the page cache; in the simulator the job file is a workload. Both let
64 requests exist at once; the kernel's own schedulers decide one request ahead of the device, and are simulated so.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwaiter.device import open_drive
from headwaiter.errors import Problem
from headwaiter.lab.guest import Guest, boot, source_folder
from headwaiter.lab.kernels import Progress, kernel
from headwaiter.lab.modules import build
from headwaiter.lab.script import BASE_MODULES, Row, drive_files
from headwaiter.results import summarise
from headwaiter.sim import Options, simulate
from headwaiter.workload import Reading, read_workload

NR_REQUESTS = 64
KERNELS_OWN = ("mq-deadline", "kyber", "bfq")
OURS = ("noop", "deadline", "as", "as-95", "cas", "as-seek", "as-share", "cfq", "cfq-slice")


@dataclass(frozen=True)
class Job:
    """Readers far apart on the device, each 64 KiB at a time in sequence, or 4 KiB at random places."""

    readers: int
    random: bool

    @property
    def name(self) -> str:
        """Such as "random-4"."""
        return f"{'random' if self.random else 'sequential'}-{self.readers}"

    @property
    def text(self) -> str:
        """The job file."""
        load = ["rw=randread", "bs=4k", "runtime=120", "time_based", "norandommap"] if self.random else [
            "rw=read", "bs=64k", "io_size=48m"]  # fmt: skip
        lines = ["[global]", "filename=/dev/sda", "ioengine=psync", "direct=1", "size=4g", "offset_increment=8g", *load]
        return "\n".join([*lines, "", "[reader]", f"numjobs={self.readers}", ""])


JOBS = tuple(Job(readers, random) for random in (False, True) for readers in (1, 2, 4, 8))


def in_lab(series: str, drive: str, schedulers: Sequence[str], jobs: Sequence[Job], say: Progress) -> dict[str, Any]:
    """fio's JSON by "SCHEDULER/JOB", with the schedulers named as in the kernel."""
    on = kernel(series, say)
    guest = Guest(
        on,
        (source_folder() / "lab" / "guest" / "agree.sh").read_text(),
        modules=BASE_MODULES,
        own_modules=build(on, say),
        programs=[("fio", "fio")],
        environment={"DRIVE": drive, "SCHEDULERS": " ".join(schedulers)},
        files={f"/lab/jobs/{job.name}.fio": job.text.encode() for job in jobs}
        | drive_files(drive),
        shift=0,
        limit_s=3600,
    )
    return {name: json.loads(data) for name, data in boot(guest, say).files.items()}


def in_simulator(drive: str, scheduler: str, job: Job) -> dict[str, Any]:
    """The result of a run, as in `headwaiter run --json`."""
    options = Options(nr_requests=NR_REQUESTS, pull_ahead=scheduler in KERNELS_OWN)
    with tempfile.TemporaryDirectory(prefix="headwaiter-agree-") as folder:
        path = Path(folder) / f"{job.name}.fio"
        path.write_text(job.text)
        device = open_drive(drive)
        work = read_workload(path, device, Reading())
        return summarise(simulate(scheduler, device, work.load, options=options))


def lab_figures(fio: dict[str, Any]) -> tuple[float, float]:
    """Throughput in MB/s up to the end of the last reader, and p99 latency in ms (the median reader's)."""
    reads = [job["read"] for job in fio["jobs"]]
    seconds = max(read["runtime"] for read in reads) / 1000
    p99 = sorted(read["clat_ns"]["percentile"]["99.000000"] / 1e6 for read in reads)
    return sum(read["io_bytes"] for read in reads) / 1e6 / seconds, p99[len(p99) // 2]


def sim_figures(result: dict[str, Any]) -> tuple[float, float]:
    """The same of the simulator."""
    p99 = sorted(task["lat_ms"]["p99"] for task in result["tasks"])
    return result["throughput_MBps"], p99[len(p99) // 2]


def compare(
    series: str, drive: str, schedulers: Sequence[str], jobs: Sequence[Job], say: Progress
) -> list[Row]:
    """A row for each scheduler (named as in the simulator) and job: both figures of both, and how far apart they are."""
    known = {**{f"hw-{name}": name for name in OURS}, **{name: name for name in KERNELS_OWN}}
    names = [name for name, simulated in known.items() if simulated in schedulers]
    unknown = set(schedulers) - set(known.values())
    if unknown:
        raise Problem(f"lab agree: {', '.join(sorted(unknown))}: not a scheduler that both have ({', '.join(known.values())})")
    found = in_lab(series, drive, names, jobs, say)
    rows = []
    for name in names:
        for job in jobs:
            say(f"simulating {known[name]}: {job.name}")
            lab_rate, lab_p99 = lab_figures(found[f"{name}/{job.name}"])
            sim_rate, sim_p99 = sim_figures(in_simulator(drive, known[name], job))
            rows.append({
                "kernel": series,
                "scheduler": name,
                "job": job.name,
                "lab_MBps": round(lab_rate, 3),
                "sim_MBps": round(sim_rate, 3),
                "throughput_off_percent": round(100 * (sim_rate / lab_rate - 1), 2),
                "lab_p99_ms": round(lab_p99, 3),
                "sim_p99_ms": round(sim_p99, 3),
                "p99_off_percent": round(100 * (sim_p99 / lab_p99 - 1), 2),
            })  # fmt: skip
    return rows
