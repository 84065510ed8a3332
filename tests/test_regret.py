# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter regret: what is contested, the figures of a run by hand, scores by hand, and the command."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import good, run, told, write

import headwaiter
from headwaiter.base.errors import Problem
from headwaiter.drives import bundled
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import Op
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Rows, Task
from headwaiter.fio import JobLoad
from headwaiter.judge.conditions import RunConditions
from headwaiter.regret.chains import Chain, chain_load
from headwaiter.regret.contested import FORMS, Metric, parse_contested
from headwaiter.regret.measurements import DRIVES, STANDINGS, LoadOnDrive, measure
from headwaiter.regret.metrics import MeasuredRun
from headwaiter.regret.scores import each, judge, ratios, reference_of, regrets
from headwaiter.regret.workloads import BUNDLED, Contest, Fitted, fit, random_contests, read_contests
from headwaiter.report.regrets import verdict
from headwaiter.study.variants import parse_variants

MS = 1_000_000
S = 1_000_000_000

# --- what is contested ---


def metric(text: str) -> Metric:
    (found,) = parse_contested("here", text)
    return found


@pytest.mark.parametrize(
    ("text", "kind", "of", "during", "cap", "op", "percent", "low", "unit"),
    [
        ("MB/s in all", "rate", None, None, 1, "read", 0, False, "MB/s"),
        ("MB/s", "rate", None, None, 1, "read", 0, False, "MB/s"),
        ("MB/s of the reader", "rate", "reader", None, 1, "read", 0, False, "MB/s"),
        ("MB/s (counted up to 75% of the best) of r", "rate", "r", None, 0.75, "read", 0, False, "MB/s"),
        ("MB/s while the chain lives, of stream", "rate while", "stream", "chain", 1, "read", 0, False, "MB/s"),
        ("progress", "progress", None, None, 1, "read", 0, False, "MB/s"),
        ("Jain's index over reader", "jain", "reader", None, 1, "read", 0, False, ""),
        ("p99.9 read latency (low is good)", "latency", None, None, 1, "read", 99.9, True, "ms"),
        ("p50 write latency of a b", "latency", "a b", None, 1, "write", 50, True, "ms"),
        ("mean read latency", "latency", None, None, 1, "read", 0, True, "ms"),
        ("longest read of x", "latency", "x", None, 1, "read", 100, True, "ms"),
        ("mean time of a burst of inter (low is good)", "burst", "inter", None, 1, "read", 0, True, "ms"),
        ("time from start to end of start (low is good)", "span", "start", None, 1, "read", 0, True, "s"),
    ],
)
def test_a_phrase(text: str, kind: str, of: str, during: str, cap: float, op: str, percent: float, low: bool, unit: str) -> None:
    m = metric(text)
    assert (m.kind, m.of, m.during, m.cap, m.op, m.percent) == (kind, of, during, cap, op, percent)
    assert (m.low_is_good, m.unit) == (low, unit)
    assert m.text == text.removesuffix(" (low is good)")


@pytest.mark.parametrize(
    "text", ["MB/s off reader", "p101 read latency", "MB/s (counted up to 0% of the best)", "p99 latency", "Jain's"]
)
def test_what_cannot_be_contested(text: str) -> None:
    with pytest.raises(Problem) as e:
        parse_contested("f.fio", f"MB/s in all; {text}")
    assert str(e.value).startswith(f"f.fio: '{text}' is unknown (known: MB/s in all; ")


def test_nothing_is_contested() -> None:
    with pytest.raises(Problem, match=r"f\.fio: says of nothing"):
        parse_contested("f.fio", " ; ")


def test_the_forms_that_an_error_names_are_known() -> None:
    for form in FORMS:
        parse_contested("x", re.sub(r"N%", "75%", form).replace("pN", "p99").replace("[", "").replace("]", ""))


# --- figures of a run, by hand ---


def rows(*ios: tuple[int, int, int, int, Op]) -> Rows:
    """Make rows from (task, issue ms, completion ms, sectors, operation)."""
    task, issue, done, sectors, op = (np.array(column) for column in zip(*ios, strict=True))
    return Rows(issue * MS, done * MS, np.zeros(len(task), np.uint64), sectors, task.astype(np.uint32), op, None)


