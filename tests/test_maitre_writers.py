# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre beside those who write and wait for it, and beside write-back: what they pay, on bundled drives and on scripted ones."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import headwaiter
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.schedulers import find

MS = 1_000_000
FAR = 10_000_000
READ, WRITE = int(Op.READ), int(Op.WRITE)
POSITIONS = find("maitre").tables["positions"].parse("positions", b"0 0\n1024 0\n1025 10000000")
HEAD = "[global]\nioengine=psync\nruntime=10s\ntime_based\n"
LOOKUP = "[lookup]\nrw=randread\nbs=4k\nsize=1g\ndirect=1\n"
STREAM = "[stream]\nrw=read\nbs=128k\nsize=1g\n"


def _rates(tmp_path: Path, drive: str, *jobs: str, seed: int = 0) -> dict[str, float]:
    """MB/s of each task and operation."""
    job = tmp_path / "jobs.fio"
    job.write_text(HEAD + "".join(jobs))
    result = headwaiter.run(job, "maitre", drive, runs=0, seed=seed).result
    return {f"{task.name} {task.op}": task.throughput_mbps or 0.0 for task in result.tasks or ()}


def _dispatched(policy: Policy, now: int) -> tuple[int, int]:
    """The next request, and when the policy decides for it: it may hold the disk for a while."""
    while (request := policy.dispatch(now)) is None:
        now = max(now + 1, min(policy.wake_ns, now + MS))
    return request, now


def _alternating(policy: Policy, until: int, flush_ns: int, write_ns: int, apart: int = 8, ahead: bool = False) -> dict[int, int]:
    """How often each was served: task 0 reads in sequence, task 1 writes far away, waits, and has the drive flush its cache.

    `ahead`: the host takes the next request before the flush, and keeps it until the drive has room.
    """
    served, now, place, log, flushing = {0: 0, 1: 0}, 0, 0, FAR, 0
    owner: dict[int, int] = {}

    def ask(task: int) -> None:
        nonlocal place, log
        if task:
            owner[policy.insert(Request(log, 8, WRITE, task=1, flags=SYNC), now)] = 1
            log += apart
        else:
            owner[policy.insert(Request(place, 256, READ, task=0, flags=SYNC), now)] = 0
            place += 256

    for task in (0, 1):
        policy.start_task(task, 0)
        ask(task)
    while now < until:
        request, now = _dispatched(policy, now)
        task = owner.pop(request)
        served[task] += 1
        if flushing:
            now, flushing = now + flushing, 0
            policy.issue(request, now)
        now += write_ns if task else 4 * MS
        policy.complete(request, now)
        ask(task)
        if task and ahead:
            flushing = flush_ns
        elif task:
            now += flush_ns
    return served


def _disk() -> Policy:
    return Policy("maitre", {"positions": POSITIONS}, sectors=1 << 30, depth=1)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_flush_is_paid_by_who_has_written(ahead: bool) -> None:
    served = _alternating(_disk(), 20_000 * MS, 20 * MS, 11 * MS, ahead=ahead)
    reads, writes = served[0] * 4, served[1] * 31
    assert 0.8 < reads / writes < 1.3, "half of the time each, flushes included"


def test_a_write_that_was_put_off_costs_the_way() -> None:
    served = _alternating(_disk(), 20_000 * MS, 0, MS, 4096)
    # A write of 1 ms far away is to cost 10: the writer has fewer than one for each ms of its half.
    assert served[1] < 20_000 / 2 / 5


def _reads_beside_a_writer(late_ns: int) -> tuple[int, int, int]:
    """Reads of a task anywhere, writes of another in sequence, and how many of the reads came right after a write.

    The drive takes a write in 2 ms; it needs `late_ns` more for the first read after that.
    """
    policy, now, place, wrote = _disk(), 0, 0, False
    reads = writes = first = 0
    owner: dict[int, int] = {}

    def ask(task: int) -> None:
        nonlocal place
        if task:
            owner[policy.insert(Request(place, 512, WRITE, task=1, flags=SYNC), now)] = 1
            place += 512
        else:
            owner[policy.insert(Request(FAR * (1 + 7 * reads % 50), 8, READ, task=0, flags=SYNC), now)] = 0

    for task in (0, 1):
        policy.start_task(task, 0)
        ask(task)
    while now < 20_000 * MS:
        request, now = _dispatched(policy, now)
        if owner[request]:
            writes, now = writes + 1, now + 2 * MS
        else:
            reads, first = reads + 1, first + wrote
            now += 10 * MS + (late_ns if wrote else 0)
        wrote = bool(owner.pop(request))
        policy.complete(request, now)
        ask(int(wrote))
    return reads, writes, first


@pytest.mark.parametrize("late_ms", [0, 15, 30])
def test_what_a_drive_puts_off_is_paid_by_who_has_written(late_ms: int) -> None:
    reads, writes, first = _reads_beside_a_writer(late_ms * MS)
    # Half of the time each, whatever the drive puts off. It had 0.52 and 0.18 of the writer's time.
    assert 0.95 < reads * 10 / (writes * 2 + first * late_ms) < 1.05


def test_a_seeker_and_a_stream_wait_less_for_each_other_than_two_streams() -> None:
    policy = _disk()
    policy.start_task(0, 0)
    policy.start_task(1, 0)
    now, turns = 0, []
    for k in range(64):
        for task, sector in ((0, 8 * k), (1, FAR * (1 + 7 * k % 50))):
            policy.insert(Request(sector, 8, READ, task=task, flags=SYNC), now)
        turns.append(policy.stat("turn"))
        while (request := policy.dispatch(now)) is not None:
            now += 10 * MS
            policy.complete(request, now)
    assert turns[0] == 208_333 and turns[-1] == 104_166


