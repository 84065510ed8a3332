# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who waits for whom in a recording: by hand, against a slow count of every instant, and of many requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from headwaiter.engine.constants import SYNC, Op
from headwaiter.study import blame as room
from headwaiter.study.blame import KINDS, Blame, background, blame, kinds_of
from headwaiter.traces import Trace, with_flushes
from headwaiter.traces.making import make_trace

MS = 1_000_000
Row = tuple[float, float | None, float | None, int, str]
"""ms of arrival, issue and completion; task; operation: r, w (not waited for), s (a write that is), f (a flush)."""
OPS = {"r": Op.READ, "w": Op.WRITE, "s": Op.WRITE, "f": Op.FLUSH}


def trace(rows: Sequence[Row], names: dict[int, str] | None = None, sectors: Sequence[int] = (), **more: object) -> Trace:
    """Each request elsewhere than the last, unless `sectors` has the places."""
    at = np.array(sectors or [5000 * k for k in range(len(rows))])
    issue, complete = (
        np.array([-1 if at_ms is None else round(MS * at_ms) for at_ms in times])
        for times in ([row[1] for row in rows], [row[2] for row in rows])
    )
    return make_trace(
        source="t",
        format="recording",
        time_ns=np.array([round(MS * row[0]) for row in rows]),
        sector=at,
        sectors=np.array([0 if row[4] == "f" else 8 for row in rows]),
        op=np.array([OPS[row[4]] for row in rows]),
        flags=np.array([SYNC * (row[4] != "w") for row in rows]),
        complete_ns=complete,
        issue_ns=issue if (issue >= 0).any() else None,
        task_id=np.array([10 * row[3] for row in rows]),  # as of processes that have nothing to do with each other
        names={10 * k: name for k, name in (names or dict(enumerate("abcdefgh"))).items()},
        **more,  # type: ignore[arg-type]
    )


def told(found: Blame) -> dict[str, dict[str, float]]:
    """ms by sufferer and culprit, with the kind: {"a": {"b write": 3.0}}."""
    return {
        one.name: {
            f"{other.name} {KINDS[k]}": ns / MS
            for b, other in enumerate(found.programs)
            for k in range(len(KINDS))
            if (ns := found.by_ns[a, b, k])
        }
        for a, one in enumerate(found.programs)
    }


def of(found: Blame, name: str) -> int:
    return [one.name for one in found.programs].index(name)


def test_a_reader_behind_a_writer() -> None:
    """The writer is served from 0 to 10 ms, the reader, who came at 2 ms, from 10 to 12; then the device rests."""
    found = blame(trace([(0, 0, 10, 1, "w"), (2, 10, 12, 0, "r"), (20, 20, 21, 0, "s")]))
    assert told(found) == {"b": {}, "a": {"a read": 2.0, "a sync write": 1.0, "b write": 8.0}}
    assert found.waited_ns[of(found, "b")] == 0


def test_where_nothing_is_served_nobody_is_to_blame() -> None:
    """The scheduler keeps the device idle until 5 ms."""
    found = blame(trace([(0, 5, 7, 0, "r"), (0, 0, 1, 1, "r")]))
    a = of(found, "a")
    assert (found.waited_ns[a], found.nobody_ns[a]) == (7 * MS, 4 * MS)
    assert told(found)["a"] == {"a read": 2.0, "b read": 1.0}


def test_without_issues_what_completes_next_is_served() -> None:
    found = blame(trace([(0, None, 4, 1, "w"), (1, None, 9, 0, "r"), (2, None, 6, 2, "w")]))
    assert told(found)["a"] == {"b write": 3.0, "c write": 2.0, "a read": 3.0}


def test_what_is_served_for_long_is_served_before_what_comes_later() -> None:
    """A device that takes two: b is there from 0 to 10 ms, and c, which came at 5, is done at 6."""
    found = blame(trace([(0, 0, 10, 1, "w"), (5, 5, 6, 2, "w"), (0, None, 12, 0, "r")]))
    assert told(found)["a"] == {"b write": 9.0, "c write": 1.0, "a read": 2.0}


def test_requests_that_complete_at_once_share_alike() -> None:
    found = blame(trace([(0, 0, 6, 0, "r"), (0, 0, 6, 1, "w"), (0, 0, 6, 1, "w")]))
    assert told(found)["a"] == {"a read": pytest.approx(2.0), "b write": pytest.approx(4.0)}