def measured(window_ms: tuple[int, int] | None, *ios: tuple[int, int, int, int, Op], load: Any = None) -> MeasuredRun:
    tasks = [Task(0, "reader.0", 0), Task(1, "reader.1", 1), Task(2, "reader", 2), Task(3, "writer", 3)]
    empty = np.empty(0, np.int64)
    forest = Forest(tasks, *(empty,) * 3, *(empty,) * 6)  # type: ignore[arg-type]
    window = (window_ms[0] * MS, window_ms[1] * MS) if window_ms else None
    return MeasuredRun(Fitted(load or forest, window), rows(*ios))


R, W = Op.READ, Op.WRITE
IOS = (
    (0, 0, 50, 1000, R),  # over before the window begins
    (0, 90, 110, 2000, R),
    (1, 150, 160, 1000, R),
    (2, 150, 190, 1000, R),
    (3, 150, 200, 4000, W),
    (1, 199, 260, 8000, R),  # over when it has ended
    (1, 210, 220, 8000, R),  # begun when it has ended
)


def test_rates_are_of_what_completes_in_the_window() -> None:
    run = measured((100, 200), *IOS)
    assert run.value(metric("MB/s in all")) == pytest.approx(8000 * 512 / 1e6 / 0.1)
    assert run.value(metric("MB/s of reader")) == pytest.approx(4000 * 512 / 1e6 / 0.1), "it and its clones"
    assert run.value(metric("MB/s of writer")) == pytest.approx(4000 * 512 / 1e6 / 0.1)


def test_without_a_window_all_of_the_run_counts() -> None:
    assert measured(None, *IOS).value(metric("MB/s in all")) == pytest.approx(25000 * 512 / 1e6 / 0.26)


def test_jain_counts_who_got_nothing() -> None:
    run = measured((100, 200), (0, 100, 120, 4, R), (1, 100, 120, 4, R), (1, 100, 220, 4, R))
    assert run.value(metric("Jain's index over reader")) == pytest.approx(2 / 3)


def test_latencies_are_of_what_is_under_way_in_the_window() -> None:
    run = measured((100, 200), *IOS)
    assert run.value(metric("mean read latency")) == pytest.approx((20 + 10 + 40 + 61) / 4)
    assert run.value(metric("longest read")) == 61
    assert run.value(metric("p50 read latency")) == 20
    assert run.value(metric("p75 read latency")) == 40
    assert run.value(metric("p75.1 read latency")) == 61
    assert run.value(metric("mean write latency")) == 50
    assert run.value(metric("longest read of writer")) == math.inf


def test_a_life_is_from_the_first_issue_to_the_last_completion() -> None:
    run = measured((100, 200), *IOS)
    assert run.value(metric("time from start to end of writer")) == pytest.approx(0.05)
    assert run.value(metric("time from start to end of reader")) == pytest.approx(0.26)
    assert run.value(metric("MB/s while writer lives, of reader")) == pytest.approx(2000 * 512 / 1e6 / 0.05)


def jobs(folder: Path, more: str = "") -> JobLoad:
    """One job that thinks after every third read, as it is on a drive."""
    text = f"; contested: MB/s\n[inter]\nrw=read\nbs=4k\nsize=1m\ndirect=1\nthinktime=1s\nthinktime_blocks=3\n{more}"
    (contest,) = read_contests([write(folder / "j.fio", text)])
    load = fit(contest, ConstantDrive(MS), Options()).load
    assert isinstance(load, JobLoad)
    return load


def test_bursts(tmp_path: Path) -> None:
    load = jobs(tmp_path)
    burst = metric("mean time of a burst of inter")

    def value(*begins_and_ends: tuple[int, int]) -> float:
        return measured((100, 200), *((0, b, e, 8, R) for b, e in begins_and_ends), load=load).value(burst)

    before = ((10, 20), (20, 30), (30, 40))
    first = ((90, 100), (100, 110), (110, 120))
    second = ((150, 152), (152, 155), (155, 160))
    assert value(*before, *first) == 30, "the one that is over before does not count, the one over the begin does"
    assert value(*before, *first, *second) == pytest.approx((30 + 10) / 2)
    assert value(*before, (150, 160), (160, 210), (210, 220)) == pytest.approx(50 * 3), "a third of it in 50 ms"
    assert value(*before, (150, 250)) == math.inf, "none came to anything"
    assert value(*before, *first, (200, 300)) == 30


# --- scores and regrets, by hand ---


def cell(values: Any, contested: str) -> LoadOnDrive:
    return LoadOnDrive(Contest("w", Path("w"), parse_contested("x", contested)), "d", np.array(values, float))


