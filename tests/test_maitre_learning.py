# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre: what ways take is learnt from requests, where nobody has measured it, as in a kernel."""

from __future__ import annotations

import pytest
from conftest import ROOT

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