def test_a_flush_is_waited_for() -> None:
    found = blame(trace([(0, 0, 3, 1, "w"), (0, 3, 8, 0, "f"), (9, 9, 10, 0, "s")]))
    assert told(found)["a"] == {"a flush": 5.0, "b write": 3.0, "a sync write": 1.0}


def test_one_that_waits_for_two_at_once_waits_once_and_two_threads_twice() -> None:
    one = blame(trace([(0, 0, 5, 0, "r"), (0, 5, 10, 0, "r")]))
    assert one.waited_ns.tolist() == [10 * MS]
    two = blame(trace([(0, 0, 5, 0, "r"), (0, 5, 10, 1, "r")], {0: "x", 1: "x"}))
    assert [p.name for p in two.programs] == ["x"] and two.waited_ns.tolist() == [15 * MS]
    assert two.programs[0].groups == (0, 1)


def brute(found: Blame, rows: Trace) -> np.ndarray:
    """Instant by instant, of times that are whole ms."""
    by = np.zeros_like(found.by_ns)
    kind = kinds_of(rows)
    start = np.where(rows.issue_ns >= 0, rows.issue_ns, rows.time_ns) if rows.issue_ns is not None else rows.time_ns
    for at in range(0, int(rows.complete_ns.max()), MS):
        served = [k for k in range(len(rows)) if start[k] <= at < rows.complete_ns[k]]
        if not served:
            continue
        # Of the requests in the device the next to complete; what comes within this instant's unit is no later one.
        first = min(int(rows.complete_ns[k]) for k in served)
        sharing = [k for k in range(len(rows)) if rows.complete_ns[k] == first and start[k] <= at]
        waiting = {
            int(rows.group[k]) for k in range(len(rows)) if rows.flags[k] & SYNC and rows.time_ns[k] <= at < rows.complete_ns[k]
        }
        for group in waiting:
            for k in sharing:
                by[found.of_group[group], found.of_group[rows.group[k]], kind[k]] += MS / len(sharing)
    return by


@pytest.mark.parametrize("seed", range(8))
def test_as_a_slow_count_says(seed: int) -> None:
    """On a device of one slot that serves in any order, and sometimes rests, all is known at each instant."""
    generator = np.random.default_rng(seed)
    now, rows = 0.0, []
    for _ in range(120):
        arrived = max(0.0, now - float(generator.integers(0, 12)))
        now = max(now, arrived) + float(generator.integers(0, 3))
        done = now + float(generator.integers(1, 5))
        rows.append((arrived, now, done, int(generator.integers(0, 4)), "rwsf"[generator.integers(0, 4)]))
        now = done
    made = trace(rows)
    found = blame(made)
    assert np.allclose(found.by_ns, brute(found, with_flushes(made)))
    assert np.allclose(found.waited_ns, found.pairs_ns.sum(axis=1) + found.nobody_ns)


# --- programs ---


def names(made: Trace) -> list[str]:
    return sorted(one.name for one in blame(made).programs)


def test_programs_of_one_name_are_told_apart_by_their_work() -> None:
    reads = [(2.0 * k, None, 2.0 * k + 1, 1, "r") for k in range(20)]
    writes = [(2.0 * k, None, 2.0 * k + 1, 2, "w") for k in range(20)]
    more = [(2.0 * k, None, 2.0 * k + 1, 3, "r") for k in range(20)]
    called = {k: "dd" for k in range(8)}
    assert names(trace([*reads, *writes], called)) == ["dd (reads)", "dd (writes)"]
    places = [5000 * k for k in range(20)] + [10**6 + 8 * k for k in range(20)]
    assert names(trace([*reads, *more], called, places)) == ["dd (random reads)", "dd (reads in order)"]
    # A single read does not show whether a process works in order; a single write is other work.
    assert names(trace([*reads, (3, None, 4, 2, "r")], called)) == ["dd"]


def test_a_recording_that_goes_on() -> None:
    """At 20 ms b has been served for 12 ms, and a waits since 2 ms; c is not there yet. Before 10 ms nothing counts."""
    made = trace([(0, 8, None, 1, "w"), (2, None, None, 0, "r"), (4, 4, 8, 0, "s")])
    found = blame(made, 10 * MS, 20 * MS)
    assert told(found)["a"] == {"b write": 10.0} and found.waited_ns[of(found, "a")] == 10 * MS
    assert blame(made).waited_ns[of(found, "a")] == 4 * MS, "what has no completion is not known to wait"


