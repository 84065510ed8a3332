# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Profiles as TOML text, with comments: points of a curve and places in lines, not one a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwaiter.base.errors import plain
from headwaiter.drives.profile import Toml

_WIDTH = 110
Comments = Mapping[str, str]


def _value(v: Any) -> str:
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, str):
        return '"' + plain(v).replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(v, list):
        return "[" + ", ".join(_value(x) for x in v) + "]"
    return f"{v:.9g}" if isinstance(v, float) else str(v)


def _long_list(items: list[Any]) -> str:
    lines, line = [], "  "
    for item in items:
        text = _value(item) + ","
        if len(line) + len(text) > _WIDTH:
            lines.append(line.rstrip())
            line = "  "
        line += text + " "
    return "[\n" + "\n".join([*lines, line.rstrip()]) + "\n]"


def _entry(key: str, value: Any, comment: str) -> str:
    text = _value(value)
    if isinstance(value, list) and len(text) > 80:
        text = _long_list(value)
    note = f"  # {comment}" if comment and "\n" not in text else ""
    above = f"# {comment}\n" if comment and "\n" in text else ""
    return f"{above}{key} = {text}{note}\n"


def toml_text(data: Toml, heading: str, comments: Comments | None = None) -> str:
    """A profile as TOML. `heading` becomes the comment at the top; `comments` go by "section" and "section.key"."""
    notes = comments or {}
    out = "".join(f"# {plain(line)}".rstrip() + "\n" for line in heading.split("\n")) + "\n"
    for key, value in data.items():
        if not isinstance(value, dict) and not (isinstance(value, list) and value and isinstance(value[0], dict)):
            out += _entry(key, value, notes.get(key, ""))
    for key, value in data.items():
        if isinstance(value, dict):
            out += "\n" + (f"# {notes[key]}\n" if key in notes else "") + f"[{key}]\n"
            out += "".join(_entry(k, v, notes.get(f"{key}.{k}", "")) for k, v in value.items())
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for i, row in enumerate(value):
                out += "\n" + (f"# {notes[key]}\n" if key in notes and not i else "") + f"[[{key}]]\n"
                out += "".join(_entry(k, v, "") for k, v in row.items())
    return out
