# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Published traces that memory does not hold: in parts of whole lines as when they are read whole; devices, order, damage."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from command import run, told, write

from headwaiter.base.errors import Problem
from headwaiter.study.workload import Reading, read_trace
from headwaiter.traces import Trace, excerpt, lines, load, pieces

Row = tuple[int, int, str, int, int, int]
"""ns, device, R or W, byte offset, bytes, ns until done."""
START_NS = 1_500_000_000 * 10**9


def rows_of(count: int, devices: int = 1, shuffled: int = 1) -> list[Row]:
    """Requests a millisecond apart, up to so many rows from where they belong in time; one of no length."""
    rng = np.random.default_rng(1)
    found = [
        (
            START_NS + i * 1_000_000 + int(rng.integers(0, 900)) * 1000,
            int(rng.integers(0, devices)),
            "RW"[i % 3 == 0],
            int(rng.integers(0, 1 << 20)) * 4096,
            0 if i == 77 else 4096 * int(rng.integers(1, 9)),
            1000 * int(rng.integers(100, 3000)),
        )
        for i in range(count)
    ]
    place = np.argsort(np.arange(count) + rng.integers(0, shuffled, count), kind="stable")
    return [found[i] for i in place.tolist()]


def msr(row: Row) -> str:
    time, device, op, offset, size, took = row
    return (
        f"{time // 100 + 116_444_736_000_000_000},host,{device},{'Read' if op == 'R' else 'Write'},{offset},{size},{took // 100}"
    )


def systor(row: Row) -> str:
    time, device, op, offset, size, took = row
    return f"{time // 10**9}.{time % 10**9:09d},{took / 1e9:.9f},{op},{device},{offset},{size}"


def alibaba(row: Row) -> str:
    time, device, op, offset, size, _ = row
    return f"{device},{op},{offset},{size},{time // 1000}"


def tencent(row: Row) -> str:
    time, device, op, offset, size, _ = row
    return f"{time // 10**9},{offset // 512},{size // 512},{int(op == 'W')},{device}"


def spc(row: Row) -> str:
    time, device, op, offset, size, _ = row
    return f"{device},{offset // 512},{size},{op},{(time - START_NS) / 1e9:.6f}"


WRITERS = {
    "msr": ("", msr),
    "systor": ("Timestamp,Response,IOType,LUN,Offset,Size\n", systor),
    "alibaba": ("device_id,opcode,offset,length,timestamp\n", alibaba),
    "alibaba without its header": ("", alibaba),
    "tencent": ("", tencent),
    "spc": ("", spc),
}


def text_of(name: str, rows: list[Row]) -> str:
    header, line = WRITERS[name]
    return header + "".join(f"{line(row)}\n" for row in rows)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "TEXT_BYTES", 20_000)
    monkeypatch.setattr(pieces, "HELD", 200)


