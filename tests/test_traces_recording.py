# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Archives of `headwaiter record`: what is read of the kernel's pages, of losses, and of archives that are damaged."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import pytest
from blkrecords import event as blk_event
from recordings import readers, record
from ringpages import archive, begin, document, end, entry, event, files, format_text, page
from zstandard import compress

from headwaiter.base.errors import Problem
from headwaiter.drives.profile import find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import Forest
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.judge import judge
from headwaiter.study.variants import parse_variant
from headwaiter.study.workload import Reading, read_trace, replay
from headwaiter.traces import Trace, TraceTask, as_inserted, load, recording, ring
from headwaiter.traces.source import Source


def read(folder: Path, content: dict[str, bytes], **options: object) -> Trace:
    path = folder / "t.hwr"
    path.write_bytes(compress(archive(content)))
    return load(path, **options)  # type: ignore[arg-type]


def problem(folder: Path, content: dict[str, bytes], **options: object) -> str:
    with pytest.raises(Problem) as caught:
        read(folder, content, **options)
    return str(caught.value).removeprefix(str(folder / "t.hwr"))


def rows(t: Trace) -> list[tuple[int, int, int, int, int]]:
    """(time, complete, sector, sectors, task)."""
    return list(zip(*(c.tolist() for c in (t.time_ns, t.complete_ns, t.sector, t.sectors, t.task)), strict=True))


def two_cpus(rwbs: int = 10) -> dict[int, list[bytes]]:
    """A read that is split, by a process that was forked and exits, queued on CPU 0 and complete on CPU 1; and a write."""
    one = {"rwbs_bytes": rwbs}
    return {
        0: [
            page(
                1000,
                entry(0, event("sched_process_fork", parent_pid=5, child_pid=6)),
                entry(10, event("block_bio_queue", sector=800, nr_sector=16, rwbs="RS", pid=6, comm="cat", **one)),
                entry(5, event("block_split", sector=800, new_sector=808, rwbs="RS", pid=6, comm="cat", **one)),
            ),
            page(9000, entry(0, event("sched_process_exit", task=6, pid=6, comm="cat"))),
        ],
        1: [
            page(
                1500,
                entry(0, event("block_rq_complete", sector=800, nr_sector=8, rwbs="RS", pid=99, **one)),
                entry(
                    200,
                    event("block_bio_queue", sector=(1 << 64) - 1, nr_sector=0, rwbs="FWS", pid=7, comm="kworker/u4:1", **one),
                ),
                entry(100, event("block_bio_queue", sector=4000, nr_sector=8, rwbs="W", pid=7, comm="kworker/u4:1", **one)),
                entry(200, event("block_rq_complete", sector=808, nr_sector=8, rwbs="RS", pid=99, **one)),
            )
        ],
    }


@pytest.mark.parametrize("rwbs", [8, 10])
def test_a_recording_of_two_processors(tmp_path: Path, rwbs: int) -> None:
    t = read(tmp_path, files(two_cpus(rwbs), rwbs))
    assert rows(t) == [(10, 500, 800, 8, 0), (10, 1000, 808, 8, 0), (800, -1, 4000, 8, 1)]
    assert t.tasks == (TraceTask(6, "cat", 8000), TraceTask(7, "kworker/u4:1"))
    assert (t.op.tolist(), t.flags.tolist()) == ([Op.READ, Op.READ, Op.WRITE], [SYNC, SYNC, 0])
    assert (t.format, t.source) == ("recording", str(tmp_path / "t.hwr"))
    assert t.notes == ("1 of 3 requests without a recorded completion",)


