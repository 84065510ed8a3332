# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""table: throughput by operation, file size and record length, on a drive model and by fio in a folder of a disk."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import run, told, write
from fakesys import FakeSystem, machine
from test_live_killed import loop

from headwaiter.advice.target import target_of
from headwaiter.base.errors import Problem
from headwaiter.papers.cells import OPERATIONS, Cell
from headwaiter.papers.rank import RankedPoint
from headwaiter.papers.selectors import promised, read_table
from headwaiter.papers.table import MeasuredCell, Work, _simulated_rate, _told_rate, cell_winners, cells, check_folder
from headwaiter.queue.machine import Machine

__all__ = ["loop", "machine"]
FIO = """#!/bin/sh
cat >>{folder}/jobs
cat {queue}/scheduler >>{folder}/schedulers
pwd >>{folder}/places
touch file
[ ! -e {folder}/fails ] || {{ echo "fio: cannot write" >&2; exit 1; }}
n=$(wc -l <{folder}/schedulers)
b='"runtime": 2000, "io_bytes"' m='"runtime": 1000, "io_bytes"' s='"runtime": 500, "io_bytes"'
echo '{{"jobs": [{{"jobname": "before", "read": {{'"$b"': 7000000}}, "write": {{'"$b"': 7000000}}}},'
echo ' {{"jobname": "measured", "read": {{'"$m"': 1000000}}, "write": {{'"$m"': '"$n"'000000}}}},'
echo ' {{"jobname": "measured", "read": {{'"$b"': 0}}, "write": {{'"$s"': 500000}}}}]}}'
"""


def lines(job: str) -> list[str]:
    return job.splitlines()


def test_cells_of_all_operations() -> None:
    found = cells([64, 100], [4, 64, 128])
    assert len(found) == len(OPERATIONS) * 3
    assert {(c.file_kib, c.record_kib) for c in found} == {(64, 4), (64, 64), (100, 4)}
    with pytest.raises(Problem, match="no file is a multiple"):
        cells([100], [64])


def test_small_files_are_many() -> None:
    work = Work(processes=3)
    job = lines(work.job(Cell("random write", 64, 8)))
    assert {"size=4096k", "nrfiles=64", "bs=8k", "numjobs=3", "rw=randwrite", "direct=1", "[measured]", "runtime=3000ms"} < {*job}
    assert "stonewall" not in job and not any(line.startswith("end_fsync") for line in job)
    assert {"size=8192k", "nrfiles=1"} < {*lines(work.job(Cell("read", 8192, 8)))}
    assert work.kib(Cell("read", 8192, 8)) == 3 * 8192 and work.kib(Cell("read", 64, 8)) == 3 * 4096


def test_what_is_done_again_is_done_before() -> None:
    for again, way in (("rewrite", "rw=write"), ("reread", "rw=read")):
        job = lines(Work(seconds=0.5).job(Cell(again, 64, 8)))
        # The first pass is whole; both are of the same files.
        assert way in job and job.index("[before]") + 1 == job.index("[measured]")
        assert job[job.index("[measured]") :] == ["[measured]", "runtime=500ms", "stonewall", "invalidate=0"]
        assert "filename_format=$jobnum.$filenum" in job


def test_through_the_page_cache_writes_are_synced() -> None:
    work = Work(buffered=True)
    assert {"direct=0", "end_fsync=1"} < {*lines(work.job(Cell("random write", 64, 8)))}
    assert "direct=0" in lines(work.job(Cell("read", 64, 8))) and "end_fsync=1" not in lines(work.job(Cell("read", 64, 8)))


def test_a_winner_of_each_cell() -> None:
    a, b = Cell("read", 64, 8), Cell("write", 64, 8)
    rates = ((a, "none", 99.0), (a, "bfq", 100.0), (b, "none", 30.0), (b, "bfq", 20.0))
    first, second = cell_winners([MeasuredCell(cell, RankedPoint(name, 8192, rate, rate, rate)) for cell, name, rate in rates])
    assert (first.scheduler, first.even, first.operation, first.record_bytes) == ("bfq", ["none"], "read", 8192)
    assert (second.scheduler, second.even) == ("none", []) and second.ahead_percent == pytest.approx(50)


def test_of_a_drive(capfd: pytest.CaptureFixture[str]) -> None:
    """Long records in order are faster than short ones at random, and only what is counted counts."""
    found = told(capfd, "table", "barracuda-80g", "-s", "none,bfq", "--files", "4m", "--records", "8k,512k", "--processes", "1")
    rates = {(r["operation"], r["record_bytes"] >> 10, r["scheduler"]): r["throughput_MBps"] for r in found["results"]}
    assert len(rates) == 6 * 2 * 2 and len(found["winners"]) == 12
    for scheduler in ("none", "bfq"):
        assert rates["read", 512, scheduler] > 20 * rates["random read", 8, scheduler]
        # A reader alone gets what the disk gives; two passes counted together would be half or twice of it.
        assert 0.8 < rates["reread", 512, scheduler] / rates["read", 512, scheduler] < 1.25


