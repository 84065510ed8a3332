# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Write-back throttling of a trace: writes that nobody waits for, what joins a request, and what a read may take."""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task, simulate
from headwaiter.study.inkernel import kernel_options

MS = 1_000_000
FLUSHER, READER = 0, 1
Row = tuple[int, int, int, int, int]


def forest(rows: list[Row]) -> Forest:
    """Rows (ms, task, operation, flags, sector) of 8 sectors, at their times."""
    time, task, op, flags, sector = (np.array(column) for column in zip(*rows, strict=True))
    n = len(rows)
    return Forest(
        tasks=(Task(1, "kworker", 0), Task(2, "reader", 1)),
        time_ns=time.astype(np.int64) * MS,
        parent=np.full(n, -1, np.int64),
        delay_ns=np.zeros(n, np.int64),
        task=task.astype(np.uint32),
        op=op.astype(np.uint8),
        flags=flags.astype(np.uint8),
        sector=sector.astype(np.uint64),
        sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


def writes(count: int, flags: int = 0, step: int = 1000, op: Op = Op.WRITE) -> list[Row]:
    return [(0, FLUSHER, op, flags, 100_000 + i * step) for i in range(count)]


def reads(count: int, every: int = 1) -> list[Row]:
    return [(i * every, READER, Op.READ, SYNC, i * 1000) for i in range(count)]


def logged(folder: Path, rows: list[Row], **more: Any) -> list[tuple[int, str]]:
    """Events of the flusher, with their times."""
    simulate("noop", ConstantDrive(5 * MS), forest(rows), options=Options(**more), log=folder / "log.csv")
    with (folder / "log.csv").open() as file:
        return [(int(row["time_ns"]), row["event"]) for row in csv.DictReader(file) if row["op"] != "R"]


def most_at_once(folder: Path, rows: list[Row], **more: Any) -> int:
    """Requests of the flusher that exist at once, at most."""
    return max(itertools.accumulate({"insert": 1, "complete": -1}.get(event, 0) for _, event in logged(folder, rows, **more)))


@pytest.mark.parametrize(("depth", "most"), [(0, 12), (2, 1), (64, 4)])
def test_the_flusher_of_a_trace_has_a_quarter(depth: int, most: int, tmp_path: Path) -> None:
    """Taken to be in the background. Of a device of two requests that is one. Within a window of 100 ms."""
    assert most_at_once(tmp_path, writes(12), wbt_depth=depth) == most
    assert most_at_once(tmp_path, [*reads(3), *writes(12, op=Op.DISCARD)], wbt_depth=depth) == most


def test_what_is_waited_for_is_not_throttled(tmp_path: Path) -> None:
    assert most_at_once(tmp_path, writes(40, flags=SYNC), wbt_depth=2) == 40


def test_bfq_throttles_no_trace() -> None:
    """All but the first are with it at once: it has an order of its own, and the throttled one has the trace's."""
    rows: list[Row] = [(0, FLUSHER, Op.WRITE, 0, 100_000 - i * 1000) for i in range(40)]
    found = {
        s: simulate(s, ConstantDrive(5 * MS), forest(rows), options=Options(record=True, wbt_depth=2)) for s in ("bfq", "noop")
    }
    assert found["bfq"].rows.complete_ns[-1] < found["noop"].rows.complete_ns[-1]


def test_cfq_slice_leaves_readers_half_of_the_requests() -> None:
    """Linux had a pool for each; and one alone is nobody's."""
    for many, most in ((8, 4), (2, 1), (1, 1)):
        policy = Policy("cfq-slice", nr_requests=many)
        write = Request(0, 8, Op.WRITE, task=1)
        assert policy.limit_depth(write) == most
        assert policy.limit_depth(replace(write, flags=SYNC)) > many and policy.limit_depth(replace(write, op=Op.READ)) > many


def test_what_joins_a_request_needs_no_place() -> None:
    """Ten writes in a row, all at once, are one request; the one behind them has the other place of two."""
    rows = [*((0, FLUSHER, Op.WRITE, 0, 300_000 + 8 * i) for i in range(10)), *writes(1)]
    outcome = simulate("noop", ConstantDrive(5 * MS), forest(rows), options=Options(record=True, wbt_depth=5))
    assert outcome.totals["requests"] == 2 and outcome.rows.complete_ns.max() == 10 * MS


def test_a_place_comes_back_when_its_request_becomes_part_of_another(tmp_path: Path) -> None:
    """Four wait behind a read; what comes then fills the gaps, and they are one. Later there is room for four again."""
    four: list[Row] = [(1, FLUSHER, Op.WRITE, 0, 200_000 + 16 * i) for i in range(4)]
    gaps: list[Row] = [(2, FLUSHER, Op.WRITE, 0, 200_008 + 16 * i) for i in range(3)]
    later: list[Row] = [(41, *row[1:]) for row in writes(6)]
    load: list[Row] = [*reads(1), *four, *gaps, (40, READER, Op.READ, SYNC, 0), *later]
    outcome = simulate("noop", ConstantDrive(5 * MS), forest(load), options=Options(record=True, wbt_depth=64))
    assert outcome.totals["requests"] == 9 and outcome.totals["completed"] == len(load)
    assert outcome.totals["now_ns"] == outcome.rows.complete_ns.max(), "the clock ends with the last of them"
    assert logged(tmp_path, load, wbt_depth=64).count((41 * MS, "insert")) == 4


@pytest.mark.parametrize("tags", [False, True], ids=["counted", "tags"])
def test_a_place_comes_back_when_its_write_joins_another_while_it_waits_for_a_request(tags: bool, tmp_path: Path) -> None:
    """Two reads have the only two requests. Of four writes in a row the first gets the next one, and the others join it."""
    four: list[Row] = [(1, FLUSHER, Op.WRITE, 0, 200_000 + 8 * i) for i in range(4)]
    load: list[Row] = [(0, READER, Op.READ, SYNC, 0), (0, READER, Op.READ, SYNC, 900_000), *four]
    load += [(41, *row[1:]) for row in writes(6)]
    found = logged(tmp_path, load, wbt_depth=64, nr_requests=2, pull_ahead=tags)
    assert [event for _, event in found].count("merge") == 3
    assert found.count((41 * MS, "insert")) == 2


def test_a_read_may_take_so_long(tmp_path: Path) -> None:
    """The drive is one that rotates, with 75 ms. With 2 ms, reads of 5 are too slow, and leave the flusher less."""
    load = [*reads(60, 6), *((300, *row[1:]) for row in writes(40))]
    by_drive, short, long = (most_at_once(tmp_path, load, wbt_depth=64, wbt_lat_ns=ns) for ns in (0, 2 * MS, 75 * MS))
    assert short < by_drive == long
    assert most_at_once(tmp_path, load, wbt_depth=64, told_rotational=2) == short, "the kernel takes it for flash"


def test_a_recording_is_throttled_that_was_not_when_it_was_made() -> None:
    options = Options(nr_requests=64)
    assert kernel_options(options, "mq-deadline", 1, "bfq").wbt_depth == 2
    assert kernel_options(options, "mq-deadline", 32, "bfq").wbt_depth == 64
    assert kernel_options(options, "mq-deadline", 32, "maitre").wbt_depth == 64, "no scheduler that holds write-back is throttled"
    assert kernel_options(options, "mq-deadline", 1, "kyber").wbt_depth == kernel_options(options, "bfq", 1).wbt_depth == 0
