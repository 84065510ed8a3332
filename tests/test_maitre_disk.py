# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre on a disk, over longer times than the scenarios of golden/maitre.toml: newcomers, heirs, the pool, write-back.

Up to 1,024 sectors cost nothing to reach and others 10 ms, so that a turn is 10 ms / 0.048 = 208.3 ms.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Container
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from conftest import ROOT

import headwaiter
from headwaiter.engine.constants import META, SYNC, Op
from headwaiter.engine.policy import NEVER, Policy, Request
from headwaiter.engine.schedulers import find

MS = 1_000_000
SERVICE = 5 * MS
FAR = 10_000_000
READ, WRITE = int(Op.READ), int(Op.WRITE)
POSITIONS = find("maitre").tables["positions"].parse("positions", b"0 0\n1024 0\n1025 10000000")


def _policy(depth: int = 1) -> Policy:
    return Policy("maitre", {"positions": POSITIONS}, sectors=1 << 30, depth=depth)


class Disk:
    """A drive that takes one request at a time, 5 ms each, and tasks that go on when their request is done."""

    def __init__(self) -> None:
        self.policy = _policy()
        self.now = 0
        self.due: list[tuple[int, int, int, int]] = []
        """Time, number of the entry, task, sector."""
        self.entries = 0
        self.task_of: dict[int, int] = {}
        self.served: list[tuple[int, int]] = []
        """Time of dispatch, task."""
        self.flying: int | None = None
        self.free_at = 0

    def ask(self, at: int, task: int, sector: int) -> None:
        heapq.heappush(self.due, (at, self.entries, task, sector))
        self.entries += 1

    def run(self, end: int, done: Callable[[int], None]) -> None:
        """Until `end`, or as long as there are requests; `done` is told the task of each that has completed."""
        while self.now < end:
            times = [self.due[0][0]] if self.due else []
            times.append(self.free_at if self.flying is not None else self.policy.wake_ns)
            if min(times) == NEVER:
                return
            self.now = max(self.now, min(times))
            if self.flying is not None and self.free_at <= self.now:
                self.policy.complete(self.flying, self.now)
                task, self.flying = self.task_of.pop(self.flying), None
                done(task)
            while self.due and self.due[0][0] <= self.now:
                _, _, task, sector = heapq.heappop(self.due)
                self.task_of[self.policy.insert(Request(sector, 8, READ, task=task, flags=SYNC), self.now)] = task
            if self.flying is None and (request := self.policy.dispatch(self.now)) is not None:
                self.flying, self.free_at = request, self.now + SERVICE
                self.served.append((self.now, self.task_of[request]))

    def share(self, task: int, begin: int, end: int) -> float:
        """Return a task's share of the requests served in a time."""
        found = Counter(who == task for at, who in self.served if begin <= at < end)
        return found[True] / found.total()


def _newcomers(requests: int) -> Disk:
    """Beside a stream a task comes, reads so often and sleeps for ever, and then the next one comes."""
    disk = Disk()
    left = requests

    def done(task: int) -> None:
        nonlocal left
        if task == 0:
            disk.ask(disk.now, 0, 8 * len(disk.served))
            return
        left -= 1
        if not left:
            task, left = task + 1, requests
            disk.policy.start_task(task, disk.now)
        disk.ask(disk.now, task, FAR * task % (1 << 29) + 8 * left)

    disk.policy.start_task(0, 0)
    disk.policy.start_task(1, 0)
    disk.ask(0, 0, 0)
    disk.ask(1000 * MS, 1, FAR)
    disk.run(40_000 * MS, done)
    return disk


@pytest.mark.parametrize("requests", [1, 4, 20, 40, 80])
def test_newcomers_leave_a_quarter_of_the_disk(requests: int) -> None:
    disk = _newcomers(requests)
    # As long as they have credit, which is of 3 s, they go first.
    assert disk.share(0, 2_000 * MS, 4_000 * MS) < 0.25
    assert disk.share(0, 8_000 * MS, 40_000 * MS) > 0.25


