# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Write-back throttling (wbt): how many requests of the page cache are on their way, and whose."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fioload import Io, places, run

from headwaiter.drives.choose import open_drive
from headwaiter.engine.sim import Options, Outcome, simulate
from headwaiter.fio import load_jobs

SCATTERED = "rw=randwrite\nsize=64m\nnorandommap\nend_fsync=1\n"
READER = "[r]\ndirect=1\nrw=randread\nfilename=/dev/sda\noffset=10g\nsize=1g\nruntime=4\ntime_based\n"


def most_at_once(ios: list[Io], task: str = "w", begin: float = 0, end: float = float("inf")) -> int:
    """Writes of the task on their way when one of them is issued, itself among them, at most."""
    writes = [io for io in ios if io.task == task and io.op == "W"]
    return max(sum(o.issue <= io.issue < o.done for o in writes) for io in writes if begin <= io.issue < end)


@pytest.mark.parametrize(("depth", "most"), [(1, 2), (2, 2), (5, 5), (64, 16), (256, 16)])
def test_fsync_may_have_all_of_the_depth(tmp_path: Path, depth: int, most: int) -> None:
    """Which is 16 at most; for a device of one or two commands it is two. Readers do not matter."""
    text = f"[global]\nfilename=/dev/sda\n[w]\n{SCATTERED}number_ios=80\n"
    assert most_at_once(run(tmp_path, text, wbt_depth=depth), end=99) == most
    assert most_at_once(run(tmp_path, text + READER, wbt_depth=depth), end=99) == most


def test_bfq_does_without(tmp_path: Path) -> None:
    text = f"[global]\nfilename=/dev/sda\n[w]\n{SCATTERED}number_ios=40\n"
    assert most_at_once(run(tmp_path, text, wbt_depth=2, sched="bfq")) == 40
    assert most_at_once(run(tmp_path, text, wbt_depth=2, sched="mq-deadline")) == 2


def test_nothing_is_throttled_unless_asked(tmp_path: Path) -> None:
    assert most_at_once(run(tmp_path, f"[w]\n{SCATTERED}number_ios=40\n")) == 40


@pytest.mark.parametrize(("depth", "early", "late"), [(64, 16, 48), (2, 2, 1)])
def test_where_there_are_only_writes_more_go_at_once(tmp_path: Path, depth: int, early: int, late: int) -> None:
    """A step with each window of 100 ms, up to three quarters of what the device holds; of two that is one."""
    ios = run(tmp_path, f"[w]\n{SCATTERED}number_ios=200\n", wbt_depth=depth)
    assert most_at_once(ios, end=99) == early
    assert most_at_once(ios, begin=500) == late


@pytest.mark.parametrize(("depth", "beside", "alone"), [(1, 1, 2), (2, 1, 2), (5, 2, 3), (64, 4, 8), (256, 4, 8)])
def test_the_flusher_has_half_and_beside_readers_a_quarter(tmp_path: Path, depth: int, beside: int, alone: int) -> None:
    """What is written as by sync(1), at the end, within the first window; a read counts for a tenth of a second."""
    text = (
        "[global]\nfilename=/dev/sda\n[w]\nstartdelay=70ms\nrw=randwrite\nsize=64m\nnorandommap\nnumber_ios=120\n"
        + READER.replace("runtime=4", "runtime=20ms")
    )
    ios = run(tmp_path, text, wbt_depth=depth, service_ms=4)
    last = max(io.done for io in ios if io.op == "R")
    assert most_at_once(ios, "flusher", end=last + 99) == beside
    assert most_at_once(ios, "flusher", begin=last + 101, end=169) == alone


def queue_of_reads(tmp_path: Path, service_ms: float) -> list[Io]:
    """Eight requests in the drive: a read takes eight times as long as its service."""
    text = f"[global]\nfilename=/dev/sda\n[w]\n{SCATTERED}number_ios=800\n{READER}ioengine=libaio\niodepth=7\n"
    return run(tmp_path, text, wbt_depth=64, service_ms=service_ms, queue_depth=8)


