# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`key=value`, and numbers that people write, with bounds: the only place where text of any length becomes a number.

Python's own int() and float() take what no user means (`1_000`, `٣`, `nan`, `infinity`) and refuse integers of more than 4300
digits with an error of their own. ValueError says in a few words what is wrong; the caller knows file, line and key.
"""

from __future__ import annotations

import math
import re

from headwaiter.errors import Problem, shown

_WHOLE = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|([0-9]+))")
_REAL = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_LONGEST = 400
"""Digits: more than any double has, and far from where conversion takes time."""


def assignment(where: str, text: str, form: str) -> tuple[str, str]:
    """Key and value of `key=value`; Problem that says where, and which form is expected, if there is no `=`."""
    key, sign, value = text.partition("=")
    if not sign:
        raise Problem(f"{where} {shown(text, 200)}: expected {form}")
    return key, value


def whole(text: str, low: int, high: int, what: str | None = None) -> int:
    """A whole number within low … high, decimal or hexadecimal (0x…). `what` is the value as the user wrote it."""
    match = _WHOLE.fullmatch(text)
    if not match:
        raise ValueError(f"'{shown(what or text)}' is not a whole number")
    sign, hexadecimal, decimal = match.groups()
    digits = (hexadecimal or decimal).lstrip("0") or "0"
    number = int(digits, 16 if hexadecimal else 10) if len(digits) <= _LONGEST else None
    if number is not None and sign == "-":
        number = -number
    if number is None or not low <= number <= high:
        raise ValueError(f"{shown(what or text)} is outside {low}..{high}")
    return number


def decimal(value: float) -> str:
    """A number as people write it: to fifteen digits, and all of a whole one's."""
    return str(int(value)) if value == int(value) else f"{value:.15g}"


def real(text: str, low: float, high: float) -> float:
    """A number within low … high, in decimal notation; neither nan nor infinite."""
    if not _REAL.fullmatch(text):
        raise ValueError(f"'{shown(text)}' is not a number")
    number = float(text) if len(text) <= _LONGEST else math.inf
    if not low <= number <= high:
        raise ValueError(f"{shown(text)} is outside {decimal(low)}..{decimal(high)}")
    return number
