# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre where nothing moves, and what it learns where it is told nothing; scenarios of disks are in golden/maitre.toml."""

from __future__ import annotations

import numpy as np
import pytest

from headwaiter.engine.constants import SYNC, IoprioClass, Op, ioprio
from headwaiter.engine.policy import NEVER, Policy, Request

US = 1_000
MS = 1_000_000
READ, WRITE = int(Op.READ), int(Op.WRITE)


def _flash(depth: int = 64) -> Policy:
    policy = Policy("maitre", rotational=False, depth=depth)
    for task in range(6):
        policy.start_task(task, 0)
    return policy


def _read(policy: Policy, task: int, now: int, sector: int = 0, sectors: int = 8, prio: int = 0) -> int:
    return policy.insert(Request(sector, sectors, READ, task=task, flags=SYNC, ioprio=prio), now)


def _write(policy: Policy, now: int, sectors: int = 8) -> int:
    return policy.insert(Request(1_000_000, sectors, WRITE, task=5), now)


def _all(policy: Policy, now: int) -> list[int]:
    found = []
    while (request := policy.dispatch(now)) is not None:
        found.append(request)
    return found


def test_order_of_arrival_whatever_the_place() -> None:
    policy = _flash()
    ids = [_read(policy, task, 0, sector) for task, sector in ((0, 9000), (1, 100), (0, 5000), (2, 10))]
    assert _all(policy, 0) == ids
    assert not policy.has_work


def test_real_time_first_and_the_idle_class_after_a_quiet_millisecond() -> None:
    policy = _flash()
    idle = _read(policy, 0, 0, prio=ioprio(IoprioClass.IDLE))
    common = _read(policy, 1, 10)
    urgent = _read(policy, 2, 20, prio=ioprio(IoprioClass.RT))
    assert _all(policy, 20) == [urgent, common]
    policy.complete(urgent, 30)
    policy.complete(common, 40)
    assert _all(policy, 50) == []
    assert policy.wake_ns == 20 + MS
    assert _all(policy, 20 + MS) == [idle]


def test_the_idle_class_waits_200_ms_beside_others_at_most() -> None:
    policy = _flash()
    idle = _read(policy, 0, 0, prio=ioprio(IoprioClass.IDLE))
    now, served = 0, []
    while idle not in served and now < 1000 * MS:
        now += 500 * US
        _read(policy, 1, now)
        for request in _all(policy, now):
            served.append(request)
            policy.complete(request, now)
    assert now == 200 * MS


def test_no_more_bytes_in_the_device_than_it_moves_in_two_milliseconds() -> None:
    policy = _flash()
    for i in range(64):
        _read(policy, i % 4, 0, i * 1000, 64)
    # As long as no rate is known: 512 KiB.
    first = _all(policy, 0)
    assert len(first) * 64 == 1024
    policy.complete(first[0], 100 * US)
    assert len(_all(policy, 100 * US)) == 1


def test_write_back_is_held_until_reads_have_shown_what_they_take_alone() -> None:
    policy = _flash()
    writes = [_write(policy, 0, 2560) for _ in range(8)]
    assert len(_all(policy, 0)) < len(writes)
    now = 100 * US
    read = _read(policy, 0, now)
    assert read in _all(policy, now)


def test_what_comes_back_has_not_been_served() -> None:
    """A read that comes back at once is no read that takes a microsecond, beside which writes would cost too much."""
    policy, now = _flash(), 0
    for back in (True, False, False):
        read = _read(policy, 0, now, 0, 8)
        assert _all(policy, now) == [read]
        if back:
            policy.requeue(read, now + US)
            assert policy.dispatch(now + US) == read
        policy.complete(read, now + 200 * US)
        now += MS
    window = policy.stat("write_window")
    for _ in range(20):
        write, read = _write(policy, now, 8), _read(policy, 0, now, 0, 8)
        assert sorted(_all(policy, now)) == sorted([write, read])
        policy.complete(write, now + 200 * US)
        policy.complete(read, now + 210 * US)
        now += MS
    assert policy.stat("write_window") >= window


def _beside_a_reader(think: int) -> tuple[int, int]:
    """Writes in 400 ms, and the time between two in most cases, beside a reader that thinks so long. Each I/O takes 200 us."""
    policy, now, due, free = _flash(), 0, 0, 0
    writes, reads = {_write(policy, 0, 256) for _ in range(2000)}, set()
    flying, begun = list[tuple[int, int]](), list[int]()
    while now < 400 * MS:
        if due <= now:
            reads.add(_read(policy, 0, now, 0, 256))
            due = NEVER
        for request in _all(policy, now):
            free = max(free, now) + 200 * US
            flying.append((free, request))
            if request in writes:
                begun.append(now)
        now = min([*(end for end, _ in flying), policy.wake_ns, due])
        while flying and flying[0][0] <= now:
            _, request = flying.pop(0)
            policy.complete(request, now)
            if request in reads:
                due = now + think
    return len(begun), int(np.median(np.diff(begun)))


