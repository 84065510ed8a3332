# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The simulator and a kernel in the lab on the same fio jobs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command import run

from headwaiter.base.errors import Problem
from headwaiter.drives.choose import open_drive
from headwaiter.engine.policy_tables import Setting
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task, simulate
from headwaiter.fio import load_jobs
from headwaiter.lab import agree
from headwaiter.lab.agreement import failures, summary
from headwaiter.lab.host import source_folder
from headwaiter.lab.schema import JobComparison
from headwaiter.study.results import latency

MIXED = """[global]
filename=/dev/sda
direct=1
size=1g
offset_increment=3g

[streams]
rw=read
bs=32k
io_size=24m
numjobs=3

[random]
rw=randread
bs=8k
offset=20g
number_ios=400
"""


WAITS = """
[global]
filename=/dev/sda
ioengine=psync
direct=1
runtime=5
time_based
[stream]
rw=read
bs=16k
size=1g
offset_increment=10g
numjobs=2
thinktime=7500
thinktime_blocks=4
[random]
rw=randread
bs=4k
offset=40g
size=8g
thinktime=20000
"""
CONFIG = b"history 0 5\nclasses 0 2\nspatial 0 70\n1024 0\ntemporal 0 30\n50000 0\ninterval 1 2000\n10000"


@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_simulator_and_kernel_agree(tmp_path: Path) -> None:
    """Throughput within 3%, p99 within 10%. Each of these schedulers has one of two jobs; `lab agree` has all of both."""
    path = tmp_path / "mixed.fio"
    path.write_text(MIXED)
    readers, mixed = agree.reading(4, random=False, io_size="104000k"), agree.job_of_file(path)
    rows = agree.compare("6.12", "barracuda-80g", ["as", "mq-deadline", "bfq"], [readers], lambda text: None)
    rows += agree.compare("6.12", "barracuda-80g", ["deadline", "cfq", "none"], [mixed], lambda text: None)
    assert len(rows) == 6
    assert [row for row in rows if not row.agree] == []


@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_processes_share_the_page_cache_as_in_the_kernel() -> None:
    """Readers of one file find what the others have read, and who reads behind its own writes what it wrote."""
    job = agree.job_of_file(source_folder() / "lab" / "jobs" / "shared-file.fio")
    rows = agree.compare("6.12", "barracuda-80g", ["none", "mq-deadline"], [job], lambda text: None)
    assert [row for row in rows if not row.agree] == []


@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_fitted_waits_are_the_same_in_the_kernel(tmp_path: Path) -> None:
    """A loaded configuration: as many waits are met and fail, within 3% or two, and they are not as many as with `as`."""
    path = tmp_path / "waits.fio"
    path.write_text(WAITS)
    rows_of = find("was").tables["config"].parse("here", CONFIG)
    settings: dict[str, dict[str, Setting]] = {"was": {"cooperation": 1, "config": rows_of}, "as": {"cooperation": 1}}
    job = agree.job_of_file(path)
    was, usual = agree.compare("6.12", "barracuda-80g", ["was", "as"], [job], lambda text: None, settings=settings)
    for row in (was, usual):
        assert row.agree and row.lab_met is not None and row.lab_failed is not None
        assert row.sim_met == pytest.approx(row.lab_met, rel=0.03, abs=2)
        assert row.sim_failed == pytest.approx(row.lab_failed, rel=0.03, abs=2)
    assert was.lab_met is not None and usual.lab_met is not None and was.lab_met > 1.2 * usual.lab_met
    assert was.lab_failed is not None and usual.lab_failed is not None and was.lab_failed < 0.5 * usual.lab_failed


def test_waits_that_the_guest_notes() -> None:
    text = "A_S 7\nA_F 3\n101 5000000\n100 4200000\ntick 4000000\n"
    assert agree.lab_waits(text) == (7, 3) and agree.lab_waits("100 5000000\n") is None
    assert agree.lab_starts(text) == (4200000 - agree.CALL_NS, 5000000 - agree.CALL_NS)
    lab, sim = agree.ComparedFigures(1.0, 1.0, (7, 3)), agree.Simulated((agree.ComparedFigures(1.0, 1.0, (8, 2)),))
    found = agree.row("6.12", "barracuda-80g", "hw-was", "j", [lab], sim)
    assert (found.lab_met, found.lab_failed, found.sim_met, found.sim_failed) == (7, 3, 8, 2)


