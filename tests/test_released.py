# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Write-back that came throttled, as it came and as it would have come had nobody throttled it; and who is given which."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import ConstantDrive, Forest
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.judge import judge
from headwaiter.judge.levers import IDLE, _lowered
from headwaiter.study.ongoing import Ongoing
from headwaiter.study.perturb import perturbed
from headwaiter.study.variants import parse_variant
from headwaiter.study.workload import Reading, replay
from headwaiter.traces import Trace, as_inserted, released
from headwaiter.traces.making import make_trace

US, MS = 1000, 1_000_000
DRIVE = ConstantDrive(4 * MS, sectors=1 << 30)


def trace_of(rows: list[tuple[int, int, int, int, int]], flags: int = SYNC) -> Trace:
    """Rows of (submitted, inserted, done, all in us, task, operation)."""
    time, insert, done, task, op = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return make_trace(
        source="t", format="t", time_ns=time * US, insert_ns=insert * US, issue_ns=insert * US, complete_ns=done * US,
        task_id=task, op=op,
        sector=np.arange(len(rows)) * 4096, sectors=np.full(len(rows), 128), flags=np.full(len(rows), flags, np.uint8),
        names={7: "a", 8: "b"},
    )  # fmt: skip


def test_each_comes_sooner_by_what_those_before_it_were_held() -> None:
    """The first write is held for 990 us, and the second begins 10 us after that; it is held for 2 ms, and so on."""
    trace = trace_of([(0, 990, 5000, 7, 1), (1000, 3000, 9000, 7, 1), (3020, 3025, 9500, 7, 1)])
    assert (released(trace).time_ns / US).tolist() == [0, 10, 30]


def test_a_plug_holds_nobody_back() -> None:
    """What is gathered in a plug is inserted later, and the process goes on meanwhile; only the last one is held."""
    trace = trace_of(
        [(0, 60, 5000, 7, 1), (7, 60, 5000, 7, 1), (14, 60, 5000, 7, 1), (55, 4000, 9000, 7, 1), (4005, 4010, 9500, 7, 1)]
    )
    assert (released(trace).time_ns / US).tolist() == [0, 7, 14, 55, 60]


def test_who_does_something_else_in_between_is_not_moved() -> None:
    """After that wait it thinks, or waits for the write: what comes then follows that, and nothing else."""
    trace = trace_of([(0, 990, 5000, 7, 1), (5100, 5105, 9000, 7, 1), (5110, 5115, 9000, 7, 1)])
    assert released(trace) is trace


def test_others_stay_where_they_are() -> None:
    """Reads, other programs, and rows that lie between; the order is that of the new times."""
    trace = trace_of([(0, 990, 5000, 7, 1), (500, 500, 800, 8, 0), (600, 605, 900, 8, 1), (1000, 1005, 9000, 7, 1)])
    found = released(trace)
    assert (found.time_ns / US).tolist() == [0, 10, 500, 600]
    assert found.task.tolist() == [0, 0, 1, 1]
    assert (found.complete_ns / US).tolist() == [5000, 9000, 800, 900]
    assert found.insert_ns is None


def test_without_insertions_nothing_is_known() -> None:
    trace = dataclasses.replace(trace_of([(0, 990, 5000, 7, 1), (1000, 1005, 9000, 7, 1)]), insert_ns=None)
    assert released(trace) is trace


def behind_flush(flush: tuple[int, int, int], inserted: int = 10_100, flags: int = SYNC) -> list[float]:
    """When three writes come of which the second joins the first, and the third is of another request.

    flush: when a flush was wanted, when it was done, and whose it was; the writes are of program 7, and held back.
    """
    begin, end, task = flush
    rows = [(begin, begin, end, task, Op.FLUSH), (3000, inserted, inserted + 200, 7, 1)]
    rows += [(inserted - 50, inserted, inserted + 200, 7, 1), (inserted - 40, inserted + 300, inserted + 500, 7, 1)]
    met = as_inserted(trace_of(sorted(rows), flags))
    times: list[float] = (met.time_ns / US).tolist()
    return times


def test_who_waits_behind_another_programs_flush_does_not_think_meanwhile() -> None:
    """The drive would have finished the write no sooner than the flush. The third waits for the first two as before."""
    assert behind_flush((100, 10_000, 8)) == [3000, 3000, 10_400]


