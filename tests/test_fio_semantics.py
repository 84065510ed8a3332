# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What jobs do and when, on a drive that serves one request at a time in 5 ms: worked out by hand.

The orders of offsets are those that fio 3.33 was seen to issue (ioengine=null or libaio with write_iolog).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import itertools

from fioload import MS, SECTORS, Io, issues, load, places, run

from headwaiter.drives.choose import open_drive
from headwaiter.engine.sim import ConstantDrive, Options, simulate

DIRECT = "[global]\ndirect=1\nfilename=/dev/sda\n"
QUEUED = DIRECT + "ioengine=libaio\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("size=10k", "R0+4 R4+4 R8+4"),  # a device has room for the rest of the last block
        ("size=16k\nloops=2\nfilename=f", "R0+4 R4+4 R8+4 R12+4 " * 2),
        ("size=16k\nloops=2", "R0+4 R4+4 R8+4 R12+4 " * 2),
        ("size=16k\nio_size=40k", "R0+4 R4+4 R8+4 R12+4 " * 2 + "R0+4 R4+4"),
        ("size=16k\nio_size=40k\nloops=2", "R0+4 R4+4 R8+4 R12+4 " * 3),
        ("size=16k\nio_size=8k\nloops=2", "R0+4 R4+4 R8+4 R12+4"),
        ("size=16k\nio_size=18k", "R0+4 R4+4 R8+4 R12+4"),
        ("size=16k\nio_size=22k", "R0+4 R4+4 R8+4 R12+4 R0+4 R4+4"),
        ("size=32k\nnumber_ios=3", "R0+4 R4+4 R8+4"),
        ("size=32k\nrw=read:4k", "R0+4 R8+4 R16+4 R24+4"),  # only the end of a file wraps
        ("size=32k\nrw=read:4k\nfilename=f", "R0+4 R8+4 R16+4 R24+4 " * 2),
        ("size=32k\nrw=read:-8k\nfilename=f", "R0+4 R24+4 R20+4 R16+4 R12+4 R8+4 R4+4 R0+4"),
        ("size=32k\noffset=32k\nrw=read:-8k\nfilename=f", "R32+4 R56+4 R52+4 R48+4 R44+4 R40+4 R36+4 R32+4"),
        ("size=32k\noffset=32k\nrw=read:4k\nfilename=f", "R32+4 R40+4 R48+4 R56+4"),
        ("size=16k\nfilesize=32k\noffset=8k\nfilename=f", "R8+4 R12+4 R16+4 R20+4"),
        ("size=40k\nfilesize=32k\noffset=8k\nfilename=f", "R8+4 R12+4 R16+4 R20+4 R24+4 R28+4"),
        ("size=16k\nfilesize=64k\nloops=2\nfilename=f", "R0+4 R4+4 R8+4 R12+4 R16+4 R20+4 R24+4 R28+4"),
        ("size=16k\nfilesize=64k\nloops=2\nfilename=f\nioengine=libaio", "R0+4 R4+4 R8+4 R12+4 " * 2),
        ("size=50%\nfilesize=16m\nbs=1m\nfilename=f\noffset=2m", " ".join(f"R{k}+1024" for k in range(2048, 10240, 1024))),
        ("size=16m\nfilesize=16m\nbs=1m\nfilename=f\noffset=50%", " ".join(f"R{k}+1024" for k in range(8192, 16384, 1024))),
        ("size=4m\nbs=1m\noffset=33%\noffset_align=3m", " ".join(f"R{354336768 + k}+1024" for k in range(0, 4096, 1024))),
    ],
)
def test_sequential_places(tmp_path: Path, options: str, expected: str) -> None:
    assert places(run(tmp_path, f"{DIRECT}[a]\n{options}\n")) == expected.strip()


