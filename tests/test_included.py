# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a file includes may be another's: an error names file and line, and shows no word of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run, write

HIDDEN = "(what an included file says is not shown)"

# An included file; what is said of it.
REFUSED = [
    ("root:sEcrEt:0:0\n", "in.inc:1: something is before the first section ([NAME])"),
    ("[ok]\nsEcrEt\n", "in.inc:2: unknown option"),
    ("[ok]\nsEcrEt=1\n", "in.inc:2: unknown option"),
    ("[ok]\nsizes=sEcrEt\n", "in.inc:2: unknown option"),
    ("\n[sEcrEt\n", "in.inc:2: not a section ([NAME])"),
    ("[sEcrEt] x\n", "in.inc:1: not a section ([NAME])"),
    ("[ok]\nsize=sEcrEt\n", "in.inc:2: the value of an option is not accepted"),
    ("[ok]\nsize=1m\nprofile=sEcrEt\n", "in.inc:3: an option is not supported"),
    ("[ok]\nioengine=sEcrEt\n", "in.inc:2: the value of an option is not accepted"),
    ("[ok]\nsize=${sEcrEt}\n", "in.inc:2: an environment variable is not set"),
    ("[ok]\nname=" + "sEcrEt" * 20000 + "\n", "in.inc:2: a value is too long"),
    ("[ok]\nfilename_format=sEcrEt$x\nsize=1m\n", "in.inc:2: this is not accepted"),
    ("[ok]\nsize=1m\nwait_for=sEcrEt\n", "in.inc:3: this is not accepted"),
    ("[sEcrEt]\nbs=4k\n", "in.inc:1: this is not accepted"),
    ("[sEcrEt]\nsize=900t\n", "in.inc:2: a job leaves the drive of "),
    ("[sEcrEt]\nsize=100k\nbssplit=4k/0:64k/100\n", "in.inc:3: a job that cannot be run"),
    ("include sEcrEt\n", "in.inc:1: include: no such file, or none that can be read"),
    ("include " + "sEcrEt" * 100 + "\n", "in.inc:1: include: no such file, or none that can be read"),
    ("include\n", "in.inc:1: include: the name of a file is missing"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
@pytest.mark.parametrize("head", ["", "[global]\ndirect=0\n[first]\nsize=4k\n"])
def test_no_word_of_an_included_file_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, said: str, head: str
) -> None:
    if head and "before the first" in said:
        said = "in.inc:1: unknown option"
    write(tmp_path / "in.inc", text)
    job = write(tmp_path / "x.fio", f"{head}include in.inc\n[last]\nsize=4k\n")
    status, out, err = run(capfd, "run", job, "--sched", "none", "--drive", "wd-re-4tb")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"headwaiter: {tmp_path}/{said}") and err.endswith(f"{HIDDEN}\n") and "sEcrEt" not in err


@pytest.mark.parametrize(
    "text",
    [
        "[global]\ninclude in.inc\n[a]\nbs=4k\n",
        "[global]\ninclude in.inc\n[a]\nsize=900t\n",
        "[global]\ninclude in.inc\n[a]\nsize=50%\n",
    ],
)
@pytest.mark.parametrize("included", ["filename=sEcrEt\n", "directory=sEcrEt\n", "name=sEcrEt\n", "filename_format=sEcrEt\n"])
def test_nor_what_a_line_of_ones_own_makes_of_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, included: str
) -> None:
    write(tmp_path / "in.inc", included)
    status, _, err = run(capfd, "run", write(tmp_path / "x.fio", text), "--sched", "none", "--drive", "wd-re-4tb")
    assert status == 2 and err.startswith(f"headwaiter: {tmp_path}/") and "sEcrEt" not in err


def test_ones_own_lines_are_quoted_as_ever(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "in.inc", "[global]\nbs=4k\n")
    job = write(tmp_path / "x.fio", "include in.inc\n[a]\nsiez=1m\n")
    assert "x.fio:3: unknown option 'siez' (did you mean 'size'?)" in run(capfd, "run", job, "--sched", "none")[2]
    write(tmp_path / "x.fio", "include in.inc\n[a]\nsize=900t\n")
    assert "x.fio:3: job 'a' leaves the drive: file 'a.0.0' would end" in run(capfd, "run", job, "--sched", "none")[2]
    write(tmp_path / "x.fio", "include gone.inc\n[a]\nsize=1m\n")
    assert "x.fio:1: include: " in (err := run(capfd, "run", job, "--sched", "none")[2]) and "gone.inc" in err
    write(tmp_path / "in.inc", b"\xff\xfe")
    write(tmp_path / "x.fio", "include in.inc\n[a]\nsize=1m\n")
    assert "x.fio:1: include: " in (err := run(capfd, "run", job, "--sched", "none")[2]) and "not text" in err


# DiskSim's parameters include files, too, and name one with a curve.
PARAMETERS = [
    ("root:sEcrEt:0\n", "line 2: not the notation of a parameter file"),
    ("disksim_disk sEcrEt {\n sEcrEt sEcrEt }\n", "line 2: not the notation of a parameter file"),
    ("disksim_disk sEcrEt {\n}\n", "line 1: Model: is missing"),
    ("disksim_disk sEcrEt {\n Model = sEcrEt\n}\n", "line 2: Model: must be a block"),
    ("source sEcrEt\n", "line 1: includes what is not there"),
]


@pytest.mark.parametrize(("text", "said"), PARAMETERS)
def test_no_word_of_included_parameters_is_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, said: str) -> None:
    write(tmp_path / "in.inc", text)
    status, out, err = run(capfd, "drives", "import", write(tmp_path / "x.parv", "source in.inc\n"))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err == f"headwaiter: {tmp_path}/in.inc: {said} {HIDDEN}\n"


def test_nor_of_several_disks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "in.inc", "disksim_disk sEcrEt {\n}\n")
    err = run(capfd, "drives", "import", write(tmp_path / "x.parv", "source in.inc\ndisksim_disk own {\n}\n"))[2]
    assert "contains several disks (one that is included, own)" in err and "sEcrEt" not in err
