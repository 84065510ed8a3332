# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who is best, by what, and the sentence that says why: on results made by hand."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import good, told, write
from handmade import DISK, direction, printed, result

from headwaiter.engine.processor import MEASURED, Processor, Time, parse_time, processor_of, processor_of_series
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task
from headwaiter.fio import JobLoad
from headwaiter.fio.jobs import Job
from headwaiter.study import compare, ranges
from headwaiter.study.compare import RANKINGS, explain, rank, uncertain, without_processor
from headwaiter.study.perturb import perturbed
from headwaiter.study.ranges import runs_for, told_range, with_range
from headwaiter.study.results import processor_time
from headwaiter.study.schema import Anticipation, Criterion, Range, Result, Spread
from headwaiter.study.trial import Trial, measure, measure_all
from headwaiter.study.variants import Variant

MS = 1_000_000


def order(results: list[Result]) -> str:
    return " ".join(r.scheduler for r in results)


# --- ranking ---

FOUR = [
    result("a", 60, 3, 30, 100, elapsed_s=4, fairness_jain=0.5),
    result("b", 50, 5, 20, 300, elapsed_s=3, fairness_jain=0.9),
    result("c", 40, 4, 10, 200, elapsed_s=5, fairness_jain=0.7),
    result("d", 30, 6, 40, 50, elapsed_s=2, fairness_jain=0.6),
]


@pytest.mark.parametrize(
    ("by", "best_first"),
    [
        ("throughput", "a b c d"),
        ("elapsed", "d b a c"),
        ("latency", "a c b d"),
        ("p99", "c b a d"),
        ("max", "d a c b"),
        ("fairness", "b c d a"),
    ],
)
def test_each_criterion_ranks_by_its_own_figure(by: Criterion, best_first: str) -> None:
    assert rank(FOUR, by)[0] == by
    assert order(rank(FOUR, by)[1]) == order(rank(FOUR[::-1], by)[1]) == best_first
    assert set(RANKINGS) == {"progress", "throughput", "waited", "elapsed", "latency", "p99", "max", "fairness"}


def test_what_is_even_goes_by_latency_and_then_by_name() -> None:
    assert order(rank([result("a", mean=3), result("c", mean=2), result("b", mean=2)], "throughput")[1]) == "b c a"


def test_without_a_criterion_progress_decides_unless_timestamps_set_the_pace() -> None:
    rows = [result("a", 60, mean=1, progress_mbps=2.0), result("b", 30, mean=2, progress_mbps=3.0)]
    by, ranked = rank(rows, None)
    assert (by, order(ranked)) == ("progress", "b a")
    assert rank([rows[0], result("b", 30, mean=2)], None)[0] == "latency"


def test_latency_is_that_of_writes_where_there_are_no_reads() -> None:
    both = result("a", mean=5, p99=6, longest=7, write=direction(1, 2, 3))
    writes = result("b", read=None, write=direction(8, 9, 10))
    figures = (ranges.MEAN_LATENCY, ranges.P99_LATENCY, ranges.MAX_LATENCY)
    assert [[figure.of(r) for figure in figures] for r in (both, writes)] == [[5, 6, 7], [8, 9, 10]]
    assert ranges.MAX_LATENCY.of(result("c", read=None)) == 0.0
    assert [figure.of(FOUR[1]) for figure in (ranges.THROUGHPUT, ranges.ELAPSED, ranges.FAIRNESS)] == [50, 3, 0.9]
    assert ranges.FAIRNESS.of(result("c", fairness_jain=None)) == 0.0


# --- why ---


def because(best: dict[str, Any], last: dict[str, Any]) -> str:
    words = explain("throughput", [result("a", 20, **best), result("b", 10, **last)])
    head, _, why = words.partition(". a compared with b: ")
    assert head == "a is best, 2.0 times ahead of b by throughput"
    return why


def disk(**figures: Any) -> dict[str, Any]:
    return {"disk": dataclasses.replace(DISK, **figures)}


