# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre: whose data the drive's cache holds has them beside the turns of others; whose it does not hold, does not.

The drive of most tests takes 32 commands. What it holds takes 0.1 ms, whatever else it does; others 10 ms, one by one.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path

import pytest
from jobload import run_jobs

from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.policy import NEVER, Policy, Request
from headwaiter.engine.schedulers import find

MS = 1_000_000
HIT, MISS = MS // 10, 10 * MS
MIB = 2048
POSITIONS = find("maitre").tables["positions"].parse("positions", b"0 0\n1024 0\n1025 1000000\n65536 1000000\n65537 10000000")


@dataclass
class Program:
    """It asks for what `places` says, `at_once` requests at a time, and thinks for `think_ns` after each."""

    places: Callable[[], int]
    held: Callable[[], bool]
    """Is what it asks for in the cache?"""
    at_once: int = 1
    think_ns: int = 20_000
    op: Op = Op.READ
    group: int = 0
    sectors: int = 8


@dataclass(frozen=True, slots=True)
class Served:
    at_ns: int
    task: int
    held: bool
    others: dict[int, int]
    """The requests that were in the drive already, and their tasks."""


@dataclass
class Drive:
    programs: list[Program]
    depth: int = 32
    keeps_head: tuple[int, ...] = ()
    """Tasks in whose favour the drive leaves what it does not hold for 2 s, for as long as it has a request of theirs."""
    now: int = 0
    served: list[Served] = field(default_factory=list)
    done: dict[int, int] = field(default_factory=dict)
    """Requests of each task."""
    long_ns: dict[int, int] = field(default_factory=dict)
    """The longest that a request of each task has taken."""

    def run(self, end: int) -> None:
        policy = Policy("maitre", {"positions": POSITIONS}, sectors=1 << 33, depth=self.depth)
        if any(p.group for p in self.programs):
            policy.start_group(1)
        for task in range(len(self.programs)):
            policy.start_task(task, 0)
        due = [(0, task) for task, p in enumerate(self.programs) for _ in range(p.at_once)]  # a heap
        queued: dict[int, tuple[int, bool, int]] = {}
        flying: dict[int, tuple[int, int]] = {}
        begun: dict[int, int] = {}
        head_free = stream_free = 0
        while True:
            times = [at for at, _ in flying.values()]
            times += [due[0][0]] if due else []
            times += [policy.wake_ns] if queued else []
            self.now = min(times)
            assert self.now != NEVER, "requests are queued, the drive has none, and nobody will ask for one"
            if self.now >= end:
                return
            for request in [r for r, (at, _) in flying.items() if at <= self.now]:
                _, task = flying.pop(request)
                self.long_ns[task] = max(self.long_ns.get(task, 0), self.now - begun.pop(request))
                policy.complete(request, self.now)
                self.done[task] = self.done.get(task, 0) + 1
                heapq.heappush(due, (self.now + self.programs[task].think_ns, task))
            while due and due[0][0] <= self.now:
                _, task = heapq.heappop(due)
                p = self.programs[task]
                asked = Request(p.places(), p.sectors, int(p.op), task=task, flags=SYNC, group=p.group)
                queued[policy.insert(asked, self.now)] = (task, p.held(), self.now)
            while len(flying) < self.depth and (picked := policy.dispatch(self.now)) is not None:
                task, held, since = queued.pop(picked)
                self.served.append(Served(self.now, task, held, {r: t for r, (_, t) in flying.items()}))
                if not held:
                    head_free = max(head_free, self.now) + MISS
                flying[picked] = (self.now + HIT if held else head_free, task)
                if task in self.keeps_head:
                    stream_free = max(stream_free, self.now) + MS
                    flying[picked] = (stream_free, task)
                elif self.keeps_head and not held:
                    flying[picked] = (self.now + 2000 * MS, task)
                begun[picked] = since
            if flying and min(at for at, _ in flying.values()) > self.now + MISS:
                first = min(flying, key=lambda r: flying[r][0])
                flying[first] = (self.now + MISS, flying[first][1])

    def beside(self, task: int) -> list[Served]:
        """Those of `task` that went to the drive with another's there, beside which the one before had gone already."""
        own = [s for s in self.served if s.task == task]
        return [s for before, s in pairwise(own) if any(t != task for r, t in s.others.items() if r in before.others)]