@pytest.mark.parametrize(("service_ms", "most"), [(5, 48), (10, 16)])
def test_slow_reads_make_room(tmp_path: Path, service_ms: float, most: int) -> None:
    """Reads that take 75 ms and more halve the depth with each window; quick ones let it grow to three quarters of 64."""
    assert most_at_once(queue_of_reads(tmp_path, service_ms), begin=700, end=2000) == most


def test_after_slow_reads_the_depth_comes_back(tmp_path: Path) -> None:
    ios = queue_of_reads(tmp_path, 10)
    last = max(io.done for io in ios if io.op == "R")
    assert most_at_once(ios, begin=last + 1000) == 48


def test_the_flusher_is_throttled_too(tmp_path: Path) -> None:
    """Pages that have been dirty for 30 s, beside a reader: a quarter of the depth."""
    text = (
        "[global]\nfilename=/dev/sda\n[w]\nrw=randwrite\nsize=64m\nnorandommap\nnumber_ios=60\n[w2]\nrw=randwrite\nsize=64m\n"
        "offset=1g\nnorandommap\nthinktime=41000000\nnumber_ios=2\n" + READER.replace("runtime=4", "runtime=40")
    )
    for depth, most in ((0, 59), (64, 4)):
        ios = run(tmp_path, text, wbt_depth=depth, sched="deadline")
        assert most_at_once(ios, "flusher", 35_000, 35_099) == most


def disk(tmp_path: Path, text: str, profile: Path | None = None, **options: Any) -> Outcome:
    path = tmp_path / "job.fio"
    path.write_text(text)
    drive = open_drive(str(profile or "barracuda-80g"))
    return simulate("noop", drive, load_jobs(path, drive.sectors), options=Options(record=True, **options))


def test_with_a_write_cache_the_line_moves_when_nothing_is_under_way(tmp_path: Path) -> None:
    """On the drive of constant time some go meanwhile; on one with a write-back cache sixteen go, then sixteen more."""
    text = f"[global]\nfilename=/dev/sda\n[w]\n{SCATTERED}number_ios=40\n" + READER
    ios = run(tmp_path, text, wbt_depth=64)
    writes = [io for io in ios if io.op == "W"]
    first = [io for io in writes if io.issue == writes[0].issue]
    assert len(first) == 16 and writes[16].issue < first[-1].done
    rows = disk(tmp_path, text, wbt_depth=64).rows
    write = rows.op == 1
    issued, done = rows.issue_ns[write].tolist(), rows.complete_ns[write].tolist()
    batches = sorted(set(issued))
    assert [issued.count(at) for at in batches] == [16, 16, 8]
    assert all(max(d for i, d in zip(issued, done, strict=True) if i == a) <= b for a, b in itertools.pairwise(batches))


def test_requests_of_so_many_pages(tmp_path: Path) -> None:
    text = "[w]\nrw=write\nbs=64k\nsize=1m\nend_fsync=1\n"
    assert places(run(tmp_path, text)) == "W0+1024"
    assert places(run(tmp_path, text, max_segments=128)) == "W0+512 W512+512"
    assert places(run(tmp_path, text, max_segments=128, max_sectors=512)) == "W0+256 W256+256 W512+256 W768+256"


TWO = "[global]\nfilename=/dev/sda\nrw=write\nbs=128k\nsize=2m\nend_fsync=1\n[one]\n[two]\noffset=1g\n"


def test_two_that_fsync_one_file_get_in_each_others_way(tmp_path: Path) -> None:
    """Each waits with a page in its hand, and the other's request ends before it: 4, 512, 4, … KiB by turns."""
    ios = run(tmp_path, TWO + READER, wbt_depth=2, max_segments=128)
    lengths = [io.length for io in ios if io.op == "W"]
    assert sum(lengths) == 4096
    assert 6 <= lengths.count(4) <= 8 and len(lengths) <= 16, "half of the requests, not all"
    tasks = [io.task for io in ios if io.op == "W"]
    assert tasks.count("one") > 3 and tasks.count("two") > 3, "both write what either has made dirty"
    alone = [
        io.length
        for io in run(tmp_path, TWO.replace("[two]\noffset=1g\n", "") + READER, wbt_depth=2, max_segments=128)
        if io.op == "W"
    ]
    assert alone == [512] * 4


