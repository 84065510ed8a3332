# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From what the I/Os of a run came to, to its figures, worked out by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from handmade import Row, latencies_of, printed, tallies_of

from headwaiter.base.errors import Problem
from headwaiter.engine.sim import Latencies, Outcome, Task
from headwaiter.study.results import coarse_note, jain, latency, summarise

MS = 1_000_000
READ, WRITE, DISCARD, OTHER = range(4)
TASKS = [Task(10, "reader", 0), Task(11, "first child", 7), Task(12, "second child", 7), Task(13, "silent", 9)]
# task (by place), operation, issue and completion in ms, sectors. No task's first I/O is its quickest, nor its last its slowest.
ROWS: list[Row] = [
    (0, READ, 100, 110, 8), (0, READ, 120, 121, 16), (0, READ, 130, 190, 24), (0, WRITE, 150, 155, 32),
    (1, READ, 200, 204, 64), (2, WRITE, 210, 230, 128), (2, DISCARD, 240, 241, 8), (2, OTHER, 242, 243, 8),
]  # fmt: skip
TOTALS = {
    "cores": 0,
    "now_ns": 243 * MS, "issued": 8, "completed": 8, "requests": 6, "merges": 2, "busy_ns": 103 * MS, "seek_ns": 31 * MS,
    "rotation_ns": 17 * MS, "transfer_ns": 41 * MS, "overhead_ns": 5 * MS, "seeks": 4, "seek_cylinders": 1000, "cache_hits": 1,
    "media_reads": 3, "media_writes": 2, "a_success": 5, "a_fail": 3, "a_other": 2, "t_success_ns": 7 * MS,
    "t_fail_ns": 18 * MS, "t_other_ns": 4 * MS, "drive_sectors": 1 << 20, "queue_depth": 1,
}  # fmt: skip


def outcome(rows: Sequence[Row] = ROWS, tasks: Sequence[Task] = TASKS, **totals: Any) -> Outcome:
    tallies = tallies_of(rows)
    count = {"issued": len(rows), "completed": len(rows)}
    return Outcome(
        scheduler="deadline", tunables={"fifo_batch": 16, "batching": 1}, drive="d", tasks=tasks, tallies=tallies,
        latencies=latencies_of(rows, tallies), totals={**TOTALS, **count, **totals},
    )  # fmt: skip


def told(o: Outcome, tasks: bool = True) -> dict[str, Any]:
    """The result of a run, as `--json` prints it."""
    return printed(summarise(o, tasks))


def figures(sectors: int, elapsed_ms: float) -> dict[str, Any]:
    return {"bytes": sectors * 512, "throughput_MBps": pytest.approx(sectors * 512 / 1e6 / (elapsed_ms / 1e3))}


def test_the_whole() -> None:
    r = told(outcome())
    assert (r["scheduler"], r["tunables"]) == ("deadline", {"fifo_batch": 16, "batching": "any"})
    assert r["elapsed_s"] == pytest.approx(0.143), "from the first issue, at 100 ms, to the last completion"
    assert {k: r[k] for k in ("requests", "bytes", "throughput_MBps")} == {"requests": 8, **figures(288, 143)}
    assert (r["merges"], r["dispatched"]) == (2, 6)
    # Reads took 10, 1, 60 and 4 ms. Throughput of reads is over the whole run.
    assert r["read"] == {
        "requests": 4,
        **figures(112, 143),
        "lat_ms": {"mean": 18.75, "p50": 4.0, "p95": 60.0, "p99": 60.0, "p99_9": 60.0, "max": 60.0},
    }
    assert r["write"] == {
        "requests": 2,
        **figures(160, 143),
        "lat_ms": {"mean": 12.5, "p50": 5.0, "p95": 20.0, "p99": 20.0, "p99_9": 20.0, "max": 20.0},
    }
    assert "stats" not in r


def test_where_the_disks_time_went() -> None:
    disk = told(outcome())["disk"]
    expected = {
        "busy_s": 0.103,
        "idle_s": 0.14,
        "waiting_s": 0.029,
        "seek_s": 0.031,
        "rotation_s": 0.017,
        "transfer_s": 0.041,
        "overhead_s": 0.005,
        "cache_hits": 1,
        "seeks": 4,
        "mean_seek_cylinders": 250.0,
    }
    assert disk == {k: pytest.approx(v) for k, v in expected.items()}
    # What has no platter has no parts of its time.
    flash = told(outcome(media_reads=0, media_writes=0, seek_cylinders=0, seeks=6))["disk"]
    assert set(flash) == {"busy_s", "idle_s", "waiting_s", "seeks"}


