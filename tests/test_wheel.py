# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The wheel that pip makes: the same bytes whenever, wherever and however the same sources are built."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.thorough


def built(sources: Path, into: Path, umask: int, settings: tuple[str, ...] = (), **environment: str) -> Path:
    """The wheel of a copy of the sources, as `pip wheel .` makes it without fetching what builds it."""
    into.mkdir()
    variables = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"} | environment
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-build-isolation",
        "--no-deps",
        "--no-cache-dir",
        *(f"--config-settings={one}" for one in settings),
        "-w",
        str(into),
        ".",
    ]
    done = subprocess.run(pip, cwd=sources, env=variables, umask=umask, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = into.glob("*.whl")
    return wheel


def copied(target: Path, umask: int) -> Path:
    """The files that belong to the sources, with times and modes of now."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    before = os.umask(umask)
    try:
        for name in filter(None, files):
            if (ROOT / name).is_file():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, target / name)
                (target / name).chmod((0o777 if os.access(ROOT / name, os.X_OK) else 0o666) & ~umask)
    finally:
        os.umask(before)
    return target


def test_the_same_sources_give_the_same_wheel(tmp_path: Path) -> None:
    """From two folders, one of them of another time and mode, and with what Python leaves there."""
    first = built(copied(tmp_path / "one", 0o022), tmp_path / "a", 0o022)
    other = copied(tmp_path / "elsewhere" / "two", 0o077)
    for file in other.rglob("*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    (other / "src/headwaiter/__pycache__").mkdir()
    (other / "src/headwaiter/__pycache__/api.cpython-311.pyc").write_bytes(b"x")
    second = built(other, tmp_path / "b", 0o077, TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")
    assert first.name == second.name
    with zipfile.ZipFile(first) as a, zipfile.ZipFile(second) as b:
        differ = [
            x.filename for x, y in zip(a.infolist(), b.infolist(), strict=True) if (x.filename, x.CRC) != (y.filename, y.CRC)
        ]
        assert not differ
        assert a.namelist()[-1].endswith("/RECORD") and a.testzip() is None
        assert {entry.date_time for entry in a.infolist()} == {(2025, 1, 1, 0, 0, 0)}
    assert hashlib.sha256(first.read_bytes()).hexdigest() == hashlib.sha256(second.read_bytes()).hexdigest()


def test_a_date_that_is_given_counts_and_the_wheel_is_whole(tmp_path: Path) -> None:
    wheel = built(copied(tmp_path / "one", 0o022), tmp_path / "a", 0o022, SOURCE_DATE_EPOCH="1000000000")
    with zipfile.ZipFile(wheel) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(2001, 9, 9, 1, 46, 40)}
        record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
        for name, said, size in csv.reader(archive.read(record).decode().splitlines()):
            data = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert name == record or (said, int(size)) == (f"sha256={digest}", len(data)), name
    into = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(into), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    code = "import headwaiter, sys; print(headwaiter.__file__); print(len(headwaiter.drives()))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=os.environ | {"PYTHONPATH": str(into)}, capture_output=True, text=True, check=True
    )
    path, drives = done.stdout.split()
    assert path.startswith(str(into)) and int(drives) > 5


def test_a_wheel_is_for_every_python_on_its_platform(tmp_path: Path) -> None:
    """What it has of C is a library that Python loads; the platform is this machine's, or the one that is named."""
    wheel = built(copied(tmp_path / "one", 0o022), tmp_path / "a", 0o022, ("platform=manylinux_2_40_x86_64",))
    assert wheel.name.endswith("-py3-none-manylinux_2_40_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        (about,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
    assert [line for line in about.splitlines() if line.startswith("Tag:")] == ["Tag: py3-none-manylinux_2_40_x86_64"]
