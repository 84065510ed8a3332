# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tutorials, word for word: every command of them runs, and prints what they show.

Commands with their outputs are made by docs/generate.py, so the documents' own test holds them to what is printed today. Here are
the claims of the text, and the commands that need more than headwaiter.
"""

from __future__ import annotations

import lzma
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
import scenario
from command import run
from fakesys import FakeSystem, machine

from headwaiter.base.paths import WORKLOADS
from headwaiter.queue.devices import Device
from headwaiter.queue.machine import Machine
from headwaiter.recorder.record import FINISHED, RecordingDone, Sofar

__all__ = ["machine"]

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("admin", "engineer", "researcher", "ssd")


def tutorial(name: str) -> str:
    return (ROOT / "docs" / f"tutorial-{name}.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, re.M | re.S)
    return ["".join(line[len(indent) :] for line in body.splitlines(True)) for indent, body in found]


def printed(text: str, command: str) -> list[str]:
    """What a tutorial shows below a command that begins so."""
    [block] = [b for b in blocks(text, "text") if b.startswith(f"$ {command}")]
    return block.splitlines()[1:]


def lines(name: str) -> list[str]:
    """The commands that a tutorial shows without their output, in order."""
    plain = [line.split(" #")[0].strip() for block in blocks(tutorial(name), "sh") for line in block.splitlines()]
    return [line for line in plain if line]


def test_the_researcher_sees_every_output() -> None:
    assert lines("researcher") == []


def on_a_fake_machine(
    names: list[str], machine: FakeSystem, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> dict[str, str]:
    """Run commands as they are printed, one after another in a folder; what each printed.

    The kernel is a folder, and a recording is the bundled one: no test may change, or wait for, the disks of this machine.
    """
    monkeypatch.chdir(folder)
    there = Machine(machine.root)
    bundled = lzma.decompress((WORKLOADS / "nas.blktrace.xz").read_bytes())

    def record(disks: Sequence[Device], seconds: float, output: Path, **_: object) -> RecordingDone:
        output.write_bytes(bundled)
        return RecordingDone("tracefs", FINISHED, Sofar(seconds, 1, 1, 0, 0), ())

    monkeypatch.setattr("headwaiter.cli.record.find", there.find)
    monkeypatch.setattr("headwaiter.cli.record.record_with_line", record)
    printed = {}
    for line in names:
        if line.startswith("headwaiter ") and "calibrate" not in line:
            words, _, target = line.partition(" >")
            parts = shlex.split(words)[1:]
            rooted = parts[0] in ("advise", "apply", "revert", "status")
            status, out, err = run(capfd, *parts, *(["--root", machine.root] if rooted else []))
            assert status == 0, (line, out, err)
            if target:
                Path(target).write_text(out)
            printed[line] = out
        elif not line.startswith("headwaiter "):
            shell = ["bash", "-ec", line.replace("/sys/", f"{machine.sysfs}/")]
            printed[line] = subprocess.run(shell, check=True, capture_output=True, text=True).stdout
    return printed


@pytest.mark.thorough
def test_the_administrator_records_applies_measures_and_reverts(
    machine: FakeSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.add("sdb", wwn="naa.5000")
    before = machine.everything("sdb")
    commands = lines("admin")
    assert [line.split()[1] for line in commands if line.startswith("headwaiter")] == [
        "record", "advise", "apply", "record", "describe", "describe", "status", "apply", "revert", "advise",
    ]  # fmt: skip
    printed = on_a_fake_machine(commands, machine, tmp_path, monkeypatch, capfd)
    assert "[mq-deadline]" in printed["grep . /sys/block/*/queue/scheduler"]
    assert "bfq" in next(out for line, out in printed.items() if line.startswith("headwaiter advise"))
    assert "-> bfq" in printed["headwaiter status"]
    assert "bfq" in (tmp_path / "99-headwaiter.rules").read_text()
    assert machine.everything("sdb") == before, "all is as it was"


@pytest.mark.thorough
def test_the_owner_of_an_ssd_asks_for_advice(
    machine: FakeSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.add("nvme0n1", wwn="eui.0025", scheduler="none")
    on_a_fake_machine(lines("ssd"), machine, tmp_path, monkeypatch, capfd)
    assert not machine.writes


def test_every_layer_above_a_disk_is_named() -> None:
    table = tutorial("admin").partition("| above the disk |")[2].partition("\n\n")[0]
    for word in ("md ", "LVM", "dm-crypt", "multipath", "btrfs", "ZFS", "virtual machine"):
        assert word in table, word


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as `git clone` has them, without what has been built; .venv is this one, on PATH as `activate` puts it."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no clone: git ls-files fails")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    [load] = blocks(tutorial("engineer"), "csv")
    (folder / "load.csv").write_text(load)
    return folder


def in_clone(clone: Path, line: str) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", line], cwd=clone, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout


def test_the_scenario_holds(tmp_path: Path) -> None:
    """The engineer's second step: by the notation of tests/golden."""
    [block] = blocks(tutorial("engineer"), "toml")
    [case] = tomllib.loads(block)["scenario"]
    ran = scenario.run(case, tmp_path)
    assert ran.dispatches == scenario.expand(case["expect"])
    assert ran.waits == [tuple(scenario.ns(end) for end in wait.split("-")) for wait in case["waits"].split()]


