# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""advise, revert and status on a machine in a folder: what they say, and what they leave in its queues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import good, run, write
from fakesys import FakeSystem, machine
from recordings import readers, record

from headwaiter.advice import advice
from headwaiter.advice.advice import elsewhere, identifier
from headwaiter.advice.gate import gate
from headwaiter.advice.offered import loadable
from headwaiter.advice.target import target_of
from headwaiter.drives.profile import find_drive
from headwaiter.engine.schedulers import known
from headwaiter.engine.sim import Drive, Load, Options
from headwaiter.judge.conditions import RunConditions
from headwaiter.queue.losses import losses, uses
from headwaiter.queue.machine import Machine
from headwaiter.queue.others import acting_on, foreign
from headwaiter.queue.settings import Settings
from headwaiter.study.drive_fit import CLOSE, REFUSED, fit
from headwaiter.study.ongoing import Ongoing
from headwaiter.study.trial import Trial, measure_all
from headwaiter.study.variants import Variant, candidates
from headwaiter.study.workload import Reading, replay
from headwaiter.traces import load, part, recording
from headwaiter.traces.recording import RecordedDisk, Recording

__all__ = ["machine"]
DRIVE = ("-d", "barracuda-80g")
STOCK = ["none", "mq-deadline", "kyber", "bfq"]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short list of schedulers: each advice tries all."""
    monkeypatch.setattr(advice, "default_set", lambda: [*STOCK, "as"])
    monkeypatch.setattr(advice, "candidates", list)


@pytest.fixture(scope="session")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four readers, between which a scheduler that does not wait goes back and forth."""
    return record(tmp_path_factory.mktemp("four") / "four.csv", readers(4, 1300, think_ms=4))


@pytest.fixture(scope="session")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A single reader: nothing to put in order."""
    return record(tmp_path_factory.mktemp("one") / "one.csv", readers(1, 2500, think_ms=25))


def with_module(system: FakeSystem, *names: str) -> None:
    """A kernel that could load these schedulers."""
    import platform  # noqa: PLC0415

    folder = system.root / "lib/modules" / platform.release()
    folder.mkdir(parents=True)
    write(folder / "modules.alias", "".join(f"alias {name}-iosched headwaiter_iosched\n" for name in names))


def advised(capfd: pytest.CaptureFixture[str], system: FakeSystem, *words: object) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(good(capfd, "advise", *words, *DRIVE, "--root", system.root, "--json"))
    return document


# --- the gate ---


def test_a_short_recording_cannot_tell(machine: FakeSystem, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    short = record(tmp_path / "short.csv", readers(2, 500))
    found = advised(capfd, machine, short)
    assert not found["gate"]["open"] and len(found["gate"]["reasons"]) == 2 and "answer" not in found
    [advice] = found["advice"]
    seconds = found["gate"]["seconds"]
    assert advice["kind"] == "recording" and f"Record {found['gate']['longer']} times longer" in advice["text"]
    assert found["gate"]["longer"] == max(-(-60 // seconds), 2)
    assert "answer" in advised(capfd, machine, short, "--anyway")


def test_some_events_may_be_lost(four: Path) -> None:
    """One in a thousand: of 2997 requests and those that are missing."""
    trace = part(load(four), 0, 2997)
    assert gate(trace, 1, 3, 60.0).reasons == []
    assert gate(trace, 1, 4, 60.0).reasons == ["4 events were lost, which is more than 0.1%"]
    assert gate(trace, 1, 4, 60.0).longer is None


def test_where_nothing_waits_no_scheduler_helps(machine: FakeSystem, one: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Told after a replay: it would have shown what helps."""
    found = advised(capfd, machine, one)
    assert found["gate"]["contention_percent"] == 0 and found["gate"]["reasons"] == [] and found["answer"]["outcome"] == "idle"
    assert "no scheduler will matter" in found["advice"][0]["text"]
    machine.add("sda")
    out = good(capfd, "advise", one, *DRIVE, "--on", "sda", "--apply", "--root", machine.root)
    assert "Nothing was changed." in out and machine.writes == []


# --- the verdict ---


