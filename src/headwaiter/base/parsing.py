# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""TOML, `key=value`, and numbers that people write, with bounds: the only place where text of any length becomes a number.

Python's own int() and float() take what no user means (`1_000`, `٣`, `nan`, `infinity`) and refuse integers of more than 4300
digits with an error of their own. ValueError says in a few words what is wrong; the caller knows file, line and key.
"""

from __future__ import annotations

import math
import re
import tomllib
from typing import Any

from headwaiter.base.errors import Problem, shown

_WHOLE = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|([0-9]+))")
_REAL = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_LONGEST = 400
"""Digits: more than any double has, and far from where conversion takes time."""
_MOST_PARTS = 32
# tomllib takes time with the square of the parts.
_LONG_KEY = re.compile(rb"(?<![\w\"'-])(?:[\w\"'-]++\s*+\.\s*+){%d}" % _MOST_PARTS)


def parse_toml(where: str, data: bytes) -> dict[str, Any]:
    """A TOML document; Problem that begins with `where` if it is none."""
    if long := _LONG_KEY.search(data):
        line = data.count(b"\n", 0, long.start()) + 1
        raise Problem(f"{where}: line {line}: a name of more than {_MOST_PARTS} parts")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as e:
        raise Problem(f"{where}: byte {e.start}: not text (utf-8)") from None
    except tomllib.TOMLDecodeError as e:
        raise Problem(f"{where}: not TOML: {e}") from None
    except RecursionError:
        raise Problem(f"{where}: not valid TOML: nested too deeply") from None
    except ValueError:
        # Of what tomllib converts by int() and datetime: a number of thousands of digits, a day that no month has.
        raise Problem(f"{where}: not valid TOML: a number or date is out of range") from None


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
