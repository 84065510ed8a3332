# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre: those who are at one place together, those who come together, and those who stay within what a drive's cache holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobload import run_jobs, run_regret

ALL = "filename=/dev/sda\ndirect=1\ntime_based\nruntime=10\n"
ONE_FILE = "[reader]\nrw=read\nbs=16k\noffset=4g\nsize=2g\nnumjobs=3\n"
PAIR = "[pair]\nrw=read\nbs=64k\nthinktime=100\noffset=4g\nsize=2g\nnumjobs=2\n"
OTHER = "[other]\nrw=read\nbs=64k\noffset=20g\nsize=2g\n"
STREAM = "[stream]\nrw=read\nbs=128k\noffset=30g\nsize=4g\n"
EARLY = STREAM + "[early]\nrw=randread\nbs=8k\noffset=1g\nsize=1g\noffset_increment=2g\nnumjobs=3\n"
LATE = "[late]\nrw={}\nbs=8k\noffset=10g\nsize=1g\noffset_increment=2g\nstartdelay=2\nnumjobs={}\n"
DEEP = "[deep]\nrw=randread\nbs=32k\nioengine=libaio\niodepth=16\noffset=20g\nsize=4g\noffset_increment=10g\nnumjobs=2\n"
ONE_AT_A_TIME = "[one]\nrw=randread\nbs=8k\noffset=1g\nsize=1g\noffset_increment=2g\nnumjobs=4\n"


def _rates(folder: Path, scheduler: str, drive: str, *jobs: str, positions: bool = True) -> dict[str, float]:
    """MB/s of each process, by its name."""
    result = run_jobs(folder, scheduler, drive, ALL, *jobs, positions=positions)
    return {task.name: task.throughput_mbps or 0.0 for task in result.tasks or ()}


def test_those_who_read_one_file_go_through_it_together(tmp_path: Path) -> None:
    """In turns of their own they had two thirds of that."""
    ours, theirs = (_rates(tmp_path, s, "wd-re-4tb", ONE_FILE) for s in ("maitre", "none"))
    assert len(ours) == 3 and min(ours.values()) > 0.95 * max(theirs.values())


@pytest.mark.parametrize("drive", ["barracuda-80g", "wd-re-4tb"])
def test_together_they_have_the_shares_of_all_of_them(tmp_path: Path, drive: str) -> None:
    """Two of three shares, in which each of the two gets what the other gets, from the drive's cache."""
    rates = _rates(tmp_path, "maitre", drive, PAIR, OTHER)
    assert rates["pair.0"] == pytest.approx(rates["pair.1"], rel=0.01)
    assert 0.9 < rates["pair.0"] / rates["other"] < 1.25


@pytest.mark.parametrize("drive", ["barracuda-80g", "wd-re-4tb"])
def test_who_falls_behind_is_left(tmp_path: Path, drive: str) -> None:
    """One that thinks reads the same file as a stream, which would go on without its turns."""
    slow = PAIR.replace("thinktime=100", "thinktime=20000").replace("numjobs=2", "numjobs=1")
    quick = PAIR.replace("thinktime=100\n", "").replace("numjobs=2\n", "").replace("[pair]", "[quick]")
    rates = _rates(tmp_path, "maitre", drive, quick, slow, OTHER)
    assert 0.8 < rates["quick"] / rates["other"] < 1.25
    assert rates["pair"] > 1


def test_who_has_lost_the_others_goes_on_by_himself(tmp_path: Path) -> None:
    """Four that think now and then drift apart; each of those behind would have the whole way for each block."""
    drifting = "[reader]\nrw=read\nbs=4k\noffset=4g\nsize=4g\nthinktime=31830\nthinktime_blocks=64\nnumjobs=4\n"
    assert min(_rates(tmp_path, "maitre", "barracuda-80g", drifting).values()) > 5


def test_of_several_that_come_together_none_begins_beside_the_others(tmp_path: Path) -> None:
    """One of the four had 2.5 s of the disk's time before the others had theirs."""
    rates = _rates(tmp_path, "maitre", "barracuda-80g", EARLY, LATE.format("randread", 4))
    late = [rate for name, rate in rates.items() if name.startswith("late")]
    assert len(late) == 4 and max(late) < 1.4 * min(late)


def test_who_waits_for_its_writes_is_no_program_that_begins(tmp_path: Path) -> None:
    rates = _rates(tmp_path, "maitre", "barracuda-80g", EARLY, LATE.format("randwrite", 1))
    assert rates["stream"] > 9, "it was 7"


@pytest.mark.parametrize("drive", ["barracuda-80g", "wd-re-4tb"])
def test_who_has_one_request_at_a_time_has_his_share_beside_several_who_have_many(tmp_path: Path, drive: str) -> None:
    """Among all of theirs in the pool it had a seventh of what cfq-slice gives it."""
    ours, theirs = (_rates(tmp_path, s, drive, DEEP, ONE_AT_A_TIME) for s in ("maitre", "cfq-slice"))
    assert min(ours[f"one.{i}"] for i in range(4)) > 0.6 * max(theirs[f"one.{i}"] for i in range(4))
    assert min(ours["deep.0"], ours["deep.1"]) > 0.8 * min(theirs["deep.0"], theirs["deep.1"])


@pytest.mark.parametrize(("job", "least_mbps"), [
    ("rw=randread\nbs=16k\n", 2.2),
    ("rw=randwrite\nbs=8k\nioengine=libaio\niodepth=4\n", 40),
])  # fmt: skip
def test_who_comes_back_to_a_few_mib_has_them_in_the_drives_cache(tmp_path: Path, job: str, least_mbps: float) -> None:
    """In the pool, or in turns that end before all of it is there, they had half of that, and a seventh."""
    other = "[other]\nrw=randread\nbs=16k\noffset=20g\nsize=2g\noffset_increment=20g\nnumjobs=3\n"
    rates = _rates(tmp_path, "maitre", "wd-re-4tb", f"[small]\noffset=4g\nsize=16m\n{job}", other)
    assert rates["small"] > least_mbps
    assert sum(rate for name, rate in rates.items() if name.startswith("other")) > 2.0


def test_a_program_that_begins_does_not_come_back_to_what_it_reads() -> None:
    """All of it lies within some MiB, and turns for that would take a third from the writer."""
    tasks = {task.name: task for task in run_regret("start-sync-writer.fio", "wd-re-4tb").tasks or ()}
    assert tasks["start"].elapsed_s < 1.0
    assert (tasks["writer"].throughput_mbps or 0) > 1.5
