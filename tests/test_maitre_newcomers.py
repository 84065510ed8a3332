# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre: who comes, and who comes again; runs that begin with a long way; programs that begin beside those who are there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from jobload import run_jobs, run_regret

from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.schedulers import find

ROOT = Path(__file__).parents[1]
MS = 1_000_000
POSITIONS = find("maitre").tables["positions"].parse("positions", b"0 0\n1024 0\n1025 10000000")
START = "[start]\nrw=randread\nbs=4k\nsize=24m\nio_size=1m\nstartdelay=6s\nfadvise_hint=0\n"
FOR_12_S = "runtime=12s\ntime_based\n"


@pytest.mark.parametrize("drive", ["wd-re-4tb", "barracuda-80g", "cheetah-15k"])
def test_a_run_is_read_to_its_end_and_then_another(drive: str) -> None:
    """12 processes read runs of 192 KiB: cut into pieces, each piece would cost a seek; two in turn would make others wait."""
    ours, plain = run_regret("small-files.fio", drive), run_regret("small-files.fio", drive, "none")
    assert ours.read and plain.read
    if drive == "cheetah-15k":
        # A way is short there, and the drive's queue makes up for it. It is 0.63 since pages stay in memory.
        assert ours.throughput_mbps > 0.9 * plain.throughput_mbps
        assert ours.read.lat_ms.p99 < 0.65 * plain.read.lat_ms.p99
    else:
        assert ours.throughput_mbps > 1.5 * plain.throughput_mbps
        assert ours.read.lat_ms.p99 < 260, "a round of twelve"


def test_who_reads_in_pairs_is_waited_for_after_the_first_of_each() -> None:
    """Each second one is followed by a long way, which another's request may as well take."""
    policy = Policy("maitre", {"positions": POSITIONS, "window": 20}, sectors=1 << 30, depth=1)
    now = 0

    def read(task: int, sector: int) -> int:
        return policy.insert(Request(sector, 64, int(Op.READ), task=task, flags=SYNC), now)

    policy.start_task(0, 0)
    for k in range(40):
        for second in (0, 1):
            assert policy.dispatch(now) is None
            request = read(0, 1_000_000 * k + 64 * second)
            assert policy.dispatch(now) == request
            now += MS if second else 10 * MS
            policy.complete(request, now)
            now += MS // 5
    # Another takes a turn, so that one of the reader's begins now.
    policy.start_task(1, now)
    for task in (1, 0):
        first = read(task, 50_000_000)
        while policy.dispatch(now) is None:
            now += MS
        if task:
            now += 10 * MS
            policy.complete(first, now)
    other = read(1, 90_000_000)
    now += 10 * MS
    policy.complete(first, now)
    assert policy.dispatch(now) is None, "the second of the pair is to come"
    now += MS // 5
    second_of_pair = read(0, 50_000_064)
    assert policy.dispatch(now) == second_of_pair
    now += MS
    policy.complete(second_of_pair, now)
    assert policy.dispatch(now) == other


def test_who_reads_every_other_block_keeps_his_turn(tmp_path: Path) -> None:
    """What lies 64 KiB ahead takes 1.6 ms, and what another reads 8: that is a way, but none that the head goes anyway."""
    readers = "[s]\nrw=read:64k\nbs=64k\nsize=1g\ndirect=1\nnumjobs=4\n" + FOR_12_S
    told = run_jobs(tmp_path, "maitre", "barracuda-80g", readers, positions=True)
    assert told.throughput_mbps > 28, "it was 11"


def test_those_who_seek_for_each_request_share_the_pool() -> None:
    """To each its own file is hardly nearer than the nearest of all, but turns would let a log among them wait."""
    result = run_regret("log.fio", "barracuda-80g", positions=True)
    assert result.write and result.write.lat_ms.p99 < 60


def test_those_who_come_at_once_have_equal_shares() -> None:
    """None of them is a program that begins beside others; it had four times what each of the others had."""
    rates = [task.throughput_mbps for task in run_regret("small-files.fio", "wd-re-4tb").tasks or ()]
    assert len(rates) == 12 and min(rates) > 0.8 * max(rates)


