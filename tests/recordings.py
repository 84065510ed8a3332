# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings of simulated programs on a simulated drive: long enough for advice, and known to the request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwaiter.drives.profile import find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import Forest, Options, Task, simulate

MS = 1_000_000
_HEAD = "time_s,task,op,sync,sector,sectors,complete_s\n"


def readers(count: int = 4, each: int = 900, think_ms: float = 1.0, sectors: int = 64) -> Forest:
    """Programs that each read a file of their own in order, and think between two reads."""
    task = np.repeat(np.arange(count), each)
    row = np.tile(np.arange(each), count)
    n = count * each
    return Forest(
        tasks=[Task(i + 1, f"reader{i}", i) for i in range(count)],
        time_ns=np.zeros(n, np.int64),
        parent=np.where(row > 0, np.arange(n) - 1, -1).astype(np.int64),
        delay_ns=np.full(n, think_ms * MS, np.int64),
        task=task.astype(np.uint32),
        op=np.full(n, Op.READ, np.uint8),
        flags=np.full(n, SYNC, np.uint8),
        sector=(task * 30_000_000 + row * sectors).astype(np.uint64),
        sectors=np.full(n, sectors, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


def record(
    path: Path,
    load: Forest,
    scheduler: str = "mq-deadline",
    drive: str = "barracuda-80g",
    stretch: float = 1.0,
    names: bool = False,
) -> Path:
    """What a recorder on that drive under that scheduler would have written, as CSV; times by `stretch`; `names` of programs."""
    rows = simulate(scheduler, find_drive(drive), load, options=Options(record=True, nr_requests=256)).rows
    issue, done = (np.asarray(column) * np.float64(stretch) for column in (rows.issue_ns, rows.complete_ns))
    order = np.argsort(issue, kind="stable")
    lines = (_line(load, int(i), issue, done) + (f",{load.tasks[int(load.task[i])].name}\n" if names else "\n") for i in order)
    path.write_text((_HEAD.rstrip("\n") + ",name\n" if names else _HEAD) + "".join(lines))
    return path


def _line(load: Forest, i: int, issue: NDArray[np.float64], done: NDArray[np.float64]) -> str:
    who = load.tasks[int(load.task[i])].id
    letter = "R" if load.op[i] == Op.READ else "W"
    waited = int(load.flags[i] == SYNC)
    return f"{issue[i] / 1e9:.9f},{who},{letter},{waited},{load.sector[i]},{load.sectors[i]},{done[i] / 1e9:.9f}"
