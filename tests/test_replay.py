# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What traces and recordings say beyond their rows: streams, threads of control, clocks, defaults."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run, write

from headwaiter.engine.constants import SYNC
from headwaiter.traces import Trace, formats, load, stream_order, write_csv
from headwaiter.traces.events import Processes
from headwaiter.traces.making import make_trace

MS = 1_000_000
HEADER = "time_s,task,op,sync,sector,sectors"


def trace(rows: list[tuple[int, int, int, int, int]], **more: Any) -> Trace:
    """(ms issued, ms completed or -1, task, operation, sector) of 8 sectors each."""
    time, complete, task, op, sector = (np.array(column) for column in zip(*rows, strict=True))
    complete_ns = np.where(complete < 0, -1, complete * MS)
    return make_trace(source="t", format="t", time_ns=time * MS, complete_ns=complete_ns, task_id=task, op=op, sector=sector,
                      sectors=np.full(len(rows), 8), **more)  # fmt: skip


# --- streams ---


def test_what_continues_a_stream() -> None:
    """A stream goes on with the same thread of control and operation, where the request before it ends."""
    rows = [
        (0, 9, 1, 0, 0),
        (1, 9, 1, 0, 8),
        (2, 9, 1, 0, 8),  # the third repeats the second
        (3, 9, 1, 1, 16),
        (4, 9, 1, 0, 16),
        (5, 9, 1, 1, 24),  # a write between reads: each has its own stream
        (6, 9, 2, 0, 24),
        (7, 9, 3, 0, 24),
        (8, 9, 2, 0, 32),
    ]
    assert stream_order(trace(rows)).tolist() == [-1, 0, -1, -1, 2, 3, -1, -1, 6]


def test_a_stream_goes_on_in_the_next_task_of_its_thread() -> None:
    rows = [(0, 1, 1, 0, 0), (5, 6, 2, 0, 8), (5, 6, 3, 0, 8)]
    assert stream_order(trace(rows, group=np.array([4, 4, 5]))).tolist() == [-1, 0, -1]
    in_turns = [(0, 1, 1, 0, 0), (5, 6, 2, 0, 8), (7, 8, 1, 0, 16)]
    assert stream_order(trace(in_turns, group=np.array([4, 4, 4]))).tolist() == [-1, 0, 1]


def test_a_write_does_not_continue_a_read() -> None:
    assert stream_order(trace([(0, 9, 1, 0, 0), (1, 9, 1, 1, 8)])).tolist() == [-1, -1]


# --- threads of control ---


def groups(rows: list[tuple[int, int, int, int, int]], **more: Any) -> list[int]:
    return list(trace(rows, **more).group.tolist())


def test_a_task_that_begins_when_another_ends_continues_it() -> None:
    rows = [(0, 5, 1, 0, 0), (5, 9, 2, 0, 100), (9, 9, 3, 0, 200)]
    names = {1: "sh", 2: "sh", 3: "sh"}
    assert groups(rows, names=names) == [0, 0, 0]
    assert groups([rows[0], (4, 9, 2, 0, 100)], names=names) == [0, 1]


def test_children_of_one_parent_are_one_thread_however_long_the_pause() -> None:
    rows = [(0, 5, 2, 0, 0), (900, 905, 3, 0, 100), (9000, 9001, 4, 0, 200)]
    assert groups(rows, parents={2: 1, 3: 1, 4: 1}, group_gap_ns=MS) == [0, 0, 0]
    assert groups(rows, parents={2: 1, 3: 1, 4: 9}, group_gap_ns=MS) == [0, 0, 1]


def test_the_longest_pause_is_20_ms_unless_another_is_asked_for(tmp_path: Path) -> None:
    def found(pause_ms: float, **how: float) -> int:
        text = f"{HEADER},complete_s,name\n0,1,R,1,0,8,0.005,sh\n{0.005 + pause_ms / 1000:.6f},2,R,1,80,8,1,sh\n"
        return len(set(load(write(tmp_path / "t.csv", text), **how).group.tolist()))  # type: ignore[arg-type]

    assert (found(20), found(20.001), found(3, group_gap_ms=2.5), found(500, group_gap_ms=500)) == (1, 2, 2, 1)


