# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Settings of a disk's queue: put in the order that keeps them, read back, saved before and restored exactly."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fakesys import FakeSystem, machine

from headwaiter.base.errors import Problem
from headwaiter.queue.apply import apply, overridden, revert
from headwaiter.queue.devices import Device, find
from headwaiter.queue.settings import Settings, commands, opened
from headwaiter.queue.state import State

__all__ = ["machine"]
BFQ = Settings("bfq", 100, {"slice_idle": "0"})


def disk(system: FakeSystem, name: str = "sda") -> Device:
    return find(name, system.sysfs, system.root / "dev", system.root / "run/udev/data")


@pytest.fixture
def state(machine: FakeSystem) -> State:
    return State(machine.root / "var/lib/headwaiter", boot="this")


def test_a_switch_comes_first_and_what_it_resets_after_it(machine: FakeSystem, state: State) -> None:
    machine.add("sda", wwn="naa.5000")
    [done] = apply([disk(machine)], BFQ, state, "test")
    assert [(file, value) for _, file, value in machine.writes] == [
        ("scheduler", "bfq"), ("nr_requests", "99"), ("nr_requests", "100"), ("iosched/slice_idle", "0"),
    ]  # fmt: skip
    assert done.before.scheduler == "mq-deadline" and done.after.nr_requests == 100 and done.after.tunables["slice_idle"] == "0"
    assert {change.file for change in done.changes} >= {"scheduler", "nr_requests", "iosched/slice_idle"}
    assert all(change.old != change.new for change in done.changes)


def test_what_is_so_already_is_not_written(machine: FakeSystem, state: State) -> None:
    machine.add("sda", scheduler="bfq")
    apply([disk(machine)], Settings("bfq", 64, {"slice_idle": "8"}), state, "test")
    assert [file for _, file, _ in machine.writes] == ["nr_requests", "nr_requests"]
    machine.writes.clear()
    apply([disk(machine)], Settings("bfq", 64, {"slice_idle": "8"}), state, "test")
    assert machine.writes == []


def test_the_rounding_of_ticks_is_no_difference(machine: FakeSystem, state: State) -> None:
    machine.add("sda")
    [done] = apply([disk(machine)], Settings("mq-deadline", 64, {"read_expire": "777"}), state, "test")
    assert done.after.tunables["read_expire"] == "780"
    saved = state.of(disk(machine))
    assert saved and saved.found == done.after.beside(Settings("")) and overridden(saved, done.after) == ""


@pytest.mark.parametrize(("file", "value"), [("iosched/fifo_batch", "17"), ("iosched/read_expire", "520"), ("nr_requests", "9")])
def test_what_reads_back_as_another_is_a_problem(
    machine: FakeSystem, state: State, monkeypatch: pytest.MonkeyPatch, file: str, value: str
) -> None:
    """Then everything is as before, and nothing stays saved."""
    queue = machine.add("sda", scheduler="bfq") / "queue"
    before = machine.everything("sda")
    honest = machine.set

    def kernel(name: str, where: str, what: str) -> None:
        honest(name, where, what)
        if where == "scheduler" and what == "mq-deadline":
            (queue / "iosched/async_depth").write_text("1\n")
        if where == file and machine.current("sda") == "mq-deadline":
            (queue / file).write_text(f"{value}\n")

    monkeypatch.setattr(machine, "set", kernel)
    wanted = Settings(
        "mq-deadline", 80, {"fifo_batch": "18", "read_expire": "500"} if file != "iosched/read_expire" else {"read_expire": "504"}
    )
    with pytest.raises(Problem, match=rf"{file}: reads back as '{value}'"):
        apply([disk(machine)], wanted, state, "test")
    assert machine.everything("sda") == before and state.all() == []


def test_revert_restores_exactly_what_was(machine: FakeSystem, state: State) -> None:
    machine.add("sda", wwn="naa.5000")
    machine.set("sda", "iosched/read_expire", "100")
    machine.set("sda", "nr_requests", "77")
    before = machine.everything("sda")
    apply([disk(machine)], BFQ, state, "first")
    apply([disk(machine)], Settings("kyber"), state, "second")
    assert machine.current("sda") == "kyber"
    saved, _ = revert(disk(machine), state)
    assert machine.everything("sda") == before
    assert (saved.by, saved.before.scheduler) == ("second", "mq-deadline")
    assert [entry.new for entry in state.history()] == ["bfq", "kyber"] and state.all() == []
    with pytest.raises(Problem, match="sda: nothing to restore"):
        revert(disk(machine), state)


