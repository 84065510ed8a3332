# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What must hold for every scheduler under any load: read off the event log of random runs."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.schedulers import catalogue
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Outcome, Task, simulate

MS = 1_000_000
PRIOS = [0, 1 << 13, 1 << 13 | 7, 2 << 13, 2 << 13 | 4, 2 << 13 | 7, 3 << 13]


def forest(seed: int, n: int, n_tasks: int, hot: bool) -> Forest:
    """Random I/Os of random tasks: some follow others, some come by themselves; hot: places touch and repeat."""
    rng = np.random.default_rng(seed)
    task = rng.integers(0, n_tasks, n).astype(np.uint32)
    parent = np.array([rng.integers(0, i) if i and rng.random() < 0.7 else -1 for i in range(n)], np.int64)
    sectors = rng.choice([1, 8, 8, 8, 64, 256], n).astype(np.uint32)
    span = 2000 if hot else 1 << 28
    sector = rng.integers(0, span, n).astype(np.uint64)
    follow = rng.random(n) < 0.5
    for i in np.flatnonzero(follow[1:]) + 1:
        sector[i] = sector[i - 1] + sectors[i - 1]
    op = rng.choice([0, 0, 1, 1, 2], n, p=[0.3, 0.3, 0.19, 0.2, 0.01]).astype(np.uint8)
    return Forest(
        tasks=[
            Task(k + 100, f"t{k}", k, int(rng.choice(PRIOS)), int(rng.integers(0, 4)), bool(rng.random() < 0.7))
            for k in range(n_tasks)
        ],
        time_ns=np.sort(rng.integers(0, 300 * MS, n)),
        parent=parent,
        delay_ns=rng.choice([0, 100_000, MS, 7 * MS, 30 * MS], n).astype(np.int64),
        task=task,
        op=op,
        flags=(rng.integers(0, 2, n) | 2 * (rng.random(n) < 0.1)).astype(np.uint8),
        sector=sector,
        sectors=sectors,
        ioprio=rng.choice(PRIOS, n, p=[0.7, *[0.05] * 6]).astype(np.uint16),
        service_ns=rng.integers(1, 12 * MS, n),
    )


def check_log(path: Path, load: Forest, outcome: Outcome, depth: int, options: Options) -> None:
    """Invariants 1 to 3 of core/elevator.h, that every sector was served, and by requests that are not too large."""
    inserted: dict[str, dict[str, str]] = {}
    state: dict[str, str] = {}
    waiting = False
    in_drive = 0
    sectors = 0
    now = 0
    with path.open() as f:
        for row in csv.DictReader(f):
            event, rq = row["event"], row["request"]
            assert int(row["time_ns"]) >= now
            now = int(row["time_ns"])
            if event == "insert":
                assert rq not in state and int(rq) == len(inserted)
                inserted[rq], state[rq] = row, "queued"
            elif event == "dispatch":
                assert state[rq] == "queued", "dispatched twice, or never inserted"
                assert not waiting, "a wait covers a dispatch"
                state[rq] = "in drive"
                in_drive += 1
                assert in_drive <= depth
                sectors += int(row["sectors"])
                assert 1 <= int(row["sectors"]) <= options.max_sectors
            elif event == "complete":
                assert state[rq] == "in drive"
                state[rq] = "done"
                in_drive -= 1
            elif event == "wait_begin":
                assert not waiting
                assert "queued" in state.values(), "a wait with nothing to hold back"
                waiting = True
            elif event == "wait_end":
                assert waiting
                waiting = False
    assert not waiting
    left = Counter(state.values())
    # A request that another one swallowed was inserted, but is neither dispatched nor completed itself.
    assert left["queued"] <= outcome.totals["merges"] and left["in drive"] == 0
    assert left["done"] == outcome.totals["requests"]
    assert sectors == load.sectors.sum()
    pieces = int((-(-load.sectors.astype(np.int64) // options.max_sectors)).sum())
    assert len(inserted) <= pieces <= len(inserted) + outcome.totals["merges"]
    n = len(load.time_ns)
    assert outcome.totals["issued"] == outcome.totals["completed"] == n
    assert (outcome.rows.complete_ns >= outcome.rows.issue_ns).all() and (outcome.rows.issue_ns >= 0).all()
    follows = load.parent >= 0
    expected = np.where(follows, outcome.rows.complete_ns[load.parent] + load.delay_ns, load.time_ns)
    assert (outcome.rows.issue_ns >= expected).all()
    # Where requests are tags, a task that waits for one issues nothing else meanwhile, but for write-back.
    tags = options.nr_requests and (options.pull_ahead or options.join_arriving)
    free = (load.op == Op.WRITE) & (load.flags & SYNC == 0) if tags else np.ones(n, bool)
    assert (outcome.rows.issue_ns == expected)[free].all()
    waits = outcome.totals
    assert waits["t_success_ns"] + waits["t_fail_ns"] + waits["t_other_ns"] <= waits["now_ns"]


@pytest.mark.parametrize("name", list(catalogue()))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 250),
    tasks=st.integers(1, 12),
    depth=st.sampled_from([1, 1, 2, 31]),
    hot=st.booleans(),
    merging=st.booleans(),
    nr_requests=st.sampled_from([0, 0, 4, 64]),
    pull=st.booleans(),
    dispatch_ns=st.sampled_from([0, 30_000]),
    max_sectors=st.sampled_from([2560, 2560, 255, 64, 8, 7]),
)
def test_every_request_once(
    name: str,
    tmp_path: Path,
    seed: int,
    n: int,
    tasks: int,
    depth: int,
    hot: bool,
    merging: bool,
    nr_requests: int,
    pull: bool,
    dispatch_ns: int,
    max_sectors: int,
) -> None:
    load = forest(seed, n, tasks, hot)
    options = Options(
        record=True,
        queue_depth=depth,
        merging=merging,
        nr_requests=nr_requests,
        pull_ahead=pull,
        dispatch_ns=dispatch_ns,
        cpus=3,
        max_sectors=max_sectors,
    )
    drive = ConstantDrive(5 * MS)
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    outcome = simulate(name, drive, load, options=options, log=first)
    check_log(first, load, outcome, depth, options)
    simulate(name, drive, load, options=options, log=second)
    assert first.read_bytes() == second.read_bytes(), "two runs differ"


def _extremes(name: str) -> list[dict[str, int]]:
    """Each tunable alone at its smallest and largest sensible value."""
    out = []
    for t in catalogue()[name].tunables.values():
        for value in {t.minimum, min(t.maximum, max(t.default * 100, 1000))} - {t.default}:
            out.append({t.name: value})
    return out


@pytest.mark.parametrize("name", list(catalogue()))
def test_tunables_at_their_ends(name: str, tmp_path: Path) -> None:
    """No value in range may lose a request or leave one waiting for ever."""
    load = forest(7, 150, 5, True)
    for tunables in _extremes(name):
        log = tmp_path / "log.csv"
        outcome = simulate(name, ConstantDrive(5 * MS), load, tunables, Options(record=True), log)
        check_log(log, load, outcome, 1, Options())


def test_noop_keeps_order(tmp_path: Path) -> None:
    load = forest(3, 200, 6, False)
    log = tmp_path / "log.csv"
    simulate("noop", ConstantDrive(5 * MS), load, options=Options(merging=False), log=log)
    with log.open() as f:
        rows: list[dict[str, Any]] = list(csv.DictReader(f))
    order = [int(r["request"]) for r in rows if r["event"] == "dispatch"]
    assert order == sorted(order)
