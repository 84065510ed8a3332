# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre: what several that differ get of one disk, or of an array: logs, films, runs, many requests at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobload import run_jobs, run_regret

from headwaiter.engine.constants import SYNC, IoprioClass, Op, ioprio
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.schedulers import find
from headwaiter.study.schema import Result, TaskRow

FOR_20_S = "runtime=20s\ntime_based\n"
STREAMS = "[stream]\nrw=read\nbs=128k\nsize=2g\nnumjobs={}\n"
LOG = "[log]\nrw=write\nbs=4k\nsize=256m\nsync=1\ndirect=1\nthinktime=3000\n"
FILM = "[film]\nrw=read\nbs=64k\nsize=2g\nrate=8m\n"
RUNS = "[runs]\nrw=randread:{}\nbs={}k\nsize={}g\nfadvise_hint=0\ndirect={}\nnumjobs={}\n"
LOOKUP = "[lookup]\nrw=randread\nbs=8k\nsize=2g\ndirect=1\n"
MANY = "[many]\nioengine=libaio\niodepth={}\nrw={}\nbs={}k\nsize=4g\ndirect=1\n"
ARRAY = "raid0-4x-barracuda-80g"
MS = 1_000_000
POSITIONS = find("maitre").tables["positions"].parse("positions", b"0 0\n1024 0\n1025 10000000")


def _run(tmp_path: Path, drive: str, *jobs: str, scheduler: str = "maitre") -> Result:
    return run_jobs(tmp_path, scheduler, drive, FOR_20_S, *jobs, positions=True)


def _tasks(result: Result, name: str) -> list[TaskRow]:
    return [task for task in result.tasks or () if task.name.split(".")[0] == name]


def _rate(result: Result, name: str) -> float:
    return sum(task.throughput_mbps or 0.0 for task in _tasks(result, name))


@pytest.mark.parametrize(("drive", "p95_ms", "streams_mbps"), [("barracuda-80g", 60, 33), ("wd-re-4tb", 75, 75)])
def test_a_log_beside_streams_has_its_share_bit_by_bit(tmp_path: Path, drive: str, p95_ms: float, streams_mbps: float) -> None:
    """In turns it waited for those of both streams, 280 ms each time. What is sure after a second takes a second to be seen."""
    result = _run(tmp_path, drive, LOG, STREAMS.format(2))
    (log,) = _tasks(result, "log")
    assert log.lat_ms.p95 < p95_ms
    assert _rate(result, "stream") > streams_mbps


def test_a_log_that_never_thinks_has_no_more_than_its_share(tmp_path: Path) -> None:
    """It would write once in four ways, if that were all that it waits for: 333 times, and the streams would have 49 MB/s."""
    result = _run(tmp_path, "barracuda-80g", LOG.replace("thinktime=3000\n", ""), STREAMS.format(8).replace("2g", "1g"))
    (log,) = _tasks(result, "log")
    assert log.requests < 280
    assert _rate(result, "stream") > 51


def test_who_reads_runs_and_thinks_has_turns_for_them(tmp_path: Path) -> None:
    """Their way from one run to the next is as long in the pool: there they had 6.7 MB/s together, and the stream 14."""
    compilers = "[cc]\nrw=randrw:4\nrwmixread=80\nbs=16k\nsize=512m\nfadvise_hint=0\nthinktime=3000\nnumjobs=4\n"
    result = _run(tmp_path, "barracuda-80g", compilers, STREAMS.format(1))
    assert _rate(result, "cc") > 8
    assert _rate(result, "stream") > 12


@pytest.mark.parametrize(("drive", "writer_mbps", "readers_mbps"), [("barracuda-80g", 14, 36), ("wd-re-4tb", 33, 90)])
def test_who_writes_on_at_once_has_whole_turns(tmp_path: Path, drive: str, writer_mbps: float, readers_mbps: float) -> None:
    """A quarter of the time. Its turns were an eighth as long, as a log's, and most went for the way: 4.4 and 23 MB/s."""
    writer = "filename=/dev/sda\n[writer]\nrw=write\nbs=16k\noffset=10g\nsize=1g\ndirect=1\n"
    readers = "[reader]\nrw=read\nbs=64k\noffset=30g\noffset_increment=10g\nsize=4g\ndirect=1\nnumjobs=3\n"
    result = run_jobs(tmp_path, "maitre", drive, FOR_20_S, writer, readers)
    assert _rate(result, "writer") > writer_mbps
    assert _rate(result, "reader") > readers_mbps


