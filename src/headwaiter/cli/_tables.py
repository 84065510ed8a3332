# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables by operation, file size and record length, as options name them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from headwaiter.base.errors import Problem
from headwaiter.base.parsing import assignment
from headwaiter.papers.cells import ByTable
from headwaiter.papers.selectors import read_iozone, read_table


def table_options(ranking: str, use: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--ranking, whose help is `ranking`, and --iozone; use: what the latter is for, in brackets."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "--iozone", multiple=True, metavar="SCHED=FILE", help=f"Output of iozone -a or -R under a scheduler{use}."
        )(command)
        file = click.Path(dir_okay=False, path_type=Path)
        return click.option("--ranking", type=file, metavar="FILE", help=ranking)(command)

    return decorate


def table_of(ranking: Path | None, iozone: Sequence[str]) -> ByTable:
    """Return the table of --ranking or of --iozone (SCHED=FILE). Problem if both or none are given, or one is no such file."""
    if (ranking is None) == (not iozone):
        raise Problem("a table needs --ranking or --iozone, and not both")
    if ranking:
        return read_table(ranking)
    pairs = [assignment("--iozone", one, "SCHED=FILE") for one in iozone]
    return read_iozone({key: Path(value) for key, value in pairs})
