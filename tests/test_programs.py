# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What programs get done: in replays of the bundled recording as in the lab, where its load ran again as real programs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from test_lab import _run
from test_ongoing import DRIVE, Row, load_of, rows_of
from test_replay import MS, trace
from test_traces import groups

from headwaiter.base.paths import WORKLOADS
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import Forest, Options, simulate
from headwaiter.experiments.again import Replays, by_program, mbps, programs_of
from headwaiter.judge.conditions import RunConditions
from headwaiter.lab.schema import ProgramReplay, ProgramRun
from headwaiter.study.ongoing import done_in, ongoing, work
from headwaiter.study.perturb import perturbed
from headwaiter.study.plugs import joined, plugged
from headwaiter.study.workload import Reading, replay
from headwaiter.traces.model import Flushes

LAB = Path(__file__).parent / "data" / "again-example.json"
"""headwaiter lab run again --json; of it the rows of the lab."""
STOCK = ("none", "mq-deadline", "kyber", "bfq")
CLOSE = 15.0
TOGETHER = (True, True)


def measured(path: Path = LAB) -> list[ProgramRun]:
    """What the lab has measured. The bundled recording's stream is dd."""
    found = []
    for row in json.loads(path.read_text())["results"]:
        if row["what"] == "run":
            fields = {key: value for key, value in row.items() if key != "kernel"}
            found.append(ProgramRun(**fields | {"names": f"{row['names']} dd" if row["program"] == "stream" else row["names"]}))
    return found


def beside(runs: list[ProgramRun]) -> dict[tuple[str, str], ProgramReplay]:
    """Replays of the bundled recording on the lab's drive, by scheduler and program: programs go on, as in a kernel."""
    replays = Replays(WORKLOADS / "example.blktrace.xz", open_drive("barracuda-80g"), "mq-deadline")
    return {(row.scheduler, row.program): row for row in replays.beside(runs, [TOGETHER])}


@pytest.mark.thorough
def test_replays_of_the_example_agree_with_the_lab_program_by_program() -> None:
    """Within 15%, under each stock scheduler and of ours.

    In the recording both programs begin together; then bfq waits for the stream. When it begins a second before find, it does
    not. The replay tells both: it depends on whether find begins within 180 ms, and its processes are one burst with the stream.
    """
    runs = measured()
    rows = beside([one for one in runs if one.apart_ms == 0])
    assert {name for name, _ in rows} >= set(STOCK) and len(rows) % 2 == 0
    assert {key: row.off_percent for key, row in rows.items() if abs(row.off_percent) > CLOSE} == {}
    apart = {one.program: mbps(one) for one in runs if one.scheduler == "bfq" and one.apart_ms == 1000}
    assert rows["bfq", "stream"].low_mbps == pytest.approx(apart["stream"], rel=CLOSE / 100)
    assert rows["bfq", "find"].high_mbps == pytest.approx(apart["find"], rel=CLOSE / 100)


@pytest.mark.long
@pytest.mark.needs("lab")
def test_the_lab_beside_replays_of_what_it_recorded() -> None:
    rows = _run("again", "6.12", {"SCHEDULERS": "mq-deadline none kyber", "APART_MS": "0"})
    found = [row for row in rows if row["what"] == "replay" and row["goes_on"] and row["in_kernel"]]
    assert len(found) == 6 and all(abs(row["off_percent"]) <= CLOSE for row in found)
    ran = {(row["scheduler"], row["program"]): row["read_bytes"] for row in rows if row["what"] == "run"}
    lab = {(one.scheduler, one.program): one.read_bytes for one in measured() if one.apart_ms == 0}
    assert ran == pytest.approx({key: lab[key] for key in ran}, rel=0.05)


# --- what a program gets done ---


def test_the_pace_of_programs_that_go_on_and_of_those_that_end() -> None:
    """One reads 4 KiB every 2 ms to the end; one has ended, after ten of them, in 20 ms, for the drive serves them in turn."""
    _, load = load_of([*rows_of(1, 100), *rows_of(2, 10, start=50, sector=50_000)])
    done = done_in(simulate("noop", DRIVE, load, options=Options(record=True, queue_depth=2)).rows, load)
    assert done.bytes.tolist() == [[100 * 4096, 10 * 4096], [0, 0]] and done.begin_ns.tolist() == [0, 50 * MS]
    assert done.end_ns.tolist() == [199 * MS, 70 * MS]
    assert done.pace(np.array([1])) == pytest.approx(10 * 4096 / 0.020)
    assert by_program(done, {0: "a", 1: "a"})["a"] == pytest.approx(110 * 4096 / 0.199 / 1e6)


def test_only_what_is_done_in_time_counts() -> None:
    """On a drive of twice the time: half, and of that what is done when the time is over."""
    _, load = load_of(rows_of(1, 100))
    slow = simulate("noop", type(DRIVE)(3 * MS, DRIVE.sectors), load, options=Options(record=True))
    assert done_in(slow.rows, load).bytes.tolist() == [[50 * 4096], [0]]


def test_what_a_program_is_there_for() -> None:
    """What a copy writes is in memory; who only looks up where to write is a writer."""
    assert work(1e6, 1e6) == 1e6 and work(3e6, 5e6) == 3e6 and work(4096, 2e6) == 2e6 and work(0, 0) == 0


def test_programs_by_the_names_of_their_processes() -> None:
    made = trace([*rows_of(1, 3), *rows_of(2, 3, start=100), *rows_of(3, 3, start=200)], names={1: "find", 2: "cat", 3: "jbd2"})
    load = replay(Path("t"), made, DRIVE, Reading()).load
    assert set(programs_of(load.tasks, {"search": frozenset({"find", "cat"})}).values()) == {"search"}
    assert len(programs_of(load.tasks, {"search": frozenset({"find", "cat"})})) == 2


