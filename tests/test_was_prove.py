# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""was, where the config says `prove`: an interval is in force only while it is worth more than antic_expire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwaiter.engine.constants import SYNC
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import ConstantDrive, Forest, Outcome, Task, simulate

MS = 1_000_000
CONFIG = find("was").tables["config"]
USUAL_MS = 6


def config(wait_us: int, prove: bool = True) -> Any:
    """One class for all, with this interval."""
    text = f"history 0 5\nclasses 0 1\nspatial 0 70\ntemporal 0 30\ninterval 1 {wait_us}\nprove 0 {int(prove)}"
    return CONFIG.parse("one class", text.encode())


def readers(thinks_us: Any, tasks: int = 3) -> Forest:
    """Readers far from each other; each thinks so long after its first read, its second, …"""
    n = len(thinks_us)
    task, nth = np.repeat(np.arange(tasks), n), np.tile(np.arange(n), tasks)
    count = tasks * n
    return Forest(
        [Task(k, f"t{k}", k) for k in range(tasks)], np.zeros(count, np.int64), np.where(nth == 0, -1, np.arange(count) - 1),
        np.tile(np.asarray(thinks_us, np.int64) * 1000, tasks), task.astype(np.uint32), np.zeros(count, np.uint8),
        np.full(count, SYNC, np.uint8), (task * 35_000_000 + nth * 8).astype(np.uint64), np.full(count, 8, np.uint32),
        np.zeros(count, np.uint16),
    )  # fmt: skip


def run(load: Forest, rows: Any = None, scheduler: str = "was", **tunables: Any) -> Outcome:
    given = {"cooperation": 1, **({} if rows is None else {"config": rows}), **tunables}
    return simulate(scheduler, ConstantDrive(4 * MS), load, given)


def failures(out: Outcome) -> int:
    return int(out.totals["a_fail"])


def mixed(often_us: int, rarely_us: int, every: int, n: int = 400) -> Any:
    """Think times of one kind, and every so many of another."""
    return np.where(np.arange(n) % every == every - 1, rarely_us, often_us)


def test_a_longer_interval_comes_into_force_once_it_would_have_met_what_fails() -> None:
    """One think in four takes 8 ms: 6 ms in vain each time, or 8 ms that are met."""
    load = readers(mixed(500, 8000, 4))
    plain, given, proven = run(load, scheduler="as"), run(load, config(9000, prove=False)), run(load, config(9000))
    assert failures(plain) > 200 and failures(given) < 10
    assert failures(given) < failures(proven) < 0.3 * failures(plain)


def test_a_longer_interval_that_meets_nothing_never_comes_into_force() -> None:
    """One think in four takes 30 ms: to wait 9 ms for it costs half as much again as 6 ms."""
    load = readers(mixed(500, 30_000, 4))
    plain, given, proven = run(load, scheduler="as"), run(load, config(9000, prove=False)), run(load, config(9000))
    assert given.totals["t_fail_ns"] > 1.2 * plain.totals["t_fail_ns"]
    assert proven.totals == plain.totals


def test_a_longer_interval_needs_more_than_a_few_waits() -> None:
    """Two thinks of 8 ms might be chance."""
    load = readers([500] * 8 + [8000] + [500] * 10, tasks=2)
    assert run(load, config(9000)).totals == run(load, scheduler="as").totals


def test_a_shorter_interval_is_in_force_at_once() -> None:
    """One think in four takes 30 ms: each costs 2 ms instead of 6."""
    load = readers(mixed(500, 30_000, 4))
    given, proven = run(load, config(2000, prove=False)), run(load, config(2000))
    assert proven.totals == given.totals


def test_a_shorter_interval_that_misses_what_antic_expire_meets_is_given_up() -> None:
    """Every other think takes 3 ms: 2 ms are in vain, and 6 ms are not."""
    load = readers(mixed(500, 3000, 2))
    plain, given, proven = run(load, scheduler="as"), run(load, config(2000, prove=False)), run(load, config(2000))
    assert given.totals["a_success"] < 0.6 * plain.totals["a_success"]
    assert proven.totals["a_success"] > 0.9 * plain.totals["a_success"]