def test_the_devices_model_comes_from_the_archive(tmp_path: Path) -> None:
    """An archive of one disk has one model; of several disks, one is asked for."""
    content = files(two_cpus())
    assert read(tmp_path, content).device_model == "m"
    disks = [
        {"name": name, "number": number, "facts": {"model": f"Model {name}"}, "settings": {}}
        for name, number in (("sda", "8,0"), ("sdb", "8,16"))
    ]
    content["headwaiter.json"] = document(begin(disks=disks))
    assert read(tmp_path, content).device_model == ""
    assert read(tmp_path, content, device="sda").device_model == "Model sda"
    assert read(tmp_path, content, device="8:0").device_model == "Model sda"


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        ({"scheduler": "none [mq-deadline] bfq", "nr_requests": "512"}, 512),
        ({"scheduler": "[none] mq-deadline bfq", "nr_requests": "31"}, None),
        ({"scheduler": "none", "nr_requests": "31"}, None),
        ({"scheduler": "[kyber]", "nr_requests": "many"}, None),
        ({"scheduler": "[kyber]"}, None),
        ({}, None),
    ],
)
def test_requests_at_once_come_from_the_archive(tmp_path: Path, settings: dict[str, str], number: int | None) -> None:
    """Those of a scheduler: without one they are the device's own."""
    content = files(two_cpus())
    content["headwaiter.json"] = document(begin(disks=[{"name": "sda", "number": "8,0", "facts": {}, "settings": settings}]))
    assert read(tmp_path, content).nr_requests == number


@pytest.mark.parametrize(
    ("said", "current", "offered"),
    [
        ("none [mq-deadline] bfq", "mq-deadline", ("none", "mq-deadline", "bfq")),
        ("none mq-deadline [hw-maitre] adios", "maitre", ("none", "mq-deadline", "maitre")),
        ("none [adios] kyber", "", ("none", "kyber")),
        ("none bfq", "", ()),
        ("", "", ()),
    ],
)
def test_schedulers_come_from_the_archive(tmp_path: Path, said: str, current: str, offered: tuple[str, ...]) -> None:
    """By their names here; of two disks nothing is told."""
    content, disk = files(two_cpus()), {"name": "sda", "number": "8,0", "facts": {}, "settings": {"scheduler": said}}
    content["headwaiter.json"] = document(begin(disks=[disk]))
    found = read(tmp_path, content)
    assert (found.scheduler, found.schedulers) == (current, offered)
    content["headwaiter.json"] = document(begin(disks=[disk, {**disk, "name": "sdb", "number": "8,16"}]))
    assert read(tmp_path, content).schedulers == () and read(tmp_path, content, device="sda").schedulers == offered


def test_what_was_recorded_is_what_others_are_held_against(tmp_path: Path) -> None:
    """Whoever asks the judge: the scheduler in force, and the kernel's own as the family that comes first."""
    drive, made = find_drive("barracuda-80g"), record_readers(tmp_path)
    trace = dataclasses.replace(made, scheduler="bfq", schedulers=("none", "bfq", "as"))
    work = replay(Path("t"), trace, drive, Reading())
    variants = [parse_variant(name) for name in ("mq-deadline", "bfq", "as")]
    found = judge(work, drive, variants, RunConditions(), runs=0, doubted=False)
    assert found.answer.baseline == found.recorded_under == "bfq"
    other = judge(
        work, drive, variants, RunConditions(), runs=0, doubted=False, current="mq-deadline", have=("mq-deadline", "bfq")
    )
    assert other.answer.baseline == "mq-deadline" and other.answer.best != "as" == other.answer.module
    plain = judge(replay(Path("t"), made, drive, Reading()), drive, variants, RunConditions(), runs=0, doubted=False)
    assert plain.answer.baseline == "mq-deadline" and plain.recorded_under is None


def record_readers(tmp_path: Path) -> Trace:
    """Two readers with think time, recorded under noop."""
    return read_trace(record(tmp_path / "two.csv", readers(2, 300), "noop", "barracuda-80g"), Reading())


def test_forks_make_a_thread_of_control(tmp_path: Path) -> None:
    """A shell that starts one reader after another."""
    entries = []
    for k, pid in enumerate((6, 7)):
        entries += [
            entry(1000, event("sched_process_fork", parent_pid=5, child_pid=pid)),
            entry(1000, event("block_bio_queue", sector=800 * k, nr_sector=8, rwbs="R", pid=pid, comm=f"c{pid}")),
            entry(1000, event("block_rq_complete", sector=800 * k, nr_sector=8, rwbs="R", pid=0)),
            entry(1000, event("sched_process_exit", task=pid, pid=pid, comm="c")),
        ]
    t = read(tmp_path, files({0: [page(0, *entries)]}))
    assert t.group.tolist() == [0, 0] and t.task.tolist() == [0, 1]


