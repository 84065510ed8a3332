# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Is it the drive that was recorded? Recordings of every bundled drive, made by its own model."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import good, run, told, write

import headwaiter
from headwaiter.base.errors import Problem
from headwaiter.drives import bundled
from headwaiter.drives.choose import of_device, open_drive
from headwaiter.drives.enlarge import enlarged
from headwaiter.drives.profile import find_drive
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import ConstantDrive, Options, simulate
from headwaiter.fio import load_jobs
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.drive_fit import at_drive, best_fit, choose_drive, doubt, drive_for, fit
from headwaiter.study.variants import Variant
from headwaiter.study.workload import Reading, read_trace, replay
from headwaiter.traces import Trace
from headwaiter.traces.making import make_trace

JOB = """[global]
filename=/dev/sda
direct=1
runtime=3
time_based
[stream]
rw=read
bs=128k
size=512m
thinktime=2000
[random]
rw=randread
bs=8k
size=8g
thinktime=5000
[writer]
rw=randwrite
bs=16k
size=1g
thinktime=20000
"""
CLASSES = {
    "disk": {"barracuda-80g", "cheetah-15k", "deskstar-75gxp", "maxtor-20g", "wd-re-4tb", "raid0-4x-barracuda-80g"}
    | {"nas-8tb", "helium-20tb", "smr-8tb"},
    "sata": {"sata-ssd", "samsung-860-evo"},
    "nvme": {"nvme-ssd", "samsung-980-pro", "samsung-970-pro", "lexar-nm790", "intel-p4510"},
    "volume": {"gp3", "gp2-100", "io2", "pd-balanced", "premium-v2"},
}


def recorded(folder: Path, name: str, scheduler: str = "mq-deadline") -> Path:
    """What a recorder would have written while the job ran on a drive."""
    job = write(folder / "job.fio", JOB)
    drive = open_drive(name)
    load = load_jobs(job, drive.sectors)
    rows = simulate(scheduler, drive, load, options=MEASURED.apply(Options(record=True, join_arriving=True))).rows
    columns = (rows.issue_ns, rows.task, rows.op, rows.sector, rows.sectors, rows.complete_ns)
    lines = [
        f"{at / 1e9:.9f},{task},{'RW'[op]},1,{sector},{sectors},{done / 1e9:.9f}\n"
        for at, task, op, sector, sectors, done in zip(*(c.tolist() for c in columns), strict=True)
    ]
    return write(folder / f"{name}.csv", "time_s,task,op,sync,sector,sectors,complete_s\n" + "".join(lines))


def at_work(name: str, scheduler: str) -> Trace:
    """A recording of the job on a drive that also tells when the drive was given each request."""
    drive = open_drive(name)
    load = load_jobs(Path("job.fio"), drive.sectors, JOB.encode())
    options = MEASURED.apply(Options(record=True, merging=False))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        rows = simulate(scheduler, drive, load, options=options, log=log).rows
        events = [line.split(",") for line in log.read_text().splitlines()[1:]]
    issue = np.full(len(rows.issue_ns), -1)
    for time, event, request, *_ in events:
        if event == "dispatch":
            issue[int(request)] = int(time)
    whole = np.flatnonzero((rows.complete_ns >= 0) & (issue >= 0))
    columns: dict[str, Any] = {name: getattr(rows, name)[whole] for name in ("op", "sector", "sectors", "complete_ns")}
    columns |= {"time_ns": rows.issue_ns[whole], "task_id": rows.task[whole], "issue_ns": issue[whole]}
    return make_trace(source="job", format="t", **columns)


@pytest.mark.parametrize("scheduler", ["none", "bfq", "cfq-slice"])
def test_what_the_drive_was_given_tells_of_the_drive_alone(scheduler: str) -> None:
    """Its times are the model's own, whatever scheduler was in force, known or not."""
    trace = at_work("barracuda-80g", scheduler)
    for known_as in ("noop", "none", "as"):
        itself = fit(trace, open_drive("barracuda-80g"), known_as)
        assert itself and itself.off < 1.05 and itself.distance < 1.1, (known_as, itself)
    found = best_fit(trace)
    assert found and found[0].name == "barracuda-80g"


