# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Long recordings in windows: which moments are replayed, what joins them, what is said of it; that the answer is the same."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import good
from test_replay import MS, trace

from headwaiter import api
from headwaiter.base.paths import WORKLOADS
from headwaiter.drives.profile import find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import ConstantDrive, Drive, Forest, Options, simulate
from headwaiter.fio import load_jobs
from headwaiter.judge import conditions as conditions_module
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.judge import judge, runs_of
from headwaiter.study.cost import plan
from headwaiter.study.intervals import bootstrap
from headwaiter.study.ongoing import Ongoing
from headwaiter.study.progress import programs_of
from headwaiter.study.variants import parse_variants
from headwaiter.study.windows import SAMPLED_RUNS, joined, sampled
from headwaiter.study.workload import OPEN, Reading, Workload, replay
from headwaiter.traces import Trace, part, write_csv
from headwaiter.traces.excerpt import FEWEST_WINDOWS, LATENCIES, WINDOWS, Windows, choose, cut
from headwaiter.traces.making import make_trace

Row = tuple[int, int, int, int, int]
DISK = "wd-re-4tb"
DRIVE = ConstantDrive(MS, sectors=1 << 30)


def reader(task: int, count: int, every: int, took: int, start: int = 0) -> list[Row]:
    """I/Os that each take so many ms, one every so many, behind each other."""
    return [(start + i * every, start + i * every + took, task, Op.READ, 8 * i) for i in range(count)]


def work_of(made: Trace, drive: Drive = DRIVE, **more: Any) -> Workload:
    return replay(Path("t"), made, drive, Reading(**more))


def windows_of(length_ms: int, *begin_ms: int) -> Windows:
    return Windows(np.array(begin_ms, np.int64) * MS, length_ms * MS)


def loaded(made: Trace, windows: Windows, **more: Any) -> tuple[Trace, Forest]:
    """The trace in windows, and its load."""
    work = work_of(made, **more)
    assert isinstance(work.load, Forest)
    chosen = cut(made, windows)
    return chosen, joined(work.load, made, chosen, windows, work.reading.speed)


# --- which moments ---