def test_issues_are_not_arrivals(tmp_path: Path) -> None:
    entries = [
        entry(1, event("block_bio_queue", sector=8, nr_sector=8, rwbs="R", pid=6)),
        entry(1, event("block_rq_issue", sector=8, nr_sector=8, rwbs="R", pid=70, comm="kworker/0:1H")),
        entry(1, event("block_rq_complete", sector=8, nr_sector=8, rwbs="R", pid=0)),
    ]
    t = read(tmp_path, files({0: [page(0, *entries)]}))
    assert rows(t) == [(0, 2, 8, 8, 0)] and t.tasks == (TraceTask(6, "fio"),)


def throttled(tmp_path: Path) -> Trace:
    """Two writes of an fsync: the second waits (wbt) until the first is done, and a read comes before it meets the scheduler."""

    def moved(after: int, name: str, sector: int, rwbs: str = "WS", pid: int = 6) -> object:
        return entry(after, event(name, sector=sector, nr_sector=8, rwbs=rwbs, pid=pid))

    ms = 1_000_000
    entries = [
        moved(ms, "block_bio_queue", 800), moved(1000, "block_rq_insert", 800), moved(1000, "block_bio_queue", 1600),
        moved(1000, "block_rq_issue", 800), moved(8 * ms, "block_bio_queue", 8, "R", 7), moved(ms, "block_rq_complete", 800),
        moved(1000, "block_rq_insert", 1600), moved(1000, "block_rq_issue", 8, "R"), moved(ms, "block_rq_complete", 8, "R"),
        moved(1000, "block_rq_issue", 1600), moved(ms, "block_rq_complete", 1600),
    ]  # fmt: skip
    return read(tmp_path, files({0: [page(0, *entries)]}))  # type: ignore[arg-type]


def test_insertions_tell_when_a_write_met_the_scheduler(tmp_path: Path) -> None:
    t = throttled(tmp_path)
    assert t.insert_ns is not None and t.sector.tolist() == [800, 1600, 8]
    assert (t.insert_ns - t.time_ns).tolist()[:2] == [1000, 9_002_000] and t.insert_ns[2] == -1
    met = as_inserted(t)
    assert met.sector.tolist() == [800, 8, 1600] and met.insert_ns is not None
    assert met.time_ns.tolist() == [t.time_ns[0], t.time_ns[2], t.insert_ns[1]]
    assert (met.complete_ns - t.complete_ns[[0, 2, 1]] == 0).all()


def test_a_replay_gives_the_scheduler_a_throttled_write_when_it_had_it(tmp_path: Path) -> None:
    """It follows the completion that made room for it."""
    work = replay(tmp_path, throttled(tmp_path), find_drive("barracuda-80g"), Reading())
    assert work.trace is not None and work.trace.sector.tolist() == [800, 8, 1600]
    assert isinstance(work.load, Forest) and work.load.parent.tolist() == [-1, -1, 0] and work.load.delay_ns[2] == 1000


def test_without_insertions_a_trace_stays_as_it_is(tmp_path: Path) -> None:
    t = read(tmp_path, files(two_cpus()))
    assert t.insert_ns is None and as_inserted(t) is t


def test_the_bio_of_a_partition_comes_once(tmp_path: Path) -> None:
    entries = [
        entry(1, event("block_bio_remap", sector=2056, nr_sector=8, old_sector=8, old_dev=8 << 20 | 1, rwbs="R", pid=6)),
        entry(1, event("block_bio_queue", sector=2056, nr_sector=8, rwbs="R", pid=6)),
        entry(9, event("block_rq_complete", sector=2056, nr_sector=8, rwbs="R", pid=0)),
    ]
    assert rows(read(tmp_path, files({0: [page(0, *entries)]}))) == [(1, 10, 2056, 8, 0)]


