# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How true a replay is: programs under the scheduler that was in force, against what was recorded of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import ConstantDrive, Options
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.judge import judge
from headwaiter.study.faith import replayed, told
from headwaiter.study.schema import Replayed
from headwaiter.study.trial import Trial, measure
from headwaiter.study.variants import Variant, parse_variant
from headwaiter.study.workload import Reading, Workload, replay
from headwaiter.traces import Trace
from headwaiter.traces.making import make_trace

MS = 1_000_000
DRIVE = ConstantDrive(5 * MS, sectors=1 << 24)


def recorded(*latency_ms: float, known: bool = True, n: int = 60) -> Trace:
    """Programs that read one after another for as long, and think for 5 ms; each I/O takes its program so long."""
    parts = []
    for number, each in enumerate(latency_ms):
        turn, many = int((each + 5) * MS), round(n * 10 / (each + 5))
        issue = np.arange(many, dtype=np.int64) * turn + number * MS
        parts.append((issue, issue + int(each * MS), np.full(many, number + 7), np.arange(many) * 4096 + number * 1_000_000))
    time, done, task, sector = (np.concatenate(column) for column in zip(*parts, strict=True))
    return make_trace(
        source="t", format="t", time_ns=time, complete_ns=done if known else None, task_id=task, sector=sector,
        sectors=np.full(len(time), 8), op=np.full(len(time), Op.READ), flags=np.full(len(time), SYNC, np.uint8),
        names={7: "a", 8: "b", 9: "c"},
    )  # fmt: skip


def work_of(trace: Trace, **how: float) -> Workload:
    work = replay(Path("t"), trace, DRIVE, Reading(**how))  # type: ignore[arg-type]
    return RunConditions().load(work, DRIVE)


def trial_of(work: Workload) -> Trial:
    return measure(Variant("noop", "noop"), DRIVE, work.load, Options(), 0)


def test_a_program_that_gets_what_it_got() -> None:
    work = work_of(recorded(5))
    found = replayed(work, trial_of(work))
    assert found
    assert found.off == pytest.approx(1, abs=0.02)
    assert dataclasses.replace(found, off=1.0) == Replayed(scheduler="noop", programs=1, close=1, off=1.0)
    assert told(found) == "replayed under noop, as recorded, the program gets what it got then, within 10%"


@pytest.mark.parametrize(
    ("took_ms", "factor", "words"), [(15, 2.0, "2.00 times as much as then"), (2, 0.7, "30% less than then")]
)
def test_a_program_that_gets_more_or_less(took_ms: float, factor: float, words: str) -> None:
    """The disk takes 5 ms, and the program thinks for as long."""
    work = work_of(recorded(took_ms))
    found = replayed(work, trial_of(work))
    assert found
    assert (found.close, found.farthest) == (0, "a")
    assert found.farthest_factor == pytest.approx(factor, rel=0.05)
    assert found.off == pytest.approx(max(factor, 1 / factor), rel=0.05)
    said = told(dataclasses.replace(found, farthest_factor=factor))
    assert said == f"replayed under noop, as recorded, the program gets {words}"


def test_each_program_counts_and_the_farthest_is_named() -> None:
    """Two share the disk as they did, and the third got ten times less than it would."""
    work = work_of(recorded(5, 100))
    found = replayed(work, trial_of(work))
    assert found
    assert (found.programs, found.farthest) == (2, "b")
    assert found.farthest_factor
    assert found.farthest_factor > 5
    some = Replayed(scheduler="bfq", programs=3, close=2, off=1.2, farthest="b", farthest_factor=1.75)
    said = "replayed under bfq, as recorded, 2 of 3 programs get what they got then, within 10%; b gets 1.75 times as much"
    assert told(some) == said


def test_what_cannot_be_told() -> None:
    trial = trial_of(work := work_of(recorded(5)))
    assert replayed(dataclasses.replace(work, trace=None), trial) is None
    assert replayed(work_of(recorded(5), speed=2.0), trial) is None
    assert replayed(work_of(recorded(5, known=False)), trial) is None
    assert replayed(dataclasses.replace(work, replay="open"), trial) is None
    assert replayed(work, dataclasses.replace(trial, programs=None)) is None


def test_only_the_scheduler_that_was_in_force_tells_it() -> None:
    work = work_of(dataclasses.replace(recorded(5, 8), scheduler="mq-deadline"))
    variants = [parse_variant(name) for name in ("mq-deadline", "none")]
    judged = judge(work, DRIVE, variants, RunConditions(), runs=0)
    assert judged.replayed
    assert judged.replayed.scheduler == "mq-deadline"
    assert told(judged.replayed) in judged.notes
    assert judged.document().replayed == judged.replayed
    other = judge(work, DRIVE, variants[1:], RunConditions(), runs=0)
    assert other.replayed is None
    unknown = work_of(recorded(5, 8))
    assert judge(unknown, DRIVE, variants, RunConditions(), runs=0).replayed is None