# --- what a process submits in one go ---


def test_what_is_submitted_in_one_go_reaches_the_scheduler_at_once() -> None:
    """Three of a process, 10 us apart, and a fourth later; another process has its own. Changes of think times keep it so."""
    us = 1000
    times = [0, 10 * us, 20 * us, 200 * us, 15 * us]
    rows: list[Row] = [*((0, 5, 1, Op.READ, 8 * i) for i in range(4)), (0, 5, 2, Op.READ, 4000)]
    made = trace(rows)
    made.time_ns[:], made.complete_ns[:] = times, 5 * MS
    order = np.argsort(made.time_ns, kind="stable")
    made = type(made)(**{**vars(made), **made.columns(order)})
    load = replay(Path("t"), made, DRIVE, Reading()).load
    assert isinstance(load, Forest)
    held = plugged(made, load)
    assert held.time_ns.tolist() == [20 * us, 20 * us, 15 * us, 20 * us, 200 * us]
    given = type(made)(**{**vars(made), "issue_ns": np.where(made.time_ns == 0, 5 * us, made.complete_ns)})
    assert plugged(given, load).time_ns.tolist()[0] == 0, "the device had the first before the second was there"


def test_what_was_one_request_asks_for_one_tag() -> None:
    """Pages of a read-ahead in one plug are one I/O, and what followed one of them follows it; other I/Os stay apart."""
    us = 1000
    pages = [(i * us, 5000, 1, Op.READ, 8 * i) for i in range(16)]
    rows = [*pages, (16 * us, 6000, 1, Op.READ, 128), (17 * us, 5000, 1, Op.WRITE, 136), (18 * us, 5000, 1, Op.READ, 900)]
    every: list[Row] = [*((0, 5, 1, op, sector) for _, _, _, op, sector in rows), (9, 12, 1, Op.READ, 4000)]
    made = trace(every)
    made.time_ns[:] = [*(row[0] for row in rows), 9 * MS]
    made.complete_ns[:] = [*(row[1] * us for row in rows), 12 * MS]
    flush = np.array([8 * MS], np.int64)
    flushes = Flushes(flush, flush + 1, flush, np.zeros(1, np.uint32), np.zeros(1, np.uint32))
    seen = replay(Path("t"), dataclasses.replace(made, flushes=flushes), DRIVE, Reading())
    one = joined(seen)
    assert isinstance(seen.load, Forest) and isinstance(one.load, Forest) and one.trace and one.recording is seen.trace
    assert one.load.sectors.tolist() == [128, 8, 8, 8, 0, 8] and one.trace.sectors.tolist() == [128, 8, 8, 8, 8]
    assert one.load.sector.tolist() == [0, 128, 136, 900, 0, 4000] and one.trace.flushes is flushes
    assert one.load.parent.tolist() == [-1, -1, -1, -1, 1, 4] and one.load.after is not None
    assert one.load.after.tolist() == [-1, 0, -1, -1, -1, -1] and int(seen.load.after[16]) == 15  # type: ignore[index]
    assert one.load.time_ns.tolist()[:2] == [15 * us, 16 * us], "with its last page"
    assert joined(one) is one
    inferred = replay(Path("t"), dataclasses.replace(made, tasks_inferred=True), DRIVE, Reading())
    assert joined(inferred) is inferred, "of a process, and these are none"
    apart = RunConditions(merging=False).load(seen, DRIVE)
    assert isinstance(apart.load, Forest) and (apart.load.sectors == 8).sum() >= 19
    given = dataclasses.replace(made, issue_ns=np.where(np.arange(len(made)) == 3, 1, made.complete_ns - 1))
    assert isinstance(load := joined(replay(Path("t"), given, DRIVE, Reading())).load, Forest)
    assert load.sectors.tolist()[:3] == [24, 8, 96], "the device had one of them by itself"


def test_what_follows_one_completion_stays_together() -> None:
    rows: list[Row] = [(0, 1, 1, Op.READ, 0), (3, 9, 1, Op.READ, 800), (3, 9, 1, Op.READ, 1600), (12, 13, 1, Op.READ, 0)]
    made = trace(rows, flags=np.full(4, SYNC, np.uint8))
    recorded = replay(Path("t"), made, DRIVE, Reading()).load
    assert isinstance(recorded, Forest)
    load = ongoing(made, recorded, DRIVE.sectors)
    other, _ = perturbed(load, Options(), 1)
    assert other.delay_ns[1] == other.delay_ns[2] != load.delay_ns[1]  # type: ignore[attr-defined]


# --- threads of control ---

NAMES = {1: "cat", 2: "find", 3: "cat", 9: "dd"}


def test_a_child_that_still_has_its_parents_name_continues_the_chain() -> None:
    """By its number; with a longer pause, and with what comes behind it."""
    assert groups([(1, 0, 10), (2, 30, 40), (3, 60, 70)], names=NAMES, group_gap_ns=5) == {1: 0, 2: 0, 3: 0}
    assert groups([(1, 0, 10), (2, 36, 40)], names=NAMES, group_gap_ns=5) == {1: 0, 2: 1}, "too long"
    assert groups([(1, 0, 10), (9, 12, 40)], names=NAMES, group_gap_ns=5) == {1: 0, 9: 1}, "far numbers"
    assert groups([(1, 0, 10), (2, 12, 14), (3, 15, 70)], names=NAMES, group_gap_ns=5) == {1: 0, 2: 0, 3: 0}, "in a gap"
    assert groups([(1, 0, 10), (2, 12, 16), (3, 15, 70)], names=NAMES, group_gap_ns=5) == {1: 0, 2: 1, 3: 0}, (
        "beside what follows"
    )