def test_a_refused_leg_restores_the_others(machine: FakeSystem, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sda", "sdb", "sdc"):
        machine.add(name)
    before = {name: machine.everything(name) for name in ("sda", "sdb", "sdc")}
    honest = machine.set

    def kernel(name: str, file: str, value: str) -> None:
        if name == "sdb" and value == "bfq":
            raise OSError(22, "Invalid argument")
        honest(name, file, value)

    monkeypatch.setattr(machine, "set", kernel)
    with pytest.raises(Problem, match=r"sdb/queue/scheduler: 'bfq' is refused: Invalid argument"):
        apply([disk(machine, name) for name in before], BFQ, state, "test")
    assert {name: machine.everything(name) for name in before} == before
    assert state.all() == [] and not any(name == "sdc" for name, _, _ in machine.writes)


def test_nothing_is_written_where_nothing_can_be_saved(machine: FakeSystem, tmp_path: Path) -> None:
    machine.add("sda")
    (tmp_path / "file").touch()
    with pytest.raises(Problem, match="nothing is changed that could not be restored"):
        apply([disk(machine)], BFQ, State(tmp_path / "file" / "state", boot="this"), "test")
    assert machine.writes == []


def test_zoned_devices_are_refused(machine: FakeSystem, state: State) -> None:
    machine.add("sda", zoned="host-managed")
    with pytest.raises(Problem, match=r"sda: is zoned \(host-managed\)"):
        apply([disk(machine)], BFQ, state, "test")
    assert machine.writes == [] and state.all() == []


def test_a_disk_that_took_the_name_is_another(machine: FakeSystem, state: State) -> None:
    """Held by its folder, known by diskseq; and what is saved of one without identity is not put into the other."""
    folder = machine.add("sda")
    first = disk(machine)
    apply([first], BFQ, state, "test")
    machine.writes.clear()
    with opened(first) as queue:
        machine.remove("sda")
        machine.add("sda")
        with pytest.raises(Problem, match="No such file"):
            queue.get("scheduler")
    with pytest.raises(Problem, match="not the disk any more"), opened(first):
        pass
    with pytest.raises(Problem, match="nothing to restore"):
        revert(disk(machine), state)
    assert machine.writes == [] and folder.exists()


def test_a_disk_with_an_identity_keeps_its_state_under_another_name(machine: FakeSystem, state: State) -> None:
    machine.add("sda", wwn="naa.5000")
    apply([disk(machine)], BFQ, state, "test")
    machine.remove("sda")
    machine.add("sdq", wwn="naa.5000", scheduler="bfq")
    revert(disk(machine, "sdq"), State(state.folder, boot="after"))
    assert machine.current("sdq") == "mq-deadline" and state.all() == []


def test_states_are_by_name(machine: FakeSystem, state: State) -> None:
    for name, wwn in (("sdb", "naa.1"), ("sda", "naa.2")):
        machine.add(name, wwn=wwn)
        apply([disk(machine, name)], BFQ, state, "test")
    assert [saved.name for saved in state.all()] == ["sda", "sdb"]


def test_a_name_alone_is_of_one_boot(machine: FakeSystem, state: State) -> None:
    machine.add("sda")
    apply([disk(machine)], BFQ, state, "test")
    assert state.of(disk(machine)) and State(state.folder, boot="after").of(disk(machine)) is None


def test_who_set_it_otherwise_is_seen(machine: FakeSystem, state: State) -> None:
    machine.add("sda")
    apply([disk(machine)], BFQ, state, "test")
    machine.set("sda", "iosched/slice_idle", "3")
    with opened(disk(machine)) as queue:
        saved, found = state.of(disk(machine)), queue.read()
    assert saved and overridden(saved, found) == "iosched/slice_idle"
    # A change that was cut short is headwaiter's own.
    cut = replace(saved, found=None)
    assert overridden(cut, replace(found, scheduler="mq-deadline")) == "", "it may not have begun"
    assert overridden(cut, found) == "" and overridden(cut, replace(found, scheduler="kyber")) == "scheduler"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"schema": "headwaiter-state/2"}', '{"schema": "headwaiter-state/1", "before": 3}']
)
def test_a_damaged_state_is_a_problem(machine: FakeSystem, state: State, text: str) -> None:
    machine.add("sda")
    state.path(disk(machine).identity).write_text(text)
    with pytest.raises(Problem, match="state"):
        revert(disk(machine), state)
    assert machine.writes == []


def test_a_line_of_history_that_was_cut_short(machine: FakeSystem, state: State) -> None:
    machine.add("sda")
    apply([disk(machine)], BFQ, state, "a")
    history = state.folder / "history.jsonl"
    history.write_bytes(history.read_bytes()[:-20])
    apply([disk(machine)], Settings("none"), state, "b")
    assert [entry.by for entry in state.history()] == ["b"]
    assert json.loads(history.read_text().splitlines()[-1])["old"] == "bfq"


def test_lines_for_a_shell(machine: FakeSystem) -> None:
    machine.add("sda")
    assert commands(disk(machine).folder, Settings("bfq", 100, {"a": "1", "b": "x y"})) == [
        f"echo bfq >{machine.sysfs}/block/sda/queue/scheduler",
        f"echo 100 >{machine.sysfs}/block/sda/queue/nr_requests",
        f"echo 1 >{machine.sysfs}/block/sda/queue/iosched/a",
        f"echo 'x y' >{machine.sysfs}/block/sda/queue/iosched/b",
    ]


def test_a_device_without_a_scheduler(machine: FakeSystem, state: State) -> None:
    machine.add("sda")
    shutil.rmtree(machine.sysfs / "block/sda/queue")
    machine.stack("md0", "sda")
    with pytest.raises(Problem, match="md0: no scheduler acts on this device"):
        apply([disk(machine, "md0")], BFQ, state, "test")