def test_reasons() -> None:
    waits = {"anticipation": Anticipation(9, 7, 2, 0, 0.0, 0.0, 0.0, 0.0)}
    assert because(disk(seeks=10) | waits, disk(seeks=40)) == (
        "it held the head for the same reader's next request 9 times (correctly in 7 cases), so it made 10 seeks where b made 40."
    )
    assert because(disk(seeks=10), disk(seeks=40)) == "its order of service took 10 seeks where b's took 40."
    assert because({"dispatched": 500}, {}) == "it merged the load into 500 requests, against 1000."
    assert because(disk(seek_s=0.2), disk(seek_s=0.5)) == "the disk spent 20% of the time seeking, against 50%."
    assert because(disk(seek_s=0.2, rotation_s=0.1), disk(seek_s=0.3, rotation_s=0.7)) == (
        "the disk spent 10% of the time waiting for the platter, against 70%."
    )
    assert because(disk(idle_s=0.25), disk(idle_s=0.75)) == "it left the disk idle for 0.25 s, against 0.75 s."
    # Nothing that is better: fewer waits without fewer seeks, as many requests, the same shares, the same idleness.
    for best, last in (
        (waits, {}),
        ({"dispatched": 1000}, {"dispatched": 900}),
        (disk(seek_s=0.5), disk(seek_s=0.2)),
        (disk(idle_s=0.01), disk(idle_s=0.02)),
        (disk(seeks=95), disk(seeks=100)),
    ):
        words = explain("throughput", [result("a", 20, **best), result("b", 10, **last)])
        assert words == "a is best, 2.0 times ahead of b by throughput.", "no empty reason"


def test_who_is_best_and_by_how_much() -> None:
    def said(*rates: float) -> str:
        return (
            explain("throughput", [result(name, rate) for name, rate in zip("abcde", rates, strict=False)])
            .split(". ")[0]
            .rstrip(".")
        )

    assert said(20, 16, 4) == "a is best, 25% ahead of b by throughput"
    assert said(20, 10.1, 4) == "a is best, 2.0 times ahead of b by throughput"
    assert said(20, 19.7, 10) == "a and b tie for best, 2.0 times ahead of c by throughput"
    assert said(20, 19.7, 19.61, 2) == "a, b and c tie for best, 10.0 times ahead of d by throughput"
    assert said(20, 19.5) == "a is best, 3% ahead of b by throughput", "2.6% is no longer even"
    assert said(20, 19.7) == "No significant difference: both are within 2% of each other by throughput"
    assert said(20, 19.9, 19.7) == "No significant difference: all 3 are within 2% of each other by throughput"
    assert said(20) == "Only a ran: there is nothing to compare"
    quick = explain("latency", [result("a", mean=2), result("b", mean=5)])
    assert quick.startswith("a is best, 2.5 times ahead of b by mean read latency.")
    nothing = "a is best, far ahead of b by 99th percentile of read latency."
    assert explain("p99", [result("a", p99=0), result("b", p99=5)]).startswith(nothing)
    assert said(20, 0) == "a is best, far ahead of b by throughput"


# --- doubt ---


def spread(name: str, figure: str, middle: float, low: float, high: float) -> Result:
    one = Spread(1.0, 1.0)
    found = dict.fromkeys(("throughput_mbps", "elapsed_s", "lat_mean_ms", "lat_p99_ms", "lat_max_ms", "fairness_jain"), one)
    key = {"throughput_mbps": "rate", "lat_p99_ms": "p99"}[figure]
    return result(name, range=Range(runs=9, **found | {figure: Spread(low, high)}), **{key: middle})


