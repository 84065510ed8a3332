# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From a file to a load: how traces are replayed, what stands in for what was not recorded, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import told, write

from headwaiter.base.errors import Problem
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task, simulate
from headwaiter.fio import load_jobs
from headwaiter.study.workload import Reading, Workload, find_workload, read_workload

MS = 1_000_000
HEADER = "time_s,task,op,sync,sector,sectors"
DRIVE = ConstantDrive(5 * MS)


def workload(folder: Path, text: str, drive: ConstantDrive = DRIVE, **how: object) -> Workload:
    return read_workload(write(folder / "load", text), drive, Reading(**how))  # type: ignore[arg-type]


def forest(folder: Path, text: str, drive: ConstantDrive = DRIVE, **how: object) -> Forest:
    load = workload(folder, text, drive, **how).load
    assert isinstance(load, Forest)
    return load


def test_stand_in_completions_are_on_the_clock_of_the_trace(tmp_path: Path) -> None:
    """The trace begins at 100 s. Under noop each of the three reads takes 5 ms: think times are 5 and 25 ms."""
    w = workload(tmp_path, f"{HEADER}\n100,1,R,1,0,8\n100.010,1,R,1,8,8\n100.040,1,R,1,16,8\n")
    assert isinstance(w.load, Forest) and w.replay == "closed"
    assert w.load.parent.tolist() == [-1, 0, 1]
    assert (w.load.delay_ns / MS).tolist() == [0, 5, 25]
    assert w.load.time_ns.tolist() == [0, 10 * MS, 40 * MS]
    assert w.notes == (
        "the completions were not recorded: service times of noop on constant:5 are used instead",
        "so programs are assumed to think for 15 ms between two of their requests (median)",
    )


def test_what_stands_in_is_served_in_the_order_of_arrival(tmp_path: Path) -> None:
    """Three tasks read at once, not in the order of places, and again at 100 ms."""
    rows = [f"{at},{task},R,1,{sector},8" for at in (0, 0.1) for task, sector in ((1, 1000), (2, 9000), (3, 5000))]
    load = forest(tmp_path, "\n".join([HEADER, *rows, ""]))
    assert load.parent.tolist() == [-1, -1, -1, 0, 1, 2]
    assert (load.delay_ns / MS).tolist() == [0, 0, 0, 95, 90, 85]


def test_only_what_is_missing_is_stood_in_for(tmp_path: Path) -> None:
    w = workload(tmp_path, f"{HEADER},complete_s\n3,1,R,1,0,8,3.002\n3.010,1,R,1,8,8,\n3.040,1,R,1,16,8,3.041\n")
    assert isinstance(w.load, Forest)
    assert (w.load.delay_ns / MS).tolist() == [0, 8, 25], "after 2 ms as recorded, and after 5 as on the drive"
    assert w.notes[-2].startswith("1 missing completions were not recorded")


RECORDED = f"{HEADER},complete_s\n7,1,R,1,0,8,7.002\n7.010,1,R,1,8,8,7.012\n"
UNKNOWN = "13.5\t0\t100\t5\t1\n17.5\t0\t900\t6\t0\n"  # DiskSim's format tells no tasks


def test_replay_is_closed_where_tasks_are_known(tmp_path: Path) -> None:
    assert workload(tmp_path, RECORDED).replay == "closed"
    opened = workload(tmp_path, RECORDED, replay="open")
    assert isinstance(opened.load, Forest) and opened.replay == "open" and opened.notes == ()
    assert (opened.load.parent.tolist(), opened.load.time_ns.tolist()) == ([-1, -1], [0, 10 * MS])
    assert opened.load.delay_ns.tolist() == [0, 0]
    unknown = workload(tmp_path, UNKNOWN)
    assert unknown.replay == "open" and any("does not identify tasks" in note for note in unknown.notes)
    assert workload(tmp_path, UNKNOWN, replay="closed").replay == "closed"


def test_what_a_trace_says_of_requests_and_tasks(tmp_path: Path) -> None:
    rows = ["0,9,R,1,0,8,0.001,be/3,1,sh", "0.001,9,W,0,64,16,0.002,none,0,sh", "0.002,4,W,1,128,24,0.003,rt/1,0,"]
    load = forest(tmp_path, "\n".join([f"{HEADER},complete_s,ioprio,meta,name", *rows, ""]))
    assert load.tasks == (Task(9, "sh", 0), Task(4, "task 4", 1))
    assert (load.task.tolist(), load.op.tolist(), load.flags.tolist()) == ([0, 0, 1], [0, 1, 1], [3, 0, 1])
    assert (load.sector.tolist(), load.sectors.tolist()) == ([0, 64, 128], [8, 16, 24])
    assert load.ioprio.tolist() == [2 << 13 | 3, 0, 1 << 13 | 1]


