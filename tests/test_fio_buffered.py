# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""I/O through the page cache, on a drive that takes 5 ms for everything: windows of read-ahead, the flusher, fsync."""

from __future__ import annotations

import csv
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fioload import KIB, Io, issues, load, places, run

from headwaiter.drives.choose import open_drive
from headwaiter.engine.sim import Options, Outcome, simulate
from headwaiter.fio import load_jobs

COPY_4K = 4096 / 2 / 1e6  # ms


def test_windows_open_and_grow(tmp_path: Path) -> None:
    """16 KiB for a request of 4, then doubled; 256 KiB at most, since fio announces sequential reading."""
    ios = run(tmp_path, "[a]\nsize=1m\n")
    assert places(ios) == "R0+16 R16+32 R48+64 R112+128 R240+256 R496+256 R752+256 R1008+16"
    # The first is waited for. Its second page asks for the second window, the first page of which asks for the third.
    assert ios[0].issue == 0
    assert ios[1].issue == pytest.approx(5 + COPY_4K)
    assert ios[2].issue == pytest.approx(5 + 4 * COPY_4K)  # queued behind the second
    assert ios[3].issue == pytest.approx(ios[1].done, abs=0.02)


def test_without_the_announcement_the_window_is_half(tmp_path: Path) -> None:
    assert places(run(tmp_path, "[a]\nsize=512k\nfadvise_hint=0\n")) == "R0+16 R16+32 R48+64 R112+128 R240+128 R368+128 R496+16"