def test_doubt_is_of_the_figure_that_ranks() -> None:
    found = [spread("a", "lat_p99_ms", 5, 4, 9), spread("b", "lat_p99_ms", 8, 8, 8.1), spread("c", "lat_p99_ms", 20, 20, 20)]
    assert uncertain("p99", found) == (
        "Sensitive to timing (99th percentile of read latency, over 9 runs with small changes of it): a 4–9 ms."
    )
    assert uncertain("throughput", [result("a"), result("b")]) == ""
    apart = uncertain("throughput", [spread("a", "throughput_mbps", 20, 15, 25), spread("b", "throughput_mbps", 14, 13, 14.9)])
    assert apart.endswith("changes of it): a 15–25 MB/s; b 13–14.9 MB/s.")
    many = [spread(name, "throughput_mbps", 20, 15, 25) for name in "abcde"]
    assert uncertain("throughput", many).endswith("c 15–25 MB/s; and 2 more.")


def test_ranges() -> None:
    def entries(*rates: float) -> list[Result]:
        return [result("a", rate, mean=rate / 2) for rate in rates]

    def told(r: Result) -> Range:
        assert r.range
        return r.range

    nominal, *more = entries(10.0, 10.4, 9.8)
    r = with_range(nominal, more)
    assert (told(r).runs, told(r).throughput_mbps, told(r).lat_mean_ms) == (3, Spread(9.8, 10.4), Spread(4.9, 5.2))
    assert told_range(r) == Spread(9.8, 10.4) and r.throughput_mbps == 10.0, "6% of the middle one"
    assert told_range(with_range(result("a", 10.0), entries(10.4))) is None, "4%"
    alone = with_range(result("a", 9.0), entries(10.0, 11.0))
    assert (told(alone).throughput_mbps, alone.throughput_mbps) == (Spread(9.0, 11.0), 10.0)
    steady = with_range(result("a", 10.0), entries(10.3, 10.2, 10.1))
    assert steady.throughput_mbps == 10.0, "where nothing is uncertain the unperturbed run stands for itself"


def test_how_many_runs() -> None:
    assert [runs_for(issued, None) for issued in (0, 200_000, 200_001)] == [8, 8, 0]
    assert [runs_for(issued, asked) for issued, asked in ((10**6, 3), (1, 0))] == [3, 0]


# --- perturbation ---


def reader(think_ms: float, n: int = 50) -> Forest:
    """One task, one I/O after another."""
    ints = np.arange(n)
    return Forest([Task(1, "one", 0)], np.zeros(n, np.int64), ints - 1, np.full(n, think_ms * MS, np.int64),
                  np.zeros(n, np.uint32), np.zeros(n, np.uint8), np.ones(n, np.uint8), (ints * 8).astype(np.uint64),
                  np.full(n, 8, np.uint32), np.zeros(n, np.uint16))  # fmt: skip


PROCESSOR = ("turnaround_ns", "turnaround_page_ns", "dispatch_ns", "dispatch_page_ns", "copy_ns", "copy_page_ns")
PERTURBED = (*PROCESSOR, "dispatch_write_page_ns", "fetch_page_ns", "dirty_page_ns")


def test_processor_time_varies_by_a_fifth() -> None:
    options = Options(seed=5, **dict.fromkeys(PERTURBED, 1_000_000))  # type: ignore[arg-type]
    factors = []
    for number in range(1, 201):
        changed = perturbed(reader(1), options, number)[1]
        values = {getattr(changed, name) / 1e6 for name in PERTURBED}
        assert len(values) == 1, "all by the same factor"
        factors.append(values.pop())
    assert 0.8 <= min(factors) < 0.82 and 1.18 < max(factors) <= 1.2
    other = dataclasses.replace(options, seed=6)
    assert perturbed(reader(1), other, 1)[1].turnaround_ns != perturbed(reader(1), options, 1)[1].turnaround_ns


def test_starts_and_think_times_of_traces_vary() -> None:
    starts, thinks = [], []
    for number in range(1, 101):
        changed = perturbed(reader(10), Options(), number)[0]
        assert isinstance(changed, Forest)
        assert len(set(changed.time_ns.tolist())) == 1, "a task moves as a whole"
        starts.append(changed.time_ns[0] / MS)
        thinks += (changed.delay_ns / MS).tolist()
    assert 0 <= min(starts) < 8 and 22 < max(starts) < 30, "a turn of any platter and 10 ms"
    assert 9.5 <= min(thinks) < 9.55 and 10.45 < max(thinks) <= 10.5


