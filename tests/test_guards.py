# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The guard of tests that need tools (conftest.py): what it skips, what it says, and where it fails instead."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import needs
import pytest
from conftest import ROOT

TESTS = """
import pytest
from headwaiter.lab import host

def absent():
    host.PACKAGES["no-such-tool"] = "no-such-package"
    host.need("no-such-tool")

@pytest.mark.needs("fio")
@pytest.mark.parametrize("n", range(3))
def test_fio(n): pass

@pytest.mark.needs("dkms")
def test_dkms(): pass

@pytest.mark.needs("fio")
@pytest.mark.needs("busybox")
def test_both(): pass

@pytest.mark.needs("binutils")
def test_late(): absent()

def test_unmarked(): absent()

def test_data(shared): pass

def test_plain(): pass
"""


def _run(folder: Path, tools: str, all_required: str, shared: str = "") -> subprocess.CompletedProcess[str]:
    """Those tests with this conftest, where these programs are and no others."""
    (folder / "bin").mkdir()
    for tool in tools.split():
        (folder / "bin" / tool).write_text("")
        (folder / "bin" / tool).chmod(0o755)
    for name in ("conftest.py", "needs.py"):
        text = (ROOT / "tests" / name).read_text().replace(":/usr/sbin:/sbin", "")  # where this machine has more
        (folder / name).write_text(text)
    (folder / "test_these.py").write_text(TESTS)
    env = os.environ | {"PATH": str(folder / "bin"), "HEADWAITER_REQUIRE_ALL": all_required, "HEADWAITER_SHARED": shared}
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rfsE",
        "--import-mode=importlib",
        "-o",
        f"pythonpath={folder}",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        folder,
        "-c",
        "/dev/null",
        folder,
    ]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.thorough
def test_what_is_lacking_is_skipped_and_counted(tmp_path: Path) -> None:
    done = _run(tmp_path, "gcc nm make apt-get lz4 zstd xz depmod cpio", "")
    assert "1 failed, 1 passed, 7 skipped" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_these.py::test_unmarked" in done.stdout, "a test that needs something must say so"
    lines = done.stdout.splitlines()
    for line in (
        "3 more tests with apt-get install fio",
        "1 more test with apt-get install dkms",
        "1 more test with apt-get install busybox-static fio",
        "1 more test with recorded data (HEADWAITER_SHARED)",
        "1 more test with what is missing here: lab: no-such-tool is not installed (apt-get install no-such-package)",
    ):
        assert line in lines, done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize(("required", "failed"), [("1", 7), ("but packages", 2)])
def test_where_all_is_required_only_recorded_data_may_lack(tmp_path: Path, required: str, failed: int) -> None:
    done = _run(tmp_path, "gcc nm make apt-get lz4 zstd xz depmod cpio", required)
    *_, last = done.stdout.splitlines()
    counts = {what.rstrip("s"): int(n) for n, what in re.findall(r"(\d+) (failed|errors?|passed|skipped)", last)}
    assert counts.get("failed", 0) + counts.get("error", 0) == failed, done.stdout + done.stderr
    assert (counts["passed"], counts["skipped"]) == (1, 8 - failed)
    # Of no folder that was named: no package has it, so that it is skipped, and counted.
    assert f"recorded data is not there: {tmp_path.parent.parent}/shared/data" in done.stdout
    assert "1 more test with recorded data (HEADWAITER_SHARED)" in done.stdout.splitlines()


@pytest.mark.thorough
@pytest.mark.parametrize(("required", "failed"), [("1", True), ("", False)])
def test_recorded_data_may_not_lack_where_it_was_named(tmp_path: Path, required: str, failed: bool) -> None:
    done = _run(tmp_path, "gcc", required, "/none")
    lines = done.stdout.splitlines()
    assert any("recorded data is not there: /none/data" in line for line in lines)
    assert any(line.startswith("ERROR test_these.py::test_data") for line in lines) is failed, done.stdout
    assert ("1 more test with recorded data (HEADWAITER_SHARED)" in lines) is not failed


def test_ci_installs_what_the_guard_knows() -> None:
    printed = subprocess.run([sys.executable, ROOT / "tests" / "needs.py"], check=True, capture_output=True, text=True).stdout
    assert set(printed.split()) == {package for packages in needs.NEEDS.values() for package in packages}
    assert "$(python3 tests/needs.py)" in (ROOT / ".ci" / "run").read_text()


def test_make_says_what_it_does_while_its_tools_are_silent() -> None:
    command = ["make", "--no-print-directory", "-n", "-B", "demo", "c-test", "sanitize"]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    silent = [i for i, line in enumerate(lines) if "pip install -q" in line or "--print-errorlogs -q" in line]
    assert len(silent) == 4
    for i in silent:
        assert any("echo" in line and "..." in line for line in lines[max(0, i - 3) : i]), lines[i]


def test_no_test_looks_for_tools_by_itself() -> None:
    """One guard for all: a test that skips for want of a tool would do so in CI as well.

    Sphinx is none of Debian's packages that needs.py lists: it comes from PyPI, and its test fails in CI where it is missing.
    """
    own = re.compile(r"importorskip|pytest\.skip\(.*(?:apt|install|needs)|if not shutil\.which")
    found = [path.name for path in sorted((ROOT / "tests").glob("test_*.py")) if own.search(path.read_text())]
    assert found == ["test_docs_site.py", Path(__file__).name]
