# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processors and locks of the host: what they make of a fast drive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwaiter.advice.gate import gate
from headwaiter.base.errors import Problem
from headwaiter.drives import Profile, find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.hosts import HOSTS, XEON_10, find_host, here, places, read_host
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Outcome, Task, simulate
from headwaiter.fio import load_jobs
from headwaiter.judge.conditions import RunConditions
from headwaiter.papers.flash_hosts import groups, in_order, scheduled
from headwaiter.study.waits import could_change, slowdown
from headwaiter.traces import Trace
from headwaiter.traces.making import make_trace

PRO = """
model = "ssd"
description = "Samsung 980 PRO: random reads"
[geometry]
sectors = 1953525168
channels = 16
ways = 3
page = 8
[timing]
page_read = 0.0462
page_program = 0.65
block_erase = 4.0
[link]
sector_read = 0.00005
sector_write = 0.00005
[controller]
read = 0.00125
[overhead]
read = 0.0115
write = 0.010
[queue]
depth = 1023
submissions = 10
"""


@pytest.fixture(scope="module")
def pro(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    path = tmp_path_factory.mktemp("drive") / "pro.toml"
    path.write_text(PRO)
    return find_drive(str(path))


def reads(drive: Profile, processes: int, depth: int, options: Options, scheduler: str = "none", more: str = "") -> Outcome:
    text = f"[r]\nrw=randread\nbs=4k\ndirect=1\niodepth={depth}\nioengine=io_uring\nnumjobs={processes}\nsize=1g\n{more}"
    load = load_jobs(Path("host.fio"), drive.sectors, f"{text}time_based\nruntime=10ms\n".encode())
    return simulate(scheduler, drive, load, options=options)


def rate(out: Outcome) -> float:
    """I/Os a second."""
    return float(1e9 * out.tallies.ios.sum() / out.totals["now_ns"])


def mean_us(out: Outcome) -> float:
    return float(out.tallies.latency_sum_ns.sum() / out.tallies.ios.sum() / 1000)


BARE = Options(cores=4, turnaround_ns=5000)


# --- published figures ---


@pytest.mark.thorough
@pytest.mark.parametrize("group", groups(), ids=[group["source"].rpartition(", ")[2] for group in groups()])
def test_published_figures_of_schedulers(group: dict[str, Any]) -> None:
    """Each as near as it is allowed to be off, and in order where schedulers differ by 15%."""
    found = list(scheduled(group))
    wrong = [
        f"{one.figure.load}: {one.figure.simulated:.0f} {one.figure.figure}, {one.figure.error:+.0%}"
        for one in found
        if not one.holds
    ]
    assert len(found) == 4 * len(group["depth"]) and not wrong, wrong
    assert in_order(found)


# --- the model ---


def test_a_core_bounds_the_processes_on_it(pro: Profile) -> None:
    """At 5 us an I/O a core does 200,000 a second, whoever asks; two cores do twice as many."""
    assert rate(reads(pro, 1, 64, BARE)) == pytest.approx(200e3, rel=0.01)
    assert rate(reads(pro, 2, 64, replace(BARE, cores=1))) == pytest.approx(200e3, rel=0.01)
    assert rate(reads(pro, 2, 64, BARE)) == pytest.approx(400e3, rel=0.01)


def test_a_lock_bounds_all_processes(pro: Profile) -> None:
    """However many cores there are. By queue, each has its own."""
    locked = replace(BARE, lock_ns=5000, lock_shared_ns=5000, lock_crowded_ns=5000)
    assert rate(reads(pro, 4, 64, locked)) == pytest.approx(200e3, rel=0.02)
    assert rate(reads(pro, 4, 64, replace(locked, lock_by_queue=True))) == pytest.approx(400e3, rel=0.02)


def test_a_lock_takes_longer_where_others_want_it(pro: Profile) -> None:
    """Alone, with one other, with many."""
    locked = replace(BARE, turnaround_ns=1000, lock_ns=4000, lock_shared_ns=6000, lock_crowded_ns=10_000)
    assert [round(rate(reads(pro, n, 64, locked)), -3) for n in (1, 2, 4)] == pytest.approx([200e3, 167e3, 100e3], rel=0.03)


def test_completions_take_their_cores_time(pro: Profile) -> None:
    """They come out of what the process computes."""
    out = reads(pro, 1, 64, replace(BARE, complete_ns=5000))
    assert rate(out) == pytest.approx(100e3, rel=0.02)
    assert out.totals["core_busy_ns"] == pytest.approx(out.totals["now_ns"], rel=0.02)


def test_latency_lasts_until_the_process_has_fetched_it(pro: Profile) -> None:
    """64 under way at 200,000 a second are 320 us (Little), though the drive is done in 80."""
    assert mean_us(reads(pro, 1, 64, BARE)) == pytest.approx(320, rel=0.05)


def test_waking_takes_time(pro: Profile) -> None:
    """A process that waits for each I/O pays for it, and more where many share a core."""
    switch = replace(BARE, cores=1, switch_ns=20_000)
    assert mean_us(reads(pro, 1, 1, switch)) == pytest.approx(mean_us(reads(pro, 1, 1, BARE)) + 20, abs=0.1)
    many = replace(switch, switch_more_ns=25_000)
    assert rate(reads(pro, 4, 1, many)) == pytest.approx(40e3, rel=0.1)
    assert rate(reads(pro, 8, 1, many)) == pytest.approx(20e3, rel=0.1)


def test_processes_of_a_core_take_turns(pro: Profile) -> None:
    """None that never waits keeps it for itself."""
    out = reads(pro, 3, 64, replace(BARE, cores=1))
    ios = out.tallies.ios
    assert len(ios) == 3 and ios.min() > 0.5 * ios.max()


def test_tags_are_of_a_hardware_queue(pro: Profile) -> None:
    """Four processes of 64 I/Os have 16 tags each, on a drive with a queue for each core; one queue has 16 in all."""
    few = replace(BARE, turnaround_ns=100, nr_requests=16, pull_ahead=True, join_arriving=True)
    many = reads(pro, 4, 64, few)
    one = reads(pro, 4, 64, replace(few, cores=1))
    assert many.totals["queues"] == 4 and one.totals["queues"] == 1
    assert rate(many) > 2.5 * rate(one)


def test_without_cores_nothing_of_it_counts(pro: Profile) -> None:
    """Times of a host are no one's then."""
    plain = Options(turnaround_ns=5000)
    assert rate(reads(pro, 4, 8, plain)) == rate(reads(pro, 4, 8, replace(plain, lock_ns=9000, complete_ns=9000, switch_ns=9000)))


def chains(n: int, tasks: int, think_ns: int) -> Forest:
    """Tasks that each issue an I/O so long after the one before is done."""
    number = np.arange(n * tasks)
    return Forest(
        tasks=[Task(i, f"t{i}", i) for i in range(tasks)],
        time_ns=np.zeros(n * tasks, np.int64),
        parent=np.where(number < tasks, -1, number - tasks).astype(np.int64),
        delay_ns=np.full(n * tasks, think_ns, np.int64),
        task=(number % tasks).astype(np.uint32),
        op=np.full(n * tasks, Op.READ, np.uint8),
        flags=np.full(n * tasks, SYNC, np.uint8),
        sector=(number * 1000).astype(np.uint64),
        sectors=np.full(n * tasks, 8, np.uint32),
        ioprio=np.zeros(n * tasks, np.uint16),
    )


def test_a_replay_keeps_its_pace_where_the_cores_keep_up() -> None:
    """What an I/O takes of its process is a part of its think time; a slower core delays."""
    drive = ConstantDrive(10_000)
    load = chains(100, 1, 50_000)
    host = Options(cores=1, turnaround_ns=5000, replayed_ns=5000)
    assert simulate("noop", drive, load, options=host).totals["now_ns"] == pytest.approx(100 * 60_000, rel=0.02)
    slow = replace(host, turnaround_ns=65_000)
    assert simulate("noop", drive, load, options=slow).totals["now_ns"] == pytest.approx(100 * 120_000, rel=0.02)


def test_a_replays_tasks_share_cores_and_the_lock() -> None:
    """Eight tasks on one core are bounded by it; nobody's I/Os go round all cores."""
    drive = ConstantDrive(0)
    load = chains(100, 8, 20_000)
    one = Options(cores=1, turnaround_ns=10_000, replayed_ns=10_000)
    assert simulate("noop", drive, load, options=one).totals["now_ns"] == pytest.approx(800 * 10_000, rel=0.02)
    locked = replace(one, cores=8, lock_ns=5000, lock_shared_ns=5000, lock_crowded_ns=5000)
    assert simulate("noop", drive, load, options=locked).totals["now_ns"] == pytest.approx(800 * 5000, rel=0.03)
    single = replace(load, tasks=load.tasks[:1], task=load.task * 0)
    spread = replace(one, cores=8, spread=True)
    assert simulate("noop", drive, single, options=replace(spread, spread=False)).totals["now_ns"] > 7e6
    assert simulate("noop", drive, single, options=spread).totals["now_ns"] < 4e6


def test_latency_of_a_replay_contains_the_wait_for_core_and_lock() -> None:
    """Ten reads that come at once, 10 us each before the lock and 5 at it: the last has waited for nine others' core."""
    load = replace(chains(1, 10, 0), tasks=[Task(0, "t", 0)], task=np.zeros(10, np.uint32))
    options = Options(cores=1, turnaround_ns=10_000, lock_ns=5000, lock_shared_ns=5000, lock_crowded_ns=5000, record=True)
    rows = simulate("noop", ConstantDrive(0), load, options=options).rows
    assert sorted(rows.complete_ns - rows.issue_ns) == [5000 + 15_000 * i for i in range(10)]


# --- hosts and conditions ---


def test_flash_has_a_host_and_disks_have_none(pro: Profile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unless one is asked for, or one of the lab's times is given."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path))
    disk = find_drive("barracuda-80g")
    assert RunConditions().options(pro).cores == 10
    assert RunConditions(cores=3).options(pro).cores == 3
    assert RunConditions().options(disk).cores == RunConditions(host="lab").options(pro).cores == 0
    assert RunConditions(host="xeon-10").options(disk).cores == 10
    assert RunConditions(turnaround="0").options(pro).cores == RunConditions(one_processor=True).options(pro).cores == 0
    assert RunConditions(host="xeon-10", one_processor=True).options(pro).cores == 1


def test_requests_at_once_are_those_of_the_recorded_disk() -> None:
    """Else as many as the kernel sets; without a scheduler never more than the device takes."""
    disk = find_drive("barracuda-80g")
    trace = recorded(np.zeros(1, np.int64), 1000)

    def at_once(how: RunConditions, scheduler: str, recorded: int | None = None, depth: int = 4) -> int:
        options = how.options(disk, replace(trace, nr_requests=recorded))
        return how.of(options, scheduler, depth).nr_requests

    usual = RunConditions()
    assert (at_once(usual, "mq-deadline"), at_once(usual, "none")) == (64, 4)
    assert (at_once(usual, "mq-deadline", 512), at_once(usual, "none", 512)) == (512, 4)
    few = RunConditions(nr_requests=3)
    assert (at_once(few, "mq-deadline", 512), at_once(few, "none", 512)) == (3, 3)
    assert at_once(RunConditions(nr_requests=64), "none") == 4
    assert at_once(RunConditions(nr_requests=0), "none") == at_once(RunConditions(nr_requests=0), "kyber") == 0
    assert at_once(RunConditions(nr_requests=64, pull_ahead=False), "none") == 64


def test_each_scheduler_has_its_own_cost(pro: Profile) -> None:
    how = RunConditions(host="xeon-10")
    options = how.options(pro)
    none, deadline, ours = (how.of(options, name, 1023) for name in ("none", "mq-deadline", "maitre"))
    assert none.lock_by_queue and not deadline.lock_by_queue
    assert none.lock_crowded_ns < deadline.lock_crowded_ns < ours.lock_crowded_ns
    assert ours.turnaround_ns == deadline.turnaround_ns


def test_unmeasured_schedulers_cost_by_their_instructions() -> None:
    assert XEON_10.cost("deadline").lock == pytest.approx(0.96 * XEON_10.cost("mq-deadline").lock, rel=0.01)
    assert XEON_10.cost("noop").lock < XEON_10.cost("mq-deadline").lock < XEON_10.cost("as-seek").lock


def test_a_hosts_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As written it is read; the user's counts before the machine's."""
    from headwaiter.drives.writing import toml_text  # noqa: PLC0415

    for folder, host in (("own", XEON_10), ("all", replace(XEON_10, cores=3))):
        (tmp_path / folder / "headwaiter").mkdir(parents=True)
        (tmp_path / folder / "headwaiter" / "host.toml").write_text(toml_text(host.table(), "made"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "all"))
    first, second = places()
    assert read_host(first) == XEON_10 == here()
    first.unlink()
    assert here() == read_host(second) == replace(XEON_10, cores=3)
    second.unlink()
    assert here() is None


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (("cores = 10", "cores = 0"), "cores: must be a whole number from 1 to 1024"),
        (("cores = 10", "cores = true"), "cores: must be"),
        (("cores = 10", "kores = 10"), "kores: unknown key; did you mean cores?"),
        (("switch = 2.2", "switch = nan"), "times.switch: must be a number"),
        (("switch = 2.2", "switch = -1"), "times.switch: must be from 0"),
        (("[none]", "[kyber2]"), "kyber2: unknown key"),
        (("lock = 0.18", "lokc = 0.18"), "none.lokc: unknown key"),
        (("[times]", "[times"), "line"),
    ],
)
def test_a_file_that_is_no_host(tmp_path: Path, edit: tuple[str, str], said: str) -> None:
    """One line with file, key and cause."""
    from headwaiter.drives.writing import toml_text  # noqa: PLC0415

    path = tmp_path / "host.toml"
    text = toml_text(XEON_10.table(), "made")
    assert edit[0] in text
    path.write_text(text.replace(*edit, 1))
    with pytest.raises(Problem, match=said.replace("?", r"\?")) as told:
        read_host(path)
    assert str(told.value).startswith(str(path))


def test_an_unknown_host(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="--host xeon-1: neither a file nor known; did you mean xeon-10"):
        find_host("xeon-1")
    with pytest.raises(Problem, match=r"host\.toml"):
        find_host(str(tmp_path / "host.toml"))
    assert find_host("lab") is None and find_host("xeon-10") is HOSTS["xeon-10"]


# --- could anything change? ---


def test_what_a_scheduler_could_change() -> None:
    assert not could_change(29, 29, 1.9) and not could_change(0, 0, None)
    assert could_change(31, 0, None) and could_change(0, 31, None) and could_change(0, 0, 2.1)


def test_slowdown() -> None:
    """30 reads alone take 100 us; 30 that come in threes take 100, 200, 300."""
    alone = np.arange(30) * 1_000_000
    threes = np.repeat(np.arange(10) * 1_000_000 + 100_000_000, 3) + np.tile([0, 1, 2], 10)
    issue = np.concatenate([alone, threes])
    latency = np.concatenate([np.full(30, 100_000), np.tile([100_000, 200_000, 300_000], 10)])
    op, sectors = np.zeros(60, np.uint8), np.full(60, 8, np.uint32)
    assert slowdown(issue, issue + latency, op, sectors) == pytest.approx(1.5)
    assert slowdown(issue[30:], (issue + latency)[30:], op[30:], sectors[30:]) is None
    assert slowdown(issue[:0], issue[:0], op[:0], sectors[:0]) is None


def recorded(times_ns: np.ndarray, latency_ns: int | np.ndarray) -> Trace:
    """Reads of 4 KiB that came then."""
    n = len(times_ns)
    return make_trace(
        source="test",
        format="native",
        time_ns=times_ns,
        op=np.zeros(n),
        sector=np.arange(n) * 8,
        sectors=np.full(n, 8),
        complete_ns=times_ns + latency_ns,
        task_id=np.ones(n),
    )


def test_the_gate_goes_by_what_could_change() -> None:
    """For a device that takes 1023 requests at once, processors, the lock or latency under load could change."""
    minute = np.linspace(0, 60e9, 3000).astype(np.int64)
    quiet = gate(recorded(minute, 100_000), 1023, 0, 60.0, XEON_10, 10)
    assert quiet.open and quiet.could_change is False and quiet.slowdown == pytest.approx(1)
    assert quiet.lock_percent == pytest.approx(50 * 2.08e-4) and quiet.processor_percent == pytest.approx(50 * 3.19e-5)
    busy = gate(recorded(minute // 4800, 1000), 1023, 0, 0.0125, XEON_10, 10)
    assert busy.lock_percent == pytest.approx(49.9, rel=0.01) and busy.could_change
    slow = np.where(np.arange(3000) % 3 == 1, 900_000, 100_000)
    pairs = minute - np.where(np.arange(3000) % 3 == 1, 20_000_000 - 50_000, 0)
    assert gate(recorded(pairs, slow), 1023, 0, 60.0, XEON_10, 10).could_change
    disk = gate(recorded(pairs, slow), 1023, 0, 60.0)
    assert disk.could_change is False and disk.lock_percent is None
    assert gate(recorded(minute, 100_000), None, 0, 60.0).could_change is None


def test_idle_is_said_only_where_nothing_could_change(pro: Profile, tmp_path: Path) -> None:
    """A reader that thinks; and ten that leave their cores no rest, for whom none and kyber are alike."""
    from headwaiter import compare  # noqa: PLC0415

    job = tmp_path / "job.fio"
    job.write_text("[r]\nrw=randread\nbs=4k\ndirect=1\nthinktime=2000\nsize=1g\ntime_based\nruntime=200ms\n")
    found = compare(job, pro, schedulers=["none", "kyber"], runs=2, host="xeon-10").answer
    assert found.outcome == "idle" and "processors are busy for 0% of the time" in found.text
    job.write_text(
        "[r]\nrw=randread\nbs=4k\ndirect=1\niodepth=32\nioengine=libaio\nnumjobs=2\nsize=1g\ntime_based\nruntime=20ms\n"
    )
    found = compare(job, pro, schedulers=["none", "kyber"], runs=2, host="xeon-10", cores=2).answer
    assert found.outcome != "idle"


def test_the_lock_is_told_as_the_reason(pro: Profile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not an idle disk."""
    from headwaiter import compare  # noqa: PLC0415

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path))
    job = tmp_path / "many.fio"
    job.write_text(
        "[r]\nrw=randread\nbs=4k\ndirect=1\niodepth=64\nioengine=io_uring\nnumjobs=6\nsize=1g\ntime_based\nruntime=20ms\n"
    )
    found = compare(job, pro, schedulers=["none", "mq-deadline"], runs=0)
    assert found.best.scheduler == "none"
    assert "I/Os take turns at the lock of mq-deadline, which was held" in found.answer.text
    assert found["mq-deadline"].host and found["mq-deadline"].host.lock_percent > 90
