# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Readers on ext4 on an emulated disk: who waits for the next request of the same reader gets the disk's own rate."""

from __future__ import annotations

import pytest
from test_lab import _run

WAITING = ("hw-as", "hw-cas", "hw-cfq-slice")


@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_waiting_for_readers_doubles_what_they_get() -> None:
    schedulers = " ".join(("mq-deadline", "bfq", "bfq-throughput", *WAITING))
    rows = _run("readers", "6.12", {"READERS": "4", "SCHEDULERS": schedulers})
    found = {row["scheduler"]: row for row in rows}
    assert len(found) == len(WAITING) + 3
    for scheduler in WAITING:
        row = found[scheduler]
        assert row["of_mq_deadline"] >= 2.0, rows
        assert row["of_bfq"] >= 1.7, rows
        assert row["of_bfq_throughput"] >= 0.97, rows
        assert row["fairness_jain"] > 0.9, rows