@pytest.mark.parametrize("positions", [False, True])
def test_who_write_on_at_once_pay_for_no_ways_between_them(tmp_path: Path, positions: bool) -> None:
    """The drive collects what each writes. They had 4 to 7 MB/s, a way being charged for each write, and the stream 34."""
    writers = "filename=/dev/sda\n[writer]\nrw=write\nbs=12k\noffset=10g\noffset_increment=6g\nsize=1g\ndirect=1\nnumjobs=3\n"
    stream = "[stream]\nrw=read\nbs=256k\noffset=48g\nsize=1g\ndirect=1\n"
    result = run_jobs(tmp_path, "maitre", "barracuda-80g", FOR_20_S, writers, stream, positions=positions)
    assert min(task.throughput_mbps or 0.0 for task in _tasks(result, "writer")) > 12
    assert _rate(result, "stream") > 10


@pytest.mark.parametrize("positions", [False, True])
def test_who_writes_little_on_at_once_is_no_log(tmp_path: Path, positions: bool) -> None:
    """It was not waited for, and wrote 4 KiB in each turn: 0.9 MB/s, and 1.3 to 1.8 for who seeks far from there."""
    writer = "filename=/dev/sda\n[writer]\nrw=write\nbs=4k\noffset=10g\nsize=256m\ndirect=1\n"
    seeker = "[{}]\nrw=randread\nbs={}k\noffset={}g\nsize={}m\ndirect={}\n"
    seekers = (
        seeker.format("small", 4, 50, 256, 1),
        seeker.format("large", 100, 50, 256, 1),
        seeker.format("far", 64, 2, 4096, 0),
    )
    result = run_jobs(tmp_path, "maitre", "barracuda-80g", FOR_20_S, writer, *seekers, positions=positions)
    assert _rate(result, "writer") > 7
    assert _rate(result, "small") > 0.14 and _rate(result, "large") > 2.8 and _rate(result, "far") > 1.9


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize(("seekers", "apart_mib"), [(2, 4752), (3, 7000)])
def test_few_who_seek_in_places_of_their_own_have_turns(tmp_path: Path, seekers: int, apart_mib: int, positions: bool) -> None:
    """In files of 4 GiB side by side: from one to the other for each request it is 1.6 to 1.9 MB/s."""
    jobs = f"filename=/dev/sda\n[seeker]\nrw=randread\nbs=16k\noffset=55g\noffset_increment={apart_mib}m\nsize=4g\n"
    result = run_jobs(tmp_path, "maitre", "barracuda-80g", FOR_20_S, f"{jobs}numjobs={seekers}\n", positions=positions)
    assert _rate(result, "seeker") > 2.1
    assert max(task.lat_ms.p99 for task in _tasks(result, "seeker")) < 110 * seekers, "turns of those who seek are short"


def test_several_logs_leave_a_stream_its_turns() -> None:
    result = run_regret("commits-3.fio", "cheetah-15k", positions=True)
    assert _rate(result, "stream") > 29, "with all of them it was 24"


