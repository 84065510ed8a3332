# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kinds of commands: their help ends with examples and exit statuses, and a group loads a command when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import click

from headwaiter.base.errors import shown
from headwaiter.base.nearest import did_you_mean
from headwaiter.cli._help import examples_of, statuses_of

_SENTENCE = 200
"""A longer first sentence is cut in a list of commands."""
_PACKAGE = __name__.rpartition(".")[0]


class Command(click.Command):
    """A command whose help ends with examples and exit statuses."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click.Command."""
        _write_end(ctx, formatter)


class Group(click.Group):
    """A group whose help, and whose commands' help, ends with examples and exit statuses."""

    command_class = Command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See click.Command."""
        _write_end(ctx, formatter)


class Loading(Group):
    """A group that imports the module of a command only when the command is needed, so that start-up pays for one module.

    sections: the commands that its help lists, by title. more: commands that work but are not listed.
    """

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[str]], more: Sequence[str] = (), **given: Any) -> None:
        super().__init__(*args, **given)
        self.sections, self._more = sections, more

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands that the help lists."""
        return [name for names in self.sections.values() for name in names]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """See click.Group; a mistyped command is answered with the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if meant := did_you_mean(args[0], [*self.list_commands(ctx), *self._more]):
                raise click.UsageError(f"no such command '{shown(args[0])}'{meant}", ctx) from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, section by section."""
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.find(ctx, name).get_short_help_str(_SENTENCE)) for name in names])

    def find(self, ctx: click.Context, words: str) -> click.Command:
        """Return the command that some words call, such as "drives new"."""
        found: click.Command = self
        for word in words.split():
            assert isinstance(found, click.Group)
            inner = found.get_command(ctx, word)
            assert inner, words
            found = inner
        return found

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See click.Group."""
        if cmd_name not in (*self.list_commands(ctx), *self._more):
            return None
        module = cmd_name + "_" if cmd_name == "import" else cmd_name
        command = importlib.import_module(f".{module}", _PACKAGE).command
        assert isinstance(command, click.Command)
        return command


def _write_end(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the examples and the exit statuses of a command."""
    with formatter.section("Examples"):
        for line, meaning in examples_of(ctx.command_path):
            formatter.write(f"{'':{formatter.current_indent}}{line}\n")
            with formatter.indentation():
                formatter.write_text(meaning)
    with formatter.section("Exit status"):
        formatter.write_dl(statuses_of(ctx.command_path))
