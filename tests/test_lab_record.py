# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The recorder in the lab: what it costs, and that it sees what blktrace sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from blkrecords import event
from test_lab import _run

from headwaiter.experiments.record import Compared, compared
from headwaiter.traces import load


def test_recordings_are_compared(tmp_path: Path) -> None:
    """By tasks, places, operations and their order; times may differ."""
    loads = {
        "one": [event(0, "Q", "R", 8, 8, pid=5), event(10, "Q", "W", 16, 8, pid=6), event(50, "C", "R", 8, 8)],
        "late": [event(100, "Q", "R", 8, 8, pid=5), event(113, "Q", "W", 16, 8, pid=6), event(155, "C", "R", 8, 8)],
        "other": [event(0, "Q", "R", 8, 8, pid=7), event(10, "Q", "W", 16, 8, pid=6), event(50, "C", "R", 8, 8)],
        "open": [event(0, "Q", "R", 8, 8, pid=5), event(10, "Q", "W", 16, 8, pid=6), event(50, "C", "R", 800, 8)],
        "short": [event(0, "Q", "R", 8, 8, pid=5), event(50, "C", "R", 8, 8)],
        "flushed": [
            event(0, "Q", "R", 8, 8, pid=5),
            event(10, "Q", "W", 16, 8, pid=6),
            event(20, "Q", "FWS", 0, 0, pid=6),
            event(50, "C", "R", 8, 8),
            event(60, "C", "WS", 0, 0),
        ],
    }
    found = {}
    for name, records in loads.items():
        (tmp_path / f"{name}.blktrace.0").write_bytes(b"".join(records))
        found[name] = load(tmp_path / f"{name}.blktrace.0")
    assert compared(found["one"], found["late"]) == Compared(2, 0, True, 3, 5)
    assert compared(found["flushed"], found["flushed"]) == Compared(2, 1, True, 0, 0)
    for name in ("flushed", "other", "short", "open"):
        assert not compared(found["one"], found[name]).same


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.needs("lab")
@pytest.mark.parametrize("series", ["6.1", "6.12"])
def test_both_recorders_see_the_same_requests(series: str) -> None:
    (row,) = _run("record", series, {"IOS": "0", "READS": "20"})
    assert row["same"] is True and row["requests"] > 100 and row["flushes"] > 1
    # An interrupt may come between the two recorders.
    assert row["time_ns"] < 20_000 and row["latency_ns"] < 20_000


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.needs("lab")
@pytest.mark.parametrize("series", ["6.1", "6.12"])
def test_recording_costs_no_more_than_15_percent(series: str) -> None:
    rows = _run("record", series, {"IOS": "12000", "READS": "1"})
    cost = {row["recorder"]: row["cost_percent"] for row in rows if row["what"] == "cost"}
    assert cost["tracefs"] <= 15
