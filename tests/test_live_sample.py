# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `watch` makes of a window: replays that have run for long, gains of programs, and a replay that goes astray."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from fakesys import FakeSystem, machine
from recordings import readers, record
from test_fit import at_work
from test_ongoing import DRIVE, load_of, rows_of
from test_replay import MS

import headwaiter
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import Options, simulate
from headwaiter.live.machine import Machine
from headwaiter.live.sample import Replay
from headwaiter.study.ongoing import Ongoing, warmed
from headwaiter.study.waits import waits_of
from headwaiter.traces import Trace, load

__all__ = ["machine"]


# --- replays that have run for long ---


def warm(rows: list[Any], least_ms: int, **more: Any) -> tuple[Trace, Ongoing]:
    made, going = load_of(rows, **more)
    return made, warmed(going, least_ms * MS)


def test_a_recording_is_played_as_often_as_it_takes() -> None:
    _, long = warm(rows_of(1, 10), 25)
    assert (long.span_ns, long.cycles, long.warm_ns, long.end_ns) == (19 * MS, 3, 38 * MS, 57 * MS)
    assert long.passes == (6,) and len(long.origin) == 60 and long.until_ns is not None
    assert set(long.until_ns.tolist()) == {57 * MS}
    assert warm(rows_of(1, 10), 0)[1].cycles == 1


def test_what_does_not_go_on_comes_again() -> None:
    """A program that ended, as another one, and write-back; each as long after the one before as the recording is long."""
    ended = rows_of(2, 4, sector=4000)
    written = [(time, time + 1, 9, Op.WRITE, 50_000 + 8 * time) for time in range(1, 40, 2)]
    rows = sorted([*rows_of(1, 20), *ended, *written])
    flags = np.array([SYNC if row[3] == Op.READ else 0 for row in rows], np.uint8)
    made, long = warm(rows, 40, flags=flags)
    assert long.cycles == 2 and len(long.programs) == 1
    once = [i for i, row in enumerate(rows) if row[2] != 1]
    again = np.flatnonzero((np.arange(len(long.origin)) >= len(rows)) & np.isin(long.origin, once))
    assert long.origin[again].tolist() == once
    assert (long.time_ns[again] - made.time_ns[once]).tolist() == [40 * MS] * len(once)
    known = {task.id for task in long.tasks}
    assert len(known) == len(long.tasks) and {long.tasks[int(t)].id for t in long.task[again]}.isdisjoint({1, 2, 9})
    ran = simulate("noop", DRIVE, long, options=Options(record=True)).rows
    times = np.asarray(ran.issue_ns)[again]
    issued = times[times >= 0]  # the others of them would come after the end, because they wait for each other
    assert issued[:2].tolist() == [40 * MS, 41 * MS] and issued.min() == 40 * MS and len(issued) > len(once) - 6


def test_a_steady_program_waits_as_long() -> None:
    _, going = load_of(rows_of(1, 100) + rows_of(2, 100, start=1, sector=50_000))
    results = [simulate("noop", DRIVE, one, options=Options(record=True)) for one in (going, warmed(going, 300 * MS))]
    first, long = waits_of(results[0], going), waits_of(results[1], warmed(going, 300 * MS))
    assert long.waited_s == pytest.approx(first.waited_s, rel=0.02) == pytest.approx(0.2, rel=0.02)
    assert long.programs_ns.tolist() == pytest.approx([0.1e9, 0.1e9], rel=0.03)
    assert long.waited_ns.sum() == pytest.approx(long.programs_ns.sum())


def test_only_the_last_time_counts() -> None:
    """I/Os of 4 ms until it has run for as long as that takes, of 1 ms from there on."""
    _, long = warm(rows_of(1, 100), 150)
    assert long.warm_ns == 199 * MS
    outcome = simulate("noop", DRIVE, long, options=Options(record=True))
    issue, rows = np.full(len(long.origin), -1), outcome.rows
    slow = np.arange(0, 199, 5) * MS
    quick = np.arange(199, 398, 2) * MS
    issue[: len(slow)], issue[len(slow) : len(slow) + len(quick)] = slow, quick
    took = np.concatenate([np.full(len(slow), 4 * MS), np.full(len(quick), MS)])
    complete = np.full(len(issue), -1)
    complete[: len(took)] = issue[: len(took)] + took
    object.__setattr__(rows, "issue_ns", issue)
    object.__setattr__(rows, "complete_ns", complete)
    assert waits_of(outcome, long).waited_s == pytest.approx(0.1)


# --- a window ---


def test_a_window_is_judged_as_anybody_judges_it(machine: FakeSystem, tmp_path: Any) -> None:
    """The same first place, margin and interval as of `compare`, `advise` and the Python interface."""
    machine.add("sda")
    path = record(tmp_path / "four.csv", readers(4, 1300))
    trace, names = load(path), ["mq-deadline", "none", "bfq"]
    seen = Replay("barracuda-80g").judge(Machine(machine.root).find("sda"), trace, 9.0, 0, "mq-deadline", ["none", "bfq"])
    asked = headwaiter.compare(path, "barracuda-80g", names).answer
    assert seen.answer and sorted(seen.answer.margins, key=str) == sorted(asked.margins, key=str)
    assert (seen.answer.best, seen.answer.text) == (asked.best, asked.text)
    assert seen.advantage == {m.scheduler: math.log1p(m.ahead_percent / 100) for m in asked.margins if m.judgement != "baseline"}


def test_a_window_under_bfq_tells_of_the_drive_and_not_of_bfq(machine: FakeSystem) -> None:
    """Where it was recorded when the drive was given each request, no scheduler has a part in what drive it is."""
    machine.add("sda")
    device = Machine(machine.root).find("sda")
    replay = Replay()
    for scheduler in ("bfq", "none"):
        trace = at_work("wd-re-4tb", scheduler)
        seen = replay.judge(device, trace, trace.span_ns / 1e9, 0, scheduler, ["mq-deadline"])
        assert not seen.trouble
    assert replay._drives[device.identity].drive.name == "wd-re-4tb"
