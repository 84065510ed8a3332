# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter apply: what it writes, what it refuses, and that revert undoes it."""

from __future__ import annotations

import json

import pytest
from command import good, run, told
from fakesys import FakeSystem, machine

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
