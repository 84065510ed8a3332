# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `watch` makes of a window."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakesys import FakeSystem, machine
from recordings import readers, record
from test_fit import at_work

import headwaiter
from headwaiter.drives.profile import find_drive
from headwaiter.engine.constants import SYNC
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import Options, simulate
from headwaiter.fio import load_jobs
from headwaiter.queue.machine import Machine
from headwaiter.traces import load
from headwaiter.traces.making import make_trace
from headwaiter.watch.decide import Window
from headwaiter.watch.sample import ReplayMethod

__all__ = ["machine"]


# --- a window ---


def test_a_window_is_judged_as_anybody_judges_it(machine: FakeSystem, tmp_path: Any) -> None:
    """It has the first place, margin and interval that `compare`, `advise` and the Python interface have."""
    machine.add("sda")
    path = record(tmp_path / "four.csv", readers(4, 1300))
    trace, names = load(path), ["mq-deadline", "none", "bfq"]
    found = ReplayMethod("barracuda-80g").judge(Machine(machine.root).find("sda"), trace, 9.0, 0, "mq-deadline", ["none", "bfq"])
    asked = headwaiter.compare(path, "barracuda-80g", names).answer
    assert found.answer and sorted(found.answer.margins, key=str) == sorted(asked.margins, key=str)
    assert (found.answer.best, found.answer.text) == (asked.best, asked.text)
    assert found.advantage == {m.scheduler: math.log1p(m.ahead_percent / 100) for m in asked.margins if m.judgement != "baseline"}


def test_a_window_under_bfq_tells_of_the_drive_and_not_of_bfq(machine: FakeSystem) -> None:
    """Where it was recorded when the drive was given each request, no scheduler has a part in what drive it is."""
    machine.add("sda")
    device = Machine(machine.root).find("sda")
    replay = ReplayMethod()
    for scheduler in ("bfq", "none"):
        trace = at_work("wd-re-4tb", scheduler)
        found = replay.judge(device, trace, trace.span_ns / 1e9, 0, scheduler, ["mq-deadline"])
        assert not found.trouble
    assert replay._drives[device.identity].drive.name == "wd-re-4tb"


JOB = b"""[global]
filename=/dev/sda
direct=1
runtime=15
time_based
size=2g
[db]
rw=randread
bs=4k
thinktime=4000
[cp]
rw=read
bs=512k
ioengine=libaio
iodepth=16
offset=20g
"""


def seen(machine: FakeSystem, *, levers: bool) -> Window:
    """A window of the job."""
    if not (machine.sysfs / "block" / "sda").exists():
        machine.add("sda")
    device, drive = Machine(machine.root).find("sda"), find_drive("barracuda-80g")
    load = load_jobs(Path("t.fio"), drive.sectors, JOB)
    rows = simulate("mq-deadline", drive, load, options=MEASURED.apply(Options(record=True, join_arriving=True))).rows
    done = np.flatnonzero(rows.complete_ns >= 0)
    columns: dict[str, Any] = {name: getattr(rows, name)[done] for name in ("complete_ns", "sector", "sectors", "op")}
    columns |= {"time_ns": rows.issue_ns[done], "task_id": rows.task[done], "group": rows.task[done]}
    names = {i: task.name for i, task in enumerate(load.tasks)}
    trace = make_trace(source="t", format="t", flags=np.full(len(done), SYNC, np.uint8), names=names, **columns)
    return ReplayMethod("barracuda-80g", levers=levers).judge(device, trace, 15.0, 0, "mq-deadline", ["none", "bfq"])


def test_levers_are_tried_where_they_are_asked_for(machine: FakeSystem) -> None:
    """A copy that goes as fast as it can beside somebody who reads a little: in the idle class it leaves the disk to them."""
    asked, not_asked = (seen(machine, levers=levers) for levers in (True, False))
    assert asked.answer == not_asked.answer and not not_asked.levers
    (lever,) = (one for one in asked.levers if one.kind == "class")
    assert lever.what == "cp in the idle class" and lever.margin.ahead_percent > 100
    assert lever.apply == ("ionice -c3 -p $(pidof cp)",) and lever.undo == ("ionice -c2 -n4 -p $(pidof cp)",)


def test_a_long_recording_has_levers_too(machine: FakeSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is replayed once, and the recording itself tells how sure the gain is."""
    for module in ("judge.levers", "study.ranges"):
        monkeypatch.setattr(f"headwaiter.{module}.SHORT_IOS", 100)
    (lever,) = (one for one in seen(machine, levers=True).levers if one.kind == "class")
    low, high = lever.margin.low_percent, lever.margin.high_percent
    assert low is not None and high is not None and 50 < low < lever.margin.ahead_percent < high
    assert "95% interval" in lever.text
