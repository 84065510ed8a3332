# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The lab's own parts, and, where QEMU and apt are there, a kernel with our modules in it."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, missing

from headwaiter.errors import Problem
from headwaiter.lab import guest, script
from headwaiter.lab.initramfs import Initramfs
from headwaiter.lab.kernels import SERIES, version_key


def _unpack(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """Entries of a "newc" archive: mode and data by name."""
    out: dict[str, tuple[int, bytes]] = {}
    at = 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = archive[at + 110 : at + 109 + name_size].decode()
        at += (110 + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return out
        out[name] = mode, archive[at : at + size]
        at += (size + 3) // 4 * 4


def test_initramfs_holds_what_was_put_in_and_depends_on_nothing_else() -> None:
    first, second = Initramfs(), Initramfs()
    first.add("/a/b/c", b"12345", executable=True)
    first.add("z", b"")
    second.add("z", b"")
    second.add("a/b/c", b"12345", executable=True)
    assert first.pack() == second.pack()
    entries = _unpack(first.pack())
    assert entries["a/b/c"] == (stat.S_IFREG | 0o755, b"12345")
    assert stat.S_ISDIR(entries["a"][0]) and stat.S_ISDIR(entries["a/b"][0])
    assert list(entries) == sorted(entries)


def test_newest_package_is_by_number_not_by_letter() -> None:
    names = ["linux-image-6.12.9-cloud-amd64", "linux-image-6.12.117+deb12-cloud-amd64"]
    assert max(names, key=version_key) == names[1]


def test_results_are_taken_apart_and_damage_is_told() -> None:
    assert guest._unpack(b"file a 3\nxyzfile b/c 0\n", []) == {"a": b"xyz", "b/c": b""}
    for damaged in (b"file a 4\nxyz", b"fil a 3\nxyz", b"file a three\nxyz"):
        with pytest.raises(Problem, match="damaged"):
            guest._unpack(damaged, [])


def test_scripts_say_what_they_need(tmp_path: Path) -> None:
    path = tmp_path / "mine.sh"
    path.write_text('# What it is\n# lab: programs fio\n# lab: memory 64\n# lab: set A=1 B="2 3"\n')
    read = script.read(str(path))
    assert read.summary == "What it is"
    assert read.number("memory", 1) == 64
    assert read.environment({"A": "5"}) == {"A": "5", "B": "2 3"}
    with pytest.raises(Problem, match="no parameter C"):
        read.environment({"C": "1"})
    with pytest.raises(Problem, match="only letters"):
        read.environment({"A": "'; reboot"})
    path.write_text("# lab: colour red\n")
    with pytest.raises(Problem, match="colour"):
        script.read(str(path))
    with pytest.raises(Problem, match="neither an experiment"):
        script.read(str(tmp_path / "none.sh"))


def test_build_refuses_what_is_no_kernel(tmp_path: Path) -> None:
    done = subprocess.run([str(ROOT / "kmod" / "build"), "--headers", str(tmp_path)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("kmod/build: ") and done.stderr.count("\n") == 1


def _run(experiment: str, series: str) -> list[script.Row]:
    """Rows of an experiment on one kernel; skips where a tool or a package cannot be had."""
    tools = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "fio": "fio", "zstd": "zstd",
             "mkfs.ext4": "e2fsprogs", "apt-get": "apt"}  # fmt: skip
    path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    absent = [package for tool, package in tools.items() if not shutil.which(tool, path=path)]
    if absent:
        missing(f"the kernel lab needs {', '.join(absent)}")
    try:
        _, rows, _ = script.execute(experiment, [series], {}, lambda text: None)
    except Problem as problem:
        if "apt knows no" in str(problem) or "download" in str(problem):
            missing(str(problem))
        raise
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("series", SERIES)
def test_smoke_on_a_stock_kernel(series: str) -> None:
    """Load, switch under verified load, set every tunable, take the disk away, unload; the kernel's log stays clean."""
    rows = _run("smoke", series)
    found = {row["scheduler"]: row for row in rows}
    assert {"hw-noop", "hw-deadline", "hw-as", "hw-as-95", "hw-as-seek", "hw-as-share", "hw-cas", "hw-was", "hw-cfq",
            "hw-cfq-slice"} <= set(found)
    assert all(row["tunables"] >= 1 for row in rows), json.dumps(rows)
    assert found["hw-as"]["anticipations"] > 0
    assert found["hw-deadline"]["anticipations"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("series", SERIES)
def test_emulated_disk_flushes_and_discards(series: str) -> None:
    """A flush waits for the medium, FUA too; discards and zeros give memory back, and only what they cover reads as zeros."""
    rows = [row for row in _run("disk", series) if "scheduler" in row]
    assert [row["scheduler"] for row in rows] == ["none", "mq-deadline", "hw-deadline", "hw-cfq-slice"]
    assert all((row["flushed"], row["forced"]) == (8, 8) and row["in_cache"] > 0 for row in rows), json.dumps(rows)
