# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre and tasks that have many requests at once: beside others, among each other, and what a disk that has been there for long tells."""

from __future__ import annotations

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
    assert ours["deep"] > 0.4 * theirs["deep"]


def _policy(tasks: int) -> Policy:
    policy = Policy("maitre", {"positions": POSITIONS}, sectors=1 << 30)
    for task in range(tasks):
        policy.start_task(task, 0)
    return policy


def _served(policy: Policy, asked: list[tuple[int, int]], rounds: int, at_once: int) -> list[tuple[int, int]]:
    """Task and place of each request that was served, 10 ms each; whoever was served asks for the next of its places."""
    waiting = {task: [place for other, place in asked if other == task] for task, _ in asked}
    owner: dict[int, tuple[int, int]] = {}
    now, order = 0, []

    def ask(task: int) -> None:
        place = waiting[task].pop(0)
        waiting[task].append(place)
        owner[policy.insert(Request(place, 64, READ, task=task, flags=SYNC), now)] = (task, place)

    for _ in range(at_once):
        for task in waiting:
            ask(task)
    while len(order) < rounds:
        request = policy.dispatch(now)
        if request is None:
            now += MS
            continue
        now += 10 * MS
        policy.complete(request, now)
        order.append(owner.pop(request))
        ask(order[-1][0])
    return order


def _places(task: int, count: int) -> list[tuple[int, int]]:
    """Scattered over an eighth of the disk, in no order."""
    return [(task, FAR * (1 + (k * 7 + task * 3) % 13)) for k in range(count)]


def test_its_own_requests_go_by_place_and_age() -> None:
    """As in the pool: who serves them upwards goes the whole way for the last of them."""
    order = [place for _, place in _served(_policy(1), _places(0, 13), 200, 8)]
    ways = [abs(b - a) for a, b in zip(order[100:], order[101:], strict=False)]
    assert sum(ways) / len(ways) < 3.2 * FAR
    assert len(set(order[150:])) == 13, "nobody is left out"


def test_several_of_them_share_the_pool() -> None:
    """Together they have the shorter ways, and about as many requests each."""
    order = _served(_policy(3), [one for task in range(3) for one in _places(task, 13)], 300, 8)[150:]
    changes = sum(a[0] != b[0] for a, b in zip(order, order[1:], strict=False))
    served = [sum(task == mine for task, _ in order) for mine in range(3)]
    assert changes > 50 and min(served) > 35


def test_a_scheduler_that_has_been_there_for_long_knows_the_ways(tmp_path: Path) -> None:
    """A turn is 21 mean positionings: 12 ms each until the disk has told, and then what it tells."""
    job = tmp_path / "one.fio"
    job.write_text("[one]\nrw=read\nbs=4k\ndirect=1\nsize=64k\n")

    def turn(**given: bool) -> int:
        return int((headwaiter.run(job, "maitre", "cheetah-15k", runs=0, **given).result.stats or {})["turn"])

    told, found, fresh = turn(positions=True), turn(), turn(settled=False)
    assert fresh == 250_000
    assert told < 0.8 * fresh and abs(found - told) < 0.1 * told