def test_large_requests_begin_with_the_largest_window(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\nsize=1m\nbs=256k\n")
    assert {io.length for io in ios} == {256}


def test_a_reader_waits_only_for_the_window_it_needs(tmp_path: Path) -> None:
    """Two windows are on their way most of the time, so the disk is never idle for a fast reader."""
    ios = run(tmp_path, "[a]\nsize=16m\n")
    gaps = [b.issue - a.done for a, b in itertools.pairwise(ios[2:])]
    assert max(gaps) <= 0


def test_random_reads_ask_for_what_they_need(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\nsize=1m\nrw=randread\n")
    assert sorted(io.at for io in ios) == [4.0 * i for i in range(256)]
    assert {io.length for io in ios} == {4}


def test_random_reads_that_are_not_announced_open_no_window_either(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\nsize=64m\nio_size=1m\nrw=randread\nfadvise_hint=0\n")
    # But for the very first page, and where chance goes on to the next page.
    assert sum(io.length > 4 for io in ios) < 5


def test_places_that_are_no_page_are_rounded_to_pages(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\nsize=10000\nbs=1000\noffset=3000\nfadvise_hint=random\n")
    assert places(ios) == "R0+4 R4+4 R8+4 R12+4"


def test_a_new_pass_reads_again(tmp_path: Path) -> None:
    once = run(tmp_path, "[a]\nsize=4m\n")
    twice = run(tmp_path, "[a]\nsize=4m\nloops=2\n")
    assert len(twice) == 2 * len(once)


def test_an_end_within_a_page(tmp_path: Path) -> None:
    assert places(run(tmp_path, "[a]\nsize=17k\nbs=1k\n")) == "R0+16 R16+4"


def test_buffered_io_has_a_depth_of_one(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\nioengine=libaio\niodepth=8\nrw=randread\nsize=32k\n")
    assert issues(ios) == pytest.approx([i * (5 + COPY_4K) for i in range(8)])


def total(ios: list[Io]) -> float:
    return sum(io.length for io in ios)


def test_few_writes_wait_for_the_end(tmp_path: Path) -> None:
    ios = run(tmp_path, "[w]\nrw=write\nsize=8m\n")
    assert {(io.task, io.op) for io in ios} == {("flusher", "W")}
    end_of_job = 8 * KIB * KIB / 2 / 1e6
    assert issues(ios) == pytest.approx([end_of_job] * len(ios))
    assert [io.at for io in ios] == [1280.0 * i for i in range(7)]
    assert total(ios) == 8 * KIB


def test_random_writes_are_sorted_and_joined(tmp_path: Path) -> None:
    ios = run(tmp_path, "[w]\nrw=randwrite\nsize=8m\n")
    assert [io.at for io in ios] == [1280.0 * i for i in range(7)]


def test_flushing_begins_in_the_background_and_writers_wait_at_the_limit(tmp_path: Path) -> None:
    ios = run(tmp_path, "[w]\nrw=write\nsize=400m\nbs=64k\n[next]\ndirect=1\nsize=4k\nstonewall\n")
    assert total([io for io in ios if io.op == "W"]) == 400 * KIB
    begin = 100 * KIB * KIB / 2 / 1e6
    assert ios[0].issue == pytest.approx(begin, abs=0.1)
    # The writer needs 0.2 s for all of it; what holds it back is that only 200 MiB may not have been written.
    (after,) = (io for io in ios if io.task == "next")
    assert after.issue == pytest.approx(begin + 160 * 5, abs=5)


def test_the_flusher_goes_round(tmp_path: Path) -> None:
    """Pages at the front that get dirty again and again wait until it comes back to them."""
    ios = run(
        tmp_path, "[global]\nrw=write\n[front]\nsize=4k\ntime_based\nruntime=1s\nthinktime=100us\n[back]\nsize=400m\nbs=1m\n"
    )
    assert 1 <= sum(io.at == 0 for io in ios) <= 4


def test_old_pages_are_written_after_half_a_minute(tmp_path: Path) -> None:
    ios = run(tmp_path, "[w]\nrw=write\nsize=64k\nrate_iops=1\ntime_based\nruntime=60s\n")
    first = ios[0]
    assert first.task == "flusher"
    assert 30_000 <= first.issue <= 35_100
    assert first.at == 0


def test_rewriting_a_page_is_one_write(tmp_path: Path) -> None:
    ios = run(tmp_path, "[w]\nrw=write\nsize=4k\nloops=100\n")
    assert places(ios) == "W0+4"


def test_fsync_writes_what_is_dirty_and_waits(tmp_path: Path) -> None:
    ios = run(tmp_path, "[w]\nrw=write\nsize=48k\nfsync=4\n")
    # fio does not fsync after the last write.
    assert [(io.task, io.at, io.length) for io in ios] == [("w", 0, 16), ("w", 16, 16), ("flusher", 32, 16)]
    assert issues(ios) == pytest.approx([4 * COPY_4K, 5 + 8 * COPY_4K, 10 + 12 * COPY_4K])


def test_fsync_comes_after_reads_too_until_the_next_write(tmp_path: Path) -> None:
    """It writes what another process makes dirty: after the second write and each read behind it, not behind the third."""
    ios = run(
        tmp_path,
        "[global]\nfilename=/dev/sda\nsize=64m\n[other]\nrw=write\noffset=1g\nrate=400k\nbs=4k\nnumber_ios=200\n"
        "[a]\nrw=randrw\nrwmixread=80\nnorandommap\nfsync=2\nnumber_ios=40\nthinktime=10000\n",
        service_ms=1,
    )
    mine = [io for io in ios if io.task == "a"]
    wrote = 0
    for io, following in itertools.pairwise(mine):
        if io.op == "R" and following.op == "W":
            assert wrote or following.at < 65536
        wrote += io.op == "W" and io.at < 65536
        if io.op == "R" and following.op == "R":
            assert wrote % 2 == 0, "an odd one still waits in memory, and no read has been followed by fsync"
    synced = [io.issue for io in mine if io.op == "W" and io.at >= 1 << 20]
    assert len(synced) > 2 * wrote and len(set(synced)) == len(synced)


def test_fsync_at_the_end(tmp_path: Path) -> None:
    for option in ("end_fsync=1", "fsync_on_close=1"):
        ios = run(tmp_path, f"[w]\nrw=write\nsize=48k\n{option}\n[next]\nrw=read\nsize=4k\nstonewall\n")
        assert [(io.task, io.op) for io in ios] == [("w", "W"), ("next", "R")]
        assert ios[1].issue == ios[0].done


def test_fsync_waits_for_what_the_flusher_has_under_way(tmp_path: Path) -> None:
    ios = run(tmp_path, "[w]\nrw=write\nbs=1m\nsize=101m\nend_fsync=1\n[next]\nrw=read\nsize=4k\nstonewall\n")
    writes = [io for io in ios if io.op == "W"]
    assert {io.task for io in writes} == {"w", "flusher"}
    (read,) = (io for io in ios if io.op == "R")
    assert read.issue == max(io.done for io in writes)


def test_pages_that_arrive_do_not_end_the_wait_for_writes(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\nrw=rw\nsize=2m\nfsync=1\nbs=4k\n")
    writes = [io for io in ios if io.op == "W"]
    # What is written last is followed by no I/O that would bring an fsync: the flusher writes it.
    assert {(io.task, io.length) for io in writes[:-1]} == {("a", 4)}
    assert all(b.issue > a.done for a, b in itertools.pairwise(writes))


def on_a_disk(tmp_path: Path, text: str, sched: str = "noop", log: Path | None = None, **options: Any) -> Outcome:
    path = tmp_path / "job.fio"
    path.write_text(text)
    drive = open_drive("barracuda-80g")
    return simulate(sched, drive, load_jobs(path, drive.sectors), options=Options(record=True, **options), log=log)


def test_a_writer_waits_for_write_back_once_in_eight_pages(tmp_path: Path) -> None:
    """Beside one who has made too much dirty: of a log of a page at a time the eighth waits, as a write of 32 KiB does."""
    text = (
        "[global]\nfilename=/dev/sda\n[writer]\nrw=write\nbs=64k\nsize=4m\n"
        "[log]\nstartdelay=10ms\noffset=10g\nrw=write\nbs={}\nsize=4m\nnumber_ios={}\n"
    )

    def end_ms(size: str, number: int) -> float:
        run = on_a_disk(tmp_path, text.format(size, number), "noop", dirty_bytes=1 << 20, dirty_background_bytes=1 << 19)
        return run.jobs[1].end_ns / 1e6

    assert end_ms("4k", 7) < 10.1
    assert end_ms("4k", 8) > 12 and end_ms("32k", 1) > 12
    assert end_ms("4k", 15) == pytest.approx(end_ms("4k", 8), abs=0.1)


def test_fsync_has_the_drives_cache_flushed(tmp_path: Path) -> None:
    """Data go into the cache at the interface's speed; then the job waits until they are on the medium."""
    text = "[{}]\nrw=randwrite\nsize=64m\nbs=4k\nnumber_ios=20\nnorandommap\n"
    dropped = on_a_disk(tmp_path, text.format("a") + "direct=1\n")
    synced = on_a_disk(tmp_path, text.format("a") + "fsync=1\n")
    own = synced.rows.task == 0
    assert (synced.rows.complete_ns - synced.rows.issue_ns)[own].max() < 1_000_000, "no write waits for the platter"
    assert synced.jobs[0].end_ns > 10 * dropped.jobs[0].end_ns
    assert synced.jobs[0].end_ns > 19 * 3_000_000, "each fsync does"


def test_who_has_flushed_waits_for_nothing_that_others_write(tmp_path: Path) -> None:
    """Two on one disk: each writes while the other's flush is done, and the next flush is for both."""
    text = "[a]\nfilename=/dev/sda\nrw=randwrite\nsize=1g\noffset_increment=2g\nfsync=1\ntime_based\nruntime=2\nnumjobs={}\n"
    device = open_drive("wd-re-4tb")
    writes = []
    for number in (1, 2):
        path = tmp_path / "x.fio"
        path.write_text(text.format(number))
        jobs = simulate("none", device, load_jobs(path, device.sectors), options=Options(one_processor=True)).jobs
        writes.append(sum(job.ios[1] for job in jobs))
    assert writes[1] > 1.05 * writes[0]


def test_what_is_written_while_fsync_goes_on_is_not_part_of_it(tmp_path: Path) -> None:
    text = (
        "[global]\nfilename=/dev/sda\nsize=64m\nrw=randwrite\nnorandommap\n[one]\nnumber_ios=8\nend_fsync=1\n"
        "[two]\nrw=write\noffset=1g\nnumber_ios=2000\nthinktime=1000\n"
    )
    ios = run(tmp_path, text, wbt_depth=2)
    assert sum(io.task == "one" for io in ios) < 20, "and not the thousands that the other one writes meanwhile"


def test_dirty_pages_take_processor_time_twice(tmp_path: Path) -> None:
    text = "[w]\nrw=write\nsize=32k\nbs=32k\nend_fsync=1\n"
    plain, dirty = (run(tmp_path, text, copy_page_ns=1000, dirty_page_ns=ns)[0].issue for ns in (0, 100_000))
    assert dirty - plain == pytest.approx(2 * 8 * 0.1)


def test_a_flush_goes_when_the_device_is_free_next(tmp_path: Path) -> None:
    """Beside others that keep eight requests queued: the drive's cache is written while they wait, not after them."""
    text = (
        "[global]\nfilename=/dev/sda\n[sync]\nrw=write\nsize=1m\nbs=64k\nfsync=4\n[others]\nioengine=libaio\niodepth=8\n"
        "direct=1\nrw=randread\noffset=10g\nsize=1g\nruntime=2\ntime_based\n"
    )
    assert on_a_disk(tmp_path, text).jobs[0].end_ns < 1_500_000_000


def test_without_a_scheduler_a_flush_needs_a_tag(tmp_path: Path) -> None:
    """Which the others have: each I/O of theirs that is done wakes one who waits, in vain as long as they go on at once."""
    text = (
        "[global]\nfilename=/dev/sda\n[sync]\nstartdelay=100ms\nrw=write\nsize=256k\nbs=64k\nfsync=1\n[other]\ndirect=1\n"
        "rw=randread\noffset=10g\nsize=1g\nruntime=1\ntime_based\n[third]\ndirect=1\n"
        "rw=randread\noffset=20g\nsize=1g\nruntime=1\ntime_based\n"
    )
    ends = {}
    for sched, tags in (("none", 1), ("none", 64), ("mq-deadline", 64)):
        run = on_a_disk(
            tmp_path,
            text,
            sched,
            nr_requests=tags,
            pull_ahead=sched != "none",
            join_arriving=True,
            turnaround_ns=10_000,
            one_processor=True,
        )
        ends[sched, tags] = run.jobs[0].end_ns
    assert ends["none", 1] > 1_000_000_000 > ends["none", 64], "it ends when the others have"
    assert ends["mq-deadline", 64] < 1_000_000_000


def test_a_flush_is_asked_for_when_its_process_runs(tmp_path: Path) -> None:
    """Its write is done while another process has the processor: the flush comes behind that one's 64 ms."""
    text = (
        "[global]\nfilename=/dev/sda\n[sync]\nrw=write\nsize=4k\nend_fsync=1\n"
        "[copies]\nstartdelay=500us\noffset=10g\nrw=write\nbs=256k\nsize=256k\n"
    )
    ends = {}
    for shared in (False, True):
        run = on_a_disk(tmp_path, text, "mq-deadline", copy_page_ns=1_000_000, one_processor=shared)
        ends[shared] = [job.end_ns for job in run.jobs]
    assert ends[False][0] < ends[False][1], "it is not at all that slow"
    assert ends[True][0] > ends[True][1]


def test_a_flush_keeps_the_only_tag_until_it_is_done(tmp_path: Path) -> None:
    """A read that comes meanwhile waits for it, though the drive would take more commands; with a tag for each it does not."""
    text = (
        "[global]\nfilename=/dev/sda\n[sync]\nrw=randwrite\nsize=64m\nnorandommap\nnumber_ios=20\nend_fsync=1\n"
        "[read]\nstartdelay=20ms\ndirect=1\nrw=randread\noffset=10g\nsize=1g\nnumber_ios=1\n"
    )
    ends = {}
    for tags in (1, 64):
        run = on_a_disk(tmp_path, text, "none", nr_requests=tags, queue_depth=4, join_arriving=True, turnaround_ns=10_000)
        ends[tags] = [job.end_ns for job in run.jobs]
    assert ends[1][1] > ends[1][0] and ends[64][1] < ends[64][0]


@pytest.mark.parametrize(("sched", "first"), [("as-seek", "far"), ("mq-deadline", "near")])
def test_our_modules_decide_beside_a_flush(tmp_path: Path, sched: str, first: str) -> None:
    """They know only of their own requests: what comes first is chosen before what comes later, and lies nearer, is there."""
    text = (
        "[global]\nfilename=/dev/sda\n[sync]\nrw=randwrite\nsize=64m\nnorandommap\nnumber_ios=40\nend_fsync=1\n"
        "[far]\nstartdelay=20ms\ndirect=1\nrw=read\noffset=60g\nsize=4k\n[near]\nstartdelay=30ms\ndirect=1\nrw=read\noffset=1g\nsize=4k\n"
    )
    sync, far, near = on_a_disk(tmp_path, text, sched).jobs
    assert sync.end_ns > 60_000_000, "both have come by then"
    assert (far.end_ns < near.end_ns) == (first == "far")


def dispatched(tmp_path: Path, text: str, tags: int) -> list[int]:
    """Sectors of each request of 16 KiB or more, in order."""
    on_a_disk(
        tmp_path,
        text,
        "none",
        tmp_path / "log.csv",
        nr_requests=tags,
        one_processor=True,
        join_arriving=True,
        turnaround_ns=10_000,
        dispatch_ns=3_000,
    )
    rows = csv.DictReader((tmp_path / "log.csv").read_text().splitlines())
    return [int(row["sectors"]) for row in rows if row["event"] == "dispatch" and int(row["sectors"]) > 8]


@pytest.mark.parametrize("tags", [1, 2, 64])
def test_who_waits_for_a_tag_reads_no_further(tmp_path: Path, tags: int) -> None:
    """Else windows of 256 KiB would pile up behind the one that waits, and join it."""
    lengths = dispatched(tmp_path, "[a]\nfilename=/dev/sda\nrw=read\nsize=16m\n", tags)
    assert lengths[:5] == [32, 64, 128, 256, 512]
    assert set(lengths[5:-1]) == {512}


def test_who_waits_for_a_tag_for_its_first_window_asks_for_no_second(tmp_path: Path) -> None:
    text = (
        "[global]\nfilename=/dev/sda\n[other]\ndirect=1\nioengine=libaio\niodepth=4\nrw=randread\nnumber_ios=300\n"
        "offset=10g\nsize=1g\n[a]\nstartdelay=50ms\nrw=read\nbs=256k\nsize=4m\n"
    )
    assert set(dispatched(tmp_path, text, 1)) == {512}


def test_fsync_is_of_the_jobs_own_files(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\nrw=write\nsize=64k\n[b]\nrw=write\nsize=4k\nend_fsync=1\n")
    assert [io.task for io in ios] == ["b", "flusher"]


def test_synchronous_writes_wait_for_each(tmp_path: Path) -> None:
    ios = run(tmp_path, "[w]\nrw=write\nsize=12k\nsync=1\n")
    assert [(io.task, io.at) for io in ios] == [("w", 0), ("w", 4), ("w", 8)]
    assert issues(ios) == pytest.approx([i * 5 + (i + 1) * COPY_4K for i in range(3)])


def test_every_sector_is_written_once(tmp_path: Path) -> None:
    ios = run(tmp_path, "[global]\nrw=randwrite\nsize=150m\nbs=64k\n[a]\n[b]\nfsync=500\n", service_ms=0.2)
    covered = sorted((io.at, io.at + io.length) for io in ios)
    assert total(ios) == 300 * KIB
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(covered))


def test_the_flusher_is_there_only_if_needed(tmp_path: Path) -> None:
    def names(options: str) -> list[str]:
        return [t.name for t in load(tmp_path, f"[a]\nsize=1m\n{options}\n").tasks]

    assert names("rw=write") == names("rw=randrw") == ["a", "flusher"]
    assert names("rw=read") == names("rw=write\ndirect=1") == ["a"]


def test_a_buffered_run_says_so(tmp_path: Path) -> None:
    assert not load(tmp_path, "[a]\nsize=1m\ndirect=1\n").notes
    assert "buffered" in load(tmp_path, "[a]\nsize=1m\n").notes[0]


def test_exit_while_a_writer_is_held_back(tmp_path: Path) -> None:
    ios = run(tmp_path, "[w]\nrw=write\nsize=2g\nbs=1m\n[r]\nrw=read\nsize=1m\nexitall\n")
    assert total([io for io in ios if io.op == "W"]) < 2 * KIB * KIB
    assert total([io for io in ios if io.op == "R"]) == KIB