@pytest.mark.parametrize("tasks", [1, 2])
def test_credit_comes_back_where_no_newcomer_comes(tasks: int) -> None:
    disk = _newcomers(20)
    assert disk.policy.stat("credit") < 300_000
    disk.due.clear()
    begin = disk.now + 1_000 * MS

    def done(task: int) -> None:
        if disk.now > begin:
            disk.ask(disk.now, task, FAR * task + 8 * len(disk.served))

    for task in range(1, 1 + tasks):
        disk.ask(begin, task, FAR * task)
    disk.run(begin + 8_000 * MS, done)
    assert disk.policy.stat("credit") == 3_000_000


def _chain(between: int, begin: int = 0) -> Disk:
    """Beside a stream, tasks of one read each that exit, from `begin` on, each `between` ns after the one before."""
    disk = Disk()

    def done(task: int) -> None:
        if task == 0:
            disk.ask(disk.now, 0, 8 * len(disk.served))
            return
        disk.policy.exit_task(task, disk.now)
        disk.policy.start_task(task + 1, disk.now)
        disk.ask(disk.now + between, task + 1, FAR + 8 * task)

    for task in (0, 1):
        disk.policy.start_task(task, 0)
        disk.ask(begin * task, task, FAR * task)
    disk.run(4_000 * MS, done)
    return disk


def test_a_chain_of_tasks_has_half_of_the_time_as_a_task_has() -> None:
    # 5 ms for a read and 2 of waiting are the chain's; the stream has 5 of 5.
    assert abs(_chain(2 * MS).share(0, 0, 4_000 * MS) - 7 / 12) < 0.03


def test_a_script_has_the_credit_of_its_first_tasks_only() -> None:
    disk = _chain(2 * MS, 1_000 * MS)
    runs = [(task == 0, len(list(run))) for task, run in groupby(min(task, 1) for _, task in disk.served)]
    # A newcomer has 300 ms and a turn of 208, of 7 ms a task. The ninth task's turn ends, and the stream has one, of 5 ms a read.
    (_, links), (_, reads) = runs[1:3]
    assert links == 9
    assert abs(reads - 208 / 5) < 2


