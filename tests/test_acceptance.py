# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The demands on a scheduler for every drive (acceptance.py): they measure what they say."""

from __future__ import annotations

import pytest
from acceptance import ALL, BURST, DEMANDS, STREAM, Demand, table, value

from headwaiter.drives import bundled
from headwaiter.engine.schedulers import catalogue


@pytest.mark.parametrize(
    ("load", "drive", "figure", "scheduler", "expected"),
    [
        ("buf8", "barracuda-80g", "longest read", "as", 910),
        ("startup-8", "barracuda-80g", "time from start to end of start", "bfq", 0.462),
        ("startup-8", "nvme-ssd", "time from start to end of start", "bfq", 0.014),
        ("inter-8", "barracuda-80g", BURST, "bfq", 42),
        ("inter-8", "barracuda-80g", STREAM, "bfq", 58),
        ("inter-8", "wd-re-4tb", BURST, "bfq", 100),
        ("inter-8", "nvme-ssd", BURST, "bfq", 2.6),
        ("inter-4", "barracuda-80g", BURST, "bfq", 47),
        ("inter-4", "barracuda-80g", STREAM, "bfq", 34),
        ("rand-d32", "nvme-ssd", ALL, "none", 1645),
        ("rand-d32", "sata-ssd", ALL, "none", 525),
        ("rw-direct", "barracuda-80g", "MB/s of reader", "as", 53),
        ("rw-direct", "barracuda-80g", ALL, "as", 66),
        ("adv-7ms", "barracuda-80g", STREAM, "as-95", 42),
        ("adv-7ms", "barracuda-80g", "MB/s of adv", "as-95", 0.20),
    ],
)
def test_schedulers_that_are_known(load: str, drive: str, figure: str, scheduler: str, expected: float) -> None:
    """Figures of others, from another program that measured them with one seed; the flash drive's since it conserves work."""
    assert value(load, drive, figure, scheduler, 1) == pytest.approx(expected, rel=0.15)


def test_eight_readers_of_one() -> None:
    rates = [value(load, "barracuda-80g", ALL, "as", 1) for load in ("buf8", "buf1")]
    assert rates[0] / rates[1] == pytest.approx(0.919, abs=0.002)


def test_whether_a_demand_is_met() -> None:
    least, most = (Demand("buf8", "barracuda-80g", figure, factor) for figure, factor in ((ALL, 60), ("longest read", 2000)))
    assert least.is_met("as", 1) and most.is_met("as", 1)
    assert not least.is_met("noop", 1) and most.is_met("noop", 1)
    assert not Demand("buf8", "barracuda-80g", ALL, 0.95, other="buf1").is_met("as", 1)
    rivals = Demand("buf8", "barracuda-80g", ALL, 1, rivals=("as", "noop"))
    assert rivals.is_met("as", 1) and not rivals.is_met("noop", 1)
    assert rivals.wanted("noop", 1) == value("buf8", "barracuda-80g", ALL, "as", 1)
    (row,) = table("noop", 1, [rivals])
    assert row[:3] == ["buf8", "barracuda-80g", ALL] and row[-1] == "NOT MET"


@pytest.mark.parametrize("demand", DEMANDS, ids=str)
def test_maitre_does_what_is_demanded(demand: Demand) -> None:
    """One seed is as good as five for what is not close; python tests/acceptance.py prints all of it."""
    assert demand.is_met("maitre", 1, slack=0.01)


def test_demands_name_what_there_is() -> None:
    for d in DEMANDS:
        assert d.drive in bundled() and set(d.rivals) <= catalogue().keys()
