# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Results that small changes of the load decide are ranges, and say so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import good, names_of, told, write
from handmade import result

from headwaiter.base.errors import Problem
from headwaiter.base.figures import digits
from headwaiter.drives.choose import open_drive
from headwaiter.engine.processor import MEASURED, Time, parse_time
from headwaiter.engine.sim import Forest, Options, simulate
from headwaiter.fio import JobLoad, load_jobs
from headwaiter.study.compare import rank, uncertain
from headwaiter.study.inkernel import kernel_options
from headwaiter.study.perturb import START_NS, TURN_NS, perturbed
from headwaiter.study.ranges import told_range, with_range
from headwaiter.study.schema import Spread
from headwaiter.study.trial import measure
from headwaiter.study.variants import Variant
from headwaiter.study.workload import Reading, read_workload

SIDE_BY_SIDE = """[global]
filename=/dev/sda
direct=1
runtime=2
time_based
bs=4k
size=16m
[seq]
rw=read
numjobs=3
[rand]
rw=randread
thinktime=100000
"""
ALONE = "[one]\nfilename=/dev/sda\ndirect=1\nrw=read\nbs=256k\nsize=256m\n"


def test_a_result_that_spreads_is_a_range_and_the_run_in_the_middle_stands_for_it() -> None:
    r = with_range(result("a", 20.0), [result("a", rate) for rate in (14.0, 15.0, 16.0, 14.5)])
    assert told_range(r) == Spread(14.0, 20.0) and r.throughput_mbps == 15.0
    assert r.range and r.range.runs == 5
    steady = with_range(result("a", 20.0), [result("a", rate) for rate in (19.8, 20.3)])
    assert not told_range(steady) and steady.throughput_mbps == 20.0
    assert not told_range(result("a", 20.0)), "nothing was perturbed"


def test_what_depends_on_timing_is_said() -> None:
    chaotic = with_range(result("a", 20.0), [result("a", 14.0), result("a", 19.0)])
    near = with_range(result("b", 17.0), [result("b", 17.1)])
    far = with_range(result("c", 5.0), [result("c", 5.1)])
    by, ranked = rank([chaotic, near, far], "throughput")
    words = uncertain(by, ranked)
    assert "a 14.0–20.0 MB/s" in words and "over 3 runs" in words and " c " not in words
    assert uncertain(*rank([near, far], "throughput")) == ""


def test_the_same_number_is_the_same_change(tmp_path: Path) -> None:
    path = tmp_path / "side.fio"
    path.write_text(SIDE_BY_SIDE)
    load = load_jobs(path, open_drive("barracuda-80g").sectors)
    options = MEASURED.apply(Options())
    assert perturbed(load, options, 0) == (load, options)
    assert perturbed(load, options, 3) == perturbed(load, options, 3)
    assert perturbed(load, options, 3) != perturbed(load, options, 4)
    changed, other = perturbed(load, options, 3)
    assert isinstance(changed, JobLoad)
    assert 0.8 <= other.turnaround_ns / options.turnaround_ns <= 1.2
    for before, after in zip(load.jobs, changed.jobs, strict=True):
        assert 0 <= after.fields["start_min_ns"] - before.fields["start_min_ns"] < START_NS + TURN_NS
        assert after.fields["think_ns"] == pytest.approx(before.fields["think_ns"], rel=0.05)


def test_traces_are_changed_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = [f"{i / 100},{i % 2},R,1,{8 * i},8,{i / 100 + 0.005}" for i in range(40)]
    path.write_text("time_s,task,op,sync,sector,sectors,complete_s\n" + "\n".join(rows) + "\n")
    forest = read_workload(path, open_drive("constant:5"), Reading()).load
    changed, _ = perturbed(forest, Options(), 1)
    assert isinstance(forest, Forest) and isinstance(changed, Forest)
    follows = forest.parent >= 0
    assert follows.any()
    before, after = forest.delay_ns[follows], changed.delay_ns[follows]
    assert np.all(np.abs(after - before) <= 0.05 * before + 1) and np.any(after != before)


def test_what_hangs_on_microseconds_is_a_range(tmp_path: Path) -> None:
    """Three readers of one stretch under bfq come to different orders; one reader does not."""
    drive = open_drive("barracuda-80g")
    found = []
    for text in (SIDE_BY_SIDE, ALONE):
        path = tmp_path / "job.fio"
        path.write_text(text)
        load = load_jobs(path, drive.sectors)
        found.append(measure(Variant("bfq", "bfq"), drive, load, MEASURED.apply(Options(join_arriving=True))).result)
    assert told_range(found[0]) and not told_range(found[1])