@pytest.mark.parametrize("name", WRITERS)
def test_a_run_from_disk_is_that_of_the_trace_in_memory(capfd: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    """Rows out of order, across parts, too."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(text_of(name, rows_of(3000, shuffled=100)).encode()))
    assert load(path).format == name.partition(" ")[0]
    words = ("run", path, "--replay", "open", "-s", "bfq", "-d", "wd-re-4tb")
    whole, found = told(capfd, *words, "--seeds", "0"), told(capfd, *words, "--stream")
    for key in ("results", "workload_sha256", "replay", "drive"):
        assert found[key] == whole[key], key


def test_a_field_of_the_first_row_is_no_name_of_a_column(tmp_path: Path) -> None:
    """Columns by number: a write is 1 in Tencent's traces, where the first column is the time."""
    found = load(write(tmp_path / "t.csv", "1500000000,8,8,1,0\n1500000001,16,8,0,0\n1500000003,24,8,1,0\n"))
    assert found.time_ns.tolist() == [0, 10**9, 3 * 10**9] and found.op.tolist() == [1, 0, 1]


def _columns(trace: Trace) -> list[list[int]]:
    return [getattr(trace, one).tolist() for one in ("time_ns", "complete_ns", "op", "flags", "sector", "sectors", "task")]


@pytest.mark.parametrize("name", ["msr", "systor", "alibaba"])
def test_windows_are_cut_from_what_the_file_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With completions; their choice goes by the times of arrival."""
    monkeypatch.setattr(pieces, "MARK", 1)
    monkeypatch.setattr(excerpt, "MARK", 1)
    path = write(tmp_path / "t.csv", text_of(name, rows_of(4000, shuffled=50)))
    whole, found = load(path), excerpt.excerpt(path, ios=1000)
    assert found.format == name and not found.tasks_known and found.excerpt is not None
    times = whole.time_ns - whole.time_ns[0]
    windows = excerpt._choose(times, 1, len(whole), int(times[-1]), excerpt._latency_ns(pieces.index(path).first()), 1000, 0)
    assert _columns(found) == _columns(excerpt.cut(whole, windows))


def test_one_of_several_devices(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The busiest if none is named, as when the file is read whole; the parts of a file may tell a device late."""
    rows = [(*row[:1], min(row[1], int(i > 2000)), *row[2:]) for i, row in enumerate(rows_of(3000, devices=3))]
    path = write(tmp_path / "t.csv", text_of("msr", rows[:-1]))
    words = ("run", path, "--replay", "open", "-s", "none", "-d", "wd-re-4tb")
    for chosen in ((), ("--device", "host.1")):
        found, whole = told(capfd, *words, *chosen, "--stream"), told(capfd, *words, *chosen, "--seeds", "0")
        assert found["results"] == whole["results"]
        note = next(note for note in whole["notes"] if note.startswith("device host."))
        assert chosen or (note.startswith("device host.0, the busiest, of 2: host.0 (") and note in found["notes"])
    status, out, err = run(capfd, *words, "--stream", "--device", "host.9")
    assert (status, out) == (2, "") and "t.csv: no device 'host.9'" in err
    monkeypatch.setattr(excerpt, "LARGE_BYTES", 1000)
    for device, note in ((1, None), (0, "device host.0, the busiest, of 2")):
        cut = read_trace(path, Reading(device=f"host.{device}" if note is None else None))
        assert cut.excerpt and cut.excerpt.requests == sum(row[1] == device and row[4] > 0 for row in rows[:-1])
        assert note is None or any(one.startswith(note) for one in cut.notes)


def test_a_device_that_is_in_few_parts(tmp_path: Path) -> None:
    rows = [(*row[:1], int(1000 <= i < 1100), *row[2:]) for i, row in enumerate(rows_of(3000))]
    path = write(tmp_path / "t.csv", text_of("systor", rows))
    found = pieces.index(path, device="1")
    assert found.requests == 100 and [task.name for task in found.tasks] == ["task 0"]


def test_what_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    """Lines are counted in parts behind the first, too, with and without a header."""
    for name, number in (("msr", 2001), ("systor", 2002), ("spc", 2001)):
        text = text_of(name, rows_of(3000)).splitlines(keepends=True)
        bad = [*text]
        bad[number - 1] = (
            bad[number - 1].replace(",Write,", ",Wrote,").replace(",Read,", ",Wrote,").replace(",R,", ",X,").replace(",W,", ",X,")
        )
        path = write(tmp_path / "t.csv", "".join(bad))
        with pytest.raises(Problem, match=rf"t\.csv:{number}: unknown"):
            pieces.index(path)
        write(path, "".join([*text[:1500], "1,2\n", *text[1500:]]))
        with pytest.raises(Problem, match=r"t\.csv:1501: 2 fields where"):
            pieces.index(path)
    back = rows_of(3000)
    with pytest.raises(Problem, match=r"t\.csv: time goes back by more than 200 rows"):
        pieces.index(write(tmp_path / "t.csv", text_of("msr", [*back[500:], *back[:500]])))


def test_what_cannot_be_read_in_parts(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(tmp_path / "t.txt", "\n".join(f"0.{i:04d} 0 {i * 8} 8 1" for i in range(100)))
    status, out, err = run(capfd, "run", path, "-s", "none", "--stream")
    assert (status, out) == (2, "") and "not of a format that can be read from disk in pieces (native, alibaba" in err