def test_the_kernels_flushers_are_one() -> None:
    called = {0: "kworker/u8:3", 1: "kworker/0:1H", 2: "flush-8:0", 3: "find"}
    made = trace([(k, None, k + 1, k, "rw"[k < 3]) for k in range(4)], called)
    assert names(made) == ["find", "flush", "kworker"]


def test_programs_without_number_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST", 3)
    made = trace([(k, None, k + 1 + 5 * (k < 2), k, "r") for k in range(6)])
    found = blame(made)
    assert [one.name for one in found.programs] == ["a", "b", "4 others"]
    assert sorted(found.programs[2].groups) == [2, 3, 4, 5]


def test_without_tasks_there_is_one_program() -> None:
    made = replace(behind("w"), tasks_known=False)
    assert [one.name for one in blame(made).programs] == [room.EVERYTHING] and background(made) == []


def test_where_no_completion_is_known_nobody_waits() -> None:
    found = blame(trace([(0, None, None, 0, "r"), (1, None, None, 1, "w")]))
    assert not found.waited_ns.any() and not found.by_ns.any()


# --- the background ---


def behind(op: str, n: int = 40, step: int = 8) -> Trace:
    """A reader at random, each of whose reads waits for nine requests of another program."""
    rows: list[Row] = []
    places = []
    for k in range(n):
        begin = 20.0 * k
        rows.append((begin, begin + 18, begin + 20, 0, "r"))
        places.append(10**7 + 5000 * ((37 * k) % n))
        rows += [(begin, begin + 2 * i, begin + 2 * i + 2, 1, op) for i in range(9)]
        places += [step * (9 * k + i) for i in range(9)]
    return trace(rows, {0: "find", 1: "cp"}, places)


def test_who_writes_without_waiting_is_in_the_background() -> None:
    [one] = background(behind("w"))
    assert (one.program.name, one.why, one.idle) == ("cp", "asynchronous", False) and one.share == pytest.approx(1)


def test_a_stream_is_in_the_background() -> None:
    assert [(one.program.name, one.why) for one in background(behind("r"))] == [("cp", "stream")]


def test_who_goes_here_and_there_is_none() -> None:
    assert background(behind("r", step=5000)) == []


def test_of_equals_nobody_is_in_the_background() -> None:
    """Three readers in order, served in turn."""
    rows = [(max(0.0, 2.0 * (k - 3)), 2.0 * k, 2.0 * k + 2, k % 3, "r") for k in range(300)]
    made = trace(rows, None, [10**7 * (k % 3) + 8 * (k // 3) for k in range(300)])
    assert background(made) == []


def test_who_is_idle_already_is_told_so() -> None:
    made = behind("w")
    column = np.where(made.task == 1, 3 << 13, 0)
    [one] = background(replace(made, ioprio=column.astype(np.uint16)))
    assert one.idle


def test_many_requests() -> None:
    """200 programs have times as on a full device. Each program's parts make up its waiting, so none is lost."""
    n = 200_000
    generator = np.random.default_rng(1)
    done = np.cumsum(generator.integers(1000, 100_000, n))
    issue = np.concatenate([[0], done[:-1]])
    arrive = np.maximum(0, issue - generator.integers(0, 5_000_000, n))
    task = (200 * generator.power(0.3, n)).astype(np.int64)
    made = make_trace(
        source="t", format="recording", time_ns=arrive, issue_ns=issue, complete_ns=done, task_id=task,
        sector=generator.integers(0, 2**30, n), sectors=np.full(n, 8), op=generator.integers(0, 2, n),
        names={k: f"p{k}" for k in range(200)},
    )  # fmt: skip
    found = blame(made)
    assert len(found.programs) == room.MOST
    assert np.allclose(found.pairs_ns.sum(axis=1) + found.nobody_ns, found.waited_ns)
    assert found.nobody_ns.sum() < 1e-6 * found.waited_ns.sum()


def test_a_stream_beside_others_that_take_as_much_time() -> None:
    """The device is given to both in turn; the stream moves 16 times as much, or only twice as much."""
    for sectors, named in ((128, ["cp"]), (16, [])):
        rows: list[Row] = [(max(0.0, 2.0 * (k - 1)), 2.0 * k, 2.0 * k + 2, k % 2, "r") for k in range(300)]
        places = [(10**8 + 5000 * (37 * k % 150)) if k % 2 == 0 else sectors * (k // 2) for k in range(300)]
        made = trace(rows, {0: "find", 1: "cp"}, places)
        made = replace(made, sectors=np.where(made.task == 1, sectors, 8).astype(np.uint32))
        assert [one.program.name for one in background(made)] == named
