# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whatever COLUMNS and LINES say, and however narrow a terminal is, commands print all that they have to."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from command import good, write
from fakesys import FakeSystem

from headwaiter.report import terminal

WRONG = ["0", "-5", "1", "", "x", "\u00b2", "4 0", "99999999999999999999", "1.5", "0x10"]
TRACE = "time_s,task,op,sync,sector,sectors,complete_s\n" + "".join(
    f"{k / 100},{1 + k % 2},R,1,{8 * k},8,{(k + 0.9) / 100}\n" for k in range(20)
)


@pytest.fixture
def words(tmp_path: Path) -> dict[str, list[str]]:
    """Commands that print for people, by their name."""
    machine = FakeSystem(tmp_path / "root")
    machine.add("sda")
    trace = str(write(tmp_path / "t.csv", TRACE))
    drive = ["-d", "constant:1"]
    return {
        "compare": [trace, *drive, "-s", "none,bfq", "--seeds", "0"],
        "run": [trace, *drive, "-s", "bfq", "--legend"],
        "describe": [trace, "-d", "wd-re-4tb"],
        "top": [trace, "--once"],
        "schedulers": ["bfq"],
        "drives": [],
        "drives models": ["disk"],
        "status": ["--root", str(machine.root)],
        "lab list": [],
    }


def squeezed(text: str) -> str:
    """Without blanks, line breaks and lines drawn, of which narrow output has others."""
    return "".join(text.replace("\u2500", "").split())


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
@pytest.mark.parametrize(
    "command",
    ["compare", "run", "describe", "top", "schedulers", "drives", "drives models", "status", "lab list"],
)
def test_a_width_that_is_none_changes_nothing_but_lines(
    words: dict[str, list[str]], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, name: str
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)
    usual = good(capfd, *command.split(), *words[command])
    assert usual.strip()
    for value in WRONG:
        monkeypatch.setenv(name, value)
        printed = good(capfd, *command.split(), *words[command])
        number = terminal.columns() if name == "COLUMNS" else 80
        if number == 80:
            assert printed == usual, value
        assert printed.strip() and len(squeezed(printed)) > len(squeezed(usual)) / 3, value


def test_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    def columns(value: str | None) -> int:
        monkeypatch.setenv("COLUMNS", value) if value is not None else monkeypatch.delenv("COLUMNS", raising=False)
        return terminal.columns()

    monkeypatch.setattr(terminal, "_of_terminal", lambda numbers: 0)
    assert [columns(value) for value in (None, *WRONG)] == [80, 80, 80, 40, 80, 80, 80, 80, 80, 80, 80]
    assert [columns(value) for value in ("39", "40", "100", "9999", "999999999", "0120")] == [40, 40, 100, 9999, 10_000, 120]
    monkeypatch.setattr(terminal, "_of_terminal", lambda numbers: 132)
    assert [columns(value) for value in (None, "0", "x", "100")] == [132, 132, 132, 100]
    monkeypatch.setattr(terminal, "_of_terminal", lambda numbers: 3)
    assert columns(None) == 40


@pytest.mark.thorough
@pytest.mark.parametrize("columns", [0, 1, 7, 60])
def test_a_narrow_terminal(words: dict[str, list[str]], columns: int) -> None:
    """A terminal whose size nobody has set has no columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-P", "-m", "headwaiter", "describe", *words["describe"]]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment | {"TERM": "dumb"})
    os.close(theirs)
    shown = b""
    try:
        while more := os.read(ours, 65536):
            shown += more
    except OSError:  # what is left of a terminal whose programs have ended
        pass
    os.close(ours)
    assert process.wait(60) == 0 and b"Traceback" not in shown and "20requests" in squeezed(shown.decode())