def test_after_a_pause_those_who_come_at_once_have_equal_shares_too() -> None:
    """As when a computer has been up for long, and several programs begin together."""
    policy = Policy("maitre", {"positions": POSITIONS}, sectors=1 << 30, depth=1)
    policy.start_task(9, 0)
    now, served, owner = 0, dict.fromkeys(range(4), 0), dict[int, int]()
    for k in range(200):
        request = policy.insert(Request(256 * k, 256, int(Op.READ), task=9, flags=SYNC), now)
        assert policy.dispatch(now) == request
        now += 10 * MS
        policy.complete(request, now)
    now += 5_000 * MS
    dice = Random(1)

    def ask(task: int) -> None:
        sector = 100_000_000 * (1 + task) + dice.randrange(0, 90_000_000, 8)
        owner[policy.insert(Request(sector, 8, int(Op.READ), task=task, flags=SYNC), now)] = task

    for task in served:
        policy.start_task(task, now)
        ask(task)
    until = now + 3_000 * MS
    while now < until:
        got = policy.dispatch(now)
        if got is None:
            now = max(now + 1, min(policy.wake_ns, now + MS))
            continue
        now += 10 * MS
        policy.complete(got, now)
        served[owner[got]] += 1
        ask(owner[got])
    assert max(served.values()) < 1.5 * min(served.values())


def _start(tmp_path: Path, scheduler: str, drive: str, beside: str) -> float:
    """Seconds that the start takes."""
    result = run_jobs(tmp_path, scheduler, drive, START, beside + FOR_12_S)
    return next(task.elapsed_s for task in result.tasks or () if task.name == "start")


@pytest.mark.parametrize("drive", ["barracuda-80g", "wd-re-4tb"])
def test_a_program_begins_beside_those_who_seek(tmp_path: Path, drive: str) -> None:
    readers = "[reader]\nrw=randread\nbs=8k\nsize=1g\ndirect=1\nnumjobs=6\n"
    assert _start(tmp_path, "maitre", drive, readers) < 0.35 * _start(tmp_path, "none", drive, readers)


def test_who_seeks_goes_on_while_a_program_begins(tmp_path: Path) -> None:
    readers = "[reader]\nrw=randread\nbs=8k\nsize=1g\ndirect=1\nnumjobs=6\n"
    result = run_jobs(tmp_path, "maitre", "barracuda-80g", START, readers + FOR_12_S)
    assert max(task.lat_ms.max for task in result.tasks or () if task.name != "start") < 400, "it was 624"


def test_a_program_begins_beside_one_who_waits_for_his_writes(tmp_path: Path) -> None:
    writer = "[writer]\nrw=write\nbs=64k\nsize=1g\nsync=dsync\n"
    assert _start(tmp_path, "maitre", "wd-re-4tb", writer) < 0.65 * _start(tmp_path, "bfq", "wd-re-4tb", writer)


def test_many_requests_at_once_go_by_place(tmp_path: Path) -> None:
    """64 of them: the oldest have waited for 0.7 s each time, which is no reason to go from one end to the other."""
    deep, plain = run_regret("queue.fio", "barracuda-80g"), run_regret("queue.fio", "barracuda-80g", "none")
    assert deep.throughput_mbps > 1.5 * plain.throughput_mbps
    assert deep.read and deep.read.lat_ms.p99 < 900


def test_a_log_among_seekers_is_served_often_and_not_waited_for() -> None:
    result, deadline = run_regret("log.fio", "barracuda-80g"), run_regret("log.fio", "barracuda-80g", "mq-deadline:fifo_batch=1")
    assert result.write and deadline.write
    assert result.write.lat_ms.p99 < 45
    assert result.throughput_mbps > 0.85 * deadline.throughput_mbps


@pytest.mark.parametrize("drive", ["nvme-ssd", "sata-ssd"])
def test_who_asks_once_in_a_while_does_not_have_a_solid_drive_alone(tmp_path: Path, drive: str) -> None:
    """Four that compute for 3 ms between reads and writes gain nothing by it; a stream lost a quarter of its rate."""
    compilers = "[cc]\nrw=randrw:4\nrwmixread=80\nbs=16k\nsize=512m\nfadvise_hint=0\nthinktime=3000\nnumjobs=4\n" + FOR_12_S
    stream = "[stream]\nrw=read\nbs=128k\nsize=3g\n" + FOR_12_S

    def rates(scheduler: str) -> tuple[float, float]:
        result = run_jobs(tmp_path, scheduler, drive, compilers, stream)
        each = [(task.name, task.throughput_mbps or 0) for task in result.tasks or ()]
        return tuple(sum(rate for name, rate in each if name.startswith(one)) for one in ("cc", "stream"))  # type: ignore[return-value]

    ours, plain = rates("maitre"), rates("none")
    assert ours[0] > 0.98 * plain[0] and ours[1] > 0.95 * plain[1]