def test_a_wait_that_is_met_is_worth_what_failed_ones_cost_on_average() -> None:
    """A longer interval meets some of those that fail, and the others cost 4 ms more: worth it only where waits are dear."""
    dear = np.tile([500, 8000, 30_000, 30_000, 30_000, 30_000], 120)
    cheap = np.tile([500] * 30 + [8000, 30_000, 30_000], 60)
    for thinks, longer in ((dear, False), (cheap, False), (np.tile([500, 8000, 30_000], 150), True)):
        load = readers(thinks)
        same = run(load, config(10_000)).totals == run(load, scheduler="as").totals
        assert same is not longer


def test_a_wait_that_the_think_time_forbids_costs_nothing() -> None:
    """Thinks of 3 ms, and one in seven of 20: who waits 2 ms for such a task does not wait at all, which loses nothing."""
    load = readers(np.tile([3000] * 6 + [20_000], 60))
    plain, proven = run(load, scheduler="as"), run(load, config(2000))
    assert proven.totals["a_success"] + failures(proven) < 0.2 * (plain.totals["a_success"] + failures(plain))


def test_tasks_that_never_come_back_count() -> None:
    """Each thinks for 8 ms once, and then for longer than all this takes, where 15 ms cost 9 more than 6."""
    load = readers([500] * 8 + [8000] + [500] * 2 + [100_000_000], tasks=40)
    plain, given, proven = run(load, scheduler="as"), run(load, config(15_000, prove=False)), run(load, config(15_000))
    assert given.totals["a_success"] > plain.totals["a_success"] + 30 > proven.totals["a_success"] + 15


def test_what_was_proven_is_forgotten() -> None:
    """Thinks of 8 ms make 9 ms worth it; later all long ones are in vain, and waits are as long as under `as` again."""
    early, late = mixed(500, 8000, 4, 300), mixed(500, 40_000, 4, 1200)
    both, alone = run(readers(np.concatenate([early, late])), config(9000)), run(readers(early), config(9000))
    failed = failures(both) - failures(alone)
    lost_ms = (both.totals["t_fail_ns"] - alone.totals["t_fail_ns"]) / MS
    assert failed > 500 and lost_ms < 1.1 * USUAL_MS * failed


def play(policy: Policy, thinks_ms: Sequence[int], now: int) -> tuple[list[int], int]:
    """Task 0 reads in sequence and thinks after each read, task 1 always has a write queued. The waits' limits, and the time."""
    limits, queued = [], False
    for k, think in enumerate(thinks_ms):
        policy.insert(Request(now // MS * 8, 8, 0, 0, SYNC), now)
        rq = policy.dispatch(now)
        assert rq is not None
        now += MS
        policy.complete(rq, now)
        if not queued:
            policy.insert(Request(10**8 + 8 * k, 8, 1, 1), now)
        other = policy.dispatch(now)
        assert other is None and policy.wake_ns
        limits.append((policy.wake_ns - now) // MS)
        queued = think <= limits[-1]
        if not queued:
            over = policy.wake_ns
            other = policy.dispatch(over)
            assert other is not None
            policy.complete(other, over + MS)
            assert over + MS <= now + think * MS
        now += think * MS
    return limits, now


def test_a_proof_is_of_one_config() -> None:
    policy = Policy("was", {"cooperation": 1, "config": config(9000)})
    for task in (0, 1):
        policy.start_task(task, 0)
    limits, now = play(policy, [1, 1, 1, 8] * 20, 100 * MS)
    assert limits[0] == USUAL_MS and limits[-1] == 9
    assert policy.stat("own") == 1
    policy.set_table("config", config(8000))
    assert policy.stat("own") == 0
    limits, now = play(policy, [1, 1], now)
    assert limits[-1] == USUAL_MS


def test_a_class_that_waits_as_under_as_has_no_interval_of_its_own() -> None:
    policy = Policy("was", {"cooperation": 1, "config": config(1000 * USUAL_MS, prove=False)})
    assert policy.stat("classes") == 1 and policy.stat("own") == 0
    policy.set_table("config", config(5000))
    assert policy.stat("own") == 1
