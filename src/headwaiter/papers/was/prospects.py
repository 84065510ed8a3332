# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Anticipation prospect functions from what was observed: distribution maps, and steps that hold equally many differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.papers.was.classify import Reads, differences

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class DistMap:
    """The frequency of each difference: values from 1 in ascending order, and their populations; columns of one shape.

    Differences of 0 count as 1, or no step of the paper's algorithm would hold them. `unit` is what a value stands for: sectors,
    or so many microseconds.
    """

    value: I64
    population: I64
    unit: int = 1

    @property
    def total(self) -> int:
        """NumOfDiffs."""
        return int(self.population.sum())


def dist_map(values: I64, unit: int = 1) -> DistMap:
    """The map of differences, shape (n,), in steps of `unit`."""
    value, population = np.unique(np.maximum(values // unit, 1), return_counts=True)
    return DistMap(value, population, unit)


def maps(reads: Reads, bucket_us: int) -> tuple[DistMap, DistMap]:
    """Spatial differences in sectors, and temporal ones in buckets of microseconds, of reads of the same process."""
    spatial, temporal, known = differences(reads)
    if not known.any():
        raise Problem("no process made two reads: calibration is not possible")
    return dist_map(spatial[known]), dist_map(temporal[known], bucket_us)


def step_lengths(steps: int, found: DistMap) -> list[int]:
    """Algorithm 1: lengths of so many steps that hold about equally many differences each; the first one holds 0, too."""
    lengths = []
    at, start, d, rest = 0, 0, 1, found.total
    for remaining in range(steps, 0, -1):
        population = 0
        while rest > population * remaining and rest > population:
            population += int(found.population[at])
            d = int(found.value[at]) + 1
            at += 1
        lengths.append(d - start)
        start = d
        rest -= population
    return lengths


def prospect(points: Sequence[int], found: DistMap) -> tuple[tuple[int, int], ...]:
    """A prospect function whose steps have these points and hold equally many differences; the last one has no end.

    A step that holds nothing is left out, unless it is the last.
    """
    out: dict[int, int] = {}
    start = 0
    for height, length in zip(points, step_lengths(len(points), found), strict=True):
        out[start * found.unit] = height  # one that holds nothing is overwritten by the next
        start += length
    return tuple(out.items())
