# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where file system metadata lies is no part of a reader's seek history, unless `learn_meta` says so."""

from __future__ import annotations

import numpy as np
import pytest

from headwaiter.schedulers import find
from headwaiter.sim import META, READ, SYNC, ConstantDrive, Forest, Options, Task, simulate

MS = 1_000_000
FILES = (10_000_000, 10_100_000)
TABLES = 90_000_000
READS = 30


def _readers() -> Forest:
    """Two readers that look up their file far away, then read it, 8 sectors at a time, 0.1 ms after the last."""
    rows = [(task, -1 if i == 0 else task * (READS + 1) + i - 1,
             TABLES + 1000 * task if i == 0 else FILES[task] + 8 * (i - 1), SYNC | (META if i == 0 else 0))
            for task in range(2) for i in range(READS + 1)]
    task, parent, sector, flags = (np.array(column) for column in zip(*rows, strict=True))
    n = len(rows)
    return Forest(
        tasks=[Task(0, "a", 0), Task(1, "b", 1)], time_ns=np.zeros(n, np.int64), parent=parent.astype(np.int64),
        delay_ns=np.full(n, MS // 10, np.int64), task=task.astype(np.uint32), op=np.full(n, READ, np.uint8),
        flags=flags.astype(np.uint8), sector=sector.astype(np.uint64), sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


def _switches(scheduler: str, learn_meta: int) -> int:
    """How often the device goes from one reader to the other."""
    run = simulate(scheduler, ConstantDrive(1 * MS), _readers(), tunables={"learn_meta": learn_meta}, options=Options())
    order = run.task[np.argsort(run.complete_ns)]
    return int((order[1:] != order[:-1]).sum())


@pytest.mark.parametrize("scheduler", ["as", "cas"])
def test_metadata_tells_nothing_of_where_a_task_reads(scheduler: str) -> None:
    assert "learn_meta" in find(scheduler).tunables
    assert _switches(scheduler, learn_meta=0) <= 4
    assert _switches(scheduler, learn_meta=1) > 20
