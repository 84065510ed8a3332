# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The figures of `lab agree`, on runs made by hand: what fio said, what the simulator is asked, deviations, winners, bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from command import run
from handmade import Row, latencies_of, printed, tallies_of
from jobload import options_of

from headwaiter.cli import lab
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import JobTotals, Options, Outcome, Task
from headwaiter.fio.mixed import mixed_job
from headwaiter.lab import agree
from headwaiter.lab.agreement import broken_bounds, distribution, failures, summary, winners
from headwaiter.lab.schema import JobComparison

MS = 1_000_000


# --- fio's output ---


def way(io_bytes: int = 0, runtime: int = 0, **bins: int) -> dict[str, Any]:
    return {"io_bytes": io_bytes, "runtime": runtime, "lat_ns": {"bins": {ns.lstrip("n"): n for ns, n in bins.items()}}}


def test_reads_and_writes_of_all_processes_count() -> None:
    """3 MB read and 1 written in 2 s, 5 MB written in 4 s. Of 200 I/Os, 198 take up to 5 ms, though 180 take up to 1 ms."""
    fio = {
        "jobs": [
            {"read": way(3_000_000, 1500, n1000000=100, n2000000=10), "write": way(1_000_000, 2000, n1000000=20)},
            {"read": way(), "write": way(5_000_000, 4000, n1000000=60, n5000000=8, n9000000=2)},
        ]
    }
    found = agree.lab_figures(fio)
    assert (found.throughput_mbps, found.p99_ms) == pytest.approx((2.0 + 1.25, 5.0))


def test_births_are_in_order_of_their_numbers() -> None:
    assert agree.lab_starts("1000 9000000\n99 8010000\ntick 4001000\n") == (
        8_010_000 - agree.CALL_NS - 1000,
        9_000_000 - agree.CALL_NS - 1000,
    )


# --- what the simulator is asked ---


def fake(rates: tuple[float, ...] = (2.0, 0.5)) -> Outcome:
    """1000 I/Os of 1 to 1000 ms, the quickest last, that begin at 50 ms; for each rate (MB/s) a process that works for 100 ms."""
    rows: list[Row] = [(0, 0, 50.0, 50.0 + ms, 8) for ms in range(1000, 0, -1)]
    tallies = tallies_of(rows)
    jobs = [JobTotals(10 * MS, 110 * MS, (1, 1), (round(rate * 80_000), round(rate * 20_000))) for rate in rates]
    return Outcome(
        "noop", {}, "d", [Task(1, "t", 0)], tallies, latencies_of(rows, tallies), {"a_success": 7, "a_fail": 3}, jobs=jobs
    )


JOB = agree.DiskJob("j", "[a]\nfilename=/dev/sda\ndirect=1\nrw=read\nsize=1m\n")


