# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Traces that do not tell their tasks: threads inferred from streams; parts of a trace; think times made shorter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import good, write

from headwaiter.base.errors import Problem
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import ConstantDrive, Forest
from headwaiter.study.workload import Reading, read_trace, read_workload, replay
from headwaiter.traces import Trace, part, with_streams
from headwaiter.traces.making import make_trace

MS = 1_000_000


def trace(rows: list[tuple[int, str]]) -> Trace:
    """Sector and operation (R, W, or S for a write that is waited for), one a millisecond, of 8 sectors."""
    sector = np.array([s for s, _ in rows])
    op = np.array([Op.READ if what == "R" else Op.WRITE for _, what in rows])
    flags = np.array([0 if what == "W" else SYNC for _, what in rows])
    n = len(rows)
    return make_trace(
        source="t", format="test", time_ns=np.arange(n) * MS, sector=sector, sectors=np.full(n, 8), op=op, flags=flags
    )  # fmt: skip


def threads(rows: list[tuple[int, str]], n: int) -> list[int]:
    found = with_streams(trace(rows), n)
    assert found.tasks_known and (found.group == found.task).all()
    return [found.tasks[i].id for i in found.task.tolist()]


def test_a_read_carries_on_where_its_thread_was() -> None:
    """Two streams; the second skips 256 sectors, the first goes back, which is somebody else's."""
    rows = [(0, "R"), (1000, "R"), (8, "R"), (1008 + 256, "R"), (4, "R")]
    assert threads(rows, 4) == [1, 2, 1, 2, 3]
    assert threads([(0, "R"), (8 + 257, "R")], 4) == [1, 2]


def test_the_nearest_stream_before_it() -> None:
    assert threads([(0, "R"), (100, "R"), (150, "R")], 2) == [1, 1, 1]
    assert threads([(0, "R"), (5000, "R"), (0, "R"), (5008, "R")], 2) == [1, 2, 1, 2]
    assert threads([(1000, "R"), (0, "R"), (900, "R"), (1010, "R")], 3) == [1, 2, 3, 1]


def test_others_go_to_the_thread_that_was_idle_longest() -> None:
    far = [(i * 10_000, "R") for i in (1, 2, 3, 4)]
    assert threads(far, 3) == [1, 2, 3, 1]
    assert threads([(0, "R"), (10_000, "R"), (8, "R"), (20_000, "R")], 2) == [1, 2, 1, 2], "thread 1 has just read"


def test_writes_that_nobody_waits_for_are_one_task() -> None:
    assert threads([(0, "R"), (8, "W"), (99_999, "S"), (0, "W")], 4) == [1, 0, 2, 0]
    found = with_streams(trace([(0, "W"), (8, "R")]), 4)
    assert [t.name for t in found.tasks] == ["write-back", "thread 1"]
    assert found.notes[-1] == "the trace does not identify tasks: 4 threads inferred from sequential streams"


def test_parts_have_their_own_tasks() -> None:
    whole = with_streams(trace([(0, "R"), (10_000, "R"), (20_000, "R"), (10_008, "R")]), 3)
    second = part(whole, 2, 4)
    assert len(second) == 2 and [t.id for t in second.tasks] == [2, 3]
    assert second.task.tolist() == [1, 0] == second.group.tolist()
    assert second.time_ns.tolist() == [2 * MS, 3 * MS]
    forest = replay(Path("t"), second, ConstantDrive(MS), Reading()).load
    assert isinstance(forest, Forest) and forest.time_ns.tolist() == [0, MS]


NATIVE = "time_s,task,op,sync,sector,sectors,complete_s\n0.0,1,R,1,0,8,0.001\n0.009,1,R,1,800,8,0.010\n"


def test_think_times_are_divided(tmp_path: Path) -> None:
    """8 ms after a completion become 2; timestamps 9 ms apart, 2.25."""
    path = write(tmp_path / "t.csv", NATIVE)
    closed = read_workload(path, ConstantDrive(MS), Reading(speed=4))
    opened = read_workload(path, ConstantDrive(MS), Reading(speed=4, replay="open"))
    assert isinstance(closed.load, Forest) and isinstance(opened.load, Forest)
    assert closed.load.parent.tolist() == [-1, 0] and closed.load.delay_ns.tolist() == [0, 2 * MS]
    assert opened.load.time_ns.tolist() == [0, 2_250_000]
    assert closed.notes[-1] == "think times were divided by 4" and opened.notes[-1] == "timestamps were divided by 4"
    assert not read_workload(path, ConstantDrive(MS), Reading()).notes


def test_known_tasks_stay(tmp_path: Path) -> None:
    assert [t.id for t in read_trace(write(tmp_path / "t.csv", NATIVE), Reading(streams=4)).tasks] == [1]


@pytest.mark.parametrize(("more", "option"), [({"streams": 2}, "--streams"), ({"speed": 2.0}, "--speed")])
def test_job_files_have_neither(tmp_path: Path, more: dict[str, float], option: str) -> None:
    job = write(tmp_path / "j.fio", "[a]\nrw=read\nsize=1m\n")
    with pytest.raises(Problem, match=f"{option} is for traces, and this is a job file"):
        read_workload(job, ConstantDrive(MS), Reading(**more))  # type: ignore[arg-type]


def test_the_options_arrive(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    load = write(tmp_path / "t.csv", NATIVE)
    out = good(capfd, "run", load, "-s", "noop", "--speed", "2", "--streams", "3", "--drive", "constant:1")
    assert "think times were divided by 2" in out
