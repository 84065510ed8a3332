# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""rank: throughput by scheduler and request size, on a drive model and by fio; disks are as before, whatever happens."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from command import good, run, told, write
from fakesys import FakeSystem, machine
from test_live_killed import loop

from headwaiter.base.errors import Problem
from headwaiter.papers.rank import RankedLoad, RankedPoint, of_device, winners
from headwaiter.queue.apply import apply
from headwaiter.queue.machine import Machine
from headwaiter.queue.settings import Settings

__all__ = ["loop", "machine"]
FIO = """#!/bin/sh
cat >>{folder}/jobs
cat {queue}/scheduler >>{folder}/schedulers
[ ! -e {folder}/fails ] || {{ echo "fio: cannot read" >&2; exit 1; }}
n=$(wc -l <{folder}/schedulers)
echo 'note: a warning comes first'
echo '{{"jobs": [{{"read": {{"bw_bytes": 1000000}}}}, {{"read": {{"bw_bytes": '"$n"'000000}}}}]}}'
"""


def test_which_is_best_changes_with_the_size(capfd: pytest.CaptureFixture[str]) -> None:
    """Waiting for a reader pays where requests are small."""
    found = told(capfd, "rank", "barracuda-80g", "-s", "none,as", "--sizes", "4k,64k,1m", "-t", "0.5", "--runs", "1")
    rates = {(row["scheduler"], row["request_bytes"]): row["throughput_MBps"] for row in found["results"]}
    assert len(rates) == 6 and rates["as", 4096] > 3 * rates["none", 4096]
    assert rates["none", 1 << 20] > 5 * rates["none", 65536] > 20 * rates["none", 4096]
    assert [row["request_bytes"] for row in found["winners"]] == [4096, 65536, 1 << 20]
    assert found["winners"][0]["scheduler"] == "as" and found["winners"][0]["ahead_percent"] > 200


def test_a_winner_and_who_is_as_good() -> None:
    points = [RankedPoint(name, 4096, rate, rate, rate) for name, rate in (("a", 98.5), ("b", 100.0), ("c", 97.0), ("d", 50.0))]
    [row] = winners(points)
    assert (row.scheduler, row.even) == ("b", ["a"]) and row.ahead_percent == pytest.approx(100 * (100 / 98.5 - 1))


def test_parts_of_the_disk_do_not_overlap() -> None:
    job = RankedLoad("mixed", 3).job(4096, 10 << 30, "/dev/x")
    size = int(re.findall(r"^size=(\d+)", job, re.M)[0])
    assert [int(at) for at in re.findall(r"^offset=(\d+)", job, re.M)] == [0, size, 2 * size] and 3 * size <= 10 << 30
    assert re.findall(r"^rw=(\w+)", job, re.M) == ["read", "randread", "read"] and "write" not in job
    assert "randread" not in RankedLoad("sequential").job(4096, 10 << 30, "x")
    with pytest.raises(Problem, match="too few"):
        RankedLoad().job(4096, 1 << 20, "x")


def test_the_plot(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("rank", "barracuda-80g", "-s", "none,as", "--sizes", "4k,8k", "-t", "0.1", "--runs", "1")
    good(capfd, *words, "--plot", tmp_path / "a.svg")
    assert "throughput by scheduler and request size: barracuda-80g" in (tmp_path / "a.svg").read_text()
    status, _, err = run(capfd, *words, "--plot", tmp_path / "a.txt")
    assert status == 2 and "a.txt" in err


@pytest.mark.parametrize("sizes", ["1", "4k,", "2m", "x", "4096k,0", "-4k"])
def test_sizes_that_are_none(sizes: str, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capfd, "rank", "barracuda-80g", f"--sizes={sizes}")
    assert status == 2 and "is no multiple of 512 bytes up to 1m" in err


@pytest.fixture
def fio(machine: FakeSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for what a fake fio was asked; each call is faster than the one before."""
    queue = machine.add("sda", wwn="naa.5000") / "queue"
    folder = tmp_path / "bin"
    folder.mkdir()
    write(folder / "fio", FIO.format(folder=folder, queue=queue)).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_a_disk_is_measured_under_each_scheduler_and_restored(
    machine: FakeSystem, fio: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = machine.everything("sda")
    words = ("rank", "sda", "-s", "bfq,none", "--sizes", "4k,8k", "--runs", "1", "--root", machine.root, "--json")
    status, out, err = run(capfd, *words)
    assert status == 0 and err.startswith("sda: 12 s of reading")
    assert [float(rate) for rate in re.findall(r'"throughput_MBps": ([\d.]+)', out)] == [2.0, 3.0, 4.0, 5.0]
    said = (fio / "schedulers").read_text().splitlines()
    assert ["[bfq]" in line for line in said] == [True, True, False, False] and "[none]" in said[2]
    assert machine.everything("sda") == before and Machine(machine.root).state.all() == []
    jobs = (fio / "jobs").read_text()
    assert f"filename={machine.root}/dev/sda" in jobs and "write" not in jobs


def test_of_several_runs_the_middle_one_counts(machine: FakeSystem, fio: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capfd, "rank", "sda", "-s", "none", "--sizes", "4k", "--runs", "3", "--root", machine.root, "--json")
    [row] = json.loads(out)["results"]
    assert status == 0 and (row["throughput_MBps"], row["low_MBps"], row["high_MBps"]) == (3.0, 2.0, 4.0)


def test_a_failure_restores_too(machine: FakeSystem, fio: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also what headwaiter itself had set before, which stays known as its change."""
    (fio / "fails").touch()
    there = Machine(machine.root)
    apply([there.find("sda")], Settings("kyber", 50), there.state, "before")
    before, saved = machine.everything("sda"), there.state.of(there.find("sda"))
    status, _, err = run(capfd, "rank", "sda", "-s", "bfq", "--sizes", "4k", "--root", machine.root)
    assert status == 2 and "fio: cannot read" in err
    assert machine.everything("sda") == before
    now = there.state.of(there.find("sda"))
    assert saved and now and now.before == saved.before


def test_a_scheduler_that_the_kernel_has_not(machine: FakeSystem, fio: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capfd, "rank", "sda", "-s", "hw-as", "--root", machine.root)
    assert status == 2 and "hw-as" in err and machine.writes == []


@pytest.mark.thorough
@pytest.mark.needs("fio")
def test_on_a_loop_device(loop: str, tmp_path: Path) -> None:
    there = Machine(folder=tmp_path)
    device = there.find(loop)
    queue = device.folder / "queue"
    before = {str(p): p.read_text() for p in queue.rglob("*") if p.is_file() and p.stat().st_mode & 0o200}
    points = of_device(device, [device], Path("/dev") / loop, ["bfq", "none"], [4096], RankedLoad(seconds=0.2), there.state, 1)
    assert [point.scheduler for point in points] == ["bfq", "none"] and all(point.mbps > 0 for point in points)
    assert {str(p): p.read_text() for p in queue.rglob("*") if p.is_file() and p.stat().st_mode & 0o200} == before
