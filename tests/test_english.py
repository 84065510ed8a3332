# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Documents and messages are plain English: the phrases of a translation do not come back.

A few patterns, no grammar checker: it catches relapses, and a text that passes may still be poor.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from headwaiter import cli
from headwaiter.drives.params import models
from headwaiter.engine.schedulers import Stat, Tunable, catalogue

ROOT = Path(__file__).resolve().parent.parent
PHRASES = re.compile(
    r"\b(?:who(?:m)?ever|nobody|shall|rightly|(?<!there )(?:is|are) none\b(?! of)|(?:is|are) no values?)\b", re.I
)
# "What lies best, is served": a clause as the subject. A question is no such sentence.
CLAUSE = re.compile(r"(?:What|Who|Whose)\b.*[^?]", re.S)
SENTENCES = re.compile(r"(?<=[.!?:;])[\s*]+|\n\s*\n|\n\s*(?=[-#|*]|\d\.)|\s\|\s")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMMENT = re.compile(r"/\*.*?\*/|^\s*#\s*include.*?$", re.S | re.M)


def faults(text: str) -> list[str]:
    """What is wrong with a text, phrase by phrase."""
    found = [m.group() for m in PHRASES.finditer(text)]
    sentences = (s.strip(" \t\n|*#->`0123456789.") for s in SENTENCES.split(text))
    return found + [s[:60] for s in sentences if CLAUSE.fullmatch(s)]


def documents() -> Iterator[tuple[str, str]]:
    for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]:
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def tables() -> Iterator[tuple[str, str]]:
    """Help texts of schedulers and drive models."""
    for s in catalogue().values():
        yield s.name, s.summary
        rows: list[Tunable | Stat] = [*s.tunables.values(), *s.stats.values()]
        for row in rows:
            yield f"{s.name}.{row.name}", row.help
    for m in models().values():
        yield m.name, m.summary
        for p, key in m.rows():
            yield f"{m.name}: {key}", p.help


def command_help(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    yield name, command.help or ""
    for option in command.params:
        yield f"{name} {option.name}", getattr(option, "help", None) or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            assert inner
            yield from command_help(inner, f"{name} {word}")


def python_strings() -> Iterator[tuple[str, str]]:
    """Every string of the package that is not a docstring."""
    for path in sorted((ROOT / "src/headwaiter").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def c_strings() -> Iterator[tuple[str, str]]:
    for folder in ("core", "sim", "kmod"):
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            for text in STRING.findall(COMMENT.sub("", path.read_text(encoding="utf-8"))):
                yield str(path.relative_to(ROOT)), text


def script_lines() -> Iterator[tuple[str, str]]:
    """What an experiment prints, and its summary."""
    for path in sorted((ROOT / "lab").rglob("*.sh")):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield str(path.relative_to(ROOT)), lines[1].removeprefix("# ")
        for line in lines:
            for text in re.findall(r'\b(?:say|fail) "([^"]*)"', line):
                yield str(path.relative_to(ROOT)), text


@pytest.mark.parametrize("source", [documents, tables, python_strings, c_strings, script_lines], ids=lambda s: s.__name__)
def test_no_phrases_of_a_translation(source: Callable[[], Iterator[tuple[str, str]]]) -> None:
    texts = list(source())
    assert len(texts) > 10
    assert [f"{where}: {fault}" for where, text in texts for fault in faults(text)] == []


def test_help_is_plain() -> None:
    texts = list(command_help(cli.program, "headwaiter"))
    assert len(texts) > 50
    assert [f"{where}: {fault}" for where, text in texts for fault in faults(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Nobody waits there.",
        "Take it. What lies best, is served.",
        "- Whoever reads is served.",
        "| a | Who comes first goes first. |",
        "9 times (7 times rightly)",
        "A profile that is none is refused.",
    ],
)
def test_the_patterns_catch_what_they_are_for(text: str) -> None:
    assert faults(text)


@pytest.mark.parametrize("text", ["Which one? What is it for?", "The scheduler `none` is best.", "There is none of it."])
def test_the_patterns_let_plain_text_pass(text: str) -> None:
    assert faults(text) == []