def test_starts_and_think_times_of_jobs_vary() -> None:
    fields = {"think_ns": 10 * MS, "start_min_ns": 100 * MS, "start_max_ns": 300 * MS}
    load = JobLoad([Task(0, "a", 0), Task(1, "b", 1)], (Job(fields, ()), Job(fields, ())))
    starts, apart, thinks = [], [], []
    for number in range(1, 101):
        changed = perturbed(load, Options(), number)[0]
        assert isinstance(changed, JobLoad)
        jobs = changed.jobs
        assert all(job.fields["start_max_ns"] - job.fields["start_min_ns"] == 200 * MS for job in jobs)
        first, second = (job.fields["start_min_ns"] / MS - 100 for job in jobs)
        starts.append(first)
        apart.append(abs(first - second))
        thinks += [job.fields["think_ns"] / MS for job in jobs]
    assert 0 <= min(starts) < 8 and 22 < max(starts) < 30
    assert 7 < max(apart) < 10, "processes move by up to 10 ms against each other"
    assert 9.5 <= min(thinks) < 9.55 and 10.45 < max(thinks) <= 10.5


def test_perturbed_runs_are_runs_of_the_perturbed_load() -> None:
    """50 I/Os of 5 ms; think times of 10 ms between them, 5% more or less, average out over 49 of them."""

    def elapsed(runs: int) -> Spread:
        told = measure(Variant("noop", "noop"), ConstantDrive(5 * MS), reader(10), Options(), runs).result.range
        assert told and told.runs == runs + 1
        return told.elapsed_s

    many, once = elapsed(6), elapsed(1)
    assert 0.730 < many.low < many.high < 0.750, "0.740 s without perturbation"
    assert once.low < once.high, "the one perturbed run is perturbed"


# --- processor time ---


def test_times_go_where_they_belong() -> None:
    processor = Processor(turnaround=Time(1, 2), dispatch=Time(3, 4), copy=Time(5, 6))
    options = processor.apply(Options(seed=9))
    assert [getattr(options, name) for name in PROCESSOR] == [1, 2, 3, 4, 5, 6] and options.seed == 9
    assert processor_of(options) == processor
    assert Processor(Time(1500, 250), Time(3000), Time(4000, 600)).describe(Options()) == (
        "processor time, us: 1.5+0.25 per page before each direct I/O, 3 to the drive, 4+0.6 through the page cache"
    )
    options = dataclasses.replace(
        options, one_processor=True, dirty_page_ns=7, dispatch_write_page_ns=8, fetch_page_ns=9, restart_ns=10, pass_ns=11
    )
    assert printed(processor_time(options)) == {
        "turnaround_us": 0.001,
        "turnaround_page_us": 0.002,
        "dispatch_us": 0.003,
        "dispatch_page_us": 0.004,
        "dispatch_write_page_us": 0.008,
        "copy_us": 0.005,
        "copy_page_us": 0.006,
        "fetch_page_us": 0.009,
        "dirty_page_us": 0.007,
        "restart_us": 0.01,
        "pass_us": 0.011,
        "one_processor": True,
    }
    assert parse_time("x", "2.5+0.25") == Time(2500, 250)
    assert parse_time("x", "1000000") == Time(10**9)


def test_a_series_of_kernels_has_its_own_times() -> None:
    assert processor_of_series("6.12.117") == processor_of_series("7.2") == processor_of_series("6.10.1") == MEASURED
    assert processor_of_series("6.1.0-50-cloud-amd64").dispatch.ns == 2 * MEASURED.dispatch.ns


def trials(*results: Result) -> list[Trial]:
    return [Trial(Variant(r.scheduler, r.scheduler), r, (r,), None, None) for r in results]


