# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Classes by equations (1) and (2), against the spec's examples and against fractions and lists."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwaiter.base.errors import Problem
from headwaiter.papers.was.classify import Reads, class_of_history, classify, differences
from headwaiter.papers.was.config import Config, config

S, T = [[0, 70], [41, 30], [61, 0]], [[0, 30], [3000, 15], [9000, 0]]
W1 = config(5, S, T, [6000] * 100)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([(0, 0)] * 4, 100),
        ([(8, 1000), (50, 5000), (1000, 20_000), (0, 0)], 72),
        ([(1000, 20_000), (8, 1000), (8, 1000), (8, 1000)], 47),
        ([(10**6, 100_000)] * 4, 1),
        ([(40, 2999)] * 4, 100),
        ([(41, 2999)] * 4, 60),
        ([(40, 3000)] * 4, 85),
        ([(60, 8999)] * 4, 45),
        ([(61, 9000)] * 4, 1),
    ],
)
def test_w1(history: list[tuple[int, int]], expected: int) -> None:
    assert class_of_history(W1, history) == expected


def test_a_history_has_k_minus_1_differences() -> None:
    with pytest.raises(Problem, match="3 differences, but a history of 5 I/Os has 4"):
        class_of_history(W1, [(0, 0)] * 3)


def literal(given: Config, reads: list[tuple[int, int, int]]) -> list[int]:
    """One read after another, with a ring for each process, and fractions."""

    def points(steps: tuple[tuple[int, int], ...], value: int) -> int:
        return [height for start, height in steps if start <= value][-1]

    ring: dict[int, deque[tuple[int, int]]] = defaultdict(lambda: deque([(0, 0)] * (given.history - 1), given.history - 1))
    last: dict[int, tuple[int, int]] = {}
    out = []
    most = max(p for _, p in given.spatial) + max(p for _, p in given.temporal)
    for task, time_us, sector in reads:
        if task in last:
            ring[task].appendleft((abs(sector - last[task][1]), time_us - last[task][0]))
        last[task] = (time_us, sector)
        weight = [Fraction(1, 2**j) for j in range(given.history - 1)]
        total = sum(
            w * (points(given.spatial, ds) + points(given.temporal, dt)) for w, (ds, dt) in zip(weight, ring[task], strict=True)
        )
        out.append(max(1, math.ceil(Fraction(given.classes) * total / (sum(weight) * most))))
    return out


read = st.tuples(st.integers(0, 3), st.integers(0, 12_000), st.integers(0, 200))


@given(st.integers(2, 8), st.sampled_from([1, 3, 10, 97, 100, 300]), st.lists(read, min_size=1, max_size=60))
def test_classes_are_those_of_fractions(history: int, classes: int, gaps: list[tuple[int, int, int]]) -> None:
    now, reads = 0, []
    for task, gap, sector in gaps:
        now += gap
        reads.append((task, now, sector))
    given_ = config(history, S, T, [6000] * classes)
    tasks, times, sectors = (np.array(column, np.int64) for column in zip(*reads, strict=True))
    found = classify(given_, Reads(tasks, times * 1000, sectors))
    assert found.tolist() == literal(given_, reads)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 12_000)), min_size=4, max_size=4), st.integers(0, 3), st.data())
def test_smaller_differences_never_lower_the_class(entries: list[tuple[int, int]], which: int, data: st.DataObject) -> None:
    spatial, temporal = entries[which]
    nearer = [*entries]
    nearer[which] = (data.draw(st.integers(0, spatial)), data.draw(st.integers(0, temporal)))
    assert 1 <= class_of_history(W1, entries) <= class_of_history(W1, nearer) <= 100


def test_differences_are_of_the_same_process() -> None:
    """Whole microseconds, rounded down; sectors either way; of a first read none."""
    task = np.array([7, 9, 7, 9, 7])
    reads = Reads(task, np.array([0, 500, 1999, 2500, 5000]), np.array([100, 10, 50, 30, 51]))
    spatial, temporal, known = differences(reads)
    assert spatial.tolist() == [0, 0, 50, 20, 1]
    assert temporal.tolist() == [0, 0, 1, 2, 3]
    assert known.tolist() == [False, False, True, True, True]


def test_reads_out_of_order_are_refused() -> None:
    with pytest.raises(Problem, match="reads are not in order of time"):
        differences(Reads(np.zeros(2, np.int64), np.array([5000, 0]), np.zeros(2, np.int64)))
