# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls that read and write through the page cache, on a drive that takes 5 ms for everything; and what processes wait in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import good, told, write
from handmade import Row, latencies_of, tallies_of

from headwaiter.engine.constants import Op
from headwaiter.engine.sim import ConstantDrive, Options, Outcome, Task, simulate
from headwaiter.fio import load_jobs
from headwaiter.study.results import latency, latency_of_waits, summarise

MS = 1_000_000
COPY_4K_NS = 4096 // 2


def ran(folder: Path, text: str, **options: Any) -> Outcome:
    load = load_jobs(write(folder / "x.fio", text), 1 << 30)
    return simulate("noop", ConstantDrive(5 * MS), load, options=Options(**options))


def calls_of(o: Outcome, op: Op, task: int = 0) -> list[int]:
    """Latencies of a task's calls, the shortest first."""
    assert o.calls is not None and o.call_latencies is not None
    here = (o.calls.task == task) & (o.calls.op == op)
    mine = here[o.call_latencies.tally]
    found = np.repeat(o.call_latencies.ns[mine], o.call_latencies.count[mine])
    assert found.sum() == o.calls.latency_sum_ns[here].sum() and found.max() == o.calls.latency_max_ns[here].max()
    return sorted(found.tolist())


def test_a_call_lasts_until_its_page_is_there_and_copied(tmp_path: Path) -> None:
    assert calls_of(ran(tmp_path, "[a]\nrw=randread\nsize=40k\n"), Op.READ) == [5 * MS + COPY_4K_NS] * 10


def test_calls_that_find_their_page_read_ahead_only_copy(tmp_path: Path) -> None:
    """1 MiB in 256 calls, for which the drive is asked eight times; one at a time, the last windows are waited for."""
    o = ran(tmp_path, "[a]\nrw=read\nsize=1m\n")
    calls = calls_of(o, Op.READ)
    assert len(calls) == 256 and o.tallies.ios.tolist() == [8]
    assert calls[:240] == [COPY_4K_NS] * 240 and calls[-1] > 5 * MS
    # One process computes and waits in turn: its calls take all of its time.
    assert sum(calls) == o.jobs[0].end_ns - o.jobs[0].begin_ns


@pytest.mark.parametrize(("more", "drive_ms"), [("", 0), ("fsync=1\n", 0), ("sync=1\n", 5)])
def test_a_write_waits_for_the_drive_only_if_it_is_synchronous(tmp_path: Path, more: str, drive_ms: int) -> None:
    """The wait in fsync is not the write's."""
    calls = calls_of(ran(tmp_path, "[a]\nrw=randwrite\nsize=40k\n" + more), Op.WRITE)
    assert calls == [drive_ms * MS + COPY_4K_NS] * 10


def test_reads_and_writes_are_apart(tmp_path: Path) -> None:
    o = ran(tmp_path, "[a]\nrw=randrw\nsize=400k\n")
    reads, writes = calls_of(o, Op.READ), calls_of(o, Op.WRITE)
    assert (len(reads), len(writes)) == o.jobs[0].ios
    assert min(reads) >= 5 * MS > max(writes)


def test_direct_io_makes_no_such_calls(tmp_path: Path) -> None:
    o = ran(tmp_path, "[a]\nrw=randread\nsize=40k\ndirect=1\n")
    assert o.calls is None and o.call_latencies is None
    assert latency_of_waits(o, [0]) == latency(o)


def test_no_figures_are_kept_where_none_are_wanted(tmp_path: Path) -> None:
    assert ran(tmp_path, "[a]\nrw=randread\nsize=40k\n", exact=0).calls is None


