# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How wide what is printed may be, for every command."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console

LEAST, MOST = 40, 10_000
"""A line of fewer columns has no room for a word beside a name; more of them nobody has."""
_USUAL = 80


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
