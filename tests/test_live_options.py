# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands for live disks: what is given on their command line reaches what they do, and what they have found is told."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from command import good, run, told, write
from fakesys import FakeSystem, machine
from ringpages import archive, document, end, entry, event, files, page
from test_live_watch import QUIET, Scripted, ahead, service

from headwaiter.advice.target import target_of
from headwaiter.base.errors import Problem
from headwaiter.engine.sim import Drive, Options
from headwaiter.judge.conditions import RunConditions
from headwaiter.papers.rank import RankedLoad, RankedPoint
from headwaiter.papers.table import MeasuredCell, Work
from headwaiter.queue import devices
from headwaiter.queue.apply import apply
from headwaiter.queue.devices import Device
from headwaiter.queue.machine import Machine
from headwaiter.queue.persist import rules
from headwaiter.queue.settings import Settings
from headwaiter.recorder.record import RecordingDone, Sofar, with_issues
from headwaiter.study.workload import Workload
from headwaiter.traces import load
from headwaiter.watch.decide import Caution
from headwaiter.watch.prometheus import Metrics
from headwaiter.watch.sample import measured
from headwaiter.watch.service import Rules

__all__ = ["machine"]
BOTH = ("-s", "none,bfq")


# --- watch ---


def watched(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """What a watch would go by, which does not begin."""
    seen: dict[str, Any] = {}

    class Service:
        def __init__(self, there: Machine, names: Sequence[str], method: Any, rules: Rules, *more: Any) -> None:
            seen.update(machine=there, names=names, method=method, rules=rules)

        def run(self, rounds: int | None) -> None:
            seen["rounds"] = rounds

    monkeypatch.setattr("headwaiter.cli.watch.Service", Service)
    good(capfd, "watch", *words)
    return seen


def test_watch_goes_by_its_options(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    how = ("--sample", "5", "--every", "50", "--apply", "--resume", "--on-exit", "restore")
    care = ("--margin", "20", "--windows", "7", "--confirm", "4", "--dwell", "9", "--changes", "2", "--rounds", "11")
    seen = watched(monkeypatch, capfd, "sda", "sdb", *how, *care, "--root", tmp_path, "--state", tmp_path / "state")
    assert seen["rules"] == Rules(5.0, 50.0, True, True, "restore", Caution(0.2, 7, 4, 9, 2))
    assert (seen["names"], seen["rounds"]) == (("sda", "sdb"), 11)
    assert seen["machine"].sysfs == tmp_path / "sys" and seen["machine"].state.folder == tmp_path / "state"


def test_watch_by_default(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """One window begins when the one before is over, at the earliest."""
    seen = watched(monkeypatch, capfd, "sda", "--sample", "80")
    assert seen["rules"] == Rules(80.0, 80.0) and seen["rounds"] is None
    assert seen["machine"] == Machine()


def test_metrics_have_all_digits() -> None:
    """A time of 1970's clock in seconds has ten before the point."""
    metrics = Metrics()
    metrics.set("headwaiter_last_decision_timestamp_seconds", 1_700_000_123.5, device="sda")
    assert metrics.text().splitlines()[-1] == 'headwaiter_last_decision_timestamp_seconds{device="sda"} 1700000123.5'


def test_metrics_of_a_window(machine: FakeSystem) -> None:
    """Losses of two windows are summed, and all else is that of the later one."""
    machine.add("sda")
    windows = [ahead(1.4, window=replace(QUIET, lost=lost, contention=0.25 * lost)) for lost in (3, 2)]
    watching, _ = service(machine, Scripted(windows))
    watching.run()
    told = dict(line.rsplit(" ", 1) for line in watching.metrics.text().splitlines() if not line.startswith("#"))
    disk = '{device="sda"}'
    assert float(told[f"headwaiter_predicted_gain_ratio{disk}"]) == pytest.approx(1 - 1 / 2.4)
    assert told[f"headwaiter_events_lost_total{disk}"] == "5" and told[f"headwaiter_contention_ratio{disk}"] == "0.5"
    assert told[f"headwaiter_device_present{disk}"] == "1"
    counts = [told[f'headwaiter_decisions_total{{device="sda",result="{result}"}}'] for result in ("kept", "changed")]
    assert counts == ["1", "1"] and "headwaiter_changes_total" not in str(told), "only reported"


def test_latency_is_of_reads_where_there_are_any(tmp_path: Path) -> None:
    """Reads of 2 and 4 ms, a write of 60, and a read that does not end, within 8 s of which two are recorded."""
    text = "time_s,task,op,sync,sector,sectors,complete_s\n0,1,R,1,0,8,0.002\n0.01,1,R,1,64,24,0.014\n"
    trace = load(write(tmp_path / "t.csv", f"{text}0.02,2,W,0,800,32,0.08\n0.1,1,R,1,16,8,\n"))
    seen = measured(trace, 8.0, 7)
    assert (seen.requests, seen.latency_ms, seen.read_share, seen.lost, seen.seconds) == (4, 3.0, 0.75, 7, 8.0)
    assert (seen.request_bytes, seen.mbps) == (72 * 512 / 4, 72 * 512 / 8e6)
    writes = load(write(tmp_path / "w.csv", f"{text.splitlines()[0]}\n0.02,2,W,0,800,32,0.08\n"))
    assert measured(writes, 1.0, 0).latency_ms == 60.0


# --- rank and table ---


def test_rank_of_a_drive_goes_by_its_options(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def measured(drive: Any, variants: Any, sizes: Any, load: RankedLoad, how: Any, runs: int, update: Any) -> list[RankedPoint]:
        assert how == RunConditions()
        seen.append((drive.name, [v.name for v in variants], tuple(sizes), load, runs))
        return [RankedPoint(v.name, size, 5.0, 4.0, 6.0) for v in variants for size in sizes]

    monkeypatch.setattr("headwaiter.cli.rank.of_drive", measured)
    how = ("--pattern", "random", "--processes", "7", "-t", "1.5", "--runs", "6")
    found = told(capfd, "rank", "cheetah-15k", *BOTH, "--sizes", "4k,8k", *how)
    assert (found["subject"], found["pattern"], found["processes"]) == ("cheetah-15k", "random", 7)
    row = found["results"][-1]
    assert (row["throughput_MBps"], row["low_MBps"], row["high_MBps"]) == (5.0, 4.0, 6.0)
    good(capfd, "rank", "cheetah-15k", *BOTH)
    # Of six runs five are changed a little; of four, three.
    assert seen[0] == ("cheetah-15k", ["none", "bfq"], (4096, 8192), RankedLoad("random", 7, 1.5), 5)
    assert seen[1] == ("cheetah-15k", ["none", "bfq"], tuple(4096 << i for i in range(9)), RankedLoad("mixed", 4, 3.0), 3)


def test_rank_of_a_disk_goes_by_its_options(
    machine: FakeSystem, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.add("sda", wwn="naa.5000")
    seen: list[Any] = []

    def measured(
        device: Any, legs: Any, node: Path, chosen: Any, sizes: Any, load: RankedLoad, state: Any, runs: int
    ) -> list[RankedPoint]:
        seen.append((device.name, [leg.name for leg in legs], node, list(chosen), tuple(sizes), load, state.folder, runs))
        return [RankedPoint(name, size, 5.0, 4.0, 6.0) for name in chosen for size in sizes]

    monkeypatch.setattr("headwaiter.cli.rank.of_device", measured)
    where = ("--root", machine.root, "--state", machine.root / "s")
    how = ("--pattern", "sequential", "--processes", "7", "-t", "0.5", "--runs", "6")
    status, out, err = run(capfd, "rank", "sda", *BOTH, "--sizes", "8k", *how, *where, "--json")
    assert (status, err) == (0, "sda: 6 s of reading\n") and json.loads(out)["subject"] == "wwn:naa.5000"
    node, load = machine.root / "dev" / "sda", RankedLoad("sequential", 7, 0.5)
    assert seen == [("sda", ["sda"], node, ["none", "bfq"], (8192,), load, machine.root / "s", 6)]
    status, _, err = run(capfd, "rank", "sda", "--sizes", "8k", *where)
    assert err == "sda: 36 s of reading\n" and (seen[1][3], seen[1][-1]) == (["none", "mq-deadline", "kyber", "bfq"], 3)


def test_table_of_a_drive_goes_by_its_options(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def measured(drive: Any, variants: Any, wanted: Any, work: Work, how: Any, runs: int, update: Any) -> list[MeasuredCell]:
        assert how == RunConditions()
        seen.append((drive.name, [v.name for v in variants], {(c.file_kib, c.record_kib) for c in wanted}, work, runs))
        return [
            MeasuredCell(cell, RankedPoint(v.name, cell.record_kib << 10, 5.0, 4.0, 6.0)) for cell in wanted for v in variants
        ]

    monkeypatch.setattr("headwaiter.cli.table.of_drive", measured)
    how = ("--processes", "7", "--buffered", "-t", "1.5", "--runs", "6")
    found = told(capfd, "table", "cheetah-15k", *BOTH, "--files", "64k,1m", "--records", "4k", *how)
    assert (found["subject"], found["processes"], found["buffered"]) == ("cheetah-15k", 7, True)
    row = found["results"][-1]
    assert (row["throughput_MBps"], row["low_MBps"], row["high_MBps"]) == (5.0, 4.0, 6.0)
    good(capfd, "table", "cheetah-15k", *BOTH)
    assert seen[0] == ("cheetah-15k", ["none", "bfq"], {(64, 4), (1024, 4)}, Work(7, 1.5, True), 5)
    sizes = {(size, record) for size in (1024, 32 << 10) for record in (8, 64, 512)}
    assert seen[1] == ("cheetah-15k", ["none", "bfq"], sizes, Work(4, 3.0, False), 1)


# --- record and describe ---


@pytest.fixture
def recorded(machine: FakeSystem, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `record` was asked, which says that it has recorded for as long; sda is rotational, sdb is not, sdc holds nothing."""
    for name in ("sda", "sdb", "sdc"):
        folder = machine.add(name, sectors=0 if name == "sdc" else 1 << 20)
        write(folder / "queue" / "rotational", f"{int(name == 'sda')}\n")
    monkeypatch.setattr("headwaiter.cli.record.find", lambda name: Machine(machine.root).find(name))
    monkeypatch.setattr("headwaiter.cli.record.whole_disks", lambda: devices.whole_disks(machine.sysfs))
    seen: list[dict[str, Any]] = []

    def record(disks: Any, seconds: float, output: Path, each_second: Any, **more: Any) -> RecordingDone:
        seen.append({"disks": [disk.name for disk in disks], "seconds": seconds, "output": output, **more})
        lost = len(seen) - 1
        gaps = ({"cpu": 0, "events": lost, "from_ns": 0, "to_ns": 1},) * min(2, lost)
        return RecordingDone("tracefs", "time" if lost < 2 else "sda has gone", Sofar(seconds, 150, 4096, lost, 99), gaps)

    monkeypatch.setattr("headwaiter.cli.record.record", record)
    return seen


def test_record_goes_by_its_options(recorded: list[dict[str, Any]], capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "t.hwr"
    how = ("-t", "7.5", "--no-issues", "--buffer", "128", "--recorder", "blktrace", "--anonymous")
    status, _, err = run(capfd, "record", "sda", "sdb", "sda", *how, "-o", out)
    more = {"seconds": 7.5, "output": out, "issues": False, "buffer_kb": 128, "recorder": "blktrace", "anonymous": True}
    assert status == 0 and recorded == [{"disks": ["sda", "sdb"], **more}]
    assert err == f"{out}: 150 requests in 7.5 s (20/s), recorded by tracefs; no event was lost\n"
    status, _, err = run(capfd, "record", "all", "-o", out)
    assert status == 0 and "60.0 s" in err and "1 events were lost in 1 gaps (a larger --buffer helps)" in err
    more = {"seconds": 60.0, "output": out, "issues": None, "buffer_kb": 8192, "recorder": None, "anonymous": False}
    assert recorded[1] == {"disks": ["sda", "sdb"], **more}, "sdc holds nothing"
    status, _, err = run(capfd, "record", "sda", "-o", out)
    assert status == 2 and "what was recorded is kept, but the recording ended early: sda has gone (150 requests in" in err
    status, _, err = run(capfd, "record", "sdc", "-o", out)
    assert status == 2 and "sdc: holds nothing" in err and len(recorded) == 3


@pytest.mark.parametrize(("words", "issues"), [((), None), (("--issues",), True), (("--no-issues",), False)])
def test_record_passes_on_whether_issues_are_asked_for(
    recorded: list[dict[str, Any]], words: tuple[str, ...], issues: bool | None, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(capfd, "record", "sda", *words, "-o", tmp_path / "t.hwr")
    assert recorded[0]["issues"] is issues


def test_issues_are_recorded_if_any_disk_rotates() -> None:
    disk, flash, unknown = (cast(Device, SimpleNamespace(rotational=kind)) for kind in (True, False, None))
    assert with_issues([flash, disk], None) is True and with_issues([flash, unknown], None) is False
    assert with_issues([flash], True) is True and with_issues([disk], False) is False


def test_a_disk_that_is_described_is_recorded_with_issues(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[Any] = []

    def record(disks: Any, seconds: float, file: Path, **more: Any) -> RecordingDone:
        seen.append((seconds, more))
        write(file, "time_s,task,op,sync,sector,sectors\n0,1,R,1,0,8\n1,1,R,1,8,8\n")
        return RecordingDone("tracefs", "time" if len(seen) == 1 else "it has gone", Sofar(seconds, 2, 8192, 0, 99), ())

    monkeypatch.setattr("headwaiter.cli.describe.disks_named", lambda names: [SimpleNamespace(name=names[0])])
    monkeypatch.setattr("headwaiter.cli.describe.record_with_line", record)
    found = told(capfd, "describe", "sdx", "-t", "3")
    assert (found["trace"], found["whole"]["requests"], seen) == ("sdx", 2, [(3.0, {"issues": True})])
    status, _, err = run(capfd, "describe", "sdx")
    assert status == 2 and "sdx, but the recording ended early: it has gone" in err and seen[1][0] == 10.0


def test_describe_goes_by_its_options(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Tasks of one name with 15 ms between them; two devices, the busier one by default."""
    text = "time_s,task,op,sync,sector,sectors,complete_s,name\n0,1,R,1,0,8,0.001,make\n0.016,2,R,1,64,8,0.017,make\n"
    path = write(tmp_path / "t.csv", text)
    assert [told(capfd, "describe", path, *more)["threads"] for more in ((), ("--group-gap", "14"))] == [1, 2]
    two = write(tmp_path / "t.mqsim", "0 0 8 8 1\n1000 0 16 8 1\n2000 1 8 8 0\n")
    assert [told(capfd, "describe", two, *more)["whole"]["requests"] for more in ((), ("--device", "1"))] == [2, 1]


def test_described_losses(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """If the recorder was killed, nobody knows how many events were lost."""
    pages = {0: [page(1000, *(entry(10, event("block_bio_queue", sector=s, nr_sector=8, rwbs="R", pid=6)) for s in (8, 16)))]}
    whole = files(pages)
    killed = {name: content for name, content in whole.items() if name != "end.json"}
    for content, lost in ((whole, 0), ({**whole, "end.json": document(end(lost=5))}, 5), (killed, None)):
        assert told(capfd, "describe", write(tmp_path / "t.hwr", archive(content))).get("lost") == lost


# --- advise ---


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What advice was asked for; none is given."""
    seen: list[dict[str, Any]] = []

    def advise(work: Workload, drive: Drive, options: Options, **more: Any) -> None:
        target = more.pop("target")
        more.pop("progress")
        how = {"seed": options.seed, "queue_depth": options.queue_depth, "replay": work.replay}
        seen.append({"work": work, "drive": drive.name, "on": target and target.device.name, **how, **more})
        raise Problem("enough")

    monkeypatch.setattr("headwaiter.cli.advise.advise", advise)
    return seen


TWO_READERS = "time_s,task,op,sync,sector,sectors,complete_s\n" + "".join(
    f"{0.01 * i:.3f},{i % 2},R,1,{8 * i + i % 2 * 800},8,{0.01 * i + 0.005:.3f}\n" for i in range(40)
)


def test_advise_goes_by_its_options(
    asked: list[dict[str, Any]], machine: FakeSystem, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    machine.add("sda")
    path = write(tmp_path / "t.csv", TWO_READERS)
    judge = ("--goal", "latency", "--margin", "20", "--anyway", "--mute", "a", "--mute", "b", "--seed", "7")
    how = ("-d", "cheetah-15k", "--queue-depth", "3", "--replay", "open")
    for words in ((*judge, *how, "--on", "sda"), ("-d", "cheetah-15k")):
        assert run(capfd, "advise", path, *words, "--root", machine.root) == (2, "", "headwaiter: enough\n")
    given = {"goal": "latency", "margin": 0.2, "anyway": True, "mute": ("a", "b"), "recorded": None, "seed": 7}
    wanted = {"drive": "cheetah-15k", "on": "sda", "queue_depth": 3, "replay": "open", **given}
    assert {key: asked[0][key] for key in wanted} == wanted
    given = {"goal": "progress", "margin": 0.05, "anyway": False, "mute": (), "recorded": None, "seed": 0}
    wanted = {"drive": "cheetah-15k", "on": None, "queue_depth": 0, "replay": "closed", **given}
    assert {key: asked[1][key] for key in wanted} == wanted


def test_the_choice_of_a_drive_is_noted(
    asked: list[dict[str, Any]], machine: FakeSystem, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(capfd, "advise", write(tmp_path / "t.csv", TWO_READERS), "--root", machine.root)
    [one] = asked
    assert any(one["drive"] in note for note in one["work"].notes)


def test_advice_for_a_device_records_it(
    asked: list[dict[str, Any]], machine: FakeSystem, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """All its legs, as record() does of itself; what ends early is not judged."""
    for name in ("sda", "sdb"):
        machine.add(name)
    machine.stack("md0", "sda", "sdb")
    seen: list[Any] = []
    ends = iter(["time", "time", "sda has gone"])

    def record(legs: Any, seconds: float, path: Path) -> RecordingDone:
        seen.append(([leg.name for leg in legs], seconds))
        write(path, TWO_READERS)
        return RecordingDone("tracefs", next(ends), Sofar(seconds, 40, 4096, 0, 99), ())

    monkeypatch.setattr("headwaiter.cli.advise.record_with_line", record)
    words = ("-d", "cheetah-15k", "--root", machine.root)
    said = [run(capfd, "advise", *more, *words)[2] for more in (("md0", "-t", "3"), ("sdb",), ("sda",))]
    assert seen[:2] == [(["sda", "sdb"], 3.0), (["sdb"], 60.0)] and len(asked) == 2
    assert said[0] == "sda, sdb: recording for 3 s\nheadwaiter: enough\n"
    assert "headwaiter: sda: sda has gone\n" in said[2]


# --- disks and what was changed ---


def test_the_longer_number_is_a_disks_own(machine: FakeSystem) -> None:
    """Two volumes of one array may share the first half."""
    machine.add("sda", wwn="naa.1")
    write(machine.root / "run/udev/data/b8:16", "E:ID_WWN=0x5000\nE:ID_WWN_WITH_EXTENSION=0x5000abcd\n")
    assert Machine(machine.root).find("sda").identity == "wwn:0x5000abcd"
    write(machine.root / "run/udev/data/b8:16", "E:ID_WWN=0x5000\n")
    assert Machine(machine.root).find("sda").identity == "wwn:0x5000"


def test_status_of_a_change_that_was_cut_short(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    """Saved, but not made; and one that was made."""
    for name in ("sda", "sdb"):
        machine.add(name, wwn=f"naa.{name}")
    there = Machine(machine.root)
    for name in ("sda", "sdb"):
        there.state.folder.mkdir(parents=True, exist_ok=True)
        saved = there.state.begin(there.find(name), Settings("mq-deadline"), Settings("bfq"), "advise")
    machine.set("sdb", "scheduler", "bfq")
    there.state.done(saved, Settings("bfq"))
    first, second = (line for line in good(capfd, "status", "--root", machine.root).splitlines() if "(wwn:naa" in line[:20])
    assert first.startswith("sda (wwn:naa.sda): mq-deadline -> bfq, ") and "a change was cut short: mq-deadline now" in first
    assert second.startswith("sdb (wwn:naa.sdb): mq-deadline -> bfq, ") and second.endswith(", by advise; in force")


def test_a_stack_is_offered_what_all_its_legs_are(machine: FakeSystem) -> None:
    for name in ("sda", "sdb"):
        machine.add(name)
    machine.stack("md0", "sda", "sdb")
    write(machine.sysfs / "block" / "sdb" / "queue" / "scheduler", "none [mq-deadline] bfq\n")
    assert target_of(Machine(machine.root), "md0").offered == ("none", "mq-deadline", "bfq")
    assert target_of(Machine(machine.root), "sda").offered == ("none", "mq-deadline", "kyber", "bfq")


def test_what_revert_tells(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    """It tells what each file said and says now; the lines by hand put what was before."""
    for name in ("sda", "sdb"):
        machine.add(name, wwn=f"naa.{name}")
    machine.stack("md0", "sda", "sdb")
    there = Machine(machine.root)
    apply(there.legs(there.find("md0")), Settings("bfq", 100), there.state, "advise")
    queue = machine.sysfs / "block" / "sdb" / "queue"
    text = good(capfd, "revert", "sda", "--root", machine.root)
    assert "sda: bfq -> mq-deadline (saved " in text and " by advise)" in text and "sdb" not in text
    found = told(capfd, "revert", "sdb", "--root", machine.root)
    changes = {change["file"]: (change["device"], change["old"], change["new"]) for change in found["changes"]}
    assert changes["scheduler"] == ("sdb", "bfq", "mq-deadline") and changes["nr_requests"] == ("sdb", "100", "256")
    assert found["commands"][0] == f"echo mq-deadline >{queue}/scheduler"
    assert f"echo 256 >{queue}/nr_requests" in found["commands"]


@pytest.mark.parametrize("failing", ["fsync", "unlink"])
def test_revert_on_a_failing_disk(
    machine: FakeSystem, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """That of the state folder: the settings are restored, of every disk, and a line says what may be left."""
    before = {}
    for name in ("sda", "sdb"):
        machine.add(name)
        before[name] = machine.everything(name)
    there = Machine(machine.root)
    apply([there.find("sda"), there.find("sdb")], Settings("bfq", 100), there.state, "advise")

    def fails(*given: object, **more: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os if failing == "fsync" else Path, failing, fails)
        status, out, err = run(capfd, "revert", "sda", "sdb", "--root", machine.root)
    assert {name: machine.everything(name) for name in before} == before
    assert status == 2 and "sda: bfq -> mq-deadline" in out and "sdb: bfq -> mq-deadline" in out
    [line] = err.splitlines()
    assert line.count("the settings are restored, but what was saved may not be forgotten: ") == 2 and "Input/output" in line
    if failing == "unlink":  # what was saved is still there: the same again does no harm
        good(capfd, "revert", "sda", "sdb", "--root", machine.root)
    assert there.state.all() == [] and {name: machine.everything(name) for name in before} == before


def test_status_tells_each_disk(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda", wwn="naa.1")
    there = Machine(machine.root)
    apply([there.find("sda")], Settings("bfq", 100), there.state, "advise")
    [disk] = told(capfd, "status", "--root", machine.root)["disks"]
    assert (disk["device"], disk["identity"], disk["present"], disk["by"]) == ("sda", "wwn:naa.1", True, "advise")
    assert (disk["before"], disk["wanted"], disk["now"], disk["overridden"]) == ("mq-deadline", "bfq", "bfq", "")
    machine.set("sda", "nr_requests", "99")
    found = told(capfd, "status", "--root", machine.root)
    assert found["disks"][0]["overridden"] == "nr_requests"
    assert [(row["device"], row["old"], row["new"], row["by"]) for row in found["history"]] == [
        ("sda", "mq-deadline", "bfq", "advise")
    ]


def test_a_rule_goes_by_the_longer_number(machine: FakeSystem) -> None:
    """As the identity does."""
    machine.add("sda")
    udev = machine.root / "run" / "udev" / "data"
    write(udev / "b8:16", "E:ID_SERIAL=s\nE:ID_WWN=0x5000\nE:ID_WWN_WITH_EXTENSION=0x5000abcd\n")
    there = Machine(machine.root).find("sda")
    rule = rules([there], Settings("bfq", 100, {"slice_idle": "0"}), udev).splitlines()[-1]
    assert 'ENV{ID_WWN_WITH_EXTENSION}=="0x5000abcd"' in rule and "ID_WWN}" not in rule
    puts = ['ATTR{queue/scheduler}="bfq"', 'ATTR{queue/nr_requests}="100"', 'ATTR{queue/iosched/slice_idle}="0"']
    assert rule.endswith(", ".join(puts))