def test_who_begins_has_the_processor_before_its_first_io(tmp_path: Path) -> None:
    """A process that keeps the only tag does not get it again while another one begins, which takes it then."""
    path = tmp_path / "j.fio"
    path.write_text(
        "[global]\nfilename=/dev/sda\ndirect=1\nrw=read\nbs=4k\nnumber_ios=400\nsize=2m\n[hog]\n[late]\nstartdelay=10ms\n"
    )
    load = load_jobs(path, 1 << 24)
    options = Options(record=True, one_processor=True, nr_requests=1, pull_ahead=True, turnaround_ns=10_000)
    waits = []
    for starts in ((1_000_000, 11_000_000), (1_000_000, 1_100_000)):
        began = agree.start_as_measured(load, starts)
        run = simulate("none", ConstantDrive(100_000), began, options=options)
        first = int(np.flatnonzero(run.rows.task == 1)[0])
        waits.append(int(run.rows.complete_ns[first] - run.rows.issue_ns[first]))
        assert run.rows.issue_ns[first] == starts[1]
    assert waits[0] == 10_000 + 100_000, "at once"
    together = [agree.start_as_measured(load, (5_000_000, 5_300_000)).jobs[i].fields["startup_ns"] for i in (0, 1)]
    assert together == [agree.STARTUP_NS, 300_000 - agree.SUBMIT_NS], "the processor cannot be had before"


def test_what_cannot_be_set_in_the_lab(capfd: pytest.CaptureFixture[str]) -> None:
    """Tunables of the kernel's own schedulers have other names there; before a guest boots."""
    for given, why in (
        ("mq-deadline.read_expire=100", "lab agree: --set: mq-deadline is the kernel's own in the lab, with tunables of its own"),
        ("as.cooperation=1", "--set as.cooperation=1: as is not among the schedulers compared"),
    ):
        status, out, err = run(capfd, "lab", "agree", "-s", "mq-deadline", "--set", given, "-k", "no-such-series")
        assert (status, out, err) == (2, "", f"headwaiter: {why}\n")


def test_the_kernels_own_schedulers_follow_the_kernel() -> None:
    for scheduler in ("mq-deadline", "bfq"):
        assert [agree.as_in_kernel(scheduler, series) for series in ("6.1.0-50-cloud-amd64", "6.12.117", "7.2.12")] == [
            {"kernel": 0},
            {"kernel": 1},
            {"kernel": 1},
        ]
    assert agree.as_in_kernel("as", "6.1") == {}


def sim_of(rate: float, p99: float, low: float | None = None, high: float | None = None) -> agree.Simulated:
    ends = tuple(agree.ComparedFigures(end, p99) for end in (low, high) if end is not None)
    return agree.Simulated((agree.ComparedFigures(rate, p99),), ends)


def test_verdict() -> None:
    lab = agree.ComparedFigures(100.0, 10.0)
    for sim, verdict in (
        (sim_of(102.9, 10.9), True),
        (sim_of(97.1, 9.1), True),
        (sim_of(103.1, 10.0), False),
        (sim_of(96.9, 10.0), False),
        (sim_of(100.0, 11.1), False),
        (sim_of(100.0, 8.9), False),
        (sim_of(60.0, 50.0, 20.0, 99.0), True),  # the lab's throughput is in what was told
        (sim_of(60.0, 50.0, 20.0, 80.0), False),
        (sim_of(106.0, 10.0, 104.0, 107.0), False),  # no range: it spreads by less than 5%
    ):
        assert agree.row("6.12", "drive", "none", "job", [lab], sim).agree is verdict


def test_several_runs_in_the_lab() -> None:
    """The run in the middle is compared, as of the simulator's; they agree where their ranges overlap."""

    def found(*rates: float) -> JobComparison:
        labs = [agree.ComparedFigures(rate, float(p99)) for p99, rate in enumerate(rates, 1)]
        return agree.row("6.12", "drive", "as", "job", labs, sim_of(60.0, 5.0, 50.0, 70.0))

    row = found(90.0, 75.0, 80.0)
    assert (row.lab_mbps, row.lab_low_mbps, row.lab_high_mbps, row.lab_p99_ms) == (80.0, 75.0, 90.0, 3.0)
    assert (row.throughput_off_percent, row.agree) == (-25.0, False)
    assert found(80.0, 72.0, 90.0).agree, "within 3% of the range's end"
    assert found(40.0, 48.6, 30.0).agree and not found(40.0, 48.4, 30.0).agree
    assert found(40.0, 30.0, 100.0).lab_p99_ms == 1.0


