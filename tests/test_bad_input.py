# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Hostile input, found by hand: one line that names file and cause, status 2, and an end in good time."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import random
import re
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest
import zstandard
from command import run, write
from conftest import ROOT

from headwaiter.base import reading
from headwaiter.base.errors import Problem, plain
from headwaiter.base.parsing import real, whole
from headwaiter.base.reading import read_bytes, unpack
from headwaiter.engine.schedulers import catalogue, find
from headwaiter.report.terminal import console
from headwaiter.traces import load

DIGITS = "7" * 5000
NATIVE = "time_s,task,op,sync,sector,sectors,complete_s,name\n0.0,1,R,1,0,8,0.001,NAME\n0.002,1,R,1,8,8,0.003,NAME\n"
DISK = (ROOT / "tests/fuzzing/corpus/toml/disk").read_text()
PARV = (ROOT / "tests/fuzzing/corpus/parv/disk").read_text()
ARRAY = 'model = "array"\n[array]\nkind = "raid0"\nchunk = 8\ndrives = ["{0}", "{0}"]\n'


def bad(capfd: pytest.CaptureFixture[str], *args: object) -> str:
    """The one line of complaint, short enough to be read."""
    status, out, err = run(capfd, *args)
    assert (status, out) == (2, ""), (status, out, err)
    assert err.startswith("headwaiter: ") and err.endswith("\n") and err[:-1].isprintable(), err
    assert len(err) < 2100
    return err


# --- numbers ---


@pytest.mark.parametrize("args", [
    ("--sched", "as", "--set", f"antic_expire={DIGITS}"),
    ("--sched", "as", "--set", f"antic_expire=0x{DIGITS}"),
    ("--sched", "as", "--set", "antic_expire=1_0"),
    ("--sched", "as", "--set", "antic_expire=٣"),
    ("--share", f"{DIGITS}=1"),
    ("--share", f"1={DIGITS}"),
    ("--share", "٣=1"),
    ("--drive", f"constant:{DIGITS}"),
    ("--drive", "constant:nan"),
    ("--drive", "constant:1_0"),
    ("--dispatch-time", "nan"),
    ("--dispatch-time", "inf"),
    ("--turnaround", "nan"),
    ("--group-gap", "nan"),
])  # fmt: skip
def test_numbers_in_options(tmp_path: Path, capfd: pytest.CaptureFixture[str], args: tuple[str, ...]) -> None:
    path = write(tmp_path / "t.csv", NATIVE)
    assert args[-2] in bad(capfd, "compare", path, *args)


