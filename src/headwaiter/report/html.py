# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables for people, as HTML."""

from __future__ import annotations

from html import escape

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text


def html_table(t: Table) -> str:
    """A table of rich's as HTML: its cells as text, numbers to the right, rows in bold where they are, and its caption below."""

    def cell(kind: str, content: RenderableType, right: bool) -> str:
        text = content.plain if isinstance(content, Text) else str(content)
        scope = ' scope="col"' if kind == "th" else ""
        style = ' class="number"' if right else ""
        return f"<{kind}{scope}{style}>{'<br>'.join(escape(text).strip().splitlines())}</{kind}>"

    right = [column.justify == "right" for column in t.columns]
    head = "".join(cell("th", column.header, r) for column, r in zip(t.columns, right, strict=True))
    rows = zip(*(column.cells for column in t.columns), strict=True)
    body = ""
    for row, content in zip(t.rows, rows, strict=True):
        style = ' style="font-weight:bold"' if "bold" in str(row.style) else ""
        body += f"<tr{style}>{''.join(cell('td', c, r) for c, r in zip(content, right, strict=True))}</tr>\n"
    title = f"<caption>{escape(str(t.title))}</caption>\n" if t.title else ""
    below = paragraphs(*str(t.caption).splitlines()) if t.caption else ""
    return f"<table>\n{title}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n{below}"


def paragraphs(*lines: str) -> str:
    """Each line that there is as a paragraph."""
    return "".join(f"<p>{escape(line)}</p>\n" for line in lines if line)