def test_processes_wait_in_calls_or_in_their_own_io(tmp_path: Path) -> None:
    """A writer through the page cache waits in its calls, and not for write-back; a direct reader for its I/Os."""
    o = ran(
        tmp_path,
        "[w]\nrw=write\nsize=4m\nfsync=64\n[r]\nrw=randread\ndirect=1\nsize=40k\n[d]\nrw=randread\ndirect=1\nsize=40k\n",
    )
    calls, reads = calls_of(o, Op.WRITE), o.latencies.ns[o.tallies.task[o.latencies.tally] == 1].tolist()
    assert len(calls) == 1024 and len(reads) == 10
    found = latency_of_waits(o, [0, 1])
    assert found.mean == pytest.approx((sum(calls) + sum(reads)) / 1034 / MS)
    assert found.max == max(calls + reads) / MS
    assert latency_of_waits(o, [1]).mean == pytest.approx(sum(reads) / 10 / MS)


def test_latencies_of_both_tables_are_one_distribution() -> None:
    """Tasks: 0 reads through the page cache, 1 writes its pages back, 2 reads directly, 3 is not asked for."""
    rows: list[Row] = [(1, 1, 0, 900, 8), (0, 0, 0, 800, 8), (3, 0, 0, 700, 8), *((2, 0, 0, ms, 8) for ms in (5, 7, 11, 13))]
    cached: list[Row] = [(0, 0, 0, ms, 0) for ms in (1, 2, 17)]
    tallies, calls = tallies_of(rows), tallies_of(cached)
    o = Outcome(
        "noop", {}, "d", [Task(i, "t", 0) for i in range(4)], tallies, latencies_of(rows, tallies), {},
        calls=calls, call_latencies=replace(latencies_of(cached, calls), relative_error=0.1),
    )  # fmt: skip
    found = latency_of_waits(o, [0, 2])
    assert (found.mean, found.p50, found.p99, found.max) == (56 / 7, 7.0, 17.0, 17.0)
    assert latency_of_waits(o, [0]).mean == 20 / 3


def test_results_have_a_row_for_each_task_and_operation(tmp_path: Path) -> None:
    o = ran(tmp_path, "[w]\nrw=write\nsize=400k\n[r]\nrw=randrw\nsize=40k\n[d]\nrw=read\ndirect=1\nsize=40k\n")
    rows = summarise(o).calls
    assert rows and [(row.task, row.name, row.op, row.calls) for row in rows] == [
        (0, "w", "write", 100),
        (1, "r", "read", o.jobs[1].ios[0]),
        (1, "r", "write", o.jobs[1].ios[1]),
    ]
    assert rows[0].lat_ms.p50 == rows[0].lat_ms.max == COPY_4K_NS / MS
    assert summarise(o, tasks=False).calls is None


def test_percentiles_of_very_many_calls_are_nearly_right(tmp_path: Path) -> None:
    text = "[a]\nrw=randread\nsize=400k\n"
    exact, coarse = (summarise(ran(tmp_path, text, exact=n)) for n in (1000, 10))
    assert exact.calls and coarse.calls and exact.lat_relative_error is None
    assert coarse.lat_relative_error and coarse.calls[0].calls == 100
    assert coarse.calls[0].lat_ms.p99 == pytest.approx(exact.calls[0].lat_ms.p99, rel=coarse.lat_relative_error)


def test_run_shows_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("run", write(tmp_path / "cached.fio", "[a]\nrw=read\nsize=1m\n"), "--sched", "none", "--drive", "constant:5")
    lines = [line.split() for line in good(capfd, *words).splitlines()]
    assert ["a", "read", "8"] in [line[:3] for line in lines]
    assert ["a", "read()", "256", "–", "–", "–"] in [line[:6] for line in lines]
    (result,) = told(capfd, *words)["results"]
    (row,) = result["calls"]
    assert (row["task"], row["name"], row["op"], row["calls"]) == (0, "a", "read", 256) and row["lat_ms"]["max"] > 5
    (direct,) = told(capfd, "run", write(tmp_path / "x.fio", "[a]\nrw=read\nsize=1m\ndirect=1\n"), *words[2:])["results"]
    assert "calls" not in direct
