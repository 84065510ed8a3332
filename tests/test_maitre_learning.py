# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre: what ways take is learnt from requests, where nobody has measured it, as in a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT
from jobload import run_jobs, run_regret

import headwaiter
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.policy import Policy, Request

MS = 1_000_000
UNKNOWN = 12 * MS // 48
"""A turn, where nothing is known."""


def _turns(far: int, own: bool) -> int:
    """How long a turn is to be, in us, after tasks at 0 and at `far` took 0.2 ms for each read; own: one behind its last one."""
    policy = Policy("maitre", sectors=1 << 30)
    for task in range(2):
        policy.start_task(task, 0)
    now = 0
    for k in range(640):
        place = far * (k % 2) + (8 * (k // 2) if own else 4096 * (k * 7919 % 1024))
        request = policy.insert(Request(place, 8, int(Op.READ), task=k % 2, flags=SYNC), now)
        while policy.dispatch(now) is None:
            now = policy.wake_ns
        now += MS // 5
        policy.complete(request, now)
        now += MS
    return policy.stat("turn")


def test_what_a_drive_has_read_in_advance_tells_nothing_of_the_way() -> None:
    """Two streams by turns: the drive's cache may have the first reads of each turn."""
    assert _turns(400_000_000, own=True) == UNKNOWN
    assert _turns(400_000_000, own=False) < UNKNOWN


@pytest.mark.parametrize(("workload", "drive", "least"), [
    ("readers-12", "cheetah-15k", 30.0), ("thinkers-6", "cheetah-15k", 8.0), ("files-12", "raid0-4x-barracuda-80g", 190.0),
    ("editor-3", "raid0-4x-barracuda-80g", 180.0),
])  # fmt: skip
def test_streams_have_the_disk_in_turns_as_if_its_ways_were_told(workload: str, drive: str, least: float) -> None:
    """They had a half to two thirds: from ways that were taken for short, streams were served side by side."""
    path = ROOT / "workloads" / "regret" / f"{workload}.fio"
    rates = [headwaiter.run(path, "maitre", drive=drive, positions=told).result.throughput_mbps for told in (False, True)]
    assert rates[0] > least and rates[0] > 0.9 * rates[1]


def test_commits_beside_a_stream_and_a_writer_are_a_compromise() -> None:
    """Write-back that a commit may wait for has a larger share, and is forgiven the rest: else the log or the stream has less."""
    path = ROOT / "workloads" / "regret" / "commits-writer.fio"
    tasks = headwaiter.run(path, "maitre", drive="barracuda-80g").result.tasks or ()
    rates = {task.name: task.throughput_mbps or 0.0 for task in tasks}
    assert rates["log"] > 0.03 and rates["stream"] > 29


IN_PLACE = "[{0}]\nfilename=/dev/sda\ndirect=1\nrw=randread\nbs=16k\nsize=8m\noffset={1}g\nruntime=10\ntime_based\n"


@pytest.mark.parametrize("told", [False, True])
def test_who_stay_in_places_of_their_own_have_turns(tmp_path: Path, told: bool) -> None:
    """8 MiB each, 20 GB apart: by turns for each request they had half of it, for nobody learnt what a short way takes."""
    rates = [
        run_jobs(tmp_path, scheduler, "barracuda-80g", IN_PLACE.format("one", 13), IN_PLACE.format("other", 33), positions=told)
        for scheduler in ("maitre", "as")
    ]
    assert rates[0].throughput_mbps > 0.95 * rates[1].throughput_mbps


def test_what_a_short_way_takes_is_learnt_beside_others(tmp_path: Path) -> None:
    """Four that stay in places of their own, as fast as if ways were told: unknown ones lie between those that are known."""
    jobs = [IN_PLACE.format(f"r{i}", 15 * i + 5) for i in range(4)]
    learnt, told = (run_jobs(tmp_path, "maitre", "barracuda-80g", *jobs, positions=p).throughput_mbps for p in (False, True))
    assert learnt > 0.9 * told


def test_who_writes_into_the_drives_cache_is_not_waited_for(tmp_path: Path) -> None:
    """Four, 4 KiB each 4 ms, in places far apart: the cache takes them at once, so that nothing is saved by waiting for one."""
    writer = (
        "[w{0}]\nfilename=/dev/sda\ndirect=1\nrw=write\nbs=4k\nsize=64m\noffset={1}g\nthinktime=4077\nruntime=5\ntime_based\n"
    )
    jobs = [writer.format(i, 15 * i + 5) for i in range(4)]
    assert run_jobs(tmp_path, "maitre", "barracuda-80g", *jobs).throughput_mbps > 3.5, "it was 1.0"


def test_one_who_seeks_does_not_keep_its_turn_from_write_back() -> None:
    """Write-back has had as much as it, and gets little done in what is left of a turn."""
    result = run_regret("lookup-writers.fio", "barracuda-80g", positions=True)
    assert result.read and result.write
    assert result.write.throughput_mbps > 19
