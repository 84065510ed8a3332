# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The lab's half: bundled job files and real programs under schedulers in a real kernel, and what they got."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Any, Literal

from headwaiter.base.errors import Problem
from headwaiter.base.paths import WORKLOADS
from headwaiter.base.records import fields
from headwaiter.drives import Profile
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import Load
from headwaiter.experiments.workloads import prepared
from headwaiter.lab.guest import Guest, boot
from headwaiter.lab.host import source_folder, temporary_folder
from headwaiter.lab.script import guest, named_kernel, read
from headwaiter.papers.reproduce.bench import Bench
from headwaiter.study.schema import Anticipation
from headwaiter.study.workload import Reading, read_workload

KERNEL = "6.12"
SHARES = {"axboe-rand-read": 0.5, "axboe-reader-writer": 0.5, "iyer-shares": 0.5}
SHARE = 0.1
"""The guest runs this share of the simulator's run time, unless SHARES says otherwise, because it is emulated."""
PLACES = "filename=/dev/sda\nzero_buffers=1\noffset_increment=512m\n"
"""Jobs have places of the disk for their files: so far apart, and with nothing to remember of what is written."""


@dataclass(frozen=True)
class FioDone:
    """The work of a process, as fio tells it: MB/s, and its longest I/O in ms."""

    name: str
    op: Literal["read", "write"]
    throughput_mbps: float
    longest_ms: float


@dataclass(frozen=True)
class ProgramsRan:
    """The outcome of a workload of real programs: its time, MB/s of the disk, and figures of its own by name; means of runs."""

    elapsed_s: float
    throughput_mbps: float
    figures: Mapping[str, float]
    spread: float = 0.0
    """The standard deviation of the runs' times, by their mean."""


def kernel_variant(bench: Bench, text: str) -> str:
    """A scheduler with its settings, and with those of the bench, as library.sh's variant() takes it."""
    variant = bench.variant(text)
    policy = find(variant.scheduler)
    return ":".join([policy.kernel_name, *(f"{name}={policy.show(name, value)}" for name, value in variant.settings.items())])


def _machine(bench: Bench, script: str, drive: str | Profile, given: Mapping[str, str]) -> Guest:
    name, profile = (drive, None) if isinstance(drive, str) else (drive.name, drive)
    named = {"DRIVE": name, **given}
    machine = guest(read(script), named_kernel(KERNEL, bench.say), named, bench.say, profile)
    return replace(machine, hang_s=1800, limit_s=7200)


def _variants(bench: Bench, schedulers: Iterable[str]) -> str:
    return " ".join(kernel_variant(bench, one) for one in schedulers)


def job_text(bench: Bench, name: str, change: Mapping[str, str]) -> str:
    """A bundled job file for the lab, at the bench's scale."""
    text = (WORKLOADS / f"{name}.fio").read_text(encoding="utf-8")
    for old, new in change.items():
        assert old in text, old
        text = text.replace(old, new)
    return replace(bench, scale=bench.scale * SHARES.get(name, SHARE)).scaled(text.replace("[global]\n", f"[global]\n{PLACES}"))


def run_job_files(
    bench: Bench, jobs: Mapping[str, str], drive: str | Profile, schedulers: Sequence[str]
) -> dict[str, dict[str, list[FioDone]]]:
    """Run job files, texts by name, under each scheduler; return what each process of each did.

    Problem if the lab cannot run, or fio fails.
    """
    machine = _machine(bench, "published", drive, {"VARIANTS": _variants(bench, schedulers)})
    packed = {f"/lab/jobs/{name}.fio": text.encode() for name, text in jobs.items()}
    files = boot(replace(machine, files=machine.files | packed), bench.say).files
    return {one: {name: told(files[f"{i}.{name}"]) for name in jobs} for i, one in enumerate(schedulers)}


def run_jobs(
    bench: Bench, name: str, drive: str | Profile, schedulers: Sequence[str], change: Mapping[str, str]
) -> dict[str, list[FioDone]]:
    """Run a bundled job file under each scheduler; return what each process did. Problem as run_job_files()."""
    found = run_job_files(bench, {name: job_text(bench, name, change)}, drive, schedulers)
    return {one: of[name] for one, of in found.items()}


def told(output: bytes) -> list[FioDone]:
    """Read fio's JSON: a row for each process and direction in which it did something."""
    try:
        jobs: list[dict[str, Any]] = json.loads(output)["jobs"]
        return [
            FioDone(job["jobname"], way, job[way]["bw_bytes"] / 1e6, job[way]["lat_ns"]["max"] / 1e6)
            for job in jobs for way in _WAYS if job[way]["io_bytes"]
        ]  # fmt: skip
    except (ValueError, KeyError, TypeError) as e:
        raise Problem(f"lab: fio's output is not as expected: {e}") from None


_WAYS: tuple[Literal["read", "write"], ...] = ("read", "write")


