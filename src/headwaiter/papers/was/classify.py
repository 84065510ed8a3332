# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From reads to classes: a process's history, the points of its differences, and equations (1) and (2), in whole numbers.

A process that has just begun counts as one that repeats its I/O at once: its history is all zero, and its class the most
promising one. The class of points that are all 0 would be 0 by the formula; it is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.papers.was.config import Config, Steps

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Reads:
    """Reads in order of issue; columns of shape (n,): who (any number), when (ns), and the first sector."""

    task: I64
    time_ns: I64
    sector: I64

    def __len__(self) -> int:
        return len(self.task)


def differences(reads: Reads) -> tuple[I64, I64, NDArray[np.bool_]]:
    """(sectors, microseconds, known), each of shape (n,): from the process's read before; 0 and False for its first one."""
    order = np.argsort(reads.task, kind="stable")
    task, time, sector = reads.task[order], reads.time_ns[order], reads.sector[order]
    known = np.append(False, task[1:] == task[:-1]) if len(order) else np.zeros(0, bool)
    spatial, temporal = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    spatial[1:] = np.where(known[1:], np.abs(np.diff(sector)), 0)
    temporal[1:] = np.where(known[1:], np.diff(time) // 1000, 0)
    if (temporal < 0).any():
        raise Problem("reads are not in order of time")
    back = np.argsort(order, kind="stable")
    return spatial[back], temporal[back], known[back]


def histories(values: I64, task: I64, history: int) -> I64:
    """Each read's last history-1 values of its process, newest first, 0 where there were not so many: shape (n, history-1)."""
    order = np.argsort(task, kind="stable")
    sorted_task, sorted_values = task[order], values[order]
    out = np.zeros((len(order), history - 1), np.int64)
    for age in range(min(history - 1, len(order))):
        same = sorted_task[age:] == sorted_task[: len(order) - age]
        out[order[age:], age] = np.where(same, sorted_values[: len(order) - age], 0)
    return out


def points(steps: Steps, values: I64) -> I64:
    """S or T of each value, in values' shape."""
    start, height = np.array(steps, np.int64).T
    return np.asarray(height[np.searchsorted(start, values, side="right") - 1], np.int64)


def weights(history: int) -> I64:
    """Return the weights of a history's entries, newest first: they halve with age, and the oldest has 1. Shape (history-1,)."""
    return 1 << np.arange(history - 2, -1, -1, dtype=np.int64)


def classes_of_sums(total: I64, history: int, classes: int, most_points: int) -> I64:
    """Equation (2): classes, 1 … N, of histories whose points, each by its weight, come to these totals. In total's shape."""
    whole = int(weights(history).sum()) * most_points
    return np.maximum(-(-total * classes // whole), 1)


def _classes(config: Config, spatial: I64, temporal: I64) -> I64:
    """Classes of histories of differences, each of shape (n, history-1), newest first."""
    prospects = points(config.spatial, spatial) + points(config.temporal, temporal)
    return classes_of_sums(prospects @ weights(config.history), config.history, config.classes, config.most_points)


def classify(config: Config, reads: Reads) -> I64:
    """The class, 1 … N, of each read's process once that read is part of its history. Shape (n,)."""
    spatial, temporal, _ = differences(reads)
    k = config.history
    return _classes(config, histories(spatial, reads.task, k), histories(temporal, reads.task, k))


def class_of_history(config: Config, history: Sequence[tuple[int, int]]) -> int:
    """The class of one history of (sectors, microseconds), newest first."""
    pairs = np.array(history, np.int64).reshape(1, -1, 2)
    if pairs.shape[1] != config.history - 1:
        raise Problem(f"{pairs.shape[1]} differences, but a history of {config.history} I/Os has {config.history - 1}")
    return int(_classes(config, pairs[:, :, 0], pairs[:, :, 1])[0])
