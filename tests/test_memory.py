# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A run needs no more memory the longer it is, says what that costs in exactness, and tells beforehand how long it will take."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from handmade import printed

from headwaiter.base import reading
from headwaiter.base.errors import Problem
from headwaiter.cli.compare import command as compare_command
from headwaiter.cli.run import command as run_command
from headwaiter.drives.choose import open_drive
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.schedulers import catalogue
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task, simulate
from headwaiter.fio import load_jobs
from headwaiter.judge import conditions
from headwaiter.study import cost
from headwaiter.study.cost import announcement, estimated_ios, plan
from headwaiter.study.results import summarise

MS = 1_000_000
GIB = 1 << 30
SCRIPT = """
import sys
from pathlib import Path
from headwaiter.drives.choose import open_drive
from headwaiter.fio import load_jobs
from headwaiter.study.results import summarise
from headwaiter.engine.sim import Options, simulate
job, scheduler, log = sys.argv[1:]
drive = open_drive("sata-ssd")
run = simulate(scheduler, drive, load_jobs(Path(job), drive.sectors), None, Options(exact=5000),
               Path("/dev/null") if log == "log" else None)
print(summarise(run).requests)
"""
# Everything that a job can do; files are small, because the page cache and the random map are as large as what they cover.
BUSY = """[global]
time_based
runtime={ms}ms
size=8m
bs=4k
[direct]
direct=1
rw=randrw
ioengine=libaio
iodepth=8
numjobs=3
[read]
rw=read
[write]
rw=write
[synced]
rw=randwrite
fsync=8
"""


