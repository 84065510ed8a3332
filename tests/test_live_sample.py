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

from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import Options, simulate
from headwaiter.live import sample
from headwaiter.live.machine import Machine
from headwaiter.live.sample import Replay, gain
from headwaiter.study.fit import fit
from headwaiter.study.ongoing import Ongoing, warmed
from headwaiter.study.waits import Waits, waits_of
from headwaiter.traces import Trace, load

__all__ = ["machine"]


# --- gains ---


def waits(*seconds: float) -> Any:
    return np.array(seconds) * 1e9


def test_a_gain_is_the_same_from_both_sides() -> None:
    """One program waits a tenth, another twice as long; the second waits more by then, and so counts more."""
    found = gain(waits(1, 1), waits(0.1, 2))
    assert found == pytest.approx((0.5 + 0.1 / 2.1) / 2 * math.log(10) - (0.5 + 2 / 2.1) / 2 * math.log(2))
    assert gain(waits(0.1, 2), waits(1, 1)) == pytest.approx(-found)
    assert gain(waits(3, 4), waits(3, 4)) == 0 and gain(waits(3, 3), waits(1, 1)) == pytest.approx(math.log(3))


def test_who_hardly_waits_counts_for_nothing() -> None:
    assert gain(waits(2, 0, 1e-9), waits(1, 0, 0)) == pytest.approx(math.log(2), rel=1e-5)


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


# --- a replay that goes astray ---


@pytest.mark.parametrize("astray", [False, True])
def test_what_was_recorded_stands_in_for_a_replay_that_is_far_off(
    astray: bool, machine: FakeSystem, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the pace of the model's drive, which both have then."""
    machine.add("sda")
    trace = load(record(tmp_path / "four.csv", readers(4, 300), stretch=1.5))
    recorded = sample._waited_ns(trace)
    simulated = recorded * (0.5 if astray else 0.95)
    other = recorded * np.array([0.2, 0.2, 0.2, 0.9])

    def scripted(variant: Any, drive: Any, load: Any, options: Any, runs: int) -> list[Waits]:
        assert isinstance(load, Ongoing) and load.warm_ns >= sample.WARM_NS
        asked.append((variant.scheduler, runs))
        if variant.scheduler == "kyber":
            return [Waits(recorded, recorded * 2, recorded, 1.0, 0.0, 0.0)]
        # Two of the three runs are quite another.
        costs = [simulated] * 3 if variant.scheduler == "none" else [other, recorded / 100, recorded * 100]
        return [Waits(cost, cost, cost, 1.0, 0.0, 0.0) for cost in costs[: runs + 1]]

    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(sample, "waits_in", scripted)
    seen = Replay("barracuda-80g").judge(Machine(machine.root).find("sda"), trace, 9.0, 0, "none", ["bfq", "kyber"])
    how = fit(trace, open_drive("barracuda-80g"), "none")
    assert how and how.model_mbps > 1.2 * how.recorded_mbps
    now = recorded * how.recorded_mbps / how.model_mbps if astray else simulated
    assert seen.advantage["bfq"] == pytest.approx(gain(now, other))
    assert seen.advantage["kyber"] == pytest.approx(gain(now, recorded * 2)) and seen.advantage["kyber"] < 0
    # Who is behind has one run.
    assert sorted(asked) == [("bfq", 0), ("bfq", 2), ("kyber", 0), ("none", 0), ("none", 2)]


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
