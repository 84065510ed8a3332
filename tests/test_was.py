# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""was without a config is `as`, with one it waits by it; was-online finds intervals that gain."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwaiter.base.errors import Problem
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import SYNC
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Outcome, Task, simulate
from headwaiter.study.workload import Reading, find_workload, read_workload

MS = 1_000_000
CONFIG = find("was").tables["config"]
PAPER = "history 0 5\nclasses 0 100\nspatial 0 70\n41 30\n61 0\ntemporal 0 30\n3000 15\n9000 0\n"
ONE_CLASS = CONFIG.parse("one class", b"history 0 5\nclasses 0 1\nspatial 0 70\ntemporal 0 30\ninterval 1 6000")


def random_load(seed: int, tasks: int = 6, requests: int = 150) -> Forest:
    """Readers of all kinds: near and far, quick and slow, that exit or stay, and some writes between."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(tasks), requests)
    nth = np.tile(np.arange(requests), tasks)
    n = len(task)
    habit = rng.choice([0, 8, 50, 5000, 10_000_000], tasks)[task]
    think = rng.choice([0, 300_000, 2 * MS, 5 * MS, 9 * MS, 30 * MS], tasks)[task]
    sector = (task * 100_000_000 + nth * 8 + rng.integers(0, habit + 1)).astype(np.uint64)
    op = (rng.random(n) < 0.1).astype(np.uint8)
    return Forest(
        tasks=[Task(k, f"t{k}", k, exits=bool(k % 2)) for k in range(tasks)],
        time_ns=rng.integers(0, 50 * MS, n),
        parent=np.where(nth == 0, -1, np.arange(n) - 1),
        delay_ns=(think * rng.exponential(1.0, n)).astype(np.int64),
        task=task.astype(np.uint32),
        op=op,
        flags=np.where(op == 0, SYNC, 0).astype(np.uint8),
        sector=sector,
        sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


def log_of(tmp_path: Path, scheduler: str, load: Any, drive: Any, **tunables: Any) -> bytes:
    path = tmp_path / scheduler
    simulate(scheduler, drive, load, tunables, Options(nr_requests=64), path)
    return path.read_bytes()


@pytest.mark.parametrize("cooperation", [0, 1])
@pytest.mark.parametrize("depth", [1, 4])
def test_without_a_config_it_is_as_to_the_last_event(tmp_path: Path, cooperation: int, depth: int) -> None:
    options = Options(queue_depth=depth, nr_requests=64)
    for seed in range(6):
        logs = set()
        for scheduler, tables in (("as", {}), ("was", {}), ("was", {"config": np.empty((0, 3), np.int64)})):
            path = tmp_path / "log"
            simulate(scheduler, ConstantDrive(4 * MS), random_load(seed), {"cooperation": cooperation, **tables}, options, path)
            logs.add(path.read_bytes())
        assert len(logs) == 1
        assert b"wait_begin" in logs.pop()


@pytest.mark.parametrize("cooperation", [0, 1])
def test_one_class_and_6_ms_is_as_too(tmp_path: Path, cooperation: int) -> None:
    for seed in range(6):
        mine = log_of(tmp_path, "was", random_load(seed), ConstantDrive(4 * MS), cooperation=cooperation, config=ONE_CLASS)
        assert mine == log_of(tmp_path, "as", random_load(seed), ConstantDrive(4 * MS), cooperation=cooperation)


def test_no_wait_is_longer_than_the_interval_of_its_class(tmp_path: Path) -> None:
    """Each class has its own; waits that fail last as long as one of the intervals, from the tick of the completion."""
    config = CONFIG.parse("config", (PAPER + "interval 1 1000\n20 2000\n50 4000\n80 7000").encode())
    lasted = set()
    for seed in range(6):
        path = tmp_path / "log"
        out = simulate("was", ConstantDrive(4 * MS), random_load(seed), {"cooperation": 1, "config": config}, Options(), path)
        with path.open() as f:
            rows = list(csv.DictReader(f))
        begins = [int(r["time_ns"]) for r in rows if r["event"] == "wait_begin"]
        ends = [int(r["time_ns"]) for r in rows if r["event"] == "wait_end"]
        done = [int(r["time_ns"]) for r in rows if r["event"] == "complete"]
        since = [max(t for t in done if t <= begin) for begin in begins]
        lasted |= {-(-(end - s // MS * MS) // MS) for s, end in zip(since, ends, strict=True)}
        assert out.totals["a_fail"] > 0
    assert max(lasted) == 7 and {1, 2, 4, 7} <= lasted


def test_counters_are_the_waits_by_class() -> None:
    config = CONFIG.parse("config", (PAPER + "interval 1 10000").encode())
    seen = np.zeros((512, 65), np.int64)
    for seed in range(6):
        tunables: dict[str, Any] = {"cooperation": 1, "config": config, "observe": 1}
        out = simulate("was", ConstantDrive(4 * MS), random_load(seed), tunables)
        assert out.counters is not None and out.counters.shape == (512, 65)
        assert out.counters[:, -1].sum() == out.totals["a_fail"]
        assert out.counters[:, :-1].sum() == out.totals["a_success"]
        assert not out.counters[:, 10:-1].any() and not out.counters[100:].any()
        seen += out.counters
        assert simulate("was", ConstantDrive(4 * MS), random_load(seed), {**tunables, "observe": 0}).counters is None
    assert np.count_nonzero(seen.sum(axis=1)) > 5 and np.count_nonzero(seen.sum(axis=0)) > 5


def waiting_pair(tunables: dict[str, Any], think_ns: int) -> Outcome:
    """A read, another one of the same task so long after it, and another task's read far away."""
    forest = Forest(
        [Task(0, "a", 0), Task(1, "b", 1)], np.zeros(3, np.int64), np.array([-1, -1, 0]), np.array([0, 0, think_ns]),
        np.array([0, 1, 0], np.uint32), np.zeros(3, np.uint8), np.ones(3, np.uint8), np.array([0, 10**6, 8], np.uint64),
        np.full(3, 8, np.uint32), np.zeros(3, np.uint16),
    )  # fmt: skip
    return simulate("was", ConstantDrive(5 * MS), forest, {"cooperation": 1, "observe": 1, **tunables}, Options(record=True))


