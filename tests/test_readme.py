# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""README answers on its first screen, its commands are commands, and its figures are printed by commands that it names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from headwaiter.base.errors import Problem
from headwaiter.cli import program

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = 40
"""Lines."""
SHELL = re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S)
LINES = [line.split(" #")[0].strip() for block in SHELL for line in block.splitlines()]
INLINE = re.findall(r"`(headwaiter [a-z][^`]*)`", re.sub(r"^```.*?^```", "", README, flags=re.M | re.S))


def prose() -> str:
    """What is neither code nor generated."""
    plain = re.sub(r"^```.*?^```", "", README, flags=re.M | re.S)
    plain = re.sub(r"^<!-- (?!end)(\w+):.*?^<!-- end -->", "", plain, flags=re.M | re.S)
    plain = re.sub(r"<[^>]+>", "", plain)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", plain)


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("My NAS stutters during backups.", ["Run the first command", "docs/tutorial-admin.md"]),
        ("Should I use bfq on NVMe?", ["no: bfq costs processor time", "headwaiter compare nvme -d nvme-ssd"]),
        ("How do I try my own policy in a kernel?", ["make new-policy NAME=mine", "make kmod", "headwaiter lab run smoke"]),
    ],
)
def test_the_first_screen_answers(question: str, answers: list[str]) -> None:
    screen = README.splitlines()[:FIRST_SCREEN]
    [row] = [line for line in screen if question in line]
    assert all(answer in row for answer in answers)


def test_the_first_screen_has_the_three_commands() -> None:
    screen = "\n".join(README.splitlines()[:FIRST_SCREEN])
    for line in (
        "headwaiter advise sda -t 300 ",
        "headwaiter advise sda -t 300 --apply",
        "headwaiter revert sda",
        "What it cannot",
    ):
        assert line in README and (line in screen or line == "What it cannot"), line


@pytest.mark.parametrize("line", sorted({line for line in (*LINES, *INLINE) if line.startswith("headwaiter ")}))
def test_every_command_is_one(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It parses, but for words in capitals, which stand for a command of yours."""
    if re.search(r"\b[A-Z]{4,}\b", line):
        pytest.skip("names no command")
    monkeypatch.setattr(click.Command, "invoke", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    try:
        program.main(shlex.split(line)[1:], prog_name="headwaiter", standalone_mode=False)
    except Problem as e:
        raise AssertionError(line) from e


def test_every_target_of_make_is_one() -> None:
    targets = {line.split()[1] for line in LINES if line.startswith("make ")} | set(re.findall(r"`make ([a-z-]+)[^`]*`", README))
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert targets and targets <= known


def test_every_figure_is_printed() -> None:
    """A number with a unit in the prose is in an output that README shows, or beside the command that measures it."""
    outputs = "".join(re.findall(r"^```text\n(.*?)^```", README, re.M | re.S))
    outputs += "".join(re.findall(r"^<!-- \w+:.*?^<!-- end -->", README, re.M | re.S))
    for paragraph in prose().split("\n\n"):
        for figure in re.findall(r"(?<![\w.])\d[\d,.]*(?= ?(?:%|ms\b|MB/s|times\b|x\b|us\b|µs\b))", paragraph):
            beside = "headwaiter lab run again" in README[max(0, README.find(paragraph[:40])) :][: len(paragraph) + 400]
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d])", outputs) or beside, (figure, paragraph)


def test_no_host_is_claimed_that_is_not_there() -> None:
    assert "user space" not in README and "user-space" not in README
