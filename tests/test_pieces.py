# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A trace that is replayed from disk: as one that is in memory, and in bounded memory."""

from __future__ import annotations

import gc
import gzip
import hashlib
import io
import json
import lzma
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import zstandard
from command import good, run, told, write

from headwaiter.base.errors import Problem
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.schedulers import catalogue
from headwaiter.engine.sim import Forest, Options, Outcome, Piece, Pieces, Task, simulate
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.inkernel import depth_of
from headwaiter.traces import excerpt, lines, pieces

HEADER = "time_s,task,op,sync,sector,sectors,complete_s,group,ioprio,name,cgroup\n"


def forest(seed: int, count: int, sectors: int, apart_ns: int) -> Forest:
    """Reads, writes, discards and flushes of five tasks at random places, some at the same time."""
    rng = np.random.default_rng(seed)
    time = np.sort((rng.random(count) * count * apart_ns).astype(np.int64) // 50_000 * 50_000)
    op = rng.choice(np.array([Op.READ, Op.WRITE, Op.DISCARD, Op.FLUSH]), count, p=[0.6, 0.33, 0.05, 0.02]).astype(np.uint8)
    data = op != Op.FLUSH
    return Forest(
        tasks=tuple(Task(100 + i, "x", i) for i in range(5)),
        time_ns=time - time[0],
        parent=np.full(count, -1, np.int64),
        delay_ns=np.zeros(count, np.int64),
        task=rng.integers(0, 5, count).astype(np.uint32),
        op=op,
        flags=np.where((op == Op.READ) | (rng.random(count) < 0.3) | ~data, SYNC, 0).astype(np.uint8),
        sector=(rng.integers(0, sectors - 2048, count) * data).astype(np.uint64),
        sectors=(rng.integers(1, 512, count) * data).astype(np.uint32),
        ioprio=np.zeros(count, np.uint16),
    )


def in_pieces(load: Forest, seed: int, cuts: int) -> Pieces:
    """Return the pieces, cut where the time changes."""
    changes = np.flatnonzero(np.diff(load.time_ns)) + 1
    at = np.sort(np.random.default_rng(seed).choice(changes, min(cuts, len(changes)), replace=False)).tolist()
    edges = list(zip([0, *at], [*at, len(load.time_ns)], strict=True))

    def cut(begin: int, end: int) -> Piece:
        return Piece(**{one.name: getattr(load, one.name)[begin:end].copy() for one in fields(Piece)})

    ios = np.bincount(load.task, minlength=len(load.tasks)).astype(np.uint64)
    return Pieces(load.tasks, ios, lambda: (cut(*edge) for edge in edges))


def assert_same(one: Outcome, other: Outcome) -> None:
    assert (one.totals, one.stats) == (other.totals, other.stats)
    for table in ("tallies", "latencies"):
        a, b = getattr(one, table), getattr(other, table)
        assert all(np.array_equal(getattr(a, column.name), getattr(b, column.name)) for column in fields(a))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["wd-re-4tb", "nvme-ssd", "sata-ssd", "constant:2", "gp3"])
@pytest.mark.parametrize("apart_ns", [200_000, 20_000], ids=["idle", "crowded"])
def test_pieces_are_the_whole(name: str, apart_ns: int, tmp_path: Path) -> None:
    """Under every scheduler, with and without a host and write-back throttling; down to the event log."""
    drive = open_drive(name)
    load = forest(1, 1500, min(drive.sectors, 1 << 30), apart_ns)
    for conditions in (RunConditions(), RunConditions(wbt_depth=16)):
        usual = conditions.options(drive)
        for number, scheduler in enumerate(catalogue()):
            options = conditions.of(usual, scheduler, depth_of(drive, usual))
            logs = (tmp_path / "whole.csv", tmp_path / "pieces.csv") if number % 5 == 0 else (None, None)
            whole = simulate(scheduler, drive, load, options=options, log=logs[0])
            assert_same(whole, simulate(scheduler, drive, in_pieces(load, number, 30), options=options, log=logs[1]))
            if logs[0] and logs[1]:
                assert logs[0].read_bytes() == logs[1].read_bytes()


def test_pieces_that_are_none() -> None:
    """What comes before another piece, what keeps rows, and a row that does not fit are refused."""
    drive, load = open_drive("constant:1"), forest(1, 100, 1 << 20, 1_000_000)
    good_one = in_pieces(load, 1, 4)
    one, two, *_ = good_one.read()
    for wrong, cause in (
        ([two, one], "row 0: comes before another piece's"),
        ([one, one], "row 0: comes before another piece's"),
        ([replace(one, sector=one.sector + np.uint64(1 << 50))], "do not fit on a drive"),
        ([replace(one, task=one.task + np.uint32(9))], "no task"),
    ):
        with pytest.raises(Problem, match=cause):
            simulate("noop", drive, replace(good_one, read=lambda wrong=wrong: iter(wrong)))  # type: ignore[misc]
    with pytest.raises(Problem, match="keeps no row per I/O"):
        simulate("noop", drive, good_one, options=Options(record=True))