def _anywhere(seed: int) -> Program:
    draw = random.Random(seed)
    return Program(lambda: draw.randrange(0, 1 << 32, 1 << 20), lambda: False)


def _within(mib: int, held: Callable[[], bool] = lambda: True, at_once: int = 1, think_ns: int = 20_000) -> Program:
    draw = random.Random(mib)
    return Program(lambda: (1 << 30) + draw.randrange(0, mib * MIB, 8), held, at_once, think_ns)


def _onward(first: int, sectors: int, think_ns: int) -> Program:
    numbers = count()
    return Program(lambda: first + next(numbers) * sectors, lambda: True, think_ns=think_ns, sectors=sectors)


def _often(ratio: float, draw: random.Random) -> Callable[[], bool]:
    return lambda: draw.random() < ratio


@pytest.mark.parametrize("op", [Op.READ, Op.WRITE])
def test_who_stays_in_the_cache_takes_nobodys_time(op: Op) -> None:
    """In turns each had half of the time, or the other's requests had to wait."""
    local = _within(8)
    local.op = op
    drive = Drive([local, _anywhere(1), _anywhere(2)])
    drive.run(10_000 * MS)
    assert drive.done[0] > 6 * 10_000, "it could ask 8,300 times a second"
    assert drive.done[1] + drive.done[2] > 0.95 * 10_000 * MS // MISS
    assert max(drive.long_ns[1], drive.long_ns[2]) < 400 * MS


@pytest.mark.parametrize("think_ns", [20_000, 900_000])
def test_a_turn_ends_as_ever_and_the_next_request_goes_beside_the_next_one(think_ns: int) -> None:
    """Who mostly thinks has a request queued when his turn ends, and none comes after it that would tell where it belongs."""
    drive = Drive([_within(8, think_ns=think_ns), _anywhere(1)])
    drive.run(2000 * MS)
    first = drive.beside(0)[0].at_ns
    turn = [s for s in drive.served if s.at_ns < first and s.task == 0]
    assert len(turn) > 150, "it has a turn, in which it brings its data into the cache"
    assert first - turn[-1].at_ns < MISS, "it waits for no second turn"


def test_who_misses_now_and_then_comes_back_less_and_less_often() -> None:
    """One request in 60 takes a way. With 16 quick ones in a row asked for each time it would be beside others all the time."""
    numbers = count(1)
    drive = Drive([_within(8, lambda: bool(next(numbers) % 60)), _anywhere(1)])
    drive.run(60_000 * MS)
    missed = [s for s in drive.beside(0) if not s.held]
    assert 2 <= len(missed) <= 4
    assert all(s.at_ns < 20_000 * MS for s in missed)


def test_a_miss_is_not_left_to_a_drive_that_goes_on_with_a_stream() -> None:
    """The stream has its next request there before the drive is done with one. It waits until the miss is served."""
    numbers = count(1)
    stream = _onward(1 << 31, 256, think_ns=100_000)
    stream.at_once = 2
    drive = Drive([_within(8, lambda: bool(next(numbers) % 1000)), stream], keeps_head=(1,))
    drive.run(10_000 * MS)
    missed = [s for s in drive.served if s.task == 0 and not s.held and 1 in s.others.values()]
    assert missed, "it was beside the stream"
    assert drive.long_ns[0] < 600 * MS
    assert drive.done[1] > 4000


@pytest.mark.parametrize("mib", [30, 36])
def test_who_goes_over_more_than_a_cache_holds_has_turns(mib: int) -> None:
    drive = Drive([_within(mib), _anywhere(1)])
    drive.run(4000 * MS)
    assert bool(drive.beside(0)) == (mib == 30)


def test_who_reads_on_is_quick_in_its_turn_only() -> None:
    """The drive has read in advance. Whoever goes over the same 4 MiB again and again finds them in the cache."""
    stream = Drive([_onward(1 << 30, 256, think_ns=200_000), _anywhere(1)])
    stream.run(8000 * MS)
    assert not stream.beside(0)
    numbers = count()
    again = Program(lambda: (1 << 30) + next(numbers) * 256 % (4 * MIB), lambda: True, think_ns=200_000, sectors=256)
    loop = Drive([again, _anywhere(1)])
    loop.run(8000 * MS)
    assert loop.beside(0)


