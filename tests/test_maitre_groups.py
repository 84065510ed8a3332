# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre with control groups: shares by weight whatever the load, nested ones, groups that come, change and end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwaiter
from headwaiter.base.errors import Problem
from headwaiter.engine.cgroups import parse_path, written_path
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.schedulers import find

MS = 1_000_000
READ, WRITE = int(Op.READ), int(Op.WRITE)
POSITIONS = find("maitre").tables["positions"].parse("positions", b"0 0\n1024 0\n1025 10000000")
TWO = "[global]\nsize=400m\nruntime={runtime}\ntime_based\n{load}\n[light]\ncgroup=a\n[heavy]\ncgroup=b\ncgroup_weight=400\n"


def _rates(folder: Path, job: str, drive: str) -> dict[str, float]:
    path = folder / "job.fio"
    path.write_text(job)
    result = headwaiter.run(path, "maitre", drive=drive).result
    return {task.name: task.throughput_mbps or 0.0 for task in result.tasks or ()}


@pytest.mark.parametrize("drive", ["barracuda-80g", "wd-re-4tb"])
@pytest.mark.parametrize("load", [
    "rw=read\nbs=128k", "rw=read\ndirect=1\nbs=64k", "rw=randread\ndirect=1\nbs=4k",
    "rw=randread\ndirect=1\nbs=4k\nioengine=libaio\niodepth=16", "rw=randread\ndirect=1\nbs=4k\nnumjobs=4",
    "rw=write\ndirect=1\nsync=1\nbs=16k", "rw=read\ndirect=1\nbs=64k\nthinktime=3000",
])  # fmt: skip
def test_weights_of_1_to_4_give_shares_of_1_to_4(tmp_path: Path, drive: str, load: str) -> None:
    rates = _rates(tmp_path, TWO.format(runtime=30, load=load), drive)
    light, heavy = (sum(rate for name, rate in rates.items() if name.startswith(which)) for which in ("light", "heavy"))
    assert heavy / light == pytest.approx(4, rel=0.15)


def test_a_group_that_seeks_has_its_share_beside_one_that_thinks(tmp_path: Path) -> None:
    seeks = "[heavy]\ncgroup=b\ncgroup_weight=400\nrw=randread\ndirect=1\nbs=4k\n"
    thinks = "[light]\ncgroup=a\nrw=read\ndirect=1\nbs=64k\nthinktime=3000\n"

    def rate(*jobs: str) -> float:
        job = "\n".join(("[global]\nsize=400m\nruntime=30\ntime_based", *jobs))
        return _rates(tmp_path, job, "barracuda-80g")["heavy"]

    alone = rate(seeks)
    # Who begins makes no difference.
    assert rate(seeks, thinks) / alone == pytest.approx(4 / 5, rel=0.1)
    assert rate(thinks, seeks) / alone == pytest.approx(4 / 5, rel=0.1)


def test_a_group_of_many_has_no_more_than_one_of_one(tmp_path: Path) -> None:
    job = "[global]\nsize=100m\nruntime=40\ntime_based\nrw=read\nbs=128k\n[a]\ncgroup=a\nnumjobs=4\n[b]\ncgroup=b\n"
    rates = _rates(tmp_path, job, "barracuda-80g")
    assert sum(rate for name, rate in rates.items() if name.startswith("a")) == pytest.approx(rates["b"], rel=0.1)


def test_groups_within_groups_share_what_that_has(tmp_path: Path) -> None:
    weights = "[weight]\ncgroup=a\ncgroup_weight=200\nrw=randread\nbs=4k\nthinktime=2000000\n"
    job = "[global]\nsize=300m\nruntime=60\ntime_based\nrw=read\nbs=128k\n[x]\ncgroup=a/x\n[y]\ncgroup=a/y\ncgroup_weight=300\n"
    rates = _rates(tmp_path, f"{job}[b]\ncgroup=b\ncgroup_weight=400\n[root]\n{weights}", "barracuda-80g")
    a = rates["x"] + rates["y"]
    assert rates["y"] / rates["x"] == pytest.approx(3, rel=0.15)
    assert rates["b"] / a == pytest.approx(2, rel=0.15)
    assert rates["b"] / rates["root"] == pytest.approx(4, rel=0.15)


def test_buffered_writes_are_on_the_account_of_who_wrote(tmp_path: Path) -> None:
    """Write-back of the light group beside the reader of the heavy one, and the other way round."""
    job = "[global]\nsize=400m\nruntime=30\ntime_based\nbs=64k\n[reader]\nrw=read\ncgroup=a\ncgroup_weight={}\n"
    job += "[w]\nrw=write\ncgroup=b\n"
    few, many = (_rates(tmp_path, job.format(weight), "barracuda-80g")["reader"] for weight in (100, 900))
    assert many > 1.3 * few


