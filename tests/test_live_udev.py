# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""udev's rules: which of them are for a disk, as udev(7) reads them, and where that cannot be told."""

from __future__ import annotations

import json

import pytest
from command import good, write
from fakesys import FakeSystem, machine

from headwaiter.advice import advice
from headwaiter.advice.target import target_of
from headwaiter.queue.machine import Machine
from headwaiter.queue.others import foreign
from headwaiter.queue.schema import Foreign
from headwaiter.queue.udev import ACTIONS, Rule, UdevDisk, either, terms

__all__ = ["machine"]
SETS = 'ATTR{queue/scheduler}="bfq"'
ZONED = f'ACTION=="add|change", KERNEL=="sd*[!0-9]", ATTR{{queue/zoned}}=="host-managed", {SETS}'
GUARDED = """SUBSYSTEM!="block", GOTO="end"
ACTION!="add|change", GOTO="end"
ENV{ID_FS_TYPE}!="btrfs", GOTO="end"
ATTR{queue/zoned}=="none", ATTR{queue/scheduler}="bfq"
LABEL="end"
"""


def known(machine: FakeSystem, text: str, name: str = "sda") -> bool | None:
    """Whether some rule of a file is for a disk that sets its scheduler."""
    rules = [Rule(number, terms(line)) for number, line in enumerate(text.splitlines(), 1)]
    disk = UdevDisk(Machine(machine.root).find(name), machine.root)
    found = [disk.acting(rules, action).get(rule.line, False) for action in ACTIONS for rule in rules if rule.scheduler]
    return either(*found)


def stored(machine: FakeSystem, *lines: str) -> None:
    """What udev knows of the first disk."""
    write(machine.root / "run/udev/data/b8:16", "".join(f"{line}\n" for line in lines))


@pytest.fixture
def sda(machine: FakeSystem) -> FakeSystem:
    """A machine with a disk of a vendor, which hangs on a bridge."""
    folder = machine.add("sda", wwn="naa.5000")
    bridge = machine.sysfs / "devices/pci0/host1/1:0:0:0"
    bridge.mkdir(parents=True)
    for above, files in ((bridge, {"vendor": "ACME    ", "model": "Disk"}), (bridge.parent, {"vendor": "Bridge"})):
        for file, text in {"uevent": "", **files}.items():
            write(above / file, f"{text}\n")
    (machine.sysfs / "bus/scsi").mkdir(parents=True)
    (bridge / "subsystem").symlink_to(machine.sysfs / "bus/scsi")
    (folder / "device").symlink_to(bridge)
    return machine


