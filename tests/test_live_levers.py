# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Settings of a disk beside its scheduler: put with the advice, saved, shown, restored, and left alone where nobody asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakesys
import numpy as np
import pytest
from command import good, write
from fakesys import FakeSystem, machine
from recordings import record

from headwaiter.advice import advice
from headwaiter.advice.advice import Target
from headwaiter.advice.schema import Gate
from headwaiter.advice.target import target_of
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import Forest, Task
from headwaiter.fio import JobLoad
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.judge import judge
from headwaiter.judge.levers import UNKNOWN_QUEUE, LeverQueue, pull
from headwaiter.queue.apply import apply, revert
from headwaiter.queue.machine import Machine
from headwaiter.queue.persist import rules
from headwaiter.queue.settings import Settings
from headwaiter.queue.status import status
from headwaiter.study.drive_fit import read_on_drive
from headwaiter.study.schema import Answer, Lever, Margin
from headwaiter.study.variants import parse_variant
from headwaiter.study.workload import Reading

__all__ = ["machine"]
DEEP = ("-d", "wd-re-4tb")


def depth(machine: FakeSystem, name: str = "sda") -> str:
    return (machine.sysfs / "block" / name / "device" / "queue_depth").read_text().strip()


def pages_beside_resync() -> Forest:
    """A program that reads page after page, while a kernel's thread has 32 reads on their way all the time."""
    reads, theirs, at_once = 600, 19_000, 32
    n = reads + theirs
    rng = np.random.default_rng(5)
    row = np.arange(n)
    reader = row < reads
    parent = np.where(reader, row - 1, np.where(row < reads + at_once, -1, row - at_once))
    return Forest(
        tasks=[Task(1, "pages", 0), Task(2, "md0_resync", 1)],
        time_ns=np.zeros(n, np.int64),
        parent=parent.astype(np.int64),
        delay_ns=np.where(reader, 3_000_000, 1000).astype(np.int64),
        task=(~reader).astype(np.uint32),
        op=np.full(n, Op.READ, np.uint8),
        flags=np.full(n, SYNC, np.uint8),
        sector=np.where(reader, rng.integers(0, 10**8, n) * 8, 2 * 10**9 + rng.integers(0, 10**8, n) * 8).astype(np.uint64),
        sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


@pytest.fixture(scope="session")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its recording; the thread's commands fill the disk's queue."""
    return record(tmp_path_factory.mktemp("deep") / "deep.csv", pages_beside_resync(), drive="wd-re-4tb", names=True)


@pytest.fixture
def plain(machine: FakeSystem, monkeypatch: pytest.MonkeyPatch) -> FakeSystem:
    """A machine whose kernel has two schedulers, and whose disk goes between reads and writes without batches."""
    monkeypatch.setattr(advice, "default_set", lambda: ["none", "mq-deadline"])
    monkeypatch.setattr(advice, "candidates", list)
    monkeypatch.setattr(fakesys, "DEFAULTS", {name: fakesys.DEFAULTS[name] for name in ("none", "mq-deadline")})
    machine.add("sda", wwn="naa.5000c500a1b2c3d4", queue_depth=32)
    machine.set("sda", "iosched/fifo_batch", "1")
    machine.writes.clear()
    return machine


def advised(capfd: pytest.CaptureFixture[str], system: FakeSystem, *words: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(good(capfd, "advise", *words, *DEEP, "--root", system.root, "--json"))
    return found


@pytest.mark.thorough
def test_advice_puts_and_revert_restores_them(plain: FakeSystem, deep: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A shorter queue in the disk lets a read by; the scheduler stays."""
    was = plain.everything("sda")
    found = advised(capfd, plain, deep, "--on", "sda")
    levers = [one for one in found["advice"] if one["kind"] == "lever"]
    assert found["advice"][0]["kind"] == "scheduler" and levers
    text, path = levers[0]["text"], plain.sysfs / "block" / "sda" / "device" / "queue_depth"
    value = text.removeprefix("Besides, queue_depth=").split(":")[0]
    assert int(value) < 32 and "of what programs wait for is" in text
    assert levers[0]["apply"] == [f"echo {value} >/sys/block/sda/device/queue_depth"]
    assert levers[0]["undo"] == ["echo 32 >/sys/block/sda/device/queue_depth"]
    assert plain.writes == []

    out = good(capfd, "advise", deep, *DEEP, "--on", "sda", "--apply", "--root", plain.root)
    assert f"sda: ../device/queue_depth 32 -> {value}; `headwaiter revert sda` restores" in out
    assert depth(plain) == value and plain.everything("sda") == was
    shown = good(capfd, "status", "--root", plain.root)
    assert f"mq-deadline -> mq-deadline, device/queue_depth 32 -> {value}, " in shown and "; in force" in shown
    assert f"echo 32 >{path}" in shown
    good(capfd, "revert", "sda", "--root", plain.root)
    assert depth(plain) == "32" and plain.everything("sda") == was


@pytest.mark.thorough
def test_muted_levers_are_not_put(plain: FakeSystem, deep: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = advised(capfd, plain, deep, "--on", "sda")
    muted = [word for one in found["advice"] if one["kind"] == "lever" for word in ("--mute", one["id"])]
    out = good(capfd, "advise", deep, *DEEP, "--on", "sda", "--apply", "--root", plain.root, *muted)
    assert "Nothing was changed." in out and plain.writes == []


@pytest.mark.thorough
def test_a_disk_without_the_setting_is_not_told_to_change_it(
    plain: FakeSystem, deep: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plain.add("vda")
    plain.set("vda", "iosched/fifo_batch", "1")
    found = advised(capfd, plain, deep, "--on", "vda")
    assert not any("queue_depth" in one["text"] for one in found["advice"])


def test_what_nobody_asked_for_is_neither_saved_nor_restored(machine: FakeSystem) -> None:
    """A switch does not change read-ahead and queue depth, and what an administrator writes later is his own."""
    folder = machine.add("sda", wwn="naa.5000c500a1b2c3d4", queue_depth=32)
    here = Machine(machine.root)
    device = here.find("sda")
    apply([device], Settings("bfq"), here.state, "test")
    (folder / "device" / "queue_depth").write_text("16\n")
    (folder / "queue" / "read_ahead_kb").write_text("4096\n")
    assert status(here).disks[0].overridden == ""
    revert(device, here.state)
    assert (machine.current("sda"), depth(machine)) == ("mq-deadline", "16")
    assert (folder / "queue" / "read_ahead_kb").read_text() == "4096\n"


def test_a_second_change_saves_what_the_first_left_alone(machine: FakeSystem) -> None:
    folder = machine.add("sda", wwn="naa.5000c500a1b2c3d4", queue_depth=32)
    here = Machine(machine.root)
    device = here.find("sda")
    apply([device], Settings("bfq"), here.state, "test")
    apply([device], Settings("bfq", queue_depth=1, read_ahead_kb=512), here.state, "test")
    assert (depth(machine), (folder / "queue" / "read_ahead_kb").read_text()) == ("1", "512\n")
    (folder / "device" / "queue_depth").write_text("2\n")
    assert status(here).disks[0].overridden == "../device/queue_depth"
    revert(device, here.state)
    assert (machine.current("sda"), depth(machine)) == ("mq-deadline", "32")
    assert (folder / "queue" / "read_ahead_kb").read_text() == "128\n"


def test_a_refused_setting_leaves_all_as_it_was(machine: FakeSystem) -> None:
    machine.add("sda", wwn="naa.5000c500a1b2c3d4", queue_depth=32)
    machine.add("sdb", wwn="naa.5000c500a1b2c3d5")  # whose driver has no such file
    here = Machine(machine.root)
    with pytest.raises(Exception, match=r"queue_depth.*No such file"):
        apply([here.find("sda"), here.find("sdb")], Settings("bfq", queue_depth=1), here.state, "test")
    assert (machine.current("sda"), machine.current("sdb"), depth(machine)) == ("mq-deadline", "mq-deadline", "32")
    assert here.state.all() == []


def test_a_rule_names_the_file_of_the_device(machine: FakeSystem) -> None:
    machine.add("sda", wwn="naa.5000c500a1b2c3d4", queue_depth=32)
    text = rules([Machine(machine.root).find("sda")], Settings("bfq", queue_depth=1), machine.root / "run/udev/data")
    assert text.endswith('ATTR{queue/scheduler}="bfq", ATTR{device/queue_depth}="1"\n')


BUFFERED = """[global]
runtime=10
time_based
size=2g
[log]
rw=write
bs=1m
[stream]
rw=read
bs=64k
offset=20g
[pages]
rw=randread
bs=4k
offset=40g
size=1g
thinktime=5ms
"""


def pulled(tmp_path: Path, text: str, *schedulers: str, queue: LeverQueue = UNKNOWN_QUEUE) -> list[Lever]:
    work, drive = read_on_drive(Path(write(tmp_path / "x.fio", text)), "barracuda-80g", Reading())
    assert isinstance(work.load, JobLoad)
    return pull(judge(work, drive, [parse_variant(one) for one in schedulers], RunConditions(), tasks=False), queue)


def test_read_ahead_is_a_lever_of_buffered_readers(tmp_path: Path) -> None:
    """Larger windows mean fewer seeks between the programs."""
    found = {one.kind: one for one in pulled(tmp_path, BUFFERED, "mq-deadline", "none")}
    lever = found["read_ahead_kb"]
    assert lever.settings["read_ahead_kb"] > 128 and lever.margin.ahead_percent > 10
    assert lever.undo == ("echo 128 >/sys/block/sdX/queue/read_ahead_kb",)
    direct = BUFFERED.replace("[global]\n", "[global]\ndirect=1\n")
    assert "read_ahead_kb" not in {one.kind for one in pulled(tmp_path, direct, "mq-deadline", "none")}


def test_the_best_set_comes_first(tmp_path: Path) -> None:
    """Held against the scheduler in force alone, it is no worse than any of its parts, and has all their commands."""
    found = pulled(tmp_path, BUFFERED, "mq-deadline", "bfq:low_latency=0")
    first, parts = found[0], found[1:]
    assert first.kind == "set" and first.text.startswith("Together, ") and "against mq-deadline alone" in first.text
    named = [one for one in parts if one.what in first.what.split(" and ")]
    assert named and first.margin.low_percent is not None and first.margin.low_percent > 0
    for one in named:
        assert set(one.apply) <= set(first.apply) and set(one.undo) <= set(first.undo)


def margin(name: str, ahead: float) -> Margin:
    return Margin(scheduler=name, judgement="better", ahead_percent=ahead, low_percent=ahead, high_percent=ahead)


def concluded(machine: FakeSystem, target: Target | None, best_name: str, under: str) -> advice.Advised:
    """Advice where a variant is best, and a shorter queue of the disk helps under another."""
    work, drive = read_on_drive(Path(write(machine.root / "x.fio", BUFFERED)), "barracuda-80g", Reading())
    gate = Gate(open=True, seconds=60.0, requests=1000, lost=0, tasks_known=True, reasons=())
    before, offered = Settings("mq-deadline"), ("none", "mq-deadline")
    found = advice.Advised(
        work, drive, "progress", target, before, "mq-deadline", offered, gate, None, (), None, (), (), None, ()
    )
    best = parse_variant(best_name)
    said = Answer(
        outcome="better",
        text="It is best.",
        by="progress",
        baseline="mq-deadline",
        best=best.name,
        margin_percent=5.0,
        margins=(margin("mq-deadline", 0.0), margin(best.name, 10.0)),
    )
    lines = [f"echo {depth} >/sys/block/sdX/device/queue_depth" for depth in (1, 32)]
    lever = Lever(
        kind="set",
        what="x",
        text="x",
        margin=margin(under, 20.0),
        settings={"queue_depth": 1},
        apply=lines[:1],
        undo=[*lines[1:], "ionice"],
    )
    return advice._conclude(found, best, said, [lever], ())


def test_a_set_that_stays_with_what_is_in_force_puts_nothing_of_the_best_variant(machine: FakeSystem) -> None:
    """mq-deadline:fifo_batch=1 is best by itself, and a shorter queue under mq-deadline as it is, is better still."""
    machine.add("sda", wwn="naa.5000c500a1b2c3d4", queue_depth=32)
    target, best = target_of(Machine(machine.root), "sda"), "mq-deadline:fifo_batch=1"
    for under, batch in (("mq-deadline", "16"), (best, "1")):
        put = concluded(machine, target, best, under).wanted
        assert put and (put.queue_depth, put.tunables["fifo_batch"]) == (1, batch)


def test_lines_for_a_disk_that_nobody_has_named(machine: FakeSystem) -> None:
    """They say what to write where, and how to get back to what the recording was made under."""
    together, alone = concluded(machine, None, "bfq:low_latency=0", "bfq:low_latency=0").advice
    queue = "/sys/block/sdX/queue"
    put = [f"echo bfq >{queue}/scheduler", f"echo 0 >{queue}/iosched/low_latency"]
    assert alone.apply == put and alone.undo == [f"echo mq-deadline >{queue}/scheduler"]
    assert together.apply == [*put, "echo 1 >/sys/block/sdX/device/queue_depth"]
    assert together.undo == [*alone.undo, "echo 32 >/sys/block/sdX/device/queue_depth", "ionice"]


@pytest.mark.thorough
def test_candidates_of_the_scheduler_in_force_are_put_beside_its_tunables(
    plain: FakeSystem, deep: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is replayed is what would be in force."""
    monkeypatch.setattr(advice, "candidates", lambda names: [*names, "mq-deadline:writes_starved=4", "mq-deadline:fifo_batch=1"])
    found = advised(capfd, plain, deep, "--on", "sda")
    names = {one["scheduler"] for one in found["answer"]["margins"]}
    assert names == {"none", "mq-deadline:fifo_batch=1", "mq-deadline:fifo_batch=1:writes_starved=4"}


def test_read_ahead_goes_back_to_what_it_was(tmp_path: Path) -> None:
    found = pulled(tmp_path, BUFFERED, "mq-deadline", "none", queue=LeverQueue(("sda",), {"read_ahead_kb": 4096}))
    assert {one.undo for one in found if one.kind == "read_ahead_kb"} == {("echo 4096 >/sys/block/sda/queue/read_ahead_kb",)}


def test_lines_are_for_every_disk_of_a_stack() -> None:
    queue = LeverQueue(("sda", "sdb"), {"nr_requests": 64})
    assert queue.lines({"nr_requests": 16}) == (
        "echo 16 >/sys/block/sda/queue/nr_requests",
        "echo 16 >/sys/block/sdb/queue/nr_requests",
    )
    assert queue.lets("nr_requests") and not queue.lets("queue_depth") and replace(queue, in_force=None).lets("queue_depth")
