# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Algorithm 1 and what is made of it, against the spec's examples and the algorithm as it is printed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwaiter.base.errors import Problem
from headwaiter.papers.was.classify import Reads
from headwaiter.papers.was.prospects import DistMap, dist_map, maps, prospect, step_lengths


def of(*population: int) -> DistMap:
    """DistMap[1], DistMap[2], …"""
    value = np.arange(1, len(population) + 1)
    here = np.array(population) > 0
    return DistMap(value[here], np.array(population)[here])


def printed(steps: int, population: list[int]) -> list[int]:
    """The algorithm, index by index; population[0] is DistMap[1]. No step reads beyond the array."""
    dist = [0, *population]
    d, start, rest = 1, 0, sum(population)
    lengths = []
    for step in range(1, steps + 1):
        target = Fraction(rest, steps - step + 1)
        pop = 0
        while target > pop and rest > pop and d < len(dist):
            pop += dist[d]
            d += 1
        lengths.append(d - start)
        start = d
        rest -= pop
    return lengths


def test_w5() -> None:
    assert step_lengths(3, of(4, 2, 1, 1, 3, 1)) == [2, 3, 2]
    assert step_lengths(4, of(6, 1, 1)) == [2, 1, 1, 0]


@given(st.integers(1, 8), st.lists(st.integers(0, 5), min_size=1, max_size=30).filter(any))
def test_lengths_are_those_of_the_printed_algorithm(steps: int, population: list[int]) -> None:
    while not population[-1]:
        population.pop()
    assert step_lengths(steps, of(*population)) == printed(steps, population)


def test_steps_as_a_function() -> None:
    """[0,2), [2,5), from 5 on; a step that holds nothing is left out, but not the last, which has no end."""
    assert prospect([70, 30, 0], of(4, 2, 1, 1, 3, 1)) == ((0, 70), (2, 30), (5, 0))
    assert prospect([90, 60, 30, 0], of(6, 1, 1)) == ((0, 90), (2, 60), (3, 30), (4, 0))
    assert prospect([90, 60, 30, 10, 0], of(6, 1, 1)) == ((0, 90), (2, 60), (3, 30), (4, 0))
    assert prospect([30, 0], DistMap(np.array([2, 5]), np.array([3, 3]), 500)) == ((0, 30), (1500, 0))


def test_no_difference_is_one_of_one() -> None:
    found = dist_map(np.array([0, 0, 1, 5, 5, 5]))
    assert (found.value.tolist(), found.population.tolist(), found.total) == ([1, 5], [3, 3], 6)
    buckets = dist_map(np.array([0, 99, 100, 199, 250]), 100)
    assert (buckets.value.tolist(), buckets.population.tolist(), buckets.unit) == ([1, 2], [4, 1], 100)


def test_maps_are_of_each_process() -> None:
    """The first read of a process has no difference, and is none of 0."""
    task = np.array([1, 2, 1, 2])
    spatial, temporal = maps(Reads(task, np.array([0, 1, 2, 3]) * 10**6, np.array([0, 1000, 8, 1000])), 1000)
    assert (spatial.value.tolist(), spatial.population.tolist()) == ([1, 8], [1, 1])
    assert (temporal.value.tolist(), temporal.population.tolist()) == ([2], [2])
    with pytest.raises(Problem, match="no process made two reads"):
        maps(Reads(np.array([1, 2]), np.array([0, 1]), np.array([0, 0])), 1000)
