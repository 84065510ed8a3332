# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings of programs that go on: who is repeated, how, until when; and that a scheduler is judged as if they had gone on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_replay import MS, trace

from headwaiter.drives.profile import find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import ConstantDrive, Options, simulate
from headwaiter.fio import load_jobs
from headwaiter.study.inkernel import untold
from headwaiter.study.ongoing import Ongoing, going_on
from headwaiter.study.trial import measure
from headwaiter.study.variants import Variant
from headwaiter.study.waits import waits_of
from headwaiter.study.workload import CLOSED, OPEN, Reading, Workload, replay
from headwaiter.traces import Trace
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import TraceTask

Row = tuple[int, int, int, int, int]
DRIVE = ConstantDrive(MS, sectors=100_000)


def rows_of(task: int, count: int, every: int = 2, start: int = 0, sector: int = 0, step: int = 8) -> list[Row]:
    """I/Os of a program that each take 1 ms, one every so many ms."""
    return [(start + i * every, start + i * every + 1, task, Op.READ, sector + i * step) for i in range(count)]


def load_of(rows: list[Row], **more: Any) -> tuple[Trace, Ongoing]:
    made = trace(sorted(rows), **more)
    work = going_on(replay(Path("t"), made, DRIVE, Reading()), DRIVE)
    assert isinstance(work.load, Ongoing) and work.trace is made
    return made, work.load


def further(load: Ongoing) -> Any:
    """Return the recorded row, parent, after and sector of each row that repeats another."""
    n = int(load.origin.max()) + 1
    assert load.after is not None and load.origin[:n].tolist() == list(range(n))
    return [column[n:].tolist() for column in (load.origin, load.parent, load.after, load.sector)]


# --- who goes on, and where ---


def test_a_stream_goes_on_behind_its_end() -> None:
    """Its first row again follows its last one, after the time that the program thinks between two."""
    _, load = load_of(rows_of(1, 10, sector=800))
    origin, parent, after, sector = further(load)
    assert origin == list(range(10)) and sector == [880 + 8 * i for i in range(10)]
    assert parent == [9, *range(10, 19)] == after and load.delay_ns[10:].tolist() == [MS] * 10


def test_each_further_pass_follows_the_one_before() -> None:
    _, load = load_of(rows_of(1, 10, sector=800))
    more = load.longer(np.zeros(20, np.int64))
    assert more and more.passes == (8,) and len(more.origin) == 80
    _, parent, after, sector = further(more)
    assert parent == list(range(9, 79)) == after and sector == [880 + 8 * i for i in range(70)]
    assert load.longer(np.array([0] * 19 + [-1])) is None, "one that has not issued all it has needs no more"


def test_a_stream_stays_on_the_drive() -> None:
    _, load = load_of(rows_of(1, 10, sector=DRIVE.sectors - 80))
    sector = further(load)[3]
    assert max(sector) <= DRIVE.sectors - 8 and len(set(sector)) == 10, "and does not stay at its end"
    simulate("noop", DRIVE, load, options=Options(record=True))


def test_a_loop_stays_in_its_file() -> None:
    """A program that reads a file three times goes on with the same places, and the drive's cache holds them as before."""
    rows: list[Row] = [(2 * i, 2 * i + 1, 1, Op.READ, 800 + 8 * (i % 10)) for i in range(30)]
    _, _, _, sector = further(load_of(rows)[1])
    assert sector == [row[4] for row in rows]
    few: list[Row] = [(2 * i, 2 * i + 1, 1, Op.READ, 800 + 8 * (i % 28)) for i in range(30)]
    assert further(load_of(few)[1])[3] != [row[4] for row in few], "a few places again make no loop"


def test_random_places_are_others_of_the_same_region() -> None:
    places = [i * 37 % 50 * 8 for i in range(50)]
    rows: list[Row] = [(2 * i, 2 * i + 1, 1, Op.READ, 8000 + place) for i, place in enumerate(places)]
    _, _, _, sector = further(load_of(rows)[1])
    assert sorted(sector) == [8000 + 8 * i for i in range(50)]
    assert all(now != before for now, before in zip(sector, (row[4] for row in rows), strict=True))


