# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Do the simulator and the kernel agree? The same fio job files, drive profile and schedulers in both.

In the lab fio itself uses the emulated disk; in the simulator the job file is a workload. Both let 64 requests exist at
once, under none as many as the device takes. The kernel's own schedulers decide one request ahead of the device, and who gets
a request is decided as blk-mq does: they are simulated so.

The simulator's processes issue their first I/O when the lab's did, on the guest's clock, and find the head where the lab's
did: so ticks and platter stand as they did there. Schedulers count in ticks, and one that falls between the first I/Os of two
readers can decide for good which of them follows which.

Where small changes decide the simulator's result, they decide the lab's, too: two runs of one job in one guest differ by as
much as 30%. Where that leaves open which scheduler is the best, the job runs several times in the lab, with a little more
processor time each time, and in the simulator as it began there. The run in the middle stands for it, on either side.

Throughput is the sum of what each process gets while it runs; p99 is of all that they wait in: I/Os of their own, and calls
that read or write through the page cache. fio sorts latencies into bins that are up to 1.6% wide.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headwaiter.base.errors import Problem
from headwaiter.drives import find_drive
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.engine.policy_tables import Setting
from headwaiter.engine.processor import MEASURED, processor_of_series
from headwaiter.engine.schedulers import catalogue, find
from headwaiter.engine.sim import Drive, Options, Outcome, simulate
from headwaiter.fio import JobLoad, load_jobs
from headwaiter.fio.jobs import Job as FioJob
from headwaiter.fio.layout import PAGE
from headwaiter.fio.mixed import mixed_job
from headwaiter.fio.parser import JobSection, parse
from headwaiter.lab.guest import Guest, boot
from headwaiter.lab.host import source_folder
from headwaiter.lab.kernels import Kernel, Progress, kernel, version_key
from headwaiter.lab.modules import build
from headwaiter.lab.schema import JobComparison
from headwaiter.lab.script import BASE_MODULES, drive_files, tool
from headwaiter.study.perturb import perturbed
from headwaiter.study.ranges import RANGE_SHARE, RUNS, spreads, typical
from headwaiter.study.results import latency_of_waits

NR_REQUESTS = 64
# From a process's call for its first I/O, which the guest notes, back to when its processor time for it began.
CALL_NS = 6_500
# Processor time of a process of fio before that, at most: in a trace of job 701 a completion 318 us before its first I/O finds it
# running, one 437 us before does not. Processes that start together do so 316 to 490 us after each other.
STARTUP_NS = 380_000
# Of that of the one before it, from its first call on.
SUBMIT_NS = 20_000
# What the emulated disk takes for a page of a write beyond that of a read. Writes are of zeros, which it does not store: else it
# would depend on whether a page is new.
WRITE_PAGE_NS = 2_060
# Of the processor's time, while a request is in the drive: the way back from there, and its interrupt; more under a scheduler.
# And until the next process has the processor. Measured on nvme-ssd, where readers and writers wait for nothing else.
MEANWHILE_NS, MEANWHILE_SCHEDULED_NS, MEANWHILE_PAGE_NS = 870, 1_500, 430
SWITCH_NS = 1_500
# A page of a block device's own page cache is made dirty, and written back, by its blocks: so long for it, and for each of them.
DIRTY_PAGE_NS = 3_600
DIRTY_BLOCK_NS = 1_300
# What the page cache takes for a page before it is read: a place in memory, and its entry.
FETCH_PAGE_NS = 3_400
# A request's; the blocks of the page cache are segments each.
MAX_SEGMENTS = 128
# Requests of a command of the device that blk-mq has when the disk appears, by which wbt takes its measure.
REQUESTS_PER_COMMAND = 2
# To run the queue again when a request is done: a worker is woken for it, to decide, or to find that it has to wait. Measured
# with two readers of one stretch, and with three of different ones.
RESTART_NS = 5_080
PASS_NS = 1_250
# What fio does around a sleep.
THINK_NS = 1_050
# Processor time of an I/O, beyond what `headwaiter lab run processor` measures under mq-deadline. There fio keeps statistics.
FIO_NS = -1_600
SCHEDULER_NS = {"none": -1_540, "kyber": 230, "bfq": 2_860, "noop": -400, "deadline": -200, "as-seek": 1_400, "as-share": 1_550,
                "cfq": 140, "cfq-slice": 370}  # fmt: skip
