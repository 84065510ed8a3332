# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the page cache has nobody asks the drive for: pages that were read, by whomever, and pages that were written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from fioload import Io, places, run

FILE = "filename=x\nsize=1m\n"


def kib(ios: list[Io], op: str = "R") -> float:
    return sum(io.length for io in ios if io.op == op)


def test_readers_of_one_file_read_it_once(tmp_path: Path) -> None:
    """Each has windows of its own, and finds what the others have read, or waits for it."""
    alone = run(tmp_path, f"[a]\n{FILE}")
    together = run(tmp_path, f"[a]\n{FILE}numjobs=3\n")
    assert kib(alone) == 1024
    assert places(together) == places(alone)


def test_without_windows_too(tmp_path: Path) -> None:
    ios = run(tmp_path, f"[a]\n{FILE}fadvise_hint=random\nnumjobs=3\n")
    assert sorted(io.at for io in ios) == [4.0 * i for i in range(256)]


def test_who_comes_later_goes_on_from_the_others_marker(tmp_path: Path) -> None:
    """The second reader asks for what it has found of the first one's windows, doubled; the first has stopped."""
    first = f"[a]\n{FILE}io_size=64k\nthinktime=10s\nthinktime_blocks=16\n"
    alone = run(tmp_path, first)
    assert places(alone) == "R0+16 R16+32 R48+64 R112+128"
    both = run(tmp_path, f"{first}[b]\n{FILE}startdelay=1\ninvalidate=0\n")
    later = [io for io in both if io.task == "b"]
    assert later[0].at == 240 and later[0].length == 256
    assert kib(both) == 1024


def test_a_page_in_memory_is_no_marker(tmp_path: Path) -> None:
    """The page that would ask for the second window is there: the reader begins anew where it misses the first page."""
    ios = run(tmp_path, f"[a]\nfilename=x\nfilesize=1m\noffset=4k\nsize=4k\n[b]\n{FILE}io_size=40k\nstonewall\ninvalidate=0\n")
    assert places([io for io in ios if io.task == "b"]) == "R0+4 R8+8 R16+16 R32+32 R64+64"


def test_who_begins_a_file_leaves_what_is_coming(tmp_path: Path) -> None:
    """It drops a page further on, and not the marker of a window that another waits for."""
    of_file = "filename=x\nfilesize=1m\n"
    first = f"[p]\n{of_file}offset=512k\nsize=4k\n[a]\n{of_file}io_size=20k\nstartdelay=100ms\ninvalidate=0\n"
    ios = run(tmp_path, f"{first}[b]\n{of_file}io_size=4k\nstartdelay=102ms\n")
    assert places(ios) == "R512+4 R0+16 R16+32 R48+64"


def test_a_process_finds_what_it_has_read(tmp_path: Path) -> None:
    """It reads eight pages at random, and asks for each once."""
    ios = run(tmp_path, "[a]\nfilename=/dev/sda\nsize=32k\nio_size=4m\nrw=randread\nnorandommap\n")
    assert sorted(io.at for io in ios) == [4.0 * i for i in range(8)]


def test_a_reader_behind_a_writer_asks_for_nothing(tmp_path: Path) -> None:
    """Reads and writes of rw=rw each begin at the file's first page, and most are writes."""
    ios = run(tmp_path, f"[a]\n{FILE}rw=rw\nrwmixread=10\nnumber_ios=200\nfsync=8\n")
    assert kib(ios) <= 16 and kib(ios, "W") > 512


@pytest.mark.parametrize(
    ("writer", "reader", "found"),
    [
        ("end_fsync=1", "", False),
        ("end_fsync=1", "invalidate=0", True),
        ("", "", True),
        ("end_fsync=1", "direct=1", False),
    ],
)
def test_fio_drops_what_is_clean_when_it_begins_a_file(tmp_path: Path, writer: str, reader: str, found: bool) -> None:
    """Dirty pages stay. A reader past the cache finds nothing."""
    ios = run(tmp_path, f"[w]\n{FILE}rw=write\n{writer}\n[r]\n{FILE}stonewall\n{reader}\n")
    assert kib(ios) == (0 if found else 1024)


