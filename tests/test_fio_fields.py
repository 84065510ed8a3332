# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What each option of a job file becomes for the simulator: every field by hand, and what it is if nothing is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fioload import load

SECOND, MINUTE = 10**9, 60 * 10**9
MIB = 1 << 20


def fields(tmp_path: Path, *options: str, device: bool = True) -> dict[str, Any]:
    where = ("filename=/dev/sda", "direct=1") if device else ("size=4m",)
    return dict(load(tmp_path, "\n".join(["[a]", *where, *options, ""])).jobs[0].fields)


def test_defaults(tmp_path: Path) -> None:
    """fio's: sequential reads of 4 KiB through the page cache, one process, one I/O at a time."""
    assert fields(tmp_path, device=False) == {
        "start_min_ns": 0, "start_max_ns": 0, "runtime_ns": 0, "time_based": False, "loops": 1, "number_ios": 0, "directions": 1,
        "read_percent": 50, "random": False, "random_percent": [100, 100], "prio": 1 << 13,
        "splits": [(), ()], "zones": [[], []], "skew": 0, "skew_by": 0.0, "skew_center": -1.0,
        "prio_splits": [[], []], "prio_percent": [0, 0], "random_map": True, "repeat_random": True,
        "min_bytes": [4096, 4096], "max_bytes": [4096, 4096], "align_bytes": [4096, 4096], "hole_bytes": 0, "random_every": 1,
        "identical": False, "file_service": 0, "file_every": 1, "depth": 1, "queued": False, "buffered": True,
        "keep_cache": False, "sync_writes": False, "fsync_every": 0, "end_fsync": False, "think_ns": 0, "think_blocks": 1,
        "think_issued": False, "rate_bytes": [0, 0], "readahead_bytes": 256 << 10, "size": 4 * MIB, "io_size": 0, "task": 0,
        "flusher": 1, "section": 0, "group": 0, "wait_for": -1, "stonewall": False, "exit_what": 0, "random_seed": 0x89,
        "number": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        (["startdelay=3"], {"start_min_ns": 3 * SECOND, "start_max_ns": 3 * SECOND}),
        (["startdelay=2-90s"], {"start_min_ns": 2 * SECOND, "start_max_ns": 90 * SECOND}),
        (["runtime=5"], {"runtime_ns": 5 * SECOND}),
        (["timeout=2m"], {"runtime_ns": 2 * MINUTE}),
        (["runtime=5", "time_based"], {"runtime_ns": 5 * SECOND, "time_based": True}),
        (["loops=3"], {"loops": 3}),
        (["number_ios=17"], {"number_ios": 17}),
        (["rw=write"], {"directions": 2}),
        (["rw=rw"], {"directions": 3}),
        (["rw=randread"], {"random": True}),
        (["rw=randwrite:5"], {"random": True, "directions": 2, "random_every": 5}),
        (["rw=randrw", "rwmixread=70"], {"random": True, "directions": 3, "read_percent": 70}),
        (["rw=rw", "rwmixwrite=30"], {"directions": 3, "read_percent": 70}),
        (["rw=read:8k"], {"hole_bytes": 8192}),
        (["rw=read:-8k"], {"hole_bytes": -8192}),
        (["rw=randread", "rw_sequencer=identical"], {"random": True, "identical": True}),
        (["percentage_random=30,60"], {"random_percent": [30, 60]}),
        (["percentage_random=25"], {"random_percent": [25, 25]}),
        (["norandommap"], {"random_map": False}),
        (["randrepeat=0"], {"repeat_random": False}),
        (["allrandrepeat=0"], {"repeat_random": False}),
        (["randseed=77"], {"random_seed": 77}),
        (["bs=8k,16k"], {"min_bytes": [8192, 16384], "max_bytes": [8192, 16384], "align_bytes": [8192, 16384]}),
        (["bsrange=4k-64k"], {"max_bytes": [65536, 65536]}),
        (["ba=64k"], {"align_bytes": [65536, 65536], "random_map": False}),
        (["ioengine=libaio", "iodepth=9"], {"depth": 9, "queued": True}),
        (["iodepth=9"], {}),
        (["invalidate=0"], {"keep_cache": True}),
        (["rw=write", "sync=1"], {"directions": 2, "sync_writes": True}),
        (["rw=write", "sync=dsync"], {"directions": 2, "sync_writes": True}),
        (["rw=write", "sync=none"], {"directions": 2}),
        (["thinktime=250"], {"think_ns": 250_000}),
        (["thinktime=2ms", "thinktime_spin=900"], {"think_ns": 2_000_000}),
        (["thinktime=100", "thinktime_spin=900"], {"think_ns": 900_000}),
        (["thinktime_spin=900"], {}),
        (
            ["thinktime=1", "thinktime_blocks=6", "thinktime_blocks_type=issue"],
            {"think_ns": 1000, "think_blocks": 6, "think_issued": True},
        ),
        (["rate=1m,2m"], {"rate_bytes": [MIB, 2 * MIB]}),
        (
            ["rate_iops=100", "bs=8k,2k"],
            {"rate_bytes": [819200, 204800], "min_bytes": [8192, 2048], "max_bytes": [8192, 2048], "align_bytes": [8192, 2048]},
        ),
        (["io_size=1m"], {"io_size": MIB}),
        (["io_size=25%"], {"io_size": 1 << 38}),
        (["file_service_type=random"], {"file_service": 2}),
        (["file_service_type=sequential"], {"file_service": 1}),
        (["file_service_type=roundrobin:4"], {"file_every": 4}),
    ],
)
def test_each_option_changes_what_it_names(tmp_path: Path, options: list[str], changed: dict[str, Any]) -> None:
    """On a drive of 1 TiB."""
    plain = fields(tmp_path)
    assert (plain["size"], plain["buffered"], plain["readahead_bytes"]) == (1 << 40, False, 0)
    assert fields(tmp_path, *options) == {**plain, **changed}


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        (["rw=randread"], {"random": True, "readahead_bytes": 0}),
        (["fadvise_hint=0"], {"readahead_bytes": 128 << 10}),
        (["rw=randread", "fadvise_hint=sequential"], {"random": True, "readahead_bytes": 256 << 10}),
        (["fadvise_hint=random"], {"readahead_bytes": 0}),
        (["rw=write", "fsync=7"], {"directions": 2, "fsync_every": 7}),
        (["rw=write", "fdatasync=7"], {"directions": 2, "fsync_every": 7}),
        (["fsync=7", "end_fsync=1"], {}),
        (["rw=write", "end_fsync=1"], {"directions": 2, "end_fsync": True}),
        (["rw=write", "fsync_on_close=1"], {"directions": 2, "end_fsync": True}),
        (["ioengine=libaio", "iodepth=9"], {"queued": True}),
    ],
)
def test_through_the_page_cache(tmp_path: Path, options: list[str], changed: dict[str, Any]) -> None:
    assert fields(tmp_path, *options, device=False) == {**fields(tmp_path, device=False), **changed}


