# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Flash drives against what others have measured: how far off they may be."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from command import good, run, told
from test_json import check

from headwaiter.drives import published
from headwaiter.drives.profile import Profile, find_drive, from_toml
from headwaiter.drives.published import PublishedFigure, figures, table
from headwaiter.drives.validation import MeasuredRequests, replay
from headwaiter.engine.hosts import KERNEL
from headwaiter.papers.flash_hosts import IOCOST, beside_by_scheduler, kyber_targets, starts


@pytest.fixture(scope="module")
def found() -> list[PublishedFigure]:
    return list(figures())


def errors(found: list[PublishedFigure], source: str, figure: str) -> list[float]:
    return [abs(f.error) for f in found if source in f.source and f.figure == figure]


def test_random_reads_at_nine_depths(found: list[PublishedFigure]) -> None:
    rates, tails = (errors(found, "(SPDK)", figure) for figure in ("requests/s", "p99 us"))
    assert len(rates) == len(tails) == 9
    assert max(rates) < 0.03 and max(tails) < 0.12


def test_larger_reads(found: list[PublishedFigure]) -> None:
    rates = errors(found, "figure 1 (none)", "requests/s")
    assert len(rates) == 36 and median(rates) < 0.15 and max(rates) < 0.5


def test_writes_that_are_served_before_a_read(found: list[PublishedFigure]) -> None:
    beside = [f for f in found if "11d" in f.source]
    assert len(beside) == 6
    assert all(1 / 2 < f.simulated / f.measured < 2 for f in beside)


@pytest.mark.parametrize("name", ["samsung-980-pro"])
def test_rested_too(name: str) -> None:
    """Beside a drive that still has erased pages and fast cells as many are served before a read: it is the queues' turns."""
    (group,) = table()["beside_writers"]
    for jobs, measured in group["rows"]:
        served = published.written_before_a_read(find_drive(name), jobs, group["at_once"], 10, group["write_kib"])
        assert 1 / 2 < served / measured < 2


def sync_us(base: str, **flush: object) -> float:
    """Mean time of a flush after each of many writes of 4 KiB."""
    drive: Profile = from_toml({**find_drive(base).data, "flush": flush}, base, base)
    n = 2000
    op = np.tile(np.array([1, 3], np.uint8), n)
    sector = np.repeat(np.random.default_rng(1).integers(0, 1 << 20, n).astype(np.uint64) * 8, 2)
    zeros = np.zeros(2 * n, np.int64)
    took = replay(drive, MeasuredRequests(op, sector, np.where(op == 1, 8, 0).astype(np.uint32), zeros, zeros))
    return float(took[1::2].mean() / 1e3)


@pytest.mark.parametrize(
    ("base", "measured_us", "flush"),
    [
        ("nvme-ssd", 12, {"protected": True}),
        ("samsung-980-pro", 30, {"protected": True, "time": 0.02}),
        ("sata-ssd", 58, {"protected": True, "time": 0.03}),
        ("nvme-ssd", 47, {"protected": True, "time": 0.037}),
        ("sata-ssd", 350, {"time": 0.11}),
        ("sata-ssd", 810, {"time": 0.2, "time_slow": 1.25, "slow_share": 0.35}),
        ("sata-ssd", 900, {"time": 0.65}),
        ("sata-ssd", 2400, {"time": 2.2}),
        ("samsung-980-pro", 1000, {"time": 1.0}),
        ("nvme-ssd", 6900, {"time": 6.7}),
    ],
)
def test_a_flush_is_as_fast_as_measured_ones_by_its_parameters_alone(
    base: str, measured_us: float, flush: dict[str, object]
) -> None:
    """From 12 us with power-loss protection to 6.9 ms."""
    assert 1 / 1.5 < sync_us(base, **flush) / measured_us < 1.5


@pytest.mark.thorough
def test_a_program_starts_beside_writers() -> None:
    """Published: 35 s under all schedulers but bfq, and 1.5 s, half a second of which is the program's own."""
    took = {f.load: f.simulated for f in starts()}
    assert len(took) == 5 * 4
    for load in dict.fromkeys(text.rpartition(", ")[0] for text in took):
        others = [took[f"{load}, {name}"] for name in ("none", "mq-deadline", "kyber")]
        assert took[f"{load}, bfq"] < 1.5, load
        if "throttled" in load or "another" in load:
            assert 2 < min(others) / took[f"{load}, bfq"] < 5, load
        else:
            assert min(others) > 15 and max(others) < 2 * 35, load