def test_what_was_merged_is_one_request_to_the_drive() -> None:
    columns: dict[str, Any] = {
        "time_ns": [0, 1, 2, 3, 4, *range(100, 140)],
        "task_id": [1, 1, 2, 1, 3] + [1] * 40,
        "sector": [108, 100, 116, 500, 516, *range(1000, 1400, 10)],
        "sectors": [8] * 45,
        "op": [0] * 45,
        "complete_ns": [50, 50, 50, 90, 90, *range(105, 145)],
        "issue_ns": [10, 10, 10, 60, 60, *range(101, 141)],
    }
    arrays: dict[str, Any] = {name: np.array(column) for name, column in columns.items()}
    made = make_trace(source="t", format="t", **arrays)
    found = at_drive(made)
    assert found and len(found) == 43
    assert found.sector[:3].tolist() == [100, 500, 516] and found.sectors[:3].tolist() == [24, 8, 8]
    assert found.time_ns[:3].tolist() == [10, 60, 60] and found.complete_ns[:3].tolist() == [50, 90, 90]
    assert len(found.tasks) == 1 and found.tasks_known
    assert at_drive(replace(made, issue_ns=None)) is None
    assert made.issue_ns is not None
    few = np.where(np.arange(45) < 6, -1, made.issue_ns)
    assert at_drive(replace(made, issue_ns=few)) is None, "too little of it was recorded"


@pytest.mark.parametrize("name", list(bundled()))
def test_the_class_of_every_drive_is_found_in_its_own_recording(name: str, tmp_path: Path) -> None:
    for scheduler in ("mq-deadline", "bfq"):
        trace = read_trace(recorded(tmp_path, name, scheduler), Reading())
        itself = fit(trace, open_drive(name))
        assert itself and itself.off < 2, (scheduler, itself)
        found = best_fit(trace)
        assert found
        (kind,) = (members for members in CLASSES.values() if name in members)
        assert found[0].name in kind, (scheduler, found)
        if scheduler == "mq-deadline":
            assert doubt(itself, trace, open_drive(name)) == ("", False)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Samsung SSD 980 PRO 1TB", "samsung-980-pro"),
        ("SAMSUNG SSD 980 PRO with Heatsink 2TB", "samsung-980-pro"),
        ("Samsung SSD 980 1TB", None),
        ("ATA Samsung SSD 860", "samsung-860-evo"),
        ("ATA ST380013AS", "barracuda-80g"),
        ("SEAGATE ST3146855FC", "cheetah-15k"),
        ("INTEL SSDPE2KX020T8", "intel-p4510"),
        ("Amazon Elastic Block Store", None),
        ("ATA", None),
        ("", None),
    ],
)
def test_the_profile_of_a_device_by_what_the_kernel_calls_it(model: str, name: str | None) -> None:
    found = of_device(model)
    assert (found and found.name) == name


def test_the_recorded_device_is_taken_where_a_profile_has_its_name() -> None:
    """Also where another profile's times are nearer, and where the recording has no completions."""
    trace = at_work("nvme-ssd", "none")
    by_times, _ = choose_drive(trace, "r")
    assert by_times.name == "nvme-ssd"
    named = replace(trace, device_model="Samsung SSD 970 PRO 512GB")
    drive, note = choose_drive(named, "r")
    assert drive.name == "samsung-970-pro"
    assert "is the profile of the recorded 'Samsung SSD 970 PRO 512GB': recorded" in note
    drive, (note,) = drive_for(None, replace(named, complete_ns=np.full(len(named), -1), issue_ns=None), "r")
    assert drive.name.startswith("samsung-970-pro") and note.endswith("'Samsung SSD 970 PRO 512GB'")


