# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What stands for another tool's output is made by that tool: blkparse, trace-cmd, perf, btt and fio themselves.

A writer of ours would share our beliefs of how they spell things.
"""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import numpy as np
import pytest
from blkrecords import event, message, process

from headwaiter.base.errors import Problem
from headwaiter.experiments.record import compared
from headwaiter.lab import script
from headwaiter.traces import Trace, load, with_flushes


def _parsed(folder: Path, records: list[bytes]) -> tuple[Trace, Trace, str]:
    """Those records as we read them, the text that blkparse makes of them as we read it, and the text."""
    folder.mkdir(exist_ok=True)
    binary = folder / "t.blktrace.0"
    binary.write_bytes(b"".join(records))
    done = subprocess.run(["blkparse", "-i", "t"], cwd=folder, capture_output=True, text=True, check=True)
    text = folder / "t.txt"
    text.write_text(done.stdout)
    return load(binary), load(text), done.stdout


def _same(one: Trace, other: Trace) -> None:
    """Check that both have the same requests and flushes, at the same times."""
    a, b = with_flushes(one), with_flushes(other)
    for name in ("time_ns", "complete_ns", "sector", "sectors", "op", "flags"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), (name, getattr(a, name), getattr(b, name))
    assert [a.tasks[k].id for k in a.task] == [b.tasks[k].id for k in b.task]


@pytest.mark.needs("blktrace")
def test_every_spelling_of_blkparse(tmp_path: Path) -> None:
    """Each operation with each mark, queued, issued and done, with data."""
    records, at = [process(0, 700, "a prog] name")], 0
    spelled = [
        before + op + "".join(marks)
        for before, op, *marks in itertools.product(("", "F"), ("R", "W", "WD"), ("", "U"), ("", "A"), ("", "S"), ("", "M"))
    ]
    for k, rwbs in enumerate(spelled):
        for letter, pid in (("Q", 700), ("D", 90), ("C", 0)):
            at += 1000
            records.append(event(at, letter, rwbs, 8 * k, 8, pid=pid))
    binary, text, printed = _parsed(tmp_path / "x", records)
    assert len(binary) == len(spelled) and "FWFASM" in printed and "FDFASM" in printed
    _same(binary, text)
    assert {task.name for task in text.tasks} == {"a prog] name"}


@pytest.mark.needs("blktrace")
@pytest.mark.parametrize("asks", ["FW", "FWS", "FWUS", "WUS", "FWUSM"])
@pytest.mark.parametrize("sectors", [0, 8])
def test_flushes_as_blkparse_prints_them(tmp_path: Path, asks: str, sectors: int) -> None:
    """A journal's commit on a drive with a volatile cache and without FUA, and a flush alone; FN is the kernel's own flush."""
    plain = asks.replace("F", "").replace("U", "")
    steps = [("Q", asks, 5000 if sectors else 0, sectors, 700), ("D", "RF", 0, 0, 90), ("C", "RF", 0, 0, 0)]
    if sectors:
        steps += [("D", plain, 5000, 8, 90), ("C", plain, 5000, 8, 0), ("D", "RF", 0, 0, 90), ("C", "RF", 0, 0, 0)]
    steps.append(("C", plain, 5000 if sectors else 0, 0, 0))
    other = [event(9 * 10**6, "Q", "R", 8, 8, pid=5), event(9_100_000, "C", "R", 8, 8, pid=0)]
    records = [event(1000 * k, letter, rwbs, at, n, pid=pid) for k, (letter, rwbs, at, n, pid) in enumerate(steps)] + other
    binary, text, printed = _parsed(tmp_path / "x", records)
    assert " FN" in printed
    _same(binary, text)
    assert (binary.flushes is None) == (asks == "WUS" and not sectors)


@pytest.mark.needs("blktrace")
def test_what_else_blkparse_prints(tmp_path: Path) -> None:
    """Splits, remaps, messages, merges, plugs; devices and numbers that fill their columns; commands that are passed through."""
    wide = (259, 1048575)
    records = [
        process(0, 4194304, "a"),
        event(100, "Q", "R", 10**12, 16, pid=4194304, device=wide),
        event(150, "X", "R", 10**12, 16, pid=4194304, aux=10**12 + 8, device=wide),
        event(160, "P", "R", 0, 0, pid=4194304, device=wide),
        event(170, "U", "R", 0, 0, pid=4194304, device=wide),
        event(180, "M", "R", 10**12 + 8, 8, pid=4194304, device=wide),
        event(190, "D", "RP", 0, 0, pid=4194304, device=wide),
        message(195, "fork 4194304 17", device=wide),
        event(200, "D", "R", 10**12, 16, pid=4194304, device=wide),
        event(10**15, "C", "R", 10**12, 16, pid=0, device=wide),
    ]
    binary, text, _ = _parsed(tmp_path / "x", records)
    assert len(binary) == 2
    _same(binary, text)
    # Two recordings one behind the other, each with its summary: their times begin anew, so the second one does not count.
    once = (tmp_path / "x" / "t.txt").read_text()
    (tmp_path / "two.txt").write_text(once + once)
    twice = load(tmp_path / "two.txt")
    _same(binary, twice)
    assert any("another recording, whose times begin anew" in note for note in twice.notes)
    assert not any("not known here" in note for note in twice.notes), "every line of blkparse's summary is known"


@pytest.mark.needs("blktrace")
def test_btts_output_is_named(tmp_path: Path) -> None:
    records = [event(1000 * k, letter, "R", 8 * (k // 3), 8, pid=5) for k, letter in enumerate("QDC" * 20)]
    _parsed(tmp_path / "x", records)
    subprocess.run(["blkparse", "-i", "t", "-d", "t.bin", "-O"], cwd=tmp_path / "x", check=True, capture_output=True)
    done = subprocess.run(["btt", "-i", "t.bin"], cwd=tmp_path / "x", check=True, capture_output=True, text=True)
    (tmp_path / "btt.txt").write_text(done.stdout)
    with pytest.raises(Problem, match="btt's output"):
        load(tmp_path / "btt.txt")
    assert len(load(tmp_path / "x" / "t.bin")) == 20, "what blkparse dumps for btt is a recording"


@pytest.mark.needs("fio")
@pytest.mark.parametrize(
    ("form", "said"), [("json", "fio's results (JSON)"), ("json+", "fio's results (JSON)"), ("normal", "fio's results")]
)
def test_fios_output_is_named(tmp_path: Path, form: str, said: str) -> None:
    command = ["fio", "--name=a", "--size=64k", "--rw=read", f"--output-format={form}", f"--output={tmp_path / 'out'}"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    with pytest.raises(Problem) as e:
        load(tmp_path / "out")
    assert said in str(e.value)


@pytest.mark.needs("fio")
def test_logs_that_fios_jobs_share(tmp_path: Path) -> None:
    (tmp_path / "j.fio").write_text("[global]\nwrite_iolog=out.log\nsize=8k\nrw=read\nfilename=f\n[one]\n[two]\n")
    subprocess.run(["fio", "j.fio"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "out.log").read_text().count("fio version 3 iolog") == 2
    found = load(tmp_path / "out.log")
    assert len(found) == 4 and any("the logs of 2 jobs in one file" in note for note in found.notes)


@pytest.mark.thorough
@pytest.mark.needs("tracers")
def test_tools_in_a_guest_see_the_same(tmp_path: Path) -> None:
    """One load as blktrace, blkparse, trace-cmd, perf and tracefs have it."""
    _, _, files = script.execute("tools", ["6.1"], {}, lambda _: None)
    for name in ("blkparse.txt", "trace-cmd.txt", "perf.txt", "tracefs.txt", "disk.blktrace.0", "trace.dat", "perf.data"):
        (tmp_path / name).write_bytes(files[f"6.1/{name}"])
    wanted = load(tmp_path / "disk.blktrace.0")
    assert len(wanted) > 20 and wanted.flushes is not None
    for name in ("blkparse.txt", "trace-cmd.txt", "perf.txt", "tracefs.txt"):
        found = load(tmp_path / name)
        assert compared(wanted, found).same, (name, compared(wanted, found))
        assert not any("not known here" in note for note in found.notes), (name, found.notes)
    for name, said in {
        "trace.dat": "trace-cmd's own file: `trace-cmd report",
        "perf.data": "perf's own file: `perf script",
    }.items():
        with pytest.raises(Problem) as e:
            load(tmp_path / name)
        assert said in str(e.value)
