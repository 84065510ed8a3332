# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Results by hand: what a run tells of its I/Os, from rows; and what came of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwaiter.base.records import Record, json_text
from headwaiter.engine.sim import Latencies, Tallies
from headwaiter.study.schema import Direction, Disk, Latency, Result

MS = 1_000_000
Row = tuple[int, int, float, float, int]
"""Task (by place), operation, issue and completion in ms, sectors."""


def tallies_of(rows: Sequence[Row]) -> Tallies:
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


def latencies_of(rows: Sequence[Row], tallies: Tallies) -> Latencies:
    """One by one, the last first: they come in no particular order."""
    places = {key: i for i, key in enumerate(zip(tallies.task.tolist(), tallies.op.tolist(), strict=True))}
    found = [(places[row[:2]], round((row[3] - row[2]) * MS)) for row in reversed(rows)]
    tally, ns = (np.array([one[i] for one in found], np.int64) for i in range(2))
    return Latencies(tally, ns, np.ones(len(found), np.int64), 0.0)


def printed(record: Record) -> dict[str, Any]:
    """A record as `--json` prints it."""
    found: dict[str, Any] = json.loads(json_text(record))
    return found


DISK = Disk(busy_s=1.0, idle_s=0.0, seek_s=0.0, rotation_s=0.0, seeks=100)


def direction(mean: float = 1.0, p99: float = 1.0, longest: float = 1.0) -> Direction:
    """Reads, or writes, with these latencies."""
    return Direction(1000, 4_096_000, 4.096, Latency(mean, 0.5, 0.7, p99, 0.9, longest))


def result(name: str, rate: float = 10.0, mean: float = 1.0, p99: float = 1.0, longest: float = 1.0, **more: Any) -> Result:
    """What came of a run; `more` are other fields."""
    given: dict[str, Any] = {
        "tunables": {},
        "elapsed_s": 1.0,
        "requests": 1000,
        "bytes": 4_096_000,
        "read": direction(mean, p99, longest),
        "fairness_jain": 1.0,
        "merges": 0,
        "dispatched": 1000,
        "disk": DISK,
        **more,
    }
    return Result(scheduler=name, throughput_mbps=rate, **given)