def test_times_that_speak_against_the_name_win() -> None:
    """As of a disk that a controller's name hides."""
    trace = replace(at_work("barracuda-80g", "none"), device_model="Samsung SSD 980 PRO 1TB")
    drive, note = choose_drive(trace, "r")
    assert drive.name == "barracuda-80g"
    assert "barracuda-80g explains the recording best" in note
    assert "; samsung-980-pro, the profile of the recorded 'Samsung SSD 980 PRO 1TB', does not: recorded" in note


def test_a_disk_does_not_pass_for_an_ssd(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path, "sata-ssd")
    args = ("compare", path, "-s", "none,mq-deadline", "--seeds", 0)
    d = told(capfd, *args, "-d", "wd-re-4tb")
    assert d["answer"]["outcome"] == "wrong drive" and d["answer"]["margins"] == [] and d["fit"]["off"] > 2
    assert d["answer"]["text"].startswith("No ranking: this may be the wrong drive: recorded ")
    assert "choose another (--drive sata-ssd fits)" in d["answer"]["text"]
    anyway = told(capfd, *args, "-d", "wd-re-4tb", "--anyway")
    assert anyway["answer"]["outcome"] != "wrong drive" and anyway["answer"]["margins"]
    assert any("wrong drive" in note for note in anyway["notes"])
    right = told(capfd, *args, "-d", "sata-ssd")
    assert not any("wrong drive" in note for note in right["notes"]) and 1 <= right["fit"]["off"] < 1.3
    auto = told(capfd, *args, "-d", "auto")
    assert auto["drive"] == "sata-ssd" and any("--drive auto: sata-ssd explains the recording best" in n for n in auto["notes"])
    assert "sata-ssd" in good(capfd, "run", path, "-s", "none", "-d", "auto", "--seeds", 0)
    (line,) = (note for note in anyway["notes"] if "wrong drive" in note)
    assert line in told(capfd, "run", path, "-s", "none", "-d", "wd-re-4tb", "--seeds", 0)["notes"]
    assert not any("wrong drive" in n for n in told(capfd, "run", path, "-s", "none", "-d", "auto", "--seeds", 0)["notes"])


def test_the_same_from_python(tmp_path: Path) -> None:
    path = recorded(tmp_path, "sata-ssd")
    given: dict[str, Any] = {"schedulers": ["none", "mq-deadline"], "runs": 0}
    trace = headwaiter.read_trace(path)
    assert headwaiter.compare(path, "wd-re-4tb", **given).answer.outcome == "wrong drive"
    assert headwaiter.compare(trace, "wd-re-4tb", anyway=True, **given).answer.outcome != "wrong drive"
    for workload in (path, trace):
        found = headwaiter.compare(workload, "auto", **given)
        assert found.document.drive == "sata-ssd" and "--drive auto: sata-ssd explains" in " ".join(found.document.notes)
    assert headwaiter.run(trace, "none", "auto").document.drive == "sata-ssd"
    assert any("wrong drive" in note for note in headwaiter.run(path, "none", "wd-re-4tb").document.notes)
    with pytest.raises(Problem, match="needs a recording with completions"):
        headwaiter.compare("readers-2", "auto")