def regions(tmp_path: Path, *lines: str) -> list[list[tuple[int, int]]]:
    """(offset, span) in MiB of each file of each process, on a drive of 1 TiB."""
    jobs = load(tmp_path, "\n".join(["[a]", "direct=1", "bs=1m", *lines, ""])).jobs
    return [[(f["offset"] // MIB, f["span"] // MIB) for f in job.files] for job in jobs]


def test_regions(tmp_path: Path) -> None:
    tib = 1 << 20
    assert regions(tmp_path, "filename=/dev/sda") == [[(0, tib)]]
    assert regions(tmp_path, "filename=/dev/sda", "offset=10m") == [[(10, tib - 10)]]
    assert regions(tmp_path, "filename=/dev/sda", "size=25%") == [[(0, tib // 4)]]
    assert regions(tmp_path, "filename=/dev/sda", "size=90%", "offset=50%") == [[(tib // 2, tib // 2)]], "no further than its end"
    assert regions(tmp_path, "size=12m", "nrfiles=3") == [[(0, 4), (0, 4), (0, 4)]], "the size is that of all files"
    assert regions(tmp_path, "filesize=12m", "offset=2m") == [[(2, 10)]]
    assert regions(tmp_path, "size=8m", "offset=3m") == [[(3, 8)]]
    clones = ["filename=/dev/sda", "size=5m", "numjobs=4", "offset=1m", "offset_increment=10m"]
    assert regions(tmp_path, *clones) == [[(1, 5)], [(31, 5)], [(21, 5)], [(11, 5)]], "fio numbers clones backwards"
    # 30% of a TiB, up to whole blocks; or up to what offset_align says.
    assert regions(tmp_path, "filename=/dev/sda", "size=1m", "offset=30%") == [[(-(-tib * 3 // 10), 1)]]
    assert regions(tmp_path, "filename=/dev/sda", "size=1m", "offset=30%", "offset_align=1g")[0][0][0] == 308 * 1024


def test_who_waits_for_whom_and_who_is_whose(tmp_path: Path) -> None:
    text = """[global]
direct=1
size=1m
[a]
numjobs=2
prio=3
[b]
stonewall
numjobs=2
[c]
wait_for=a
new_group
prioclass=3
[d]
nice=-10
exitall
exit_what=all
"""
    jobs = load(tmp_path, text)
    keys = ("section", "group", "wait_for", "stonewall", "exit_what", "number", "task")
    assert [tuple(job.fields[key] for key in keys) for job in jobs.jobs] == [
        (0, 0, -1, False, 1, 0, 0), (0, 0, -1, False, 1, 1, 1), (1, 1, -1, True, 1, 2, 2), (1, 1, -1, False, 1, 3, 3),
        (2, 2, 0, False, 1, 4, 4), (3, 2, -1, False, 3, 5, 5),
    ]  # fmt: skip
    assert [(t.id, t.name, t.group, t.ioprio) for t in jobs.tasks] == [
        (0, "a.0", 0, 2 << 13 | 3),
        (1, "a.1", 1, 2 << 13 | 3),
        (2, "b.0", 2, 0),
        (3, "b.1", 3, 0),
        (4, "c", 4, 3 << 13),
        (5, "d", 5, 2 << 13 | 2),
    ]
    assert jobs.notes == () and all(t.exits for t in jobs.tasks)


def test_the_flusher_is_a_thread_of_its_own(tmp_path: Path) -> None:
    jobs = load(tmp_path, "[a]\nsize=1m\nrw=write\nnumjobs=2\n")
    assert [(t.id, t.name, t.group, t.exits) for t in jobs.tasks] == [
        (0, "a.0", 0, True),
        (1, "a.1", 1, True),
        (2, "flusher", 2, False),
    ]
    assert [job.fields["flusher"] for job in jobs.jobs] == [2, 2] and "buffered" in jobs.notes[0]


def test_files_lie_one_after_another(tmp_path: Path) -> None:
    """A 64th of the drive apart, or as far as the file is long. A name that comes again is the same file, the longer."""
    given = {"a": ("f:g", "2m"), "b": ("f", "40g"), "c": ("h", "1m"), "d": ("/dev/shm/x", "1m")}
    text = "[global]\ndirect=1\n" + "".join(f"[{job}]\nfilename={name}\nsize={size}\n" for job, (name, size) in given.items())
    bases = [[f["base"] >> 30 for f in job.files] for job in load(tmp_path, text).jobs]
    assert bases == [[0, 40], [0], [56], [72]], "16 GiB is a 64th of 1 TiB"