def test_the_log_shows_the_wait() -> None:
    """As CSV, the load has A's three blocks, each awaited for a millisecond, and then B."""
    rows = [line.split(",") for line in printed(tutorial("engineer"), "grep")]
    assert [(row[1], row[5]) for row in rows if row[1] == "dispatch"] == [
        ("dispatch", "0"), ("dispatch", "8"), ("dispatch", "16"), ("dispatch", "1000000"),
    ]  # fmt: skip
    begun, ended = ([int(row[0]) for row in rows if row[1] == f"wait_{what}"] for what in ("begin", "end"))
    assert [end - begin for begin, end in zip(begun, ended, strict=True)] == [1_000_000, 1_000_000]


def test_shares_are_those_of_the_paper() -> None:
    text = tutorial("researcher")
    for command, ratio in (("--share 1=2 --positions | grep", 2.0), ("--set anticipate=0", 1.0)):
        [block] = [b for b in blocks(text, "text") if command in b.splitlines()[0]]
        rates = [float(line.split()[4]) for line in block.splitlines()[1:]]
        assert rates[1] / rates[0] == pytest.approx(ratio, rel=0.05)


def test_the_chain_starves_under_as_and_not_under_cas() -> None:
    """The researcher's third step, by the figures that it shows."""
    shown = printed(tutorial("researcher"), "for s in deadline as cas")
    figures = {shown[i].rstrip(":"): shown[i + 1].split() for i in range(0, len(shown), 2)}
    elapsed = {name: float(row[6]) for name, row in figures.items()}
    latency = {name: float(row[7]) for name, row in figures.items()}
    assert set(elapsed) == {"deadline", "as", "cas"}
    for what in (elapsed, latency):
        assert what["as"] > 3 * what["deadline"] and what["cas"] < what["deadline"]


@pytest.mark.thorough
@pytest.mark.needs("gdb")
def test_the_engineers_commands_run_in_a_clone(clone: Path) -> None:
    """The debugger stops in the policy, and the fuzzer finds nothing."""
    build, debug, stop, fuzz = lines("engineer")
    in_clone(clone, build)
    words = stop.removeprefix("(gdb) ")
    batch = f"gdb -batch -ex 'set breakpoint pending on' -ex '{words}' -ex run -ex bt --args"
    assert "gdb --args" in debug and fuzz.split()[0] == "build/debug/tests/c/fuzz_policies"
    out = in_clone(clone, debug.replace("gdb --args", batch))
    assert re.search(r"^#0 +as_dispatch \(.*core/policy/as/", out, re.M), out
    in_clone(clone, fuzz)