def test_the_run_in_the_middle_counts() -> None:
    """By progress, where that is known; a run that is the exception is not shown."""
    every = [result("a", 10.0, progress_mbps=pace) for pace in (1.0, 9.0, 3.0)]
    assert with_range(every[0], every[1:]).progress_mbps == 3.0
    assert with_range(every[0], [dataclasses.replace(every[0], progress_mbps=1.04)]).progress_mbps == 1.0, "the first stands"


def test_a_trial_has_what_programs_did() -> None:
    drive, variant = ConstantDrive(MS), Variant("noop", "noop")
    load = Forest(
        tasks=(Task(1, "a", 0),), time_ns=np.zeros(1, np.int64), parent=np.full(1, -1), delay_ns=np.zeros(1, np.int64),
        task=np.zeros(1, np.uint32), op=np.zeros(1, np.uint8), flags=np.ones(1, np.uint8), sector=np.zeros(1, np.uint64),
        sectors=np.full(1, 8, np.uint32), ioprio=np.zeros(1, np.uint16),
    )  # fmt: skip
    found = measure(variant, drive, load, Options(), 4)
    assert len(found.runs) == 1 + 4 + 2 and found.waits and found.waits.waited_s == 0.001 and found.programs is None
    twice: dict[str, Any] = {
        name: np.repeat(getattr(load, name), 2) for name in ("time_ns", "task", "op", "flags", "sector", "sectors", "ioprio")
    }
    follows = Forest(load.tasks, parent=np.array([-1, 0]), delay_ns=np.array([0, MS]), **twice)
    found = measure(variant, drive, follows, Options(), 0)
    assert found.programs and found.programs.mbps.tolist() == [pytest.approx(2 * 8 * 512 / 3e6 * 1e3)], "3 ms, with think time"


def test_zero_processor_time_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = trials(result("a", 40.0), result("b", 22.0))
    monkeypatch.setattr(compare, "measure_all", lambda *args, **more: measured)
    found = trials(result("a", 10.0), result("b", 20.0))
    jobs = JobLoad((), ())
    none = [(one.variant, Options()) for one in found]
    (note,) = without_processor(found, ConstantDrive(MS), jobs, none)
    assert note.endswith("with the measured processor time, a's throughput changes by +300%, and a is best")
    assert without_processor(trials(result("a", 40.0), result("b", 22.5)), ConstantDrive(MS), jobs, none) == [], "2%"
    for given in (Options(turnaround_ns=1), Options(dispatch_ns=1)):
        assert without_processor(found, ConstantDrive(MS), jobs, [(one.variant, given) for one in found]) == []
    assert without_processor(found, ConstantDrive(MS), reader(1), none) == []


# --- the command ---

LOAD = "time_s,task,op,sync,sector,sectors,complete_s\n" + "".join(
    f"{0.006 * i:.6f},{t},R,1,{base + 8 * i},8,{0.006 * i + 0.005:.6f}\n"
    for i in range(12) for t, base in ((1, 0), (2, 20_000_000))
)  # fmt: skip


def test_every_scheduler_runs_in_the_order_given_with_its_own_tunables() -> None:
    names = ["noop", "as", "deadline"]
    variants = [Variant(name, name, {"antic_expire": 3} if name == "as" else {}) for name in names]
    each = [(variant, Options()) for variant in variants]
    results = [t.result for t in measure_all(each, ConstantDrive(5 * MS), reader(1), runs=0)]
    assert [r.scheduler for r in results] == names
    assert results[1].tunables["antic_expire"] == 3
    seen: dict[str, int] = {}
    measure_all(each[:2], ConstantDrive(5 * MS), reader(1), 0, lambda name, n: seen.update({name: n}))
    assert seen == {"noop": 50, "as": 50}


