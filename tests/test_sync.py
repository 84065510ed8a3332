# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long programs wait for what they have written to be on the medium: fsync of job files, flushes of recordings."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import good, told, write

import headwaiter
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import Op
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Outcome, Task, simulate
from headwaiter.fio import load_jobs
from headwaiter.study.results import summarise

MS = 1_000_000
LOG = "[log]\nrw=write\nioengine=sync\nfdatasync=1\nsize=64k\nbs=2300\n"


def sync_of(folder: Path, text: str, **options: Any) -> Any:
    load = load_jobs(write(folder / "x.fio", text), 1 << 30)
    return summarise(simulate("mq-deadline", ConstantDrive(5 * MS), load, options=Options(**options))).sync


def test_each_call_is_counted_from_begin_to_end(tmp_path: Path) -> None:
    """A write of one page, and a drive that takes 5 ms for each."""
    sync = sync_of(tmp_path, "[a]\nrw=write\nsize=40k\nfsync=1\n")
    assert sync.calls == 9, "as in fio none follows the last write"
    assert sync.lat_ms.mean == sync.lat_ms.p50 == sync.lat_ms.p99 == sync.lat_ms.max == 5.0


def test_every_job_has_a_row(tmp_path: Path) -> None:
    sync = sync_of(
        tmp_path, "[a]\nrw=write\nsize=40k\nfsync=2\n[b]\nrw=write\nsize=40k\n[c]\nstonewall\nrw=write\nsize=40k\nfsync=4\n"
    )
    assert [(row.task, row.name, row.calls) for row in sync.tasks] == [(0, "a", 4), (2, "c", 2)]
    assert sync.calls == 6 and sync.tasks[1].lat_ms.max == 5.0
    assert sync.lat_ms.max == max(row.lat_ms.max for row in sync.tasks)


@pytest.mark.parametrize("more", ["", "end_fsync=1\n", "fsync_on_close=1\n", "sync=1\n", "direct=1\n"])
def test_where_there_are_none_there_is_no_figure(tmp_path: Path, more: str) -> None:
    """fio counts neither the call at the end nor a write that waits by itself."""
    assert sync_of(tmp_path, "[a]\nrw=write\nsize=40k\n" + more) is None


FLUSHED = """model = "ssd"
[geometry]
sectors = 1000000
channels = 1
ways = 1
[timing]
page_read = 0.05
page_program = 0.5
block_erase = 3
[flush]
"""


@pytest.mark.parametrize(
    ("flush", "ms"),
    [("time = 1.5", 1.5), ("time = 0", 0.5), ("protected = true", 0.0), ("time = 1\ntime_slow = 4\nslow_share = 1", 4.0)],
)
@pytest.mark.parametrize("option", ["fsync", "fdatasync"])
def test_direct_writes_are_flushed_as_the_drive_does_it(tmp_path: Path, option: str, flush: str, ms: float) -> None:
    """Nothing is in the page cache, so the call is a flush: of the time that the profile says, or of a program."""
    drive = open_drive(str(write(tmp_path / "drive.toml", FLUSHED + flush)))
    load = load_jobs(write(tmp_path / "x.fio", f"[a]\nrw=randwrite\nbs=4k\nsize=40k\ndirect=1\n{option}=1\n"), 1 << 28)
    result = summarise(simulate("none", drive, load))
    assert result.sync and result.sync.calls == 9, "as in fio none follows the last write"
    assert result.sync.lat_ms.p50 == pytest.approx(ms, abs=0.05)
    assert result.write and result.write.lat_ms.p50 == pytest.approx(0, abs=0.05), "the write itself is told apart"


def test_a_direct_call_waits_with_others_in_flight(tmp_path: Path) -> None:
    drive = open_drive(str(write(tmp_path / "drive.toml", FLUSHED + "time = 1")))
    text = "[a]\nrw=randwrite\nbs=4k\nsize=160k\ndirect=1\nioengine=libaio\niodepth=8\nfsync=4\nend_fsync=1\n"
    result = summarise(simulate("none", drive, load_jobs(write(tmp_path / "x.fio", text), 1 << 28)))
    assert result.sync and result.sync.calls == 9 and result.requests == 40


def test_many_calls_are_counted_in_intervals(tmp_path: Path) -> None:
    exact, coarse = (sync_of(tmp_path, "[a]\nrw=write\nsize=4m\nfsync=1\n", exact=n) for n in (10_000, 10))
    assert exact.calls == coarse.calls == 1023
    assert coarse.lat_ms.p99 == pytest.approx(exact.lat_ms.p99, rel=1 / 2048) and coarse.lat_ms.max == exact.lat_ms.max


