# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The JSON output of the lab: schema "headwaiter-lab/1". See study/schema.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from headwaiter.base.records import Record, Says

LAB_SCHEMA: Literal["headwaiter-lab/1"] = "headwaiter-lab/1"


@dataclass(frozen=True, kw_only=True)
class LabDocument(Record):
    """`headwaiter lab run`"""

    schema: Annotated[Literal["headwaiter-lab/1"], Says("which rules it follows")] = LAB_SCHEMA
    experiment: Annotated[str, Says("name of the experiment")]
    results: Annotated[
        Sequence[Mapping[str, Any]], Says("a row for each result of the script: `kernel`, and the script's own fields")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow(Record):
    """The newest kernel of a series that apt's sources have."""

    series: Annotated[str, Says("the series")]
    release: Annotated[str, Says("the kernel's release")]
    headers: Annotated[bool, Says("it has headers, so that modules can be built for it")]
    built: Annotated[str, Says("`passed` if the modules could be built, else why not; empty where that was not tried")] = ""
    scripts: Annotated[Mapping[str, str], Says("of each script that was tried, `passed`, or what went wrong")] = field(
        default_factory=dict
    )


@dataclass(frozen=True, kw_only=True)
class KernelsDocument(Record):
    """`headwaiter lab kernels`"""

    schema: Annotated[Literal["headwaiter-lab/1"], Says("which rules it follows")] = LAB_SCHEMA
    system: Annotated[str, Says("whose compiler and sources these are, such as Debian 13")]
    results: Annotated[Sequence[KernelRow], Says("the kernels, the oldest first")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun(Record):
    """A row of the experiment `again`: what a program did in the lab."""

    what: Annotated[Literal["run"], Says("kind of row")] = "run"
    scheduler: Annotated[str, Says("the scheduler, by its name in the kernel")]
    apart_ms: Annotated[int, Says("how long after the one before each program began", "ms")]
    program: Annotated[str, Says("name of the program")]
    read_bytes: Annotated[int, Says("what it and its children had read from the disk")]
    written_bytes: Annotated[int, Says("what they had written, into the page cache or past it")]
    elapsed_s: Annotated[float, Says("how long it ran", "s")]
    ended: Annotated[bool, Says("it ended by itself")]
    names: Annotated[str, Says("what its processes are called")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramReplay(Record):
    """A row of the experiment `again`: the same program in a replay of what was recorded under another scheduler."""

    what: Annotated[Literal["replay"], Says("kind of row")] = "replay"
    scheduler: Annotated[str, Says("the scheduler, by its name in the kernel")]
    apart_ms: Annotated[int, Says("how long after the one before each program began", "ms")]
    program: Annotated[str, Says("name of the program")]
    goes_on: Annotated[bool, Says("programs go on for as long as was recorded; else the recorded work is done, and no more")]
    in_kernel: Annotated[bool, Says("with a kernel's conditions")]
    lab_mbps: Annotated[float, Says("what it got done in the lab", "MB/s", key="lab_MBps")]
    replay_mbps: Annotated[float, Says("and in the middle one of the replays", "MB/s", key="replay_MBps")]
    low_mbps: Annotated[float, Says("the lowest of them", "MB/s", key="low_MBps")]
    high_mbps: Annotated[float, Says("the highest of them", "MB/s", key="high_MBps")]
    off_percent: Annotated[float, Says("how far the middle one is off the lab", "%")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement(Record):
    """A job under a scheduler, in the lab and in the simulator."""

    kernel: Annotated[str, Says("series of the kernel")]
    drive: Annotated[str, Says("the drive's profile")]
    scheduler: Annotated[str, Says("the scheduler, by its name in the kernel")]
    job: Annotated[str, Says("name of the job; of a random one with its seed")]
    lab_mbps: Annotated[
        float,
        Says(
            "throughput in the lab: the sum over processes, each while it ran; of several runs that in the middle",
            "MB/s",
            key="lab_MBps",
        ),
    ]
    sim_mbps: Annotated[
        float,
        Says(
            "throughput in the simulator, of runs that begin as those in the lab: of several that in the middle",
            "MB/s",
            key="sim_MBps",
        ),
    ]
    throughput_off_percent: Annotated[float, Says("how far the simulator's is off the lab's", "%")]
    sim_low_mbps: Annotated[float, Says("the lowest of all simulated runs", "MB/s", key="sim_low_MBps")]
    sim_high_mbps: Annotated[float, Says("the highest of all simulated runs", "MB/s", key="sim_high_MBps")]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobComparison(Disagreement):
    """A job under a scheduler in both, and whether they agree."""

    range: Annotated[bool, Says("small changes of the load decide the simulator's result")]
    sim_middle_mbps: Annotated[
        float,
        Says(
            "throughput of the simulated run in the middle where they are a range, else `sim_MBps`",
            "MB/s",
            key="sim_middle_MBps",
        ),
    ]
    lab_p99_ms: Annotated[float, Says("99th percentile of latency in the lab", "ms")]
    sim_p99_ms: Annotated[float, Says("the same in the simulator", "ms")]
    p99_off_percent: Annotated[float, Says("how far the simulator's is off the lab's", "%")]
    sim_p99_low_ms: Annotated[float, Says("the lowest of all simulated runs", "ms")]
    sim_p99_high_ms: Annotated[float, Says("the highest of all simulated runs", "ms")]
    p99_range: Annotated[bool, Says("small changes of the load decide the simulator's 99th percentile")]
    lab_low_mbps: Annotated[
        float | None, Says("the lowest throughput of several runs in the lab; null of one", "MB/s", key="lab_low_MBps")
    ] = None
    lab_high_mbps: Annotated[float | None, Says("the highest of them", "MB/s", key="lab_high_MBps")] = None
    lab_met: Annotated[int | None, Says("A_S in the lab; null of the kernel's own schedulers")] = None
    lab_failed: Annotated[int | None, Says("A_F in the lab")] = None
    sim_met: Annotated[int | None, Says("A_S in the simulator")] = None
    sim_failed: Annotated[int | None, Says("A_F in the simulator")] = None
    agree: Annotated[bool, Says("both figures are close enough, or what they range over overlaps")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation(Record):
    """Differences of the simulator's throughput and 99th percentile from the lab's, in percent without sign, over all jobs."""

    scheduler: Annotated[str, Says("the scheduler, by its name in the kernel; or `all`")]
    comparisons: Annotated[int, Says("how many jobs")]
    median: Annotated[float, Says("median", "%")]
    p75: Annotated[float, Says("75th percentile", "%")]
    p90: Annotated[float, Says("90th percentile", "%")]
    largest: Annotated[float, Says("the largest", "%")]
    p90_beyond: Annotated[float, Says("90th percentile of the distance from the simulator's range", "%")]
    ranges: Annotated[int, Says("results that are ranges")]
    untold: Annotated[int, Says("results that are off by more than 30% and no range")]
    p99_median: Annotated[float, Says("median of the differences of the 99th percentile", "%")]
    p99_p90: Annotated[float, Says("their 90th percentile", "%")]
    p99_p90_beyond: Annotated[float, Says("90th percentile of their distance from the simulator's range", "%")]
    p99_ranges: Annotated[int, Says("results whose 99th percentile is a range")]
    p99_untold: Annotated[int, Says("results whose 99th percentile is off by more than 50% and no range")]


@dataclass(frozen=True, slots=True)
class Winner(Record):
    """The best scheduler on a job by throughput: in the lab by `lab_MBps`, in the simulator by `sim_middle_MBps`, as `compare`
    ranks.
    """

    kernel: Annotated[str, Says("series of the kernel")]
    drive: Annotated[str, Says("the drive's profile")]
    job: Annotated[str, Says("name of the job")]
    simulator: Annotated[str, Says("the best in the simulator")]
    lab: Annotated[str, Says("the best in the lab")]
    behind_percent: Annotated[float, Says("throughput lost in the lab with the simulator's choice", "%")]
    right: Annotated[bool, Says("no more than 5% is lost")]


@dataclass(frozen=True, kw_only=True)
class AgreementSummary(Record):
    """Differences of simulator and kernel over many jobs."""

    deviation_percent: Annotated[Sequence[Deviation], Says("a row for each scheduler, and one for all")]
    winners: Annotated[Sequence[Winner], Says("a row for each job on each kernel and drive")]
    winners_right: Annotated[int, Says("rows of `winners` that are right")]
    holds: Annotated[bool, Says("whether the bounds of docs/lab.md hold")]


@dataclass(frozen=True, kw_only=True)
class AgreeDocument(Record):
    """`headwaiter lab agree`"""

    schema: Annotated[Literal["headwaiter-lab/1"], Says("which rules it follows")] = LAB_SCHEMA
    experiment: Annotated[Literal["agree"], Says("name of the experiment")] = "agree"
    seed: Annotated[int | None, Says("of the first random job")] = None
    results: Annotated[Sequence[JobComparison], Says("a row for each job under each scheduler")]
    summary: Annotated[AgreementSummary | None, Says("of random jobs: the summary")] = None
    failures: Annotated[Sequence[Disagreement] | None, Says("of random jobs: those with disagreements")] = None


DOCUMENTS: tuple[type[Record], ...] = (
    LabDocument,
    KernelsDocument,
    AgreeDocument,
)