def run_programs(
    bench: Bench,
    name: str,
    drive: str | Profile,
    schedulers: Sequence[str],
    parameters: Mapping[str, int | str] = MappingProxyType({}),
    files: Mapping[str, bytes] = MappingProxyType({}),
    runs: int = 1,
) -> dict[str, ProgramsRan]:
    """Run lab/published/NAME.sh under each scheduler, with those parameters as variables and those files.

    The mean of so many runs. Problem if the lab cannot run, or a program fails.
    """
    machine = _machine(bench, "programs", drive, {"VARIANTS": _variants(bench, schedulers)})
    workload = (source_folder() / "lab" / "published" / f"{name}.sh").read_bytes()
    packed = {**machine.files, "/lab/workload.sh": workload, **files}
    environment = machine.environment | {key: str(value) for key, value in {**parameters, "RUNS": runs}.items()}
    lines = boot(replace(machine, files=packed, environment=environment), bench.say).files["results"].decode().splitlines()
    found = [mean([ran(line) for line in lines[i : i + runs]]) for i in range(0, len(lines), runs)]
    return dict(zip(schedulers, found, strict=True))


def ran(line: str) -> ProgramsRan:
    """Read a result of lab/experiments/programs/programs.sh."""
    found = json.loads(line)
    known = ("variant", "run", "elapsed_s", "throughput_mbps")
    figures = {key: float(value) for key, value in found.items() if key not in known}
    return ProgramsRan(found["elapsed_s"], found["throughput_mbps"], figures)


def mean(runs: Sequence[ProgramsRan]) -> ProgramsRan:
    """Return the mean of each figure, and how far the times lie apart."""
    figures = {key: fmean(run.figures[key] for run in runs) for key in runs[0].figures}
    times = [run.elapsed_s for run in runs]
    spread = stdev(times) / fmean(times) if len(times) > 1 else 0.0
    return ProgramsRan(fmean(times), fmean(run.throughput_mbps for run in runs), figures, spread)


@dataclass(frozen=True)
class Waited:
    """The outcome of a workload of `workloads`: its time, MB/s of the disk, and the waits of a scheduler that has some."""

    elapsed_s: float
    throughput_mbps: float
    waits: Anticipation | None


def run_workload(
    bench: Bench,
    name: str,
    drive: str,
    schedulers: Sequence[str],
    configs: Mapping[str, str] = MappingProxyType({}),
    parameters: Mapping[str, int | str] = MappingProxyType({}),
    runs: int | Sequence[int] = 1,
    sizes: Mapping[str, float] = MappingProxyType({}),
    seed: int = 0,
) -> dict[str, list[Waited]]:
    """Run one of the eight workloads under each scheduler. A scheduler's text may say config=NAME, of `configs`.

    `runs`: how often, all of them or each. `sizes` are of the workload (headwaiter.experiments.workloads), in place of its own,
    `seed` is its draw. Problem if the lab cannot run, or a program fails.
    """
    files = {f"/lab/configs/{key}": text.encode() for key, text in configs.items()}
    often = [runs] * len(schedulers) if isinstance(runs, int) else runs
    each = [one for one, times in zip(schedulers, often, strict=True) for _ in range(times)]
    given = {"WORKLOADS": name, "SCHEDULERS": " ".join(_kernel_configured(bench, one) for one in each)}
    given |= {key: str(value) for key, value in parameters.items()}
    machine = prepared(_machine(bench, "workloads", drive, given), name, _part(bench), sizes, seed)
    results = boot(replace(machine, files=machine.files | files), bench.say).files["results"]
    found: dict[str, list[Waited]] = {one: [] for one in schedulers}
    for one, line in zip(each, results.decode().splitlines(), strict=True):
        found[one].append(waited(line))
    return found


def record_workload(
    bench: Bench,
    name: str,
    drive: str,
    scheduler: str,
    runs: int = 1,
    sizes: Mapping[str, float] = MappingProxyType({}),
    seed: int = 0,
) -> list[Load]:
    """One of the eight workloads so often under a scheduler, as blktrace records it in the guest. Problem as run_workload()."""
    given = {"WORKLOADS": name, "SCHEDULERS": " ".join([kernel_variant(bench, scheduler)] * runs), "RECORD": "1"}
    found = boot(prepared(_machine(bench, "workloads", drive, given), name, _part(bench), sizes, seed), bench.say).files
    loads = []
    with temporary_folder() as folder:
        for run in range(runs):
            path = folder / f"{name}.{run}.blktrace.0"
            path.write_bytes(found[path.name])
            loads.append(read_workload(path, bench.drive(drive), Reading()).load)
    return loads


def _part(bench: Bench) -> int:
    """By how much the sizes of workloads are divided."""
    return max(1, round(1 / bench.scale))


def _kernel_configured(bench: Bench, text: str) -> str:
    plain, _, config = text.partition(":config=")
    variant = kernel_variant(bench, plain)
    return f"{variant}:config=/lab/configs/{config}" if config else variant


def waited(line: str) -> Waited:
    """Read a result of lab/experiments/workloads/workloads.sh."""
    found = json.loads(line)
    of_waits = {field.name: found.get(field.key) for field in fields(Anticipation)}
    return Waited(found["elapsed_s"], found["throughput_MBps"], Anticipation(**of_waits) if found.get("A") else None)