@pytest.mark.parametrize(
    ("drive", "scheduler", "limit", "wbt", "kernels_own"),
    [
        ("barracuda-80g", "none", 1, 2, True),
        ("barracuda-80g", "as", 64, 2, False),
        ("wd-re-4tb", "none", 32, 64, True),
        ("wd-re-4tb", "mq-deadline", 64, 64, True),
        ("wd-re-4tb", "bfq", 64, 64, True),
        ("wd-re-4tb", "cfq-slice", 64, 64, False),
    ],
)
def test_a_run_as_in_the_lab(
    monkeypatch: pytest.MonkeyPatch, drive: str, scheduler: str, limit: int, wbt: int, kernels_own: bool
) -> None:
    """As many requests as the device takes under none, else 64; to wbt two for each command."""
    asked: list[tuple[Any, Options]] = []

    def simulate(name: str, device: object, load: object, tunables: object, options: Options) -> Outcome:
        asked.append((tunables, options))
        return fake()

    monkeypatch.setattr(agree, "simulate", simulate)
    found = agree.simulated("6.12.3", drive, scheduler, JOB, (10**9,), 0)
    assert (found.figures.throughput_mbps, found.low_mbps, found.high_mbps) == pytest.approx((2.5, 2.5, 2.5))
    assert found.figures.p99_ms == 990.0
    ((tunables, options),) = asked
    assert (options.nr_requests, options.wbt_depth, options.pull_ahead) == (limit, wbt, kernels_own)
    # The disk of 4 TB has an odd number of 2 KiB, so that the page cache's blocks on it are no larger.
    segments, dirty_ns = (64, 6_200) if drive == "wd-re-4tb" else (128, 4_900)
    assert (options.max_segments, options.one_processor, options.join_arriving) == (segments, True, True)
    assert options.dirty_page_ns == dirty_ns
    # fio without its statistics of the disk, and the scheduler's own time beyond mq-deadline's.
    own = -1_600 + {"none": -1_540, "bfq": 2_860, "cfq-slice": 370}.get(scheduler, 0)
    assert (options.turnaround_ns, options.dispatch_ns) == (MEASURED.turnaround.ns + own, MEASURED.dispatch.ns)
    assert (options.fetch_page_ns, options.restart_ns, options.pass_ns) == (3_400, 5_080, 1_250)
    assert options.warm is not None and options.warm[0] == 0
    assert tunables == ({"kernel": 1} if scheduler in ("mq-deadline", "bfq") else {})


@pytest.mark.parametrize(
    ("sectors", "block_bytes"), [(15579225043, 512), (8 * 125 + 2, 1024), (7965054540, 2048), (8, 4096), (1 << 33, 4096)]
)
def test_the_blocks_of_a_disks_page_cache(sectors: int, block_bytes: int) -> None:
    assert agree.cache_block_bytes(sectors) == block_bytes


def test_the_unperturbed_run_and_what_small_changes_make_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(*rates: float) -> tuple[float, float, float]:
        outcomes, seen = iter(rates), []

        def simulate(name: str, device: object, load: object, tunables: object, options: Options) -> Outcome:
            seen.append(options.turnaround_ns)
            return fake((next(outcomes),))

        monkeypatch.setattr(agree, "simulate", simulate)
        found = agree.simulated("6.12", "barracuda-80g", "as", JOB, (0,), len(rates) - 1)
        assert len(set(seen)) == len(rates), "each run with other processor times"
        return found.figures.throughput_mbps, found.low_mbps, found.high_mbps

    assert ran(10.0, 10.2, 9.9) == pytest.approx((10.0, 9.9, 10.2))
    assert ran(10.0, 30.0, 20.0, 5.0, 40.0) == pytest.approx((10.0, 5.0, 40.0))


# --- a comparison ---


