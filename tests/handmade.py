# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a run tells of its I/Os, from rows that are written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headwaiter.engine.sim import Latencies, Tallies

MS = 1_000_000
Row = tuple[int, int, float, float, int]
"""Task (by place), operation, issue and completion in ms, sectors."""


def tallies_of(rows: list[Row]) -> Tallies:
    """A row for each task and operation, in the order of their first I/Os."""
    parts: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        parts.setdefault(row[:2], []).append(row)

    def column(figure: Callable[[list[Row]], float]) -> Any:
        return np.array([round(figure(part)) for part in parts.values()], np.int64)

    return Tallies(
        task=np.array([task for task, _ in parts], np.int64), op=np.array([op for _, op in parts], np.int64),
        ios=column(len), sectors=column(lambda part: sum(row[4] for row in part)),
        first_issue_ns=column(lambda part: min(row[2] for row in part) * MS),
        last_done_ns=column(lambda part: max(row[3] for row in part) * MS),
        latency_max_ns=column(lambda part: max(row[3] - row[2] for row in part) * MS),
        latency_sum_ns=column(lambda part: sum(row[3] - row[2] for row in part) * MS).astype(np.float64),
    )  # fmt: skip


def latencies_of(rows: list[Row], tallies: Tallies) -> Latencies:
    """One by one, the last first: they come in no particular order."""
    places = {key: i for i, key in enumerate(zip(tallies.task.tolist(), tallies.op.tolist(), strict=True))}
    found = [(places[row[:2]], round((row[3] - row[2]) * MS)) for row in reversed(rows)]
    tally, ns = (np.array([one[i] for one in found], np.int64) for i in range(2))
    return Latencies(tally, ns, np.ones(len(found), np.int64), 0.0)
