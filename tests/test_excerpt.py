# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings that memory does not hold, in windows read from disk: the file's rows, in bounded memory, with the same answer."""

from __future__ import annotations

import gc
import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from command import good, run, told, write

from headwaiter.advice.gate import gate
from headwaiter.base import reading as base_reading
from headwaiter.base.errors import Problem
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.drive_fit import read_on_drive
from headwaiter.study.workload import CLOSED, Reading, halves_of, read_trace
from headwaiter.traces import Trace, excerpt, lines, load, pieces

HEADER = "time_s,task,op,sync,sector,sectors,complete_s,group,name,cgroup"


def text(count: int, completions: bool = True, seed: int = 1) -> str:
    """Four programs that read or write at once, a request a millisecond; the first row of each tells its name and group."""
    rng = np.random.default_rng(seed)
    rows = [HEADER]
    seen: set[int] = set()
    for i in range(count):
        task = int(rng.integers(1, 5))
        took = int(rng.integers(300_000, 3_000_000))
        at = i * 1_000_000 + int(rng.integers(0, 900_000))
        done = f"{(at + took) / 1e9:.9f}" if completions else ""
        named = "" if task in seen else f"program {task}"
        where = f"g{task}" if task not in seen else ""
        seen.add(task)
        how = "W,0" if task == 4 else "R,1"
        rows.append(f"{at / 1e9:.9f},{task},{how},{int(rng.integers(0, 1 << 20)) * 8},8,{done},{task % 2},{named},{where}")
    return "\n".join(rows) + "\n"


def bad(capfd: pytest.CaptureFixture[str], *args: object) -> str:
    """The one line of what ends with status 2."""
    status, _, stderr = run(capfd, *args)
    assert status == 2 and stderr.count("\n") == 1
    return stderr


def columns(trace: Trace) -> list[list[int]]:
    names = ("time_ns", "complete_ns", "op", "flags", "sector", "sectors", "ioprio")
    ids = np.array([task.id for task in trace.tasks])
    return [getattr(trace, name).tolist() for name in names] + [ids[trace.task].tolist()]


def test_windows_have_the_rows_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those that are cut from the recording in memory; packed or not."""
    monkeypatch.setattr(pieces, "MARK", 1)
    monkeypatch.setattr(excerpt, "MARK", 1)
    monkeypatch.setattr(lines, "TEXT_BYTES", 20_000)
    content = text(6000, completions=False)
    path, packed = write(tmp_path / "t.csv", content), tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(content.encode()))
    whole = load(path)
    for seed in range(3):
        wanted = excerpt.cut(whole, excerpt.choose(whole, 1000, seed))
        for one in (path, packed):
            found = excerpt.excerpt(one, seed, ios=1000)
            assert columns(found) == columns(wanted) and len(found) > 900
            assert found.excerpt is not None and found.excerpt.requests == 6000
    assert columns(excerpt.excerpt(path, 1, ios=1000)) != columns(excerpt.excerpt(path, 2, ios=1000))


def test_few_marks_choose_about_as_many_requests(tmp_path: Path) -> None:
    """A mark every 1,024 rows tells the number of rows in windows to some percent."""
    found = excerpt.excerpt(write(tmp_path / "t.csv", text(60_000)), ios=30_000)
    assert abs(len(found) - 30_000) < 2500
    assert found.recorded[0] == 60_000 and abs(found.recorded[1] - 60e9) < 1e9
    note = found.notes[-1]
    assert note.startswith(f"the file has 60,000 requests: these are the {len(found):,} in 24 windows of 1.")


def test_what_the_first_row_of_a_program_tells_is_known_in_windows(tmp_path: Path) -> None:
    found = excerpt.excerpt(write(tmp_path / "t.csv", text(8000)), ios=800)
    assert sorted(task.name for task in found.tasks) == [f"program {i}" for i in range(1, 5)]
    assert {task.name: [name for name, _ in task.cgroup] for task in found.tasks} == {
        f"program {i}": [f"g{i}"] for i in range(1, 5)
    }


def test_the_gate_looks_at_all_of_the_recording(tmp_path: Path) -> None:
    """Windows of 10 s of a recording of 80 s are no short recording."""
    found = excerpt.excerpt(write(tmp_path / "t.csv", text(80_000)), ios=10_000)
    told_of = gate(found, depth=1)
    assert told_of.open and told_of.requests == 80_000 and 75 < told_of.seconds < 85
    assert not gate(load(write(tmp_path / "u.csv", text(10_000))), depth=1).open


def test_a_comparison_is_one_of_windows(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the judge's sample, but for what comes before windows; the note, intervals and verdict are there."""
    path = write(tmp_path / "t.csv", text(40_000))
    words = ("compare", path, "-d", "wd-re-4tb", "-s", "none,mq-deadline,bfq")
    whole = told(capfd, *words)
    monkeypatch.setattr(excerpt, "LARGE_BYTES", 1000)
    monkeypatch.setattr(excerpt, "EXCERPT_IOS", 20_000)
    found = told(capfd, *words)
    assert found["workload_sha256"] == whole["workload_sha256"] and found["replay"] == CLOSED
    assert any("the file has 40,000 requests" in note for note in found["notes"])
    for row, other in zip(found["results"], whole["results"], strict=True):
        for figure in ("throughput_MBps", "progress_MBps"):
            assert row[figure] == pytest.approx(other[figure], rel=0.1), row["scheduler"]
    assert "the file has 40,000 requests" not in good(capfd, "describe", path), "memory holds it"
    assert told(capfd, *words, "--whole")["results"] == whole["results"]