def test_a_row_says_which_figure_is_whose() -> None:
    sim = agree.Simulated(
        (agree.ComparedFigures(44.0, 15.0),), (agree.ComparedFigures(42.5, 1.0), agree.ComparedFigures(45.25, 2.0))
    )
    labs = [agree.ComparedFigures(40.0, 20.0), agree.ComparedFigures(30.0, 1.0), agree.ComparedFigures(41.0, 2.0)]
    assert printed(agree.row("6.12", "/x/drive.toml", "hw-as", "job", labs, sim)) == {
        "kernel": "6.12", "drive": "drive", "scheduler": "hw-as", "job": "job", "lab_MBps": 40.0, "sim_MBps": 44.0,
        "throughput_off_percent": 10.0, "sim_low_MBps": 42.5, "sim_high_MBps": 45.25, "range": True, "sim_middle_MBps": 44.0,
        "lab_low_MBps": 30.0, "lab_high_MBps": 41.0, "lab_p99_ms": 20.0,
        "sim_p99_ms": 15.0, "p99_off_percent": -25.0, "sim_p99_low_ms": 1.0, "sim_p99_high_ms": 15.0, "p99_range": True,
        "agree": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rates", "tails", "lab_tails", "agrees"),
    [
        ((100, 100), (10, 10), (10.9,), True),
        ((100, 100), (10, 10), (11.5,), False),  # off by 13%, and told as certain
        ((100, 100), (10, 14), (15.3,), True),  # beyond its range by less than a tenth
        ((100, 100), (10, 14), (15.7,), False),
        ((100, 100), (10, 14), (15.7, 15.7, 13.0), True),  # one of the lab's lies in it
        ((100, 100), (10, 8), (7.3,), True),
        ((100, 100), (10, 8), (7.1,), False),
        ((104, 104), (10, 14), (10.0,), False),  # throughput is off by 4%, and told as certain
    ],
)
def test_a_99th_percentile_agrees_by_its_figure_or_its_range(
    rates: tuple[float, float], tails: tuple[float, float], lab_tails: tuple[float, ...], agrees: bool
) -> None:
    own, other = (agree.ComparedFigures(*each) for each in zip(rates, tails, strict=True))
    labs = [agree.ComparedFigures(100.0, tail) for tail in lab_tails]
    found = agree.row("6.12", "d", "as", "job", labs, agree.Simulated((own,), (other,)))
    assert found.agree is agrees
    assert found.p99_range is (tails[0] != tails[1])


def test_on_flash_the_processor_is_busy_while_a_request_is_in_the_drive(monkeypatch: pytest.MonkeyPatch) -> None:
    """More under a scheduler; and on 6.1 only under one does a request wait longer for its way to the drive."""
    asked: list[Options] = []

    def simulate(name: str, device: object, load: object, tunables: object, options: Options) -> Outcome:
        asked.append(options)
        return fake()

    monkeypatch.setattr(agree, "simulate", simulate)
    for drive in ("nvme-ssd", "barracuda-80g"):
        for scheduler in ("none", "mq-deadline"):
            agree.simulated("6.1.0", drive, scheduler, JOB, (10**9,), 0)
    assert [(o.meanwhile_ns, o.meanwhile_page_ns, o.switch_ns, o.dispatch_ns) for o in asked] == [
        (870, 430, 1_500, 3_000),
        (1_500, 430, 1_500, 6_000),
        (0, 0, 0, 6_000),
        (0, 0, 0, 6_000),
    ]


def row(
    job: str, scheduler: str = "as", off: float = 0.0, lab: float = 100.0, p99_off: float = 0.0, **more: Any
) -> JobComparison:
    given: dict[str, Any] = {"sim_low_mbps": lab, "sim_high_mbps": lab, "range": False, "agree": False}
    given |= {"sim_middle_mbps": lab * (1 + off / 100), "sim_p99_low_ms": 1.0, "sim_p99_high_ms": 1.0, "p99_range": False}
    given |= more
    return JobComparison(
        kernel="6.12",
        drive="d",
        scheduler=scheduler,
        job=job,
        lab_mbps=lab,
        sim_mbps=lab * (1 + off / 100),
        throughput_off_percent=off,
        lab_p99_ms=1.0,
        sim_p99_ms=1.0 + p99_off / 100,
        p99_off_percent=p99_off,
        **given,
    )


def test_the_distribution_is_of_deviations_without_sign() -> None:
    offs = [0, -2, 4, -6, 8, -10, 12, -14, 16, -18, 40]
    found = distribution("as", [row("j", off=off, range=off == 16) for off in offs])
    assert printed(found) == {
        "scheduler": "as",
        "comparisons": 11,
        "median": 10.0,
        "p75": 15.0,
        "p90": 18.0,
        "largest": 40.0,
        "p90_beyond": 18.0,
        "ranges": 1,
        "untold": 1,
        "p99_median": 0.0,
        "p99_p90": 0.0,
        "p99_p90_beyond": 0.0,
        "p99_ranges": 0,
        "p99_untold": 0,
    }
    tails = distribution("as", [row("j", p99_off=off, p99_range=off == -60) for off in (0, 10, -20, 30, -60, 51, -49)])
    assert (tails.p99_median, tails.p99_p90, tails.p99_ranges, tails.p99_untold) == (30.0, 54.6, 1, 1)
    told = distribution("as", [row("j", off=31, range=True), row("j", off=-30.5), row("j", off=29.9)])
    assert told.untold == 1, "what was told to be a range, and what is off by less than 30%, is not"