def test_a_flush_during_which_it_met_the_scheduler_is_the_same() -> None:
    """The kernel's throttling lets more through from time to time. Then the third waits behind the flush, too."""
    assert behind_flush((100, 10_290, 8)) == [3000, 3000, 3010]


@pytest.mark.parametrize(
    ("flush", "flags"),
    [((100, 10_000, 7), SYNC), ((9, 2900, 8), SYNC), ((9, 9000, 8), SYNC), ((10_450, 10_480, 8), SYNC), ((100, 10_000, 8), 0)],
    ids=["own", "done before", "done long before", "begun later", "not waited for"],
)
def test_others_come_when_the_scheduler_had_them(flush: tuple[int, int, int], flags: int) -> None:
    assert behind_flush(flush, flags=flags) == [10_050, 10_100, 10_400]


def test_one_flush_may_serve_two_programs() -> None:
    """It holds the writer back, though the writer had asked for it, too."""
    rows = [(100, 100, 10_000, 8, Op.FLUSH), (200, 200, 10_000, 7, Op.FLUSH), (3000, 10_100, 10_300, 7, 1)]
    assert (as_inserted(trace_of(rows)).time_ns / US).tolist() == [3000]


def bursts(n: int = 60) -> Trace:
    """One that writes four requests and waits for them, each held until the one before it is done; and a reader."""
    rows, now = [], 0
    for _ in range(n):
        begin = now
        for _ in range(4):
            rows.append((begin, now + 5, now + 4000, 7, 1))
            begin, now = now + 10, now + 4000
        now += 2000
    span = now
    rows += [(at, at + 5, at + 3000, 8, 0) for at in range(0, span, 9000)]
    return dataclasses.replace(trace_of(sorted(rows)), scheduler="mq-deadline")


def test_schedulers_that_are_not_throttled_are_given_all_at_once() -> None:
    """Under bfq the writer's four requests wait together; under mq-deadline they come as recorded."""
    work = replay(Path("t"), bursts(), DRIVE, Reading())
    assert work.free
    load = RunConditions().load(work, DRIVE).load
    assert isinstance(load, Ongoing)
    assert isinstance(load.free, Ongoing)
    assert load.under("mq-deadline") is load
    assert load.under("none") is load
    assert load.under("bfq") is load.free
    assert load.under("maitre") is load.free
    assert load.free.sliced == load.sliced
    assert (load.free.delay_ns < load.delay_ns[: len(load.free.delay_ns)].max()).any()
    again = RunConditions().load(RunConditions().load(work, DRIVE), DRIVE).load
    assert isinstance(again, Forest)
    assert again.free is not None


def test_both_are_changed_alike() -> None:
    """A perturbed run begins at the same time under each."""
    load = RunConditions().load(replay(Path("t"), bursts(), DRIVE, Reading()), DRIVE).load
    changed, _ = perturbed(load, RunConditions().options(DRIVE), 3)
    assert isinstance(load, Forest)
    assert isinstance(changed, Forest)
    assert load.free
    assert changed.free
    assert changed.time_ns[0] - load.time_ns[0] == changed.free.time_ns[0] - load.free.time_ns[0] > 0


@pytest.mark.parametrize("names", [("mq-deadline", "bfq:low_latency=0"), ("mq-deadline", "maitre", "none")])
def test_they_are_judged_together(names: tuple[str, ...]) -> None:
    """Intervals are drawn from the same slices of time."""
    work = replay(Path("t"), bursts(), DRIVE, Reading())
    judged = judge(work, DRIVE, [parse_variant(name) for name in names], RunConditions())
    assert {margin.scheduler for margin in judged.answer.margins} == set(names)
    assert all(margin.low_percent is not None for margin in judged.answer.margins if margin.scheduler != "mq-deadline")


def test_a_lower_class_is_lower_in_both() -> None:
    """What helps beside a scheduler is tried under one that is not throttled, too."""
    load = RunConditions().load(replay(Path("t"), bursts(), DRIVE, Reading()), DRIVE).load
    assert isinstance(load, Forest)
    lowered = _lowered(load, frozenset({int(load.groups[0])}))
    assert isinstance(lowered, Forest)
    assert lowered.free
    for one in (lowered, lowered.free):
        idle = one.groups == load.groups[0]
        assert (one.ioprio[idle] == IDLE).all()
        assert not one.ioprio[~idle].any()