def test_a_sweep_that_wants_all_of_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.csv", text(2000))
    monkeypatch.setattr(excerpt, "LARGE_BYTES", 1000)
    work, drive = read_on_drive(path, "wd-re-4tb", Reading())
    with pytest.raises(Problem, match=r"t\.csv: memory does not hold all of it"):
        RunConditions(whole=True).load(work, drive)
    loaded = RunConditions().load(work, drive)
    assert loaded.windows == 24 and loaded.trace is not None
    first, second = halves_of(path, loaded.trace, drive, Reading())
    assert [one.trace.excerpt.windows for one in (first, second) if one.trace and one.trace.excerpt] == [12, 12]


def test_what_is_wrong_is_told_with_its_line(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of completions, which only the second reading looks at."""
    monkeypatch.setattr(excerpt, "LARGE_BYTES", 1000)
    lines = text(3000).splitlines(keepends=True)
    fields = lines[1500].split(",")
    early = ",".join([*fields[:6], "0.000000001", *fields[7:]])
    path = write(tmp_path / "t.csv", "".join([*lines[:1500], early, *lines[1501:]]))
    assert "t.csv:1501: complete_s is before time_s" in bad(capfd, "compare", path, "-d", "wd-re-4tb")
    write(path, "".join([*lines[:700], "1,2\n", *lines[700:]]))
    assert "t.csv:701: 2 fields where 10 are expected" in bad(capfd, "compare", path, "-d", "wd-re-4tb")
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress("".join(lines).encode())[:-2000])
    assert "the gzip stream is truncated" in bad(capfd, "compare", cut, "-d", "wd-re-4tb")


def test_memory_does_not_grow_with_the_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is held at once of a recording that is four times as long."""
    monkeypatch.setattr(lines, "TEXT_BYTES", 50_000)
    monkeypatch.setattr(pieces, "HELD", 1000)
    monkeypatch.setattr(base_reading, "_CHUNK", 50_000)
    peaks = []
    for count in (10_000, 40_000):
        path = write(tmp_path / f"{count}.csv", text(count))
        gc.collect()
        tracemalloc.start()
        excerpt.excerpt(path, ios=1000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_a_file_is_read_whole_where_it_is_small_or_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.csv", text(500))
    assert read_trace(path, Reading()).excerpt is None
    monkeypatch.setattr(excerpt, "LARGE_BYTES", 1000)
    assert read_trace(path, Reading(whole=True)).excerpt is None
    assert read_trace(path, Reading()).excerpt is not None
    other = write(tmp_path / "u.csv", "a,b\n" * 1000)
    assert not excerpt.is_large(other) and not excerpt.is_large(tmp_path / "none.csv") and not excerpt.is_large(tmp_path)
