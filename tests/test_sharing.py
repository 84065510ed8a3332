# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the schedulers that share a disk among readers are for, on modelled drives: shares, and throughput kept."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from headwaiter.drives.profile import find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Outcome, Task, simulate
from headwaiter.fio import load_jobs

DRIVES = ["barracuda-80g", "wd-re-4tb", "cheetah-15k"]
SECONDS = 20
THINK_US = 200


def readers(
    tmp_path: Path, drive_name: str, scheduler: str, count: int, shares: tuple[int, ...] = (), **tunables: int
) -> Outcome:
    """Sequential synchronous readers of 64 KiB, each of a file of its own, for 20 s."""
    path = tmp_path / "readers.fio"
    path.write_text(
        f"[reader]\nrw=read\nbs=64k\nsize=1g\nnumjobs={count}\nthinktime={THINK_US}\ndirect=1\nruntime={SECONDS}\ntime_based\n"
    )
    drive = find_drive(drive_name)
    load = load_jobs(path, drive.sectors)
    if shares:
        tasks = tuple(dataclasses.replace(t, share=s) for t, s in zip(load.tasks, shares, strict=True))
        load = dataclasses.replace(load, tasks=tasks)
    return simulate(scheduler, drive, load, tunables, Options(record=True))


def per_task(outcome: Outcome) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Sectors that each task has read."""
    return np.bincount(outcome.rows.task, weights=outcome.rows.sectors).astype(np.int64)


@pytest.mark.parametrize("drive", DRIVES)
def test_as_share_gives_one_to_two(tmp_path: Path, drive: str) -> None:
    a, b = per_task(readers(tmp_path, drive, "as-share", 2, (1, 2)))
    assert 1.9 <= b / a <= 2.1


@pytest.mark.parametrize("drive", DRIVES)
def test_deceptive_idleness_makes_it_one_to_one(tmp_path: Path, drive: str) -> None:
    a, b = per_task(readers(tmp_path, drive, "as-share", 2, (1, 2), anticipate=0))
    assert 0.95 <= b / a <= 1.05


@pytest.mark.parametrize("drive", DRIVES)
def test_cfq_slice_keeps_throughput_and_fairness_of_eight_readers(tmp_path: Path, drive: str) -> None:
    one = per_task(readers(tmp_path, drive, "cfq-slice", 1)).sum()
    eight = readers(tmp_path, drive, "cfq-slice", 8)
    done = per_task(eight)
    assert done.sum() >= 0.85 * one
    assert done.sum() ** 2 / (8 * (done**2).sum()) >= 0.99
    worst = (eight.rows.complete_ns - eight.rows.issue_ns).max()
    under_as = readers(tmp_path, drive, "as", 8)
    assert worst < (under_as.rows.complete_ns - under_as.rows.issue_ns).max()


@pytest.mark.parametrize("drive", DRIVES)
def test_as_seek_is_three_times_as_fast_with_anticipation(tmp_path: Path, drive: str) -> None:
    anticipating = per_task(readers(tmp_path, drive, "as-seek", 4)).sum()
    assert anticipating >= 3 * per_task(readers(tmp_path, drive, "as-seek", 4, anticipate=0)).sum()


def test_what_joins_a_request_gives_its_tag_back() -> None:
    """Two processes in turn, block by block, while the drive is busy elsewhere: one request, however few tags there are."""
    n = 41
    i = np.arange(n)
    load = Forest(
        tasks=[Task(0, "a", 0), Task(1, "b", 1)],
        time_ns=i * 1000,
        parent=np.full(n, -1),
        delay_ns=np.zeros(n, np.int64),
        task=(i % 2).astype(np.uint32),
        op=np.full(n, Op.READ, np.uint8),
        flags=np.full(n, SYNC, np.uint8),
        sector=np.where(i, i * 8, 1 << 20).astype(np.uint64),
        sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )
    outcome = simulate("cfq-slice", ConstantDrive(5_000_000), load, {}, Options(join_arriving=True, nr_requests=4))
    assert (outcome.totals["requests"], outcome.totals["merges"]) == (2, n - 2)


@pytest.mark.parametrize("join", [False, True])
def test_what_is_inserted_joins_the_request_of_another_process(tmp_path: Path, join: bool) -> None:
    """As blk-mq does: cfq-slice itself merges within a process only."""
    path = tmp_path / "job.fio"
    path.write_text(
        "[global]\nfilename=/dev/sda\ndirect=1\nrw=read\nbs=64k\nnumber_ios=1\n[first]\noffset=1g\n[second]\n"
        "offset=0\nstartdelay=1ms\n[third]\noffset=64k\nstartdelay=2ms\n"
    )
    drive = find_drive("barracuda-80g")
    outcome = simulate("cfq-slice", drive, load_jobs(path, drive.sectors), {}, Options(join_arriving=join))
    assert outcome.totals["merges"] == int(join)
    assert outcome.totals["requests"] == 3 - int(join)
