# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Corners in which fio 3.33 warns and runs, or runs something else than is written."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from command import good, write
from command import run as command
from fioload import load, places, run

from headwaiter.base.errors import Problem


def notes(tmp_path: Path, text: str) -> list[str]:
    """Those that name a line, without the folder."""
    return [note.removeprefix(f"{tmp_path}/") for note in load(tmp_path, text).notes if note.startswith(str(tmp_path))]


@pytest.mark.parametrize("more", ["time_based\n", "time_based=1\n", "time_based=3\nruntime=0\n"])
def test_time_based_without_runtime_goes_through_once(tmp_path: Path, more: str) -> None:
    text = f"[a]\ndirect=1\nsize=16k\n{more}"
    assert places(run(tmp_path, text)) == "R0+4 R4+4 R8+4 R12+4"
    assert notes(tmp_path, text) == ["test.fio:4: time_based without runtime changes nothing, as in fio 3.33, which warns of it"]
    assert notes(tmp_path, f"{text}runtime=1\n") == notes(tmp_path, f"{text}time_based=0\n") == []


def test_a_note_is_one_line_for_all_processes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "x.fio", "[a]\nsize=16k\ntime_based\nnumjobs=3\n")
    shown = " ".join(good(capfd, "run", path, "--sched", "none", "--drive", "constant:1").split())
    assert shown.count("time_based without runtime") == 1


SHARED = "[reads]\nnrfiles=4\nfilename_format=$filenum\nnumjobs=4\nsize=64k\n"


@pytest.mark.parametrize("text", [SHARED, SHARED.replace("$filenum", "$jobname.$filenum"), SHARED.replace("$filenum", "dir/x")])
def test_processes_that_share_files_all_run(tmp_path: Path, text: str) -> None:
    assert len({io.task for io in run(tmp_path, f"[global]\ndirect=1\n{text}")}) == 4
    assert notes(tmp_path, text) == [
        "test.fio:3: without $jobnum the 4 processes have the same files: fio 3.33 runs only one of them (its bug 1878),"
        " here all run"
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [("$filenum", "$jobnum.$filenum"), ("numjobs=4\n", ""), ("numjobs=4", "filename=x"), ("filename_format=$filenum\n", "")],
)
def test_where_fio_runs_all_nothing_is_said(tmp_path: Path, old: str, new: str) -> None:
    assert notes(tmp_path, SHARED.replace(old, new)) == []


def test_zones_beyond_the_region(tmp_path: Path) -> None:
    text = "[a]\ndirect=1\nrw=randread\nsize=64k\nrandom_distribution=zoned_abs:50/32k:50/{}\n"
    assert notes(tmp_path, text.format("33k")) == [], "not by a whole block"
    assert notes(tmp_path, text.format("36k")) == [
        "test.fio:5: zones of 69632 bytes exceed a region of 65536: fio 3.33 ends the job at the first I/O beyond it,"
        " here the last zones are shorter"
    ]


def test_a_deprecated_option(tmp_path: Path) -> None:
    assert notes(tmp_path, "[global]\nflow_watermark=5\n[a]\nsize=4k\n") == [
        "test.fio:2: option 'flow_watermark' changes nothing, as in fio 3.33, which calls it deprecated"
    ]


def stuck(tmp_path: Path, text: str) -> str:
    with pytest.raises(Problem) as e:
        run(tmp_path, text)
    return str(e.value).removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ("bssplit=4k/0:64k/100\nsize=100k\n", 36),
        ("bssplit=4k/0:64k/100\nsize=68k\nio_size=10m\n", 4),
        ("bssplit=4k/0:32k/50:64k/50\nsize=60k\n", 28),
        ("bssplit=4k/0:6k/0:12k/100\nsize=20k\n", 8),
        ("rw=randread\nbssplit=4k/0:64k/100\nsize=64k\nnorandommap\n", None),
        ("rw=randread\nbssplit=4k/0:64k/100\nsize=1m\n", None),
        ("time_based\nruntime=1h\nbssplit=4k/0:64k/100\nsize=100k\n", 36),
        ("nrfiles=2\nbssplit=4k/0:64k/100\nsize=200k\n", 36),
        ("bssplit=4k/0:64k/100\nsize=100k\nbs=16k\n", 36),
    ],
)
@pytest.mark.parametrize("engine", ["sync", "libaio"])
def test_a_job_whose_sizes_never_fit_is_an_error(tmp_path: Path, options: str, left: int | None, engine: str) -> None:
    """fio 3.33 draws sizes until one fits."""
    line = 1 + f"[a]\n{options}".splitlines().index(next(o for o in options.splitlines() if o.startswith("bssplit")))
    error = stuck(tmp_path, f"[x]\nsize=4k\n[a]\n{options}ioengine={engine}\ndirect=1\n")
    assert error.startswith(f"test.fio:{line + 2}: job 'a': none of the block sizes that may be drawn fits into the last ")
    assert error.endswith(" bytes: fio would never end") and (left is None or f" {left * 1024} bytes" in error)


@pytest.mark.parametrize(
    "options",
    [
        "bssplit=4k/0:64k/100\nsize=128k\n",
        "bssplit=4k/0:6k/100\nsize=20k\n",
        "bssplit=4k/1:64k/99\nsize=100k\n",
        "bssplit=4k/0:64k/100\nsize=100k\nnumber_ios=1\n",
        "bssplit=4k/0:64k/100\nsize=100k\nio_size=64k\n",
        "bssplit=64k/100,4k/0:64k/100\nsize=100k\n",
        "bsrange=4k-64k\nsize=100k\n",
        "bsrange=12k-64k\nsize=100k\n",
    ],
)
def test_what_ends_in_fio_ends(tmp_path: Path, options: str) -> None:
    """A size is rounded down to a multiple of the smallest; what never comes to the narrow place is not asked about it."""
    assert run(tmp_path, f"[a]\n{options}direct=1\n")


def test_the_command_says_so_in_a_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "x.fio", "[a]\nbssplit=4k/0:64k/100\nsize=100k\n")
    status, out, err = command(capfd, "compare", path, "--drive", "constant:1", "--sched", "none,bfq")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"headwaiter: {path}:2: job 'a': none of the block sizes")


@pytest.mark.needs("fio")
@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "[a]\nsize=16k\ntime_based\n",
        SHARED,
        SHARED.replace("$filenum", "$jobname.$filenum"),
        SHARED.replace("$filenum", "$jobnum.$filenum"),
        SHARED.replace("filename_format=$filenum", "filename=x"),
        f"{SHARED}[b]\nfilename_format=$filenum\nsize=64k\n",
    ],
)
def test_fio_does_what_is_said_of_it(tmp_path: Path, text: str) -> None:
    """Where a note says so, some of the processes do nothing; else all do what ours do."""
    path = write(tmp_path / "x.fio", text)
    fio = shutil.which("fio")
    assert fio
    made = subprocess.run(
        [fio, "--output-format=json", path], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    ios = [job["read"]["total_ios"] for job in json.loads(made.stdout[made.stdout.index("{\n") :])["jobs"]]
    assert (0 in ios) == any("bug 1878" in note for note in notes(tmp_path, text))
    if 0 not in ios:
        names = [task.name for task in load(tmp_path, text).tasks]
        ours = [io.task for io in run(tmp_path, f"[global]\ndirect=1\n{text}")]
        assert [ours.count(name) for name in names] == ios
