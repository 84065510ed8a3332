# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable


def rows(head: Iterable[str], body: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    lines = [list(head), *([str(c).replace("|", "\\|") for c in row] for row in body)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