@pytest.mark.parametrize(
    ("match", "answer"),
    [
        ("", True),
        ('KERNEL=="sd*[!0-9]", SUBSYSTEM=="block"', True),
        ('KERNEL=="nvme*|sda"', True),
        ('KERNEL=="nvme*"', False),
        ('KERNEL!="sda"', False),
        ('SUBSYSTEM=="nvme"', False),
        ('ACTION=="add"', True),
        ('ACTION=="remove"', False),
        ('ACTION!="add"', True),
        ('DEVPATH=="*/sda"', True),
        ('ATTR{queue/rotational}=="1"', True),
        ('ATTR{queue/rotational}!="1"', False),
        ('ATTR{queue/absent}=="1"', False),
        ('ATTR{queue/absent}!="1"', False),
        ('ATTR{queue/zoned}=="host-managed"', False),
        ('ATTR{wwid}=="naa.*"', True),
        ('ATTR{wwid}==i"NAA.*"', True),
        ('ATTR{wwid}=="NAA.*"', False),
        ('ATTR{size}=="?*"', True),
        ('ATTR{size}==""', False),
        ('ATTR{$env{X}}=="1"', None),
        ('ATTR{queue/scheduler}=="*bfq*"', True),
        ('ATTR{queue/scheduler}=="*adios*"', False),
        ('ATTR{queue/scheduler}!="none"', True),
        ('ATTR{queue/scheduler}=="*[[]bfq]*"', None),
        ('ATTR{queue/iosched/slice_idle}=="8"', None),
        ('ATTR{queue/nr_requests}=="64"', None),
        ('ATTRS{vendor}=="ACME", ATTRS{model}=="Disk"', True),
        ('ATTRS{vendor}=="Bridge"', True),
        ('ATTRS{vendor}=="Bridge", ATTRS{model}=="Disk"', False),
        ('ATTRS{queue/rotational}=="1"', True),
        ('SUBSYSTEMS=="scsi", ATTRS{model}=="Disk"', True),
        ('SUBSYSTEMS=="usb"', False),
        ('KERNELS=="1:0:0:0"', True),
        ('DRIVERS=="usb-storage"', False),
        ('ENV{DEVTYPE}=="disk"', True),
        ('ENV{DEVTYPE}=="partition"', False),
        ('ENV{ID_BUS}=="usb"', None),
        ('ENV{ID_BUS}=="usb", KERNEL=="sr*"', False),
        ('TAG=="systemd"', None),
        ('TEST=="queue/zoned"', True),
        ('TEST!="queue/zoned"', False),
        ('TEST=="/sys/block/%k/size"', True),
        ('TEST=="/sys/module/bfq"', False),
        ('TEST=="queue/iosched"', None),
        ('PROGRAM=="/bin/is-flash %k"', None),
        ('PROGRAM="/bin/is-flash %k", RESULT=="1"', None),
        ('IMPORT{program}="/bin/ask", KERNEL=="sda"', None),
        ('CONST{virt}=="none"', None),
    ],
)
def test_matches(sda: FakeSystem, match: str, answer: bool | None) -> None:
    """udev does not run on this machine: what it would know of the disk cannot be told."""
    assert known(sda, f"{match}, {SETS}") is answer


@pytest.mark.parametrize(
    ("match", "answer"),
    [
        ('ENV{ID_BUS}=="ata|usb"', True),
        ('ENV{ID_BUS}!="ata"', False),
        ('ENV{ID_ABSENT}==""', True),
        ('ENV{ID_ABSENT}!="1"', True),
        ('ENV{DISK_MEDIA_CHANGE}=="1"', None),
        ('TAG=="systemd"', True),
        ('TAG!="systemd"', False),
        ('TAG=="seat"', False),
    ],
)
def test_what_udev_knows(sda: FakeSystem, match: str, answer: bool | None) -> None:
    stored(sda, "S:disk/x", "E:ID_BUS=ata", "G:systemd")
    assert known(sda, f"{match}, {SETS}") is answer


def test_jumps(sda: FakeSystem) -> None:
    assert known(sda, GUARDED) is None
    stored(sda, "E:ID_FS_TYPE=ext4")
    assert known(sda, GUARDED) is False
    stored(sda, "E:ID_FS_TYPE=btrfs")
    assert known(sda, GUARDED) is True
    assert known(sda, f'KERNEL=="sda", GOTO="here"\n{SETS}\nLABEL="here"\n') is False
    assert known(sda, f'KERNEL=="sdb", GOTO="here"\n{SETS}\nLABEL="here"\n') is True
    assert known(sda, f'PROGRAM=="x", GOTO="here"\nKERNEL=="sda", GOTO="end"\nLABEL="here"\n{SETS}\nLABEL="end"\n') is None
    assert known(sda, f'PROGRAM=="x", GOTO="here"\nKERNEL=="sda", GOTO="end"\n{SETS}\nLABEL="here"\nLABEL="end"\n') is False


def test_properties_that_rules_set(sda: FakeSystem) -> None:
    """By a value of their own, by a program's, or not at all; udev keeps none with a dot."""
    stored(sda, "E:ID_BUS=ata")
    uses = f'ENV{{.MINE}}=="1", {SETS}'
    assert known(sda, f'ENV{{ID_BUS}}=="ata", ENV{{.MINE}}="1"\n{uses}') is True
    assert known(sda, f'ENV{{ID_BUS}}=="usb", ENV{{.MINE}}="1"\n{uses}') is False
    assert known(sda, f'PROGRAM=="x", ENV{{.MINE}}="1"\n{uses}') is None
    assert known(sda, f'ENV{{.MINE}}="$attr{{queue/rotational}}"\n{uses}') is None
    assert known(sda, f'ENV{{X}}="1"\nENV{{X}}=="1", {SETS}') is True