@pytest.mark.parametrize("lab_runs", [1, 3])
def test_what_the_simulator_is_not_sure_of_runs_again_in_the_lab(monkeypatch: pytest.MonkeyPatch, lab_runs: int) -> None:
    """Each further run is simulated as it began."""
    boots: list[list[str]] = []
    began: list[tuple[str, int, int]] = []

    def in_lab(on: object, drive: str, name: str, jobs: list[agree.DiskJob], *_: object) -> dict[str, agree.LabRun]:
        boots.append([job.name for job in jobs])
        figures = {job.name: agree.ComparedFigures(100.0 + len(boots) * i, 10.0) for i, job in enumerate(jobs)}
        return {job.name: agree.LabRun(figures[job.name], (len(boots) * 10 + i,)) for i, job in enumerate(jobs)}

    def simulated(
        release: str, drive: str, name: str, job: agree.DiskJob, starts_ns: tuple[int, ...], runs: int, given: object
    ) -> agree.Simulated:
        began.append((job.name, starts_ns[0], runs))
        wide = job.name == "wide" and runs
        own = agree.ComparedFigures(100.0 - starts_ns[0], 10.0)
        return agree.Simulated((own,), (agree.ComparedFigures(8.0, 10.0),) if wide else ())

    monkeypatch.setattr(agree, "in_lab", in_lab)
    monkeypatch.setattr(agree, "simulated", simulated)
    on = SimpleNamespace(release="6.12.1")
    monkeypatch.setattr(agree, "kernel", lambda *_: on)
    jobs = [agree.DiskJob("sure", agree.JOBS[0].text), agree.DiskJob("wide", agree.JOBS[0].text)]
    sure, wide = agree.compare("6.12", "barracuda-80g", ["as"], jobs, lambda text: None, 8, lab_runs=lab_runs)
    assert (sure.lab_mbps, sure.lab_low_mbps, sure.lab_high_mbps, sure.range) == (100.0, None, None, False)
    assert (wide.job, wide.range) == ("wide", True)
    first = [("sure", 10, 8), ("wide", 11, 8)]
    if lab_runs == 1:
        assert boots == [["sure", "wide"]] and began == first and wide.lab_high_mbps is None
    else:
        assert boots == [["sure", "wide"], ["wide.2", "wide.3"]] and began == [*first, ("wide", 20, 0), ("wide", 21, 0)]
        assert (wide.lab_low_mbps, wide.lab_mbps, wide.lab_high_mbps) == (100.0, 101.0, 102.0)
        assert (wide.sim_mbps, wide.sim_low_mbps, wide.sim_high_mbps) == (80.0, 8.0, 89.0), "the middle one of 89, 80 and 79"
        assert wide.sim_middle_mbps == 80.0, "of these and 8, that above the middle"


def test_only_what_may_be_the_best_is_in_doubt() -> None:
    def trial(name: str, lab: float, sim: agree.Simulated) -> agree.JobTrial:
        return agree.JobTrial(name, agree.JOBS[0], [agree.ComparedFigures(lab, 1.0)], sim)

    best = trial("best", 100.0, sim_of(100.0, 1.0))
    near = trial("near", 50.0, sim_of(60.0, 1.0, 50.0, 95.0))
    far = trial("far", 94.9, sim_of(60.0, 1.0, 50.0, 94.9))
    lucky = trial("lucky", 95.0, sim_of(60.0, 1.0, 50.0, 70.0))
    assert agree.in_doubt([best, near, far, lucky]) == [near, lucky]
    assert agree.in_doubt([far]) == [far], "alone it is the best"


def test_summary_of_many() -> None:
    lab = agree.ComparedFigures(100.0, 10.0)
    rows = [
        agree.row("6.12", "drive", "as", "mixed-1", [lab], sim_of(101.0, 10.0)),
        agree.row("6.12", "drive", "none", "mixed-1", [agree.ComparedFigures(50.0, 10.0)], sim_of(52.0, 10.0)),
        agree.row("6.12", "drive", "as", "mixed-2", [agree.ComparedFigures(40.0, 10.0)], sim_of(80.0, 10.0, 70.0, 90.0)),
        agree.row("6.12", "drive", "none", "mixed-2", [lab], sim_of(65.0, 10.0)),
    ]
    found = summary(rows)
    assert [w.right for w in found.winners] == [True, False]
    assert found.winners[1].behind_percent == 60.0
    rows[2] = agree.row("6.12", "drive", "as", "mixed-2", [agree.ComparedFigures(40.0, 10.0)], sim_of(60.0, 10.0, 30.0, 90.0))
    assert summary(rows).winners[1].simulator == "none", "not the one with the better end of a range"
    whole = found.deviation_percent[-1]
    assert (whole.comparisons, whole.median, whole.largest) == (4, 19.5, 100.0)
    assert (whole.ranges, whole.untold) == (1, 1)
    assert not found.holds
    assert [row.job for row in failures(rows)] == ["mixed-1", "mixed-2"]
    assert summary(rows[:1]).holds


