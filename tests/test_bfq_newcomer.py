# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small reader that starts beside eight streaming ones: what bfq is for."""

from __future__ import annotations

import numpy as np
import pytest

from headwaiter.drives.profile import find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import Forest, Options, Task, simulate

MS = 1_000_000
SECTORS = 256  # 128 KiB
STREAMS = 8
REQUESTS = 4000  # of each stream: half a gigabyte
APART = 15_000_000  # sectors between two streams
THINK_NS = 50_000
NEWCOMER_SECTOR = 140_000_000
NEWCOMER_BYTES = 10_000_000


def newcomer_s(scheduler: str, drive: str, start_ms: int) -> float:
    """Seconds in which the newcomer has read its first 10 MB. Streams start 50 ms apart, all read one after the other."""
    few = -(-NEWCOMER_BYTES // (SECTORS * 512))
    task = np.repeat(np.arange(STREAMS + 1), [REQUESTS] * STREAMS + [few])
    first = np.concatenate([[True], np.diff(task) > 0])
    nth = np.concatenate([np.arange(REQUESTS)] * STREAMS + [np.arange(few)])
    n = len(task)
    base = np.where(task < STREAMS, task * APART, NEWCOMER_SECTOR)
    start = np.where(task < STREAMS, task * 50, start_ms) * MS
    load = Forest(
        tasks=[Task(k, f"t{k}", k) for k in range(STREAMS + 1)],
        time_ns=np.where(first, start, 0),
        parent=np.where(first, -1, np.arange(n) - 1),
        delay_ns=np.full(n, THINK_NS),
        task=task.astype(np.uint32),
        op=np.full(n, Op.READ, np.uint8),
        flags=np.full(n, SYNC, np.uint8),
        sector=(base + nth * SECTORS).astype(np.uint64),
        sectors=np.full(n, SECTORS, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )
    out = simulate(scheduler, find_drive(drive), load, {}, Options(record=True, merging=False))
    return float(out.rows.complete_ns[out.rows.task == STREAMS].max() - start_ms * MS) / 1e9


@pytest.mark.parametrize("drive", ["barracuda-80g", "wd-re-4tb"])
@pytest.mark.parametrize("start_ms", [5_000, 20_000])
def test_newcomer_is_served_twice_as_fast_as_under_mq_deadline(drive: str, start_ms: int) -> None:
    assert 2 * newcomer_s("bfq", drive, start_ms) <= newcomer_s("mq-deadline", drive, start_ms)