@pytest.mark.parametrize(
    ("line", "scheduler"),
    [
        ('ATTR{queue/scheduler}="bfq"', "bfq"),
        ('ATTR{queue/scheduler}:="none"', "none"),
        ('ATTR{queue/scheduler}="$env{X}"', ""),
        ('ATTR{queue/scheduler}=="bfq"', None),
        ("RUN+=\"/bin/sh -c 'echo kyber >/sys/block/%k/queue/scheduler'\"", "kyber"),
        ("RUN+=\"/bin/sh -c 'mine >/sys/block/%k/queue/scheduler'\"", ""),
        ('RUN+="/bin/true"', None),
    ],
)
def test_what_a_rule_sets(line: str, scheduler: str | None) -> None:
    assert Rule(1, terms(line)).scheduler == scheduler


def found(machine: FakeSystem, *lines: str) -> list[Foreign]:
    write(machine.root / "etc/udev/rules.d/60-x.rules", "".join(f"{line}\n" for line in lines))
    there = Machine(machine.root)
    return foreign(machine.root, [there.find(path.name) for path in sorted((machine.sysfs / "block").iterdir())])


def test_a_rule_for_zoned_disks_is_for_no_other(machine: FakeSystem) -> None:
    """As btrfs-progs and others ship one."""
    machine.add("sda")
    machine.add("sdb", zoned="host-managed")
    first, second, third = found(machine, ZONED, f'PROGRAM=="x", {SETS}', f'ACTION=="add", {SETS}')
    assert (first.acts_on, first.may_act_on, first.conditions) == (["sdb"], [], ['ATTR{queue/zoned}=="host-managed"'])
    assert (second.acts_on, second.may_act_on) == ([], ["sda", "sdb"])
    assert third.acts_on == ["sda", "sdb"]
    assert ["each event" in one.when for one in (first, second, third)] == [True, True, False]
    [guarded] = found(machine, 'ACTION!="add", GOTO="end"', SETS, 'LABEL="end"')
    assert guarded.when == "when the disk is added"


def test_status_tells_which_disks_a_rule_is_for(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda")
    path = write(machine.root / "etc/udev/rules.d/60-x.rules", f'{ZONED}\nPROGRAM=="x", {SETS}\n')
    said = " ".join(good(capfd, "status", "--root", machine.root).split())  # a long path makes a line wrap
    event = "on each event of the disk, such as a program closing it after writing"
    assert said.endswith(
        f'{path}:1 (udev) sets bfq of sd*[!0-9] {event} if ATTR{{queue/zoned}}=="host-managed": acts on no disk that is here'
        f' {path}:2 (udev) sets bfq {event} if PROGRAM=="x": may act on sda'
    )
    [first, second] = json.loads(good(capfd, "status", "--root", machine.root, "--json"))["foreign"]
    assert (first["acts_on"], first["may_act_on"], second["may_act_on"]) == ([], [], ["sda"])


def test_what_would_undo_advice_and_what_may(machine: FakeSystem) -> None:
    machine.add("sda")
    path = machine.root / "etc/udev/rules.d/60-x.rules"
    here = 'ATTR{queue/scheduler}="kyber"'
    write(path, f'ATTR{{queue/zoned}}=="host-managed", {here}\nPROGRAM=="x", {here}\nKERNEL=="sda", {here}\n')
    target = target_of(Machine(machine.root), "sda")
    said = [advice._back(one, target) for one in advice._foreign(target, "bfq")]
    event = "sets kyber on each event of the disk, such as a program closing it after writing"
    assert said == [
        f'{path}:2 {event}, and may undo this: whether it is for sda cannot be told from here (PROGRAM=="x").',
        f"{path}:3 {event}, and would undo this.",
    ]