def test_a_stream_keeps_its_order(tmp_path: Path) -> None:
    """Two reads under way at once, the second where the first ends; then one somewhere else, and a write behind it."""
    rows = ["0,1,R,1,0,8,0.005", "0.001,1,R,1,8,8,0.004", "0.002,1,R,1,500,8,0.006", "0.003,1,W,1,508,8,0.007"]
    load = forest(tmp_path, "\n".join([f"{HEADER},complete_s", *rows, ""]))
    assert load.after is not None and load.after.tolist() == [-1, 0, -1, -1]


SHELL = "\n".join([f"{HEADER},complete_s,name", "0,1,R,1,0,8,0.005,sh", "0.015,2,R,1,80,8,0.020,sh",
                   "0.045,3,R,1,160,8,0.050,sh", ""])  # fmt: skip


def test_the_gap_decides_what_is_one_thread_of_control(tmp_path: Path) -> None:
    """Pauses of 10 and 25 ms: 20 ms by default."""

    def groups(**how: Any) -> list[int]:
        return [t.group for t in forest(tmp_path, SHELL, **how).tasks]

    assert (groups(), groups(group_gap_ms=30), groups(group_gap_ms=25), groups(group_gap_ms=9)) == (
        [0, 0, 1],
        [0, 0, 0],
        [0, 0, 0],
        [0, 1, 2],
    )
    assert forest(tmp_path, SHELL).parent.tolist() == [-1, 0, -1]


def test_shares_are_of_tasks_by_their_number(tmp_path: Path) -> None:
    text = f"{HEADER}\n0,7,R,1,0,8\n0,3,R,1,800,8\n"
    assert [(t.id, t.share) for t in forest(tmp_path, text).tasks] == [(7, 0), (3, 0)]
    assert [(t.id, t.share) for t in forest(tmp_path, text, shares=((3, 40),)).tasks] == [(7, 0), (3, 40)]
    with pytest.raises(Problem, match="no task 5"):
        forest(tmp_path, text, shares=((5, 1),))


def test_the_device_of_a_trace_of_several(tmp_path: Path) -> None:
    text = "1.5\t0\t100\t5\t1\n2.5\t3\t900\t6\t0\n3.5\t0\t700\t5\t1\n"
    assert forest(tmp_path, text).sector.tolist() == [100, 700], "the busiest"
    assert forest(tmp_path, text, device="3").sector.tolist() == [900]


def test_what_lies_beyond_the_drive(tmp_path: Path) -> None:
    small = ConstantDrive(MS, sectors=1000)
    assert small.sectors == 1000
    rows = [f"{HEADER}", "0,1,R,1,992,8", "0,1,R,1,993,8", "0,1,R,1,0,8", "0,1,R,1,5000,8", ""]
    assert forest(tmp_path, "\n".join(rows[:2]), small).sector.tolist() == [992], "up to the end"
    with pytest.raises(Problem, match=r"request 1 \(sectors 993\+8\) and 1 more lie past the end of constant:1, which has 1000"):
        forest(tmp_path, "\n".join(rows), small)


def test_workloads_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundled = find_workload(None)
    assert find_workload("example") == find_workload(bundled.name) == bundled and bundled.is_file()
    monkeypatch.chdir(tmp_path)
    own = write(tmp_path / "example", "x")
    assert find_workload("example") == Path(own.name), "a file of that name goes first"
    for name in ("exam", "nothing", "sub/example"):
        with pytest.raises(Problem, match="no such file"):
            find_workload(name)


# --- what the simulator gives back ---


def test_rows_and_totals_of_a_run(tmp_path: Path) -> None:
    """Two reads of 5 ms, one after the other, 3 ms of think time between them."""
    load = forest(tmp_path, f"{HEADER},complete_s\n7,1,R,1,0,8,7.002\n7.005,1,R,1,8,8,7.012\n")
    run = simulate("noop", DRIVE, load, options=Options(record=True))
    assert (run.rows.issue_ns.tolist(), run.rows.complete_ns.tolist()) == ([0, 8 * MS], [5 * MS, 13 * MS])
    assert (run.rows.sector.tolist(), run.rows.sectors.tolist(), run.drive) == ([0, 8], [8, 8], "constant:5")
    assert (run.totals["issued"], run.totals["requests"], run.totals["busy_ns"]) == (2, 2, 10 * MS)