@pytest.mark.parametrize(
    ("think_ns", "bucket_us", "column"),
    [(1, 1000, 0), (MS, 1000, 0), (MS + 1, 1000, 1), (3 * MS, 1000, 2), (300_000, 100, 2), (3 * MS, 10, 63)],
)
def test_buckets_hold_their_upper_end(think_ns: int, bucket_us: int, column: int) -> None:
    """W6 of the spec: elapsed 3 ms counts in bin 3. What exceeds the last bucket counts there."""
    config = CONFIG.parse("config", (PAPER + "interval 1 3500").encode())
    out = waiting_pair({"config": config, "bucket_us": bucket_us}, think_ns)
    expected = np.zeros((512, 65), np.uint32)
    expected[99, column] = 1
    assert out.counters is not None and (out.counters == expected).all()


def test_a_failed_wait_counts_in_the_last_column() -> None:
    config = CONFIG.parse("config", (PAPER + "interval 1 3500").encode())
    out = waiting_pair({"config": config}, 4 * MS)
    assert out.counters is not None and out.counters[99, 64] == 2 and out.counters.sum() == 2, "that for b fails, too"


def test_another_config_comes_into_force_between_two_calls() -> None:
    policy = Policy("was", {"cooperation": 1, "observe": 1})
    for task in (0, 1):
        policy.start_task(task, 0)
    policy.insert(Request(0, 8, 0, 0, SYNC), 0)
    policy.insert(Request(10**6, 8, 0, 1, SYNC), 0)
    assert policy.dispatch(0) == 0
    policy.complete(0, 5 * MS)
    assert policy.dispatch(5 * MS) is None and policy.wake_ns == 11 * MS
    policy.set_table("config", CONFIG.parse("x", (PAPER + "interval 1 2500").encode()))
    assert policy.dispatch(6 * MS) is None and policy.wake_ns == 7 * MS + MS // 2
    with pytest.raises(Problem, match="was: config: lacks a row 'history'"):
        policy.set_table("config", np.array([[4, 0, 1]]))
    assert policy.dispatch(7 * MS) is None and policy.wake_ns == 7 * MS + MS // 2
    assert policy.dispatch(7 * MS + MS // 2) == 1
    assert policy.stat("classes") == 100
    policy.set_table("config", np.empty((0, 3), np.int64))
    assert policy.stat("classes") == 0


# --- was-online ---


def streams(seed: int, think_us: tuple[int, int], step: int, readers: int = 4, requests: int = 400) -> Forest:
    """Readers that think between the two times (us), each step (sectors) on from its last read; 0: anywhere."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(readers), requests)
    nth = np.tile(np.arange(requests), readers)
    n = len(task)
    place = task * 35_000_000 + nth * step if step else rng.integers(0, 150_000_000, n)
    return Forest(
        [Task(k, f"t{k}", k) for k in range(readers)],
        np.zeros(n, np.int64), np.where(nth == 0, -1, np.arange(n) - 1), rng.integers(think_us[0], think_us[1] + 1, n) * 1000,
        task.astype(np.uint32), np.zeros(n, np.uint8), np.ones(n, np.uint8), place.astype(np.uint64),
        np.full(n, 8, np.uint32), np.zeros(n, np.uint16),
    )  # fmt: skip


def compared(load: Forest, *schedulers: str) -> list[Outcome]:
    return [simulate(s, open_drive("barracuda-80g"), load, {"cooperation": 1}) for s in schedulers]


def per_success(out: Outcome) -> float:
    return float(out.totals["t_fail_ns"] / max(1, out.totals["a_success"]))


def test_it_learns_to_wait_for_streams_for_as_long_as_they_think() -> None:
    old, new = compared(streams(1, (200, 400), 8), "as", "was-online")
    assert 400 <= new.stats["longest_wait"] < 1000
    assert new.totals["now_ns"] <= 1.01 * old.totals["now_ns"]


def test_it_learns_not_to_wait_for_random_readers() -> None:
    """A wait that is met saves nothing here but that the elevator then has one more to choose from; `as` waits on."""
    old, new = compared(streams(1, (200, 400), 0), "as", "was-online")
    assert new.totals["a_success"] + new.totals["a_fail"] < 0.2 * (old.totals["a_success"] + old.totals["a_fail"])
    assert new.totals["now_ns"] <= 1.03 * old.totals["now_ns"]


def test_it_gives_up_on_long_thinks_as_soon_as_they_are_known_to_be_long() -> None:
    """One think in five takes 30 ms and more, the others 200 us: nothing comes between, and `as` waits 6 ms for it."""
    load = streams(2, (30_000, 40_000), 8)
    load.delay_ns[np.arange(len(load.delay_ns)) % 5 > 0] = 200_000
    old, new = compared(load, "as", "was-online")
    assert old.totals["a_fail"] > 100
    assert new.totals["a_success"] >= 0.9 * old.totals["a_success"]
    assert per_success(new) < 0.2 * per_success(old)


def test_it_forgets_what_is_no_longer_so() -> None:
    """Readers think 300 us, then 5 ms: intervals follow."""
    load = streams(3, (300, 300), 8, requests=1600)
    late = np.tile(np.arange(1600) >= 800, 4)
    load.delay_ns[late] = 5 * MS
    quick, both = compared(streams(3, (300, 300), 8), "was-online")[0], compared(load, "was-online")[0]
    assert quick.stats["longest_wait"] < 1000
    assert 5000 <= both.stats["longest_wait"] < 7000


def test_it_forgets_thinks_that_were_longer() -> None:
    """2 ms, then 300 us, and later one in ten in vain: a long interval stays only as long as the long thinks are remembered."""
    load = streams(3, (300, 300), 8, requests=2400)
    nth = np.tile(np.arange(2400), 4)
    load.delay_ns[nth < 300] = 2 * MS
    load.delay_ns[(nth >= 1000) & (nth % 10 == 0)] = 50 * MS
    out = compared(load, "was-online")[0]
    assert out.totals["a_fail"] > 50
    assert out.totals["t_fail_ns"] < 0.5 * MS * out.totals["a_fail"]


def test_where_nothing_is_saved_it_does_not_wait() -> None:
    """On a drive that takes as long for everything."""
    out = simulate("was-online", ConstantDrive(4 * MS), streams(1, (200, 400), 8), {"cooperation": 1})
    assert out.totals["a_success"] + out.totals["a_fail"] < 60


@pytest.mark.thorough
@pytest.mark.parametrize("workload", ["readers-8.fio", "mixed.fio", "example.blktrace.xz"])
def test_on_bundled_workloads_it_loses_nothing(workload: str) -> None:
    drive = open_drive("barracuda-80g")
    load = read_workload(
        find_workload(workload), drive, Reading("closed" if "blktrace" in workload else None, 20.0, None, ())
    ).load
    old, new = (simulate(s, drive, load, {"cooperation": 1}, Options(nr_requests=256)) for s in ("as", "was-online"))
    assert new.totals["now_ns"] <= 1.01 * old.totals["now_ns"]
    assert per_success(new) <= per_success(old)
