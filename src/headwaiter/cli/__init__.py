# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line: every module of this package that defines `command` is one."""

from __future__ import annotations

import contextlib
import importlib
import sys
from pathlib import Path

import click

from headwaiter.cli._streams import Unwritten, discard_output, standard_streams
from headwaiter.ending import Ended, end_tidily_on_signals
from headwaiter.errors import Problem, shown
from headwaiter.nearest import did_you_mean

_CLOSED_PIPE = 128 + 13  # as if by SIGPIPE


SECTIONS = {
    "Simulate": ("compare", "run", "regret", "schedulers", "reproduce", "import"),
    "Drives": ("drives", "drives new", "drives from", "drives import", "drives models", "validate"),
    "Workload-dependent anticipation (WAS)": ("was fit", "was evaluate", "was calibrate", "was observe", "was designate"),
    "Live": (
        "top",
        "record",
        "describe",
        "advise",
        "revert",
        "status",
        "rank",
        "table",
        "select",
        "calibrate",
        "watch",
        "was load",
        "drives export",
    ),
    "Lab": ("lab list", "lab run", "lab agree", "conform check"),
}
"""Commands as the help shows them. What acts on a running kernel is live."""
_SENTENCE = 200
"""Longer ones are cut."""


class _Commands(click.Group):
    """Commands are loaded when they are called: start-up pays for one, not for all."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (p.stem.rstrip("_") for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))
        return sorted(names)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if meant := did_you_mean(args[0], self.list_commands(ctx)):
                raise click.UsageError(f"no such command '{shown(args[0])}'{meant}", ctx) from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """By what they are for, and those of groups one by one."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.find(ctx, name).get_short_help_str(_SENTENCE)) for name in names])

    def find(self, ctx: click.Context, words: str) -> click.Command:
        """The command that some words call, such as "drives new"."""
        found: click.Command = self
        for word in words.split():
            assert isinstance(found, click.Group)
            inner = found.get_command(ctx, word)
            assert inner, words
            found = inner
        return found

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = cmd_name + "_" if cmd_name == "import" else cmd_name
        command = importlib.import_module(f".{module}", __name__).command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headwaiter", prog_name="headwaiter")
def program() -> None:
    """Find the best I/O scheduler for a disk and a workload: simulate, compare, deploy."""


def main() -> None:
    """Entry point: whatever is wrong ends with one line and status 2, never with a traceback."""
    standard_streams()
    end_tidily_on_signals()
    try:
        status = _status()
    except BaseException:
        discard_output()
        raise
    sys.exit(status)


def _invoke() -> object:
    """What the command returns, or exits with; a group without arguments prints its help."""
    try:
        return program(prog_name="headwaiter", standalone_mode=False)
    except Ended:
        raise
    except SystemExit as e:
        return e.code
    except click.UsageError as e:
        if not e.ctx or e.format_message() != e.ctx.get_help():
            raise
        click.echo(e.format_message())
        return 0


def _status() -> int:
    """Run the command; the exit status, once all that it printed has been written."""
    try:
        returned = _invoke()
        sys.stdout.flush()
        return returned if isinstance(returned, int) else 0
    except click.UsageError as e:
        hint = f" (see '{e.ctx.command_path} --help')" if e.ctx else ""
        return _complain(f"{' '.join(e.format_message().split())}{hint}")
    except click.ClickException as e:
        return _complain(e.format_message())
    except Problem as e:
        return _complain(str(e))
    except Unwritten as e:
        discard_output()
        return _CLOSED_PIPE if e.closed_pipe else _complain(str(e))
    except OSError as e:
        return _complain(f"{e.filename}: {e.strerror}" if e.filename else str(e.strerror or e))
    except MemoryError:
        return _complain("out of memory")


def _complain(line: str) -> int:
    with contextlib.suppress(OSError):
        click.echo(f"headwaiter: {line}", err=True)
    return 2