def test_what_the_ios_of_a_run_came_to(tmp_path: Path) -> None:
    """A task reads twice and writes once, and another one reads; 5 ms each, and the last two wait for those before."""
    rows = ["0,7,R,1,0,8", "0.010,7,R,1,100,16", "0.010,7,W,1,200,32", "0.010,9,R,1,300,64", ""]
    run = simulate("noop", DRIVE, forest(tmp_path, "\n".join([HEADER, *rows]), replay="open"))
    columns = {name: column.tolist() for name, column in vars(run.tallies).items()}
    assert columns == {
        "task": [0, 0, 1], "op": [0, 1, 0], "ios": [2, 1, 1], "sectors": [24, 32, 64],
        "first_issue_ns": [0, 10 * MS, 10 * MS], "last_done_ns": [15 * MS, 20 * MS, 25 * MS],
        "latency_max_ns": [5 * MS, 10 * MS, 15 * MS], "latency_sum_ns": [10.0 * MS, 10.0 * MS, 15.0 * MS]}  # fmt: skip
    found = run.latencies
    assert sorted(zip(found.tally.tolist(), found.ns.tolist(), found.count.tolist(), strict=True)) == [
        (0, 5 * MS, 1),
        (0, 5 * MS, 1),
        (1, 10 * MS, 1),
        (2, 15 * MS, 1),
    ]
    assert found.relative_error == 0
    with pytest.raises(Problem, match="kept no rows"):
        _ = run.rows


def test_priorities_and_shares_reach_the_scheduler() -> None:
    """cfq-slice serves the real-time task first; as-share gives most to who has most tickets."""
    n = 40
    ints = np.arange(n)
    tasks = [Task(5, "idle", 0, ioprio=3 << 13), Task(6, "rt", 1, ioprio=1 << 13)]
    load = Forest(tasks, np.zeros(n, np.int64), np.full(n, -1, np.int64), np.zeros(n, np.int64), (ints % 2).astype(np.uint32),
                  np.zeros(n, np.uint8), np.ones(n, np.uint8), (ints * 5000).astype(np.uint64), np.full(n, 8, np.uint32),
                  np.zeros(n, np.uint16))  # fmt: skip
    run = simulate("cfq-slice", DRIVE, load)
    last = dict(zip(run.tallies.task.tolist(), run.tallies.last_done_ns.tolist(), strict=True))
    assert last[1] < last[0], "the real-time task is done first"
    for shares in ((1, 40), (40, 1)):
        tasks = [Task(5, "a", 0, share=shares[0]), Task(6, "b", 1, share=shares[1])]
        run = simulate("as-share", DRIVE, dataclasses.replace(load, tasks=tasks), options=Options(record=True))
        first_ten = run.rows.task[np.argsort(run.rows.complete_ns)][:10]
        assert (first_ten == shares.index(40)).sum() >= 8, shares


def test_totals_of_jobs_and_the_warmed_drive(tmp_path: Path) -> None:
    text = "[global]\nfilename=/dev/sda\ndirect=1\n[r]\nrw=read\nnumber_ios=3\n[w]\nrw=write\nbs=8k\nnumber_ios=2\n"
    load = load_jobs(write(tmp_path / "a.fio", text), 1 << 20)
    run = simulate("noop", DRIVE, load)
    assert [(job.ios, job.bytes) for job in run.jobs] == [((3, 0), (12288, 0)), ((0, 2), (0, 16384))]
    late = simulate("noop", DRIVE, load, options=Options(warm=(0, 0, 8), record=True))
    assert late.rows.complete_ns.min() == 10 * MS, "the drive is busy with what warms it"


def test_what_a_run_says_of_its_workload(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "shell.csv", SHELL)
    d = told(capfd, "run", path, "-s", "as-share", "-d", "constant:5", "--seeds", 0, "--share", "2=9", "--group-gap", 30)
    assert (d["workload"], d["replay"], d["results"][0]["groups"][0]["tasks"]) == ("shell.csv", "closed", 3)
    d = told(capfd, "run", path, "-s", "noop", "-d", "constant:5", "--seeds", 0, "--replay", "open", "--dispatch-time", 0)
    assert d["replay"] == "open" and d["results"][0]["elapsed_s"] == pytest.approx(0.05)
