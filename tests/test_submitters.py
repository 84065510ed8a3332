# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes with several I/Os under way that submit each by itself: told from those that submit in one go, and replayed so."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from headwaiter.base.errors import Problem
from headwaiter.engine.constants import NEXT, SYNC, Op
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task, simulate
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.submitters import apart_ns, by_completions
from headwaiter.study.workload import Reading, replay
from headwaiter.traces import Trace, closed_loop
from headwaiter.traces.making import make_trace

US, MS = 1000, 1_000_000
DRIVE = ConstantDrive(MS, sectors=1 << 30)
DEPTH, SIZE = 8, 16


def stream(n: int = 400, *, alone: int = 5, needs_us: int = 20, depth: int = DEPTH) -> Trace:
    """A program that reads on with `depth` under way, and takes so long for each.

    The disk has one command. What waits for it is merged, but for the first I/O of each `alone` requests, which the disk had
    before the second was submitted; 0: all wait.
    """
    time, issue, done = (np.zeros(n, np.int64) for _ in range(3))
    time[:depth] = np.arange(depth) * needs_us * US
    given, served, ready, now = 0, 0, depth, 0
    number = 0
    while given < n:
        number += 1
        many = 1 if alone and number % alone == 0 else max(1, ready - given)
        part = slice(given, min(n, given + many))
        issue[part] = max(now, int(time[part][0])) + needs_us * US // 2
        if many > 1:
            issue[part] = max(issue[part][0], int(time[part][-1]))
        now = int(issue[part][0]) + MS
        done[part] = now
        given = part.stop
        for at in range(served, given):
            if at + depth < n:
                time[at + depth] = now + (at - served + 1) * needs_us * US
        served, ready = given, min(n, given + depth)
    return make_trace(
        source="t", format="t", time_ns=time, issue_ns=issue, complete_ns=done, sector=np.arange(n) * SIZE,
        sectors=np.full(n, SIZE),
        op=np.full(n, Op.READ), flags=np.full(n, SYNC, np.uint8), task_id=np.full(n, 7), names={7: "a"},
    )  # fmt: skip


def test_a_process_that_submits_each_by_itself_is_told_by_the_disk_that_has_one_without_the_next() -> None:
    assert apart_ns(stream()).tolist() == [20 * US]
    assert apart_ns(stream(needs_us=7)).tolist() == [7 * US]


def test_what_the_disk_always_has_together_was_submitted_in_one_go() -> None:
    assert apart_ns(stream(alone=0)).tolist() == [0]


def test_a_full_request_tells_nothing() -> None:
    """What was submitted in one go is several requests where it is more than one may have: none began before all were there."""
    trace = stream(alone=0)
    assert trace.issue_ns is not None
    later = trace.issue_ns + np.arange(len(trace)) % 2 * US
    assert apart_ns(dataclasses.replace(trace, issue_ns=later)).tolist() == [0]


def test_too_few_tell_nothing() -> None:
    assert apart_ns(stream(24)).tolist() == [0]
    assert apart_ns(dataclasses.replace(stream(), issue_ns=None)).tolist() == [0]


def test_each_follows_one_completion() -> None:
    """Among eight that complete at once each frees the place of one, and closed_loop() has all wait for the last."""
    trace = stream()
    plain = closed_loop(trace, trace.complete_ns)
    apart, parent, delay, whichever = by_completions(trace, trace.complete_ns, apart_ns(trace), *plain)
    assert apart.tolist() == apart_ns(trace).tolist()
    assert np.flatnonzero(whichever).tolist() == list(range(DEPTH, len(trace)))
    assert parent[DEPTH:].tolist() == list(range(len(trace) - DEPTH))
    assert (parent[:DEPTH] == -1).all()
    assert (trace.complete_ns[parent[DEPTH:]] + delay[DEPTH:] == trace.time_ns[DEPTH:]).all()
    assert len(np.unique(plain[0])) < len(trace) // 2