def test_who_waits_for_flushes_has_turns() -> None:
    """After each write it waits, as who calls fsync does: nothing of that is in the cache afterwards."""
    log = _within(8, think_ns=4 * MS)
    log.op = Op.WRITE
    drive = Drive([log, _anywhere(1)])
    drive.run(10_000 * MS)
    assert drive.done[0] < 1300, "beside the other it would write 2,400 times"


def test_groups_have_their_shares_by_turns() -> None:
    grouped = _within(8)
    grouped.group = 1
    drive = Drive([grouped, _anywhere(1)])
    drive.run(4000 * MS)
    assert not drive.beside(0)


def test_a_small_part_of_the_drives_commands() -> None:
    drive = Drive([_within(8, at_once=24), _anywhere(1), _anywhere(2)])
    drive.run(1500 * MS)
    beside = drive.beside(0)
    assert len(beside) > 1000
    assert max(list(s.others.values()).count(0) for s in beside) < 32 // 4
    one = Drive([_within(8), _anywhere(1)], depth=1)
    one.run(2000 * MS)
    assert not one.beside(0), "a drive of one command has nothing beside it"


def test_nothing_disturbs_a_drive_that_reads_ahead() -> None:
    """Held for a stream, which thinks for 0.6 ms, the drive may read on. What comes then would end that, as some drives do it."""
    drive = Drive([_within(8), _onward(1 << 31, 128, think_ns=600_000), _anywhere(1)])
    drive.run(3000 * MS)
    local = [s for s in drive.served if s.task == 0]
    stream = [s for s in drive.served if s.task == 1]
    assert len(drive.beside(0)) > 500 and len(stream) > 500
    between = 0
    for one, other in pairwise(stream):
        if other.at_ns - one.at_ns < MS:
            between += sum(one.at_ns + HIT < s.at_ns < other.at_ns and set(s.others.values()) <= {0} for s in local)
    assert between < len(stream) / 100


@pytest.mark.parametrize("seed", range(6))
def test_any_mixture_is_served(seed: int) -> None:
    """Hits and misses at random, several at once, in groups or not: nobody waits for ever, and no request is lost."""
    draw = random.Random(seed)
    programs = [_anywhere(seed), _onward(1 << 31, 128, think_ns=draw.choice([50_000, 3 * MS]))]
    for _ in range(4):
        held = _often(draw.choice([0.5, 0.97, 0.999, 1]), draw)
        p = _within(draw.choice([2, 8, 19, 40]), held, draw.choice([1, 1, 4, 16]), draw.choice([10_000, MS, 30 * MS]))
        p.op, p.group = draw.choice([Op.READ, Op.WRITE]), int(draw.random() < 0.2)
        programs.append(p)
    drive = Drive(programs, depth=draw.choice([1, 4, 32]))
    drive.run(20_000 * MS)
    assert set(drive.done) == set(range(6))
    assert max(drive.long_ns.values()) < 6000 * MS


FOR_10_S = "filename=/dev/sda\nruntime=10s\ntime_based\ndirect=1\n"
LOOKUP = "[lookup]\nrw=randread\nbs=4k\noffset=1t\nsize=100g\n"
STREAM = "[stream]\nrw=read\nbs=128k\noffset=2t\nsize=100g\n"


@pytest.mark.parametrize(("name", "other"), [("lookup", LOOKUP), ("stream", STREAM)])
@pytest.mark.parametrize("rw", ["randwrite", "randread"])
def test_what_the_cache_holds_costs_others_little(tmp_path: Path, rw: str, name: str, other: str) -> None:
    """8 MiB on a disk of our days. In turns each of the two had half of what it has alone."""
    local = f"[local]\nrw={rw}\nbs=16k\noffset=500g\nsize=8m\n"
    alone = run_jobs(tmp_path, "maitre", "wd-re-4tb", FOR_10_S, other)
    both = run_jobs(tmp_path, "maitre", "wd-re-4tb", FOR_10_S, local, other)
    rates = {task.name: task.throughput_mbps or 0.0 for task in both.tasks or ()}
    assert rates["local"] > 60
    assert rates[name] > 0.8 * alone.throughput_mbps
