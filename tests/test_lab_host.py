# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the lab needs of its machine: found where it is, named with its package where it is not, gone when it is over."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import needs
import pytest

from headwaiter.base.errors import Problem
from headwaiter.lab import debug, host


def test_programs_are_found_on_the_path_and_where_root_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fio").write_text("#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(host.Unavailable, match=r"^lab: fio is not installed \(apt-get install fio\)$"):
        host.need("fio")
    (tmp_path / "fio").chmod(0o755)
    assert host.need("fio") == str(tmp_path / "fio")
    monkeypatch.setitem(host.PACKAGES, str(tmp_path / "x.h"), "libx-dev")
    with pytest.raises(host.Unavailable, match=r"^lab: x.h is not installed \(apt-get install libx-dev\)$"):
        host.need(str(tmp_path / "x.h"))
    (tmp_path / "x.h").write_text("")
    assert host.need(str(tmp_path / "x.h")) == str(tmp_path / "x.h")


def test_tests_and_lab_name_the_same_packages() -> None:
    """What tests/needs.py asks for of the lab's programs is what the lab itself asks for."""
    assert set(debug.TOOLS) <= set(host.PACKAGES)
    named = {package for packages in needs.NEEDS.values() for package in packages}
    ours = set(host.PACKAGES.values())
    assert {"qemu-system-x86", "busybox-static", *host.GUEST_PROGRAMS.values()} - named == {"coreutils", "findutils"}
    assert {"apt", "gcc", "make", "xz-utils"} <= named & ours


def test_what_a_program_says(tmp_path: Path) -> None:
    assert host.run(["sh", "-c", "pwd; echo not this >&2"], cwd=tmp_path) == f"{tmp_path}\n"
    with pytest.raises(Problem, match=r"^lab: sh -c echo a; echo b >&2; exit 3: a$"):
        host.run(["sh", "-c", "echo a; echo b >&2; exit 3"])
    with pytest.raises(Problem, match=r"^lab: sh -c echo b >&2; exit 3: b$"):
        host.run(["sh", "-c", "echo b >&2; exit 3"])
    with pytest.raises(Problem, match=r"^lab: false: failed$"):
        host.run(["false"])


def test_a_program_and_what_it_has_started_end_with_the_block(tmp_path: Path) -> None:
    """A shell and the program that it waits for, which would touch a file a second later."""
    with host.running(["sh", "-c", "echo begun; sleep 1; touch late"], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"begun\n"
    assert process.returncode == -9
    time.sleep(1.2)
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_is_gone_when_the_block_is_left() -> None:
    with pytest.raises(KeyError), host.temporary_folder() as folder:
        (folder / "file").write_text("x")
        raise KeyError
    assert not folder.exists()