def test_ratios_are_own_by_best_of_each_figure() -> None:
    # Two schedulers, one seed.
    one = cell([[[10.0, 4.0]], [[5.0, 1.0]]], "MB/s; mean read latency")
    assert ratios(one.values, one.contest.metrics, [0, 1])[:, 0].tolist() == [[1, 0.25], [0.5, 1]]
    assert ratios(one.values, one.contest.metrics, [1])[:, 0].tolist() == [[2, 0.25], [1, 1]], "better than the reference counts"
    assert regrets(one, [0, 1])[:, 0] == pytest.approx([1 - 0.5 / 0.5**0.5, 0])
    assert regrets(one, [0])[:, 0] == pytest.approx([0, 0]), "no regret is below 0"


def test_beyond_the_cap_more_is_worth_nothing() -> None:
    one = cell([[[100.0]], [[75.0]], [[30.0]]], "MB/s (counted up to 75% of the best)")
    assert ratios(one.values, one.contest.metrics, [0, 1, 2])[:, 0, 0] == pytest.approx([1, 1, 0.4])


def test_who_never_ends_and_where_nobody_gets_anything() -> None:
    one = cell([[[math.inf, 0.0]], [[2.0, 0.0]]], "longest read; MB/s of x")
    assert ratios(one.values, one.contest.metrics, [0, 1])[:, 0].tolist() == [[0, 1], [1, 1]]
    assert regrets(one, [0, 1])[:, 0].tolist() == [1, 0]
    nobody = cell([[[0.0]], [[0.0]]], "MB/s")
    assert regrets(nobody, [0, 1]).tolist() == [[0], [0]]
    stuck = cell([[[0.0, 1.0]], [[1.0, math.inf]]], "MB/s; longest read")
    assert regrets(stuck, [0, 1]).tolist() == [[0], [0]], "each loses all of one: all are as good"


def test_medians_over_seeds_and_standings() -> None:
    variants = parse_variants("noop,deadline")
    cells = [
        cell([[[10.0], [10.0], [10.0]], [[9.0], [5.0], [9.5]]], "MB/s"),
        cell([[[8.0], [8.0], [8.0]], [[8.0], [8.0], [8.0]]], "MB/s"),
    ]
    judged = judge(cells, variants, [0, 1])
    assert judged.median == pytest.approx(np.array([[0, 0], [0.1, 0]]))
    first, second = judged.standings()
    assert (first.scheduler, first.worst, first.mean, first.close) == (0, 0, 0, 2)
    assert second.scheduler == 1 and second.close == 1 and second.worst_cell == 0
    assert (second.mean, second.worst) == pytest.approx((0.05, 0.1))
    assert (second.low, second.high) == pytest.approx((0.025, 0.25)), "over seeds"
    assert judged.why(1, 0) == "MB/s: 9 MB/s against 10 MB/s under noop"


def test_the_reference_is_of_plain_names() -> None:
    variants = parse_variants("noop,as:antic_expire=0,as")
    assert reference_of(variants) == [0, 2]
    assert reference_of(variants[1:2]) == [0], "where there is none, all"
    assert reference_of(variants, "as:antic_expire=0") == [1]
    with pytest.raises(Problem, match=r"--against none: not among the schedulers judged"):
        reference_of(variants, "none")


def test_each_figure_for_itself() -> None:
    one = cell([[[10.0, 4.0]], [[5.0, 1.0]]], "MB/s; longest read")
    found = each([one])
    assert [c.name for c in found] == ["w: MB/s on d", "w: longest read on d"]
    assert [regrets(c, [0, 1])[:, 0].tolist() for c in found] == [[0, 0.5], [0.75, 0]]


# --- folders ---

READ = "[reader]\nrw=read\ndirect=1\nbs=4k\nsize=1m\n"


