# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs with a pace of their own: told from those that wait and think, and replayed at their dates."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from headwaiter.base.errors import Problem
from headwaiter.engine.constants import DRIFTS, PACED, SYNC, Op
from headwaiter.engine.sim import I64, ConstantDrive, Forest, Options, Task, simulate
from headwaiter.study.ongoing import Ongoing, going_on
from headwaiter.study.perturb import perturbed
from headwaiter.study.workload import Reading, Workload, replay
from headwaiter.traces import Trace
from headwaiter.traces.making import make_trace

MS = 1_000_000
SECTORS = 1 << 24
DRIVE = ConstantDrive(5 * MS, sectors=SECTORS)


def recorded(issue_ns: I64, latency_ns: I64, sector: I64, op: Op = Op.READ) -> Trace:
    """One program's I/Os of 4 KiB."""
    n = len(issue_ns)
    return make_trace(
        source="t", format="t", time_ns=issue_ns, sector=sector, sectors=np.full(n, 8), op=np.full(n, op),
        flags=np.full(n, SYNC, np.uint8), complete_ns=issue_ns + latency_ns, task_id=np.full(n, 7), names={7: "a"},
    )  # fmt: skip


def thinking(dice: np.random.Generator, n: int, think_ns: I64) -> Trace:
    """A program that waits for each I/O, and then thinks."""
    latency = dice.integers(2 * MS, 20 * MS, n)
    issue = np.cumsum(latency + think_ns) - latency - think_ns
    return recorded(issue, latency, dice.permutation(n) * 1000)


def dated(dice: np.random.Generator, n: int, every_ms: int, sector: I64, op: Op = Op.READ) -> Trace:
    """A program with a date for each I/O, which it meets unless the last one took longer."""
    latency, issue, done = dice.integers(2 * MS, 20 * MS, n), np.zeros(n, np.int64), 0
    for i in range(n):
        issue[i] = max(i * every_ms * MS, done)
        done = issue[i] + latency[i] + 50_000
    return recorded(issue, latency, sector, op)


def work_of(trace: Trace) -> Workload:
    return replay(Path("t"), trace, DRIVE, Reading())


def forest_of(trace: Trace) -> Forest:
    load = work_of(trace).load
    assert isinstance(load, Forest)
    return load


def flags_of(trace: Trace) -> int:
    """What all of its rows are marked with, of the two."""
    (found,) = np.unique(forest_of(trace).flags & (PACED | DRIFTS)).tolist()
    return int(found)


# --- who keeps a pace ---


@pytest.mark.parametrize("seed", range(20))
def test_who_waits_and_thinks_keeps_none(seed: int) -> None:
    """With think times that are all the same, that differ a little, and that differ by much."""
    dice = np.random.default_rng(seed)
    for think in (np.full(100, 5 * MS), dice.integers(4 * MS, 6 * MS, 100), dice.exponential(10 * MS, 100).astype(np.int64)):
        assert flags_of(thinking(dice, 100, think)) == 0


def test_chance_makes_few_keep_one() -> None:
    """Programs think for most of the time here, and for as long as comes."""
    dice = np.random.default_rng(5)
    found = [flags_of(thinking(dice, 64, dice.exponential(60 * MS, 64).astype(np.int64))) for _ in range(400)]
    assert sum(map(bool, found)) <= 4


@pytest.mark.parametrize("op", [Op.READ, Op.WRITE])
@pytest.mark.parametrize("every_ms", [15, 25, 100])
def test_who_sleeps_until_dates_keeps_one(op: Op, every_ms: int) -> None:
    dice = np.random.default_rng(every_ms)
    assert flags_of(dated(dice, 200, every_ms, dice.permutation(200) * 1000, op)) == PACED


def test_a_stream_may_be_computed_on() -> None:
    """So what it has lost is lost. Writes that follow each other are nothing that could be read ahead."""
    dice, sector = np.random.default_rng(1), np.arange(200) * 8
    assert flags_of(dated(dice, 200, 25, sector)) == PACED | DRIFTS
    assert flags_of(dated(dice, 200, 25, sector, Op.WRITE)) == PACED


def test_a_stream_with_dates_makes_up_for_what_it_was_late() -> None:
    """One that reads ahead and was late at times, and was on time again after that, sleeps until its dates."""
    for seed in range(20):
        dice, sector = np.random.default_rng(seed), np.arange(200) * 8
        assert flags_of(dated(dice, 200, 17, sector)) == PACED, seed


