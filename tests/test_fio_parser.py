# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Job files: what they say, and what is wrong with them, to the word."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fioload import load

from headwaiter.base.errors import Problem
from headwaiter.fio import load_jobs, looks_like_job_file
from headwaiter.fio.parser import parse
from headwaiter.fio.values import Percent, duration, per_direction, size, size_or_percent, span


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("512", 512),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("4kB", 4096),
        ("4ki", 4096),
        ("1m", 1 << 20),
        ("3g", 3 << 30),
        ("2t", 2 << 40),
        ("1p", 1 << 50),
        ("0x1000", 4096),
        ("0x10k", 16384),
        ("100b", 100),
        ("1kib", 1000),
        ("1MiB", 1000**2),
        ("2gib", 2 * 1000**3),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("1k", 1000), ("1ki", 1000), ("1kib", 1024), ("1m", 10**6), ("7", 7)])
def test_sizes_with_kb_base_1000(text: str, expected: int) -> None:
    assert size(text, 1000) == expected


@pytest.mark.parametrize("text", ["", "k", "-1", "1.5m", "4 k", "4x", "4kk", "0xg", "1ib", "1i", "10%", "²"])
def test_not_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        size(text)


def test_too_large_a_size() -> None:
    with pytest.raises(ValueError, match="larger than any drive"):
        size("8000p")


def test_percentages() -> None:
    assert size_or_percent("50%") == Percent(50)
    assert size_or_percent("50") == 50
    with pytest.raises(ValueError, match=r"101% is outside 0\.\.100"):
        size_or_percent("101%")


@pytest.mark.parametrize(
    ("text", "unit", "ns"),
    [
        ("10", "us", 10_000),
        ("10", "s", 10 * 10**9),
        ("10us", "s", 10_000),
        ("10usec", "s", 10_000),
        ("3ms", "us", 3 * 10**6),
        ("3MSEC", "us", 3 * 10**6),
        ("2s", "us", 2 * 10**9),
        ("2sec", "us", 2 * 10**9),
        ("5m", "us", 300 * 10**9),
        ("1h", "us", 3600 * 10**9),
        ("1d", "us", 86400 * 10**9),
        ("0", "s", 0),
    ],
)
def test_times(text: str, unit: str, ns: int) -> None:
    assert duration(text, unit) == ns


