# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where file system metadata lies says nothing of a reader's data, unless `learn_meta` says so."""

from __future__ import annotations

import numpy as np
import pytest

from headwaiter.engine.constants import META, SYNC, Op
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task, simulate

MS = 1_000_000
FILES = (10_000_000, 10_100_000)
TABLES = 90_000_000
READS = 60


def _readers(apart: int, start_ms: int) -> Forest:
    """Two readers that look up their file far away, `apart` sectors from each other, and begin to read it at `start_ms`: 8
    sectors at a time, 0.1 ms after the last."""
    rows = [
        (
            task,
            task * (READS + 1) + i - 1 if i > 1 else -1,
            start_ms * MS if i == 1 else 0,
            TABLES + apart * task if i == 0 else FILES[task] + 8 * (i - 1),
            SYNC | (META if i == 0 else 0),
        )
        for task in range(2)
        for i in range(READS + 1)
    ]
    task, parent, time_ns, sector, flags = (np.array(column) for column in zip(*rows, strict=True))
    n = len(rows)
    return Forest(
        tasks=[Task(0, "a", 0), Task(1, "b", 1)],
        time_ns=time_ns.astype(np.int64),
        parent=parent.astype(np.int64),
        delay_ns=np.full(n, MS // 10, np.int64),
        task=task.astype(np.uint32),
        op=np.full(n, Op.READ, np.uint8),
        flags=flags.astype(np.uint8),
        sector=sector.astype(np.uint64),
        sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


def _switches(scheduler: str, apart: int, start_ms: int, learn_meta: int) -> int:
    """How often the device goes from one reader to the other."""
    run = simulate(
        scheduler,
        ConstantDrive(1 * MS),
        _readers(apart, start_ms),
        tunables={"learn_meta": learn_meta},
        options=Options(record=True),
    )
    order = run.rows.task[np.argsort(run.rows.complete_ns)]
    return int((order[1:] != order[:-1]).sum())


@pytest.mark.parametrize(
    ("scheduler", "apart", "start_ms"),
    [
        ("as", 1000, 3),
        ("cas", 1000, 3),
        ("cfq-slice", 1000, 3),  # both in the same table: no reason to share a queue
        ("cfq-slice", 50_000_000, 50),  # who seeks must think for less than 2 ms to be waited for, in the mean
    ],
)
def test_metadata_tells_nothing_of_where_a_task_reads(scheduler: str, apart: int, start_ms: int) -> None:
    assert "learn_meta" in find(scheduler).tunables
    assert _switches(scheduler, apart, start_ms, learn_meta=0) <= 5
    assert _switches(scheduler, apart, start_ms, learn_meta=1) >= 10
