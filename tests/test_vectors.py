# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Our mq-deadline, kyber and bfq (within one queue) serve what an unmodified 6.12 kernel was given in its order: every row.

Set-up (in the files' heads): null_blk that takes one request at a time; two requests go out at once, one into the
driver and one pulled ahead, before anything else is queued. Debian's kernel counts in ticks of 4 ms, which decides how
often mq-deadline is asked in vain while a class blocks another.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from device import Device
from vectors import MS, replay, request, rows

from headwaiter.engine.policy import Policy

SETUPS: list[tuple[str, str, Mapping[str, int], int]] = [
    ("mq-deadline", "mq-deadline-*.txt", {"tick_us": 4000}, 25 * MS),
    ("kyber", "kyber-*.txt", {}, 25 * MS),
    (
        "bfq",
        "bfq-order-*.txt",
        {"low_latency": 0, "slice_idle": 0, "fifo_expire_sync": 100000, "fifo_expire_async": 100000, "timeout_sync": 100000},
        30 * MS,
    ),
]


@pytest.mark.parametrize(("scheduler", "pattern", "tunables", "service_ns"), SETUPS, ids=[s[0] for s in SETUPS])
def test_recorded_order(shared: Path, scheduler: str, pattern: str, tunables: Mapping[str, int], service_ns: int) -> None:
    found = [(path.name, row) for path in sorted((shared / "data/vectors").glob(pattern)) for row in rows(path)]
    assert found, f"no rows in {shared}/data/vectors/{pattern}"
    wrong = [f"{name} row {row.name}" for name, row in found if replay(scheduler, row, tunables, service_ns) != row.order]
    assert not wrong


def test_device_pulls_one_ahead() -> None:
    """The second request is decided before the third, which would go first, is there."""
    device = Device(Policy("mq-deadline"), 10 * MS)
    for i, text in enumerate(("R500", "R900", "R100", "R700")):
        device.insert(request(text), i)
    assert device.run() == [0, 1, 2, 3]
    assert [t for t, _ in device.served] == [10 * MS, 20 * MS, 30 * MS, 40 * MS]


def test_device_asks_again() -> None:
    """A best-effort request waits for a real-time one in the device, until it has aged; polls come every 4 ms."""
    device = Device(Policy("mq-deadline", {"prio_aging_expire": 20, "tick_us": 1000}), 100 * MS, depth=2)
    device.insert(request("R100/1"), 0)
    device.insert(request("R200/2"), 0)
    device.run()
    assert [t for t, _ in device.served] == [100 * MS, 120 * MS]
