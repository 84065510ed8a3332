# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A workload is recorded twice: no scheduler that one recording calls better is called worse by the other.

A second recording begins elsewhere, its programs think a little longer or shorter, and the recorder stops earlier or later.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import write

import headwaiter
from headwaiter.drives.choose import open_drive
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import Options, simulate
from headwaiter.study.perturb import WIDE_THINK_SHARE, perturbed
from headwaiter.study.workload import Reading, find_workload, read_workload
from headwaiter.traces import Trace, part

pytestmark = pytest.mark.thorough
SCHEDULERS = ["none", "mq-deadline", "kyber", "bfq", "as"]
MOST = 6000
"""Requests of a piece; more would take long."""


def pieces(trace: Trace) -> Iterator[Trace]:
    """A recording that was stopped in the middle, one that began there, and both together."""
    rows = min(len(trace), 2 * MOST)
    yield from (part(trace, 0, rows // 2), part(trace, rows // 2, rows), part(trace, 0, rows))


def recordings(folder: Path, workload: str, drive_name: str) -> Iterator[Trace]:
    """What a recorder writes while it runs under Linux's default scheduler, again and again."""
    drive = open_drive(drive_name)
    load = read_workload(find_workload(workload), drive, Reading()).load
    for number in range(4):
        changed, options = perturbed(load, MEASURED.apply(Options(record=True, join_arriving=True)), number, WIDE_THINK_SHARE)
        rows = simulate("mq-deadline", drive, changed, options=options).rows
        columns = (rows.issue_ns, rows.task, rows.op, rows.sector, rows.sectors, rows.complete_ns)
        lines = [
            f"{at / 1e9:.9f},{task},{'RW'[op]},1,{sector},{sectors},{done / 1e9:.9f}\n"
            for at, task, op, sector, sectors, done in itertools.islice(zip(*(c.tolist() for c in columns), strict=True), MOST)
        ]
        path = write(folder / f"{number}.csv", "time_s,task,op,sync,sector,sectors,complete_s\n" + "".join(lines))
        yield headwaiter.read_trace(path)


def contradictions(found: list[headwaiter.Comparison]) -> list[str]:
    """Schedulers that are better than the baseline by one recording and worse by another."""
    said = [{m.scheduler: m.judgement for m in c.answer.margins} for c in found]
    assert len({c.answer.baseline for c in found}) == 1
    return [
        f"{name}: {one[name]} and {two[name]}"
        for one, two in itertools.combinations(said, 2)
        for name in one.keys() & two.keys()
        if {one[name], two[name]} == {"better", "worse"}
    ]


def compared(trace: Trace, drive: str) -> headwaiter.Comparison:
    return headwaiter.compare(trace, drive, SCHEDULERS, runs=2, anyway=True)


@pytest.mark.parametrize("drive", ["barracuda-80g", "wd-re-4tb", "sata-ssd"])
def test_halves_of_the_bundled_recording(drive: str) -> None:
    found = [compared(trace, drive) for trace in pieces(headwaiter.read_trace("example"))]
    assert contradictions(found) == []
    if drive == "barracuda-80g":
        said = {m.scheduler: m.judgement for m in found[-1].answer.margins}
        assert said["bfq"] == "worse", "which the halves do not contradict"


@pytest.mark.parametrize("workload", ["readers-4", "reader-writer", "mixed", "random", "iyer-readers", "example"])
def test_bundled_workloads_recorded_again(workload: str, tmp_path: Path) -> None:
    found = [compared(trace, "barracuda-80g") for trace in recordings(tmp_path, workload, "barracuda-80g")]
    assert contradictions(found) == []
    if workload == "readers-4":
        assert [c.answer.module for c in found] == ["as"] * 4


@pytest.mark.parametrize(
    ("name", "drive"),
    [
        ("linux-webserver-2.load.gz", "wd-re-4tb"),
        ("windows-mssql.load.gz", "wd-re-4tb"),
        ("windows-mssql.load.gz", "cheetah-15k"),
        ("msr-cambridge1-sample.csv", "wd-re-4tb"),
        ("disksim-ascii.trace", "wd-re-4tb"),
        ("takeoverjp-sample.blktrace.0", "wd-re-4tb"),
    ],
)
def test_halves_of_recordings_of_others(name: str, drive: str, shared: Path) -> None:
    trace = headwaiter.read_trace(shared / "data/traces" / name)
    assert contradictions([compared(piece, drive) for piece in pieces(trace)]) == []