def test_a_table_says_it_for_files_that_do_not(tmp_path: Path) -> None:
    write(tmp_path / "a10.fio", READ)
    write(tmp_path / "a9.fio", f"; contested: Jain's index over reader\n{READ}")  # goes before the table
    write(tmp_path / "notes.txt", "nothing")
    write(tmp_path / "z.csv", "time_s,task,op,sync,sector,sectors,complete_s\n0,1,R,1,0,8,0.01\n")
    named = {"`z`": "longest read", "a10": "MB/s in all", "chain1": "MB/s of stream", "a9": "MB/s"}
    table = "| workload | contested |\n| --- | --- |\n" + "".join(f"| {name} | {text} |\n" for name, text in named.items())
    write(tmp_path / "README.md", f"| other | table |\n| --- | --- |\n\n{table}\n")
    found = read_contests([tmp_path])
    assert [(c.name, c.metrics[0].text) for c in found] == [
        ("z", "longest read"), ("a10", "MB/s in all"), ("chain1", "MB/s of stream"), ("a9", "Jain's index over reader"),
    ]  # fmt: skip
    assert found[2].chain == Chain(tasks=400, reads=1, apart_sectors=16)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.fio": READ}, "a.fio: does not say what is contested in it"),
        ({"a.fio": f"; contested: MB\n{READ}"}, "a.fio: 'MB' is unknown"),
        ({"README.md": "| workload | contested |\n| b | MB/s |\n"}, "README.md:2: there is no workload 'b'"),
        ({"README.md": "| workload | contested |\n| a | x |\n", "a.fio": READ}, "README.md:2: 'x' is unknown"),
        ({"x.txt": "nothing"}, ": contains no workload"),
        ({"a.fio": f"; contested: MB/s\n{READ}", "a.csv": "# contested: MB/s\n"}, "a.fio: a.csv is of the same name"),
        ({"c.toml": "# contested: MB/s\ntasks = 1\nreads = 1\n"}, "c.toml: apart_sectors is missing"),
        ({"c.toml": "# contested: MB/s\ntasks = 0\n"}, "c.toml: tasks must be a whole number from 1"),
        ({"c.toml": "# contested: MB/s\nlinks = 1\n"}, "c.toml: 'links' is unknown"),
        ({"c.toml": "# contested: MB/s\n[\n"}, "c.toml: "),
    ],
)
def test_folders_that_are_wrong(tmp_path: Path, files: dict[str, str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    for name, content in files.items():
        write(tmp_path / name, content)
    status, out, err = run(capfd, "regret", tmp_path, "-s", "noop")
    assert (status, out) == (2, "") and err.count("\n") == 1 and message in err


def test_files_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.fio", READ)
    (found,) = read_contests([path], "MB/s in all")
    assert found.metrics == (metric("MB/s in all"),)
    with pytest.raises(Problem, match="there are two workloads of the name 'a'"):
        read_contests([path, path], "MB/s in all")
    with pytest.raises(Problem, match="No such file"):
        read_contests([tmp_path / "b.fio"], "MB/s")


def test_random_jobs_are_drawn_for_each_drive() -> None:
    """By their numbers: the same number, the same programs, in places that the drive has."""
    first, second = random_contests(2, 40)
    assert [one.name for one in (first, second)] == ["random-40", "random-41"] and first.metrics == (metric("progress"),)
    assert random_contests(1, 40, "MB/s in all")[0].metrics == (metric("MB/s in all"),)
    small, large = (open_drive(name) for name in ("barracuda-80g", "wd-re-4tb"))
    options = STANDINGS.options(small)
    own, same, other = (fit(first, drive, options).load for drive in (small, small, large))
    assert isinstance(own, JobLoad) and isinstance(same, JobLoad) and isinstance(other, JobLoad)
    assert own.jobs == same.jobs != other.jobs
    assert [task.name for task in own.tasks] == [task.name for task in other.tasks]


def test_progress_is_that_of_the_judge(tmp_path: Path) -> None:
    """What a program writes into the page cache is its work, before any of it is on the disk."""
    job = "; contested: progress\n[global]\nruntime=2s\ntime_based\n[r]\nrw=read\nsize=1g\n[w]\nrw=write\nsize=1g\nfsync=64\n"
    path = write(tmp_path / "a.fio", job)
    (cell,) = measure(read_contests([path]), [open_drive("barracuda-80g")], parse_variants("as"), seeds=1)[0]
    own = headwaiter.run(
        path, "as", "barracuda-80g", runs=0, nr_requests=STANDINGS.nr_requests, wbt_depth=0, pull_ahead=False, positions=True
    )
    assert cell.values[0, 0, 0] == pytest.approx(own.result.progress_mbps)


@pytest.mark.parametrize("rows", ["0,1,R,1,0,8,0.01\n", "0,1,W,0,0,8,0.01\n0.02,1,W,0,8,8,0.03\n"], ids=["one", "write-back"])
def test_progress_needs_somebody_who_waits(tmp_path: Path, rows: str) -> None:
    path = write(tmp_path / "a.csv", f"time_s,task,op,sync,sector,sectors,complete_s\n{rows}")
    with pytest.raises(Problem, match=r"a\.csv: contested: progress: no program goes on"):
        measure(read_contests([path], "progress"), [open_drive("barracuda-80g")], parse_variants("noop"), seeds=1)


@pytest.mark.parametrize(
    ("contested", "message"),
    [("MB/s of nobody", "there is no job or task 'nobody'"), ("mean time of a burst of reader", "'reader' makes no bursts")],
)
def test_names_must_be_there(tmp_path: Path, contested: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.fio", f"# contested: {contested}\n{READ}")
    status, _, err = run(capfd, "regret", path, "-s", "noop", "-d", "constant:5", "--seeds", 1)
    assert status == 2 and message in err and str(path) in err


# --- workloads on drives ---


def contest(name: str) -> Contest:
    return next(c for c in read_contests([BUNDLED]) if c.name == name)


@pytest.mark.parametrize(
    ("drive", "seconds", "patient"), [("barracuda-80g", 20, 20), ("sata-ssd", 3, 8), ("nvme-ssd", 1, 8), ("constant:5", 20, 20)]
)
def test_an_ssd_works_for_less_time(drive: str, seconds: int, patient: int) -> None:
    for name, end in (("readers-3", seconds), ("editor-3", patient)):
        assert fit(contest(name), open_drive(drive), Options()).window_ns == (end * S // 4, end * S)


def test_every_bundled_workload_fits_every_bundled_drive() -> None:
    contests = read_contests([BUNDLED])
    assert len(contests) == 41
    for name in bundled():
        drive = open_drive(name)
        for one in contests:
            fitted = fit(one, drive, Options())
            assert (fitted.window_ns is None) == (one.chain is not None)
            if isinstance(fitted.load, Forest):
                assert int((fitted.load.sector + fitted.load.sectors).max()) <= drive.sectors


def test_a_chain() -> None:
    load = chain_load(Chain(tasks=3, reads=2, apart_sectors=1000), open_drive("barracuda-80g"), Options(), 1.0)
    stream, links = load.task == 0, load.task > 0
    assert [t.name for t in load.tasks] == ["stream", "chain", "chain", "chain"]
    assert 100 < stream.sum() < 2000, "as many as a disk reads in a second"
    n = int(stream.sum())
    assert load.parent[:n].tolist() == list(range(-1, n - 1)) and load.parent[n:].tolist() == [-1, *range(n, n + 5)]
    assert set(load.delay_ns[1:n].tolist()) == {100_000}
    assert load.delay_ns[n:].tolist() == [0, 200_000, 2 * MS, 200_000, 2 * MS, 200_000]
    assert load.time_ns[n] == S // 2 and load.task[links].tolist() == [1, 1, 2, 2, 3, 3]
    place = load.sector[n:].astype(np.int64)
    assert (place - place[0]).tolist() == [0, 16, 1000, 1016, 2000, 2016]
    assert load.sectors[0] == 128 and load.sectors[n] == 16


def test_a_chain_beside_one_file_after_another() -> None:
    chain = Chain(tasks=1, reads=1, apart_sectors=8, file_kib=128, gap_kib=64)
    load = chain_load(chain, open_drive("barracuda-80g"), Options(), 1.0)
    assert load.sector[:5].tolist() == [0, 128, 384, 512, 768]


def test_files_of_a_chain_are_read_as_a_whole(tmp_path: Path) -> None:
    text = "# contested: MB/s\ntasks = 1\nreads = 1\napart_sectors = 8\nfile_kib = 100\n"
    with pytest.raises(Problem, match=r"odd\.toml: file_kib must be a multiple of 64"):
        read_contests([write(tmp_path / "odd.toml", text)])


def test_seeds_change_the_load_a_little() -> None:
    variants = parse_variants("noop,as")
    (found,), notes = measure([contest("thinkers-2")], [open_drive("barracuda-80g")], variants, STANDINGS, 2)
    assert found.values.shape == (2, 2, 2) and notes == []
    assert not np.array_equal(found.values[:, 0], found.values[:, 1])
    again = measure([contest("thinkers-2")], [open_drive("barracuda-80g")], variants, STANDINGS, 1)[0][0]
    assert np.array_equal(found.values[:, :1], again.values), "one seed, one result"


def test_a_recording_beyond_the_drive_has_no_cell(tmp_path: Path) -> None:
    head = "time_s,task,op,sync,sector,sectors,complete_s\n"
    far = write(tmp_path / "far.csv", f"{head}0,1,R,1,100000000,8,0.01\n")
    near = write(tmp_path / "near.csv", f"{head}0,1,R,1,0,8,0.01\n")
    drives = [open_drive("maxtor-20g"), open_drive("barracuda-80g")]
    found, notes = measure(read_contests([far, near], "MB/s"), drives, parse_variants("noop"), STANDINGS, 1)
    assert [c.name for c in found] == ["far on barracuda-80g", "near on maxtor-20g", "near on barracuda-80g"]
    assert notes == ["far goes beyond the end of maxtor-20g: left out there"]
    with pytest.raises(Problem, match="far goes beyond the end of maxtor-20g"):
        measure(read_contests([far], "MB/s"), drives[:1], parse_variants("noop"), STANDINGS, 1)


# --- the command ---

WORDS = ("--only", "readers-3,stopper", "-d", "barracuda-80g", "-s", "noop,as,as:antic_expire=0", "--seeds", 2)


def test_who_waits_has_less_regret(capfd: pytest.CaptureFixture[str]) -> None:
    d = told(capfd, "regret", *WORDS)
    assert d["reference"] == ["noop", "as"] and d["seeds"] == 2
    by_name = {r["scheduler"]: r for r in d["results"]}
    assert by_name["as"]["mean_percent"] < by_name["noop"]["mean_percent"] / 3
    assert [(c["workload"], c["drive"]) for c in d["cells"]] == [("readers-3", "barracuda-80g"), ("stopper", "barracuda-80g")]
    first = {r["scheduler"]: r for r in d["cells"][0]["rows"]}
    assert first["as"]["regret_percent"] == 0 and first["noop"]["regret_percent"] > 70
    assert first["as"]["figures"][0]["value"] > 3 * first["noop"]["figures"][0]["value"]
    assert [f["contested"] for f in first["as"]["figures"]] == ["MB/s in all", "Jain's index over reader"]
    single = told(capfd, "regret", *WORDS, "--each")
    assert [c["workload"] for c in single["cells"]][:2] == ["readers-3: MB/s in all", "readers-3: Jain's index over reader"]
    alone = told(capfd, "regret", *WORDS, "--against", "noop")
    assert {r["scheduler"]: r["mean_percent"] for r in alone["results"]}["noop"] == 0, "nobody else says what is best"


def test_the_machine_between_processes_and_drive(capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--only", "readers-1", "-d", "barracuda-80g", "-s", "noop", "--seeds", 1)
    slow = told(capfd, "regret", *words, "--turnaround", "5000")
    assert slow["processor"]["turnaround_us"] == 5000 and slow["processor"]["dispatch_us"] > 0

    def rate(d: dict[str, Any]) -> float:
        value: float = d["cells"][0]["rows"][0]["figures"][0]["value"]
        return value

    assert rate(slow) < 0.9 * rate(told(capfd, "regret", *words))


def test_what_is_printed(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = good(capfd, "regret", *WORDS, "--report", tmp_path / "r.html")
    d = told(capfd, "regret", *WORDS)
    assert text.startswith("Regrets over 2 workloads on 1 drive, 2 seeds\n\nas has the least mean regret, ")
    for r in d["results"]:
        line = next(line for line in text.splitlines() if line.startswith(f"{r['scheduler']} ") and " to " in line)
        assert line.split()[1:6] == [
            f"{r['mean_percent']:.1f}", f"{r['low_percent']:.1f}", "to", f"{r['high_percent']:.1f}", f"{r['worst_percent']:.0f}",
        ]  # fmt: skip
        assert (
            f"{r['scheduler']} loses {r['worst_percent']:.0f}% in {r['worst_workload']} on {r['worst_drive']}: {r['why']}" in text
        )
    html = (tmp_path / "r.html").read_text()
    inside = re.search(r'<script type="application/json" id="results">(.*?)</script>', html, re.S)
    assert inside and json.loads(inside[1]) == d
    assert "<title>Regrets over 2 workloads on 1 drive, 2 seeds</title>" in html
    assert all(unescape(r["why"]) in unescape(html) for r in d["results"])
    drawn = re.search(r"embed_items\((\{.*?\}), \[", html, re.S)
    assert drawn and "barracuda-80g" in drawn[1] and "readers-3" in drawn[1]


def test_the_drives_of_the_default_are_bundled() -> None:
    assert set(DRIVES) <= set(bundled())


def test_random_jobs(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("regret", "--random", 2, "-d", "barracuda-80g", "-s", "noop,as", "--seeds", 1)
    d = told(capfd, *words, "--seed", 200)
    assert [cell["workload"] for cell in d["cells"]] == ["random-200", "random-201"]
    assert d["cells"] == told(capfd, *words, "--seed", 200)["cells"] != told(capfd, *words)["cells"]
    assert {figure["contested"] for row in d["cells"][0]["rows"] for figure in row["figures"]} == {"progress"}
    (second,) = told(capfd, *words, "--seed", 200, "--only", "*-201")["cells"]
    assert second["rows"] == d["cells"][1]["rows"]
    status, out, err = run(capfd, *words, write(tmp_path / "a.fio", READ))
    assert (status, out) == (2, "") and err.startswith("headwaiter: --random 2: judges random jobs, and not ")


def test_unknown_names(capfd: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (("--only", "nonesuch"), "--only nonesuch: there is no such workload"),
        (("-s", "nonesuch"), "nonesuch"),
        (("-d", "nonesuch"), "nonesuch"),
    ):
        status, out, err = run(capfd, "regret", *words)
        assert (status, out) == (2, "") and message in err and err.count("\n") == 1


def test_notes_and_options_of_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drives that are named twice are one; a cell that is left out is told to people, too."""
    head = "time_s,task,op,sync,sector,sectors,complete_s\n"
    far = write(tmp_path / "far.csv", f"{head}0,1,R,1,100000000,8,0.01\n")
    near = write(tmp_path / "near.csv", f"{head}0,1,R,1,0,8,0.01\n")
    words = ("regret", far, near, "--contested", "longest read", "-s", "noop", "-d", "maxtor-20g,barracuda-80g,maxtor-20g")
    text = good(capfd, *words, "--seeds", 1)
    note = "far goes beyond the end of maxtor-20g: left out there"
    assert "Regrets over 2 workloads on 2 drives, 1 seed\n" in text and note in " ".join(text.split())
    seen: list[RunConditions] = []

    def measured(contests: Any, drives: Any, variants: Any, conditions: RunConditions, *more: Any) -> Any:
        seen.append(conditions)
        return measure(contests, drives, variants, conditions, *more)

    monkeypatch.setattr("headwaiter.cli.regret.measure", measured)
    found = told(capfd, *words, "--seeds", 2, "--seed", 7, "--nr-requests", 99)
    assert (found["notes"], found["seed"], found["seeds"], len(found["cells"])) == ([note], 7, 2, 3)
    assert seen == [replace(STANDINGS, seed=7, nr_requests=99)]
    told(capfd, *words, "--seeds", 1, "--pull-ahead", "--no-positions")
    assert seen[1] == replace(STANDINGS, pull_ahead=True, positions=False)


def test_the_standings_have_conditions_of_their_own_in_the_table_of_all_commands() -> None:
    """Schedulers by themselves: no scheduler is run as a kernel runs that one."""
    for name in ("barracuda-80g", "nvme-ssd"):
        drive = open_drive(name)
        plain = MEASURED.apply(Options(seed=3, nr_requests=256, join_arriving=True))
        each = replace(STANDINGS, seed=3).runs(parse_variants("none,bfq,maitre"), drive)
        assert [options for _, options in each] == [plain] * 3 and not any(v.settings for v, _ in each)
        assert len({str(options) for _, options in RunConditions().runs(parse_variants("none,bfq,maitre"), drive)}) == 3


def test_the_verdict_names_who_is_best_on_average_and_who_is_never_bad() -> None:
    variants = parse_variants("noop,deadline")
    first, second = cell([[[10.0]], [[8.0]]], "MB/s"), cell([[[7.0]], [[10.0]]], "MB/s")
    mean = "noop has the least mean regret, 10.0%, and loses 30% at most."
    assert verdict(judge([first, first, second], variants, [0, 1])) == f"{mean} deadline loses least in its worst cell, 20%."
    assert verdict(judge([first], variants, [0, 1])) == "noop has the least mean regret, 0.0%, and loses 0% at most."