def _start(reads: int) -> tuple[Disk, float]:
    """Beside 16 streams a program comes that reads here and there; also in how many ms it is done."""
    disk, streams = Disk(), 16
    ended, served, begin = 0, Counter[int](), 6_000 * MS

    def done(task: int) -> None:
        nonlocal ended
        served[task] += 1
        if task < streams:
            disk.ask(disk.now, task, FAR * (task + 1) + 8 * served[task])
        elif served[task] < reads:
            disk.ask(disk.now, task, 7 * FAR * served[task] % (1 << 29) // 8 * 8)
        else:
            ended = disk.now

    for task in range(streams + 1):
        disk.policy.start_task(task, begin * (task == streams))
        disk.ask(begin * (task == streams), task, FAR * (task + 1))
    disk.run(40_000 * MS, done)
    return disk, (ended - begin) / MS


def test_a_program_that_begins_has_half_of_the_disk() -> None:
    # Of 5 ms a read. As one of seventeen it would have to wait for 17 times as long once its lead is used up.
    assert _start(400)[1] < 2 * 400 * 5
    # That goes for 2.5 s of service; who goes on has the share of one.
    assert _start(1600)[0].share(16, 15_000 * MS, 40_000 * MS) < 0.1


def test_streams_have_their_turns_in_the_order_of_their_places() -> None:
    disk, places = Disk(), (5, 2, 7, 1)

    def done(task: int) -> None:
        disk.ask(disk.now, task, FAR * places[task] + 8 * len(disk.served))

    for task, place in enumerate(places):
        disk.policy.start_task(task, 0)
        disk.ask(0, task, FAR * place)
    disk.run(8_000 * MS, done)
    turns = [task for task, _ in groupby(task for at, task in disk.served if at > 3_000 * MS)][1:]
    upwards = [3, 1, 0, 2]
    first = upwards.index(turns[0])
    assert len(turns) > 16
    assert turns == [upwards[(first + k) % 4] for k in range(len(turns))]


def test_an_heir_far_away_has_what_the_dead_has_had() -> None:
    disk = Disk()
    for task in range(4):
        disk.policy.start_task(task, 0)
    # Task 1 has 100 ms, then task 2 has 250 and exits. When 1 comes again, and 3, which is 2's heir, task 0 has the disk.
    left = {0: 1, 1: 20, 2: 50, 3: 1}

    def done(task: int) -> None:
        left[task] -= 1
        if left[task] > 0:
            disk.ask(disk.now, task, FAR * task + 8 * left[task])
        elif task == 1 and not left[1]:
            disk.ask(disk.now, 2, 2 * FAR)
        elif task == 2:
            disk.policy.exit_task(2, disk.now)
            disk.ask(disk.now + 2 * MS, 0, 8)
            disk.ask(disk.now + 6 * MS, 3, 3 * FAR)
            disk.ask(disk.now + 6 * MS, 1, FAR)

    disk.ask(0, 0, 0)
    disk.ask(0, 1, FAR)
    disk.run(1_000 * MS, done)
    assert [task for _, task in disk.served[-3:]] == [0, 1, 3]


def _seekers(depth: int, tasks: int) -> tuple[Policy, int]:
    """A policy that knows tasks from 0 on to read at random places, so that they share the pool, and the time by then."""
    policy, now = _policy(depth), 0
    for task in range(tasks):
        policy.start_task(task, now)
    for k in range(12):
        for task in range(tasks):
            request = _read(policy, task, FAR * (1 + k % 2), now)
            assert policy.dispatch(now + 20 * MS) == request
            now += 21 * MS
            policy.complete(request, now)
    return policy, now


def _read(policy: Policy, task: int, sector: int, now: int) -> int:
    return policy.insert(Request(sector, 8, READ, task=task, flags=SYNC), now)


def test_in_the_pool_age_makes_up_for_the_way() -> None:
    policy, now = _seekers(1, 4)
    at = 2 * FAR + 8
    old = _read(policy, 0, 3 * FAR, now)
    near = _read(policy, 1, at, now + 99 * MS)
    # 10 ms of way are worth 100 ms of age.
    assert policy.dispatch(now + 99 * MS) == near
    later = _read(policy, 2, at + 8, now + 101 * MS)
    policy.complete(near, now + 102 * MS)
    assert policy.dispatch(now + 102 * MS) == old
    policy.complete(old, now + 103 * MS)
    assert policy.dispatch(now + 103 * MS) == later


def test_nothing_is_put_beside_a_request_that_has_been_in_the_drive_for_long() -> None:
    policy, now = _seekers(32, 4)
    first, second, third = (_read(policy, task, FAR * (3 + task), now) for task in range(3))
    assert policy.dispatch(now) == first
    # Four mean positionings: 40 ms.
    assert policy.dispatch(now + 39 * MS) == second
    assert policy.dispatch(now + 40 * MS) is None
    policy.complete(first, now + 41 * MS)
    assert policy.dispatch(now + 41 * MS) == third


@pytest.mark.parametrize(("apart", "most"), [(4096, 4), (1024, 8)])
def test_little_write_back_is_in_the_drive_at_once(apart: int, most: int) -> None:
    policy = _policy(depth=32)
    policy.start_task(9, 0)
    for k in range(16):
        policy.insert(Request(apart * k, 8, WRITE, task=9), 0)
    flying = []
    while (request := policy.dispatch(0)) is not None:
        flying.append(request)
    assert len(flying) == most
    policy.complete(flying[0], MS)
    assert policy.dispatch(MS) is not None
    assert policy.dispatch(MS) is None


LOG = """
[global]
filename=/dev/sda
direct=1
runtime=20
time_based
[readers]
rw=randread
bs=4k
numjobs=8
size=60g
[log]
rw=write
bs=4k
sync=1
thinktime=2000
offset=70g
size=1g
"""


def _serve(policy: Policy, now: int, slow: Container[int]) -> tuple[int | None, int]:
    """The next request and when it is done, 4 ms later, or 20 if it is among the slow ones; or None and when to ask again."""
    request = policy.dispatch(now)
    if request is None:
        return None, max(now + 1, min(policy.wake_ns, now + MS))
    now += (20 if request in slow else 4) * MS
    policy.complete(request, now)
    return request, now


def _write_back_beside_a_stream(commit_every: int | None, meta_at: int | None) -> dict[int, int]:
    """When the requests of some write-back beside a stream were served, by sector; one of 4 KiB may be metadata's."""
    policy = _policy()
    policy.start_task(1, 0)
    policy.start_task(2, 0)
    policy.start_task(3, 0)
    served: dict[int, int] = {}
    now, place, commit = 0, 0, commit_every
    sectors = {policy.insert(Request(FAR + 4096 * i, 2048, WRITE, task=3), 0): FAR + 4096 * i for i in range(20)}
    if meta_at is not None:
        sectors[policy.insert(Request(meta_at, 8, WRITE, task=3, flags=META), 0)] = meta_at
    stream = policy.insert(Request(place, 256, READ, task=1, flags=SYNC), 0)
    while now < 20_000 * MS and len(served) < len(sectors):
        if commit is not None and now >= commit:
            policy.insert(Request(2 * FAR + now // MS, 8, WRITE, task=2, flags=SYNC), now)
            commit += commit_every or 0
        request, now = _serve(policy, now, sectors)
        if request is None:
            continue
        if request in sectors:
            served[sectors[request]] = now
        elif request == stream:
            place += 256
            stream = policy.insert(Request(place, 256, READ, task=1, flags=SYNC), now)
    return served


def test_write_back_that_commits_may_wait_for_is_served_between_turns() -> None:
    def longest_pause(commit_every: int | None) -> int:
        times = sorted(_write_back_beside_a_stream(commit_every, None).values())
        return max(after - before for before, after in pairwise(times[4:]))

    assert longest_pause(None) > 300 * MS
    # It has a third of the stream's weight, on a drive of one command.
    assert longest_pause(100 * MS) <= 200 * MS


def _write_back_after_a_write(flags: int, before: int = 0) -> int:
    """How long 12 MiB of write-back take beside a stream that come when somebody's write of these flags is done.

    Before it there have been so many writes past the page cache, 100 ms apart.
    """
    policy = _policy()
    for task in (1, 2, 3):
        policy.start_task(task, 0)
    now, place, begun, writes = 0, 0, 0, 0
    stream = policy.insert(Request(0, 256, READ, task=1, flags=SYNC), 0)
    write: int | None = None
    left: set[int] = set()
    while now < 20_000 * MS:
        if writes <= before and write is None and now >= (1_000 + 100 * writes) * MS:
            write = policy.insert(Request(2 * FAR, 8, WRITE, task=2, flags=flags if writes == before else SYNC), now)
            writes += 1
        request, now = _serve(policy, now, left)
        if request is None:
            continue
        left.discard(request)
        if request == stream:
            place += 256
            stream = policy.insert(Request(place, 256, READ, task=1, flags=SYNC), now)
        elif request == write:
            write = None
            if writes > before:
                begun = now
                left = {policy.insert(Request(FAR + 2048 * i, 2048, WRITE, task=3), now + 1) for i in range(12)}
        if begun and not left:
            return now - begun
    raise AssertionError("write-back is never served")


def test_write_back_that_comes_while_a_journal_is_at_its_commit_is_waited_for() -> None:
    assert _write_back_after_a_write(SYNC) < 1500 * MS
    assert _write_back_after_a_write(SYNC | META) > 2000 * MS


def _commits(streams: int, depth: int, need: int) -> list[int]:
    """How long commits take beside streams: a write, as many requests of write-back as the journal waits for, and its own write.

    There are four requests for write-back, each of which takes 20 ms.
    """
    policy = _policy(depth)
    for task in range(3 + streams):
        policy.start_task(task, 0)
    now, written, begun, wanted = 0, 0, 0, 0
    took: list[int] = []

    def read(task: int, place: int) -> int:
        return policy.insert(Request(place, 256, READ, task=task, flags=SYNC), now)

    def write_back() -> int:
        return policy.insert(Request(FAR + 2048 * written, 2048, WRITE, task=2), now)

    reads = {read(3 + i, 10 * FAR * (i + 1)): (3 + i, 10 * FAR * (i + 1)) for i in range(streams)}
    dirty: set[int] = set()
    log: int | None = None
    journal: int | None = None
    while now < 60_000 * MS:
        while len(dirty) < 4:
            dirty.add(write_back())
            written += 1
        if log is None and journal is None and not wanted:
            begun = now
            log = policy.insert(Request(5 * FAR + 8 * len(took), 8, WRITE, task=0, flags=SYNC), now)
        request, now = _serve(policy, now, dirty)
        if request is None:
            continue
        if request in reads:
            task, place = reads.pop(request)
            reads[read(task, place + 256)] = task, place + 256
        elif request in dirty:
            dirty.remove(request)
            wanted -= wanted > 0
            if log is None and journal is None and not wanted:
                journal = policy.insert(Request(6 * FAR + 8 * len(took), 8, WRITE, task=1, flags=SYNC | META), now)
        elif request == log:
            log, wanted = None, need
        elif request == journal:
            journal = None
            took.append(now - begun)
    return took


@pytest.mark.parametrize(("streams", "need"), [(2, 4), (2, 6), (4, 1), (4, 4), (4, 6)])
def test_a_commit_does_not_wait_for_rounds_of_turns(streams: int, need: int) -> None:
    """Write-back that it waits for is next at the end of a turn: else the longest took two to seven times as long."""
    assert max(_commits(streams, 1, need)[2:]) < (250 if need == 1 else 1200) * MS


def test_nobody_commits_where_no_journal_writes() -> None:
    assert _write_back_after_a_write(SYNC, before=10) > 2000 * MS


def test_write_back_of_metadata_does_not_wait_for_the_rest() -> None:
    served = _write_back_beside_a_stream(None, 3 * FAR)
    assert served[3 * FAR] < sorted(served.values())[3]


@pytest.mark.parametrize("nr_requests", [8, 64, 256])
def test_readers_find_requests_beside_write_back(nr_requests: int) -> None:
    policy = Policy("maitre", {"positions": POSITIONS}, sectors=1 << 30, nr_requests=nr_requests)
    policy.start_task(1, 0)

    def limit(op: int, flags: int) -> int:
        return policy.limit_depth(Request(0, 8, op, task=1, flags=flags))

    assert limit(READ, SYNC) >= nr_requests
    assert limit(WRITE, 0) == nr_requests // 2
    policy.insert(Request(0, 8, READ, task=1, flags=SYNC), 0)
    assert limit(WRITE, 0) == max(nr_requests // 4, 4)
    assert limit(WRITE, SYNC) == nr_requests * 3 // 4


def test_a_log_beside_random_readers_commits_soon(tmp_path: Path) -> None:
    job = tmp_path / "log.fio"
    job.write_text(LOG)
    done = headwaiter.run(job, "maitre", "barracuda-80g")
    assert done.result.write and done.result.read
    assert done.result.write.lat_ms.p99 <= 200
    *readers, log = done.result.tasks or ()
    assert 1.4 < log.requests / max(reader.requests for reader in readers) < 3, "it has more than its ninth of the time"


def test_a_log_has_no_more_than_one_reader_beside_it(tmp_path: Path) -> None:
    job = tmp_path / "log.fio"
    job.write_text(LOG.replace("numjobs=8", "numjobs=1"))
    done = headwaiter.run(job, "maitre", "barracuda-80g")
    reader, log = done.result.tasks or ()
    assert reader.requests > 0.7 * log.requests


def test_on_an_array_two_who_think_do_not_wait_for_each_other() -> None:
    job = ROOT / "workloads/regret/thinkers-2.fio"
    one, array = (
        headwaiter.run(job, "maitre", d).result.throughput_mbps or 0 for d in ("barracuda-80g", "raid0-4x-barracuda-80g")
    )
    assert array > 1.6 * one