def flushed(write_cache: bool) -> Outcome:
    """Two tasks; the first writes, flushes at 20 ms and reads."""
    op = np.array([Op.WRITE, Op.FLUSH, Op.READ], np.uint8)
    time = np.array([0, 20 * MS, 40 * MS], np.int64)
    load = Forest(
        tasks=[Task(7, "seven", 0), Task(8, "eight", 1)], time_ns=time, parent=np.full(3, -1), delay_ns=np.zeros(3, np.int64),
        task=np.array([0, 1, 0], np.uint32), op=op, flags=np.zeros(3, np.uint8), sector=np.array([0, 0, 800], np.uint64),
        sectors=np.array([8, 0, 8], np.uint32), ioprio=np.zeros(3, np.uint16),
    )  # fmt: skip
    drive = headwaiter.drives()["wd-re-4tb"] if write_cache else ConstantDrive(5 * MS)
    return simulate("none", drive, load)


def test_flushes_of_a_trace_are_such_calls() -> None:
    result = summarise(flushed(write_cache=True))
    assert result.requests == 2 and result.sync and result.sync.calls == 1 and result.sync.lat_ms.mean > 1
    assert result.sync.tasks and [(row.task, row.name) for row in result.sync.tasks] == [(8, "eight")]
    assert result.tasks and [row.task for row in result.tasks] == [7, 7], "they are no I/Os"


def test_a_flush_of_a_drive_without_a_cache_takes_no_time() -> None:
    sync = summarise(flushed(write_cache=False)).sync
    assert sync and sync.calls == 1 and sync.lat_ms.max == 0.0


def test_commands_show_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log.fio", LOG)
    shown = good(capfd, "run", path, "--sched", "mq-deadline", "--drive", "wd-re-4tb")
    head = shown.splitlines()[2]
    assert head.split().count("sync") == 3
    assert ["log", "sync", "28", "–", "–", "–"] in [line.split()[:6] for line in shown.splitlines()]
    (result,) = told(capfd, "run", path, "--sched", "mq-deadline", "--drive", "wd-re-4tb")["results"]
    lat = result["sync"]["lat_ms"]
    assert result["sync"]["calls"] == 28 and list(lat) == ["mean", "p50", "p95", "p99", "p99_9", "max"] and lat["mean"] > 1
    compare = ("compare", path, "--sched", "mq-deadline,bfq", "--drive", "wd-re-4tb", "--seeds", 0)
    assert [r["sync"]["calls"] for r in told(capfd, *compare)["results"]] == [28, 28]
    assert good(capfd, *compare).count("sync") == 3
    rows = list(csv.DictReader(io.StringIO(good(capfd, *compare, "--csv"))))
    assert [row["sync.calls"] for row in rows] == ["28", "28"] and float(rows[0]["sync.lat_ms.mean"]) > 1


def test_without_them_nothing_is_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log.fio", LOG.replace("fdatasync=1\n", ""))
    assert "sync" not in good(capfd, "run", path, "--sched", "none", "--drive", "wd-re-4tb").split("batching")[0]
    (result,) = told(capfd, "run", path, "--sched", "none", "--drive", "wd-re-4tb")["results"]
    assert "sync" not in result


def test_python_has_them(tmp_path: Path) -> None:
    run = headwaiter.run(write(tmp_path / "log.fio", LOG), "mq-deadline", drive="wd-re-4tb")
    assert run.result.sync and run.result.sync.calls == 28
    assert run.outcome.syncs and run.outcome.syncs.ios.tolist() == [28]


@pytest.mark.needs("fio")
@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    [
        "fsync=1",
        "fdatasync=4",
        "fsync=3\nend_fsync=1",
        "fsync=4\nnrfiles=2",
        "rw=rw\nfsync=2",
        "fsync=5\nloops=2",
        "fsync=1\nnumber_ios=7",
        "end_fsync=1",
        "fsync=2\nsync=1",
    ],
)
def test_fio_makes_as_many(tmp_path: Path, options: str) -> None:
    path = write(tmp_path / "x.fio", f"[a]\nrw=write\nioengine=sync\nsize=64k\n{options}\n")
    fio = shutil.which("fio")
    assert fio
    made = subprocess.run(
        [fio, "--output-format=json", path], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60
    )
    (job,) = json.loads(made.stdout)["jobs"]
    found = sync_of(tmp_path, path.read_text())
    assert (found.calls if found else 0) == job["sync"]["lat_ns"]["N"]