def test_the_command_ranks_by_what_is_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "two.csv", LOAD)
    args = ("compare", path, "-s", "noop, as,as-share,cfq-slice", "--seeds", 0, "--seed", 3)
    figure: dict[str, Callable[[Any], float]] = {
        "progress": lambda r: -r["progress_MBps"],
        "throughput": lambda r: -r["throughput_MBps"],
        "waited": lambda r: r["waited_s"],
        "elapsed": lambda r: r["elapsed_s"],
        "latency": lambda r: r["read"]["lat_ms"]["mean"],
        "p99": lambda r: r["read"]["lat_ms"]["p99"],
        "max": lambda r: r["read"]["lat_ms"]["max"],
        "fairness": lambda r: -r["fairness_jain"],
    }
    orders = set()
    for by, value in figure.items():
        d = told(capfd, *args, "--by", by)
        values = [value(r) for r in d["results"]]
        assert d["ranked_by"] == by and values == sorted(values) and len(set(values)) > 1, by
        orders.add(" ".join(r["scheduler"] for r in d["results"]))
    assert len(orders) > 1, "or any ranking would do"
    assert (d["workload"], d["drive"], d["seed"], d["replay"]) == ("two.csv", "barracuda-80g", 3, "closed")
    assert "range" not in d["results"][0]
    ranked = told(capfd, *args, "--by", "throughput")["results"]
    rows = list(csv.DictReader(io.StringIO(good(capfd, *args, "--by", "throughput", "--csv"))))
    assert [row["scheduler"] for row in rows] == [r["scheduler"] for r in ranked]
    assert [float(row["throughput_MBps"]) for row in rows] == [r["throughput_MBps"] for r in ranked]


def test_settings_of_one_scheduler_and_of_all(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "two.csv", LOAD)
    args = ("compare", path, "-s", "as,cas,noop", "-d", "constant:5", "--set", "antic_expire=4", "--set", "cas.antic_expire=0")
    found = {r["scheduler"]: r for r in told(capfd, *args, "--seeds", 1)["results"]}
    assert {name: found[name]["tunables"].get("antic_expire") for name in found} == {"as": 4, "cas": 0, "noop": None}
    assert {r["range"]["runs"] for r in found.values()} == {2}


def test_all_schedulers_have_as_many_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A job that ends after some time has another number of I/Os under each scheduler, here above and below the limit."""
    job = write(
        tmp_path / "x.fio", "[global]\ndirect=1\nruntime=1\ntime_based\nsize=1g\nbs=64k\n[a]\n[b]\nnumjobs=2\noffset=20g\n"
    )
    words = (job, "-d", "wd-re-4tb", "-s", "none,maitre")
    free = told(capfd, "compare", *words, "--seeds", "0")["results"]
    low, high = sorted(r["requests"] for r in free)
    assert high > low, "or nothing is tried here"
    monkeypatch.setattr("headwaiter.study.ranges.SHORT_IOS", (low + high) // 2)
    assert all("range" not in r for r in told(capfd, "compare", *words)["results"])
    monkeypatch.setattr("headwaiter.study.ranges.SHORT_IOS", high)
    assert [r["range"]["runs"] for r in told(capfd, "compare", *words)["results"]] == [9, 9]


def test_levers_have_as_many_runs_as_schedulers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With one command at a time in the device another number of I/Os gets through, here above the limit."""
    job = write(
        tmp_path / "x.fio", "[global]\ndirect=1\nruntime=1\ntime_based\nsize=1g\nbs=64k\n[a]\n[b]\nnumjobs=2\noffset=20g\n"
    )
    seen: list[int] = []

    def measured(*given: Any, whole: Any = measure_all) -> list[Trial]:
        found: list[Trial] = whole(*given)
        seen.extend(len(one.runs) for one in found)
        monkeypatch.setattr("headwaiter.study.ranges.SHORT_IOS", 1)
        return found

    monkeypatch.setattr("headwaiter.judge.levers.measure_all", measured)
    told(capfd, "compare", job, "-d", "wd-re-4tb", "-s", "mq-deadline,bfq")
    assert len(seen) > 2 and set(seen) == {1 + 8 + 4}