def test_a_new_pass_finds_what_stays(tmp_path: Path) -> None:
    for text in ("loops=2", "time_based\nruntime=20s\nrate=100k", "rw=randread\ntime_based\nruntime=20s\nrate=100k"):
        assert kib(run(tmp_path, f"[a]\n{FILE}{text}\ninvalidate=0\n")) == 1024
        assert kib(run(tmp_path, f"[a]\n{FILE}{text}\n")) > 1800


def test_a_write_past_the_cache_makes_what_it_has_untrue(tmp_path: Path) -> None:
    writes = "[w]\nfilename=x\nfilesize=1m\ndirect=1\nrw=write\noffset=64k\nsize=16k\nbs=16k\nstonewall\n"
    again = f"[b]\n{FILE}stonewall\ninvalidate=0\nfadvise_hint=random\nbs=16k\n"
    ios = run(tmp_path, f"[a]\n{FILE}\n{writes}{again}")
    assert [(io.at, io.length) for io in ios if io.task == "b"] == [(64, 16)]


def test_what_came_longest_ago_makes_room(tmp_path: Path) -> None:
    """900 MiB of pages are in memory. Of 1000 MiB, read backwards, the first 100 are gone."""
    ios = run(
        tmp_path,
        "[global]\nfilename=/dev/sda\nsize=1000m\nbs=1m\nfadvise_hint=random\n[a]\n[b]\nstonewall\ninvalidate=0\nrw=read:-2m\n",
        service_ms=0.01,
    )
    again = [io.at / 1024 for io in ios if io.task == "b"]
    assert len(again) == pytest.approx(100, abs=2) and max(again) == pytest.approx(100, abs=2)


IN_KIB = {"0": 0, "4k": 4, "12k": 12, "64k": 64, "100k": 100, "200k": 200, "300k": 300, "1m": 1024, "3m": 3072}
JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "rw": st.sampled_from(["read", "randread", "write", "randwrite", "rw", "randrw"]),
            "bs": st.sampled_from(["4k", "12k", "64k", "200k"]),
            "offset": st.sampled_from(["0", "100k", "1m"]),
            "size": st.sampled_from(["300k", "1m", "3m"]),
            "startdelay": st.sampled_from(["0", "20ms", "1s"]),
            "fsync": st.sampled_from(["0", "3"]),
            "fadvise_hint": st.sampled_from(["0", "1", "random", "sequential"]),
            "thinktime": st.sampled_from(["0", "2ms"]),
        }
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(JOBS)
def test_no_page_is_asked_for_that_is_in_memory(tmp_path_factory: pytest.TempPathFactory, jobs: list[dict[str, str]]) -> None:
    """Several processes read and write here and there in one place: each page at most once, and all that a reader reads."""
    sections = [f"[j{i}]\n" + "".join(f"{key}={value}\n" for key, value in job.items()) for i, job in enumerate(jobs)]
    ios = run(tmp_path_factory.mktemp("job"), "[global]\nfilename=/dev/sda\ninvalidate=0\n" + "".join(sections), service_ms=1)
    asked: set[int] = set()
    for io in ios:
        if io.op == "R":
            pages = set(range(int(io.at) // 4, int(io.at + io.length) // 4))
            assert not pages & asked
            asked |= pages
    written = {page for io in ios if io.op == "W" for page in range(int(io.at) // 4, int(io.at + io.length) // 4)}
    for job in jobs:
        if job["rw"] in ("read", "randread"):
            first, size, block = (IN_KIB[job[key]] for key in ("offset", "size", "bs"))
            whole = first + size // block * block
            assert set(range(first // 4, whole // 4)) <= asked | written