# Nor does fio spend its time on statistics of the disk. Its latencies are of all that a program waits for: under none the call
# that sends an I/O may wait for a tag, which fio's completion latency leaves out where several are under way.
PREFACE = "[global]\nzero_buffers=1\ndisk_util=0\nlat_percentiles=1\n\n"
TICK_NS = 4_000_000  # of Debian's kernels, and of the simulator, which counts them from 0
# The kernel's own first.
SCHEDULERS = tuple(sorted(catalogue(), key=lambda name: not catalogue()[name].is_model))
SCATTERED = 64  # reads before each job, past each other's read-ahead, to empty the drive's cache
SCATTER_SECTORS = 128  # of one of them
SCATTER_STRIDE_MIB = 64  # as in lab/guest/scatter.c
SCATTER_AHEAD_NS = 1_000_000_000
SECTORS_PER_MIB = 2048
LAB_RUNS = 3  # of what is in_doubt()
SECOND_DRIVE = "wd-re-4tb"  # for random jobs, beside the default
THROUGHPUT_BOUND_PERCENT = 3.0
P99_BOUND_PERCENT = 10.0


@dataclass(frozen=True)
class DiskJob:
    """A job file, all of whose jobs use the disk itself."""

    name: str
    text: str


@dataclass(frozen=True)
class ComparedFigures:
    """A figure that is compared."""

    throughput_mbps: float
    p99_ms: float
    waits: tuple[int, int] | None = None
    """Met, and failed; None of the kernel's own schedulers, which do not say."""


@dataclass(frozen=True)
class LabRun:
    """A run in the lab; `starts_ns` is when each of fio's processes issued its first I/O, in the order of their birth."""

    figures: ComparedFigures
    starts_ns: tuple[int, ...]


def reading(readers: int, random: bool, io_size: str = "832000k") -> DiskJob:
    """Readers far apart on the device, each 208 KiB at a time in sequence, or 4 KiB at random places.

    With 64 or 128 KiB, the one I/O of a turn that waits for all other readers would be about the hundredth, and the 99th
    percentile either that wait or none. With a power of two, the I/Os of a drive that reads 65 MB/s would be of as many ticks,
    and where they fall between ticks would stay the same for seconds.
    """
    load = ["rw=randread", "bs=4k", "runtime=120", "time_based", "norandommap"] if random else [
        "rw=read", "bs=208k", f"io_size={io_size}"]  # fmt: skip
    lines = ["[global]", "filename=/dev/sda", "ioengine=psync", "direct=1", "size=2g", "offset_increment=2g", *load]
    return DiskJob(
        f"{'random' if random else 'sequential'}-{readers}", "\n".join([*lines, "", "[reader]", f"numjobs={readers}", ""])
    )


JOBS = tuple(reading(readers, random) for random in (False, True) for readers in (1, 2, 4, 8))


def job_of_file(path: Path) -> DiskJob:
    """A job file for both; Problem if the lab cannot run it as the simulator does."""
    sections = parse(path)
    text = path.read_text(encoding="utf-8")
    for section in sections:
        _check(section, kept=re.search(r"^\s*invalidate\s*=\s*0\s*$", text, re.MULTILINE) is not None)
    if re.search(r"^\s*include\s", text, re.MULTILINE):
        raise Problem(f"{path}: includes a file, which the lab does not support")
    return DiskJob(path.stem, re.sub(r"^(\s*filename\s*=).*$", r"\1/dev/sda", text, flags=re.MULTILINE))