def peak(tmp_path: Path, scheduler: str, ms: int, log: str) -> tuple[int, int]:
    """I/Os of a run in a process of its own, and the most memory that it had, in KiB."""
    job = tmp_path / "j.fio"
    job.write_text(BUSY.format(ms=ms))
    process = subprocess.Popen([sys.executable, "-P", "-c", SCRIPT, str(job), scheduler, log], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    ios = int(process.stdout.read())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0
    return ios, used.ru_maxrss


@pytest.mark.parametrize(
    ("scheduler", "log"),
    [
        ("noop", ""),
        ("bfq", "log"),
        *(pytest.param(name, log, marks=pytest.mark.thorough) for name in catalogue() for log in ("", "log")),
    ],
)
def test_memory_is_flat_in_the_length_of_a_run(tmp_path: Path, scheduler: str, log: str) -> None:
    """Eight times as many I/Os, and no more memory: a byte for each of them would be seen."""
    few, little = peak(tmp_path, scheduler, 1000, log)
    many, much = peak(tmp_path, scheduler, 8000, log)
    assert many > 7 * few > 70_000
    assert (much - little) * 1024 < 2 * (many - few)


def scattered(n: int, seed: int = 1) -> Forest:
    """I/Os of four tasks, alone on the drive, that take from 1 ns to a quarter of an hour: as many of each magnitude."""
    dice = np.random.default_rng(seed)
    service = np.exp(dice.uniform(0, np.log(1e12), n)).astype(np.int64)
    service[: n // 4] = dice.integers(1, 5000, n // 4)
    zeros = np.zeros(n, np.int64)
    return Forest(
        [Task(i, f"t{i}", i // 2) for i in range(4)],
        zeros,
        np.arange(n) - 1,
        zeros,
        dice.integers(0, 4, n).astype(np.uint32),
        dice.integers(0, 3, n).astype(np.uint8),
        np.zeros(n, np.uint8),
        np.arange(n, dtype=np.uint64) * 8,
        dice.integers(1, 9, n).astype(np.uint32),
        np.zeros(n, np.uint16),
        service,
    )


def figures(load: Forest, exact: int) -> dict[str, Any]:
    return printed(summarise(simulate("noop", ConstantDrive(MS), load, options=Options(merging=False, exact=exact))))


@pytest.mark.parametrize("exact", [1, 100, 19_999])
def test_percentiles_of_intervals_are_as_near_as_is_said(exact: int) -> None:
    """All else is the same to the last digit; a percentile is the one that occurred, but for the error."""
    load = scattered(20_000)
    true, near = figures(load, 20_000), figures(load, exact)
    assert "lat_relative_error" not in true
    error = near.pop("lat_relative_error")
    assert error == 1 / 2048
    differing = 0
    parts = [(true[op], near[op]) for op in ("read", "write")]
    parts += [pair for rows in ("tasks", "groups") for pair in zip(true[rows], near[rows], strict=True)]
    assert len(parts) == 2 + 12 + 2
    for right, found in parts:
        for name, ms in right["lat_ms"].items():
            if name in ("mean", "max"):
                assert found["lat_ms"][name] == ms
            else:
                assert abs(found["lat_ms"][name] - ms) <= error * ms
                differing += found["lat_ms"][name] != ms
                found["lat_ms"][name] = ms
    assert differing > 20, "so many distinct latencies do not have an interval each"
    assert near == true


def test_percentiles_are_those_of_the_rows() -> None:
    """Another program counts them from the I/Os themselves."""
    load = scattered(5000, 2)
    run = simulate("noop", ConstantDrive(MS), load, options=Options(merging=False, record=True))
    result = printed(summarise(run))
    latency = run.rows.complete_ns - run.rows.issue_ns
    for name, which in (("p50", 50), ("p95", 95), ("p99", 99), ("p99_9", 99.9)):
        expected = np.percentile(latency[run.rows.op == 0], which, method="inverted_cdf")
        assert result["read"]["lat_ms"][name] == expected / 1e6
    for row in result["tasks"]:
        own = latency[(run.rows.task == row["task"]) & (run.rows.op == ("read", "write", "discard").index(row["op"]))]
        assert row["requests"] == len(own) and row["lat_ms"]["max"] == own.max() / 1e6
        assert row["lat_ms"]["mean"] == pytest.approx(own.mean() / 1e6, rel=1e-12)
        assert row["lat_ms"]["p99"] == np.percentile(own, 99, method="inverted_cdf") / 1e6


def test_a_sum_beyond_64_bits() -> None:
    """A hundred I/Os wait for a hundred years each."""
    n, century = 100, 100 * 365 * 86400 * 10**9
    zeros = np.zeros(n, np.int64)
    load = Forest(
        [Task(0, "t", 0)],
        zeros,
        zeros - 1,
        zeros,
        zeros.astype(np.uint32),
        zeros.astype(np.uint8),
        zeros.astype(np.uint8),
        np.arange(n, dtype=np.uint64),
        np.ones(n, np.uint32),
        zeros.astype(np.uint16),
        np.where(np.arange(n) == 0, century, 1),
    )
    assert figures(load, n)["read"]["lat_ms"]["mean"] == pytest.approx((century + (n - 1) / 2) / 1e6, rel=1e-12)


def test_the_last_interval_is_no_longer_than_the_longest() -> None:
    load = scattered(3000, 3)
    for row in figures(load, 1)["tasks"]:
        assert row["lat_ms"]["p99_9"] <= row["lat_ms"]["max"]


def test_a_note_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = tmp_path / "j.fio"
    job.write_text("[global]\nfilename=/dev/sda\ndirect=1\nrw=randread\nnumber_ios=101\n[a]\n")
    options = conditions.RunConditions.options
    for exact, told in ((100, True), (101, False)):
        monkeypatch.setattr(
            conditions.RunConditions, "options", lambda *given, e=exact, of=options: dataclasses.replace(of(*given), exact=e)
        )
        for command, words in ((run_command, ["-s", "as"]), (compare_command, ["-s", "as,noop"])):
            said = CliRunner().invoke(command, [str(job), *words, "--seeds", "0"]).stdout
            assert ("Note: with more than 100 I/Os, percentiles of latency are accurate to 0.049%." in said) == told
            document = json.loads(CliRunner().invoke(command, [str(job), *words, "--json", "--seeds", "0"]).stdout)
            assert [r.get("lat_relative_error") for r in document["results"]] == [1 / 2048 if told else None] * len(
                document["results"]
            )


def jobs(tmp_path: Path, text: str, drive: str = "constant:1") -> tuple[float, int]:
    """(how many I/Os were estimated, how many there were under as)."""
    path = tmp_path / "j.fio"
    path.write_text(f"[global]\ndirect=1\nfilename=/dev/sda\nbs=4k\n{text}")
    device, options = open_drive(drive), MEASURED.apply(Options())
    load = load_jobs(path, device.sectors)
    return estimated_ios(load, device, options), simulate("as", device, load, options=options).totals["issued"]


@pytest.mark.parametrize(
    "text",
    [
        "rw=randread\nsize=4m\n[a]\n",
        "rw=randread\nsize=4m\nnumjobs=3\nloops=2\n[a]\n[b]\nstonewall\nio_size=9m\n",
        "rw=read\nbs=64k\nsize=1g\nnumber_ios=77\n[a]\n",
        "rw=randread\nsize=4m\nio_size=1m\nloops=3\n[a]\n",
        "rw=read\nsize=1g\nnumber_ios=40\nloops=3\n[a]\n",
    ],
)
def test_ios_are_estimated_by_size(tmp_path: Path, text: str) -> None:
    estimated, issued = jobs(tmp_path, text)
    assert estimated == issued


@pytest.mark.parametrize("drive", ["constant:1", "barracuda-80g", "sata-ssd"])
@pytest.mark.parametrize(
    "text",
    [
        "rw=randread\nruntime=3\n[a]\n",
        "rw=read\nruntime=1\n[a]\n",
        "time_based\nruntime=1\nrw=randread\nioengine=libaio\niodepth=16\nnumjobs=2\n[a]\n[b]\nstonewall\nrw=write\n",
        "runtime=1\nrw=randread\nthinktime=10ms\n[a]\n",
        "runtime=1\nrw=read\nrate=1m\n[a]\n",
        "runtime=1\nrw=randrw\nrwmixread=80\nsize=10g\n[a]\n",
        "runtime=1\nrw=randread\n[a]\n" + "".join(f"[{k}]\nstonewall\n" for k in range(7)),
    ],
)
def test_ios_are_estimated_by_runtime(tmp_path: Path, text: str, drive: str) -> None:
    """Within a factor of three: that is enough to know whether to wait."""
    estimated, issued = jobs(tmp_path, text, drive)
    assert issued / 3 <= estimated <= 3 * issued


def trace(n: int) -> Forest:
    """As many rows, of which only the number matters."""
    times, bytes_, numbers = np.zeros(n, np.int64), np.zeros(n, np.uint8), np.zeros(n, np.uint32)
    sectors, ioprio = np.zeros(n, np.uint64), np.zeros(n, np.uint16)
    return Forest([Task(0, "t", 0)], times, times, times, numbers, bytes_, bytes_, sectors, numbers, ioprio)


@pytest.mark.parametrize(
    ("ios", "schedulers", "runs", "said"),
    [
        (6_600_000, 1, None, ""),
        (6_700_000, 1, None, "about 6.7 million I/Os, about 10 seconds; Ctrl-C stops it"),
        (20_000_000, 1, 0, "about 20 million I/Os, about 30 seconds; Ctrl-C stops it"),
        (20_000_000, 13, 0, "13 runs of about 20 million I/Os each, about 3.2 minutes; Ctrl-C stops it"),
        (20_000_000, 2, 4, "10 runs of about 20 million I/Os each, about 2.5 minutes; Ctrl-C stops it"),
        (100_000, 13, None, ""),
        (200_000, 13, None, "117 runs of about 200,000 I/Os each, about 18 seconds; Ctrl-C stops it"),
        (200_001, 13, None, ""),
    ],
)
def test_what_is_told(monkeypatch: pytest.MonkeyPatch, ios: int, schedulers: int, runs: int | None, said: str) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(cost, "estimated_ios", lambda *_: float(ios))
    assert announcement(plan(trace(1), ConstantDrive(MS), Options(), schedulers, runs)) == said


def test_large_numbers_are_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for ios, said in ((3e9, "about 3 billion I/Os, about 75 minutes"), (8.4e9, "about 8.4 billion I/Os, about 3.5 hours"),
                      (3.17e12, "about 3,200 billion I/Os, about 55 days")):  # fmt: skip
        monkeypatch.setattr(cost, "estimated_ios", lambda *_, ios=ios: ios)
        assert announcement(plan(trace(1), ConstantDrive(MS), Options(), 1, 0)) == f"{said}; Ctrl-C stops it"


def test_rows_of_a_trace_are_counted() -> None:
    assert estimated_ios(trace(12), ConstantDrive(MS), Options()) == 12


@pytest.mark.parametrize(("command", "words"), [(run_command, ["-s", "as"]), (compare_command, ["-s", "as,noop"])])
def test_stdout_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: object, words: list[str]) -> None:
    job = tmp_path / "j.fio"
    job.write_text("[global]\nfilename=/dev/sda\ndirect=1\nrw=randread\nnumber_ios=10\n[a]\n")
    silent = CliRunner().invoke(command, [str(job), *words])  # type: ignore[arg-type]
    monkeypatch.setattr(cost, "LONG_S", 0.0)
    told = CliRunner().invoke(command, [str(job), *words])  # type: ignore[arg-type]
    assert silent.exit_code == told.exit_code == 0
    assert silent.stderr == "" and silent.stdout == told.stdout
    assert told.stderr.endswith("about 10 I/Os each, about 0 seconds; Ctrl-C stops it\n")


def test_a_log_that_cannot_be_written_ends_the_run() -> None:
    """At once, and not after hours."""
    n, done = 1_000_000, [0]
    zeros = np.zeros(n, np.int64)
    load = Forest(
        [Task(0, "t", 0)],
        zeros,
        np.arange(n) - 1,
        zeros,
        zeros.astype(np.uint32),
        zeros.astype(np.uint8),
        zeros.astype(np.uint8),
        np.arange(n, dtype=np.uint64),
        np.ones(n, np.uint32),
        zeros.astype(np.uint16),
    )
    with pytest.raises(Problem, match=r"^/dev/full: No space left on device$"):
        simulate("noop", ConstantDrive(MS), load, log=Path("/dev/full"), progress=done.append)
    assert done[-1] < 50_000


POLICY = """
import resource
from headwaiter.engine.policy import Policy, Request
from headwaiter.base.errors import Problem
policy = Policy("{name}", nr_requests=0)
policy.start_task(0, 0)
# What cffi makes at the first call of each function is there before memory ends.
policy.insert(Request(0, 8, 0), 0)
policy.complete(policy.dispatch(0), 0)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20),) * 2)
inserted, why = 0, ""
try:
    while True:
        policy.insert(Request(8 * inserted, 8, 0), inserted)
        inserted += 1
except Problem as e:
    why = str(e)
assert inserted > 10_000, inserted
assert "insertion of" in why and why.endswith("out of memory"), why
for number in range(10):
    request = policy.dispatch(inserted + number)
    policy.complete(request, inserted + number)
policy.insert(Request(8, 8, 0), inserted + 10)
"""


@pytest.mark.thorough
def test_no_room_for_the_number_of_a_request() -> None:
    """The table of requests by number grows even where each is complete before the next comes."""
    each = "policy.insert(Request(8, 8, 0), inserted); policy.complete(policy.dispatch(inserted), inserted)"
    script = POLICY.format(name="noop").replace("policy.insert(Request(8 * inserted, 8, 0), inserted)", each)
    script = script.replace("8 << 20", "3 << 20").partition("for number in")[0]
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["noop", "mq-deadline", "bfq"])
def test_a_policy_by_itself_survives_the_end_of_memory(name: str) -> None:
    """An insertion for which there is no memory has not happened, and the next may."""
    done = subprocess.run([sys.executable, "-P", "-c", POLICY.format(name=name)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("limit_mib", "group", "free_mib"),
    [
        (-1, {}, 4096),
        (1024, {}, 1024 - 600),
        (500, {}, 0),
        (-1, {"memory.max": 2048, "memory.current": 1500}, 548),
        (-1, {"memory.max": 2048}, 2048),
        (1024, {"memory.max": 2048, "memory.current": 1900}, 148),
    ],
)
def test_free_memory_is_what_is_left_of_each_limit(
    monkeypatch: pytest.MonkeyPatch, limit_mib: int, group: dict[str, int], free_mib: int
) -> None:
    """The machine has 4 GiB free, and the process 600 MiB of addresses."""
    limit = resource.RLIM_INFINITY if limit_mib < 0 else limit_mib << 20
    monkeypatch.setattr(resource, "getrlimit", lambda what: (limit, limit))
    monkeypatch.setattr(reading, "_meminfo", lambda: 4 << 30)
    monkeypatch.setattr(reading, "_address_space", lambda: 600 << 20)
    monkeypatch.setattr(reading, "_number", lambda path: group[name] << 20 if (name := Path(path).name) in group else None)
    assert reading.free_memory_bytes() == free_mib << 20
