# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Write a man page for each command, from the declarations that its --help is made from.

    python docs/man.py FOLDER

SOURCE_DATE_EPOCH, where it is set, is the date of the pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from inspect import cleandoc
from pathlib import Path

import click
from click_man.man import ManPage

from headwaiter.cli import program
from headwaiter.cli._help import Rows, examples_of, statuses_of


def pages(context: click.Context) -> Iterator[tuple[str, str]]:
    """(name of the file, text) of a command and of all beneath it."""
    command = context.command
    help_ = cleandoc(command.help or "").replace("\b", "")
    page = ManPage(context.command_path)
    page.version = version("headwaiter")
    page.short_help = first_sentence(help_)
    page.description = help_
    page.synopsis = " ".join(command.collect_usage_pieces(context))
    options = [p for p in command.get_params(context) if isinstance(p, click.Option)]
    page.options = [record for p in options if (record := p.get_help_record(context))]
    names = command.list_commands(context) if isinstance(command, click.Group) else []
    inner = [
        (name, found) for name in names if isinstance(command, click.Group) and (found := command.get_command(context, name))
    ]
    page.commands = [(name, first_sentence(cleandoc(found.help or ""))) for name, found in inner]
    path = context.command_path
    end = section("EXAMPLES", examples_of(path)) + section("EXIT STATUS", statuses_of(path))
    yield path.replace(" ", "-") + ".1", safe(f"{str(page).rstrip()}\n{end}")
    short = path.replace(" research ", " ")
    if short != path:
        yield short.replace(" ", "-") + ".1", f".so man1/{path.replace(' ', '-')}.1\n"
    for name, found in inner:
        yield from pages(click.Context(found, info_name=name, parent=context))


def section(title: str, rows: Rows) -> str:
    """Return a section with a paragraph for each row: what it is about, and the text."""
    escape = str.maketrans({"\\": r"\e", "-": r"\-"})
    return f".SH {title}\n" + "".join(f".TP\n\\fB{head.translate(escape)}\\fP\n{text}\n" for head, text in rows)


def first_sentence(text: str) -> str:
    """In one line, without its full stop."""
    return re.split(r"(?<=[.:]) |\n\n", " ".join(text.split("\n\n", maxsplit=1)[0].split()))[0].rstrip(".:")


def safe(page: str) -> str:
    """Lines of text that roff would take for requests begin with a character of no width."""
    requests = re.compile(r"\.(TH|SH|TP|PP|B|I)\b")
    return "".join(line if requests.match(line) or line[:1] not in (".", "'") else rf"\&{line}" for line in page.splitlines(True))


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(click.Context(program, info_name="headwaiter")):
        (folder / name).write_text(text, encoding="utf-8")
    print(f"{folder}: copy its files to a folder man1 of man's path, or read one with man -l")


if __name__ == "__main__":
    main()