@pytest.mark.parametrize("name", ["rpm", "capacity", "seek-average", "seek-full", "rate-outer", "cache", "interface"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", DIGITS])
def test_numbers_of_a_data_sheet(capfd: pytest.CaptureFixture[str], name: str, value: str) -> None:
    given = {"rpm": "7200", "capacity": "80GB", "seek-average": "8.5"} | {name: value}
    bad(capfd, "drives", "new", *(f"--{k}={v}" for k, v in given.items()))


def test_whole_numbers() -> None:
    assert whole("0x10", 0, 16) == 16 and whole("-5", -5, 0) == -5 and whole("0" * 9000 + "7", 0, 9) == 7
    for text in ("", " 1", "1 ", "1_0", "٣", "1.0", "0x", "+-1", "1\n"):
        with pytest.raises(ValueError, match="is not a whole number"):
            whole(text, 0, 100)
    for text in ("101", "-1", DIGITS, "-" + DIGITS, "0x" + DIGITS):
        with pytest.raises(ValueError, match=r"is outside 0\.\.100"):
            whole(text, 0, 100)


def test_real_numbers() -> None:
    assert real("1.5e3", 0, 1e4) == 1500 and real(".5", 0, 1) == 0.5 and real("1e-999", 0, 1) == 0
    for text in ("", "nan", "inf", "-inf", "1_0", "1e", "0x1", "٣", " 1", "1\n"):
        with pytest.raises(ValueError, match="is not a number"):
            real(text, -1e9, 1e9)
    for text in ("1e309", "-1e309", DIGITS, "1e9999999999999"):
        with pytest.raises(ValueError, match="is outside"):
            real(text, -1e9, 1e9)


def test_every_tunable_refuses_what_is_no_number() -> None:
    for scheduler in catalogue().values():
        for tunable in scheduler.tunables.values():
            for value in (DIGITS, "-" + DIGITS, "nan", "", "1e3", "\0", "[/b]"):
                with pytest.raises(Problem) as e:
                    tunable.parse("--set", value)
                assert str(e.value).isprintable() and len(str(e.value)) < 200


def test_forks_of_thousands_of_digits_are_no_forks(tmp_path: Path) -> None:
    lines = (
        "  8,0 0 1 0.000000000 7 Q R 0 + 8 [a]\n"
        f"  8,0 0 2 0.000000001 7 m N fork {DIGITS} {DIGITS}\n  8,0 0 3 0.000000002 7 m N exit {DIGITS}\n"
    )
    assert len(load(write(tmp_path / "t.txt", lines))) == 1


@pytest.mark.parametrize(("value", "says"), [
    (DIGITS, "a number or date is out of range"), ("nan", "must be a number"), ("inf", "must be a number"),
    ("1e400", "must be a number"), ("9223372036854775807", "is out of range"), ("1979-99-99", "not TOML"),
    ("[" * 5000, "nested too deeply"), ('"\\u0000"', "must be a number"), ("[]", "must be a number"),
])  # fmt: skip
def test_values_of_a_profile(tmp_path: Path, capfd: pytest.CaptureFixture[str], value: str, says: str) -> None:
    path = write(tmp_path / "d.toml", DISK.replace("rpm = 7200", f"rpm = {value}"))
    assert says in bad(capfd, "drives", path)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400", DIGITS, "\0", "\x1b(31m"])
@pytest.mark.parametrize(
    "key",
    [
        "Rotation speed (in rpms) = 6000",
        "Head switch time = 0.5",
        "Blocks per track = 50",
        "Skew for track switch = 7.0",
        "Constant seek time = 4.0",
    ],
)
def test_values_of_parameters(tmp_path: Path, capfd: pytest.CaptureFixture[str], key: str, value: str) -> None:
    name = key.partition(" = ")[0]
    path = write(tmp_path / "d.parv", PARV.replace(key, f"{name} = {value}"))
    assert name in bad(capfd, "drives", "import", path)


def test_service_times_that_are_all_0(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.trace", "R Hit 100 4 0 0\n" * 3)
    assert "all service times are 0" in bad(capfd, "validate", "barracuda-80g", path)
    write(path, f"R Hit 100 4 {DIGITS} 0\n")
    assert "service_us: 7777" in bad(capfd, "validate", "barracuda-80g", path)


@pytest.mark.parametrize("line", [
    "rate_iops=4p", "rate_iops=1,4p", "fsync=4611686018427387904", "fdatasync=4g", f"size={DIGITS}",
    f"thinktime={DIGITS}",
    f"runtime={DIGITS}d", f"numjobs={DIGITS}", f"randseed={DIGITS}", f"offset={DIGITS}%", f"nice=-{DIGITS}",
    "loops=0x" + "f" * 99, f"bs={DIGITS}", f"rwmixread={DIGITS}", f"rate={DIGITS}",
])  # fmt: skip
def test_numbers_of_a_job_file(tmp_path: Path, capfd: pytest.CaptureFixture[str], line: str) -> None:
    path = write(tmp_path / "j.fio", f"[a]\nrw=write\nsize=1m\nbs=4k\n{line}\n")
    assert f"{path}:5: option '{line.partition('=')[0]}'" in bad(capfd, "run", path, "--sched", "noop")


@pytest.mark.parametrize("time", ["9223372036.854775807", "2305843009.213693953"])
def test_what_import_writes_it_reads(tmp_path: Path, capfd: pytest.CaptureFixture[str], time: str) -> None:
    """The largest times of a trace are those that its sums allow."""
    path, out = write(tmp_path / "t.csv", NATIVE.replace("0.002", time).replace("0.003", time)), tmp_path / "out.csv"
    assert "time_s" in bad(capfd, "import", path, "-o", out)
    assert not out.exists()
    write(path, NATIVE.replace("0.002", "2305843009.213693952").replace("0.003", ""))
    assert run(capfd, "import", path, "-o", out)[0] == 0
    assert run(capfd, "import", out)[0] == 0


@pytest.mark.parametrize(("column", "value"), [
    (0, 2**62 + 1), (2, 2**41), (4, 2**55 + 1), (5, 2**32), (6, 4), (7, 8), (8, 65536), (9, 2**32), (10, 1024),
    *((column, -1) for column in (0, 2, 4, 5, 6, 7, 8, 9, 10)), *((column, DIGITS) for column in (0, 2, 4, 5, 6, 7, 8, 9, 10)),
    *((column, "") for column in (0, 2, 4, 5, 6, 7, 8, 9, 10)), *((column, "x\0") for column in (0, 2, 4)),
])  # fmt: skip
def test_values_of_a_recording(tmp_path: Path, capfd: pytest.CaptureFixture[str], column: int, value: object) -> None:
    text = (ROOT / "tests/fuzzing/corpus/conformance/mq-deadline").read_text()
    lines = text.splitlines()
    at = next(k for k, line in enumerate(lines) if ",insert," in line)
    fields = lines[at].split(",")
    fields[column] = str(value)
    lines[at] = ",".join(fields)
    path = write(tmp_path / "r.xz", lzma.compress("\n".join(lines).encode()))
    assert f"{path}:{at + 1}: " in bad(capfd, "conform", "check", path)


@pytest.mark.parametrize(("fact", "value"), [
    ("depth", 0), ("depth", 2**32), ("nr_requests", -1), ("nr_requests", 2**40), ("tick_ns", 0), ("depth", DIGITS),
    ("set.fifo_batch", DIGITS), ("kernel", ""), ("kernel", "6"), ("scheduler", "\x1b"),
])  # fmt: skip
def test_facts_of_a_recording(tmp_path: Path, capfd: pytest.CaptureFixture[str], fact: str, value: object) -> None:
    text = (ROOT / "tests/fuzzing/corpus/conformance/mq-deadline").read_text()
    lines = [line for line in text.splitlines() if not line.startswith(f"# {fact}=")]
    lines.insert(1, f"# {fact}={value}")
    path = write(tmp_path / "r.xz", lzma.compress("\n".join(lines).encode()))
    assert str(path) in bad(capfd, "conform", "check", path)


# --- names ---

MARKUP = "[/b][red]:smile:[link=x]"


def test_markup_in_names_is_shown_as_it_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / f"{MARKUP.replace('/', '')}.csv", NATIVE.replace("NAME", MARKUP))
    status, out, err = run(capfd, "run", path, "--sched", "noop", "--drive", "constant:1")
    assert status == 0, err
    assert MARKUP in out and path.name in out
    status, out, err = run(capfd, "compare", path, "--sched", "noop,as", "--drive", "constant:1")
    assert status == 0 and path.name in out, err
    job = write(tmp_path / "j.fio", f"[{MARKUP}]\nsize=64k\nfilename={MARKUP}\n")
    status, out, err = run(capfd, "run", job, "--sched", "noop")
    assert status == 0 and MARKUP in out, err


def test_markup_of_devices_profiles_and_recordings(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace = write(tmp_path / "m.csv", "128166385295514663,[/b],0,Write,0,512,1\n128166385295514664,[/i],1,Read,0,512,1\n")
    status, out, err = run(capfd, "run", trace, "--sched", "noop", "--drive", "constant:1")
    assert status == 0 and "[/b].0" in out, err
    drive = write(tmp_path / f"{MARKUP.replace('/', '')}.toml", DISK.replace("a small one", MARKUP))
    status, out, err = run(capfd, "drives", drive)
    assert status == 0 and MARKUP in out and MARKUP.replace("/", "") in out, err
    text = (ROOT / "tests/fuzzing/corpus/conformance/mq-deadline").read_text().replace("# workload=w", f"# workload={MARKUP}")
    status, out, err = run(capfd, "conform", "check", write(tmp_path / "r.xz", lzma.compress(text.encode())))
    assert status in (0, 1) and MARKUP in out, err


def test_no_print_takes_markup() -> None:
    out = io.StringIO()
    console(out).print(MARKUP)
    assert out.getvalue() == MARKUP + "\n"


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    name = "a\x1b[31m\x07\x7f\u202eb"
    path = write(tmp_path / "t.csv", NATIVE.replace("NAME", name))
    status, out, err = run(capfd, "run", path, "--sched", "noop", "--drive", "constant:1")
    assert status == 0 and plain(name) in out, err
    assert all(c.isprintable() for c in out.replace("\n", "")), out
    assert load(path).tasks[0].name == "a\\x1b[31m\\x07\\x7f\\u202eb"
    job = write(tmp_path / "j.fio", f"[{name}]\nsize=64k\n")
    status, out, err = run(capfd, "run", job, "--sched", "noop")
    assert status == 0 and all(c.isprintable() for c in out.replace("\n", "")), err


def test_file_names_that_are_not_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / os.fsdecode(b"t\xff\x1b\n.csv")
    write(path, NATIVE)
    status, out, err = run(capfd, "run", path, "--sched", "noop", "--drive", "constant:1", "--json")
    assert status == 0 and json.loads(out)["workload"] == "t\\udcff\\x1b\\n.csv", err
    write(path, "nothing")
    assert "t\\udcff\\x1b\\n.csv" in bad(capfd, "run", path, "--sched", "noop")


@pytest.mark.parametrize("name", ["a\0b", "a\x1b(31mb", 'a"b\\c', "a\nb = 1", "a\u2028b", "tab\tname", "é日本", "\x7f", "a\rb"])
def test_names_of_profiles_that_are_made(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    out = tmp_path / "d.toml"
    if "\0" not in name:
        args = ("--rpm=7200", "--capacity=80GB", "--seek-average=8.5", "-o", out)
        assert run(capfd, "drives", "new", "--name", name, *args)[0] == 0
        assert tomllib.loads(out.read_text())["description"] == plain(name)
        assert run(capfd, "drives", out)[0] == 0
    path = write(tmp_path / "d.parv", PARV.replace("DISK", re.sub(r"[\s=]", "", name)))
    assert run(capfd, "drives", "import", path, "-o", out)[0] == 0
    tomllib.loads(out.read_text())
    assert run(capfd, "drives", out)[0] == 0


@pytest.mark.parametrize("args", [
    ("run", "LONG", "--sched", "noop"), ("compare", "LONG"), ("import", "LONG"), ("drives", "LONG"), ("drives", "import", "LONG"),
    ("validate", "LONG", "x"), ("validate", "barracuda-80g", "LONG"), ("run", "JOB", "--sched", "noop"), ("drives", "ARRAY"),
    ("compare", "--drive", "LONG"),
])  # fmt: skip
def test_file_names_that_are_too_long(tmp_path: Path, capfd: pytest.CaptureFixture[str], args: tuple[str, ...]) -> None:
    long = "/" + "x" * 300 + ".toml"
    names = {
        "LONG": str(tmp_path) + long,
        "JOB": str(write(tmp_path / "j.fio", f"include {long[1:]}\n[a]\nsize=1m\n")),
        "ARRAY": str(write(tmp_path / "a.toml", ARRAY.format(long[1:]))),
    }
    assert "File name too long" in bad(capfd, *(names.get(a, a) for a in args))


@pytest.mark.parametrize("name", ["**", "[", "a/**", "?", "*"])
def test_file_names_that_are_patterns(capfd: pytest.CaptureFixture[str], name: str) -> None:
    assert "no such file, and no bundled workload" in bad(capfd, "compare", name)


# --- what does not end ---


def test_what_is_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(reading, "_LEAST", 1 << 20)
    monkeypatch.setattr(reading, "free_memory_bytes", lambda: 160 << 20)
    for args in (("run", "/dev/zero", "--sched", "noop"), ("import", "/dev/zero"), ("validate", "barracuda-80g", "/dev/zero")):
        assert "/dev/zero: has more than 16 MiB, the limit set by the free memory" in bad(capfd, *args)
    zeros = bytes(64 << 20)
    bombs = {"gzip": gzip.compress(zeros), "xz": lzma.compress(zeros), "zstd": zstandard.ZstdCompressor().compress(zeros)}
    for name, bomb in bombs.items():
        path = write(tmp_path / name, bomb)
        assert f"{path}: unpacks to more than 16 MiB" in bad(capfd, "import", path)
        assert f"{path}: " in bad(capfd, "conform", "check", path)
        assert f"{path}: unpacks to more than 16 MiB" in bad(capfd, "validate", "barracuda-80g", path)
    for args in (("drives", "import", "/dev/zero"), ("drives", "/dev/zero")):
        assert "/dev/zero: has more than 16 MiB, the limit set by this kind of file" in bad(capfd, *args)


@pytest.mark.thorough
def test_a_bomb_takes_no_more_memory_than_allowed(tmp_path: Path) -> None:
    """In 2 GiB of address space; unbounded, each would unpack to 4 GiB."""
    zeros = bytes(16 << 20)
    packer = zstandard.ZstdCompressor()
    bombs = {"gzip": gzip.compress(zeros, 9) * 256, "xz": lzma.compress(zeros) * 256, "zstd": packer.compress(zeros) * 256}
    for name, bomb in bombs.items():
        path = write(tmp_path / name, bomb)
        command = f"ulimit -v 2000000; exec '{sys.executable}' -P -m headwaiter import '{path}'"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
        assert "unpacks to more than" in done.stderr or "not enough memory" in done.stderr


def test_an_xz_stream_that_wants_a_large_dictionary() -> None:
    packed = lzma.compress(b"x" * 100, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}])
    with pytest.raises(Problem, match="the xz stream needs more memory to unpack than is available"):
        unpack_with(packed, 256 << 20)
    assert unpack_with(packed, 16 << 30) == b"x" * 100


def unpack_with(packed: bytes, free: int) -> bytes:
    """unpack() on a machine with so much free memory."""
    before, reading.free_memory_bytes = reading.free_memory_bytes, lambda: free
    try:
        return unpack(Path("x"), packed)
    finally:
        reading.free_memory_bytes = before


@pytest.mark.thorough
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstandard.ZstdCompressor().compress])
def test_packed_files_of_any_size_unpack_exactly(pack: object) -> None:
    assert callable(pack)
    rng = random.Random(1)
    for size in (0, 1, 1000, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_000_000):
        content = rng.randbytes(size // 2) + bytes(size - size // 2)
        assert unpack(Path("x"), pack(content)) == content
        assert unpack(Path("x"), pack(content) + pack(content)) == content * 2
        if size:
            with pytest.raises(Problem, match="is truncated"):
                unpack(Path("x"), pack(content)[:-3])


def test_read_bytes_names_what_is_no_file(tmp_path: Path) -> None:
    for name, says in ((".", "Is a directory"), ("gone", "No such file"), ("a\0b", "not a valid file name")):
        with pytest.raises(Problem, match=says):
            read_bytes(tmp_path / name)


@pytest.mark.parametrize(("text", "says"), [
    ("[a]\nnumjobs=100000\nnrfiles=100000\n", ":2: 10000000000 files of processes up to here"),
    ("[a]\nsize=1m\nnumjobs=100000\n[b]\nsize=1m\n", ": 100001 processes up to here"),
    ("[a]\nnumjobs=10001\nfilename=" + ":".join("abcdefghij" * 10) + "\n", ": 1000100 files of processes up to here"),
    ("[a]\nsize=1m\n[b]\nsize=1m\nnumjobs=1000\niodepth=1000\n", ":6: 1000001 I/Os in flight at once up to here"),
    ("include j.fio\ninclude j.fio\n[a]\nsize=1m\n", ": include: more than 16 files deep"),
    ("include 0.inc\ninclude 0.inc\n[a]\nsize=1m\n", ": more than 1000 files with all that is included"),
    ("include big.inc\n" * 20 + "[a]\nsize=1m\n", ": more than 4 MiB of text with all that is included"),
    ("include /dev/zero\n[a]\nsize=1m\n", ":1: include: /dev/zero: has more than 4 MiB"),
])  # fmt: skip
def test_job_files_that_do_not_end(tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, says: str) -> None:
    for depth in range(14):
        write(tmp_path / f"{depth}.inc", f"include {depth + 1}.inc\n" * 2)
    write(tmp_path / "14.inc", "\n")
    write(tmp_path / "big.inc", "# " + " " * 900_000 + "\n")
    path = write(tmp_path / "j.fio", text)
    assert says in bad(capfd, "run", path, "--sched", "noop")


def test_variables_do_not_multiply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LONG", "x" * 10_000)
    path = write(tmp_path / "j.fio", "[a]\nsize=1m\nfilename=" + "${LONG}" * 100 + "\n")
    assert ":3: option 'filename': a value of 1000000 characters" in bad(capfd, "run", path, "--sched", "noop")


def test_arrays_that_name_each_other(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a = write(tmp_path / "a.toml", ARRAY.format("b.toml"))
    write(tmp_path / "b.toml", ARRAY.format("a.toml"))
    assert "profiles are nested more than 8 deep" in bad(capfd, "drives", a)


def test_names_of_many_parts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.toml", DISK + "a." * 1_000_000 + "a = 1\n")
    assert ": line 35: a name of more than 32 parts" in bad(capfd, "drives", path)
    write(path, DISK.replace("a small one", "x" * 5_000_000 + " ... 1.5.2"))
    assert run(capfd, "drives", path, "--json")[0] == 0


def test_parameters_that_include_each_other(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for k in range(14):
        write(tmp_path / f"{k}.inc", f"source {k + 1}.inc\n" * 2)
    write(tmp_path / "14.inc", "\n")
    assert "16 MiB or 1000 files" in bad(capfd, "drives", "import", write(tmp_path / "a.parv", "source 0.inc\n"))
    nested = write(tmp_path / "b.parv", "a b { c = " + "[" * 9000)
    assert "nested more than 32 deep" in bad(capfd, "drives", "import", nested)
    nested = write(tmp_path / "b.parv", "a b { c = " * 9000)
    assert "nested more than 32 deep" in bad(capfd, "drives", "import", nested)


def test_a_long_chain_of_forks_is_followed_in_good_time(tmp_path: Path) -> None:
    """With as many steps at each link as there are links before it, this takes minutes."""
    n = 20_000
    lines = [
        f"8,0 0 {k} {k // 1000}.{k % 1000:03d}000000 {k} Q R {8 * k} + 8 [a{k}]\n8,0 0 {k} {k // 1000}.{k % 1000:03d}000000 "
        f"{k} m N fork {k} {k + 1}\n"
        for k in range(1, n)
    ]
    trace = load(write(tmp_path / "t.txt", "".join(lines)))
    assert len(trace) == n - 1


# --- what is meant otherwise ---


def through_pipe(folder: Path, content: str) -> Path:
    path = folder / "pipe"
    os.mkfifo(path)
    threading.Thread(target=lambda: path.write_text(content), daemon=True).start()
    return path


def test_a_job_file_through_a_pipe(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = through_pipe(tmp_path, "[reader]\nsize=64k\n")
    status, out, err = run(capfd, "run", path, "--sched", "noop")
    assert status == 0 and "reader" in out, err


def test_a_trace_through_a_pipe(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = through_pipe(tmp_path, NATIVE)
    status, out, err = run(capfd, "run", path, "--sched", "noop", "--json")
    assert status == 0 and json.loads(out)["results"][0]["requests"] == 2, err


@pytest.mark.parametrize("command", [("run", "--sched", "noop"), ("compare",), ("import",)])
def test_a_device_where_there_is_none(tmp_path: Path, capfd: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    native = write(tmp_path / "t.csv", NATIVE)
    blkreplay = write(tmp_path / "t.load", (ROOT / "tests/fuzzing/corpus/load/load").read_bytes())
    for path in (native, blkreplay):
        said = bad(capfd, *command, path, "--device", "8,0")
        assert "no device '8,0': traces of this format do not name devices" in said
    if command[0] != "import":
        job = write(tmp_path / "j.fio", "[a]\nsize=1m\n")
        assert "--device is for traces" in bad(capfd, *command, job, "--device", "8,0")


def test_find_says_who_there_is() -> None:
    with pytest.raises(Problem, match="no scheduler"):
        find("\0" * 9000)