@pytest.mark.parametrize(("text", "time"), [("0", Time(0)), ("10.5+0.53", Time(10_500, 530)), ("7", Time(7_000))])
def test_times_are_read_as_they_are_written(text: str, time: Time) -> None:
    assert parse_time("--turnaround", text) == time
    assert str(time) == text


@pytest.mark.parametrize("text", ["", "x", "1+2+3", "-1", "nan", "inf", "1e9", "1+"])
def test_bad_times_are_refused(text: str) -> None:
    with pytest.raises(Problem, match="--turnaround"):
        parse_time("--turnaround", text)


def test_zero_processor_time_is_warned_of_where_it_decides(tmp_path: Path) -> None:
    from test_cli import good  # noqa: PLC0415

    path = tmp_path / "far.fio"
    path.write_text(SIDE_BY_SIDE.replace("size=16m", "size=1g\noffset_increment=10g"))
    zero = ("--turnaround", "0", "--dispatch-time", "0", "--seeds", "0", "--sched", "mq-deadline,as", "--json")
    assert any("processor time is set to 0" in note for note in json.loads(good("compare", path, *zero))["notes"])
    measured = json.loads(good("compare", path, "--seeds", "0", "--sched", "mq-deadline,as", "--json"))
    assert measured["processor"]["turnaround_us"] == MEASURED.turnaround.ns / 1000
    assert not any("processor" in note for note in measured["notes"])
    best = measured["results"][0]
    assert best["scheduler"] == "as" and best["throughput_MBps"] > 10 * measured["results"][1]["throughput_MBps"]


def test_the_range_is_told_to_people(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is that of as many runs as are asked for, and one."""
    (tmp_path / "a.fio").write_text(SIDE_BY_SIDE)
    words = ("run", tmp_path / "a.fio", "-s", "noop")
    found = told(capfd, *words, "--seeds", "4")["results"][0]["range"]
    assert found["runs"] == 5 and told(capfd, *words, "--seeds", "0")["results"][0].get("range") is None
    low, high = found["throughput_MBps"]["low"], found["throughput_MBps"]["high"]
    text = " ".join(good(capfd, *words, "--seeds", "4").split())
    assert f"think times, throughput is {digits(low)} to {digits(high)} MB/s" in text and low < high
    assert "throughput is" not in good(capfd, *words, "--seeds", "0")


def test_what_depends_on_timing_is_said_to_people(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.fio").write_text(SIDE_BY_SIDE)
    words = ("compare", tmp_path / "a.fio", "-s", "noop,deadline", "--seeds", "4")
    uncertain = told(capfd, *words)["uncertain"]
    assert uncertain and " ".join(uncertain.split()) in " ".join(good(capfd, *words).split())


def test_an_unchanged_kernels_schedulers_come_first_among_all(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """But not among those that are named. The margin is that of the command line."""
    (tmp_path / "a.fio").write_text("[a]\nfilename=/dev/sda\ndirect=1\nrw=read\nsize=4m\noffset_increment=9g\nnumjobs=2\n")

    def order(sched: str) -> list[str]:
        text = good(capfd, "compare", tmp_path / "a.fio", "-s", sched, "--seeds", "0", "--all")
        return [name for row in names_of(text) for name in row]

    assert order("as,mq-deadline") == ["as*", "mq-deadline"]
    assert {"none", "mq-deadline", "kyber", "bfq"} == {*order("all")[:4]} and len(order("all")) == 16
    for more, margin in (((), 5), (("--margin", "25"), 25)):
        found = told(capfd, "compare", tmp_path / "a.fio", "-s", "as,mq-deadline", "--seeds", "0", *more)
        assert found["answer"]["margin_percent"] == margin


def test_who_gets_the_only_tag_is_chance_in_other_runs(tmp_path: Path) -> None:
    """Two readers of a disk that takes one command: whoever was served asks again as quickly as the other wakes up."""
    text = "[global]\nfilename=/dev/sda\ndirect=1\nrw=read\nbs=64k\nsize=8m\n[a]\n[b]\noffset=10g\n"
    load = load_jobs(Path(write(tmp_path / "two.fio", text)), open_drive("barracuda-80g").sectors)
    options = kernel_options(MEASURED.apply(Options(join_arriving=True)), "none", 1)

    def took_ns(seed: int) -> float:
        outcome = simulate("none", open_drive("barracuda-80g"), load, options=replace(options, race_seed=seed))
        return float(outcome.totals["now_ns"])

    alone, *chances = (took_ns(seed) for seed in range(5))
    assert len(set(chances)) > 1 and all(one > 3 * alone for one in chances)
    assert took_ns(1) == chances[0], "the same seed, the same run"
