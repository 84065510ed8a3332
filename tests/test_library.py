# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""libheadwaiter from C and C++: the header by itself, and the example program."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

from headwaiter.base.paths import HEADER, library
from headwaiter.drives import find_drive
from headwaiter.engine.schedulers import reasons

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
C = ["gcc", "-std=c11", *STRICT]
CPP = ["g++", "-std=c++11", "-x", "c++", *STRICT]
EXAMPLE = ROOT / "examples" / "readers.c"


def built(compiler: list[str], folder: Path) -> Path:
    """The example, linked with the library that Python uses."""
    program = folder / "readers"
    paths = [f"-I{HEADER.parent}", f"-L{library().parent}", f"-Wl,-rpath,{library().parent}"]
    subprocess.run([*compiler, str(EXAMPLE), *paths, "-lheadwaiter", "-o", str(program)], check=True)
    return program


def ran(program: Path, folder: Path, *policies: str) -> subprocess.CompletedProcess[str]:
    """The example at work on a bundled drive."""
    profile = folder / "disk.blob"
    profile.write_bytes(find_drive("barracuda-80g").blob)
    return subprocess.run([str(program), str(profile), *policies], capture_output=True, text=True, check=False)


def test_example_shows_what_waiting_is_for(tmp_path: Path) -> None:
    done = ran(built(C, tmp_path), tmp_path, "noop", "as")
    assert done.returncode == 0 and not done.stderr
    rows = {line.split()[0]: [float(x) for x in re.findall(r"[0-9.]+", line)] for line in done.stdout.splitlines()}
    (noop_s, noop_seeks, noop_waits), (as_s, as_seeks, as_waits) = rows["noop"], rows["as"]
    assert noop_waits == 0 and as_waits > 100
    assert as_seeks * 10 < noop_seeks and as_s * 2 < noop_s


def test_example_tells_what_is_wrong(tmp_path: Path) -> None:
    done = ran(built(C, tmp_path), tmp_path, "lift")
    assert (done.returncode, done.stderr) == (2, "readers: no policy 'lift'\n")


@pytest.mark.needs("c++")
def test_header_and_example_are_cpp(tmp_path: Path) -> None:
    (tmp_path / "cpp").mkdir()
    c, cpp = (
        ran(built(compiler, folder), folder, "noop", "bfq") for compiler, folder in ((C, tmp_path), (CPP, tmp_path / "cpp"))
    )
    assert cpp.returncode == 0 and cpp.stdout == c.stdout


@pytest.mark.needs("c++")
def test_header_stands_alone(tmp_path: Path) -> None:
    for compiler, name in ((C, "a.c"), (CPP, "a.cc")):
        (tmp_path / name).write_text('#include "headwaiter.h"\nint main(void) { return 0; }\n')
        subprocess.run([*compiler, f"-I{HEADER.parent}", "-fsyntax-only", str(tmp_path / name)], check=True)


def test_reasons_are_words_of_csv() -> None:
    found = reasons()
    assert next(iter(found)) == ""
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in found if name)
    assert all(found.values())


def test_every_function_is_tried_with_null() -> None:
    """What it comes to is seen in the C test itself."""
    header = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    public = set(re.findall(r"\b(hw[sd]_\w+)\(", header))
    tried = set(re.findall(r"\b(hw[sd]_\w+)\(", (ROOT / "tests/c/test_null.c").read_text()))
    assert len(public) > 50 and public == tried