def test_a_range_is_off_by_what_lies_outside_of_it() -> None:
    def beyond(low: float, high: float, told: bool = True) -> float:
        tail: dict[str, Any] = {"p99_range": told, "sim_p99_low_ms": low / 100, "sim_p99_high_ms": high / 100}
        found = distribution("as", [row("j", off=50, p99_off=50, range=told, sim_low_mbps=low, sim_high_mbps=high, **tail)])
        assert found.p99_p90_beyond == pytest.approx(found.p90_beyond)
        return found.p90_beyond

    assert beyond(110.0, 160.0) == pytest.approx(10.0)
    assert beyond(60.0, 80.0) == pytest.approx(20.0)
    assert beyond(60.0, 180.0) == 0.0
    assert beyond(60.0, 180.0, told=False) == 50.0


def test_winners() -> None:
    """By throughput, in both: the simulator's of the run in the middle. To lose 5% by the simulator's is still right."""

    def found(*rows: JobComparison) -> list[tuple[str, str, float, bool]]:
        return [(w.simulator, w.lab, w.behind_percent, w.right) for w in winners(rows)]

    a, b = row("1", "a", lab=100.0, sim_low_mbps=99.0, sim_high_mbps=200.0), row("1", "b", off=6.0, lab=95.0, sim_low_mbps=90.0)
    assert found(a, b) == [("b", "a", 5.0, True)]
    assert found(a, replace(b, lab_mbps=94.9)) == [("b", "a", 5.1, False)]
    assert found(a, row("2", "b", lab=3.0)) == [("a", "a", 0.0, True), ("b", "b", 0.0, True)], "each job has its own"


def many(off: float, *others: JobComparison, right: int = 20) -> list[JobComparison]:
    """Twenty jobs under two schedulers; so many of them in which the simulator's winner is the lab's."""
    out = []
    for i in range(20):
        b = row(str(i), "b", -off, lab=50.0)
        out += [row(str(i), "a", off), b if i < right else replace(b, sim_middle_mbps=300.0)]
    return [*out, *others]


def test_the_bounds_that_must_hold() -> None:
    """19 winners of 20, a median of 2%, a 90th percentile of 10%, nothing off by more than 30% that was not told, and of 99th
    percentiles off by more than 50% one in 50.
    """
    assert summary(many(2.0)).holds and not summary(many(2.1)).holds
    assert summary(many(0.0, right=19)).holds and not summary(many(0.0, right=18)).holds
    assert summary(many(0.0, right=19)).winners_right == 19
    for far, holds in ((10.0, True), (10.5, False)):
        rows = [replace(r, throughput_off_percent=far) if i < 5 else r for i, r in enumerate(many(1.0))]
        assert summary(rows).holds is holds
    wild = row("0", "c", 31.0, lab=1.0, sim_low_mbps=1.0)
    assert not summary(many(0.0, wild)).holds and summary(many(0.0, replace(wild, range=True))).holds
    long = [row("0", "c", lab=1.0, p99_off=51.0, p99_range=told) for told in (False, True, True)]
    some = [row("0", "c", lab=1.0, p99_off=50.0)] * 7
    assert summary(many(0.0, *long, *some)).holds, "one of 50"
    assert not summary(many(0.0, *long, *some[1:])).holds
    assert broken_bounds(2.0, 10.0, 0, 0.02, 0.95) == []
    assert broken_bounds(1.0, 10.1, 1, 0.03, 0.94) == [
        "the 90th percentile of throughput's deviation is above 10%",
        "throughput is off by more than 30% and no range",
        "more than 2% of the 99th percentiles are untold",
        "the winner is wrong on more than 5% of the jobs",
    ]