def mixed(seed: int, drive: str) -> DiskJob:
    """The random job of a seed (mixed.py) for a drive."""
    return DiskJob(f"mixed-{seed}", mixed_job(seed, open_drive(drive).sectors * SECTOR_BYTES))


_NOT_COMPARED = {
    "verify": "fio reads again within a process, the simulator in one of its own",
    "ramp_time": "fio leaves the ramp out of its figures",
    "zonemode": "fio's zones end where the device does",
}


def _check(section: JobSection, kept: bool) -> None:
    name = section.get("filename", "")
    if not name.startswith("/dev/") or ":" in name:
        raise section.at("filename").problem("the lab compares jobs on the disk itself: filename=/dev/sda")
    if not section.get("direct", False) and not kept:
        raise section.at("direct").problem("the lab compares I/O through the page cache with invalidate=0 only")
    for option, why in _NOT_COMPARED.items():
        if section.get(option) not in (None, False, 0, "none"):
            raise section.at(option).problem(f"option '{option}': {why}, so the lab does not compare it")


def in_lab(
    on: Kernel, drive: str, scheduler: str, jobs: Sequence[DiskJob], say: Progress, settings: Mapping[str, Setting] | None = None
) -> dict[str, LabRun]:
    """fio's figures by job, under a scheduler by its name in the simulator. Each has a guest to itself."""
    mine = find(scheduler)
    given = {f"/lab/set/{name}": mine.in_sysfs(name, value).encode() for name, value in (settings or {}).items()}
    guest = Guest(
        on,
        (source_folder() / "lab" / "agree" / "agree.sh").read_text(encoding="utf-8"),
        modules=BASE_MODULES,
        own_modules=build(on, say),
        programs=["fio", "chrt"],
        tools={"scatter": tool("scatter")},
        executables={"/lab/firstio.so": tool("firstio", preloaded=True)},
        environment={
            "DRIVE": Path(drive).stem,
            "SCHEDULER": mine.kernel_name,
            "SCATTER": "{} {}".format(*_scatter(drive)),
        },
        files={f"/lab/jobs/{job.name}.fio": (PREFACE + job.text).encode() for job in jobs} | drive_files(drive) | given,
        shift=0,
        hang_s=1800,  # a job says nothing before its end
        limit_s=7200,
    )
    files = boot(guest, say).files
    noted = {name: files[f"{name}.starts"].decode() for name in files if not name.endswith(".starts")}
    return {
        name: LabRun(dataclasses.replace(lab_figures(json.loads(files[name])), waits=lab_waits(text)), lab_starts(text))
        for name, text in noted.items()
    }


