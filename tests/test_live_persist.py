# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A scheduler of a module, kept across reboots: the rule, the module, a kernel that has none, and nothing left afterwards."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest
from command import good, run, told, write
from fakesys import FakeSystem, machine

from headwaiter.base.errors import Problem
from headwaiter.queue import persist
from headwaiter.queue.loading import absence, fits, load, patterns

__all__ = ["machine"]
RELEASE = platform.release()


def with_alias(system: FakeSystem, alias: str = "hw-*") -> Path:
    """A kernel with the module of headwaiter-dkms, whose alias is for all its schedulers."""
    folder = system.root / "lib/modules" / RELEASE
    folder.mkdir(parents=True)
    return write(folder / "modules.alias", f"alias {alias}-iosched headwaiter_iosched\n")


def rules(system: FakeSystem) -> str:
    path = persist.file_of(system.root)
    return path.read_text() if path.exists() else ""


def test_one_alias_stands_for_all_of_ours(machine: FakeSystem) -> None:
    with_alias(machine)
    found = patterns(machine.root)
    assert fits("hw-maitre", found) and fits("hw-as", found) and not fits("bfq", found)


def test_it_lasts_until_revert(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    with_alias(machine)
    machine.add("sda", wwn="naa.5000")
    machine.add("sdb", wwn="naa.6000")
    root = ("--root", machine.root)
    before = machine.everything("sda")
    assert "as it was" in good(capfd, "apply", "sdb", "mq-deadline", "--persist", *root)
    out = good(capfd, "apply", "sda", "as:antic_expire=8", "--persist", *root)
    assert f"At each boot, too: {persist.file_of(machine.root)}\n" in out
    text = rules(machine)
    assert text.count("\n") == 5 and 'ATTR{wwid}=="naa.5000"' in text and 'queue/scheduler}="hw-as"' in text
    assert 'ATTR{queue/iosched/antic_expire}="8"' in text
    assert "by headwaiter apply, and again at each boot; in force" in good(capfd, "status", *root)
    good(capfd, "apply", "sda", "as", "--persist", *root)  # another choice takes the rule's place
    assert rules(machine).count("naa.5000") == 1 and "antic_expire" not in rules(machine)
    document = told(capfd, "revert", "sda", *root)
    assert document["rules"] == ["sda"] and machine.everything("sda") == before
    assert "naa.5000" not in rules(machine) and "# sda" not in rules(machine) and "naa.6000" in rules(machine)
    assert "the rule in" in good(capfd, "revert", "sdb", *root)
    assert not persist.file_of(machine.root).exists()


def test_a_rule_of_somebody_else_in_the_file_stays(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    mine = '# mine\nKERNEL=="sdz", ATTR{queue/scheduler}="bfq"\n'
    write(persist.file_of(machine.root), mine)
    machine.add("sda", wwn="naa.5000")
    good(capfd, "apply", "sda", "kyber", "--persist", "--root", machine.root)
    assert mine in rules(machine) and "naa.5000" in rules(machine)
    good(capfd, "revert", "sda", "--root", machine.root)
    assert mine in rules(machine) and "naa.5000" not in rules(machine)


def test_a_rule_written_when_udev_knew_less_is_the_disks_even_so(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda", wwn="naa.5000")
    good(capfd, "apply", "sda", "kyber", "--persist", "--root", machine.root)
    write(machine.root / "run/udev/data/b8:16", "E:ID_SERIAL_SHORT=XY\n")
    good(capfd, "apply", "sda", "kyber", "--persist", "--root", machine.root)
    assert 'ENV{ID_SERIAL_SHORT}=="XY"' in rules(machine) and "naa.5000" not in rules(machine)


def test_a_disk_without_an_identity_is_refused_before_anything_is_done(
    machine: FakeSystem, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.add("sda")
    status, out, err = run(capfd, "apply", "sda", "kyber", "--persist", "--root", machine.root)
    assert (status, out) == (2, "") and "sda: has no WWN and no serial" in err
    assert not machine.writes and rules(machine) == ""


def test_a_file_that_cannot_be_written_is_told_before_anything_is_done(
    machine: FakeSystem, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.add("sda", wwn="naa.5000")
    write(persist.file_of(machine.root), "").chmod(0o444)
    status, out, err = run(capfd, "apply", "sda", "kyber", "--persist", "--root", machine.root)
    assert (status, out) == (2, "") and "99-headwaiter.rules: Permission denied" in err and not machine.writes


def test_a_kernel_without_the_module_keeps_its_own_and_status_says_why(
    machine: FakeSystem, capfd: pytest.CaptureFixture[str]
) -> None:
    alias = with_alias(machine)
    machine.add("sda", wwn="naa.5000")
    root = ("--root", machine.root)
    good(capfd, "apply", "sda", "as", "--persist", *root)
    # The next boot, of another kernel: the rule is refused.
    alias.unlink()
    machine.set("sda", "scheduler", "mq-deadline")
    said = " ".join(good(capfd, "status", *root).split())
    assert f"kernel {RELEASE} has no scheduler hw-as: apt install headwaiter-dkms linux-headers-{RELEASE}" in said
    assert "mq-deadline now, the kernel's own" in said and "somebody else" not in said
    [disk] = told(capfd, "status", *root)["disks"]
    assert disk["persistent"] and disk["overridden"] == "" and disk["unavailable"].startswith("kernel ")
    # One for which the module is built again: what is there now, somebody has set.
    write(alias, "alias hw-*-iosched headwaiter_iosched\n")
    assert "somebody else has set scheduler since: mq-deadline now" in good(capfd, "status", *root)


@pytest.mark.parametrize("name", ["maitre", "hw-maitre"])
def test_what_to_install_is_named(name: str, machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda", wwn="naa.5000")
    status, out, err = run(capfd, "apply", "sda", name, "--persist", "--root", machine.root)
    assert (status, out) == (2, "") and len(err.splitlines()) == 1
    assert f"sda: kernel {RELEASE} has no scheduler hw-maitre: apt install headwaiter-dkms linux-headers-{RELEASE}" in err
    assert not machine.writes


def test_where_dkms_has_not_built_it_the_reason_is_named(tmp_path: Path) -> None:
    assert absence("kyber", tmp_path, "6.1") == "kernel 6.1 has no scheduler kyber"
    (tmp_path / "usr/src/headwaiter-1.0").mkdir(parents=True)
    write(tmp_path / "usr/src/headwaiter-1.0/dkms.conf", "")
    assert absence("hw-as", tmp_path, "6.1").endswith("needs its headers to build it: apt install linux-headers-6.1")
    (tmp_path / "lib/modules/6.1/build").mkdir(parents=True)
    assert "headwaiter-dkms could not build it: /var/lib/dkms/headwaiter has the log" in absence("hw-as", tmp_path, "6.1")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("modprobe: ERROR: could not insert 'x': Key was rejected by service", "with Secure Boot, enrol DKMS's key first"),
        ("modprobe: FATAL: Module x not found", "hw-as: FATAL: Module x not found"),
        ("", "modprobe fails with status 1"),
    ],
)
def test_modprobe_says_why(said: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module").mkdir()
    program = write(tmp_path / "modprobe", f'#!/bin/sh\necho "$*" >{tmp_path}/asked\necho "{said}" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(Problem) as problem:
        load("hw-as", tmp_path)
    assert told in str(problem.value) and len(str(problem.value).splitlines()) == 1
    assert (tmp_path / "asked").read_text() == "hw-as-iosched\n"


def test_the_initramfs_is_made_anew_when_a_rule_of_ours_changes(
    machine: FakeSystem, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the hook is; for schedulers of modules only."""
    made: list[str] = []
    monkeypatch.setattr(persist, "_renew_initramfs", lambda: made.append("once"))
    monkeypatch.setattr(persist, "HOOK", write(machine.root / "hook", ""))
    monkeypatch.setattr(persist, "ROOT", machine.root)
    with_alias(machine)
    machine.add("sda", wwn="naa.5000")
    root = ("--root", machine.root)
    good(capfd, "apply", "sda", "kyber", "--persist", *root)
    assert made == []
    good(capfd, "apply", "sda", "as", "--persist", *root)
    good(capfd, "apply", "sda", "as", "--persist", *root)  # changes nothing
    assert len(made) == 1
    good(capfd, "revert", "sda", *root)
    assert len(made) == 2
