# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Traces written in other formats and read again; archives; what is good of a damaged recording."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from pathlib import Path

import numpy as np
import pytest
import zstandard
from command import good, run
from conftest import ROOT

from headwaiter.base.errors import Problem
from headwaiter.engine.constants import Op
from headwaiter.traces import Trace, formats, load, write_csv

EXAMPLE = ROOT / "workloads" / "example.blktrace.xz"
NATIVE = """time_s,task,op,sync,sector,sectors,complete_s,group,name
0.000000000,7,R,1,1000,8,0.005000000,0,cat
0.001000001,8,W,0,50,16,0.009000000,1,flusher
0.002000000,7,W,1,2000,8,0.002000000,0,cat
0.003000500,8,D,0,64,8,,1,flusher
"""


def written(trace: Trace, format: str, folder: Path) -> tuple[Path, list[str]]:
    path = folder / f"again.{format}"
    write = formats()[format].write
    assert write
    with path.open("w") as out:
        lost = write(trace, out)
    return path, lost


def sample(folder: Path, text: str = NATIVE) -> Trace:
    (folder / "sample.csv").write_text(text)
    return load(folder / "sample.csv")


def test_a_flush_at_the_time_of_a_request_keeps_its_task(tmp_path: Path) -> None:
    """Tasks are numbered as they appear, and at one time requests come before flushes, whatever the file's order."""
    rows = "time_s,task,op,sync,sector,sectors\n1,2,F,1,0,0\n1,1,W,0,8,8\n1,2,W,0,16,8\n1,3,F,1,0,0\n2,3,R,1,0,8\n"
    trace = sample(tmp_path, rows)
    again = load(written(trace, "native", tmp_path)[0])
    assert [t.id for t in trace.tasks] == [t.id for t in again.tasks] == [1, 2, 3]
    assert trace.task.tolist() == again.task.tolist() == [0, 1, 2]
    assert trace.flushes is not None and again.flushes is not None
    assert trace.flushes.task.tolist() == again.flushes.task.tolist() == [1, 2]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("format", ["native", "blkparse"])
def test_round_trip_keeps_all_that_is_replayed(tmp_path: Path, format: str, whole: bool) -> None:
    trace = load(EXAMPLE) if whole else sample(tmp_path)
    path, _ = written(trace, format, tmp_path)
    again = load(path)
    assert again.format == format
    for name in ("time_ns", "complete_ns", "op", "flags", "sector", "sectors"):
        assert np.array_equal(getattr(trace, name), getattr(again, name)), name
    ids, ids_again = ([t.tasks[k].id for k in t.task.tolist()] for t in (trace, again))
    assert ids == ids_again
    assert {t.id: (t.name, t.exit_ns) for t in trace.tasks} == {
        t.id: (t.name, t.exit_ns) for t in again.tasks
    } or format == "native"


@pytest.mark.parametrize("whole", [False, True])
def test_round_trip_through_fio(tmp_path: Path, whole: bool) -> None:
    trace = load(EXAMPLE) if whole else sample(tmp_path)
    path, lost = written(trace, "iolog", tmp_path)
    assert path.read_text().startswith("fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n")
    again = load(path)
    assert np.array_equal(again.time_ns, (trace.time_ns - trace.time_ns[0]) // 1000 * 1000)
    for name in ("op", "sector", "sectors"):
        assert np.array_equal(getattr(trace, name), getattr(again, name)), name
    assert "neither tasks nor completions" in lost[0]


def test_an_iolog_begins_at_0(tmp_path: Path) -> None:
    trace = sample(tmp_path, NATIVE.replace("\n0.00", "\n5.00").replace(",0.00", ",5.00"))
    path, _ = written(trace, "iolog", tmp_path)
    assert [line.split()[0] for line in path.read_text().splitlines()[3:]] == ["0", "1000", "2000", "3000", "3000"]


def test_what_an_iolog_cannot_hold_is_told(tmp_path: Path) -> None:
    trace = sample(tmp_path, NATIVE + "0.004,7,O,0,8,8,,0,cat\n")
    assert trace.op[-1] == Op.OTHER
    path, lost = written(trace, "iolog", tmp_path)
    assert lost[1].startswith("1 requests that are no read") and len(load(path)) == 4


def test_import_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sample.csv").write_text(NATIVE)
    status, out, err = run(capfd, "import", tmp_path / "sample.csv", "--to", "blkparse")
    assert status == 0 and out.count(" Q ") == 4 and out.count(" C ") == 3
    assert "neither threads of control nor priorities" in err
    status, _, err = run(capfd, "import", tmp_path / "sample.csv", "--to", "srt")
    assert status == 2 and "--to" in err


# --- archives ---


def tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, zstandard.compress])
def test_a_trace_in_an_archive(tmp_path: Path, pack: object) -> None:
    (tmp_path / "a.tar.x").write_bytes(pack(tar({"README": b"of 2026", "run/trace.csv": gzip.compress(NATIVE.encode())})))  # type: ignore[operator]
    assert np.array_equal(load(tmp_path / "a.tar.x").sector, sample(tmp_path).sector)


