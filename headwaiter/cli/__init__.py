# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line: every module of this package that defines `command` is one."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

from ..errors import Problem
from ..paths import end_tidily_on_signals


class _Commands(click.Group):
    """Commands are loaded when they are called: start-up pays for one, not for all."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (p.stem.rstrip("_") for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))
        return sorted(names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = cmd_name + "_" if cmd_name == "import" else cmd_name
        command = importlib.import_module(f".{module}", __name__).command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="headwaiter", prog_name="headwaiter")
def _headwaiter() -> None:
    """Which I/O scheduler for this disk and this load: simulate, prove, deploy."""


def main() -> None:
    """Entry point: bad input ends with one line and status 2, never with a traceback."""
    end_tidily_on_signals()
    try:
        status = _headwaiter(prog_name="headwaiter", standalone_mode=False)
    except Problem as e:
        click.echo(f"headwaiter: {e}", err=True)
        sys.exit(2)
    except click.UsageError as e:
        hint = f" (see '{e.ctx.command_path} --help')" if e.ctx else ""
        click.echo(f"headwaiter: {' '.join(e.format_message().split())}{hint}", err=True)
        sys.exit(2)
    except click.ClickException as e:
        click.echo(f"headwaiter: {e.format_message()}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    sys.exit(status if isinstance(status, int) else 0)