def test_a_reader_beside_writers_by_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has three numbers of jobs; here the last, where schedulers differ."""
    (group,) = table()["beside_by_scheduler"]
    last = {**group, "jobs": group["jobs"][-1:], **{name: group[name][-1:] for name in KERNEL}}
    monkeypatch.setattr("headwaiter.papers.flash_hosts.table", lambda: {"beside_by_scheduler": [last]})
    found = list(beside_by_scheduler())
    assert len(found) == len(KERNEL) * 2
    means, tails = ({f.load.rpartition(", ")[2]: f for f in found if f.figure == what} for what in ("mean us", "p99 us"))
    assert 1 / 2.4 < means["none"].simulated / means["none"].measured < 1
    assert means["kyber"].simulated < 0.7 * means["none"].simulated
    lead = means["none"].simulated / means["bfq"].simulated
    assert 1 / 2 < lead / (means["none"].measured / means["bfq"].measured) < 2
    assert all(1 / 3 < tails[name].simulated / tails[name].measured < 3 for name in ("kyber", "bfq"))
    assert all(means[name].simulated < tails[name].simulated for name in KERNEL)


def test_targets_of_kyber(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the target of reads is out of reach, and that of writes is not, writes are sent one at a time."""
    (group,) = table()["kyber_targets"]
    rows = [row for row in group["rows"] if row[:2] in ([10000, 10000], [50, 100000])]
    monkeypatch.setattr(
        "headwaiter.papers.flash_hosts.table", lambda: {"kyber_targets": [{**group, "run_ms": 1500, "rows": rows}]}
    )
    loose, loose_writes, tight, tight_writes = kyber_targets()
    assert (loose.figure, loose_writes.figure) == ("reads/s", "writes/s")
    assert tight.simulated > 1.2 * loose.simulated
    assert loose_writes.simulated > 1.1 * tight_writes.simulated
    assert all(1 / 2 < one.simulated / one.measured < 2 for one in (loose, loose_writes, tight, tight_writes))


def test_the_command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    made = [
        PublishedFigure("d", "someone, 2024", "reads", "p99 us", 100, 110),
        PublishedFigure("d", "someone, 2024", "writes", "p99 us", 100, 80),
    ]
    monkeypatch.setattr("headwaiter.cli.validate.figures", lambda: iter(made))
    six = [PublishedFigure(drive, IOCOST, "jobs", rate, 2e9, 2.02e9) for drive in ("one", "two") for rate in ("rbps", "rseqiops")]
    monkeypatch.setattr("headwaiter.cli.validate.groups", list)
    for others in ("starts", "beside_by_scheduler", "kyber_targets"):
        monkeypatch.setattr(f"headwaiter.cli.validate.{others}", list)
    monkeypatch.setattr("headwaiter.cli.validate.iocost", lambda: iter(six))
    text = good(capfd, "validate", "--published")
    assert "d: someone, 2024" in text and "p99 us: error 15.0% in the median, 20.0% at most" in text
    assert ["reads", "p99", "us", "100", "110", "+10.0%"] in [line.split() for line in text.splitlines()]
    assert ["two", "2000", "+1.0%", "2000000000", "+1.0%"] in [line.split() for line in text.splitlines()]
    document = told(capfd, "validate", "--published")
    check(document, "PublishedDocument")
    rows = document["figures"]
    assert [(row["load"], row["measured"], round(row["error"], 6)) for row in rows[:2]] == [
        ("reads", 100, 0.1),
        ("writes", 100, -0.2),
    ]
    assert {row["source"] for row in rows[2:]} == {IOCOST} and len(rows) == 6
    for args, says in ((("--published", "nvme-ssd"), "leave out the rest"), (("nvme-ssd",), "Missing argument 'TRACE'")):
        status, _, said = run(capfd, "validate", *args)
        assert status == 2 and says in said