def test_forks_and_exits() -> None:
    p = Processes()
    for text, time in (("fork 10 11", 5), ("exit 11", 7), ("exit eleven", 8), ("fork 1", 9), ("speaks of fork 1 2", 9)):
        p.message(text, time)
    assert (p.parents, p.exits_ns) == ({11: 10}, {11: 7})


# --- importing ---

DISKSIM = "0.5\t0\t100\t20000\t1\n2.5\t3\t900\t6\t0\n3.5\t0\t700\t5\t1\n"  # ms, device, block, blocks, flags


def test_import_takes_the_device_and_the_format_that_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t", DISKSIM)
    status, out, err = run(capfd, "import", path)
    assert status == 0 and out.splitlines()[1:] == ["0.000500000,0,R,1,100,20000", "0.003500000,0,R,1,700,5"]
    assert "disksim, 2 requests, 10.2 MB in 0.003 s" in err, "20,005 sectors"
    assert "100.0% read; tasks unknown; completions unknown" in err
    status, out, err = run(capfd, "import", path, "--device", "3")
    assert status == 0 and out.splitlines()[1:] == ["0.002500000,0,W,0,900,6"] and "as requested" in err
    assert run(capfd, "import", path, "--format", "disksim")[0] == 0
    status, out, err = run(capfd, "import", path, "--format", "native")
    assert (status, out) == (2, "") and "unknown column" in err


# --- rows ---


def test_reads_are_waited_for_where_nothing_is_said(tmp_path: Path) -> None:
    t = load(write(tmp_path / "t", "13.5\t0\t100\t5\t1\n17.5\t0\t900\t6\t0\n"))
    assert (t.op.tolist(), t.flags.tolist()) == ([0, 1], [SYNC, 0])


def test_the_span_goes_to_the_last_completion() -> None:
    assert trace([(3, 90, 1, 0, 0), (5, 8, 1, 0, 0)]).span_ns == 87 * MS
    assert trace([(3, -1, 1, 0, 0), (5, -1, 1, 0, 0)]).span_ns == 2 * MS


def test_times_in_any_notation_are_rounded_to_the_nearest(tmp_path: Path) -> None:
    times = ["1e-9", "1.4e-9", "1.5e-9", "1.6e-9", "3.5E-9", "0.1e1"]
    t = load(write(tmp_path / "t.csv", HEADER + "\n" + "".join(f"{time},1,R,1,0,8\n" for time in times)))
    assert t.time_ns.tolist() == [1, 1, 2, 2, 4, 10**9]


def test_many_rows_are_all_written(tmp_path: Path) -> None:
    n = 70_000
    before = make_trace(source="t", format="t", time_ns=np.arange(n) * 1000, sector=np.arange(n) * 8, sectors=np.full(n, 8),
                        op=np.zeros(n), task_id=np.ones(n))  # fmt: skip
    out = io.StringIO()
    write_csv(before, out)
    assert out.getvalue().count("\n") == n + 1
    after = load(write(tmp_path / "t.csv", out.getvalue()))
    assert np.array_equal(after.sector, before.sector) and np.array_equal(after.time_ns, before.time_ns)


def test_a_write_that_goes_past_the_drives_cache_is_waited_for(tmp_path: Path) -> None:
    """F before the operation is a flush, behind it FUA."""
    kinds = ("W", "WF", "FW", "WS", "R", "WM")
    lines = "".join(f"8,0 0 {k + 1} 0.{k:09d} 5 Q {kind} {1000 * k} + 8 [x]\n" for k, kind in enumerate(kinds))
    t = load(write(tmp_path / "t.txt", lines))
    assert [bool(flags & SYNC) for flags in t.flags.tolist()] == [False, True, True, True, True, False]


def test_formats_that_others_could_pass_for_come_last() -> None:
    names = list(formats())
    assert set(names[-2:]) == {"disksim", "mqsim"} and {"blkparse", "blktrace", "native", "srt"} <= set(names[:-2])
