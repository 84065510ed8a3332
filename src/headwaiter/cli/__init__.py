# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line. A module that defines `command` is a command; SECTIONS lists those of the help."""

from __future__ import annotations

import contextlib
import sys

import click

from headwaiter.base.ending import Ended, end_tidily_on_signals
from headwaiter.base.errors import Problem
from headwaiter.cli._commands import Loading
from headwaiter.cli._help import SHORT
from headwaiter.cli._streams import Unwritten, discard_output, standard_streams

_CLOSED_PIPE = 128 + 13  # as if by SIGPIPE


SECTIONS = {
    "Decide": ("advise", "compare", "describe", "record"),
    "Apply": ("apply", "revert", "status", "watch"),
    "Understand": ("top", "run", "schedulers", "drives", "regret", "import"),
    "Research": ("reproduce", "was", "lab", "research"),
}
"""Commands as the help shows them."""


@click.group(cls=Loading, sections=SECTIONS, more=SHORT, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headwaiter", prog_name="headwaiter")
def program() -> None:
    """Find the best I/O scheduler for a disk and its programs, put it in force, and undo that.

    `headwaiter COMMAND --help` explains a command.
    """


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
    """Return what the command returns, or exits with; a group without arguments prints its help."""
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