def _scatter(drive: str) -> tuple[int, int]:
    """The reads that empty the device's cache: where they begin (MiB), and how many; the last are at its end."""
    whole = open_drive(drive).sectors // SECTORS_PER_MIB
    count = min(SCATTERED, whole // SCATTER_STRIDE_MIB)
    return whole - count * SCATTER_STRIDE_MIB, count


def lab_figures(fio: Mapping[str, Any]) -> ComparedFigures:
    """Read the figures from fio's output as "json+"."""
    both = [job[way] for job in fio["jobs"] for way in ("read", "write") if job[way]["io_bytes"]]
    if not both:
        raise Problem("lab agree: fio did no I/O")
    bins: dict[int, int] = {}
    for one in both:
        for ns, count in one["lat_ns"]["bins"].items():
            bins[int(ns)] = bins.get(int(ns), 0) + count
    ns = np.array(sorted(bins))
    counts = np.array([bins[one] for one in ns.tolist()])
    p99_ns = ns[np.searchsorted(np.cumsum(counts), 0.99 * counts.sum())]
    rates = [process_rate(job) for job in fio["jobs"]]
    return ComparedFigures(sum(rates) / 1e6, float(p99_ns) / 1e6)


def process_rate(job: Mapping[str, Any]) -> float:
    """Bytes a second of a process in fio's output, from its begin to its end."""
    ms = max(job[way]["runtime"] for way in ("read", "write"))
    return 1000 * sum(job[way]["io_bytes"] for way in ("read", "write")) / ms if ms else 0.0


def _noted(text: str) -> dict[str, str]:
    return dict(line.split() for line in text.splitlines())


def lab_waits(text: str) -> tuple[int, int] | None:
    """Read the waits, met and failed, from the file of statistics."""
    noted = _noted(text)
    return (int(noted["A_S"]), int(noted["A_F"])) if "A_S" in noted else None


def lab_starts(text: str) -> tuple[int, ...]:
    """Read the starts that lab/agree/agree.sh noted, in ns since the guest's first tick."""
    noted = _noted(text)
    tick_ns = int(noted.pop("tick", 0)) % TICK_NS
    pids = sorted((pid for pid in noted if pid.isdecimal()), key=int)
    if not pids:
        raise Problem("lab agree: the start of fio was not recorded")
    return tuple(int(noted[pid]) - CALL_NS - tick_ns for pid in pids)


def start_as_measured(load: JobLoad, starts_ns: Sequence[int]) -> JobLoad:
    """Let processes that wait for no other begin when they did in the lab, as far as that is known."""
    later = {"start_min_ns": starts_ns[0], "start_max_ns": starts_ns[0]}
    jobs = [_with(job, **{key: job.fields[key] + ns for key, ns in (later | _thinking(job)).items()}) for job in load.jobs]
    walls = [i for i, job in enumerate(jobs) if i and job.fields["stonewall"]]
    free = [i for i in range(walls[0] if walls else len(jobs)) if jobs[i].fields["wait_for"] < 0]
    before_ns = -STARTUP_NS
    for i, start in zip(sorted(free, key=lambda i: jobs[i].fields["start_min_ns"]), starts_ns, strict=False):
        startup = max(0, min(STARTUP_NS, start - before_ns - SUBMIT_NS, start))
        jobs[i] = _with(jobs[i], start_min_ns=start - startup, start_max_ns=start - startup, startup_ns=startup)
        before_ns = start
    return dataclasses.replace(load, jobs=tuple(jobs))


def _thinking(job: FioJob) -> dict[str, int]:
    return {"think_ns": THINK_NS} if job.fields["think_ns"] else {}


def _with(job: FioJob, **fields: int) -> FioJob:
    return dataclasses.replace(job, fields={**job.fields, **fields})


def after_scatter(drive: str, starts_ns: Sequence[int]) -> tuple[int, int, int]:
    """The read that leaves the head where the lab's reads before a job did (Options.warm)."""
    first_mib, count = _scatter(drive)
    last_mib = first_mib + (count - 1) * SCATTER_STRIDE_MIB
    return max(0, starts_ns[0] - SCATTER_AHEAD_NS), last_mib * SECTORS_PER_MIB, SCATTER_SECTORS


@contextmanager
def _as_file(job: DiskJob) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="headwaiter-agree-") as folder:
        path = Path(folder) / f"{job.name}.fio"
        path.write_text(job.text, encoding="utf-8")
        yield path


def _load(job: DiskJob, device: Drive) -> JobLoad:
    """The job's processes; Problem if they do not fit on the drive."""
    with _as_file(job) as path:
        return load_jobs(path, device.sectors)


def as_in_kernel(scheduler: str, release: str) -> dict[str, int]:
    """The tunables that make a scheduler follow a kernel: the latest that it knows and that is not newer."""
    kernels = find(scheduler).tunables.get("kernel")
    if kernels is None:
        return {}
    older = [i for i, known in enumerate(kernels.choices) if version_key(known) <= version_key(release)]
    return {"kernel": max(older, default=0)}