def test_as_many_as_were_under_way_are_again() -> None:
    """A program with three I/Os at once: each of those that were under way at the end is followed by one."""
    rows: list[Row] = [(3 * (i // 3), 3 * (i // 3) + 3, 1, Op.READ, i * 8000 % 99_000) for i in range(30)]
    _, load = load_of(rows)
    assert (load.parent[:30] < 0).sum() == 3
    assert load.parent[30:33].tolist() == [27, 28, 29] and (load.parent[33:] >= 30).all()


def test_a_program_that_ended_is_not_repeated() -> None:
    """It exited, or was silent at last as never before; a pause that it has made before is none."""
    going = rows_of(1, 50)
    for ended in (rows_of(2, 30), rows_of(2, 6, every=10)):
        _, load = load_of(going + ended)
        assert set(load.origin[int(load.origin.max()) + 1 :].tolist()) == {
            i for i, row in enumerate(sorted(going + ended)) if row[2] == 1
        }
    _, load = load_of(going + rows_of(2, 5, every=18))
    assert len(load.programs) == 2


def test_write_back_is_not_repeated() -> None:
    rows = [*rows_of(1, 20), *((time, time + 1, 9, Op.WRITE, 50_000 + 8 * time) for time in range(1, 40, 2))]
    made = trace(sorted(rows))
    flags = np.where(made.op == Op.READ, SYNC, 0).astype(np.uint8)
    _, load = load_of(rows, flags=flags)
    assert len(load.programs) == 1 and (load.op[40:] == Op.READ).all()


def test_one_that_ends_shortly_before_the_recording_goes_on_until_then() -> None:
    made, load = load_of(rows_of(1, 50) + rows_of(2, 45))
    assert load.until_ns is not None
    mine = load.groups == load.groups[int(np.flatnonzero(made.task == 1)[0])]
    assert set(load.until_ns[mine].tolist()) == {89 * MS} and set(load.until_ns[~mine].tolist()) == {99 * MS}


def test_a_chain_of_programs_goes_on_with_others() -> None:
    """Each of a chain exits, so those of the next pass are new; the one that is at work in the end stays."""
    rows = [row for i in range(5) for row in rows_of(10 + i, 4, start=8 * i, sector=400 * i)]
    tasks = [TraceTask(10 + i, "cat", None if i == 4 else (8 * i + 8) * MS) for i in range(5)]
    made = trace(rows, group=np.zeros(20, np.int64))
    made = dataclasses.replace(made, tasks=tuple(tasks))
    load = going_on(replay(Path("t"), made, DRIVE, Reading()), DRIVE).load
    assert isinstance(load, Ongoing)
    assert len(load.tasks) == 9 and {task.group for task in load.tasks} == {0} and len({t.id for t in load.tasks}) == 9
    assert load.task[20:].tolist() == [5] * 4 + [6] * 4 + [7] * 4 + [8] * 4 + [4] * 4


def test_without_completions_no_more_is_done_than_was_recorded() -> None:
    """A program is at work on what it was at work on: each of its requests is not a thread of its own from then on."""
    for known in (True, False):
        made = trace(sorted(rows_of(1, 40, every=4) + rows_of(2, 40, every=4, start=1, sector=40_000)))
        made = made if known else dataclasses.replace(made, complete_ns=np.full(len(made), -1))
        work = going_on(replay(Path("t"), made, DRIVE, Reading(CLOSED)), DRIVE)
        assert isinstance(work.load, Ongoing) and [len(one.leaves) for one in work.load.programs] == [1, 1]
        rows = simulate("noop", DRIVE, work.load, options=Options(record=True)).rows
        assert abs(int((rows.complete_ns > 0).sum()) - 80) <= 2, known


def test_only_closed_replays_go_on() -> None:
    made = trace(rows_of(1, 10))
    work = replay(Path("t"), made, DRIVE, Reading(OPEN))
    assert going_on(work, DRIVE) is work
    jobs = Workload("jobs", work.load, None)
    assert going_on(jobs, DRIVE) is jobs


# --- what is measured ---


def test_nothing_is_issued_once_its_time_is_over() -> None:
    _, load = load_of(rows_of(1, 10))
    rows = simulate("noop", DRIVE, load, options=Options(record=True)).rows
    assert rows.issue_ns.tolist() == [2 * i * MS for i in range(10)] + [-1] * 10
    slow = simulate("noop", dataclasses.replace(DRIVE, service_ns=7 * MS), load, options=Options(record=True))
    assert slow.rows.issue_ns.tolist() == [0, 8 * MS, 16 * MS] + [-1] * 17 and slow.totals["completed"] == 3


def test_the_recorded_work_is_charged_at_the_pace_of_each() -> None:
    """One that thinks for 1 ms between I/Os of 10 ms does 18 in the time of a hundred, and begins another."""
    _, load = load_of(rows_of(1, 100))
    slow = simulate("noop", dataclasses.replace(DRIVE, service_ns=10 * MS), load, options=Options(record=True))
    waits = waits_of(slow, load)
    assert waits.waited_s == pytest.approx((18 * 10 + 1) / 1000 * 100 / 18), "the last one is cut off"
    assert waits.latency_ns.sum() == pytest.approx(19 * 10 * MS * 100 / 18)
    assert waits.contention == 0 and len(waits.waited_ns) == 4


def test_one_that_gets_nothing_waits_for_ever_and_not_for_nothing() -> None:
    _, load = load_of(rows_of(1, 100))
    stuck = simulate("noop", dataclasses.replace(DRIVE, service_ns=1000 * MS), load, options=Options(record=True))
    assert waits_of(stuck, load).waited_s == pytest.approx(0.199 * 100 / 0.5)


MIX = """[global]
filename=/dev/sda
direct=1
ioengine=psync
time_based
runtime={seconds}
size=1g
[streams]
rw=read
bs=64k
numjobs=2
offset_increment=20g
[random]
rw=randread
bs=4k
offset=50g
size=8g
thinktime=3000
"""


def test_a_recording_tells_of_schedulers_what_the_programs_get_under_them(tmp_path: Path) -> None:
    """Streams, which `as` holds the disk for, beside a random reader: at fixed work they end early and leave it the disk."""
    drive = find_drive("barracuda-80g")
    path = tmp_path / "mix.fio"
    path.write_text(MIX.format(seconds=20))
    jobs = load_jobs(path, drive.sectors)
    names = ("mq-deadline", "as", "cfq-slice")
    settings = {name: untold(Variant(name, name)) for name in names}
    ran = {name: simulate(name, drive, jobs, settings[name].settings, Options(record=True, turnaround_ns=9000)) for name in names}
    rows = ran["mq-deadline"].rows
    whole = np.flatnonzero(rows.issue_ns < 15_000_000_000)
    order = whole[np.argsort(rows.issue_ns[whole], kind="stable")]
    made = make_trace(
        source="mix", format="t", time_ns=rows.issue_ns[order], complete_ns=rows.complete_ns[order], task_id=rows.task[order],
        op=rows.op[order], sector=rows.sector[order], sectors=rows.sectors[order],
    )  # fmt: skip
    work = replay(Path("mix"), made, drive, Reading())

    def per_work(name: str) -> float:
        """What waiting for the recorded work costs, of the programs themselves."""
        got = ran[name].rows
        ios = {task: int((made.task == task).sum()) for task in range(3)}
        return sum(float((got.complete_ns - got.issue_ns)[got.task == task].mean()) * count for task, count in ios.items())

    truth = {name: per_work("mq-deadline") / per_work(name) for name in names}
    options = Options(turnaround_ns=9000)

    def said(load: Any) -> dict[str, float]:
        trials = {name: measure(settings[name], drive, load, options, runs=0, tasks=False) for name in names}
        waited = {name: trial.result.waited_s or 0.0 for name, trial in trials.items()}
        return {name: waited["mq-deadline"] / waited[name] for name in names}

    going, fixed = said(going_on(work, drive).load), said(work.load)
    assert all(going[name] == pytest.approx(truth[name], rel=0.1) for name in names), (going, truth)
    assert any(fixed[name] != pytest.approx(truth[name], rel=0.3) for name in names), (fixed, truth)


def test_a_starved_program_goes_on() -> None:
    """It has done three I/Os in all, each of which took a third of the time; another did as few, and was silent in between."""
    rows = rows_of(1, 150) + [(100 * i, 100 * i + 99, 2, Op.READ, 50_000 + 8 * i) for i in range(3)]
    _, load = load_of(rows)
    assert {int(load.task[one.rows[0]]) for one in load.programs} == {0, 1}
    (starved,) = (one for one in load.programs if len(one.rows) == 3)
    assert starved.think_ns == MS and starved.until_ns == 299 * MS
    rows = rows_of(1, 150) + [(100 * i, 100 * i + 50, 2, Op.READ, 50_000 + 8 * i) for i in range(3)]
    _, load = load_of(rows)
    assert [len(one.rows) for one in load.programs] == [150]