def test_auto_needs_completions(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = write(tmp_path / "job.fio", JOB)
    status, _, err = run(capfd, "compare", job, "-d", "auto")
    assert status == 2 and "needs a recording with completions" in err
    bare = "time_s,task,op,sync,sector,sectors\n" + "".join(f"{i / 100},1,R,1,{8 * i},8\n" for i in range(60))
    status, _, err = run(capfd, "compare", write(tmp_path / "bare.csv", bare), "-d", "auto")
    assert status == 2 and "needs a recording with completions" in err


def gaps(seconds: float) -> str:
    """One program that reads again and again, so long after the read before; nobody knows when it had completed."""
    return "time_s,task,op,sync,sector,sectors\n" + "".join(f"{i * seconds:.3f},1,R,1,{5000 * i},8\n" for i in range(40))


@pytest.mark.parametrize(
    ("options", "gap", "replay"), [((), 0.05, "closed"), ((), 5, "open"), (("--replay", "closed"), 5, "closed")]
)
def test_assumed_think_times_are_said_and_absurd_ones_refused(
    options: tuple[Any, ...], gap: float, replay: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    d = told(capfd, "run", write(tmp_path / "gaps.csv", gaps(gap)), "-s", "none", "--seeds", 0, *options)
    assert d["replay"] == replay
    assert any("completions were not recorded" in note for note in d["notes"])
    (assumed,) = (note for note in d["notes"] if "assumed to think" in note)
    ms = float(assumed.split(" think for ")[1].split()[0])
    assert 1000 * gap - 40 < ms < 1000 * gap
    assert any("replayed open" in note for note in d["notes"]) == (replay == "open")


def test_the_longer_a_drive_is_busy_the_slower_it_is(tmp_path: Path) -> None:
    """One at a time, 10 ms each, on a drive that takes 5; latency may differ by scheduling, and counts a quarter."""
    rows = "".join(f"{i * 0.02:.3f},1,R,1,{i * 1000},8,{i * 0.02 + 0.01:.3f}\n" for i in range(40))
    path = write(tmp_path / "slow.csv", f"time_s,task,op,sync,sector,sectors,complete_s\n{rows}")
    found = fit(read_trace(path, Reading()), ConstantDrive(5_000_000))
    assert found is not None and found.off == pytest.approx(2.0)
    assert (found.recorded_mean_ms, found.model_mean_ms) == pytest.approx((10.0, 5.0))


def test_runs_are_as_a_kernel_has_them() -> None:
    """Without a scheduler as many requests as the device takes; its own schedulers take one ahead, and modules do not."""

    def options(**given: Any) -> dict[str, Options]:
        """Return options for a device that takes 31 requests at once, on a host that takes 32."""
        conditions, drive = RunConditions(seed=7, **given), find_drive("wd-re-4tb")
        each = [Variant(name, name) for name in ("none", "mq-deadline", "bfq", "as", "cfq-slice")]
        return {variant.name: one for variant, one in conditions.runs(each, drive)}

    found = options(queue_depth=31)
    assert {name: one.nr_requests for name, one in found.items()} == {**dict.fromkeys(found, 64), "none": 31}
    assert [name for name, one in found.items() if one.pull_ahead] == ["none", "mq-deadline", "bfq"]
    assert {(one.seed, one.wbt_depth) for one in found.values()} == {(7, 62)}
    given = options(nr_requests=100)
    assert {name: one.nr_requests for name, one in given.items()} == {**dict.fromkeys(given, 100), "none": 32}
    assert not any(one.pull_ahead for one in options(pull_ahead=False).values())
    assert all(one.settled for one in found.values()) and not any(one.settled for one in options(settled=False).values())


def test_bfq_in_force_for_long_waits_for_readers_of_near_places(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """On a disk that takes one request. A bfq that has just been chosen doubts that while there are few at once."""
    job = write(
        tmp_path / "two.fio",
        "[global]\nrw=randread\nbs=64k\ndirect=1\nsize=256m\nruntime=4\ntime_based\n[a]\noffset=0\n[b]\noffset=60g\n",
    )
    words = ("run", job, "-s", "bfq", "--set", "low_latency=0", "-d", "barracuda-80g", "--seeds", "0", "--json")
    rates = [json.loads(good(capfd, *words, how))["results"][0]["throughput_MBps"] for how in ("--no-settled", "--settled")]
    assert rates[1] > 1.3 * rates[0]


def _recorded(reach: int, low_us: float, high_us: float, requests: int = 400) -> str:
    """Single random reads up to a sector, each of a service time between two."""
    draw = np.random.default_rng(5)
    lines = ["time_s,task,op,sync,sector,sectors,complete_s\n"]
    at = 0.0
    for k, place in enumerate(draw.integers(0, reach // 8, requests).tolist()):
        took = float(draw.uniform(low_us, high_us)) / 1e6
        lines.append(f"{at:.9f},1,R,1,{reach - 8 if k == 7 else 8 * place},8,{at + took:.9f}\n")
        at += took + 0.02
    return "".join(lines)


NVME = {"nvme-ssd", "samsung-980-pro", "samsung-970-pro", "lexar-nm790", "intel-p4510"}
LARGE_DISKS = {"wd-re-4tb", "nas-8tb", "helium-20tb", "smr-8tb"}


@pytest.mark.parametrize(
    ("reach", "low_us", "high_us", "drives"),
    [
        (3_900_000_000, 70, 95, NVME),
        (40_000_000_000, 70, 95, NVME),
        (27_000_000_000, 4000, 17000, LARGE_DISKS),
        (1_900_000_000, 70, 95, NVME),
    ],
)
def test_the_class_is_chosen_by_times_and_enlarged(
    reach: int, low_us: float, high_us: float, drives: set[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "t.csv", _recorded(reach, low_us, high_us))
    d = told(capfd, "compare", path, "-d", "auto", "-s", "none,mq-deadline", "--seeds", 0)
    drive = d["drive"]
    name, _, enlarged = drive.partition(", enlarged to ")
    assert name in drives and d["fit"]["off"] < 1.3
    assert bool(enlarged) == (reach > find_drive(name).sectors)
    assert f"--drive auto: {drive} explains the recording best" in " ".join(d["notes"])


@pytest.mark.parametrize("name", ["wd-re-4tb", "barracuda-80g", "cheetah-15k", "nvme-ssd"])
@pytest.mark.parametrize("factor", [1.01, 3.7, 9])
def test_an_enlarged_drive_is_of_the_same_class(name: str, factor: float) -> None:
    """As many sectors as are asked for, and random reads over all of it take as long as on the original over all of that."""
    small = find_drive(name)
    sectors = int(small.sectors * factor)
    large = enlarged(small, sectors)
    assert large is not None and large.sectors == sectors and large.positions[:1] == small.positions[:1]
    means = []
    for drive in (small, large):
        draw = np.random.default_rng(3)
        places = draw.integers(0, drive.sectors // 8, 300).astype(np.uint64) * np.uint64(8)
        trace = headwaiter.read_trace(frame(places))
        rows = simulate(
            "noop", drive, replay(Path("t"), trace, drive, Reading(replay="open")).load, options=Options(record=True)
        ).rows
        means.append(float(np.mean(rows.complete_ns - rows.issue_ns)))
    assert means[1] == pytest.approx(means[0], rel=0.05)


def frame(places: Any) -> pd.DataFrame:
    """Reads of 8 sectors, one a second."""
    n = len(places)
    return pd.DataFrame({"time_s": np.arange(n), "task": 1, "op": "R", "sync": 1, "sector": places, "sectors": 8})


def test_what_cannot_be_enlarged() -> None:
    raid = find_drive("raid0-4x-barracuda-80g")
    assert enlarged(raid, raid.sectors) is raid and enlarged(raid, raid.sectors + 1) is None
    ssd = find_drive("sata-ssd")
    assert enlarged(ssd, 65 * ssd.sectors) is None
    disk = find_drive("wd-re-4tb")
    assert enlarged(disk, 60 * disk.sectors) is None, "more cylinders than a disk may have"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_recorded(2**40, 4000, 17000, 60), "the recording reaches to 563 TB, and no bundled drive can be enlarged so far"),
        (_recorded(10**6, 4000, 17000, 12), "needs a recording with completions, and this has only 12 (of 30 that are needed)"),
        ("time_s,task,op,sync,sector,sectors\n0,1,R,1,0,8\n", "needs a recording with completions, and this has none"),
    ],
)
def test_three_causes_have_three_messages(text: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capfd, "compare", write(tmp_path / "t.csv", text), "-d", "auto")
    assert status == 2 and said in err


def test_no_drive_is_like_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.csv", _recorded(10**6, 900_000, 1_100_000, 60))
    assert "--drive auto: no bundled drive explains the recording; the nearest is " in " ".join(
        told(capfd, "compare", path, "-d", "auto", "-s", "none,mq-deadline", "--seeds", 0)["notes"]
    )