@dataclass(frozen=True)
class Simulated:
    """The simulator's runs of a job: `own` are runs that begin as those in the lab did, `perturbed` are with small changes."""

    own: tuple[ComparedFigures, ...]
    perturbed: tuple[ComparedFigures, ...] = ()

    @property
    def figures(self) -> ComparedFigures:
        """Return the figures of the typical one among the runs that begin as the lab's."""
        return typical(self.own, _rate_of)

    @property
    def middle_mbps(self) -> float:
        """The throughput that `compare` would rank by: that of the run in the middle of all if they are a range."""
        return _rate_of(typical(self.own + self.perturbed, _rate_of))

    @property
    def low_mbps(self) -> float:
        """The lowest throughput of all."""
        return min(map(_rate_of, self.own + self.perturbed))

    @property
    def high_mbps(self) -> float:
        """The highest throughput of all."""
        return max(map(_rate_of, self.own + self.perturbed))

    @property
    def is_range(self) -> bool:
        """Do small changes of the load decide the result?"""
        return spreads(self.low_mbps, self.high_mbps, _rate_of(self.own[0]))

    @property
    def p99_range_ms(self) -> tuple[float, float]:
        """The lowest and the highest 99th percentile of all."""
        every = [one.p99_ms for one in self.own + self.perturbed]
        return min(every), max(every)

    @property
    def p99_is_range(self) -> bool:
        """Do small changes of the load decide the 99th percentile?"""
        return spreads(*self.p99_range_ms, self.own[0].p99_ms, P99_BOUND_PERCENT / 100)


def _rate_of(figures: ComparedFigures) -> float:
    return figures.throughput_mbps


def simulated(
    release: str,
    drive: str,
    scheduler: str,
    job: DiskJob,
    starts_ns: Sequence[int],
    runs: int,
    settings: Mapping[str, Setting] | None = None,
) -> Simulated:
    """The unperturbed run, and so many perturbed ones."""
    device = open_drive(drive)
    depth = find_drive(drive).facts[1]
    load = start_as_measured(_load(job, device), starts_ns)
    blocks = PAGE // cache_block_bytes(device.sectors)
    options = Options(
        nr_requests=depth if scheduler == "none" else NR_REQUESTS,
        pull_ahead=find(scheduler).is_model,
        one_processor=True,
        join_arriving=True,
        warm=after_scatter(drive, starts_ns),
        dispatch_write_page_ns=WRITE_PAGE_NS,
        restart_ns=RESTART_NS,
        pass_ns=PASS_NS,
        fetch_page_ns=FETCH_PAGE_NS,
        dirty_page_ns=DIRTY_PAGE_NS + blocks * DIRTY_BLOCK_NS,
        wbt_depth=REQUESTS_PER_COMMAND * depth,
        max_segments=MAX_SEGMENTS // blocks,
    )
    options = processor_of_series(release).apply(options)
    if not find_drive(drive).rotational:
        options = dataclasses.replace(
            options,
            # Without a scheduler a request goes there at once, on either kernel.
            dispatch_ns=MEASURED.dispatch.ns if scheduler == "none" else options.dispatch_ns,
            meanwhile_ns=MEANWHILE_NS if scheduler == "none" else MEANWHILE_SCHEDULED_NS,
            meanwhile_page_ns=MEANWHILE_PAGE_NS,
            switch_ns=SWITCH_NS,
        )
    options = dataclasses.replace(options, turnaround_ns=options.turnaround_ns + FIO_NS + SCHEDULER_NS.get(scheduler, 0))
    tunables = {**as_in_kernel(scheduler, release), **(settings or {})}
    processes = [job.fields["task"] for job in load.jobs]
    every = []
    for number in range(runs + 1):
        changed, otherwise = perturbed(load, options, number)
        every.append(_figures(simulate(scheduler, device, changed, tunables, otherwise), processes))
    return Simulated(tuple(every[:1]), tuple(every[1:]))