def test_what_the_kernel_lacks_is_told_apart(machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda")
    found = advised(capfd, machine, four, "--on", "sda")
    assert (found["current"], found["answer"]["outcome"], found["legs"]) == ("mq-deadline", "keep", ["sda"])
    assert [a["kind"] for a in found["advice"]] == ["scheduler", "module"]
    assert found["advice"][0]["apply"] == [] and "This kernel lacks it" in found["advice"][1]["text"]
    assert found["answer"]["module"] == "as" and found["answer"]["module_margin"]["judgement"] == "better"
    assert "With a module" not in found["advice"][0]["text"], "said once"
    assert machine.writes == []


def test_the_best_of_what_the_kernel_lacks_is_named_first(
    machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that waits for a reader, and one that does so for a shorter time than readers think."""
    monkeypatch.setattr(advice, "default_set", lambda: ["noop", *STOCK, "as"])
    machine.add("sda")
    found = advised(capfd, machine, four, "--on", "sda")
    assert found["advice"][1]["text"].startswith("With a module, as (hw-as in the kernel): programs get")


@pytest.mark.thorough
def test_what_could_be_loaded_is_advised(machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with_module(machine, "hw-as")
    machine.add("sda", wwn="naa.5000")
    machine.set("sda", "nr_requests", "100")
    machine.writes.clear()
    found = advised(capfd, machine, four, "--on", "sda")
    assert found["answer"]["best"] == "as" and "hw-as" in found["offered"] and not found["applied"]
    first = found["advice"][0]
    queue = f"{machine.sysfs}/block/sda/queue"
    assert first["kind"] == "scheduler" and first["apply"][:2] == [
        f"echo hw-as >{queue}/scheduler",
        f"echo 100 >{queue}/nr_requests",
    ]
    assert (
        first["undo"][0] == f"echo mq-deadline >{queue}/scheduler" and f"echo 500 >{queue}/iosched/read_expire" in first["undo"]
    )
    assert machine.writes == [] and not (machine.root / "var/lib/headwaiter/history.jsonl").exists()


def test_apply_status_revert(machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with_module(machine, "hw-as")
    machine.add("sda", wwn="naa.5000")
    machine.add("sdb")
    before = machine.everything("sda")
    out = good(capfd, "advise", four, *DRIVE, "--on", "sda", "--apply", "--root", machine.root)
    assert "Of your kernel's schedulers: as;" in out and "sda: scheduler mq-deadline -> hw-as" in out
    assert machine.current("sda") == "hw-as" and {name for name, _, _ in machine.writes} == {"sda"}
    there = json.loads(good(capfd, "status", "--root", machine.root, "--json"))
    [disk] = there["disks"]
    assert (disk["before"], disk["wanted"], disk["now"], disk["overridden"]) == ("mq-deadline", "hw-as", "hw-as", "")
    assert "mq-deadline -> hw-as" in good(capfd, "status", "--root", machine.root)
    out = good(capfd, "revert", "sda", "--root", machine.root)
    assert "hw-as -> mq-deadline" in out and f"echo mq-deadline >{machine.sysfs}/block/sda/queue/scheduler" in out
    assert machine.everything("sda") == before
    assert "No disk is changed." in good(capfd, "status", "--root", machine.root)
    status, _, err = run(capfd, "revert", "sda", "--root", machine.root)
    assert status == 2 and "nothing to restore" in err


@pytest.mark.thorough
def test_a_recording_of_another_disk_is_not_applied_unasked(
    machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for --force. What is not known of a disk is held against nobody."""
    machine.add("sda", wwn="naa.5000")
    target = target_of(Machine(machine.root), "sda")

    def of(*identities: str) -> Recording:
        disks = tuple(RecordedDisk("sda", "8,0", {"identity": one} if one else {}, {}) for one in identities)
        return Recording("tracefs", "6.12", disks, 0, 60 * 10**9, "finished", 0, ())

    assert elsewhere(target, of("wwn:naa.5000")) == elsewhere(target, of("wwn:naa.1", "wwn:naa.5000")) == ""
    assert elsewhere(target, of("")) == elsewhere(target, None) == elsewhere(None, of("wwn:naa.1")) == ""
    machine.stack("md0", "sda")
    stack = target_of(Machine(machine.root), "md0")
    assert elsewhere(stack, of(stack.device.identity)) == elsewhere(stack, of("wwn:naa.5000")) == "", "the whole or one leg"
    said = "recorded on wwn:naa.1, wwn:naa.2, and sda is wwn:naa.5000"
    assert elsewhere(target, of("wwn:naa.1", "wwn:naa.2")) == said
    with_module(machine, "hw-as")
    monkeypatch.setattr(recording, "of", lambda source: of("wwn:naa.1", "wwn:naa.2"))
    words = ("advise", four, *DRIVE, "--on", "sda", "--apply", "--root", machine.root)
    status, _, err = run(capfd, *words)
    assert status == 2 and said in err and "--force" in err and machine.writes == []
    assert said in good(capfd, *words, "--force") and machine.current("sda") == "hw-as"


@pytest.mark.thorough
def test_status_sees_what_somebody_else_set(machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with_module(machine, "hw-as")
    machine.add("sda")
    good(capfd, "advise", four, *DRIVE, "--on", "sda", "--apply", "--root", machine.root)
    machine.set("sda", "scheduler", "kyber")
    assert "somebody else has set scheduler since: kyber now" in good(capfd, "status", "--root", machine.root)
    machine.remove("sda")
    assert "the disk is not there" in good(capfd, "status", "--root", machine.root)


@pytest.mark.thorough
def test_muted_advice_is_neither_told_nor_applied(machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with_module(machine, "hw-as")
    machine.add("sda", wwn="naa.5000")
    first = advised(capfd, machine, four, "--on", "sda")["advice"][0]["id"]
    assert first == identifier("wwn:naa.5000", "scheduler", "hw-as")
    muted = advised(capfd, machine, four, "--on", "sda", "--mute", first, "--apply")
    assert muted["muted"] == [first] and not muted["applied"] and machine.writes == []
    (machine.root / "etc/headwaiter").mkdir()
    write(machine.root / "etc/headwaiter/muted", f"# known\n\n{first} until the new disk\n")
    assert advised(capfd, machine, four, "--on", "sda")["muted"] == [first]


def test_identifiers_are_of_the_device_and_the_thing_to_do() -> None:
    first = identifier("wwn:a", "scheduler", "bfq")
    assert first == identifier("wwn:a", "scheduler", "bfq") and first.startswith("HW-")
    others = {
        identifier("wwn:b", "scheduler", "bfq"),
        identifier("wwn:a", "module", "bfq"),
        identifier("wwn:a", "scheduler", "none"),
    }
    assert len(others | {first}) == 4


@pytest.mark.thorough
def test_all_legs_of_a_stack(machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with_module(machine, "hw-as")
    for name in ("sda", "sdb", "sdc"):
        machine.add(name)
    machine.stack("md0", "sda", "sdb")
    good(capfd, "advise", four, *DRIVE, "--on", "md0", "--apply", "--root", machine.root)
    assert [machine.current(name) for name in ("sda", "sdb", "sdc")] == ["hw-as", "hw-as", "mq-deadline"]
    good(capfd, "revert", "md0", "--root", machine.root)
    assert [machine.current(name) for name in ("sda", "sdb", "sdc")] == ["mq-deadline"] * 3
    machine.set("sdb", "scheduler", "none")
    status, _, err = run(capfd, "advise", four, *DRIVE, "--on", "md0", "--root", machine.root)
    assert status == 2 and "its legs have different schedulers (sda mq-deadline, sdb none)" in err


def test_the_scheduler_in_force_explains_the_recording(tmp_path: Path) -> None:
    """Under one that waits, latencies are a tenth of those that a drive has that serves first come, first served."""
    trace = load(record(tmp_path / "as.csv", readers(5, 100, sectors=8), "as"))
    drive = find_drive("barracuda-80g")
    wrong, right = fit(trace, drive), fit(trace, drive, "as")
    assert wrong and right and right.off < CLOSE < REFUSED < wrong.off
    names = [advice.scheduler_of(one) for one in (Settings("hw-as"), Settings("adios"), None)]
    assert names == ["as", "noop", "noop"]


def test_what_a_waiting_scheduler_held_back_is_seen(tmp_path: Path) -> None:
    """At recorded times the requests of one program would be served while the scheduler waits for another's."""
    trace = load(record(tmp_path / "slices.csv", readers(5, 400, sectors=128, think_ms=0.5), "cfq-slice"))
    found = fit(trace, find_drive("barracuda-80g"), "cfq-slice")
    assert found and found.off < 1.1


def test_positioning_times_are_those_that_a_kernel_was_told(four: Path) -> None:
    """as-seek waits only if it knows what moving the head costs. The incumbent may have been told; any other has not."""
    trace, drive = load(four), find_drive("barracuda-80g")
    work = replay(four, trace, drive, Reading())
    told = advice._told(Variant("as-seek", "as-seek"), Settings("hw-as-seek", 256, {"positions": drive.positions_text}))
    variants = [told, Variant("as-seek", "as-seek"), Variant("mq-deadline", "mq-deadline")]
    each = RunConditions(goes_on=False).runs(variants, drive, trace)
    knows, not_told, never_waits = (trial.result.elapsed_s for trial in measure_all(each, drive, work.load, runs=0))
    assert 3 * knows < not_told and not_told > 0.8 * never_waits
    for settings in (None, Settings("hw-as-seek", 256, {"positions": ""}), Settings("hw-as", 256, {"positions": "0 0"})):
        assert not advice._told(variants[1], settings).settings


def test_goals(machine: FakeSystem, four: Path, one: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = advised(capfd, machine, four, "--goal", "fairness")
    assert found["goal"] == "fairness" and found["answer"]["outcome"] == "keep"
    status, _, err = run(capfd, "advise", one, *DRIVE, "--goal", "fairness", "--anyway", "--root", machine.root)
    assert status == 2 and "needs several programs at once" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mixed"], "advice needs a recording"),
        (["FOUR", "--apply"], "--apply and --persist need --on DEVICE"),
        (["FOUR", "--on", "sdz"], "sdz: no such disk"),
        (["FOUR", "--on", "zoned"], "zoned: is zoned (host-aware)"),
        (["sda", "--on", "sda"], "--on is for traces, and sda is a device"),
        (["zoned"], "zoned: is zoned (host-aware)"),
        (["/dev/sdz"], "/dev/sdz: no such device"),
        (["sdz"], "sdz: no such file, and no bundled workload of that name, and no disk of this machine"),
    ],
)
def test_problems(
    machine: FakeSystem,
    four: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    with_module(machine, "hw-as")
    machine.add("sda")
    machine.add("zoned", zoned="host-aware")
    monkeypatch.setattr("headwaiter.cli.advise.record_with_line", lambda *given: pytest.fail("it is recorded first"))
    args = [four if word == "FOUR" else word for word in words]
    status, out, err = run(capfd, "advise", *args, *DRIVE, "--root", machine.root)
    assert (status, out, len(err.splitlines())) == (2, "", 1) and message in err and machine.writes == []
    assert list((machine.root / "var/lib/headwaiter").iterdir()) == []


@pytest.mark.thorough
def test_a_wrong_drive_is_not_judged(machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = json.loads(good(capfd, "advise", four, "-d", "sata-ssd", "--queue-depth", "1", "--root", machine.root, "--json"))
    assert found["answer"]["outcome"] == "wrong drive" and found["advice"][0]["kind"] == "recording"


@pytest.mark.thorough
def test_persist_prints_a_rule_by_wwn(
    machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one line, however narrow the terminal is: else it is none. The advice does not go where the rule goes."""
    monkeypatch.setenv("COLUMNS", "40")
    with_module(machine, "hw-as")
    machine.add("sda", wwn="naa.5000")
    words = ("advise", four, *DRIVE, "--on", "sda", "--persist", "--root", machine.root)
    status, out, err = run(capfd, *words)
    assert status == 0 and len(out.splitlines()) == 3 and "To apply:" in err
    assert 'ATTR{wwid}=="naa.5000"' in out and 'ATTR{queue/scheduler}="hw-as"' in out and "sda," not in out.splitlines()[2]
    assert 'ATTR{queue/zoned}=="none"' in out and out.index('scheduler}="hw-as"') < out.index("nr_requests}")
    write(machine.root / "run/udev/data/b8:16", "S:disk/x\nE:ID_WWN=0x5000c500\nE:ID_SERIAL=A_B\n")
    assert 'ENV{ID_WWN}=="0x5000c500"' in run(capfd, *words)[1]
    assert machine.writes == [] and list((machine.root / "etc/udev/rules.d").iterdir()) == []


# --- what the machine says ---


def test_what_a_kernel_could_load(machine: FakeSystem) -> None:
    folder = machine.root / "lib/modules/6.1-x"
    folder.mkdir(parents=True)
    write(folder / "modules.alias", "alias bfq-iosched bfq\nalias pci:v1 nothing\nalias other-iosched x\n")
    write(folder / "modules.dep", "kernel/block/kyber-iosched.ko.xz:\nextra/mq_deadline.ko: a.ko\nkernel/fs/ext4.ko: a.ko\n")
    assert loadable(machine.root, "6.1-x") == {"bfq", "kyber", "mq-deadline"}
    assert loadable(machine.root, "absent") == set()
    assert known(["hw-as", "bfq", "adios"]) == {"hw-as": "as", "bfq": "bfq"}


def test_who_else_sets_schedulers(machine: FakeSystem) -> None:
    root = machine.root
    etc, lib = root / "etc/udev/rules.d", root / "usr/lib/udev/rules.d"
    lib.mkdir(parents=True)
    write(lib / "60-io.rules", 'ACTION=="add|change", KERNEL=="sd[a-z]|vd*", \\\n  ATTR{queue/scheduler}="bfq"\n')
    write(lib / "61-hidden.rules", 'ATTR{queue/scheduler}="none"\n')
    (etc / "61-hidden.rules").symlink_to("/dev/null")
    write(
        etc / "62-add.rules",
        '# ATTR{queue/scheduler}="x"\nACTION=="add", ATTR{queue/scheduler}="kyber"\nATTR{queue/scheduler}=="a"\n',
    )
    write(etc / "99-headwaiter.rules", 'ATTR{queue/scheduler}="hw-as"\n')
    (root / "etc/tuned/mine").mkdir(parents=True)
    (root / "usr/lib/tuned/base").mkdir(parents=True)
    write(root / "etc/tuned/active_profile", "mine\n")
    write(root / "etc/tuned/mine/tuned.conf", "[main]\ninclude=base\n")
    write(root / "usr/lib/tuned/base/tuned.conf", "[disk]\nelevator=mq-deadline\n")
    (root / "etc/systemd/system").mkdir(parents=True)
    write(root / "etc/systemd/system/io.service", '[Service]\nExecStart=sh -c "echo none >/sys/block/sdb/queue/scheduler"\n')
    (root / "etc/tmpfiles.d").mkdir()
    write(root / "etc/tmpfiles.d/io.conf", "w /sys/block/sdc/queue/scheduler - - - - bfq\n")
    for name in ("sda", "sdb"):
        machine.add(name)
    found = foreign(root, [Machine(root).find(name) for name in ("sda", "sdb")])
    assert [(one.kind, one.line, one.scheduler, one.disks) for one in found] == [
        ("udev", 1, "bfq", "sd[a-z]|vd*"),
        ("udev", 2, "kyber", ""),
        ("tuned", 2, "mq-deadline", ""),
        ("unit", 2, "none", "sdb"),
        ("tmpfiles", 1, "bfq", "sdc"),
    ]
    assert [("each event" in one.when, "added" in one.when) for one in found[:2]] == [(True, False), (False, True)]
    assert [one.scheduler for one in acting_on(found, "sda")] == ["bfq", "kyber", "mq-deadline"]
    assert [one.scheduler for one in acting_on(found, "sdb")] == ["bfq", "kyber", "mq-deadline", "none"]


@pytest.mark.thorough
def test_who_would_undo_it_is_named_with_the_advice(machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with_module(machine, "hw-as")
    machine.add("sda")
    write(
        machine.root / "etc/udev/rules.d/60-io.rules",
        'KERNEL=="sd*", ATTR{queue/scheduler}="mq-deadline"\nATTR{queue/scheduler}="hw-as"\n',
    )
    found = advised(capfd, machine, four, "--on", "sda")
    [rule] = [one for one in found["advice"] if one["kind"] == "foreign"]
    assert "60-io.rules:1 sets mq-deadline on each event" in rule["text"]


def test_what_would_stop_working(machine: FakeSystem) -> None:
    """bfq's weights and classes; ionice where it is ignored; write-back throttling under bfq."""
    group = machine.root / "sys/fs/cgroup/a.slice"
    group.mkdir(parents=True)
    write(group / "io.bfq.weight", "default 100\n8:16 300\n")
    write(group.parent / "io.bfq.weight", "default 100\n")
    write(group / "io.prio.class", "idle\n")
    for pid in ("7", "8", "9", "10"):
        (machine.root / "proc" / pid).mkdir()
    priority = {7: 3 << 13, 8: 2 << 13 | 4, 9: 2 << 13 | 7, 10: 0}
    found = uses(machine.root, priority.__getitem__)
    assert (found.priorities, found.weights, found.classes) == (((2, 7), (3, 0)), ("/a.slice",), ("/a.slice",))
    bfq, deadline = Settings("bfq"), Settings("mq-deadline", wbt_lat_usec=75000)
    assert [line.split()[0] for line in losses(found, bfq, "kyber")] == ["ionice:", "kyber", "kyber"]
    assert "1 best-effort, 1 idle" in losses(found, bfq, "none")[0]
    assert [line.split(":")[0] for line in losses(found, bfq, "mq-deadline")] == [
        "ionice",
        "mq-deadline ignores io.bfq.weight of /a.slice",
    ]
    assert losses(found, deadline, "bfq") == ["write-back throttling ends under bfq (wbt_lat_usec is 75000 now)"]
    assert losses(uses(machine.root / "absent", priority.__getitem__), bfq, "none") == []


@pytest.mark.thorough
def test_what_would_stop_working_needs_force(machine: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with_module(machine, "hw-as")
    machine.add("sda", scheduler="bfq")
    group = machine.root / "sys/fs/cgroup/a"
    group.mkdir(parents=True)
    write(group / "io.bfq.weight", "default 500\n")
    words = ("advise", four, *DRIVE, "--on", "sda", "--apply", "--root", machine.root)
    status, _, err = run(capfd, *words)
    assert status == 2 and "io.bfq.weight of /a" in err and "--force" in err and machine.writes == []
    assert "io.bfq.weight of /a" in good(capfd, *words, "--force") and machine.current("sda") == "hw-as"


@pytest.mark.thorough
def test_settings_are_judged_like_schedulers(
    machine: FakeSystem, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Direct readers on a disk with a queue: bfq as it comes does not wait for them, and with low_latency=0 it does."""
    monkeypatch.setattr(advice, "candidates", candidates)
    path = record(tmp_path / "nas.csv", readers(3, 1300, sectors=128), "noop", "wd-re-4tb")
    machine.add("sda", scheduler="bfq")
    found = json.loads(
        good(capfd, "advise", path, "-d", "wd-re-4tb", "--on", "sda", "--anyway", "--root", machine.root, "--json")
    )
    assert found["answer"]["best"] == "bfq:low_latency=0", found["answer"]["text"]
    first = found["advice"][0]
    assert first["kind"] == "tunables" and any(line.startswith("echo 0 >") and "low_latency" in line for line in first["apply"])


def test_programs_go_on_until_the_recording_is_over(four: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the scheduler, they are judged in the same time."""
    drive = find_drive("barracuda-80g")
    seen: list[type[Load]] = []

    def measured(each: Sequence[tuple[Variant, Options]], drive: Drive, load: Load, *more: Any, **others: Any) -> list[Trial]:
        seen.extend(type(load) for _ in each)
        return measure_all(each, drive, load, *more, **others)

    monkeypatch.setattr("headwaiter.judge.judge.measure_all", measured)
    work = replay(four, load(four), drive, Reading())
    found = advice.advise(work, drive, RunConditions(), anyway=True)
    assert found.answer and len(seen) == 5 and set(seen) == {Ongoing}