def test_a_process_that_ends_early_does_not_count_as_if_it_went_on() -> None:
    """Two that are served one after the other: 2 MB in 2 s, not 1 MB/s and 0.5."""
    rows: Any = [SimpleNamespace(bytes=10**6, elapsed_s=seconds) for seconds in (1.0, 2.0)]
    assert _simulated_rate(rows) == 1.0
    jobs = [{"jobname": "measured", "read": {"io_bytes": 10**6, "runtime": ms}, "write": {"io_bytes": 0}} for ms in (1000, 2000)]
    assert _told_rate(jobs) == 1.0


def test_of_a_drive_for_people(capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capfd, "table", "barracuda-80g", "-s", "none,as", "--files", "1m", "--records", "64k", "--runs", "1")
    rows = [line.split() for line in out.splitlines()[2:]]
    assert status == 0 and len(rows) == 6
    assert rows[0][:3] == ["write", "1m", "64k"] and rows[-1][:4] == ["random", "write", "1m", "64k"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["barracuda-80g", "--folder", "/tmp"], "--folder is for a disk"),
        (["barracuda-80g", "--files", "1000"], "--files 1000: '1000' is no multiple of 1024 bytes up to 64g"),
        (["barracuda-80g", "--records", "32m"], "--records 32m: '32m' is no multiple of 1024 bytes up to 16m"),
        (["barracuda-80g", "--files", "1k", "--records", "64k"], "no file is a multiple"),
        (["sda"], "give --folder"),
        (["sda", "--folder", "/nonexistent"], "/nonexistent: No such file"),
        (["sda", "--folder", "/etc/passwd"], "/etc/passwd: not a folder"),
        (["sda", "--folder", "/proc"], "/proc: is on no disk"),
        (["sda", "-s", "hw-none", "--folder", "/tmp"], "hw-none"),
    ],
)
def test_what_cannot_be_measured(words: list[str], message: str, machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda")
    status, _, err = run(capfd, "table", *words, "--root", machine.root)
    assert status == 2 and message in err and machine.writes == []


@pytest.fixture
def fio(machine: FakeSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A disk sda that has the test's folder; a folder for what a fake fio was asked."""
    disk = machine.add("sda", wwn="naa.5000")
    machine.add("sdb")
    links = machine.sysfs / "dev" / "block"
    links.mkdir(parents=True)
    device = tmp_path.stat().st_dev
    (links / f"{os.major(device)}:{os.minor(device)}").symlink_to(disk)
    folder = tmp_path / "bin"
    folder.mkdir()
    write(folder / "fio", FIO.format(folder=folder, queue=disk / "queue")).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_a_disk_is_measured_and_restored(machine: FakeSystem, fio: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before, folder = machine.everything("sda"), fio.parent / "files"
    folder.mkdir()
    words = ("-s", "bfq,none", "--files", "64k", "--records", "8k", "--runs", "3", "-t", "1", "--folder", folder)
    status, out, err = run(capfd, "table", "sda", *words, "--root", machine.root, "--json")
    assert status == 0 and err.startswith("sda: up to 36 s of measuring")
    # The middle of three; reads and writes of the jobs that count, and of no other.
    rows = json.loads(out)["results"]
    assert [row["throughput_MBps"] for row in rows] == [3.5 + 3 * i for i in range(12)]
    assert (rows[0]["low_MBps"], rows[0]["high_MBps"]) == (2.5, 4.5)
    assert ["[bfq]" in line for line in (fio / "schedulers").read_text().splitlines()] == [True] * 18 + [False] * 18
    places = set((fio / "places").read_text().split())
    assert len(places) == 36 and all(Path(place).parent == folder for place in places), "each in an empty folder"
    assert list(folder.iterdir()) == [] and (fio / "jobs").read_text().count("[measured]") == 36
    assert machine.everything("sda") == before and Machine(machine.root).state.all() == []


def test_a_failure_restores_and_removes(machine: FakeSystem, fio: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before, folder = machine.everything("sda"), fio.parent / "files"
    folder.mkdir()
    (fio / "fails").touch()
    status, _, err = run(capfd, "table", "sda", "-s", "bfq", "--folder", folder, "--root", machine.root)
    assert status == 2 and "fio: cannot write" in err
    assert list(folder.iterdir()) == [] and machine.everything("sda") == before


def test_a_folder_of_another_disk(machine: FakeSystem, fio: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capfd, "table", "sdb", "--folder", fio, "--root", machine.root)
    assert status == 2 and f"{fio}: is on sda, not on sdb" in err and machine.writes == []


def test_a_folder_without_room(machine: FakeSystem, fio: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--files", "64g", "--processes", "64", "--folder", fio)
    status, _, err = run(capfd, "table", "sda", *words, "--root", machine.root)
    assert status == 2 and re.search(r"the files need 4194304 MiB, and \d+ MiB are free", err) and machine.writes == []


def test_an_eighth_of_room_is_left(machine: FakeSystem, fio: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of 8 MiB need 9."""
    there = Machine(machine.root)
    work, wanted, free = Work(1), [Cell("read", 8192, 8), Cell("read", 64, 8)], [9 << 20, (9 << 20) - 1]
    monkeypatch.setattr("headwaiter.papers.table.shutil.disk_usage", lambda folder: SimpleNamespace(free=free.pop(0)))
    check_folder(there, target_of(there, "sda"), fio, wanted, work)
    with pytest.raises(Problem, match="the files need 8 MiB, and 8 MiB are free"):
        check_folder(there, target_of(there, "sda"), fio, wanted, work)


def test_watch_goes_by_it(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    run(capfd, "table", "barracuda-80g", "-s", "none,bfq", "--files", "1m", "--records", "8k,64k", "--json", "-o", file)
    rows = json.loads(file.read_text())["results"]
    rates = {r["scheduler"]: r["throughput_MBps"] for r in rows if (r["operation"], r["record_bytes"]) == ("random read", 65536)}
    table = read_table(file)
    cell = table.cell("random read", 1000, 60)
    assert table.rates[cell] == rates and table.subject == "barracuda-80g"
    assert promised(table, [cell], "none", ["bfq"])["bfq"] == pytest.approx(math.log(rates["bfq"] / rates["none"]))


@pytest.mark.parametrize(
    "change",
    [
        {"operation": "erase"},
        {"scheduler": ""},
        {"file_bytes": 0},
        {"record_bytes": -1},
        {"record_bytes": 131072},
        {"throughput_MBps": "fast"},
        {"throughput_MBps": math.inf},
    ],
)
def test_a_table_that_is_none(change: dict[str, object], tmp_path: Path) -> None:
    row = {"scheduler": "a", "operation": "read", "file_bytes": 65536, "record_bytes": 4096, "throughput_MBps": 3.0}
    good = {"schema": "headwaiter/1", "subject": "sda", "results": [row]}
    file = write(tmp_path / "t.json", json.dumps(good))
    assert read_table(file).rates == {Cell("read", 64, 4): {"a": 3.0}}
    with pytest.raises(Problem, match=r"t\.json: not what `headwaiter table --json` writes"):
        read_table(write(file, json.dumps({**good, "results": [row | change]})))
    with pytest.raises(Problem, match="has no results"):
        read_table(write(file, json.dumps({**good, "results": []})))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "table"], "--method table needs --ranking or --iozone"),
        (["--method", "table", "--ranking", "x", "--iozone", "a=b"], "--method table needs --ranking or --iozone"),
        (["--method", "request-size"], "--method request-size needs --ranking"),
        (["--method", "request-size", "--iozone", "a=b"], "--iozone is not for --method request-size"),
        (["--ranking", "x"], "--ranking is not for --method replay"),
        (["--method", "table", "--ranking", "nosuchfile"], "nosuchfile: No such file"),
    ],
)
def test_methods_and_their_files(words: list[str], message: str, machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda")
    status, _, err = run(capfd, "watch", "sda", *words, "--root", machine.root)
    assert status == 2 and message in err


@pytest.fixture
def mounted(loop: str, tmp_path: Path) -> Iterator[Path]:
    """A file system on a loop device."""
    subprocess.run(["mkfs.ext4", "-q", f"/dev/{loop}"], check=True)
    folder = tmp_path / "with: colon"
    folder.mkdir()
    subprocess.run(["mount", f"/dev/{loop}", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.thorough
@pytest.mark.needs("fio", "e2fs")
def test_on_a_loop_device(loop: str, mounted: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    queue = Path("/sys/block") / loop / "queue" / "scheduler"
    before, content = queue.read_text(), sorted(p.name for p in mounted.iterdir())
    words = ("-s", "bfq,none", "--files", "64k", "--records", "8k,64k", "--runs", "1", "-t", "0.2", "--processes", "2")
    for more in ((), ("--buffered",)):
        status, out, err = run(capfd, "table", loop, *words, *more, "--folder", mounted, "--state", tmp_path, "--json")
        assert status == 0, err
        found = json.loads(out)
        assert len(found["results"]) == 6 * 2 * 2 and all(row["throughput_MBps"] > 0 for row in found["results"])
    assert queue.read_text() == before and sorted(p.name for p in mounted.iterdir()) == content