def trace(count: int = 3000, shuffled: int = 1) -> str:
    """Native CSV with all columns, rows up to so many places from where they belong in time."""
    load, rng = forest(3, count, 1 << 27, 400_000), np.random.default_rng(5)
    place = np.argsort(np.arange(count) + rng.integers(0, shuffled, count), kind="stable")
    rows = []
    for i in place.tolist():
        op, task = "RWDOF"[int(load.op[i])], int(load.task[i])
        time = load.time_ns[i] + 10**9
        done = "" if op == "F" else f"{(time + 10**6) / 1e9:.9f}"
        rows.append(
            f"{time / 1e9:.9f},{100 + task},{op},{int(load.flags[i] & 1)},{load.sector[i]},{load.sectors[i]},{done},{task % 3},"
            f"{('', 'be/3', 'idle')[task % 3]},name{task},{'a/b' if task == 1 else ''}\n"
        )
    return HEADER + "".join(rows)


def results(document: dict[str, object]) -> object:
    """What both replays tell; only rows in memory tell how often the device was found occupied."""
    return document["results"], document["workload_sha256"], document["replay"], document["drive"], document["processor"]


def unpacked(data: bytes) -> bytes:
    return data


@pytest.mark.thorough
@pytest.mark.parametrize("pack", [unpacked, gzip.compress, lzma.compress, zstandard.compress], ids=["csv", "gz", "xz", "zst"])
def test_from_disk_as_in_memory(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    """In small pieces, with rows out of order; numbers, names, groups and control groups of tasks."""
    monkeypatch.setattr(lines, "TEXT_BYTES", 10_000)
    monkeypatch.setattr(pieces, "HELD", 200)
    path = write(tmp_path / "trace", pack(trace(shuffled=100).encode()))
    for how in (
        ("bfq", "-d", "wd-re-4tb"),
        ("kyber", "-d", "nvme-ssd", "--speed", "3"),
        ("as-share", "-d", "cheetah-15k", "--share", "101=7"),
    ):
        words = ("run", path, "--replay", "open", "--sched", *how)
        found = told(capfd, *words, "--stream")
        assert results(found) == results(told(capfd, *words, "--seeds", "0"))
        assert "replayed from disk, open, at its timestamps" in found["notes"]


def test_several_streams_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `cat a.gz b.gz` makes it, with zeros behind."""
    monkeypatch.setattr(lines, "TEXT_BYTES", 10_000)
    text = trace(500).encode()
    for pack, end in ((gzip.compress, b"\0" * 1000), (lzma.compress, b"\0" * 400), (zstandard.compress, b"")):
        stored = pack(text[:9000]) + pack(text[9000:]) + end
        found = pieces.index(write(tmp_path / "two", stored))
        assert (found.rows, found.sha256) == (500, hashlib.sha256(stored).hexdigest())


def test_what_is_printed(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As of any run; a log is written, too."""
    path, log = write(tmp_path / "t.csv", trace(300)), tmp_path / "log.csv"
    text = good(capfd, "run", path, "-s", "bfq", "--stream", "--log", log, "-d", "wd-re-4tb", "--legend")
    assert text.startswith("t.csv on wd-re-4tb, replayed open\n") and "name4" in text
    assert log.read_text().count("\n") > 300


def test_a_large_open_replay_streams_by_itself(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.csv", trace(300))
    words = ("run", path, "-s", "noop", "-d", "wd-re-4tb")
    monkeypatch.setattr(excerpt, "LARGE_BYTES", 1000)
    assert "replayed from disk, open, at its timestamps" in told(capfd, *words, "--replay", "open")["notes"]
    assert told(capfd, *words, "--whole")["replay"] == "closed"
    monkeypatch.undo()
    assert not any("disk" in note for note in told(capfd, *words, "--replay", "open")["notes"])


def damaged(text: str) -> dict[str, tuple[bytes, str]]:
    """Files that are none, and what is said of them behind the name."""
    lines = text.splitlines(keepends=True)
    packed = gzip.compress(text.encode())
    unknown = lines[1].replace(",R,", ",X,").replace(",W,", ",X,")
    back = "time goes back by more than 50 rows: sort the file by time"
    return {
        "field": ("".join([*lines[:400], "1,2\n", *lines[400:]]).encode(), ":401: 2 fields where 11 are expected"),
        "number": (
            "".join([*lines[:400], unknown]).encode(),
            ":401: unknown op 'X'",
        ),
        "late": (
            "".join([lines[0], *lines[300:], *lines[1:300]]).encode(),
            back,
        ),
        "empty": (b"", ": empty file"),
        "header": (lines[0].encode(), ": contains no requests"),
        "other": (b"[job]\nrw=read\n", ": not of a format that can be read from disk in pieces"),
        "cut": (packed[: len(packed) // 2], ": the gzip stream is truncated"),
        "broken": (packed[:2000] + b"xxxxxxxx" + packed[2008:], ": the gzip stream is damaged"),
    }


@pytest.mark.parametrize("kind", damaged(trace(10)))
def test_one_line_says_what_is_wrong_and_where(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(lines, "TEXT_BYTES", 4000)
    monkeypatch.setattr(pieces, "HELD", 50)
    content, cause = damaged(trace(800))[kind]
    path = write(tmp_path / "t.csv", content)
    status, out, err = run(capfd, "run", path, "-s", "noop", "-d", "wd-re-4tb", "--stream")
    assert (status, out, err.count("\n")) == (2, "", 1) and cause in err and err.startswith(f"headwaiter: {path}:")
    if kind in ("cut", "broken", "late"):
        line = int(err.split(":")[2])
        assert 1 < line <= 801


def test_a_cut_stream_names_the_line_at_which_it_ends(tmp_path: Path) -> None:
    text = trace(2000).encode()
    packed = gzip.compress(text)[: -len(text) // 40]
    whole = io.BytesIO()
    with pytest.raises(EOFError), gzip.open(io.BytesIO(packed)) as f:
        while piece := f.read(1):
            whole.write(piece)
    with pytest.raises(Problem, match=rf":{whole.getvalue().count(10) + 1}: the gzip stream is truncated"):
        pieces.index(write(tmp_path / "t.gz", packed))


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("--replay", "closed"), "--stream replays timestamps"),
        (("--streams", "2"), "--streams is not for it"),
        (("--device", "sda"), "traces of this format do not name devices"),
        (("--seeds", "2"), "--seeds is not for it"),
        (("--plot", "x.png"), "--plot is not for it"),
        (("--share", "9=2"), "has no task 9"),
        (("-d", "maxtor-20g"), "past the end of maxtor-20g"),
    ],
)
def test_what_does_not_stream(capfd: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], cause: str) -> None:
    path = write(tmp_path / "t.csv", trace(50))
    status, out, err = run(capfd, "run", path, "-s", "noop", "--stream", *words)
    assert (status, out) == (2, "") and cause in err and err.count("\n") == 1


MEASURED = """
import json, resource, sys
from pathlib import Path
from headwaiter.traces import lines, pieces
from headwaiter.drives.choose import open_drive
from headwaiter.engine.sim import Options, simulate
lines.TEXT_BYTES, pieces.HELD = 1 << 18, 1 << 12
found = pieces.index(Path(sys.argv[1]))
done = simulate("mq-deadline", open_drive("nvme-ssd"), found.load(), options=Options(nr_requests=64, exact=1000))
print(json.dumps([done.totals["completed"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def packed_reads(folder: Path, count: int) -> Path:
    """So many reads of seven tasks, a millisecond apart."""
    path = folder / f"{count}.csv.gz"
    rows = (f"{i / 1000:.3f},{i % 7},R,1,{i * 7919 % 1000003 * 8},8\n" for i in range(count))
    path.write_bytes(gzip.compress(("time_s,task,op,sync,sector,sectors\n" + "".join(rows)).encode(), 1))
    return path


def test_what_was_read_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and not when the collector of garbage comes."""
    monkeypatch.setattr(lines, "TEXT_BYTES", 1 << 16)
    monkeypatch.setattr(pieces, "HELD", 1 << 9)

    def peak_bytes(count: int) -> int:
        path = packed_reads(tmp_path, count)
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            assert pieces.index(path).rows == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            gc.enable()

    assert peak_bytes(120_000) < 1.2 * peak_bytes(30_000)


@pytest.mark.thorough
def test_memory_does_not_grow_with_the_trace(tmp_path: Path) -> None:
    """Four times as many requests take as much, but for some MB of what a process happens to keep."""

    def peak_kb(count: int) -> int:
        path = packed_reads(tmp_path, count)
        ran = subprocess.run([sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True)
        completed, kb = json.loads(ran.stdout)
        assert completed == count
        return int(kb)

    assert peak_kb(400_000) - peak_kb(100_000) < 16_000
