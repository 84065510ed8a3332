# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Started with standard input, output or error closed, in every combination."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import write
from fakesys import FakeSystem

COMBINATIONS = [numbers for n in range(4) for numbers in itertools.combinations(range(3), n)]
PROGRAM = [sys.executable, "-P", "-m", "headwaiter"]
LOAD = "[a]\nsize=64k\n"
closed = pytest.mark.parametrize(
    "numbers",
    [pytest.param(numbers, marks=pytest.mark.thorough if len(numbers) == 2 else []) for numbers in COMBINATIONS],
    ids=lambda numbers: "".join(map(str, numbers)) or "none",
)


@pytest.fixture
def machine(tmp_path: Path) -> FakeSystem:
    return FakeSystem(tmp_path / "root")


def without(numbers: tuple[int, ...], *words: object) -> list[str]:
    """The command with these descriptors closed."""
    signs = {0: "<&-", 1: ">&-", 2: "2>&-"}
    return ["sh", "-c", f'exec "$@" {" ".join(signs[n] for n in numbers)}', "sh", *PROGRAM, *map(str, words)]


@closed
def test_output_is_right_or_an_error(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    job = write(tmp_path / "x.fio", LOAD)
    compare = ("compare", job, "-s", "none,bfq", "-d", "constant:1")
    done = subprocess.run(without(numbers, *compare), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if 1 in numbers:
        said = "" if 2 in numbers else "headwaiter: standard output: Bad file descriptor\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    else:
        assert (done.returncode, done.stderr) == (0, "") and "bfq" in done.stdout


@closed
def test_a_file_gets_all_and_nothing_else(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    """Nothing that is opened may have the number of what is closed."""
    job, out, log = write(tmp_path / "x.fio", LOAD), tmp_path / "out", tmp_path / "log"
    run = ("run", job, "-s", "none", "-d", "constant:1", "--seeds", "0", "-o", out, "--log", log, "--json")
    done = subprocess.run(without(numbers, *run), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert out.read_bytes().startswith(b'{\n "schema"') and out.read_bytes().endswith(b"}\n")
    assert log.read_bytes().startswith(b"time_ns,event,")


@closed
def test_an_error_is_one_however_it_is_told(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    done = subprocess.run(
        without(numbers, "run", tmp_path / "gone", "-s", "none"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 0 if 2 in numbers else 1)


@closed
def test_only_signals_are_taken_for_signals(machine: FakeSystem, tmp_path: Path, numbers: tuple[int, ...]) -> None:
    """A watch goes on behind its first line, here to the end of its third window."""
    write(machine.add("sda") / "stat", "100 5 800 1000 10 0 80 500 3 7 9 0 0 0 0\n")
    row = '{"throughput_MBps": 1, "request_bytes": 4096, "scheduler": "none"}'
    ranking = write(tmp_path / "r.json", f'{{"schema": "headwaiter/1", "subject": "", "results": [{row}]}}')
    windows = ("--sample", "0.1", "--every", "0.1", "--rounds", "3")
    watch = ("watch", "sda", "--root", machine.root, *windows, "--method", "request-size", "--ranking", ranking)
    done = subprocess.run(without(numbers, *watch), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if 1 in numbers:
        assert (done.returncode, done.stdout) == (2, "")
    else:
        assert (done.returncode, done.stderr, done.stdout.count("declined mq-deadline")) == (0, "", 3)


@closed
def test_a_signal_ends_it(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    job, log = write(tmp_path / "x.fio", "[a]\ndirect=1\nrw=randread\nsize=1g\nio_size=500g\n"), tmp_path / "log"
    process = subprocess.Popen(without(numbers, "run", job, "-s", "none", "--log", log), stdin=subprocess.DEVNULL)
    try:
        while process.poll() is None and not any(tmp_path.glob(".headwaiter-*")):
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    finally:
        process.kill()


def test_programs_that_are_started_have_nothing_else_there() -> None:
    """What is in the place of what was closed stays there for them."""
    code = (
        "from headwaiter.base.early import fill_closed; fill_closed(); import os; os.execvp('ls', ['ls', '-l', '/proc/self/fd'])"
    )
    shell = f'exec {sys.executable} -P -c "{code}" <&- 2>&-'
    done = subprocess.run(["sh", "-c", shell], stdout=subprocess.PIPE, text=True, check=True)
    links = dict(line.split()[-3::2] for line in done.stdout.splitlines() if "->" in line)
    assert links["0"] == links["2"] == os.devnull