def comparison(job: str, scheduler: str, lab_mbps: float, sim_mbps: float) -> JobComparison:
    return agree.row("6.12", "drive", scheduler, job, [agree.ComparedFigures(lab_mbps, 10.0)], sim_of(sim_mbps, 10.0))


def test_random_jobs_go_round_kernels_and_drives(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Each once: two kernels and two drives have a turn each, and the first of them another."""
    seen: list[Any] = []

    def compare(series: str, drive: str, chosen: Any, jobs: Any, say: Any, seeds: int, *more: Any) -> list[JobComparison]:
        seen.append((series, drive, [job.name for job in jobs], chosen, seeds, *more))
        return [comparison(job.name, "as", 100.0, 101.0) for job in jobs]

    monkeypatch.setattr("headwaiter.cli.lab.compare", compare)
    how = (
        "-k",
        "6.1",
        "-k",
        "6.12",
        "-d",
        "barracuda-80g",
        "-d",
        "maxtor-20g",
        "-s",
        "as,none",
        "--seeds",
        "3",
        "--lab-runs",
        "2",
    )
    status, out, _ = run(capfd, "lab", "agree", "--random", "5", "--seed", "70", *how, "--json")
    document = json.loads(out)
    assert status == 0 and document["seed"] == 70 and len(document["results"]) == 5
    places = [("6.1", "barracuda-80g"), ("6.1", "maxtor-20g"), ("6.12", "barracuda-80g"), ("6.12", "maxtor-20g")]
    jobs = [["mixed-70", "mixed-74"], ["mixed-71"], ["mixed-72"], ["mixed-73"]]
    assert seen == [(*place, names, ["as", "none"], 3, {}, 2) for place, names in zip(places, jobs, strict=True)]


@pytest.mark.parametrize(
    ("sim_mbps", "words", "status"),
    [(101.0, (), 0), (200.0, (), 1), (101.0, ("--random", "1"), 0), (200.0, ("--random", "1"), 1)],
)
@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_the_status_says_whether_they_agree(
    sim_mbps: float,
    words: tuple[str, ...],
    status: int,
    json_too: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("headwaiter.cli.lab.compare", lambda *_: [comparison("a", "as", 100.0, sim_mbps)])
    found, out, err = run(capfd, "lab", "agree", "-k", "6.12", "-d", "barracuda-80g", *words, *json_too)
    assert found == status and out and not err


def test_random_jobs_are_drawn_from_their_seed_and_can_be_run(tmp_path: Path) -> None:
    sectors = open_drive("barracuda-80g").sectors
    texts = [agree.mixed(seed, "barracuda-80g").text for seed in range(40)]
    assert texts == [agree.mixed(seed, "barracuda-80g").text for seed in range(40)]
    assert len(set(texts)) == 40
    kinds: set[str] = set()
    for seed, text in enumerate(texts):
        path = tmp_path / f"{seed}.fio"
        path.write_text(text)
        assert agree.job_of_file(path).text == text
        load = load_jobs(path, sectors)
        assert 1 <= len(load.jobs) <= 12
        kinds |= {line for line in text.splitlines() if line.startswith(("rw=", "direct=", "ioengine="))}
    assert {"rw=read", "rw=randread", "rw=write", "rw=randwrite", "rw=randrw", "direct=0", "direct=1", "ioengine=libaio"} <= kinds


@pytest.mark.thorough
@pytest.mark.parametrize("drive", ["barracuda-80g", "wd-re-4tb", "maxtor-20g"])
def test_random_jobs_stay_on_the_drive(tmp_path: Path, drive: str) -> None:
    """Seed 711 had four processes step beyond the end of the first."""
    sectors = open_drive(drive).sectors
    path = tmp_path / "mixed.fio"
    for seed in range(500, 1000):
        path.write_text(agree.mixed(seed, drive).text)
        load_jobs(path, sectors)


def test_a_job_that_leaves_the_drive_is_refused_before_anything_runs() -> None:
    job = agree.DiskJob("far", "[far]\nfilename=/dev/sda\nrw=read\ndirect=1\noffset=1t\nsize=1m\n")
    with pytest.raises(Problem, match="leaves the drive"):
        agree.compare("no-such-series", "barracuda-80g", ["as"], [job], lambda line: None)


def test_figures_of_fio() -> None:
    """What each process gets while it runs, together; the 99th percentile of all their I/Os."""

    def job(io_bytes: int, runtime: int, bins: dict[str, int]) -> dict[str, object]:
        return {
            "read": {"io_bytes": io_bytes, "runtime": runtime, "lat_ns": {"bins": bins}},
            "write": {"io_bytes": 0, "runtime": 0},
        }

    slow = job(5_000_000, 2000, {"2000000": 39, "9000000": 1})
    found = agree.lab_figures({"jobs": [job(3_000_000, 1000, {"1000000": 60}), slow]})
    assert found.throughput_mbps == pytest.approx(3.0 + 2.5)
    assert found.p99_ms == pytest.approx(2.0)
    alone = np.repeat([1_000_000, 2_000_000, 9_000_000], [60, 39, 1])
    n, zeros = len(alone), np.zeros(len(alone), np.int64)
    ours = Forest(
        [Task(0, "t", 0)],
        np.arange(n) * 10_000_000,
        zeros - 1,
        zeros,
        zeros.astype(np.uint32),
        zeros.astype(np.uint8),
        zeros.astype(np.uint8),
        zeros.astype(np.uint64),
        zeros.astype(np.uint32) + 8,
        zeros.astype(np.uint16),
        alone,
    )
    assert latency(simulate("noop", ConstantDrive(1), ours)).p99 == found.p99_ms


def test_first_ios_are_noted_in_order_of_birth_and_counted_from_a_tick() -> None:
    noted = "1000 2364346000\n999 2363967000\n1001 2364680000\ntick 30748001000\n"
    at = [2_363_966_000, 2_364_345_000, 2_364_679_000]
    assert agree.lab_starts(noted) == tuple(ns - agree.CALL_NS for ns in at)
    with pytest.raises(Problem, match="start of fio"):
        agree.lab_starts("tick 30748001000\n")


def test_processes_begin_as_measured_unless_they_wait_for_others(tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text("""[global]
filename=/dev/sda
direct=1
rw=read
bs=64k
number_ios=3

[late]
startdelay=2

[first]
numjobs=2

[unmeasured]
startdelay=5

[behind]
stonewall
""")
    load = load_jobs(path, 1 << 24)
    starts = (10_001_000_000, 10_002_000_000, 12_003_000_000)  # first.0, first.1, late
    began = agree.start_as_measured(load, starts)
    fields = [job.fields for job in began.jobs]
    assert [f.get("startup_ns", 0) for f in fields] == [agree.STARTUP_NS] * 3 + [0, 0]
    assert [f["start_min_ns"] + f.get("startup_ns", 0) for f in fields] == [*starts[2:], *starts[:2], 15_001_000_000, starts[0]]
    warm = agree.after_scatter("barracuda-80g", starts)
    drive = open_drive("barracuda-80g")
    assert warm == (9_001_000_000, (drive.sectors // 2048 - 64) * 2048, 128)
    run = simulate("noop", drive, began, options=Options(record=True, warm=warm, one_processor=True))
    first_ns = [int(run.rows.issue_ns[run.rows.task == task].min()) for task in range(5)]
    assert first_ns[:4] == [*starts[2:], *starts[:2], 15_001_000_000]
    # as in fio: of those that have begun
    assert first_ns[4] >= int(run.rows.complete_ns[(run.rows.task == 1) | (run.rows.task == 2)].max())
    assert run.totals["seeks"] <= len(run.rows.op), "what warmed the drive is not counted"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[a]\nsize=1m\ndirect=1\n", "filename=/dev/sda"),
        ("[a]\nfilename=/dev/sda\nsize=1m\n", "invalidate=0"),
        ("[a]\nfilename=/dev/sda:/dev/sdb\nsize=1m\ndirect=1\n", "filename=/dev/sda"),
    ],
)
def test_jobs_that_cannot_be_compared_are_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "job.fio"
    path.write_text(text)
    with pytest.raises(Problem, match=why):
        agree.job_of_file(path)


def test_a_job_file_is_run_on_the_labs_disk(tmp_path: Path) -> None:
    path = tmp_path / "mine.fio"
    path.write_text("[a]\n filename = /dev/nvme0n1\ndirect=1\nsize=1m\n")
    assert agree.job_of_file(path) == agree.DiskJob("mine", "[a]\n filename =/dev/sda\ndirect=1\nsize=1m\n")