def test_waits_by_outcome() -> None:
    assert told(outcome())["anticipation"] == {
        "A": 8,
        "A_S": 5,
        "A_F": 3,
        "A_other": 2,
        "T_ms": 25.0,
        "T_S_ms": 7.0,
        "T_F_ms": 18.0,
        "T_other_ms": 4.0,
        "T_F_per_A_S_ms": 3.6,
    }
    assert "anticipation" not in told(outcome(a_success=0, a_fail=0, a_other=0))
    assert told(outcome(a_success=0, a_fail=0))["anticipation"]["A_other"] == 2
    assert "T_F_per_A_S_ms" not in told(outcome(a_success=0))["anticipation"]


def test_rows_of_tasks() -> None:
    rows = {(t["task"], t["op"]): t for t in told(outcome())["tasks"]}
    assert list(rows) == [(10, "read"), (10, "write"), (11, "read"), (12, "write"), (12, "discard"), (12, "other")]
    assert rows[10, "read"] == {
        "task": 10, "name": "reader", "op": "read", "group": 0, "requests": 3, **figures(48, 90),
        "start_s": pytest.approx(0.1), "elapsed_s": pytest.approx(0.09),
        "lat_ms": {"mean": pytest.approx(71 / 3), "p50": 10.0, "p95": 60.0, "p99": 60.0, "p99_9": 60.0, "max": 60.0},
    }  # fmt: skip
    assert {k: rows[12, "discard"][k] for k in ("name", "group", "start_s", "bytes")} == {
        "name": "second child",
        "group": 7,
        "start_s": 0.24,
        "bytes": 4096,
    }
    assert "tasks" not in told(outcome(), tasks=False)


def test_rows_of_threads_of_control_and_fairness_among_them() -> None:
    """The two children follow one another; the silent task has done nothing and counts for nothing."""
    r = told(outcome())
    assert [{k: g[k] for k in ("group", "name", "tasks", "requests", "end_s")} for g in r["groups"]] == [
        {"group": 0, "name": "reader", "tasks": 1, "requests": 4, "end_s": pytest.approx(0.19)},
        {"group": 7, "name": "first child", "tasks": 2, "requests": 4, "end_s": pytest.approx(0.243)},
    ]
    assert r["groups"][1]["elapsed_s"] == pytest.approx(0.043)
    a, b = 80 * 512 / 0.09, 208 * 512 / 0.043
    assert [g["throughput_MBps"] for g in r["groups"]] == [pytest.approx(a / 1e6), pytest.approx(b / 1e6)]
    assert r["fairness_jain"] == pytest.approx((a + b) ** 2 / (2 * (a**2 + b**2)))
    # Where every task is a thread of its own, rows of tasks say it all.
    alone = outcome([row for row in ROWS if row[0] != 2])
    assert "groups" not in told(alone)


