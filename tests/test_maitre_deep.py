# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre and tasks that have many reads at once: beside others, among each other; and what a disk has told for long."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import headwaiter
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.schedulers import find

MS = 1_000_000
FAR = 10_000_000
READ = int(Op.READ)
POSITIONS = find("maitre").tables["positions"].parse("positions", b"0 0\n1024 0\n1025 4000000\n40000000 12000000")

JOB = """\
[global]
filename=/dev/sda
direct=1
runtime=10
time_based
[deep]
rw=randread
bs=32k
ioengine=libaio
iodepth=8
offset=20g
size=4g
[thinker]
rw=read
bs=32k
ioengine=psync
thinktime=30000
offset=21g
size=1g
numjobs=3
[stream]
rw=read
bs=4k
ioengine=psync
offset=20500m
size=256m
"""


@pytest.mark.parametrize("drive", ["barracuda-80g", "wd-re-4tb"])
def test_who_has_many_requests_leaves_the_others_their_share(tmp_path: Path, drive: str) -> None:
    """In the pool with those that think, one request each, it had nearly all of its time."""
    job = tmp_path / "deep.fio"
    job.write_text(JOB)
    rates: dict[str, dict[str, float]] = {}
    for scheduler in ("maitre", "mq-deadline"):
        tasks = headwaiter.run(job, scheduler, drive, runs=0).result.tasks or ()
        rates[scheduler] = {task.name: task.throughput_mbps or 0.0 for task in tasks}
    ours, theirs = rates["maitre"], rates["mq-deadline"]
    assert ours["thinker.0"] > 1.5 * theirs["thinker.0"]
    assert ours["stream"] > 3 * theirs["stream"]
    assert ours["stream"] > 2 * ours["deep"], "it does not pay for what is left in the drive"
    assert ours["deep"] > 0.4 * theirs["deep"]


def _way_ns(apart: int) -> float:
    """As POSITIONS has it."""
    return 0.0 if apart <= 1024 else min(12.0, 4 + 8 * (apart - 1025) / (40_000_000 - 1025)) * MS


def _chosen_well(tasks: int, rounds: int = 160) -> list[bool]:
    """Tasks have 8 scattered requests each, 10 ms a request: was the one served that is best by place and age, of all?"""
    policy = Policy("maitre", {"positions": POSITIONS}, sectors=1 << 30)
    dice = random.Random(1)
    waiting: dict[int, tuple[int, int, int]] = {}
    now, head = 0, 0
    found: list[bool] = []

    def ask(task: int) -> None:
        place = dice.randrange(0, 130_000_000, 64)
        waiting[policy.insert(Request(place, 64, READ, task=task, flags=SYNC), now)] = (task, place, now)

    for task in range(tasks):
        policy.start_task(task, 0)
    for task in list(range(tasks)) * 8:
        ask(task)
    while len(found) < rounds:
        request = policy.dispatch(now)
        if request is None:
            now += MS
            continue
        # With more requests all of them are older.
        age = 1 / max(len(waiting), 10)
        cost = {one: _way_ns(abs(place - head)) - age * (now - since) for one, (_, place, since) in waiting.items()}
        task, place, _ = waiting[request]
        # Four to either side of the head, and the oldest, are looked at.
        found.append(cost[request] <= min(cost.values()) + 0.3 * MS)
        del waiting[request]
        head = place + 64
        now += 10 * MS
        policy.complete(request, now)
        ask(task)
    return found


def test_its_own_requests_go_by_place_and_age() -> None:
    """As in the pool, and not upwards."""
    assert sum(_chosen_well(1)[60:]) > 90


def test_several_of_them_share_the_pool() -> None:
    """A turn of one would pass by what the others have nearby."""
    assert sum(_chosen_well(3)[60:]) > 60


def test_a_scheduler_that_has_been_there_for_long_knows_the_ways(tmp_path: Path) -> None:
    """A turn is 21 mean positionings: 12 ms each until the disk has told, and then what it tells."""
    job = tmp_path / "one.fio"
    job.write_text("[one]\nrw=read\nbs=4k\ndirect=1\nsize=64k\n")

    def turn(*, positions: bool = False, settled: bool = True) -> int:
        answer = headwaiter.run(job, "maitre", "cheetah-15k", runs=0, positions=positions, settled=settled)
        return int((answer.result.stats or {})["turn"])

    told, found, fresh = turn(positions=True), turn(), turn(settled=False)
    assert fresh == 250_000
    assert told < 0.8 * fresh and abs(found - told) < 0.1 * told