def cache_block_bytes(sectors: int) -> int:
    """The blocks of the page cache of a block device of so many sectors: the largest power of two up to a page of which it is a
    multiple (set_init_blocksize() in block/bdev.c)."""
    size = sectors * SECTOR_BYTES
    return min(size & -size, PAGE)


def _figures(run: Outcome, processes: Sequence[int]) -> ComparedFigures:
    rates = [sum(job.bytes) / (job.end_ns - job.begin_ns) for job in run.jobs if job.end_ns > job.begin_ns]
    p99_ms = latency_of_waits(run, processes).p99
    return ComparedFigures(sum(rates) * 1000, p99_ms, (run.totals["a_success"], run.totals["a_fail"]))


def _off_percent(simulated: float, measured: float) -> float:
    return 100 * (simulated / measured - 1)


def _overlap(measured: Sequence[float], low: float, high: float, slack_percent: float) -> bool:
    """Are some of what was measured in the range, or nearly so?"""
    slack = slack_percent / 100
    return low * (1 - slack) <= max(measured) and min(measured) <= high * (1 + slack)


def row(series: str, drive: str, scheduler: str, job: str, labs: Sequence[ComparedFigures], sim: Simulated) -> JobComparison:
    """A comparison, with its verdict: the typical figures are near enough, or a range was told that overlaps the lab's."""
    lab, found = typical(labs, _rate_of), sim.figures
    rates = [_rate_of(one) for one in labs]
    rate_off = _off_percent(found.throughput_mbps, lab.throughput_mbps)
    p99_off = _off_percent(found.p99_ms, lab.p99_ms)
    in_range = sim.is_range and _overlap(rates, sim.low_mbps, sim.high_mbps, THROUGHPUT_BOUND_PERCENT)
    p99_low, p99_high = sim.p99_range_ms
    p99_in_range = sim.p99_is_range and _overlap([one.p99_ms for one in labs], p99_low, p99_high, P99_BOUND_PERCENT)
    near = abs(rate_off) <= THROUGHPUT_BOUND_PERCENT and (abs(p99_off) <= P99_BOUND_PERCENT or p99_in_range)
    return JobComparison(
        kernel=series,
        drive=Path(drive).stem,
        scheduler=scheduler,
        job=job,
        lab_mbps=round(lab.throughput_mbps, 3),
        lab_low_mbps=round(min(rates), 3) if labs[1:] else None,
        lab_high_mbps=round(max(rates), 3) if labs[1:] else None,
        sim_mbps=round(found.throughput_mbps, 3),
        throughput_off_percent=round(rate_off, 2),
        sim_low_mbps=round(sim.low_mbps, 3),
        sim_high_mbps=round(sim.high_mbps, 3),
        sim_middle_mbps=round(sim.middle_mbps, 3),
        range=sim.is_range,
        lab_p99_ms=round(lab.p99_ms, 3),
        sim_p99_ms=round(found.p99_ms, 3),
        p99_off_percent=round(p99_off, 2),
        sim_p99_low_ms=round(p99_low, 3),
        sim_p99_high_ms=round(p99_high, 3),
        p99_range=sim.p99_is_range,
        lab_met=lab.waits[0] if lab.waits else None,
        lab_failed=lab.waits[1] if lab.waits else None,
        sim_met=found.waits[0] if lab.waits and found.waits else None,
        sim_failed=found.waits[1] if lab.waits and found.waits else None,
        agree=near or in_range,
    )


@dataclass
class JobTrial:
    """A job under a scheduler, by its name in the simulator: its runs in the lab, and what the simulator says of them."""

    scheduler: str
    job: DiskJob
    labs: list[ComparedFigures]
    sim: Simulated

    def row(self, series: str, drive: str) -> JobComparison:
        """The comparison."""
        return row(series, drive, find(self.scheduler).kernel_name, self.job.name, self.labs, self.sim)


