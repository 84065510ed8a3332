# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The width of what is printed, for every command."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console

LEAST, MOST = 40, 10_000
"""A line of fewer columns has no room for a word beside a name; more of them nobody has."""
_USUAL = 80
_WIDE = 200


def columns() -> int:
    """COLUMNS, if it is a number of at least one; else those of the terminal, if there is one; within LEAST … MOST."""
    given = os.environ.get("COLUMNS", "")
    found = int(given) if re.fullmatch(r"[0-9]{1,9}", given) else 0
    return min(max(found or _of_terminal((1, 2, 0)) or _USUAL, LEAST), MOST)


def _of_terminal(descriptors: Iterable[int]) -> int:
    for number in descriptors:
        try:
            return os.get_terminal_size(number).columns
        except OSError:
            continue
    return 0


def a_console(width: int | None = None, **more: Any) -> Console:
    """A console of so many columns, by default columns(). rich itself would take COLUMNS and LINES for what they say."""
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return Console(emoji=False, width=width or columns(), _environ=environment, **more)


def console(file: TextIO | None = None, fitted: bool = False) -> Console:
    """A console for stdout, or for a file, which gets plain text whatever FORCE_COLOR says.

    Where there is no terminal, it is so wide that no table is cut, or with `fitted` as terminal.columns() says. Text is
    shown as it is: names of tasks, jobs, devices and files may look like rich's markup ([b], :smile:), so what is to be bold is a
    rich Text.
    """
    width = None if fitted else _WIDE
    if file is not None:
        return a_console(width, file=file, highlight=False, markup=False, force_terminal=False)
    return a_console(None if sys.stdout.isatty() else width, highlight=False, markup=False)