def test_a_disk_is_chosen_by_name_or_number(tmp_path: Path) -> None:
    disks = [{"name": name, "number": number, "facts": {}, "settings": {}} for name, number in (("sda", "8,0"), ("sdb", "8,16"))]
    entries = [
        entry(1, event("block_bio_queue", sector=sector, nr_sector=8, rwbs="R", pid=6, dev=8 << 20 | minor))
        for sector, minor in ((8, 0), (16, 0), (24, 16))
    ]
    content = files({0: [page(0, *entries)]}) | {"headwaiter.json": document(begin(disks=disks))}
    assert "device sda, the busiest, of 2: sda (2), sdb (1)" in read(tmp_path, content).notes
    for name in ("sdb", "8,16", "8:16"):
        assert read(tmp_path, content, device=name).sector.tolist() == [24]
    assert "no device 'sdc'" in problem(tmp_path, content, device="sdc")


def test_what_was_lost_is_told(tmp_path: Path) -> None:
    gaps = [{"cpu": 1, "events": 7, "from_ns": 1_000_001_000, "to_ns": 2_000_001_000}]
    content = files(two_cpus()) | {"end.json": document(end(lost=7, gaps=gaps, reason="sda has vanished"))}
    told = read(tmp_path, content).notes
    assert "7 events were lost while recording: 7 on CPU 1 within 1.0-2.0 s" in told
    assert "the recording ended early: sda has vanished" in told
    found = recording.of(Source(tmp_path / "t.hwr"))
    assert found and (found.lost, found.seconds, found.reason) == (7, 5.0, "sda has vanished")
    assert found.gaps == (recording.Gap(1, 7, 1_000_001_000, 2_000_001_000),)
    assert found.disks[0].settings == {"scheduler": "[none]"}


def test_pages_that_tell_of_a_loss(tmp_path: Path) -> None:
    one = entry(5, event("block_bio_queue", sector=8, nr_sector=8, rwbs="R", pid=6))
    content = files({0: [page(0, one), page(100, one, lost=3), page(200, one)]})
    assert "events were lost before 1 pages of the recording" in read(tmp_path, content).notes
    assert ring.walk(content["cpu0/000000"], None).lost == ((1, 3),)


def test_a_killed_recorder_leaves_no_end(tmp_path: Path) -> None:
    content = files(two_cpus())
    del content["end.json"]
    t = read(tmp_path, content)
    assert len(t) == 3 and t.notes[0].startswith("the recorder was killed")


def test_a_recording_of_blktrace(tmp_path: Path) -> None:
    """Its own files are in the archive, and are read as ever."""
    data = b"".join(
        [
            blk_event(1000, "Q", "R", 800, 8, pid=5),
            blk_event(2000, "C", "R", 800, 8, pid=0),
        ]
    )
    content = {
        "headwaiter.json": document(begin(recorder="blktrace")),
        "trace.blktrace.0": data,
        "trace.blktrace.1": b"",
        "end.json": document(end(reason="a signal")),
    }
    t = read(tmp_path, content, device="sda")
    assert rows(t) == [(0, 1000, 800, 8, 0)]
    assert (t.format, t.source, t.notes) == ("recording", str(tmp_path / "t.hwr"), ("the recording ended early: a signal",))
    del content["trace.blktrace.0"]
    assert problem(tmp_path, content).endswith("headwaiter.json: nothing was recorded")


def test_a_recording_of_bpftrace(tmp_path: Path) -> None:
    lines = (
        "fio-6 [000] 5.000000010: block_bio_queue: 8,0 R 8 + 8 [fio]\n",
        "swapper/0-0 [000] 5.000000500: block_rq_complete: 8,0 R 8 + 8 [0]\n",
    )
    content = {
        "headwaiter.json": document(begin(recorder="bpftrace")),
        "events.txt": "".join(lines).encode(),
        "end.json": document(end()),
    }
    assert rows(read(tmp_path, content)) == [(0, 490, 8, 8, 0)]


def damaged(**changed: bytes) -> dict[str, bytes]:
    return files(two_cpus()) | {name.replace("__", "/").replace("_json", ".json"): data for name, data in changed.items()}