def test_others_keep_what_they_have() -> None:
    trace = stream()
    plain = closed_loop(trace, trace.complete_ns)
    apart, *columns, whichever = by_completions(trace, trace.complete_ns, np.zeros(1, np.int64), *plain)
    assert not apart.any()
    assert not whichever.any()
    for column, same in zip(columns, plain, strict=True):
        assert (column == same).all()


def steady(depth: int, n: int = 200, *, at_once: int = 1, in_order: bool = False, swaps: int = 0) -> Trace:
    """A program that has `depth` under way, of which so many are done every ms; it submits as many 20 us later each.

    swaps: every so many the drive keeps one waiting, and goes on with what came behind it.
    """
    time, done = np.zeros(n, np.int64), np.zeros(n, np.int64)
    waiting = list(range(depth))
    for number in range(n // at_once):
        now = (number + 1) * MS
        late = swaps and number % swaps == 0 and len(waiting) > 1
        first = [waiting.pop(1 if late else 0) for _ in range(at_once)]
        done[first] = now
        for place in range(at_once):
            new = depth + number * at_once + place
            if new < n:
                time[new] = now + (place + 1) * 20 * US
                waiting.append(new)
    done[waiting] = (n // at_once + 1) * MS
    sector = SIZE * (np.arange(n) if in_order else np.random.default_rng(1).permutation(n))
    return make_trace(
        source="t", format="t", time_ns=time, issue_ns=time + US, complete_ns=done, sector=sector,
        sectors=np.full(n, SIZE), op=np.full(n, Op.READ), flags=np.full(n, SYNC, np.uint8), task_id=np.full(n, 7), names={7: "a"},
    )  # fmt: skip


def told(trace: Trace) -> tuple[int, int]:
    """How long the process needs for one more I/O, us, and how many rows follow whichever completes."""
    apart, _, _, whichever = by_completions(trace, trace.complete_ns, apart_ns(trace), *closed_loop(trace, trace.complete_ns))
    return int(apart[0]) // US, int(whichever.sum())


def test_who_always_has_as_many_under_way_submits_one_for_each() -> None:
    assert told(steady(4)) == (20, 196)
    assert told(steady(2)) == (20, 198)
    assert told(steady(4, in_order=True, swaps=7)) == (20, 196)


def test_who_waits_for_several_is_not_told_by_that() -> None:
    assert told(steady(4, at_once=4)) == (0, 0)
    assert told(steady(1)) == (0, 0)
    assert told(steady(4, 24)) == (0, 0)


def test_read_ahead_has_two_in_order() -> None:
    """It submits nothing before its program has read the first of them."""
    assert told(steady(2, in_order=True)) == (0, 0)


def test_one_that_waits_long_takes_one_place() -> None:
    """The second I/O is far away, and mq-deadline serves it last. With one parent each the third would wait for it."""
    n = 12
    load = Forest(
        tasks=[Task(7, "a", 0)], time_ns=np.zeros(n, np.int64), parent=np.array([-1, -1, *range(1, n - 1)]),
        delay_ns=np.zeros(n, np.int64), task=np.zeros(n, np.uint32), op=np.full(n, Op.READ, np.uint8),
        flags=np.array([SYNC] * 2 + [SYNC | NEXT] * (n - 2), np.uint8), sectors=np.full(n, 8, np.uint32),
        sector=np.array([0, 1 << 20, *(1000 * np.arange(1, n - 1))], np.uint64), ioprio=np.zeros(n, np.uint16),
    )  # fmt: skip

    def order(load: Forest) -> list[int]:
        rows = simulate("mq-deadline", DRIVE, load, options=Options(record=True)).rows
        found: list[int] = np.argsort(np.asarray(rows.complete_ns), kind="stable").tolist()
        return found

    assert order(load) == [0, *range(2, n), 1]
    assert order(dataclasses.replace(load, flags=np.full(n, SYNC, np.uint8))) == list(range(n))
    with pytest.raises(Problem, match="row 1: nothing goes before it"):
        order(dataclasses.replace(load, flags=np.array([SYNC] + [SYNC | NEXT] * (n - 1), np.uint8)))


def test_a_steady_process_goes_on_with_as_many_under_way() -> None:
    """Behind the recorded rows, too: what is at the beginning of a further pass follows whichever completes."""
    work = replay(Path("t"), steady(4), DRIVE, Reading())
    load = RunConditions().load(work, DRIVE).load
    assert isinstance(load, Forest)
    assert np.flatnonzero((load.flags & NEXT) == 0).tolist() == [0, 1, 2, 3]
    rows = simulate("mq-deadline", DRIVE, load, options=Options(record=True)).rows
    issue, done = (np.asarray(column) for column in (rows.issue_ns, rows.complete_ns))
    there = issue >= 0
    assert (np.diff(np.flatnonzero(there)) == 1).all(), "they come in their order"
    issue, done = np.sort(issue[there]), np.sort(done[there & (done > 0)])
    assert (np.arange(1, len(issue) + 1) - np.searchsorted(done, issue, "right")).max() == 4


def test_a_replay_has_them_apart_and_as_many_under_way() -> None:
    """Nothing is joined: with a disk of 1 ms for each, the rows of a task are never closer than it can submit."""
    trace = stream()
    work = replay(Path("t"), trace, DRIVE, Reading())
    load = RunConditions().load(work, DRIVE).load
    assert isinstance(load, Forest)
    assert load.apart_ns is not None
    assert (load.apart_ns == 20 * US).all()
    rows = simulate("mq-deadline", DRIVE, load, options=Options(record=True)).rows
    issue = np.sort(np.asarray(rows.issue_ns)[np.asarray(rows.issue_ns) >= 0])
    assert np.diff(issue).min() == 20 * US
    done = np.sort(np.asarray(rows.complete_ns)[np.asarray(rows.complete_ns) > 0])
    under_way = np.arange(1, len(issue) + 1) - np.searchsorted(done, issue, "right")
    assert under_way.max() <= DEPTH


def forest(*apart: int, tasks: tuple[int, ...]) -> Forest:
    """I/Os that are all due at once."""
    n = len(apart)
    return Forest(
        tasks=[Task(t, "", t) for t in sorted(set(tasks))], time_ns=np.zeros(n, np.int64), parent=np.full(n, -1, np.int64),
        delay_ns=np.zeros(n, np.int64), task=np.array(tasks, np.uint32), op=np.full(n, Op.READ, np.uint8),
        flags=np.full(n, SYNC, np.uint8), sector=np.arange(n, dtype=np.uint64) * 4096, sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16), apart_ns=np.array(apart, np.int64),
    )  # fmt: skip


def test_a_task_issues_nothing_else_for_so_long() -> None:
    """Other tasks do; and who has had time enough waits for nothing."""
    rows = simulate("noop", DRIVE, forest(300, 500, 0, 0, 70, tasks=(0, 0, 0, 1, 0)), options=Options(record=True)).rows
    assert np.asarray(rows.issue_ns).tolist() == [0, 300, 800, 0, 800]


def test_a_row_that_had_to_wait_for_its_stream_has_its_turn_after_that() -> None:
    """The second is due at once, but follows the first, which comes later: then both are apart all the same."""
    load = forest(400, 400, tasks=(0, 0))
    load = dataclasses.replace(load, time_ns=np.array([1000, 0], np.int64), after=np.array([-1, 0], np.int64))
    rows = simulate("noop", DRIVE, load, options=Options(record=True)).rows
    assert np.asarray(rows.issue_ns).tolist() == [1000, 1400]


def test_no_task_has_less_than_no_time() -> None:
    with pytest.raises(Problem, match="row 1: negative time"):
        simulate("noop", DRIVE, forest(0, -1, tasks=(0, 0)))