def test_real_time_goes_before_a_log_that_cuts_in() -> None:
    """A stream reads, a log writes 3 ms after each write, and 2 ms after every twentieth read something urgent is asked for."""
    policy = Policy("maitre", {"positions": POSITIONS}, sectors=1 << 30, depth=1)
    for task in range(3):
        policy.start_task(task, 0)
    read, write, now, log_at, urgent, served, checked = 0, 0, 0, 0, -1, 0, 0
    stream, log = policy.insert(Request(0, 256, int(Op.READ), task=0, flags=SYNC), 0), -1
    while now < 4000 * MS:
        if log < 0 and now >= log_at:
            log, write = policy.insert(Request(50_000_000 + write, 8, int(Op.WRITE), task=1, flags=SYNC), now), write + 8
        request = policy.dispatch(now)
        if request is None:
            now = max(now + 1, min(policy.wake_ns, now + MS))
            continue
        if urgent >= 0:
            assert request == urgent
            checked += log >= 0
        now += 4 * MS if request == stream else 12 * MS
        policy.complete(request, now)
        if request == urgent:
            urgent = -1
        elif request == log:
            log, log_at = -1, now + 3 * MS
        else:
            read, served = read + 256, served + 1
            stream = policy.insert(Request(read, 256, int(Op.READ), task=0, flags=SYNC), now)
            if served % 20 == 0:
                prio = ioprio(IoprioClass.RT)
                urgent = policy.insert(Request(90_000_000, 8, int(Op.READ), task=2, flags=SYNC, ioprio=prio), now)
    assert checked > 10


@pytest.mark.parametrize("drive", [ARRAY, "wd-re-4tb", "cheetah-15k"])
def test_a_film_beside_streams_does_not_stop(tmp_path: Path, drive: str) -> None:
    """It needs little, and goes first for as long as there is credit: streams gave none back, and it stood still for a second."""
    result = _run(tmp_path, drive, FILM, STREAMS.format(4))
    (film,) = _tasks(result, "film")
    assert film.lat_ms.p99 < 130
    assert _rate(result, "film") > 8


@pytest.mark.parametrize("jobs", [RUNS.format(12, 32, 2, 0, 4), RUNS.format(6, 32, 1, 0, 12)])
def test_who_reads_runs_shares_an_array(tmp_path: Path, jobs: str) -> None:
    """One at a time they left three of the four arms idle."""
    ours, plain = (_run(tmp_path, ARRAY, jobs, scheduler=scheduler) for scheduler in ("maitre", "none"))
    assert ours.read and plain.read
    assert ours.throughput_mbps > 0.95 * plain.throughput_mbps
    assert ours.read.lat_ms.p99_9 < 1.5 * plain.read.lat_ms.p99_9


def test_who_stays_in_its_place_keeps_an_arm(tmp_path: Path) -> None:
    """Every other block: among each other each of them had 18 ms for what takes one."""
    strided = "[s]\nrw=read:64k\nbs=64k\nsize=1g\ndirect=1\nnumjobs=4\n"
    assert _rate(_run(tmp_path, ARRAY, strided, "[writer]\nrw=write\nbs=128k\nsize=2g\n"), "s") > 30, "it was 20"


@pytest.mark.parametrize(("drive", "least"), [("barracuda-80g", 0.14), ("wd-re-4tb", 0.4)])
def test_many_requests_at_once_have_a_turn(tmp_path: Path, drive: str, least: float) -> None:
    """The drive is emptied when it ends: if that is after each request, what they would have gained together is lost."""
    result = _run(tmp_path, drive, MANY.format(32, "randread", 4), RUNS.format(8, 64, 1, 1, 3))
    assert _rate(result, "many") > least


@pytest.mark.parametrize("drive", ["cheetah-15k", ARRAY])
def test_a_reader_beside_many_writes_has_its_share(tmp_path: Path, drive: str) -> None:
    """One request among seventeen, it had an eighth of what it has alone."""
    writes = MANY.format(16, "randwrite", 8)
    alone, beside = _rate(_run(tmp_path, drive, LOOKUP), "lookup"), _rate(_run(tmp_path, drive, LOOKUP, writes), "lookup")
    assert beside > 0.4 * alone


@pytest.mark.parametrize(("workload", "drive", "least"), [("thinkers-2", "wd-re-4tb", 4), ("thinkers-6", "cheetah-15k", 9.9)])
def test_no_waiting_where_the_drive_has_read_in_advance(workload: str, drive: str, least: float) -> None:
    """Both find what they ask for in its buffer. Held for the one that thinks it gave them half, and no way was saved."""
    result = run_regret(f"{workload}.fio", drive, positions=True)
    assert result.throughput_mbps > least