def test_write_back_keeps_apart_the_less_the_longer_a_reader_thinks() -> None:
    """By four times what it takes of a device that reads keep busy, by three beside a thought of a quarter of a read."""
    assert _beside_a_reader(0)[1] == 800 * US
    # A round is of 260 us, and so the rate of the device seems to be.
    assert 600 * US < _beside_a_reader(60 * US)[1] < 700 * US
    assert _beside_a_reader(120 * US)[0] > 1000


def _busy(policy: Policy, beside: int = 16, alone_ns: int = 0, together_ns: int = 0) -> tuple[int, list[int]]:
    """Two tasks keep the device busy for 100 ms, so that a third is behind them.

    In the end three reads of 128 KiB and `beside` more are in it. A small read of task 3 takes `alone_ns` alone in the device,
    and another one `together_ns` beside theirs (0: there is none).
    """
    now, flying, small = 0, list[int](), 0
    if alone_ns:
        lone = _read(policy, 3, 0)
        assert _all(policy, 0) == [lone]
        policy.complete(lone, alone_ns)
    for i in range(1, 1000):
        now = i * 100 * US
        for task in (0, 1):
            _read(policy, task, now, i * 4096, 256)
        flying += _all(policy, now)
        if together_ns and now == 50 * MS:
            small = _read(policy, 3, now)
            assert small in _all(policy, now)
        if small and now == 50 * MS + together_ns:
            policy.complete(small, now)
            small = 0
        while len(flying) > 3:
            policy.complete(flying.pop(0), now)
    for i in range(beside):
        _read(policy, i % 2, now, i * 4096, 256)
    return now, flying + _all(policy, now)


def test_a_sleeper_has_the_device_alone_and_is_waited_for() -> None:
    policy = _flash()
    now, flying = _busy(policy)
    small = _read(policy, 2, now)
    other = _read(policy, 0, now, 123, 256)
    assert policy.dispatch(now) == small
    assert policy.dispatch(now) is None
    for request in flying:
        policy.complete(request, now)
    policy.complete(small, now)
    # It may come again: 250 us.
    assert policy.dispatch(now) is None
    assert policy.wake_ns == now + 250 * US
    assert policy.dispatch(now + 250 * US) == other


@pytest.mark.parametrize(
    ("beside", "alone_us", "together_us", "has_it_alone"),
    [
        (16, 0, 0, True),
        (2, 0, 0, False),  # no fifth of what the device moves in 2 ms
        (16, 100, 300, False),  # served side by side: three times as long is no crowd yet
        (16, 100, 400, True),
        (2, 100, 400, True),  # what reads take tells more than what is there
        (16, 100, 0, True),
    ],
)
def test_a_sleeper_shares_a_device_that_serves_it_beside_others(
    beside: int, alone_us: int, together_us: int, has_it_alone: bool
) -> None:
    policy = _flash()
    now, _ = _busy(policy, beside, alone_us * US, together_us * US)
    small, other = _read(policy, 2, now), _read(policy, 0, now, 123, 256)
    assert _all(policy, now) == [small] + [other] * (not has_it_alone)


def test_who_has_had_more_steps_aside_until_the_others_have_had_as_much() -> None:
    policy, owner, flying = _flash(), dict[int, int](), list[int]()

    def ask(task: int, now: int) -> None:
        owner[_read(policy, task, now, 0, 256)] = task

    def served(now: int) -> list[int]:
        """A request that takes 500 us has been completed; its task asks again. Those that go to the device."""
        if flying:
            policy.complete(flying[0], now)
            ask(owner[flying.pop(0)], now)
        found = _all(policy, now)
        flying.extend(found)
        return [owner[request] for request in found]

    steps = range(0, 3000 * MS, 500 * US)
    for _ in range(4):
        ask(0, 0)
    for now in steps[:400]:
        served(now)
    # Four others come, with two requests each: there is always one of theirs in the line.
    for task in (1, 2, 3, 4) * 2:
        ask(task, steps[400])
    turns = [served(now) for now in steps[401:]]
    waits = np.diff([0, *(at for at, tasks in enumerate(turns) if 0 in tasks), len(turns)])
    # It is ahead by 100 ms at most, and the mean of the others grows by a quarter of the time.
    assert 100 * MS < waits.max() * 500 * US < 500 * MS


def test_positions_are_learnt_from_requests_that_were_alone() -> None:
    policy = Policy("maitre", sectors=1 << 30)
    policy.start_task(0, 0)
    assert policy.stat("turn") == 12 * MS // 48
    now, at = 0, 0
    for i in range(640):
        at = (at + (1 << 29)) % (1 << 30) if i % 2 else (at + (1 << 28)) % (1 << 30)
        request = _read(policy, 0, now, at)
        assert policy.dispatch(now) == request
        now += 20 * MS
        policy.complete(request, now)
        now += MS
    # All of it is positioning: nothing has streamed.
    assert 18 * MS // 48 < policy.stat("turn") <= 20 * MS // 48