def test_groups_are_told_and_wrong_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text(TWO.format(runtime=1, load="rw=read"))
    notes = headwaiter.run(path, "maitre", drive="constant:1").document.notes
    assert any("control groups a, b:400: maitre shares by their weights" in note for note in notes)
    for lines, cause in (
        ("cgroup_weight=200", "needs option 'cgroup'"),
        ("cgroup=/", "must be the name of a group"),
        ("cgroup=../a", "must be the name of a group"),
        ("cgroup=a\ncgroup_weight=99", "100"),
        ("cgroup=a\ncgroup_weight=200\n[k]\nrw=read\ncgroup=a\ncgroup_weight=300", "has weight 200 already"),
    ):
        path.write_text(f"[global]\nsize=1m\n[j]\nrw=read\n{lines}\n")
        with pytest.raises(Problem, match=cause):
            headwaiter.run(path, "maitre", drive="constant:1")


def test_paths_are_read_as_they_are_written() -> None:
    for text in ("", "a", "a/b", "a:200/b:400", "system.slice/x.service:1"):
        assert written_path(parse_path(text)) == text
    for text in (":5", "a:0", "a:10001", "a:x", "a/..", "a:"):
        with pytest.raises(ValueError):
            parse_path(text)


class Readers:
    """Tasks that read at places of their own, one request of 5 ms at a time, each on the account of a group."""

    def __init__(self, groups: dict[int, int]) -> None:
        self.policy = Policy("maitre", {"positions": POSITIONS}, sectors=1 << 30, depth=1)
        self.groups = groups
        self.now = 0
        self.served = dict.fromkeys(groups, 0)
        self.of: dict[int, int] = {}
        self.flying: int | None = None

    def ask(self, task: int) -> None:
        place = (task + 1) * 20_000_000 + self.served[task] * 8
        self.of[self.policy.insert(Request(place, 8, READ, task=task, flags=SYNC, group=self.groups[task]), self.now)] = task

    def begin(self) -> None:
        for task in self.groups:
            self.policy.start_task(task, self.now)
            self.ask(task)

    def run(self, steps: int) -> Iterator[int]:
        """The task of each request as it is done."""
        for _ in range(steps):
            if (request := self.policy.dispatch(self.now)) is None:
                self.now = self.policy.wake_ns
                continue
            self.now += 5 * MS
            self.policy.complete(request, self.now)
            task = self.of.pop(request)
            self.served[task] += 1
            self.ask(task)
            yield task


def _run(readers: Readers, steps: int) -> dict[int, int]:
    before = dict(readers.served)
    for _ in readers.run(steps):
        pass
    return {task: count - before[task] for task, count in readers.served.items()}


def test_a_weight_that_changes_is_in_force_at_once() -> None:
    readers = Readers({1: 1, 2: 2})
    for group in (1, 2):
        readers.policy.start_group(group)
    readers.begin()
    even = _run(readers, 4000)
    assert even[1] == pytest.approx(even[2], rel=0.1)
    readers.policy.weigh_group(2, 300)
    uneven = _run(readers, 4000)
    assert uneven[2] / uneven[1] == pytest.approx(3, rel=0.1)


def test_a_group_that_ends_with_requests_queued_is_served_to_the_end() -> None:
    readers = Readers({1: 1, 2: 2})
    readers.policy.start_group(2)
    readers.policy.start_group(1, parent=2)
    readers.begin()
    readers.policy.end_group(1)
    readers.policy.end_group(2)
    readers.groups = {1: 0, 2: 0}
    assert all(count > 50 for count in _run(readers, 400).values())
    readers.policy.start_group(1, weight=400)
    with pytest.raises(Problem):
        readers.policy.start_group(1)


def test_who_is_moved_is_charged_where_it_is() -> None:
    readers = Readers({1: 1, 2: 2, 3: 2})
    readers.policy.start_group(1)
    readers.policy.start_group(2)
    readers.begin()
    assert _run(readers, 4000)[1] == pytest.approx(2000, rel=0.1)
    readers.groups[3] = 1
    _run(readers, 300)
    moved = _run(readers, 4000)
    assert moved[2] == pytest.approx(2000, rel=0.1)
    assert moved[3] == pytest.approx(moved[1], rel=0.2)


def test_policies_without_groups_have_none() -> None:
    with pytest.raises(Problem):
        Policy("cas").start_group(1)
