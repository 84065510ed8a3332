# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where nothing moves, the anticipating schedulers do not wait, unless they are told to."""

from __future__ import annotations

import numpy as np
import pytest

from headwaiter.drives.profile import find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.schedulers import catalogue
from headwaiter.engine.sim import ConstantDrive, Drive, Forest, Options, Outcome, Task, simulate

# What each needs besides wait_nonrot to wait on flash: cfq-slice's source has a rule of its own for queueing devices.
ANTICIPATING: dict[str, dict[str, int]] = {
    "as": {},
    "as-95": {},
    "was": {},
    "was-online": {},
    "cas": {},
    "as-seek": {},
    "as-share": {},
    "cfq-slice": {"hw_tag": 1},
}


def readers(tasks: int = 4, requests: int = 60, think_ns: int = 200_000, shares: bool = False) -> Forest:
    """Sequential readers far apart; `shares` gives them 1, 2, 3, … tickets."""
    task = np.repeat(np.arange(tasks), requests)
    nth = np.tile(np.arange(requests), tasks)
    n = len(task)
    return Forest(
        tasks=[Task(k, f"t{k}", k, share=(k + 1) * shares) for k in range(tasks)],
        time_ns=np.zeros(n, np.int64),
        parent=np.where(nth == 0, -1, np.arange(n) - 1),
        delay_ns=np.full(n, think_ns),
        task=task.astype(np.uint32),
        op=np.full(n, Op.READ, np.uint8),
        flags=np.full(n, SYNC, np.uint8),
        sector=(task * 8_000_000 + nth * 8).astype(np.uint64),
        sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


def run(name: str, drive: Drive, depth: int = 1, **tunables: int) -> Outcome:
    return simulate(name, drive, readers(), tunables, Options(record=True, queue_depth=depth))


def waits(out: Outcome) -> int:
    return out.totals["a_success"] + out.totals["a_fail"] + out.totals["a_other"]


def test_the_list_is_whole() -> None:
    assert set(ANTICIPATING) == {name for name, s in catalogue().items() if "wait_nonrot" in s.tunables}


@pytest.mark.parametrize("name", ANTICIPATING)
@pytest.mark.parametrize("profile", ["nvme-ssd", "sata-ssd"])
def test_no_waits_without_a_head(name: str, profile: str) -> None:
    drive = find_drive(profile)
    assert waits(run(name, drive, 0)) == 0
    assert waits(run(name, drive)) == 0
    assert waits(run(name, drive, wait_nonrot=1, **ANTICIPATING[name])) > 0


@pytest.mark.parametrize("name", ANTICIPATING)
def test_the_tunable_means_nothing_to_a_disk(name: str) -> None:
    for drive in (find_drive("barracuda-80g"), ConstantDrive(5_000_000)):
        out = run(name, drive)
        assert waits(out) > 0
        assert (out.rows.complete_ns == run(name, drive, wait_nonrot=1).rows.complete_ns).all()


def test_shares_of_flash_need_waits() -> None:
    """Two read one request after the other, and each is served whenever the other thinks: 1:1 whatever the tickets."""
    got = []
    for wait_nonrot in (0, 1):
        out = simulate(
            "as-share",
            find_drive("sata-ssd"),
            readers(2, 600, 10_000, True),
            {"wait_nonrot": wait_nonrot},
            Options(record=True, queue_depth=1),
        )
        first_done = out.rows.complete_ns[out.rows.task == 1].max()
        got.append(np.count_nonzero((out.rows.task == 0) & (out.rows.complete_ns <= first_done)))
    assert abs(got[0] - 600) <= 1
    assert abs(got[1] - 300) <= 3


def test_age_that_counts_for_nothing_however_great_it_is() -> None:
    """as-seek weighs age when it decides whether to wait; a kernel would stop at a division by a weight of 0."""
    policy = Policy("as-seek", {"W": 0})

    def read(task: int, sector: int, now: int) -> int:
        return policy.insert(Request(sector, 8, int(Op.READ), task=task, flags=SYNC), now)

    for task in (0, 1):
        policy.start_task(task, 0)
    now = 0
    for nth in range(8):
        near = read(0, 8 * nth, now)
        if nth == 7:
            far = read(1, 1 << 30, now)
        assert policy.dispatch(now) == near
        now += 1 << 60 if nth == 7 else 5_000_000
        policy.complete(near, now)
        now += nth < 7
    assert policy.dispatch(now) == far