def test_all_files_are_written_wherever_they_lie(tmp_path: Path) -> None:
    """fsync goes from file to file; the second lies before the first."""
    text = (
        "[z]\nfilename=a:b\nrw=read\nsize=8m\nnumber_ios=1\n"
        "[w]\nrw=randwrite\nnorandommap\nfilename=b:a\nsize=8m\nnumber_ios=40\nend_fsync=1\n"
    )
    assert {io.task for io in run(tmp_path, text, wbt_depth=2) if io.op == "W"} == {"w"}, "nothing is left to the flusher"


def test_what_is_made_dirty_behind_a_page_of_fsync_is_not_part_of_it(tmp_path: Path) -> None:
    """A writer goes on where its dirty pages end; fsync does not follow it."""
    text = (
        "[global]\nfilename=/dev/sda\n[one]\nrw=randwrite\nsize=64m\nnorandommap\nnumber_ios=8\nend_fsync=1\n"
        "[two]\nrw=write\nbs=4k\noffset=1g\nsize=1g\nthinktime=100\nruntime=2\ntime_based\n" + READER
    )
    ios = run(tmp_path, text, wbt_depth=2)
    assert sum(io.length for io in ios if io.task == "one") < 100


def test_a_page_that_is_written_again_goes_once_more(tmp_path: Path) -> None:
    """While fsync waits another one dirties the same pages: they are written by the sync at the end."""
    text = "[global]\nfilename=/dev/sda\nbs=4k\nsize=256k\n[one]\nrw=write\nend_fsync=1\n[two]\nrw=write\nloops=3\nthinktime=20\n"
    ios = run(tmp_path, text, wbt_depth=2, max_segments=8)
    assert sum(io.length for io in ios if io.op == "W") >= 256


def test_a_second_flush_goes_behind_what_is_decided_when_the_first_is_done(tmp_path: Path) -> None:
    """Both ask while the drive is busy; between the two flushes one read is served."""
    text = (
        "[global]\nfilename=/dev/sda\nrw=randwrite\nsize=64m\nnorandommap\nnumber_ios=1\n[a]\nend_fsync=1\n[b]\nend_fsync=1\n"
        "startdelay=12ms\n" + READER.replace("runtime=4", "runtime=1")
    )
    run = disk(tmp_path, text, pull_ahead=True)
    a, b = sorted(run.jobs[i].end_ns for i in (0, 1))
    read = run.rows.op == 0
    done = run.rows.complete_ns[read]
    assert a < b and ((done > a) & (done < b)).sum() >= 1


def test_a_flush_goes_behind_what_is_decided_when_its_data_are_written(tmp_path: Path) -> None:
    text = (
        "[global]\nfilename=/dev/sda\n[w]\nrw=randwrite\nsize=64m\nnorandommap\nnumber_ios=1\nend_fsync=1\n"
        + READER.replace("runtime=4", "runtime=1")
        + "ioengine=libaio\niodepth=8\n"
    )
    run = disk(tmp_path, text)
    rows, end = run.rows, run.jobs[0].end_ns
    written = rows.complete_ns[rows.op == 1].max()
    done = rows.complete_ns[rows.op == 0]
    assert ((done > written) & (done < end)).sum() == 1


@pytest.mark.parametrize(("read_ms", "most"), [(0.07, 24), (3.0, 1)])
def test_on_flash_two_milliseconds_are_slow(tmp_path: Path, read_ms: float, most: int) -> None:
    profile = tmp_path / "flash.toml"
    text = (Path(__file__).parents[1] / "drives" / "sata-ssd.toml").read_text()
    profile.write_text(text.replace("page_read = 0.07", f"page_read = {read_ms}"))
    rows = disk(
        tmp_path,
        f"[global]\nfilename=/dev/sda\n[w]\n{SCATTERED.replace('64m', '2g')}number_ios=200000\n{READER}",
        profile,
        wbt_depth=32,
    ).rows
    write = (rows.op == 1) & (rows.issue_ns < 4e9) & (rows.complete_ns > 1e9)
    issued, done = rows.issue_ns[write], rows.complete_ns[write]
    assert max(int(((issued <= at) & (at < done)).sum()) for at in issued[100:3000].tolist()) == most