@dataclass(frozen=True)
class JobBench:
    """The bench on which jobs are compared: a kernel, a drive, and what schedulers are given, by their names in the simulator."""

    on: Kernel
    drive: str
    given: Mapping[str, Mapping[str, Setting]]
    say: Progress

    def _lab(self, scheduler: str, jobs: Sequence[DiskJob]) -> dict[str, LabRun]:
        return in_lab(self.on, self.drive, scheduler, jobs, self.say, self.given.get(scheduler))

    def _sim(self, scheduler: str, job: DiskJob, found: LabRun, runs: int) -> Simulated:
        return simulated(self.on.release, self.drive, scheduler, job, found.starts_ns, runs, self.given.get(scheduler))

    def first(self, scheduler: str, jobs: Sequence[DiskJob], runs: int) -> list[JobTrial]:
        """Each job once in the lab; in the simulator with so many perturbed runs."""
        measured = self._lab(scheduler, jobs)
        self.say(f"simulating {scheduler}")
        return [
            JobTrial(scheduler, job, [found.figures], self._sim(scheduler, job, found, runs))
            for job in jobs
            for found in (measured[job.name],)
        ]

    def again(self, trials: Sequence[JobTrial], times: int) -> None:
        """Trials of one scheduler so many times again in the lab, and in the simulator as they began there."""
        repeated = {
            DiskJob(f"{trial.job.name}.{number}", trial.job.text): trial for trial in trials for number in range(2, times + 2)
        }
        if not repeated:
            return
        measured = self._lab(trials[0].scheduler, list(repeated))
        for job, trial in repeated.items():
            trial.labs.append(measured[job.name].figures)
            own = self._sim(trial.scheduler, trial.job, measured[job.name], 0).own
            trial.sim = dataclasses.replace(trial.sim, own=trial.sim.own + own)


def in_doubt(trials: Sequence[JobTrial]) -> list[JobTrial]:
    """Return the trials of a job whose result is a range, and among the best: further runs may decide which is the best."""
    near = 1 - RANGE_SHARE
    best_sim = max(_rate_of(trial.sim.figures) for trial in trials)
    best_lab = max(_rate_of(trial.labs[0]) for trial in trials)
    return [
        trial
        for trial in trials
        if trial.sim.is_range and (trial.sim.high_mbps >= near * best_sim or _rate_of(trial.labs[0]) >= near * best_lab)
    ]


def compare(
    series: str,
    drive: str,
    schedulers: Sequence[str],
    jobs: Sequence[DiskJob],
    say: Progress,
    runs: int = RUNS,
    settings: Mapping[str, Mapping[str, Setting]] | None = None,
    lab_runs: int = LAB_RUNS,
) -> list[JobComparison]:
    """A row for each scheduler (named as in the simulator) and job: the figures of both, and how far apart they are.

    runs: perturbed ones in the simulator. lab_runs: in the lab, of what is in_doubt(). settings: what a scheduler is given in
    both, by its name. The kernel's own schedulers have tunables of other names and units.
    """
    given = {name: dict(some) for name, some in (settings or {}).items() if some}
    if own := [name for name in given if find(name).is_model]:
        raise Problem(f"lab agree: --set: {own[0]} is the kernel's own in the lab, with tunables of its own")
    if unknown := [name for name in schedulers if name not in SCHEDULERS]:
        raise Problem(f"lab agree: {', '.join(unknown)}: not a scheduler of both kernel and simulator ({', '.join(SCHEDULERS)})")
    device = open_drive(drive)
    for job in jobs:
        _load(job, device)
    bench = JobBench(kernel(series, say), drive, given, say)
    # A guest needs one processor of the host's, and so does the simulator.
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        every = list(pool.map(lambda name: bench.first(name, jobs, runs), schedulers))
        doubtful = {id(trial) for of_job in zip(*every, strict=True) for trial in in_doubt(of_job)}
        list(pool.map(lambda trials: bench.again([t for t in trials if id(t) in doubtful], lab_runs - 1), every))
    return [trial.row(series, drive) for trials in every for trial in trials]