def test_who_reads_here_and_there_is_not_starved_by_those_who_call_fsync(tmp_path: Path) -> None:
    writers = "[writer]\nrw=write\nbs=64k\nsize=1g\nfsync=64\nnumjobs=4\n"
    rates = [_rates(tmp_path, "barracuda-80g", LOOKUP, writers, seed=seed)["lookup read"] for seed in range(5)]
    assert min(rates) > 0.09, "a fifth of the disk is 0.14 MB/s; it had 0.016"


def test_write_back_has_its_share_beside_one_who_only_seeks(tmp_path: Path) -> None:
    writers = "[writer]\nrw=write\nbs=64k\nsize=1g\nnumjobs=4\n"
    rates = _rates(tmp_path, "barracuda-80g", LOOKUP, writers)
    assert rates["lookup read"] > 0.4
    assert rates["flusher write"] > 6, "a seventh of the time at what the drive writes, not at what the seeks let it read"


def test_who_calls_fsync_all_the_time_does_not_starve_a_stream(tmp_path: Path) -> None:
    log = "[log]\nrw=write\nbs=4k\nsize=256m\nfsync=1\n"
    writer = "[writer]\nrw=write\nbs=64k\nsize=3g\n"
    assert _rates(tmp_path, "barracuda-80g", log, STREAM, writer)["stream read"] > 15


def test_one_small_file_after_another_is_a_stream() -> None:
    policy = Policy(
        "maitre",
        {"positions": find("maitre").tables["positions"].parse("positions", b"0 0\n8 5000000\n1025 10000000")},
        sectors=1 << 30,
        depth=1,
    )
    served: list[int] = []
    owner: dict[int, int] = {}
    now, places = 0, [0, FAR]
    for task in (0, 1):
        policy.start_task(task, 0)
        owner[policy.insert(Request(places[task], 128, READ, task=task, flags=SYNC), 0)] = task
    while now < 10_000 * MS:
        request, now = _dispatched(policy, now)
        task = owner.pop(request)
        served.append(task)
        now += 3 * MS
        policy.complete(request, now)
        places[task] += 256
        owner[policy.insert(Request(places[task], 128, READ, task=task, flags=SYNC), now)] = task
    changes = sum(a != b for a, b in pairwise(served))
    assert changes < len(served) / 20, "turns, not one file each"


def _flash() -> Policy:
    policy = Policy("maitre", rotational=False, depth=64)
    for task in range(6):
        policy.start_task(task, 0)
    return policy


def _fill(policy: Policy, now: int) -> list[int]:
    """Large writes of four tasks that wait for them, more than the device takes."""
    for task in (1, 2, 3, 4) * 2:
        policy.insert(Request(task * 100_000, 1024, WRITE, task=task, flags=SYNC), now)
    found = []
    while (request := policy.dispatch(now)) is not None:
        found.append(request)
    return found


def test_a_small_read_does_not_wait_for_room_among_large_writes() -> None:
    policy = _flash()
    flying = _fill(policy, 0)
    assert 0 < len(flying) < 8
    small = policy.insert(Request(0, 8, READ, task=0, flags=SYNC), 100_000)
    assert policy.dispatch(100_000) == small
    second = policy.insert(Request(8, 8, READ, task=0, flags=SYNC), 100_000)
    assert policy.dispatch(100_000) is None, "one at a time"
    large = policy.insert(Request(1 << 20, 1024, READ, task=5, flags=SYNC), 100_000)
    assert policy.dispatch(100_000) is None, "it would add to what others wait for"
    assert len({small, second, large}) == 3


def test_small_reads_do_not_make_others_wait_for_long() -> None:
    policy = _flash()
    _fill(policy, 0)
    late = 21 * MS
    policy.insert(Request(0, 8, READ, task=0, flags=SYNC), late)
    assert policy.dispatch(late) is None


def _time_until_the_other_stream(flush_ns: int) -> int:
    """Two streams come right after a write, whose flush the first request of one of them waits for; when the other begins."""
    policy, now = _disk(), 0
    for task in range(3):
        policy.start_task(task, 0)
    policy.insert(Request(2 * FAR, 8, WRITE, task=2, flags=SYNC), now)
    written = policy.dispatch(now)
    assert written is not None
    now += 11 * MS
    policy.complete(written, now)
    place = {0: 0, 1: FAR}
    owner: dict[int, int] = {}

    def ask(task: int) -> None:
        for _ in range(2):
            owner[policy.insert(Request(place[task], 256, READ, task=task, flags=SYNC), now)] = task
            place[task] += 256

    ask(0)
    ask(1)
    first = None
    while now < 2000 * MS:
        request, now = _dispatched(policy, now)
        task = owner.pop(request)
        if first is None:
            first = task
            now += flush_ns
            policy.issue(request, now)
        elif task != first:
            return now
        now += 4 * MS
        policy.complete(request, now)
        if task not in owner.values():
            ask(task)
    raise AssertionError("the other never began")


def test_a_flush_is_not_of_the_turn_that_it_comes_in() -> None:
    assert _time_until_the_other_stream(80 * MS) == _time_until_the_other_stream(0) + 80 * MS