@pytest.mark.parametrize("text", ["", "s", "1.5s", "-1", "10x", "1 s"])
def test_not_times(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        duration(text, "s")


def test_ranges_and_lists() -> None:
    assert span("4k-16k", size) == span("16k:4k", size) == (4096, 16384)
    assert per_direction("1,2,3", int) == (1, 2)
    assert per_direction("1", int) == (1, 1)
    assert per_direction(",2", int) == (None, 2)
    assert per_direction("1,", int) == (1, None)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.fio"
    path.write_text(text)
    return path


def test_sections_inherit_from_every_global_before_them(tmp_path: Path) -> None:
    first, second = parse(write(tmp_path, "[global]\nbs=8k\nrw=write\n[a]\nsize=1m\n[global]\nrw=read\n[b]\nbs=4k\n"))
    assert (first.name, first.get("bs"), first.get("rw").directions) == ("a", ((8192, 8192), (8192, 8192)), 2)
    assert (second.name, second.get("bs"), second.get("rw").directions) == ("b", ((4096, 4096), (4096, 4096)), 1)
    assert second.get("size") is None


def test_comments_blank_lines_and_spaces(tmp_path: Path) -> None:
    (job,) = parse(write(tmp_path, "# one\n ; two\n\n[a]  # head\n  size = 1m ; here\n bs=8k# there\ntime_based\nruntime=3\n"))
    assert (job.get("size"), job.get("bs")[0], job.get("time_based")) == (1 << 20, (8192, 8192), True)


def test_environment_and_keywords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCK", "16")
    (job,) = parse(write(tmp_path, "[a]\nbs=${BLOCK}k\nsize=$pagesize\n"))
    assert (job.get("bs")[0], job.get("size")) == ((16384, 16384), 4096)


def test_include_stands_for_its_lines(tmp_path: Path) -> None:
    (tmp_path / "common.inc").write_text("bs=64k\n[second]\nsize=2m\n")
    first, second = parse(write(tmp_path, "[first]\nsize=1m\ninclude common.inc\nbs=8k\n"))
    assert (first.get("bs")[0], second.name, second.get("bs")[0]) == ((65536, 65536), "second", (8192, 8192))


def test_kb_base_counts_wherever_it_stands(tmp_path: Path) -> None:
    (job,) = parse(write(tmp_path, "[a]\nsize=1m\nkb_base=1000\n"))
    assert job.get("size") == 10**6


def test_one_direction_leaves_the_other(tmp_path: Path) -> None:
    (job,) = parse(write(tmp_path, "[a]\nsize=1m\nbs=,8k\nbs=16k,\nrate=1m,2m\nbsrange=,1k-2k\n"))
    assert job.block_sizes() == [(16384, 16384), (1024, 2048)]
    assert job.get("rate") == (1 << 20, 2 << 20)


def test_opposites_replace_each_other(tmp_path: Path) -> None:
    (job,) = parse(write(tmp_path, "[a]\ndirect=1\nbuffered=1\nrwmixread=10\nrwmixwrite=30\n"))
    assert (job.get("direct"), job.get("rwmixread")) == (False, 70)


ERRORS = [
    ("size=1m\n", "test.fio:1: option 'size' is before the first section ([NAME])"),
    ("[global]\nbs=4k\n", "test.fio: no jobs (no section but [global])"),
    ("# nothing\n", "test.fio: no jobs (no section but [global])"),
    ("[a\nsize=1m\n", "test.fio:1: '[a' is not a section ([NAME])"),
    ("[ ]\n", "test.fio:1: '[ ]' is not a section ([NAME])"),
    ("[a]\nsiez=1m\n", "test.fio:2: unknown option 'siez' (did you mean 'size'?)"),
    ("[a]\nqqqqqqq=1\n", "test.fio:2: unknown option 'qqqqqqq'"),
    ("[a]\nioprios=3\n", "test.fio:2: unknown option 'ioprios' (did you mean 'ioprio'?)"),
    ("[a]\nbs\n", "test.fio:2: option 'bs': a value is missing"),
    ("[a]\nbs=\n", "test.fio:2: option 'bs': a value is missing"),
    ("[a]\ndirect\n", "test.fio:2: option 'direct': a value is missing"),
    ("[a]\ndirect=yes\n", "test.fio:2: option 'direct': 'yes' is neither 0 nor 1"),
    ("[a]\nsize=1q\n", "test.fio:2: option 'size': '1q' is not a size (such as 4096, 4k, 1m, 10g)"),
    ("[a]\nsize=-4k\n", "test.fio:2: option 'size': '-4k' is not a size (such as 4096, 4k, 1m, 10g)"),
    ("[a]\nbs=0\n", "test.fio:2: option 'bs': 0 is outside 1..4294967295"),
    ("[a]\nbs=4k,4k,4k,4k\n", "test.fio:2: option 'bs': '4k,4k,4k,4k' has more than three parts (reads, writes, trims)"),
    ("[a]\nbs=,\n", "test.fio:2: option 'bs': a value is missing"),
    ("[a]\nbsrange=1k-2k-3k\n", "test.fio:2: option 'bsrange': '1k-2k-3k' is not a range (such as 4k-64k)"),
    ("[a]\niodepth=0\n", "test.fio:2: option 'iodepth': 0 is outside 1..4294967295"),
    ("[a]\nnumjobs=many\n", "test.fio:2: option 'numjobs': 'many' is not a whole number"),
    ("[a]\nrwmixread=101\n", "test.fio:2: option 'rwmixread': 101 is outside 0..100"),
    ("[a]\nrw=foo\n", "test.fio:2: option 'rw': 'foo' is not one of read, write, randread, randwrite, rw, readwrite, randrw"),
    ("[a]\nrw=randtrim\n", "test.fio:2: option 'rw': 'randtrim': discards are not supported"),
    ("[a]\nrw=randread:0\n", "test.fio:2: option 'rw': 0 is outside 1..4294967295"),
    ("[a]\nthinktime=2 s\n", "test.fio:2: option 'thinktime': '2 s' is not a time (such as 10, 500us, 20ms, 30s, 5m, 1h)"),
    (
        "[a]\nioengine=mmap\n",
        "test.fio:2: option 'ioengine': engine 'mmap' is not supported: it reads and writes by faults of pages, "
        "which are not modelled",
    ),
    (
        "[a]\nrandom_distribution=zipf:1.0\n",
        "test.fio:2: option 'random_distribution': 'zipf:1.0': the number of zipf must not be 1",
    ),
    (
        "[a]\nfile_service_type=zipf\n",
        "test.fio:2: option 'file_service_type': 'zipf' is not supported (roundrobin, sequential and random are)",
    ),
    ("[a]\nfilesize=1m-2m\n", "test.fio:2: option 'filesize': '1m-2m': files of random size are not supported"),
    (
        "[a]\nlatency_window=5\n",
        "test.fio:2: option 'latency_window' would change the result and is not supported (latency_window=5)",
    ),
    ("[a]\nverify_only=1\n", "test.fio:2: option 'verify_only' would change the result and is not supported (verify_only=1)"),
    ("[a]\nbs_unaligned\n", "test.fio:2: option 'bs_unaligned' would change the result and is not supported (bs_unaligned)"),
    ("[a]\nsize=${NO_SUCH_NAME}\n", "test.fio:2: option 'size': environment variable NO_SUCH_NAME is not set"),
    ("[a]\nnumjobs=$ncpus\n", "test.fio:2: option 'numjobs': $ncpus depends on the machine and is not supported"),
    ("[a]\ninclude\n", "test.fio:2: include: the name of a file is missing"),
    ("[a]\nbs=4k\n", "test.fio:1: 'a.0.0' is a file: give its size (size=)"),
    ("[a]\nsize=50%\n", "test.fio:2: 'a.0.0' is a file: give its size (filesize=)"),
    ("[a]\nsize=1k\n", "test.fio:2: a region of 1024 bytes is smaller than a block of 4096"),
    ("[a]\nrw=randread\nsize=4k\nbs=1k\nba=8k\n", "test.fio:5: a region of 4096 bytes holds no place aligned to 8192"),
    ("[a]\nsize=1m\nnrfiles=1000\n", "test.fio:2: a region of 1048 bytes is smaller than a block of 4096"),
    ("[a]\nfilename=/dev/sda\noffset=2t\n", "test.fio:3: option 'offset': nothing remains from byte 2199023255552 on"),
    ("[a]\nfilename=:\nsize=1m\n", "test.fio:2: option 'filename': a name is missing"),
    ("[a]\nsize=1m\ndirect=1\nbs=1000\n", "test.fio:4: option 'bs': direct I/O must be in multiples of 512 bytes"),
    ("[a]\nsize=1m\ndirect=1\nba=100\n", "test.fio:4: option 'ba': direct I/O must be in multiples of 512 bytes"),
    ("[a]\nsize=1m\ndirect=1\noffset=100\n", "test.fio:4: option 'offset': direct I/O must be in multiples of 512 bytes"),
    ("[a]\nsize=1m\ndirect=1\nrw=read:100\n", "test.fio:4: option 'rw': direct I/O must be in multiples of 512 bytes"),
    (
        "[a]\nsize=1m\nioengine=io_uring\niodepth=4\n",
        "test.fio:4: option 'iodepth': buffered I/O through io_uring is supported one at a time only; add direct=1",
    ),
    (
        "[a]\nsize=1m\ndirect=1\nnrfiles=2\nioengine=posixaio\niodepth=4\n",
        "test.fio:6: option 'iodepth': posixaio with several files is not supported",
    ),
    ("[a]\nsize=1m\nwait_for=b\n[b]\nsize=1m\n", "test.fio:3: option 'wait_for': no job 'b' before this one"),
    (
        "[a]\nfilename=/dev/sda\nsize=1t\noffset=1g\n",
        "test.fio:3: job 'a' leaves the drive: /dev/sda would end at byte 1100585369600 of 1099511627776",
    ),
    (
        "[a]\nsize=600g\n[b]\nsize=600g\n",
        "test.fio:4: job 'b' leaves the drive: file 'b.0.0' would end at byte 1288490188800 of 1099511627776",
    ),
    (
        "[a]\nfilename=/dev/sda\nsize=500g\nnumjobs=3\noffset_increment=400g\n",
        "test.fio:3: job 'a.1' leaves the drive: /dev/sda would end at byte 1395864371200 of 1099511627776",
    ),
]


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=[m.split(": ", 1)[1][:40] for _, m in ERRORS])
def test_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Problem) as e:
        load(tmp_path, text)
    assert str(e.value) == f"{tmp_path}/{message}"