def test_fairness() -> None:
    assert jain(np.array([3.0, 3.0, 3.0])) == pytest.approx(1.0)
    assert jain(np.array([0.0, 5.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert jain(np.array([1.0, 3.0])) == pytest.approx(16 / 20)
    assert jain(np.zeros(3)) == 1.0


def test_fairness_is_among_those_that_run_side_by_side() -> None:
    """Two phases of two and three tasks, one task alone in a phase of its own, and one of the kernel's."""
    rows: list[Row] = [(task, READ, 0.0, 10.0, sectors) for task, sectors in enumerate((8, 8, 8, 24, 8, 8, 80))]
    phases = (0, 0, 1, 1, 1, 2, None)
    tasks = [Task(i, f"t{i}", i, phase=phase) for i, phase in enumerate(phases)]
    r = told(outcome(rows, tasks=tasks))
    third = (8 + 24 + 8) ** 2 / (3 * (8**2 + 24**2 + 8**2))
    assert r["fairness_phases"] == [pytest.approx(1.0), pytest.approx(third)]
    assert r["fairness_jain"] == pytest.approx(third), "the lowest"
    one = told(outcome(rows[:2], tasks=tasks[:2]))
    assert one["fairness_jain"] == pytest.approx(1.0) and "fairness_phases" not in one
    assert "fairness_jain" not in told(outcome(rows[:1], tasks=tasks[:1])), "one task competes with nobody"


def test_percentiles_are_latencies_that_occurred() -> None:
    """If latencies are 1 to 1000 ms in any order, p percent do not exceed p * 10 ms; ten have the fifth and the tenth."""
    order = np.random.default_rng(1).permutation(1000) + 1
    rows = [(0, READ, 5.0, 5.0 + ms, 8) for ms in order.tolist()]
    expected = {"mean": pytest.approx(500.5), "p50": 500.0, "p95": 950.0, "p99": 990.0, "p99_9": 999.0, "max": 1000.0}
    r = told(outcome(rows))
    assert r["read"]["lat_ms"] == expected
    assert r["tasks"][0]["lat_ms"] == expected
    assert printed(latency(outcome(rows))) == expected
    ten = told(outcome([(0, READ, 1.0, 1.0 + ms, 8) for ms in range(1, 11)]))
    assert (ten["tasks"][0]["lat_ms"]["p50"], ten["tasks"][0]["lat_ms"]["p95"]) == (5.0, 10.0)


def counted(*found: tuple[int, float, int], relative_error: float = 0.0) -> Latencies:
    tally, ms, count = (np.array(column) for column in zip(*found, strict=True))
    return Latencies(tally, (ms * MS).astype(np.int64), count, relative_error)


def test_latencies_that_many_had() -> None:
    """As a long run has them: each with how many had it. Mean and longest are those of the tallies."""
    rows: list[Row] = [(0, READ, 1.0, 3.0, 8)] * 90 + [(0, READ, 5.0, 25.0, 8)] * 10 + [(1, READ, 2.0, 3.0, 8)] * 50
    exact = outcome(rows)
    assert "lat_relative_error" not in told(exact)
    long = dataclasses.replace(exact, latencies=counted((0, 20.5, 10), (1, 1.25, 50), (0, 2.25, 90), relative_error=0.25))
    r = told(long)
    first, second = r["tasks"]
    assert first["lat_ms"] == {"mean": pytest.approx(3.8), "p50": 2.25, "p95": 20.5, "p99": 20.5, "p99_9": 20.5, "max": 20.0}
    assert second["lat_ms"] == {"mean": 1.0, "p50": 1.25, "p95": 1.25, "p99": 1.25, "p99_9": 1.25, "max": 1.0}
    # Of 150, the 75th and the 143rd.
    assert (
        r["read"]["lat_ms"]
        == printed(latency(long))
        == {"mean": pytest.approx(430 / 150), "p50": 2.25, "p95": 20.5, "p99": 20.5, "p99_9": 20.5, "max": 20.0}
    )
    assert r["lat_relative_error"] == 0.25
    assert coarse_note([summarise(long), summarise(exact)], 1000) == [
        "with more than 1,000 I/Os, percentiles of latency are accurate to 25%"
    ]
    assert coarse_note([summarise(exact)], 1000) == []


def test_no_time_is_no_throughput() -> None:
    r = told(outcome([(0, READ, 5.0, 5.0, 8), (1, READ, 5.0, 5.0, 8)]))
    assert (r["throughput_MBps"], r["fairness_jain"], r["tasks"][0]["throughput_MBps"]) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("wrong", "says"), [({"issued": 7}, "7 I/Os were issued, 8 completed"), ({"completed": 9}, "8 I/Os were issued, 9 completed")]
)
def test_what_is_lost_is_no_result(wrong: dict[str, int], says: str) -> None:
    with pytest.raises(Problem, match=f"{says}, 8 are reported, 8 of them with a latency"):
        told(outcome(ROWS, TASKS, **wrong))


def test_what_has_not_completed_is_no_result() -> None:
    whole, seven = outcome(), outcome(ROWS[:3] + ROWS[4:])
    with pytest.raises(Problem, match="8 completed, 7 are reported, 7 of them"):
        summarise(dataclasses.replace(whole, tallies=seven.tallies, latencies=seven.latencies))
    with pytest.raises(Problem, match="8 completed, 7 are reported, 8 of them"):
        summarise(dataclasses.replace(whole, tallies=seven.tallies))
    with pytest.raises(Problem, match="8 completed, 8 are reported, 7 of them with a latency"):
        summarise(dataclasses.replace(whole, latencies=seven.latencies))