def test_time_based_leaves_the_rest_that_does_not_fit_and_wraps(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\ndirect=1\nsize=18k\ntime_based\nruntime=55ms\n")
    assert places(ios) == "R0+4 R4+4 R8+4 R12+4 R0+4 R4+4 R8+4 R12+4 R0+4 R4+4 R8+4"
    assert issues(ios) == [5.0 * i for i in range(11)]


def test_runtime_ends_a_job_and_waits_for_what_is_in_flight(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{QUEUED}[a]\nsize=1m\niodepth=3\nruntime=12ms\n")
    assert issues(ios) == [0, 0, 0, 5, 10]
    assert ios[-1].done == 25


def test_a_run_ends_with_its_last_io(tmp_path: Path) -> None:
    """Not with the sleep that a process still has before it: nothing of that concerns the drive."""
    jobs = load(tmp_path, f"{DIRECT}[a]\nsize=1m\nnumber_ios=3\nthinktime=100ms\n")
    outcome = simulate("noop", ConstantDrive(5 * MS), jobs)
    assert outcome.totals["now_ns"] == (5 + 100 + 5 + 100 + 5) * MS


def test_files_in_turn(tmp_path: Path) -> None:
    base = {"a.0.0": 0, "a.0.1": 16 << 30 >> 10}  # 1 TiB / 64 apart, in KiB

    def named(options: str) -> str:
        ios = run(tmp_path, f"[a]\ndirect=1\nnrfiles=2\nsize=32k\n{options}\n")
        return " ".join(f"{'ab'[io.at >= base['a.0.1']]}{io.at % base['a.0.1']:g}" for io in ios)

    assert named("") == "a0 b0 a4 b4 a8 b8 a12 b12"
    assert named("file_service_type=roundrobin:3") == "a0 a4 a8 b0 b4 b8 a12 b12"
    assert named("file_service_type=sequential\nloops=2") == "a0 a4 a8 a12 b0 b4 b8 b12 a0 a4 a8 a12 b0 b4 b8 b12"
    assert sorted(named("file_service_type=random").split()) == ["a0", "a12", "a4", "a8", "b0", "b12", "b4", "b8"]


def test_several_filenames_share_the_size(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\ndirect=1\nfilename=x:y\\:z\nsize=16k\n")
    assert [io.at for io in ios] == [0, 16 << 20, 4, (16 << 20) + 4]


def test_layout_spaces_files_and_lets_devices_be_the_drive(tmp_path: Path) -> None:
    jobs = load(
        tmp_path,
        "[global]\ndirect=1\nsize=1m\n[a]\nnumjobs=2\n[b]\nfilename=/dev/sdz\n[c]\nfilename=big\n"
        "size=100g\n[d]\nfilename=big\nsize=1m\n[e]\n[f]\nfilename=/dev/shm/x\n",
    )
    spacing = (1 << 40) // 64
    bases = [j.files[0]["base"] for j in jobs.jobs]
    assert bases == [0, spacing, 0, 2 * spacing, 2 * spacing, 2 * spacing + (100 << 30), 3 * spacing + (100 << 30)]


def test_files_get_closer_when_there_are_many(tmp_path: Path) -> None:
    jobs = load(tmp_path, "[a]\ndirect=1\nsize=1m\nnumjobs=128\n")
    assert jobs.jobs[127].files[0]["base"] == 127 * (1 << 40) // 128


def test_thinking_readers_take_turns(tmp_path: Path) -> None:
    ios = run(tmp_path, "[r]\ndirect=1\nsize=12k\nnumjobs=2\nthinktime=100\n")
    assert [(io.task, round(io.issue, 4), round(io.done, 4)) for io in ios] == [
        ("r.0", 0, 5),
        ("r.1", 0, 10),
        ("r.0", 5.1, 15),
        ("r.1", 10.1, 20),
        ("r.0", 15.1, 25),
        ("r.1", 20.1, 30),
    ]


def test_think_after_several_blocks(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nsize=24k\nthinktime=1ms\nthinktime_blocks=2\n")
    assert issues(ios) == [0, 5, 11, 16, 22, 27]


def test_spinning_is_thinking(tmp_path: Path) -> None:
    assert issues(run(tmp_path, f"{DIRECT}[a]\nsize=8k\nthinktime=1ms\nthinktime_spin=300us\n")) == [0, 6]
    assert issues(run(tmp_path, f"{DIRECT}[a]\nsize=8k\nthinktime=1ms\nthinktime_spin=3ms\n")) == [0, 8]


def test_thinking_takes_the_depth_away(tmp_path: Path) -> None:
    """With a depth of 4 fio thinks when it first reaps, and from then on after each I/O."""
    ios = run(tmp_path, f"{QUEUED}[a]\nsize=28k\niodepth=4\nthinktime=20ms\n", queue_depth=4)
    # The constant drive still serves one by one: the first four are done at 5, 10, 15, 20.
    assert issues(ios) == [0, 0, 0, 0, 40, 65, 90]


def test_think_counts_what_is_issued_if_asked_to(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{QUEUED}[a]\nsize=16k\niodepth=8\nthinktime=1ms\nthinktime_blocks=2\nthinktime_blocks_type=issue\n")
    assert issues(ios) == [0, 0, 11, 11]


def test_depth_fills_slots_as_they_become_free(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{QUEUED}[a]\nsize=20k\niodepth=2\n")
    assert [(io.issue, io.done) for io in ios] == [(0, 5), (0, 10), (5, 15), (10, 20), (15, 25)]


@pytest.mark.parametrize("engine", ["sync", "psync", "vsync", "pvsync", "pvsync2", "posixaio"])
def test_engines_that_do_one_at_a_time(tmp_path: Path, engine: str) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nioengine={engine}\niodepth=8\nsize=12k\n")
    assert issues(ios) == [0, 5, 10]


def test_rate_spaces_by_bytes(tmp_path: Path) -> None:
    assert issues(run(tmp_path, f"{DIRECT}[a]\nsize=16k\nrate=4k\n")) == [0, 1000, 2000, 3000]
    assert issues(run(tmp_path, f"{DIRECT}[a]\nsize=16k\nrate_iops=100\n")) == [0, 10, 20, 30]
    # Late, it catches up.
    assert issues(run(tmp_path, f"{DIRECT}[a]\nsize=16k\nrate_iops=100\n", service_ms=15)) == [0, 15, 30, 45]


def test_rate_of_each_direction(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=rw\nsize=48k\nrate_iops=100,50\n")
    # Where both are due at once, one comes 5 ms later.
    for op, step in (("R", 10), ("W", 20)):
        own = [io.issue for io in ios if io.op == op]
        assert len(own) == 80 // step
        assert all(0 <= at - i * step <= 5 for i, at in enumerate(own))


def test_sleeping_for_the_rate_ends_with_the_runtime(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nsize=1m\nrate_iops=1\nruntime=2500ms\n[b]\nsize=4k\nstonewall\n")
    assert issues(ios) == [0, 1000, 2000, 2500]


def test_runtime_may_end_while_the_rate_waits_for_what_is_in_flight(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nioengine=libaio\niodepth=4\nsize=1m\nrate_iops=400\nruntime=12ms\n")
    assert issues(ios) == [0, 5, 5]


def test_start_delay(tmp_path: Path) -> None:
    assert issues(run(tmp_path, f"{DIRECT}[a]\nsize=8k\nstartdelay=7ms\n")) == [7, 12]
    (io,) = run(tmp_path, f"{DIRECT}[a]\nsize=4k\nstartdelay=1s-2s\n")
    assert 1000 <= io.issue <= 2000


def starts(ios: list[Io]) -> dict[str, float]:
    return {io.task: io.issue for io in reversed(ios)}


def test_stonewall_waits_for_all_before_it(tmp_path: Path) -> None:
    text = f"{DIRECT}size=8k\n[a]\n[b]\n[c]\nstonewall\n[d]\n[e]\nwait_for_previous\n"
    assert starts(run(tmp_path, text)) == {"a": 0, "b": 0, "c": 20, "d": 20, "e": 40}


def test_stonewall_does_not_wait_for_what_has_not_started(tmp_path: Path) -> None:
    text = f"{DIRECT}size=4k\n[a]\n[b]\nstartdelay=1s\n[c]\nstonewall\n"
    assert starts(run(tmp_path, text)) == {"a": 0, "b": 1000, "c": 5}


def test_only_the_first_clone_stonewalls(tmp_path: Path) -> None:
    assert starts(run(tmp_path, f"{DIRECT}size=4k\nstonewall\n[a]\nnumjobs=2\n")) == {"a.0": 0, "a.1": 0}


def test_wait_for_waits_for_every_clone(tmp_path: Path) -> None:
    text = f"{DIRECT}size=4k\n[a]\nnumjobs=2\n[b]\nsize=16k\n[c]\nwait_for=a\n"
    assert starts(run(tmp_path, text)) == {"a.0": 0, "a.1": 0, "b": 0, "c": 10}


def test_exitall_ends_the_others(tmp_path: Path) -> None:
    endless = f"{DIRECT}size=1g\n[bg]\ntime_based\nruntime=1h\n"
    ios = run(tmp_path, f"{endless}[fg]\nsize=8k\nexitall\n")
    assert [io.task for io in ios].count("bg") == 3
    assert max(io.done for io in ios) == 25
    # Its group only: here they are two.
    text = endless.replace("1h", "100ms") + "[fg]\nnew_group\nsize=8k\nexitall\n"
    assert max(io.done for io in run(tmp_path, text)) == 100
    assert max(io.done for io in run(tmp_path, text + "exit_what=all\n")) == 25


def test_exitall_of_a_stonewall_ends_what_has_begun_each_time(tmp_path: Path) -> None:
    text = (
        f"{DIRECT}size=1g\nexit_what=stonewall\n[bg]\ntime_based\nruntime=1h\n[fg]\nsize=8k\nexitall\n"
        "[bg2]\nstonewall\ntime_based\nruntime=1h\n[fg2]\nsize=8k\nexitall\n"
    )
    ios = run(tmp_path, text)
    assert [[io.task for io in ios].count(task) for task in ("bg", "fg", "bg2", "fg2")] == [3, 2, 3, 2]


def test_exitall_wakes_sleepers_and_does_not_count_their_sleep(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}size=8k\nexitall\n[bg]\nthinktime=1h\n[fg]\nthinktime=1\n[after]\nstonewall\n")
    assert [io.task for io in ios] == ["bg", "fg", "fg"] + ["after"] * 2
    assert ios[-1].done < 100


def test_numjobs_names_and_offset_increment(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[job]\nnumjobs=3\nsize=4k\noffset=1m\noffset_increment=1g\n")
    assert [(io.task, io.at) for io in ios] == [(f"job.{k}", 1024 + offset * (1 << 20)) for k, offset in enumerate((0, 2, 1))]
    ios = run(tmp_path, f"{DIRECT}[job]\nnumjobs=2\nsize=4k\noffset_increment=25%\n")
    assert [io.at for io in ios] == [0, 1 << 28]


def test_the_turnaround_is_between_a_completion_and_the_next_io(tmp_path: Path) -> None:
    text = f"{DIRECT}[job]\nsize=12k\n"
    assert issues(run(tmp_path, text)) == [0, 5, 10]
    assert issues(run(tmp_path, text, turnaround_ns=250_000)) == [0.25, 5.5, 10.75]


def test_processes_that_start_together_get_the_processor_in_turn(tmp_path: Path) -> None:
    text = f"{DIRECT}[job]\nnumjobs=3\nsize=4k\n"
    assert issues(run(tmp_path, text)) == [0, 0, 0]
    assert issues(run(tmp_path, text, turnaround_ns=250_000)) == [0.25, 0.5, 0.75]
    ios = run(tmp_path, text + "startdelay=1ms\n", turnaround_ns=250_000, one_processor=True)
    assert issues(ios) == [1, 1.25, 1.5], "from the call on"
    assert [io.done for io in ios] == [6.25, 11.25, 16.25]


def test_processor_time_goes_by_pages(tmp_path: Path) -> None:
    text = f"{DIRECT}[job]\nsize=32k\nbs=16k\n"
    assert issues(run(tmp_path, text, turnaround_ns=250_000, turnaround_page_ns=50_000)) == [0.45, 5.9]
    ios = run(tmp_path, text, dispatch_ns=100_000, dispatch_page_ns=50_000, dispatch_write_page_ns=1_000_000)
    assert [io.done for io in ios] == [5.3, 10.6]
    ios = run(tmp_path, text.replace("[job]", "[job]\nrw=write"), dispatch_page_ns=50_000, dispatch_write_page_ns=100_000)
    assert [io.done for io in ios] == [5.6, 11.2]


def gaps_ms(ios: list[Io]) -> set[float]:
    """Between completions, without the first of each reader."""
    done = sorted(io.done for io in ios)[2:]
    return {round(b - a, 3) for a, b in itertools.pairwise(done)}


@pytest.mark.parametrize(("sched", "pull_ahead"), [("noop", False), ("deadline", False), ("mq-deadline", True), ("kyber", True)])
def test_after_a_completion_the_queue_has_to_be_run_again(tmp_path: Path, sched: str, pull_ahead: bool) -> None:
    """While another one's request waits; one reader alone has nothing in the queue."""
    text = "[global]\nfilename=/dev/sda\ndirect=1\nnumber_ios=8\nsize=1m\n[a]\n"
    options: dict[str, Any] = {
        "sched": sched,
        "pull_ahead": pull_ahead,
        "dispatch_ns": 10_000,
        "restart_ns": 100_000,
        "one_processor": True,
    }
    assert gaps_ms(run(tmp_path, text, **options)) == {5.01}
    both = gaps_ms(run(tmp_path, text + "[b]\noffset=1g\n", **options))
    # The last one is alone. Whose worker decides takes the processor from a process that is to see its I/O, but for that one.
    assert both == {5.11, 5.0 if pull_ahead else 5.01}


def test_to_find_that_one_has_to_wait_takes_time(tmp_path: Path) -> None:
    """The time is that of the process that is waited for, or that takes the only tag again."""
    text = "[global]\nfilename=/dev/sda\ndirect=1\nnumber_ios=8\nsize=1m\n[a]\n[b]\noffset=1g\n"
    how: tuple[dict[str, Any], ...] = ({"sched": "as"}, {"sched": "none", "nr_requests": 1, "pull_ahead": True})
    for options in ({**one, "turnaround_ns": 50_000, "one_processor": True} for one in how):
        first = [
            next(io for io in run(tmp_path, text, pass_ns=ns, **options) if io.task == "a" and io.at == 4).issue
            for ns in (0, 100_000)
        ]
        assert first[1] - first[0] == pytest.approx(0.1), options


def test_an_io_lasts_until_its_process_looks(tmp_path: Path) -> None:
    """With one processor, which another process has for 8 ms; and where its own calls for further I/Os have it."""
    text = "[global]\nfilename=/dev/sda\n[reader]\nrw=read\nsize=8k\ndirect=1\n[writer]\noffset=1g\nrw=write\nbs=32k\nsize=32k\n"
    ends = {}
    for shared in (False, True):
        ios = run(tmp_path, text, 1, turnaround_ns=100_000, copy_ns=8 * MS, copy_page_ns=0, one_processor=shared)
        ends[shared] = [io.done for io in ios if io.task == "reader"]
    assert ends == {False: [1.1, 2.2], True: [8.1, 9.2]}
    text = f"{DIRECT}[job]\nsize=32k\nioengine=libaio\niodepth=8\n"
    ios = run(tmp_path, text, 1, turnaround_ns=10 * MS, one_processor=True)
    assert issues(ios)[1:] == [10 * i for i in range(1, 8)]
    assert [io.done for io in ios] == [80] + [81] * 7, "one is fetched when the eighth has been sent, the rest when all are done"


def test_what_the_processor_does_while_a_request_is_in_the_drive(tmp_path: Path) -> None:
    """Nobody alone who waits for each I/O notices; who has several under way, and others, wait for it."""
    text = f"{DIRECT}[job]\nsize=16k\n"
    aio = "ioengine=libaio\niodepth=4\n"
    options: dict[str, Any] = {"turnaround_ns": 100_000, "dispatch_ns": 1_000, "one_processor": True}

    def end(jobs: str, **more: Any) -> float:
        return max(io.done for io in run(tmp_path, jobs, 1, **options, **more))

    assert end(text, meanwhile_ns=300_000) == pytest.approx(end(text))
    assert end(text + aio, meanwhile_ns=300_000) == pytest.approx(end(text + aio))
    fast = {"meanwhile_ns": 2 * MS, "meanwhile_page_ns": MS}
    assert end(text + aio, **fast) == pytest.approx(4 * 3 + 4 * 0.1 + 0.004, abs=0.02)
    two = text.replace("16k", "8k") + "numjobs=2\n"
    options["turnaround_ns"] = 2 * MS
    assert end(two, switch_ns=500_000) == pytest.approx(end(two) + 3 * 0.5)
    assert end(text, switch_ns=500_000) == end(text), "nobody else is there"


def test_one_processor_is_kept_until_its_process_waits(tmp_path: Path) -> None:
    """A process that copies eight pages into the cache is not interrupted by one whose read is done."""
    text = "[global]\nbs=4k\n[reader]\nrw=read\nsize=8k\ndirect=1\n[writer]\nrw=write\nsize=32k\nend_fsync=1\n"
    own, one = (
        [io.issue for io in run(tmp_path, text, 1, turnaround_ns=100_000, copy_ns=MS, copy_page_ns=0, one_processor=shared)
         if io.task == "reader"]
        for shared in (False, True)
    )  # fmt: skip
    assert own == [0.1, 1.2]
    assert one == [0.1, 8.1], "from its call on"


def test_several_in_flight_are_issued_one_after_another(tmp_path: Path) -> None:
    text = f"{DIRECT}[job]\nioengine=libaio\niodepth=3\nrw=randread\nsize=1m\nnumber_ios=3\n"
    assert issues(run(tmp_path, text, turnaround_ns=250_000)) == [0.25, 0.5, 0.75]


def test_of_several_that_are_done_one_is_taken_at_a_time(tmp_path: Path) -> None:
    """fio thinks after each I/O, however many were done together."""
    text = f"{DIRECT}[job]\nioengine=libaio\niodepth=4\nsize=32k\nthinktime=10ms\n"
    assert issues(run(tmp_path, text, merging=True)) == [0, 0, 0, 0, 15, 30, 45, 60]


def test_random_places_are_those_of_fio(tmp_path: Path) -> None:
    """The first four that fio 3.33 touches with rw=randread, size=1g."""
    ios = run(tmp_path, f"{DIRECT}[job]\nrw=randread\nsize=1g\nnorandommap\nnumber_ios=4\n")
    assert [io.at * 1024 for io in ios] == [64757760, 794877952, 905359360, 504672256]
    ios = run(tmp_path, f"{DIRECT}[job]\nrw=randrw\nsize=1g\nrwmixread=70\nnumber_ios=30\nrandrepeat=0\nrandseed=7\n")
    assert "".join(io.op for io in ios) == "WWRRRRRRRWRRRRRWRWRRRRWWWRRWRW"


def test_name_replaces_the_sections(tmp_path: Path) -> None:
    assert [t.name for t in load(tmp_path, "[a]\nsize=4k\nname=other job\n").tasks] == ["other job"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", 0),
        ("prio=3", 2 << 13 | 3),
        ("prioclass=1\nprio=2", 1 << 13 | 2),
        ("prioclass=3", 3 << 13),
        ("prioclass=2", 2 << 13),
        ("nice=0", 0),
        ("nice=10", 2 << 13 | 6),
        ("nice=-20", 2 << 13),
        ("nice=10\nprio=1", 2 << 13 | 1),
    ],
)
def test_priorities(tmp_path: Path, options: str, expected: int) -> None:
    (task,) = load(tmp_path, f"[a]\nsize=4k\n{options}\n").tasks
    assert task.ioprio == expected


def test_priorities_reach_the_scheduler(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}size=20k\n[low]\nprioclass=3\n[high]\nprioclass=1\n", sched="cfq-slice")
    last_high = max(io.done for io in ios if io.task == "high")
    assert sum(io.done < last_high for io in ios if io.task == "low") <= 1


@pytest.mark.parametrize("sched", ["as", "cfq-slice"])
def test_nobody_waits_for_a_task_whose_job_has_ended(tmp_path: Path, sched: str) -> None:
    jobs = load(tmp_path, f"{DIRECT}[a]\nsize=8k\nnumjobs=4\noffset_increment=1g\n")
    outcome = simulate(sched, ConstantDrive(5 * MS, SECTORS), jobs, options=Options(merging=False))
    assert outcome.totals["now_ns"] == 8 * 5 * MS


def test_synchronous_writes_go_to_the_medium(tmp_path: Path) -> None:
    text = "[a]\ndirect=1\nrw=write\nsize=1m\n"
    drive = open_drive("barracuda-80g")
    cached, written = (simulate("noop", drive, load(tmp_path, text + more, drive.sectors)).totals for more in ("", "sync=1\n"))
    assert cached["now_ns"] * 2 < written["now_ns"]


# --- chance ---


def test_a_pass_covers_every_block_once(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=randread\nsize=1m\nloops=2\n")
    first, second = [io.at for io in ios[:256]], [io.at for io in ios[256:]]
    assert sorted(first) == sorted(second) == [4.0 * i for i in range(256)]
    assert first == second, "randrepeat=1"
    assert sum(b == a + 4 for a, b in itertools.pairwise(first)) < 40


def test_without_randrepeat_passes_differ(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=randread\nsize=64k\nloops=2\nrandrepeat=0\n")
    first, second = [io.at for io in ios[:16]], [io.at for io in ios[16:]]
    assert sorted(first) == sorted(second) == [4.0 * i for i in range(16)]
    assert first != second


def test_without_a_map_blocks_repeat(tmp_path: Path) -> None:
    for options in ("norandommap", "ba=4k"):
        ios = run(tmp_path, f"{DIRECT}[a]\nrw=randread\nsize=1m\n{options}\n")
        assert len(ios) == 256
        assert 140 < len({io.at for io in ios}) < 185  # 256 * (1 - 1/e) = 162


def test_a_map_is_emptied_when_time_goes_on(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=randread\nsize=16k\ntime_based\nruntime=195ms\n")
    assert len(ios) == 39
    for k in range(0, 36, 4):
        assert sorted(io.at for io in ios[k : k + 4]) == [0, 4, 8, 12]
    # Time goes on, and so do the random numbers: this is no new pass.
    assert len({tuple(io.at for io in ios[k : k + 4]) for k in range(0, 36, 4)}) > 1


def test_ranges_of_block_sizes_cover_a_pass_without_overlap(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=randread\nsize=1m\nbsrange=4k-16k\n")
    covered = sorted((io.at, io.at + io.length) for io in ios)
    assert covered[0][0] == 0
    assert covered[-1][1] == 1024
    assert all(a[1] == b[0] for a, b in itertools.pairwise(covered))
    assert {io.length for io in ios} == {4, 8, 12, 16}


def test_alignment(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=randread\nsize=1m\nbs=4k\nba=64k\n")
    assert {io.at for io in ios} == {64.0 * i for i in range(16)}


def test_mixed_sequential_has_a_place_for_each_direction(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=rw\nsize=4m\nrwmixread=70\n")
    assert len(ios) == 1024
    for op in "RW":
        own = [io.at for io in ios if io.op == op]
        assert own == [4.0 * i for i in range(len(own))]
    assert 0.65 < sum(io.op == "R" for io in ios) / 1024 < 0.75


@pytest.mark.parametrize("seed", range(12))
def test_writes_go_on_until_they_have_their_share(tmp_path: Path, seed: int) -> None:
    """fio does not change back to reads before there is a write for ten of those so far."""
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=rw\nsize=1m\nrwmixread=90\nrandrepeat=0\nrandseed={seed}\n")
    reads = writes = changes = 0
    for io, following in itertools.pairwise(ios):
        reads += io.op == "R"
        writes += io.op == "W"
        if io.op == "W" and following.op == "R":
            changes += 1
            assert writes >= reads // 10
    assert changes > 2


def test_mixed_random_shares_one_map(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=randrw\nsize=1m\nrwmixwrite=25\n")
    assert sorted(io.at for io in ios) == [4.0 * i for i in range(256)]
    assert 40 < sum(io.op == "W" for io in ios) < 90


def test_block_sizes_of_each_direction(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=randrw\nsize=1m\nbs=4k,16k\n")
    assert {io.length for io in ios if io.op == "R"} == {4}
    assert {io.length for io in ios if io.op == "W"} <= {4, 8, 12, 16}
    covered = sorted((io.at, io.at + io.length) for io in ios)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(covered))


def test_a_new_place_every_few_ios(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\ndirect=1\nrw=randread:4\nsize=1g\nio_size=1m\nnorandommap\n")
    # The first is at a place drawn at random, and so is every fourth after it.
    jumps = [i for i in range(1, 256) if ios[i].at != ios[i - 1].at + 4]
    assert all(i % 4 == 0 for i in jumps)
    assert len(jumps) > 55
    same = run(tmp_path, "[a]\ndirect=1\nrw=randread:4\nsize=1g\nio_size=1m\nnorandommap\nrw_sequencer=identical\n")
    assert all(same[i].at == same[i // 4 * 4].at for i in range(256))


def test_a_share_of_random_io(tmp_path: Path) -> None:
    ios = run(tmp_path, f"{DIRECT}[a]\nrw=randread\nsize=1g\nio_size=4m\npercentage_random=25\n")
    jumps = sum(b.at != a.at + a.length for a, b in itertools.pairwise(ios))
    assert 200 < jumps < 312  # of 1023, a quarter


def test_seeds(tmp_path: Path) -> None:
    text = f"{DIRECT}rw=randread\nsize=1m\n[a]\n[b]\n"

    def order(more: str = "", seed: int = 0) -> list[float]:
        return [io.at for io in run(tmp_path, text + more, seed=seed)]

    assert order() == order()
    assert order(seed=1) != order()
    assert order("randseed=5\n") == order(), "as in fio, randrepeat=1 has places of its own"
    assert order("randrepeat=0\nrandseed=5\n") != order("randrepeat=0\n")
    ios = run(tmp_path, text)
    assert [io.at for io in ios if io.task == "a"] != [io.at for io in ios if io.task == "b"]


def test_a_map_of_a_whole_drive_is_cheap(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\ndirect=1\nfilename=/dev/sda\nrw=randread\nbs=512\nnumber_ios=50\n", sectors=1 << 34)
    assert len({io.at for io in ios}) == 50