def test_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "common.inc").write_text("\nbs=x\n")
    with pytest.raises(Problem, match=r"common\.inc:2: the value of an option is not accepted"):
        load(tmp_path, "[a]\ninclude common.inc\n")


def test_include_of_nothing_and_of_itself(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"test\.fio:2: include: .*gone\.inc: No such file or directory"):
        load(tmp_path, "[a]\ninclude gone.inc\n")
    with pytest.raises(Problem, match=r"test\.fio:2: include: more than 16 files deep"):
        load(tmp_path, "[a]\ninclude test.fio\n")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"gone\.fio: No such file or directory"):
        load_jobs(tmp_path / "gone.fio", 1 << 30)
    (tmp_path / "b.fio").write_bytes(b"[a]\nname=\xff\n")
    with pytest.raises(Problem, match=r"b\.fio: not a job file \(not text\)"):
        load_jobs(tmp_path / "b.fio", 1 << 30)


def test_harmless_options_are_accepted(tmp_path: Path) -> None:
    one = load(tmp_path, "[a]\nsize=1m\n")
    two = load(
        tmp_path,
        "[a]\nsize=1m\ngroup_reporting\nthread=1\nverify=0\nwrite_bw_log=x\ngtod_reduce=1\n"
        "iodepth_batch=1\nzero_buffers\nrandom_generator=lfsr\n",
    )
    assert one == two


@pytest.mark.parametrize(
    ("head", "is_one"),
    [
        (b"[global]\n", True),
        (b"# c\n\n  [a b]\nsize=1m", True),
        (b"", False),
        (b"time_s,task,op\n0,1,R\n", False),
        (b"[a]\0\n", False),
        (b"x [a]\n", False),
        (b"[]\n", False),
    ],
)
def test_sniffer(head: bytes, is_one: bool) -> None:
    assert looks_like_job_file(head) is is_one