def test_what_is_under_way_together_is_waited_for_once() -> None:
    """A program that waits for bursts of reads, and thinks between them, keeps no pace of its own."""
    dice, burst = np.random.default_rng(4), 8
    took = dice.integers(2 * MS, 40 * MS, 60)
    begin = np.cumsum(took + 20 * MS) - took - 20 * MS
    issue = (begin[:, None] + np.arange(burst) * 10_000).ravel()
    done = np.repeat(begin + took, burst)
    assert flags_of(recorded(issue, done - issue, dice.permutation(60 * burst) * 1000)) == 0


def test_who_is_always_waiting_or_does_little_keeps_none() -> None:
    dice = np.random.default_rng(2)
    assert flags_of(dated(dice, 200, 1, dice.permutation(200) * 1000)) == 0
    assert flags_of(dated(dice, 30, 25, dice.permutation(30) * 1000)) == 0


def test_latencies_that_never_differ_tell_nothing() -> None:
    issue = np.arange(100) * 25 * MS
    assert flags_of(recorded(issue, np.full(100, 5 * MS), np.arange(100) * 1000)) == 0


def test_without_completions_nothing_is_known() -> None:
    dice = np.random.default_rng(3)
    made = dated(dice, 200, 25, dice.permutation(200) * 1000)
    blind = dataclasses.replace(made, complete_ns=np.full(200, -1, np.int64))
    assert not (forest_of(blind).flags & PACED).any()


# --- how it is replayed ---


def issued(load: Forest, service_ms: int) -> I64:
    """When each I/O is issued, on a drive that takes so long for each."""
    drive = ConstantDrive(service_ms * MS, sectors=SECTORS)
    outcome = simulate("noop", drive, load, options=Options(record=True))
    return np.array(outcome.rows.issue_ns)


def test_on_a_faster_drive_it_is_no_sooner() -> None:
    """One that thinks would be; and on a slow one it is as late as the drive makes it."""
    dice = np.random.default_rng(4)
    made = dated(dice, 200, 25, dice.permutation(200) * 1000)
    assert issued(forest_of(made), 1).tolist() == (made.time_ns - made.time_ns[0]).tolist()
    late = issued(forest_of(made), 40)
    assert (np.diff(late) < 41 * MS).all() and late[-1] > 199 * 40 * MS
    plain = thinking(dice, 200, np.full(200, 5 * MS))
    assert issued(forest_of(plain), 1)[-1] < plain.span_ns / 2


def forest(flags: int) -> Forest:
    """A program with a date every 10 ms, of which the first I/O follows a long wait for somebody else's."""
    n = 20
    time = np.concatenate([[0], np.arange(n) * 10 * MS])
    return Forest(
        tasks=[Task(1, "other", 0), Task(2, "own", 1)], time_ns=time, parent=np.concatenate([[-1, -1], np.arange(1, n)]),
        delay_ns=np.zeros(n + 1, np.int64), task=np.array([0] + [1] * n, np.uint32), op=np.zeros(n + 1, np.uint8),
        flags=np.array([SYNC] + [SYNC | flags] * n, np.uint8), sector=np.arange(n + 1, dtype=np.uint64) * 1000,
        sectors=np.full(n + 1, 8, np.uint32), ioprio=np.zeros(n + 1, np.uint16),
        service_ns=np.array([55 * MS] + [1 * MS] * n, np.int64),
    )  # fmt: skip


def test_who_sleeps_catches_up_and_who_computes_does_not() -> None:
    """The first I/O is done after 56 ms, so the second is 46 ms late."""
    found = {flags: (issued(forest(flags), 1)[1:] / MS).tolist() for flags in (0, PACED, PACED | DRIFTS)}
    assert found[PACED] == [0, 56, 57, 58, 59, 60, 61, *range(70, 200, 10)]
    assert found[PACED | DRIFTS] == [0, *range(56, 246, 10)]
    assert found[0] == [0, *range(56, 75)]


def test_a_date_is_a_time() -> None:
    load = forest(PACED)
    load.time_ns[5] = -1
    with pytest.raises(Problem, match="row 5: negative time"):
        issued(load, 1)


def test_further_passes_have_later_dates() -> None:
    """What is done again is done at the same pace: behind the recorded dates, and as far from each other."""
    dice = np.random.default_rng(6)
    made = dated(dice, 100, 25, dice.permutation(100) * 1000)
    load = going_on(work_of(made), DRIVE).load
    assert isinstance(load, Ongoing)
    first, second = load.time_ns[:100], load.time_ns[100:200]
    assert (load.flags[100:200] & PACED).all() and np.unique(second - first).tolist() == [int(first[-1]) * 100 // 99]


def test_what_changes_a_load_a_little_moves_its_dates_together() -> None:
    dice = np.random.default_rng(7)
    load = forest_of(dated(dice, 100, 25, dice.permutation(100) * 1000))
    other, _ = perturbed(load, Options(), 3)
    assert isinstance(other, Forest) and len(np.unique(other.time_ns - load.time_ns)) == 1
