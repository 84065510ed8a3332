# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter apply: what it writes, what it refuses, and that revert undoes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import good, run, told
from fakesys import FakeSystem, machine

from headwaiter.queue.settings import Settings, commands

__all__ = ["machine"]


def test_it_switches_and_revert_restores(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda", scheduler="none")
    machine.add("sdb")
    before = machine.everything("sda")
    root = ("--root", machine.root)
    out = good(capfd, "apply", "sda", "bfq:low_latency=0:slice_idle=4", "--read-ahead-kb", 4096, "--force", *root)
    assert "sda: scheduler none -> bfq" in out and "read_ahead_kb 128 -> 4096" in out
    assert "To undo: headwaiter revert sda\n" in out
    now = machine.everything("sda")
    assert machine.current("sda") == "bfq" and now["read_ahead_kb"] == "4096\n"
    assert now["iosched/low_latency"] == "0\n" and now["iosched/slice_idle"] == "4\n"
    assert "none -> bfq" in good(capfd, "status", *root)
    assert {name for name, _, _ in machine.writes} == {"sda"}
    assert "sda: as it was" in good(capfd, "apply", "sda", "bfq:low_latency=0:slice_idle=4", "--read-ahead-kb", 4096, *root)
    good(capfd, "revert", "sda", *root)
    assert machine.everything("sda") == before


def test_a_stack_changes_whole_or_not_at_all(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda")
    machine.add("sdb")
    machine.stack("md0", "sda", "sdb")
    document = told(capfd, "apply", "md0", "kyber", "--root", machine.root)
    assert {one["device"] for one in document["changes"]} == {"sda", "sdb"}
    assert document["undo"] == ["headwaiter revert sda sdb"]
    assert any("kyber" in line for line in document["commands"])
    status, _, err = run(capfd, "apply", "md0", "bfq:nonesuch=1", "--root", machine.root, "--force")
    assert status == 2 and "nonesuch" in err
    assert [machine.current(name) for name in ("sda", "sdb")] == ["kyber"] * 2


def test_our_names_stand_for_the_kernels(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    """`compare` says `as`; the kernel has hw-as."""
    machine.add("sda", scheduler="hw-as")
    out = good(capfd, "apply", "sda", "as:antic_expire=8", "--root", machine.root)
    assert "antic_expire 6 -> 8" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sdx", "bfq"], "sdx"),
        (["sda", "bqf"], "did you mean bfq? (bfq, kyber, mq-deadline, none)"),
        (["sda", "bfq:low_latency"], "expected SCHEDULER:TUNABLE=VALUE"),
        (["sda", "bfq:../scheduler=none"], "expected SCHEDULER:TUNABLE=VALUE"),
        (["sda", "bfq:=1"], "expected SCHEDULER:TUNABLE=VALUE"),
        (["sda", "bfq"], "write-back throttling ends under bfq (wbt_lat_usec is 75000 now): --force applies it nevertheless"),
    ],
)
def test_what_is_refused_changes_nothing(
    words: list[str], said: str, machine: FakeSystem, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.add("sda")
    before = machine.everything("sda")
    status, out, err = run(capfd, "apply", *words, "--root", machine.root)
    assert (status, out) == (2, "") and said in err and len(err.splitlines()) == 1
    assert machine.everything("sda") == before and not machine.writes


def test_force(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda")
    good(capfd, "apply", "sda", "bfq", "--force", "--root", machine.root)
    [disk] = json.loads(good(capfd, "status", "--json", "--root", machine.root))["disks"]
    assert (disk["before"], disk["wanted"], disk["by"]) == ("mq-deadline", "bfq", "headwaiter apply")


def test_bfq_begins_anew_where_weights_were_raised(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    """By way of none, with all that was set by hand as it was; back to low_latency=1, and to 0 again where it is 0, it stays."""
    machine.add("sda", scheduler="bfq")
    by_hand = {"iosched/slice_idle": "4", "iosched/slice_idle_us": "4000", "nr_requests": "100", "wbt_lat_usec": "2000"}
    for file, value in by_hand.items():
        machine.set("sda", file, value)
    before = machine.everything("sda")
    root = ("--root", machine.root)
    for scheduler, switches in (("bfq:low_latency=0", ["none", "bfq"]), ("bfq:low_latency=0:strict_guarantees=1", [])):
        machine.writes.clear()
        assert "scheduler" not in good(capfd, "apply", "sda", scheduler, *root)
        assert [value for _, file, value in machine.writes if file == "scheduler"] == switches
        now = machine.everything("sda")
        assert {file: now[file].strip() for file in by_hand} == by_hand and now["iosched/low_latency"] == "0\n"
    machine.writes.clear()
    good(capfd, "revert", "sda", *root)
    assert machine.everything("sda") == before and not any(file == "scheduler" for _, file, _ in machine.writes)


def test_a_device_takes_all_again(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    """nr_requests that was lowered without a scheduler limits the device under every other, and the file does not say so."""
    machine.add("sda", scheduler="none")
    root = ("--root", machine.root)
    assert "nr_requests 64 -> 4" in good(capfd, "apply", "sda", "none", "--nr-requests", 4, *root)
    machine.writes.clear()
    good(capfd, "apply", "sda", "mq-deadline", *root)
    assert [one[1:] for one in machine.writes][:3] == [("nr_requests", "63"), ("nr_requests", "64"), ("scheduler", "mq-deadline")]
    machine.writes.clear()
    good(capfd, "revert", "sda", *root)
    assert [one[1:] for one in machine.writes] == [("scheduler", "none"), ("nr_requests", "63"), ("nr_requests", "64")]


def test_what_goes_back_is_said_where_the_scheduler_stays(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda", scheduler="none")
    root = ("--root", machine.root)
    good(capfd, "apply", "sda", "none", "--nr-requests", 4, *root)
    assert "sda: nr_requests 4 -> 64 (saved" in good(capfd, "revert", "sda", *root)


def test_lines_for_a_shell_choose_bfq_anew() -> None:
    folder, queue = Path("/sys/block/sda"), "/sys/block/sda/queue"
    before = Settings("bfq", 256, {"low_latency": "1", "slice_idle": "4"}, 0)
    lines = commands(folder, Settings("bfq", None, {"low_latency": "0"}), before)
    assert lines[:2] == [f"echo none >{queue}/scheduler", f"echo bfq >{queue}/scheduler"]
    assert set(lines[2:]) == {f"echo 0 >{queue}/iosched/low_latency", f"echo 4 >{queue}/iosched/slice_idle"}
    assert len(commands(folder, Settings("bfq", None, {"slice_idle": "0"}), before)) == 2