WHOLE = b"".join(two_cpus()[0])
FIRST = len(two_cpus()[0][0])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (damaged(headwaiter_json=b'{"headwaiter": "recording-2"}'), "headwaiter.json: not of this version of the format"),
        (damaged(headwaiter_json=b'{"headwaiter": "recording-1"'), "headwaiter.json: not JSON"),
        (damaged(headwaiter_json=document(begin(recorder="x"))), "headwaiter.json: recorder: not one of"),
        (damaged(headwaiter_json=document(begin(disks=[1]))), "headwaiter.json: an object is missing"),
        (damaged(headwaiter_json=document(begin(began_ns=-1))), "headwaiter.json: began_ns: not a number"),
        (damaged(end_json=b"[]"), "end.json: an object is missing"),
        (damaged(end_json=document(end(gaps=[{}]))), "end.json: cpu: not a number"),
        (damaged(end_json=document(end(reason=5))), "end.json: reason: not text"),
        (damaged(cpu0__000000=WHOLE[:-4]), f"cpu0/000000: byte {FIRST}: the page claims to be longer than a page"),
        (damaged(cpu0__000000=WHOLE + b"1234"), f"cpu0/000000: byte {len(WHOLE)}: not a whole page"),
        (damaged(cpu0__000000=page(0, struct.pack("<I", 28) + bytes(4))), "cpu0/000000: byte 16: the event is cut off"),
        (damaged(cpu0__000000=page(1 << 63, entry(0, event("sched_process_exit", pid=1)))), "a time beyond any clock"),
        (
            damaged(cpu0__000000=page(0, entry(0, event("block_bio_queue", nr_sector=1, rwbs="Q")))),
            "cpu0/000000: block_bio_queue: unknown operation 'Q'",
        ),
        (
            damaged(cpu0__000000=page(0, entry(0, event("block_bio_queue", nr_sector=1, rwbs="R")[:24]))),
            "cpu0/000000: byte 20: block_bio_queue is cut off",
        ),
        (damaged(events__x__block_split=b"name: x"), "events/x/block_split: an event's format has no name or ID"),
        (
            damaged(events__x__block_split=format_text("block_split").replace("new_sector", "old").encode()),
            "cpu0/000000: the format of block_split has no new_sector",
        ),
        (
            damaged(events__x__block_bio_queue=format_text("block_bio_queue", 8).replace("rwbs[8]", "rwbs").encode()),
            "cpu0/000000: block_bio_queue: rwbs is not text",
        ),
        (
            damaged(events__x__block_bio_queue=format_text("block_bio_queue").replace("sector;", "sector[8];", 1).encode()),
            "cpu0/000000: block_bio_queue: sector is not a number",
        ),
        ({k: v for k, v in files(two_cpus()).items() if "/" not in k}, "headwaiter.json: no formats of events"),
        (files({}), "headwaiter.json: nothing was recorded"),
        (files(two_cpus(), names=["sched_process_exit"]), "headwaiter.json: no format of an event of the block layer"),
    ],
)  # fmt: skip
def test_damaged_archives(tmp_path: Path, content: dict[str, bytes], said: str) -> None:
    assert said in problem(tmp_path, content)


def test_what_is_good_of_a_damaged_page(tmp_path: Path) -> None:
    content = damaged(cpu0__000000=WHOLE[:-4])
    t = read(tmp_path, content, keep_good=True)
    assert len(t) == 3 and any(f"cpu0/000000: dropped from byte {FIRST} on" in note for note in t.notes)


def test_an_archive_that_is_cut_off(tmp_path: Path) -> None:
    """Frame by frame, so that what was written before the end is whole."""
    content = files(two_cpus())
    path = tmp_path / "t.hwr"
    path.write_bytes(
        b"".join(compress(archive({name: data})[: 512 + (len(data) + 511) // 512 * 512]) for name, data in content.items())
    )
    assert len(load(path)) == 3
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(Problem, match="the zstd stream is truncated"):
        load(path)
    assert len(load(path, keep_good=True)) == 3