def test_a_distribution_for_each_scheduler() -> None:
    table = summary([row("1", "a", 1.0), row("1", "b", -4.0), row("2", "a", 3.0)]).deviation_percent
    assert [(t.scheduler, t.comparisons, t.median) for t in table] == [("a", 2, 2.0), ("b", 1, 4.0), ("all", 3, 3.0)]


def test_failures_are_what_does_not_agree_and_is_off_by_more_than_the_bound() -> None:
    rows = [row("1", off=-3.5), row("2", off=2.5), row("3", off=50.0, agree=True), row("4", off=3.0)]
    assert [f.job for f in failures(rows)] == ["1"]
    assert printed(failures(rows)[0]) == {
        k: printed(rows[0])[k]
        for k in (
            "kernel",
            "drive",
            "scheduler",
            "job",
            "lab_MBps",
            "sim_MBps",
            "throughput_off_percent",
            "sim_low_MBps",
            "sim_high_MBps",
        )
    }


# --- random jobs ---


def test_random_jobs_stay_on_the_drive_and_do_a_block_a_second() -> None:
    """On a drive that holds their largest regions twelve times."""
    mib, several, paced = 12 * 4096 + 7, 0, 0
    for seed in range(400):
        for options in options_of(mixed_job(seed, mib << 20)):
            number, size = int(options.get("numjobs", 1)), int(options["size"].removesuffix("m"))
            step = int(options.get("offset_increment", "0m").removesuffix("m"))
            assert int(options["offset"].removesuffix("m")) + (number - 1) * step + size <= mib, (seed, options)
            several += number > 1 and step > 0
            if "rate" in options:
                assert int(options["rate"]) >= int(options["bs"].removesuffix("k")) << 10
                paced += 1
    assert several > 50 and paced > 10


# --- the command ---


def asked(monkeypatch: pytest.MonkeyPatch, *right: bool) -> list[tuple[str, str, list[str]]]:
    """What the command asks to be compared, each time: the kernel, the drive, the jobs; with results that agree or do not."""
    calls: list[tuple[str, str, list[str]]] = []

    def compare(kernel: str, drive: str, schedulers: list[str], jobs: list[agree.DiskJob], *_: object) -> list[JobComparison]:
        calls.append((kernel, drive, [job.name for job in jobs]))
        return [replace(row(job.name, agree=right[len(calls) - 1]), kernel=kernel) for job in jobs]

    monkeypatch.setattr(lab, "compare", compare)
    return calls


def test_random_jobs_go_round_the_kernels_and_drives(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Five jobs on two drives under one kernel: each job once."""
    calls = asked(monkeypatch, True, True)
    given = ("--random", 5, "--seed", 7, "-k", "6.12", "-d", "barracuda-80g", "-d", "wd-re-4tb")
    document = json.loads(run(capfd, "lab", "agree", *given, "--json")[1])
    assert calls == [
        ("6.12", "barracuda-80g", ["mixed-7", "mixed-9", "mixed-11"]),
        ("6.12", "wd-re-4tb", ["mixed-8", "mixed-10"]),
    ]
    assert len(document["results"]) == 5 and document["seed"] == 7


@pytest.mark.parametrize(("right", "status"), [((True, True), 0), ((True, False), 1)])
def test_the_status_tells_whether_all_jobs_agree(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], right: tuple[bool, bool], status: int
) -> None:
    calls = asked(monkeypatch, *right)
    assert run(capfd, "lab", "agree", "-k", "6.1", "-k", "6.12", "--job", "random-1")[0] == status
    assert calls == [(kernel, "barracuda-80g", ["random-1"]) for kernel in ("6.1", "6.12")]