def test_each_equal_part_has_a_window_somewhere_and_all_have_about_as_many_requests_as_are_asked_for() -> None:
    made = trace(reader(1, 20_000, 3, 1))
    found = choose(made, 4000, seed=1)
    assert len(found) == WINDOWS and abs(found.count(made.time_ns) - 4000) <= WINDOWS
    part_ns = made.span_ns / WINDOWS
    assert (found.begin_ns // part_ns).astype(int).tolist() == list(range(WINDOWS))
    assert ((found.begin_ns + found.length_ns) // part_ns).astype(int).tolist() == list(range(WINDOWS))
    places = (found.begin_ns % part_ns) / (part_ns - found.length_ns)
    assert places.std() > 0.1, "not at random"
    assert found.begin_ns.tolist() == choose(made, 4000, seed=1).begin_ns.tolist() != choose(made, 4000, seed=2).begin_ns.tolist()
    rows, _ = found.rows(made.time_ns)
    assert len(rows) == found.count(made.time_ns)


def test_all_that_is_asked_for_is_all_there_is() -> None:
    made = trace(reader(1, 500, 3, 1))
    assert len(cut(made, choose(made, 500, 0))) == len(cut(made, choose(made, 9999, 0))) == 500


def test_where_requests_take_long_there_are_fewer_and_longer_windows() -> None:
    """A seam must not count for much."""
    made = trace(reader(1, 1500, 20, 19))
    found = choose(made, 300, seed=0)
    assert FEWEST_WINDOWS < len(found) < WINDOWS and found.length_ns >= 0.9 * LATENCIES * 19 * MS
    assert len(choose(made, 30, seed=0)) == FEWEST_WINDOWS


def test_bursts_are_as_likely_to_be_replayed_as_other_moments() -> None:
    """A tenth of the time has nine tenths of the requests, and over many choices a sample does so, too."""
    made = trace([*reader(1, 1000, 20, 1), *reader(2, 9000, 1, 1, start=30_000), *reader(1, 6000, 20, 1, start=40_000)])
    busy = (made.time_ns >= 30_000 * MS) & (made.time_ns < 39_000 * MS)
    shares = []
    for seed in range(40):
        windows = choose(made, 2000, seed)
        rows, _ = windows.rows(made.time_ns)
        shares.append(busy[rows].mean())
    assert np.mean(shares) == pytest.approx(busy.mean(), abs=0.03)


# --- what joins them ---


def test_windows_that_leave_nothing_out_are_the_recording_itself() -> None:
    rows = [*reader(1, 400, 5, 3), *reader(2, 300, 7, 6, start=2), *reader(3, 90, 20, 50, start=11)]
    made = trace(sorted(rows))
    whole = work_of(made).load
    assert isinstance(whole, Forest)
    for count in (1, 2, 7):
        length = -(-made.span_ns // count) + 1
        windows = Windows(np.arange(count, dtype=np.int64) * length, length)
        chosen, load = loaded(made, windows)
        assert chosen.time_ns.tolist() == made.time_ns.tolist() and chosen.complete_ns.tolist() == made.complete_ns.tolist()
        for name in ("time_ns", "parent", "delay_ns", "after", "task", "sector", "op"):
            assert getattr(load, name).tolist() == getattr(whole, name).tolist(), name
        assert load.windows == count


def test_a_program_that_waited_at_a_seam_goes_on_after_its_own_thought() -> None:
    """It thinks for 2 ms whenever it has waited for 8, also where the request that it waited for is in no window."""
    made = trace(reader(1, 100, 10, 8))
    chosen, load = loaded(made, windows_of(95, 0, 505))
    assert chosen.time_ns.tolist() == [10 * MS * i for i in range(10)] + [(100 + 10 * i) * MS for i in range(9)]
    assert load.parent.tolist() == list(range(-1, 18)) and load.delay_ns[1:].tolist() == [2 * MS] * 18


def test_a_program_that_thought_at_a_seam_has_thought_on_both_sides_of_it() -> None:
    """Every 10 ms it reads for 2. The first window ends 5 ms after it was served, the second begins 3 ms before it reads."""
    made = trace(reader(1, 100, 10, 2))
    _, load = loaded(made, windows_of(27, 0, 507))
    assert load.parent.tolist() == [-1, 0, 1, 2, 3, 4]
    assert load.delay_ns[1:].tolist() == [8 * MS, 8 * MS, (5 + 3) * MS, 8 * MS, 8 * MS]


def test_as_many_requests_are_under_way_behind_a_seam_as_before_it() -> None:
    """A program that keeps four: each that comes follows another of the last four."""
    rows = [row for lane in range(4) for row in reader(1, 200, 8, 8, start=2 * lane)]
    made = trace(sorted(rows))
    _, load = loaded(made, windows_of(101, 0, 401, 777))
    again = simulate("noop", ConstantDrive(MS // 10, sectors=1 << 30), load, options=Options(record=True)).rows
    children = np.bincount(load.parent[load.parent >= 0], minlength=len(load.parent))
    assert (load.parent >= 0).sum() == len(load.parent) - 4 and children.max() == 1
    assert (np.asarray(again.complete_ns) >= 0).all()


def test_who_comes_in_a_window_for_the_first_time_comes_at_its_time() -> None:
    made = trace(sorted([*reader(1, 100, 10, 8), *reader(2, 40, 10, 4, start=520)]))
    _, load = loaded(made, windows_of(50, 0, 500))
    roots = np.flatnonzero(load.parent < 0)
    assert load.time_ns[roots].tolist() == [0, (50 + 20) * MS] and load.tasks[1].name == "task 2"


def test_a_program_may_be_absent_from_a_window() -> None:
    """What it does later follows what it did last, whenever that was; it is idle in all of the window between."""
    rows = [*reader(1, 300, 10, 8), *reader(2, 5, 10, 2), *reader(2, 5, 10, 2, start=2005)]
    made = trace(sorted(rows))
    chosen, load = loaded(made, windows_of(50, 0, 1000, 2000))
    second = np.flatnonzero(np.array([task.id for task in chosen.tasks])[chosen.task] == 2)
    assert len(second) == 10 and load.parent[second[5]] == second[4]
    assert load.delay_ns[second[5]] == (8 + 50 + 5) * MS, "not the time that is in no window"


def test_times_of_an_open_replay_are_those_of_the_windows() -> None:
    made = trace(reader(1, 100, 10, 8))
    _, load = loaded(made, windows_of(50, 0, 500), replay=OPEN, speed=2.0)
    assert (load.parent == -1).all() and load.time_ns.tolist() == [5 * MS * i for i in range(10)]


def test_a_flush_before_the_first_request_is_in_no_window() -> None:
    """And the first request of all comes at once."""
    rows = [(5, 9, 1, Op.FLUSH, 0), *reader(1, 300, 10, 8, start=12)]
    time, complete, task, op, sector = (np.array(column) for column in zip(*rows, strict=True))
    columns: dict[str, Any] = {"sector": sector, "sectors": np.where(op == Op.FLUSH, 0, 8), "op": op, "task_id": task}
    made = make_trace(source="t", format="t", time_ns=time * MS, complete_ns=complete * MS, **columns)
    chosen, load = loaded(made, windows_of(50, 3, 503))
    assert chosen.flushes is None and len(load.time_ns) == len(chosen) == 10 and load.time_ns[0] == 0
    assert chosen.time_ns[0] == 7 * MS and load.time_ns[5] == 50 * MS


def test_flushes_exits_and_shares_move_with_their_windows(tmp_path: Path) -> None:
    lines = ["time_s,task,op,sync,sector,sectors,complete_s\n"]
    for i in range(100):
        lines.append(f"0.{i:02}1,7,W,1,{8 * i},8,0.{i:02}3\n")
        lines.append(f"0.{i:02}4,7,F,1,0,0,0.{i:02}6\n")
    path = tmp_path / "t.csv"
    path.write_text("".join(lines), encoding="ascii")
    made = api.read_trace(path)
    made = replace(made, tasks=(replace(made.tasks[0], exit_ns=980 * MS),))
    chosen = cut(made, windows_of(100, 200, 900))
    assert chosen.flushes and len(chosen.flushes) == len(chosen) == 20
    assert chosen.flushes.time_ns[[0, 10]].tolist() == [3 * MS, 103 * MS]
    assert chosen.flushes.complete_ns[[0, 10]].tolist() == [5 * MS, 105 * MS]
    assert chosen.tasks[0].exit_ns == 179 * MS
    work = work_of(made, shares=((7, 3),))
    found = sampled(work, 0, most=10, ios=50)
    assert [task.share for task in found.load.tasks] == [3] and found.windows > 0
    assert found.sha256 == work.sha256 and found.recording is made


# --- when, and what is said of it ---


def few(monkeypatch: pytest.MonkeyPatch, most: int, ios: int) -> None:
    """Sample recordings that are as short as those of tests."""
    monkeypatch.setattr(conditions_module, "sampled", partial(sampled, most=most, ios=ios))


def test_short_recordings_and_what_is_in_windows_already_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch, 1000, 400)
    short, long = work_of(trace(reader(1, 1000, 3, 1))), work_of(trace(reader(1, 1001, 3, 1)))
    how = RunConditions(goes_on=False)
    assert how.load(short, DRIVE) is short and RunConditions(goes_on=False, whole=True).load(long, DRIVE) is long
    found = how.load(long, DRIVE)
    assert found.windows and how.load(found, DRIVE) is found and runs_of(found, None) == SAMPLED_RUNS
    assert runs_of(found, 1) == 1 and runs_of(short, None) is None
    going = RunConditions().load(long, DRIVE)
    assert isinstance(going.load, Ongoing) and going.load.windows and RunConditions().load(going, DRIVE) is going
    assert plan(going.load, DRIVE, Options(), 2, runs_of(going, None), wide=True).total_ios == 7 * 2 * len(going.trace or ())


def test_a_program_of_few_requests_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets what chance gives it."""
    few(monkeypatch, 100, 600)
    written = [(40 * i, 40 * i + 9, 3, Op.WRITE, 8 * i) for i in range(100)]
    work = work_of(trace(sorted([*reader(1, 3000, 3, 1), *reader(2, 20, 400, 10), *written])))
    found = RunConditions().load(work, DRIVE)
    assert found.notes[-1].endswith(f"; 1 program with fewer than {found.windows} of them does not count")
    assert isinstance(found.load, Forest)
    told = programs_of(simulate("noop", DRIVE, found.load, options=Options(record=True)), found.load)
    assert told and told.counts.tolist() == [True, False]
    whole = programs_of(simulate("noop", DRIVE, work.load, options=Options(record=True)), work.load)
    assert whole and whole.counts.all()


def recorded(seconds: int, name: str = DISK, scheduler: str = "mq-deadline") -> Trace:
    """What a recorder would have written of a backup beside somebody who reads now and then."""
    drive = find_drive(name)
    job = (WORKLOADS / "regret" / "backup.fio").read_text(encoding="ascii")
    load = load_jobs(Path("t.fio"), drive.sectors, re.sub(r"runtime=\d+", f"runtime={seconds}", job).encode())
    rows = simulate(scheduler, drive, load, options=MEASURED.apply(Options(record=True, join_arriving=True))).rows
    done = np.flatnonzero(rows.complete_ns >= 0)
    columns: dict[str, Any] = {name: np.asarray(getattr(rows, name))[done] for name in ("complete_ns", "sector", "sectors", "op")}
    task = np.asarray(rows.task)[done]
    flags = np.where(task < len(load.jobs), SYNC, 0).astype(np.uint8)
    names = {i: task.name for i, task in enumerate(load.tasks)}
    more: dict[str, Any] = {"task_id": task, "group": task, "flags": flags, "names": names}
    return make_trace(source="t", format="t", time_ns=np.asarray(rows.issue_ns)[done], **columns, **more)


@pytest.fixture(scope="module")
def long() -> Trace:
    return recorded(200)


def test_the_sample_says_of_each_scheduler_what_the_whole_says(long: Trace) -> None:
    """The whole recording's margin lies in the interval of the sample, and the same one is taken, whatever the windows."""
    drive = find_drive(DISK)
    variants = parse_variants("none,mq-deadline,bfq", (), {})
    work = work_of(long, drive)
    whole = judge(work, drive, variants, RunConditions(), runs=2, doubted=False)
    margins = {m.scheduler: m.ahead_percent for m in whole.answer.margins}
    best = whole.answer.best
    assert best and margins[best] > 50, margins
    # Any replay begins with an empty queue; a piece must be long beside the two seconds in which write-back fills it.
    for seed in range(2):
        found = judge(sampled(work, seed, 0, len(long) // 2), drive, variants, RunConditions(seed=seed), runs=2, doubted=False)
        assert found.answer.best == best, found.answer.text
        for one in found.answer.margins:
            low, high = one.low_percent, one.high_percent
            assert low is not None and high is not None
            assert low - 1e-9 <= margins[one.scheduler] <= high + 1e-9, (seed, one, margins)
        assert any(note.startswith(f"replayed {found.work.windows} windows of ") for note in found.notes)


@pytest.mark.thorough
def test_of_windows_that_differ_an_interval_is_as_wide_as_they_make_it() -> None:
    """What is alike in a window is one sample, also where single cells hide it: intervals hold as often as they say."""
    dice = np.random.default_rng(3)
    windows, cells, trials, held = 24, 240, 300, {24: 0, 0: 0}
    for seed in range(trials):
        level = np.repeat(dice.uniform(0.9, 1.1, windows), cells // windows)
        costs = np.stack([np.full(cells, 1000.0), 1000.0 * level * dice.uniform(0.8, 1.2, cells)])
        for count in held:
            found = bootstrap(costs, 0, seed, count)[1]
            held[count] += found.low <= 0.0 <= found.high
    assert held[24] >= 0.93 * trials and held[24] > held[0], held


@pytest.mark.thorough
def test_commands_say_how_much_was_replayed(
    tmp_path: Path, long: Trace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long.csv"
    with path.open("w", encoding="ascii") as out:
        write_csv(part(long, 0, 3000), out)
    few(monkeypatch, 2500, 1000)
    note = "1,000 of 3,000 requests, 33% (--whole replays all)"
    for command in (("run", path, "-s", "bfq"), ("compare", path, "-s", "mq-deadline,bfq", "--no-levers")):
        sample, whole = (json.loads(good(capfd, *command, "-d", DISK, "--json", *more)) for more in ((), ("--whole",)))
        assert any(note in one for one in sample["notes"]), sample["notes"]
        assert not any("windows" in one for one in whole["notes"]), whole["notes"]
        assert sample["results"][0]["requests"] < 0.8 * whole["results"][0]["requests"]
        assert sample["workload_sha256"] == whole["workload_sha256"]
    assert note in " ".join(good(capfd, "advise", path, "-d", DISK, "--anyway").split())


def test_of_the_interface_for_python_too(long: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch, 2500, 1000)
    made = part(long, 0, 3000)
    ran, whole = (api.run(made, "bfq", DISK, whole=one) for one in (False, True))
    assert any("1,000 of 3,000 requests" in note for note in ran.document.notes) and len(ran.ios.op) < 0.8 * len(whole.ios.op)
    found = api.compare(made, DISK, ["mq-deadline", "bfq"])
    assert any("1,000 of 3,000 requests" in note for note in found.document.notes)
    assert found.study.work.recording is made and found.results[0].range and found.results[0].range.runs == SAMPLED_RUNS + 1
