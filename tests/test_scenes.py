# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the engine promises beyond dispatch order: limits, splitting, counting, tasks that come and go."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwaiter.base.errors import Problem
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Outcome, Task, simulate

MS = 1_000_000


def load(rows: list[tuple[int, int, int, int, int]], exits: bool = True) -> Forest:
    """Rows of (time in ms, task, op, sector, sectors)."""
    columns = np.array(rows, np.int64).reshape(-1, 5)
    n = len(rows)
    return Forest(
        tasks=[Task(k, f"t{k}", k, exits=exits) for k in range(int(columns[:, 1].max()) + 1)],
        time_ns=columns[:, 0] * MS,
        parent=np.full(n, -1, np.int64),
        delay_ns=np.zeros(n, np.int64),
        task=columns[:, 1].astype(np.uint32),
        op=columns[:, 2].astype(np.uint8),
        flags=np.ones(n, np.uint8),
        sector=columns[:, 3].astype(np.uint64),
        sectors=columns[:, 4].astype(np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


def run(
    rows: list[tuple[int, int, int, int, int]], tmp_path: Path, scheduler: str = "noop", **options: Any
) -> tuple[Outcome, list[dict[str, str]]]:
    log = tmp_path / "log.csv"
    outcome = simulate(scheduler, ConstantDrive(10 * MS), load(rows), options=Options(record=True, **options), log=log)
    with log.open() as f:
        return outcome, list(csv.DictReader(f))


def test_merging_stops_at_the_limit(tmp_path: Path) -> None:
    rows = [(0, 0, 0, 10_000, 8), *((0, 0, 0, 8 * i, 8) for i in range(10))]
    outcome, log = run(rows, tmp_path, max_sectors=32)
    sizes = [int(r["sectors"]) for r in log if r["event"] == "dispatch"]
    assert sizes == [8, 32, 32, 16]
    assert outcome.totals["merges"] == 7


def test_large_ios_are_split(tmp_path: Path) -> None:
    outcome, log = run([(0, 0, 0, 0, 100)], tmp_path, max_sectors=32, merging=False)
    assert [(r["sector"], r["sectors"]) for r in log if r["event"] == "dispatch"] == [
        ("0", "32"),
        ("32", "32"),
        ("64", "32"),
        ("96", "4"),
    ]
    # The I/O is complete when its last piece is.
    assert outcome.rows.complete_ns.tolist() == [40 * MS]
    assert outcome.totals["issued"] == outcome.totals["completed"] == 1


def test_seeks_of_the_constant_drive(tmp_path: Path) -> None:
    rows = [(0, 0, 0, 0, 8), (10, 0, 0, 8, 8), (20, 0, 0, 100, 8), (30, 0, 0, 108, 8), (40, 0, 0, 0, 8)]
    outcome, _ = run(rows, tmp_path)
    assert outcome.totals["seeks"] == 2
    assert outcome.totals["busy_ns"] == 50 * MS


def test_nr_requests_limits_what_is_queued(tmp_path: Path) -> None:
    rows = [(0, i, 0, 1000 * i, 8) for i in range(12)]
    _, log = run(rows, tmp_path, nr_requests=4)
    exist = most = 0
    for r in log:
        exist += {"insert": 1, "complete": -1}.get(r["event"], 0)
        most = max(most, exist)
    assert most == 4
    # Those that had to wait come in as others complete, in order.
    assert [r["sector"] for r in log if r["event"] == "insert"] == [str(1000 * i) for i in range(12)]


def test_pull_ahead_decides_one_request_early(tmp_path: Path) -> None:
    """With a request pulled ahead, what comes later but is better must wait for the next decision."""
    rows = [(0, 0, 0, 500, 8), (0, 0, 0, 900, 8), (1, 0, 0, 508, 8)]
    orders = []
    for pull_ahead in (False, True):
        _, log = run(rows, tmp_path, "mq-deadline", pull_ahead=pull_ahead, merging=False)
        orders.append([r["sector"] for r in log if r["event"] == "dispatch"])
    assert orders == [["500", "508", "900"], ["500", "900", "508"]]


@pytest.mark.parametrize("pull_ahead", [False, True])
def test_a_request_takes_its_time_to_the_drive(tmp_path: Path, pull_ahead: bool) -> None:
    rows = [(0, 0, 0, 0, 8), (0, 1, 0, 1000, 8), (40, 2, 0, 2000, 8)]
    outcome, log = run(rows, tmp_path, dispatch_ns=MS, pull_ahead=pull_ahead)
    assert outcome.rows.complete_ns.tolist() == [11 * MS, 22 * MS, 51 * MS]
    # What comes next is decided in the completion, or by a worker that takes its time before.
    assert [int(r["time_ns"]) for r in log if r["event"] == "dispatch"] == [0, (12 if pull_ahead else 11) * MS, 40 * MS]


def test_the_process_that_is_done_has_the_only_tag_again() -> None:
    """As in blk-mq, where it has been woken before those that wait; where requests are counted, all take turns."""
    rows = [(0, 0, 0, 0, 8), (1, 1, 0, 5000, 8), (0, 0, 0, 8, 8), (0, 0, 0, 16, 8)]
    parent = np.array([-1, -1, 0, 2])
    orders = []
    for pull_ahead in (False, True):
        forest = dataclasses.replace(load(rows), parent=parent)
        options = Options(record=True, nr_requests=1, pull_ahead=pull_ahead)
        done = simulate("none", ConstantDrive(10 * MS), forest, options=options)
        orders.append(np.argsort(done.rows.complete_ns).tolist())
    assert orders == [[0, 1, 2, 3], [0, 2, 3, 1]]


@pytest.mark.parametrize(
    ("when_ms", "pull_ahead", "inserted_ms"), [(1, True, 10), (12, True, 12), (1, False, 20), (12, False, 20)]
)
def test_a_limit_of_one_is_the_first_tag(tmp_path: Path, when_ms: int, pull_ahead: bool, inserted_ms: int) -> None:
    """A write that may see one request waits for the read that has tag 0, and not for the other."""
    rows = [(0, 0, 0, 0, 8), (0, 1, 0, 1000, 8), (when_ms, 2, 1, 2000, 8)]
    log = tmp_path / "log.csv"
    options = Options(nr_requests=64, pull_ahead=pull_ahead)
    simulate("mq-deadline", ConstantDrive(10 * MS), load(rows), {"async_depth": 1}, options, log)
    with log.open() as f:
        inserted = [int(r["time_ns"]) for r in csv.DictReader(f) if r["event"] == "insert" and r["sector"] == "2000"]
    assert inserted == [inserted_ms * MS]


def test_pieces_behind_one_that_waits_for_a_tag_keep_their_order(tmp_path: Path) -> None:
    rows = [(0, i % 3, 0, 1000 * i, 8) for i in range(30)]
    outcome, log = run(rows, tmp_path, nr_requests=4, pull_ahead=True, merging=False)
    assert outcome.totals["completed"] == 30
    for task in range(3):
        of_task = [int(r["sector"]) for r in log if r["event"] == "insert" and r["task"] == str(task)]
        assert of_task == sorted(of_task) and len(of_task) == 10


def test_merged_requests_complete_together(tmp_path: Path) -> None:
    outcome, _ = run([(0, 0, 0, 0, 8), (1, 1, 0, 100, 8), (2, 2, 0, 108, 8), (3, 3, 0, 92, 8)], tmp_path)
    assert outcome.rows.complete_ns.tolist() == [10 * MS, 20 * MS, 20 * MS, 20 * MS]


def test_end_of_the_drive() -> None:
    drive = ConstantDrive(MS, sectors=1000)
    assert drive.sectors == 1000
    simulate("noop", drive, load([(0, 0, 0, 992, 8)]))
    with pytest.raises(Problem, match="do not fit"):
        simulate("noop", drive, load([(0, 0, 0, 993, 8)]))


def test_a_stream_does_not_overtake_itself(tmp_path: Path) -> None:
    """A row that is due before the one it continues was issued waits for that, and is issued in the same instant."""
    forest = load([(0, 0, 0, 0, 8), (30, 0, 0, 8, 8), (5, 0, 0, 16, 8), (6, 0, 0, 24, 8)])
    forest = dataclasses.replace(forest, after=np.array([-1, 0, 1, 2], np.int64))
    outcome = simulate("noop", ConstantDrive(MS), forest, options=Options(record=True, merging=False), log=tmp_path / "log")
    assert outcome.rows.issue_ns.tolist() == [0, 30 * MS, 30 * MS, 30 * MS]
    assert outcome.rows.complete_ns.tolist() == [MS, 31 * MS, 32 * MS, 33 * MS]
    with pytest.raises(Problem, match="invalid predecessor"):
        simulate("noop", ConstantDrive(MS), dataclasses.replace(forest, after=np.array([-1, 2, 1, 2], np.int64)))