def test_a_recording_of_several_files_in_an_archive(tmp_path: Path) -> None:
    """The records of each CPU in a file of its own, as blktrace writes them."""
    data = lzma.decompress(EXAMPLE.read_bytes())
    whole = load(EXAMPLE)
    half = data.find(data[:4], len(data) // 2)
    (tmp_path / "r.tar").write_bytes(
        tar({"r/sda.blktrace.0": data[:half], "r/sda.blktrace.1": data[half:], "r/sda.blktrace.2": b""})
    )
    again = load(tmp_path / "r.tar")
    assert len(again) == len(whole) and np.array_equal(again.sector, whole.sector)


def test_an_archive_of_several_traces_names_them(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tar({"one.csv": NATIVE.encode(), "two.csv": NATIVE.encode()}))
    with pytest.raises(Problem, match=r"an archive of 2 traces \(one.csv, two.csv\)"):
        load(tmp_path / "a.tar")
    (tmp_path / "b.tar").write_bytes(tar({"README": b"nothing"}))
    with pytest.raises(Problem, match="without a trace"):
        load(tmp_path / "b.tar")
    (tmp_path / "c.tar").write_bytes(tar({"one.csv": NATIVE.encode() * 100})[:3000])
    with pytest.raises(Problem, match=r"truncated|damaged"):
        load(tmp_path / "c.tar")


def test_errors_in_an_archive_name_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tar({"one.csv": NATIVE.replace("50,16", "x,16").encode()}))
    with pytest.raises(Problem, match=r"a.tar/one.csv:3: sector 'x'"):
        load(tmp_path / "a.tar")


# --- what is good of a damaged recording ---


def test_keep_good_of_a_binary_recording(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = lzma.decompress(EXAMPLE.read_bytes())
    cut = tmp_path / "cut.blktrace.0"
    cut.write_bytes(data[: len(data) // 2 + 7])
    with pytest.raises(Problem, match="truncated"):
        load(cut)
    trace, whole = load(cut, keep_good=True), load(EXAMPLE)
    assert 0.3 < len(trace) / len(whole) < 0.7
    assert np.array_equal(trace.sector[:100], whole.sector[:100])
    assert [n for n in trace.notes if "dropped from byte" in n and "truncated within this record" in n]
    status, out, err = run(capfd, "import", cut, "--keep-good")
    assert status == 0 and len(out.splitlines()) == len(trace) + 1 and "dropped from byte" in err


def test_keep_good_of_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(NATIVE[:-12])
    trace = load(path, keep_good=True)
    assert len(trace) == 3 and any("the last line, which does not end" in n for n in trace.notes)
    path.write_text(NATIVE.replace("7,W", "7,Q") + "9,9\n")
    trace = load(path, keep_good=True)
    assert len(trace) == 2
    (told,) = [n for n in trace.notes if "dropped" in n]
    assert f"{path}: dropped from line 4 on" in told and "unknown op 'Q'" in told


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.compress])
def test_keep_good_of_a_cut_stream(tmp_path: Path, pack: object) -> None:
    lines = [f"{k}.0,1,R,1,{k * 7919 % 100003 * 8},8\n" for k in range(60_000)]
    packed = pack(("time_s,task,op,sync,sector,sectors\n" + "".join(lines)).encode())  # type: ignore[operator]
    path = tmp_path / "cut"
    path.write_bytes(packed[: len(packed) * 3 // 4])
    with pytest.raises(Problem, match="truncated"):
        load(path)
    trace = load(path, keep_good=True)
    assert 1000 < len(trace) < 60_000
    assert trace.sector[:3].tolist() == [0, 7919 * 8, 15838 * 8]
    assert any("damaged or truncated behind" in n for n in trace.notes)


def test_nothing_good(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("time_s,task,op,sync,sector\n0,1,R,1,8\n")
    with pytest.raises(Problem, match="sectors is missing"):
        load(path, keep_good=True)


def test_keep_good_changes_nothing_of_what_is_sound(tmp_path: Path) -> None:
    out, again = io.StringIO(), io.StringIO()
    write_csv(load(EXAMPLE), out)
    write_csv(load(EXAMPLE, keep_good=True), again)
    assert out.getvalue() == again.getvalue() and not [n for n in load(EXAMPLE, keep_good=True).notes if "dropped" in n]


def test_columns_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.csv").write_text("ts,off,n\n5,4096,512\n")
    status, out, _ = run(capfd, "import", tmp_path / "x.csv", "--columns", "time=ts,offset=off,size=n,unit=bytes")
    assert status == 0 and out.splitlines()[1] == "0.000000000,0,R,1,8,1"
    status, _, err = run(capfd, "import", tmp_path / "x.csv", "--columns", "time=ts", "--format", "native")
    assert status == 2 and "--columns is for CSV" in err
    assert good(capfd, "schedulers")
